#include "ifeval.h"

#include <stdlib.h>
#include <string.h>
#include <utf8proc.h>

int32_t char_next(tare_text t, int64_t *at)
{
    int32_t c;
    const utf8proc_ssize_t n = utf8proc_iterate((const utf8proc_uint8_t *)t.data + *at, (utf8proc_ssize_t)(t.size - *at), &c);
    *at += n > 0 ? n : 1;
    return n > 0 ? c : -1;
}

bool char_is_space(int32_t c)
{
    return c == ' ' || (c >= '\t' && c <= '\r') || (c >= 0x1C && c <= 0x1F) || c == 0x85 || c == 0xA0 || c == 0x1680 ||
           (c >= 0x2000 && c <= 0x200A) || c == 0x2028 || c == 0x2029 || c == 0x202F || c == 0x205F || c == 0x3000;
}

bool char_is_word(int32_t c)
{
    if (c < 0) return false;
    if (c < 0x80) return text_is_letter((char)c) || text_is_digit((char)c) || c == '_';
    const utf8proc_category_t k = utf8proc_category(c);
    return (k >= UTF8PROC_CATEGORY_LU && k <= UTF8PROC_CATEGORY_LO) || (k >= UTF8PROC_CATEGORY_ND && k <= UTF8PROC_CATEGORY_NO);
}

int char_case(int32_t c)
{
    if (c < 0) return 0;
    if (c < 0x80) return c >= 'A' && c <= 'Z' ? 1 : c >= 'a' && c <= 'z' ? -1 : 0;
    if (c == 0xAA || c == 0xBA || (c >= 0x2170 && c <= 0x217F) || (c >= 0x24D0 && c <= 0x24E9)) return -1;
    if ((c >= 0x2160 && c <= 0x216F) || (c >= 0x24B6 && c <= 0x24CF)) return 1;
    const utf8proc_category_t k = utf8proc_category(c);
    return k == UTF8PROC_CATEGORY_LU ? 1 : k == UTF8PROC_CATEGORY_LL || k == UTF8PROC_CATEGORY_LT ? -1 : 0;
}

tare_text uni_trim(tare_text t)
{
    while (t.size) {
        int64_t at = 0;
        if (!char_is_space(char_next(t, &at))) break;
        t = text_slice(t, at, t.size);
    }
    while (t.size) {
        int64_t begin = t.size - 1, at;
        while (begin > 0 && t.size - begin < 4 && ((unsigned char)t.data[begin] & 0xC0) == 0x80) begin--;
        at = begin;
        if (!char_is_space(char_next(t, &at))) break;
        t.size = begin;
    }
    return t;
}

tare_text uni_valid(tare_text t)
{
    char *out = malloc(3 * (size_t)t.size + 1);
    int64_t n = 0;
    for (int64_t at = 0, begin = 0; out && at < t.size; begin = at) {
        const bool valid = char_next(t, &at) >= 0;
        memcpy(out + n, valid ? t.data + begin : "\xEF\xBF\xBD", (size_t)(valid ? at - begin : 3));
        n += valid ? at - begin : 3;
    }
    return (tare_text){out, n};
}

tare_text uni_lower(tare_text t)
{
    char *out = malloc(3 * (size_t)t.size + 4); /* n bytes become at most n + 2 in lower case */
    int64_t n = 0;
    for (int64_t at = 0; out && at < t.size;) {
        const int32_t c = char_next(t, &at);
        if (c < 0) continue;
        n += utf8proc_encode_char(c == 0x130 ? 'i' : utf8proc_tolower(c), (utf8proc_uint8_t *)out + n);
        if (c == 0x130) n += utf8proc_encode_char(0x307, (utf8proc_uint8_t *)out + n);
    }
    return (tare_text){out, n};
}
