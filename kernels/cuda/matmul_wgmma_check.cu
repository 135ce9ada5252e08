/* Checks that wgmma gives the same bits as mma on this GPU. Both kernels compute the same products,
 * once per process, and the results are compared bit by bit. No document promises equality: if one
 * bit differs, or something cannot be queried, products of many rows use mma.
 *
 * Rows of x and of W are of the kinds below, every kind against every other, so that a sum with
 * another order, width or rounding, or one that drops small or denormal terms or truncates
 * differently, gives different bits somewhere. Infinities and NaN are not among them.
 *
 * A product that was not computed is not a match: an error of any launch fails the check, and
 * results that were not written differ. */
#include "matmul.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { KINDS = 11 };
/* The ways to compute a case: the first with mma, the others with wgmma. blocks: 0: as many as
 * there are multiprocessors; 1: one, which continues from tile to tile as blocks of large products
 * do. apart: slices are separate work items, as with few tiles, and are added afterwards, if there
 * is more than one. */
static const struct wgmma_run {
    int blocks;
    bool apart;
} RUN[] = {{0, false}, {0, false}, {1, false}, {0, true}, {1, true}};
enum { RUNS = sizeof RUN / sizeof *RUN };

/* Products of the check. slice 0: K is one chain. ends: with bias and residual, which would hide
 * small sums. On the host, where a product takes seconds, they are shorter. */
static const struct wgmma_case {
    int64_t t, n, k;
    int slice; /* steps */
    bool ends;
} CASES[] = {
#ifdef TARE_CUDA_SHIM
    {34, 200, 200, 3, false},
    {34, 260, 160, 0, false},
#else
    {200, 328, 1048, 8, false}, /* incomplete tiles; five slices, the last of one incomplete step */
    /* full steps: after padding zeros, a sum of -0 could not be distinguished from +0 */
    {200, 328, 4128, 0, false},
    {64, 194, 520, 7, true}, /* slices that end, and begin, within a stage */
#endif
};
enum { N_CASES = sizeof CASES / sizeof *CASES };

static uint32_t random_bits(uint32_t *state)
{
    *state = *state * 1664525u + 1013904223u;
    return *state >> 8;
}

/* bf16 of either sign, 1 <= |x| < 2, times 2^e. */
static uint16_t scaled_bf16(uint32_t *state, int e)
{
    const uint32_t r = random_bits(state);
    return (uint16_t)((r & 1) << 15 | (uint32_t)(127 + e) << 7 | (r >> 1 & 127));
}

static uint16_t test_number(uint32_t *state, int64_t row, int64_t k)
{
    const int e = (int)(random_bits(state) % 64);
    switch (row % KINDS) {
    case 0:
        return scaled_bf16(state, e % 4 - 3); /* like weights */
    case 1:
        return scaled_bf16(state, e - 32); /* exponents that are far apart */
    case 2:
        /* large ones that cancel, small ones between */
        return k % 4 == 0 ? 0x4b83 : k % 4 == 2 ? 0xcb83 : scaled_bf16(state, -2);
    case 3:
        return scaled_bf16(state, -60 - e % 12); /* products around the smallest fp32 */
    case 4:
        return scaled_bf16(state, -127) & 0x807f; /* denormal */
    case 5:
        return scaled_bf16(state, 40 + e % 12); /* large */
    case 6:
        /* sums that grow, with a carry every few terms */
        return (uint16_t)(scaled_bf16(state, 0) & 0x7fff);
    case 7:
        /* slightly less with every k: shows where terms are truncated */
        return scaled_bf16(state, -(int)(k % 29));
    case 8:
        /* zeros of both signs, against these: */
        return k % 4 ? scaled_bf16(state, -20 - e % 4) : (uint16_t)(e % 2 << 15);
    case 9:
        /* large numbers next to tiny ones, which must be kept */
        return k % 4 ? scaled_bf16(state, -70 - e % 30) : scaled_bf16(state, 50);
    default:
        return 0x8000; /* -0: the sign of a sum of zeros */
    }
}

struct wgmma_tensors {
    void *x, *w;
    float *y[RUNS], *add, *parts; /* add: residual, whose first row is the bias; parts: sums of slices */
};

static float test_addend(int64_t i)
{
    return (float)(i % 251) * 0x1p-9f;
}

/* Host bytes on the device, filled with n elements f(i). */
template <typename T, typename F> static void *upload_filled(const struct kctx *c, int64_t n, F f)
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
    return upload_filled<uint16_t>(c, rows * k, [&](int64_t i) { return test_number(&seed, i / k, i % k); });
}

static chain_cut cut_of(const wgmma_case &of)
{
    return chain_cut{(int)((of.k + CHAIN_STEP - 1) / CHAIN_STEP), of.slice ? of.slice : (int)(of.k / CHAIN_STEP + 1)};
}

/* Returns false if no tensor map could be made. */
static bool run_wgmma(const struct kctx *c, const product &p, const chain_cut &cut, const wgmma_run &run, float *parts)
{
    const int slices = chain_slices(cut);
    if (!run.apart || slices == 1) return matmul_wgmma(c, p, cut, nullptr, run.blocks);
    if (!matmul_wgmma(c, p, cut, parts, run.blocks)) return false;
    matmul_add(c, p, parts, slices, nullptr);
    return true;
}

/* The results of all runs on the host, [RUNS][t n]; NULL: a fault, or no tensor map. */
static uint32_t *run_results(const struct kctx *c, const wgmma_case &of, const wgmma_tensors &at)
{
    const size_t bytes = (size_t)(of.t * of.n) * sizeof(float);
    const float *add = of.ends ? at.add : nullptr;
    product p = {at.y[0], at.x, at.w, add, add, of.n, of.t, of.n, of.k};
    uint32_t *host = static_cast<uint32_t *>(malloc(RUNS * bytes));
    bool done = host;
    if (!host) cuda_failed(c, TARE_E_NOMEM, "the check of wgmma", "no memory on the host");
    matmul_chain_many(c, p, cut_of(of), nullptr);
    for (int i = 1; i < RUNS && done; i++) {
        p.y = at.y[i];
        done = run_wgmma(c, p, cut_of(of), RUN[i], at.parts);
    }
    for (int i = 0; i < RUNS && done; i++)
        done = CUDA_TRY(c, cudaMemcpyAsync(host + (size_t)i * (bytes / 4), at.y[i], bytes, cudaMemcpyDeviceToHost, cuda_stream(c)));
    if (done && CUDA_TRY(c, cudaStreamSynchronize(cuda_stream(c))) && !kernel_faulted(c)) return host;
    free(host);
    return nullptr;
}

struct wgmma_found {
    /* wanted: but not used, which calls for a warning; broken: the device's context is unusable */
    bool asked, taken, wanted, broken;
    int64_t sums;
    char text[300];
};

/* Operands of a case. Each run's results begin as distinct words, so that unwritten ones differ. */
static wgmma_tensors make_tensors(const struct kctx *c, const wgmma_case &of)
{
    const int64_t sums = of.t * of.n;
    wgmma_tensors at = {random_rows(c, of.t, of.k, 1), random_rows(c, of.n, of.k, 2), {}, nullptr, nullptr};
    for (int run = 0; run < RUNS; run++)
        at.y[run] = static_cast<float *>(upload_filled<uint32_t>(c, sums, [&](int64_t) { return 0x7fc00001u + (uint32_t)run; }));
    at.add = static_cast<float *>(upload_filled<float>(c, sums, test_addend));
    at.parts =
        static_cast<float *>(upload_filled<uint32_t>(c, chain_slices(cut_of(of)) * sums, [](int64_t) { return 0x7fc00000u; }));
    return at;
}

/* Returns true if no bit differs. */
static bool compare_case(const struct kctx *c, const wgmma_case &of, wgmma_found *found)
{
    const int64_t sums = of.t * of.n, compared = (RUNS - 1) * sums;
    const wgmma_tensors at = make_tensors(c, of);
    uint32_t *all = kernel_faulted(c) ? nullptr : run_results(c, of, at);
    int64_t differ = 0, first = -1;
    for (int64_t i = 0; all && i < compared; i++) {
        if (all[i % sums] == all[sums + i]) continue;
        if (!differ++) first = i;
    }
    if (!all)
        snprintf(found->text, sizeof found->text, "the check failed (TARE_CUDA_WGMMA=0 disables wgmma): %.200s",
                 kernel_faulted(c) ? c->fault->message : "the driver cannot create tensor maps");
    else if (differ)
        snprintf(found->text, sizeof found->text,
                 "%lld of %lld sums of %lld products differ on this GPU; the first is row %lld, column %lld: %08x by mma, %08x by "
                 "wgmma%s",
                 (long long)differ, (long long)compared, (long long)of.k, (long long)(first % sums / of.n),
                 (long long)(first % of.n), all[first % sums], all[sums + first], RUN[first / sums + 1].apart ? " in parts" : "");
    const bool same = all && !differ;
    free(all);
    cuda_give(at.x);
    cuda_give(at.w);
    for (float *y : at.y) cuda_give(y);
    cuda_give(at.add);
    cuda_give(at.parts);
    found->sums += compared;
    return same;
}

/* Clean up after a failed check. The error of a rejected call would be attributed to the next
 * launch, so it is read here. If the context is unusable, every call fails from here on, and the
 * run ends with the check's message instead of a later one. */
static void clear_failure(const struct kctx *c, wgmma_found *found)
{
    cudaGetLastError();
    found->broken = cudaStreamSynchronize(cuda_stream(c)) != cudaSuccess;
    if (found->broken) kernel_fail(c, TARE_E_DEVICE, "products of many rows by wgmma: %s", found->text);
}

static void check_cases(const struct kctx *c, wgmma_found *found)
{
    struct kernel_fault fault = {};
    struct kctx own = *c;
    const char *wanted = getenv("TARE_CUDA_WGMMA");
    own.fault = &fault;
    fault.layer = -1;
    if (cuda_capability() != 90) {
        snprintf(found->text, sizeof found->text, "this GPU's compute capability is %d.%d, but wgmma requires 9.0",
                 cuda_capability() / 10, cuda_capability() % 10);
        return;
    }
    if (!wanted || strcmp(wanted, "1") != 0) {
        snprintf(found->text, sizeof found->text, "TARE_CUDA_WGMMA is not 1");
        return;
    }
    found->wanted = true;
    for (int i = 0; i < N_CASES; i++)
        if (!compare_case(&own, CASES[i], found)) {
            clear_failure(c, found);
            return;
        }
    found->taken = true;
    snprintf(found->text, sizeof found->text, "all %lld sums of the check are bit-identical to mma", (long long)found->sums);
}

static wgmma_found found;

bool matmul_wgmma_taken(const struct kctx *c)
{
    cudaStreamCaptureStatus recording = cudaStreamCaptureStatusNone;
    if (found.asked || kernel_faulted(c)) return found.taken;
    /* the check waits for the device; before it has run, mma is used in any case */
    if (cudaStreamIsCapturing(cuda_stream(c), &recording) != cudaSuccess || recording != cudaStreamCaptureStatusNone) return false;
    /* an earlier failure is not the check's */
    if (!CUDA_TRY(c, cudaStreamSynchronize(cuda_stream(c)))) return false;
    found.asked = true;
    check_cases(c, &found);
    return found.taken;
}

int cuda_about(const struct kctx *c, char *text, int64_t size)
{
    const bool taken = matmul_wgmma_taken(c);
    snprintf(text, (size_t)size, "products of many rows with batch_invariant %s: %s",
             found.broken ? "cannot be computed"
             : taken      ? "use wgmma"
                          : "use mma",
             found.asked ? found.text : "the check has not run yet");
    return taken || !found.wanted;
}

#ifdef TARE_CUDA_SHIM
/* For tests: forget the check, as in a new process. */
extern "C" void cuda_about_again(void)
{
    found = wgmma_found{};
}
#endif
