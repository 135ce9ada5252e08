/* Checks the collectives of the self and thread communicators against the definition on one
 * rank. */
#include "base/arena.h"
#include "check.h"
#include "dist/threads.h"
#include "unit/dist/collectives.h"

#include <string.h>
#include <unistd.h>

static void self_does_all(void **state)
{
    (void)state;
    struct err e = {0};
    struct comm c;
    assert_ok(comm_self(&c, &e), &e);
    assert_ok(use_all(&c, NULL, &e), &e);
    c.free(&c);
}

static void threads_do_all(void **state)
{
    (void)state;
    struct err e = {0};
    for (int ranks = 1; ranks <= 9; ranks++) assert_ok(comm_threads(ranks, 60, use_all, NULL, &e), &e);
}

/* ---- failures */

static tare_status fail_on_two(struct comm *c, void *ctx, struct err *e)
{
    (void)ctx;
    TRY(c->barrier(c, e));
    if (c->rank == 2) FAIL(e, TARE_E_IO, "the disk is full");
    TRY(c->barrier(c, e)); /* never completes */
    TRY(c->barrier(c, e));
    FAIL(e, TARE_E_GENERIC, "went on without rank 2");
}

static void a_failing_rank_ends_the_others(void **state)
{
    (void)state;
    struct err e = {0};
    assert_int_equal(comm_threads(4, 0, fail_on_two, NULL, &e), TARE_E_IO);
    assert_string_equal(e.message, "rank 2: the disk is full");
}

/* Rank 1 comes after the others have given up. */
static tare_status late_on_one(struct comm *c, void *given_up, struct err *e)
{
    tare_status status = c->barrier(c, e);
    if (c->rank == 1) {
        while (!status && !__atomic_load_n((int *)given_up, __ATOMIC_SEQ_CST)) usleep(2000);
        return status ? status : c->barrier(c, e);
    }
    if (!status) status = c->barrier(c, e);
    __atomic_store_n((int *)given_up, 1, __ATOMIC_SEQ_CST);
    return status;
}

/* The test allows more time on a busy machine, where other ranks are late as well. */
static void a_hanging_rank_is_named(void **state)
{
    static const double SECONDS[] = {0.2, 2, 20, 200};
    (void)state;
    for (int k = 0; k < 4; k++) {
        struct err e = {0};
        char wanted[100];
        int given_up = 0;
        snprintf(wanted, sizeof wanted, "waited %g s in barrier for rank 1", SECONDS[k]);
        assert_int_equal(comm_threads(3, SECONDS[k], late_on_one, &given_up, &e), TARE_E_COMM);
        if (strstr(e.message, wanted)) return;
        if (k == 3) fail_msg("%s", e.message);
    }
}

static tare_status disagree(struct comm *c, void *ctx, struct err *e)
{
    (void)ctx;
    float x[8] = {0};
    if (c->rank == 1) return c->barrier(c, e);
    return c->all_gather(c, x, 4, x + 4, e);
}

static void different_collectives_are_refused(void **state)
{
    (void)state;
    struct err e = {0};
    assert_int_equal(comm_threads(2, 5, disagree, NULL, &e), TARE_E_COMM);
    assert_non_null(strstr(e.message, "barrier"));
    assert_non_null(strstr(e.message, "all_gather"));
}

static tare_status stages(struct comm *c, void *ctx, struct err *e)
{
    (void)ctx;
    for (int64_t step = 1; step < 4; step++) {
        TRY(comm_stage(c, "rollout", step, e));
        TRY(comm_stage(c, "update", step, e));
        TRY(c->barrier(c, e));
    }
    return TARE_OK;
}

static tare_status stages_with_fault(const char *fault, struct err *e)
{
    setenv("TARE_FAULT", fault, 1);
    const tare_status status = comm_threads(3, 5, stages, NULL, e);
    unsetenv("TARE_FAULT");
    return status;
}

static void faults_happen_where_they_are_put(void **state)
{
    (void)state;
    struct err e = {0};
    assert_int_equal(stages_with_fault("rank=1,stage=update,step=2,kind=fail", &e), TARE_E_GENERIC);
    assert_non_null(strstr(e.message, "rank 1: simulated failure"));
    assert_ok(stages_with_fault("rank=1,stage=update,step=9,kind=fail", &e), &e);
    assert_ok(stages_with_fault("rank=1,stage=verify,kind=fail", &e), &e);
    assert_ok(stages_with_fault("rank=3,kind=fail", &e), &e);
    assert_int_equal(stages_with_fault("rank=1,kind=explode", &e), TARE_E_INVALID);
    assert_int_equal(stages_with_fault("rang=1,kind=fail", &e), TARE_E_INVALID);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(self_does_all),
        cmocka_unit_test(threads_do_all),
        cmocka_unit_test(a_failing_rank_ends_the_others),
        cmocka_unit_test(a_hanging_rank_is_named),
        cmocka_unit_test(different_collectives_are_refused),
        cmocka_unit_test(faults_happen_where_they_are_put),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
