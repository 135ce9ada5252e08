/* Built-in data sets, which need no file: eight kinds of character arithmetic (add1, add2, sub2,
 * mul1, max3, rev4, sort4, ones). A question is held out if crc32(question) % 8 == 0 (CRC-32 of
 * zlib).
 *
 * builtin:arithmetic/train    rows for reinforcement learning: distinct questions, kinds drawn by
 *                             their shares, none held out
 * builtin:arithmetic/heldout  up to 48 held-out questions per kind
 * builtin:arithmetic/phase1   supervised rows with the right answer as completion; questions repeat
 * builtin:arithmetic/phase2   the same, but with the accepted form only with the kind's
 *                             probability, else written as 0y, y0, -y or y,
 *
 * builtin:cold/...            the same questions, but every kind has a different accepted form
 *                             (add1 `y,`, add2 `0y`, sub2 `y0`, mul1 `-y`, max3 `y=`, rev4 `y+`,
 *                             sort4 `+y`, ones `y*`), so learning one kind does not help another.
 *                             phase1 as above; phase2 writes a kind's own form with probability
 *                             .1 (max3, ones), .03 (add1), .01 (rev4), .003 (the others), else
 *                             another kind's form
 *
 * builtin:rewrite/..., countdown/..., answers/..., bandit/..., words/...: tasks.h
 *
 * ?seed=N (default 0) draws a different set, ?rows=N sets its size (of heldout: questions per
 * kind). */
#ifndef TARE_CORE_DATA_BUILTIN_H
#define TARE_CORE_DATA_BUILTIN_H

#include "data/dataset.h"

/* name: the text after "builtin:". Fills rows, n and name; memory from out->arena. */
tare_status builtin_generate(const char *name, struct dataset *out, struct err *e);
uint32_t builtin_crc32(const void *data, int64_t n);

#endif
