/* Checks whether a training may be resumed with this configuration. */
#include "base/fs.h"
#include "base/log.h"
#include "config/kinds.h"

#include <stdio.h>
#include <string.h>

struct changes {
    const struct config_resume *how;
    bool adapters; /* the run trains adapters, before or after the change */
    bool longer;   /* a changed number of steps is refused because of the learning rate */
    const struct config *before, *after;
    struct str refused, fixed, changed;
};

/* Keys that supervised training does not read, in addition to those of plugins. A word without a
 * dot stands for the sections that start with it. */
static const char *const NOT_SUPERVISED[] = {"relift",       "process_reward",      "train.steps",         "train.minibatch",
                                             "train.epochs", "train.max_rollbacks", "dist.gradient_shards"};

static bool is_key(const struct config_difference *d, const char *section, const char *key)
{
    return !strcmp(d->section, section) && !strcmp(d->key, key);
}

static tare_status add_difference(struct str *list, const struct config_difference *d, struct err *e)
{
    return str_addf(list, e, "%s%s.%s (%s -> %s)", list->size ? ", " : "", d->section, d->key, d->before, d->after);
}

/* The learning rate of a step depends on the total number of steps, unless it is constant and its
 * warmup is absent or has a fixed length. */
static bool has_length(const struct train_config *c)
{
    return c->schedule != SCHEDULE_CONSTANT || (!c->warmup_steps && c->warmup_ratio > 0);
}

static bool rate_has_length(struct changes *c)
{
    return c->longer = has_length(&c->before->train) || has_length(&c->after->train);
}

static bool changes_supervised(struct changes *c, const struct config_difference *d)
{
    if (is_key(d, "sft", "steps")) return rate_has_length(c);
    if (is_key(d, "sft", "epochs")) return (!c->before->sft.steps || !c->after->sft.steps) && rate_has_length(c);
    /* the objective is part of the loss, even though supervised training has its own */
    const int32_t kind = config_kind_of_section(d->section);
    if (kind && kind != TARE_KIND_OBJECTIVE) return false;
    for (size_t i = 0; i < sizeof NOT_SUPERVISED / sizeof *NOT_SUPERVISED; i++) {
        const char *name = NOT_SUPERVISED[i], *dot = strchr(name, '.');
        if (!dot && !strncmp(d->section, name, strlen(name))) return false;
        if (dot && !strncmp(d->section, name, (size_t)(dot - name)) && !d->section[dot - name] && !strcmp(d->key, dot + 1))
            return false;
    }
    return d->changes_training;
}

static bool changes_training(struct changes *c, const struct config_difference *d)
{
    if (c->how->supervised) return changes_supervised(c, d);
    return is_key(d, "train", "steps") ? rate_has_length(c) : d->changes_training;
}

/* Values stored in the checkpoints of a supervised training, which refuse changes themselves
 * (checkpoint/training.h, training_saved_expect). */
static bool in_checkpoint(const struct config_difference *d)
{
    return is_key(d, "run", "seed") || is_key(d, "sft", "batch") || is_key(d, "sft", "train_on_prompt");
}

/* The rows are compared later, when they are read. */
static const char *change_note(const struct config_difference *d, bool changes)
{
    if (changes) return "";
    return is_key(d, "data", "train") ? " (allowed if it holds the same rows)" : " (allowed)";
}

static tare_status take_difference(void *ctx, const struct config_difference *d, struct err *e)
{
    struct changes *c = ctx;
    if (is_key(d, "run", "dir") || (c->how->supervised && (is_key(d, "sft", "out") || in_checkpoint(d)))) return TARE_OK;
    const bool changes = changes_training(c, d);
    if (changes && !c->how->allow_change) return add_difference(&c->refused, d, e);
    if (c->adapters && !strcmp(d->section, "lora")) return add_difference(&c->fixed, d, e);
    return str_addf(&c->changed, e, "%s%s.%s: %s -> %s%s", c->changed.size ? "; " : "", d->section, d->key, d->before, d->after,
                    change_note(d, changes));
}

static tare_status report_changes(const struct changes *c, struct err *e)
{
    const struct config_resume *how = c->how;
    char longer[200] = "";
    if (c->longer)
        snprintf(
            longer, sizeof longer,
            " (the learning rate falls, or warms up, over %s.steps: with --allow-change the remaining steps have that of a run of the new length)",
            how->supervised ? "sft" : "train");
    if (c->refused.size)
        FAIL(e, TARE_E_CONFIG, "%s: --resume with these values would be another training: %.1500s%s; %s", how->run, c->refused.data,
             longer, how->advice);
    if (c->fixed.size)
        FAIL(
            e, TARE_E_CONFIG,
            "%s: a run cannot be resumed with %.1500s: its checkpoints hold the weights and the optimizer of the former values; start another run with %s=FOLDER",
            how->run, c->fixed.data, how->supervised ? "sft.out" : "run.dir");
    if (c->changed.size) log_info("%s continues with another configuration: %.1500s", how->run, c->changed.data);
    return TARE_OK;
}

tare_status config_check_resume(const struct config_resume *how, const struct config *now, struct err *e)
{
    char path[FS_PATH];
    OWNED(config_free) struct config before = {0};
    struct changes changes = {.how = how, .before = &before, .after = now};
    TRY(fs_join(path, how->run, "config.ini", e));
    if (!fs_exists(path)) {
        if (how->allow_change) return TARE_OK;
        FAIL(e, TARE_E_CONFIG, "%s is missing, so the resumed configuration cannot be compared; put it back, or add --allow-change",
             path);
    }
    tare_status status = config_load_before(&before, path, now, e);
    if (status && how->allow_change) return TARE_OK;
    if (status)
        return err_prefix(
            e,
            "the run's configuration cannot be read, so the resumed one cannot be compared (--allow-change continues without it)");
    changes.adapters = before.lora.rank || now->lora.rank;
    status = config_compare(&before, now, take_difference, &changes, e);
    if (!status) status = report_changes(&changes, e);
    str_free(&changes.refused);
    str_free(&changes.fixed);
    str_free(&changes.changed);
    return status;
}
