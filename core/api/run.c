/* A training run step by step, for a caller that inspects each step. */
#include "base/fs.h"
#include "batch/table.h"
#include "dist/ranks.h"
#include "loop/resume.h"
#include "loop/train.h"
#include "preflight/preflight.h"

#include "api/internal.h"

#include <errno.h>
#include <string.h>
#include <unistd.h>

struct tare_api_run {
    struct config config;
    struct train_start start;
    struct callbacks callbacks;
    struct train *train;
    bool ended; /* its records are complete */
    pid_t pid;
};

struct tare_api_batch {
    struct run_batch memory;
    struct str metrics;
};

static tare_status check_run(const tare_api_run *run, struct err *e)
{
    return api_check(run, run ? run->pid : 0, "run", e);
}

static const void *run_extension(void *ctx, const char *id)
{
    const struct tare_api_run *run = ctx;
    return strcmp(id, CALLBACKS_ID) ? NULL : &run->callbacks;
}

/* Makes a path absolute, since the caller may change its working directory between two steps. */
static tare_status keep_path(struct config *c, const char *section, const char *key, const char *path, struct err *e)
{
    char here[FS_PATH], whole[FS_PATH];
    if (*path == '/' || !*path) return TARE_OK;
    if (!getcwd(here, sizeof here))
        FAIL(e, TARE_E_IO, "%s.%s: the working directory cannot be read: %s", section, key, strerror(errno));
    TRY(fs_join(whole, here, path, e));
    return config_set(c, section, key, whole, config_where(c, section, key), e);
}

static tare_status open_run(struct tare_api_run *run, const tare_api_run_options *o, struct err *e)
{
    int rank;
    if (!TARE_KNOWS(o, advantage) || !o->config)
        FAIL(e, TARE_E_INVALID, "incomplete run options: struct_size and config must be set");
    if (ranks_launched(&rank) > 1)
        FAIL(e, TARE_E_CONFIG,
             "a launcher (mpirun, srun) started several processes, but here a run has one: use tare train for ranks");
    TRY(config_load(&run->config, o->config, o->settings, o->n, e));
    TRY(keep_path(&run->config, "run", "dir", run->config.run.dir, e));
    if (fs_exists(run->config.model.path)) TRY(keep_path(&run->config, "model", "path", run->config.model.path, e));
    run->callbacks = (struct callbacks){o->ctx, o->reward, o->advantage};
    run->start = (struct train_start){.resume = o->resume,
                                      .allow_change = o->allow_change,
                                      .extension = run_extension,
                                      .extension_ctx = run,
                                      .make = preflight_make};
    return train_open(&run->config, &run->start, &run->train, e);
}

tare_status tare_api_run_open(const tare_api_run_options *options, tare_api_run **out, tare_api_error *error)
{
    struct err e = {0};
    struct tare_api_run *run = NULL;
    *out = NULL;
    tare_status status = mem_new((int64_t)sizeof *run, (void **)&run, &e);
    if (status) return api_finish(status, &e, error);
    run->pid = getpid();
    status = open_run(run, options, &e);
    if (status)
        tare_api_run_close(run, NULL);
    else
        *out = run;
    return api_finish(status, &e, error);
}

tare_status tare_api_run_place(const tare_api_run *run, tare_api_place *out, tare_api_error *error)
{
    struct err e = {0};
    const tare_status status = check_run(run, &e);
    if (!status) *out = (tare_api_place){run->config.run.dir, train_run_of(run->train)->step, run->config.train.steps};
    return api_finish(status, &e, error);
}

/* Completes the records, once: when all steps are done or the run is closed. */
static tare_status end_run(struct tare_api_run *run, struct err *e)
{
    if (run->ended) return TARE_OK;
    TRY(train_end(run->train, e));
    run->ended = true;
    return TARE_OK;
}

static tare_status make_step(struct tare_api_run *run, struct tare_api_batch *b, bool *made, struct err *e)
{
    bool more;
    struct run *r = train_run_of(run->train);
    const int64_t before = r->step;
    TRY(train_step(run->train, &more, e));
    *made = r->step > before;
    if (*made) {
        const struct str *line = observe_line(r->observe);
        TRY(str_add(&b->metrics, line->data, line->size, e));
        TRY(run_take_batch(r, &b->memory, e));
    }
    return more ? TARE_OK : end_run(run, e);
}

tare_status tare_api_run_step(tare_api_run *run, tare_api_batch **out, tare_api_error *error)
{
    struct err e = {0};
    struct tare_api_batch *b = NULL;
    bool made = false;
    *out = NULL;
    tare_status status = check_run(run, &e);
    if (!status && run->ended) return api_finish(TARE_OK, &e, error);
    if (!status) status = mem_new((int64_t)sizeof *b, (void **)&b, &e);
    if (!status) status = make_step(run, b, &made, &e);
    if (status || !made)
        tare_api_batch_free(b);
    else
        *out = b;
    return api_finish(status, &e, error);
}

tare_status tare_api_run_save(tare_api_run *run, tare_api_error *error)
{
    struct err e = {0};
    tare_status status = check_run(run, &e);
    if (!status && !run->ended) status = train_save(run->train, &e);
    return api_finish(status, &e, error);
}

tare_status tare_api_run_close(tare_api_run *run, tare_api_error *error)
{
    struct err e = {0};
    if (!run) return api_finish(TARE_OK, &e, error);
    tare_status status = check_run(run, &e);
    if (status) return api_finish(status, &e, error);
    if (run->train) status = end_run(run, &e);
    train_close(run->train);
    config_free(&run->config);
    mem_free(run);
    return api_finish(status, &e, error);
}

/* ---------------------------------------------------------------- a step's batch */

#define TYPE(STAGE, NAME, CTYPE, AXIS, KIND, WIDTH)                                                                                \
    _Generic((CTYPE *)0, uint8_t *                                                                                                 \
             : TARE_U8, int32_t *                                                                                              \
             : TARE_I32, int64_t *                                                                                             \
             : TARE_I64, uint64_t *                                                                                            \
             : TARE_U64, float *                                                                                               \
             : TARE_F32, double *                                                                                              \
             : TARE_F64, tare_text *                                                                                           \
             : TARE_TEXT, const char **                                                                                        \
             : TARE_API_STRING, default                                                                                            \
             : 0),
static const int32_t TYPES[BATCH_N_COLUMNS] = {BATCH_COLUMNS(TYPE)};

/* Returns a column's name in the registry, or the engine's for one that the registry does not have. */
static const char *shown_name(const char *name)
{
    static const char *const NAMES[][2] = {
        {"ids", "token"}, {"row_json", "row.json"}, {"component_verdict", "component.verdict"}, {"reason", "note"}};
    for (size_t i = 0; i < sizeof NAMES / sizeof *NAMES; i++)
        if (!strcmp(NAMES[i][0], name)) return NAMES[i][1];
    return name;
}

int64_t tare_api_batch_columns(const tare_api_batch *b, tare_api_column *out, int64_t most)
{
    const struct batch *batch = &b->memory.batch;
    int64_t n = 0;
    for (int c = 0; c < BATCH_N_COLUMNS; c++) {
        const struct batch_column *t = &BATCH_TABLE[c];
        if (!TYPES[c] || !batch_array(batch, c)) continue;
        if (n < most)
            out[n] = (tare_api_column){.name = shown_name(t->name),
                                       .data = batch_array(batch, c),
                                       .n = batch_count(batch, t->axis) + (t->kind == KIND_BEGIN),
                                       .width = batch_width(batch, c),
                                       .type = TYPES[c]};
        n++;
    }
    return n;
}

const char *tare_api_batch_metrics(const tare_api_batch *b)
{
    return b->metrics.data;
}

void tare_api_batch_free(tare_api_batch *b)
{
    if (!b) return;
    run_batch_free(&b->memory);
    str_free(&b->metrics);
    mem_free(b);
}
