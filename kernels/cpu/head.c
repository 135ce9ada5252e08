/* Softmax statistics of rows of logits and their gradient (definitions: ref/head.c). Rows are
 * divided among threads; a row is processed by one. */
struct head_args {
    float *logprob, *entropy, *lse, *kl, *grad;
    const float *logits, *ref_logits, *entropy_in, *lse_in, *ref_lse, *kl_in;
    const int32_t *target;
    const struct head_grad_row *coef;
    float scale;
    int64_t ld, v;
};

static float head_shifted(float z, float scale, float m)
{
    const float d = z * scale - m;
    return SOFTMAX_FLOOR > d ? SOFTMAX_FLOOR : d;
}

INLINE vf v_shifted(vf z, vf scale, vf m)
{
    return v_max(v_set(SOFTMAX_FLOOR), v_sub(v_mul(z, scale), m));
}

static float head_max(const float *z, float scale, int64_t v)
{
    const vf sv = v_set(scale), low = v_set(-INFINITY);
    vf m[4] = {low, low, low, low};
    int64_t i = 0;
    for (; i + 4 * LANES <= v; i += 4 * LANES)
        for (int j = 0; j < 4; j++) m[j] = v_max(v_mul(v_load(z + i + j * LANES), sv), m[j]);
    for (; i + LANES <= v; i += LANES) m[0] = v_max(v_mul(v_load(z + i), sv), m[0]);
    if (i < v) m[0] = v_max(v_select_n(v_mul(v_load_n(z + i, v - i), sv), low, v - i), m[0]);
    return v_max_of(v_max(v_max(m[0], m[1]), v_max(m[2], m[3]))) + 0.0f;
}

/* A row of logits. For its weights e = exp(d), sampling keeps the mass of every MASS_BLOCK ids and,
 * if e is set, the weights themselves and the largest weight of each lane in a block. */
enum { MASS_BLOCK = 1024 };
struct head_row {
    const float *z;
    int64_t v;
    float scale, top;
    uint64_t *mass;  /* [blocks], or NULL */
    float *e, *most; /* [V], [blocks, LANES], or NULL */
};

INLINE vf head_distance(const struct head_row *h, int64_t i, int64_t left)
{
    return v_shifted(gemm_load(h->z + i, left), v_set(h->scale), v_set(h->top));
}

struct head_sums {
    vf l, w;
    vmass mass; /* of a block */
    vf most;
};

INLINE void head_vector(struct head_sums *s, const struct head_row *h, int64_t i, int64_t left, const int mass, const int keep)
{
    const vf d = head_distance(h, i, left);
    vf e = v_exp(d);
    if (left < LANES) e = v_first_n(e, left);
    s->l = v_add(s->l, e);
    s->w = v_fma(e, d, s->w);
    if (mass) s->mass = vmass_add(s->mass, e);
    if (!keep) return;
    s->most = v_max(e, s->most);
    gemm_store(h->e + i, e, left);
}

INLINE struct head_sums head_blocks(const struct head_row *h, const int mass, const int keep)
{
    struct head_sums s = {v_zero(), v_zero(), vmass_zero(), v_zero()};
    for (int64_t begin = 0, i = 0; begin < h->v; begin += MASS_BLOCK) {
        const int64_t end = h->v - begin < MASS_BLOCK ? h->v : begin + MASS_BLOCK;
        s.mass = vmass_zero();
        s.most = v_zero();
        for (; i + LANES <= end; i += LANES) head_vector(&s, h, i, LANES, mass, keep);
        if (i < end) head_vector(&s, h, i, end - i, mass, keep);
        if (mass) h->mass[begin / MASS_BLOCK] = vmass_sum(s.mass);
        if (keep) v_store(h->most + begin / MASS_BLOCK * LANES, s.most);
    }
    return s;
}

/* Store lse[0..1] = m, log l; return the entropy. */
static float head_row(float *lse, struct head_row *h)
{
    h->top = head_max(h->z, h->scale, h->v);
    const struct head_sums s = h->e      ? h->mass ? head_blocks(h, 1, 1) : head_blocks(h, 0, 1)
                                    : h->mass ? head_blocks(h, 1, 0)
                                         : head_blocks(h, 0, 0);
    const float sum = v_sum(s.l);
    lse[0] = h->top;
    lse[1] = exact_log(sum);
    return lse[1] - v_sum(s.w) / sum;
}

static void head_stats_run(const void *arg, int64_t begin, int64_t end, int thread)
{
    (void)thread;
    const struct head_args *s = arg;
    for (int64_t i = begin; i < end; i++) {
        struct head_row row = {.z = s->logits + i * s->ld, .v = s->v, .scale = s->scale};
        const float h = head_row(s->lse + 2 * i, &row);
        if (s->entropy) s->entropy[i] = h;
        s->logprob[i] = head_shifted(row.z[s->target[i]], s->scale, s->lse[2 * i]) - s->lse[2 * i + 1];
    }
}

static void cpu_head_stats(const struct kctx *c, const struct op_head_stats *o)
{
    const struct head_args s = {.logprob = o->logprob,
                                .entropy = o->entropy,
                                .lse = o->lse,
                                .logits = o->logits,
                                .target = o->target,
                                .scale = 1.0f / o->temperature,
                                .ld = o->v,
                                .v = o->v};
    spans(c, o->r, 4 * o->v, 1, head_stats_run, &s);
}

static void head_kl_run(const void *arg, int64_t begin, int64_t end, int thread)
{
    (void)thread;
    const struct head_args *s = arg;
    const vf scale = v_set(s->scale);
    for (int64_t i = begin; i < end; i++) {
        const vf m = v_set(s->lse_in[2 * i]), l = v_set(s->lse_in[2 * i + 1]), rm = v_set(s->ref_lse[2 * i]),
                 rl = v_set(s->ref_lse[2 * i + 1]);
        vf sum = v_zero();
        for (int64_t j = 0; j < s->v; j += LANES) {
            const int64_t left = s->v - j;
            const vf p = v_sub(v_shifted(gemm_load(s->logits + i * s->ld + j, left), scale, m), l);
            const vf q = v_sub(v_shifted(gemm_load(s->ref_logits + i * s->ld + j, left), scale, rm), rl);
            vf e = v_exp(p);
            if (left < LANES) e = v_first_n(e, left);
            sum = v_fma(e, v_sub(p, q), sum);
        }
        s->kl[i] = v_sum(sum);
    }
}

static void cpu_head_kl(const struct kctx *c, const struct op_head_kl *o)
{
    const struct head_args s = {.kl = o->kl,
                                .logits = o->logits,
                                .lse_in = o->lse,
                                .ref_logits = o->ref_logits,
                                .ref_lse = o->ref_lse,
                                .scale = 1.0f / o->temperature,
                                .ld = o->v,
                                .v = o->v};
    spans(c, o->r, 4 * o->v, 1, head_kl_run, &s);
}

static void head_grad_row(const struct head_args *s, int64_t i)
{
    const struct head_grad_row g = s->coef[i];
    const vf scale = v_set(s->scale), m = v_set(s->lse_in[2 * i]), l = v_set(s->lse_in[2 * i + 1]);
    const vf a = v_set(-g.logprob), b = v_set(-g.entropy), k = v_set(g.kl);
    const vf h = v_set(s->entropy_in ? s->entropy_in[i] : 0), kl = v_set(s->kl_in ? s->kl_in[i] : 0);
    const vf rm = v_set(s->kl_in ? s->ref_lse[2 * i] : 0), rl = v_set(s->kl_in ? s->ref_lse[2 * i + 1] : 0);
    float *z = s->grad + i * s->ld;
    for (int64_t j = 0; j < s->v; j += LANES) {
        const int64_t left = s->v - j;
        const vf p = v_sub(v_shifted(gemm_load(z + j, left), scale, m), l);
        vf d = a;
        if (s->entropy_in) d = v_fma(b, v_add(p, h), d);
        if (s->kl_in) {
            const vf q = v_sub(v_shifted(gemm_load(s->ref_logits + i * s->ld + j, left), scale, rm), rl);
            d = v_fma(k, v_sub(v_sub(p, q), kl), d);
        }
        gemm_store(z + j, v_mul(v_mul(v_exp(p), d), scale), left);
    }
    z[s->target[i]] += g.logprob * s->scale;
}

static void head_grad_run(const void *arg, int64_t begin, int64_t end, int thread)
{
    (void)thread;
    for (int64_t i = begin; i < end; i++) head_grad_row(arg, i);
}

static void cpu_head_grad(const struct kctx *c, const struct op_head_grad *o)
{
    const struct head_args s = {.grad = o->logits,
                                .target = o->target,
                                .lse_in = o->lse,
                                .entropy_in = o->entropy,
                                .ref_logits = o->ref_logits,
                                .ref_lse = o->ref_lse,
                                .kl_in = o->kl,
                                .coef = o->coef,
                                .scale = 1.0f / o->temperature,
                                .ld = o->v,
                                .v = o->v};
    spans(c, o->r, 4 * o->v, 1, head_grad_run, &s);
}
