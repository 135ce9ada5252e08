/* The instructions of mma.cuh on the host, lane by lane as the PTX ISA describes them. A copy of cp.async may be made at any time between its issue
 * and the wait for its group: mma_host_eager decides which of the two, so that tests see a missing wait and a place that is still read. */
#ifndef TARE_CUDA_MMA_HOST_CUH
#define TARE_CUDA_MMA_HOST_CUH

#include <math.h>
#include <string.h>

#include <deque>
#include <vector>

extern int mma_host_eager; /* 1: copies are made at once; 0: as late as allowed (attention.cu) */

struct mma_host_copy {
    void *to;
    const void *from; /* NULL: zeros */
};
struct mma_host_copies { /* of one thread of the block that runs */
    int64_t block = -1;
    std::vector<mma_host_copy> open;
    std::deque<std::vector<mma_host_copy>> groups;
};

inline mma_host_copies &mma_host_mine(void)
{
    static mma_host_copies all[1024];
    mma_host_copies &m = all[shim_thread()];
    if (m.block != shim_block_serial()) {
        m.block = shim_block_serial();
        m.open.clear();
        m.groups.clear();
    }
    return m;
}

inline void mma_host_do(const mma_host_copy &c)
{
    for (int i = 0; i < 4; i++) static_cast<uint32_t *>(c.to)[i] = c.from ? static_cast<const uint32_t *>(c.from)[i] : 0;
}

inline float mma_host_value(uint32_t pair, int high)
{
    const uint32_t u = high ? pair & 0xffff0000u : pair << 16;
    float x;
    memcpy(&x, &u, sizeof x);
    return x;
}

inline void mma_bf16(float d[4], const uint32_t a[4], const uint32_t b[2])
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
        float sum = d[i];
        for (int k = 0; k < 16; k++) {
            const int pair = k % 8 / 2; /* t of the lane that holds column k of A, row k of B */
            const uint32_t x = all[row % 8 * 4 + pair].a[k / 8 * 2 + row / 8], w = all[col * 4 + pair].b[k / 8];
            sum = fmaf(mma_host_value(x, k % 2), mma_host_value(w, k % 2), sum);
        }
        d[i] = sum;
    }
}

inline void ldmatrix_host(uint32_t r[4], const void *row, bool trans)
{
    const void *all[32];
    if ((uintptr_t)row % 16) shim_fail("ldmatrix: a row's address is not a multiple of 16");
    shim_warp_exchange(&row, (int)sizeof row, all);
    const int lane = shim_lane(), g = lane / 4, t = lane % 4;
    for (int i = 0; i < 4; i++) {
        uint16_t x[2];
        for (int j = 0; j < 2; j++)
            x[j] = trans ? ((const uint16_t *)all[i * 8 + 2 * t + j])[g] : ((const uint16_t *)all[i * 8 + g])[2 * t + j];
        r[i] = (uint32_t)x[0] | (uint32_t)x[1] << 16;
    }
    shim_warp_sync(); /* nobody writes before all have read: the instruction is one */
}

inline void ldmatrix(uint32_t r[4], const void *row) { ldmatrix_host(r, row, false); }
inline void ldmatrix_trans(uint32_t r[4], const void *row) { ldmatrix_host(r, row, true); }

inline void cp_async16(void *to, const void *from, bool valid)
{
    if ((uintptr_t)to % 16 || (valid && (uintptr_t)from % 16)) shim_fail("cp.async: an address is not a multiple of 16");
    const mma_host_copy copy = {to, valid ? from : nullptr};
    if (mma_host_eager)
        mma_host_do(copy);
    else
        mma_host_mine().open.push_back(copy);
}

inline void cp_async_commit()
{
    mma_host_copies &m = mma_host_mine();
    m.groups.push_back(std::move(m.open));
    m.open.clear();
}

template <int N> inline void cp_async_wait()
{
    mma_host_copies &m = mma_host_mine();
    for (; m.groups.size() > N; m.groups.pop_front())
        for (const mma_host_copy &c : m.groups.front()) mma_host_do(c);
}

inline uint32_t bf16_pair(float low, float high) { return (uint32_t)bf16_from_f32(low) | (uint32_t)bf16_from_f32(high) << 16; }
inline float exp2_fast(float x) { return exp2f(x); }

#endif
