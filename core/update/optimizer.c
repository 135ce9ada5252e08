/* Global-norm clipping and AdamW (Loshchilov & Hutter 2019) on the flat buffers. Decay applies to
 * every parameter, because the parameters are one flat buffer; train.weight_decay is 0 unless set.
 *
 *   g <- g min(1, max_norm / (|g| + 1e-6));  p <- p - lr decay p;
 *   m, v <- moments;  p <- p - lr m^/(sqrt(v^) + eps)
 */
#include "update/optimizer.h"
#include "update/schedule.h"

#include "base/log.h"
#include "model/proof.h"
#include "model/shards.h"

#include <float.h>
#include <math.h>
#include <string.h>

/* Computes the sums of squares of this rank's blocks, unit by unit, in the backend's memory. A
 * rank's last blocks may be padding: zero. */
static void own_squares(const struct trainer *t, double *out)
{
    const struct model *m = t->m;
    for (int64_t u = shards_unit_first(m); u < shards_unit_end(m); u++) {
        const int64_t slice = shards_unit_slice(m, u), block = m->unit_block[u];
        KERNEL(m->k, &m->ctx, sum_squares, .out = out, .x = t->grads.sum + shards_unit_own(m, u), .n = slice, .block = block);
        out += (slice + block - 1) / block;
    }
}

static int64_t own_blocks(const struct model *m)
{
    int64_t n = 0;
    for (int64_t u = shards_unit_first(m); u < shards_unit_end(m); u++)
        n += (shards_unit_slice(m, u) + m->unit_block[u] - 1) / m->unit_block[u];
    return n;
}

/* Computes |g|. Squares are added in blocks of the layout, block by block, so that the sum does not
 * depend on the number of ranks. */
static tare_status gradient_norm(struct trainer *t, double *norm, struct err *e)
{
    const struct model *m = t->m;
    const int64_t n = own_blocks(m);
    double *squares, *host, *all, sum = 0;
    int64_t *sizes;
    TRY(grads_check(&t->grads, e));
    TRY(model_check_moved(t->m, e));
    arena_reset(&t->head); /* the micro-batches are finished */
    TRY(tensor_new(&t->head, &squares, n, e));
    TRY(arena_new(&t->work, &host, n, e));
    TRY(arena_new(&t->work, &all, n * m->ranks, e));
    TRY(arena_new(&t->work, &sizes, m->ranks, e));
    kernels_at(&m->ctx, "the gradient's norm", -1);
    own_squares(t, squares);
    const double *mine = model_from_backend(m, host, squares, n * (int64_t)sizeof *mine);
    TRY(model_finish(m, e));
    for (int r = 0; r < m->ranks; r++) sizes[r] = n * (int64_t)sizeof(double);
    if (m->ranks > 1)
        TRY(m->comm->gather(m->comm, mine, sizes[0], all, sizes, e));
    else
        memcpy(all, mine, (size_t)sizes[0]);
    for (int64_t u = shards_unit_first(m), first = 0, blocks; u < shards_unit_end(m); u++, first += blocks) {
        blocks = (shards_unit_slice(m, u) + m->unit_block[u] - 1) / m->unit_block[u];
        for (int r = 0; r < m->ranks; r++)
            for (int64_t b = 0; b < blocks; b++) sum += all[r * n + first + b];
    }
    *norm = fabs(sqrt(sum)); /* drops the meaningless sign of a NaN */
    return TARE_OK;
}

/* Applies AdamW to this rank's slices, or with dist.shard = none to all weights, with gradients
 * gathered unit by unit. */
static tare_status train_units(struct trainer *t, double scale, double lr, struct err *e)
{
    const struct train_config *c = t->train;
    struct model *m = t->m;
    const double step = (double)(t->optimizer_steps + 1);
    const bool all = m->ranks > 1 && m->shard == SHARD_NONE;
    kernels_at(&m->ctx, "optimizer step", -1);
    for (int64_t u = shards_unit_first(m); u < shards_unit_end(m); u++) {
        const int64_t slice = shards_unit_slice(m, u), moments = all ? m->unit_begin[u] : shards_unit_own(m, u);
        const float *g = t->grads.sum + shards_unit_own(m, u);
        if (all) TRY(m->comm->all_gather(m->comm, g, slice * (int64_t)sizeof(float), t->grads.received, e));
        KERNEL(m->k, &m->ctx, adamw, .p = m->weights + (all ? m->unit_begin[u] : shards_unit_own_weights(m, u)),
               .g = all ? t->grads.received : g, .m = t->moment1 + moments, .v = t->moment2 + moments,
               .n = all ? m->ranks * slice : slice, .grad_scale = (float)scale, .lr = (float)lr, .beta1 = (float)c->beta1,
               .beta2 = (float)c->beta2, .eps = (float)c->eps, .decay = (float)c->weight_decay, .correct1 = 1 - pow(c->beta1, step),
               .correct2 = 1 - pow(c->beta2, step));
    }
    return TARE_OK;
}

/* Returns whether the second moment of a gradient of this norm is finite in single precision: once
 * infinite it stays so, and the weight never moves again. False for NaN. */
static bool moment_fits(double norm)
{
    return norm * norm < (double)FLT_MAX;
}

/* An advantage from here on is a more likely cause of an overflow than the learning rate: usual ones
 * are below 10. */
static const double ADVANTAGE_SUSPECT = 1e6;

static tare_status refuse_norm(const struct trainer *t, double norm, struct err *e)
{
    if (t->train->on_nonfinite != NONFINITE_STOP)
        FAIL(e, TARE_E_NOT_FINITE,
             "optimizer step %lld: the gradient's norm is %g, which is not finite or too large for the moments",
             (long long)t->optimizer_steps, norm);
    if (t->largest_advantage >= ADVANTAGE_SUSPECT)
        FAIL(
            e, TARE_E_NOT_FINITE,
            "optimizer step %lld: the gradient's norm is %g, which is not finite or too large for the moments, and the largest advantage is %g; check the rewards and the estimator, or set train.on_nonfinite to skip or rollback",
            (long long)t->optimizer_steps, norm, t->largest_advantage);
    FAIL(
        e, TARE_E_NOT_FINITE,
        "optimizer step %lld: the gradient's norm is %g, which is not finite or too large for the moments; lower train.lr, or set train.on_nonfinite to skip or rollback",
        (long long)t->optimizer_steps, norm);
}

static tare_status not_finite(struct trainer *t, double norm, bool *skipped, struct err *e)
{
    const struct model *m = t->m;
    m->k->backend->zero(&m->ctx, t->grads.sum, t->grads.sum_bytes);
    if (t->train->on_nonfinite != NONFINITE_SKIP) {
        t->overflow = true;
        return refuse_norm(t, norm, e);
    }
    log_warn("optimizer step %lld: the gradient's norm is %g, which is not finite or too large for the moments: step skipped",
             (long long)t->optimizer_steps, norm);
    t->optimizer_steps++;
    *skipped = true;
    return TARE_OK;
}

tare_status optimizer_step(struct trainer *t, double *grad_norm, double *lr, bool *skipped, struct err *e)
{
    const struct train_config *c = t->train;
    struct model *m = t->m;
    *skipped = false;
    *lr = schedule_lr(c, t->optimizer_steps, t->total_steps);
    TRY(proof_weights_kept(m, e));
    TRY(gradient_norm(t, grad_norm, e));
    const double scale = c->max_grad_norm > 0 ? fmin(1, c->max_grad_norm / (*grad_norm + 1e-6)) : 1;
    if (!moment_fits(*grad_norm * scale)) return not_finite(t, *grad_norm, skipped, e);
    TRY(train_units(t, scale, *lr, e));
    m->k->backend->zero(&m->ctx, t->grads.sum, t->grads.sum_bytes);
    t->optimizer_steps++;
    return model_refresh(m, e);
}
