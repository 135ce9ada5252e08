#include "dist/device.h"

#include "base/arena.h"
#include "base/clock.h"
#include "base/log.h"
#include "dist/gpu_collectives.h"
#include "dist/gpu_start.h"
#include "dist/halves.h"
#include "dist/load_library.h"
#include "dist/watch.h"

#include <stdio.h>
#include <string.h>
#include <time.h>

enum {
    SLOT_CALL = 0,
    SLOT_PENDING = 1, /* .. + COMM_PENDING - 1 */
    SLOT_EXCHANGE = SLOT_PENDING + COMM_PENDING,
};
_Static_assert(SLOT_EXCHANGE + COMM_EXCHANGES <= GPU_SLOTS, "every half has a slot");

struct device {
    struct comm host; /* the replaced functions */
    const struct kernels *k;
    const struct kctx *ctx;
    struct gpu_collectives *gpu;
    void *stream; /* compute stream of the backend; NULL: unknown */
    struct halves gathers, exchanges;
    char *copy[2]; /* host memory */
    int64_t copy_size[2];
    bool broken; /* a call of NCCL's has failed: its end would wait for ever */
};

/* ---- collectives that need no GPU use the replaced communicator */

static tare_status host_gather(struct comm *c, const void *in, int64_t n, void *out, const int64_t *out_bytes, struct err *e)
{
    struct device *d = c->self;
    return d->host.gather(&d->host, in, n, out, out_bytes, e);
}

static tare_status host_broadcast(struct comm *c, void *data, int64_t n, int root, struct err *e)
{
    struct device *d = c->self;
    return d->host.broadcast(&d->host, data, n, root, e);
}

static tare_status host_barrier(struct comm *c, struct err *e)
{
    struct device *d = c->self;
    return d->host.barrier(&d->host, e);
}

static void host_abort(struct comm *c, const struct err *e)
{
    struct device *d = c->self;
    d->host.abort(&d->host, e);
}

static void host_note(struct comm *c)
{
    struct device *d = c->self;
    d->host.stage = c->stage;
    d->host.step = c->step;
    if (d->host.note) d->host.note(&d->host);
}

static void host_enter(struct comm *c, const char *collective)
{
    struct device *d = c->self;
    if (d->host.enter) d->host.enter(&d->host, collective);
}

static void device_free(struct comm *c)
{
    struct device *d = c->self;
    struct comm host = d->host;
    if (d->gpu && d->gpu->close(d->gpu, !d->broken)) log_warn("%s", d->gpu->error);
    mem_free(d->copy[0]);
    mem_free(d->copy[1]);
    mem_free(d);
    host.free(&host);
}

/* Waits for all computation, and reports a fault of the backend as an error. */
static tare_status finish_backend(const struct device *d, struct err *e)
{
    if (d->k->backend->finish) d->k->backend->finish(d->ctx);
    if (d->ctx->fault && d->ctx->fault->code) FAIL(e, TARE_E_DEVICE, "a collective follows a failure of the device");
    return TARE_OK;
}

/* ---- copies through host memory */

static tare_status stage_in(struct device *d, const void *in, int64_t bytes, int64_t out_bytes, struct err *e)
{
    TRY(finish_backend(d, e));
    TRY(mem_grow((void **)&d->copy[0], &d->copy_size[0], bytes, 1, e));
    TRY(mem_grow((void **)&d->copy[1], &d->copy_size[1], out_bytes, 1, e));
    d->k->backend->download(d->ctx, d->copy[0], in, bytes);
    return TARE_OK;
}

static tare_status stage_out(struct device *d, void *out, int64_t bytes, struct err *e)
{
    d->k->backend->upload(d->ctx, out, d->copy[1], bytes);
    return finish_backend(d, e);
}

static tare_status staged_all_gather(struct comm *c, const void *in, int64_t bytes, void *out, struct err *e)
{
    struct device *d = c->self;
    if (!bytes || (c->size == 1 && in == out)) return TARE_OK;
    TRY(stage_in(d, in, bytes, c->size * bytes, e));
    TRY(d->host.all_gather(&d->host, d->copy[0], bytes, d->copy[1], e));
    return stage_out(d, out, c->size * bytes, e);
}

static tare_status staged_all_to_all(struct comm *c, const void *in, int64_t bytes, void *out, struct err *e)
{
    struct device *d = c->self;
    if (!bytes) return TARE_OK;
    TRY(stage_in(d, in, c->size * bytes, c->size * bytes, e));
    TRY(d->host.all_to_all(&d->host, d->copy[0], bytes, d->copy[1], e));
    return stage_out(d, out, c->size * bytes, e);
}

static tare_status staged_wait(struct comm *c, struct err *e)
{
    (void)c, (void)e; /* begin has completed it */
    return TARE_OK;
}

/* ---- NCCL */

static tare_status slot_failed(struct device *d, const char *what, struct err *e)
{
    d->broken = true;
    FAIL(e, TARE_E_COMM, "%s: %s", what, d->gpu->error);
}

/* Waits for the backend unless the stream of collectives follows the compute stream by events. */
static tare_status order_after_backend(const struct device *d, struct err *e)
{
    return d->stream ? TARE_OK : finish_backend(d, e);
}

/* Waits on the host, so that a rank that hangs is noticed (comm.h, timeout_s) and the result is
 * complete afterwards. */
static tare_status wait_slot(struct comm *c, int slot, const char *what, struct err *e)
{
    struct device *d = c->self;
    const double began = clock_seconds();
    char name[64];
    snprintf(name, sizeof name, WATCH_NCCL " %s", what);
    host_enter(c, name);
    for (bool done = false; !done;) {
        if (d->gpu->done(d->gpu, slot, &done)) return slot_failed(d, what, e);
        if (done || clock_seconds() - began < 2e-3) continue;
        const struct timespec t = {0, 50000};
        nanosleep(&t, NULL);
    }
    host_enter(c, NULL);
    return TARE_OK;
}

static tare_status nccl_all_gather(struct comm *c, const void *in, int64_t bytes, void *out, struct err *e)
{
    struct device *d = c->self;
    if (!bytes) return TARE_OK;
    TRY(order_after_backend(d, e));
    if (d->gpu->all_gather(d->gpu, SLOT_CALL, in, bytes, out)) return slot_failed(d, "all_gather", e);
    return wait_slot(c, SLOT_CALL, "all_gather", e);
}

static tare_status nccl_all_to_all(struct comm *c, const void *in, int64_t bytes, void *out, struct err *e)
{
    struct device *d = c->self;
    if (!bytes) return TARE_OK;
    TRY(order_after_backend(d, e));
    if (d->gpu->all_to_all(d->gpu, SLOT_CALL, in, bytes, out)) return slot_failed(d, "all_to_all", e);
    return wait_slot(c, SLOT_CALL, "all_to_all", e);
}

static tare_status nccl_gather_begin(struct comm *c, const void *in, int64_t bytes, void *out, struct err *e)
{
    struct device *d = c->self;
    int slot;
    TRY(halves_begin(&d->gathers, &slot, e));
    TRY(order_after_backend(d, e));
    return d->gpu->all_gather(d->gpu, slot, in, bytes, out) ? slot_failed(d, "all_gather", e) : TARE_OK;
}

static tare_status nccl_gather_wait(struct comm *c, struct err *e)
{
    struct device *d = c->self;
    int slot;
    TRY(halves_wait(&d->gathers, &slot, e));
    return wait_slot(c, slot, "all_gather", e);
}

static tare_status nccl_exchange_begin(struct comm *c, const void *in, int64_t bytes, void *out, struct err *e)
{
    struct device *d = c->self;
    int slot;
    TRY(halves_begin(&d->exchanges, &slot, e));
    TRY(order_after_backend(d, e));
    return d->gpu->all_to_all(d->gpu, slot, in, bytes, out) ? slot_failed(d, "all_to_all", e) : TARE_OK;
}

static tare_status nccl_exchange_wait(struct comm *c, struct err *e)
{
    struct device *d = c->self;
    int slot;
    TRY(halves_wait(&d->exchanges, &slot, e));
    return wait_slot(c, slot, "all_to_all", e);
}

static tare_status load_collectives(struct gpu_collectives **out, struct err *e)
{
    static const struct library nccl = {
        .file = "libtare_nccl.so",
        .symbol = GPU_COLLECTIVES_SYMBOL,
        .given = "TARE_NCCL",
        .abi = GPU_COLLECTIVES_ABI,
        .missing = "there is no NCCL",
        .advice =
            "install it (apt install libnccl2 libnccl-dev next to the CUDA toolkit, or pip install nvidia-nccl-cu13) and build again (make, and cmake --install if tare is installed), or set dist.communicator = mpi, which sends everything through host memory"};
    return load_library_open(&nccl, (void **)out, e);
}

tare_status device_nccl_about(char *text, int64_t capacity, struct err *e)
{
    struct gpu_collectives *g;
    TRY(load_collectives(&g, e));
    g->describe(g);
    snprintf(text, (size_t)capacity, "%s", g->about);
    return TARE_OK;
}

/* Agrees before the blocking init: a rank that has failed by then would leave the others in it. */
static tare_status open_nccl(struct device *d, struct gpu_deadline *deadline, struct err *e)
{
    char id[GPU_ID_BYTES] = {0};
    tare_status status = TARE_OK;
    gpu_start_settings();
    if (d->host.rank == 0 && d->gpu->make_id(d->gpu, id)) status = slot_failed(d, "NCCL", e);
    TRY(comm_agree(&d->host, status, e));
    TRY(d->host.broadcast(&d->host, id, sizeof id, 0, e));
    status = finish_backend(d, e); /* the device is chosen */
    if (!status && d->gpu->prepare(d->gpu, d->host.rank, d->host.size, d->stream)) status = slot_failed(d, "NCCL", e);
    TRY(comm_agree(&d->host, status, e));
    gpu_deadline_note(deadline, "opening the communicator (ncclCommInitRank)");
    status = TARE_OK;
    if (d->gpu->open(d->gpu, id)) {
        d->broken = true;
        status = err_set(e, TARE_E_COMM, __FILE__, __LINE__, "NCCL: %s; %s", d->gpu->error, GPU_START_ADVICE);
    }
    return comm_agree(&d->host, status, e);
}

static void replace_collectives(struct comm *c, struct device *d)
{
    const bool gpu = d->gpu;
    c->self = d;
    c->gather = host_gather;
    c->broadcast = host_broadcast;
    c->barrier = host_barrier;
    c->abort = host_abort;
    c->note = host_note;
    c->enter = host_enter;
    c->free = device_free;
    c->kind = gpu ? "nccl" : c->kind;
    c->overlaps = gpu;
    c->all_gather = gpu ? nccl_all_gather : staged_all_gather;
    c->all_to_all = gpu ? nccl_all_to_all : staged_all_to_all;
    c->gather_begin = gpu ? nccl_gather_begin : staged_all_gather;
    c->gather_wait = gpu ? nccl_gather_wait : staged_wait;
    c->exchange_begin = gpu ? nccl_exchange_begin : staged_all_to_all;
    c->exchange_wait = gpu ? nccl_exchange_wait : staged_wait;
}

/* Opens NCCL and tries it, under a deadline. If that fails, *c is as before. */
static tare_status start_nccl(struct comm *c, struct device *d, struct err *e)
{
    struct gpu_deadline deadline;
    const struct comm before = *c;
    TRY(gpu_deadline_begin(&deadline, &d->host, c->timeout_s, e));
    tare_status status = open_nccl(d, &deadline, e);
    if (!status) {
        replace_collectives(c, d);
        gpu_deadline_note(&deadline, "the trial of all_gather and all_to_all");
        status = gpu_start_try(c, d->k, d->ctx, e);
    }
    gpu_deadline_end(&deadline);
    if (!status) return TARE_OK;
    d->gpu->close(d->gpu, false);
    *c = before;
    return status;
}

/* Says once how GPUs exchange: through host memory a step may take several times as long. */
static void log_communicator(const struct device *d)
{
    if (d->host.rank || d->host.size == 1) return;
    if (d->gpu) {
        d->gpu->describe(d->gpu);
        log_info("communicator: nccl (%s), tried between %d ranks", d->gpu->about, d->host.size);
    } else {
        log_warn("communicator: %s, through host memory; a step is much slower than with dist.communicator = nccl", d->host.kind);
    }
}

tare_status device_collectives(struct comm *c, const struct kernels *k, const struct kctx *ctx, enum communicator library,
                               struct err *e)
{
    struct device *d;
    struct gpu_collectives *gpu = NULL;
    const bool wanted = library == COMMUNICATOR_NCCL;
    if (!k->backend->device && wanted)
        FAIL(e, TARE_E_CONFIG, "dist.communicator = nccl: needs GPUs; set run.device = cuda, or dist.communicator = auto");
    if (!k->backend->device || (c->size == 1 && !wanted)) return TARE_OK;
    /* Never host memory unasked: it would be noticed only by the time that a step takes. */
    if (library != COMMUNICATOR_MPI) TRY(comm_agree(c, load_collectives(&gpu, e), e));
    TRY(mem_new((int64_t)sizeof *d, (void **)&d, e));
    *d = (struct device){.host = *c,
                         .k = k,
                         .ctx = ctx,
                         .gpu = gpu,
                         .gathers = {"gather", SLOT_PENDING, COMM_PENDING, 0, 0},
                         .exchanges = {"exchange", SLOT_EXCHANGE, COMM_EXCHANGES, 0, 0},
                         .stream = k->backend->stream ? k->backend->stream(ctx) : ctx->stream};
    if (!gpu) replace_collectives(c, d);
    const tare_status status = gpu ? start_nccl(c, d, e) : TARE_OK;
    if (status)
        mem_free(d);
    else
        log_communicator(d);
    return status;
}
