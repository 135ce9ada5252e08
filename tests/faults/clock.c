/* Preloaded into tare (LD_PRELOAD): makes the time of day jump.
 *
 * TARE_CLOCK=SEED: every 50th call that asks for the time of day, in any thread, moves it by the
 * next amount drawn by the seed: seconds, an hour back (the end of summer time, if a machine's
 * clock has local time), days or years, forwards or backwards. TARE_CLOCK_AT=UNIX: the start
 * time. Clocks that count from the machine's start do not jump, as on a real machine.
 *
 * TARE_CLOCK_NAPS=FILE, instead: usleep and nanosleep return at once, and at the end FILE has
 * the sum of the requested milliseconds, so that a wait of ten seconds is tested in none. */
#define _GNU_SOURCE
#include "next.h"

#include <errno.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/time.h>
#include <time.h>
#include <unistd.h>

#pragma GCC visibility push(default) /* hidden functions do not replace those of the C library */
enum { EVERY = 50 };
static atomic_int on;
static atomic_long calls, shift;
static atomic_ullong state;

DECLARE(clock_gettime);
__attribute__((constructor)) static void begin(void)
{
    const char *seed = getenv("TARE_CLOCK"), *at = getenv("TARE_CLOCK_AT");
    struct timespec now;
    if (!seed || strcmp(program_invocation_short_name, "tare")) return;
    atomic_store(&state, strtoull(seed, NULL, 10) * 2654435761u + 1);
    NEXT(clock_gettime)(CLOCK_REALTIME, &now);
    if (at) atomic_store(&shift, strtol(at, NULL, 10) - now.tv_sec);
    atomic_store(&on, 1);
}

static long moved(void)
{
    static const long JUMPS[] = {-3600, 3600, -1, 1, -30, 30, -86400, 86400, -31536000, 31536000, 0};
    if (!atomic_load(&on)) return 0;
    if (atomic_fetch_add(&calls, 1) % EVERY == EVERY - 1) {
        unsigned long long x = atomic_load(&state);
        x ^= x << 13;
        x ^= x >> 7;
        x ^= x << 17;
        atomic_store(&state, x);
        atomic_fetch_add(&shift, JUMPS[x % (sizeof JUMPS / sizeof *JUMPS)]);
    }
    return atomic_load(&shift);
}

int clock_gettime(clockid_t clock, struct timespec *out)
{
    const int failed = NEXT(clock_gettime)(clock, out);
    if (!failed && (clock == CLOCK_REALTIME || clock == CLOCK_REALTIME_COARSE)) out->tv_sec += moved();
    return failed;
}

time_t time(time_t *out)
{
    struct timespec now;
    if (NEXT(clock_gettime)(CLOCK_REALTIME, &now)) return -1;
    now.tv_sec += moved();
    if (out) *out = now.tv_sec;
    return now.tv_sec;
}

int gettimeofday(struct timeval *restrict out, void *restrict zone)
{
    struct timespec now;
    (void)zone;
    if (NEXT(clock_gettime)(CLOCK_REALTIME, &now)) return -1;
    out->tv_sec = now.tv_sec + moved();
    out->tv_usec = now.tv_nsec / 1000;
    return 0;
}

/* ---- sleeping */

static atomic_llong napped; /* nanoseconds */

static const char *naps(void)
{
    return strcmp(program_invocation_short_name, "tare") ? NULL : getenv("TARE_CLOCK_NAPS");
}

DECLARE(nanosleep);
int nanosleep(const struct timespec *t, struct timespec *rest)
{
    if (!naps()) return NEXT(nanosleep)(t, rest);
    atomic_fetch_add(&napped, t->tv_sec * 1000000000LL + t->tv_nsec);
    return 0;
}

int usleep(useconds_t us)
{
    return nanosleep(&(struct timespec){us / 1000000, us % 1000000 * 1000L}, NULL);
}

__attribute__((destructor)) static void end(void)
{
    FILE *f = naps() ? fopen(naps(), "w") : NULL;
    if (!f) return;
    fprintf(f, "%lld\n", atomic_load(&napped) / 1000000);
    fclose(f);
}
