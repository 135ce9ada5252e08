/* Global-norm clipping and AdamW (Loshchilov & Hutter 2019) on the flat buffers. Decay applies to every parameter, as the parameters are
 * one flat buffer; train.weight_decay is 0 unless set.
 *
 *   g <- g min(1, max_norm / (|g| + 1e-6));  p <- p - lr decay p;  m, v <- moments;  p <- p - lr m^/(sqrt(v^) + eps)
 */
#include "update/update.h"

#include "base/log.h"

#include <math.h>
#include <string.h>

tare_status optimizer_step(struct trainer *t, double *grad_norm, double *lr, bool *skipped, struct err *e)
{
    const struct train_config *c = t->train;
    struct model *m = t->m;
    *skipped = false;
    *lr = schedule_lr(c, t->optimizer_steps, t->total_steps);
    *grad_norm = sqrt(m->k->sum_squares(&m->ctx, t->grads, m->n_params));
    if (!isfinite(*grad_norm)) {
        if (strcmp(c->on_nonfinite, "skip"))
            FAIL(e, TARE_E_NOT_FINITE,
                 "optimizer step %lld: the gradient's norm is not finite; lower train.lr, or set train.on_nonfinite = skip",
                 (long long)t->optimizer_steps);
        log_warn("optimizer step %lld: the gradient's norm is not finite, step skipped", (long long)t->optimizer_steps);
        m->k->zero(&m->ctx, t->grads, m->n_params * (int64_t)sizeof(float));
        t->optimizer_steps++;
        *skipped = true;
        return TARE_OK;
    }
    double scale = 1;
    if (c->max_grad_norm > 0) scale = fmin(1, c->max_grad_norm / (*grad_norm + 1e-6));
    const double step = (double)(t->optimizer_steps + 1);
    m->k->adamw(&m->ctx, m->weights, t->grads, t->moment1, t->moment2, m->n_params, (float)scale, (float)*lr, (float)c->beta1,
                (float)c->beta2, (float)c->eps, (float)c->weight_decay, 1 - pow(c->beta1, step), 1 - pow(c->beta2, step));
    m->k->zero(&m->ctx, t->grads, m->n_params * (int64_t)sizeof(float));
    t->optimizer_steps++;
    model_refresh(m);
    return TARE_OK;
}
