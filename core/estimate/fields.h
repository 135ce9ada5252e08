/* Reads fields of the data set's rows as numbers, for an estimator with wants named "row.KEY". */
#ifndef TARE_CORE_ESTIMATE_FIELDS_H
#define TARE_CORE_ESTIMATE_FIELDS_H

#include "plugin/plugin.h"

/* Returns KEY if want w is a field of the row that is turned on, else NULL. */
const char *fields_key(const struct plugin_instance *i, uint32_t w);

/* Reads one row, the text of a JSON object: a number as it is, true and false as 1 and 0, a field
 * that is missing or null as NaN. Any other value is refused. where: prefix of messages,
 * "file:line". out: [n_wants], NaN for the wants that are not fields. */
tare_status fields_numbers(const struct plugin_instance *i, tare_text row, const char *where, double *out, struct err *e);

#endif
