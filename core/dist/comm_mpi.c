#define _GNU_SOURCE
#include "dist/comm_mpi.h"

#include "base/arena.h"
#include "base/clock.h"
#include "base/limits.h"
#include "base/log.h"
#include "dist/halves.h"
#include "dist/load_library.h"
#include "dist/transport.h"
#include "dist/watch.h"
#include "needs.h"

#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

enum {
    SLOT_CALL = 0,    /* blocking collectives */
    SLOT_PENDING = 1, /* .. + COMM_PENDING - 1 */
    SLOT_EXCHANGE = SLOT_PENDING + COMM_PENDING,
    TAGS = 32768,
};

_Static_assert(SLOT_EXCHANGE + COMM_EXCHANGES <= TRANSPORT_SLOTS, "every half has a slot");

struct mpi_comm {
    struct transport *t;
    struct watch *watch;
    uint32_t calls; /* number of calls; determines the tag */
    struct halves gathers, exchanges;
    bool crowded; /* more threads than cores: do not spin */
};

static tare_status slot_failed(const struct comm *c, const char *what, struct err *e)
{
    const struct mpi_comm *p = c->self;
    FAIL(e, TARE_E_COMM, "%s: %s", what, p->t->error);
}

static int next_tag(struct mpi_comm *p)
{
    return (int)(p->calls++ % TAGS);
}

/* Waits for a slot: briefly without leaving the core, then in short sleeps, so that ranks that
 * share a core let each other run. */
static tare_status wait_slot(struct comm *c, int slot, const char *what, struct err *e)
{
    struct mpi_comm *p = c->self;
    const double began = clock_seconds();
    long pause = 20000;
    for (bool done;;) {
        if (p->t->poll(p->t, slot, &done)) return slot_failed(c, what, e);
        if (done) return TARE_OK;
        const double waited = clock_seconds() - began;
        if (!p->crowded && waited < 300e-6) continue;
        if (waited < 1e-3) {
            sched_yield();
        } else {
            const struct timespec t = {0, pause};
            nanosleep(&t, NULL);
            if (pause < 500000) pause += pause / 4;
        }
    }
}

static tare_status post_message(struct comm *c, int slot, struct transport_message m, struct err *e)
{
    struct mpi_comm *p = c->self;
    return p->t->post(p->t, slot, &m) ? slot_failed(c, m.send ? "sending" : "receiving", e) : TARE_OK;
}

static struct transport_message to_send(int peer, int tag, const void *data, int64_t n)
{
    return (struct transport_message){true, peer, tag, (void *)(uintptr_t)data, n};
}

static struct transport_message to_receive(int peer, int tag, void *data, int64_t n)
{
    return (struct transport_message){false, peer, tag, data, n};
}

/* out receives sizes[q] bytes (NULL: n) from every rank q; every rank gets the n bytes of `own` */
struct gather_call {
    const void *in;
    int64_t n;
    void *out;
    const int64_t *sizes;
};

/* Posts to peers in the order r+1, r+2, ... so that ranks do not all address the same peer at
 * once. */
static tare_status post_gather(struct comm *c, int slot, const struct gather_call *g, struct err *e)
{
    const int tag = next_tag(c->self);
    char *to = g->out;
    int64_t offset = 0;
    for (int q = 0; q < c->size; q++) {
        const int64_t size = g->sizes ? g->sizes[q] : g->n;
        if (q == c->rank) {
            if (size && to + offset != (const char *)g->in) memcpy(to + offset, g->in, (size_t)size);
        } else if (size) {
            TRY(post_message(c, slot, to_receive(q, tag, to + offset, size), e));
        }
        offset += size;
    }
    for (int i = 1; i < c->size && g->n; i++) TRY(post_message(c, slot, to_send((c->rank + i) % c->size, tag, g->in, g->n), e));
    return TARE_OK;
}

static tare_status gather_named(struct comm *c, const char *what, const struct gather_call *g, struct err *e)
{
    struct mpi_comm *p = c->self;
    watch_enter(p->watch, what);
    TRY(post_gather(c, SLOT_CALL, g, e));
    TRY(wait_slot(c, SLOT_CALL, what, e));
    watch_enter(p->watch, NULL);
    return TARE_OK;
}

static tare_status process_gather(struct comm *c, const void *in, int64_t n, void *out, const int64_t *out_bytes, struct err *e)
{
    if (out_bytes[c->rank] != n)
        FAIL(e, TARE_E_COMM, "gather: %lld bytes given where %lld were announced", (long long)n, (long long)out_bytes[c->rank]);
    return gather_named(c, "gather", &(struct gather_call){in, n, out, out_bytes}, e);
}

static tare_status process_all_gather(struct comm *c, const void *in, int64_t bytes, void *out, struct err *e)
{
    return gather_named(c, "all_gather", &(struct gather_call){in, bytes, out, NULL}, e);
}

static tare_status process_barrier(struct comm *c, struct err *e)
{
    struct mpi_comm *p = c->self;
    OWNED(mem_free_at) char *all = NULL;
    TRY(mem_new(c->size, (void **)&all, e));
    (void)p;
    return gather_named(c, "barrier", &(struct gather_call){all + c->rank, 1, all, NULL}, e);
}

/* Broadcasts along a binomial tree from root: the rank at distance d receives from d without its
 * lowest bit, and sends to d + 2^k for the bits below. */
static tare_status process_broadcast(struct comm *c, void *data, int64_t n, int root, struct err *e)
{
    struct mpi_comm *p = c->self;
    if (root < 0 || root >= c->size) FAIL(e, TARE_E_COMM, "broadcast from rank %d in a job of %d ranks", root, c->size);
    const int tag = next_tag(p), d = (c->rank - root + c->size) % c->size;
    int low = 1;
    if (!n) return TARE_OK;
    watch_enter(p->watch, "broadcast");
    while (low < c->size && !(d & low)) low *= 2;
    if (d) {
        TRY(post_message(c, SLOT_CALL, to_receive((d - low + root) % c->size, tag, data, n), e));
        TRY(wait_slot(c, SLOT_CALL, "broadcast", e));
    }
    for (int bit = low / 2; bit > 0; bit /= 2)
        if (d + bit < c->size) TRY(post_message(c, SLOT_CALL, to_send((d + bit + root) % c->size, tag, data, n), e));
    TRY(wait_slot(c, SLOT_CALL, "broadcast", e));
    watch_enter(p->watch, NULL);
    return TARE_OK;
}

static tare_status post_all_to_all(struct comm *c, int slot, const void *in, int64_t bytes, void *out, struct err *e)
{
    const char *from = in;
    char *to = out;
    const int tag = next_tag(c->self);
    if (!bytes) return TARE_OK;
    memcpy(to + c->rank * bytes, from + c->rank * bytes, (size_t)bytes);
    for (int q = 0; q < c->size; q++)
        if (q != c->rank) TRY(post_message(c, slot, to_receive(q, tag, to + q * bytes, bytes), e));
    for (int i = 1; i < c->size; i++) {
        const int q = (c->rank + i) % c->size;
        TRY(post_message(c, slot, to_send(q, tag, from + q * bytes, bytes), e));
    }
    return TARE_OK;
}

static tare_status process_all_to_all(struct comm *c, const void *in, int64_t bytes, void *out, struct err *e)
{
    struct mpi_comm *p = c->self;
    watch_enter(p->watch, "all_to_all");
    TRY(post_all_to_all(c, SLOT_CALL, in, bytes, out, e));
    TRY(wait_slot(c, SLOT_CALL, "all_to_all", e));
    watch_enter(p->watch, NULL);
    return TARE_OK;
}

/* ---- gathers and exchanges in two halves: the messages are posted; a library without its own
 * thread transfers most of them in the wait */

static tare_status process_gather_begin(struct comm *c, const void *in, int64_t bytes, void *out, struct err *e)
{
    struct mpi_comm *p = c->self;
    int slot;
    TRY(halves_begin(&p->gathers, &slot, e));
    return post_gather(c, slot, &(struct gather_call){in, bytes, out, NULL}, e);
}

static tare_status process_gather_wait(struct comm *c, struct err *e)
{
    struct mpi_comm *p = c->self;
    int slot;
    TRY(halves_wait(&p->gathers, &slot, e));
    watch_enter(p->watch, "all_gather");
    TRY(wait_slot(c, slot, "all_gather", e));
    watch_enter(p->watch, NULL);
    return TARE_OK;
}

static tare_status process_exchange_begin(struct comm *c, const void *in, int64_t bytes, void *out, struct err *e)
{
    struct mpi_comm *p = c->self;
    int slot;
    TRY(halves_begin(&p->exchanges, &slot, e));
    return post_all_to_all(c, slot, in, bytes, out, e);
}

static tare_status process_exchange_wait(struct comm *c, struct err *e)
{
    struct mpi_comm *p = c->self;
    int slot;
    TRY(halves_wait(&p->exchanges, &slot, e));
    watch_enter(p->watch, "all_to_all");
    TRY(wait_slot(c, slot, "all_to_all", e));
    watch_enter(p->watch, NULL);
    return TARE_OK;
}

/* ---- life */

static void process_abort(struct comm *c, const struct err *e)
{
    watch_fail(((struct mpi_comm *)c->self)->watch, e);
}

static void process_note(struct comm *c)
{
    watch_stage(((struct mpi_comm *)c->self)->watch, c->stage, c->step);
}

static void process_enter(struct comm *c, const char *collective)
{
    watch_enter(((struct mpi_comm *)c->self)->watch, collective);
}

static void process_free(struct comm *c)
{
    struct mpi_comm *p = c->self;
    struct err e = {0};
    if (process_barrier(c, &e)) process_abort(c, &e);
    watch_farewell(p->watch);
    if (p->t->finish(p->t)) log_warn("%s", p->t->error);
    watch_free(p->watch);
    mem_free(p);
    c->self = NULL;
}

static tare_status load_transport(struct transport **out, struct err *e)
{
    static const struct library mpi = {.file = "libtare_mpi.so",
                                       .symbol = TRANSPORT_SYMBOL,
                                       .abi = TRANSPORT_ABI,
                                       .missing = "there is no MPI for several ranks",
                                       .advice = "install it (apt-get install " NEEDS_MPI ") and build again"};
    return load_library_open(&mpi, (void **)out, e);
}

tare_status comm_mpi_about(char *text, int64_t capacity, struct err *e)
{
    struct transport *t;
    TRY(load_transport(&t, e));
    t->describe(t);
    snprintf(text, (size_t)capacity, "%s", t->about);
    return TARE_OK;
}

/* Connects the watch: rank 0 sends the others its address, then all connect. Until the watch runs,
 * ranks cannot report errors to each other: they learn of them from the address ("!..." if rank 0
 * has none) and, if one cannot connect, from rank 0, which waits for it. */
static tare_status begin_watch(struct comm *c, double timeout_s, struct err *e)
{
    struct mpi_comm *p = c->self;
    char address[WATCH_ADDRESS] = "!";
    tare_status status = TARE_OK;
    if (c->rank == 0) status = watch_listen(c->size, address, &p->watch, e);
    const int tag = next_tag(p);
    if (c->rank == 0)
        for (int q = 1; q < c->size; q++) TRY(post_message(c, SLOT_CALL, to_send(q, tag, address, sizeof address), e));
    if (c->rank) TRY(post_message(c, SLOT_CALL, to_receive(0, tag, address, sizeof address), e));
    TRY(wait_slot(c, SLOT_CALL, "start", e));
    TRY(status);
    if (c->rank) {
        address[sizeof address - 1] = 0;
        TRY(watch_connect(c->rank, c->size, address, &p->watch, e));
    }
    return watch_start(p->watch, timeout_s, e);
}

/* Determines the cores for this rank: those it may run on, shared with the ranks of this host that
 * may run on the same. */
static tare_status share_cores(struct comm *c, struct err *e)
{
    struct place {
        char host[64];
        cpu_set_t cores;
        ino_t net;
    } mine = {0};
    OWNED(mem_free_at) struct place *all = NULL;
    int sharing = 0, cores;
    gethostname(mine.host, sizeof mine.host - 1);
    if (sched_getaffinity(0, sizeof mine.cores, &mine.cores)) CPU_SET(0, &mine.cores);
    cores = CPU_COUNT(&mine.cores);
    TRY(mem_new(c->size * (int64_t)sizeof *all, (void **)&all, e));
    TRY(gather_named(c, "gather", &(struct gather_call){&mine, sizeof mine, all, NULL}, e));
    for (int r = 0; r < c->size; r++) {
        cpu_set_t both;
        CPU_AND(&both, &mine.cores, &all[r].cores);
        sharing += !strcmp(mine.host, all[r].host) && CPU_COUNT(&both) > 0;
        c->local += r < c->rank && !strcmp(mine.host, all[r].host);
    }
    /* A control group's quota, shared by the ranks of a host, may allow fewer cores than the mask. */
    const int usable = limits_cores();
    if (usable < cores) cores = usable;
    c->threads = cores / sharing > 1 ? cores / sharing : 1;
    ((struct mpi_comm *)c->self)->crowded = sharing > cores;
    return TARE_OK;
}

tare_status comm_mpi(double timeout_s, struct comm *out, struct err *e)
{
    struct transport *t;
    struct mpi_comm *p;
    TRY(load_transport(&t, e));
    if (t->start(t)) FAIL(e, TARE_E_COMM, "MPI does not start: %s", t->error);
    TRY(mem_new((int64_t)sizeof *p, (void **)&p, e));
    p->t = t;
    p->gathers = (struct halves){"gather", SLOT_PENDING, COMM_PENDING, 0, 0};
    p->exchanges = (struct halves){"exchange", SLOT_EXCHANGE, COMM_EXCHANGES, 0, 0};
    p->crowded = true;
    *out = (struct comm){.rank = t->rank,
                         .size = t->size,
                         .kind = "mpi",
                         .self = p,
                         .gather = process_gather,
                         .broadcast = process_broadcast,
                         .barrier = process_barrier,
                         .all_gather = process_all_gather,
                         .all_to_all = process_all_to_all,
                         .gather_begin = process_gather_begin,
                         .gather_wait = process_gather_wait,
                         .exchange_begin = process_exchange_begin,
                         .exchange_wait = process_exchange_wait,
                         .timeout_s = timeout_s,
                         .abort = process_abort,
                         .note = process_note,
                         .enter = process_enter,
                         .free = process_free};
    TRY(begin_watch(out, timeout_s, e));
    return share_cores(out, e);
}
