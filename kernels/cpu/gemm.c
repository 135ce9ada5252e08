/* Products by tiles of MR x NR kept in registers (Goto and van de Geijn 2008; BLIS).
 *
 *   C[i,j] = chain over k of A(i,k) B(k,j),  i < m, j < n        A(i,k) = a[i a_row + k a_col]
 *
 * B comes in panels of NR columns, [n/NR][words][NR], the last one padded with zeros. Weights are
 * stored that way; for the backward products, panels are made from a row-major B. A word is an fp32
 * number, or two bf16 numbers, k even and k odd, of which the chain takes the odd one first, as
 * vdpbf16ps does (CPU_DOT). Without that instruction, a word of two is expanded to two steps of
 * fp32; the results are bit-identical. With many rows a task is a block of rows against a group of
 * panels, KC steps at a time: its part of A stays in the L2 cache, and a panel's part in L1.
 * Blocking over k stores the partial chain and resumes it, so that no blocking, tile height or
 * thread count changes a bit. */
#ifdef CPU_DOT
enum { DOT = 1 };
#else
enum { DOT = 0 };
INLINE vf v_dot(vf x, vf y, vf sum) /* never called */
{
    (void)x, (void)y;
    return sum;
}
INLINE void v_dot_to(vf *sum, vf x, vf y) /* never called */
{
    (void)sum, (void)x, (void)y;
}
#endif

/* Low-rank products added to a product of many rows: U = s (A L^T), then C[:, columns] += U(:,
 * some) R^T, each a separate chain. L's product shares the rows of A, R's the tile of C that has
 * just been computed, so both cost little more than their multiply-adds. */
struct gemm_add {
    const float *b;   /* R^T in panels, starting at the first of the columns */
    int64_t from, k;  /* columns of U */
    int64_t begin, n; /* columns of C; begin is the first column of a panel */
};

/* Some columns of U, whose rows of L are 0 outside a range of words of the inner index. */
struct gemm_sum {
    const float *panels; /* L^T, for this range of words */
    int64_t word, words, from, n;
};

struct gemm_low {
    struct gemm_sum sum[LOW_RANK_PARTS];
    int64_t sums, rows; /* number of entries; rows of L */
    float scale;
    float *u; /* [m, rows] or NULL */
    /* [m, rows]: partial U before and after a part of the inner index; NULL if B is in panels */
    float *part[2];
    struct gemm_add add[LOW_RANK_PARTS];
    int64_t adds;
};

struct gemm {
    int64_t m, n, k;
    const void *a;
    int64_t a_row, a_col; /* one of them is 1 */
    enum dtype a_dtype;   /* storage type of A; in bf16 it is rounded */
    /* A and B are rounded; an A of few rows already is (matmul_few_rows), and so are panels */
    int bf16;
    const float *panels; /* B in panels; or */
    const uint8_t *int8; /* B in panels of int8 (gemm_int8.c); or */
    /* Panels of the transpose of B, from which B's panels are made (stored weights, in the
     * backward pass); or all three NULL: */
    const float *transposed;
    const void *b; /* B(k,j) = b[k b_row + j] */
    int64_t b_row;
    enum dtype b_dtype;
    float *c;
    int64_t c_row;
    int continues; /* the chain starts at C instead of 0 */
    /* added to the complete chain; residual has C's stride and may be C */
    const float *bias, *residual;
    const struct gemm_low *low; /* NULL: none */
};

/* One tile: its rows and columns of C, the start of its chain, and the additions after the
 * chain. */
struct gemm_tile {
    float *c;
    int64_t c_row, columns;
    const float *start; /* partial sums; NULL: 0 */
    int64_t start_row;
    const float *bias, *residual;
    /* Prefetched meanwhile: FETCHES times per iteration of STEPS steps, ahead_step bytes apart.
     * After ahead_run iterations the address continues ahead_jump bytes after the start of the
     * run. */
    const char *ahead;
    int64_t ahead_step, ahead_run, ahead_jump;
};

static int64_t gemm_words(const struct gemm *g)
{
    return g->bf16 ? (g->k + 1) / 2 : g->k;
}

INLINE void gemm_finish(const struct gemm_tile *t, int64_t row, int64_t column, vf x)
{
    const int64_t left = t->columns - column;
    if (left <= 0) return;
    if (t->bias) x = v_add(x, gemm_load(t->bias + column, left));
    if (t->residual) x = v_add(x, gemm_load(t->residual + row * t->c_row + column, left));
    gemm_store(t->c + row * t->c_row + column, x, left);
}

INLINE void gemm_begin(vf acc[][NRV], const int rows, const int width, const struct gemm_tile *t)
{
    UNROLL for (int r = 0; r < rows; r++) UNROLL for (int v = 0; v < width; v++) acc[r][v] =
        t->start ? gemm_load(t->start + r * t->start_row + v * LANES, t->columns - v * LANES) : v_zero();
}

INLINE void gemm_end(vf acc[][NRV], const int rows, const int width, const struct gemm_tile *t)
{
    UNROLL for (int r = 0; r < rows; r++) UNROLL for (int v = 0; v < width; v++) gemm_finish(t, r, v * LANES, acc[r][v]);
}

/* part of a word: an fp32 number; one number of a pair; the pair, by v_dot */
enum half { WHOLE, ODD, EVEN, BOTH };

INLINE vf gemm_half(vf words, const enum half half)
{
    return half == ODD ? v_odd(words) : half == EVEN ? v_even(words) : words;
}

/* Numbers of A in a step, a[r a_row], and words of B. Passed by value, so that a stride known at
 * compile time stays a literal. */
struct gemm_operands {
    const float *a, *b;
    int64_t a_row;
};

/* One step of A against `width` vectors of words. */
INLINE void gemm_step(vf acc[][NRV], const int rows, const int width, const enum half half, const struct gemm_operands s)
{
    vf w[NRV];
    /* v % NRV equals v, but without it clang 14 leaves the sums of one vector in memory */
    UNROLL for (int v = 0; v < width; v++) w[v] = gemm_half(v_load(s.b + v % NRV * LANES), half);
    UNROLL for (int r = 0; r < rows; r++)
    {
        const vf x = v_set(s.a[r * s.a_row]);
        UNROLL for (int v = 0; v < width; v++)(half == BOTH ? v_dot_to : v_fma_to)(&acc[r][v], x, w[v]);
    }
    /* Without this, GCC 14 would compute the last sums in place and run out of registers. */
    UNROLL for (int v = 0; v < width; v++) v_keep(w[v]);
}

/* k steps from rows of A in their original layout, a[r a_row + k]; passed by value too. */
struct gemm_source {
    int64_t k;
    const float *a, *b;
    int64_t a_row;
};

/* Multiply against one panel whose words come from memory. They are read sequentially: a short loop
 * runs so far ahead that prefetching would only slow it down; a long one prefetches
 * (docs/dev/performance.md). */
TILE_FUNCTION void gemm_stream(const int rows, const int bf16, const struct gemm_source s, const struct gemm_tile *t)
{
    enum { AHEAD = 1024 /* floats */ };
    const int is_long = rows > 2 && (MR < 8 || (bf16 && !DOT));
    const int64_t k = s.k, a_row = s.a_row, words = bf16 ? k / 2 : k;
    const float *a = s.a, *b = s.b;
    vf acc[MR][NRV];
    gemm_begin(acc, rows, NRV, t);
    for (int64_t i = 0; i < words; i++, b += NR) {
        if (is_long) v_prefetch(b + AHEAD);
        if (is_long && MR >= 8) v_prefetch(b + AHEAD + LANES);
        if (bf16 && !DOT) {
            gemm_step(acc, rows, NRV, ODD, (struct gemm_operands){a + 2 * i + 1, b, a_row});
            gemm_step(acc, rows, NRV, EVEN, (struct gemm_operands){a + 2 * i, b, a_row});
        } else {
            gemm_step(acc, rows, NRV, bf16 ? BOTH : WHOLE, (struct gemm_operands){a + i, b, a_row});
        }
    }
    if (bf16 && k % 2) gemm_step(acc, rows, NRV, DOT ? BOTH : EVEN, (struct gemm_operands){a + (DOT ? words : k - 1), b, a_row});
    gemm_end(acc, rows, NRV, t);
}

/* Steps and prefetches per iteration: with fewer steps, counting and prefetching cost up to a tenth
 * of the multiply-adds. */
enum { STEPS = 4, FETCHES = MR < 8 ? 1 : 2 };
/* Loads stay in their step; otherwise GCC keeps those of several steps at once, for which there are
 * too few registers (tests/tile_code.py). */
#define KEEP_ORDER() __asm__ volatile("" ::: "memory")
#define HIDE(POINTER) __asm__("" : "+r"(POINTER))

/* k steps of A's tile and of a panel. A(r,k) = a[k MR + r]. */
struct gemm_chain {
    int64_t k;
    const float *a, *b;
};

/* Multiply rows x `width` vectors of a panel, with everything in the caches. */
TILE_FUNCTION void gemm_micro(const int rows, const int width, const enum half half, const struct gemm_chain *chain,
                              const struct gemm_tile *t)
{
    vf acc[MR][NRV];
    gemm_begin(acc, rows, width, t);
    /* so that nothing of the loop is computed before the sums, or of their end before the loop, and
     * spilled meanwhile */
    HIDE(t);
    const int64_t step = t->ahead_step, again = t->ahead_run, elsewhere = t->ahead_jump - t->ahead_run * FETCHES * step;
    const float *a = chain->a, *b = chain->b;
    const char *ahead = t->ahead;
    int64_t left = again;
    for (int64_t iterations = chain->k / STEPS; iterations > 0; iterations--) {
        UNROLL for (int j = 0; j < STEPS; j++)
        {
            if (j < FETCHES) v_prefetch(ahead + j * step);
            gemm_step(acc, rows, width, half, (struct gemm_operands){a + j * MR, b + j * NR, 1});
            KEEP_ORDER();
        }
        /* an AVX2 iteration is too short for runs: the data is treated as contiguous */
        const int64_t ended = MR < 8 ? 0 : -(int64_t)(--left == 0);
        ahead += FETCHES * step + (ended & elsewhere);
        left += ended & again;
        a += STEPS * MR;
        b += STEPS * NR;
        HIDE(a);
        HIDE(b);
    }
    HIDE(chain);
    for (int64_t rest = chain->k % STEPS; rest > 0; rest--, a += MR, b += NR)
        gemm_step(acc, rows, width, half, (struct gemm_operands){a, b, 1});
    HIDE(t);
    gemm_end(acc, rows, width, t);
}

#define TILE_CASES(X) X(1) X(2) X(3) X(4) X(5) X(6) TILE_CASES_WIDE(X)
#if defined(__AVX512F__) || defined(CPU_TILE_512)
#define TILE_CASES_WIDE(X) X(7) X(8) X(9) X(10) X(11) X(12) X(13) X(14)
#else
#define TILE_CASES_WIDE(X)
#endif

/* One function per case, so that a compiler allocates registers for one loop at a time. */
#define TILE_OF(NAME, WIDTH, HALF, R)                                                                                              \
    static NOINLINE void gemm_##NAME##_##R(const struct gemm_chain *chain, const struct gemm_tile *t)                              \
    {                                                                                                                              \
        gemm_micro(R, WIDTH, HALF, chain, t);                                                                                      \
    }
#define TILE(R) TILE_OF(whole, NRV, WHOLE, R) TILE_OF(narrow, 1, WHOLE, R)
TILE_CASES(TILE)
#undef TILE
#ifdef CPU_DOT
#define TILE(R) TILE_OF(pairs, NRV, BOTH, R) TILE_OF(narrow_pairs, 1, BOTH, R)
TILE_CASES(TILE)
#undef TILE
#define TILE_PAIRS(R)                                                                                                              \
    if (dot && first)                                                                                                              \
        gemm_narrow_pairs_##R(&chain, t);                                                                                          \
    else if (dot)                                                                                                                  \
        gemm_pairs_##R(&chain, t);                                                                                                 \
    else
#else
#define TILE_PAIRS(R)
#endif

/* If no more columns exist, only the first of a panel's vectors is multiplied, by as many rows as
 * hide its latency. */
static void gemm_cached(int rows, int dot, int64_t k, const float *a, const float *b, const struct gemm_tile *t)
{
    enum { LATENCY = 8 };
    const struct gemm_chain chain = {k, a, b};
    const int first = NRV > 1 && t->columns <= LANES && rows >= LATENCY;
    (void)dot;
    switch (rows) {
#define TILE(R)                                                                                                                    \
    case R:                                                                                                                        \
        TILE_PAIRS(R)                                                                                                              \
        if (first)                                                                                                                 \
            gemm_narrow_##R(&chain, t);                                                                                            \
        else                                                                                                                       \
            gemm_whole_##R(&chain, t);                                                                                             \
        break;
        TILE_CASES(TILE)
#undef TILE
    }
}
