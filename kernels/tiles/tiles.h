/* Products in bf16 by tiles of 16 x 16 sums, as AMX multiplies them (TDPBF16PS). All other
 * operations are another table's.
 *
 * The chain. The inner index runs in blocks of 32. In a block the even k form a chain that starts
 * at 0, and the odd k form another; then
 *   acc = acc + (even + odd)
 * for blocks 0, 1, 2, ..., starting at 0. Missing terms of the last block count as 0 x 0. Terms are
 * fma(x, w, sum), each with one rounding. The instruction treats denormals as zero, which does not
 * affect sums of ordinary magnitude. kernels_ref_amx defines the same chain in plain C, and CPUs
 * without AMX compute it with AVX-512, AVX2 or NEON, so a run's results do not depend on the CPU. They
 * differ from those of the other tables, whose chains take k one after the other, so the user must
 * select this table explicitly. */
#ifndef TARE_KERNELS_TILES_TILES_H
#define TARE_KERNELS_TILES_TILES_H

#include "kernels.h"

/* Make the table. others: the table that provides all operations except products in bf16; it must
 * be the same at every call. */
void kernels_tiles_amx(const struct kernels *others, struct kernels *out);
void kernels_tiles_avx512(const struct kernels *others, struct kernels *out);
void kernels_tiles_avx2(const struct kernels *others, struct kernels *out);
void kernels_tiles_neon(const struct kernels *others, struct kernels *out);
/* 1: this processor and this system let the process use AMX, and its sums match the definition
 * above. */
int kernels_tiles_amx_check(void);

#endif
