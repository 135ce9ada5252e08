/* A batch as bytes, for a rank that runs the same build: the columns of some stages, with their texts; LOCAL columns stay at home.
 *
 *   header | for each column of the table: whether it is there, its entries (texts: sizes, then NUL-ended bytes), padded to 8 bytes
 *
 * The size is a multiple of 64, so packs in a row stay aligned. Not a file format: nothing of it is kept. */
#ifndef TARE_CORE_BATCH_PACK_H
#define TARE_CORE_BATCH_PACK_H

#include "base/str.h"
#include "batch/batch.h"

/* Appended to out. */
tare_status batch_pack(const struct batch *b, unsigned stages, struct str *out, struct err *e);
/* A view: numbers and texts stay where they lie in bytes, which are aligned to 8 and live as long as out. Refuses bytes that
 * are cut short, changed, or of a build with other columns (TARE_E_CORRUPT), whatever they hold. */
tare_status batch_unpack(void *bytes, int64_t n, struct arena *a, struct batch *out, struct err *e);

#endif
