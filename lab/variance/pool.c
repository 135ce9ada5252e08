#include "lab/variance/pool.h"

#include "base/rng.h"

#include <tare/verifier.h>

double variance_dot(const double *x, const double *y, int64_t n)
{
    double sum[8] = {0};
    int64_t i = 0;
    for (; i + 8 <= n; i += 8)
        for (int k = 0; k < 8; k++) sum[k] += x[i + k] * y[i + k];
    for (; i < n; i++) sum[0] += x[i] * y[i];
    return ((sum[0] + sum[1]) + (sum[2] + sum[3])) + ((sum[4] + sum[5]) + (sum[6] + sum[7]));
}

double pool_weight(const struct variance_pool *p, int64_t tokens)
{
    return p->aggregation == AGGREGATE_SEQUENCE ? 1 / (double)tokens : p->aggregation == AGGREGATE_CONSTANT ? 1 / p->length : 1;
}

/* Return true if the verifier finished with this rollout; otherwise it has no reward. */
static bool was_verified(const struct batch *b, int64_t i)
{
    const int32_t *code = b->component_verdict ? b->component_verdict + i * b->n_components : b->verdict + i;
    const int64_t n = b->component_verdict ? b->n_components : 1;
    for (int64_t c = 0; c < n; c++)
        if (code[c] == TARE_VERDICT_TIMED_OUT || code[c] == TARE_VERDICT_CRASHED) return false;
    return b->verdict[i] != TARE_VERDICT_TIMED_OUT && b->verdict[i] != TARE_VERDICT_CRASHED;
}

/* Deal a prompt's rollouts to the halves in turn, after a shuffle keyed by (seed, prompt), so that
 * prompts are independent. */
static tare_status deal_prompt(struct variance_pool *p, int64_t m, struct rng_key key, int64_t *order, struct err *e)
{
    const struct batch *b = &p->batch;
    int64_t n = 0, at[2] = {p->half_begin[0][m], p->half_begin[1][m]}, right = 0;
    for (int64_t i = b->group_begin[m]; i < b->group_begin[m + 1]; i++)
        if (was_verified(b, i)) order[n++] = i;
    if (n < 4)
        FAIL(e, TARE_E_INVALID,
             "prompt %lld: %lld of its %lld rollouts were verified, must be at least 4; raise --rollouts or verifier.timeout",
             (long long)m, (long long)n, (long long)(b->group_begin[m + 1] - b->group_begin[m]));
    rng_shuffle(rng_derive(key, (uint64_t)m), order, n);
    for (int64_t k = 0; k < n; k++) {
        p->half[k % 2][at[k % 2]++] = order[k];
        right += b->verdict[order[k]] == TARE_VERDICT_CORRECT;
    }
    for (int h = 0; h < 2; h++) {
        const int64_t size = at[h] - p->half_begin[h][m];
        p->half_begin[h][m + 1] = at[h];
        if (size < p->smallest) p->smallest = size;
    }
    p->pass[m] = (double)right / (double)n;
    return TARE_OK;
}

/* Compute g*_p = 1/n sum_i (R_i - mean of the other R) s_i = 1/(n-1) sum_i (R_i - mean) s_i, which
 * is unbiased for the covariance of R and s. */
static void target_of(struct variance_pool *p, int h, int64_t m)
{
    const int64_t begin = p->half_begin[h][m], n = p->half_begin[h][m + 1] - begin;
    double sum = 0, weighted = 0, squares = 0, *g = p->target[h] + m * p->width;
    for (int64_t k = begin; k < begin + n; k++) {
        const int64_t i = p->half[h][k];
        sum += p->batch.reward[i];
        weighted += p->batch.reward[i] * p->square[i];
        squares += p->square[i];
    }
    p->baseline[h][m] = sum / (double)n;
    p->best[h][m] = squares > 0 ? weighted / squares : p->baseline[h][m];
    for (int64_t k = begin; k < begin + n; k++) {
        const int64_t i = p->half[h][k];
        const double a = (p->batch.reward[i] - p->baseline[h][m]) / (double)(n - 1);
        const float *s = p->vector + i * p->width;
        for (int64_t d = 0; a != 0 && d < p->width; d++) g[d] += a * (double)s[d];
    }
    for (int64_t d = 0; d < p->width; d++) p->mean_target[h][d] += g[d] / (double)p->batch.n_groups;
}

/* Aggregation `token` divides by the tokens of the batch. Divide by their mean here, so that all
 * vectors have the same scale. */
static void scale_vectors(struct variance_pool *p)
{
    const int64_t n = p->batch.n_rollouts;
    p->mean_length = n ? (double)p->batch.token_begin[n] / (double)n : 1;
    if (p->aggregation != AGGREGATE_TOKEN) return;
    for (int64_t i = 0; i < n * p->width; i++) p->vector[i] = (float)((double)p->vector[i] / p->mean_length);
    for (int64_t i = 0; i < n; i++) p->square[i] /= p->mean_length * p->mean_length;
}

static tare_status allocate_pool(struct variance_pool *p, struct err *e)
{
    const int64_t prompts = p->batch.n_groups;
    TRY(arena_new(&p->arena, &p->pass, prompts, e));
    TRY(arena_new(&p->arena, &p->gram, prompts * prompts, e));
    for (int h = 0; h < 2; h++) {
        TRY(arena_new(&p->arena, &p->half[h], p->batch.n_rollouts, e));
        TRY(arena_new(&p->arena, &p->half_begin[h], prompts + 1, e));
        TRY(arena_new(&p->arena, &p->baseline[h], prompts, e));
        TRY(arena_new(&p->arena, &p->best[h], prompts, e));
        TRY(arena_new(&p->arena, &p->target[h], prompts * p->width, e));
        TRY(arena_new(&p->arena, &p->mean_target[h], p->width, e));
    }
    return TARE_OK;
}

tare_status pool_finish(struct variance_pool *p, uint64_t seed, struct err *e)
{
    const struct rng_key key = rng_derive(rng_key(seed, RNG_VARIANCE), 1);
    const int64_t prompts = p->batch.n_groups;
    int64_t *order;
    TRY(allocate_pool(p, e));
    TRY(arena_new(&p->arena, &order, p->batch.n_rollouts, e));
    scale_vectors(p);
    p->smallest = p->batch.n_rollouts;
    for (int64_t m = 0; m < prompts; m++) TRY(deal_prompt(p, m, key, order, e));
    for (int h = 0; h < 2; h++)
        for (int64_t m = 0; m < prompts; m++) target_of(p, h, m);
    for (int64_t m = 0; m < prompts; m++)
        for (int64_t q = 0; q < prompts; q++)
            p->gram[m * prompts + q] = variance_dot(p->target[0] + m * p->width, p->target[1] + q * p->width, p->width);
    return TARE_OK;
}

void pool_close(struct variance_pool *p)
{
    mem_free(p->vector);
    mem_free(p->square);
    arena_free(&p->arena);
    *p = (struct variance_pool){0};
}
