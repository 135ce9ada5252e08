/* Products in bf16 by tiles of 16 x 16 sums, as AMX multiplies them (TDPBF16PS). Everything else is another table's.
 *
 * The chain. The inner index runs in blocks of 32. In a block the even k are a chain of their own from 0, and the odd ones are another; then
 *   acc = acc + (even + odd)
 * for block 0, 1, 2 ... from 0. What is missing of the last block counts as 0 x 0. Terms are fma(x, w, sum), each with one rounding; the instruction
 * takes denormals for zero, which sums of ordinary size do not show. kernels_ref_tiles defines the same in plain C, and on CPUs without AMX it is
 * computed with AVX-512 or AVX2, so a run's bits do not depend on the CPU. They are others than those of the other tables, whose chains take k one
 * after the other, so it is the user who chooses this table.
 */
#ifndef TARE_KERNELS_TILES_TILES_H
#define TARE_KERNELS_TILES_TILES_H

#include "kernels.h"

/* Makes the table. others: whose operations it takes for all that is no product in bf16; the same at every call. */
void kernels_tiles_amx(const struct kernels *others, struct kernels *out);
void kernels_tiles_avx512(const struct kernels *others, struct kernels *out);
void kernels_tiles_avx2(const struct kernels *others, struct kernels *out);
/* 1: this processor and this system let the process use AMX, and its sums are those above. */
int kernels_tiles_amx_check(void);

#endif
