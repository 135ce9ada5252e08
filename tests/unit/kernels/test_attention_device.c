/* Attention on a device: plain kernels must be near ref's results, and tensor-core kernels near
 * ref's on factors rounded to bf16. On the host, every instruction that works on a warp's fragments
 * is emulated (tests/cuda/shim/mma.cc), with asynchronous copies as early and as late as
 * allowed. */
#include "device_check.h"

static const struct kernels *dev;
static const struct kctx *ctx;

static void *to_device(const void *host, int64_t bytes)
{
    return on_device(dev, ctx, host, bytes);
}

static void *device_nan(int64_t bytes)
{
    return on_device(dev, ctx, NULL, bytes);
}

static float *back(const void *device, int64_t bytes)
{
    return from_device(dev, ctx, device, bytes);
}

static void eager(int on)
{
#ifdef TARE_CUDA_SHIM
    extern int mma_host_eager;
    mma_host_eager = on;
#else
    (void)on;
#endif
}

enum { SEQS = 6, BLOCKS = 40 };

struct scene {
    struct attn_shape s;
    float *qkv;         /* host; factors are rounded to bf16 if the shape asks for it */
    struct kv_layer kv; /* of ref */
    struct kv_layer device;
    float *qkv_device;
    int32_t blocks[SEQS][BLOCKS];
    int64_t keys[SEQS], begin[SEQS], rows, n_blocks;
};

static const int64_t LENGTHS[SEQS] = {1, 16, 37, 33, 70, 130};

static void scene_make(struct scene *s, const int64_t shape[4], enum dtype dtype)
{
    const int64_t heads = shape[0], kv_heads = shape[1], dim = shape[2], shared = shape[3];
    s->s = (struct attn_shape){heads, kv_heads, dim, (heads + 2 * kv_heads) * dim, 1.0f / sqrtf((float)dim), dtype, 0};
    s->rows = 0;
    int32_t next = 1; /* block 0 is unused */
    for (int i = 0; i < SEQS; i++) {
        s->begin[i] = s->rows;
        s->keys[i] = shared * KV_BLOCK + LENGTHS[i];
        s->rows += s->keys[i];
        for (int64_t b = 0; b < BLOCKS; b++)
            s->blocks[i][b] = b < shared ? (i ? s->blocks[0][b] : next++) : b * KV_BLOCK < s->keys[i] ? next++ : -1;
    }
    s->n_blocks = next;
    const int64_t n = s->rows * s->s.stride, size = next * kv_heads * dim * KV_BLOCK;
    s->qkv = randoms(n, 0, 2);
    for (int i = 1; i < SEQS; i++)
        memcpy(s->qkv + s->begin[i] * s->s.stride, s->qkv, (size_t)(shared * KV_BLOCK * s->s.stride) * sizeof(float));
    for (int64_t i = 0; dtype == DTYPE_BF16 && i < n; i++) s->qkv[i] = bf16_round(s->qkv[i]);
    s->kv = (struct kv_layer){floats(size, 0), floats(size, 0)};
    s->qkv_device = to_device(s->qkv, n * 4);
    const int64_t bytes = dev->kv_bytes(s->s, next);
    /* unwritten memory must not be read into a result */
    s->device = (struct kv_layer){device_nan(bytes), device_nan(bytes)};
    int64_t rows[400], slots[400];
    for (int i = 0; i < SEQS; i++) {
        for (int64_t j = 0; j < s->keys[i]; j++)
            rows[j] = s->begin[i] + j, slots[j] = s->blocks[i][j / KV_BLOCK] * KV_BLOCK + j % KV_BLOCK;
        KERNEL(ref, &contexts[0], kv_write, .kv = s->kv, .qkv = s->qkv, .shape = s->s, .rows = rows, .slots = slots,
               .n = s->keys[i]);
        KERNEL(dev, ctx, kv_write, .kv = s->device, .qkv = s->qkv_device, .shape = s->s, .rows = to_device(rows, s->keys[i] * 8),
               .slots = to_device(slots, s->keys[i] * 8), .n = s->keys[i]);
    }
}

/* heads, kv heads, width, shared blocks */
static const int64_t PLAIN[][4] = {{4, 2, 32, 0}, {3, 3, 8, 3}, {2, 1, 20, 1}, {40, 2, 16, 1}};
static const int64_t MMA[][4] = {{6, 1, 128, 2}, {4, 4, 64, 0}, {14, 2, 64, 1}};

struct attended {
    float *out, *stats;
};

static void compare(const char *what, const struct scene *s, struct attended device, struct attended expected, double tolerance)
{
    const int64_t n = s->rows * s->s.heads;
    assert_near(what, back(device.out, n * s->s.head_dim * 4), expected.out, n * s->s.head_dim, tolerance);
    assert_near(what, back(device.stats, n * 8), expected.stats, n * 2, 1e-5);
}

static void forward_shape(const int64_t shape[4], enum dtype dtype, double tolerance)
{
    struct scene s;
    scene_make(&s, shape, dtype);
    const int64_t n = s.rows * s.s.heads * s.s.head_dim;
    float *out0 = floats(n, 0), *stats0 = floats(s.rows * s.s.heads * 2, 0);
    float *out = device_nan(n * 4), *stats = device_nan(s.rows * s.s.heads * 8);
    struct attn_seq seqs[SEQS];
    for (int j = 0; j < SEQS; j++) seqs[j] = (struct attn_seq){s.begin[j], s.keys[j], 0, s.blocks[j], 0};
    KERNEL(ref, &contexts[0], attention, .out = out0, .stats = stats0, .qkv = s.qkv, .kv = s.kv, .shape = s.s, .seqs = seqs,
           .n_seqs = SEQS);
    KERNEL(dev, ctx, attention, .out = out, .stats = stats, .qkv = s.qkv_device, .kv = s.device, .shape = s.s, .seqs = seqs,
           .n_seqs = SEQS);
    compare("whole sequences", &s, (struct attended){out, stats}, (struct attended){out0, stats0}, tolerance);
    /* split queries must give the same bits as whole ones */
    float *cut = device_nan(n * 4);
    for (int j = 0; j < SEQS; j++)
        for (int64_t at = 0, step = 3; at < s.keys[j]; at += step, step = step * 2 + 1) {
            if (at + step > s.keys[j]) step = s.keys[j] - at;
            KERNEL(dev, ctx, attention, .out = cut, .qkv = s.qkv_device, .kv = s.device, .shape = s.s,
                   .seqs = &(struct attn_seq){s.begin[j] + at, step, at, s.blocks[j], 0}, .n_seqs = 1);
        }
    if (s.keys[0] == 1) return;
    float *a = back(out, n * 4), *b = back(cut, n * 4);
    for (int j = 0; j < SEQS; j++) /* single queries take another path */
        assert_bits("in parts", b + (s.begin[j] + 0) * s.s.heads * s.s.head_dim, a + s.begin[j] * s.s.heads * s.s.head_dim,
                    3 * s.s.heads * s.s.head_dim);
}

/* One query per sequence, in rows 0, 1, ...: split over keys, with shared blocks taken together. */
static void decode_shape(const int64_t shape[4], enum dtype dtype, double tolerance)
{
    struct scene s;
    scene_make(&s, shape, dtype);
    const int64_t width = s.s.heads * s.s.head_dim;
    for (int64_t left = 0; left < 3; left++) {
        struct attn_seq seqs[SEQS], moved[SEQS];
        float *queries = floats(SEQS * s.s.stride, 0), *out0 = floats(s.rows * width, 0),
              *stats0 = floats(s.rows * s.s.heads * 2, 0);
        int n = 0;
        for (int j = 0; j < SEQS; j++) {
            const int64_t pos = s.keys[j] - 1 - left * 20;
            if (pos < 0) continue;
            memcpy(queries + n * s.s.stride, s.qkv + (s.begin[j] + pos) * s.s.stride, (size_t)s.s.stride * 4);
            seqs[n] = moved[n] = (struct attn_seq){n, 1, pos, s.blocks[j], shape[3] * KV_BLOCK};
            n++;
        }
        float *out = device_nan(SEQS * width * 4), *stats = device_nan(SEQS * s.s.heads * 8);
        KERNEL(ref, &contexts[0], attention, .out = out0, .stats = stats0, .qkv = queries, .kv = s.kv, .shape = s.s, .seqs = seqs,
               .n_seqs = n);
        KERNEL(dev, ctx, attention, .out = out, .stats = stats, .qkv = to_device(queries, SEQS * s.s.stride * 4), .kv = s.device,
               .shape = s.s, .seqs = seqs, .n_seqs = n);
        float *got = back(out, SEQS * width * 4), *got_stats = back(stats, SEQS * s.s.heads * 8);
        assert_near("decoding", got, out0, n * width, tolerance);
        assert_near("decoding, statistics", got_stats, stats0, n * s.s.heads * 2, 1e-5);
    }
}

static void forward_plain(const struct kernels *k, const struct kctx *c)
{
    dev = k, ctx = c;
    for (size_t i = 0; i < sizeof PLAIN / sizeof *PLAIN; i++) {
        forward_shape(PLAIN[i], DTYPE_F32, 1e-6 * 20);
        device_end(dev, ctx);
        decode_shape(PLAIN[i], DTYPE_F32, 1e-6 * 20);
        device_end(dev, ctx);
    }
    forward_shape(PLAIN[0], DTYPE_BF16, 0x1p-7);
    device_end(dev, ctx);
}

static void forward_mma(const struct kernels *k, const struct kctx *c)
{
    dev = k, ctx = c;
    for (size_t i = 0; i < sizeof MMA / sizeof *MMA; i++)
        for (int early = 0; early < (i < 2 ? 2 : 1); early++) {
            eager(early);
            /* weights are rounded to 8 bits: 2^-9 each, less for their sums */
            forward_shape(MMA[i], DTYPE_BF16, 0x1p-7);
            device_end(dev, ctx);
            decode_shape(MMA[i], DTYPE_BF16, 0x1p-7);
            device_end(dev, ctx);
        }
}

/* Two prompts with their rollouts, a separate segment, an empty one, and rows outside all
 * segments. */
static const struct attn_seg SEGS[] = {{0, 21, 0, 0},     {21, 40, 0, 21},   {61, 1, 0, 21},     {62, 65, 0, 21}, {130, 16, 0, 0},
                                       {146, 7, 130, 16}, {153, 0, 130, 16}, {153, 33, 130, 16}, {186, 100, 0, 0}};
enum { N_SEGS = sizeof SEGS / sizeof *SEGS, GRAD_T = 290 };

static void backward_shape(const int64_t shape[4], enum dtype dtype, double tolerance)
{
    const int64_t heads = shape[0], kv_heads = shape[1], dim = shape[2];
    const struct attn_shape s = {heads, kv_heads, dim, (heads + 2 * kv_heads) * dim, 1.0f / sqrtf((float)dim), dtype, 0};
    const int64_t n = GRAD_T * s.stride, width = heads * dim;
    float *qkv = randoms(n, 0, 1), *dout = randoms(GRAD_T * width, 0, 1), *out = randoms(GRAD_T * width, 0, 1),
          *stats = randoms(GRAD_T * heads * 2, 0, 1), *d0 = floats(n, 0);
    for (int64_t i = 0; dtype == DTYPE_BF16 && i < n; i++) qkv[i] = bf16_round(qkv[i]);
    for (int64_t i = 0; dtype == DTYPE_BF16 && i < GRAD_T * width; i++) dout[i] = bf16_round(dout[i]);
    float *k = floats(BLOCKS * kv_heads * dim * KV_BLOCK, 0), *v = floats(BLOCKS * kv_heads * dim * KV_BLOCK, 0);
    int32_t blocks[BLOCKS];
    int64_t rows[GRAD_T], slots[GRAD_T];
    for (int i = 0; i < BLOCKS; i++) blocks[i] = i;
    for (int i = 0; i < N_SEGS; i++) {
        const struct attn_seg *g = &SEGS[i];
        const int64_t keys = g->prefix_len + g->q_len;
        for (int64_t j = 0; j < keys; j++)
            rows[j] = j < g->prefix_len ? g->prefix_begin + j : g->q_begin + j - g->prefix_len, slots[j] = j;
        KERNEL(ref, &contexts[0], kv_write, .kv = (struct kv_layer){k, v}, .qkv = qkv, .shape = s, .rows = rows, .slots = slots,
               .n = keys);
        KERNEL(ref, &contexts[0], attention, .out = out, .stats = stats, .qkv = qkv, .kv = (struct kv_layer){k, v}, .shape = s,
               .seqs = &(struct attn_seq){g->q_begin, g->q_len, g->prefix_len, blocks, 0}, .n_seqs = 1);
    }
    KERNEL(ref, &contexts[0], attention_grad, .dqkv = d0, .dout = dout, .out = out, .stats = stats, .qkv = qkv, .shape = s,
           .segs = SEGS, .n_segs = N_SEGS, .t = GRAD_T);
    float *device = device_nan(n * 4);
    KERNEL(dev, ctx, attention_grad, .dqkv = device, .dout = to_device(dout, GRAD_T * width * 4),
           .out = to_device(out, GRAD_T * width * 4), .stats = to_device(stats, GRAD_T * heads * 8), .qkv = to_device(qkv, n * 4),
           .shape = s, .segs = SEGS, .n_segs = N_SEGS, .t = GRAD_T);
    assert_near("gradient", back(device, n * 4), d0, n, tolerance);
    device_end(dev, ctx);
}

static void backward(const struct kernels *k, const struct kctx *c)
{
    dev = k, ctx = c;
    for (size_t i = 0; i < sizeof PLAIN / sizeof *PLAIN; i++) backward_shape(PLAIN[i], DTYPE_F32, 400 * 0x1p-24);
    for (size_t i = 0; i < sizeof MMA / sizeof *MMA; i++)
        for (int early = 0; early < (i < 2 ? 2 : 1); early++) {
            eager(early);
            backward_shape(MMA[i], DTYPE_BF16, 0x1p-7);
        }
}

DEVICE_TEST(forward_plain)
DEVICE_TEST(forward_mma)
DEVICE_TEST(backward)

int main(void)
{
    const struct CMUnitTest tests[] = {device_test(forward_plain), device_test(forward_mma), device_test(backward)};
    return cmocka_run_group_tests(tests, kernel_setup, kernel_teardown);
}
