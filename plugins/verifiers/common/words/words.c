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

/* ---------------------------------------------------------------- units */

enum { LONG_WORD = 24, FEW = 8 };

static bool is_unspaced(utf8proc_int32_t c)
{
    return (c >= 0xE00 && c <= 0xEFF) || (c >= 0x1000 && c <= 0x109F) || (c >= 0x1780 && c <= 0x17FF) ||
           (c >= 0x3040 && c <= 0x30FF) || (c >= 0x3400 && c <= 0x9FFF) || (c >= 0xF900 && c <= 0xFAFF) ||
           (c >= 0x20000 && c <= 0x3FFFF);
}

/* Punctuation of scripts without blanks separates words, as a blank does. */
static bool is_separator(utf8proc_int32_t c)
{
    return is_blank(c) || (c >= 0x3001 && c <= 0x301F) || c == 0xFF01 || c == 0xFF08 || c == 0xFF09 || c == 0xFF0C || c == 0xFF0E ||
           c == 0xFF1A || c == 0xFF1B || c == 0xFF1F;
}

static bool is_edge(utf8proc_int32_t c)
{
    return (c > 0 && c < 0x80 && strchr(".,;:!?\"'()[]{}*_`~", (int)c)) || c == 0xAB || c == 0xBB || (c >= 0x2018 && c <= 0x201F) ||
           c == 0x2026;
}

static bool is_wordlike(utf8proc_int32_t c)
{
    if (c < 0) return true;
    const utf8proc_category_t k = utf8proc_category(c);
    return (k >= UTF8PROC_CATEGORY_LU && k <= UTF8PROC_CATEGORY_NO);
}

/* Returns the word without punctuation at its ends; a word of punctuation only stays. */
static tare_text strip_edges(tare_text w)
{
    utf8proc_int32_t c;
    int64_t begin = 0, end = 0, n;
    while (begin < w.size && (n = decode_at(w, begin, &c), is_edge(c))) begin += n;
    for (int64_t i = begin; i < w.size; i += n) {
        n = decode_at(w, i, &c);
        if (!is_edge(c)) end = i + n;
    }
    return begin < w.size ? (tare_text){w.data + begin, end - begin} : w;
}

/* Returns the end of the run of letters and digits at i; i: there is none. *few: it is long and has
 * few different characters. */
static int64_t run_end(tare_text t, int64_t i, int64_t limit, bool *few)
{
    utf8proc_int32_t c, seen[FEW];
    int64_t length = 0, n;
    int different = 0;
    for (; i < limit && (n = decode_at(t, i, &c), is_wordlike(c)); i += n, length++) {
        int k = 0;
        while (k < different && k < FEW && seen[k] != c) k++;
        if (k == different && different <= FEW) {
            if (different < FEW) seen[different] = c;
            different++;
        }
    }
    *few = length > LONG_WORD && different <= FEW;
    return i;
}

tare_text words_unit(struct words_units *u)
{
    const tare_text t = u->t;
    utf8proc_int32_t c;
    int64_t n;
    while (u->at >= u->end && u->at < t.size) { /* a new word */
        n = decode_at(t, u->at, &c);
        if (is_separator(c)) {
            u->at += n;
            continue;
        }
        if (is_unspaced(c)) {
            u->at += n;
            return (tare_text){t.data + u->at - n, n};
        }
        int64_t i = u->at;
        while (i < t.size && (n = decode_at(t, i, &c), !is_separator(c) && !is_unspaced(c))) i += n;
        const tare_text word = {t.data + u->at, i - u->at};
        if (words_characters(word) <= LONG_WORD) {
            u->at = i;
            return strip_edges(word);
        }
        u->end = i;
    }
    if (u->at >= t.size) return (tare_text){t.data + t.size, 0};
    const int64_t begin = u->at;
    n = decode_at(t, begin, &c);
    if (begin >= u->run) {
        bool few;
        const int64_t end = run_end(t, begin, u->end, &few);
        if (few)
            u->run = end;
        else
            n = end > begin ? end - begin : n;
    }
    u->at += n;
    return (tare_text){t.data + begin, n};
}
