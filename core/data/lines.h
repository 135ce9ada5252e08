/* The lines of a data file. Internal to core/data. */
#ifndef TARE_CORE_DATA_LINES_H
#define TARE_CORE_DATA_LINES_H

#include "base/fs.h"

#include <tare/plugin.h>

struct lines { /* iterates over the non-empty lines of a text */
    const char *p, *end;
    int64_t number; /* of the line returned last */
};
struct lines lines_begin(const struct str *text);
/* False: no line is left. Trailing blanks are not part of a line. */
bool lines_next(struct lines *l, tare_text *out);
/* Refuses a file that is a single list: most of its lines look like rows with a comma at the end. */
tare_status lines_refuse_list(const char *path, const struct str *text, struct err *e);
void lines_where(char where[FS_PATH], const char *path, int64_t line);
/* Continues a hash with a text; a missing one differs from an empty one. */
uint64_t lines_hash_text(uint64_t h, tare_text t);

#endif
