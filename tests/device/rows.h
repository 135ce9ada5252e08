/* Part of fake.c: rows in bf16, which some of the processor's tables do not support. Copies in
 * fp32 are read, or written and then rounded. */
#ifndef TARE_FAKE_ROWS_H
#define TARE_FAKE_ROWS_H

static float *copy_new(const char *op, int64_t n)
{
    float *p = calloc((size_t)(n > 0 ? n : 1), sizeof *p);
    if (!p) die(op, "no memory for a copy");
    return p;
}

/* Returns the rows themselves if they are fp32, else a copy that is. */
static const void *widened(const char *op, const void *rows, enum dtype dtype, int64_t n)
{
    const uint16_t *from = rows;
    if (dtype == DTYPE_F32) return rows;
    float *to = copy_new(op, n);
    for (int64_t i = 0; i < n; i++) to[i] = bf16_to_f32(from[i]);
    return to;
}

static void *wide_room(const char *op, void *rows, enum dtype dtype, int64_t n)
{
    return dtype == DTYPE_F32 ? rows : copy_new(op, n);
}

/* Rounds the copy into the rows; rows NULL: they were only read. */
static void narrowed(void *rows, const void *copy, enum dtype dtype, int64_t n)
{
    uint16_t *to = rows;
    if (dtype == DTYPE_F32) return;
    for (int64_t i = 0; to && i < n; i++) to[i] = bf16_from_f32(((const float *)copy)[i]);
    free((void *)(uintptr_t)copy);
}

#endif
