/* Find the checkpoint to measure, and the memory that measuring needs. */
#include "lab/variance/draw.h"

#include "checkpoint/checkpoint.h"
#include "checkpoint/state.h"
#include "lab/variance/sketch.h"
#include "observe/manifest.h"
#include "observe/run_data.h"
#include "plan/plan.h"
#include "settle/settle.h"
#include "update/objective.h"

#include <string.h>

/* Parse RUN@STEP, where RUN is a run's folder. */
static tare_status at_step(const char *given, char *folder, bool *found, struct err *e)
{
    char run[FS_PATH];
    const char *sign = strrchr(given, '@');
    int64_t step;
    *found = false;
    if (!sign || fs_is_dir(given) || sign - given >= FS_PATH) return TARE_OK;
    snprintf(run, sizeof run, "%.*s", (int)(sign - given), given);
    if (str_to_int(sign + 1, &step, NULL) || step < 0) FAIL(e, TARE_E_CONFIG, "--from %s: invalid step after the @", given);
    TRY(run_folder_check(run, e));
    TRY(checkpoint_path(run, step, folder, e));
    if (!fs_is_dir(folder))
        FAIL(e, TARE_E_NOT_FOUND, "--from %s: %s has no checkpoint of step %lld; train with checkpoint.every and checkpoint.keep=0",
             given, run, (long long)step);
    *found = true;
    return TARE_OK;
}

static tare_status read_state(struct checkpoint_at *c, const char *path, struct err *e)
{
    OWNED(state_close_at) struct state_reader *r = NULL;
    const void *data;
    int64_t n;
    TRY(state_open(path, &r, e));
    if (state_has(r, "step")) TRY(state_read_int(r, "step", &c->step, e));
    if (state_has(r, "estimator")) {
        TRY(state_view(r, "estimator", &data, &n, e));
        TRY(str_add(&c->estimator, data, n, e));
    }
    return TARE_OK;
}

tare_status variance_find_checkpoint(const char *given, struct checkpoint_at *out, struct err *e)
{
    char path[FS_PATH];
    bool found;
    int64_t step;
    *out = (struct checkpoint_at){.given = given};
    TRY(at_step(given, out->folder, &found, e));
    if (!found) TRY(settle_model(given, out->folder, e));
    TRY(fs_join(path, out->folder, "complete.json", e));
    if (fs_exists(path)) TRY(checkpoint_verify(out->folder, &step, e));
    TRY(fs_join(path, out->folder, "config.json", e));
    if (!fs_exists(path))
        FAIL(e, TARE_E_NOT_FOUND, "%s: missing model (%s); name the folder of a model, a run, or RUN@STEP", given, path);
    TRY(fs_join(path, out->folder, "training.state", e));
    return fs_exists(path) ? read_state(out, path, e) : TARE_OK;
}

void variance_close_checkpoint(struct checkpoint_at *c)
{
    str_free(&c->estimator);
}

/* Return the bytes of sums by prompt, products of prompts, and the batch of each measuring
 * thread. */
static int64_t work_bytes(const struct variance_options *o, int64_t width, int64_t threads)
{
    const int64_t prompts = o->prompts, number = (int64_t)sizeof(double);
    const int64_t target = 2 * (prompts + 1) * width * number + prompts * prompts * number;
    return target + threads * (2 * prompts * width + 2 * prompts * prompts) * number + o->bootstrap * prompts * number;
}

tare_status variance_need(const struct config *c, const struct variance_options *o, struct variance_need *out, struct err *e)
{
    struct plan_input in = {.config = c, .ranks = 1, .hosts = 1, .gradient_shards = 1, .eval_rows = -1};
    struct plan p;
    struct machine here;
    *out = (struct variance_need){.rollouts = o->prompts * o->rollouts};
    TRY(objective_read_uses(c, &in.objective, e));
    TRY(plan_shape(c, 0, &in.shape, e));
    TRY(plan_make(&in, &p, e));
    manifest_machine(&here);
    const int64_t width = o->width ? o->width : p.trained;
    out->params = p.trained;
    out->memory = here.memory;
    for (int k = 0; k < PLAN_CLASSES; k++)
        if (k != PLAN_REFERENCE) out->model += p.first.bytes[k];
    /* the factors, and a scaled gradient */
    if (o->adam) out->model += 2 * p.trained * (int64_t)sizeof(float);
    out->vectors = out->rollouts * width * (int64_t)sizeof(float);
    out->table = sketch_bytes(p.trained, o->width);
    out->work = work_bytes(o, width, c->run.threads ? c->run.threads : here.usable_cores);
    out->total = out->model + out->vectors + out->table + out->work;
    return TARE_OK;
}
