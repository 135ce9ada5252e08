/* Curricula: which rows come next, how many rollouts each, and what of a finished group is kept, as a plugin
 * (sdk/include/tare/curriculum.h).
 *
 *   TRY(curriculum_open(&options, &c, e));
 *   each step:        TRY(curriculum_begin(c, step, arena, e));
 *   each collection:  TRY(curriculum_next(c, &draw, rows, rollouts, e));   ...sampled, judged...   TRY(curriculum_keep(c, batch, e));
 *   at its end:       TRY(curriculum_apply(c, e));
 *
 * Every rank calls it with the whole batch, so every rank has the same state. Until apply nothing changes but what begin resets: a step
 * that is interrupted can be forgotten. Not thread-safe. */
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

/* Errors: what plugin_open says; needs that this program does not know; weights in data.train that the plugin does not read. */
tare_status curriculum_open(const struct curriculum_options *o, struct curriculum **out, struct err *e);
void curriculum_free(struct curriculum *c); /* NULL: nothing */
const struct plugin *curriculum_plugin(const struct curriculum *c);

/* The arena lives until apply returns. A step that is begun again (after a rollback) passes over the rows that it had. */
tare_status curriculum_begin(struct curriculum *c, int64_t step, struct arena *arena, struct err *e);
struct curriculum_draw {
    int64_t n, cursor;
    const int64_t *ordered; /* [n] of the plain order */
};
/* row [n]; rollouts [n]. */
tare_status curriculum_next(struct curriculum *c, const struct curriculum_draw *d, int64_t *row, int64_t *rollouts, struct err *e);
/* Judged groups: b->fate, which stays NULL where all is kept. */
tare_status curriculum_keep(struct curriculum *c, struct batch *b, struct err *e);
/* How many groups the last keep wants sampled in addition. */
int64_t curriculum_replaces(const struct curriculum *c);
/* The only change of state. */
tare_status curriculum_apply(struct curriculum *c, struct err *e);

/* The plugin's state, framed (plugin.h). */
tare_status curriculum_save(const struct curriculum *c, struct str *out, struct err *e);
tare_status curriculum_load(struct curriculum *c, const void *data, int64_t n, const char *where, struct err *e);

#endif
