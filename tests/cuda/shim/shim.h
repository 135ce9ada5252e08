/* CUDA C on the host, for tests. A launch runs its blocks one after another, and a block's threads
 * as fibers that yield at barriers and warp operations. A C++ compiler builds it from the same .cu
 * files (TARE_CUDA_SHIM).
 *
 * Every memory access of a kernel is watched (watch.cc), so that a test finds
 *   - races: two threads of a block access one word between two barriers, or two blocks of a launch
 *     do, and one of them writes;
 *   - accesses outside every device allocation and the launch's dynamic shared memory, and host
 *     code that accesses device memory;
 *   - threads of a block at different barriers, or waiting for each other forever.
 *
 * Shared memory holds NaN when a block begins. A finding becomes the context's fault at the end of
 * the launch and is counted in shim_found.
 *
 * Graphs are recorded with the addresses that their launches were given. Freed memory is poisoned
 * and not handed out again for a while, so a graph that runs after one of its tensors has moved is
 * found.
 *
 * Not emulated here: tensor cores and tensor maps (see mma_host.cuh and wgmma_host.cuh), partial
 * warp masks, streams that overlap, memory order between blocks. */
#ifndef TARE_CUDA_SHIM_H
#define TARE_CUDA_SHIM_H

#include <math.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <tuple>
#include <type_traits>
#include <utility>

#include "kernels.h"

/* ---- for tests */
extern "C" {
extern int64_t shim_found;         /* number of findings so far, in all launches */
extern int64_t shim_blocks;        /* number of blocks that have run, in all launches */
extern char shim_first[400];       /* the first finding since shim_forget */
void shim_forget(void);            /* resets shim_found and shim_first */
void shim_schedule(uint32_t seed); /* order in which a block's threads run; 0: by index */
int shim_watches(void);            /* 0: built without watching accesses (a sanitizer's build) */
/* 1: check the indices of shapes that are too large to be computed here. Of a launch's blocks, only
 * the first, the middle and the last of each dimension run; allocated memory exists only where it
 * is accessed, and is zero. Set it before any allocation. Results are meaningless; accesses outside
 * an allocation are found. */
extern int shim_corners;
/* Simulated errors: launches, and settings of a kernel, fail from the shim_fails_in-th on (0:
 * never) with shim_fails_with, and are counted in shim_failed. An error of the device
 * (cudaErrorIllegalAddress, ...) breaks the context: every later call fails. With cudaSuccess,
 * nothing is run and no error is reported. */
extern int shim_fails_in, shim_fails_with, shim_failed;
void shim_mend(void); /* resets them */
/* Called at each launch with the kernel as the compiler prints it, template arguments included.
 * NULL: not called. */
extern void (*shim_launched)(const char *kernel, int64_t blocks, int64_t threads, int64_t shared);
const struct kernels *kernels_shim(void);
}

/* ---- identity of a thread */
struct uint3 {
    unsigned x, y, z;
};
struct dim3 {
    unsigned x, y, z;
    dim3(unsigned a = 1, unsigned b = 1, unsigned c = 1) : x(a), y(b), z(c) {}
};
struct shim_launch_state {
    struct uint3 thread, block;
    struct dim3 block_dim, grid_dim;
};
extern struct shim_launch_state shim_now;
#define threadIdx (shim_now.thread)
#define blockIdx (shim_now.block)
#define blockDim (shim_now.block_dim)
#define gridDim (shim_now.grid_dim)
enum { warpSize = 32 };

#define __global__
#define __device__
#define __host__
#define __forceinline__ inline
#define __noinline__ __attribute__((noinline))
#define __launch_bounds__(...)
#define __align__(N) __attribute__((aligned(N)))
#define __shared__ static
#define __constant__ static const
#define __grid_constant__

/* ---- in a block */
void shim_barrier(const char *file, int line);
void shim_warp_sync(void);
int shim_lane(void);
int shim_thread(void);            /* linear index in the block */
int64_t shim_block_serial(void);  /* different for every block that runs */
void shim_fail(const char *what); /* reports a finding from a kernel */
/* Every lane of the warp gives `bytes` (at most 64) and gets those of all 32 lanes, 32 * bytes. For
 * a lane that has ended, the bytes of its last exchange remain. */
void shim_warp_exchange(const void *mine, int bytes, void *all);
void *shim_dynamic_shared(void);
void shim_atomic_begin(void *p, int bytes);
/* For emulated instructions with their own state: accesses are not watched between quiet(1) and
 * quiet(0), except those reported to shim_touch. */
void shim_quiet(int on);
void shim_touch(const void *p, int bytes, int write);
/* A copy is requested that may be made at once: check that it may be before the preceding launch
 * has ended. */
void shim_asked(const void *p, int bytes);

#define __syncthreads() shim_barrier(__FILE__, __LINE__)
static inline void shim_mask(unsigned mask)
{
    if (mask != 0xffffffffu) shim_fail("a warp operation with a partial mask, which the shim does not support");
}
static inline void __syncwarp(unsigned mask = 0xffffffffu)
{
    shim_mask(mask);
    shim_warp_sync();
}
static inline void __threadfence(void) {}
static inline void __threadfence_block(void) {}

template <class T> static inline T shim_shuffle(T x, int from)
{
    static_assert(sizeof(T) <= 64, "");
    T all[32];
    shim_warp_exchange(&x, (int)sizeof x, all);
    return from >= 0 && from < 32 ? all[from] : x;
}
template <class T> static inline T __shfl_sync(unsigned mask, T x, int lane, int width = 32)
{
    shim_mask(mask);
    const int base = shim_lane() / width * width;
    return shim_shuffle(x, base + lane % width);
}
template <class T> static inline T __shfl_xor_sync(unsigned mask, T x, int bits, int width = 32)
{
    shim_mask(mask);
    const int to = shim_lane() ^ bits;
    return shim_shuffle(x, to / width <= shim_lane() / width ? to : -1);
}
template <class T> static inline T __shfl_down_sync(unsigned mask, T x, unsigned by, int width = 32)
{
    shim_mask(mask);
    const int to = shim_lane() + (int)by;
    return shim_shuffle(x, to / width == shim_lane() / width ? to : -1);
}
template <class T> static inline T __shfl_up_sync(unsigned mask, T x, unsigned by, int width = 32)
{
    shim_mask(mask);
    const int to = shim_lane() - (int)by;
    return shim_shuffle(x, to >= shim_lane() / width * width ? to : -1);
}
unsigned shim_ballot(int predicate); /* ended lanes give 0 */
int shim_live_lanes(unsigned *mask);
static inline unsigned __ballot_sync(unsigned mask, int predicate)
{
    shim_mask(mask);
    return shim_ballot(predicate);
}
static inline int __any_sync(unsigned mask, int predicate)
{
    return __ballot_sync(mask, predicate) != 0;
}
static inline int __all_sync(unsigned mask, int predicate)
{
    return __ballot_sync(mask, !predicate) == 0;
}

template <class T> static inline T atomicAdd(T *p, T x)
{
    static_assert(std::is_integral<T>::value, "no atomics on floating point: their order is not fixed");
    shim_atomic_begin(p, (int)sizeof *p);
    T *volatile at = p;
    const T old = *at;
    *at = (T)(old + x);
    shim_atomic_begin(NULL, 0);
    return old;
}

/* ---- arithmetic */
static inline int __popc(unsigned x)
{
    return __builtin_popcount(x);
}
static inline int __ffs(int x)
{
    return __builtin_ffs(x);
}
static inline int __clz(int x)
{
    return x ? __builtin_clz((unsigned)x) : 32;
}
static inline uint64_t __umul64hi(uint64_t a, uint64_t b)
{
    return (uint64_t)((unsigned __int128)a * b >> 64);
}
template <class A, class B> static inline typename std::common_type<A, B>::type min(A a, B b)
{
    return b < a ? b : a;
}
template <class A, class B> static inline typename std::common_type<A, B>::type max(A a, B b)
{
    return a < b ? b : a;
}
template <class T> static inline T __ldg(const T *p)
{
    return *p;
}
static inline unsigned __float_as_uint(float x)
{
    unsigned u;
    memcpy(&u, &x, 4);
    return u;
}
static inline float __uint_as_float(unsigned u)
{
    float x;
    memcpy(&x, &u, 4);
    return x;
}
struct alignas(8) float2 {
    float x, y;
};
struct alignas(16) float4 {
    float x, y, z, w;
};
struct alignas(8) int2 {
    int x, y;
};
struct alignas(16) int4 {
    int x, y, z, w;
};
struct alignas(8) uint2 {
    unsigned x, y;
};
struct alignas(16) uint4 {
    unsigned x, y, z, w;
};
static inline float2 make_float2(float x, float y)
{
    return float2{x, y};
}
static inline float4 make_float4(float x, float y, float z, float w)
{
    return float4{x, y, z, w};
}
static inline uint2 make_uint2(unsigned x, unsigned y)
{
    return uint2{x, y};
}
static inline uint4 make_uint4(unsigned x, unsigned y, unsigned z, unsigned w)
{
    return uint4{x, y, z, w};
}
static inline int4 make_int4(int x, int y, int z, int w)
{
    return int4{x, y, z, w};
}

/* ---- bf16, as in cuda_bf16.h */
struct __nv_bfloat16 {
    uint16_t x;
};
struct alignas(4) __nv_bfloat162 {
    __nv_bfloat16 x, y;
};
static inline __nv_bfloat16 __float2bfloat16_rn(float x)
{
    const unsigned u = __float_as_uint(x);
    if ((u & 0x7fffffffu) > 0x7f800000u) return __nv_bfloat16{0x7fff};
    return __nv_bfloat16{(uint16_t)((u + 0x7fffu + (u >> 16 & 1u)) >> 16)};
}
static inline float __bfloat162float(__nv_bfloat16 x)
{
    return __uint_as_float((unsigned)x.x << 16);
}
static inline __nv_bfloat162 __floats2bfloat162_rn(float x, float y)
{
    return __nv_bfloat162{__float2bfloat16_rn(x), __float2bfloat16_rn(y)};
}

/* ---- the part of the runtime library that the backend uses */
typedef int cudaError_t;
typedef struct shim_stream *cudaStream_t;
typedef struct shim_event *cudaEvent_t;
enum {
    cudaSuccess = 0,
    cudaErrorInvalidValue = 1,
    cudaErrorMemoryAllocation = 2,
    cudaErrorIllegalAddress = 700,
    cudaErrorLaunchFailure,
    cudaErrorMisalignedAddress,
    cudaErrorAssert,
    cudaErrorLaunchTimeout,
    cudaErrorECCUncorrectable,
    cudaErrorIllegalInstruction,
    cudaErrorHardwareStackError,
};
typedef struct shim_graph *cudaGraph_t;
typedef struct shim_graph *cudaGraphExec_t;
enum cudaStreamCaptureStatus { cudaStreamCaptureStatusNone = 0, cudaStreamCaptureStatusActive };
enum cudaStreamCaptureMode { cudaStreamCaptureModeThreadLocal = 1 };
enum cudaMemcpyKind { cudaMemcpyHostToDevice = 1, cudaMemcpyDeviceToHost, cudaMemcpyDeviceToDevice };
cudaError_t shim_malloc(void **p, size_t bytes);
cudaError_t cudaFree(void *p);
cudaError_t cudaFreeHost(void *p);
cudaError_t cudaMemcpyAsync(void *to, const void *from, size_t bytes, enum cudaMemcpyKind kind, cudaStream_t s);
cudaError_t cudaMemsetAsync(void *p, int value, size_t bytes, cudaStream_t s);
cudaError_t cudaGetLastError(void);
cudaError_t cudaPeekAtLastError(void);
cudaError_t cudaMemGetInfo(size_t *left, size_t *all);
cudaError_t cudaStreamSynchronize(cudaStream_t s);
const char *cudaGetErrorString(cudaError_t status);
const char *cudaGetErrorName(cudaError_t status);
cudaError_t shim_malloc_host(void **p, size_t bytes);
/* Graphs (graph.cc): between Begin and End, launches, copies and fills are not run but recorded
 * with their arguments; a graph runs the recording. Calls that a device refuses during a capture
 * (waiting, allocating and freeing memory) are reported. */
cudaError_t cudaStreamBeginCapture(cudaStream_t s, enum cudaStreamCaptureMode mode);
cudaError_t cudaStreamIsCapturing(cudaStream_t s, enum cudaStreamCaptureStatus *status);
cudaError_t cudaStreamEndCapture(cudaStream_t s, cudaGraph_t *graph);
cudaError_t cudaGraphInstantiate(cudaGraphExec_t *run, cudaGraph_t graph, unsigned long long flags);
cudaError_t cudaGraphLaunch(cudaGraphExec_t run, cudaStream_t s);
cudaError_t cudaGraphDestroy(cudaGraph_t graph);
cudaError_t cudaGraphExecDestroy(cudaGraphExec_t run);
/* Memory of the backend's own region that was released: reading it before it is written again gives
 * NaN. */
void shim_poison(void *p, size_t bytes);
template <class T> static inline cudaError_t cudaMalloc(T **p, size_t bytes)
{
    return shim_malloc((void **)p, bytes);
}
template <class T> static inline cudaError_t cudaMallocHost(T **p, size_t bytes)
{
    return shim_malloc_host((void **)p, bytes);
}

/* ---- launching */
bool shim_runs(void);         /* true if the next launch runs */
cudaError_t shim_limit(void); /* for a setting of a kernel */
bool cuda_follows(void);
extern bool shim_follows; /* the next launch may begin before the preceding one has ended */
void shim_wait(void);
static inline void launch_wait(void)
{
    shim_wait();
}
void shim_run(const struct kctx *c, const char *kernel, struct dim3 grid, struct dim3 block, size_t shared, void (*thread)(void *),
              void *args, size_t args_bytes);

template <class... P> struct shim_call {
    void (*kernel)(P...);
    std::tuple<P...> args;
    template <size_t... I> void spread(std::index_sequence<I...>) { kernel(std::get<I>(args)...); }
    static void thread(void *self) { ((shim_call *)self)->spread(std::index_sequence_for<P...>()); }
};
template <auto KERNEL> static void shim_note(struct dim3 grid, struct dim3 block, size_t shared)
{
    if (shim_launched)
        shim_launched(__PRETTY_FUNCTION__, (int64_t)grid.x * grid.y * grid.z, (int64_t)block.x * block.y * block.z,
                      (int64_t)shared);
}
template <class... P, class... A>
static void shim_launch(const struct kctx *c, const char *name, struct dim3 grid, struct dim3 block, size_t shared,
                        void (*kernel)(P...), A... args)
{
    shim_call<P...> call = {kernel, std::tuple<P...>(args...)};
    static_assert(alignof(shim_call<P...>) <= 16, "a graph keeps arguments 16-byte aligned");
    shim_run(c, name, grid, block, shared, shim_call<P...>::thread, &call, sizeof call);
}

#define CUDA_LAUNCH(C, KERNEL, GRID, BLOCK, SHARED, ...)                                                                           \
    do {                                                                                                                           \
        if (kernel_faulted(C)) break;                                                                                              \
        if (shim_runs()) {                                                                                                         \
            shim_note<KERNEL>((GRID), (BLOCK), (size_t)(SHARED));                                                                  \
            shim_launch((C), #KERNEL, (GRID), (BLOCK), (size_t)(SHARED), KERNEL, __VA_ARGS__);                                     \
        }                                                                                                                          \
        cuda_launched((C), #KERNEL);                                                                                               \
        cuda_follows();                                                                                                            \
    } while (0)
/* See cuda.h. In the shim, a launch always begins when the preceding one has ended. For a launch
 * that may begin early, watch.cc checks the accesses of each thread before launch_wait, and that it
 * calls launch_wait. */
#define CUDA_LAUNCH_AFTER(C, KERNEL, GRID, BLOCK, SHARED, ...)                                                                     \
    do {                                                                                                                           \
        if (kernel_faulted(C)) break;                                                                                              \
        shim_follows = cuda_follows();                                                                                             \
        if (shim_runs()) {                                                                                                         \
            shim_note<KERNEL>((GRID), (BLOCK), (size_t)(SHARED));                                                                  \
            shim_launch((C), #KERNEL, (GRID), (BLOCK), (size_t)(SHARED), KERNEL, __VA_ARGS__);                                     \
        }                                                                                                                          \
        shim_follows = false;                                                                                                      \
        cuda_try((C), cudaPeekAtLastError(), #KERNEL);                                                                             \
    } while (0)
#define CUDA_SHARED(TYPE, NAME) TYPE *NAME = static_cast<TYPE *>(shim_dynamic_shared())

#endif
