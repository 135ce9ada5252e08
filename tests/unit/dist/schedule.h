/* A deterministic scheduler for a file of threads that is included after this header
 * (core/dist/thread.c). Its locks, conditions and copies are the points at which another thread may
 * continue, and one thread runs at a time. So a schedule is a list of choices: all of them are
 * enumerated (schedule_next), or some are drawn by seed. A wait with a timeout times out only if no
 * other thread can continue; without such a wait, that is a deadlock. Statements between two points
 * are not interleaved: races inside them are left to the thread sanitizer. */
#ifndef TARE_TESTS_SCHEDULE_H
#define TARE_TESTS_SCHEDULE_H

#include <errno.h>
#include <pthread.h>
#include <stdbool.h>
#include <stdint.h>
#include <string.h>
#include <time.h>

enum { SCHEDULE_THREADS = 8, SCHEDULE_POINTS = 4096 };
enum schedule_state { ABSENT, READY, LOCKED_OUT, WAITING, WAITING_TIMED, ENDED };

static struct schedule {
    pthread_mutex_t lock; /* of all below */
    pthread_cond_t turn;
    int n, running, left; /* number of threads; the one that runs (-1: none); the number not ended yet */
    struct {
        enum schedule_state state;
        const void *on; /* the mutex or condition it waits for */
        bool timed_out;
        void *(*body)(void *);
        void *arg;
    } thread[SCHEDULE_THREADS];
    const void *held; /* the mutex that a thread holds: the file has only one */
    int at, length, chosen[SCHEDULE_POINTS], options[SCHEDULE_POINTS];
    uint64_t random; /* 0: follow the list, and choose the first option after its end */
    bool wake_one;   /* planted fault: a broadcast wakes one thread */
    bool deadlock;
} schedule = {.lock = PTHREAD_MUTEX_INITIALIZER, .turn = PTHREAD_COND_INITIALIZER};
static _Thread_local int schedule_me = -1;

static int schedule_draw(int n)
{
    int pick = schedule.at < schedule.length ? schedule.chosen[schedule.at] : 0;
    if (schedule.random) {
        schedule.random = schedule.random * 6364136223846793005u + 1442695040888963407u;
        pick = (int)(schedule.random >> 33) % n;
    }
    if (schedule.at < SCHEDULE_POINTS) {
        schedule.chosen[schedule.at] = pick;
        schedule.options[schedule.at] = n;
    }
    schedule.at++;
    return pick;
}

/* Picks the thread that runs next. Called under the lock. */
static void schedule_pick(void)
{
    int can[SCHEDULE_THREADS], n = 0;
    for (int pass = 0; pass < 2 && !n; pass++)
        for (int t = 0; t < schedule.n; t++) {
            const enum schedule_state s = schedule.thread[t].state;
            if (s == READY || (s == LOCKED_OUT && schedule.held != schedule.thread[t].on) || (pass && s == WAITING_TIMED))
                can[n++] = t;
        }
    schedule.running = n ? can[n > 1 ? schedule_draw(n) : 0] : -1;
    /* No thread can continue: every wait times out, or the test would hang. */
    if (!n && schedule.left) {
        schedule.deadlock = true;
        for (int t = 0; t < schedule.n; t++)
            if (schedule.thread[t].state == WAITING) schedule.thread[t].state = WAITING_TIMED;
        for (int t = 0; t < schedule.n && schedule.running < 0; t++)
            if (schedule.thread[t].state == WAITING_TIMED) schedule.running = t;
    }
    pthread_cond_broadcast(&schedule.turn);
}

/* Puts the calling thread into this state; returns when it is picked again. */
static void schedule_switch(enum schedule_state state, const void *on)
{
    pthread_mutex_lock(&schedule.lock);
    schedule.thread[schedule_me].state = state;
    schedule.thread[schedule_me].on = on;
    schedule_pick();
    while (schedule.running != schedule_me && state != ENDED) pthread_cond_wait(&schedule.turn, &schedule.lock);
    if (state != ENDED) {
        schedule.thread[schedule_me].timed_out = schedule.thread[schedule_me].state == WAITING_TIMED;
        schedule.thread[schedule_me].state = READY;
    }
    pthread_mutex_unlock(&schedule.lock);
}

/* A scheduling point of the test, between accesses to another rank's data. */
static void schedule_point(void)
{
    if (schedule_me >= 0) schedule_switch(READY, NULL);
}

static int schedule_lock(pthread_mutex_t *m)
{
    /* the thread that starts the others and waits for them */
    if (schedule_me < 0) return pthread_mutex_lock(m);
    schedule_switch(LOCKED_OUT, m);
    pthread_mutex_lock(&schedule.lock);
    schedule.held = m;
    pthread_mutex_unlock(&schedule.lock);
    return 0;
}

static int schedule_unlock(pthread_mutex_t *m)
{
    if (schedule_me < 0) return pthread_mutex_unlock(m);
    pthread_mutex_lock(&schedule.lock);
    schedule.held = NULL;
    pthread_mutex_unlock(&schedule.lock);
    return 0;
}

static int schedule_wait(pthread_cond_t *c, pthread_mutex_t *m, bool timed)
{
    schedule_unlock(m);
    schedule_switch(timed ? WAITING_TIMED : WAITING, c);
    const bool late = schedule.thread[schedule_me].timed_out;
    schedule_lock(m);
    return late ? ETIMEDOUT : 0;
}

static int schedule_broadcast(pthread_cond_t *c)
{
    pthread_mutex_lock(&schedule.lock);
    for (int t = 0; t < schedule.n; t++) {
        if (schedule.thread[t].on != c || (schedule.thread[t].state != WAITING && schedule.thread[t].state != WAITING_TIMED))
            continue;
        schedule.thread[t].state = READY;
        schedule.thread[t].on = NULL;
        if (schedule.wake_one) break;
    }
    pthread_mutex_unlock(&schedule.lock);
    return 0;
}

/* Copies in two halves, between which another thread may continue. */
static void schedule_copy(void *to, const void *from, size_t n)
{
    schedule_point();
    memcpy(to, from, n / 2);
    schedule_point();
    memcpy((char *)to + n / 2, (const char *)from + n / 2, n - n / 2);
}

static void *schedule_main(void *arg)
{
    schedule_me = (int)(intptr_t)arg;
    pthread_mutex_lock(&schedule.lock);
    while (schedule.running != schedule_me) pthread_cond_wait(&schedule.turn, &schedule.lock);
    pthread_mutex_unlock(&schedule.lock);
    schedule.thread[schedule_me].body(schedule.thread[schedule_me].arg);
    pthread_mutex_lock(&schedule.lock);
    schedule.left--;
    pthread_mutex_unlock(&schedule.lock);
    schedule_switch(ENDED, NULL);
    return NULL;
}

/* Starts a thread; none of them runs before the last one is started. */
static int schedule_create(pthread_t *thread, void *(*body)(void *), void *arg, int all)
{
    pthread_mutex_lock(&schedule.lock);
    const int t = schedule.n++;
    schedule.left++;
    schedule.thread[t].state = READY;
    schedule.thread[t].on = NULL;
    schedule.thread[t].body = body;
    schedule.thread[t].arg = arg;
    pthread_mutex_unlock(&schedule.lock);
    const int got = pthread_create(thread, NULL, schedule_main, (void *)(intptr_t)t);
    pthread_mutex_lock(&schedule.lock);
    if (schedule.n == all) schedule_pick();
    pthread_mutex_unlock(&schedule.lock);
    return got;
}

/* Called before each execution. seed 0: follow the list of choices. */
static void schedule_begin(uint64_t seed)
{
    schedule.n = schedule.left = schedule.at = 0;
    schedule.running = -1;
    schedule.held = NULL;
    schedule.deadlock = false;
    schedule.random = seed;
    if (seed) schedule.length = 0;
}

/* Advances to the next list of choices, depth first. Returns false after the last one. */
static bool schedule_next(void)
{
    int n = schedule.at < SCHEDULE_POINTS ? schedule.at : SCHEDULE_POINTS;
    while (n && schedule.chosen[n - 1] + 1 >= schedule.options[n - 1]) n--;
    schedule.length = n;
    if (n) schedule.chosen[n - 1]++;
    return n > 0;
}

#endif
