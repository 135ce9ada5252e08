/* Linear warm-up to the peak, then cosine (or linear, or constant) decay to lr_floor times the
 * peak. Counts optimizer steps. */
#include "update/schedule.h"

#include <math.h>
#include <string.h>

double schedule_lr(const struct train_config *c, int64_t s, int64_t total)
{
    int64_t warmup = c->warmup_steps ? c->warmup_steps : (int64_t)ceil(c->warmup_ratio * (double)total);
    if (warmup > total) warmup = total;
    if (s < warmup) return c->lr * (double)(s + 1) / (double)warmup;
    const double span = total > warmup ? (double)(total - warmup) : 1;
    const double x = (double)(s - warmup) / span < 1 ? (double)(s - warmup) / span : 1;
    double shape = 1;
    if (c->schedule == SCHEDULE_COSINE) shape = 0.5 * (1 + cos(3.14159265358979323846 * x));
    if (c->schedule == SCHEDULE_LINEAR) shape = 1 - x;
    return c->lr * (c->lr_floor + (1 - c->lr_floor) * shape);
}

double schedule_kl_coef(const struct loss_config *c, int64_t s, int64_t total)
{
    const double x = s < total ? (double)s / (double)total : 1;
    return c->kl_coef * (1 - (1 - c->kl_floor) * x);
}
