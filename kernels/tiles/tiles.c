/* Products in bf16 by tiles (tiles.h), built once per multiplication method; TILES_TABLE names the
 * build.
 *
 * A task is a block of rows against a group of B's panels. It copies its rows into blocks, at most
 * a third of the L2 cache, of which a tile of 32 rows is multiplied by all panels before the
 * next tile. B of weights is stored in panels. B of a backward product is made into panels for all
 * tasks, some blocks of the inner index at a time; partial sums resume, so splitting changes no
 * bit. */
#include "tiles.h"
#include "caches.h"
#include "cpu/scratch.h"
#include "lay.h"

#include <string.h>

enum { MADE = 2 << 20 /* words of B made at a time: 8 MiB */ };

struct part {
    const struct product *p;
    const float *b;        /* panels of `blocks` blocks, the inner index from block `from` on */
    int64_t panel, panels; /* words of a panel; number of panels */
    int64_t from, blocks;
    int first, last;      /* flags: first and last part of the inner index */
    int64_t cuts, groups; /* tasks down and across */
    /* sums between parts: [m, n] with C's stride; C itself if nothing is added to the chain */
    float *sums;
    float *own;               /* [threads, own_words]: a task's rows in blocks */
    int64_t own_words, *held; /* held: [threads] first row of the task whose rows are in `own`; -1: none */
};

/* Return the first row of task i, a multiple of the tile. */
static int64_t cut_row(const struct part *s, int64_t i)
{
    const int64_t row = blocks_of(s->p->m) * i / s->cuts * SIDE;
    return row < s->p->m ? row : s->p->m;
}

static void add_and_store(const struct product *p, const float sums[SIDE * SIDE], int64_t row, int64_t rows, int64_t column)
{
    for (int64_t r = 0; r < rows; r++)
        for (int64_t v = 0; v < SIDE && column + v < p->n; v += LANES) {
            const int64_t at = (row + r) * p->c_row + column + v, left = p->n - column - v;
            vf x = v_load(sums + r * SIDE + v);
            if (p->bias) x = v_add(x, gemm_load(p->bias + column + v, left));
            if (p->residual) x = v_add(x, gemm_load(p->residual + at, left));
            gemm_store(p->c + at, x, left);
        }
}

/* Compute 32 columns of a tile of rows. Sums go directly to memory if all of them exist and nothing
 * is added. */
static void multiply_columns(const struct part *s, struct shapes *shapes, const float *a, int64_t row, int64_t rows, int64_t j)
{
    const struct product *p = s->p;
    const int64_t column = j * SIDE, at = row * p->c_row + column, left = p->n - column;
    const int adds = s->last && (p->bias || p->residual);
    const struct blocks of = {(int)rows, !s->first || p->continues, s->blocks, a, s->b + j * s->panel};
    float *const from = s->first ? p->c : s->sums;
    float *const to = s->last ? p->c : s->sums;
    if (!adds && left >= SIDE && from == to) {
        multiply(shapes, &of, to + at, p->c_row);
        return;
    }
    float sums[SIDE * SIDE] __attribute__((aligned(64)));
    for (int64_t r = 0; r < rows && of.continues; r++)
        for (int64_t v = 0; v < SIDE; v += LANES) v_store(sums + r * SIDE + v, gemm_load(from + at + r * p->c_row + v, left - v));
    multiply(shapes, &of, sums, SIDE);
    if (s->last) {
        add_and_store(p, sums, row, rows, column);
        return;
    }
    for (int64_t r = 0; r < rows; r++)
        for (int64_t v = 0; v < SIDE; v += LANES) gemm_store(to + at + r * p->c_row + v, v_load(sums + r * SIDE + v), left - v);
}

static void run_task(void *arg, int64_t n, int thread)
{
    const struct part *s = arg;
    const int64_t cut = n / s->groups, group = n % s->groups, row = cut_row(s, cut), end = cut_row(s, cut + 1);
    float *a = s->own + thread * s->own_words;
    struct shapes shapes = {0};
    if (s->held[thread] != cut) (s->p->a_col == 1 ? lay_rows : lay_columns)(s->p, a, row, end - row, s->from, s->blocks);
    s->held[thread] = cut;
    for (int64_t r = row; r < end; r += SIDE)
        for (int64_t j = group * s->panels / s->groups; j < (group + 1) * s->panels / s->groups; j++)
            multiply_columns(s, &shapes, a + (r - row) / SIDE * s->blocks * BLOCK, r, end - r < SIDE ? end - r : SIDE, j);
    multiply_end(&shapes);
}

/* Choose the number of tasks: the rows of a task fill a third of the L2 cache, and there are enough
 * for all threads. */
static void choose_tasks(struct part *s, int threads)
{
    enum { EACH = 8 };
    const int64_t tiles = blocks_of(s->p->m), fit = caches_of_this_machine().second / 3 / (4 * BLOCK * s->blocks + 1),
                  most = fit < 1 ? 1 : fit;
    s->cuts = (tiles + most - 1) / most;
    s->groups = s->cuts >= EACH * threads || threads == 1 ? 1 : (EACH * threads + s->cuts - 1) / s->cuts;
    if (s->groups > s->panels) s->groups = s->panels;
    s->own_words = (tiles + s->cuts - 1) / s->cuts * BLOCK * s->blocks;
}

struct make {
    const struct part *s;
    float *to;
};

static void make_panel(void *arg, int64_t j, int thread)
{
    (void)thread;
    const struct make *m = arg;
    for (int64_t i = 0; i < m->s->blocks; i++)
        (m->s->p->transposed ? lay_transposed : lay_b)(m->s->p, m->to + j * m->s->panel + i * BLOCK, j, m->s->from + i);
}

static void run_product(const struct kctx *c, const struct product *p)
{
    const int threads = pool_threads(c->pool);
    const int64_t blocks = blocks_of(p->k), panels = blocks_of(p->n), most = MADE / (panels * BLOCK),
                  at_a_time = p->packed || blocks <= most ? blocks
                              : most < 1                  ? 1
                                                          : most;
    struct pool *const pool = p->m * p->n * p->k < 32768 ? NULL : c->pool;
    struct part s = {.p = p, .panels = panels, .blocks = at_a_time, .sums = p->c};
    choose_tasks(&s, threads);
    float *made = p->packed ? NULL : scratch(c, panels * at_a_time * BLOCK + 1);
    s.own = scratch(c, threads * s.own_words + 1);
    s.held = scratch(c, 2 * threads);
    if (at_a_time < blocks && (p->bias || p->residual)) s.sums = scratch(c, p->m * p->c_row);
    if ((!p->packed && !made) || !s.own || !s.held || !s.sums) return;
    do {
        if (blocks - s.from < s.blocks) s.blocks = blocks - s.from;
        s.first = s.from == 0;
        s.last = s.from + s.blocks == blocks;
        s.panel = s.blocks * BLOCK;
        s.b = p->packed ? p->packed : made;
        if (made) pool_run(pool, panels, make_panel, &(struct make){&s, made});
        for (int i = 0; i < threads; i++) s.held[i] = -1;
        pool_run(pool, s.cuts * s.groups, run_task, &s);
        s.from += s.blocks;
    } while (s.from < blocks);
}

/* ---- the operations */
static const struct kernels *base;

static int64_t packed_bytes(int64_t n, int64_t k, enum dtype dtype)
{
    return dtype == DTYPE_BF16 ? blocks_of(n) * blocks_of(k) * BLOCK * 4 : base->packed_bytes(n, k, dtype);
}

static void tiles_pack(const struct kctx *c, const struct op_pack *o)
{
    struct op_pack s = *o;
    if (o->dtype != DTYPE_BF16)
        base->pack(c, o);
    else
        pool_run(c->pool, blocks_of(o->n), lay_weights, &s);
}

static void tiles_matmul(const struct kctx *c, const struct op_matmul *o)
{
    if (o->dtype != DTYPE_BF16) {
        base->matmul(c, o);
        return;
    }
    if (o->t <= 0 || o->n <= 0) return;
    run_product(c, &(struct product){.m = o->t,
                                     .n = o->n,
                                     .k = o->k,
                                     .a = o->x,
                                     .a_row = o->k,
                                     .a_col = 1,
                                     .packed = o->packed,
                                     .c = o->y,
                                     .c_row = o->n,
                                     .bias = o->bias,
                                     .residual = o->residual});
    arena_reset(c->scratch);
}

/* dx[t,k] = sum_n dy[t,n] W[n,k]: the inner index is n. */
static void tiles_matmul_dx(const struct kctx *c, const struct op_matmul_dx *o)
{
    if (o->dtype != DTYPE_BF16) {
        base->matmul_dx(c, o);
        return;
    }
    if (o->t <= 0 || o->k <= 0) return;
    run_product(c, &(struct product){.m = o->t,
                                     .n = o->k,
                                     .k = o->n,
                                     .a = o->dy,
                                     .a_row = o->n,
                                     .a_col = 1,
                                     .transposed = o->packed,
                                     .c = o->dx,
                                     .c_row = o->k});
    arena_reset(c->scratch);
}

/* dW[n,k] += sum_t dy[t,n] x[t,k]: the inner index is t, and A is dy transposed. apart: each
 * complete sum is added to dw. */
static void product_dw(const struct kctx *c, const struct op_matmul_dw *o, int apart)
{
    struct op_matmul_dw bias_alone = *o;
    if (o->t <= 0) return;
    if (o->n > 0 && o->k > 0)
        run_product(c, &(struct product){.m = o->n,
                                         .n = o->k,
                                         .k = o->t,
                                         .a = o->dy,
                                         .a_row = 1,
                                         .a_col = o->n,
                                         .b = o->x,
                                         .b_row = o->k,
                                         .c = o->dw,
                                         .c_row = o->k,
                                         .continues = !apart,
                                         .residual = apart ? o->dw : NULL});
    arena_reset(c->scratch);
    bias_alone.k = 0;
    if (o->dbias) base->matmul_dw(c, &bias_alone);
}

static void tiles_matmul_dw(const struct kctx *c, const struct op_matmul_dw *o)
{
    if (o->dtype != DTYPE_BF16)
        base->matmul_dw(c, o);
    else
        product_dw(c, o, 0);
}

static void tiles_matmul_dw_apart(const struct kctx *c, const struct op_matmul_dw *o)
{
    if (o->dtype != DTYPE_BF16)
        base->matmul_dw_apart(c, o);
    else
        product_dw(c, o, 1);
}

void TILES_TABLE(const struct kernels *others, struct kernels *out)
{
    base = others;
    *out = *others;
    out->name = TILES_NAME;
    out->bf16_rows = 0;
    out->packed_bytes = packed_bytes;
    out->int8_bytes = NULL; /* not supported: the words would be made again for every product */
    out->pack = tiles_pack;
    out->matmul = tiles_matmul;
    out->matmul_dx = tiles_matmul_dx;
    out->matmul_dw = tiles_matmul_dw;
    out->matmul_dw_apart = tiles_matmul_dw_apart;
    out->matmul_low_rank = NULL; /* the caller composes them from the operations above */
    out->matmul_dx_low_rank = NULL;
    out->low_rank_dw = NULL;
}

#ifdef TILES_AMX
#include <math.h>
#include <sys/syscall.h>
#include <unistd.h>

/* Request AMX. The system saves the tiles only of a process that requested them; threads and
 * children inherit the permission. */
static int amx_allowed(void)
{
    enum { ARCH_REQ_XCOMP_PERM = 0x1023, XTILEDATA = 18 };
    return syscall(SYS_arch_prctl, ARCH_REQ_XCOMP_PERM, XTILEDATA) == 0;
}

/* Numbers that differ in magnitude by up to 2^16, so that a different order or rounding changes
 * many of the sums. */
static uint32_t random_bits(uint32_t *state)
{
    *state = *state * 1664525u + 1013904223u;
    const uint32_t u = *state;
    return (u & 0x80000000u) | (0x3f800000u - ((u >> 27 & 15u) << 23)) | (u >> 4 & 0x7fffffu);
}

static float sums_as_defined(const float *a, const float *b, float acc)
{
    float even = 0, odd = 0;
    for (int i = 0; i < TILE; i++) {
        uint32_t x, w;
        memcpy(&x, a + i, sizeof x);
        memcpy(&w, b + i * SIDE, sizeof w);
        even = fmaf(f32_from_bits(x << 16), f32_from_bits(w << 16), even);
        odd = fmaf(f32_from_bits(x & 0xffff0000u), f32_from_bits(w & 0xffff0000u), odd);
    }
    return acc + (even + odd);
}

int kernels_tiles_amx_check(void)
{
    static float a[BLOCK], b[BLOCK], c[SIDE * SIDE];
    struct shapes shapes = {0};
    uint32_t state = 1;
    if (!amx_allowed()) return 0;
    for (int i = 0; i < BLOCK; i++) {
        a[i] = f32_from_bits((random_bits(&state) & 0xffff0000u) | random_bits(&state) >> 16);
        b[i] = f32_from_bits((random_bits(&state) & 0xffff0000u) | random_bits(&state) >> 16);
    }
    for (int i = 0; i < SIDE * SIDE; i++) c[i] = (float)i / 7;
    multiply(&shapes, &(struct blocks){SIDE, 1, 1, a, b}, c, SIDE);
    multiply_end(&shapes);
    for (int i = 0; i < SIDE * SIDE; i++)
        if (sums_as_defined(a + i / SIDE * TILE, b + i % SIDE, (float)i / 7) != c[i]) return 0;
    return 1;
}
#endif
