#include "base/fault.h"

#include "base/log.h"

#include <pthread.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

struct fault {
    int rank;       /* -1: every rank */
    char stage[32]; /* "": every stage */
    int64_t step;   /* -1: every step */
    int64_t count;
    char kind[8];
    double after;
};

static tare_status known_kind(const char *kind, struct err *e)
{
    static const char *const KINDS[] = {"kill", "hang", "fail", "nan", "exit", "stop", "freeze", "flip"};
    for (size_t i = 0; i < sizeof KINDS / sizeof *KINDS; i++)
        if (!strcmp(kind, KINDS[i])) return TARE_OK;
    FAIL(e, TARE_E_INVALID, "TARE_FAULT: kind = '%s': must be kill, hang, fail, nan, exit, stop, freeze or flip", kind);
}

static tare_status read_fault(const char *text, struct fault *f, struct err *e)
{
    char copy[200], *rest = copy;
    *f = (struct fault){.rank = -1, .step = -1, .count = 1};
    if (snprintf(copy, sizeof copy, "%s", text) >= (int)sizeof copy) FAIL(e, TARE_E_INVALID, "TARE_FAULT: longer than 199 bytes");
    for (char *item; (item = strtok_r(rest, ",", &rest));) {
        char *value = strchr(item, '=');
        if (!value) FAIL(e, TARE_E_INVALID, "TARE_FAULT: '%s' is not key=value", item);
        *value++ = 0;
        if (!strcmp(item, "rank"))
            f->rank = atoi(value);
        else if (!strcmp(item, "step"))
            f->step = atoll(value);
        else if (!strcmp(item, "count"))
            f->count = atoll(value);
        else if (!strcmp(item, "after"))
            f->after = atof(value);
        else if (!strcmp(item, "stage"))
            snprintf(f->stage, sizeof f->stage, "%s", value);
        else if (!strcmp(item, "kind"))
            snprintf(f->kind, sizeof f->kind, "%s", value);
        else
            FAIL(e, TARE_E_INVALID, "TARE_FAULT: unknown key '%s'; use rank, stage, step, count, kind or after", item);
    }
    return known_kind(f->kind, e);
}

static void sleep_for(double seconds)
{
    struct timespec t = {(time_t)seconds, (long)((seconds - (double)(time_t)seconds) * 1e9)};
    nanosleep(&t, NULL);
}

static void end_process(const struct fault *f)
{
    if (!strcmp(f->kind, "kill")) kill(getpid(), SIGKILL);
    _exit(0);
}

static void *end_process_later(void *arg)
{
    struct fault f = *(struct fault *)arg;
    free(arg);
    sleep_for(f.after);
    end_process(&f);
    return NULL;
}

static tare_status end_process_after(const struct fault *f, struct err *e)
{
    struct fault *copy = malloc(sizeof *copy);
    pthread_t thread;
    if (copy) *copy = *f;
    if (!copy || pthread_create(&thread, NULL, end_process_later, copy)) {
        free(copy);
        FAIL(e, TARE_E_NOMEM, "no memory or thread for TARE_FAULT");
    }
    pthread_detach(thread);
    return TARE_OK;
}

static tare_status trigger_fault(int rank, const struct fault *f, struct err *e)
{
    if (!strcmp(f->kind, "fail")) FAIL(e, TARE_E_GENERIC, "simulated failure (TARE_FAULT)");
    if (!strcmp(f->kind, "nan")) FAIL(e, TARE_E_NOT_FINITE, "simulated number that is not finite (TARE_FAULT)");
    if (!strcmp(f->kind, "stop")) {
        raise(SIGINT); /* the signal handler has run when this returns */
        return TARE_OK;
    }
    if (!strcmp(f->kind, "freeze")) {
        kill(getpid(), SIGSTOP);
        return TARE_OK;
    }
    if (!strcmp(f->kind, "hang")) {
        log_debug("rank %d hangs (TARE_FAULT)", rank);
        for (;;) sleep_for(3600);
    }
    if (f->after > 0) return end_process_after(f, e);
    end_process(f);
    return TARE_OK;
}

/* Check whether a configured fault applies to this point, either of kind flip or of another
 * kind. */
struct point {
    int rank;
    const char *stage;
    int64_t step;
    bool flip;
};
static tare_status fault_applies(struct point p, struct fault *f, bool *here, struct err *e)
{
    static _Atomic int64_t passes;
    const char *text = getenv("TARE_FAULT");
    *here = false;
    if (!text || !*text) return TARE_OK;
    TRY(read_fault(text, f, e));
    if (p.flip != !strcmp(f->kind, "flip")) return TARE_OK;
    if ((f->rank >= 0 && f->rank != p.rank) || (f->stage[0] && strcmp(f->stage, p.stage)) || (f->step >= 0 && f->step != p.step))
        return TARE_OK;
    *here = f->count <= 1 || atomic_fetch_add(&passes, 1) + 1 == f->count;
    return TARE_OK;
}

tare_status fault_point(int rank, const char *stage, int64_t step, struct err *e)
{
    struct fault f;
    bool here;
    TRY(fault_applies((struct point){rank, stage, step, false}, &f, &here, e));
    return here ? trigger_fault(rank, &f, e) : TARE_OK;
}

tare_status fault_flips(int rank, const char *stage, int64_t step, bool *flips, struct err *e)
{
    struct fault f;
    return fault_applies((struct point){rank, stage, step, true}, &f, flips, e);
}
