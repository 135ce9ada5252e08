/* Gated MLP (definitions: ref/swiglu.c). */
#define GELU_C 1.5957691216057308f /* 2 sqrt(2/pi) */
#define GELU_C3 (GELU_C * 0.044715f)

struct swiglu_args {
    void *to;
    const void *gu;
    void *kept;
    const float *dact;
    int64_t f;
    enum dtype to_dtype;
    enum dtype gu_dtype;
    int rounds; /* 1: gate and up, stored in fp32, are rounded to bf16 */
};

INLINE vf swiglu_in(const struct swiglu_args *s, int64_t at, int64_t left)
{
    const vf x = rows_load(s->gu, s->gu_dtype, at, left);
    return s->rounds ? v_round_bf16(x) : x;
}

INLINE vf v_sigmoid(vf g)
{
    const vf e = v_exp(v_neg_abs(g)), one = v_set(1.0f);
    return v_div(v_where_negative(g, e, one), v_add(one, e));
}

INLINE vf gelu_slope(vf g, float c3)
{
    return v_fma(v_set(c3), v_mul(g, g), v_set(GELU_C));
}

/* gelu is a compile-time constant of the caller. */
INLINE vf swiglu_gate(vf g, const int gelu)
{
    return v_sigmoid(gelu ? v_mul(g, gelu_slope(g, GELU_C3)) : g);
}

INLINE void swiglu_rows(const struct swiglu_args *s, int64_t begin, int64_t end, const int gelu)
{
    for (int64_t i = begin; i < end; i++)
        for (int64_t j = 0; j < s->f; j += LANES) {
            const int64_t left = s->f - j, at = i * 2 * s->f + j;
            const vf g = swiglu_in(s, at, left), up = swiglu_in(s, at + s->f, left);
            if (s->kept) {
                rows_store(s->kept, DTYPE_BF16, at, g, left);
                rows_store(s->kept, DTYPE_BF16, at + s->f, up, left);
            }
            rows_store(s->to, s->to_dtype, i * s->f + j, v_mul(v_mul(g, swiglu_gate(g, gelu)), up), left);
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

static int swiglu_rounds(enum dtype dtype, enum dtype gu_dtype)
{
    return dtype == DTYPE_BF16 && gu_dtype == DTYPE_F32;
}

static void cpu_swiglu(const struct kctx *c, const struct op_swiglu *o)
{
    spans(c, o->t, 4 * o->f, 1, o->gelu ? geglu_run : swiglu_run,
          &(struct swiglu_args){.to = o->act,
                                .gu = o->gu,
                                .kept = o->kept,
                                .f = o->f,
                                .to_dtype = o->act_dtype,
                                .gu_dtype = o->gu_dtype,
                                .rounds = swiglu_rounds(o->dtype, o->gu_dtype)});
}

INLINE void swiglu_grad_rows(const struct swiglu_args *s, int64_t begin, int64_t end, const int gelu)
{
    const vf one = v_set(1.0f);
    for (int64_t i = begin; i < end; i++)
        for (int64_t j = 0; j < s->f; j += LANES) {
            const int64_t left = s->f - j, at = i * 2 * s->f + j;
            const vf g = swiglu_in(s, at, left), up = swiglu_in(s, at + s->f, left), d = gemm_load(s->dact + i * s->f + j, left);
            const vf p = swiglu_gate(g, gelu), slope = gelu ? v_mul(g, gelu_slope(g, 3 * GELU_C3)) : g;
            rows_store(s->to, s->to_dtype, at, v_mul(v_mul(d, up), v_mul(p, v_fma(slope, v_sub(one, p), one))), left);
            rows_store(s->to, s->to_dtype, at + s->f, v_mul(d, v_mul(g, p)), left);
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

static void cpu_swiglu_grad(const struct kctx *c, const struct op_swiglu_grad *o)
{
    spans(c, o->t, 6 * o->f, 1, o->gelu ? geglu_grad_run : swiglu_grad_run,
          &(struct swiglu_args){.to = o->dgu,
                                .gu = o->gu,
                                .dact = o->dact,
                                .f = o->f,
                                .to_dtype = o->dgu_dtype,
                                .gu_dtype = o->gu_dtype,
                                .rounds = swiglu_rounds(o->dtype, o->gu_dtype)});
}
