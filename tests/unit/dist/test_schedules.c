/* Runs the thread communicator under controlled schedules: all interleavings of the small cases,
 * many by seed of the larger ones (schedule.h). In each one every rank gets the results of the
 * definition, no rank waits forever, and a failure reaches all. Planted faults: a collective that
 * leaves early, a lost wake-up. */
#include "check.h"
#include "unit/dist/schedule.h"

#define pthread_mutex_lock schedule_lock
#define pthread_mutex_unlock schedule_unlock
#define pthread_cond_wait(c, m) schedule_wait(c, m, false)
#define pthread_cond_timedwait(c, m, until) ((void)(until), schedule_wait(c, m, true))
#define pthread_cond_broadcast schedule_broadcast
#define pthread_create(thread, attributes, main, arg) schedule_create(thread, main, arg, ((struct member *)(arg))->job->size)
#define memcpy schedule_copy
#include "dist/threads.c"
#undef pthread_mutex_lock
#undef pthread_mutex_unlock
#undef pthread_cond_wait
#undef pthread_cond_timedwait
#undef pthread_cond_broadcast
#undef pthread_create
#undef memcpy

#include <stdlib.h>

enum { MOST = 4 };
typedef tare_status (*part)(struct comm *c, struct err *e);

static int32_t value(int rank, int k)
{
    return 1000 * rank + k;
}

/* ---- collectives: each fills its input, calls, compares, and overwrites its input immediately, as
 * a program may */
#define WRONG(c, what) FAIL(e, TARE_E_GENERIC, "rank %d: " what " has another result", (c)->rank)

static tare_status barrier_once(struct comm *c, struct err *e)
{
    return c->barrier(c, e);
}

static tare_status broadcast_once(struct comm *c, struct err *e)
{
    int32_t x[2] = {value(c->rank, 1), value(c->rank, 2)};
    const int root = c->size - 1;
    TRY(c->broadcast(c, x, sizeof x, root, e));
    if (x[0] != value(root, 1) || x[1] != value(root, 2)) WRONG(c, "broadcast");
    x[0] = x[1] = -1;
    schedule_point();
    return TARE_OK;
}

static tare_status gather_by(struct comm *c,
                             tare_status (*gather)(struct comm *, const void *, int64_t, void *, const int64_t *, struct err *),
                             struct err *e)
{
    /* Not on the stack of a thread that may have ended when the planted fault copies. */
    static int32_t room[MOST][MOST];
    int32_t *in = room[c->rank], out[MOST * MOST];
    int64_t bytes[MOST];
    /* Rank r contributes r + 1 numbers. */
    for (int r = 0; r < c->size; r++) bytes[r] = (r + 1) * (int64_t)sizeof *out;
    for (int k = 0; k <= c->rank; k++) in[k] = value(c->rank, k);
    TRY(gather(c, in, bytes[c->rank], out, bytes, e));
    for (int k = 0; k <= c->rank; k++) in[k] = -1;
    schedule_point();
    for (int r = 0, at = 0; r < c->size; r++)
        for (int k = 0; k <= r; k++, at++)
            if (out[at] != value(r, k)) WRONG(c, "gather");
    return TARE_OK;
}

static tare_status gather_once(struct comm *c, struct err *e)
{
    return gather_by(c, c->gather, e);
}

static tare_status all_to_all_once(struct comm *c, struct err *e)
{
    int32_t in[MOST], out[MOST];
    for (int q = 0; q < c->size; q++) in[q] = value(c->rank, q);
    TRY(c->all_to_all(c, in, sizeof *in, out, e));
    for (int q = 0; q < c->size; q++) in[q] = -1;
    schedule_point();
    for (int q = 0; q < c->size; q++)
        if (out[q] != value(q, c->rank)) WRONG(c, "all_to_all");
    return TARE_OK;
}

static tare_status all_gather_once(struct comm *c, struct err *e)
{
    int32_t in = value(c->rank, 7), out[MOST];
    TRY(c->all_gather(c, &in, sizeof in, out, e));
    in = -1;
    schedule_point();
    for (int r = 0; r < c->size; r++)
        if (out[r] != value(r, 7)) WRONG(c, "all_gather");
    return TARE_OK;
}

static tare_status everything(struct comm *c, struct err *e)
{
    static const part PARTS[] = {broadcast_once, gather_once, all_to_all_once, barrier_once, all_gather_once, gather_once};
    for (size_t k = 0; k < sizeof PARTS / sizeof *PARTS; k++) TRY(PARTS[k](c, e));
    return TARE_OK;
}

/* ---- failures */
static tare_status last_fails(struct comm *c, struct err *e)
{
    if (c->rank == c->size - 1) FAIL(e, TARE_E_IO, "the disk is full");
    TRY(c->barrier(c, e));
    FAIL(e, TARE_E_GENERIC, "went on without a rank");
}

static tare_status last_stays_away(struct comm *c, struct err *e)
{
    return c->rank == c->size - 1 ? TARE_OK : c->barrier(c, e);
}

static tare_status last_does_another(struct comm *c, struct err *e)
{
    int32_t x = 0;
    return c->rank == c->size - 1 ? c->broadcast(c, &x, sizeof x, 0, e) : c->barrier(c, e);
}

/* ---- planted fault: no rank waits until all have copied */
static tare_status early_gather(struct comm *c, const void *in, int64_t n, void *out, const int64_t *out_bytes, struct err *e)
{
    const struct job *j = ((struct member *)c->self)->job;
    struct call calls[MOST];
    char *to = out;
    TRY(enter(c, (struct call){"gather", in, n, 0}, false, e));
    memcpy(calls, j->calls, (size_t)j->size * sizeof *calls);
    TRY(meet(c, NULL, e));
    for (int r = 0; r < j->size; to += out_bytes[r++]) schedule_copy(to, calls[r].in, (size_t)out_bytes[r]);
    return TARE_OK;
}

static tare_status gather_early(struct comm *c, struct err *e)
{
    return gather_by(c, early_gather, e);
}

/* ---- executions */
struct one {
    int ranks;
    double timeout;
    part part;
    tare_status want; /* of every schedule */
    const char *says; /* NULL: anything */
};
static tare_status call_part(struct comm *c, void *ctx, struct err *e)
{
    part p;
    memcpy(&p, ctx, sizeof p);
    return p(c, e);
}

static bool right(const struct one *o)
{
    struct err e = {0};
    part p = o->part;
    const tare_status got = comm_threads(o->ranks, o->timeout, call_part, &p, &e);
    const bool is = got == o->want && !schedule.deadlock && (!o->says || strstr(e.message, o->says));
    if (!is && !schedule.wake_one && o->part != gather_early)
        printf("status %d%s, %s\n", (int)got, schedule.deadlock ? ", deadlock" : "", e.message);
    return is;
}

/* A barrier of three has hundreds of thousands of interleavings: this is only its first half, where
 * all meet once. */
static tare_status meet_once(struct comm *c, struct err *e)
{
    TRY(meet(c, &(struct call){"barrier", NULL, 0, 0}, e));
    for (int r = 0; r < c->size; r++)
        if (!((struct member *)c->self)->job->calls[r].what) WRONG(c, "a meeting");
    return TARE_OK;
}

/* Returns the number of schedules run, all of them or at most `most`; *wrong: the number with
 * another result. */
static int64_t all_schedules(const struct one *o, int64_t most, int64_t *wrong)
{
    int64_t n = 0;
    *wrong = 0;
    schedule.length = 0;
    do {
        schedule_begin(0);
        *wrong += !right(o);
        n++;
    } while (n < most && schedule_next());
    return n;
}

static int64_t seeds(const struct one *o, int64_t n)
{
    int64_t wrong = 0;
    for (int64_t seed = 1; seed <= n; seed++) {
        schedule_begin((uint64_t)seed * 2654435761u);
        wrong += !right(o);
    }
    return wrong;
}

static void all_interleavings_of_the_small_cases(void **state)
{
    (void)state;
    static const struct {
        const char *name;
        struct one one;
    } CASES[] = {
        {"barrier, 2", {2, 0, barrier_once, TARE_OK, NULL}},
        {"a meeting, 3", {3, 0, meet_once, TARE_OK, NULL}},
        {"broadcast, 2", {2, 0, broadcast_once, TARE_OK, NULL}},
        {"all_gather, 2", {2, 0, all_gather_once, TARE_OK, NULL}},
        {"a failing rank, 2", {2, 0, last_fails, TARE_E_IO, "rank 1: the disk is full"}},
        {"a failing rank, 3", {3, 0, last_fails, TARE_E_IO, "rank 2: the disk is full"}},
        {"a rank that stays away, 2", {2, 1, last_stays_away, TARE_E_COMM, "in barrier for rank 1"}},
        {"a rank that stays away, 3", {3, 1, last_stays_away, TARE_E_COMM, "in barrier for rank 2"}},
        {"another collective, 2", {2, 0, last_does_another, TARE_E_COMM, " is in "}},
    };
    for (size_t k = 0; k < sizeof CASES / sizeof *CASES; k++) {
        int64_t wrong;
        const int64_t most = 30000, n = all_schedules(&CASES[k].one, most, &wrong);
        printf("%s: %lld interleavings, %lld wrong\n", CASES[k].name, (long long)n, (long long)wrong);
        assert_int_equal(wrong, 0);
        assert_true(n > 1 && n < most);
    }
}

static void random_schedules(void **state)
{
    (void)state;
    for (int ranks = 2; ranks <= MOST; ranks++) {
        assert_int_equal(seeds(&(struct one){ranks, 0, everything, TARE_OK, NULL}, 200), 0);
        assert_int_equal(seeds(&(struct one){ranks, 1, everything, TARE_OK, NULL}, 200), 0);
        assert_int_equal(seeds(&(struct one){ranks, 0, last_fails, TARE_E_IO, "the disk is full"}, 200), 0);
    }
}

static void planted_faults_are_found(void **state)
{
    (void)state;
    int64_t wrong, n = all_schedules(&(struct one){2, 0, gather_early, TARE_OK, NULL}, 30000, &wrong);
    printf("a gather that leaves early: wrong in %lld of %lld interleavings\n", (long long)wrong, (long long)n);
    assert_true(wrong > 0 && wrong < n);
    wrong = seeds(&(struct one){3, 0, gather_early, TARE_OK, NULL}, 200);
    printf("the same, by seed: wrong in %lld of 200\n", (long long)wrong);
    assert_true(wrong > 0);
    schedule.wake_one = true;
    wrong = seeds(&(struct one){3, 1, everything, TARE_OK, NULL}, 200);
    schedule.wake_one = false;
    printf("a lost wake-up: found in %lld of 200\n", (long long)wrong);
    assert_true(wrong > 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(all_interleavings_of_the_small_cases),
        cmocka_unit_test(random_schedules),
        cmocka_unit_test(planted_faults_are_found),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
