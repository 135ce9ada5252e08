#ifndef TARE_CORE_DATA_ROW_NUMBER_H
#define TARE_CORE_DATA_ROW_NUMBER_H

#include "base/err.h"

/* Reads fields of a row, the text of a JSON object, as numbers ("row.KEY" of plugin/columns.h): a
 * number as it is, true and false as 1 and 0, a field that is missing or null as NaN. Any other
 * value is refused. keys: [n]; reader: the kind of plugin, for messages; where: their prefix,
 * "file:line". out: [n]. */
struct row_keys {
    const char *const *key;
    int64_t n;
    const char *reader;
};
tare_status row_numbers(const struct row_keys *keys, tare_text row, const char *where, double *out, struct err *e);

#endif
