/* Sizes in bytes of the caches that one core of this machine can use. Blocks of products are sized
 * by them (cpu/gemm_blocked.c); no result depends on them. */
#ifndef TARE_KERNELS_CACHES_H
#define TARE_KERNELS_CACHES_H

#include <stdint.h>

struct caches {
    /* data caches of level 1 and 2; a core's share if several cores share one */
    int64_t first, second;
};

/* from cpuid, otherwise from the system, otherwise 32 KiB and 512 KiB */
struct caches caches_of_this_machine(void);
/* Override the sizes, for tests that show that no block size changes a result; NULL: the machine's.
 * Must not be called while products run. */
void caches_pretend(const struct caches *instead);

#endif
