#define _GNU_SOURCE /* memmem */
#include "common/text.h"

#include <stdio.h>
#include <string.h>

bool text_is_space(char c)
{
    return c == ' ' || (c >= '\t' && c <= '\r');
}

bool text_is_digit(char c)
{
    return c >= '0' && c <= '9';
}

bool text_is_letter(char c)
{
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z');
}

char text_lower(char c)
{
    return c >= 'A' && c <= 'Z' ? (char)(c - 'A' + 'a') : c;
}

tare_text text_of(const char *s)
{
    return (tare_text){s, (int64_t)strlen(s)};
}

tare_text text_slice(tare_text t, int64_t begin, int64_t end)
{
    return (tare_text){t.data + begin, end > begin ? end - begin : 0};
}

tare_text text_trim(tare_text t)
{
    while (t.size && text_is_space(t.data[0])) {
        t.data++;
        t.size--;
    }
    while (t.size && text_is_space(t.data[t.size - 1])) t.size--;
    return t;
}

bool text_equal(tare_text a, tare_text b, bool ignore_case)
{
    if (a.size != b.size) return false;
    if (!ignore_case) return !a.size || !memcmp(a.data, b.data, (size_t)a.size);
    for (int64_t i = 0; i < a.size; i++)
        if (text_lower(a.data[i]) != text_lower(b.data[i])) return false;
    return true;
}

bool text_one_of(tare_text t, const char *const *list)
{
    for (; *list; list++)
        if (text_equal(t, text_of(*list), true)) return true;
    return false;
}

bool text_starts(tare_text t, int64_t at, const char *word, bool ignore_case)
{
    const tare_text w = text_of(word);
    return at >= 0 && at <= t.size - w.size && text_equal(text_slice(t, at, at + w.size), w, ignore_case);
}

int64_t text_find_last(tare_text t, const char *word)
{
    const tare_text w = text_of(word);
    int64_t last = -1, from = 0;
    for (const char *p; t.size - from >= w.size && (p = memchr(t.data + from, w.data[0], (size_t)(t.size - from - w.size + 1)));
         from = p - t.data + 1)
        if (!memcmp(p, w.data, (size_t)w.size)) last = p - t.data;
    return last;
}

int64_t text_find(tare_text t, const char *word)
{
    const char *at = t.size ? memmem(t.data, (size_t)t.size, word, strlen(word)) : NULL;
    return at ? at - t.data : -1;
}

tare_text text_after_thought(tare_text t, bool opened)
{
    static const struct {
        const char *open, *close;
    } TAGS[] = {{"<think>", "</think>"},
                {"<thinking>", "</thinking>"},
                {"<seed:think>", "</seed:think>"},
                {"[THINK]", "[/THINK]"},
                {"◁think▷", "◁/think▷"}};
    enum { N = sizeof TAGS / sizeof *TAGS };
    int64_t end = -1;
    for (int k = 0; k < N; k++) {
        const int64_t at = text_find_last(t, TAGS[k].close), after = at < 0 ? -1 : at + (int64_t)strlen(TAGS[k].close);
        if (after > end) end = after;
    }
    const tare_text rest = text_slice(t, end < 0 ? 0 : end, t.size);
    bool open = opened && end < 0;
    for (int k = 0; k < N && !open; k++) open = text_find_last(rest, TAGS[k].open) >= 0;
    return open ? (tare_text){"", 0} : rest;
}

int64_t text_group_end(tare_text t, int64_t i)
{
    int64_t depth = 0;
    for (; i < t.size; i++) {
        depth += t.data[i] == '{' ? 1 : t.data[i] == '}' ? -1 : 0;
        if (depth <= 0) return i + 1;
    }
    return -1;
}

tare_text text_tagged_answer(tare_text t)
{
    const int64_t begin = text_find_last(t, "<answer>");
    const tare_text rest = text_slice(t, begin < 0 ? t.size : begin + 8, t.size);
    const int64_t end = begin < 0 ? -1 : text_find(rest, "</answer>");
    return end < 0 ? (tare_text){"", -1} : text_slice(rest, 0, end);
}

tare_status verdict_set(tare_verdict *v, int32_t code, double reward, tare_text extracted, const char *note)
{
    const tare_status s = tare_judge(v, code, reward, extracted);
    return s || !note ? s : tare_say(v->note, note);
}

/* Returns the length of the valid UTF-8 character at p; 0: invalid. */
static int64_t utf8_length(const unsigned char *p, int64_t left)
{
    static const unsigned least[5] = {0, 0, 0x80, 0x800, 0x10000};
    const int n = p[0] < 0x80 ? 1 : p[0] < 0xC2 ? 0 : p[0] < 0xE0 ? 2 : p[0] < 0xF0 ? 3 : p[0] < 0xF5 ? 4 : 0;
    if (n <= 1) return n;
    if (n > left) return 0;
    unsigned c = p[0] & (0xFFU >> (n + 1));
    for (int i = 1; i < n; i++) {
        if ((p[i] & 0xC0) != 0x80) return 0;
        c = c << 6 | (p[i] & 0x3FU);
    }
    return c < least[n] || c > 0x10FFFF || (c >= 0xD800 && c < 0xE000) ? 0 : n;
}

tare_status explain_text(const tare_stream *out, bool first, const char *key, tare_text value)
{
    char head[96];
    snprintf(head, sizeof head, "%s\"%s\":\"", first ? "{" : ",", key);
    tare_status s = tare_say(out, head);
    for (int64_t i = 0; i < value.size && !s;) {
        const unsigned char c = (unsigned char)value.data[i];
        const int64_t n = utf8_length((const unsigned char *)value.data + i, value.size - i);
        char piece[8];
        if (n == 1 && (c < 0x20 || c == '"' || c == '\\')) {
            snprintf(piece, sizeof piece, "\\u%04x", c);
            s = tare_say(out, piece);
        } else {
            s = n ? tare_put(out, value.data + i, n) : tare_say(out, "\xEF\xBF\xBD");
        }
        i += n ? n : 1;
    }
    return s ? s : tare_say(out, "\"");
}

/* ---------------------------------------------------------------- rows */

static int64_t skip_string(tare_text t, int64_t i) /* i at the opening quote */
{
    for (i++; i < t.size && t.data[i] != '"'; i++)
        if (t.data[i] == '\\') i++;
    return i < t.size ? i + 1 : t.size;
}

/* Returns the value of a key of the outermost object; size 0: absent. Only flat values and arrays
 * matter. */
tare_text text_row_field(tare_text t, const char *key)
{
    int depth = 0;
    if (!memmem(t.data, (size_t)t.size, key, strlen(key))) return (tare_text){0};
    for (int64_t i = 0; i < t.size;) {
        const char c = t.data[i];
        if (c == '"') {
            const int64_t end = skip_string(t, i);
            int64_t k = end;
            while (k < t.size && text_is_space(t.data[k])) k++;
            if (depth == 1 && k < t.size && t.data[k] == ':') {
                const bool wanted = text_equal(text_slice(t, i + 1, end - 1), text_of(key), false);
                for (k++; k < t.size && text_is_space(t.data[k]);) k++;
                if (wanted) {
                    int64_t v = k, nested = 0;
                    while (v < t.size && (nested || !strchr(",}", t.data[v]))) {
                        if (t.data[v] == '"') {
                            v = skip_string(t, v);
                            continue;
                        }
                        nested += t.data[v] == '[' ? 1 : t.data[v] == ']' ? -1 : 0;
                        v++;
                    }
                    return text_trim(text_slice(t, k, v));
                }
                i = k;
                continue;
            }
            i = end;
            continue;
        }
        depth += c == '{' || c == '[' ? 1 : c == '}' || c == ']' ? -1 : 0;
        i++;
    }
    return (tare_text){0};
}
