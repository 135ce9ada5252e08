/* A reader of JSON for plugins: rows of the data set, tool calls, lists of messages. Header-only, and
 * not part of the ABI. It allocates nothing, depends on no locale, and reads any bytes safely. A
 * value is a view (tare_text) of its bytes, so reading goes from view to view:
 *
 *     if (tare_json_find(completion->row, "level", &value) && tare_json_number(value, &level)) ...
 *     struct tare_json_items items = tare_json_begin(list);
 *     while (tare_json_next(&items)) use(items.value);     // an object also has items.key
 *
 * A function returns 0 when the value is missing, of another type or not JSON. Values nested deeper
 * than TARE_JSON_DEPTH are not read. */
#ifndef TARE_JSON_H
#define TARE_JSON_H

#include "base.h"
#include "text.h"

#define TARE_JSON_DEPTH 64
#define TARE_JSON_API __attribute__((unused)) static

/* Returns the byte at a position, or -1 at the end. */
TARE_JSON_API int tare_json_at(tare_text text, int64_t at)
{
    return at >= 0 && at < text.size ? (unsigned char)text.data[at] : -1;
}

TARE_JSON_API int64_t tare_json_space(tare_text text, int64_t at)
{
    for (int c; (c = tare_json_at(text, at)) == ' ' || c == '\t' || c == '\n' || c == '\r';) at++;
    return at;
}

/* The part of a text from `begin` to `end`. */
TARE_JSON_API tare_text tare_json_part(tare_text text, int64_t begin, int64_t end)
{
    tare_text part = {text.data ? text.data + begin : text.data, end - begin};
    return part;
}

/* Reads the four digits of \uXXXX at a position. Returns -1 when they are not hexadecimal. */
TARE_JSON_API int32_t tare_json_hex(tare_text text, int64_t at)
{
    static const char DIGITS[] = "0123456789abcdef";
    int32_t code = 0;
    for (int64_t i = at; i < at + 4; i++) {
        const int c = tare_json_at(text, i);
        const char *digit = c >= '0' ? strchr(DIGITS, c | 32) : NULL;
        if (!digit) return -1;
        code = code * 16 + (int32_t)(digit - DIGITS);
    }
    return code;
}

/* Writes a code point as UTF-8; returns the number of bytes. */
TARE_JSON_API int tare_json_utf8(int32_t code, char out[4])
{
    const int n = code < 0x80 ? 1 : code < 0x800 ? 2 : code < 0x10000 ? 3 : 4;
    static const unsigned char FIRST[] = {0, 0, 0xc0, 0xe0, 0xf0};
    for (int i = n - 1; i > 0; i--, code >>= 6) out[i] = (char)(0x80 | (code & 0x3f));
    out[0] = (char)(FIRST[n] | code);
    return n;
}

/* Decodes one character of a string, at *at behind its opening quote, and moves on: an escape becomes
 * up to four bytes, any other byte is copied. A lone surrogate becomes U+FFFD. Returns the number of
 * bytes, 0 at the closing quote, -1 when the string is damaged or not closed. */
TARE_JSON_API int tare_json_char(tare_text text, int64_t *at, char out[4])
{
    static const char ESCAPES[] = "\"\\/bfnrt", MEANING[] = "\"\\/\b\f\n\r\t";
    const int c = tare_json_at(text, *at);
    if (c < 0x20) return -1;
    ++*at;
    if (c == '"') return 0;
    out[0] = (char)c;
    if (c != '\\') return 1;
    const int letter = tare_json_at(text, (*at)++);
    if (letter != 'u') {
        const char *found = letter > 0 ? strchr(ESCAPES, letter) : NULL;
        if (found) out[0] = MEANING[found - ESCAPES];
        return found ? 1 : -1;
    }
    int32_t code = tare_json_hex(text, *at);
    if (code < 0) return -1;
    *at += 4;
    if (code >= 0xd800 && code < 0xdc00 && tare_json_at(text, *at) == '\\' && tare_json_at(text, *at + 1) == 'u') {
        const int32_t low = tare_json_hex(text, *at + 2);
        if (low >= 0xdc00 && low < 0xe000) {
            *at += 6;
            code = 0x10000 + ((code - 0xd800) << 10) + (low - 0xdc00);
        }
    }
    return tare_json_utf8(code >= 0xd800 && code < 0xe000 ? 0xfffd : code, out);
}

TARE_JSON_API int64_t tare_json_skip_string(tare_text text, int64_t at)
{
    char out[4];
    int n = -1;
    if (tare_json_at(text, at++) != '"') return -1;
    while ((n = tare_json_char(text, &at, out)) > 0) continue;
    return n < 0 ? -1 : at;
}

TARE_JSON_API int64_t tare_json_skip_digits(tare_text text, int64_t at)
{
    const int64_t begin = at;
    while (tare_json_at(text, at) >= '0' && tare_json_at(text, at) <= '9') at++;
    return at > begin ? at : -1;
}

TARE_JSON_API int64_t tare_json_skip_number(tare_text text, int64_t at)
{
    if (tare_json_at(text, at) == '-') at++;
    at = tare_json_at(text, at) == '0' ? at + 1 : tare_json_skip_digits(text, at);
    if (at >= 0 && tare_json_at(text, at) == '.') at = tare_json_skip_digits(text, at + 1);
    if (at < 0 || (tare_json_at(text, at) | 32) != 'e') return at;
    at++;
    if (tare_json_at(text, at) == '+' || tare_json_at(text, at) == '-') at++;
    return tare_json_skip_digits(text, at);
}

/* Returns the position behind the value that begins at a position, or -1. depth: nesting that is
 * still allowed. */
TARE_JSON_API int64_t tare_json_skip(tare_text text, int64_t at, int depth)
{
    static const char *const WORDS[] = {"true", "false", "null"};
    const int open = tare_json_at(text, at), close = open == '{' ? '}' : ']';
    if (open == '"') return tare_json_skip_string(text, at);
    for (int i = 0; i < 3; i++) {
        const int64_t n = i == 1 ? 5 : 4;
        if (at >= 0 && text.size - at >= n && !memcmp(text.data + at, WORDS[i], (size_t)n)) return at + n;
    }
    if (open != '{' && open != '[') return tare_json_skip_number(text, at);
    if (depth < 1) return -1;
    at = tare_json_space(text, at + 1);
    if (tare_json_at(text, at) == close) return at + 1;
    for (;; at = tare_json_space(text, at + 1)) {
        if (open == '{') {
            at = tare_json_space(text, tare_json_skip_string(text, at));
            if (tare_json_at(text, at) != ':') return -1;
            at = tare_json_space(text, at + 1);
        }
        at = tare_json_space(text, tare_json_skip(text, at, depth - 1));
        if (tare_json_at(text, at) == close) return at + 1;
        if (tare_json_at(text, at) != ',') return -1;
    }
}

/* True for a text that is one JSON value. */
TARE_JSON_API int tare_json_valid(tare_text text)
{
    const int64_t end = tare_json_skip(text, tare_json_space(text, 0), TARE_JSON_DEPTH);
    return end > 0 && tare_json_space(text, end) == text.size;
}

/* The elements of an array, or the members of an object. */
struct tare_json_items {
    tare_text key, value; /* key: with its quotes; size 0 in an array */
    tare_text text;       /* of the array or object */
    int64_t at;           /* -1: no further element */
};

/* Begins with the elements of a value, which has none if it is not a valid array or object. */
TARE_JSON_API struct tare_json_items tare_json_begin(tare_text value)
{
    struct tare_json_items items = {{NULL, 0}, {NULL, 0}, value, tare_json_space(value, 0)};
    const int open = tare_json_at(value, items.at);
    if ((open != '{' && open != '[') || !tare_json_valid(value)) items.at = -1;
    return items;
}

/* Moves to the next element. Returns 0 when there is none. */
TARE_JSON_API int tare_json_next(struct tare_json_items *items)
{
    const tare_text text = items->text;
    const int object = tare_json_at(text, tare_json_space(text, 0)) == '{';
    if (items->at < 0) return 0;
    int64_t at = tare_json_space(text, items->at + 1); /* behind the bracket or the comma */
    items->at = -1;
    if (tare_json_at(text, at) == '}' || tare_json_at(text, at) == ']') return 0;
    if (object) {
        const int64_t end = tare_json_skip_string(text, at);
        if (end < 0) return 0;
        items->key = tare_json_part(text, at, end);
        at = tare_json_space(text, tare_json_space(text, end) + 1);
    }
    const int64_t end = tare_json_skip(text, at, TARE_JSON_DEPTH);
    if (end < 0) return 0;
    items->value = tare_json_part(text, at, end);
    at = tare_json_space(text, end);
    items->at = tare_json_at(text, at) == ',' ? at : -1;
    return 1;
}

/* True if the value is a string, with its quotes, that equals `text` (which ends with NUL). */
TARE_JSON_API int tare_json_equals(tare_text value, const char *text)
{
    int64_t at = tare_json_space(value, 0) + 1;
    char out[4];
    int n;
    if (tare_json_at(value, at - 1) != '"') return 0;
    while ((n = tare_json_char(value, &at, out)) > 0)
        for (int i = 0; i < n; i++)
            if (!*text || *text++ != out[i]) return 0;
    return n == 0 && !*text;
}

/* Finds a member of an object: the first one with the key. */
TARE_JSON_API int tare_json_find(tare_text object, const char *key, tare_text *value)
{
    struct tare_json_items items = tare_json_begin(object);
    while (tare_json_next(&items))
        if (items.key.size && tare_json_equals(items.key, key)) {
            *value = items.value;
            return 1;
        }
    return 0;
}

/* Reads a number; of at most 64 characters, and finite. */
TARE_JSON_API int tare_json_number(tare_text value, double *out)
{
    double number;
    const int64_t begin = tare_json_space(value, 0), end = tare_json_skip_number(value, begin);
    if (end < 0 || tare_json_space(value, end) != value.size) return 0;
    if (!tare_read_number(value.data + begin, end - begin, &number) || number - number != 0) return 0;
    *out = number;
    return 1;
}

/* Decodes a string into out, up to capacity bytes; no NUL is added. Returns the size of the whole decoded string, which may be above the capacity, or -1 when
 * the value is no string. out may be NULL with capacity 0. */
TARE_JSON_API int64_t tare_json_text(tare_text value, char *out, int64_t capacity)
{
    int64_t at = tare_json_space(value, 0) + 1, size = 0, written = 0;
    char bytes[4];
    int n;
    if (tare_json_at(value, at - 1) != '"') return -1;
    while ((n = tare_json_char(value, &at, bytes)) > 0) {
        if (written == size && size + n <= capacity) {
            memcpy(out + size, bytes, (size_t)n);
            written += n;
        }
        size += n;
    }
    return n < 0 ? -1 : size;
}

#endif
