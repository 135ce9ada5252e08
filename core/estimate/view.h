/* An estimator's view of a batch: the columns that it declares it needs. */
#ifndef TARE_CORE_ESTIMATE_VIEW_H
#define TARE_CORE_ESTIMATE_VIEW_H

#include "estimate/columns.h"

/* Makes the view: the columns that every estimator sees, those that p needs, and the fields of rows
 * that it asked for; other members are NULL. Errors name a needed column that the batch lacks, and
 * a reward that is not finite. */
tare_status estimate_view(const struct plugin *p, const struct columns *c, const struct batch *b, struct arena *a, tare_batch *out,
                          struct err *e);
/* Refuses needs of a plugin that this program does not know. */
tare_status estimate_check_needs(const struct plugin *p, struct err *e);

#endif
