/* The process's device: stream, scratch memory, failures of operations, and memory for the
 * engine. */
#include "cuda.h"

#include "region.h"

#include <map>
#include <mutex>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { OP_SHAPES = 8, RING_BYTES = 32 << 20, SCRATCH_UNIT = 16 << 20, ALIGN = 256 };

/* One process has one device. */
static struct cuda_state {
    bool open;
    int processors, capability;
    /* the device has programmatic dependent launches, and TARE_CUDA_CHAIN is not 0 (open_device) */
    bool early = true;
    /* chain: a token is being issued; behind: the last issued work is a kernel of that token */
    bool chain, behind;
    cudaStream_t stream;
    /* the operation that is being issued */
    const char *op, *names;
    uint64_t number;
    int n_shapes;
    int64_t shapes[OP_SHAPES];
    /* scratch memory, released when the next operation begins */
    unsigned char *scratch;
    int64_t scratch_bytes, scratch_used;
    /* arguments on their way to the device: host bytes go through pinned memory */
    unsigned char *ring_host, *ring_device;
    int64_t ring_used;
    /* memory: the reserved region, and allocations outside it */
    struct region region;
    unsigned char *region_base;
    std::map<void *, int64_t> *beyond;
    int64_t beyond_bytes, beyond_most, taken;
    const char *beyond_stage;
} state;

uint64_t cuda_operation(void)
{
    return state.number;
}

#ifdef TARE_CUDA_SHIM
extern "C" int shim_processors; /* for tests; 0: as many as there are blocks */
int shim_processors;
int cuda_processors(void)
{
    return shim_processors;
}
int cuda_capability(void)
{
    return 90; /* the capability whose instructions the shim has */
}
#else
int cuda_processors(void)
{
    return state.processors;
}
int cuda_capability(void)
{
    return state.capability;
}
#endif

void cuda_chain(bool on)
{
    state.chain = on;
    state.behind = false;
}

void cuda_no_kernel(void)
{
    state.behind = false;
}

bool cuda_follows(void)
{
    const bool follows = state.chain && state.behind && state.early;
    state.behind = true;
    return follows;
}

cudaStream_t cuda_stream(const struct kctx *c)
{
    return c->stream ? (cudaStream_t)c->stream : state.stream;
}

/* ---- failures */

/* Format "matmul (t 4096, n 1536, k 1536)". */
static void describe_operation(char *text, size_t size)
{
    size_t used = (size_t)snprintf(text, size, "%s (", state.op ? state.op : "CUDA");
    const char *name = state.names ? state.names : "";
    for (int i = 0; i < state.n_shapes && used < size; i++) {
        const size_t n = strcspn(name, " ");
        used += (size_t)snprintf(text + used, size - used, "%s%.*s %lld", i ? ", " : "", (int)n, name, (long long)state.shapes[i]);
        name += n + (name[n] == ' ');
    }
    if (used < size) snprintf(text + used, size - used, ")");
}

void cuda_failed(const struct kctx *c, tare_status code, const char *what, const char *why)
{
    char op[300];
    describe_operation(op, sizeof op);
    kernel_fail(c, code, "%s: %s%s%s", op, what ? what : "", what ? ": " : "", why);
}

/* An error of the device is reported by some later call, so an earlier operation may have
 * failed. */
static bool arrives_late(cudaError_t status)
{
    return status == cudaErrorIllegalAddress || status == cudaErrorLaunchFailure || status == cudaErrorMisalignedAddress ||
           status == cudaErrorAssert || status == cudaErrorLaunchTimeout || status == cudaErrorECCUncorrectable ||
           status == cudaErrorIllegalInstruction || status == cudaErrorHardwareStackError;
}

bool cuda_try(const struct kctx *c, cudaError_t status, const char *what)
{
    if (status == cudaSuccess) return true;
    char why[300], call[64];
    const size_t n = strcspn(what, "(");
    snprintf(call, sizeof call, "%.*s", (int)(n < sizeof call - 1 ? n : sizeof call - 1), what);
    snprintf(why, sizeof why, "%s (%s)%s", cudaGetErrorString(status), cudaGetErrorName(status),
             arrives_late(status) ? "; an earlier operation may have caused it, CUDA_LAUNCH_BLOCKING=1 shows which" : "");
    cuda_failed(c, status == cudaErrorMemoryAllocation ? TARE_E_NOMEM : TARE_E_DEVICE, call, why);
    return false;
}

void cuda_launched(const struct kctx *c, const char *kernel)
{
    cuda_try(c, cudaGetLastError(), kernel);
}

bool cuda_begin(const struct kctx *c, const char *op, const char *names, int n, const int64_t *shapes)
{
    if (kernel_faulted(c)) return false;
    state.op = op;
    state.number++;
    state.names = names;
    state.n_shapes = n < OP_SHAPES ? n : OP_SHAPES;
    for (int i = 0; i < state.n_shapes; i++) state.shapes[i] = shapes[i];
    state.scratch_used = 0;
    return true;
}

/* ---- the device's memory: blocks in the region, and blocks outside it that do not fit */

static void *take_outside(const struct kctx *c, int64_t bytes)
{
    void *p = NULL;
    if (!state.beyond) state.beyond = new std::map<void *, int64_t>;
    if (cudaMalloc(&p, (size_t)bytes) != cudaSuccess) {
        cudaGetLastError(); /* clears the error */
        return NULL;
    }
    (*state.beyond)[p] = bytes;
    state.taken++;
    state.beyond_bytes += bytes;
    if (state.beyond_bytes > state.beyond_most) state.beyond_most = state.beyond_bytes;
    if (state.region.size && !state.beyond_stage)
        state.beyond_stage = c->fault && c->fault->stage ? c->fault->stage : "an operation";
    return p;
}

static void *take_memory(const struct kctx *c, int64_t bytes)
{
    const int64_t at = state.region.size ? region_take(&state.region, bytes) : -1;
    return at < 0 ? take_outside(c, bytes > 0 ? bytes : 1) : state.region_base + at;
}

void *cuda_take(const struct kctx *c, int64_t bytes, const char *what)
{
    if (kernel_faulted(c)) return NULL;
    void *p = take_memory(c, bytes);
    if (p) return p;
    struct kernel_memory m;
    char why[200];
    cuda_memory_use(c, &m);
    int n = snprintf(why, sizeof why, "%.1f MiB requested, the device has %.1f MiB free", (double)bytes / (1 << 20),
                     (double)m.device / (1 << 20));
    if (m.region)
        snprintf(why + n, sizeof why - (size_t)n, ", the planned region %.1f MiB (largest block %.1f MiB)",
                 (double)(m.region - m.held) / (1 << 20), (double)m.largest / (1 << 20));
    cuda_failed(c, TARE_E_NOMEM, what, why);
    return NULL;
}

/* A block of the region may be reused at once: work that still uses it was issued earlier. */
void cuda_give(void *p)
{
    unsigned char *at = (unsigned char *)p;
    if (!p) return;
    if (state.region.size && at >= state.region_base && at < state.region_base + state.region.size) {
        const int64_t bytes = region_give(&state.region, at - state.region_base);
        cuda_poison(p, bytes);
        return;
    }
    if (state.beyond) {
        const auto block = state.beyond->find(p);
        if (block != state.beyond->end()) {
            state.beyond_bytes -= block->second;
            state.beyond->erase(block);
        }
    }
    cudaFree(p); /* waits for work that uses it */
}

int cuda_reserve(const struct kctx *c, int64_t bytes)
{
    CUDA_OP_OR(c, 0, "reserve", "bytes", bytes);
    const int64_t size = bytes > 0 ? region_round(bytes) : 0;
    void *p = NULL;
    if (state.region.held) return 0;
    if (state.region_base) cudaFree(state.region_base);
    region_close(&state.region);
    state.region_base = NULL, state.beyond_stage = NULL;
    state.taken = 0, state.beyond_most = state.beyond_bytes;
    if (!size) return 1;
    if (cudaMalloc(&p, (size_t)size) != cudaSuccess) {
        cudaGetLastError();
        return 0;
    }
    if (!region_open(&state.region, size)) {
        cudaFree(p);
        return 0;
    }
    state.region_base = (unsigned char *)p;
    state.taken = 1;
    return 1;
}

void cuda_memory_use(const struct kctx *c, struct kernel_memory *out)
{
    size_t left = 0, all = 0;
    (void)c;
    if (cudaMemGetInfo(&left, &all) != cudaSuccess) cudaGetLastError();
    *out = {};
    out->region = state.region.size, out->held = state.region.held, out->most = state.region.most;
    out->largest = region_largest(&state.region);
    out->beyond = state.beyond_bytes, out->beyond_most = state.beyond_most, out->beyond_stage = state.beyond_stage;
    out->taken = state.taken;
    out->device = (int64_t)left;
}

void *cuda_own_stream(const struct kctx *c)
{
    return (void *)cuda_stream(c);
}

/* ---- scratch memory of operations */

bool cuda_scratch_reserve(const struct kctx *c, int64_t bytes)
{
    if (kernel_faulted(c)) return false;
    if (bytes <= state.scratch_bytes) return true;
    const int64_t wanted = (bytes + bytes / 16 + SCRATCH_UNIT - 1) / SCRATCH_UNIT * SCRATCH_UNIT;
    void *p;
    /* issued work may use the old block */
    if (!CUDA_TRY(c, cudaStreamSynchronize(cuda_stream(c)))) return false;
    cuda_give(state.scratch);
    state.scratch = NULL;
    state.scratch_bytes = 0;
    if (!(p = cuda_take(c, wanted, "working memory"))) return false;
    state.scratch = (unsigned char *)p;
    state.scratch_bytes = wanted;
    state.number++; /* invalidates data that an operation left there */
    return true;
}

void *cuda_scratch(const struct kctx *c, int64_t bytes)
{
    const int64_t need = (bytes + ALIGN - 1) / ALIGN * ALIGN, at = state.scratch_used;
    if (at + need > state.scratch_bytes) {
        /* the operation's earlier allocations must stay valid: it requests everything at once, or
         * the space was reserved */
        if (at) {
            cuda_failed(c, TARE_E_NOMEM, "working memory",
                        "two allocations do not fit; the operation must reserve their total first");
            return NULL;
        }
        if (!cuda_scratch_reserve(c, need)) return NULL;
    }
    state.scratch_used += need;
    return state.scratch + at;
}

/* Allocate from the pinned ring; the offset in ring_device is the same. No issued work uses this
 * part any more. */
static unsigned char *ring_take(const struct kctx *c, int64_t bytes)
{
    const int64_t need = (bytes + ALIGN - 1) / ALIGN * ALIGN;
    if (kernel_faulted(c)) return NULL;
    if (need > RING_BYTES) {
        cuda_failed(c, TARE_E_NOMEM, "arguments", "more than 32 MiB in one call");
        return NULL;
    }
    if (!state.ring_host) {
        void *h, *d;
        if (!CUDA_TRY(c, cudaMallocHost(&h, RING_BYTES)) || !(d = cuda_take(c, RING_BYTES, "arguments"))) return NULL;
        state.ring_host = (unsigned char *)h, state.ring_device = (unsigned char *)d;
    }
    if (state.ring_used + need > RING_BYTES) {
        if (!CUDA_TRY(c, cudaStreamSynchronize(cuda_stream(c)))) return NULL;
        state.ring_used = 0;
    }
    state.ring_used += need;
    return state.ring_host + state.ring_used - need;
}

void *cuda_upload_args(const struct kctx *c, const void *host, int64_t bytes)
{
    unsigned char *pinned = ring_take(c, bytes);
    if (!pinned) return NULL;
    unsigned char *device = state.ring_device + (pinned - state.ring_host);
    memcpy(pinned, host, (size_t)bytes);
    cuda_no_kernel();
    return CUDA_TRY(c, cudaMemcpyAsync(device, pinned, (size_t)bytes, cudaMemcpyHostToDevice, cuda_stream(c))) ? device : NULL;
}

/* ---- memory of the engine */

void *cuda_alloc(const struct kctx *c, int64_t bytes)
{
    CUDA_OP_OR(c, NULL, "alloc", "bytes", bytes);
    void *p = take_memory(c, bytes); /* NULL: the caller adds the purpose (kernels_no_memory) */
    if (p && CUDA_TRY(c, cudaMemsetAsync(p, 0, (size_t)(bytes > 0 ? bytes : 1), cuda_stream(c)))) return p;
    cuda_give(p);
    return NULL;
}

void cuda_release(const struct kctx *c, void *p)
{
    (void)c;
    cuda_give(p);
}

void cuda_upload(const struct kctx *c, void *dst, const void *host, int64_t bytes)
{
    CUDA_OP(c, "upload", "bytes", bytes);
    if (bytes <= 0) return;
    if (bytes <= RING_BYTES / 16) { /* small arrays such as indices: no reason to wait */
        unsigned char *pinned = ring_take(c, bytes);
        if (!pinned) return;
        memcpy(pinned, host, (size_t)bytes);
        CUDA_TRY(c, cudaMemcpyAsync(dst, pinned, (size_t)bytes, cudaMemcpyHostToDevice, cuda_stream(c)));
        return;
    }
    if (CUDA_TRY(c, cudaMemcpyAsync(dst, host, (size_t)bytes, cudaMemcpyHostToDevice, cuda_stream(c))))
        CUDA_TRY(c, cudaStreamSynchronize(cuda_stream(c)));
}

void cuda_download(const struct kctx *c, void *host, const void *src, int64_t bytes)
{
    CUDA_OP(c, "download", "bytes", bytes);
    if (bytes <= 0) return;
    if (CUDA_TRY(c, cudaMemcpyAsync(host, src, (size_t)bytes, cudaMemcpyDeviceToHost, cuda_stream(c))))
        CUDA_TRY(c, cudaStreamSynchronize(cuda_stream(c)));
}

void cuda_zero(const struct kctx *c, void *p, int64_t bytes)
{
    CUDA_OP(c, "zero", "bytes", bytes);
    cuda_no_kernel();
    if (bytes > 0) CUDA_TRY(c, cudaMemsetAsync(p, 0, (size_t)bytes, cuda_stream(c)));
}

int64_t cuda_memory(const struct kctx *c)
{
    size_t left = 0, all = 0;
    CUDA_OP_OR(c, 0, "memory", "", 0);
    return CUDA_TRY(c, cudaMemGetInfo(&left, &all)) ? (int64_t)left + state.region.size - state.region.held : 0;
}

int64_t cuda_cache_most(const struct kctx *c)
{
    return cuda_memory(c) / 2;
}

void cuda_finish(const struct kctx *c)
{
    if (!kernel_faulted(c)) CUDA_TRY(c, cudaStreamSynchronize(cuda_stream(c)));
}

/* ---- the entry point */

#ifndef TARE_CUDA_SHIM
static bool refuse_device(char *text, int64_t size, const char *what, cudaError_t status)
{
    snprintf(text, (size_t)size, "%s: %s", what, cudaGetErrorString(status));
    return false;
}

static bool open_device(int local, char *text, int64_t size)
{
    int n = 0, device, major = 0, minor = 0;
    cudaError_t status = cudaGetDeviceCount(&n);
    if (status == cudaErrorInsufficientDriver) {
        int driver = 0, runtime = 0;
        cudaDriverGetVersion(&driver);
        cudaRuntimeGetVersion(&runtime);
        if (!driver)
            snprintf(text, (size_t)size, "no NVIDIA driver on this machine; use run.device = cpu");
        else
            snprintf(text, (size_t)size,
                     "the NVIDIA driver supports CUDA %d.%d, this backend requires %d.%d; install a newer driver, or on a data-centre GPU the package cuda-compat-%d-%d", driver / 1000,
                     driver % 1000 / 10, runtime / 1000, runtime % 1000 / 10, runtime / 1000, runtime % 1000 / 10);
        return false;
    }
    if (status == cudaErrorNoDevice || (status == cudaSuccess && !n)) {
        snprintf(text, (size_t)size, "no NVIDIA GPU found (or CUDA_VISIBLE_DEVICES hides it); use run.device = cpu");
        return false;
    }
    if (status != cudaSuccess) return refuse_device(text, size, "no GPU can be used", status);
    device = (local < 0 ? 0 : local) % n;
    if ((status = cudaSetDevice(device)) != cudaSuccess) return refuse_device(text, size, "the GPU cannot be taken", status);
    cudaDeviceGetAttribute(&major, cudaDevAttrComputeCapabilityMajor, device);
    cudaDeviceGetAttribute(&minor, cudaDevAttrComputeCapabilityMinor, device);
    state.capability = 10 * major + minor;
    const char *chained = getenv("TARE_CUDA_CHAIN");
    state.early = major >= 9 && !(chained && !strcmp(chained, "0"));
    if (major < 8) {
        snprintf(text, (size_t)size, "GPU %d has compute capability %d.x; 8.0 (Ampere) or newer is needed", device, major);
        return false;
    }
    if ((status = cudaDeviceGetAttribute(&state.processors, cudaDevAttrMultiProcessorCount, device)) != cudaSuccess ||
        (status = cudaStreamCreateWithFlags(&state.stream, cudaStreamNonBlocking)) != cudaSuccess)
        return refuse_device(text, size, "the GPU cannot be used", status);
    return true;
}

extern "C" __attribute__((visibility("default"))) const struct kernels *tare_cuda_open(uint64_t abi, int local, char *text,
                                                                                       int64_t size)
{
    static struct kernels table;
    static std::mutex lock;
    const std::lock_guard<std::mutex> hold(lock);
    if (abi != KERNELS_ABI) {
        snprintf(text, (size_t)size, "libtare_cuda.so was built for another version of tare; build both again");
        return NULL;
    }
    if (!state.open && !open_device(local, text, size)) return NULL;
    state.open = true;
    cuda_table(&table);
    return &table;
}
#endif
