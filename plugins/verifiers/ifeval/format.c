/* Checks the layout of a response: paragraphs, bullets, sections, titles, quotation marks, JSON.
 * Each check is linear in its text. */
#include "ifeval.h"

#include <stdlib.h>
#include <string.h>

static int64_t find_text(tare_text t, int64_t from, const char *what)
{
    const int64_t at = text_find(text_slice(t, from, t.size), what);
    return at < 0 ? t.size : from + at;
}

static bool is_blank(tare_text t)
{
    return !uni_trim(t).size;
}

/* Counts the parts between dividers; blank parts are allowed only at the ends. Returns the number
 * of parts that are not blank; -1: a blank part in the middle. */
static int64_t count_parts(tare_text t, const char *divider, tare_text *first, tare_text *second)
{
    int64_t n = 0;
    for (int64_t at = 0, end; at <= t.size; at = end + (int64_t)strlen(divider)) {
        end = find_text(t, at, divider);
        const tare_text piece = uni_trim(text_slice(t, at, end));
        if (piece.size) {
            if (n == 0) *first = piece;
            if (n == 1) *second = piece;
            n++;
        } else if (at && end < t.size) {
            return -1;
        }
    }
    return n;
}

tare_status check_paragraphs(const struct ifeval_case *c, bool *followed, tare_error *error)
{
    tare_text first, second;
    int64_t wanted;
    const tare_status s = arg_whole(c, "num_paragraphs", &wanted, error);
    if (!s) *followed = count_parts(c->text, "***", &first, &second) == wanted;
    return s;
}

tare_status check_two_responses(const struct ifeval_case *c, bool *followed, tare_error *error)
{
    tare_text first = {0}, second = {0};
    (void)error;
    *followed = count_parts(c->text, "******", &first, &second) == 2 && !text_equal(first, second, false);
    return TARE_OK;
}

/* Returns the first word of a paragraph: without leading quotation marks, up to the first
 * punctuation mark. */
static tare_text first_word(tare_text paragraph)
{
    int64_t end = 0, begin = 0;
    for (int64_t at = 0; at < paragraph.size; end = at)
        if (char_is_space(char_next(paragraph, &at))) break;
    while (begin < end && paragraph.data[begin] == '\'') begin++;
    while (begin < end && paragraph.data[begin] == '"') begin++;
    for (int64_t i = begin; i < end; i++)
        if (strchr(".,?!'\"", paragraph.data[i]) && paragraph.data[i]) end = i;
    return text_slice(paragraph, begin, end);
}

static bool equal_lower(tare_text a, tare_text b)
{
    const tare_text x = uni_lower(a), y = uni_lower(b);
    const bool same = x.data && y.data && text_equal(x, y, false);
    free((void *)(uintptr_t)x.data);
    free((void *)(uintptr_t)y.data);
    return same;
}

tare_status check_first_word(const struct ifeval_case *c, bool *followed, tare_error *error)
{
    int64_t wanted = 0, nth = 0, n = 0, number = 0;
    tare_text word, paragraph = {0};
    tare_status s = arg_whole(c, "num_paragraphs", &wanted, error);
    if (!s) s = arg_whole(c, "nth_paragraph", &nth, error);
    if (!s) s = arg_text(c, "first_word", &word, error);
    if (s) return s;
    if (nth < 1 || nth > wanted)
        return tare_fail(error, TARE_E_CONFIG,
                         "the row's kwargs for %s: nth_paragraph = %lld lies outside of num_paragraphs = %lld", c->id,
                         (long long)nth, (long long)wanted);
    for (int64_t at = 0, end; at <= c->text.size; at = end + 2) {
        end = find_text(c->text, at, "\n\n");
        const tare_text piece = uni_trim(text_slice(c->text, at, end));
        n += piece.size > 0;
        if (++number == nth) paragraph = piece; /* blank paragraphs count here, but not in n */
    }
    *followed = n == wanted && nth <= n && paragraph.size && equal_lower(first_word(paragraph), word);
    return TARE_OK;
}

tare_status check_placeholders(const struct ifeval_case *c, bool *followed, tare_error *error)
{
    const tare_text t = c->text;
    int64_t n = 0, least;
    const tare_status s = arg_whole(c, "num_placeholders", &least, error);
    for (int64_t at = 0; at < t.size && !s;) { /* "[", then "]" on the same line */
        const int64_t open = find_text(t, at, "[");
        int64_t end = open;
        while (end < t.size && t.data[end] != ']' && t.data[end] != '\n') end++;
        n += end < t.size && t.data[end] == ']';
        at = end + 1;
    }
    if (!s) *followed = n >= least;
    return s;
}

/* Counts bullets: lines that begin with "-", or with "*" and a character other than "*". That
 * character may be the line's end; the next line then belongs to the bullet. */
tare_status check_bullets(const struct ifeval_case *c, bool *followed, tare_error *error)
{
    const tare_text t = c->text;
    int64_t n = 0, wanted, stars_from = 0;
    const tare_status s = arg_whole(c, "num_bullets", &wanted, error);
    if (s) return s;
    for (int64_t at = 0; at < t.size;) {
        const int64_t end = find_text(t, at, "\n"), line = at;
        int64_t first = at, next = at;
        while (next < end && char_is_space(char_next(t, &next))) first = next;
        const char mark = first < end ? t.data[first] : 0;
        n += mark == '-';
        if (mark == '*' && line >= stars_from && first + 1 < t.size && t.data[first + 1] != '*') {
            n++;
            if (first + 1 == end) stars_from = find_text(t, end + 1, "\n") + 1;
        }
        at = end + 1;
    }
    *followed = n == wanted;
    return TARE_OK;
}

/* Counts the non-blank parts between marks (one or two stars) in a line. */
static int64_t count_marked(tare_text t, int64_t stars)
{
    int64_t n = 0;
    for (int64_t at = 0; at < t.size;) {
        const int64_t open = find_text(t, at, stars == 1 ? "*" : "**");
        int64_t end = open + stars;
        while (end < t.size && t.data[end] != '*' && t.data[end] != '\n') end++;
        const bool closed = end + stars <= t.size && !memcmp(t.data + end, "**", (size_t)stars);
        if (closed) n += !is_blank(text_slice(t, open + stars, end));
        at = closed ? end + stars : open + 1;
    }
    return n;
}

tare_status check_highlights(const struct ifeval_case *c, bool *followed, tare_error *error)
{
    int64_t least;
    const tare_status s = arg_whole(c, "num_highlights", &least, error);
    if (!s) *followed = count_marked(c->text, 1) + count_marked(c->text, 2) >= least;
    return s;
}

tare_status check_sections(const struct ifeval_case *c, bool *followed, tare_error *error)
{
    char pattern[300];
    int64_t least, n;
    tare_text word;
    tare_status s = arg_whole(c, "num_sections", &least, error);
    if (!s) s = arg_text(c, "section_spliter", &word, error);
    if (s) return s;
    word = uni_trim(word);
    if (word.size > 200) return tare_fail(error, TARE_E_CONFIG, "%s: section_spliter is longer than 200 bytes", c->id);
    snprintf(pattern, sizeof pattern, "(?-i)\\s?%.*s\\s?\\d+\\s?", (int)word.size, word.data);
    s = arg_count(c, pattern, least, &n, error);
    if (!s) *followed = n >= least;
    return s;
}

/* Finds a title: in a line, from the first "<<" to the last ">>" after at least one character, with
 * text between that is not blank. */
tare_status check_title(const struct ifeval_case *c, bool *followed, tare_error *error)
{
    const tare_text t = c->text;
    (void)error;
    *followed = false;
    for (int64_t at = 0, end; at < t.size && !*followed; at = end + 1) {
        end = find_text(t, at, "\n");
        const tare_text line = text_slice(t, at, end);
        int64_t begin = text_find(line, "<<"), last = text_find_last(line, ">>");
        if (begin < 0 || last < begin + 3) continue;
        while (begin < last && line.data[begin] == '<') begin++;
        while (last > begin && line.data[last - 1] == '>') last--;
        *followed = !is_blank(text_slice(line, begin, last));
    }
    return TARE_OK;
}

tare_status check_quotation(const struct ifeval_case *c, bool *followed, tare_error *error)
{
    const tare_text t = uni_trim(c->text);
    (void)error;
    *followed = t.size > 1 && t.data[0] == '"' && t.data[t.size - 1] == '"';
    return TARE_OK;
}
