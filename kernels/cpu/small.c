/* Products of small matrices that are in the caches, for attention, without a layout step.
 *   C[m, n] (+)= A B,   A(r,k) = a[r a_row + k a_col],   B(k,j) = b[k b_row + j]
 * Chains run in order of k, from 0 or from C. */
struct small {
    int64_t m, n, k;
    const float *a;
    int64_t a_row, a_col;
    const float *b;
    int64_t b_row;
    float *c;
    int64_t c_row;
    int continues;
    int64_t b_next; /* floats between vectors of B's columns; 0: they are adjacent */
    int words;      /* 1: B's rows are words, each of which holds two rows in bf16; k is even */
};

/* The first or second numbers of words of two; without words, the numbers themselves. */
INLINE vf small_numbers(vf x, const int words, const int second)
{
    return !words ? x : second ? v_odd(x) : v_even(x);
}

/* Compute rows x 16 `width` columns; width is 1 unless that many columns exist. */
TILE_FUNCTION void small_tile(const int rows, const int width, const int words, const struct small *s, int64_t row, int64_t column)
{
    vf acc[MR][NRV];
    const int64_t left = s->n - column, a_row = s->a_row, a_col = s->a_col, b_row = s->b_row, next = s->b_next ? s->b_next : LANES;
    const float *a = s->a + row * a_row, *b = s->b + column / LANES * next;
    float *c = s->c + row * s->c_row + column;
    UNROLL for (int r = 0; r < rows; r++) UNROLL for (int v = 0; v < width; v++) acc[r][v] =
        s->continues ? gemm_load(c + r * s->c_row + v * LANES, left - v * LANES) : v_zero();
    if (left >= width * LANES)
        for (int64_t k = 0; k < s->k; k += 1 + words, b += b_row) {
            vf both[NRV];
            UNROLL for (int v = 0; v < width; v++) both[v] = v_load(b + v * next);
            UNROLL for (int second = 0; second < 1 + words; second++, a += a_col)
            {
                vf w[NRV];
                UNROLL for (int v = 0; v < width; v++) w[v] = small_numbers(both[v], words, second);
                UNROLL for (int r = 0; r < rows; r++)
                {
                    const vf x = v_set(a[r * a_row]);
                    UNROLL for (int v = 0; v < width; v++) acc[r][v] = v_fma(x, w[v], acc[r][v]);
                }
            }
        }
    else
        for (int64_t k = 0; k < s->k; k += 1 + words, b += b_row) {
            const vf both = v_load_n(b, left);
            UNROLL for (int second = 0; second < 1 + words; second++, a += a_col)
            {
                const vf w = small_numbers(both, words, second);
                UNROLL for (int r = 0; r < rows; r++) acc[r][0] = v_fma(v_set(a[r * a_row]), w, acc[r][0]);
            }
        }
    UNROLL for (int r = 0; r < rows; r++) UNROLL for (int v = 0; v < width; v++)
        gemm_store(c + r * s->c_row + v * LANES, acc[r][v], left - v * LANES);
}

/* R rows, once with words and once without. */
#define SMALL_TILE(R, WIDTH)                                                                                                       \
    case R:                                                                                                                        \
        if (s->words)                                                                                                              \
            small_tile(R, WIDTH, 1, s, row, column);                                                                               \
        else                                                                                                                       \
            small_tile(R, WIDTH, 0, s, row, column);                                                                               \
        break;

static void small_rows(const struct small *s, int64_t row, int rows)
{
    int64_t column = 0;
    for (; NRV > 1 && s->n - column >= NR; column += NR) switch (rows) {
#define TILE(R) SMALL_TILE(R, NRV)
            TILE_CASES(TILE)
#undef TILE
        }
    for (; column < s->n; column += LANES) switch (rows) {
#define TILE(R) SMALL_TILE(R, 1)
            TILE_CASES(TILE)
#undef TILE
        }
}

static void small_product(const struct small *s)
{
    const int64_t tiles = gemm_tiles(s->m);
    for (int64_t i = 0; i < tiles; i++) small_rows(s, i * s->m / tiles, (int)((i + 1) * s->m / tiles - i * s->m / tiles));
}
