/* ref's backward operations against finite differences of ref's forward ones. The loss is sum r y with fixed random r, in double over fp32
 * outputs; a central difference of step h carries about 2^-24 |L| / h of rounding and h^2 of the third derivative. */
#include "kernel_check.h"

#define C (&contexts[0])

typedef double (*loss_fn)(void *arg);

static void assert_gradient(const char *what, loss_fn loss, void *arg, float *x, const float *gradient, int64_t n, double tolerance)
{
    const float h = 4e-3f;
    double scale = 0;
    for (int64_t i = 0; i < n; i++) scale = fmax(scale, fabs((double)gradient[i]));
    assert_true(scale > 0);
    for (int64_t i = 0; i < n; i++) {
        const float at = x[i], up = at + h, down = at - h;
        x[i] = up;
        const double above = loss(arg);
        x[i] = down;
        const double below = loss(arg);
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
    ref->matmul(C, p->y, N, p->x, p->w, p->bias, NULL, T, N, K, DTYPE_F32); /* ref packs nothing */
    return dot(p->y, p->r, T * N);
}

static void test_product(void **state)
{
    (void)state;
    struct product p = {randoms(T * K, 0, 1), randoms(N * K, 0, 1), randoms(N, 0, 1), floats(T * N, 0), randoms(T * N, 0, 1)};
    float *dx = floats(T * K, 0), *dw = floats(N * K, 0), *db = floats(N, 0);
    memset(dw, 0, N * K * sizeof *dw);
    memset(db, 0, N * sizeof *db);
    ref->matmul_dx(C, dx, p.r, p.w, T, N, K, 0, DTYPE_F32);
    ref->matmul_dw(C, dw, db, p.r, p.x, T, N, K, DTYPE_F32);
    assert_gradient("dx", product_loss, &p, p.x, dx, T * K, 1e-3);
    assert_gradient("dw", product_loss, &p, p.w, dw, N * K, 1e-3);
    assert_gradient("dbias", product_loss, &p, p.bias, db, N, 1e-3);
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
    ref->rmsnorm(C, p->y, LD, p->rms, p->x, LD, p->w, T, HEADS, WIDTH, 1e-5f);
    return dot(p->y, p->r, T * LD);
}

static void test_norm(void **state)
{
    (void)state;
    struct norm p = {randoms(T * LD, 0, 2), randoms(WIDTH, 0, 1), floats(T * LD, 0), randoms(T * LD, 0, 1), floats(T * HEADS, 0)};
    float *dx = floats(T * LD, 0), *dw = floats(WIDTH, 0);
    memset(dw, 0, WIDTH * sizeof *dw);
    norm_loss(&p);
    ref->rmsnorm_grad(C, dx, LD, dw, p.r, LD, p.x, LD, p.w, p.rms, T, HEADS, WIDTH, 0);
    assert_gradient("dx", norm_loss, &p, p.x, dx, T * LD, 1e-3);
    assert_gradient("dw", norm_loss, &p, p.w, dw, WIDTH, 1e-3);
    buffers_end();
}

/* ---- gated MLP */
enum { F = 9 };
struct gated {
    float *gu, *act, *r;
};
static double gated_loss(void *arg)
{
    struct gated *p = arg;
    ref->swiglu(C, p->act, p->gu, T, F);
    return dot(p->act, p->r, T * F);
}

static void test_gated(void **state)
{
    (void)state;
    struct gated p = {randoms(T * 2 * F, 0, 4), floats(T * F, 0), randoms(T * F, 0, 1)};
    float *d = floats(T * 2 * F, 0);
    ref->swiglu_grad(C, d, p.r, p.gu, T, F);
    assert_gradient("dgu", gated_loss, &p, p.gu, d, T * 2 * F, 1e-3);
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
    ref->rope(C, rx, RLD, table, pos, T, NH, D, 0);
    ref->rope(C, ry, RLD, table, pos, T, NH, D, 1);
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
    ref->head_stats(C, p->lp, p->h, p->lse, p->z, V, p->target, 0.7f, R, V);
    ref->head_stats(C, p->rlp, NULL, p->rlse, p->q, V, p->target, 0.7f, R, V);
    ref->head_kl(C, p->kl, p->z, p->lse, p->q, p->rlse, V, 0.7f, R, V);
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
    ref->head_grad(C, d, V, p.target, p.lse, p.h, p.q, p.rlse, p.kl, p.coef, 0.7f, R, V);
    assert_gradient("dlogits", head_loss, &p, p.z, d, R * V, 2e-3);
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
        ref->kv_write(C, (struct kv_layer){p->k, p->v}, p->qkv, p->s, rows, slots, g->prefix_len + g->q_len);
        ref->attention(C, p->out, p->stats, p->qkv, (struct kv_layer){p->k, p->v}, p->s,
                       &(struct attn_seq){g->q_begin, g->q_len, g->prefix_len, &block}, 1);
    }
    return dot(p->out, p->r, ROWS * AH * D);
}

static void test_attention(void **state)
{
    (void)state;
    struct attn p = {
        {AH, AJ, D, STRIDE, 0.5f, DTYPE_F32}, randoms(ROWS * STRIDE, 0, 1), floats(ROWS * AH * D, 0),    floats(ROWS * AH * 2, 0),
        randoms(ROWS * AH * D, 0, 1),         floats(AJ * D * KV_BLOCK, 0), floats(AJ * D * KV_BLOCK, 0)};
    float *d = floats(ROWS * STRIDE, 0);
    attn_loss(&p);
    ref->attention_grad(C, d, p.r, p.out, p.stats, p.qkv, p.s, SEGS, 4, ROWS);
    assert_gradient("dqkv", attn_loss, &p, p.qkv, d, ROWS * STRIDE, 1e-3);
    buffers_end();
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_product), cmocka_unit_test(test_norm),
                                       cmocka_unit_test(test_gated),   cmocka_unit_test(test_rope),
                                       cmocka_unit_test(test_head),    cmocka_unit_test(test_attention)};
    return cmocka_run_group_tests(tests, kernel_setup, kernel_teardown);
}
