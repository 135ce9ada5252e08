/* The files that a value such as data.train names: one, several with commas between them, or patterns such as data/part-?.jsonl, each with
 * a weight ("a.jsonl:0.7 b.jsonl:0.3") or none of them. */
#ifndef TARE_CORE_DATA_FILES_H
#define TARE_CORE_DATA_FILES_H

#include "base/arena.h"

struct files {
    const char **path;
    int32_t *source; /* [n] which entry of the list it belongs to */
    int64_t n;
    double *weight; /* [n_sources] finite and above 0; NULL: none has one */
    int64_t n_sources;
};

/* Memory from the arena. TARE_E_CONFIG: it names no file, or its weights cannot be; TARE_E_NOT_FOUND: a pattern without a file. */
tare_status files_of(const char *list, struct arena *a, struct files *out, struct err *e);

#endif
