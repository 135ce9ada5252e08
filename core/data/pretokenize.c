#define PCRE2_CODE_UNIT_WIDTH 8
#include "data/pretokenize.h"

#include "base/str.h"
#include "base/utf8.h"

#include <pcre2.h>
#include <string.h>
#include <utf8proc.h>

#define CL100K(DIGITS)                                                                                                             \
    "(?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\\r\\n\\p{L}\\p{N}]?\\p{L}+|" DIGITS                                                           \
    "| ?[^\\s\\p{L}\\p{N}]+[\\r\\n]*|\\s*[\\r\\n]+|\\s+(?!\\S)|\\s+"

const char PATTERN_GPT2[] = "'s|'t|'re|'ve|'m|'ll|'d| ?\\p{L}+| ?\\p{N}+| ?[^\\s\\p{L}\\p{N}]+|\\s+(?!\\S)|\\s+";
const char PATTERN_QWEN2[] = CL100K("\\p{N}");
const char PATTERN_LLAMA3[] = CL100K("\\p{N}{1,3}");

/* ---------------------------------------------------------------- characters */

enum { OTHER, LETTER, NUMBER, SPACE, NEWLINE, END }; /* NEWLINE: \r and \n, which are \s too */

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

/* Class of the character at p, whose end goes to *next. */
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

/* 's 't 'm 'd 're 've 'll after the apostrophe at p; p if there is none. fold: any case, and U+017F counts as s. */
static const unsigned char *contraction(const unsigned char *p, const unsigned char *end, bool fold)
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

/* \s+(?!\S)|\s+ at p, which is a space: the run, without its last character when text follows. */
static const unsigned char *blanks(const unsigned char *p, const unsigned char *end, bool newlines_first)
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

const unsigned char *match_gpt2(const unsigned char *p, const unsigned char *end)
{
    if (*p == '\'') {
        const unsigned char *stop = contraction(p, end, false);
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
    return blanks(p, end, false);
}

static const unsigned char *match_cl100k(const unsigned char *p, const unsigned char *end, int digits)
{
    if (*p == '\'') {
        const unsigned char *stop = contraction(p, end, true);
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
    if (class != NEWLINE && follows == LETTER) return run_of(LETTER, after, end); /* [^\r\n\p{L}\p{N}]?\p{L}+ */
    if (class == OTHER || (*p == ' ' && follows == OTHER)) {
        p = run_of(OTHER, next, end);
        return run_of(NEWLINE, p, end);
    }
    return blanks(p, end, true);
}

const unsigned char *match_qwen2(const unsigned char *p, const unsigned char *end)
{
    return match_cl100k(p, end, 1);
}

const unsigned char *match_llama3(const unsigned char *p, const unsigned char *end)
{
    return match_cl100k(p, end, 3);
}

/* ---------------------------------------------------------------- other expressions */

/* PCRE2's \s under UCP takes in U+180E; \p{White_Space} is what the ecosystem's regex engines mean by \s. */
static tare_status white_space(const char *pattern, int64_t n, struct str *out, struct err *e)
{
    for (int64_t i = 0; i < n; i++) {
        const bool escape = pattern[i] == '\\' && i + 1 < n;
        if (escape && (pattern[i + 1] == 's' || pattern[i + 1] == 'S'))
            TRY(str_add(out, pattern[i + 1] == 's' ? "\\p{White_Space}" : "\\P{White_Space}", -1, e));
        else
            TRY(str_add(out, pattern + i, escape ? 2 : 1, e));
        i += escape;
    }
    return TARE_OK;
}

static tare_status compile(const char *pattern, int64_t n, bool literal, const char *where, struct split *out, struct err *e)
{
    OWNED(str_free) struct str text = {0};
    const uint32_t options = PCRE2_UTF | (literal ? PCRE2_LITERAL : PCRE2_UCP);
    TRY(literal ? str_add(&text, pattern, n, e) : white_space(pattern, n, &text, e));
    int code;
    PCRE2_SIZE at;
    out->code = pcre2_compile((PCRE2_SPTR)text.data, (PCRE2_SIZE)text.size, options, &code, &at, NULL);
    if (!out->code) {
        PCRE2_UCHAR message[160] = {0};
        pcre2_get_error_message(code, message, sizeof message);
        FAIL(e, TARE_E_UNSUPPORTED, "%s: the expression \"%.*s\" cannot be compiled: %s (at byte %zu)", where,
             (int)(n < 300 ? n : 300), pattern, (const char *)message, (size_t)at);
    }
    pcre2_jit_compile(out->code, PCRE2_JIT_COMPLETE); /* without it the interpreter runs: slower, the same matches */
    return TARE_OK;
}

tare_status split_regex(const char *pattern, int64_t n, bool literal, const char *where, struct split *out, struct err *e)
{
    static const struct {
        const char *pattern;
        piece_matcher match;
    } known[] = {{PATTERN_GPT2, match_gpt2}, {PATTERN_QWEN2, match_qwen2}, {PATTERN_LLAMA3, match_llama3}};
    *out = (struct split){0};
    for (size_t i = 0; !literal && i < sizeof known / sizeof *known; i++)
        if ((int64_t)strlen(known[i].pattern) == n && !memcmp(known[i].pattern, pattern, (size_t)n)) {
            out->match = known[i].match;
            return TARE_OK;
        }
    if (!n) FAIL(e, TARE_E_INVALID, "%s: the pattern is empty", where);
    out->kind = SPLIT_PCRE;
    return compile(pattern, n, literal, where, out, e);
}

void split_free(struct split *s)
{
    pcre2_code_free(s->code);
    *s = (struct split){0};
}

/* ---------------------------------------------------------------- steps */

static tare_status run_steps(const struct pretokenizer *w, int64_t step, const unsigned char *text, int64_t n, struct err *e);

static tare_status run_pcre(const struct pretokenizer *w, int64_t step, const unsigned char *text, int64_t n, struct err *e)
{
    const pcre2_code *code = w->steps[step].code;
    pcre2_match_data *match = pcre2_match_data_create_from_pattern(code, NULL);
    if (!match) FAIL(e, TARE_E_NOMEM, "no memory to match a pre-tokenizer pattern");
    tare_status status = TARE_OK;
    const PCRE2_SIZE *span = pcre2_get_ovector_pointer(match);
    int64_t done = 0, at = 0; /* [done, at) has been searched without a match */
    while (!status && at < n) {
        const int found = pcre2_match(code, text, (PCRE2_SIZE)n, (PCRE2_SIZE)at, PCRE2_NO_UTF_CHECK, match, NULL);
        if (found == PCRE2_ERROR_NOMATCH) break;
        if (found < 0) {
            status = err_set(e, TARE_E_RANGE, __FILE__, __LINE__,
                             "the pre-tokenizer's pattern gave up on a text of %lld bytes (PCRE2 error %d)", (long long)n, found);
            break;
        }
        const int64_t begin = (int64_t)span[0], stop = (int64_t)span[1];
        if (stop <= begin) { /* an empty match cuts nothing off */
            at = (begin > at ? begin : at) + 1;
            while (at < n && (text[at] & 0xC0) == 0x80) at++;
            continue;
        }
        if (begin > done) status = run_steps(w, step + 1, text + done, begin - done, e);
        if (!status) status = run_steps(w, step + 1, text + begin, stop - begin, e);
        done = at = stop;
    }
    pcre2_match_data_free(match);
    if (!status && done < n) status = run_steps(w, step + 1, text + done, n - done, e);
    return status;
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

static tare_status run_steps(const struct pretokenizer *w, int64_t step, const unsigned char *text, int64_t n, struct err *e)
{
    if (step == w->n_steps) return w->sink(w->ctx, text, n, e);
    const struct split *s = &w->steps[step];
    if (s->kind == SPLIT_PCRE) return run_pcre(w, step, text, n, e);
    if (s->kind == SPLIT_DIGITS) return run_digits(w, step, text, n, e);
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
