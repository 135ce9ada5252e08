#include "data/pretokenize.h"

#include "base/str.h"
#include "base/utf8.h"

#include <string.h>
#include <utf8proc.h>

#define CL100K(DIGITS)                                                                                                             \
    "(?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\\r\\n\\p{L}\\p{N}]?\\p{L}+|" DIGITS                                                           \
    "| ?[^\\s\\p{L}\\p{N}]+[\\r\\n]*|\\s*[\\r\\n]+|\\s+(?!\\S)|\\s+"

const char PATTERN_GPT2[] = "'s|'t|'re|'ve|'m|'ll|'d| ?\\p{L}+| ?\\p{N}+| ?[^\\s\\p{L}\\p{N}]+|\\s+(?!\\S)|\\s+";
const char PATTERN_QWEN2[] = CL100K("\\p{N}");
const char PATTERN_LLAMA3[] = CL100K("\\p{N}{1,3}");

/* ---------------------------------------------------------------- characters */

enum { OTHER, LETTER, NUMBER, SPACE, NEWLINE, END }; /* NEWLINE: \r and \n, which \s also matches */

static const unsigned char ascii_class[128] = {
    ['\t'] = SPACE, ['\v'] = SPACE, ['\f'] = SPACE, [' '] = SPACE,  ['\n'] = NEWLINE, ['\r'] = NEWLINE, ['0'] = NUMBER,
    ['1'] = NUMBER, ['2'] = NUMBER, ['3'] = NUMBER, ['4'] = NUMBER, ['5'] = NUMBER,   ['6'] = NUMBER,   ['7'] = NUMBER,
    ['8'] = NUMBER, ['9'] = NUMBER,
#define L2(C) [C] = LETTER, [(C) + 32] = LETTER
    L2('A'),        L2('B'),        L2('C'),        L2('D'),        L2('E'),          L2('F'),          L2('G'),
    L2('H'),        L2('I'),        L2('J'),        L2('K'),        L2('L'),          L2('M'),          L2('N'),
    L2('O'),        L2('P'),        L2('Q'),        L2('R'),        L2('S'),          L2('T'),          L2('U'),
    L2('V'),        L2('W'),        L2('X'),        L2('Y'),        L2('Z'),
#undef L2
};

static int wide_class(int32_t c)
{
    switch (utf8proc_category(c)) {
    case UTF8PROC_CATEGORY_LU:
    case UTF8PROC_CATEGORY_LL:
    case UTF8PROC_CATEGORY_LT:
    case UTF8PROC_CATEGORY_LM:
    case UTF8PROC_CATEGORY_LO:
        return LETTER;
    case UTF8PROC_CATEGORY_ND:
    case UTF8PROC_CATEGORY_NL:
    case UTF8PROC_CATEGORY_NO:
        return NUMBER;
    case UTF8PROC_CATEGORY_ZS:
    case UTF8PROC_CATEGORY_ZL:
    case UTF8PROC_CATEGORY_ZP:
        return SPACE;
    default:
        return c == 0x85 ? SPACE : OTHER;
    }
}

bool pretokenize_is_space(int32_t c)
{
    const int class = c < 0x80 ? ascii_class[c] : wide_class(c);
    return class == SPACE || class == NEWLINE;
}

/* Returns the class of the character at p; *next is its end. */
static inline int class_at(const unsigned char *p, const unsigned char *end, const unsigned char **next)
{
    if (p >= end) return *next = p, END;
    if (*p < 0x80) return *next = p + 1, ascii_class[*p];
    *next = p;
    return wide_class(utf8_next(next));
}

static const unsigned char *run_of(int class, const unsigned char *p, const unsigned char *end)
{
    const unsigned char *next;
    while (class_at(p, end, &next) == class) p = next;
    return p;
}

/* ---------------------------------------------------------------- the three expressions */

/* Matches 's 't 'm 'd 're 've 'll after the apostrophe at p; returns p if nothing matches. fold:
 * ignores case, and U+017F counts as s. */
static const unsigned char *match_contraction(const unsigned char *p, const unsigned char *end, bool fold)
{
    if (end - p < 2) return p;
    const unsigned char a = fold ? (unsigned char)(p[1] | 0x20) : p[1];
    const bool letter = p[1] < 0x80 && ascii_class[p[1]] == LETTER;
    if (letter && (a == 's' || a == 't' || a == 'm' || a == 'd')) return p + 2;
    if (end - p < 3) return p;
    if (fold && p[1] == 0xC5 && p[2] == 0xBF) return p + 3;
    if (!letter || p[2] >= 0x80 || ascii_class[p[2]] != LETTER) return p;
    const unsigned char b = fold ? (unsigned char)(p[2] | 0x20) : p[2];
    return ((a == 'r' || a == 'v') && b == 'e') || (a == 'l' && b == 'l') ? p + 3 : p;
}

/* Matches \s+(?!\S)|\s+ at p, which is a space: the run, without its last character if text
 * follows. */
static const unsigned char *match_blanks(const unsigned char *p, const unsigned char *end, bool newlines_first)
{
    const unsigned char *at = p, *next, *last = p, *newline = NULL;
    int class;
    while ((class = class_at(at, end, &next)) == SPACE || class == NEWLINE) {
        last = at;
        at = next;
        if (class == NEWLINE) newline = at;
    }
    if (newlines_first && newline) return newline; /* \s*[\r\n]+ */
    return class != END && last > p ? last : at;
}

const unsigned char *pretokenize_gpt2(const unsigned char *p, const unsigned char *end)
{
    if (*p == '\'') {
        const unsigned char *stop = match_contraction(p, end, false);
        if (stop > p) return stop;
    }
    const unsigned char *next;
    int class = class_at(p, end, &next);
    if (*p == ' ') {
        const unsigned char *after;
        const int follows = class_at(next, end, &after);
        if (follows <= NUMBER) {
            class = follows;
            next = after;
        }
    }
    if (class <= NUMBER) return run_of(class, next, end);
    return match_blanks(p, end, false);
}

static const unsigned char *match_cl100k(const unsigned char *p, const unsigned char *end, int digits)
{
    if (*p == '\'') {
        const unsigned char *stop = match_contraction(p, end, true);
        if (stop > p) return stop;
    }
    const unsigned char *next, *after;
    const int class = class_at(p, end, &next);
    if (class == LETTER) return run_of(LETTER, next, end);
    if (class == NUMBER) {
        while (--digits && class_at(next, end, &after) == NUMBER) next = after;
        return next;
    }
    const int follows = class_at(next, end, &after);
    /* [^\r
     * \p{L}\p{N}]?\p{L}+ */
    if (class != NEWLINE && follows == LETTER) return run_of(LETTER, after, end);
    if (class == OTHER || (*p == ' ' && follows == OTHER)) {
        p = run_of(OTHER, next, end);
        return run_of(NEWLINE, p, end);
    }
    return match_blanks(p, end, true);
}

const unsigned char *pretokenize_qwen2(const unsigned char *p, const unsigned char *end)
{
    return match_cl100k(p, end, 1);
}

const unsigned char *pretokenize_llama3(const unsigned char *p, const unsigned char *end)
{
    return match_cl100k(p, end, 3);
}

/* ---------------------------------------------------------------- other expressions */

tare_status pretokenize_regex(const char *pattern, int64_t n, bool literal, const char *where, struct split *out, struct err *e)
{
    static const struct {
        const char *pattern;
        piece_matcher match;
    } known[] = {{PATTERN_GPT2, pretokenize_gpt2}, {PATTERN_QWEN2, pretokenize_qwen2}, {PATTERN_LLAMA3, pretokenize_llama3}};
    *out = (struct split){0};
    for (size_t i = 0; !literal && i < sizeof known / sizeof *known; i++)
        if ((int64_t)strlen(known[i].pattern) == n && !memcmp(known[i].pattern, pattern, (size_t)n)) {
            out->match = known[i].match;
            return TARE_OK;
        }
    out->kind = SPLIT_REGEX;
    return regex_compile(pattern, n, literal, where, &out->regex, e);
}

void pretokenize_free(struct split *s)
{
    regex_free(&s->regex);
    *s = (struct split){0};
}

/* ---------------------------------------------------------------- steps */

static tare_status run_steps(const struct pretokenizer *w, int64_t step, const unsigned char *text, int64_t n, struct err *e);

struct cutting { /* splits by one regular expression */
    const struct pretokenizer *w;
    int64_t step;
    const unsigned char *held; /* start of a piece that may continue */
    int64_t n_held;
};

static tare_status let_go(struct cutting *c, struct err *e)
{
    const int64_t n = c->n_held;
    c->n_held = 0;
    return n ? run_steps(c->w, c->step + 1, c->held, n, e) : TARE_OK;
}

static tare_status cut_match(void *ctx, const unsigned char *text, int64_t n, bool match, struct err *e)
{
    struct cutting *c = ctx;
    const enum split_behavior behavior = c->w->steps[c->step].behavior;
    if (match && behavior == SPLIT_REMOVED) return TARE_OK;
    if (behavior == SPLIT_ISOLATED || behavior == SPLIT_REMOVED) return run_steps(c->w, c->step + 1, text, n, e);
    if (match && behavior == SPLIT_WITH_NEXT) TRY(let_go(c, e));
    if (!c->n_held) c->held = text;
    c->n_held += n;
    return match && behavior == SPLIT_WITH_PREVIOUS ? let_go(c, e) : TARE_OK;
}

static tare_status run_regex(const struct pretokenizer *w, int64_t step, const unsigned char *text, int64_t n, struct err *e)
{
    struct cutting c = {.w = w, .step = step};
    TRY(regex_each(&w->steps[step].regex, text, n, cut_match, &c, e));
    return let_go(&c, e);
}

static tare_status run_digits(const struct pretokenizer *w, int64_t step, const unsigned char *text, int64_t n, struct err *e)
{
    const bool individual = w->steps[step].individual;
    const unsigned char *p = text, *end = text + n, *next;
    while (p < end) {
        const unsigned char *begin = p;
        const bool number = class_at(p, end, &next) == NUMBER;
        for (p = next; p < end && !(number && individual); p = next)
            if ((class_at(p, end, &next) == NUMBER) != number) break;
        TRY(run_steps(w, step + 1, begin, p - begin, e));
    }
    return TARE_OK;
}

static tare_status run_white_space(const struct pretokenizer *w, int64_t step, const unsigned char *text, int64_t n, struct err *e)
{
    const unsigned char *begin = text, *end = text + n;
    for (const unsigned char *p = text, *at; p < end;) {
        at = p;
        if (!pretokenize_is_space(utf8_next(&p))) continue;
        if (at > begin) TRY(run_steps(w, step + 1, begin, at - begin, e));
        begin = p;
    }
    return end > begin ? run_steps(w, step + 1, begin, end - begin, e) : TARE_OK;
}

static bool begins_with_mark(const struct metaspace *m, const unsigned char *text, int64_t n)
{
    return n >= m->mark_size && !memcmp(text, m->mark, (size_t)m->mark_size);
}

/* Replaces each space by the mark and puts a mark in front. */
static tare_status mark_spaces(const struct pretokenizer *w, int64_t step, tare_text text, struct str *out, struct err *e)
{
    const struct metaspace *m = &w->steps[step].metaspace;
    const unsigned char *p = (const unsigned char *)text.data;
    const bool wanted = m->prefix == PREFIX_ALWAYS || (m->prefix == PREFIX_FIRST && p == w->first);
    if (wanted && *p != ' ' && !begins_with_mark(m, p, text.size)) TRY(str_add(out, m->mark, m->mark_size, e));
    for (const char *at = text.data, *end = at + text.size; at < end;) {
        const char *space = memchr(at, ' ', (size_t)(end - at));
        TRY(str_add(out, at, (space ? space : end) - at, e));
        if (space) TRY(str_add(out, m->mark, m->mark_size, e));
        at = space ? space + 1 : end;
    }
    return TARE_OK;
}

static tare_status run_marked(const struct pretokenizer *w, int64_t step, const unsigned char *text, int64_t n, struct err *e)
{
    const struct metaspace *m = &w->steps[step].metaspace;
    const unsigned char *begin = text, *end = text + n;
    for (const unsigned char *p = text; m->cut && p < end; utf8_next(&p))
        if (p > begin && begins_with_mark(m, p, end - p)) {
            TRY(run_steps(w, step + 1, begin, p - begin, e));
            begin = p;
        }
    return run_steps(w, step + 1, begin, end - begin, e);
}

static tare_status run_metaspace(const struct pretokenizer *w, int64_t step, const unsigned char *text, int64_t n, struct err *e)
{
    OWNED(str_free) struct str marked = {0};
    TRY(mark_spaces(w, step, (tare_text){(const char *)text, n}, &marked, e));
    return run_marked(w, step, (const unsigned char *)marked.data, marked.size, e);
}

static tare_status run_steps(const struct pretokenizer *w, int64_t step, const unsigned char *text, int64_t n, struct err *e)
{
    if (step == w->n_steps) return w->sink(w->ctx, text, n, e);
    const struct split *s = &w->steps[step];
    if (s->kind == SPLIT_REGEX) return run_regex(w, step, text, n, e);
    if (s->kind == SPLIT_DIGITS) return run_digits(w, step, text, n, e);
    if (s->kind == SPLIT_WHITE_SPACE) return run_white_space(w, step, text, n, e);
    if (s->kind == SPLIT_METASPACE) return run_metaspace(w, step, text, n, e);
    for (const unsigned char *p = text, *end = text + n; p < end;) {
        const unsigned char *stop = s->match(p, end);
        TRY(run_steps(w, step + 1, p, stop - p, e));
        p = stop;
    }
    return TARE_OK;
}

tare_status pretokenize(const struct pretokenizer *p, const unsigned char *text, int64_t n, struct err *e)
{
    return n ? run_steps(p, 0, text, n, e) : TARE_OK;
}
