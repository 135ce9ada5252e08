/* For targets that read their input as a program: the bytes of the input one after another, and
 * zeros after its end. */
#ifndef TARE_TESTS_BYTES_H
#define TARE_TESTS_BYTES_H

#include <stddef.h>
#include <stdint.h>
#include <string.h>

struct bytes {
    const uint8_t *at, *end;
};

static inline int byte(struct bytes *b)
{
    return b->at < b->end ? *b->at++ : 0;
}

/* Returns up to n bytes of the input; *got: their number. */
static inline const char *bytes_take(struct bytes *b, size_t n, size_t *got)
{
    const uint8_t *at = b->at;
    const size_t left = (size_t)(b->end - b->at);
    *got = n < left ? n : left;
    b->at += *got;
    return (const char *)at;
}

/* Fills out; bytes missing from the input are zero. */
static inline void bytes_fill(struct bytes *b, void *out, size_t n)
{
    size_t got;
    const char *from = bytes_take(b, n, &got);
    if (got) memcpy(out, from, got);
    if (n > got) memset((char *)out + got, 0, n - got);
}

/* Returns a number of 64 bits: a small one, one from the table of critical numbers, or eight
 * bytes of the input. */
static inline int64_t bytes_number(struct bytes *b)
{
    static const int64_t EDGES[] = {-1,
                                    0,
                                    1,
                                    2,
                                    63,
                                    64,
                                    65,
                                    255,
                                    4096,
                                    INT32_MAX,
                                    (int64_t)INT32_MAX + 1,
                                    INT64_MAX,
                                    INT64_MIN,
                                    INT64_MAX - 7,
                                    (int64_t)1 << 44};
    const int how = byte(b);
    int64_t x;
    if (how < 128) return how;
    if (how < 240) return EDGES[how % (int)(sizeof EDGES / sizeof *EDGES)];
    bytes_fill(b, &x, sizeof x);
    return x;
}

#endif
