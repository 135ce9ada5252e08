#include "lab/variance/adam.h"

#include "base/fs.h"
#include "checkpoint/training.h"
#include "model/shards.h"

#include <math.h>

static tare_status read_steps(void *ctx, const struct state_reader *s, const char *folder, int64_t *ranks, struct err *e)
{
    struct engine *g = ctx;
    TRY(training_saved_ranks(s, folder, ranks, e));
    return state_read_int(s, "optimizer_steps", &g->trainer->optimizer_steps, e);
}

static tare_status read_optimizer(struct engine *g, const char *folder, struct err *e)
{
    char path[FS_PATH];
    const struct training t = {.model = g->model, .trainer = g->trainer};
    const struct saved_state state = {.ctx = g, .read = read_steps};
    TRY(fs_join(path, folder, "training.state", e));
    if (!fs_exists(path))
        FAIL(e, TARE_E_CONFIG,
             "--metric adam: %s is not a checkpoint of a run and has no moments; name a run, or RUN@STEP, with --from", folder);
    TRY(training_saved_read(folder, &t, &state, e));
    if (g->trainer->optimizer_steps < 1)
        FAIL(e, TARE_E_CONFIG, "--metric adam: %s has no optimizer steps yet; use a later checkpoint", folder);
    return TARE_OK;
}

/* One process keeps moments and gradients in the same order, unit by unit. */
tare_status adam_factors(struct engine *g, const char *folder, float **out, struct err *e)
{
    const struct model *m = g->model;
    const int64_t bytes = m->n_own * (int64_t)sizeof(float);
    OWNED(mem_free_at) void *host = NULL;
    *out = NULL;
    TRY(read_optimizer(g, folder, e));
    const struct train_config *c = g->trainer->train;
    const double correct = 1 - pow(c->beta2, (double)g->trainer->optimizer_steps);
    TRY(model_host_alloc(m, bytes, &host, e));
    TRY(mem_new(bytes, (void **)out, e));
    const float *v = model_from_backend(m, host, g->trainer->moment2, bytes);
    TRY(model_finish(m, e));
    for (int64_t j = 0; j < m->n_own; j++) (*out)[j] = (float)(1 / sqrt(sqrt((double)v[j] / correct) + c->eps));
    return TARE_OK;
}
