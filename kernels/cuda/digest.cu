/* Digests (definition: kernels_ops.h). A block adds a run of words; a second kernel adds the
 * blocks' sums. The order is arbitrary, since integers wrap. */
#include "cuda.h"
#include "reduce.cuh"

enum { DIGEST_THREADS = 256, DIGEST_BLOCKS = 1024 };

/* Word i of n; the last one may be incomplete. */
static __device__ uint32_t word_at(const uint32_t *__restrict__ data, int64_t i, int64_t bytes)
{
    if (4 * (i + 1) <= bytes) return data[i];
    uint32_t word = 0;
    for (int64_t j = 4 * i; j < bytes; j++) word |= (uint32_t)((const uint8_t *)data)[j] << 8 * (j % 4);
    return word;
}

static __global__ void digest_kernel(uint64_t *__restrict__ sums, const uint32_t *__restrict__ data, int64_t bytes, int64_t first)
{
    __shared__ uint64_t part[DIGEST_THREADS / 32];
    const int64_t n = (bytes + 3) / 4, step = (int64_t)gridDim.x * DIGEST_THREADS;
    uint64_t sum = 0;
    for (int64_t i = (int64_t)blockIdx.x * DIGEST_THREADS + threadIdx.x; i < n; i += step)
        sum += digest_word(word_at(data, i, bytes), (uint64_t)(first + i));
    sum = block_reduce<add_op, DIGEST_THREADS>(sum, part);
    if (threadIdx.x == 0) sums[blockIdx.x] = sum;
}

static __global__ void digest_add_kernel(uint64_t *__restrict__ out, const uint64_t *__restrict__ sums, int n)
{
    __shared__ uint64_t part[DIGEST_THREADS / 32];
    uint64_t sum = 0;
    for (int i = (int)threadIdx.x; i < n; i += DIGEST_THREADS) sum += sums[i];
    sum = block_reduce<add_op, DIGEST_THREADS>(sum, part);
    if (threadIdx.x == 0) *out += sum;
}

void cuda_digest(const struct kctx *c, const struct op_digest *o)
{
    CUDA_OP(c, "digest", "bytes", o->bytes);
    if (o->bytes <= 0) return;
    unsigned blocks = cuda_blocks((o->bytes + 3) / 4, DIGEST_THREADS);
    if (blocks > DIGEST_BLOCKS) blocks = DIGEST_BLOCKS;
    uint64_t *sums = (uint64_t *)cuda_scratch(c, blocks * (int64_t)sizeof *sums);
    if (!sums) return;
    CUDA_LAUNCH(c, digest_kernel, blocks, DIGEST_THREADS, 0, sums, (const uint32_t *)o->data, o->bytes, o->first);
    CUDA_LAUNCH(c, digest_add_kernel, 1, DIGEST_THREADS, 0, o->out, sums, (int)blocks);
}
