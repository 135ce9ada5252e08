/* What an objective collects: one rollout at a time, added in batch order, so that the state does not
 * depend on the cut into micro-batches or on ranks; and apply, which runs in every step. */
#include "engine.h"
#include "folder.h"
#include "objective.h"

#include "../model/small.h"
#include "base/fs.h"
#include "base/rng.h"
#include "dist/threads.h"
#include "update/update.h"

#include <tare/sdk.h>

enum { M = 5, G = 4, LONGEST = 14, EPOCHS = 2, MINIBATCH = 2 * G };

/* ---------------------------------------------------------------- an objective with a state */

/* sum: of all that it collected. The last apply is remembered. */
struct adder {
    const tare_host *host;
    double sum;
};

static _Thread_local struct {
    int64_t step, updates, skipped, calls;
    double sum, rollouts, tokens;
} applied;

static tare_status create(const tare_setup *setup, void **self, tare_error *error)
{
    struct adder *x = setup->host->alloc(setup->host->ctx, sizeof *x, 0);
    if (!x) return tare_fail(error, TARE_E_NOMEM, "no memory");
    x->host = setup->host;
    *self = x;
    return TARE_OK;
}

static void destroy(void *self)
{
    struct adder *x = self;
    x->host->release(x->host->ctx, x);
}

static tare_status sizes(const void *self, tare_sizes *out, tare_error *error)
{
    (void)self, (void)error;
    out->collect = 3;
    return TARE_OK;
}

static tare_status compute(const void *self, const tare_tokens *t, tare_token_loss *out, tare_error *error)
{
    (void)self, (void)error;
    for (int64_t i = 0; i < t->n; i++) {
        out->value[i] = -t->advantage[i] * (double)t->logprob[i];
        out->dlogprob[i] = -t->advantage[i];
    }
    return TARE_OK;
}

static tare_status collect(const void *self, const tare_tokens *t, const tare_token_loss *loss, double *sum, tare_error *error)
{
    (void)self;
    if (t->n_rollouts || t->token_begin) return tare_fail(error, TARE_E_SHAPE, "collect sees rollouts");
    for (int64_t i = 0; i < t->n; i++) sum[0] += loss->value[i] / 3 + (double)t->entropy[i];
    sum[1] += 1;
    sum[2] += (double)t->n;
    return TARE_OK;
}

static tare_status apply(void *self, const tare_update *update, tare_error *error)
{
    struct adder *x = self;
    (void)error;
    x->sum += update->collected[0];
    applied.step = update->step, applied.updates = update->updates, applied.skipped = update->skipped, applied.calls++;
    applied.sum = x->sum, applied.rollouts = update->collected[1], applied.tokens = update->collected[2];
    return TARE_OK;
}

static tare_status save(const void *self, const tare_stream *out, tare_error *error)
{
    (void)error;
    return tare_put(out, &((const struct adder *)self)->sum, sizeof(double));
}

static tare_status load(void *self, const tare_stream *in, tare_error *error)
{
    (void)error;
    return tare_get(in, &((struct adder *)self)->sum, sizeof(double));
}

static const tare_objective FUNCTIONS = {.struct_size = sizeof FUNCTIONS,
                                         .create = create,
                                         .destroy = destroy,
                                         .save = save,
                                         .load = load,
                                         .sizes = sizes,
                                         .compute = compute,
                                         .collect = collect,
                                         .apply = apply};
static const tare_descriptor ADDER = {.struct_size = sizeof ADDER,
                                      .kind = TARE_KIND_OBJECTIVE,
                                      .name = "adder",
                                      .version = "1.0.0",
                                      .summary = "adds what it computed",
                                      .param_size = sizeof(tare_param),
                                      .want_size = sizeof(tare_want),
                                      .state_version = 1,
                                      .state_oldest = 1,
                                      .functions = &FUNCTIONS};
static const tare_descriptor *const DESCRIPTORS[] = {&ADDER};
static const tare_plugin PLUGIN = {.struct_size = sizeof PLUGIN, .n_descriptors = 1, .descriptors = DESCRIPTORS};

/* ---------------------------------------------------------------- a run */

static struct batch random_batch(struct arena *a)
{
    struct batch b = update_batch(a, M, M * G, M * LONGEST, M * G * LONGEST);
    const struct rng_key key = rng_key(3, RNG_TRAIN);
    uint64_t n = 0;
    for (int64_t m = 0; m < M; m++) {
        b.group_begin[m + 1] = (m + 1) * G;
        b.prompt_begin[m + 1] = b.prompt_begin[m] + 3 + m;
        for (int64_t i = b.prompt_begin[m]; i < b.prompt_begin[m + 1]; i++)
            b.prompt_ids[i] = (int32_t)(rng_uniform(key, n++, 0) * 97);
        for (int64_t i = m * G; i < (m + 1) * G; i++) {
            b.token_begin[i + 1] = b.token_begin[i] + 1 + (int64_t)(rng_uniform(key, n++, 0) * LONGEST);
            b.advantage[i] = rng_normal(key, n++);
            b.rollout_weight[i] = i % 7 != 2;
            for (int64_t t = b.token_begin[i]; t < b.token_begin[i + 1]; t++) {
                b.ids[t] = (int32_t)(rng_uniform(key, n++, 0) * 97);
                b.logprob[t] = (float)(-3 + 0.1 * rng_normal(key, n++));
            }
        }
    }
    b.n_tokens = b.token_begin[M * G];
    return b;
}

static struct trainer *open_trainer(struct model *m, int64_t micro_tokens, int64_t shards)
{
    struct err e = {0};
    struct trainer *t;
    static _Thread_local struct train_config train;
    static _Thread_local struct loss_config loss;
    train = plain_train(MINIBATCH, micro_tokens);
    loss = plain_loss(AGGREGATE_SEQUENCE);
    train.lr = 0; /* the weights stay, so that only the order of sums could differ */
    train.epochs = EPOCHS;
    train.on_nonfinite = NONFINITE_SKIP;
    assert_ok(trainer_new(m, &(struct trainer_options){NULL, &train, &loss, 1, 1, 10}, &t, &e), &e);
    t->gradient_shards = shards;
    set_objective(t, "adder", NULL);
    return t;
}

static void run_step(struct trainer *t, const struct batch *b, int64_t step)
{
    struct err e = {0};
    struct update_report r;
    assert_ok(update_run(t, b, &r, &e), &e);
    assert_ok(update_apply(t, step, &e), &e);
}

static void the_state_does_not_depend_on_micro_batches(void **state)
{
    (void)state;
    static const int64_t MICRO[] = {1, 30, 47, 100000}, SHARDS[] = {1, 3, 8};
    struct arena a;
    double rollouts = 0, tokens = 0, sum = 0;
    arena_init(&a, "batch");
    const struct batch b = random_batch(&a);
    for (int64_t i = 0; i < M * G; i++) {
        rollouts += b.rollout_weight[i] > 0 ? EPOCHS : 0;
        tokens += b.rollout_weight[i] > 0 ? EPOCHS * (double)(b.token_begin[i + 1] - b.token_begin[i]) : 0;
    }
    for (int k = 0; k < 12; k++) {
        struct model *m = small_model("qwen2", true, NULL);
        struct trainer *t = open_trainer(m, MICRO[k % 4], SHARDS[k / 4]);
        run_step(t, &b, 7);
        if (!k) sum = applied.sum;
        assert_true(sum != 0 && !memcmp(&sum, &applied.sum, sizeof sum));
        assert_true(applied.rollouts == rollouts && applied.tokens == tokens);
        assert_int_equal(applied.step, 7);
        assert_int_equal(applied.updates, EPOCHS * (M + 1) / 2);
        assert_int_equal(applied.skipped, 0);
        free_trainer(t);
        model_free(m);
    }
    arena_free(&a);
}

struct job {
    const char *folder;
    const struct kernels *k;
    const struct batch *b;
    int64_t micro_tokens;
    double sum[4]; /* of each rank */
};

static tare_status update_rank(struct comm *c, void *ctx, struct err *e)
{
    static const struct model_config config = {.dtype = PRECISION_F32, .save_dtype = SAVE_AUTO};
    struct job *j = ctx;
    struct model *m;
    TRY(model_open(&(struct model_source){.folder = j->folder, .config = &config, .kernels = j->k, .comm = c, .shard = SHARD_ZERO3},
                   &m, e));
    struct trainer *t = open_trainer(m, j->micro_tokens, 8);
    run_step(t, j->b, 7);
    j->sum[c->rank] = applied.sum;
    free_trainer(t);
    model_free(m);
    return TARE_OK;
}

static void the_state_does_not_depend_on_ranks(void **state)
{
    (void)state;
    struct err e = {0};
    struct arena a;
    double sum = 0;
    arena_init(&a, "batch");
    const struct batch b = random_batch(&a);
    struct job j = {.folder = make_test_folder("tare-collect"), .b = &b};
    struct model *m = small_model("qwen2", true, NULL);
    assert_ok(model_save(m, j.folder, DTYPE_F32, NULL, &e), &e);
    model_free(m);
    assert_ok(kernels_cpu(NULL, &j.k, &e), &e);
    for (int ranks = 1; ranks <= 4; ranks++) {
        j.micro_tokens = 20 * ranks;
        assert_ok(comm_threads(ranks, 30, update_rank, &j, &e), &e);
        if (ranks == 1) sum = j.sum[0];
        for (int r = 0; r < ranks; r++) assert_true(sum != 0 && !memcmp(&sum, &j.sum[r], sizeof sum));
    }
    fs_remove_tree(j.folder, NULL);
    arena_free(&a);
}

/* Also where nothing is left to learn from. What an earlier step collected is not applied again. */
static void apply_runs_in_every_step(void **state)
{
    (void)state;
    struct arena a;
    arena_init(&a, "batch");
    const struct batch b = random_batch(&a), none = {.step = 2};
    struct model *m = small_model("qwen2", true, NULL);
    struct trainer *t = open_trainer(m, 100, 1);
    run_step(t, &b, 1);
    const int64_t calls = applied.calls;
    run_step(t, &none, 2);
    assert_int_equal(applied.calls, calls + 1);
    assert_int_equal(applied.step, 2);
    assert_int_equal(applied.updates, 0);
    assert_true(applied.rollouts == 0 && applied.tokens == 0);
    free_trainer(t);
    model_free(m);
    arena_free(&a);
}

/* A minibatch with a ratio that is not finite is skipped, and collects nothing. */
static void a_skipped_minibatch_collects_nothing(void **state)
{
    (void)state;
    static const int64_t MICRO[] = {1, 47, 100000};
    struct arena a;
    double rollouts = -1;
    arena_init(&a, "batch");
    const struct batch b = random_batch(&a);
    b.logprob[b.token_begin[10]] = -INFINITY;
    for (int k = 0; k < 3; k++) {
        struct model *m = small_model("qwen2", true, NULL);
        struct trainer *t = open_trainer(m, MICRO[k], 1);
        run_step(t, &b, 1);
        assert_int_equal(applied.skipped, EPOCHS);
        assert_true(applied.rollouts > 0 && applied.rollouts < EPOCHS * M * G - 2 * G && isfinite(applied.sum));
        assert_true(rollouts < 0 || rollouts == applied.rollouts);
        rollouts = applied.rollouts;
        free_trainer(t);
        model_free(m);
    }
    arena_free(&a);
}

int main(void)
{
    struct err e = {0};
    if (plugin_add("test", &PLUGIN, &e)) return 1;
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(the_state_does_not_depend_on_micro_batches), cmocka_unit_test(the_state_does_not_depend_on_ranks),
        cmocka_unit_test(apply_runs_in_every_step), cmocka_unit_test(a_skipped_minibatch_collects_nothing)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
