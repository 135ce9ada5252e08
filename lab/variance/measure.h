/* One estimator, in one state, at one group size: resampled batches to sums by prompt, and those to figures. */
#ifndef TARE_LAB_VARIANCE_MEASURE_H
#define TARE_LAB_VARIANCE_MEASURE_H

#include "lab/variance/method.h"

struct variance_case {
    const struct variance_pool *pool;
    const struct method *method;
    const struct method_place *place;
    enum state state;
    int64_t size, batch; /* G, M; M divides the pool's prompts */
    int64_t rounds;      /* resampled groups of each prompt in each half */
    int64_t warm;        /* steps of STATE_WARMED */
    uint64_t seed;
};

/* ---------------------------------------------------------------- groups.c */

struct picks {        /* a resampled batch */
    int64_t *prompt;  /* [M] distinct */
    int64_t *rollout; /* [M, G] distinct, of one half of the pool */
    int64_t *room;    /* scratch */
};
tare_status variance_picks_new(const struct variance_case *c, struct arena *a, struct picks *out, struct err *e);
/* Batch number `batch` of a half: a function of (seed, half, batch, G), the same for every estimator. Every round of P / M batches has each prompt
 * once. warm: another series of batches, for the steps of STATE_WARMED. */
void groups_pick(const struct variance_case *c, int half, bool warm, int64_t batch, struct picks *p);

/* ---------------------------------------------------------------- measure.c */

/* Which groups: no rollout right, some, all. */
enum kind { KIND_WRONG, KIND_MIXED, KIND_RIGHT };
struct kind_sums {
    double groups, signal, square; /* how many; sum of <v, g*>, of |v|^2 */
};
/* With v_m the part of a batch's gradient that comes from its group m: the gradient is 1/M sum_m v_m. */
struct sums {
    double *mean[2];     /* [P, width] mean of v over the groups of a prompt, by half */
    double *square;      /* [P] mean of |v|^2 */
    double batch_square; /* mean of |1/M sum v|^2 */
    double effective;    /* mean of (sum |a|)^2 / sum a^2 over the batches, a_i: the weight of s_i */
    struct kind_sums kind[VARIANCE_KINDS];
};
/* In the arena. */
tare_status measure(const struct variance_case *c, struct arena *a, struct sums *out, struct err *e);

/* ---------------------------------------------------------------- interval.c */

/* Prompts drawn with replacement: [n, P] shares of each. The same for all cases, so that differences are paired. */
struct resamples {
    double *weight;
    int64_t n, prompts;
};
tare_status variance_resamples_new(int64_t n, int64_t prompts, uint64_t seed, struct arena *a, struct resamples *out,
                                   struct err *e);

struct figure { /* with its 95 % interval; NAN: it cannot be told */
    double value, low, high;
};
struct part { /* of the gradient: a difficulty bin, a cluster */
    int64_t prompts;
    double signal, square; /* shares of <E ghat, g*> and of E |ghat|^2 */
    double snr;            /* |E v|^2 / (E |v|^2 - |E v|^2), mean over its prompts; NAN */
};
struct result {
    const struct method *method;
    enum state state;
    int64_t size;
    char why[160];                  /* not measured; empty: it was */
    struct figure target;           /* |g*|^2 */
    struct figure bias;             /* |E ghat - g*|^2 */
    struct figure variance, second; /* E |ghat - E ghat|^2, E |ghat|^2 */
    double sampling;              /* share of the variance that comes from the rollouts; the rest: from which prompts were drawn */
    struct figure direction;      /* E <ghat, g*> / sqrt(E |ghat|^2 |g*|^2) */
    struct figure mean_direction; /* <E ghat, g*> / sqrt(|E ghat|^2 |g*|^2) */
    struct figure ahead;          /* direction less that of the reference method */
    double effective;             /* rollouts of a batch that carry the gradient, of M G */
    struct kind_sums kind[VARIANCE_KINDS]; /* shares */
    struct part bin[VARIANCE_BINS], cluster[VARIANCE_CLUSTERS];
    double *star; /* [resamples] the direction in each; the caller's room */
};
extern const char *const KIND_NAMES[VARIANCE_KINDS], *const BIN_NAMES[VARIANCE_BINS];
/* s of measure; out comes with star. */
tare_status variance_figures_of(const struct variance_case *c, const struct sums *s, const struct resamples *r, struct arena *a,
                                struct result *out, struct err *e);
/* Fills ahead of x, by the paired resamples. */
tare_status variance_figures_ahead(struct result *x, const struct result *reference, int64_t n, struct err *e);

#endif
