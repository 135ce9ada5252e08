/* Gated MLP (definitions: ref/swiglu.c). */
#define GELU_C 1.5957691216057308f /* 2 sqrt(2/pi) */
#define GELU_C3 (GELU_C * 0.044715f)

struct swiglu_args {
    void *to;
    enum dtype dtype; /* of to */
    const float *gu, *dact;
    int64_t f;
};

INLINE vf v_sigmoid(vf g)
{
    const vf e = v_exp(v_neg_abs(g)), one = v_set(1.0f);
    return v_div(v_where_negative(g, e, one), v_add(one, e));
}

INLINE vf gelu_slope(vf g, float c3)
{
    return v_fma(v_set(c3), v_mul(g, g), v_set(GELU_C));
}

/* gelu is a constant of the caller. */
INLINE vf swiglu_gate(vf g, const int gelu)
{
    return v_sigmoid(gelu ? v_mul(g, gelu_slope(g, GELU_C3)) : g);
}

INLINE void swiglu_rows(const struct swiglu_args *s, int64_t begin, int64_t end, const int gelu)
{
    for (int64_t i = begin; i < end; i++)
        for (int64_t j = 0; j < s->f; j += LANES) {
            const int64_t left = s->f - j;
            const float *at = s->gu + i * 2 * s->f + j;
            const vf g = gemm_load(at, left);
            rows_store(s->to, s->dtype, i * s->f + j, v_mul(v_mul(g, swiglu_gate(g, gelu)), gemm_load(at + s->f, left)), left);
        }
}

static void swiglu_run(const void *arg, int64_t begin, int64_t end, int thread)
{
    (void)thread;
    swiglu_rows(arg, begin, end, 0);
}

static void geglu_run(const void *arg, int64_t begin, int64_t end, int thread)
{
    (void)thread;
    swiglu_rows(arg, begin, end, 1);
}

static void swiglu(const struct kctx *c, const struct op_swiglu *o)
{
    spans(c, o->t, 4 * o->f, 1, o->gelu ? geglu_run : swiglu_run,
          &(struct swiglu_args){.to = o->act, .dtype = o->act_dtype, .gu = o->gu, .f = o->f});
}

INLINE void swiglu_grad_rows(const struct swiglu_args *s, int64_t begin, int64_t end, const int gelu)
{
    const vf one = v_set(1.0f);
    for (int64_t i = begin; i < end; i++)
        for (int64_t j = 0; j < s->f; j += LANES) {
            const int64_t left = s->f - j, at = i * 2 * s->f + j;
            const vf g = gemm_load(s->gu + at, left), up = gemm_load(s->gu + at + s->f, left),
                     d = gemm_load(s->dact + i * s->f + j, left);
            const vf p = swiglu_gate(g, gelu), slope = gelu ? v_mul(g, gelu_slope(g, 3 * GELU_C3)) : g;
            rows_store(s->to, s->dtype, at, v_mul(v_mul(d, up), v_mul(p, v_fma(slope, v_sub(one, p), one))), left);
            rows_store(s->to, s->dtype, at + s->f, v_mul(d, v_mul(g, p)), left);
        }
}

static void swiglu_grad_run(const void *arg, int64_t begin, int64_t end, int thread)
{
    (void)thread;
    swiglu_grad_rows(arg, begin, end, 0);
}

static void geglu_grad_run(const void *arg, int64_t begin, int64_t end, int thread)
{
    (void)thread;
    swiglu_grad_rows(arg, begin, end, 1);
}

static void swiglu_grad(const struct kctx *c, const struct op_swiglu_grad *o)
{
    spans(c, o->t, 6 * o->f, 1, o->gelu ? geglu_grad_run : swiglu_grad_run,
          &(struct swiglu_args){.to = o->dgu, .dtype = o->dgu_dtype, .gu = o->gu, .dact = o->dact, .f = o->f});
}
