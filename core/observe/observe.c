#include "observe/observe.h"

#include "base/fault.h"
#include "base/fs.h"
#include "base/log.h"
#include "config/ini_file.h"
#include "observe/export.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

struct observe {
    char dir[FS_PATH];
    int lock;
    bool rollouts;
    int64_t synced, last; /* last step whose dumps are synced; last recorded step */
    struct metrics *metrics;
    struct chain *chain;
    struct progress *progress;
    struct exporter *exporter; /* NULL: none */
};

/* ---- The history of config.ini: a resumed run with a changed configuration keeps the former
 * values as comments at the top. */

static const char HISTORY[] = "# after step ";

struct history {
    struct str *out;
    int64_t step;
    char when[40];
};

static tare_status add_change(void *ctx, const struct config_difference *d, struct err *e)
{
    const struct history *h = ctx;
    if (!strcmp(d->section, "run") && !strcmp(d->key, "dir")) return TARE_OK;
    TRY(str_addf(h->out, e, "%s%lld (%s): %s.%s: ", HISTORY, (long long)h->step, h->when, d->section, d->key));
    TRY(ini_quote(h->out, d->before, e));
    TRY(str_add(h->out, " -> ", -1, e));
    TRY(ini_quote(h->out, d->after, e));
    return str_add(h->out, "\n", 1, e);
}

/* Copies the history of the old file, then adds the current changes. */
static tare_status add_history(const char *path, const struct config *c, int64_t step, struct str *out, struct err *e)
{
    struct str old = {0};
    struct config before;
    struct history h = {.out = out, .step = step > 0 ? step : 0};
    const time_t now = time(NULL);
    struct tm t;
    tare_status status = fs_read_all(path, &old, e);
    if (old.size)
        for (char *rest = old.data, *line; !status && (line = strtok_r(rest, "\n", &rest));)
            if (!strncmp(line, HISTORY, strlen(HISTORY))) status = str_addf(out, e, "%s\n", line);
    str_free(&old);
    TRY(status);
    gmtime_r(&now, &t);
    strftime(h.when, sizeof h.when, "%Y-%m-%dT%H:%M:%SZ", &t);
    status = config_load_before(&before, path, c, e);
    /* the file itself may be valid */
    if (status == TARE_E_NOMEM || status == TARE_E_IO) return status;
    if (status) return str_addf(out, e, "%s%lld (%s): the file could not be read\n", HISTORY, (long long)h.step, h.when);
    status = config_compare(&before, c, add_change, &h, e);
    config_free(&before);
    return status;
}

/* Prints the configuration with the folder that its paths count from. */
static tare_status dump_with_folder(const struct config *c, struct str *out, struct err *e)
{
    char here[FS_PATH];
    struct config recorded = *c;
    if (!*c->run.paths_from) {
        if (!getcwd(here, sizeof here)) FAIL(e, TARE_E_IO, "the working folder: %s", strerror(errno));
        recorded.run.paths_from = here;
    }
    return config_dump(&recorded, out, e);
}

/* Prints the text of config.ini. before: the file that it continues from `step`, or NULL. */
static tare_status config_text(const struct config *c, const char *before, int64_t step, struct str *text, struct err *e)
{
    OWNED(str_free) struct str history = {0}, out = {0};
    if (before) TRY(add_history(before, c, step, &history, e));
    if (history.size)
        TRY(str_addf(text, e,
                     "# Changed when the run was resumed. Up to the named step, the value before the arrow was used:\n%s\n",
                     history.data));
    TRY(dump_with_folder(c, &out, e));
    return str_add(text, out.data, out.size, e);
}

tare_status observe_config(const char *path, const struct config *c, const char *before, int64_t step, struct err *e)
{
    OWNED(str_free) struct str text = {0};
    TRY(config_text(c, before, step, &text, e));
    return fs_write_atomic(path, text.data, text.size, e);
}

/* Files that describe the run: written before the first step, and again when the run is resumed. */
struct description {
    const char *dir;
    int64_t step; /* the step resumed from */
    char config_path[FS_PATH], manifest_path[FS_PATH];
    /* settings: the configuration without its history */
    struct str config, manifest, lock, settings;
};

static tare_status describe_run(struct description *d, const struct config *c, const struct manifest *m, bool resume, struct err *e)
{
    TRY(fs_join(d->config_path, d->dir, "config.ini", e));
    TRY(fs_join(d->manifest_path, d->dir, "manifest.json", e));
    TRY(config_text(c, resume && fs_exists(d->config_path) ? d->config_path : NULL, d->step, &d->config, e));
    TRY(config_dump(c, &d->settings, e));
    TRY(run_lock_text(&d->lock, e));
    return manifest_continue(d->dir, m, resume, d->step, &d->manifest, e);
}

/* The link is written first: if the process is killed later, the chain ends with a link that
 * describes the files about to be written (lab/replay/sums.c). */
static tare_status begin_records(struct observe *o, const struct description *d, const struct metrics_options *metrics,
                                 struct err *e)
{
    const struct chain_text texts[] = {{"config.ini", &d->config}, {"manifest.json", &d->manifest}, {"lock", &d->lock}};
    TRY(fault_point(0, "opening", 0, e));
    TRY(chain_open(o->dir, &(struct chain_start){d->step, CHAIN_PROCESS, texts, 3}, &o->chain, e));
    TRY(fault_point(0, "opening", 1, e));
    TRY(run_lock_sign(o->lock, o->dir, e));
    TRY(fs_write_atomic(d->config_path, d->config.data, d->config.size, e));
    TRY(fault_point(0, "opening", 2, e));
    TRY(fs_write_atomic(d->manifest_path, d->manifest.data, d->manifest.size, e));
    TRY(fault_point(0, "opening", 3, e));
    TRY(rollouts_cut(o->dir, d->step, e));
    TRY(fault_point(0, "opening", 4, e));
    TRY(metrics_open(metrics, &o->metrics, e));
    TRY(fault_point(0, "opening", 5, e));
    return chain_settle(o->chain, e);
}

static tare_status open_records(struct observe *o, const struct config *c, const struct manifest *m, bool resume, int64_t step,
                                struct err *e)
{
    struct description d = {.dir = o->dir, .step = step};
    tare_status status = describe_run(&d, c, m, resume, e);
    const struct metrics_options metrics = {.dir = o->dir,
                                            .name = c->run.name,
                                            .config = d.settings.data,
                                            .manifest = d.manifest.data,
                                            .tensorboard = c->log.tensorboard,
                                            .database = c->log.database,
                                            .keep = step};
    if (!status) status = begin_records(o, &d, &metrics, e);
    str_free(&d.config);
    str_free(&d.manifest);
    str_free(&d.lock);
    str_free(&d.settings);
    return status;
}

tare_status observe_open(const struct config *c, const struct manifest *m, bool resume, int64_t step, struct observe **out,
                         struct err *e)
{
    *out = NULL;
    struct observe *o = calloc(1, sizeof *o);
    if (!o) FAIL(e, TARE_E_NOMEM, "%s: out of memory", c->run.dir);
    o->lock = -1;
    o->rollouts = c->log.rollouts;
    o->synced = o->last = step;
    tare_status status = fs_join(o->dir, "", c->run.dir, e);
    if (!status) status = run_lock_hold(o->dir, &o->lock, e);
    /* Check again: another process may have used the folder since the first check. */
    if (!status) status = run_lock_check(o->dir, resume, e);
    if (!status) status = open_records(o, c, m, resume, step, e);
    if (!status) status = progress_new(c->log.progress, "step", step > 0 ? step : 0, c->train.steps, &o->progress, e);
    if (status) {
        observe_close(o, "failed", NULL);
        return status;
    }
    o->exporter = exporter_start(c->log.export, o->dir);
    *out = o;
    return TARE_OK;
}

void observe_set(struct observe *o, const char *name, double value)
{
    if (o) metrics_set(o->metrics, name, value);
}

tare_status observe_state(struct observe *o, int64_t step, const struct str *state, struct err *e)
{
    return o ? rollouts_write_state(o->dir, step, state, o->chain, e) : TARE_OK;
}

tare_status observe_step(struct observe *o, int64_t step, const struct batch *b, struct err *e)
{
    if (!o) return TARE_OK;
    const struct progress_values v = {.reward = metrics_get(o->metrics, "reward/mean"),
                                      .length = metrics_get(o->metrics, "response_length/mean"),
                                      .entropy = metrics_get(o->metrics, "policy/entropy"),
                                      .signal = metrics_get(o->metrics, "estimator/effective_signal_ratio"),
                                      .advantage = metrics_get(o->metrics, "estimator/nonzero_advantage_ratio"),
                                      .tokens_per_second = metrics_get(o->metrics, "tokens_per_second")};
    if (b && o->rollouts) TRY(rollouts_write(o->dir, step, b, o->chain, e));
    TRY(metrics_step(o->metrics, step, e));
    const struct str *line = metrics_line(o->metrics);
    TRY(chain_cover(o->chain, "metrics.jsonl", line->data, line->size, e));
    TRY(chain_step(o->chain, step, e));
    o->last = step;
    progress_step(o->progress, step, &v);
    exporter_look(o->exporter);
    return TARE_OK;
}

const struct str *observe_line(const struct observe *o)
{
    return o ? metrics_line(o->metrics) : NULL;
}

tare_status observe_sync(struct observe *o, struct err *e)
{
    if (!o) return TARE_OK;
    TRY(rollouts_sync(o->dir, o->synced + 1, o->last, e));
    o->synced = o->last;
    TRY(metrics_sync(o->metrics, e));
    return chain_sync(o->chain, e);
}

tare_status observe_checkpoint(struct observe *o, int64_t step, struct err *e)
{
    return o ? chain_checkpoint(o->chain, step, e) : TARE_OK;
}

tare_status observe_rollback(struct observe *o, const struct manifest_rollback *b, struct err *e)
{
    char path[FS_PATH];
    OWNED(str_free) struct str text = {0};
    if (!o) return TARE_OK;
    TRY(fs_join(path, o->dir, "manifest.json", e));
    TRY(manifest_add_rollback(o->dir, b, &text, e));
    TRY(chain_rollback(o->chain, b->step - 1, text.data, text.size, e));
    return fs_write_atomic(path, text.data, text.size, e);
}

tare_status observe_close(struct observe *o, const char *status, struct err *e)
{
    if (!o) return TARE_OK;
    progress_free(o->progress);
    tare_status result = metrics_close(o->metrics, status, e);
    if (!result && o->chain && strcmp(status, "failed")) result = chain_end(o->chain, o->last > 0 ? o->last : 0, e);
    if (!result && o->chain) result = chain_sync(o->chain, e);
    chain_close(o->chain);
    run_lock_release(o->lock);
    exporter_close(o->exporter, o->last > 0 ? o->last : 0);
    free(o);
    return result;
}
