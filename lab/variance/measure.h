/* Measure one estimator, in one state, at one group size: sums by prompt over resampled batches,
 * and figures from those sums. */
#ifndef TARE_LAB_VARIANCE_MEASURE_H
#define TARE_LAB_VARIANCE_MEASURE_H

#include "lab/variance/method.h"

struct variance_case {
    const struct variance_pool *pool;
    const struct method *method;
    const struct method_place *place;
    enum state state;
    int64_t size, batch; /* G, M; M divides the number of prompts */
    int64_t rounds;      /* resampled groups of each prompt in each half */
    int64_t warm;        /* steps of STATE_WARMED */
    uint64_t seed;
};

/* ---------------------------------------------------------------- groups.c */

struct picks {        /* a resampled batch */
    int64_t *prompt;  /* [M] distinct */
    int64_t *rollout; /* [M, G] distinct, of one half of the pool */
    int64_t *scratch;
};
tare_status variance_picks_new(const struct variance_case *c, struct arena *a, struct picks *out, struct err *e);
/* Picks batch number `batch` of a half. It depends on (seed, half, batch, G) only and is the same
 * for every estimator. Every round of P / M batches has each prompt once. warm: use a separate
 * series of batches, for the steps of STATE_WARMED. */
void groups_pick(const struct variance_case *c, int half, bool warm, int64_t batch, struct picks *p);

/* ---------------------------------------------------------------- measure.c */

/* Groups with no, some, or only correct rollouts. */
enum kind { KIND_WRONG, KIND_MIXED, KIND_RIGHT };
struct kind_sums {
    double groups, signal, square; /* number of groups; sum of <v, g*>, of |v|^2 */
};
/* v_m is the part of a batch's gradient that comes from its group m: the gradient is 1/M sum_m
 * v_m. */
struct sums {
    double *mean[2];     /* [P, width] mean of v over the groups of a prompt, by half */
    double *square;      /* [P] mean of |v|^2 */
    double batch_square; /* mean of |1/M sum v|^2 */
    /* mean of (sum |a|)^2 / sum a^2 over the batches; a_i is the weight of s_i */
    double effective;
    struct kind_sums kind[VARIANCE_KINDS];
};
/* Fills out, which lives in the arena. */
tare_status measure(const struct variance_case *c, struct arena *a, struct sums *out, struct err *e);

/* ---------------------------------------------------------------- interval.c */

/* Prompts drawn with replacement: [n, P] shares. All cases use the same ones, so that differences
 * are paired. */
struct resamples {
    double *weight;
    int64_t n, prompts;
};
tare_status variance_resamples_new(int64_t n, int64_t prompts, uint64_t seed, struct arena *a, struct resamples *out,
                                   struct err *e);

struct figure { /* with its 95 % interval; NAN: cannot be determined */
    double value, low, high;
};
struct part { /* of the gradient: a difficulty bin or a cluster */
    int64_t prompts;
    double signal, square; /* shares of <E ghat, g*> and of E |ghat|^2 */
    double snr;            /* |E v|^2 / (E |v|^2 - |E v|^2), mean over its prompts; or NAN */
};
struct result {
    const struct method *method;
    enum state state;
    int64_t size;
    char why[160];                  /* reason why it was not measured; empty: measured */
    struct figure target;           /* |g*|^2 */
    struct figure bias;             /* |E ghat - g*|^2 */
    struct figure variance, second; /* E |ghat - E ghat|^2, E |ghat|^2 */
    /* share of the variance that comes from sampling rollouts; the rest comes from drawing
     * prompts */
    double sampling;
    struct figure direction;      /* E <ghat, g*> / sqrt(E |ghat|^2 |g*|^2) */
    struct figure mean_direction; /* <E ghat, g*> / sqrt(|E ghat|^2 |g*|^2) */
    struct figure ahead;          /* direction minus that of the reference method */
    /* share of the M G rollouts of a batch that carry the gradient */
    double effective;
    struct kind_sums kind[VARIANCE_KINDS]; /* shares */
    struct part bin[VARIANCE_BINS], cluster[VARIANCE_CLUSTERS];
    double *star; /* [resamples] the direction in each resample; owned by the caller */
};
extern const char *const KIND_NAMES[VARIANCE_KINDS], *const BIN_NAMES[VARIANCE_BINS];
/* s: from measure. The caller sets out->star. */
tare_status variance_figures_of(const struct variance_case *c, const struct sums *s, const struct resamples *r, struct arena *a,
                                struct result *out, struct err *e);
/* Fills x->ahead from the paired resamples. */
tare_status variance_figures_ahead(struct result *x, const struct result *reference, int64_t n, struct err *e);

#endif
