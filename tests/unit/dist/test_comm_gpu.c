/* Collectives in a GPU's memory. Through host copies: with a backend that only simulates separate
 * memory, so that a pointer passed to the wrong side is detected. Through NCCL: one rank if there
 * is a GPU, otherwise SKIP. */
#include "base/arena.h"
#include "check.h"
#include "dist/device.h"
#include "dist/threads.h"
#include "unit/dist/collectives.h"

#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

/* ---- a device whose pointers are off by 1 GiB: using one as host memory crashes, and uses of host
 * pointers as device pointers are counted */

enum { FAR = 1 << 30 };

static void *fake_alloc(const struct kctx *c, int64_t bytes)
{
    (void)c;
    char *p = calloc(1, (size_t)bytes);
    return p ? (void *)((uintptr_t)p + FAR) : NULL;
}

static char *host_of(const void *p)
{
    return (char *)((uintptr_t)p - FAR);
}

static void fake_release(const struct kctx *c, void *p)
{
    (void)c;
    free(host_of(p));
}

static void fake_upload(const struct kctx *c, void *dst, const void *host, int64_t bytes)
{
    (void)c;
    memcpy(host_of(dst), host, (size_t)bytes);
}

static void fake_download(const struct kctx *c, void *host, const void *src, int64_t bytes)
{
    (void)c;
    memcpy(host, host_of(src), (size_t)bytes);
}

static const struct backend FAKE_MEMORY = {
    .device = 1, .alloc = fake_alloc, .release = fake_release, .upload = fake_upload, .download = fake_download};
static const struct kernels FAKE = {.name = "fake", .backend = &FAKE_MEMORY};

/* Checks every collective in k's memory against its definition. */
static tare_status use_device(struct comm *c, const struct kernels *k, const struct kctx *x, int64_t n, struct err *e)
{
    const int64_t piece = n * 4, whole = c->size * piece;
    float *host, *in, *out;
    TRY(mem_new(whole, (void **)&host, e));
    in = k->backend->alloc(x, whole);
    out = k->backend->alloc(x, whole);
    CHECK(in && out);

    for (int64_t i = 0; i < n; i++) host[i] = value(c->rank, i);
    for (int halves = 0; halves < 2; halves++) {
        k->backend->upload(x, in, host, piece);
        if (halves) {
            TRY(c->gather_begin(c, in, piece, out, e));
            TRY(c->gather_wait(c, e));
        } else {
            TRY(c->all_gather(c, in, piece, out, e));
        }
        float *got;
        TRY(mem_new(whole, (void **)&got, e));
        k->backend->download(x, got, out, whole);
        for (int r = 0; r < c->size; r++)
            for (int64_t i = 0; i < n; i++) CHECK(got[r * n + i] == value(r, i));
        mem_free(got);
    }

    for (int64_t i = 0; i < c->size * n; i++) host[i] = value(c->rank, i);
    k->backend->upload(x, in, host, whole);
    for (int halves = 0; halves < 2; halves++) {
        memset(host, 0, (size_t)whole);
        k->backend->upload(x, out, host, whole);
        if (halves) {
            TRY(c->exchange_begin(c, in, piece, out, e));
            TRY(c->exchange_wait(c, e));
        } else {
            TRY(c->all_to_all(c, in, piece, out, e));
        }
        k->backend->download(x, host, out, whole);
        for (int r = 0; r < c->size; r++)
            for (int64_t i = 0; i < n; i++) CHECK(host[r * n + i] == value(r, c->rank * n + i));
    }

    k->backend->release(x, in);
    k->backend->release(x, out);
    mem_free(host);
    return TARE_OK;
}

static tare_status staged(struct comm *c, void *ctx, struct err *e)
{
    const struct kctx x = {0};
    struct comm copy = *c;
    (void)ctx;
    TRY(device_collectives(&copy, &FAKE, &x, COMMUNICATOR_MPI, e));
    for (int64_t n = 1; n < 5000; n = 7 * n + 1) TRY(use_device(&copy, &FAKE, &x, n, e));
    TRY(use_gather(&copy, e)); /* host memory still works */
    TRY(use_broadcast(&copy, e));
    TRY(use_agree(&copy, e));
    copy.free(&copy);
    return TARE_OK;
}

static void copies_through_host_memory(void **state)
{
    (void)state;
    struct err e = {0};
    for (int ranks = 2; ranks <= 4; ranks++) assert_ok(comm_threads(ranks, 60, staged, NULL, &e), &e);
}

static void host_memory_stays_as_it_is(void **state)
{
    (void)state;
    struct err e = {0};
    struct comm c, before;
    const struct backend memory = {0};
    const struct kernels host = {.name = "host", .backend = &memory};
    const struct kctx x = {0};
    assert_ok(comm_self(&c, &e), &e);
    before = c;
    assert_ok(device_collectives(&c, &host, &x, COMMUNICATOR_AUTO, &e), &e);
    assert_memory_equal(&before, &c, sizeof c);
    assert_int_equal(device_collectives(&c, &host, &x, COMMUNICATOR_NCCL, &e), TARE_E_CONFIG);
    assert_non_null(strstr(e.message, "run.device = cuda"));
}

static void nccl_with_one_rank(void **state)
{
    (void)state;
    struct err e = {0};
    struct comm c;
    char about[100];
    const struct kernels *k;
    struct kernel_fault fault = {0};
    const struct kctx x = {.fault = &fault};
    if (device_nccl_about(about, sizeof about, &e) || kernels_open(true, NULL, 0, &k, &e)) {
        SKIP("%s", e.message);
    }
    assert_ok(comm_self(&c, &e), &e);
    assert_ok(device_collectives(&c, k, &x, COMMUNICATOR_NCCL, &e), &e);
    assert_string_equal(c.kind, "nccl");
    assert_ok(use_device(&c, k, &x, 1, &e), &e);
    assert_ok(use_device(&c, k, &x, 5000001, &e), &e);
    assert_ok(use_agree(&c, &e), &e);
    c.free(&c);
}

/* ---- NCCL's double (tests/dist/nccl_double.c) */

static void use_double(const char *fault)
{
    const char *path = getenv("TARE_NCCL_DOUBLE");
    if (!path) SKIP("TARE_NCCL_DOUBLE does not name the double");
    setenv("TARE_NCCL", path, 1);
    setenv("NCCL_DOUBLE", fault, 1);
}

static tare_status by_nccl(struct comm *c, void *ctx, struct err *e)
{
    const struct kctx x = {0};
    struct comm copy = *c;
    (void)ctx;
    TRY(device_collectives(&copy, &FAKE, &x, COMMUNICATOR_AUTO, e));
    CHECK(!strcmp(copy.kind, "nccl") && copy.overlaps);
    for (int64_t n = 1; n < 5000; n = 7 * n + 1) TRY(use_device(&copy, &FAKE, &x, n, e));
    TRY(use_gather(&copy, e));
    copy.free(&copy);
    return TARE_OK;
}

static void nccl_between_threads(void **state)
{
    (void)state;
    struct err e = {0};
    use_double("");
    unsetenv("NCCL_NVLS_ENABLE");
    setenv("NCCL_MAX_P2P_NCHANNELS", "3", 1);
    for (int ranks = 2; ranks <= 3; ranks++) assert_ok(comm_threads(ranks, 60, by_nccl, NULL, &e), &e);
    assert_string_equal(getenv("NCCL_NVLS_ENABLE"), "0");
    assert_string_equal(getenv("NCCL_MAX_P2P_NCHANNELS"), "3"); /* the user's */
    use_double("late");
    assert_ok(comm_threads(3, 60, by_nccl, NULL, &e), &e);
}

static void a_failing_start_names_remedies(void **state)
{
    (void)state;
    const struct {
        const char *fault, *says;
        int remedies;
    } cases[] = {
        {"fail_prepare", "rank 1: NCCL: cudaEventCreate: out of memory", 0},
        {"fail_open", "rank 1: NCCL: ncclCommInitRank: unhandled cuda error", 1},
        {"wrong",
         "rank 2: NCCL: all_to_all of 67108860 bytes at the start has delivered wrong bytes to rank 2 (from rank 0, byte 1232)", 1},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        struct err e = {0};
        use_double(cases[i].fault);
        assert_int_equal(comm_threads(3, 60, by_nccl, NULL, &e), TARE_E_COMM);
        if (!strstr(e.message, cases[i].says)) fail_msg("%s: %s", cases[i].fault, e.message);
        if (cases[i].remedies && !strstr(e.message, "NCCL_P2P_DISABLE=1")) fail_msg("%s: %s", cases[i].fault, e.message);
    }
}

/* A process that must end by itself; text receives its standard error. */
static int end_of(const char *fault, char *text, size_t capacity)
{
    int ends[2], status;
    size_t at = 0;
    struct err e = {0};
    assert_int_equal(pipe(ends), 0);
    fflush(NULL);
    const pid_t child = fork();
    if (!child) {
        dup2(ends[1], 2);
        use_double(fault);
        _exit(comm_threads(2, 0.5, by_nccl, NULL, &e) ? 99 : 0);
    }
    close(ends[1]);
    for (ssize_t n; at + 1 < capacity && (n = read(ends[0], text + at, capacity - at - 1)) > 0;) at += (size_t)n;
    text[at] = 0;
    close(ends[0]);
    assert_int_equal(waitpid(child, &status, 0), child);
    return WIFEXITED(status) ? WEXITSTATUS(status) : -1;
}

static void a_hanging_start_ends_the_job(void **state)
{
    (void)state;
    const char *const cases[][2] = {{"hang_open", "opening the communicator (ncclCommInitRank) has not ended within 0.5 s"},
                                    {"hang_done", "the trial of all_gather and all_to_all has not ended within 0.5 s"},
                                    {"hang_call", "the trial of all_gather and all_to_all has not ended within 0.5 s"}};
    use_double("");
    for (int i = 0; i < 3; i++) {
        char text[4000];
        const int code = end_of(cases[i][0], text, sizeof text);
        if (code != err_exit_code(TARE_E_COMM) || !strstr(text, cases[i][1]) || !strstr(text, "NCCL_DEBUG=INFO"))
            fail_msg("%s: exit status %d: %s", cases[i][0], code, text);
    }
}

static void auto_without_nccl_is_an_error(void **state)
{
    (void)state;
    struct err e = {0};
    setenv("TARE_NCCL", "/nowhere/libtare_nccl.so", 1);
    assert_int_equal(comm_threads(2, 60, by_nccl, NULL, &e), TARE_E_UNSUPPORTED);
    assert_non_null(strstr(e.message, "there is no NCCL (/nowhere/libtare_nccl.so"));
    assert_non_null(strstr(e.message, "pip install nvidia-nccl-cu13"));
    assert_non_null(strstr(e.message, "dist.communicator = mpi"));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(copies_through_host_memory),
        cmocka_unit_test(host_memory_stays_as_it_is),
        cmocka_unit_test(nccl_with_one_rank),
        cmocka_unit_test(nccl_between_threads),
        cmocka_unit_test(a_failing_start_names_remedies),
        cmocka_unit_test(a_hanging_start_ends_the_job),
        cmocka_unit_test(auto_without_nccl_is_an_error),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
