/* Up to 32 x 32 sums over whole blocks of the inner index, by AMX or by vectors in AMX's order.
 *
 * A block of A is [32 rows][16 words]; a word holds two numbers, k even in the low half. A block of
 * B is [16 words][32 columns]. */
#ifndef TARE_KERNELS_TILES_MULTIPLY_H
#define TARE_KERNELS_TILES_MULTIPLY_H

#include "cpu/vectors.h"

/* Rows and columns at a time; also the numbers in a block. BLOCK is in words. */
enum { TILE = 16, SIDE = 2 * TILE, BLOCK = TILE * SIDE };

/* One multiplication: `rows` rows, at most SIDE, against 32 columns over n blocks. The sums
 * continue from the existing ones (continues) or start at 0. */
struct blocks {
    int rows, continues;
    int64_t n;
    const float *a, *b;
};

#ifdef TILES_AMX
/* Rows of A's two tiles as configured by the calling thread; 0: not configured. */
struct shapes {
    int first, second;
};

static void configure_tiles(struct shapes *now, int rows)
{
    const int first = rows < TILE ? rows : TILE, second = rows > TILE ? rows - TILE : TILE;
    if (now->first == first && (now->second == second || rows <= TILE)) return;
    *now = (struct shapes){first, second};
    struct {
        uint8_t palette, start, unused[14];
        uint16_t bytes[16];
        uint8_t rows[16];
    } to = {.palette = 1};
    for (int i = 0; i < 8; i++) {
        to.bytes[i] = 64;
        to.rows[i] = TILE;
    }
    to.rows[0] = to.rows[1] = to.rows[4] = (uint8_t)first;
    to.rows[2] = to.rows[3] = to.rows[5] = (uint8_t)second;
    __asm__ volatile("ldtilecfg %0" ::"m"(to));
}

static void multiply_end(struct shapes *now)
{
    if (now->first) __asm__ volatile("tilerelease");
    now->first = 0;
}

#define TILE_LOAD(T, P, STRIDE) __asm__ volatile("tileloadd (%0,%1,1), %%tmm" #T ::"r"(P), "r"(STRIDE) : "memory")
#define TILE_STORE(T, P, STRIDE) __asm__ volatile("tilestored %%tmm" #T ", (%0,%1,1)" ::"r"(P), "r"(STRIDE) : "memory")
#define TILE_ZERO(T) __asm__ volatile("tilezero %%tmm" #T::)
#define TILE_DOT(C, A, B) __asm__ volatile("tdpbf16ps %%tmm" #B ", %%tmm" #A ", %%tmm" #C::)

/* Store the sums c[r c_row + j] for r < rows, j < 32. */
static void multiply(struct shapes *now, const struct blocks *of, float *c, int64_t c_row)
{
    enum { AHEAD = 8 /* blocks of B */, LINE = 16 };
    const int64_t row = 4 * c_row, a_row = 4 * TILE, b_row = 4 * SIDE;
    const int two = of->rows > TILE;
    const float *a = of->a, *b = of->b;
    float *const below = c + TILE * c_row;
    configure_tiles(now, of->rows);
    if (of->continues) {
        TILE_LOAD(0, c, row);
        TILE_LOAD(1, c + TILE, row);
        if (two) TILE_LOAD(2, below, row);
        if (two) TILE_LOAD(3, below + TILE, row);
    } else {
        TILE_ZERO(0);
        TILE_ZERO(1);
        TILE_ZERO(2);
        TILE_ZERO(3);
    }
    for (int64_t i = 0; i < of->n; i++, a += BLOCK, b += BLOCK) {
        TILE_LOAD(6, b, b_row);
        TILE_LOAD(4, a, a_row);
        TILE_LOAD(7, b + TILE, b_row);
        if (two) TILE_LOAD(5, a + BLOCK / 2, a_row);
        for (int j = 0; j < BLOCK; j += LINE) _mm_prefetch((const char *)(b + AHEAD * BLOCK + j), _MM_HINT_T0);
        TILE_DOT(0, 4, 6);
        TILE_DOT(1, 4, 7);
        if (two) TILE_DOT(2, 5, 6);
        if (two) TILE_DOT(3, 5, 7);
    }
    TILE_STORE(0, c, row);
    TILE_STORE(1, c + TILE, row);
    if (two) TILE_STORE(2, below, row);
    if (two) TILE_STORE(3, below + TILE, row);
}

#else
struct shapes {
    int first;
};

static void multiply_end(struct shapes *now)
{
    now->first = 0;
}

/* rows whose sums the registers hold */
enum { AT_ONCE = MR > 8 ? 6 : 2 };

/* One block: `rows` rows against sixteen columns. */
INLINE void multiply_block(const int rows, const float *a, const float *b, float *c, int64_t c_row)
{
    vf even[AT_ONCE], odd[AT_ONCE];
    UNROLL for (int r = 0; r < rows; r++) even[r] = odd[r] = v_zero();
    for (int i = 0; i < TILE; i++) {
        const vf words = v_load(b + i * SIDE), w = v_even(words), w_odd = v_odd(words);
        UNROLL for (int r = 0; r < rows; r++)
        {
            const vf x = v_set(a[r * TILE + i]);
            even[r] = v_fma(v_even(x), w, even[r]);
            odd[r] = v_fma(v_odd(x), w_odd, odd[r]);
        }
    }
    UNROLL for (int r = 0; r < rows; r++) v_store(c + r * c_row, v_add(v_load(c + r * c_row), v_add(even[r], odd[r])));
}

static void multiply(struct shapes *now, const struct blocks *of, float *c, int64_t c_row)
{
    const int rows = of->rows;
    const float *a = of->a, *b = of->b;
    (void)now;
    for (int r = 0; r < rows && !of->continues; r++)
        for (int v = 0; v < SIDE; v += LANES) v_store(c + r * c_row + v, v_zero());
    for (int64_t i = 0; i < of->n; i++, a += BLOCK, b += BLOCK)
        for (int v = 0; v < SIDE; v += LANES) {
            int r = 0;
            for (; r + AT_ONCE <= rows; r += AT_ONCE) multiply_block(AT_ONCE, a + r * TILE, b + v, c + r * c_row + v, c_row);
            for (; r < rows; r++) multiply_block(1, a + r * TILE, b + v, c + r * c_row + v, c_row);
        }
}
#endif
#endif
