/* The collectives of the self and thread communicators, against the definition on one rank. */
#include "base/arena.h"
#include "check.h"
#include "dist/comm.h"

#include <string.h>
#include <unistd.h>

static float value(int rank, int64_t i)
{
    uint32_t x = (uint32_t)(i + 1) * 2654435761u + (uint32_t)rank * 40503u;
    x ^= x >> 15;
    x *= 2246822519u;
    x ^= x >> 13;
    return (float)((double)x / 4294967296.0 - 0.5) * (float)(1 << (x % 20));
}

#define CHECK(X)                                                                                                                   \
    do {                                                                                                                           \
        if (!(X)) FAIL(e, TARE_E_GENERIC, "rank %d of %d: not true: %s", c->rank, c->size, #X);                                    \
    } while (0)

static tare_status use_gather(struct comm *c, struct err *e)
{
    char mine[64], out[64 * 64];
    int64_t sizes[64];
    const int64_t n = (c->rank * 7) % 5 + (c->rank > 0); /* rank 0 gives nothing */
    for (int64_t i = 0; i < n; i++) mine[i] = (char)(c->rank * 10 + i);
    TRY(comm_gather_sizes(c, n, sizes, e));
    TRY(c->gather(c, mine, n, out, sizes, e));
    const char *at = out;
    for (int r = 0; r < c->size; r++) {
        CHECK(sizes[r] == (r * 7) % 5 + (r > 0));
        for (int64_t i = 0; i < sizes[r]; i++) CHECK(*at++ == (char)(r * 10 + i));
    }
    return TARE_OK;
}

static tare_status use_broadcast(struct comm *c, struct err *e)
{
    for (int root = 0; root < c->size; root++) {
        int64_t data[100];
        for (int i = 0; i < 100; i++) data[i] = c->rank == root ? root * 1000 + i : -1;
        TRY(c->broadcast(c, data, sizeof data, root, e));
        for (int i = 0; i < 100; i++) CHECK(data[i] == root * 1000 + i);
    }
    return c->barrier(c, e);
}

/* n floats a piece, out of place, in place and in two halves */
static tare_status use_all_gather(struct comm *c, int64_t n, struct err *e)
{
    float *out = NULL, *two = NULL;
    tare_status status;
    const int64_t bytes = n * (int64_t)sizeof(float);
    TRY_TO(status, done, mem_new(c->size * bytes + 4, (void **)&out, e));
    TRY_TO(status, done, mem_new(c->size * bytes + 4, (void **)&two, e));
    for (int64_t i = 0; i < n; i++) out[c->rank * n + i] = value(c->rank, i);
    TRY_TO(status, done, c->gather_begin(c, out + c->rank * n, bytes, two, e));
    TRY_TO(status, done, c->gather_wait(c, e));
    TRY_TO(status, done, c->all_gather(c, out + c->rank * n, bytes, out, e));
    for (int r = 0; r < c->size; r++)
        for (int64_t i = 0; i < n; i++)
            if (out[r * n + i] != value(r, i) || two[r * n + i] != value(r, i))
                FAIL_TO(status, done, e, TARE_E_GENERIC, "all_gather: rank %d has element %lld of rank %d wrong", c->rank,
                        (long long)i, r);
done:
    mem_free(out);
    mem_free(two);
    return status;
}

/* ((0 + 1) + (2 + 3)) + ..., written as the definition says */
static float tree_of(float *x, int count)
{
    for (int step = 1; step < count; step *= 2)
        for (int i = 0; i + step < count; i += 2 * step) x[i] += x[i + step];
    return x[0];
}

static tare_status use_reduce_scatter(struct comm *c, int64_t n, struct err *e)
{
    float *in = NULL, *out = NULL, x[64];
    tare_status status;
    const int64_t bytes = n * (int64_t)sizeof(float);
    TRY_TO(status, done, mem_new(c->size * bytes + 4, (void **)&in, e));
    TRY_TO(status, done, mem_new(bytes + 4, (void **)&out, e));
    for (int64_t i = 0; i < c->size * n; i++) in[i] = value(c->rank, i);
    TRY_TO(status, done, c->reduce_scatter(c, in, n, out, e));
    for (int64_t i = 0; i < c->size * n; i++)
        if (in[i] != value(c->rank, i)) FAIL_TO(status, done, e, TARE_E_GENERIC, "reduce_scatter changed its input");
    TRY_TO(status, done, c->reduce_scatter(c, in, n, in + c->rank * n, e));
    for (int64_t i = 0; i < n; i++) {
        for (int r = 0; r < c->size; r++) x[r] = value(r, c->rank * n + i);
        const float want = tree_of(x, c->size);
        if (memcmp(&out[i], &want, 4) || memcmp(&in[c->rank * n + i], &want, 4))
            FAIL_TO(status, done, e, TARE_E_GENERIC, "reduce_scatter: rank %d, element %lld: %a, not %a", c->rank, (long long)i,
                    (double)out[i], (double)want);
    }
done:
    mem_free(in);
    mem_free(out);
    return status;
}

static tare_status use_all_to_all(struct comm *c, int64_t n, struct err *e)
{
    float *in = NULL, *out = NULL;
    tare_status status;
    const int64_t bytes = n * (int64_t)sizeof(float);
    TRY_TO(status, done, mem_new(c->size * bytes + 4, (void **)&in, e));
    TRY_TO(status, done, mem_new(c->size * bytes + 4, (void **)&out, e));
    for (int64_t i = 0; i < c->size * n; i++) in[i] = value(c->rank, i);
    TRY_TO(status, done, c->all_to_all(c, in, bytes, out, e));
    for (int r = 0; r < c->size; r++)
        for (int64_t i = 0; i < n; i++)
            if (out[r * n + i] != value(r, c->rank * n + i))
                FAIL_TO(status, done, e, TARE_E_GENERIC, "all_to_all: piece of rank %d, element %lld", r, (long long)i);
done:
    mem_free(in);
    mem_free(out);
    return status;
}

static tare_status use_agree(struct comm *c, struct err *e)
{
    struct err mine = {0};
    CHECK(comm_agree(c, TARE_OK, &mine) == TARE_OK);
    const int bad = c->size / 2; /* and the ranks behind it; rank 0 was only interrupted */
    tare_status s = TARE_OK;
    if (c->rank == 0) s = err_set(&mine, TARE_E_CANCELLED, __FILE__, __LINE__, "interrupted");
    if (c->rank >= bad && c->size > 1) s = err_set(&mine, TARE_E_SHAPE, __FILE__, __LINE__, "bad shape on %d", c->rank);
    const tare_status got = comm_agree(c, s, &mine);
    if (c->size == 1) {
        CHECK(got == TARE_E_CANCELLED);
    } else {
        char want[64];
        snprintf(want, sizeof want, "rank %d: bad shape on %d", bad, bad);
        CHECK(got == TARE_E_SHAPE);
        CHECK(!strcmp(mine.message, want));
    }
    s = c->rank == c->size - 1 ? err_set(&mine, TARE_E_CANCELLED, __FILE__, __LINE__, "interrupted") : TARE_OK;
    CHECK(comm_agree(c, s, &mine) == TARE_E_CANCELLED);
    CHECK(!strcmp(mine.message, "interrupted"));
    return TARE_OK;
}

static tare_status use_same(struct comm *c, struct err *e)
{
    struct err mine = {0};
    struct comm_fact f[] = {{"run.seed", "1"}, {"model.path", "a b"}, {"x", ""}};
    CHECK(comm_same(c, "configuration", f, 3, &mine) == TARE_OK);
    if (c->size == 1) return TARE_OK;
    if (c->rank) f[1].value = "a c";
    CHECK(comm_same(c, "configuration", f, 3, &mine) == TARE_E_CONFIG);
    CHECK(strstr(mine.message, "configuration differs between ranks: model.path is 'a b' on rank 0 and 'a c' on rank"));
    f[1].value = "a b";
    CHECK(comm_same(c, "plugins", f, c->rank == c->size - 1 ? 3 : 2, &mine) == TARE_E_CONFIG);
    CHECK(strstr(mine.message, "x is missing on rank 0 and '' on rank"));
    CHECK(comm_same(c, "plugins", f, c->rank == c->size - 1 ? 2 : 3, &mine) == TARE_E_CONFIG);
    CHECK(strstr(mine.message, "x is '' on rank 0 and missing on rank"));
    return TARE_OK;
}

static tare_status use_all(struct comm *c, void *ctx, struct err *e)
{
    (void)ctx;
    TRY(use_gather(c, e));
    TRY(use_broadcast(c, e));
    for (int64_t n = 0; n < 3000; n = 3 * n + 1) {
        TRY(use_all_gather(c, n, e));
        TRY(use_reduce_scatter(c, n, e));
        TRY(use_all_to_all(c, n, e));
    }
    TRY(use_agree(c, e));
    return use_same(c, e);
}

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

/* Eight summands on one rank, and the same eight dealt to 2, 4 and 8 ranks: the same bits. */
static void tree_does_not_depend_on_ranks(void **state)
{
    (void)state;
    enum { N = 1300 };
    static float in[8][N], part[8][N], out[N], whole[N];
    const float *p[8], *q[8];
    for (int s = 0; s < 8; s++) {
        for (int64_t i = 0; i < N; i++) in[s][i] = value(s, i);
        p[s] = in[s];
    }
    comm_tree_sum(p, 8, N, whole);
    for (int64_t i = 0; i < N; i++) {
        float x[8];
        for (int s = 0; s < 8; s++) x[s] = value(s, i);
        const float want = tree_of(x, 8);
        assert_memory_equal(&want, &whole[i], 4);
    }
    for (int ranks = 2; ranks <= 8; ranks *= 2) {
        for (int r = 0; r < ranks; r++) {
            comm_tree_sum(p + r * (8 / ranks), 8 / ranks, N, part[r]);
            q[r] = part[r];
        }
        comm_tree_sum(q, ranks, N, out);
        assert_memory_equal(out, whole, sizeof out);
    }
    comm_tree_sum(p, 8, N, in[3]); /* into an input */
    assert_memory_equal(in[3], whole, sizeof whole);
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

static tare_status late_on_one(struct comm *c, void *ctx, struct err *e)
{
    (void)ctx;
    TRY(c->barrier(c, e));
    if (c->rank == 1) usleep(1500000);
    return c->barrier(c, e);
}

static void a_hanging_rank_is_named(void **state)
{
    (void)state;
    struct err e = {0};
    assert_int_equal(comm_threads(3, 0.2, late_on_one, NULL, &e), TARE_E_COMM);
    assert_non_null(strstr(e.message, "waited 0.2 s in barrier for rank 1"));
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
    assert_non_null(strstr(e.message, "rank 1: this rank was told to fail"));
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
        cmocka_unit_test(tree_does_not_depend_on_ranks),
        cmocka_unit_test(a_failing_rank_ends_the_others),
        cmocka_unit_test(a_hanging_rank_is_named),
        cmocka_unit_test(different_collectives_are_refused),
        cmocka_unit_test(faults_happen_where_they_are_put),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
