/* Kernels with one mistake each, which the shim must find, and correct ones that it must not
 * report. */
#include "cuda.h"

enum { THREADS = 64 };

/* y[0] = sum of x[0 .. 63]; `barrier` 0: the second half is read while the first is still being
 * written */
static __global__ void tree_kernel(float *y, const float *x, int barrier)
{
    __shared__ float part[THREADS];
    part[threadIdx.x] = x[threadIdx.x];
    if (barrier) __syncthreads();
    for (int n = THREADS / 2; n; n >>= 1) {
        if ((int)threadIdx.x < n) part[threadIdx.x] += part[threadIdx.x + n];
        __syncthreads();
    }
    if (threadIdx.x == 0) y[0] = part[0];
}

/* Both warps write the word that all threads read. */
static __global__ void broadcast_kernel(float *y, const float *x, int sound)
{
    __shared__ float word;
    if (threadIdx.x == 0 || (!sound && threadIdx.x == 32)) word = x[threadIdx.x];
    __syncthreads();
    y[threadIdx.x] = word;
}

/* Blocks pass a word through device memory. */
static __global__ void relay_kernel(float *y)
{
    if (threadIdx.x == 0) y[0] = y[0] + 1;
}

static __global__ void count_kernel(unsigned *y)
{
    atomicAdd(y, 1u);
}

/* `beyond`: copies one element too many */
static __global__ void copy_kernel(float *y, const float *x, int n, int beyond)
{
    const int i = (int)(blockIdx.x * blockDim.x + threadIdx.x);
    if (i < n + beyond) y[i] = beyond ? 1 : x[i];
}

/* y[i] = x[i] for all n elements, counted in 32 bits or 64. */
static __global__ void many_kernel(float *y, const float *x, int64_t n, int narrow)
{
    const int64_t i =
        narrow ? (int64_t)(int)(blockIdx.x * blockDim.x + threadIdx.x) : (int64_t)blockIdx.x * blockDim.x + threadIdx.x;
    if (i < n) y[i] = x[i];
}

static __global__ void read_kernel(float *y, const float *x, int n)
{
    const int i = (int)threadIdx.x;
    if (i < n) y[i] = x[i - 1];
}

static __global__ void index_kernel(float *y, int n)
{
    __shared__ float part[THREADS];
    part[threadIdx.x] = 0;
    __syncthreads();
    if (threadIdx.x == 0) part[n] = 1;
    __syncthreads();
    y[threadIdx.x] = part[threadIdx.x];
}

static __global__ void dynamic_kernel(float *y, int n)
{
    CUDA_SHARED(float, part);
    for (int i = (int)threadIdx.x; i < n; i += THREADS) part[i] = 1;
    __syncthreads();
    y[threadIdx.x] = part[threadIdx.x];
}

/* Half of the block waits at a barrier that the other half does not reach. */
static __global__ void apart_kernel(float *y)
{
    if (threadIdx.x < 32) {
        __syncthreads();
        y[threadIdx.x] = 1;
    } else {
        __syncthreads();
        y[threadIdx.x] = 2;
    }
}

/* Lanes skip a warp operation for which the others wait. */
static __global__ void hang_kernel(float *y)
{
    float x = (float)threadIdx.x;
    if (threadIdx.x % 2) x += __shfl_xor_sync(0xffffffffu, x, 2);
    __syncthreads();
    y[threadIdx.x] = x;
}

/* Lanes of a warp exchange values in shared memory, with and without __syncwarp. */
static __global__ void warp_kernel(float *y, const float *x, int sound)
{
    __shared__ float part[THREADS];
    part[threadIdx.x] = x[threadIdx.x];
    if (sound) __syncwarp();
    y[threadIdx.x] = part[threadIdx.x ^ 1];
}

/* Shared memory is not zero initially. */
static __global__ void fresh_kernel(float *y)
{
    __shared__ float part[THREADS];
    if (threadIdx.x < 32) part[threadIdx.x] = 1;
    __syncthreads();
    y[threadIdx.x] = part[threadIdx.x];
}

/* Launched after a kernel that writes y: adds x to it. early: 'x' reads x, which no launch of the
 * chain writes, before it has waited; 'y' reads y, 'w' writes it, and 'n' ends without having
 * waited. */
static __global__ void follow_kernel(float *y, const float *x, int n, char early)
{
    const int i = (int)(blockIdx.x * blockDim.x + threadIdx.x);
    float sum = early == 'x' && i < n ? x[i] : early == 'y' && i < n ? y[i] : 0;
    if (early == 'w' && i < n) y[i] = 0;
    if (early == 'n') return;
    launch_wait();
    if (i < n) y[i] = (early == 'y' ? sum : y[i]) + (early == 'x' ? sum : x[i]);
}

static void run_chain(const struct kctx *c, float *y, const float *x, int n, char early)
{
    cuda_chain(true);
    CUDA_LAUNCH(c, copy_kernel, 2, THREADS, 0, y, x, n, 0);
    CUDA_LAUNCH_AFTER(c, follow_kernel, 2, THREADS, 0, y, x, n, early);
    cuda_chain(false);
}

/* For tests of operations: operations issued in between behave as in a token of a decode
 * session. */
extern "C" void planted_chain(int on)
{
    cuda_chain(on);
}

/* A copy as a graph, run after one of its tensors was released or not; waiting during the capture
 * is a mistake. */
static void run_graph(const struct kctx *c, float *y, int64_t n, bool freed, bool waits)
{
    cudaGraph_t graph = nullptr;
    cudaGraphExec_t run = nullptr;
    float *x = (float *)cuda_take(c, n * 4, "a planted tensor");
    cudaMemsetAsync(x, 0, (size_t)n * 4, cuda_stream(c));
    cudaStreamBeginCapture(cuda_stream(c), cudaStreamCaptureModeThreadLocal);
    CUDA_LAUNCH(c, copy_kernel, 2, THREADS, 0, y, x, (int)n, 0);
    if (waits) cudaStreamSynchronize(cuda_stream(c));
    cudaStreamEndCapture(cuda_stream(c), &graph);
    cudaGraphInstantiate(&run, graph, 0);
    cudaGraphDestroy(graph);
    if (freed) cuda_give(x);
    cudaGraphLaunch(run, cuda_stream(c));
    cudaGraphExecDestroy(run);
    if (!freed) cuda_give(x);
}

extern "C" void planted_run(const struct kctx *c, const char *what, float *y, const float *x, int64_t n)
{
    CUDA_OP(c, "planted", "n", n);
    const auto is = [what](const char *name) { return !strcmp(what, name); };
    if (is("tree") || is("tree without a barrier")) CUDA_LAUNCH(c, tree_kernel, 1, THREADS, 0, y, x, is("tree"));
    if (is("broadcast") || is("two writers")) CUDA_LAUNCH(c, broadcast_kernel, 1, THREADS, 0, y, x, is("broadcast"));
    if (is("relay")) CUDA_LAUNCH(c, relay_kernel, 2, THREADS, 0, y);
    if (is("count")) CUDA_LAUNCH(c, count_kernel, 3, THREADS, 0, (unsigned *)(void *)y);
    if (is("copy") || is("copy too much")) CUDA_LAUNCH(c, copy_kernel, 2, THREADS, 0, y, x, (int)n, is("copy too much"));
    if (is("many") || is("too many for 32 bits"))
        CUDA_LAUNCH(c, many_kernel, (unsigned)((n + THREADS - 1) / THREADS), THREADS, 0, y, x, n, is("too many for 32 bits"));
    if (is("read in front")) CUDA_LAUNCH(c, read_kernel, 1, THREADS, 0, y, x, (int)n);
    if (is("index")) CUDA_LAUNCH(c, index_kernel, 1, THREADS, 0, y, THREADS - 1);
    if (is("index too large")) CUDA_LAUNCH(c, index_kernel, 1, THREADS, 0, y, THREADS);
    if (is("dynamic")) CUDA_LAUNCH(c, dynamic_kernel, 1, THREADS, 4 * 100, y, 100);
    if (is("dynamic too much")) CUDA_LAUNCH(c, dynamic_kernel, 1, THREADS, 4 * 100, y, 101);
    if (is("different barriers")) CUDA_LAUNCH(c, apart_kernel, 1, THREADS, 0, y);
    if (is("hang")) CUDA_LAUNCH(c, hang_kernel, 1, THREADS, 0, y);
    if (is("warp") || is("warp without sync")) CUDA_LAUNCH(c, warp_kernel, 1, THREADS, 0, y, x, is("warp"));
    if (is("fresh")) CUDA_LAUNCH(c, fresh_kernel, 1, THREADS, 0, y);
    if (is("graph") || is("graph of freed memory") || is("graph that waits"))
        run_graph(c, y, n, is("graph of freed memory"), is("graph that waits"));
    if (!strncmp(what, "behind, ", 8)) run_chain(c, y, x, (int)n, what[8]);
    if (is("host touches")) y[0] = 1;
}
