/* RMSNorm (Zhang and Sennrich 2019). Row (t,h) of width C; sums in 16 lanes.
 *
 *   rms = 1/sqrt(sum_c x_c^2 / C + eps)          y_c = (x_c rms) w_c
 *   dx_c (+)= rms (w_c dy_c) - x_c rms^3/C sum_i (w_i dy_i x_i)          dw_c += sum_rows (dy_c x_c) rms, rows in order
 */
static void rmsnorm(const struct kctx *c, float *y, int64_t ldy, float *rms, const float *x, int64_t ldx, const float *w, int64_t t,
                    int64_t heads, int64_t width, float eps)
{
    (void)c;
    for (int64_t i = 0; i < t * heads; i++) {
        const float *xr = x + i / heads * ldx + i % heads * width;
        float *yr = y + i / heads * ldy + i % heads * width;
        float lane[16] = {0};
        for (int64_t j = 0; j < width; j++) lane[j % 16] = fmaf(xr[j], xr[j], lane[j % 16]);
        const float r = 1.0f / sqrtf(lanes_sum(lane) / (float)width + eps);
        for (int64_t j = 0; j < width; j++) yr[j] = xr[j] * r * w[j];
        if (rms) rms[i] = r;
    }
}

static void rmsnorm_grad(const struct kctx *c, float *dx, int64_t lddx, float *dw, const float *dy, int64_t lddy, const float *x,
                         int64_t ldx, const float *w, const float *rms, int64_t t, int64_t heads, int64_t width, int accumulate)
{
    (void)c;
    for (int64_t i = 0; i < t * heads; i++) {
        const float *xr = x + i / heads * ldx + i % heads * width, *dyr = dy + i / heads * lddy + i % heads * width;
        float *dxr = dx + i / heads * lddx + i % heads * width;
        float lane[16] = {0};
        for (int64_t j = 0; j < width; j++) lane[j % 16] = fmaf(w[j] * dyr[j], xr[j], lane[j % 16]);
        const float r = rms[i], s = lanes_sum(lane) * r * r * r / (float)width;
        for (int64_t j = 0; j < width; j++) {
            const float g = dyr[j], v = xr[j], d = fmaf(-s, v, r * (w[j] * g)); /* read before dx, which may be dy */
            dw[j] = fmaf(g * v, r, dw[j]);
            dxr[j] = accumulate ? dxr[j] + d : d;
        }
    }
}
