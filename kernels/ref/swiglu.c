/* Gated MLP.  gu[t] = gate | up, F each;  silu(g) = g s(g), s(g) = 1/(1 + e^-g), written with e^-|g| so that nothing overflows.
 *
 *   act = silu(gate) up
 *   dup = dact silu(gate)      dgate = dact up s (1 + gate (1 - s))
 */
static float swiglu_sigmoid(float g)
{
    const float e = exact_exp(-fabsf(g)), q = 1.0f + e;
    return (g < 0 ? e : 1.0f) / q;
}

static void swiglu(const struct kctx *c, float *act, const float *gu, int64_t t, int64_t f)
{
    (void)c;
    for (int64_t i = 0; i < t; i++)
        for (int64_t j = 0; j < f; j++) {
            const float g = gu[i * 2 * f + j];
            act[i * f + j] = g * swiglu_sigmoid(g) * gu[i * 2 * f + f + j];
        }
}

static void swiglu_grad(const struct kctx *c, float *dgu, const float *dact, const float *gu, int64_t t, int64_t f)
{
    (void)c;
    for (int64_t i = 0; i < t; i++)
        for (int64_t j = 0; j < f; j++) {
            const float g = gu[i * 2 * f + j], up = gu[i * 2 * f + f + j], d = dact[i * f + j], s = swiglu_sigmoid(g);
            dgu[i * 2 * f + j] = d * up * (s * fmaf(g, 1.0f - s, 1.0f));
            dgu[i * 2 * f + f + j] = d * (g * s);
        }
}
