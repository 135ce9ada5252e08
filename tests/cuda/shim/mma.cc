/* The warp's matrix instructions and asynchronous copies (mma_host.cuh). */
#include "cuda.h"

#include "internal.h"
#include "mma.cuh"

#include <deque>
#include <vector>

int mma_host_eager, mma_host_cuts, mma_host_rounds, mma_host_zeros;

static int exponent(float x)
{
    const int e = (int)(__float_as_uint(x) >> 23 & 255);
    return (e ? e : 1) - 127;
}

static float toward_zero(double x)
{
    const float y = (float)x;
    return fabs((double)y) > fabs(x) ? nextafterf(y, 0) : y;
}

float shim_mma_sum(float sum, const float *x, const float *w, int bits)
{
    int most = exponent(sum);
    bool finite = bits && isfinite(sum);
    for (int k = 0; k < 16 && bits; k++) {
        if (mma_host_zeros || (x[k] != 0 && w[k] != 0)) most = max(most, exponent(x[k]) + exponent(w[k]));
        finite = finite && isfinite(x[k]) && isfinite(w[k]);
    }
    if (!finite) {
        for (int k = 0; k < 16; k++) sum = fmaf(x[k], w[k], sum);
        return sum;
    }
    const double unit = ldexp(1, most - bits);
    double all = trunc(sum / unit); /* at most 17 * 2^(bits + 2), so exact */
    for (int k = 0; k < 16; k++) all += trunc((double)x[k] * w[k] / unit);
    return mma_host_rounds ? (float)(all * unit) : toward_zero(all * unit);
}

static float value(uint32_t pair, int high)
{
    return __uint_as_float(high ? pair & 0xffff0000u : pair << 16);
}

void mma_bf16(float d[4], const uint32_t a[4], const uint32_t b[2])
{
    struct operands {
        uint32_t a[4], b[2];
    } mine, all[32];
    memcpy(mine.a, a, sizeof mine.a);
    memcpy(mine.b, b, sizeof mine.b);
    shim_warp_exchange(&mine, (int)sizeof mine, all);
    const int lane = shim_lane();
    for (int i = 0; i < 4; i++) {
        const int row = lane / 4 + i / 2 * 8, col = lane % 4 * 2 + i % 2;
        float x[16], w[16];
        for (int k = 0; k < 16; k++) {
            const int pair = k % 8 / 2; /* t of the lane that holds column k of A, row k of B */
            x[k] = value(all[row % 8 * 4 + pair].a[k / 8 * 2 + row / 8], k % 2), w[k] = value(all[col * 4 + pair].b[k / 8], k % 2);
        }
        d[i] = shim_mma_sum(d[i], x, w, mma_host_cuts ? MMA_HOST_BITS : 0);
    }
}

void ldmatrix_host(uint32_t r[4], const void *row, bool trans)
{
    const void *all[32];
    if ((uintptr_t)row % 16) shim_fail("ldmatrix: a row's address is not a multiple of 16");
    shim_warp_exchange(&row, (int)sizeof row, all);
    shim_touch(row, 16, 0);
    const int lane = shim_lane(), g = lane / 4, t = lane % 4;
    for (int i = 0; i < 4; i++) {
        uint16_t x[2];
        for (int j = 0; j < 2; j++)
            x[j] = trans ? ((const uint16_t *)all[i * 8 + 2 * t + j])[g] : ((const uint16_t *)all[i * 8 + g])[2 * t + j];
        r[i] = (uint32_t)x[0] | (uint32_t)x[1] << 16;
    }
    shim_warp_sync(); /* no lane writes before all have read, since it is a single instruction */
}

/* ---- copies */
struct copy {
    void *to;
    const void *from; /* NULL: zeros */
};
struct copies { /* of one thread of the running block */
    int64_t block = -1;
    std::vector<copy> open;
    std::deque<std::vector<copy>> groups;
};

static copies &mine(void)
{
    static copies all[1024];
    copies &m = all[shim_thread()];
    if (m.block != shim_block_serial()) {
        m.block = shim_block_serial();
        m.open.clear();
        m.groups.clear();
    }
    return m;
}

static void make(const copy &c)
{
    if (c.from) shim_touch(c.from, 16, 0);
    shim_touch(c.to, 16, 1);
    if (c.from)
        memcpy(c.to, c.from, 16);
    else
        memset(c.to, 0, 16);
}

void cp_async16(void *to, const void *from, bool valid)
{
    if ((uintptr_t)to % 16 || (valid && (uintptr_t)from % 16)) shim_fail("cp.async: an address is not a multiple of 16");
    if (valid) shim_asked(from, 16);
    const copy c = {to, valid ? from : nullptr};
    if (mma_host_eager)
        make(c);
    else
        mine().open.push_back(c);
}

void cp_async_commit(void)
{
    copies &m = mine();
    m.groups.push_back(std::move(m.open));
    m.open.clear();
}

void cp_async_wait_host(int newest)
{
    copies &m = mine();
    for (; m.groups.size() > (size_t)newest; m.groups.pop_front())
        for (const copy &c : m.groups.front()) make(c);
}
