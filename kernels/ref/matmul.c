/* Products. W [N,K] as in a checkpoint; packed here is W itself, in the precision of the computation.
 *
 *   y[t,n]  = sum_k x[t,k] W[n,k]  (+ bias[n]) (+ residual[t,n])      acc = fma(x, w, acc) for k = 0, 1, ... from 0
 *   dx[t,k] = sum_n dy[t,n] W[n,k]                                     the chain starts at 0, or at dx to accumulate
 *   dW[n,k] += sum_t dy[t,n] x[t,k];   dbias[n] += sum_t dy[t,n]       the chain starts at dW
 *
 * DTYPE_BF16 rounds both factors to bf16 (nearest even); products of two are exact in fp32, sums are fp32. Its chains run over pairs of the inner index,
 * the odd one first (bf16_place): the order of vdpbf16ps, so that CPUs with and without that instruction give the same bits. The instruction takes denormals
 * for zero, which sums of ordinary size do not show.
 */
static int64_t matmul_packed_bytes(int64_t n, int64_t k, enum dtype dtype)
{
    switch (dtype) {
    case DTYPE_F32:
        return n * k * 4;
    case DTYPE_BF16:
        return n * k * 2;
    default:
        return 0; /* no such precision here */
    }
}

static void matmul_pack(const struct kctx *c, void *packed, const float *w, int64_t n, int64_t k, enum dtype dtype)
{
    (void)c;
    if (dtype == DTYPE_F32) {
        memcpy(packed, w, (size_t)(n * k) * sizeof *w);
        return;
    }
    uint16_t *h = packed;
    for (int64_t i = 0; i < n * k; i++) h[i] = bf16_from_f32(w[i]);
}

static float matmul_value(float x, enum dtype dtype)
{
    return dtype == DTYPE_BF16 ? bf16_round(x) : x;
}

/* The i-th term of a chain over n. */
static int64_t matmul_place(int64_t i, int64_t n, enum dtype dtype)
{
    return dtype == DTYPE_BF16 ? bf16_place(i, n) : i;
}

static void matmul(const struct kctx *c, float *y, int64_t ldy, const float *x, const void *packed, const float *bias,
                   const float *residual, int64_t t, int64_t n, int64_t k, enum dtype dtype)
{
    (void)c;
    const float *w = packed;
    const uint16_t *h = packed;
    for (int64_t i = 0; i < t; i++)
        for (int64_t j = 0; j < n; j++) {
            float acc = 0;
            for (int64_t p = 0; p < k; p++) {
                const int64_t q = matmul_place(p, k, dtype);
                acc = fmaf(matmul_value(x[i * k + q], dtype), dtype == DTYPE_BF16 ? bf16_to_f32(h[j * k + q]) : w[j * k + q], acc);
            }
            if (bias) acc += bias[j];
            if (residual) acc += residual[i * ldy + j];
            y[i * ldy + j] = acc;
        }
}

static void matmul_dx(const struct kctx *c, float *dx, const float *dy, const float *w, int64_t t, int64_t n, int64_t k,
                      int accumulate, enum dtype dtype)
{
    (void)c;
    for (int64_t i = 0; i < t; i++) {
        float *row = dx + i * k;
        if (!accumulate) memset(row, 0, (size_t)k * sizeof *row);
        for (int64_t p = 0; p < n; p++) {
            const int64_t j = matmul_place(p, n, dtype);
            const float g = matmul_value(dy[i * n + j], dtype);
            for (int64_t q = 0; q < k; q++) row[q] = fmaf(g, matmul_value(w[j * k + q], dtype), row[q]);
        }
    }
}

static void matmul_dw(const struct kctx *c, float *dw, float *dbias, const float *dy, const float *x, int64_t t, int64_t n,
                      int64_t k, enum dtype dtype)
{
    (void)c;
    for (int64_t i = 0; dbias && i < t; i++)
        for (int64_t j = 0; j < n; j++) dbias[j] += dy[i * n + j];
    for (int64_t p = 0; p < t; p++) {
        const int64_t i = matmul_place(p, t, dtype);
        for (int64_t j = 0; j < n; j++) {
            const float g = matmul_value(dy[i * n + j], dtype);
            for (int64_t q = 0; q < k; q++) dw[j * k + q] = fmaf(g, matmul_value(x[i * k + q], dtype), dw[j * k + q]);
        }
    }
}

static void matmul_dw_apart(const struct kctx *c, float *dw, float *dbias, const float *dy, const float *x, int64_t t, int64_t n,
                            int64_t k, enum dtype dtype)
{
    (void)c;
    for (int64_t i = 0; dbias && i < t; i++)
        for (int64_t j = 0; j < n; j++) dbias[j] += dy[i * n + j];
    for (int64_t j = 0; j < n; j++)
        for (int64_t q = 0; q < k; q++) {
            float sum = 0;
            for (int64_t p = 0; p < t; p++) {
                const int64_t i = matmul_place(p, t, dtype);
                sum = fmaf(matmul_value(dy[i * n + j], dtype), matmul_value(x[i * k + q], dtype), sum);
            }
            dw[j * k + q] += sum;
        }
}
