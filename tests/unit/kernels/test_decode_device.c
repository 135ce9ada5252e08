/* Attention in a decode session (kernels/cuda/decode.cu): near ref's for sequences of every length
 * and at every boundary, the same bits for a sequence alone and in any batch, graphs that run again
 * with longer sequences, and a number of blocks that follows the total length. */
#include "device_check.h"

static const struct kernels *dev;
static const struct kctx *ctx;

/* A sequence: the position of its newest token, the number of keys that it may share, and their
 * owner (itself: they are not shared). */
struct one {
    int64_t pos, shared;
    int like;
};

enum { MOST = 32, BLOCKS = 128, TOKENS = 7 };

struct scene {
    struct attn_shape s;
    const struct one *seqs;
    int n;
    int32_t blocks[MOST][BLOCKS];
    float *queries;
    struct kv_layer kv, device;
    struct decode *session;
    float *out, *stats, *query_rows; /* on the device, [MOST] rows */
    int64_t replayed;
};

/* Fill keys and values of all sequences, TOKENS more than they have. */
static void fill(struct scene *s)
{
    const int64_t J = s->s.kv_heads, D = s->s.head_dim;
    int64_t next = 1, *rows, *slots; /* block 0 is unused */
    for (int i = 0; i < s->n; i++)
        for (int64_t b = 0; b * KV_BLOCK < s->seqs[i].pos + 8 * TOKENS; b++)
            s->blocks[i][b] =
                b * KV_BLOCK < s->seqs[i].shared && s->seqs[i].like < i ? s->blocks[s->seqs[i].like][b] : (int32_t)next++;
    const int64_t n = next * KV_BLOCK, bytes = dev->kv_bytes(s->s, next);
    float *qkv = randoms(n * s->s.stride, 0, 2);
    for (int64_t i = 0; s->s.dtype == DTYPE_BF16 && i < n * s->s.stride; i++) qkv[i] = bf16_round(qkv[i]);
    s->queries = qkv;
    s->kv = (struct kv_layer){floats(n * J * D, 0), floats(n * J * D, 0)};
    s->device = (struct kv_layer){on_device(dev, ctx, NULL, bytes), on_device(dev, ctx, NULL, bytes)};
    rows = calloc((size_t)n, sizeof *rows);
    slots = calloc((size_t)n, sizeof *slots);
    assert_true(rows && slots);
    for (int64_t i = 0; i < n; i++) rows[i] = slots[i] = i;
    KERNEL(ref, &contexts[0], kv_write, .kv = s->kv, .qkv = qkv, .shape = s->s, .rows = rows, .slots = slots, .n = n);
    KERNEL(dev, ctx, kv_write, .kv = s->device, .qkv = on_device(dev, ctx, qkv, n * s->s.stride * 4), .shape = s->s,
           .rows = on_device(dev, ctx, rows, n * 8), .slots = on_device(dev, ctx, slots, n * 8), .n = n);
    free(rows);
    free(slots);
}

static void open_scene(struct scene *s, const int64_t shape[3], enum dtype dtype, const struct one *seqs, int n)
{
    const int64_t H = shape[0], J = shape[1], D = shape[2];
    *s = (struct scene){.s = {H, J, D, (H + 2 * J) * D, 1.0f / sqrtf((float)D), dtype, 0}, .seqs = seqs, .n = n};
    assert_true(n <= MOST);
    fill(s);
    s->out = on_device(dev, ctx, NULL, MOST * H * D * 4);
    s->stats = on_device(dev, ctx, NULL, MOST * H * 2 * 4);
    s->query_rows = on_device(dev, ctx, NULL, MOST * s->s.stride * 4);
    s->session = dev->decode_open(ctx);
    assert_non_null(s->session);
}

static void close_scene(struct scene *s)
{
    dev->decode_close(ctx, s->session);
    device_end(dev, ctx);
}

/* Decode `tokens` tokens of the sequences first .. first+n-1, all of them `later` positions
 * further; results: [tokens, n, H, D]. Each is compared with ref's. */
static float *decode(struct scene *s, int first, int n, int64_t later, int64_t tokens)
{
    const int64_t width = s->s.heads * s->s.head_dim;
    struct decode_row rows[MOST];
    struct attn_seq seqs[MOST];
    const int32_t zeros[MOST] = {0};
    struct decode_places p = {0};
    float *all = floats(tokens * n * width, 0), *expected = floats(n * width, 0), *stats = floats(n * s->s.heads * 2, 0);
    for (int i = 0; i < n; i++)
        rows[i] = (struct decode_row){.pos = (int32_t)(s->seqs[first + i].pos + later),
                                      .remaining = (int32_t)tokens + 1,
                                      .shared = (int32_t)s->seqs[first + i].shared,
                                      .blocks = s->blocks[first + i]};
    const struct decode_load load = {.rows = rows, .n = n, .tokens = tokens, .stop = zeros, .shape = s->s};
    dev->decode_load(ctx, s->session, &load, &p);
    assert_no_fault(dev, ctx);
    assert_true(p.rows >= n && p.rows <= MOST);
    dev->backend->upload(ctx, s->query_rows, s->queries + first * s->s.stride, n * s->s.stride * 4);
    dev->backend->upload(ctx, p.token, zeros, p.rows * 4);
    dev->backend->upload(ctx, p.logprob, zeros, p.rows * 4);
    dev->backend->upload(ctx, p.entropy, zeros, p.rows * 4);
    s->replayed = 0;
    for (int64_t at = 0; at < tokens; at++) {
        bool issued = false;
        while (dev->decode_begin(ctx, s->session)) {
            issued = true;
            KERNEL(dev, ctx, attention, .out = s->out, .stats = s->stats, .qkv = s->query_rows, .kv = s->device, .shape = s->s);
            if (!dev->decode_end(ctx, s->session)) break;
        }
        s->replayed += !issued;
        for (int i = 0; i < n; i++) seqs[i] = (struct attn_seq){i, 1, rows[i].pos + at, rows[i].blocks, 0};
        KERNEL(ref, &contexts[0], attention, .out = expected, .stats = stats, .qkv = s->queries + first * s->s.stride, .kv = s->kv,
               .shape = s->s, .seqs = seqs, .n_seqs = n);
        float *got = from_device(dev, ctx, s->out, n * width * 4);
        assert_near("decoding", got, expected, n * width, s->s.dtype == DTYPE_BF16 ? 0x1p-7 : 2e-5);
        assert_near("statistics", from_device(dev, ctx, s->stats, n * s->s.heads * 8), stats, n * s->s.heads * 2, 1e-5);
        memcpy(all + at * n * width, got, (size_t)(n * width) * 4);
    }
    return all;
}

/* One key; groups of two; keys that cross a chunk boundary while they are decoded, in their own
 * keys and after shared ones; the longest and the shortest next to each other. */
static const struct one UNEQUAL[] = {{0, 0, 0},     {40, 32, 1},   {45, 32, 1}, {268, 16, 3},
                                     {525, 272, 4}, {600, 272, 4}, {253, 0, 6}, {33, 32, 7}};
enum { N_UNEQUAL = sizeof UNEQUAL / sizeof *UNEQUAL };

static void lengths_of(const int64_t shape[3], enum dtype dtype)
{
    struct scene s;
    open_scene(&s, shape, dtype, UNEQUAL, N_UNEQUAL);
    const int64_t width = s.s.heads * s.s.head_dim;
    const float *batch = decode(&s, 0, N_UNEQUAL, 0, TOKENS);
    for (int i = 0; i < N_UNEQUAL; i++) {
        const float *alone = decode(&s, i, 1, 0, TOKENS);
        for (int64_t at = 0; at < TOKENS; at++)
            assert_bits("alone and in a batch", alone + at * width, batch + (at * N_UNEQUAL + i) * width, width);
    }
    const float *some = decode(&s, 4, 3, 0, TOKENS);
    for (int64_t at = 0; at < TOKENS; at++)
        assert_bits("in two batches", some + at * 3 * width, batch + (at * N_UNEQUAL + 4) * width, 3 * width);
    close_scene(&s);
}

static void lengths(const struct kernels *k, const struct kctx *c)
{
    static const int64_t plain[3] = {4, 2, 8}, mma[3] = {4, 2, 64};
    dev = k, ctx = c;
    lengths_of(plain, DTYPE_F32);
    lengths_of(mma, DTYPE_BF16);
}

/* A graph recorded for short sequences also runs for longer ones, with more tiles of the same
 * bucket, and again after others have run. */
static void replayed(const struct kernels *k, const struct kctx *c)
{
    static const struct one seqs[] = {{230, 16, 0}, {240, 16, 0}, {300, 0, 2}, {9, 0, 3}, {500, 0, 4}};
    static const int64_t shape[3] = {4, 2, 8};
    struct scene s;
    dev = k, ctx = c;
    open_scene(&s, shape, DTYPE_F32, seqs, 5);
    decode(&s, 0, 5, 0, TOKENS); /* 8 tiles: one shared by two, and their own 1, 1, 2, 1, 2 */
    assert_in_range(s.replayed, 1, TOKENS - 2);
    decode(&s, 0, 5, 3, TOKENS);
    assert_int_equal(s.replayed, TOKENS);
    decode(&s, 0, 5, 24, TOKENS); /* 9: the bucket of 12 */
    assert_in_range(s.replayed, 1, TOKENS - 2);
    decode(&s, 0, 5, 49, TOKENS); /* 11 */
    assert_int_equal(s.replayed, TOKENS);
    decode(&s, 0, 4, 0, TOKENS);
    decode(&s, 0, 5, 0, TOKENS);
    assert_int_equal(s.replayed, TOKENS);
    close_scene(&s);
}

/* One long sequence among short ones, and a group with its prompt: the number of blocks follows the
 * existing keys, shared ones counted once, and is not that of the longest for each row. */
static void count(const struct one *seqs, int n, int64_t tiles)
{
    static const int64_t shape[3] = {2, 1, 8};
    struct scene s;
    open_scene(&s, shape, DTYPE_F32, seqs, n);
    decode(&s, 0, n, 0, TOKENS);
#ifdef TARE_CUDA_SHIM
    if (dev == kernels_shim()) {
        const int64_t before = shim_blocks;
        decode(&s, 0, n, 0, 1);
        /* decode_advance twice, attention's tiles, their combination */
        assert_int_equal(s.replayed, 1);
        assert_in_range(shim_blocks - before - 4 * n, tiles, tiles + tiles / 2);
    }
#endif
    (void)tiles;
    close_scene(&s);
}

static void counted(const struct kernels *k, const struct kctx *c)
{
    enum { SHORT = 23, LONG = 1500, GROUP = 8, PROMPT = 768 };
    struct one seqs[SHORT + 1] = {{LONG, 0, 0}}, group[GROUP];
    dev = k, ctx = c;
    for (int i = 1; i <= SHORT; i++) seqs[i] = (struct one){4, 0, i};
    count(seqs, SHORT + 1, SHORT + (LONG + 255) / 256);
    for (int i = 0; i < GROUP; i++) group[i] = (struct one){PROMPT + 3 + i, PROMPT, 0};
    count(group, GROUP, PROMPT / 256 + GROUP);
}

/* A load with fewer tiles than the one before, in the same bucket: the old tiles must not run.
 * Twelve sequences of one tile each have the partial results 0 to 11. A group of eight, with two
 * chunks of their prompt and one separate chunk each, has ten tiles; 10 and 11 are two rows of the
 * prompt. */
static void emptied(const struct kernels *k, const struct kctx *c)
{
    enum { APART = 12, GROUP = 8, PROMPT = 512 };
    static const int64_t shape[3] = {4, 2, 8};
    struct one seqs[APART + GROUP];
    struct scene s;
    dev = k, ctx = c;
    for (int i = 0; i < APART; i++) seqs[i] = (struct one){40 + i, 0, i};
    for (int i = 0; i < GROUP; i++) seqs[APART + i] = (struct one){PROMPT + 3 + i, PROMPT, APART};
    open_scene(&s, shape, DTYPE_F32, seqs, APART + GROUP);
    decode(&s, APART, GROUP, 0, TOKENS); /* gives the session's memory its size */
    decode(&s, 0, APART, 0, TOKENS);
    decode(&s, APART, GROUP, 0, TOKENS);
    close_scene(&s);
}

DEVICE_TEST(lengths)
DEVICE_TEST(replayed)
DEVICE_TEST(emptied)
DEVICE_TEST(counted)

int main(void)
{
    const struct CMUnitTest tests[] = {device_test(lengths), device_test(replayed), device_test(emptied), device_test(counted)};
    return cmocka_run_group_tests(tests, kernel_setup, kernel_teardown);
}
