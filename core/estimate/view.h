/* What an estimator sees of a batch: the columns that it declares it needs. */
#ifndef TARE_CORE_ESTIMATE_VIEW_H
#define TARE_CORE_ESTIMATE_VIEW_H

#include "estimate/columns.h"

/* Columns that every estimator sees, those that p needs, and the fields of rows that it asked for; what it did not ask for is NULL. A column
 * that it needs and the batch lacks is refused by name, and so is a reward that is not finite. */
tare_status estimate_view(const struct plugin *p, const struct columns *c, const struct batch *b, struct arena *a, tare_batch *out,
                          struct err *e);
/* Needs of a plugin that this program does not know are refused. */
tare_status estimate_check_needs(const struct plugin *p, struct err *e);

#endif
