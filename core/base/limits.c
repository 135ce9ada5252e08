#define _GNU_SOURCE
#include "base/limits.h"

#include <limits.h>
#include <math.h>
#include <sched.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

enum { WORD = 64 };

/* cgroup 1 writes "no limit" of memory as the largest whole number of pages. */
static const double NO_LIMIT = 1e18;

/* Read the first word of a file. */
static bool read_word(const char *folder, const char *name, char word[WORD])
{
    char path[PATH_MAX];
    if (snprintf(path, sizeof path, "%s/%s", folder, name) >= (int)sizeof path) return false;
    FILE *f = fopen(path, "re");
    if (!f) return false;
    const bool there = fscanf(f, "%63s", word) == 1;
    fclose(f);
    return there;
}

/* Read a number. NAN if the file is missing or does not hold a number ("max"). */
static double read_number(const char *folder, const char *name)
{
    char word[WORD];
    double x;
    return read_word(folder, name, word) && sscanf(word, "%lf", &x) == 1 ? x : NAN;
}

/* Read VALUE from the line "KEY VALUE" of a file; 0 if missing. */
static double read_line(const char *folder, const char *name, const char *key)
{
    char path[PATH_MAX], word[WORD];
    double value = 0, x;
    if (snprintf(path, sizeof path, "%s/%s", folder, name) >= (int)sizeof path) return 0;
    FILE *f = fopen(path, "re");
    if (!f) return 0;
    while (fscanf(f, "%63s %lf", word, &x) == 2)
        if (!strcmp(word, key)) value = x;
    fclose(f);
    return value;
}

/* ---------------------------------------------------------------- one control group */

static double cores_of(const char *group)
{
    char path[PATH_MAX];
    double quota = NAN, period = NAN;
    snprintf(path, sizeof path, "%s/cpu.max", group);
    FILE *f = fopen(path, "re");
    if (f) {
        if (fscanf(f, "%lf %lf", &quota, &period) != 2) quota = NAN; /* "max 100000" */
        fclose(f);
    } else {
        quota = read_number(group, "cpu.cfs_quota_us"); /* -1: no quota */
        period = read_number(group, "cpu.cfs_period_us");
    }
    return quota > 0 && period > 0 ? quota / period : NAN;
}

static double memory_of(const char *group, double *left)
{
    const bool second = !isnan(read_number(group, "memory.current"));
    const double most = read_number(group, second ? "memory.max" : "memory.limit_in_bytes");
    const double used = read_number(group, second ? "memory.current" : "memory.usage_in_bytes");
    const double cache = read_line(group, "memory.stat", second ? "inactive_file" : "total_inactive_file");
    if (!(most < NO_LIMIT)) return NAN;
    *left = fmax(0, most - fmax(0, (isnan(used) ? 0 : used) - cache));
    return most;
}

/* ---------------------------------------------------------------- from the process's group to the
 * root */

/* Path of the process's group: of `controller` in cgroup 1, or of cgroup 2 (controller ""). */
static bool own_path(const char *root, const char *controller, char path[PATH_MAX])
{
    char file[PATH_MAX], line[PATH_MAX];
    bool found = false;
    snprintf(file, sizeof file, "%s/proc/self/cgroup", root);
    FILE *f = fopen(file, "re");
    if (!f) return false;
    while (!found && fgets(line, sizeof line, f)) {
        char *names = strchr(line, ':'), *at = names ? strchr(++names, ':') : NULL;
        if (!at) continue;
        *at++ = 0;
        at[strcspn(at, "\n")] = 0;
        char *rest = NULL;
        found = !*controller && !*names;
        for (char *name = strtok_r(names, ",", &rest); name && !found; name = strtok_r(NULL, ",", &rest))
            found = !strcmp(name, controller);
        if (found) snprintf(path, PATH_MAX, "%s", strcmp(at, "/") ? at : "");
    }
    fclose(f);
    return found;
}

/* Call visit for the group and every group above it. In a container the path may be the host's and
 * be outside the mounted hierarchy; then only the root is visited. */
static void each_group(const char *root, const char *controller, void (*visit)(const char *group, void *ctx), void *ctx)
{
    static const char *const TOPS[] = {"/sys/fs/cgroup", "/sys/fs/cgroup/unified"};
    char path[PATH_MAX], group[2 * PATH_MAX];
    for (int second = 0; second < 2; second++) {
        if (!own_path(root, second ? "" : controller, path)) continue;
        for (;;) {
            for (int t = 0; t < 1 + second; t++) {
                snprintf(group, sizeof group, "%s%s%s%s%s", root, TOPS[t], second ? "" : "/", second ? "" : controller, path);
                visit(group, ctx);
            }
            char *last = strrchr(path, '/');
            if (!last) break;
            *last = 0;
        }
    }
}

static void least_cores(const char *group, void *ctx)
{
    double *least = ctx;
    *least = fmin(*least, cores_of(group));
}

double limits_quota_at(const char *root)
{
    double least = INFINITY;
    each_group(root, "cpu", least_cores, &least);
    return isinf(least) ? 0 : least;
}

static void least_memory(const char *group, void *ctx)
{
    struct memory_limit *least = ctx;
    double left = 0;
    const double most = memory_of(group, &left);
    if (isnan(most)) return;
    if (!least->most || (int64_t)left < least->left) least->left = (int64_t)left;
    if (!least->most || (int64_t)most < least->most) least->most = (int64_t)most;
}

struct memory_limit limits_memory_at(const char *root)
{
    struct memory_limit least = {0};
    each_group(root, "memory", least_memory, &least);
    return least;
}

struct memory_limit limits_memory(void)
{
    return limits_memory_at("");
}

int limits_cores(void)
{
    cpu_set_t set;
    const int mask = sched_getaffinity(0, sizeof set, &set) ? (int)sysconf(_SC_NPROCESSORS_ONLN) : CPU_COUNT(&set);
    const double quota = limits_quota_at("");
    const int most = mask > 0 ? mask : 1;
    return quota > 0 && ceil(quota) < most ? (int)ceil(quota) : most;
}
