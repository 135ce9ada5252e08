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

static void swiglu(const struct kctx *c, const struct op_swiglu *o)
{
    (void)c;
    for (int64_t i = 0; i < o->t; i++)
        for (int64_t j = 0; j < o->f; j++) {
            const float g = o->gu[i * 2 * o->f + j];
            o->act[i * o->f + j] = g * swiglu_sigmoid(g) * o->gu[i * 2 * o->f + o->f + j];
        }
}

static void swiglu_grad(const struct kctx *c, const struct op_swiglu_grad *o)
{
    (void)c;
    for (int64_t i = 0; i < o->t; i++)
        for (int64_t j = 0; j < o->f; j++) {
            const float g = o->gu[i * 2 * o->f + j], up = o->gu[i * 2 * o->f + o->f + j], d = o->dact[i * o->f + j],
                        s = swiglu_sigmoid(g);
            o->dgu[i * 2 * o->f + j] = d * up * (s * fmaf(g, 1.0f - s, 1.0f));
            o->dgu[i * 2 * o->f + o->f + j] = d * (g * s);
        }
}
