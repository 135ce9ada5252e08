/* The rollouts of one checkpoint, on which all estimators are measured.
 *
 * The verified rollouts of each prompt are dealt to two halves. Every product of two means takes
 * one from each half, <x_A, y_B>: the noise of the rollouts, of the resampling and of the reference
 * gradient is independent between the halves, so it adds nothing on average. */
#ifndef TARE_LAB_VARIANCE_POOL_H
#define TARE_LAB_VARIANCE_POOL_H

#include "lab/variance/variance.h"

struct variance_pool {
    struct batch batch; /* P groups of n rollouts, with every column that an estimator may need */
    float *vector;      /* [N, width] s_i, or their sketches */
    double *square;     /* [N] |s_i|^2, exact */
    int64_t width;
    int64_t sketched; /* width of the sketches; 0: vectors are whole */
    enum aggregation aggregation;
    double length;                   /* L of aggregation = constant */
    int64_t step;                    /* of the checkpoint; 0: none */
    const char *const *cluster_name; /* [n_clusters]; NULL: none */
    /* set by pool_finish: */
    double mean_length;
    /* rollouts of prompt p in half h: half[h][half_begin[h][p] ..] */
    int64_t *half[2], *half_begin[2];
    double *pass;                  /* [P] share of correct rollouts */
    double *baseline[2], *best[2]; /* [P] E R and E R|s|^2 / E |s|^2 of a half */
    double *target[2];             /* [P, width] g*_p of a half */
    double *mean_target[2];        /* [width] */
    double *gram;                  /* [P, P] <g*_p of A, g*_q of B> */
    int64_t smallest;              /* rollouts of the smallest half */
    struct arena arena;
};

/* Returns the weight of a token in s_i = weight * sum_t grad log pi: 1/|o_i|, 1, or 1/L. tokens:
 * |o_i| */
double pool_weight(const struct variance_pool *p, int64_t tokens);
/* Computes the fields below from batch, vector and square. seed: splits the rollouts into halves.
 * TARE_E_INVALID if a prompt has fewer than four verified rollouts. */
tare_status pool_finish(struct variance_pool *p, uint64_t seed, struct err *e);
void pool_close(struct variance_pool *p);

double variance_dot(const double *x, const double *y, int64_t n);

#endif
