/* Softmax statistics of a row of logits z[V] at temperature T, and the gradient of a loss through them.
 *
 *   d_v = max(z_v (1/T) - m, -200),  m = max z_v (1/T);   l = sum e^d and w = sum e^d d in 16 lanes
 *   log p_v = d_v - log l        H = log l - w/l        lse = (m, log l)
 *   KL = sum p (log p - log q)
 *   dL/dz_v = (1/T) [ p_v (-a - b (log p_v + H) + c (log p_v - log q_v - KL)) + a [v = target] ]
 *             for dL = a dlogp[target] + b dH + c dKL
 */
static float head_max(const float *z, float scale, int64_t v)
{
    float m = -INFINITY;
    for (int64_t i = 0; i < v; i++) m = z[i] * scale > m ? z[i] * scale : m;
    return m + 0.0f; /* a maximum of 0 has one sign */
}

static float head_shifted(float z, float scale, float m)
{
    const float d = z * scale - m;
    return SOFTMAX_FLOOR > d ? SOFTMAX_FLOOR : d;
}

/* lse[0..1] = m, log l; returns the entropy. */
static float head_row(float *lse, const float *z, float scale, int64_t v)
{
    const float m = head_max(z, scale, v);
    float l[16] = {0}, w[16] = {0};
    for (int64_t i = 0; i < v; i++) {
        const float d = head_shifted(z[i], scale, m), e = exact_exp(d);
        l[i % 16] += e;
        w[i % 16] = fmaf(e, d, w[i % 16]);
    }
    const float sum = lanes_sum(l);
    lse[0] = m;
    lse[1] = exact_log(sum);
    return lse[1] - lanes_sum(w) / sum;
}

static void head_stats(const struct kctx *c, float *logprob, float *entropy, float *lse, const float *logits, int64_t ld,
                       const int32_t *target, float temperature, int64_t r, int64_t v)
{
    (void)c;
    const float scale = 1.0f / temperature;
    for (int64_t i = 0; i < r; i++) {
        const float *z = logits + i * ld;
        const float h = head_row(lse + 2 * i, z, scale, v);
        if (entropy) entropy[i] = h;
        logprob[i] = head_shifted(z[target[i]], scale, lse[2 * i]) - lse[2 * i + 1];
    }
}

static void head_kl(const struct kctx *c, float *kl, const float *logits, const float *lse, const float *ref_logits,
                    const float *ref_lse, int64_t ld, float temperature, int64_t r, int64_t v)
{
    (void)c;
    const float scale = 1.0f / temperature;
    for (int64_t i = 0; i < r; i++) {
        float lane[16] = {0};
        for (int64_t j = 0; j < v; j++) {
            const float logp = head_shifted(logits[i * ld + j], scale, lse[2 * i]) - lse[2 * i + 1];
            const float logq = head_shifted(ref_logits[i * ld + j], scale, ref_lse[2 * i]) - ref_lse[2 * i + 1];
            lane[j % 16] = fmaf(exact_exp(logp), logp - logq, lane[j % 16]);
        }
        kl[i] = lanes_sum(lane);
    }
}

static void head_grad(const struct kctx *c, float *logits, int64_t ld, const int32_t *target, const float *lse,
                      const float *entropy, const float *ref_logits, const float *ref_lse, const float *kl,
                      const struct head_grad_row *coef, float temperature, int64_t r, int64_t v)
{
    (void)c;
    const float scale = 1.0f / temperature;
    for (int64_t i = 0; i < r; i++) {
        const struct head_grad_row g = coef[i];
        float *z = logits + i * ld;
        for (int64_t j = 0; j < v; j++) {
            const float logp = head_shifted(z[j], scale, lse[2 * i]) - lse[2 * i + 1];
            float s = -g.logprob;
            if (entropy) s = fmaf(-g.entropy, logp + entropy[i], s);
            if (kl) {
                const float logq = head_shifted(ref_logits[i * ld + j], scale, ref_lse[2 * i]) - ref_lse[2 * i + 1];
                s = fmaf(g.kl, logp - logq - kl[i], s);
            }
            z[j] = exact_exp(logp) * s * scale;
        }
        z[target[i]] += g.logprob * scale;
    }
}
