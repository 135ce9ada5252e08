/* A training step on five-turn episodes, sampled and updated on ranks (threads): the mismatch between
 * the logprobs recorded while sampling and those recomputed by the update is exactly 0 over the sampled
 * tokens, and batch and weights have the same bits, for every number of ranks and threads, in a small
 * and a large cache, for fp32, bf16, adapters and int8 weights under adapters. */
#include "script.h"

#include "folder.h"
#include "objective.h"

#include "base/fs.h"
#include "batch/pack.h"
#include "dist/deal.h"
#include "dist/threads.h"
#include "model/lora.h"
#include "update/update.h"

enum { MICRO = 90 };

struct setting {
    const char *dtype;
    bool lora, int8;
};

struct layout {
    int ranks, threads;
    int64_t batch, kv_tokens;
    int delay;
};

struct job {
    const char *folder;
    struct setting setting;
    struct layout layout;
    struct result {
        uint64_t batch, weights;
        double mismatch, grad_norm;
        int64_t tokens, context, turns, drops, preemptions;
    } result[4]; /* of each rank */
};

/* ---------------------------------------------------------------- a step on one rank */

static void prompts_of(struct batch *b, struct arena *a, struct err *e)
{
    const struct sample_request *q = rig_requests(250);
    *b = (struct batch){.step = 1, .n_groups = N_REQUESTS};
    for (int i = 0; i < N_REQUESTS; i++) b->n_prompt_tokens += q[i].prompt_len;
    assert_ok(batch_alloc(b, BATCH_DATA, a, e), e);
    assert_ok(arena_new(a, &b->samples, N_REQUESTS, e), e);
    for (int i = 0; i < N_REQUESTS; i++) {
        b->prompt_begin[i + 1] = b->prompt_begin[i] + q[i].prompt_len;
        memcpy(b->prompt_ids + b->prompt_begin[i], q[i].prompt, (size_t)q[i].prompt_len * sizeof *q[i].prompt);
        b->prompt_uid[i] = q[i].prompt_uid;
        b->samples[i] = q[i].n_samples;
    }
}

static tare_status open_model(const struct job *j, struct comm *c, struct pool *pool, struct model **out, struct err *e)
{
    const struct model_config config = {.dtype = precision_named(j->setting.dtype),
                                        .save_dtype = SAVE_AUTO,
                                        .weights = j->setting.int8 ? WEIGHTS_INT8 : WEIGHTS_AS_DTYPE};
    const struct lora_spec spec = {.rank = j->setting.lora ? 4 : 0, .alpha = 6, .targets = LORA_ALL};
    TRY(model_open(&(struct model_source){.folder = j->folder,
                                          .config = &config,
                                          .kernels = rig_kernels(),
                                          .pool = pool,
                                          .comm = c,
                                          .shard = j->setting.lora ? SHARD_NONE : SHARD_ZERO3,
                                          .lora = j->setting.lora ? &spec : NULL,
                                          .seed = 3,
                                          .trains = true},
                   out, e));
    for (int64_t i = 0; j->setting.lora && i < (*out)->n_tensors; i++) {
        const struct tensor *t = &(*out)->tensors[i];
        for (int64_t k = 0; k < t->rows * t->cols && strstr(t->name, "lora_B"); k++)
            (*out)->weights[t->offset + k] = 0.05f * (float)sin((double)(i + 7 * k));
    }
    return model_refresh(*out, e);
}

static tare_status sample(const struct job *j, struct model *m, struct arena *a, struct batch *b, struct result *r, struct err *e)
{
    struct comm *c = m->comm;
    const struct rollout_config config = {.group_size = 1, .max_new_tokens = SCRIPT_MOST};
    struct script script = {.delay = j->layout.delay};
    int32_t stop[SCRIPT_STOPS];
    const struct sample_params p = script_params(&script, stop);
    const struct sample_episodes episodes = script_episodes(&script);
    struct share share;
    struct sampler *s;
    prompts_of(b, a, e);
    TRY(deal_batch(b, &config, c, a, &share, e));
    TRY(sampler_new(m, j->layout.batch, j->layout.kv_tokens, &s, e));
    const struct rollout_job job = {.config = &config, .params = &p, .key = rng_key(5, RNG_TRAIN), .episodes = &episodes};
    const tare_status status = share.own.n_groups ? rollout_run(s, &job, &share.own, a, e) : TARE_OK;
    r->drops = sampler_stats(s).parked_drops;
    r->preemptions = sampler_stats(s).preemptions;
    sampler_free(s);
    TRY(status);
    return deal_join(&share, c, a, b, e);
}

static tare_status hash_batch(const struct batch *b, uint64_t *out, struct err *e)
{
    OWNED(str_free) struct str bytes = {0};
    TRY(batch_pack(b, BATCH_ROLLOUT, &bytes, e));
    *out = fs_hash(bytes.data, bytes.size, 0);
    return TARE_OK;
}

static void trainer_close(struct trainer **t)
{
    free_trainer(*t);
}

static tare_status update(struct model *m, struct batch *b, struct arena *a, struct result *r, struct err *e)
{
    struct train_config train = plain_train(1000, MICRO);
    struct loss_config loss = plain_loss(AGGREGATE_SEQUENCE);
    OWNED(trainer_close) struct trainer *t = NULL;
    struct update_report report;
    loss.entropy_coef = 0.01;
    TRY(batch_alloc(b, BATCH_ESTIMATE, a, e));
    for (int64_t i = 0; i < b->n_rollouts; i++) {
        b->advantage[i] = (double)(i % 3) - 0.75;
        b->rollout_weight[i] = 1;
    }
    TRY(trainer_new(m, &(struct trainer_options){NULL, &train, &loss, 1, 1, 10}, &t, e));
    TRY(objective_open(&(struct objective_options){.plugin = "ppo", .loss = &loss}, &t->objective, e));
    t->gradient_shards = 4;
    TRY(update_run(t, b, &report, e));
    r->mismatch = report.mismatch;
    r->grad_norm = report.grad_norm;
    r->tokens = report.tokens;
    return model_hash(m, &r->weights, e);
}

static tare_status step_of_rank(struct comm *c, void *ctx, struct err *e)
{
    struct job *j = ctx;
    struct result *r = &j->result[c->rank];
    OWNED(arena_free) struct arena a = {0};
    struct model *m = NULL;
    struct pool *pool;
    struct batch b;
    arena_init(&a, "step");
    TRY(pool_new(j->layout.threads, &pool, e));
    tare_status status = open_model(j, c, pool, &m, e);
    if (!status) status = sample(j, m, &a, &b, r, e);
    if (!status) status = hash_batch(&b, &r->batch, e);
    if (!status) status = update(m, &b, &a, r, e);
    if (!status) {
        r->turns = b.n_turns;
        for (int64_t t = 0; t < b.n_tokens; t++) r->context += !b.sampled[t];
        assert_int_equal(r->tokens, b.n_tokens - r->context);
    }
    if (m) model_free(m);
    pool_free(pool);
    return status;
}

/* ---------------------------------------------------------------- all layouts */

static const struct layout LAYOUTS[] = {
    {1, 1, 0, 0, 0},   {1, 2, 0, 0, 3}, {1, 3, 7, 0, 1},   {1, 1, 16, 144, 2}, {1, 2, 5, 240, 5}, {2, 1, 0, 0, 0},
    {2, 2, 8, 144, 3}, {4, 1, 0, 0, 2}, {4, 1, 5, 144, 7}, {4, 3, 3, 176, 1},  {2, 3, 0, 0, 9},
};

static void check_setting(const char *folder, struct setting setting)
{
    struct err e = {0};
    struct result want = {0};
    int64_t drops = 0;
    for (size_t i = 0; i < sizeof LAYOUTS / sizeof *LAYOUTS; i++) {
        struct job j = {.folder = folder, .setting = setting, .layout = LAYOUTS[i]};
        assert_ok(comm_threads(LAYOUTS[i].ranks, 60, step_of_rank, &j, &e), &e);
        if (!i) want = j.result[0];
        for (int r = 0; r < LAYOUTS[i].ranks; r++) {
            const struct result *got = &j.result[r];
            if (got->mismatch != 0) fail_msg("layout %zu, rank %d: the mismatch is %g", i, r, got->mismatch);
            assert_true(got->batch == want.batch && got->weights == want.weights);
            assert_true(got->grad_norm == want.grad_norm);
            drops += got->drops;
        }
    }
    assert_true(want.grad_norm > 0 && want.context > 100 && want.tokens > 300);
    assert_true(want.turns > 3 * N_SAMPLES && drops > 0);
}

static void the_mismatch_is_zero(void **state)
{
    static const struct setting SETTINGS[] = {
        {"f32", false, false}, {"bf16", false, false}, {"f32", true, false}, {"bf16", true, false}, {"bf16", true, true}};
    (void)state;
    for (size_t i = 0; i < sizeof SETTINGS / sizeof *SETTINGS; i++) {
        struct rig r;
        struct err e = {0};
        const char *folder = make_test_folder("tare-episodes");
        assert_non_null(folder);
        rig_new(&r, i % 2 ? "llama" : "qwen2", "f32", 1, 4);
        assert_ok(model_save(r.m, folder, DTYPE_F32, NULL, &e), &e);
        check_setting(folder, SETTINGS[i]);
        fs_remove_tree(folder, NULL);
        rig_free(&r);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(the_mismatch_is_zero)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
