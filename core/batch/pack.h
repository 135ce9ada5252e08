/* A batch as bytes, for a rank that runs the same build: the columns of some stages, with their
 * texts; LOCAL columns are not packed.
 *
 *   header | for each column of the table: presence, entries padded to 8 bytes
 *            (texts: sizes, then NUL-ended bytes)
 *
 * The size is a multiple of 64, so consecutive packs stay aligned. Not a file format: it is never
 * stored. */
#ifndef TARE_CORE_BATCH_PACK_H
#define TARE_CORE_BATCH_PACK_H

#include "base/str.h"
#include "batch/batch.h"

/* Appends the packed batch to out. */
tare_status batch_pack(const struct batch *b, unsigned stages, struct str *out, struct err *e);
/* Unpacks as a view: numbers and texts stay in bytes, which are aligned to 8 and must outlive out.
 * Refuses bytes that are truncated, changed, or of a build with other columns (TARE_E_CORRUPT), for
 * any input. */
tare_status batch_unpack(void *bytes, int64_t n, struct arena *a, struct batch *out, struct err *e);

#endif
