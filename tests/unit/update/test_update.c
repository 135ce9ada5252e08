/* Compares the update with the goldens of the tiny models: losses A, B, C, gradient norms, three
 * AdamW steps. Prompt sharing and micro-batches change rounding only; the schedule; token weights.
 * TARE_GOLDENS (default: models/tiny of the shared data): a folder of such folders. */
#include "engine.h"
#include "load.h"
#include "objective.h"

#include "base/fs.h"
#include "base/json.h"
#include "model/safetensors.h"
#include "update/schedule.h"
#include "update/update.h"

#include <dirent.h>
#include <math.h>
#include <string.h>

struct golden {
    struct safetensors file;
    json_t *json;
    int64_t n, t; /* sequences, padded length */
    float *ids, *mask, *attention, *advantages, *old, *ref;
    struct batch b;
    struct arena arena;
};

static void read_floats(const struct golden *g, const char *name, int64_t n, float *out)
{
    struct err e = {0};
    const struct st_tensor *t = safetensors_find(&g->file, name);
    assert_non_null(t);
    assert_int_equal(safetensors_count(t), n);
    if (!strcmp(t->dtype, "I32")) {
        for (int64_t i = 0; i < n; i++) {
            int32_t v;
            memcpy(&v, t->data + 4 * i, 4);
            out[i] = (float)v;
        }
    } else {
        assert_ok(safetensors_read_f32(&g->file, t, out, &e), &e);
    }
}

/* Makes two prompts with three rollouts each from the padded arrays. */
static void golden_batch(struct golden *g)
{
    struct err e = {0};
    struct arena *a = &g->arena;
    struct batch *b = &g->b;
    const int64_t n = g->n, t = g->t, per = 3;
    float **fields[] = {&g->ids, &g->mask, &g->attention, &g->old, &g->ref};
    const char *names[] = {"input_ids", "completion_mask", "attention_mask", "old_logprobs", "ref_logprobs"};
    for (int k = 0; k < 5; k++) {
        assert_ok(arena_new(a, fields[k], n * t, &e), &e);
        read_floats(g, names[k], n * t, *fields[k]);
    }
    assert_ok(arena_new(a, &g->advantages, n, &e), &e);
    read_floats(g, "advantages", n, g->advantages);
    *b = update_batch(a, n / per, n, n * t, n * t);
    assert_ok(arena_new(a, &b->ref_logprob, n * t, &e), &e);
    int64_t prompts = 0, tokens = 0;
    for (int64_t i = 0; i < n; i++) {
        const float *ids = g->ids + i * t, *mask = g->mask + i * t, *attention = g->attention + i * t;
        if (i % per == 0) {
            b->group_begin[i / per + 1] = i + per;
            for (int64_t k = 0; k < t && !(mask[k] > 0); k++) b->prompt_ids[prompts++] = (int32_t)ids[k];
            b->prompt_begin[i / per + 1] = prompts;
        }
        for (int64_t k = 0; k < t; k++) {
            if (!(mask[k] > 0) || !(attention[k] > 0)) continue;
            b->ids[tokens] = (int32_t)ids[k];
            b->logprob[tokens] = g->old[i * t + k];
            b->ref_logprob[tokens++] = g->ref[i * t + k];
        }
        b->token_begin[i + 1] = tokens;
        b->advantage[i] = g->advantages[i];
        b->rollout_weight[i] = 1;
    }
    b->n_tokens = tokens;
}

static bool golden_open(const char *folder, struct golden *g)
{
    struct err e = {0};
    char path[3 * FS_PATH];
    snprintf(path, sizeof path, "%s/goldens.safetensors", folder);
    if (!fs_exists(path)) return false;
    *g = (struct golden){0};
    arena_init(&g->arena, "golden");
    assert_ok(safetensors_open(path, &g->file, &e), &e);
    snprintf(path, sizeof path, "%s/goldens.json", folder);
    assert_ok(json_read_file(path, &g->json, &e), &e);
    const struct st_tensor *ids = safetensors_find(&g->file, "input_ids");
    assert_non_null(ids);
    g->n = ids->shape[0], g->t = ids->shape[1];
    golden_batch(g);
    return true;
}

static void golden_close(struct golden *g)
{
    safetensors_close(&g->file);
    json_decref(g->json);
    arena_free(&g->arena);
}

static const struct loss_config LOSS_A = {.aggregation = AGGREGATE_SEQUENCE,
                                          .clip = 0.2,
                                          .entropy_coef = 0.01,
                                          .kl = KL_K3,
                                          .old_logprobs = OLD_SAMPLER,
                                          .rollout_is = ROLLOUT_IS_NONE};
static const struct loss_config LOSS_B = {.aggregation = AGGREGATE_TOKEN,
                                          .clip = 0.2,
                                          .clip_high = 0.28,
                                          .kl_coef = 0.04,
                                          .kl_floor = 1,
                                          .kl = KL_K3,
                                          .old_logprobs = OLD_SAMPLER,
                                          .rollout_is = ROLLOUT_IS_NONE};
static const struct loss_config LOSS_C = {.aggregation = AGGREGATE_SEQUENCE,
                                          .clip = 0.2,
                                          .entropy_coef = 0.01,
                                          .kl_coef = 0.05,
                                          .kl_floor = 1,
                                          .kl = KL_EXACT,
                                          .old_logprobs = OLD_SAMPLER,
                                          .rollout_is = ROLLOUT_IS_NONE};
static const struct model_config MODEL = {.dtype = PRECISION_F32, .save_dtype = SAVE_AUTO};

/* Updates a fresh copy of the model; out, which may be NULL, receives the last report and the other
 * results. */
struct updated {
    struct model **after;
    double *losses, *norms; /* of each step */
};

static struct update_report some_updates(const char *folder, const struct golden *g, const struct loss_config *loss,
                                         const struct train_config *train, int steps, const struct updated *out)
{
    const struct updated nothing = {0}, to = out ? *out : nothing;
    struct err e = {0};
    const struct kernels *k;
    struct pool *pool;
    struct model *m, *ref = NULL;
    struct trainer *t;
    struct update_report r = {0};
    char path[3 * FS_PATH];
    assert_ok(kernels_open(getenv("TARE_TEST_DEVICE") != NULL, NULL, 0, &k, &e), &e);
    assert_ok(pool_new(2, &pool, &e), &e);
    assert_ok(model_load(folder, &MODEL, k, pool, &m, &e), &e);
    snprintf(path, sizeof path, "%s/ref", folder);
    if (loss->kl == KL_EXACT) assert_ok(model_load(path, &MODEL, k, pool, &ref, &e), &e);
    assert_ok(trainer_new(m, &(struct trainer_options){ref, train, loss, 1, 1, 100}, &t, &e), &e);
    set_objective(t, "ppo", NULL);
    struct batch b = g->b;
    if (!(loss->kl_coef > 0) || ref) b.ref_logprob = NULL;
    for (int s = 0; s < steps; s++) {
        b.step = s;
        assert_ok(update_run(t, &b, &r, &e), &e);
        if (to.losses) to.losses[s] = r.loss;
        if (to.norms) to.norms[s] = r.grad_norm;
    }
    free_trainer(t);
    if (ref) model_free(ref);
    if (to.after) {
        *to.after = m;
        return r;
    }
    model_free(m);
    pool_free(pool);
    return r;
}

static double at(const json_t *o, const char *a, const char *b)
{
    return json_number_value(json_object_get(json_object_get(o, a), b));
}

static int passed, failed;

static void expect(const char *folder, const char *what, double got, double want, double tolerance)
{
    const double off = fabs(got - want);
    if (off <= tolerance) {
        passed++;
    } else {
        failed++;
        printf("%s: %s is %.9g, should be %.9g (off by %.3g, allowed %.3g)\n", folder, what, got, want, off, tolerance);
    }
}

static void check_adamw(const char *folder, const struct golden *g)
{
    struct err e = {0};
    double losses[3], norms[3];
    struct model *m;
    const struct train_config train = plain_train(6, 4096);
    some_updates(folder, g, &LOSS_A, &train, 3, &(struct updated){&m, losses, norms});
    const json_t *adamw = json_object_get(g->json, "adamw");
    for (size_t s = 0; s < 3; s++) {
        expect(folder, "loss before AdamW step", losses[s],
               json_number_value(json_array_get(json_object_get(adamw, "loss_before_each_step"), s)), 2e-5);
        expect(folder, "norm before AdamW step",
               norms[s] / json_number_value(json_array_get(json_object_get(adamw, "grad_norm_before_clip"), s)), 1, 1e-3);
    }
    double sum = 0, close = 0, count = 0;
    for (int64_t i = 0; i < m->n_tensors; i++) {
        char name[128];
        const struct tensor *t = &m->tensors[i];
        const int64_t n = t->rows * t->cols;
        float *want, *room;
        snprintf(name, sizeof name, "param3.%s", t->name);
        if (!shared_is_whole(folder) && !safetensors_find(&g->file, name)) break;
        assert_ok(mem_new(n * 4, (void **)&want, &e), &e);
        assert_ok(mem_new(n * 4, (void **)&room, &e), &e);
        read_floats(g, name, n, want);
        const float *got = model_from_backend(m, room, m->weights + t->offset, n * 4);
        for (int64_t k = 0; k < n; k++) {
            const double d = fabs((double)got[k] - (double)want[k]);
            sum += d, close += d < 1e-5, count++;
        }
        mem_free(want);
        mem_free(room);
    }
    if (count > 0) {
        expect(folder, "mean difference of parameters after 3 steps", sum / count, 0, 1e-6);
        expect(folder, "share of parameters within 1e-5", close / count, 1, 0.01);
    }
    struct pool *pool = m->ctx.pool;
    model_free(m);
    pool_free(pool);
}

static const float *weights_of(const struct model *m, const struct tensor *t, float *room)
{
    return model_from_backend(m, room, m->weights + t->offset, t->rows * t->cols * 4);
}

/* Decay subtracts lr times decay times the weight from every parameter, including norms and
 * biases. */
static void check_decay(const char *folder, const struct golden *g)
{
    struct err e = {0};
    struct train_config plain = plain_train(6, 4096), decayed = plain;
    struct model *m[3]; /* before, without decay, with decay */
    int64_t vectors = 0, wrong = 0, most = 0;
    float *room[3];
    plain.weight_decay = 0;
    decayed.weight_decay = 0.5;
    some_updates(folder, g, &LOSS_A, &plain, 0, &(struct updated){.after = &m[0]});
    some_updates(folder, g, &LOSS_A, &plain, 1, &(struct updated){.after = &m[1]});
    some_updates(folder, g, &LOSS_A, &decayed, 1, &(struct updated){.after = &m[2]});
    const double lr = schedule_lr(&plain, 0, 100);
    for (int64_t i = 0; i < m[0]->n_tensors; i++)
        if (m[0]->tensors[i].rows * m[0]->tensors[i].cols > most) most = m[0]->tensors[i].rows * m[0]->tensors[i].cols;
    for (int k = 0; k < 3; k++) assert_ok(mem_new(most * 4, (void **)&room[k], &e), &e);
    for (int64_t i = 0; i < m[0]->n_tensors; i++) {
        const struct tensor *t = &m[0]->tensors[i];
        const float *w[3];
        vectors += t->rows == 1 || t->cols == 1;
        for (int k = 0; k < 3; k++) w[k] = weights_of(m[k], t, room[k]);
        for (int64_t j = 0; j < t->rows * t->cols; j++) {
            const double want = (double)w[1][j] - lr * 0.5 * (double)w[0][j];
            wrong += fabs((double)w[2][j] - want) > 2e-6 * fabs((double)w[0][j]) + 2e-7;
        }
    }
    expect(folder, "parameters that decay otherwise", (double)wrong, 0, 0);
    expect(folder, "norms and biases among them", vectors > 0, 1, 0);
    for (int k = 0; k < 3; k++) {
        struct pool *pool = m[k]->ctx.pool;
        mem_free(room[k]);
        model_free(m[k]);
        pool_free(pool);
    }
}

static void check_folder(const char *folder, const struct golden *g)
{
    const struct loss_config *losses[] = {&LOSS_A, &LOSS_B, &LOSS_C};
    const char *names[] = {"A", "B", "C"};
    const struct train_config train = plain_train(6, 4096);
    char ref[3 * FS_PATH];
    snprintf(ref, sizeof ref, "%s/ref", folder);
    for (int k = 0; k < 3; k++) {
        if (losses[k]->kl == KL_EXACT && !shared_is_whole(folder) && access(ref, R_OK)) continue;
        const struct update_report r = some_updates(folder, g, losses[k], &train, 1, NULL);
        expect(folder, names[k], r.loss, at(g->json, "loss", names[k]), 2e-6);
        expect(folder, "gradient norm", r.grad_norm / at(g->json, "grad_norm_total", names[k]), 1, 1e-4);
    }
    const struct update_report base = some_updates(folder, g, &LOSS_A, &train, 1, NULL);
    expect(folder, "clip fraction", base.clip_fraction, json_number_value(json_object_get(g->json, "clip_fraction_A")), 1e-6);
    expect(folder, "entropy", base.entropy, json_number_value(json_object_get(g->json, "mean_entropy_completion")), 1e-4);
    struct train_config other = train;
    other.prompt_sharing = false;
    struct update_report r = some_updates(folder, g, &LOSS_A, &other, 1, NULL);
    expect(folder, "loss without prompt sharing", r.loss, base.loss, 0);
    expect(folder, "gradient norm without prompt sharing", r.grad_norm / base.grad_norm, 1, 1e-5);
    other = train;
    other.micro_tokens = 50; /* groups are cut into parts */
    r = some_updates(folder, g, &LOSS_A, &other, 1, NULL);
    expect(folder, "gradient norm in small micro-batches", r.grad_norm / base.grad_norm, 1, 1e-5);
    other = train;
    for (other.recompute = RECOMPUTE_NORMS; other.recompute <= RECOMPUTE_LAYER; other.recompute++) {
        r = some_updates(folder, g, &LOSS_A, &other, 1, NULL);
        expect(folder, "gradient norm, recomputed", r.grad_norm, base.grad_norm, 0);
    }
    check_adamw(folder, g);
    check_decay(folder, g);
}

static void update__matches_the_goldens(void **state)
{
    (void)state;
    const char *root = getenv("TARE_GOLDENS") ? getenv("TARE_GOLDENS") : shared_or_skip("models/tiny");
    DIR *d = opendir(root);
    assert_non_null(d);
    int folders = 0;
    for (struct dirent *entry; (entry = readdir(d));) {
        char folder[2 * FS_PATH];
        struct golden g;
        if (entry->d_name[0] == '.') continue;
        snprintf(folder, sizeof folder, "%s/%s", root, entry->d_name);
        if (!golden_open(folder, &g)) continue;
        check_folder(folder, &g);
        golden_close(&g);
        folders++;
    }
    closedir(d);
    printf("update: %d folders, %d checks passed, %d failed\n", folders, passed, failed);
    assert_true(folders > 0);
    assert_int_equal(failed, 0);
}

static void schedule__warms_up_and_decays(void **state)
{
    (void)state;
    struct train_config c = {.lr = 2, .lr_floor = 0.1, .warmup_steps = 4, .schedule = SCHEDULE_COSINE};
    assert_true(fabs(schedule_lr(&c, 0, 104) - (0.5)) < 1e-12);
    assert_true(fabs(schedule_lr(&c, 3, 104) - (2)) < 1e-12);
    assert_true(fabs(schedule_lr(&c, 4, 104) - (2)) < 1e-12);
    assert_true(fabs(schedule_lr(&c, 54, 104) - (2 * (0.1 + 0.9 * 0.5))) < 1e-12);
    assert_true(fabs(schedule_lr(&c, 104, 104) - (0.2)) < 1e-12);
    assert_true(fabs(schedule_lr(&c, 1000, 104) - (0.2)) < 1e-12);
    c.schedule = SCHEDULE_LINEAR;
    assert_true(fabs(schedule_lr(&c, 29, 104) - (2 * (0.1 + 0.9 * 0.75))) < 1e-12);
    c.warmup_steps = 0;
    c.warmup_ratio = 0.1;
    assert_true(fabs(schedule_lr(&c, 0, 100) - (0.2)) < 1e-12);
}

static void schedule__lowers_the_kl_coefficient(void **state)
{
    (void)state;
    struct loss_config c = {.kl_coef = 0.3, .kl_floor = 1};
    for (int64_t s = 0; s < 200; s++) assert_true(schedule_kl_coef(&c, s, 100) == 0.3); /* the same bits */
    c.kl_floor = 0.5;
    assert_true(schedule_kl_coef(&c, 0, 100) == 0.3);
    assert_true(fabs(schedule_kl_coef(&c, 50, 100) - 0.225) < 1e-12);
    assert_true(fabs(schedule_kl_coef(&c, 100, 100) - 0.15) < 1e-12);
    assert_true(fabs(schedule_kl_coef(&c, 1000, 100) - 0.15) < 1e-12);
    c.kl_floor = 0;
    assert_true(schedule_kl_coef(&c, 100, 100) == 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(update__matches_the_goldens),
                                       cmocka_unit_test(schedule__lowers_the_kl_coefficient),
                                       cmocka_unit_test(schedule__warms_up_and_decays)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
