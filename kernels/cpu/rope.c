/* Rotary embedding (definition: ref/rope.c). */
struct rope_args {
    float *x;
    const float *table;
    const int32_t *pos;
    int64_t ld, heads, dim, rotary_dim;
    int inverse;
};

static void rope_run(const void *arg, int64_t begin, int64_t end, int thread)
{
    (void)thread;
    const struct rope_args *s = arg;
    const int64_t half = s->rotary_dim / 2;
    const vf sign = v_set(s->inverse ? -1.0f : 1.0f);
    for (int64_t i = begin; i < end; i++)
        for (int64_t j = 0; j < half; j += LANES) {
            const int64_t left = half - j;
            const float *angles = s->table + s->pos[i] * s->rotary_dim + j;
            const vf cosine = gemm_load(angles, left), sine = v_mul(sign, gemm_load(angles + half, left));
            for (int64_t h = 0; h < s->heads; h++) {
                float *x = s->x + i * s->ld + h * s->dim + j;
                const vf a = gemm_load(x, left), b = gemm_load(x + half, left);
                gemm_store(x, v_fma(a, cosine, v_sub(v_set(-0.0f), v_mul(b, sine))), left);
                gemm_store(x + half, v_fma(b, cosine, v_mul(a, sine)), left);
            }
        }
}

static void cpu_rope(const struct kctx *c, const struct op_rope *o)
{
    spans(c, o->t, o->n_heads * o->head_dim, 1, rope_run,
          &(struct rope_args){o->x, o->table, o->pos, o->ld, o->n_heads, o->head_dim, o->rotary_dim ? o->rotary_dim : o->head_dim,
                              o->inverse});
}
