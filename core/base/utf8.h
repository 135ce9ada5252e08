/* Iterate over valid UTF-8. */
#ifndef TARE_CORE_BASE_UTF8_H
#define TARE_CORE_BASE_UTF8_H

#include <stdint.h>

/* Decode the character at *p and advance p. */
static inline int32_t utf8_next(const unsigned char **p)
{
    const unsigned char *q = *p;
    if (*q < 0x80) return *p = q + 1, q[0];
    if (*q < 0xE0) return *p = q + 2, (q[0] & 0x1F) << 6 | (q[1] & 0x3F);
    if (*q < 0xF0) return *p = q + 3, (q[0] & 0x0F) << 12 | (q[1] & 0x3F) << 6 | (q[2] & 0x3F);
    return *p = q + 4, (q[0] & 0x07) << 18 | (q[1] & 0x3F) << 12 | (q[2] & 0x3F) << 6 | (q[3] & 0x3F);
}

/* Encode c; return the number of bytes, at most 4. */
static inline int utf8_put(char *out, int32_t c)
{
    if (c < 0x80) return out[0] = (char)c, 1;
    if (c < 0x800) return out[0] = (char)(0xC0 | c >> 6), out[1] = (char)(0x80 | (c & 0x3F)), 2;
    if (c < 0x10000)
        return out[0] = (char)(0xE0 | c >> 12), out[1] = (char)(0x80 | (c >> 6 & 0x3F)), out[2] = (char)(0x80 | (c & 0x3F)), 3;
    out[0] = (char)(0xF0 | c >> 18);
    out[1] = (char)(0x80 | (c >> 12 & 0x3F));
    out[2] = (char)(0x80 | (c >> 6 & 0x3F));
    return out[3] = (char)(0x80 | (c & 0x3F)), 4;
}

#endif
