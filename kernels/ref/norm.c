/* RMSNorm (Zhang and Sennrich 2019). Row (t,h) of width C; sums in 16 lanes.
 *
 *   rms = 1/sqrt(sum_c x_c^2 / C + eps)          y_c = (x_c rms) w_c
 *   dx_c (+)= rms (w_c dy_c) - x_c rms^3/C sum_i (w_i dy_i x_i)
 *   dw_c += sum_rows (dy_c x_c) rms, rows in order */
static void ref_rmsnorm(const struct kctx *c, const struct op_rmsnorm *o)
{
    (void)c;
    for (int64_t i = 0; i < o->t * o->heads; i++) {
        const float *xr = o->x + i / o->heads * o->ld + i % o->heads * o->width;
        float *yr = (float *)o->y + i / o->heads * o->ld + i % o->heads * o->width;
        float lane[16] = {0};
        for (int64_t j = 0; j < o->width; j++) lane[j % 16] = fmaf(xr[j], xr[j], lane[j % 16]);
        const float r = 1.0f / sqrtf(lanes_sum(lane) / (float)o->width + o->eps);
        for (int64_t j = 0; j < o->width; j++) yr[j] = xr[j] * r * o->w[j];
        if (o->rms) o->rms[i] = r;
    }
}

static void ref_rmsnorm_grad(const struct kctx *c, const struct op_rmsnorm_grad *o)
{
    (void)c;
    for (int64_t i = 0; i < o->t * o->heads; i++) {
        const float *xr = o->x + i / o->heads * o->ld + i % o->heads * o->width,
                    *dyr = o->dy + i / o->heads * o->ld + i % o->heads * o->width;
        float *dxr = o->dx + i / o->heads * o->ld + i % o->heads * o->width;
        float lane[16] = {0};
        for (int64_t j = 0; j < o->width; j++) lane[j % 16] = fmaf(o->w[j] * dyr[j], xr[j], lane[j % 16]);
        const float r = o->rms[i], s = lanes_sum(lane) * r * r * r / (float)o->width;
        for (int64_t j = 0; j < o->width; j++) {
            /* read before dx is written, which may be the same array */
            const float g = dyr[j], v = xr[j], d = fmaf(-s, v, r * (o->w[j] * g));
            if (o->dw) o->dw[j] = fmaf(g * v, r, o->dw[j]);
            dxr[j] = o->accumulate ? dxr[j] + d : d;
        }
    }
}
