/* A file of named byte sections: optimizer moments, counters, plugins' state.
 *
 *   "tareSTA1", the sections' bytes (each from a multiple of 64), a JSON list of name, offset, size and XXH3 of each, and at the end
 *   offset, size and XXH3 of that list and "tareEND1". Integers are little-endian.
 *
 * A file that is cut short lacks its end; a changed byte fails its section's hash. Writing goes straight to `path`: write into a
 * folder that becomes visible when all is done (checkpoint.h). Errors name path and section. Not thread-safe.
 */
#ifndef TARE_CORE_CHECKPOINT_STATE_H
#define TARE_CORE_CHECKPOINT_STATE_H

#include "base/err.h"

struct state_writer;
tare_status state_create(const char *path, struct state_writer **out, struct err *e);
tare_status state_write(struct state_writer *w, const char *name, const void *data, int64_t n, struct err *e);
tare_status state_write_int(struct state_writer *w, const char *name, int64_t value, struct err *e);
/* Ends and syncs the file; w is gone in any case. */
tare_status state_finish(struct state_writer *w, struct err *e);
/* Gives up: removes the file. NULL: nothing. */
void state_discard(struct state_writer *w);

struct state_reader;
/* Maps the file and checks its frame; a section's hash is checked when it is read. */
tare_status state_open(const char *path, struct state_reader **out, struct err *e);
void state_close(struct state_reader *r); /* NULL: nothing */
void state_close_at(struct state_reader **r);
int64_t state_count(const struct state_reader *r);               /* sections */
const char *state_name(const struct state_reader *r, int64_t i); /* in the order of the file */
int state_has(const struct state_reader *r, const char *name);
int64_t state_size(const struct state_reader *r, const char *name); /* bytes of a section; -1: not there */
/* A view that lives until state_close. TARE_E_NOT_FOUND: no such section; TARE_E_CORRUPT: damaged. */
tare_status state_view(const struct state_reader *r, const char *name, const void **data, int64_t *n, struct err *e);
/* The section must have exactly n bytes (TARE_E_SHAPE). */
tare_status state_read(const struct state_reader *r, const char *name, void *out, int64_t n, struct err *e);
tare_status state_read_int(const struct state_reader *r, const char *name, int64_t *out, struct err *e);

#endif
