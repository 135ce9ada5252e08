/* Attention over a cache with shared leading blocks: bit-identical to ref, however a sequence is
 * split. Its gradient: near ref's, and the same bits for every thread count and all cache sizes. */
#include "caches.h"
#include "exact.h"
#include "kernel_check.h"

enum { SEQS = 5, BLOCKS = 40, MOST_ROWS = 400 };

/* SEQS sequences whose first `shared` keys are in the same blocks: a prompt and its rollouts */
struct scene {
    struct attn_shape s;
    struct kv_layer kv;
    int32_t blocks[SEQS][BLOCKS];
    int64_t keys[SEQS];
    float *qkv; /* [sum keys] rows */
    int64_t rows, begin[SEQS];
    int64_t bytes; /* of keys, and of values */
};

/* heads, key/value heads, width, shared blocks, window */
static const int64_t HEADS[][5] = {{9, 3, 64, 2, 0}, {4, 2, 32, 0, 0},  {14, 2, 64, 1, 0}, {3, 3, 8, 3, 0},  {2, 1, 20, 1, 0},
                                   {8, 1, 16, 0, 0}, {4, 2, 32, 3, 19}, {6, 2, 20, 1, 1},  {3, 1, 8, 2, 32}, {2, 2, 7, 1, 0}};
enum { N_HEADS = sizeof HEADS / sizeof *HEADS };

static struct attn_shape shape_of(const int64_t heads[5], enum dtype dtype)
{
    const int64_t dim = heads[2];
    return (struct attn_shape){.heads = heads[0],
                               .kv_heads = heads[1],
                               .head_dim = dim,
                               .stride = (heads[0] + 2 * heads[1]) * dim,
                               .scale = 1.0f / sqrtf((float)dim),
                               .dtype = dtype,
                               .window = heads[4]};
}

static void scene_make(struct scene *s, const int64_t heads[5], enum dtype dtype)
{
    static const int64_t lengths[SEQS] = {1, 16, 37, 33, 70};
    const int64_t shared = heads[3];
    s->s = shape_of(heads, dtype);
    s->rows = 0;
    int32_t next = 0;
    for (int i = 0; i < SEQS; i++) {
        s->begin[i] = s->rows;
        s->keys[i] = shared * KV_BLOCK + lengths[i];
        s->rows += s->keys[i];
        for (int64_t b = 0; b < BLOCKS; b++)
            s->blocks[i][b] = b < shared ? (i ? s->blocks[0][b] : next++) : b * KV_BLOCK < s->keys[i] ? next++ : -1;
    }
    s->qkv = randoms(s->rows * s->s.stride, 1, 2);
    for (int i = 1; i < SEQS; i++)
        memcpy(s->qkv + s->begin[i] * s->s.stride, s->qkv, (size_t)(shared * KV_BLOCK * s->s.stride) * sizeof(float));
    s->bytes = ref->kv_bytes(s->s, next);
    s->kv = (struct kv_layer){floats(s->bytes / 4, 0), floats(s->bytes / 4, 0)};
    /* NaN in either precision: unwritten memory must not be read into a result. */
    memset(s->kv.k, 0xff, (size_t)s->bytes);
    memset(s->kv.v, 0xff, (size_t)s->bytes);
}

static void scene_write(const struct scene *s, const struct kernels *k, const struct kctx *c)
{
    int64_t rows[MOST_ROWS], slots[MOST_ROWS];
    for (int i = 0; i < SEQS; i++) {
        for (int64_t j = 0; j < s->keys[i]; j++)
            rows[j] = s->begin[i] + j, slots[j] = s->blocks[i][j / KV_BLOCK] * KV_BLOCK + j % KV_BLOCK;
        KERNEL(k, c, kv_write, .kv = s->kv, .qkv = s->qkv, .shape = s->s, .rows = rows, .slots = slots, .n = s->keys[i]);
    }
}

static void forward(const struct kernels *k, const struct kctx *c, const char *where)
{
    for (int i = 0; i < 2 * N_HEADS; i++) {
        struct scene s;
        scene_make(&s, HEADS[i / 2], i % 2 ? DTYPE_BF16 : DTYPE_F32);
        scene_write(&s, k, c);
        const int64_t heads = s.s.heads, dim = s.s.head_dim, n = s.rows * heads * dim;
        float *out = floats(n, 1), *out0 = floats(n, 0), *stats = floats(s.rows * heads * 2, 1),
              *stats0 = floats(s.rows * heads * 2, 0);
        struct attn_seq whole[SEQS];
        for (int j = 0; j < SEQS; j++) whole[j] = (struct attn_seq){s.begin[j], s.keys[j], 0, s.blocks[j], 0};
        KERNEL(ref, &contexts[0], attention, .out = out0, .stats = stats0, .qkv = s.qkv, .kv = s.kv, .shape = s.s, .seqs = whole,
               .n_seqs = SEQS);
        KERNEL(k, c, attention, .out = out, .stats = stats, .qkv = s.qkv, .kv = s.kv, .shape = s.s, .seqs = whole, .n_seqs = SEQS);
        assert_bits(where, out, out0, n);
        assert_bits(where, stats, stats0, s.rows * heads * 2);
        /* decoding: the last rows of all sequences together, then uneven parts of each */
        memset(out, 0, (size_t)n * sizeof *out);
        for (int64_t left = 0; left < 90; left++) {
            struct attn_seq one[SEQS];
            int count = 0;
            for (int j = 0; j < SEQS; j++)
                if (left < s.keys[j])
                    one[count++] = (struct attn_seq){s.begin[j] + s.keys[j] - 1 - left, 1, s.keys[j] - 1 - left, s.blocks[j], 0};
            KERNEL(k, c, attention, .out = out, .qkv = s.qkv, .kv = s.kv, .shape = s.s, .seqs = one, .n_seqs = count);
        }
        for (int j = 0; j < SEQS; j++)
            for (int64_t at = 0, step = 3; at < s.keys[j] - 90; at += step, step = step * 2 + 1) {
                if (at + step > s.keys[j] - 90) step = s.keys[j] - 90 - at;
                KERNEL(k, c, attention, .out = out, .qkv = s.qkv, .kv = s.kv, .shape = s.s,
                       .seqs = &(struct attn_seq){s.begin[j] + at, step, at, s.blocks[j], 0}, .n_seqs = 1);
            }
        assert_bits(where, out, out0, n);
        buffers_end();
    }
}

static void cache(const struct kernels *k, const struct kctx *c, const char *where)
{
    for (int i = 0; i < 2 * N_HEADS; i++) {
        struct scene s;
        scene_make(&s, HEADS[i / 2], i % 2 ? DTYPE_BF16 : DTYPE_F32);
        const int64_t size = s.bytes / 4;
        scene_write(&s, k, c);
        float *key = copied(s.kv.k, size, 0), *value = copied(s.kv.v, size, 0);
        scene_write(&s, ref, &contexts[0]);
        assert_bits(where, key, s.kv.k, size);
        assert_bits(where, value, s.kv.v, size);
        /* the second reads a block that the first wrote */
        const int32_t to[] = {0, 7}, from[] = {3, 0};
        KERNEL(k, c, kv_copy, .kv = (struct kv_layer){key, value}, .shape = s.s, .to = to, .from = from, .n = 2);
        KERNEL(ref, &contexts[0], kv_copy, .kv = s.kv, .shape = s.s, .to = to, .from = from, .n = 2);
        assert_bits(where, key, s.kv.k, size);
        assert_bits(where, value, s.kv.v, size);
        buffers_end();
    }
}

/* Two prompts with their rollouts, a separate segment, an empty one, and rows outside all
 * segments. */
static const struct attn_seg SEGS[] = {{0, 21, 0, 0},     {21, 40, 0, 21},   {61, 1, 0, 21},     {62, 65, 0, 21}, {130, 16, 0, 0},
                                       {146, 7, 130, 16}, {153, 0, 130, 16}, {153, 33, 130, 16}, {186, 100, 0, 0}};
enum { N_SEGS = sizeof SEGS / sizeof *SEGS, GRAD_T = 290 };

struct grad_scene {
    struct attn_shape s;
    float *qkv, *dout, *out, *stats;
};

/* Compute out and stats of SEGS by ref's attention on a cache of one key per row. */
static void grad_scene_make(struct grad_scene *g, const int64_t shape[5], enum dtype dtype)
{
    g->s = shape_of(shape, dtype);
    const int64_t heads = g->s.heads, kv_heads = g->s.kv_heads, dim = g->s.head_dim;
    g->qkv = randoms(GRAD_T * g->s.stride, 1, 1);
    g->dout = randoms(GRAD_T * heads * dim, 2, 1);
    g->out = randoms(GRAD_T * heads * dim, 0, 1);
    g->stats = randoms(GRAD_T * heads * 2, 0, 1);
    float *k = floats(BLOCKS * kv_heads * dim * KV_BLOCK, 0), *v = floats(BLOCKS * kv_heads * dim * KV_BLOCK, 0);
    int32_t blocks[BLOCKS];
    int64_t rows[GRAD_T], slots[GRAD_T];
    for (int i = 0; i < BLOCKS; i++) blocks[i] = i;
    for (int i = 0; i < N_SEGS; i++) {
        const struct attn_seg *s = &SEGS[i];
        const int64_t n = s->prefix_len + s->q_len;
        for (int64_t j = 0; j < n; j++)
            rows[j] = j < s->prefix_len ? s->prefix_begin + j : s->q_begin + j - s->prefix_len, slots[j] = j;
        KERNEL(ref, &contexts[0], kv_write, .kv = (struct kv_layer){k, v}, .qkv = g->qkv, .shape = g->s, .rows = rows,
               .slots = slots, .n = n);
        KERNEL(ref, &contexts[0], attention, .out = g->out, .stats = g->stats, .qkv = g->qkv, .kv = (struct kv_layer){k, v},
               .shape = g->s, .seqs = &(struct attn_seq){s->q_begin, s->q_len, s->prefix_len, blocks, 0}, .n_seqs = 1);
    }
}

static void backward(const struct kernels *k, const struct kctx *c, const char *where)
{
    for (int i = 0; i < 2 * N_HEADS; i++) {
        struct grad_scene g;
        grad_scene_make(&g, HEADS[i / 2], i % 2 ? DTYPE_BF16 : DTYPE_F32);
        const int64_t n = GRAD_T * g.s.stride;
        float *d = floats(n, 1), *one = floats(n, 0), *d0 = floats(n, 0);
        KERNEL(k, c, attention_grad, .dqkv = d, .dout = g.dout, .out = g.out, .stats = g.stats, .qkv = g.qkv, .shape = g.s,
               .segs = SEGS, .n_segs = N_SEGS, .t = GRAD_T);
        KERNEL(k, &contexts[0], attention_grad, .dqkv = one, .dout = g.dout, .out = g.out, .stats = g.stats, .qkv = g.qkv,
               .shape = g.s, .segs = SEGS, .n_segs = N_SEGS, .t = GRAD_T);
        KERNEL(ref, &contexts[0], attention_grad, .dqkv = d0, .dout = g.dout, .out = g.out, .stats = g.stats, .qkv = g.qkv,
               .shape = g.s, .segs = SEGS, .n_segs = N_SEGS, .t = GRAD_T);
        assert_bits(where, d, one, n);
        /* everything at once; before, a window at a time */
        const struct caches large = {1 << 15, 1 << 28};
        caches_pretend(&large);
        KERNEL(k, c, attention_grad, .dqkv = d, .dout = g.dout, .out = g.out, .stats = g.stats, .qkv = g.qkv, .shape = g.s,
               .segs = SEGS, .n_segs = N_SEGS, .t = GRAD_T);
        caches_pretend(NULL);
        assert_bits(where, d, one, n);
        /* sums of at most 290*H/J terms, each with a few roundings, in another order */
        assert_near(where, d, d0, n, 400 * 0x1p-24);
        buffers_end();
    }
}

/* Called before any of it is read. */
static void round_all(float *x, int64_t n)
{
    for (int64_t i = 0; i < n; i++) x[i] = bf16_round(x[i]);
}

/* A cache in bf16 equals a cache in fp32 of rounded numbers: the same bits of the result and of its
 * gradient. */
static void words(const struct kernels *k, const struct kctx *c, const char *where)
{
    for (int i = 0; i < N_HEADS; i++) {
        if (HEADS[i][2] % 2) continue; /* kept in fp32 */
        struct scene s[2];
        float *out[2];
        for (int f = 0; f < 2; f++) {
            scene_make(&s[f], HEADS[i], f ? DTYPE_F32 : DTYPE_BF16);
            if (f) {
                memcpy(s[1].qkv, s[0].qkv, (size_t)(s[0].rows * s[0].s.stride) * sizeof(float));
                round_all(s[1].qkv, s[1].rows * s[1].s.stride);
            }
            scene_write(&s[f], k, c);
            out[f] = floats(s[f].rows * s[f].s.heads * s[f].s.head_dim, 1);
            struct attn_seq whole[SEQS];
            for (int j = 0; j < SEQS; j++) whole[j] = (struct attn_seq){s[f].begin[j], s[f].keys[j], 0, s[f].blocks[j], 0};
            KERNEL(k, c, attention, .out = out[f], .qkv = s[f].qkv, .kv = s[f].kv, .shape = s[f].s, .seqs = whole, .n_seqs = SEQS);
        }
        assert_int_equal(s[1].bytes, 2 * s[0].bytes);
        assert_bits(where, out[0], out[1], s[0].rows * s[0].s.heads * s[0].s.head_dim);
        struct grad_scene g;
        grad_scene_make(&g, HEADS[i], DTYPE_BF16);
        float *d[2] = {floats(GRAD_T * g.s.stride, 1), floats(GRAD_T * g.s.stride, 1)};
        for (int f = 0; f < 2; f++) {
            if (f) {
                round_all(g.qkv, GRAD_T * g.s.stride);
                round_all(g.out, GRAD_T * g.s.heads * g.s.head_dim);
            }
            g.s.dtype = f ? DTYPE_F32 : DTYPE_BF16;
            KERNEL(k, c, attention_grad, .dqkv = d[f], .dout = g.dout, .out = g.out, .stats = g.stats, .qkv = g.qkv, .shape = g.s,
                   .segs = SEGS, .n_segs = N_SEGS, .t = GRAD_T);
        }
        assert_bits(where, d[0], d[1], GRAD_T * g.s.stride);
        buffers_end();
    }
}

#define TEST(NAME)                                                                                                                 \
    static void test_##NAME(void **state)                                                                                          \
    {                                                                                                                              \
        (void)state;                                                                                                               \
        each_backend(NAME);                                                                                                        \
    }
TEST(forward)
TEST(cache)
TEST(backward)
TEST(words)

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_forward), cmocka_unit_test(test_cache),
                                       cmocka_unit_test(test_backward), cmocka_unit_test(test_words)};
    return cmocka_run_group_tests(tests, kernel_setup, kernel_teardown);
}
