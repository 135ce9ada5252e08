#include "common/words/words.h"

#include <stdbool.h>
#include <stdlib.h>
#include <string.h>
#include <utf8proc.h>

/* Decodes the character at i and returns its length; an invalid byte is one character without a
 * code point (-1). */
static int64_t decode_at(tare_text t, int64_t i, utf8proc_int32_t *c)
{
    const utf8proc_ssize_t n = utf8proc_iterate((const utf8proc_uint8_t *)t.data + i, (utf8proc_ssize_t)(t.size - i), c);
    if (n > 0) return n;
    *c = -1;
    return 1;
}

static bool is_blank(utf8proc_int32_t c)
{
    return (c >= 9 && c <= 13) || (c >= 0x1C && c <= 0x20) || c == 0x85 || c == 0xA0 || c == 0x1680 ||
           (c >= 0x2000 && c <= 0x200A) || c == 0x2028 || c == 0x2029 || c == 0x202F || c == 0x205F || c == 0x3000;
}

tare_text words_next(tare_text t, int64_t *at)
{
    utf8proc_int32_t c;
    int64_t i = *at, n;
    while (i < t.size && (n = decode_at(t, i, &c), is_blank(c))) i += n;
    const int64_t begin = i;
    while (i < t.size && (n = decode_at(t, i, &c), !is_blank(c))) i += n;
    *at = i;
    return (tare_text){t.data + begin, i - begin};
}

int64_t words_count(tare_text t)
{
    int64_t n = 0;
    for (int64_t at = 0; words_next(t, &at).size;) n++;
    return n;
}

int64_t words_characters(tare_text t)
{
    utf8proc_int32_t c;
    int64_t n = 0;
    for (int64_t i = 0; i < t.size; n++) i += decode_at(t, i, &c);
    return n;
}

tare_text words_lower(tare_text t)
{
    tare_text out = {malloc((size_t)(t.size * 4 + 1)), 0};
    char *to = (char *)out.data;
    utf8proc_int32_t c;
    for (int64_t i = 0, n; to && i < t.size; i += n) {
        n = decode_at(t, i, &c);
        if (c < 0)
            to[out.size++] = t.data[i];
        else
            out.size += utf8proc_encode_char(utf8proc_tolower(c), (utf8proc_uint8_t *)to + out.size);
    }
    return out;
}
