/* The logits of a row are bit-identical for every batch, number of threads, cut of the prompt and
 * placement of the keys. */
#include "small.h"

#include "model/pack.h"

enum { SEQS = 32, GROUP = 8, PREFIX = 37, LENGTH = 70, VOCAB = 97, BLOCKS = (LENGTH + KV_BLOCK - 1) / KV_BLOCK };

struct plan {
    int64_t n, chunk; /* sequences together; tokens of one computed at a time */
    bool share;       /* only the first sequence of a group computes its prefix */
    int32_t spread;   /* block numbers are multiplied by this, modulo their count, to which it is coprime */
};

struct texts {
    int32_t ids[SEQS][LENGTH];
    int64_t len[SEQS];
};

/* Groups of GROUP sequences begin with the same PREFIX tokens. */
static void make_texts(struct texts *t)
{
    uint32_t x = 12345;
    for (int i = 0; i < SEQS; i++) {
        t->len[i] = PREFIX + 2 + (i * 7) % (LENGTH - PREFIX - 2);
        for (int j = 0; j < LENGTH; j++) {
            x = x * 1664525u + 1013904223u;
            t->ids[i][j] = j < PREFIX && i % GROUP ? t->ids[i - 1][j] : (int32_t)((x >> 10) % VOCAB);
        }
    }
}

struct state {
    int32_t blocks[SEQS][BLOCKS];
    int64_t done[SEQS];
};

static void place_blocks(struct state *s, const struct plan *p)
{
    for (int32_t i = 0; i < SEQS; i++)
        for (int32_t b = 0; b < BLOCKS; b++) {
            const int32_t leader = i - i % GROUP;
            const bool shared = p->share && b < PREFIX / KV_BLOCK;
            s->blocks[i][b] = ((shared ? leader : i) * BLOCKS + b) * p->spread % (SEQS * BLOCKS + 1);
        }
}

/* Copies the partly filled block of the prefix from the leader to its followers. */
static void start_followers(struct model *m, struct kv_cache *cache, struct state *s, int64_t first, int64_t n)
{
    const struct model_shape *h = &m->shape;
    const struct attn_shape as = {
        .heads = h->heads, .kv_heads = h->kv_heads, .head_dim = h->head_dim, .stride = (h->heads + 2 * h->kv_heads) * h->head_dim};
    for (int64_t i = first; i < first + n; i++) {
        if (i % GROUP == 0 || s->done[i] || s->done[i - i % GROUP] < PREFIX) continue;
        for (int64_t l = 0; l < h->layers; l++)
            KERNEL(m->k, &m->ctx, kv_copy, .kv = cache->layers[l], .shape = as, .to = &s->blocks[i][PREFIX / KV_BLOCK],
                   .from = &s->blocks[i - i % GROUP][PREFIX / KV_BLOCK], .n = 1);
        s->done[i] = PREFIX;
    }
}

struct rows {
    int32_t ids[SEQS * LENGTH], pos[SEQS * LENGTH];
    int64_t row[SEQS * LENGTH], slot[SEQS * LENGTH];
    struct attn_seq seqs[SEQS];
};

struct walk {
    struct model *m;
    const struct texts *texts;
    const struct plan *plan;
    struct kv_cache cache;
    struct arena arena;
};

/* Runs one forward pass over up to chunk tokens of each of sequences first .. first+n-1, and writes
 * their logits to out. Returns the rows. */
static int64_t advance(struct walk *w, struct state *s, int64_t first, float (*out)[LENGTH][VOCAB])
{
    const struct texts *t = w->texts;
    const struct plan *p = w->plan;
    static struct rows r;
    struct err e = {0};
    int64_t T = 0, n_seqs = 0, owner[SEQS * LENGTH];
    for (int64_t i = first; i < first + p->n; i++) {
        int64_t n = t->len[i] - s->done[i];
        if (p->share && i % GROUP && !s->done[i]) continue;
        if (p->share && i % GROUP == 0 && s->done[i] < PREFIX && n > PREFIX - s->done[i]) n = PREFIX - s->done[i];
        if (n > p->chunk) n = p->chunk;
        if (!n) continue;
        r.seqs[n_seqs++] = (struct attn_seq){T, n, s->done[i], s->blocks[i], 0};
        for (int64_t j = s->done[i]; j < s->done[i] + n; j++, T++) {
            r.ids[T] = t->ids[i][j], r.pos[T] = (int32_t)j, r.row[T] = T, owner[T] = i;
            r.slot[T] = (int64_t)s->blocks[i][j / KV_BLOCK] * KV_BLOCK + j % KV_BLOCK;
        }
        s->done[i] += n;
    }
    const struct forward_batch b = {T, r.ids, r.pos, r.row, r.slot, T, true, r.seqs, n_seqs, true, r.row, T};
    float *hidden, *logits;
    if (!T) return 0;
    arena_reset(&w->arena);
    assert_ok(model_forward(w->m, &w->cache, &b, &w->arena, &hidden, &e), &e);
    assert_ok(arena_new(&w->arena, &logits, T * VOCAB, &e), &e);
    model_logits(w->m, hidden, T, logits);
    for (int64_t i = 0; i < T; i++) memcpy(out[owner[i]][r.pos[i]], logits + i * VOCAB, VOCAB * 4);
    return T;
}

static int64_t run(struct model *m, const struct texts *t, const struct plan *p, float (*out)[LENGTH][VOCAB])
{
    struct err e = {0};
    struct walk w = {.m = m, .texts = t, .plan = p};
    static struct state s;
    int64_t rows = 0;
    arena_init(&w.arena, "test");
    assert_ok(kv_cache_new(m, m->shape.layers, SEQS * BLOCKS + 1, &w.cache, &e), &e);
    memset(&s, 0, sizeof s);
    place_blocks(&s, p);
    for (int64_t first = 0; first + p->n <= SEQS; first += p->n)
        for (;;) {
            if (p->share) start_followers(m, &w.cache, &s, first, p->n);
            const int64_t n = advance(&w, &s, first, out);
            if (!n) break;
            rows += n;
        }
    kv_cache_free(m, &w.cache);
    arena_free(&w.arena);
    return rows;
}

static float base[SEQS][LENGTH][VOCAB], other[SEQS][LENGTH][VOCAB];

static void inference_is_invariant(void **state)
{
    (void)state;
    struct err e = {0};
    struct pool *pool;
    static struct texts t;
    const struct plan alone = {1, LENGTH, false, 1};
    const struct plan plans[] = {{1, 1, false, 1},  {7, LENGTH, false, 5}, {32, LENGTH, false, 9}, {32, 1, false, 3},
                                 {32, 5, false, 3}, {8, LENGTH, true, 1},  {32, 11, true, 5},      {32, 1, true, 3}};
    make_texts(&t);
    assert_ok(pool_new(2, &pool, &e), &e);
    for (int arch = 0; arch < 3; arch++) {
        struct model *one = small_model(SMALL_ARCHS[arch], arch == 1, NULL), *two = small_model(SMALL_ARCHS[arch], arch == 1, pool);
        run(one, &t, &alone, base);
        for (size_t i = 0; i < sizeof plans / sizeof *plans; i++) {
            memset(other, 0, sizeof other);
            const int64_t rows = run(two, &t, &plans[i], other);
            int64_t compared = 0;
            for (int64_t q = 0; q < SEQS / plans[i].n * plans[i].n; q++)
                for (int64_t j = plans[i].share && q % GROUP ? PREFIX : 0; j < t.len[q]; j++, compared++)
                    if (memcmp(base[q][j], other[q][j], VOCAB * 4))
                        fail_msg("%s, plan %zu: sequence %d row %d differs", SMALL_ARCHS[arch], i, (int)q, (int)j);
            assert_int_equal(rows, compared);
        }
        model_free(one);
        model_free(two);
    }
    pool_free(pool);
}

/* The training pass, with prompts shared and repeated, gives the logits of the inference pass. */
static void training_has_the_same_bits(void **state)
{
    (void)state;
    struct err e = {0};
    static struct texts t;
    const struct plan alone = {1, LENGTH, false, 1};
    const int32_t *completion[SEQS];
    int64_t len[SEQS];
    struct pack_group groups[SEQS / GROUP];
    make_texts(&t);
    for (int i = 0; i < SEQS; i++) completion[i] = t.ids[i] + PREFIX, len[i] = t.len[i] - PREFIX;
    len[3] = 0, len[4] = 1; /* no target; one token, which has no row */
    for (int i = 0; i < SEQS / GROUP; i++)
        groups[i] = (struct pack_group){t.ids[i * GROUP], PREFIX, GROUP, completion + i * GROUP, len + i * GROUP, NULL};
    for (int arch = 0; arch < 3; arch++) {
        struct model *m = small_model(SMALL_ARCHS[arch], arch == 1, NULL);
        run(m, &t, &alone, base);
        for (int how = 0; how < 8; how++) {
            struct arena a;
            struct packed_batch p;
            struct kv_cache cache;
            struct train_pass *pass;
            float *hidden, *logits;
            int64_t rows = 0;
            arena_init(&a, "test");
            for (int i = 0; i < SEQS / GROUP; i++) rows += pack_group_rows(&groups[i], how & 1);
            assert_ok(pack_groups(groups, SEQS / GROUP, how & 1, &a, &p, &e), &e);
            assert_int_equal(p.forward.t, rows);
            assert_ok(kv_cache_new(m, 1, p.n_blocks, &cache, &e), &e);
            assert_ok(model_train_forward(m, &(struct train_input){&cache, &p.forward, p.segs, p.n_segs, (enum recompute)(how / 2)},
                                          &a, &pass, &hidden, &e),
                      &e);
            assert_ok(arena_new(&a, &logits, p.n_targets * VOCAB, &e), &e);
            model_logits(m, hidden, p.n_targets, logits);
            int64_t at = 0;
            for (int64_t q = 0; q < SEQS; q++)
                for (int64_t j = 0; j < len[q]; j++, at++) {
                    assert_int_equal(p.target[at], completion[q][j]);
                    if (memcmp(base[q][PREFIX + j - 1], logits + at * VOCAB, VOCAB * 4))
                        fail_msg("%s, way %d: sequence %d token %d differs", SMALL_ARCHS[arch], how, (int)q, (int)j);
                }
            assert_int_equal(at, p.n_targets);
            kv_cache_free(m, &cache);
            arena_free(&a);
        }
        model_free(m);
    }
}

static void bad_batches_are_refused(void **state)
{
    (void)state;
    struct err e = {0};
    struct model *m = small_model("qwen2", true, NULL);
    struct kv_cache cache;
    struct arena a;
    float *hidden;
    int32_t id = VOCAB, pos = 0, block = 0;
    int64_t row = 0;
    arena_init(&a, "test");
    assert_ok(kv_cache_new(m, m->shape.layers, 1, &cache, &e), &e);
    const struct attn_seq seq = {0, 1, 0, &block, 0};
    const struct forward_batch b = {1, &id, &pos, &row, &row, 1, false, &seq, 1, false, &row, 1};
    assert_int_equal(model_forward(m, &cache, &b, &a, &hidden, &e), TARE_E_RANGE);
    id = 0, pos = 128; /* the context is 128: positions 0 to 127 */
    assert_int_equal(model_forward(m, &cache, &b, &a, &hidden, &e), TARE_E_RANGE);
    assert_non_null(strstr(e.message, "129"));
    assert_non_null(strstr(e.message, "128"));
    pos = 0, block = 1;
    assert_int_equal(model_forward(m, &cache, &b, &a, &hidden, &e), TARE_E_RANGE);
    block = 0;
    assert_ok(model_forward(m, &cache, &b, &a, &hidden, &e), &e);
    kv_cache_free(m, &cache);
    arena_free(&a);
    model_free(m);
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(inference_is_invariant), cmocka_unit_test(training_has_the_same_bits),
                                       cmocka_unit_test(bad_batches_are_refused)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
