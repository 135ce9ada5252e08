#include "engine/device_memory.h"

#include "base/log.h"
#include "base/str.h"
#include "plan/plan.h"
#include "update/objective.h"

#include <stdio.h>

/* 1/OUTSIDE of a device's memory stays outside of the region. */
enum { OUTSIDE = 64 };

static tare_status refuse_plan(const struct plan *p, const char *device, struct err *e)
{
    OWNED(str_free) struct str text = {0};
    TRY(plan_print(p, &text, e));
    fprintf(stderr, "%.*s", (int)text.size, text.data);
    FAIL(e, TARE_E_NOMEM,
         "run.device = %s: needs %.2f GB (see the table above) but has only %.2f GB left; `tare plan` suggests remedies", device,
         1e-9 * p->need, 1e-9 * p->budget);
}

tare_status device_memory_reserve(const struct config *c, const struct kernels *k, const struct comm *comm, int64_t vocab,
                                  int64_t eval_rows, struct err *e)
{
    const struct kctx ctx = {0};
    struct kernel_memory m;
    struct plan p;
    if (!k->backend->device || !k->backend->reserve) return TARE_OK;
    k->backend->memory_use(&ctx, &m);
    /* from an earlier run of this process; its blocks are free or still needed */
    if (m.region && m.held) return TARE_OK;
    k->backend->reserve(&ctx, 0);
    struct plan_input in = {.config = c,
                            .kernels = k,
                            .ranks = comm->size,
                            .hosts = 1,
                            .eval_rows = eval_rows,
                            .gradient_shards = c->dist.gradient_shards > 0 ? c->dist.gradient_shards : 1,
                            .machine = {.gpu = true, .opened = true, .memory = (double)k->backend->memory(&ctx)}};
    if (!(in.machine.memory > 0))
        FAIL(e, TARE_E_NOMEM, "run.device = %s: the device has no memory left", config_chosen(c, "run", "device"));
    in.machine.reserve = in.machine.memory / OUTSIDE;
    snprintf(in.machine.name, sizeof in.machine.name, "%.60s", k->name);
    in.shard = c->dist.shard;
    TRY(objective_read_uses(c, &in.objective, e));
    TRY(plan_shape(c, vocab, &in.shape, e));
    TRY(plan_make(&in, &p, e));
    const int64_t bytes = (comm->rank < c->rollout.prompts % comm->size ? p.first : p.last).device;
    if (!p.fits) return refuse_plan(&p, config_chosen(c, "run", "device"), e);
    if (!k->backend->reserve(&ctx, bytes))
        FAIL(e, TARE_E_NOMEM, "run.device = %s: the device has %.2f GB left but cannot allocate %.2f GB of it in one block",
             config_chosen(c, "run", "device"), 1e-9 * in.machine.memory, 1e-9 * (double)bytes);
    log_debug("a region of %.2f GB of the device's %.2f GB", 1e-9 * (double)bytes, 1e-9 * in.machine.memory);
    return TARE_OK;
}

void device_memory_watch(const struct kernels *k)
{
    static bool warned;
    const struct kctx ctx = {0};
    struct kernel_memory m;
    if (warned || !k->backend->device || !k->backend->memory_use) return;
    k->backend->memory_use(&ctx, &m);
    if (!m.region || !m.beyond_stage) return;
    warned = true;
    log_warn(
        "the device's region of %.2f GB was too small: %.1f MB were allocated outside of it, first in: %s; please report this with the output of `tare plan`",
        1e-9 * (double)m.region, 1e-6 * (double)m.beyond_most, m.beyond_stage);
}
