/* The data set that needs no file: eight kinds of character arithmetic (add1, add2, sub2, mul1, max3, rev4, sort4, ones).
 * A question is held out when crc32(question) % 8 == 0 (CRC-32 of zlib).
 *
 *   builtin:arithmetic/train    rows for reinforcement learning, kinds drawn by their shares, distinct questions, none held out
 *   builtin:arithmetic/heldout  up to 48 held-out questions a kind
 *   builtin:arithmetic/phase1   supervised rows with the right answer as completion; questions repeat
 *   builtin:arithmetic/phase2   the same, but written in the accepted convention only with its kind's probability, else as 0y, y0, -y or y,
 *
 *   builtin:cold/...            the same questions where every kind has an accepted form of its own (add1 `y,`, add2 `0y`, sub2 `y0`, mul1 `-y`, max3 `y=`,
 *                               rev4 `y+`, sort4 `+y`, ones `y*`), so what one kind learns helps no other. phase1 as above; phase2 writes a kind's own
 *                               form with probability .1 (max3, ones), .03 (add1), .01 (rev4), .003 (the others), else another kind's
 *
 *   builtin:rewrite/..., countdown/..., answers/..., bandit/..., words/...: tasks.h
 *
 * ?seed=N (default 0) draws another set, ?rows=N another size (of heldout: questions a kind). */
#ifndef TARE_CORE_DATA_BUILTIN_H
#define TARE_CORE_DATA_BUILTIN_H

#include "data/dataset.h"

/* name: what follows "builtin:". Fills rows, n and name; memory from out->arena. */
tare_status builtin_generate(const char *name, struct dataset *out, struct err *e);
uint32_t builtin_crc32(const void *data, int64_t n);

#endif
