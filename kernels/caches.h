/* The caches that a core of this machine may count on, in bytes: what blocks of products are cut by (cpu/gemm_blocked.c). Results do not depend on it. */
#ifndef TARE_KERNELS_CACHES_H
#define TARE_KERNELS_CACHES_H

#include <stdint.h>

struct caches {
    int64_t first, second; /* of data; a core's part where several share one */
};

struct caches caches_of_this_machine(void); /* by cpuid, else by the system, else 32 KiB and 512 KiB */
void caches_pretend(
    const struct caches *instead); /* for tests and for trying: from now on these; NULL: the machine's. Not while products run */

#endif
