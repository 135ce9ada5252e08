/* `tare config check`, also used by `tare train` before a warm start: checks plugins and their
 * parameters, paths, data, the model's configuration and prompts, without training or writing
 * anything. */
#ifndef TARE_CORE_PREFLIGHT_PREFLIGHT_H
#define TARE_CORE_PREFLIGHT_PREFLIGHT_H

#include "config/config.h"

/* Checks a settled configuration (settle/settle.h). faults: collects all errors;
 * NULL: the first error is returned. */
tare_status preflight(const struct config *c, struct faults *faults, struct err *e);
/* The quick part, for a cell of a sweep: checks the plugin parameters, and unless files and
 * verifiers were checked with another cell (met), also verifiers, paths and rows. */
tare_status preflight_cell(const struct config *c, bool met, struct err *e);
/* Logs warnings, each with the key to change: misspelt sections of plugins that are not chosen,
 * settings known to end badly, checkpoints that will not fit on the disk. */
void preflight_warn(const struct config *c);
/* Makes a missing model for training (engine/make_model.h), after checking that the training would
 * not fail after a warm start of minutes. */
tare_status preflight_make(const struct config *c, struct err *e);

#endif
