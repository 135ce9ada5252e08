/* The update on ranks (threads): weights, moments and metrics are bit-identical on 1, 2, 3, 4 and 8
 * ranks for every dist.shard; memory falls as 1/R; a damaged refresh is detected. */
#include "engine.h"
#include "folder.h"
#include "objective.h"

#include "../model/small.h"
#include "base/fs.h"
#include "base/rng.h"
#include "dist/threads.h"
#include "model/proof.h"
#include "model/shards.h"
#include "update/update.h"

#include <stdlib.h>
#include <unistd.h>

enum { M = 11, G = 4, STEPS = 3, LONGEST = 14 };

static struct train_config train; /* set by main */
static const struct loss_config LOSS = {.aggregation = AGGREGATE_SEQUENCE,
                                        .clip = 0.2,
                                        .entropy_coef = 0.01,
                                        .kl = KL_K3,
                                        .old_logprobs = OLD_RECOMPUTE,
                                        .rollout_is = ROLLOUT_IS_TIS,
                                        .rollout_is_cap = 2};
static const struct model_config MODEL = {.dtype = PRECISION_F32, .save_dtype = SAVE_AUTO};

static struct batch batch;

static void make_batch(struct arena *a)
{
    struct batch *b = &batch;
    const struct rng_key key = rng_key(3, RNG_TRAIN);
    uint64_t n = 0;
    *b = update_batch(a, M, M * G, M * LONGEST, M * G * LONGEST);
    for (int64_t m = 0; m < M; m++) {
        const int64_t prompt = 1 + (int64_t)(rng_uniform(key, n++, 0) * LONGEST);
        b->group_begin[m + 1] = (m + 1) * G;
        b->prompt_begin[m + 1] = b->prompt_begin[m] + prompt;
        for (int64_t i = b->prompt_begin[m]; i < b->prompt_begin[m + 1]; i++)
            b->prompt_ids[i] = (int32_t)(rng_uniform(key, n++, 0) * 97);
        for (int64_t i = m * G; i < (m + 1) * G; i++) {
            const int64_t length = 1 + (int64_t)(rng_uniform(key, n++, 0) * LONGEST);
            b->token_begin[i + 1] = b->token_begin[i] + length;
            b->advantage[i] = rng_normal(key, n++);
            /* One group and some other rollouts are dropped. */
            b->rollout_weight[i] = m == 4 ? 0 : i % 7 != 2;
            for (int64_t t = b->token_begin[i]; t < b->token_begin[i + 1]; t++) {
                b->ids[t] = (int32_t)(rng_uniform(key, n++, 0) * 97);
                b->logprob[t] = (float)(-3 + 0.1 * rng_normal(key, n++));
            }
        }
    }
    b->n_tokens = b->token_begin[M * G];
}

/* ---- a communicator whose transfers run while the rank computes, as between GPUs: a transfer is
 * carried out as late as possible, in the wait. Until then its target holds no valid numbers, and
 * its source must not change. */
enum { TRACE = 4096 };
struct call {
    char what;
    int64_t bytes;
};
struct late { /* of a rank */
    struct comm *inner;
    const void *in;
    void *out;
    int64_t bytes, exchanges; /* of this transfer; number begun */
    uint64_t hash;
    bool pending;
    struct call trace[TRACE];
    int64_t n_trace;
};
static _Thread_local struct late *late;

static void note(char what, int64_t bytes)
{
    assert_true(late->n_trace < TRACE);
    late->trace[late->n_trace++] = (struct call){what, bytes};
}

static tare_status late_exchange_begin(struct comm *c, const void *in, int64_t bytes, void *out, struct err *e)
{
    (void)e;
    assert_false(late->pending); /* one received buffer: one transfer at a time */
    note('x', bytes);
    late->in = in, late->bytes = bytes, late->out = out, late->pending = true;
    late->hash = fs_hash(in, c->size * bytes, 0);
    late->exchanges++;
    memset(out, 0xff, (size_t)(c->size * bytes));
    return TARE_OK;
}

static tare_status late_exchange_wait(struct comm *c, struct err *e)
{
    assert_true(late->pending);
    note('w', late->bytes);
    late->pending = false;
    if (fs_hash(late->in, c->size * late->bytes, 0) != late->hash)
        FAIL(e, TARE_E_STATE, "a window was written while it was in transfer");
    return c->all_to_all(c, late->in, late->bytes, late->out, e);
}

static tare_status late_gather_begin(struct comm *c, const void *in, int64_t bytes, void *out, struct err *e)
{
    /* Weights are gathered when the compute copy is made, not in a backward pass. */
    assert_false(late->pending);
    note('g', bytes);
    return late->inner->gather_begin(c, in, bytes, out, e);
}

struct job {
    const char *objective; /* NULL: ppo */
    bool late;
    struct late ranks[8];
    const char *folder;
    const struct kernels *k;
    enum shard shard;
    int64_t shards;
    struct result {
        uint64_t weights, moments, state; /* state: of the objective */
        struct update_report report[STEPS];
        int64_t parameters, gradients, moment_bytes, n_params;
    } result[8]; /* of each rank */
};

static tare_status open_sharded(const struct job *j, struct comm *c, enum shard shard, struct model **out, struct err *e)
{
    return model_open(&(struct model_source){.folder = j->folder, .config = &MODEL, .kernels = j->k, .comm = c, .shard = shard},
                      out, e);
}

/* Hashes the first moment without the padding unit by unit, with slices gathered on every rank. */
static tare_status hash_moments(const struct trainer *t, uint64_t *out, struct err *e)
{
    const struct model *m = t->m;
    *out = 0;
    for (int64_t u = 0; u < shards_unit_count(m); u++) {
        const int64_t piece = shards_unit_slice(m, u), bytes = piece * (int64_t)sizeof(float);
        const bool whole = m->shard == SHARD_NONE;
        float *all;
        TRY(mem_new(bytes * m->ranks, (void **)&all, e));
        const float *mine = t->moment1 + (whole ? m->unit_begin[u] + m->rank * piece : shards_unit_own(m, u));
        const tare_status status = m->comm->all_gather(m->comm, mine, bytes, all, e);
        *out = fs_hash(all, m->unit_size[u] * (int64_t)sizeof(float), *out);
        mem_free(all);
        TRY(status);
    }
    return TARE_OK;
}

static void trainer_close(struct trainer **t)
{
    free_trainer(*t);
}

static tare_status train_rank(struct comm *c, void *ctx, struct err *e)
{
    struct job *j = ctx;
    struct result *r = &j->result[c->rank];
    struct comm beside = *c;
    if (j->late) {
        late = &j->ranks[c->rank];
        late->inner = c;
        beside.exchange_begin = late_exchange_begin, beside.exchange_wait = late_exchange_wait;
        beside.gather_begin = late_gather_begin;
        beside.overlaps = true;
        c = &beside;
    }
    OWNED(model_free_at) struct model *m = NULL;
    OWNED(trainer_close) struct trainer *t = NULL;
    OWNED(str_free) struct str state = {0};
    TRY(open_sharded(j, c, j->shard, &m, e));
    TRY(trainer_new(m, &(struct trainer_options){NULL, &train, &LOSS, 0.9, 1, 10}, &t, e));
    TRY(objective_open(&(struct objective_options){.plugin = j->objective ? j->objective : "ppo", .loss = &LOSS}, &t->objective,
                       e));
    t->gradient_shards = j->shards;
    struct batch b = batch;
    for (int s = 0; s < STEPS; s++) {
        b.step = s;
        TRY(update_run(t, &b, &r->report[s], e));
        TRY(update_apply(t, s, e));
    }
    TRY(model_hash(m, &r->weights, e));
    r->parameters = m->memory.parameters, r->gradients = t->grads.sum_bytes, r->moment_bytes = t->moment_bytes;
    r->n_params = m->n_params;
    TRY(objective_save(t->objective, &state, e));
    r->state = fs_hash(state.data, state.size, 0);
    return hash_moments(t, &r->moments, e);
}

static const char *folder;

static void save_model(const char *arch, bool tied)
{
    struct err e = {0};
    struct model *m = small_model(arch, tied, NULL);
    assert_non_null(folder = make_test_folder("tare-shards"));
    assert_ok(model_save(m, folder, DTYPE_F32, NULL, &e), &e);
    model_free(m);
}

static struct job run_ranks(int ranks, enum shard shard, int64_t shards)
{
    struct err e = {0};
    struct job j = {.folder = folder, .shard = shard, .shards = shards};
    assert_ok(kernels_cpu(NULL, &j.k, &e), &e);
    assert_ok(comm_threads(ranks, 30, train_rank, &j, &e), &e);
    return j;
}

/* The same with overlapping transfers: every rank begins and waits in the same order, and one
 * transfer is in progress while the next layer is computed. */
static void run_late(int ranks, enum shard shard, const struct result *want)
{
    static struct job j;
    struct err e = {0};
    j = (struct job){.late = true, .folder = folder, .shard = shard, .shards = 8};
    assert_ok(kernels_cpu(NULL, &j.k, &e), &e);
    assert_ok(comm_threads(ranks, 30, train_rank, &j, &e), &e);
    for (int r = 0; r < ranks; r++) {
        const struct late *l = &j.ranks[r];
        assert_true(j.result[r].weights == want->weights && j.result[r].moments == want->moments);
        for (int s = 0; s < STEPS; s++) assert_memory_equal(&j.result[r].report[s], &want->report[s], sizeof *want->report);
        assert_false(l->pending);
        assert_true(ranks == 1 ? !l->exchanges : l->exchanges > 20);
        assert_int_equal(l->n_trace, j.ranks[0].n_trace);
        for (int64_t i = 0; i < l->n_trace; i++)
            assert_true(l->trace[i].what == j.ranks[0].trace[i].what && l->trace[i].bytes == j.ranks[0].trace[i].bytes);
    }
}

static void same_result(const struct result *a, const struct result *b)
{
    assert_true(a->weights == b->weights);
    assert_true(a->moments == b->moments);
    for (int s = 0; s < STEPS; s++) assert_memory_equal(&a->report[s], &b->report[s], sizeof a->report[s]);
}

static void same_bits_on_every_number_of_ranks(void **state)
{
    (void)state;
    static const int RANKS[] = {1, 2, 3, 4, 8};
    static const enum shard SHARDS[] = {SHARD_ZERO3, SHARD_ZERO1, SHARD_NONE};
    for (int arch = 0; arch < 3; arch++) {
        save_model(SMALL_ARCHS[arch], arch != 1);
        const struct job one = run_ranks(1, SHARD_ZERO3, 8);
        assert_true(one.result[0].report[0].grad_norm > 0.5); /* so that clipping takes effect */
        for (int i = 1; i < 5; i++)
            for (int s = 0; s < 3; s++) {
                if (RANKS[i] != 4 && s && arch) continue;
                const struct job j = run_ranks(RANKS[i], SHARDS[s], 8);
                for (int r = 0; r < RANKS[i]; r++) same_result(&one.result[0], &j.result[r]);
            }
        for (int ranks = 1; ranks <= 4; ranks += ranks == 2 ? 2 : 1) run_late(ranks, SHARD_ZERO3, &one.result[0]);
        run_late(3, SHARD_ZERO1, &one.result[0]);
        train.recompute = RECOMPUTE_LAYER;
        const struct job again = run_ranks(2, SHARD_ZERO3, 8);
        same_result(&one.result[0], &again.result[0]);
        train.recompute = RECOMPUTE_NONE;
        /* Another number of shards means another order of sums. */
        const struct job other = run_ranks(2, SHARD_ZERO3, 2);
        assert_true(other.result[0].weights != one.result[0].weights);
        assert_true(fabs(other.result[0].report[2].loss - one.result[0].report[2].loss) < 1e-4);
        fs_remove_tree(folder, NULL);
    }
}

static void families_on_every_number_of_ranks(void **state)
{
    (void)state;
    static const char *const NAMES[] = {"gemma3", "phi3-part", "olmo2", "granite"};
    static char path[4200];
    folder = path;
    for (int i = 0; i < 4; i++) {
        snprintf(path, sizeof path, "%s/tests/data/models/families/%s", getenv("SOURCE"), NAMES[i]);
        const struct job one = run_ranks(1, SHARD_ZERO3, 8);
        for (int ranks = 2; ranks <= 3; ranks++)
            for (int s = 0; s < 3; s++) {
                train.recompute = s == 1 ? RECOMPUTE_LAYER : RECOMPUTE_NONE;
                const struct job j = run_ranks(ranks, s == 0 ? SHARD_ZERO3 : s == 1 ? SHARD_ZERO1 : SHARD_NONE, 8);
                for (int r = 0; r < ranks; r++) same_result(&one.result[0], &j.result[r]);
            }
        train.recompute = RECOMPUTE_NONE;
    }
}

/* Tests an objective over whole sequences, whose numbers come from all ranks, and one whose state
 * is updated with sums from all ranks. */
static void objectives_on_every_number_of_ranks(void **state)
{
    (void)state;
    static struct job one, j;
    char stateful[4096];
    struct err e = {0};
    snprintf(stateful, sizeof stateful, "%s/good_objective.so", getenv("FIXTURES"));
    const char *const names[] = {"gspo", "clip_cov", stateful};
    save_model("qwen2", true);
    uint64_t seen = 0;
    for (int n = 0; n < 3; n++) {
        for (int ranks = 1; ranks <= 4; ranks++) {
            j = (struct job){.objective = names[n], .folder = folder, .shard = SHARD_ZERO3, .shards = 8};
            assert_ok(kernels_cpu(NULL, &j.k, &e), &e);
            assert_ok(comm_threads(ranks, 30, train_rank, &j, &e), &e);
            if (ranks == 1) one = j;
            for (int r = 0; r < ranks; r++) {
                same_result(&one.result[0], &j.result[r]);
                assert_true(one.result[0].state == j.result[r].state);
            }
        }
        assert_true(one.result[0].weights != seen); /* they are different objectives */
        seen = one.result[0].weights;
    }
    fs_remove_tree(folder, NULL);
}

static void memory_falls_with_ranks(void **state)
{
    (void)state;
    save_model("qwen2", true);
    const struct job one = run_ranks(1, SHARD_ZERO3, 8);
    const double all = (double)(one.result[0].parameters + one.result[0].gradients + one.result[0].moment_bytes);
    assert_true(all == 16.0 * (double)one.result[0].n_params);
    for (int ranks = 2; ranks <= 8; ranks *= 2) {
        const struct job j = run_ranks(ranks, SHARD_ZERO3, 8);
        for (int r = 0; r < ranks; r++) {
            const double mine = (double)(j.result[r].parameters + j.result[r].gradients + j.result[r].moment_bytes);
            if (fabs(mine * ranks / all - 1) > 0.05) fail_msg("%d ranks: %.0f bytes a rank, %.0f on one", ranks, mine, all);
        }
    }
    fs_remove_tree(folder, NULL);
}

/* Changes rank 1's copy of unit 2 and its sampling weights by these amounts, and returns the status
 * of the proof. */
static tare_status proof(struct model *m, float unit_change, uint32_t copy_change, struct err *e)
{
    struct refresh_proof p;
    uint64_t weights;
    const uint32_t copy = m->rank == 1 ? copy_change : 0;
    tare_status status = proof_refresh_begin(m, &p, e);
    for (int64_t u = shards_unit_first(m); !status && u < shards_unit_end(m); u++) {
        const float *unit;
        float *mine = m->window[0].data + shards_unit_slice(m, u) + 3; /* unit 2 is there */
        status = shards_unit_weights(m, u, &unit, e);
        if (status) break;
        const float was = *mine;
        if (u == 2 && m->rank == 1) *mine += unit_change;
        proof_refresh_unit(m, &p, u, unit);
        *mine = was;
    }
    proof_refresh_copy(m, &p, &copy, sizeof copy);
    if (!status) status = proof_refresh_end(m, &p, &weights, e);
    proof_refresh_free(m, &p);
    return status;
}

static tare_status damaged_rank(struct comm *c, void *ctx, struct err *e)
{
    const struct job *j = ctx;
    struct model *m = NULL;
    struct err why = {0};
    TRY(open_sharded(j, c, SHARD_ZERO3, &m, e));
    assert_ok(proof(m, 0, 0, &why), &why);
    assert_int_equal(proof(m, 1e-6f, 0, &why), c->rank == 1 ? TARE_E_CORRUPT : TARE_OK);
    if (c->rank == 1) assert_non_null(strstr(why.message, "unit 2"));
    assert_int_equal(proof(m, 0, 1, &why), TARE_E_CORRUPT);
    assert_non_null(strstr(why.message, "rank 1 samples from"));
    model_free(m);
    return TARE_OK;
}

static void a_damaged_refresh_is_an_error(void **state)
{
    (void)state;
    struct err e = {0};
    save_model("qwen3", true);
    struct job j = {.folder = folder};
    assert_ok(kernels_cpu(NULL, &j.k, &e), &e);
    assert_ok(comm_threads(2, 30, damaged_rank, &j, &e), &e);
    fs_remove_tree(folder, NULL);
}

/* Sends slices between two ranks, with one float that rank 1 received from rank 0 changed by this
 * amount; then slices that are the same for all. */
static tare_status sent(struct model *m, struct moved_digests *x, float change, bool to_all, struct err *e)
{
    enum { N = 40 };
    float mine[2 * N], got[2 * N];
    for (int i = 0; i < 2 * N; i++) mine[i] = (float)(i + 100 * m->rank);
    const int64_t at = to_all ? moved_send_all(m, x, mine, N) : moved_send(m, x, mine, N);
    TRY((to_all ? m->comm->all_gather : m->comm->all_to_all)(m->comm, mine, N * (int64_t)sizeof(float), got, e));
    if (m->rank == 1) got[7] += change;
    moved_received(m, x, got, N, at);
    return moved_check(m, x, "gradients", e);
}

static tare_status damaged_pieces(struct comm *c, void *ctx, struct err *e)
{
    const struct job *j = ctx;
    struct model *m = NULL;
    struct moved_digests x;
    struct err why = {0};
    TRY(open_sharded(j, c, SHARD_ZERO3, &m, e));
    TRY(moved_new(m, &x, e));
    for (int all = 0; all < 2; all++) {
        assert_ok(sent(m, &x, 0, all, &why), &why);
        /* Both ranks return it. */
        assert_int_equal(sent(m, &x, 1e-5f, all, &why), TARE_E_CORRUPT);
        assert_non_null(strstr(why.message, "gradients that rank 0 sent to rank 1 were changed in transit"));
        assert_ok(sent(m, &x, 0, all, &why), &why); /* the digests start from zero */
    }
    assert_ok(moved_check(m, &x, "gradients", &why), &why); /* nothing was sent */
    moved_free(m, &x);
    model_free(m);
    return TARE_OK;
}

static void a_piece_that_changed_on_its_way_is_an_error(void **state)
{
    (void)state;
    struct err e = {0};
    save_model("qwen3", true);
    struct job j = {.folder = folder};
    assert_ok(kernels_cpu(NULL, &j.k, &e), &e);
    assert_ok(comm_threads(2, 30, damaged_pieces, &j, &e), &e);
    fs_remove_tree(folder, NULL);
}

int main(void)
{
    struct arena a;
    arena_init(&a, "batch");
    make_batch(&a);
    /* Shards are cut into several micro-batches. */
    train = plain_train(6 * G, 30);
    train.epochs = 2, train.lr = 1e-2, train.max_grad_norm = 0.5;
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(same_bits_on_every_number_of_ranks),  cmocka_unit_test(families_on_every_number_of_ranks),
        cmocka_unit_test(objectives_on_every_number_of_ranks), cmocka_unit_test(memory_falls_with_ranks),
        cmocka_unit_test(a_damaged_refresh_is_an_error),       cmocka_unit_test(a_piece_that_changed_on_its_way_is_an_error)};
    const int failed = cmocka_run_group_tests(tests, NULL, NULL);
    arena_free(&a);
    return failed;
}
