/* The caches that one core of this machine can use, in bytes. Blocks of products are sized by them (cpu/gemm_blocked.c); no result depends
 * on them. */
#ifndef TARE_KERNELS_CACHES_H
#define TARE_KERNELS_CACHES_H

#include <stdint.h>

struct caches {
    int64_t first, second; /* of data; a core's part where several share one */
};

struct caches caches_of_this_machine(void); /* by cpuid, else by the system, else 32 KiB and 512 KiB */
/* For tests, which show that no block size changes a bit: these from now on; NULL: the machine's. Not while products run. */
void caches_pretend(const struct caches *instead);

#endif
