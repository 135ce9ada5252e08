/* Limits that the system sets for this process: cores by affinity mask (taskset, cpusets), cores
 * and memory by control groups (docker --cpus and --memory, systemd's CPUQuota= and MemoryMax=,
 * Slurm). The smallest limit on the path to the root applies. Linux, cgroup 1 and 2. */
#ifndef TARE_CORE_BASE_LIMITS_H
#define TARE_CORE_BASE_LIMITS_H

#include <stdint.h>

/* Number of usable cores, at least 1. A fractional quota is rounded up. */
int limits_cores(void);

struct memory_limit { /* bytes */
    int64_t most;     /* 0: no limit */
    /* bytes still available; file cache that the system would drop counts as available */
    int64_t left;
};
struct memory_limit limits_memory(void);

/* Variants that read below another root than "/", for tests. quota is in cores; 0: no limit. */
double limits_quota_at(const char *root);
struct memory_limit limits_memory_at(const char *root);

#endif
