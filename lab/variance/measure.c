#include "lab/variance/measure.h"

#include "base/signals.h"
#include "batch/select.h"
#include "batch/turns.h"

#include <math.h>
#include <string.h>
#include <tare/verifier.h>

struct measuring {
    const struct variance_case *c;
    struct estimator *estimator; /* NULL: a baseline that knows the pool */
    struct arena arena;          /* of one batch */
    struct picks picks;
    struct batch batch;
    double *weight;  /* [M G] a_i */
    double *v, *sum; /* [width] for a group; for the batch */
};

/* ---------------------------------------------------------------- a batch and its advantages */

static tare_status oracle_advantages(struct measuring *x, int half, struct err *e)
{
    struct batch *b = &x->batch;
    const struct variance_pool *p = x->c->pool;
    const double *baseline = x->c->method->oracle == ORACLE_MEAN ? p->baseline[1 - half] : p->best[1 - half];
    TRY(arena_new(&x->arena, &b->advantage, b->n_rollouts, e));
    TRY(arena_new(&x->arena, &b->rollout_weight, b->n_rollouts, e));
    for (int64_t i = 0; i < b->n_rollouts; i++) {
        b->advantage[i] = b->reward[i] - baseline[x->picks.prompt[i / x->c->size]];
        b->rollout_weight[i] = 1;
    }
    return TARE_OK;
}

static tare_status make_batch(struct measuring *x, int half, bool warm, int64_t number, struct err *e)
{
    const struct variance_case *c = x->c;
    arena_reset(&x->arena);
    groups_pick(c, half, warm, number, &x->picks);
    TRY(batch_regroup(&c->pool->batch, (struct batch_indices){x->picks.prompt, c->batch},
                      (struct batch_indices){x->picks.rollout, c->batch * c->size}, &x->arena, &x->batch, e));
    x->batch.step = c->pool->step + 1;
    return x->estimator ? estimate_run(x->estimator, &x->batch, &x->arena, e) : oracle_advantages(x, half, e);
}

/* Compute a_i such that the minibatch's gradient is 1/M sum_i a_i s_i: the weight that
 * token_weights (core/update) gives each rollout, divided by the factor that s_i contains. Groups
 * without any weight count in no mean. */
static void rollout_weights(struct measuring *x)
{
    const struct variance_case *c = x->c;
    const struct variance_pool *p = c->pool;
    const struct batch *b = &x->batch;
    double rows = 0, tokens = 0, groups = 0;
    for (int64_t m = 0; m < c->batch; m++) {
        double in_group = 0;
        for (int64_t i = m * c->size; i < (m + 1) * c->size; i++) {
            in_group += b->rollout_weight[i];
            tokens += b->rollout_weight[i] * (double)batch_length(b, i);
        }
        groups += in_group > 0;
        rows += in_group;
        for (int64_t i = m * c->size; i < (m + 1) * c->size; i++)
            x->weight[i] = in_group > 0 ? b->advantage[i] * b->rollout_weight[i] / in_group : 0;
    }
    for (int64_t i = 0; i < b->n_rollouts; i++) {
        if (!(rows > 0))
            x->weight[i] = 0;
        else if (p->aggregation == AGGREGATE_SEQUENCE)
            x->weight[i] *= (double)c->batch / groups;
        else
            x->weight[i] = b->advantage[i] * b->rollout_weight[i] * (double)c->batch *
                           (p->aggregation == AGGREGATE_TOKEN ? p->mean_length / tokens : 1 / rows);
    }
}

/* ---------------------------------------------------------------- sums */

static enum kind kind_of(const struct batch *b, int64_t begin, int64_t n)
{
    int64_t right = 0;
    for (int64_t i = begin; i < begin + n; i++) right += b->verdict[i] == TARE_VERDICT_CORRECT;
    return right == 0 ? KIND_WRONG : right == n ? KIND_RIGHT : KIND_MIXED;
}

static void add_group(struct measuring *x, int half, int64_t m, struct sums *s)
{
    const struct variance_case *c = x->c;
    const struct variance_pool *p = c->pool;
    const int64_t width = p->width, prompt = x->picks.prompt[m];
    const double share = 1 / (double)c->rounds;
    struct kind_sums *k = &s->kind[kind_of(&x->batch, m * c->size, c->size)];
    bool any = false;
    k->groups++;
    for (int64_t i = m * c->size; i < (m + 1) * c->size; i++) {
        const double a = x->weight[i];
        const float *vector = p->vector + x->picks.rollout[i] * width;
        if (a == 0) continue;
        if (!any) memset(x->v, 0, (size_t)width * sizeof *x->v);
        any = true;
        for (int64_t d = 0; d < width; d++) x->v[d] += a * (double)vector[d];
    }
    if (!any) return;
    double *mean = s->mean[half] + prompt * width;
    for (int64_t d = 0; d < width; d++) {
        mean[d] += share * x->v[d];
        x->sum[d] += x->v[d];
    }
    const double square = variance_dot(x->v, x->v, width);
    s->square[prompt] += share / 2 * square;
    k->square += square;
    k->signal += variance_dot(x->v, p->mean_target[1 - half], width);
}

static void add_batch(struct measuring *x, int half, double batches, struct sums *s)
{
    const struct variance_case *c = x->c;
    const double m = (double)c->batch;
    double all = 0, squares = 0;
    memset(x->sum, 0, (size_t)c->pool->width * sizeof *x->sum);
    rollout_weights(x);
    for (int64_t g = 0; g < c->batch; g++) add_group(x, half, g, s);
    s->batch_square += variance_dot(x->sum, x->sum, c->pool->width) / (m * m) / batches;
    for (int64_t i = 0; i < x->batch.n_rollouts; i++) {
        all += fabs(x->weight[i]);
        squares += x->weight[i] * x->weight[i];
    }
    if (squares > 0) s->effective += all * all / squares / batches;
}

/* ---------------------------------------------------------------- a case */

static tare_status allocate_sums(struct measuring *x, struct arena *a, struct sums *s, struct err *e)
{
    const struct variance_case *c = x->c;
    const int64_t prompts = c->pool->batch.n_groups, width = c->pool->width;
    *s = (struct sums){0};
    for (int h = 0; h < 2; h++) TRY(arena_new(a, &s->mean[h], prompts * width, e));
    TRY(arena_new(a, &s->square, prompts, e));
    TRY(variance_picks_new(c, a, &x->picks, e));
    TRY(arena_new(a, &x->weight, c->batch * c->size, e));
    TRY(arena_new(a, &x->v, width, e));
    return arena_new(a, &x->sum, width, e);
}

static tare_status warm_up(struct measuring *x, struct err *e)
{
    for (int64_t k = 0; k < x->c->warm; k++) {
        TRY(make_batch(x, (int)(k % 2), true, k / 2, e));
        TRY(estimate_apply(x->estimator, &(struct estimate_update){.step = x->batch.step, .updates = 1}, e));
    }
    return TARE_OK;
}

static tare_status measure_batches(struct measuring *x, struct sums *s, struct err *e)
{
    const struct variance_case *c = x->c;
    const int64_t batches = c->rounds * (c->pool->batch.n_groups / c->batch);
    if (c->state == STATE_WARMED) TRY(warm_up(x, e));
    for (int half = 0; half < 2; half++)
        for (int64_t b = 0; b < batches; b++) {
            if (*signals_flag()) FAIL(e, TARE_E_CANCELLED, "interrupted; nothing was written");
            TRY(make_batch(x, half, false, b, e));
            add_batch(x, half, 2 * (double)batches, s);
        }
    return TARE_OK;
}

tare_status measure(const struct variance_case *c, struct arena *a, struct sums *out, struct err *e)
{
    struct measuring x = {.c = c};
    const int64_t prompts = c->pool->batch.n_groups;
    if (c->batch < 1 || prompts % c->batch)
        FAIL(e, TARE_E_INVALID, "batches of %lld prompts: must divide the %lld prompts of the pool", (long long)c->batch,
             (long long)prompts);
    if (c->size < 1 || c->size > c->pool->smallest)
        FAIL(e, TARE_E_INVALID, "groups of %lld: must be at most the rollouts of a prompt in half of the pool, %lld",
             (long long)c->size, (long long)c->pool->smallest);
    arena_init(&x.arena, "resampled batch");
    tare_status status = allocate_sums(&x, a, out, e);
    if (!status) status = method_open(c->method, c->place, c->state, &x.estimator, e);
    if (!status) status = measure_batches(&x, out, e);
    estimate_free(x.estimator);
    arena_free(&x.arena);
    return status;
}
