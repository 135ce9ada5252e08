/* Files named by a value such as data.train: one, several separated by commas, or patterns such as
 * data/part-?.jsonl, either all with a weight ("a.jsonl:0.7 b.jsonl:0.3") or none. */
#ifndef TARE_CORE_DATA_FILES_H
#define TARE_CORE_DATA_FILES_H

#include "base/arena.h"

struct files {
    const char **path;
    int32_t *source; /* [n] index of its list entry */
    int64_t n;
    double *weight; /* [n_sources] finite and positive; NULL: no weights */
    int64_t n_sources;
};

/* Memory from the arena. TARE_E_CONFIG: the list is empty or a weight is invalid; TARE_E_NOT_FOUND:
 * a pattern matches no file. */
tare_status files_of(const char *list, struct arena *a, struct files *out, struct err *e);

#endif
