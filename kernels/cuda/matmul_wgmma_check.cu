/* Whether wgmma has the bits of mma on this GPU: both kernels compute the same products, once a process, and the results are compared bit by bit. Nobody promises
 * it, so nothing is taken for granted: where one bit differs, or something cannot be asked, the products of many rows go on by mma.
 *
 * Rows of x and of W are of the kinds below, every kind against every other, so that a sum of other order, width or rounding, one that drops small terms or
 * denormal ones, or rounds where the other cuts, comes out with other bits somewhere. */
#include "matmul.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { KINDS = 8 };

/* Products of the check; slice 0: K is one chain; ends: with bias and residual, in which small sums would be lost. On the host, where a product takes seconds,
 * they are shorter. */
static const struct wgmma_case {
    int64_t t, n, k;
    int slice; /* steps */
    bool ends;
} CASES[] = {
#ifdef TARE_CUDA_SHIM
    {34, 20, 136, 2, false},
    {34, 20, 136, 0, false},
#else
    {200, 328, 1048, 8, false}, /* tiles that are not full, five slices, the last of one step that is not full */
    {200, 328, 4104, 0, false},
    {64, 194, 520, 8, true},
#endif
};
enum { N_CASES = sizeof CASES / sizeof *CASES };

static uint32_t random_bits(uint32_t *state)
{
    *state = *state * 1664525u + 1013904223u;
    return *state >> 8;
}

/* bf16 of either sign, 1 <= |x| < 2, times 2^e. */
static uint16_t scaled(uint32_t *state, int e)
{
    const uint32_t r = random_bits(state);
    return (uint16_t)((r & 1) << 15 | (uint32_t)(127 + e) << 7 | (r >> 1 & 127));
}

static uint16_t number(uint32_t *state, int64_t row, int64_t k)
{
    const int e = (int)(random_bits(state) % 64);
    switch (row % KINDS) {
    case 0:
        return scaled(state, e % 4 - 3); /* as weights are */
    case 1:
        return scaled(state, e - 32); /* exponents that lie far apart */
    case 2:
        return k % 4 == 0 ? 0x4b83 : k % 4 == 2 ? 0xcb83 : scaled(state, -2); /* large ones that cancel, small ones between */
    case 3:
        return scaled(state, -60 - e % 12); /* products around the smallest fp32 */
    case 4:
        return scaled(state, -127) & 0x807f; /* denormal */
    case 5:
        return scaled(state, 40 + e % 12); /* large */
    case 6:
        return (uint16_t)(scaled(state, 0) & 0x7fff); /* sums that grow, with a carry each few */
    default:
        return scaled(state, -(int)(k % 29)); /* a bit less with every k: where terms are cut off */
    }
}

struct wgmma_tensors {
    void *x, *w;
    float *y[2], *add; /* add: residual; its first row is the bias */
};

static float addend(int64_t i)
{
    return (float)(i % 251) * 0x1p-9f;
}

/* bytes of the host on the device, filled by f(i) of n elements. */
template <typename T, typename F> static void *filled(const struct kctx *c, int64_t n, F f)
{
    T *host = static_cast<T *>(malloc((size_t)n * sizeof(T)));
    void *there = cuda_take(c, n * (int64_t)sizeof(T), "the check of wgmma");
    if (!host) cuda_failed(c, TARE_E_NOMEM, "the check of wgmma", "no memory on the host");
    if (host && there) {
        for (int64_t i = 0; i < n; i++) host[i] = f(i);
        if (CUDA_TRY(c, cudaMemcpyAsync(there, host, (size_t)n * sizeof(T), cudaMemcpyHostToDevice, cuda_stream(c))))
            CUDA_TRY(c, cudaStreamSynchronize(cuda_stream(c)));
    }
    free(host);
    return there;
}

static void *random_rows(const struct kctx *c, int64_t rows, int64_t k, uint32_t seed)
{
    return filled<uint16_t>(c, rows * k, [&](int64_t i) { return number(&seed, i / k, i % k); });
}

/* The results of both on the host, [2][t n]; NULL: a fault, or no tensor map. */
static uint32_t *results(const struct kctx *c, const wgmma_case &of, const wgmma_tensors &at)
{
    const chain_cut cut = {(int)((of.k + CHAIN_STEP - 1) / CHAIN_STEP), of.slice ? of.slice : (int)(of.k / CHAIN_STEP + 1)};
    const size_t bytes = (size_t)(of.t * of.n) * sizeof(float);
    const float *add = of.ends ? at.add : nullptr;
    product p = {at.y[0], at.x, at.w, add, add, of.n, of.t, of.n, of.k};
    uint32_t *host = static_cast<uint32_t *>(malloc(2 * bytes));
    matmul_chain_many(c, p, cut);
    p.y = at.y[1];
    bool done = host && matmul_wgmma(c, p, cut);
    for (int i = 0; i < 2 && done; i++)
        done = CUDA_TRY(c, cudaMemcpyAsync(host + (size_t)i * (bytes / 4), at.y[i], bytes, cudaMemcpyDeviceToHost, cuda_stream(c)));
    if (done && CUDA_TRY(c, cudaStreamSynchronize(cuda_stream(c)))) return host;
    free(host);
    return nullptr;
}

struct wgmma_found {
    bool asked, taken, wanted; /* wanted: and not taken, which somebody should know */
    int64_t sums;
    char text[300];
};

/* True: no bit differs. */
static bool compare(const struct kctx *c, const wgmma_case &of, wgmma_found *found)
{
    const int64_t sums = of.t * of.n;
    const auto add = [](int64_t i) { return addend(i); };
    const wgmma_tensors at = {
        random_rows(c, of.t, of.k, 1),
        random_rows(c, of.n, of.k, 2),
        {static_cast<float *>(filled<float>(c, sums, add)), static_cast<float *>(filled<float>(c, sums, add))},
        static_cast<float *>(filled<float>(c, sums, add))};
    uint32_t *both = kernel_faulted(c) ? nullptr : results(c, of, at);
    int64_t differ = 0, first = -1;
    for (int64_t i = 0; both && i < sums; i++) {
        if (both[i] == both[sums + i]) continue;
        if (!differ++) first = i;
    }
    if (!both)
        snprintf(found->text, sizeof found->text, "the check failed (TARE_CUDA_WGMMA=0 leaves wgmma out): %.200s",
                 kernel_faulted(c) ? c->fault->message : "the driver makes no tensor maps");
    else if (differ)
        snprintf(found->text, sizeof found->text,
                 "%lld of %lld sums of %lld products differ on this GPU, the first, row %lld and column %lld: %08x by mma, %08x by "
                 "wgmma",
                 (long long)differ, (long long)sums, (long long)of.k, (long long)(first / of.n), (long long)(first % of.n),
                 both[first], both[sums + first]);
    const bool same = both && !differ;
    free(both);
    cuda_give(at.x);
    cuda_give(at.w);
    for (float *y : at.y) cuda_give(y);
    cuda_give(at.add);
    found->sums += sums;
    return same;
}

static void check(const struct kctx *c, wgmma_found *found)
{
    struct kernel_fault fault = {};
    struct kctx own = *c;
    const char *wanted = getenv("TARE_CUDA_WGMMA");
    own.fault = &fault;
    fault.layer = -1;
    if (cuda_capability() != 90) {
        snprintf(found->text, sizeof found->text, "this GPU's compute capability is %d.%d, and wgmma is 9.0's",
                 cuda_capability() / 10, cuda_capability() % 10);
        return;
    }
    if (wanted && !strcmp(wanted, "0")) {
        snprintf(found->text, sizeof found->text, "TARE_CUDA_WGMMA is 0");
        return;
    }
    found->wanted = true;
    for (int i = 0; i < N_CASES; i++)
        if (!compare(&own, CASES[i], found)) return;
    found->taken = true;
    snprintf(found->text, sizeof found->text, "the check's %lld sums have the bits of mma", (long long)found->sums);
}

static wgmma_found found;

bool matmul_wgmma_taken(const struct kctx *c)
{
    cudaStreamCaptureStatus recording = cudaStreamCaptureStatusNone;
    if (found.asked || kernel_faulted(c)) return found.taken;
    if (cudaStreamIsCapturing(cuda_stream(c), &recording) != cudaSuccess || recording != cudaStreamCaptureStatusNone)
        return false; /* the check waits for the device; until it has been made the bits are mma's in any case */
    found.asked = true;
    check(c, &found);
    return found.taken;
}

int cuda_about(const struct kctx *c, char *text, int64_t size)
{
    const bool taken = matmul_wgmma_taken(c);
    snprintf(text, (size_t)size, "products of many rows with batch_invariant go by %s: %s", taken ? "wgmma" : "mma", found.text);
    return taken || !found.wanted;
}

#ifdef TARE_CUDA_SHIM
/* For tests: as in a process that has not asked yet. */
extern "C" void cuda_about_again(void)
{
    found = wgmma_found{};
}
#endif
