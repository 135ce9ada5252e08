/* The shim's runtime library. Device memory is host memory that only kernels may access, between
 * guard zones that must stay unwritten. */
#include "internal.h"

#include "cuda.h"

#include <sys/mman.h>

enum { ZONE = 4096, KEPT = 64 };

/* ---- errors, simulated for a test */
int shim_fails_in, shim_fails_with, shim_failed;
/* unasked: of a call, until it is read; broken: of the context, permanent */
static cudaError_t unasked, broken;

void shim_mend(void)
{
    shim_fails_in = shim_fails_with = shim_failed = 0;
    unasked = broken = cudaSuccess;
}

bool shim_runs(void)
{
    if (broken) return false;
    if (shim_fails_in != 1) {
        shim_fails_in -= shim_fails_in > 1;
        return true;
    }
    shim_failed++;
    unasked = shim_fails_with;
    if (unasked >= cudaErrorIllegalAddress) broken = unasked;
    return false;
}

cudaError_t shim_limit(void)
{
    return shim_runs() ? cudaSuccess : broken ? broken : shim_fails_with;
}

cudaError_t cudaPeekAtLastError(void)
{
    return broken ? broken : unasked;
}

cudaError_t cudaGetLastError(void)
{
    const cudaError_t e = cudaPeekAtLastError();
    unasked = cudaSuccess;
    return e;
}

/* ---- memory */

void shim_poison(void *p, size_t bytes)
{
    memset(p, 0xff, bytes); /* NaN */
}

/* Map zeros that take no memory until they are accessed. */
static cudaError_t map_sparse(void **p, size_t bytes)
{
    void *base = mmap(NULL, bytes + 2 * ZONE, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    if (base == MAP_FAILED) return cudaErrorMemoryAllocation;
    memcpy(base, &bytes, sizeof bytes);
    *p = (unsigned char *)base + ZONE;
    watch_add(*p, bytes);
    return cudaSuccess;
}

cudaError_t shim_malloc(void **p, size_t bytes)
{
    const size_t n = (bytes + 255) / 256 * 256;
    *p = NULL;
    if (broken) return broken;
    if (shim_refuses("cudaMalloc")) return cudaErrorMemoryAllocation;
    if (shim_corners) return map_sparse(p, bytes);
    unsigned char *base = (unsigned char *)aligned_alloc(256, n + 2 * ZONE + 256);
    if (!base) return cudaErrorMemoryAllocation;
    memcpy(base, &bytes, sizeof bytes);
    memset(base + ZONE, 0xff, n); /* unwritten memory is NaN */
    watch_add(base + ZONE, bytes);
    *p = base + ZONE;
    return cudaSuccess;
}

cudaError_t cudaFree(void *p)
{
    /* The most recently freed allocations stay poisoned: a launch that still has such an address
     * finds no memory there, rather than another tensor. */
    static void *kept[KEPT];
    static int next;
    size_t bytes;
    if (!p) return cudaSuccess;
    shim_refuses("cudaFree");
    unsigned char *base = (unsigned char *)p - ZONE;
    memcpy(&bytes, base, sizeof bytes);
    watch_remove(p);
    if (shim_corners) {
        munmap(base, bytes + 2 * ZONE);
        return cudaSuccess;
    }
    shim_poison(p, bytes);
    free(kept[next]);
    kept[next] = base;
    next = (next + 1) % KEPT;
    return cudaSuccess;
}

cudaError_t shim_malloc_host(void **p, size_t bytes)
{
    *p = malloc(bytes);
    return *p ? cudaSuccess : cudaErrorMemoryAllocation;
}

cudaError_t cudaFreeHost(void *p)
{
    free(p);
    return cudaSuccess;
}

cudaError_t cudaMemcpyAsync(void *to, const void *from, size_t bytes, enum cudaMemcpyKind, cudaStream_t)
{
    if (!broken && !shim_keep_copy(to, from, bytes)) memmove(to, from, bytes);
    return broken;
}

cudaError_t cudaMemsetAsync(void *p, int value, size_t bytes, cudaStream_t)
{
    if (!broken && !shim_keep_fill(p, value, bytes) && !shim_corners) memset(p, value, bytes);
    return broken;
}

cudaError_t cudaMemGetInfo(size_t *left, size_t *all)
{
    *left = *all = (size_t)1 << 30;
    return cudaSuccess;
}

cudaError_t cudaStreamSynchronize(cudaStream_t)
{
    shim_refuses("cudaStreamSynchronize");
    return broken;
}

const char *cudaGetErrorString(cudaError_t status)
{
    return status == cudaErrorMemoryAllocation ? "out of memory" : "an error";
}

const char *cudaGetErrorName(cudaError_t status)
{
    return status == cudaErrorMemoryAllocation ? "cudaErrorMemoryAllocation" : "cudaError";
}

const struct kernels *kernels_shim(void)
{
    static struct kernels table;
    cuda_table(&table);
    table.name = "shim";
    return &table;
}
