/* `tare config check`, and what `tare train` looks at before a warm start: plugins and their parameters, paths, data, the model's
 * configuration and prompts, as far as they can be known without training or writing anything. */
#ifndef TARE_CORE_PREFLIGHT_PREFLIGHT_H
#define TARE_CORE_PREFLIGHT_PREFLIGHT_H

#include "config/config.h"

/* c is settled (settle/settle.h), as far as it could be. faults NULL: the first error is returned; else each one is told. */
tare_status preflight(const struct config *c, struct faults *faults, struct err *e);
/* Its part that is quick, for a cell of a sweep: the plugins' parameters, and unless files and verifiers were met with another cell: the verifiers,
 * the paths, the rows. */
tare_status preflight_cell(const struct config *c, bool met, struct err *e);
/* Warnings, each with the key to change: sections of plugins that are not chosen and misspelt, settings that are known to end badly, checkpoints
 * that will not fit the disk. */
void preflight_warn(const struct config *c);
/* The way to make a missing model (engine/make_model.h) for training: what a warm start of minutes would end in is found before it. */
tare_status preflight_make(const struct config *c, struct err *e);

#endif
