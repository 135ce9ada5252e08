/* Collectives through NCCL. The only file that includes nccl.h; built as libtare_nccl.so. */
#include "dist/gpu_collectives.h"

#include <cuda_runtime_api.h>
#include <nccl.h>
#include <stdio.h>
#include <string.h>

static struct {
    ncclComm_t comm;
    cudaStream_t stream, compute;
    cudaEvent_t ready, ended[GPU_SLOTS];
    int rank, size;
} state;

static int cuda_failed(struct gpu_collectives *g, const char *what, cudaError_t code)
{
    if (code == cudaSuccess) return 0;
    snprintf(g->error, sizeof g->error, "%s: %s", what, cudaGetErrorString(code));
    return 1;
}

static int nccl_failed(struct gpu_collectives *g, const char *what, ncclResult_t code)
{
    if (code == ncclSuccess || code == ncclInProgress) return 0;
    const char *detail = ncclGetLastError(state.comm);
    /* whole: the end of NCCL's text says what to change */
    snprintf(g->error, sizeof g->error, "%s: %s%s%.700s", what, ncclGetErrorString(code), detail && *detail ? "; " : "",
             detail ? detail : "");
    return 1;
}

static void gpu_describe(struct gpu_collectives *g)
{
    int version = 0;
    ncclGetVersion(&version);
    snprintf(g->about, sizeof g->about, "NCCL %d.%d.%d", version / 10000, version / 100 % 100, version % 100);
}

static int make_id(struct gpu_collectives *g, char id[GPU_ID_BYTES])
{
    ncclUniqueId made;
    _Static_assert(sizeof made == GPU_ID_BYTES, "an id is 128 bytes");
    if (nccl_failed(g, "ncclGetUniqueId", ncclGetUniqueId(&made))) return 1;
    memcpy(id, &made, sizeof made);
    return 0;
}

/* Selects the device of the compute stream. An older runtime does not report it; the stream is then
 * the process's own, and the device is set already. */
static int choose_device(struct gpu_collectives *g, cudaStream_t compute)
{
#if CUDART_VERSION >= 12080
    int ordinal = 0;
    if (compute)
        return cuda_failed(g, "cudaStreamGetDevice", cudaStreamGetDevice(compute, &ordinal)) ||
               cuda_failed(g, "cudaSetDevice", cudaSetDevice(ordinal));
#endif
    (void)g, (void)compute;
    return 0;
}

static int prepare_nccl(struct gpu_collectives *g, int rank, int size, void *compute)
{
    int low = 0, high = 0;
    state.compute = compute;
    state.rank = rank;
    state.size = size;
    if (choose_device(g, compute)) return 1;
    if (cuda_failed(g, "cudaDeviceGetStreamPriorityRange", cudaDeviceGetStreamPriorityRange(&low, &high)) ||
        cuda_failed(g, "cudaStreamCreate", cudaStreamCreateWithPriority(&state.stream, cudaStreamNonBlocking, high)) ||
        cuda_failed(g, "cudaEventCreate", cudaEventCreateWithFlags(&state.ready, cudaEventDisableTiming)))
        return 1;
    for (int i = 0; i < GPU_SLOTS; i++)
        if (cuda_failed(g, "cudaEventCreate", cudaEventCreateWithFlags(&state.ended[i], cudaEventDisableTiming))) return 1;
    return 0;
}

static int open_nccl(struct gpu_collectives *g, const char id[GPU_ID_BYTES])
{
    ncclUniqueId given;
    memcpy(&given, id, sizeof given);
    return nccl_failed(g, "ncclCommInitRank", ncclCommInitRank(&state.comm, state.size, given, state.rank));
}

/* Orders transfers after the computation issued so far. */
static int gpu_begin(struct gpu_collectives *g)
{
    if (!state.compute) return 0;
    return cuda_failed(g, "cudaEventRecord", cudaEventRecord(state.ready, state.compute)) ||
           cuda_failed(g, "cudaStreamWaitEvent", cudaStreamWaitEvent(state.stream, state.ready, 0));
}

static int gpu_end(struct gpu_collectives *g, int slot)
{
    return cuda_failed(g, "cudaEventRecord", cudaEventRecord(state.ended[slot], state.stream));
}

static int all_gather(struct gpu_collectives *g, int slot, const void *in, int64_t bytes, void *out)
{
    return gpu_begin(g) ||
           nccl_failed(g, "ncclAllGather", ncclAllGather(in, out, (size_t)bytes, ncclInt8, state.comm, state.stream)) ||
           gpu_end(g, slot);
}

static int all_to_all(struct gpu_collectives *g, int slot, const void *in, int64_t bytes, void *out)
{
    if (gpu_begin(g) || nccl_failed(g, "ncclGroupStart", ncclGroupStart())) return 1;
    for (int q = 0; q < state.size; q++)
        if (nccl_failed(g, "ncclSend",
                        ncclSend((const char *)in + q * bytes, (size_t)bytes, ncclInt8, q, state.comm, state.stream)) ||
            nccl_failed(g, "ncclRecv", ncclRecv((char *)out + q * bytes, (size_t)bytes, ncclInt8, q, state.comm, state.stream)))
            return 1;
    return nccl_failed(g, "ncclGroupEnd", ncclGroupEnd()) || gpu_end(g, slot);
}

static int gpu_done(struct gpu_collectives *g, int slot, bool *ended)
{
    ncclResult_t code = ncclSuccess;
    if (nccl_failed(g, "ncclCommGetAsyncError", ncclCommGetAsyncError(state.comm, &code)) || nccl_failed(g, "NCCL", code)) return 1;
    const cudaError_t how = cudaEventQuery(state.ended[slot]);
    *ended = how == cudaSuccess;
    /* NotReady is no error; the backend must not take it for one of its launches. */
    if (how == cudaErrorNotReady) (void)cudaGetLastError();
    return how == cudaErrorNotReady ? 0 : cuda_failed(g, "a collective", how);
}

static int close_nccl(struct gpu_collectives *g, bool regular)
{
    int failed = 0;
    if (state.comm) failed = nccl_failed(g, "ncclCommDestroy", regular ? ncclCommDestroy(state.comm) : ncclCommAbort(state.comm));
    for (int i = 0; i < GPU_SLOTS; i++)
        if (state.ended[i]) cudaEventDestroy(state.ended[i]);
    if (state.ready) cudaEventDestroy(state.ready);
    if (state.stream) cudaStreamDestroy(state.stream);
    memset(&state, 0, sizeof state);
    return failed;
}

__attribute__((visibility("default"))) struct gpu_collectives tare_gpu_collectives = {
    .abi = GPU_COLLECTIVES_ABI,
    .describe = gpu_describe,
    .make_id = make_id,
    .prepare = prepare_nccl,
    .open = open_nccl,
    .all_gather = all_gather,
    .all_to_all = all_to_all,
    .done = gpu_done,
    .close = close_nccl,
};
