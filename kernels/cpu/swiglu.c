/* Gated MLP (definitions: ref/swiglu.c). */
struct swiglu_args {
    float *to;
    const float *gu, *dact;
    int64_t f;
};

INLINE vf v_sigmoid(vf g)
{
    const vf e = v_exp(v_neg_abs(g)), one = v_set(1.0f);
    return v_div(v_where_negative(g, e, one), v_add(one, e));
}

static void swiglu_run(const void *arg, int64_t begin, int64_t end, int thread)
{
    (void)thread;
    const struct swiglu_args *s = arg;
    for (int64_t i = begin; i < end; i++)
        for (int64_t j = 0; j < s->f; j += LANES) {
            const int64_t left = s->f - j;
            const float *at = s->gu + i * 2 * s->f + j;
            const vf g = gemm_load(at, left);
            gemm_store(s->to + i * s->f + j, v_mul(v_mul(g, v_sigmoid(g)), gemm_load(at + s->f, left)), left);
        }
}

static void swiglu(const struct kctx *c, const struct op_swiglu *o)
{
    spans(c, o->t, 4 * o->f, 1, swiglu_run, &(struct swiglu_args){.to = o->act, .gu = o->gu, .f = o->f});
}

static void swiglu_grad_run(const void *arg, int64_t begin, int64_t end, int thread)
{
    (void)thread;
    const struct swiglu_args *s = arg;
    const vf one = v_set(1.0f);
    for (int64_t i = begin; i < end; i++)
        for (int64_t j = 0; j < s->f; j += LANES) {
            const int64_t left = s->f - j, at = i * 2 * s->f + j;
            const vf g = gemm_load(s->gu + at, left), up = gemm_load(s->gu + at + s->f, left),
                     d = gemm_load(s->dact + i * s->f + j, left);
            const vf p = v_sigmoid(g);
            gemm_store(s->to + at, v_mul(v_mul(d, up), v_mul(p, v_fma(g, v_sub(one, p), one))), left);
            gemm_store(s->to + at + s->f, v_mul(d, v_mul(g, p)), left);
        }
}

static void swiglu_grad(const struct kctx *c, const struct op_swiglu_grad *o)
{
    spans(c, o->t, 6 * o->f, 1, swiglu_grad_run, &(struct swiglu_args){o->dgu, o->gu, o->dact, o->f});
}
