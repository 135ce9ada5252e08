/* A file of named byte sections: optimizer moments, counters, plugin state.
 *
 *   "tareSTA1"; the bytes of the sections, each aligned to 64; a JSON list with name, offset,
 *   size and XXH3 of each; then offset, size and XXH3 of that list and "tareEND1".
 *
 * Integers are little-endian. A truncated file lacks its end; a changed byte fails the hash of its
 * section. Writing goes straight to `path`, so write into a folder that becomes visible when it is
 * complete (checkpoint.h). Errors name path and section. Not thread-safe. */
#ifndef TARE_CORE_CHECKPOINT_STATE_H
#define TARE_CORE_CHECKPOINT_STATE_H

#include "base/err.h"

struct state_writer;
tare_status state_create(const char *path, struct state_writer **out, struct err *e);
tare_status state_write(struct state_writer *w, const char *name, const void *data, int64_t n, struct err *e);
tare_status state_write_int(struct state_writer *w, const char *name, int64_t value, struct err *e);
/* Ends and syncs the file. Always frees w. */
tare_status state_finish(struct state_writer *w, struct err *e);
/* Discards w and removes the file. No-op for NULL. */
void state_discard(struct state_writer *w);

struct state_reader;
/* Maps the file and checks its frame. The hash of a section is checked when it is read. */
tare_status state_open(const char *path, struct state_reader **out, struct err *e);
void state_close(struct state_reader *r); /* no-op for NULL */
void state_close_at(struct state_reader **r);
int64_t state_count(const struct state_reader *r);               /* number of sections */
const char *state_name(const struct state_reader *r, int64_t i); /* in file order */
int state_has(const struct state_reader *r, const char *name);
/* returns the bytes of a section; -1: it does not exist */
int64_t state_size(const struct state_reader *r, const char *name);
/* Returns a view of the section, valid until state_close. TARE_E_NOT_FOUND: no such section;
 * TARE_E_CORRUPT: it is damaged. */
tare_status state_view(const struct state_reader *r, const char *name, const void **data, int64_t *n, struct err *e);
/* Copies a section of exactly n bytes; TARE_E_SHAPE for any other size. */
tare_status state_read(const struct state_reader *r, const char *name, void *out, int64_t n, struct err *e);
tare_status state_read_int(const struct state_reader *r, const char *name, int64_t *out, struct err *e);

#endif
