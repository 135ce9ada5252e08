/* What the system lets this process use: cores by its affinity mask (taskset, cpusets), cores and memory by its control groups (docker --cpus
 * and --memory, systemd's CPUQuota= and MemoryMax=, Slurm), of which the least along the path to the root counts. Linux, cgroup 1 and 2. */
#ifndef TARE_CORE_BASE_LIMITS_H
#define TARE_CORE_BASE_LIMITS_H

#include <stdint.h>

/* At least 1. A quota that is no whole number of cores is rounded up. */
int limits_cores(void);

struct memory_limit { /* bytes */
    int64_t most;     /* 0: no limit */
    int64_t left;     /* of it; what the system would drop from its file cache counts as left */
};
struct memory_limit limits_memory(void);

/* The same as read below another root than "/": for tests. quota: cores, 0: no limit. */
double limits_quota_at(const char *root);
struct memory_limit limits_memory_at(const char *root);

#endif
