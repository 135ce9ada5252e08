/* Curricula: plugins that choose the next rows, the number of rollouts for each, and the rollouts
 * of a finished group that are kept (sdk/include/tare/curriculum.h).
 *
 *   TRY(curriculum_open(&options, &c, e));
 *   each step:        TRY(curriculum_begin(c, step, arena, e));
 *   each collection:  TRY(curriculum_next(c, &draw, rows, rollouts, e));
 *   ...sample and verify...
 *                     TRY(curriculum_keep(c, batch, e));
 *   at its end:       TRY(curriculum_apply(c, e));
 *
 * Every rank calls it with the whole batch, so every rank has the same state. Until apply nothing
 * changes except the fields that begin resets, so an interrupted step can be forgotten. Not
 * thread-safe. */
#ifndef TARE_CORE_CURRICULUM_CURRICULUM_H
#define TARE_CORE_CURRICULUM_CURRICULUM_H

#include "batch/batch.h"
#include "data/dataset.h"
#include "plugin/plugin.h"

struct curriculum;

struct curriculum_options {
    const char *plugin;                  /* name or file */
    const struct plugin_search *search;  /* or NULL */
    const struct config_param *settings; /* config.params, or NULL */
    const struct dataset *rows;          /* live as long as the curriculum */
    int64_t prompts, group_size;         /* of [rollout] */
    struct plugin_env env;
};

/* Errors: those of plugin_open; weights in data.train that the plugin does not read; a field
 * of a row that is no number and that the plugin reads as one ("row.KEY"). */
tare_status curriculum_open(const struct curriculum_options *o, struct curriculum **out, struct err *e);
void curriculum_free(struct curriculum *c); /* no-op for NULL */
const struct plugin *curriculum_plugin(const struct curriculum *c);
const struct plugin_instance *curriculum_instance(const struct curriculum *c);

/* Begins a step. The arena lives until apply returns. A step that begins again (after a rollback)
 * forgets the rows of its first attempt. */
tare_status curriculum_begin(struct curriculum *c, int64_t step, struct arena *arena, struct err *e);
struct curriculum_draw {
    int64_t n, cursor;
    const int64_t *ordered; /* [n] the next rows of the plain order */
};
/* row [n]; rollouts [n]. */
tare_status curriculum_next(struct curriculum *c, const struct curriculum_draw *d, int64_t *row, int64_t *rollouts, struct err *e);
/* Sets b->fate of the groups with verdicts. It stays NULL where all rollouts are kept. */
tare_status curriculum_keep(struct curriculum *c, struct batch *b, struct err *e);
/* Returns the number of groups that the last keep wants sampled in addition. */
int64_t curriculum_extra_groups(const struct curriculum *c);
/* Applies the step: the only change of state. */
tare_status curriculum_apply(struct curriculum *c, struct err *e);

/* Save and load the plugin's state, framed (plugin.h). */
tare_status curriculum_save(const struct curriculum *c, struct str *out, struct err *e);
tare_status curriculum_load(struct curriculum *c, const void *data, int64_t n, const char *where, struct err *e);

#endif
