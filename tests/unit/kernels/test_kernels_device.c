/* The CUDA kernels without tensor cores against ref. Element-wise operations and sums over rows in
 * order are bit-identical to ref; reductions along a row have their own order. */
#include "device_check.h"

static const int64_t WIDTHS[] = {1, 2, 31, 33, 64, 128, 255, 257, 576, 1030};
enum { N_WIDTHS = sizeof WIDTHS / sizeof *WIDTHS };

#define ROW_TOLERANCE 2e-6

static void norm(const struct kernels *k, const struct kctx *c)
{
    for (int i = 0; i < N_WIDTHS; i++)
        for (int64_t t = 0; t < 200; t = t * 11 + 1) {
            const int64_t width = WIDTHS[i], heads = 1 + i % 3, ld = heads * width + i % 4, n = t * ld;
            if (n > 30000) continue;
            float *x = randoms(n, 0, 3), *w = randoms(width, 0, 1), *y = randoms(n, 0, 1), *rms = floats(t * heads, 0),
                  *dy = randoms(n, 0, 1), *dw = randoms(width, 0, 1);
            float *gx = on_device(k, c, x, 4 * n), *gw = on_device(k, c, w, 4 * width), *gy = on_device(k, c, y, 4 * n),
                  *grms = on_device(k, c, NULL, 4 * t * heads), *gdy = on_device(k, c, dy, 4 * n),
                  *gdw = on_device(k, c, dw, 4 * width);
            KERNEL(k, c, rmsnorm, .y = gy, .ld = ld, .rms = grms, .x = gx, .w = gw, .t = t, .heads = heads, .width = width,
                   .eps = 1e-5f);
            KERNEL(ref, &contexts[0], rmsnorm, .y = y, .ld = ld, .rms = rms, .x = x, .w = w, .t = t, .heads = heads, .width = width,
                   .eps = 1e-5f);
            assert_near("rmsnorm", from_device(k, c, gy, 4 * n), y, n, ROW_TOLERANCE);
            assert_near("rms", from_device(k, c, grms, 4 * t * heads), rms, t * heads, ROW_TOLERANCE);
            for (int accumulate = 0; accumulate < 2; accumulate++) {
                KERNEL(k, c, rmsnorm_grad, .dx = gy, .ld = ld, .dw = gdw, .dy = gdy, .x = gx, .w = gw, .rms = grms, .t = t,
                       .heads = heads, .width = width, .accumulate = accumulate);
                KERNEL(ref, &contexts[0], rmsnorm_grad, .dx = y, .ld = ld, .dw = dw, .dy = dy, .x = x, .w = w, .rms = rms, .t = t,
                       .heads = heads, .width = width, .accumulate = accumulate);
                assert_near("dx", from_device(k, c, gy, 4 * n), y, n, ROW_TOLERANCE);
                assert_near("dw", from_device(k, c, gdw, 4 * width), dw, width, 1e-5);
            }
            /* Frozen weights: no dw. */
            KERNEL(k, c, rmsnorm_grad, .dx = gy, .ld = ld, .dy = gdy, .x = gx, .w = gw, .rms = grms, .t = t, .heads = heads,
                   .width = width);
            KERNEL(ref, &contexts[0], rmsnorm_grad, .dx = y, .ld = ld, .dy = dy, .x = x, .w = w, .rms = rms, .t = t, .heads = heads,
                   .width = width);
            assert_near("dx alone", from_device(k, c, gy, 4 * n), y, n, ROW_TOLERANCE);
            /* dx is dy. */
            KERNEL(k, c, rmsnorm_grad, .dx = gdy, .ld = ld, .dw = gdw, .dy = gdy, .x = gx, .w = gw, .rms = grms, .t = t,
                   .heads = heads, .width = width, .accumulate = 0);
            KERNEL(ref, &contexts[0], rmsnorm_grad, .dx = dy, .ld = ld, .dw = dw, .dy = dy, .x = x, .w = w, .rms = rms, .t = t,
                   .heads = heads, .width = width, .accumulate = 0);
            assert_near("dx in place", from_device(k, c, gdy, 4 * n), dy, n, ROW_TOLERANCE);
            assert_near("dw next to it", from_device(k, c, gdw, 4 * width), dw, width, 1e-5);
            /* In place, no rms. */
            KERNEL(k, c, rmsnorm, .y = gx, .ld = ld, .x = gx, .w = gw, .t = t, .heads = heads, .width = width, .eps = 1e-5f);
            KERNEL(ref, &contexts[0], rmsnorm, .y = x, .ld = ld, .x = x, .w = w, .t = t, .heads = heads, .width = width,
                   .eps = 1e-5f);
            assert_near("in place", from_device(k, c, gx, 4 * n), x, n, ROW_TOLERANCE);
            device_end(k, c);
        }
}
DEVICE_TEST(norm)

/* A row's result does not depend on the number of rows. */
static void norm_alone(const struct kernels *k, const struct kctx *c)
{
    enum { T = 9, C = 300 };
    float *x = randoms(T * C, 0, 2), *w = randoms(C, 0, 1);
    float *gx = on_device(k, c, x, 4 * T * C), *gw = on_device(k, c, w, 4 * C), *gy = on_device(k, c, NULL, 4 * T * C),
          *one = on_device(k, c, NULL, 4 * C);
    KERNEL(k, c, rmsnorm, .y = gy, .ld = C, .x = gx, .w = gw, .t = T, .heads = 1, .width = C, .eps = 1e-6f);
    float *all = from_device(k, c, gy, 4 * T * C);
    for (int64_t i = 0; i < T; i++) {
        KERNEL(k, c, rmsnorm, .y = one, .ld = C, .x = gx + i * C, .w = gw, .t = 1, .heads = 1, .width = C, .eps = 1e-6f);
        assert_bits("a row alone", from_device(k, c, one, 4 * C), all + i * C, C);
    }
    device_end(k, c);
}
DEVICE_TEST(norm_alone)

static void rope(const struct kernels *k, const struct kctx *c)
{
    static const int64_t dims[] = {2, 8, 30, 64, 128};
    for (int i = 0; i < 5; i++) {
        const int64_t dim = dims[i], t = 1 + 9 * i, heads = 3, ld = heads * dim + 5, n = t * ld;
        float *x = randoms(n, 0, 1), *table = randoms(50 * dim, 0, 1);
        int32_t pos[64];
        for (int64_t j = 0; j < t; j++) pos[j] = (int32_t)(j * 7 % 50);
        float *gx = on_device(k, c, x, 4 * n), *gtable = on_device(k, c, table, 200 * dim);
        int32_t *gpos = on_device(k, c, pos, 4 * t);
        for (int turn = 0; turn < 4; turn++) {
            const int inverse = turn % 2;
            const int64_t turned = turn / 2 ? (dim / 2 + 1) / 2 * 2 : 0;
            KERNEL(k, c, rope, .x = gx, .ld = ld, .table = gtable, .pos = gpos, .t = t, .n_heads = heads, .head_dim = dim,
                   .inverse = inverse, .rotary_dim = turned);
            KERNEL(ref, &contexts[0], rope, .x = x, .ld = ld, .table = table, .pos = pos, .t = t, .n_heads = heads, .head_dim = dim,
                   .inverse = inverse, .rotary_dim = turned);
            assert_bits("rope", from_device(k, c, gx, 4 * n), x, n);
        }
        device_end(k, c);
    }
}
DEVICE_TEST(rope)

static void swiglu(const struct kernels *k, const struct kctx *c)
{
    for (int i = 0; i < N_WIDTHS; i++)
        for (int64_t t = 0; t < 20; t = t * 4 + 1) {
            const int64_t f = WIDTHS[i], n = t * f;
            float *gu = randoms(2 * n, 0, 20), *act = floats(n, 0), *d = randoms(n, 0, 1), *dgu = floats(2 * n, 0);
            if (t) gu[0] = -0.0f, gu[2 * n - 1] = 300;
            if (t > 1) gu[2 * f] = -300;
            float *ggu = on_device(k, c, gu, 8 * n), *gact = on_device(k, c, NULL, 4 * n), *gd = on_device(k, c, d, 4 * n),
                  *gdgu = on_device(k, c, NULL, 8 * n);
            for (int gelu = 0; gelu < 2; gelu++) {
                KERNEL(k, c, swiglu, .act = gact, .gu = ggu, .t = t, .f = f, .gelu = gelu);
                KERNEL(ref, &contexts[0], swiglu, .act = act, .gu = gu, .t = t, .f = f, .gelu = gelu);
                assert_bits("swiglu", from_device(k, c, gact, 4 * n), act, n);
                KERNEL(k, c, swiglu_grad, .dgu = gdgu, .dact = gd, .gu = ggu, .t = t, .f = f, .gelu = gelu);
                KERNEL(ref, &contexts[0], swiglu_grad, .dgu = dgu, .dact = d, .gu = gu, .t = t, .f = f, .gelu = gelu);
                assert_bits("swiglu_grad", from_device(k, c, gdgu, 8 * n), dgu, 2 * n);
            }
            device_end(k, c);
        }
}
DEVICE_TEST(swiglu)

static void head(const struct kernels *k, const struct kctx *c)
{
    static const int64_t sizes[] = {1, 5, 33, 511, 513, 2049, 3000};
    for (int i = 0; i < 7; i++)
        for (int64_t r = 0; r < 12; r = r * 4 + 1) {
            const int64_t v = sizes[i], n = r * v;
            const float temperature = i % 2 ? 0.7f : 1.0f;
            float *z = randoms(n, 0, 15), *q = randoms(n, 0, 15), *lp = floats(r, 0), *h = floats(r, 0), *lse = floats(2 * r, 0),
                  *kl = floats(r, 0), *rl = floats(2 * r, 0);
            int32_t target[16];
            struct head_grad_row coef[16];
            for (int64_t j = 0; j < r; j++)
                target[j] = (int32_t)(j * 13 % v), coef[j] = (struct head_grad_row){0.5f - (float)j, 0.01f, 0.3f};
            if (r && v > 4) z[2] = -INFINITY, z[3] = -500;
            float *gz = on_device(k, c, z, 4 * n), *gq = on_device(k, c, q, 4 * n), *glp = on_device(k, c, NULL, 4 * r),
                  *gh = on_device(k, c, NULL, 4 * r), *glse = on_device(k, c, NULL, 8 * r), *gkl = on_device(k, c, NULL, 4 * r),
                  *grl = on_device(k, c, NULL, 8 * r);
            int32_t *gtarget = on_device(k, c, target, 4 * r);
            struct head_grad_row *gcoef = on_device(k, c, coef, (int64_t)sizeof *coef * r);
            KERNEL(k, c, head_stats, .logprob = glp, .entropy = gh, .lse = glse, .logits = gz, .target = gtarget,
                   .temperature = temperature, .r = r, .v = v);
            KERNEL(ref, &contexts[0], head_stats, .logprob = lp, .entropy = h, .lse = lse, .logits = z, .target = target,
                   .temperature = temperature, .r = r, .v = v);
            assert_near("logprob", from_device(k, c, glp, 4 * r), lp, r, ROW_TOLERANCE);
            assert_near("lse", from_device(k, c, glse, 8 * r), lse, 2 * r, ROW_TOLERANCE);
            assert_near("entropy", from_device(k, c, gh, 4 * r), h, r, 1e-5);
            KERNEL(k, c, head_stats, .logprob = glp, .lse = grl, .logits = gq, .target = gtarget, .temperature = temperature,
                   .r = r, .v = v);
            KERNEL(ref, &contexts[0], head_stats, .logprob = lp, .lse = rl, .logits = q, .target = target,
                   .temperature = temperature, .r = r, .v = v);
            KERNEL(k, c, head_kl, .kl = gkl, .logits = gz, .lse = glse, .ref_logits = gq, .ref_lse = grl,
                   .temperature = temperature, .r = r, .v = v);
            KERNEL(ref, &contexts[0], head_kl, .kl = kl, .logits = z, .lse = lse, .ref_logits = q, .ref_lse = rl,
                   .temperature = temperature, .r = r, .v = v);
            assert_near("kl", from_device(k, c, gkl, 4 * r), kl, r, 1e-5);
            /* given the same statistics, the gradient is bit-identical to ref's */
            k->backend->upload(c, glse, lse, 8 * r);
            k->backend->upload(c, grl, rl, 8 * r);
            k->backend->upload(c, gh, h, 4 * r);
            k->backend->upload(c, gkl, kl, 4 * r);
            const int exact_kl = i % 2, entropy = i % 3 > 0;
            KERNEL(k, c, head_grad, .logits = gz, .target = gtarget, .lse = glse, .entropy = entropy ? gh : NULL,
                   .ref_logits = exact_kl ? gq : NULL, .ref_lse = exact_kl ? grl : NULL, .kl = exact_kl ? gkl : NULL, .coef = gcoef,
                   .temperature = temperature, .r = r, .v = v);
            KERNEL(ref, &contexts[0], head_grad, .logits = z, .target = target, .lse = lse, .entropy = entropy ? h : NULL,
                   .ref_logits = exact_kl ? q : NULL, .ref_lse = exact_kl ? rl : NULL, .kl = exact_kl ? kl : NULL, .coef = coef,
                   .temperature = temperature, .r = r, .v = v);
            assert_bits("head_grad", from_device(k, c, gz, 4 * n), z, n);
            device_end(k, c);
        }
}
DEVICE_TEST(head)

static void rows(const struct kernels *k, const struct kctx *c)
{
    for (int i = 0; i < N_WIDTHS; i++)
        for (int64_t t = 0; t < 400; t = t * 7 + 1) {
            const int64_t width = WIDTHS[i], n = t * width;
            if (n > 50000) continue;
            float *table = randoms(20 * width, 0, 1), *x = floats(n, 0);
            int32_t ids[400];
            int64_t at[400];
            for (int64_t j = 0; j < t; j++) at[j] = j * j % 20, ids[j] = (int32_t)at[j];
            float *gtable = on_device(k, c, table, 80 * width), *gx = on_device(k, c, NULL, 4 * n),
                  *gy = on_device(k, c, NULL, 4 * n);
            int32_t *gids = on_device(k, c, ids, 4 * t);
            int64_t *gat = on_device(k, c, at, 8 * t);
            KERNEL(k, c, embed, .x = gx, .table = gtable, .ids = gids, .t = t, .width = width);
            KERNEL(ref, &contexts[0], embed, .x = x, .table = table, .ids = ids, .t = t, .width = width);
            assert_bits("embed", from_device(k, c, gx, 4 * n), x, n);
            KERNEL(k, c, gather_rows, .y = gy, .x = gtable, .rows = gat, .n = t, .width = width);
            assert_bits("gather_rows", from_device(k, c, gy, 4 * n), x, n);
            KERNEL(k, c, embed_grad, .dtable = gtable, .dx = gx, .ids = gids, .t = t, .width = width);
            KERNEL(ref, &contexts[0], embed_grad, .dtable = table, .dx = x, .ids = ids, .t = t, .width = width);
            assert_bits("embed_grad", from_device(k, c, gtable, 80 * width), table, 20 * width);
            KERNEL(k, c, scatter_add_rows, .y = gtable, .x = gx, .rows = gat, .n = t, .width = width);
            KERNEL(ref, &contexts[0], scatter_add_rows, .y = table, .x = x, .rows = at, .n = t, .width = width);
            assert_bits("scatter_add_rows", from_device(k, c, gtable, 80 * width), table, 20 * width);
            KERNEL(k, c, add, .y = gx, .x = gy, .n = n);
            KERNEL(ref, &contexts[0], add, .y = x, .x = x, .n = n);
            assert_bits("add", from_device(k, c, gx, 4 * n), x, n);
            /* the second half of each row into the first */
            for (int accumulate = 0; accumulate < 2; accumulate++) {
                KERNEL(k, c, add_columns, .y = gx, .ldy = width, .x = gy + width / 2, .ldx = width, .t = t, .n = width / 2,
                       .scale = 0.7f, .accumulate = accumulate);
                KERNEL(ref, &contexts[0], add_columns, .y = x, .ldy = width, .x = from_device(k, c, gy, 4 * n) + width / 2,
                       .ldx = width, .t = t, .n = width / 2, .scale = 0.7f, .accumulate = accumulate);
            }
            assert_bits("add_columns", from_device(k, c, gx, 4 * n), x, n);
            k->backend->zero(c, gx, 4 * n);
            memset(x, 0, (size_t)n * sizeof *x);
            assert_bits("zero", from_device(k, c, gx, 4 * n), x, n);
            device_end(k, c);
        }
}
DEVICE_TEST(rows)

static void optimizer(const struct kernels *k, const struct kctx *c)
{
    static const int64_t sizes[] = {0, 1, 7, 9, 4095, 4096, 4097, 20003};
    for (int i = 0; i < 8; i++) {
        const int64_t n = sizes[i];
        float *p = randoms(n, 0, 1), *g = randoms(n, 0, 1), *m = randoms(n, 0, 1), *v = floats(n, 0);
        for (int64_t j = 0; j < n; j++) v[j] = g[j] * g[j];
        float *gp = on_device(k, c, p, 4 * n), *gg = on_device(k, c, g, 4 * n), *gm = on_device(k, c, m, 4 * n),
              *gv = on_device(k, c, v, 4 * n);
        for (int64_t block = 3; block < 2 * n; block = block * 40 + 1) {
            static double sums[20003];
            const int64_t bytes = (n + block - 1) / block * (int64_t)sizeof *sums;
            double *there = on_device(k, c, sums, bytes);
            KERNEL(k, c, sum_squares, .out = there, .x = gg, .n = n, .block = block);
            memcpy(sums, from_device(k, c, there, bytes), (size_t)bytes);
            for (int64_t j = 0; j * block < n; j++) {
                const int64_t left = n - j * block;
                const double want = sum_of_squares(ref, &contexts[0], g + j * block, left < block ? left : block);
                assert_memory_equal(&sums[j], &want, sizeof want);
            }
        }
        KERNEL(k, c, adamw, .p = gp, .g = gg, .m = gm, .v = gv, .n = n, .grad_scale = 0.3f, .lr = 1e-3f, .beta1 = 0.9f,
               .beta2 = 0.95f, .eps = 1e-8f, .decay = 0.1f, .correct1 = 0.271, .correct2 = 0.142625);
        KERNEL(ref, &contexts[0], adamw, .p = p, .g = g, .m = m, .v = v, .n = n, .grad_scale = 0.3f, .lr = 1e-3f, .beta1 = 0.9f,
               .beta2 = 0.95f, .eps = 1e-8f, .decay = 0.1f, .correct1 = 0.271, .correct2 = 0.142625);
        assert_bits("p", from_device(k, c, gp, 4 * n), p, n);
        assert_bits("m", from_device(k, c, gm, 4 * n), m, n);
        assert_bits("v", from_device(k, c, gv, 4 * n), v, n);
        device_end(k, c);
    }
}
DEVICE_TEST(optimizer)

/* Arrays of odd sizes, in slices, with an incomplete last word; the digest is added to the old
 * value. */
static void digests(const struct kernels *k, const struct kctx *c)
{
    static const int64_t sizes[] = {0, 1, 3, 4, 5, 1023, 4096, 300001, 1100002};
    for (int i = 0; i < 9; i++) {
        const int64_t bytes = sizes[i], half = bytes / 8 * 4, first = i * INT64_C(3000000000);
        float *data = randoms(bytes / 4 + 1, 0, 1);
        const uint64_t zeros[2] = {0, 0};
        uint64_t whole = 17, *there = on_device(k, c, zeros, sizeof zeros);
        char *copy = on_device(k, c, data, bytes);
        KERNEL(ref, &contexts[0], digest, .out = &whole, .data = data, .bytes = bytes, .first = first);
        KERNEL(k, c, digest, .out = there + 1, .data = copy, .bytes = half, .first = first);
        KERNEL(k, c, digest, .out = there + 1, .data = copy + half, .bytes = bytes - half, .first = first + half / 4);
        uint64_t got[2];
        memcpy(got, from_device(k, c, there, sizeof zeros), sizeof got);
        assert_true(got[0] == 0 && got[1] + 17 == whole);
        device_end(k, c);
    }
}
DEVICE_TEST(digests)

/* Keys and values to slots of [n_blocks, J, 16, D], rows with a slot below 0 skipped; then copies
 * of blocks. */
static void cache(const struct kernels *k, const struct kctx *c)
{
    enum { H = 3, J = 2, D = 10, T = 7, BLOCKS = 5, STRIDE = (H + 2 * J) * D, BLOCK = J * KV_BLOCK * D };
    const int64_t at[T] = {0, 2, 2, 6, 5, 1, 3}, slots[T] = {3, 17, 33, 63, -1, 16, 79};
    const int32_t to[2] = {2, 4}, from[2] = {1, 0};
    for (int bf16 = 0; bf16 < 2; bf16++) {
        const struct attn_shape s = {
            .heads = H, .kv_heads = J, .head_dim = D, .stride = STRIDE, .scale = 1, .dtype = bf16 ? DTYPE_BF16 : DTYPE_F32};
        const int64_t bytes = k->kv_bytes(s, BLOCKS), n = BLOCKS * BLOCK;
        assert_int_equal(bytes, n * (bf16 ? 2 : 4));
        float *qkv = randoms(T * STRIDE, 0, 1), expected[2][BLOCKS * BLOCK];
        memset(expected, 0, sizeof expected);
        for (int64_t i = 0; i < T; i++)
            for (int64_t j = 0; j < J * D && slots[i] >= 0; j++)
                for (int v = 0; v < 2; v++)
                    expected[v][slots[i] / 16 * BLOCK + j / D * 16 * D + slots[i] % 16 * D + j % D] =
                        qkv[at[i] * STRIDE + (H + v * J) * D + j];
        for (int i = 0; i < 2; i++)
            for (int v = 0; v < 2; v++) memcpy(&expected[v][to[i] * BLOCK], &expected[v][from[i] * BLOCK], BLOCK * sizeof(float));
        char *zero = calloc(1, (size_t)bytes);
        assert_non_null(zero);
        const struct kv_layer kv = {.k = on_device(k, c, zero, bytes), .v = on_device(k, c, zero, bytes)};
        free(zero);
        KERNEL(k, c, kv_write, .kv = kv, .qkv = on_device(k, c, qkv, 4 * T * STRIDE), .shape = s,
               .rows = on_device(k, c, at, sizeof at), .slots = on_device(k, c, slots, sizeof slots), .n = T);
        KERNEL(k, c, kv_copy, .kv = kv, .shape = s, .to = on_device(k, c, to, sizeof to),
               .from = on_device(k, c, from, sizeof from), .n = 2);
        for (int v = 0; v < 2; v++) {
            const float *got = from_device(k, c, v ? kv.v : kv.k, bytes);
            const uint16_t *half = (const uint16_t *)(const void *)got;
            for (int64_t i = 0; i < n; i++) {
                const float x = bf16 ? bf16_to_f32(half[i]) : got[i], want = bf16 ? bf16_round(expected[v][i]) : expected[v][i];
                if (memcmp(&x, &want, sizeof x))
                    fail_msg("%s element %lld is %g, not %g", v ? "value" : "key", (long long)i, (double)x, (double)want);
            }
        }
        device_end(k, c);
    }
}
DEVICE_TEST(cache)

enum { ROWS = 24 };

/* Four fifths of the row are ties whose mass, held in two words of 32 bits, carries at nearly every
 * addition. top-p ends among the last of them, and with 0.3 % less mass it would reach the
 * others. */
static void many_carries(float *z, int64_t v, struct sample_row *row)
{
    for (int64_t i = 0; i < v; i++) z[i] = 5 * i < 4 * v ? -3 : -9;
    z[0] = 0;
    *row = (struct sample_row){{11, 22}, (uint64_t)v, 1, 0.997f, 0, 0};
}

/* The choice equals ref's for equal logits: truncated or not, with ties, with logits that are not
 * finite. */
static void sample(const struct kernels *k, const struct kctx *c)
{
    static const int64_t sizes[] = {1, 2, 31, 33, 1023, 1025, 2048, 5000};
    for (int i = 0; i < 8; i++) {
        const int64_t v = sizes[i], ld = v + 3, n = ROWS * ld;
        float *z = randoms(n, 0, i % 2 ? 3 : 12), *lp = floats(ROWS, 0), *h = floats(ROWS, 0);
        struct sample_row rows[ROWS];
        int32_t token[ROWS];
        for (int64_t j = 0; j < n; j += 5) z[j] = floorf(z[j]); /* ties */
        for (int64_t j = 0; j < v; j++) z[22 * ld + j] = 1;     /* only ties */
        if (v > 100) {
            z[1] = NAN, z[ld + 2] = -INFINITY, z[5 * ld] = NAN;
            for (int64_t j = 0; j < v; j++) z[23 * ld + j] = j == 7 ? NAN : -INFINITY;
        }
        for (int j = 0; j < ROWS; j++)
            rows[j] = (struct sample_row){{11, 22},
                                          (uint64_t)(100 * i + j),
                                          j % 5 ? 0.5f + 0.1f * (float)j : 0,
                                          j % 4 == 2 ? 0.03f * (float)j : 1,
                                          j % 7 == 3 ? 0.05f : 0,
                                          j % 3 == 1 ? 1 + j * 7 : 0};
        if (v > 1000) many_carries(z + 18 * ld, v, &rows[18]);
        float *gz = on_device(k, c, z, 4 * n), *glp = on_device(k, c, NULL, 4 * ROWS), *gh = on_device(k, c, NULL, 4 * ROWS);
        int32_t *gtoken = on_device(k, c, NULL, 4 * ROWS);
        struct sample_row *grows = on_device(k, c, rows, sizeof rows);
        KERNEL(k, c, sample, .token = gtoken, .logprob = glp, .entropy = gh, .logits = gz, .ld = ld, .rows = grows, .r = ROWS,
               .v = v);
        KERNEL(ref, &contexts[0], sample, .token = token, .logprob = lp, .entropy = h, .logits = z, .ld = ld, .rows = rows,
               .r = ROWS, .v = v);
        const float *got = from_device(k, c, gtoken, sizeof token);
        int32_t chosen[ROWS];
        memcpy(chosen, got, sizeof chosen);
        for (int j = 0; j < ROWS; j++)
            if (chosen[j] != token[j]) fail_msg("vocabulary %lld, row %d: token %d, not %d", (long long)v, j, chosen[j], token[j]);
        const float *glp_host = from_device(k, c, glp, 4 * ROWS), *gh_host = from_device(k, c, gh, 4 * ROWS);
        for (int j = 0; j < ROWS; j++) {
            if (isnan(lp[j])) {
                assert_true(isnan(glp_host[j]));
                continue;
            }
            if (isinf(lp[j]) || fabs((double)lp[j] - (double)glp_host[j]) > 2e-5 || fabs((double)h[j] - (double)gh_host[j]) > 2e-5)
                fail_msg("vocabulary %lld, row %d: logprob %g, not %g; entropy %g, not %g", (long long)v, j, (double)glp_host[j],
                         (double)lp[j], (double)gh_host[j], (double)h[j]);
        }
        /* Several draws from one row of logits. */
        KERNEL(k, c, sample, .token = gtoken, .logprob = glp, .logits = gz + 3 * ld, .ld = 0, .rows = grows, .r = 5, .v = v);
        KERNEL(ref, &contexts[0], sample, .token = token, .logprob = lp, .logits = z + 3 * ld, .ld = 0, .rows = rows, .r = 5,
               .v = v);
        assert_memory_equal(from_device(k, c, gtoken, 20), token, 20);
        device_end(k, c);
    }
}
DEVICE_TEST(sample)

int main(void)
{
    const struct CMUnitTest tests[] = {device_test(norm),   device_test(norm_alone), device_test(rope),      device_test(swiglu),
                                       device_test(head),   device_test(rows),       device_test(optimizer), device_test(cache),
                                       device_test(sample), device_test(digests)};
    return cmocka_run_group_tests(tests, kernel_setup, kernel_teardown);
}
