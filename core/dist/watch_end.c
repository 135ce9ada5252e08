#include "dist/watch_end.h"

#include "base/clock.h"
#include "base/log.h"
#include "base/signals.h"
#include "dist/launch.h"

#include <poll.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

/* Seconds that rank 0 waits for other ranks' errors or deaths after one that may be their
 * consequence. */
#define COLLECT 0.25
/* Seconds that a rank without rank 0 waits for the launcher to end it, in case rank 0 has reported
 * already. */
#define GRACE 2.0

static const char *continued_by = "--resume continues from the last checkpoint";

void watch_continue_by(const char *how)
{
    continued_by = how;
}

/* ---- messages */

static void describe_place(const struct packet *p, char *text, size_t capacity)
{
    if (p->stage[0])
        snprintf(text, capacity, "%s of step %lld", p->stage, (long long)p->step);
    else
        snprintf(text, capacity, "the start");
}

static void name_rank(int rank, const struct packet *p, char *text, size_t capacity)
{
    snprintf(text, capacity, "rank %d (host %s, process %d)", rank, p->host[0] ? p->host : "?", (int)p->pid);
}

static void set_failure(struct err *e, int rank, const struct packet *p, const char *format, const char *detail)
{
    char who[128], at[64], what[500];
    name_rank(rank, p, who, sizeof who);
    describe_place(p, at, sizeof at);
    snprintf(what, sizeof what, "%s%s", format, detail);
    err_set(e, TARE_E_COMM, __FILE__, __LINE__, "%s failed in %s: %s; the job ends on all ranks, %s", who, at, what, continued_by);
}

static void set_silence(struct err *e, int rank, const struct packet *p)
{
    char detail[100];
    snprintf(detail, sizeof detail, "nothing has been heard from it for %d s (is its host up? was it stopped?)", WATCH_SILENCE);
    set_failure(e, rank, p, detail, "");
}

void watch_hub_is_missing(char *text, size_t capacity)
{
    snprintf(
        text, capacity,
        "it has heard nothing from rank 0 for %d s (is the network between their hosts up in both directions? was rank 0 stopped?); the job ends on all ranks, %s",
        WATCH_SILENCE, continued_by);
}

/* ---- ending the job */

/* On rank 0: reports to the user and to all ranks, gives them a moment, and exits. */
static void end_job(struct watch *w, const struct err *e) __attribute__((noreturn));
static void end_job(struct watch *w, const struct err *e)
{
    struct packet end = {.magic = PACKET_MAGIC, .kind = PACKET_END, .code = err_exit_code(e->code)};
    log_error(e);
    launch_reported();
    pthread_mutex_lock(&w->lock);
    for (int r = 1; r < w->size; r++)
        if (!w->peers[r].gone && w->peers[r].connection.fd >= 0) watch_net_send(w->peers[r].connection.fd, &end);
    pthread_mutex_unlock(&w->lock);
    const double until = clock_seconds() + 1.5;
    for (int r = 1; r < w->size; r++)
        while (!w->peers[r].gone && !w->peers[r].silent && w->peers[r].connection.fd >= 0 && clock_seconds() < until) {
            struct pollfd p = {.fd = w->peers[r].connection.fd, .events = POLLIN};
            poll(&p, 1, 50);
            int got;
            while ((got = watch_net_receive(&w->peers[r].connection)) > 0) {
            }
            w->peers[r].gone = got < 0;
        }
    _exit(end.code);
}

/* On another rank: rank 0 has gone without a report (why NULL: it is silent). Rank 1 reports for
 * all. */
static void end_without_hub(struct watch *w, const char *why) __attribute__((noreturn));
static void end_without_hub(struct watch *w, const char *why)
{
    struct err e = {0};
    if (why)
        set_failure(&e, 0, &w->peers[0].state, why, "");
    else
        set_silence(&e, 0, &w->peers[0].state);
    if (w->rank == 1) log_error(&e);
    launch_reported();
    _exit(1);
}

void watch_end_lost(struct watch *w, int r)
{
    static const char GONE[] = "its process has died (killed, crashed, or out of memory)";
    struct err e = {0};
    if (w->rank) end_without_hub(w, GONE);
    set_failure(&e, r, &w->peers[r].state, GONE, "");
    end_job(w, &e);
}

void watch_end_crashed(struct watch *w, int r, int signal_number)
{
    struct err e = {0};
    set_failure(&e, r, &w->peers[r].state, "it crashed with ", strsignal(signal_number));
    end_job(w, &e);
}

/* ---- decisions of rank 0 */

/* Chooses among the errors that ranks reported: the lowest rank's, preferring one that is not a
 * consequence of another rank's end. An error that all ranks share is not attributed to one
 * rank. */
static void end_with_errors(struct watch *w) __attribute__((noreturn));
static void end_with_errors(struct watch *w)
{
    int best = -1, same = 0;
    for (int r = 0; r < w->size; r++) {
        const struct peer *p = &w->peers[r];
        if (!p->failed) continue;
        const bool echo = p->error.code == TARE_E_COMM, best_echo = best >= 0 && w->peers[best].error.code == TARE_E_COMM;
        if (best < 0 || (best_echo && !echo)) best = r;
    }
    struct err e = w->peers[best].error;
    for (int r = 0; r < w->size; r++) same += w->peers[r].failed && !strcmp(w->peers[r].error.message, e.message);
    if (same < w->size && strncmp(e.message, "rank ", 5)) {
        char who[128], at[64], stage[64];
        const struct packet *p = &w->peers[best].state;
        name_rank(best, p, who, sizeof who);
        describe_place(p, at, sizeof at);
        const int n = snprintf(stage, sizeof stage, "step %lld, %s: ", (long long)p->step, p->stage);
        /* already printed */
        if (!strncmp(e.message, stage, (size_t)n)) memmove(e.message, e.message + n, strlen(e.message + n) + 1);
        if (p->stage[0])
            err_prefix(&e, "%s failed in %s", who, at);
        else
            err_prefix(&e, "%s failed", who);
    }
    end_job(w, &e);
}

static void list_ranks(const struct watch *w, int64_t below, char *text, size_t capacity)
{
    size_t at = 0;
    text[0] = 0;
    for (int r = 0; r < w->size && at + 12 < capacity; r++) {
        const struct packet *p = &w->peers[r].state;
        if (p->calls < below) at += (size_t)snprintf(text + at, capacity - at, "%s%d", at ? ", " : "", r);
    }
}

/* Finds the rank at fault if a rank waits for longer than allowed: one that has not entered that
 * collective. */
static void check_timeouts(struct watch *w)
{
    const struct packet *waits = NULL, *late = NULL;
    double shortest = 1e30; /* of the times in this collective */
    int who = -1;
    if (w->timeout_s <= 0) return;
    for (int r = 0; r < w->size; r++) {
        const struct packet *p = &w->peers[r].state;
        const double since = p->since + clock_seconds() - w->peers[r].heard;
        if (since < shortest) shortest = since;
        if (p->inside && since > w->timeout_s && (!waits || p->calls > waits->calls)) waits = p;
        if (!late || p->calls < late->calls || (p->calls == late->calls && late->inside && !p->inside)) {
            late = p;
            who = r;
        }
    }
    if (!waits) return;
    /* Before the first stage a rank may be busy alone (a warm start, a codebook), but not while the
     * others are in a collective of the GPUs, or after it has entered the same one. */
    if (!late->stage[0] && late->calls < waits->calls && strncmp(waits->what, WATCH_NCCL, sizeof WATCH_NCCL - 1) != 0) return;
    /* the last rank has only just entered */
    if (late->calls == waits->calls && shortest < w->timeout_s) return;
    struct err e = {0};
    char detail[300], ranks[100];
    if (late->calls < waits->calls) {
        list_ranks(w, waits->calls, ranks, sizeof ranks);
        snprintf(detail, sizeof detail, "it hangs; rank %d has waited for it in %s for %g s (dist.timeout_s = %g; missing: %s)",
                 (int)waits->rank, waits->what, waits->since, w->timeout_s, ranks);
    } else {
        who = waits->rank;
        snprintf(detail, sizeof detail, "%s has taken %g s although all ranks are in it (dist.timeout_s = %g); is the network up?",
                 waits->what, waits->since, w->timeout_s);
        late = waits;
    }
    set_failure(&e, who, late, detail, "");
    end_job(w, &e);
}

static void check_silence(struct watch *w)
{
    const double now = clock_seconds();
    for (int r = 1; r < w->size; r++) {
        struct peer *p = &w->peers[r];
        if (p->bye || p->gone || now - p->heard < WATCH_SILENCE) continue;
        struct err e = {0};
        p->silent = true;
        set_silence(&e, r, &p->state);
        end_job(w, &e);
    }
}

static bool all_failed(const struct watch *w)
{
    for (int r = 0; r < w->size; r++)
        if (!w->peers[r].failed) return false;
    return true;
}

bool watch_misses_hub(const struct watch *w)
{
    return !w->peers[0].bye && w->leave_at <= 0 && clock_seconds() - w->peers[0].heard > WATCH_SILENCE;
}

/* Waits for the launcher's SIGTERM, which comes if rank 0 has ended the job for the same reason and
 * has reported for all. */
static void decide_without_hub(struct watch *w)
{
    if (w->missed_at <= 0 || !watch_misses_hub(w)) return;
    if (!w->asked_before && *signals_flag()) _exit(1);
    if (clock_seconds() - w->missed_at > GRACE) end_without_hub(w, NULL);
}

void watch_decide(struct watch *w, bool farewell)
{
    if (w->rank) {
        decide_without_hub(w);
        return;
    }
    if (w->first_error > 0 && (all_failed(w) || clock_seconds() - w->first_error > COLLECT)) end_with_errors(w);
    if (w->lost && clock_seconds() - w->lost_at > COLLECT) watch_end_lost(w, w->lost);
    if (w->first_error > 0 || farewell) return;
    check_timeouts(w);
    check_silence(w);
}
