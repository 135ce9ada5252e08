/* Weights in int8 by blocks with scales (exact.h), as B of a product.
 *
 * Panels have NR columns as in gemm.c. A panel is a sequence of blocks of INT8_BLOCK of the inner
 * index: NR scales in bf16, then the numbers, row by row of the inner index. If words of two are
 * multiplied (CPU_DOT in bf16), two rows form one row of words, k even next to k odd, with a bias
 * and in another order (v_biased). The last block has full length and is padded with zeros. A
 * product of few rows reads these bytes and makes words in registers; for more rows, a part of a
 * panel is expanded to words once for all of them (int8_widen). Both make the same words, and the
 * chain is that of gemm.c. */
/* few rows */
enum { INT8_BYTES = NR * (2 + INT8_BLOCK), INT8_ROWS = MR < 8 ? 2 : 4, INT8_BIAS = 128 };

static int64_t matmul_int8_bytes(int64_t n, int64_t k, enum dtype dtype)
{
    const int64_t blocks = (k + INT8_BLOCK - 1) / INT8_BLOCK;
    return dtype == DTYPE_F32 || dtype == DTYPE_BF16 ? (n + NR - 1) / NR * blocks * INT8_BYTES : 0;
}

static int64_t int8_panel_bytes(const struct gemm *g)
{
    return (g->k + INT8_BLOCK - 1) / INT8_BLOCK * INT8_BYTES;
}

/* Offset of number i of column j of a block, after the scales. In a row of words, the n-th sixteen
 * numbers are byte n of sixteen lanes of 32 bits. */
static int64_t int8_place(int64_t i, int64_t j, int pairs)
{
    const int64_t number = 2 * j + i % 2;
    return pairs ? i / 2 * 2 * NR + number % LANES * 4 + number / LANES : i * NR + j;
}

static void pack_int8_task(void *arg, int64_t panel, int thread)
{
    (void)thread;
    const struct op_pack *s = arg;
    const int pairs = DOT && s->dtype == DTYPE_BF16, bias = pairs ? INT8_BIAS : 0;
    const int64_t blocks = (s->k + INT8_BLOCK - 1) / INT8_BLOCK, left = s->n - panel * NR, columns = left < NR ? left : NR;
    uint8_t *to = (uint8_t *)s->packed + panel * blocks * INT8_BYTES;
    for (int64_t k = 0; k < s->k; k += INT8_BLOCK, to += INT8_BYTES) {
        memset(to, 0, 2 * NR);
        memset(to + 2 * NR, bias, INT8_BLOCK * NR);
        for (int64_t j = 0; j < columns; j++) {
            const float *w = s->w + (panel * NR + j) * s->k + k;
            const int64_t n = s->k - k < INT8_BLOCK ? s->k - k : INT8_BLOCK;
            const uint16_t scale = int8_scale(w, n);
            memcpy(to + 2 * j, &scale, sizeof scale);
            for (int64_t i = 0; i < n; i++) to[2 * NR + int8_place(i, j, pairs)] = (uint8_t)(int8_from_f32(w[i], scale) + bias);
        }
    }
}

/* Scales for a vector of words. If words hold two numbers, 32 numbers are adjacent, and the second
 * scales are for their second half. `bias` is the bias times these scales, negative
 * (v_biased). */
struct int8_scales {
    vf scale[1 + DOT], bias[1 + DOT];
#ifdef CPU_DOT
    vbias constants;
#endif
};

INLINE struct int8_scales int8_scales(const uint8_t *block, int v, const int pairs)
{
    struct int8_scales s = {.scale = {v_load_bf16(block + v * LANES * 2)}};
#ifdef CPU_DOT
    if (pairs) {
        const vf both = s.scale[0];
        UNROLL for (int half = 0; half < 2; half++)
        {
            s.scale[half] = v_twice(both, half);
            s.bias[half] = v_mul(s.scale[half], v_set(-0x1p15f - INT8_BIAS));
        }
        s.constants = vbias_make();
    }
#endif
    (void)pairs;
    return s;
}

/* Vector v of a row: LANES words, which are numbers (rounded to bf16 if the products are) or pairs
 * of rounded numbers. */
INLINE vf int8_words(const uint8_t *row, const int v, const struct int8_scales *s, const int bf16)
{
#ifdef CPU_DOT
    /* Numbers q are stored as bytes 128 + q, which v_biased gives as 2^15 + 128 + q. The single
     * multiply-add s x - s (2^15 + 128) is exactly s q: s has 8 bits and 2^15 + 128 has 9, so their
     * product is a float, finite because s is at most 2^112 (exact.h); s q has 15 bits and is not
     * rounded. Zeros are +0, as in a product. */
    if (bf16)
        return v_words(v_fma(v_biased(row, 2 * v, &s->constants), s->scale[0], s->bias[0]),
                       v_fma(v_biased(row, 2 * v + 1, &s->constants), s->scale[1], s->bias[1]));
#endif
    const vf w = v_mul(v_load_int8(row + v * LANES), s->scale[0]);
    return bf16 ? v_round_finite_bf16(w) : w;
}

/* Expand words [word, word + words) of a panel to the layout of gemm_cached (gemm_split):
 * [steps][NR]. */
static void int8_widen(const struct gemm *g, float *to, const uint8_t *panel, int64_t word, int64_t words)
{
    const int bf16 = g->bf16, pairs = DOT && bf16, splits = bf16 && !DOT;
    const int64_t first = splits ? 2 * word : word, all = first + (splits ? 2 * words : words),
                  limit = pairs ? (g->k + 1) / 2 : g->k, end = all < limit ? all : limit, block = INT8_BLOCK >> pairs;
    for (int64_t i = first; i < end;) {
        const int64_t left = block - i % block, n = end - i < left ? end - i : left;
        const uint8_t *at = panel + i / block * INT8_BYTES, *q = at + 2 * NR + (i % block * NR << pairs);
        UNROLL for (int v = 0; v < NRV; v++)
        {
            const struct int8_scales s = int8_scales(at, v, pairs);
            for (int64_t j = 0; j < n; j++)
                v_store(to + (splits ? bf16_place(j, n) : j) * NR + v * LANES, int8_words(q + (j * NR << pairs), v, &s, bf16));
        }
        to += n * NR;
        i += n;
    }
}

/* ---- few rows against one panel: the sums stay in registers from the first block to the last, and
 * memory is read sequentially (gemm_stream) */

/* Values that are compile-time constants where they are used. */
struct int8_tile {
    int rows, bf16;
};

struct int8_part {
    const float *a; /* rows as in gemm_stream */
    int64_t a_row, k;
    const uint8_t *b;
    float *sums; /* [rows][NR] */
};

/* One step of A against a row of the panel's numbers. */
INLINE void int8_step(const struct int8_tile o, vf acc[][NRV], const struct int8_scales *s, const struct int8_part *p, int64_t i,
                      const uint8_t *q)
{
    const int pairs = DOT && o.bf16;
    UNROLL for (int v = 0; v < NRV; v++)
    {
        const vf w = int8_words(q, v, &s[v], o.bf16);
        UNROLL for (int r = 0; r < o.rows; r++)
        {
            /* the same for every v: clang would leave an array of them in memory */
            const vf x = v_set(p->a[r * p->a_row + i]);
            acc[r][v] = pairs ? v_dot(x, w, acc[r][v]) : v_fma(x, w, acc[r][v]);
        }
    }
}

INLINE void int8_rows(const struct int8_tile o, const struct int8_part *p)
{
    const int pairs = DOT && o.bf16, splits = o.bf16 && !DOT, row = NR << pairs, together = splits ? 2 : 1;
    struct int8_part part = *p;
    vf acc[MR][NRV];
    UNROLL for (int r = 0; r < o.rows; r++) UNROLL for (int v = 0; v < NRV; v++) acc[r][v] = v_zero();
    for (int64_t left = part.k; left > 0; left -= INT8_BLOCK, part.b += INT8_BYTES) {
        const int64_t numbers = left < INT8_BLOCK ? left : INT8_BLOCK, n = pairs ? (numbers + 1) / 2 : numbers;
        const uint8_t *q = part.b + 2 * NR;
        struct int8_scales s[NRV];
        UNROLL for (int v = 0; v < NRV; v++) s[v] = int8_scales(part.b, v, pairs);
        for (int64_t i = 0; i + together <= n; i += together, q += together * row) {
            if (splits) int8_step(o, acc, s, &part, i + 1, q + row);
            int8_step(o, acc, s, &part, i, q);
        }
        part.a += INT8_BLOCK >> pairs;
    }
    UNROLL for (int r = 0; r < o.rows; r++) UNROLL for (int v = 0; v < NRV; v++)
        v_store(p->sums + (r * NRV + v) * LANES, acc[r][v]);
}

/* The last number of an odd inner index, if numbers come in pairs; inside the tile it would be a
 * second exit from its loop. */
static __attribute__((noinline)) void int8_last(float *sum, float x, const uint8_t *row, int v, const struct int8_scales *s)
{
    v_store(sum, v_fma(v_set(x), int8_words(row, v, s, 1), v_load(sum)));
}

/* One function per tile: with several in one function, clang leaves sums in memory. */
#define INT8_TILE(NAME, ROWS, BF16)                                                                                                \
    static __attribute__((noinline)) void NAME(const struct int8_part *p)                                                          \
    {                                                                                                                              \
        int8_rows((struct int8_tile){ROWS, BF16}, p);                                                                              \
    }
#define INT8_TILES(R) INT8_TILE(int8_f32_##R, R, 0) INT8_TILE(int8_bf16_##R, R, 1)
#define INT8_NAMES(R) {int8_f32_##R, int8_bf16_##R},
#if defined(__AVX512F__) || defined(CPU_TILE_512)
#define INT8_CASES(X) X(1) X(2) X(3) X(4)
#else
#define INT8_CASES(X) X(1) X(2)
#endif
INT8_CASES(INT8_TILES)
static void (*const INT8_TILE_OF[INT8_ROWS][2])(const struct int8_part *) = {INT8_CASES(INT8_NAMES)};

/* Multiply rows (at most INT8_ROWS) by panel `panel` of g. */
static void int8_few(const struct gemm *g, int rows, int64_t panel, const struct gemm_tile *t, const float *a)
{
    const uint8_t *b = g->int8 + panel * int8_panel_bytes(g);
    float sums[INT8_ROWS * NR];
    INT8_TILE_OF[rows - 1][g->bf16](&(struct int8_part){.a = a, .a_row = g->a_row, .k = g->k, .b = b, .sums = sums});
    for (int r = 0; r < rows; r++)
        for (int v = 0; v < NRV; v++) {
            float *sum = sums + (r * NRV + v) * LANES;
            if (!DOT && g->bf16 && g->k % 2) {
                const uint8_t *last = b + (g->k - 1) / INT8_BLOCK * INT8_BYTES;
                const struct int8_scales s = int8_scales(last, v, 0);
                int8_last(sum, a[r * g->a_row + g->k - 1], last + 2 * NR + (g->k - 1) % INT8_BLOCK * NR, v, &s);
            }
            gemm_finish(t, r, v * LANES, v_load(sum));
        }
}
