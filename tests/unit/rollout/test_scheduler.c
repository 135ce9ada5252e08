/* Tests the scheduler without a model: a cache that stores which key is in each slot is read back
 * completely before every token. */
#include "check.h"

#include "rollout/scheduler.h"

#include <string.h>

enum { MAX_KEYS = 256 * KV_BLOCK };

struct world {
    struct scheduler s;
    struct arena arena;
    int64_t slot[MAX_KEYS]; /* the key stored there */
    int64_t length[64];     /* length at which each sequence ends */
    int64_t iterations;
};

/* Keys are derived from their owner: the prompt for its tokens, the sequence for its own. */
static int64_t prompt_key(int64_t group, int64_t j)
{
    return 1 + group * 100000 + j;
}

static int64_t own_key(int64_t seq, int64_t j)
{
    return -1 - seq * 100000 - j;
}

static void check_keys(const struct world *w, int64_t seq)
{
    const struct sequence *q = &w->s.seqs[seq];
    const int64_t prompt = w->s.groups[q->group].request->prompt_len;
    for (int64_t j = 0; j < q->cached; j++) {
        const int64_t at = (int64_t)q->blocks[j / KV_BLOCK] * KV_BLOCK + j % KV_BLOCK;
        assert_int_equal(w->slot[at], j < prompt ? prompt_key(q->group, j) : own_key(seq, j));
    }
}

static void add_token(struct world *w, int64_t seq)
{
    struct sequence *q = &w->s.seqs[seq];
    q->n++;
    if (q->n == w->length[seq]) scheduler_finish(&w->s, seq, FINISH_STOP);
}

static void run_prefill(struct world *w)
{
    struct scheduler *s = &w->s;
    for (int64_t i = 0; i < s->n_fresh; i++) {
        struct group *g = &s->groups[s->fresh[i]];
        for (int64_t j = 0; j < g->request->prompt_len; j++)
            w->slot[(int64_t)g->blocks[j / KV_BLOCK] * KV_BLOCK + j % KV_BLOCK] = prompt_key(s->fresh[i], j);
        if (g->drawn) continue;
        for (int64_t k = 0; k < g->request->n_samples; k++) add_token(w, g->first + k);
        g->drawn = true;
    }
    /* in any order: none reads a block that another one writes */
    for (int64_t i = s->n_copies - 1; i >= 0; i--)
        memcpy(w->slot + (int64_t)s->copy_to[i] * KV_BLOCK, w->slot + (int64_t)s->copy_from[i] * KV_BLOCK,
               KV_BLOCK * sizeof *w->slot);
    for (int64_t i = s->admitted; i < s->n_running; i++) {
        const struct sequence *q = &s->seqs[s->running[i]];
        for (int64_t j = s->groups[q->group].request->prompt_len; q->running && j < q->cached; j++)
            w->slot[(int64_t)q->blocks[j / KV_BLOCK] * KV_BLOCK + j % KV_BLOCK] = own_key(s->running[i], j);
    }
    scheduler_compact(s);
}

static void run_decode(struct world *w)
{
    struct scheduler *s = &w->s;
    const int64_t n = s->n_running;
    for (int64_t i = 0; i < n; i++) {
        struct sequence *q = &s->seqs[s->running[i]];
        if (i) assert_true(s->running[i - 1] < s->running[i]);
        check_keys(w, s->running[i]);
        assert_true(q->cached < q->n_blocks * KV_BLOCK);
        w->slot[(int64_t)q->blocks[q->cached / KV_BLOCK] * KV_BLOCK + q->cached % KV_BLOCK] = own_key(s->running[i], q->cached);
        q->cached++;
        assert_int_equal(q->cached, s->groups[q->group].request->prompt_len + q->n);
    }
    /* no sequence has overwritten keys of another */
    for (int64_t i = 0; i < n; i++) check_keys(w, s->running[i]);
    for (int64_t i = 0; i < n; i++) add_token(w, s->running[i]);
    scheduler_compact(s);
}

static void run_world(struct world *w, const struct sample_request *r, int64_t n, int64_t limit, int64_t batch, int64_t blocks)
{
    struct err e = {0};
    struct scheduler *s = &w->s;
    assert_ok(scheduler_enqueue(s, &(struct scheduler_work){r, n, limit, 1 << 20, rng_key(1, RNG_TRAIN)}, &w->arena, &e), &e);
    assert_true(s->n_seqs <= 64 && blocks <= MAX_KEYS / KV_BLOCK);
    for (int64_t i = 0; i < s->n_seqs; i++)
        w->length[i] = 1 + (int64_t)rng_below(rng_key(7, RNG_DATA), (uint64_t)(i + blocks), (uint64_t)limit);
    assert_ok(kv_blocks_init(&s->pool, blocks, &e), &e);
    assert_ok(scheduler_start(s, batch, &w->arena, &e), &e);
    for (w->iterations = 0; s->remaining; w->iterations++) {
        assert_true(w->iterations < 100000);
        scheduler_admit(s);
        assert_true(s->n_running > 0 && s->n_running <= batch);
        run_prefill(w);
        scheduler_grow(s, 1);
        run_decode(w);
    }
    assert_int_equal(s->pool.n_free, s->pool.n); /* nothing is held at the end */
    assert_int_equal(s->n_tables, batch);
    for (int64_t i = 0; i < s->n_seqs; i++) assert_int_equal(s->seqs[i].n, w->length[i]);
}

static struct world *world_new(void)
{
    struct world *w = calloc(1, sizeof *w);
    arena_init(&w->arena, "world");
    return w;
}

static void world_free(struct world *w)
{
    kv_blocks_free(&w->s.pool);
    arena_free(&w->arena);
    free(w);
}

static void test_random_shapes(void **state)
{
    int64_t preemptions = 0;
    (void)state;
    for (uint64_t trial = 0; trial < 600; trial++) {
        struct world *w = world_new();
        struct sample_request r[6];
        const struct rng_key key = rng_derive(rng_key(3, RNG_DATA), trial);
        const int64_t n = 1 + (int64_t)rng_below(key, 0, 6), limit = 1 + (int64_t)rng_below(key, 1, 70);
        int64_t least = 0;
        for (int64_t i = 0; i < n; i++) {
            r[i] = (struct sample_request){.prompt_len = 1 + (int64_t)rng_below(key, (uint64_t)(10 + i), 50),
                                           .n_samples = 1 + (int64_t)rng_below(key, (uint64_t)(20 + i), 8)};
            if (rng_below(key, (uint64_t)(30 + i), 3) == 0) r[i].prompt_len = (r[i].prompt_len + 15) / 16 * 16;
            const int64_t need = kv_blocks_for(r[i].prompt_len + limit - 1);
            if (need > least) least = need;
        }
        const int64_t spare = rng_below(key, 2, 2) ? 0 : (int64_t)rng_below(key, 3, 30);
        run_world(w, r, n, limit, 1 + (int64_t)rng_below(key, 4, 20), least + spare);
        preemptions += w->s.preemptions;
        world_free(w);
    }
    assert_true(preemptions > 100);
}

static void test_batch_need_is_enough(void **state)
{
    (void)state;
    for (uint64_t trial = 0; trial < 100; trial++) {
        struct world *w = world_new();
        struct err e = {0};
        struct sample_request r[5];
        const struct rng_key key = rng_derive(rng_key(4, RNG_DATA), trial);
        for (int64_t i = 0; i < 5; i++)
            r[i] = (struct sample_request){.prompt_len = 1 + (int64_t)rng_below(key, (uint64_t)i, 50),
                                           .n_samples = 1 + (int64_t)rng_below(key, (uint64_t)(9 + i), 6)};
        const int64_t batch = 1 + (int64_t)rng_below(key, 20, 30);
        assert_ok(scheduler_enqueue(&w->s, &(struct scheduler_work){r, 5, 40, 1000, key}, &w->arena, &e), &e);
        run_world(w, r, 5, 40, batch, scheduler_batch_need(&w->s, batch));
        assert_int_equal(w->s.preemptions, 0);
        world_free(w);
    }
}

static void test_prefix_is_held_once(void **state)
{
    (void)state;
    struct world *w = world_new();
    struct err e = {0};
    const struct sample_request r = {.prompt_len = 100, .n_samples = 8};
    assert_ok(scheduler_enqueue(&w->s, &(struct scheduler_work){&r, 1, 10, 1000, rng_key(1, RNG_TRAIN)}, &w->arena, &e), &e);
    assert_ok(kv_blocks_init(&w->s.pool, 100, &e), &e);
    assert_ok(scheduler_start(&w->s, 8, &w->arena, &e), &e);
    scheduler_admit(&w->s);
    assert_int_equal(w->s.n_running, 8);
    assert_int_equal(w->s.n_copies, 7);                      /* the last sequence takes the partial block */
    assert_int_equal(w->s.pool.n - w->s.pool.n_free, 6 + 8); /* 96 keys once, the last 4 for each */
    assert_int_equal(w->s.pool.refs[w->s.groups[0].blocks[0]], 9);
    world_free(w);
}

static void test_what_cannot_fit(void **state)
{
    (void)state;
    struct world *w = world_new();
    struct err e = {0};
    const struct sample_request r = {.prompt_len = 100, .n_samples = 1, .where = "rows.jsonl:3"};
    assert_ok(scheduler_enqueue(&w->s, &(struct scheduler_work){&r, 1, 61, 1000, rng_key(1, RNG_TRAIN)}, &w->arena, &e), &e);
    assert_ok(kv_blocks_init(&w->s.pool, 9, &e), &e);
    assert_int_equal(scheduler_start(&w->s, 8, &w->arena, &e), TARE_E_CONFIG);
    assert_non_null(strstr(e.message, "rows.jsonl:3"));
    assert_non_null(strstr(e.message, "144"));
    assert_non_null(strstr(e.message, "160"));
    /* 100 + 61 - 1 keys: the last token is never an input. */
    assert_ok(kv_blocks_init(&w->s.pool, 10, &e), &e);
    assert_ok(scheduler_start(&w->s, 8, &w->arena, &e), &e);
    world_free(w);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_random_shapes),
        cmocka_unit_test(test_batch_need_is_enough),
        cmocka_unit_test(test_prefix_is_held_once),
        cmocka_unit_test(test_what_cannot_fit),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
