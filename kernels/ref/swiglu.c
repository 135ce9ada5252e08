/* Gated MLP. gu[t] = gate | up, F numbers each; silu(g) = g s(g), s(g) = 1/(1 + e^-g), computed
 * from e^-|g| so that nothing overflows.
 *
 *   act = silu(gate) up
 *   dup = dact silu(gate)      dgate = dact up s (1 + gate (1 - s))
 *
 * With DTYPE_BF16, gate and up are first rounded to bf16. For GELU, s(h) replaces s(g), where h = g
 * (c + c3 g^2); in dgate, gate h' replaces gate, where h' = c + 3 c3 g^2. */
#define GELU_C 1.5957691216057308f /* 2 sqrt(2/pi) */
#define GELU_C3 (GELU_C * 0.044715f)

static float swiglu_sigmoid(float g)
{
    const float e = exact_exp(-fabsf(g)), q = 1.0f + e;
    return (g < 0 ? e : 1.0f) / q;
}

static float gelu_slope(float g, float c3)
{
    return fmaf(c3, g * g, GELU_C);
}

static float swiglu_gate(float g, int gelu)
{
    return swiglu_sigmoid(gelu ? g * gelu_slope(g, GELU_C3) : g);
}

static float swiglu_in(float x, enum dtype dtype)
{
    return dtype == DTYPE_BF16 ? bf16_round(x) : x;
}

static void ref_swiglu(const struct kctx *c, const struct op_swiglu *o)
{
    const float *gu = o->gu;
    float *act = o->act;
    (void)c;
    for (int64_t i = 0; i < o->t; i++)
        for (int64_t j = 0; j < o->f; j++) {
            const float *at = gu + i * 2 * o->f + j, g = swiglu_in(at[0], o->dtype), up = swiglu_in(at[o->f], o->dtype);
            act[i * o->f + j] = g * swiglu_gate(g, o->gelu) * up;
        }
}

static void ref_swiglu_grad(const struct kctx *c, const struct op_swiglu_grad *o)
{
    const float *gu = o->gu;
    float *dgu = o->dgu;
    (void)c;
    for (int64_t i = 0; i < o->t; i++)
        for (int64_t j = 0; j < o->f; j++) {
            const float *at = gu + i * 2 * o->f + j, g = swiglu_in(at[0], o->dtype), up = swiglu_in(at[o->f], o->dtype),
                        d = o->dact[i * o->f + j], s = swiglu_gate(g, o->gelu),
                        slope = o->gelu ? g * gelu_slope(g, 3 * GELU_C3) : g;
            dgu[i * 2 * o->f + j] = d * up * (s * fmaf(slope, 1.0f - s, 1.0f));
            dgu[i * 2 * o->f + o->f + j] = d * (g * s);
        }
}
