/* A deterministic scheduler for a file of threads that is included after this header (core/dist/thread.c): its locks, conditions and copies are the
 * points at which another thread may go on, and one thread runs at a time. So a schedule is a list of choices: all of them are gone through
 * (schedule_next), or some are drawn by seed. A wait with a time-out ends by it only where nothing else could go on; where there is no such wait, that is
 * a deadlock. The interleavings of whole statements between two points are one: what races inside is the thread sanitizer's business. */
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
    int n, running, left; /* threads, whose turn it is (-1: nobody's), not ended yet */
    struct {
        enum schedule_state state;
        const void *on; /* the mutex or condition that is waited for */
        bool timed_out;
        void *(*body)(void *);
        void *arg;
    } thread[SCHEDULE_THREADS];
    const void *held; /* the mutex that a thread holds: the file has one */
    int at, length, chosen[SCHEDULE_POINTS], options[SCHEDULE_POINTS];
    uint64_t random; /* 0: the list decides, and the first after its end */
    bool wake_one;   /* planted: a broadcast wakes one */
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

/* Whose turn it is now. Under the lock. */
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
    if (!n && schedule.left) { /* nobody can go on: every wait ends as if by its time, or the test would hang */
        schedule.deadlock = true;
        for (int t = 0; t < schedule.n; t++)
            if (schedule.thread[t].state == WAITING) schedule.thread[t].state = WAITING_TIMED;
        for (int t = 0; t < schedule.n && schedule.running < 0; t++)
            if (schedule.thread[t].state == WAITING_TIMED) schedule.running = t;
    }
    pthread_cond_broadcast(&schedule.turn);
}

/* The calling thread goes to this state; returns when it is its turn again. */
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

/* A point of the test's own, between what it reads or writes of another rank's. */
static void schedule_point(void)
{
    if (schedule_me >= 0) schedule_switch(READY, NULL);
}

static int schedule_lock(pthread_mutex_t *m)
{
    if (schedule_me < 0) return pthread_mutex_lock(m); /* the thread that starts them and waits for them */
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

/* In two halves: between them another thread may go on. */
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

/* None of the threads runs before the last one is there. */
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

/* Before each execution. seed: 0: the list of choices. */
static void schedule_begin(uint64_t seed)
{
    schedule.n = schedule.left = schedule.at = 0;
    schedule.running = -1;
    schedule.held = NULL;
    schedule.deadlock = false;
    schedule.random = seed;
    if (seed) schedule.length = 0;
}

/* The next list of choices, by depth first. False: all were gone through. */
static bool schedule_next(void)
{
    int n = schedule.at < SCHEDULE_POINTS ? schedule.at : SCHEDULE_POINTS;
    while (n && schedule.chosen[n - 1] + 1 >= schedule.options[n - 1]) n--;
    schedule.length = n;
    if (n) schedule.chosen[n - 1]++;
    return n > 0;
}

#endif
