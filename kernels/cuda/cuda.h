/* Definitions shared by the files of the CUDA backend. Each file is one family of operations. The
 * functions have the table's signatures and are named cuda_NAME; table.cu fills the table. nvcc
 * compiles the files; with TARE_CUDA_SHIM, a C++ compiler compiles them for the host
 * (tests/cuda/shim/shim.h), where kernels without tensor cores run as fibers in the tests.
 *
 *   void cuda_add(const struct kctx *c, const struct op_add *o)
 *   {
 *       CUDA_OP(c, "add", "n", o->n);
 *       if (o->n <= 0) return;
 *       CUDA_LAUNCH(c, add_kernel, cuda_blocks(o->n, 256), 256, 0, o->y, o->x, o->n);
 *   }
 *
 * Numbers. The code is compiled with -fmad=false: a multiplication and an addition are fused only
 * by an explicit fmaf, as on the CPU, so element-wise operations are bit-identical to the
 * reference. A row's reduction runs in one block, thread i taking elements i, i + B, ..., followed
 * by a fixed tree: the order depends neither on the number of rows nor on their place.
 * Floating-point atomics are not used.
 *
 * Threads. There is one process per GPU, and one host thread at a time uses a context. Everything
 * is issued to one stream; results are complete after finish. */
#ifndef TARE_KERNELS_CUDA_CUDA_H
#define TARE_KERNELS_CUDA_CUDA_H

#ifdef TARE_CUDA_SHIM
#include "cuda/shim/shim.h"
#else
#include <cuda_bf16.h>
#include <cuda_runtime.h>
#endif

#include "fault.h"
#include "kernels.h"

#define EXACT_FUNCTION static __host__ __device__ inline
#include "exact.h"

/* ---- state.cu: the process's device, its stream, its scratch memory */

/* Begin an operation and release the scratch memory of the previous one. Returns false if the
 * context has already failed. names are those of the shapes, "t n k". */
bool cuda_begin(const struct kctx *c, const char *op, const char *names, int n, const int64_t *shapes);
/* Record a failure of the current operation with its shapes. what is the call; NULL: a launch. */
void cuda_failed(const struct kctx *c, tare_status code, const char *what, const char *why);
/* Check for errors after a launch. */
void cuda_launched(const struct kctx *c, const char *kernel);
bool cuda_try(const struct kctx *c, cudaError_t status, const char *what);
cudaStream_t cuda_stream(const struct kctx *c);
/* Device memory valid until the operation returns (and, in stream order, until the next operation
 * writes there); 256-byte aligned, not zeroed. NULL after a failure. It cannot grow during a
 * capture: call cuda_scratch_reserve before. */
void *cuda_scratch(const struct kctx *c, int64_t bytes);
bool cuda_scratch_reserve(const struct kctx *c, int64_t bytes);
/* Copy host bytes to the device, valid at least until the operation returns; the host's bytes may
 * change immediately. Not allowed during a capture. NULL after a failure. */
void *cuda_upload_args(const struct kctx *c, const void *host, int64_t bytes);
/* Allocate device memory that an operation keeps, from the region if one is reserved; not zeroed.
 * what is used in the error message if memory runs out (then NULL). Only operations of one stream
 * may use it: after its release it may be handed out again while they run. */
void *cuda_take(const struct kctx *c, int64_t bytes, const char *what);
void cuda_give(void *p);
/* Number of the current operation. */
uint64_t cuda_operation(void);
/* Number of multiprocessors of the device; its compute capability, 90 for 9.0. */
int cuda_processors(void);
int cuda_capability(void);

#define CUDA_OP(C, NAME, NAMES, ...)                                                                                               \
    const int64_t op_shapes_[] = {__VA_ARGS__};                                                                                    \
    if (!cuda_begin((C), (NAME), (NAMES), (int)(sizeof op_shapes_ / sizeof *op_shapes_), op_shapes_)) return
/* CUDA_OP for an operation with a result. */
#define CUDA_OP_OR(C, RESULT, NAME, NAMES, ...)                                                                                    \
    const int64_t op_shapes_[] = {__VA_ARGS__};                                                                                    \
    if (!cuda_begin((C), (NAME), (NAMES), (int)(sizeof op_shapes_ / sizeof *op_shapes_), op_shapes_)) return (RESULT)
#define CUDA_TRY(C, CALL) cuda_try((C), (CALL), #CALL)

/* On the host, released memory is filled with NaN, so that tests find a graph or a launch that
 * still has its address. */
static inline void cuda_poison(void *p, int64_t bytes)
{
#ifdef TARE_CUDA_SHIM
    shim_poison(p, (size_t)bytes);
#endif
    (void)p, (void)bytes;
}

/* A decoded token is a chain of short launches. Each begins when the preceding one has ended,
 * except for work that does not depend on it (programmatic dependent launch, sm_90 and newer). A
 * kernel launched with CUDA_LAUNCH_AFTER may begin while the preceding launch runs. So each of its
 * threads calls launch_wait before it reads or writes device memory, and before it ends. Only
 * memory that no launch of a token writes may be read earlier: weights. All other kernels are
 * launched by CUDA_LAUNCH and begin when all preceding work has ended.
 *
 * cuda_chain: a decode session marks where a token begins and ends. Outside tokens, and on a GPU
 * without such launches, CUDA_LAUNCH_AFTER is CUDA_LAUNCH. */
void cuda_chain(bool on);
/* True if a launch may follow the preceding one that way: in a chain, after one of our kernels.
 * Each launch calls it once. */
bool cuda_follows(void);
void cuda_no_kernel(void); /* the last issued work is a library's, or not a kernel */

#ifndef TARE_CUDA_SHIM
/* Wait until the preceding launch has ended and its writes are visible; let the next launch begin
 * (and wait for this one). */
__device__ inline void launch_wait()
{
#if __CUDA_ARCH__ >= 900
    asm volatile("griddepcontrol.wait;" ::: "memory");
    asm volatile("griddepcontrol.launch_dependents;" ::: "memory");
#endif
}

template <typename... P, typename... A>
static inline cudaError_t cuda_launch_after(cudaStream_t stream, dim3 grid, dim3 block, size_t shared, void (*kernel)(P...),
                                            A... args)
{
    cudaLaunchAttribute early = {};
    cudaLaunchConfig_t config = {};
    early.id = cudaLaunchAttributeProgrammaticStreamSerialization;
    early.val.programmaticStreamSerializationAllowed = 1;
    config.gridDim = grid;
    config.blockDim = block;
    config.dynamicSmemBytes = shared;
    config.stream = stream;
    config.attrs = &early;
    config.numAttrs = cuda_follows() ? 1 : 0;
    return cudaLaunchKernelEx(&config, kernel, P(args)...);
}

#define CUDA_LAUNCH_AFTER(C, KERNEL, GRID, BLOCK, SHARED, ...)                                                                     \
    do {                                                                                                                           \
        if (kernel_faulted(C)) break;                                                                                              \
        cuda_try((C), cuda_launch_after(cuda_stream(C), (GRID), (BLOCK), (size_t)(SHARED), KERNEL, __VA_ARGS__), #KERNEL);         \
    } while (0)
#define CUDA_LAUNCH(C, KERNEL, GRID, BLOCK, SHARED, ...)                                                                           \
    do {                                                                                                                           \
        if (kernel_faulted(C)) break;                                                                                              \
        KERNEL<<<(GRID), (BLOCK), (size_t)(SHARED), cuda_stream(C)>>>(__VA_ARGS__);                                                \
        cuda_launched((C), #KERNEL);                                                                                               \
        cuda_follows();                                                                                                            \
    } while (0)
/* Dynamic shared memory of a kernel. */
#define CUDA_SHARED(TYPE, NAME)                                                                                                    \
    extern __shared__ __align__(16) unsigned char cuda_dynamic_shared_[];                                                          \
    TYPE *NAME = reinterpret_cast<TYPE *>(cuda_dynamic_shared_)
#endif

/* Number of blocks that cover n items, `block` each. */
static inline unsigned cuda_blocks(int64_t n, int64_t block)
{
    return (unsigned)((n + block - 1) / block);
}

/* ---- operations, by file; signatures and definitions: kernels.h */
/* state.cu */
void *cuda_alloc(const struct kctx *c, int64_t bytes);
void cuda_release(const struct kctx *c, void *p);
void cuda_upload(const struct kctx *c, void *dst, const void *host, int64_t bytes);
void cuda_download(const struct kctx *c, void *host, const void *src, int64_t bytes);
void cuda_zero(const struct kctx *c, void *p, int64_t bytes);
int64_t cuda_memory(const struct kctx *c);
int64_t cuda_cache_most(const struct kctx *c);
int cuda_reserve(const struct kctx *c, int64_t bytes);
void cuda_memory_use(const struct kctx *c, struct kernel_memory *out);
void *cuda_own_stream(const struct kctx *c);
int cuda_about(const struct kctx *c, char *text, int64_t size); /* matmul_wgmma_check.cu */
void cuda_finish(const struct kctx *c);
/* operations, each in the file of its family */
#define CUDA_ENTRY(NAME) void cuda_##NAME(const struct kctx *c, const struct op_##NAME *o);
KERNEL_OPERATIONS(CUDA_ENTRY)
#undef CUDA_ENTRY
void cuda_matmul_dw_apart(const struct kctx *c, const struct op_matmul_dw *o);
void cuda_rope_kv_write(const struct kctx *c, const struct op_rope *rope, const struct op_kv_write *write);
void cuda_matmul_swiglu(const struct kctx *c, const struct op_matmul *product, const struct op_swiglu *act);
void cuda_matmul_rmsnorm(const struct kctx *c, const struct op_matmul *product, const struct op_rmsnorm *norm);
int64_t cuda_packed_bytes(int64_t n, int64_t k, enum dtype dtype);
int64_t cuda_kv_bytes(struct attn_shape s, int64_t n_blocks);

/* decode.cu */
struct decode *cuda_decode_open(const struct kctx *c);
void cuda_decode_close(const struct kctx *c, struct decode *d);
void cuda_decode_load(const struct kctx *c, struct decode *d, const struct decode_load *load, struct decode_places *places);
int cuda_decode_begin(const struct kctx *c, struct decode *d);
int cuda_decode_end(const struct kctx *c, struct decode *d);
void cuda_decode_read(const struct kctx *c, struct decode *d, int32_t *token, float *logprob, float *entropy);

/* Fill the whole table; in the shim's build, kernels_shim. */
void cuda_table(struct kernels *k);

#endif
