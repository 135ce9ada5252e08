/* ref's backward operations against finite differences of ref's forward ones. The loss is sum r y
 * with fixed random r, in double over fp32 outputs. A central difference of step h carries about
 * 2^-24 |L| / h of rounding and h^2 of the third derivative. */
#include "kernel_check.h"

#define C (&contexts[0])

struct loss {
    double (*of)(void *arg);
    void *arg;
};

static void assert_gradient(const char *what, struct loss loss, float *x, const float *gradient, int64_t n, double tolerance)
{
    const float h = 4e-3f;
    double scale = 0;
    for (int64_t i = 0; i < n; i++) scale = fmax(scale, fabs((double)gradient[i]));
    assert_true(scale > 0);
    for (int64_t i = 0; i < n; i++) {
        const float at = x[i], up = at + h, down = at - h;
        x[i] = up;
        const double above = loss.of(loss.arg);
        x[i] = down;
        const double below = loss.of(loss.arg);
        x[i] = at;
        const double slope = (above - below) / ((double)up - (double)down);
        if (fabs(slope - (double)gradient[i]) > tolerance * scale)
            fail_msg("%s: element %lld: gradient %.7g, difference %.7g", what, (long long)i, (double)gradient[i], slope);
    }
}

static double dot(const float *a, const float *b, int64_t n)
{
    double sum = 0;
    for (int64_t i = 0; i < n; i++) sum += (double)a[i] * (double)b[i];
    return sum;
}

/* ---- products */
enum { T = 4, N = 5, K = 6 };
struct product {
    float *x, *w, *bias, *y, *r;
};
static double product_loss(void *arg)
{
    struct product *p = arg;
    /* ref does not repack. */
    KERNEL(ref, C, matmul, .y = p->y, .x = p->x, .packed = p->w, .bias = p->bias, .t = T, .n = N, .k = K, .dtype = DTYPE_F32);
    return dot(p->y, p->r, T * N);
}

static void test_product(void **state)
{
    (void)state;
    struct product p = {randoms(T * K, 0, 1), randoms(N * K, 0, 1), randoms(N, 0, 1), floats(T * N, 0), randoms(T * N, 0, 1)};
    float *dx = floats(T * K, 0), *dw = floats(N * K, 0), *db = floats(N, 0);
    memset(dw, 0, N * K * sizeof *dw);
    memset(db, 0, N * sizeof *db);
    KERNEL(ref, C, matmul_dx, .dx = dx, .dy = p.r, .packed = p.w, .t = T, .n = N, .k = K, .dtype = DTYPE_F32);
    KERNEL(ref, C, matmul_dw, .dw = dw, .dbias = db, .dy = p.r, .x = p.x, .t = T, .n = N, .k = K, .dtype = DTYPE_F32);
    assert_gradient("dx", (struct loss){product_loss, &p}, p.x, dx, T * K, 1e-3);
    assert_gradient("dw", (struct loss){product_loss, &p}, p.w, dw, N * K, 1e-3);
    assert_gradient("dbias", (struct loss){product_loss, &p}, p.bias, db, N, 1e-3);
    buffers_end();
}

/* ---- norm */
enum { HEADS = 2, WIDTH = 20, LD = HEADS * WIDTH };
struct norm {
    float *x, *w, *y, *r, *rms;
};
static double norm_loss(void *arg)
{
    struct norm *p = arg;
    KERNEL(ref, C, rmsnorm, .y = p->y, .ld = LD, .rms = p->rms, .x = p->x, .w = p->w, .t = T, .heads = HEADS, .width = WIDTH,
           .eps = 1e-5f);
    return dot(p->y, p->r, T * LD);
}

static void test_norm(void **state)
{
    (void)state;
    struct norm p = {randoms(T * LD, 0, 2), randoms(WIDTH, 0, 1), floats(T * LD, 0), randoms(T * LD, 0, 1), floats(T * HEADS, 0)};
    float *dx = floats(T * LD, 0), *dw = floats(WIDTH, 0);
    memset(dw, 0, WIDTH * sizeof *dw);
    norm_loss(&p);
    KERNEL(ref, C, rmsnorm_grad, .dx = dx, .ld = LD, .dw = dw, .dy = p.r, .x = p.x, .w = p.w, .rms = p.rms, .t = T, .heads = HEADS,
           .width = WIDTH, .accumulate = 0);
    assert_gradient("dx", (struct loss){norm_loss, &p}, p.x, dx, T * LD, 1e-3);
    assert_gradient("dw", (struct loss){norm_loss, &p}, p.w, dw, WIDTH, 1e-3);
    buffers_end();
}

/* ---- gated MLP */
enum { F = 9 };
struct gated {
    float *gu, *act, *r;
    int gelu;
};
static double gated_loss(void *arg)
{
    struct gated *p = arg;
    KERNEL(ref, C, swiglu, .act = p->act, .gu = p->gu, .t = T, .f = F, .gelu = p->gelu);
    return dot(p->act, p->r, T * F);
}

static void test_gated(void **state)
{
    (void)state;
    struct gated p = {randoms(T * 2 * F, 0, 4), floats(T * F, 0), randoms(T * F, 0, 1), 0};
    float *d = floats(T * 2 * F, 0);
    for (; p.gelu < 2; p.gelu++) {
        KERNEL(ref, C, swiglu_grad, .dgu = d, .dact = p.r, .gu = p.gu, .t = T, .f = F, .gelu = p.gelu);
        assert_gradient("dgu", (struct loss){gated_loss, &p}, p.gu, d, T * 2 * F, 1e-3);
    }
    buffers_end();
}

/* ---- rope: the inverse is the transpose, (R x) . y = x . (R^T y) */
static void test_rope(void **state)
{
    (void)state;
    enum { D = 8, NH = 3, RLD = NH * D };
    float *x = randoms(T * RLD, 0, 1), *y = randoms(T * RLD, 0, 1), *rx = copied(x, T * RLD, 0), *ry = copied(y, T * RLD, 0),
          *table = randoms(10 * D, 0, 1);
    const int32_t pos[T] = {0, 3, 9, 4};
    KERNEL(ref, C, rope, .x = rx, .ld = RLD, .table = table, .pos = pos, .t = T, .n_heads = NH, .head_dim = D, .inverse = 0);
    KERNEL(ref, C, rope, .x = ry, .ld = RLD, .table = table, .pos = pos, .t = T, .n_heads = NH, .head_dim = D, .inverse = 1);
    assert_true(fabs(dot(rx, y, T * RLD) - dot(x, ry, T * RLD)) < 1e-5);
    buffers_end();
}

/* ---- head: a loss of logprob, entropy and KL with a coefficient each */
enum { R = 3, V = 21 };
struct head {
    float *z, *q, *lp, *h, *lse, *rlp, *rlse, *kl;
    struct head_grad_row coef[R];
    int32_t target[R];
};
static double head_loss(void *arg)
{
    struct head *p = arg;
    double sum = 0;
    KERNEL(ref, C, head_stats, .logprob = p->lp, .entropy = p->h, .lse = p->lse, .logits = p->z, .target = p->target,
           .temperature = 0.7f, .r = R, .v = V);
    KERNEL(ref, C, head_stats, .logprob = p->rlp, .lse = p->rlse, .logits = p->q, .target = p->target, .temperature = 0.7f, .r = R,
           .v = V);
    KERNEL(ref, C, head_kl, .kl = p->kl, .logits = p->z, .lse = p->lse, .ref_logits = p->q, .ref_lse = p->rlse, .temperature = 0.7f,
           .r = R, .v = V);
    for (int i = 0; i < R; i++)
        sum += (double)p->coef[i].logprob * (double)p->lp[i] + (double)p->coef[i].entropy * (double)p->h[i] +
               (double)p->coef[i].kl * (double)p->kl[i];
    return sum;
}

static void test_head(void **state)
{
    (void)state;
    struct head p = {randoms(R * V, 0, 3),
                     randoms(R * V, 0, 3),
                     floats(R, 0),
                     floats(R, 0),
                     floats(2 * R, 0),
                     floats(R, 0),
                     floats(2 * R, 0),
                     floats(R, 0),
                     {{1, 0, 0}, {0.3f, -0.8f, 0.5f}, {0, 0, 1}},
                     {4, 20, 0}};
    head_loss(&p);
    float *d = copied(p.z, R * V, 0);
    KERNEL(ref, C, head_grad, .logits = d, .target = p.target, .lse = p.lse, .entropy = p.h, .ref_logits = p.q, .ref_lse = p.rlse,
           .kl = p.kl, .coef = p.coef, .temperature = 0.7f, .r = R, .v = V);
    assert_gradient("dlogits", (struct loss){head_loss, &p}, p.z, d, R * V, 2e-3);
    buffers_end();
}

/* ---- attention: a prompt, two rollouts on it, one segment alone */
enum { AH = 4, AJ = 2, D = 6, ROWS = 11, STRIDE = (AH + 2 * AJ) * D };
static const struct attn_seg SEGS[] = {{0, 3, 0, 0}, {3, 2, 0, 3}, {5, 4, 0, 3}, {9, 2, 0, 0}};
struct attn {
    struct attn_shape s;
    float *qkv, *out, *stats, *r, *k, *v;
};
static double attn_loss(void *arg)
{
    struct attn *p = arg;
    for (int i = 0; i < 4; i++) {
        const struct attn_seg *g = &SEGS[i];
        const int32_t block = 0;
        int64_t rows[ROWS], slots[ROWS];
        for (int64_t j = 0; j < g->prefix_len + g->q_len; j++)
            rows[j] = j < g->prefix_len ? j : g->q_begin + j - g->prefix_len, slots[j] = j;
        KERNEL(ref, C, kv_write, .kv = (struct kv_layer){p->k, p->v}, .qkv = p->qkv, .shape = p->s, .rows = rows, .slots = slots,
               .n = g->prefix_len + g->q_len);
        KERNEL(ref, C, attention, .out = p->out, .stats = p->stats, .qkv = p->qkv, .kv = (struct kv_layer){p->k, p->v},
               .shape = p->s, .seqs = &(struct attn_seq){g->q_begin, g->q_len, g->prefix_len, &block, 0}, .n_seqs = 1);
    }
    return dot(p->out, p->r, ROWS * AH * D);
}

static void test_attention(void **state)
{
    (void)state;
    struct attn p = {{AH, AJ, D, STRIDE, 0.5f, DTYPE_F32, 0},
                     randoms(ROWS * STRIDE, 0, 1),
                     floats(ROWS * AH * D, 0),
                     floats(ROWS * AH * 2, 0),
                     randoms(ROWS * AH * D, 0, 1),
                     floats(AJ * D * KV_BLOCK, 0),
                     floats(AJ * D * KV_BLOCK, 0)};
    float *d = floats(ROWS * STRIDE, 0);
    for (; p.s.window < 5; p.s.window += 2) {
        attn_loss(&p);
        KERNEL(ref, C, attention_grad, .dqkv = d, .dout = p.r, .out = p.out, .stats = p.stats, .qkv = p.qkv, .shape = p.s,
               .segs = SEGS, .n_segs = 4, .t = ROWS);
        assert_gradient("dqkv", (struct loss){attn_loss, &p}, p.qkv, d, ROWS * STRIDE, 1e-3);
    }
    buffers_end();
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_product), cmocka_unit_test(test_norm),
                                       cmocka_unit_test(test_gated),   cmocka_unit_test(test_rope),
                                       cmocka_unit_test(test_head),    cmocka_unit_test(test_attention)};
    return cmocka_run_group_tests(tests, kernel_setup, kernel_teardown);
}
