/* spo: a separate value for every prompt, kept over the run, as the baseline; advantages normalised
 * over the batch.
 *
 *   v(x)  = alpha / (alpha + beta)
 *           the tracked success rate of prompt x, as it was before this step
 *   D[i]  = R[i] - v(x)                         R in [0, 1]
 *   A[i]  = (D[i] - mean D) / (std D + delta)   mean and std (n-1) over all rollouts of the batch
 *
 * After the policy step, for every prompt x of the batch, with S = sum R and n = rollouts of x:
 *
 *   alpha <- rho alpha + S,   beta <- rho beta + n - S                a Beta posterior that forgets
 *   rho   =  a constant                                               decay = fixed
 *            2^(-d(x) / d_half), cut to [rho_min, rho_max]            decay = kl
 *
 * Xu and Ding 2025, "Single-stream Policy Optimization" (arXiv 2509.13232); constants and the order
 * of the update from the authors' code (verl-recipe, spo/spo_ray_trainer.py). They use one rollout
 * per prompt (rollout.group_size = 1); with more, all count.
 *
 * d(x) is the distance that the policy moved since x last occurred. The authors keep x's last
 * completion and compare its logprobs then and now: mean over its tokens of |log pi_now - log
 * pi_then|. Here no completion is kept: each step adds the mean |log pi_new - log pi_old| of the
 * step's tokens (the column updated_logprob) to the length of the policy's path, and d(x) is the
 * length of the path since x occurred. On the same tokens a path is at least as long as the
 * distance between its ends, so this forgets no slower than theirs. A prompt that occurs for the
 * first time has d = 0. A prompt starts with alpha = mass * value, beta = mass * (1 - value). The
 * authors estimate values before the run from 8 samples with mass 1 / (1 - rho_min), or start at
 * 0.5 with mass 1. The choice of prompts is the curriculum's, not the estimator's.
 */
#include "common/estimator.h"
#include "common/state.h"

#include <math.h>
#include <stdbool.h>
#include <string.h>

enum { P_DECAY, P_RHO, P_RHO_MIN, P_RHO_MAX, P_D_HALF, P_VALUE, P_MASS, P_DELTA, P_COUNT };

enum { FIXED, KL };
static const char *const DECAYS[] = {"fixed", "kl", NULL};

static const tare_param PARAMS[P_COUNT] = {
    [P_DECAY] = TARE_CHOICE_PARAM(
        "decay", "fixed", "fixed: rho is a constant; kl: rho falls with the policy's movement since the prompt last occurred",
        DECAYS, TARE_PARAM_SWEEPABLE | TARE_PARAM_LOCKED_ON_RESUME),
    [P_RHO] =
        TARE_FLOAT_PARAM("rho", "0.9", "rho for decay = fixed: the share of a prompt's history that is kept when it occurs again",
                         0, 1, TARE_PARAM_ABOVE_MIN | TARE_PARAM_SWEEPABLE),
    [P_RHO_MIN] =
        TARE_FLOAT_PARAM("rho_min", "0.875", "for decay = kl: the smallest rho", 0, 1, TARE_PARAM_ABOVE_MIN | TARE_PARAM_SWEEPABLE),
    [P_RHO_MAX] =
        TARE_FLOAT_PARAM("rho_max", "0.96", "for decay = kl: the largest rho", 0, 1, TARE_PARAM_ABOVE_MIN | TARE_PARAM_SWEEPABLE),
    [P_D_HALF] =
        TARE_UNIT_PARAM("d_half", "0.06", "for decay = kl: the movement after which half of the history is kept", "nats a token", 0,
                        TARE_NO_MAX, TARE_PARAM_ABOVE_MIN | TARE_PARAM_LOG_SCALE | TARE_PARAM_SWEEPABLE),
    [P_VALUE] = TARE_UNIT_PARAM("value", "0.5", "v of a prompt before it occurs", "reward", 0, 1, 0),
    [P_MASS] = TARE_UNIT_PARAM("mass", "1", "alpha + beta of a prompt before it occurs", "rollouts", 0, TARE_NO_MAX,
                               TARE_PARAM_ABOVE_MIN | TARE_PARAM_LOG_SCALE),
    [P_DELTA] = TARE_FLOAT_PARAM("delta", "1e-8", "delta, added to the deviation", 0, TARE_NO_MAX,
                                 TARE_PARAM_ABOVE_MIN | TARE_PARAM_LOG_SCALE),
};

enum { W_LOGPROB, W_UPDATED_LOGPROB, W_COUNT };
static const tare_want WANTS[W_COUNT] = {
    [W_LOGPROB] = {.name = "logprob", .axis = TARE_AXIS_TOKEN, .type = TARE_F32, .flags = TARE_WANT_OPTIONAL, .width = 1},
    [W_UPDATED_LOGPROB] =
        {.name = "updated_logprob", .axis = TARE_AXIS_TOKEN, .type = TARE_F32, .flags = TARE_WANT_OPTIONAL, .width = 1},
};

static tare_status select_wants(const tare_value *v, uint8_t *wanted, tare_error *error)
{
    (void)error;
    wanted[W_LOGPROB] = wanted[W_UPDATED_LOGPROB] = v[P_DECAY].i == KL;
    return TARE_OK;
}

/* ---------------------------------------------------------------- the table of prompts */

struct prompt {
    uint64_t uid;
    double alpha, beta;
    double path;    /* length of the policy's path when the prompt last occurred */
    int64_t update; /* the update in which it last occurred */
};

struct spo {
    const tare_host *host;
    const tare_value *v;
    double path; /* length of the policy's path so far */
    int64_t updates;
    int64_t n, capacity;
    struct prompt *prompt; /* [n] in the order in which they first occurred */
    /* [4 capacity] index + 1 of a prompt, 0: empty; by hash, then the next free slot */
    int64_t *slot;
};

/* Returns the slot of a prompt, or the empty one where it belongs. */
static int64_t slot_of(const struct spo *s, uint64_t uid)
{
    const uint64_t slots = 4 * (uint64_t)s->capacity;
    uint64_t at = (uid * 0x9e3779b97f4a7c15u >> 20) % slots;
    while (s->slot[at] && s->prompt[s->slot[at] - 1].uid != uid) at = (at + 1) % slots;
    return (int64_t)at;
}

static struct prompt *find_slot(const struct spo *s, uint64_t uid)
{
    const int64_t index = s->capacity ? s->slot[slot_of(s, uid)] : 0;
    return index ? &s->prompt[index - 1] : NULL;
}

static tare_status grow_table(struct spo *s, tare_error *error)
{
    const int64_t capacity = s->capacity ? 2 * s->capacity : 64;
    const tare_host *h = s->host;
    struct prompt *prompt = h->alloc(h->ctx, capacity * (int64_t)sizeof *prompt, 0);
    int64_t *slot = h->alloc(h->ctx, 4 * capacity * (int64_t)sizeof *slot, 0);
    if (!prompt || !slot) {
        h->release(h->ctx, prompt);
        h->release(h->ctx, slot);
        return tare_fail(error, TARE_E_NOMEM, "no memory for the values of %lld prompts", (long long)capacity);
    }
    if (s->n) memcpy(prompt, s->prompt, (size_t)s->n * sizeof *prompt);
    h->release(h->ctx, s->prompt);
    h->release(h->ctx, s->slot);
    s->prompt = prompt;
    s->slot = slot;
    s->capacity = capacity;
    for (int64_t i = 0; i < s->n; i++) slot[slot_of(s, prompt[i].uid)] = i + 1;
    return TARE_OK;
}

/* Appends a prompt that is not in the table yet. */
static tare_status add_prompt(struct spo *s, struct prompt p, struct prompt **out, tare_error *error)
{
    const tare_status status = s->n == s->capacity ? grow_table(s, error) : TARE_OK;
    if (status) return status;
    s->prompt[s->n] = p;
    *out = &s->prompt[s->n];
    s->slot[slot_of(s, p.uid)] = s->n + 1;
    s->n++;
    return TARE_OK;
}

static void destroy(void *self)
{
    struct spo *s = self;
    const tare_host *h = s->host;
    h->release(h->ctx, s->prompt);
    h->release(h->ctx, s->slot);
    h->release(h->ctx, s);
}

static tare_status create(const tare_setup *setup, void **self, tare_error *error)
{
    const tare_host *host = setup->host;
    const tare_value *values = setup->values;
    if (values[P_RHO_MIN].f > values[P_RHO_MAX].f)
        return tare_fail(error, TARE_E_CONFIG, "rho_min %g is above rho_max %g", values[P_RHO_MIN].f, values[P_RHO_MAX].f);
    struct spo *s = host->alloc(host->ctx, sizeof *s, 0);
    if (!s) return tare_fail(error, TARE_E_NOMEM, "no memory for the estimator");
    s->host = host;
    s->v = values;
    *self = s;
    return TARE_OK;
}

/* ---------------------------------------- advantages; sums: 1, D, D^2 over the batch */

static double prompt_value(const struct spo *s, uint64_t uid)
{
    const struct prompt *p = find_slot(s, uid);
    return p ? p->alpha / (p->alpha + p->beta) : s->v[P_VALUE].f;
}

static tare_status prepare(const void *self, const tare_batch *batch, int64_t group, double *sum, tare_error *error)
{
    const double v = prompt_value(self, batch->prompt_uid[group]);
    for (int64_t i = batch->group_begin[group]; i < batch->group_begin[group + 1]; i++) {
        const double R = batch->reward[i], D = R - v;
        if (!(R >= 0 && R <= 1))
            return tare_fail(error, TARE_E_RANGE, "group %lld: reward %g: must be from 0 to 1 for a Beta posterior",
                             (long long)group, R);
        sum[0] += 1;
        sum[1] += D;
        sum[2] += D * D;
    }
    return TARE_OK;
}

static tare_status compute(const void *self, const tare_batch *batch, const double *prepared, tare_advantages *out,
                           tare_error *error)
{
    const struct spo *s = self;
    const double n = prepared[0], mean = n > 0 ? prepared[1] / n : 0;
    double spread = prepared[2] - prepared[1] * mean; /* sum (D - mean)^2 */
    if (spread < 1e-13 * prepared[2]) spread = 0;     /* only rounding: all D are equal */
    const double deviation = n > 1 ? sqrt(spread / (n - 1)) : 0;
    (void)error;
    for (int64_t m = 0; m < batch->n_groups; m++) {
        const double v = prompt_value(s, batch->prompt_uid[m]);
        for (int64_t i = batch->group_begin[m]; i < batch->group_begin[m + 1]; i++)
            out->advantage[i] = spread > 0 ? (batch->reward[i] - v - mean) / (deviation + s->v[P_DELTA].f) : 0;
        out->baseline[m] = v;
    }
    return TARE_OK;
}

/* ---------------------------------------------------------------- values */

/* A record: n, S, sampled tokens, sum |log pi_new - log pi_old|. */
enum { N, S, TOKENS, MOVED, RECORD };

static tare_status sizes(const void *self, tare_sizes *out, tare_error *error)
{
    (void)self, (void)error;
    out->prepare = 3;
    out->record = RECORD;
    return TARE_OK;
}

/* Adds the distance that the policy step moved the tokens of rollout i. A completion that was not
 * sampled has logprobs of 0 and is left out. */
static void add_movement(const tare_batch *batch, const float *before, const float *after, int64_t i, double *record)
{
    const int64_t begin = batch->token_begin[i], end = batch->token_begin[i + 1];
    bool by_policy = false;
    for (int64_t t = begin; t < end; t++) by_policy = by_policy || (batch->sampled[t] && before[t] != 0);
    if (!by_policy) return;
    for (int64_t t = begin; t < end; t++)
        if (batch->sampled[t]) record[MOVED] += fabs((double)after[t] - (double)before[t]);
    record[TOKENS] += (double)batch->length[i];
}

static tare_status record(const void *self, const tare_batch *batch, int64_t group, double *record, tare_error *error)
{
    const struct spo *s = self;
    const float *before = TARE_COLUMN(batch, W_LOGPROB, float), *after = TARE_COLUMN(batch, W_UPDATED_LOGPROB, float);
    const bool moves = s->v[P_DECAY].i == KL;
    if (moves && !before) return tare_fail(error, TARE_E_SHAPE, "decay = kl needs the tokens' logprobs, but the batch has none");
    if (moves && !after)
        return tare_fail(
            error, TARE_E_CONFIG,
            "decay = kl needs the tokens' logprobs after the policy step, which this host does not offer; use decay = fixed");
    for (int64_t i = batch->group_begin[group]; i < batch->group_begin[group + 1]; i++) {
        record[N] += 1;
        record[S] += batch->reward[i];
        if (moves) add_movement(batch, before, after, i, record);
    }
    return TARE_OK;
}

/* Returns the share of a prompt's history that is kept. */
static double kept_share(const struct spo *s, const struct prompt *p)
{
    if (s->v[P_DECAY].i == FIXED) return s->v[P_RHO].f;
    /* exp2 of the C library gives other bits on other processors (docs/dev/processors.md) */
    const double rho = pow(0.5, (s->path - p->path) / s->v[P_D_HALF].f);
    return fmin(fmax(rho, s->v[P_RHO_MIN].f), s->v[P_RHO_MAX].f);
}

static tare_status apply(void *self, const tare_update *update, tare_error *error)
{
    struct spo *s = self;
    const double *record = update->record;
    double tokens = 0, moved = 0;
    s->updates++;
    for (int64_t m = 0; m < update->n_groups; m++) {
        tokens += record[m * RECORD + TOKENS];
        moved += record[m * RECORD + MOVED];
    }
    if (tokens > 0) s->path += moved / tokens;
    for (int64_t m = 0; m < update->n_groups; m++) {
        const double n = record[m * RECORD + N], sum = record[m * RECORD + S];
        const double mass = s->v[P_MASS].f, value = s->v[P_VALUE].f;
        struct prompt *p = find_slot(s, update->prompt_uid[m]);
        if (!p) {
            const struct prompt fresh = {update->prompt_uid[m], mass * value, mass * (1 - value), s->path, 0};
            const tare_status status = add_prompt(s, fresh, &p, error);
            if (status) return status;
        }
        if (p->update != s->updates) { /* a prompt that occurs twice in the batch forgets once */
            const double keep = kept_share(s, p);
            p->alpha *= keep;
            p->beta *= keep;
            p->path = s->path;
            p->update = s->updates;
        }
        p->alpha += sum;
        p->beta += n - sum;
    }
    s->host->metric(s->host->ctx, "prompts", (double)s->n, TARE_METRIC_LAST);
    if (s->v[P_DECAY].i == KL) s->host->metric(s->host->ctx, "movement", tokens > 0 ? moved / tokens : 0, TARE_METRIC_LAST);
    return TARE_OK;
}

/* ---------------------------------------------------------------- state */

static tare_status save(const void *self, const tare_stream *out, tare_error *error)
{
    const struct spo *s = self;
    (void)error;
    tare_status status = out->write(out->ctx, &s->n, sizeof s->n);
    if (!status) status = out->write(out->ctx, &s->updates, sizeof s->updates);
    if (!status) status = out->write(out->ctx, &s->path, sizeof s->path);
    return status ? status : out->write(out->ctx, s->prompt, s->n * (int64_t)sizeof *s->prompt);
}

static bool is_sound(const struct spo *s, const struct prompt *p)
{
    const double mass = p->alpha + p->beta;
    return p->alpha >= 0 && p->beta >= 0 && mass > 0 && mass < 1e300 && p->path >= 0 && p->path <= s->path && p->update >= 0 &&
           p->update <= s->updates;
}

/* Loads into an empty table. */
static tare_status load_into(struct spo *s, const tare_stream *in, tare_error *error)
{
    int64_t n = 0;
    tare_status status = state_next(in, &n, sizeof n, error);
    if (!status) status = state_next(in, &s->updates, sizeof s->updates, error);
    if (!status) status = state_next(in, &s->path, sizeof s->path, error);
    if (status) return status;
    if (n < 0 || s->updates < 0 || !(s->path >= 0) || !isfinite(s->path))
        return tare_fail(error, TARE_E_CORRUPT, "the state makes no sense: %lld prompts, %lld updates, path %g", (long long)n,
                         (long long)s->updates, s->path);
    for (int64_t i = 0; i < n; i++) {
        struct prompt p, *added;
        status = state_next(in, &p, sizeof p, error);
        if (status) return status;
        if (!is_sound(s, &p) || find_slot(s, p.uid))
            return tare_fail(error, TARE_E_CORRUPT, "prompt %lld of the state makes no sense", (long long)i);
        status = add_prompt(s, p, &added, error);
        if (status) return status;
    }
    return TARE_OK;
}

/* A state that is refused does not change the old one. */
static tare_status load(void *self, const tare_stream *in, tare_error *error)
{
    struct spo *s = self, fresh = {.host = s->host, .v = s->v};
    const tare_host *h = s->host;
    const tare_status status = load_into(&fresh, in, error);
    const struct spo *gone = status ? &fresh : s;
    h->release(h->ctx, gone->prompt);
    h->release(h->ctx, gone->slot);
    if (!status) *s = fresh;
    return status;
}

static tare_status describe(const void *self, const tare_stream *out, tare_error *error)
{
    const struct spo *s = self;
    (void)error;
    tare_status status = tare_print(out, "{\"path\":%.17g,\"prompts\":[", s->path);
    for (int64_t i = 0; i < s->n && !status; i++) {
        const struct prompt *p = &s->prompt[i];
        status = tare_print(out, "%s{\"uid\":\"%016llx\",\"alpha\":%.17g,\"beta\":%.17g}", i ? "," : "", (unsigned long long)p->uid,
                            p->alpha, p->beta);
    }
    return status ? status : tare_print(out, "]}");
}

STATEFUL("spo", "a forgetting Beta posterior of every prompt as its baseline; advantages normalised over the batch",
         "arXiv 2509.13232", .create = create, .destroy = destroy, .save = save, .load = load, .describe = describe,
         .select = select_wants, .sizes = sizes, .prepare = prepare, .compute = compute, .record = record, .apply = apply)
