/* An estimator's view of a batch: the columns that it wants. */
#ifndef TARE_CORE_ESTIMATE_VIEW_H
#define TARE_CORE_ESTIMATE_VIEW_H

#include "batch/batch.h"
#include "plugin/plugin.h"

/* Makes the view of a batch. names: of the reward components [C];
 * NULL: unknown. The column updated_logprob is absent until view_updated. Errors name a wanted
 * column that the batch lacks, and a reward that is not finite. */
tare_status estimate_view(const struct plugin_instance *i, const struct batch *b, const tare_text *names, struct arena *a,
                          tare_batch *out, struct err *e);
/* Copies a view's columns [n_wants] and adds updated_logprob [T]; NULL: none. */
tare_status view_updated(const struct plugin_instance *i, const tare_batch *view, const float *logprob, tare_column *column,
                         struct err *e);

#endif
