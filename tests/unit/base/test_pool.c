#include "check.h"

#include "base/clock.h"
#include "base/pool.h"

#include <string.h>

enum { MOST = 20000 };

struct job {
    int times[MOST];
    double value[MOST];
    int threads; /* of the pool; thread numbers are below it */
    int wrong;
};

static void run_task(void *arg, int64_t task, int thread)
{
    struct job *j = arg;
    j->times[task]++;
    if (thread < 0 || thread >= j->threads) j->wrong = 1;
    double x = (double)task;
    for (int i = 0; i < 20; i++) x = x * 1.0000001 + 1 / (x + 1);
    j->value[task] = x;
}

/* Every task runs once for any number of threads, with the same results; large and small
 * regions. */
static void every_task_once(void **state)
{
    (void)state;
    struct err e = {0};
    static struct job j, one;
    one.threads = 1;
    pool_run(NULL, MOST, run_task, &one);
    assert_int_equal(pool_threads(NULL), 1);
    for (int threads = 1; threads <= 5; threads++) {
        struct pool *p;
        assert_ok(pool_new(threads, &p, &e), &e);
        assert_int_equal(pool_threads(p), threads);
        static const int64_t SIZES[] = {0, 1, 2, 7, 100, MOST};
        for (int s = 0; s < 6; s++) {
            memset(&j, 0, sizeof j);
            j.threads = threads;
            pool_run(p, SIZES[s], run_task, &j);
            for (int64_t i = 0; i < MOST; i++) assert_int_equal(j.times[i], i < SIZES[s]);
            assert_false(j.wrong);
            assert_memory_equal(j.value, one.value, (size_t)SIZES[s] * sizeof(double));
        }
        for (int round = 0; round < 2000; round++) { /* consecutive regions, as in decoding */
            j.times[0] = j.times[1] = j.times[2] = 0;
            pool_run(p, 3, run_task, &j);
            assert_true(j.times[0] == 1 && j.times[1] == 1 && j.times[2] == 1);
        }
        pool_free(p);
    }
    struct pool *p;
    assert_ok(pool_new(0, &p, &e), &e);
    assert_true(pool_threads(p) >= 1);
    usleep(20000); /* longer than workers spin, so they sleep */
    memset(&j, 0, sizeof j);
    j.threads = pool_threads(p);
    pool_run(p, MOST, run_task, &j);
    assert_memory_equal(j.value, one.value, sizeof j.value);
    pool_free(p);
    pool_free(NULL);
}

static void pools_open_and_close(void **state)
{
    (void)state;
    struct err e = {0};
    for (int i = 0; i < 100; i++) {
        struct pool *p;
        assert_ok(pool_new(4, &p, &e), &e);
        pool_free(p); /* freed without a run */
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(every_task_once), cmocka_unit_test(pools_open_and_close)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
