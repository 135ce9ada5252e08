/* Fused low-rank products are bit-identical, by the definition, to each product alone followed by
 * their sum. */
#include "caches.h"
#include "kernel_check.h"

struct shape {
    int64_t t, k, rank, parts, begin[3], n[3], columns; /* of y */
};

/* Column ranges that begin at panels of every build, with gaps or without; ranges that do not;
 * ranks that are odd or larger than a panel. */
static const struct shape SHAPES[] = {
    {1, 65, 4, 3, {0, 64, 96}, {64, 32, 32}, 128},
    {5, 64, 3, 1, {0}, {70}, 70},
    {15, 31, 5, 2, {0, 32}, {32, 31}, 63},
    {29, 700, 16, 3, {0, 64, 96}, {64, 32, 17}, 113},
    {60, 257, 16, 2, {0, 96}, {64, 33}, 129},
    {200, 130, 33, 1, {32}, {64}, 130},
    {40, 51, 3, 3, {0, 20, 27}, {20, 7, 9}, 36},
    {130, 300, 8, 2, {0, 160}, {160, 160}, 320},
    {33, 2, 1, 1, {0}, {1}, 1},
    {17, 1, 2, 2, {0, 32}, {32, 1}, 33},
};
enum { N_SHAPES = sizeof SHAPES / sizeof *SHAPES };

/* The numbers of a case, the same for all backends. */
struct numbers {
    struct shape s;
    enum dtype dtype;
    int int8;
    int64_t rows;
    float scale, *x, *w, *a, *b[3], *bias, *y, *dy, *da, *db[3];
};

struct results {
    float *y, *u, *dx, *d, *da, *db[3];
};

static struct numbers numbers_of(const struct shape *s, enum dtype dtype, int int8)
{
    struct numbers n = {.s = *s, .dtype = dtype, .int8 = int8, .rows = s->parts * s->rank, .scale = 0.7f};
    n.x = randoms(s->t * s->k, 1, 1);
    n.w = randoms(s->columns * s->k, 0, 1);
    n.a = randoms(n.rows * s->k, 0, 1);
    n.bias = randoms(s->columns, 0, 1);
    n.y = randoms(s->t * s->columns, 0, 1);
    n.dy = randoms(s->t * s->columns, 3, 1);
    n.da = randoms(n.rows * s->k, 0, 1);
    for (int64_t i = 0; i < s->parts; i++) {
        n.b[i] = randoms(s->n[i] * s->rank, 0, 1);
        n.db[i] = randoms(s->n[i] * s->rank, 0, 1);
    }
    return n;
}

static struct results results_of(const struct numbers *n)
{
    const struct shape *s = &n->s;
    struct results r = {.y = copied(n->y, s->t * s->columns, 1),
                        .u = floats(s->t * n->rows, 1),
                        .dx = floats(s->t * s->k, 1),
                        .d = floats(s->t * n->rows, 1),
                        .da = copied(n->da, n->rows * s->k, 1)};
    for (int64_t i = 0; i < s->parts; i++) r.db[i] = copied(n->db[i], s->n[i] * s->rank, 1);
    return r;
}

static void *packed(const struct kernels *k, const struct kctx *c, const float *w, const int64_t size[2], enum dtype dtype,
                    int int8)
{
    float *p = floats((int8 ? k->int8_bytes : k->packed_bytes)(size[0], size[1], dtype) / 4 + 1, 0);
    KERNEL(k, c, pack, .packed = p, .w = w, .n = size[0], .k = size[1], .dtype = dtype, .int8 = int8);
    return p;
}

/* ---- the definition: one product after another, with a range's columns in separate rows */

static void forward_by_parts(const struct numbers *n, struct results *r)
{
    const struct shape *s = &n->s;
    const struct kctx *c = &contexts[0];
    const void *w = packed(ref, c, n->w, (const int64_t[2]){s->columns, s->k}, n->dtype, n->int8);
    KERNEL(ref, c, matmul, .y = r->y, .x = n->x, .packed = w, .bias = n->bias, .residual = r->y, .t = s->t, .n = s->columns,
           .k = s->k, .dtype = n->dtype, .int8 = n->int8);
    for (int64_t i = 0; i < s->parts; i++) {
        float *u = floats(s->t * s->rank, 0), *wide = floats(s->t * s->n[i], 0);
        const void *a = packed(ref, c, n->a + i * s->rank * s->k, (const int64_t[2]){s->rank, s->k}, n->dtype, 0),
                   *b = packed(ref, c, n->b[i], (const int64_t[2]){s->n[i], s->rank}, n->dtype, 0);
        KERNEL(ref, c, matmul, .y = u, .x = n->x, .packed = a, .t = s->t, .n = s->rank, .k = s->k, .dtype = n->dtype);
        KERNEL(ref, c, add_columns, .y = r->u + i * s->rank, .ldy = n->rows, .x = u, .ldx = s->rank, .t = s->t, .n = s->rank,
               .scale = n->scale);
        KERNEL(ref, c, add_columns, .y = u, .ldy = s->rank, .x = u, .ldx = s->rank, .t = s->t, .n = s->rank, .scale = n->scale);
        KERNEL(ref, c, matmul, .y = wide, .x = u, .packed = b, .t = s->t, .n = s->n[i], .k = s->rank, .dtype = n->dtype);
        KERNEL(ref, c, add_columns, .y = r->y + s->begin[i], .ldy = s->columns, .x = wide, .ldx = s->n[i], .t = s->t, .n = s->n[i],
               .scale = 1, .accumulate = 1);
    }
}

static void product_dw(const struct kctx *c, struct op_matmul_dw o, int apart)
{
    (apart ? ref->matmul_dw_apart : ref->matmul_dw)(c, &o);
}

static void backward_by_parts(const struct numbers *n, const float *u, int apart, struct results *r)
{
    const struct shape *s = &n->s;
    const struct kctx *c = &contexts[0];
    const void *w = packed(ref, c, n->w, (const int64_t[2]){s->columns, s->k}, n->dtype, n->int8),
               *a = packed(ref, c, n->a, (const int64_t[2]){n->rows, s->k}, n->dtype, 0);
    float *more = floats(s->t * s->k, 0);
    ref->matmul_dx(
        c, &(struct op_matmul_dx){
               .dx = r->dx, .dy = n->dy, .packed = w, .t = s->t, .n = s->columns, .k = s->k, .dtype = n->dtype, .int8 = n->int8});
    for (int64_t i = 0; i < s->parts; i++) {
        float *dy = floats(s->t * s->n[i], 0), *part = floats(s->t * s->rank, 0), *d = floats(s->t * s->rank, 0);
        const void *b = packed(ref, c, n->b[i], (const int64_t[2]){s->n[i], s->rank}, n->dtype, 0);
        KERNEL(ref, c, add_columns, .y = dy, .ldy = s->n[i], .x = n->dy + s->begin[i], .ldx = s->columns, .t = s->t, .n = s->n[i],
               .scale = 1);
        KERNEL(ref, c, add_columns, .y = part, .ldy = s->rank, .x = u + i * s->rank, .ldx = n->rows, .t = s->t, .n = s->rank,
               .scale = 1);
        product_dw(
            c, (struct op_matmul_dw){.dw = r->db[i], .dy = dy, .x = part, .t = s->t, .n = s->n[i], .k = s->rank, .dtype = n->dtype},
            apart);
        ref->matmul_dx(
            c, &(struct op_matmul_dx){.dx = d, .dy = dy, .packed = b, .t = s->t, .n = s->n[i], .k = s->rank, .dtype = n->dtype});
        KERNEL(ref, c, add_columns, .y = r->d + i * s->rank, .ldy = n->rows, .x = d, .ldx = s->rank, .t = s->t, .n = s->rank,
               .scale = n->scale);
    }
    product_dw(c, (struct op_matmul_dw){.dw = r->da, .dy = r->d, .x = n->x, .t = s->t, .n = n->rows, .k = s->k, .dtype = n->dtype},
               apart);
    ref->matmul_dx(
        c, &(struct op_matmul_dx){.dx = more, .dy = r->d, .packed = a, .t = s->t, .n = n->rows, .k = s->k, .dtype = n->dtype});
    KERNEL(ref, c, add, .y = r->dx, .x = more, .n = s->t * s->k);
}

/* ---- a backend */

struct weights {
    const void *w;
    struct low_rank l;
};

static struct weights weights_of(const struct kernels *k, const struct kctx *c, const struct numbers *n)
{
    const struct shape *s = &n->s;
    struct weights w = {packed(k, c, n->w, (const int64_t[2]){s->columns, s->k}, n->dtype, n->int8),
                        {.a = packed(k, c, n->a, (const int64_t[2]){n->rows, s->k}, n->dtype, 0),
                         .parts = s->parts,
                         .rank = s->rank,
                         .scale = n->scale}};
    for (int64_t i = 0; i < s->parts; i++) {
        w.l.b[i] = packed(k, c, n->b[i], (const int64_t[2]){s->n[i], s->rank}, n->dtype, 0);
        w.l.begin[i] = s->begin[i];
        w.l.n[i] = s->n[i];
    }
    return w;
}

static void forward(const struct kernels *k, const struct kctx *c, const struct numbers *n, const struct weights *w,
                    struct results *r, float *u)
{
    const struct shape *s = &n->s;
    KERNEL(k, c, matmul_low_rank,
           .product = {.y = r->y,
                       .x = n->x,
                       .packed = w->w,
                       .bias = n->bias,
                       .residual = r->y,
                       .t = s->t,
                       .n = s->columns,
                       .k = s->k,
                       .dtype = n->dtype,
                       .int8 = n->int8},
           .adapter = w->l, .u = u);
}

static void backward(const struct kernels *k, const struct kctx *c, const struct numbers *n, const struct weights *w,
                     struct results *r, float *dx)
{
    const struct shape *s = &n->s;
    KERNEL(k, c, matmul_dx_low_rank,
           .product =
               {.dx = dx, .dy = n->dy, .packed = w->w, .t = s->t, .n = s->columns, .k = s->k, .dtype = n->dtype, .int8 = n->int8},
           .adapter = w->l, .d = r->d);
}

static void assert_same(const char *where, const struct numbers *n, const struct results *got, const struct results *want)
{
    const struct shape *s = &n->s;
    assert_bits(where, got->dx, want->dx, s->t * s->k);
    assert_bits(where, got->d, want->d, s->t * n->rows);
    assert_bits(where, got->da, want->da, n->rows * s->k);
    for (int64_t i = 0; i < s->parts; i++) assert_bits(where, got->db[i], want->db[i], s->n[i] * s->rank);
}

static void check(const struct kernels *k, const struct kctx *c, const char *where, const struct shape *s, enum dtype dtype,
                  int int8)
{
    const struct numbers n = numbers_of(s, dtype, int8);
    struct results want = results_of(&n), got = results_of(&n), again = results_of(&n);
    const struct weights w = weights_of(k, c, &n);
    forward_by_parts(&n, &want);
    forward(k, c, &n, &w, &got, got.u);
    assert_bits(where, got.u, want.u, s->t * n.rows);
    assert_bits(where, got.y, want.y, s->t * s->columns);
    forward(k, c, &n, &w, &again, NULL); /* sampling keeps no u */
    assert_bits(where, again.y, want.y, s->t * s->columns);
    for (int apart = 0; apart < 2; apart++) {
        backward_by_parts(&n, want.u, apart, &want);
        backward(k, c, &n, &w, &got, got.dx);
        KERNEL(k, c, low_rank_dw, .da = got.da, .db = {got.db[0], got.db[1], got.db[2]}, .u = got.u, .d = got.d, .dy = n.dy,
               .x = n.x, .adapter = w.l, .t = s->t, .n = s->columns, .k = s->k, .dtype = dtype, .apart = apart);
        assert_same(where, &n, &got, &want);
        memset(got.d, 0, (size_t)(s->t * n.rows) * sizeof *got.d);
    }
    backward(k, c, &n, &w, &got, NULL); /* of the first layer */
    assert_bits(where, got.d, want.d, s->t * n.rows);
    assert_int_equal(c->scratch->used, 0);
    buffers_end();
}

static void all_shapes(const struct kernels *k, const struct kctx *c, const char *where)
{
    if (!k->matmul_low_rank) return; /* amx */
    for (int i = 0; i < N_SHAPES; i++)
        for (int kind = 0; kind < 4; kind++) check(k, c, where, &SHAPES[i], kind % 2 ? DTYPE_BF16 : DTYPE_F32, kind / 2);
}

static void fused_equals_one_after_another(void **state)
{
    (void)state;
    each_backend(all_shapes);
}

/* Other cache sizes: chunks of the inner index, and groups of columns with a separate U each. */
static void blocks(const struct kernels *k, const struct kctx *c, const char *where)
{
    if (!k->matmul_low_rank) return; /* amx */
    static const struct caches sizes[] = {{1 << 10, 4 << 10}, {6 << 10, 24 << 10}, {1 << 20, 64 << 20}};
    static const struct shape shapes[] = {{60, 700, 16, 3, {0, 64, 96}, {64, 32, 17}, 113},
                                          {90, 257, 5, 2, {0, 320}, {320, 300}, 620}};
    for (int i = 0; i < 3; i++) {
        caches_pretend(&sizes[i]);
        for (int j = 0; j < 2; j++)
            for (int kind = 0; kind < 4; kind++) check(k, c, where, &shapes[j], kind % 2 ? DTYPE_BF16 : DTYPE_F32, kind / 2);
    }
    caches_pretend(NULL);
}

static void blocking_changes_no_bit(void **state)
{
    (void)state;
    each_backend(blocks);
}

/* In the backward pass weights are made into panels part by part; D continues from one to the
 * next. */
static void parts(const struct kernels *k, const struct kctx *c, const char *where)
{
    if (!k->matmul_low_rank) return; /* amx */
    static const struct shape long_ones[] = {{30, 352, 4, 2, {0, 1600}, {1600, 1501}, 3101}, {100, 340, 3, 1, {0}, {3171}, 3171}};
    if (c == &contexts[1] || !strncmp(k->name, "emu", 3)) return;
    for (int i = 0; i < 2; i++)
        for (int dtype = DTYPE_F32; dtype <= DTYPE_BF16; dtype++) check(k, c, where, &long_ones[i], (enum dtype)dtype, 0);
}

static void parts_of_the_inner_index_change_no_bit(void **state)
{
    (void)state;
    each_backend(parts);
}

/* If the last part of the inner index is shorter, it may have other blocks, and more. Scratch is
 * one block, as an earlier larger operation leaves it, so a write beyond an array reaches the next
 * one. */
static void shorter(const struct kernels *k, const struct kctx *c, const char *where)
{
    static const struct shape s = {1344, 512, 8, 1, {0}, {1200}, 1200};
    if (!k->matmul_low_rank || c == &contexts[0] || !strncmp(k->name, "emu", 3)) return;
    for (int dtype = DTYPE_F32; dtype <= DTYPE_BF16; dtype++) {
        const struct numbers n = numbers_of(&s, (enum dtype)dtype, 0);
        const struct weights w = weights_of(k, c, &n);
        struct results want = results_of(&n), got = results_of(&n);
        struct err e;
        void *all;
        backward(k, &contexts[0], &n, &w, &want, want.dx);
        assert_ok(arena_push_raw(c->scratch, 64 << 20, &all, &e), &e);
        arena_reset(c->scratch);
        backward(k, c, &n, &w, &got, got.dx);
        assert_bits(where, got.dx, want.dx, s.t * s.k);
        assert_bits(where, got.d, want.d, s.t * n.rows);
        buffers_end();
    }
}

static void a_shorter_part_fits_its_blocks(void **state)
{
    (void)state;
    each_backend(shorter);
}

/* d of a range reads only the range's own columns of dy: an infinity in another range does not
 * reach it, not even times 0. */
static void infinite(const struct kernels *k, const struct kctx *c, const char *where)
{
    if (!k->matmul_low_rank) return; /* amx */
    static const struct shape s = {60, 70, 5, 2, {0, 32}, {32, 32}, 64};
    for (int dtype = DTYPE_F32; dtype <= DTYPE_BF16; dtype++) {
        const struct numbers n = numbers_of(&s, (enum dtype)dtype, 0);
        const struct weights w = weights_of(k, c, &n);
        struct results want = results_of(&n), got = results_of(&n);
        backward(k, c, &n, &w, &want, want.dx);
        n.dy[0] = INFINITY;
        backward(k, c, &n, &w, &got, got.dx);
        if (isfinite(got.d[0])) fail_msg("%s: d has no infinite number", where);
        for (int64_t i = 0; i < s.t; i++) assert_bits(where, got.d + i * n.rows + s.rank, want.d + i * n.rows + s.rank, s.rank);
        buffers_end();
    }
}

static void a_part_reads_its_own_columns(void **state)
{
    (void)state;
    each_backend(infinite);
}

/* A row has the same bits for any other rows in the batch: sampling and update use different
 * numbers of rows. */
static void rows_alone(const struct kernels *k, const struct kctx *c, const char *where)
{
    if (!k->matmul_low_rank) return; /* amx */
    static const struct shape most = {150, 90, 6, 2, {0, 64}, {64, 40}, 104};
    static const int64_t rows[] = {1, 2, 4, 6, 7, 13, 14, 15, 33, 128};
    for (int kind = 0; kind < 4; kind++) {
        struct numbers n = numbers_of(&most, kind % 2 ? DTYPE_BF16 : DTYPE_F32, kind / 2);
        struct results all = results_of(&n), some = results_of(&n);
        const struct weights w = {packed(k, c, n.w, (const int64_t[2]){most.columns, most.k}, n.dtype, n.int8),
                                  {.a = packed(k, c, n.a, (const int64_t[2]){n.rows, most.k}, n.dtype, 0),
                                   .b = {packed(k, c, n.b[0], (const int64_t[2]){64, 6}, n.dtype, 0),
                                         packed(k, c, n.b[1], (const int64_t[2]){40, 6}, n.dtype, 0)},
                                   .begin = {0, 64},
                                   .n = {64, 40},
                                   .parts = 2,
                                   .rank = 6,
                                   .scale = n.scale}};
        forward(k, c, &n, &w, &all, NULL);
        const float *x = n.x;
        for (int i = 0; i < 10; i++) {
            const int64_t first = (most.t - rows[i]) / 2;
            n.s.t = rows[i];
            n.x = (float *)x + first * most.k;
            memcpy(some.y, n.y + first * most.columns, (size_t)(rows[i] * most.columns) * sizeof *some.y);
            forward(k, c, &n, &w, &some, NULL);
            assert_bits(where, some.y, all.y + first * most.columns, rows[i] * most.columns);
        }
        buffers_end();
    }
}

static void rows_do_not_depend_on_others(void **state)
{
    (void)state;
    each_backend(rows_alone);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(fused_equals_one_after_another),         cmocka_unit_test(blocking_changes_no_bit),
        cmocka_unit_test(parts_of_the_inner_index_change_no_bit), cmocka_unit_test(a_part_reads_its_own_columns),
        cmocka_unit_test(a_shorter_part_fits_its_blocks),         cmocka_unit_test(rows_do_not_depend_on_others)};
    return cmocka_run_group_tests(tests, kernel_setup, kernel_teardown);
}
