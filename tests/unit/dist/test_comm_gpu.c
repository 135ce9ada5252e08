/* Collectives in a GPU's memory. Through host copies: with a backend that only simulates separate
 * memory, so that a pointer passed to the wrong side is detected. Through NCCL: one rank if there
 * is a GPU, otherwise SKIP. */
#include "base/arena.h"
#include "check.h"
#include "dist/device.h"
#include "dist/threads.h"
#include "unit/dist/collectives.h"

#include <string.h>

/* ---- a device whose pointers are off by 1 GiB: using one as host memory crashes, and uses of host
 * pointers as device pointers are counted */

enum { FAR = 1 << 30 };

static void *fake_alloc(const struct kctx *c, int64_t bytes)
{
    (void)c;
    char *p = calloc(1, (size_t)bytes);
    return p ? (void *)((uintptr_t)p ^ FAR) : NULL;
}

static char *host_of(const void *p)
{
    return (char *)((uintptr_t)p ^ FAR);
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

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(copies_through_host_memory),
        cmocka_unit_test(host_memory_stays_as_it_is),
        cmocka_unit_test(nccl_with_one_rank),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
