/* Reads fields of the data set's rows as numbers, for an estimator that asks for them
 * (tare_estimator.columns). */
#ifndef TARE_CORE_ESTIMATE_COLUMNS_H
#define TARE_CORE_ESTIMATE_COLUMNS_H

#include "batch/batch.h"
#include "plugin/plugin.h"

enum { COLUMNS_MOST = 64 };

struct columns {
    const char *const *name; /* the plugin's own texts; they live as long as the instance */
    int64_t n;
};

/* Asks the instance for its names. Refused: more than COLUMNS_MOST names, an empty one, a
 * duplicate. */
tare_status columns_open(const struct plugin_instance *i, struct columns *out, struct err *e);

/* Reads one row, the text of a JSON object: a number as it is, true and false as 1 and 0, a field
 * that is missing or null as NaN. Any other value is refused. where: prefix of messages,
 * "file:line". out: [n]. */
tare_status columns_read(const struct columns *c, tare_text row, const char *where, double *out, struct err *e);

/* Reads every group of a batch that has its rows. out: [n_groups, n], in the arena. */
tare_status columns_of(const struct columns *c, const struct batch *b, struct arena *a, const double **out, struct err *e);

#endif
