/* Softmax statistics of a row of logits z[V] at temperature T, and the gradient of a loss through
 * them.
 *
 *   d_v = max(z_v (1/T) - m, -200),  m = max z_v (1/T);   l = sum e^d and w = sum e^d d in 16 lanes
 *   log p_v = d_v - log l        H = log l - w/l        lse = (m, log l)
 *   KL = sum p (log p - log q)
 *   dL/dz_v = (1/T) [ p_v (-a - b (log p_v + H) + c (log p_v - log q_v - KL)) + a [v = target] ]
 *             for dL = a dlogp[target] + b dH + c dKL */
static float head_max(const float *z, float scale, int64_t v)
{
    float m = -INFINITY;
    for (int64_t i = 0; i < v; i++) m = z[i] * scale > m ? z[i] * scale : m;
    return m + 0.0f; /* turns -0 into +0 */
}

static float head_shifted(float z, float scale, float m)
{
    const float d = z * scale - m;
    return SOFTMAX_FLOOR > d ? SOFTMAX_FLOOR : d;
}

/* Store lse[0..1] = m, log l; return the entropy. */
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

static void ref_head_stats(const struct kctx *c, const struct op_head_stats *o)
{
    (void)c;
    const float scale = 1.0f / o->temperature;
    for (int64_t i = 0; i < o->r; i++) {
        const float *z = o->logits + i * o->v;
        const float h = head_row(o->lse + 2 * i, z, scale, o->v);
        if (o->entropy) o->entropy[i] = h;
        o->logprob[i] = head_shifted(z[o->target[i]], scale, o->lse[2 * i]) - o->lse[2 * i + 1];
    }
}

static void ref_head_kl(const struct kctx *c, const struct op_head_kl *o)
{
    (void)c;
    const float scale = 1.0f / o->temperature;
    for (int64_t i = 0; i < o->r; i++) {
        float lane[16] = {0};
        for (int64_t j = 0; j < o->v; j++) {
            const float logp = head_shifted(o->logits[i * o->v + j], scale, o->lse[2 * i]) - o->lse[2 * i + 1];
            const float logq = head_shifted(o->ref_logits[i * o->v + j], scale, o->ref_lse[2 * i]) - o->ref_lse[2 * i + 1];
            lane[j % 16] = fmaf(exact_exp(logp), logp - logq, lane[j % 16]);
        }
        o->kl[i] = lanes_sum(lane);
    }
}

static void ref_head_grad(const struct kctx *c, const struct op_head_grad *o)
{
    (void)c;
    const float scale = 1.0f / o->temperature;
    for (int64_t i = 0; i < o->r; i++) {
        const struct head_grad_row g = o->coef[i];
        float *z = o->logits + i * o->v;
        for (int64_t j = 0; j < o->v; j++) {
            const float logp = head_shifted(z[j], scale, o->lse[2 * i]) - o->lse[2 * i + 1];
            float s = -g.logprob;
            if (o->entropy) s = fmaf(-g.entropy, logp + o->entropy[i], s);
            if (o->kl) {
                const float logq = head_shifted(o->ref_logits[i * o->v + j], scale, o->ref_lse[2 * i]) - o->ref_lse[2 * i + 1];
                s = fmaf(g.kl, logp - logq - o->kl[i], s);
            }
            z[j] = exact_exp(logp) * s * scale;
        }
        z[o->target[i]] += g.logprob * scale;
    }
}
