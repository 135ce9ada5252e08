#include "caches.h"

#include <pthread.h>
#include <stddef.h>
#include <unistd.h>
#if defined(__x86_64__)
#include <cpuid.h>
#endif

static struct caches found, pretended;
static int pretending;
static pthread_once_t once = PTHREAD_ONCE_INIT;

#if defined(__x86_64__)
/* Read leaf 4 (Intel) or 0x8000001d (AMD): one subleaf per cache, up to type 0. Types 1 (data) and
 * 3 (unified) count; the sharing field counts logical processors. */
static void find_by_cpuid(unsigned leaf, struct caches *c)
{
    for (unsigned i = 0; i < 16; i++) {
        unsigned a, b, sets, d;
        if (!__get_cpuid_count(leaf, i, &a, &b, &sets, &d) || !(a & 31)) return;
        if ((a & 31) == 2) continue;
        const int64_t bytes = (int64_t)((b >> 22) + 1) * ((b >> 12 & 0x3ff) + 1) * ((b & 0xfff) + 1) * ((int64_t)sets + 1);
        const unsigned level = a >> 5 & 7, sharing = (a >> 14 & 0xfff) + 1, threads = sharing > 2 ? sharing / 2 : 1;
        if (level == 1) c->first = bytes; /* the two logical processors of a core run one thread */
        if (level == 2) c->second = bytes / threads;
    }
}
#endif

static void find_caches(void)
{
#if defined(__x86_64__)
    unsigned a, b, features, d;
    if (__get_cpuid(0x80000001u, &a, &b, &features, &d) && features >> 22 & 1) find_by_cpuid(0x8000001du, &found);
    if (!found.second) find_by_cpuid(4, &found);
#endif
#ifdef _SC_LEVEL2_CACHE_SIZE
    if (found.first <= 0) found.first = sysconf(_SC_LEVEL1_DCACHE_SIZE);
    if (found.second <= 0) found.second = sysconf(_SC_LEVEL2_CACHE_SIZE);
#endif
    if (found.first <= 0) found.first = 32 << 10;
    if (found.second <= 0) found.second = 512 << 10;
}

struct caches caches_of_this_machine(void)
{
    if (pretending) return pretended;
    pthread_once(&once, find_caches);
    return found;
}

void caches_pretend(const struct caches *instead)
{
    pretending = instead != NULL;
    if (instead) pretended = *instead;
}
