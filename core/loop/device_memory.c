#include "loop/device_memory.h"

#include "base/str.h"
#include "loop/plan.h"

#include <stdio.h>

tare_status device_memory_check(const struct config *c, const struct kernels *k, int64_t ranks, int64_t vocab, struct err *e)
{
    if (!k->device || !k->memory) return TARE_OK;
    const struct kctx ctx = {0};
    struct plan_input in = {.config = c,
                            .ranks = ranks,
                            .hosts = 1,
                            .gradient_shards = c->dist.gradient_shards > 0 ? c->dist.gradient_shards : 1,
                            .machine = {.gpu = true, .memory = (double)k->memory(&ctx), .memory_use = 0.7, .compute_use = 0.4}};
    struct plan p;
    struct str text = {0};
    if (!(in.machine.memory > 0)) return TARE_OK;
    snprintf(in.machine.name, sizeof in.machine.name, "%.60s", k->name);
    TRY(shard_from(c->dist.shard, &in.shard, e));
    TRY(plan_shape(c, vocab, &in.shape, e));
    TRY(plan_make(&in, &p, e));
    if (p.fits) return TARE_OK;
    const tare_status status = plan_print(&p, &text, e);
    if (!status) fprintf(stderr, "%.*s", (int)text.size, text.data);
    str_free(&text);
    TRY(status);
    FAIL(e, TARE_E_NOMEM,
         "run.device = %s: %.2f GB are needed (the table above) and the device has %.2f GB left; `tare plan` says what helps",
         c->run.device, 1e-9 * p.need, 1e-9 * p.budget);
}
