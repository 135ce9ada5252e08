/* Before a run is resumed: is its configuration the one it was started with, and what would be lost if no checkpoint can be used? */
#include "base/log.h"
#include "checkpoint/checkpoint.h"
#include "loop/run.h"
#include "observe/run_data.h"

#include <stdio.h>
#include <string.h>

struct changes {
    bool allowed;
    bool adapters; /* the run trains some, or is to */
    bool longer;   /* another train.steps is refused, for the learning rate */
    const struct config *before, *after;
    struct str refused, fixed, told;
};

static tare_status add(struct str *list, const struct config_difference *d, struct err *e)
{
    return str_addf(list, e, "%s%s.%s (%s -> %s)", list->size ? ", " : "", d->section, d->key, d->before, d->after);
}

/* The learning rate of a step depends on the number of all steps, unless it is constant with a warmup that is none or has its own length. */
static bool has_length(const struct train_config *c)
{
    return c->schedule != SCHEDULE_CONSTANT || (!c->warmup_steps && c->warmup_ratio > 0);
}

static bool changes_training(struct changes *c, const struct config_difference *d)
{
    if (strcmp(d->section, "train") != 0 || strcmp(d->key, "steps") != 0) return d->changes_training;
    return c->longer = has_length(&c->before->train) || has_length(&c->after->train);
}

/* The rows are compared later, when they are read. */
static bool is_data_train(const struct config_difference *d)
{
    return !strcmp(d->section, "data") && !strcmp(d->key, "train");
}

static tare_status take(void *ctx, const struct config_difference *d, struct err *e)
{
    struct changes *c = ctx;
    if (!strcmp(d->section, "run") && !strcmp(d->key, "dir")) return TARE_OK;
    if (!strcmp(d->key, "date") && !strcmp(d->before, "(empty)")) return TARE_OK; /* a run from before the key was recorded */
    const bool changes = changes_training(c, d);
    if (changes && !c->allowed) return add(&c->refused, d, e);
    if (c->adapters && !strcmp(d->section, "lora")) return add(&c->fixed, d, e);
    return str_addf(&c->told, e, "%s%s.%s: %s -> %s%s", c->told.size ? "; " : "", d->section, d->key, d->before, d->after,
                    changes            ? ""
                    : is_data_train(d) ? " (allowed where it holds the same rows)"
                                       : " (allowed)");
}

tare_status resume_check(const struct config *c, bool allow_change, struct err *e)
{
    char path[FS_PATH];
    struct config before;
    struct changes changes = {.allowed = allow_change, .before = &before, .after = c};
    TRY(fs_join(path, c->run.dir, "config.ini", e));
    if (!fs_exists(path)) {
        if (allow_change) return TARE_OK;
        FAIL(e, TARE_E_CONFIG,
             "%s is not there, so it cannot be told whether the run continues as it began; put it back, or add --allow-change",
             path);
    }
    tare_status status = config_load(&before, path, NULL, 0, e);
    if (status && allow_change) return TARE_OK;
    if (status)
        return err_prefix(e, "the run's configuration cannot be read, so it cannot be told whether it continues as it began "
                             "(--allow-change continues without it)");
    changes.adapters = before.lora.rank || c->lora.rank;
    status = config_compare(&before, c, take, &changes, e);
    if (!status && changes.refused.size)
        status =
            err_set(e, TARE_E_CONFIG, __FILE__, __LINE__,
                    "%s: --resume with these values would be another training: %.1500s%s; `tare train %s --resume` keeps those "
                    "the run has, --allow-change takes the new ones from here on",
                    c->run.dir, changes.refused.data,
                    changes.longer ? " (the learning rate falls, or warms up, over train.steps: with --allow-change the steps "
                                     "to come have that of a run of the new length)"
                                   : "",
                    c->run.dir);
    else if (!status && changes.fixed.size)
        status =
            err_set(e, TARE_E_CONFIG, __FILE__, __LINE__,
                    "%s: a run cannot go on with %.1500s: its checkpoints hold the weights and the optimizer of the other ones; "
                    "start another run with run.dir=FOLDER",
                    c->run.dir, changes.fixed.data);
    else if (!status && changes.told.size)
        log_info("%s continues with another configuration: %.1500s", c->run.dir, changes.told.data);
    str_free(&changes.refused);
    str_free(&changes.fixed);
    str_free(&changes.told);
    config_free(&before);
    return status;
}

tare_status resume_lost(const char *run_dir, struct err *e)
{
    int64_t checkpoints, step = 0;
    TRY(checkpoint_count(run_dir, &checkpoints, e));
    if (!checkpoints) {
        log_info("%s has no checkpoint yet: starting from the beginning", run_dir);
        return TARE_OK;
    }
    TRY(run_last_step(run_dir, &step, e));
    FAIL(e, TARE_E_CORRUPT,
         "%s: none of its %lld checkpoints can be used (the warnings above say why). Starting over would delete them and the "
         "metrics and "
         "rollouts of %lld steps, so nothing was touched; put the damaged files back, or start another run with run.dir=FOLDER",
         run_dir, (long long)checkpoints, (long long)(step > 0 ? step : 0));
}
