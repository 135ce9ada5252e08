/* Finds boxes and formulas, closed or open, in linear time and without recursion. */
#include "scan.h"

#include <string.h>

enum { STACK = 512 };

static void keep_span(struct span *list, int *n, struct span s)
{
    while (*n && list[*n - 1].begin >= s.begin) --*n; /* drop the spans inside it */
    if (*n == 2 * KEPT) {                             /* drop the older half */
        memcpy(list, list + KEPT, KEPT * sizeof *list);
        *n = KEPT;
    }
    list[(*n)++] = s;
}

/* ---------------------------------------------------------------- boxes */

/* Checks the first 64 bytes: few blanks precede an answer. */
static bool is_blank(tare_text t)
{
    int64_t i = 0;
    while (i < t.size && i < 64 && text_is_space(t.data[i])) i++;
    return i == t.size;
}

void find_boxes(struct scan *s)
{
    struct {
        int64_t begin, inner, depth;
    } stack[STACK];
    int64_t depth = 0, n = 0, skipped = 0;
    const tare_text t = s->t;
    s->open_box = -1;
    for (int64_t i = 0; (i = i < t.size ? after_comment(s, i) : i) < t.size; i++) {
        const char c = t.data[i];
        if (c == '\\') {
            const int64_t name = at_text(t, i, "\\boxed") ? 6 : at_text(t, i, "\\fbox") ? 5 : 0;
            if (!name) { /* \{ and \} are not braces; \\ does not start a command */
                if (i + 1 < t.size && !text_is_letter(t.data[i + 1])) i++;
                continue;
            }
            int64_t open = i + name;
            while (open < t.size && text_is_space(t.data[open])) open++;
            if (open >= t.size || t.data[open] != '{') continue;
            if (n < STACK)
                stack[n].begin = i, stack[n].inner = open + 1, stack[n].depth = depth, n++;
            else
                skipped++;
            depth++;
            i = open;
        } else if (c == '{') {
            depth++;
        } else if (c == '}') {
            if (depth > 0) depth--;
            if (n && stack[n - 1].depth == depth) {
                n--;
                /* "put it within \\boxed{}" */
                if (is_blank(text_slice(t, stack[n].inner, i))) continue;
                keep_span(s->box, &s->boxes, (struct span){stack[n].begin, i + 1, stack[n].inner, i});
            }
        }
    }
    if (n) s->open_box = stack[n - 1].begin;
}

/* ---------------------------------------------------------------- environments */

static bool opens_currency(tare_text t, int64_t open, int64_t close)
{
    int64_t k = close;
    while (k > open + 1 && text_is_space(t.data[k - 1])) k--;
    const char last = t.data[k - 1];
    const bool digit_after = close + 1 < t.size && text_is_digit(t.data[close + 1]);
    return text_is_digit(t.data[open + 1]) && (digit_after || k == open + 1 || strchr("+-*/=(,", last)) &&
           (digit_after || k < close || last != ')');
}

static bool is_cut_formula(tare_text t)
{
    t = text_trim(t);
    return t.size && !text_is_digit(t.data[0]) &&
           (memchr(t.data, '\\', (size_t)t.size) || memchr(t.data, '=', (size_t)t.size) || memchr(t.data, '^', (size_t)t.size) ||
            is_unfinished(t));
}

void find_environments(struct scan *s)
{
    const tare_text t = s->t;
    int64_t open = -1, bracket = -1;
    bool doubled = false, square = false;
    for (int64_t i = 0; (i = i < t.size ? after_comment(s, i) : i) < t.size; i++) {
        const char c = t.data[i];
        if (c == '\\' && i + 1 < t.size) {
            const char d = t.data[i + 1];
            if (d == '(' || d == '[')
                bracket = i, square = d == '[';
            else if ((d == ')' || d == ']') && bracket >= 0 && square == (d == ']')) {
                if (!is_blank(text_slice(t, bracket + 2, i)))
                    keep_span(s->env, &s->envs, (struct span){bracket, i + 2, bracket + 2, i});
                bracket = -1;
            }
            i++;
        } else if (c == '$') {
            const bool two = i + 1 < t.size && t.data[i + 1] == '$';
            if (open < 0) {
                open = i, doubled = two, i += two;
            } else if (doubled) {
                if (!two) continue;
                if (!is_blank(text_slice(t, open + 2, i))) keep_span(s->env, &s->envs, (struct span){open, i + 2, open + 2, i});
                open = -1, i++;
            } else if (i == open + 1 || opens_currency(t, open, i)) {
                open = i;
            } else {
                keep_span(s->env, &s->envs, (struct span){open, i + 1, open + 1, i});
                open = -1;
            }
        } else if (c == '\n' && open >= 0 && !doubled) {
            open = -1;
        }
    }
    /* $5 is money, $x = is not finished */
    if (bracket >= 0)
        s->open_formula = bracket;
    else if (open >= 0 && is_cut_formula(text_slice(t, open + 1 + doubled, t.size)))
        s->open_formula = open;
}
