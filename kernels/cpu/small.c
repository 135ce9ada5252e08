/* Products of small matrices that lie in the caches, for attention: no layout step.
 *   C[m, n] (+)= A B,   A(r,k) = a[r a_row + k a_col],   B(k,j) = b[k b_row + j],   chains in order of k, from 0 or from C
 */
struct small {
    int64_t m, n, k;
    const float *a;
    int64_t a_row, a_col;
    const float *b;
    int64_t b_row;
    float *c;
    int64_t c_row;
    int continues;
};

TILE_FUNCTION void small_tile(const int rows, const struct small *s, int64_t row, int64_t column)
{
    vf acc[MR];
    const int64_t left = s->n - column, a_row = s->a_row, a_col = s->a_col, b_row = s->b_row;
    const float *a = s->a + row * a_row, *b = s->b + column;
    float *c = s->c + row * s->c_row + column;
    UNROLL for (int r = 0; r < rows; r++) acc[r] = s->continues ? gemm_load(c + r * s->c_row, left) : v_zero();
    if (left >= LANES)
        for (int64_t k = 0; k < s->k; k++) {
            const vf w = v_load(b + k * b_row);
            UNROLL for (int r = 0; r < rows; r++) acc[r] = v_fma(v_set(a[k * a_col + r * a_row]), w, acc[r]);
        }
    else
        for (int64_t k = 0; k < s->k; k++) {
            const vf w = v_load_n(b + k * b_row, left);
            UNROLL for (int r = 0; r < rows; r++) acc[r] = v_fma(v_set(a[k * a_col + r * a_row]), w, acc[r]);
        }
    UNROLL for (int r = 0; r < rows; r++) gemm_store(c + r * s->c_row, acc[r], left);
}

static void small_rows(const struct small *s, int64_t row, int rows)
{
    for (int64_t column = 0; column < s->n; column += LANES) switch (rows) {
#define TILE(R)                                                                                                                    \
    case R:                                                                                                                        \
        small_tile(R, s, row, column);                                                                                             \
        break;
            TILE_CASES(TILE)
#undef TILE
        }
}

static void small_product(const struct small *s)
{
    const int64_t tiles = gemm_tiles(s->m);
    for (int64_t i = 0; i < tiles; i++) small_rows(s, i * s->m / tiles, (int)((i + 1) * s->m / tiles - i * s->m / tiles));
}
