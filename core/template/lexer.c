/* Template source -> tokens, with Jinja's rules for white space: trim_blocks, lstrip_blocks, "-"
 * and "+" at the ends of a tag. */
#include "base/utf8.h"
#include "template/internal.h"

#include <stdlib.h>
#include <string.h>

struct lexer {
    const char *p, *end, *where;
    struct arena *arena;
    struct tokens *out;
    struct err *e;
    int line;
    bool line_starting; /* only white space, or nothing, precedes p on its line */
};

#define LEX_FAIL(L, CODE, ...)                                                                                                     \
    do {                                                                                                                           \
        err_set((L)->e, (CODE), __FILE__, __LINE__, __VA_ARGS__);                                                                  \
        return err_prefix((L)->e, "%s:%d", (L)->where, (L)->line);                                                                 \
    } while (0)

static bool is_space(char c)
{
    return c == ' ' || (c >= '\t' && c <= '\r');
}

static bool starts_with(const struct lexer *l, const char *s)
{
    const size_t n = strlen(s);
    return (size_t)(l->end - l->p) >= n && !memcmp(l->p, s, n);
}

static void advance_text(struct lexer *l, int64_t n)
{
    for (int64_t i = 0; i < n; i++) l->line += l->p[i] == '\n';
    if (n) l->line_starting = l->p[n - 1] == '\n';
    l->p += n;
}

static tare_status add_token(struct lexer *l, struct token token)
{
    TRY(mem_grow((void **)&l->out->items, &l->out->capacity, l->out->n + 1, sizeof token, l->e));
    token.line = l->line;
    l->out->items[l->out->n++] = token;
    return TARE_OK;
}

/* Returns the size of a tag's end at p (mark is "}}", "%}" or "#}"), with the white space it
 * strips; 0: no tag ends here. */
static int64_t end_size(const struct lexer *l, const char *mark)
{
    const int sign = l->p < l->end && (*l->p == '-' || (*l->p == '+' && mark[0] != '}'));
    if (l->end - l->p < 2 + sign || memcmp(l->p + sign, mark, 2)) return 0;
    const char *stop = l->p + 2 + sign;
    if (sign && *l->p == '-')
        while (stop < l->end && is_space(*stop)) stop++;
    else if (!sign && mark[0] != '}' && stop < l->end && *stop == '\n') /* trim_blocks */
        stop++;
    return stop - l->p;
}

/* ---------------------------------------------------------------- inside a tag */

static int hex_digit(char c)
{
    return c >= '0' && c <= '9' ? c - '0' : c >= 'a' && c <= 'f' ? c - 'a' + 10 : c >= 'A' && c <= 'F' ? c - 'A' + 10 : -1;
}

/* Decodes the escape after a backslash, with *p at its letter. Returns the bytes written, or -1 if
 * it is malformed. */
static int decode_escape(const char **p, const char *end, char *out)
{
    static const char letters[] = "ntrabfv\\'\"", meant[] = "\n\t\r\a\b\f\v\\'\"";
    const char c = *(*p)++;
    const char *simple = strchr(letters, c);
    if (c && simple) return *out = meant[simple - letters], 1;
    if (c == '\n') return 0;
    const int digits = c == 'x' ? 2 : c == 'u' ? 4 : c == 'U' ? 8 : 0;
    int32_t code = 0;
    if (digits) {
        for (int i = 0; i < digits; i++, (*p)++) {
            const int h = *p < end ? hex_digit(**p) : -1;
            if (h < 0 || code > 0x110000) return -1;
            code = code << 4 | h;
        }
        return code > 0x10FFFF || (code >= 0xD800 && code <= 0xDFFF) ? -1 : utf8_put(out, code);
    }
    if (c >= '0' && c <= '7') {
        code = c - '0';
        for (int i = 1; i < 3 && *p < end && **p >= '0' && **p <= '7'; i++) code = code << 3 | (*(*p)++ - '0');
        return utf8_put(out, code);
    }
    return out[0] = '\\', out[1] = c, 2; /* Python keeps unknown escapes */
}

static tare_status lex_string(struct lexer *l)
{
    const char quote = *l->p, *p = l->p + 1;
    char *text;
    int64_t n = 0;
    while (p < l->end && *p != quote) p += *p == '\\' ? 2 : 1;
    if (p >= l->end) LEX_FAIL(l, TARE_E_INVALID, "a string is not closed");
    const char *stop = p;
    TRY(arena_push(l->arena, stop - l->p + 8, (void **)&text, l->e));
    for (p = l->p + 1; p < stop;) {
        if (*p != '\\') {
            text[n++] = *p++;
            continue;
        }
        p++;
        const int size = decode_escape(&p, stop, text + n);
        if (size < 0) LEX_FAIL(l, TARE_E_INVALID, "a string has a malformed escape");
        n += size;
    }
    /* truncated within a character */
    if (str_utf8_error(text, n)) LEX_FAIL(l, TARE_E_INVALID, "a string has a malformed escape");
    TRY(add_token(l, (struct token){.kind = T_STRING, .text = {text, n}}));
    advance_text(l, stop + 1 - l->p);
    return TARE_OK;
}

static bool name_char(char c, bool first)
{
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || c == '_' || (!first && c >= '0' && c <= '9');
}

/* Reads 0x1F, 0o17 or 0b11, with single underscores between digits. */
static tare_status lex_based(struct lexer *l, int base)
{
    const char *p = l->p + 2;
    int64_t x = 0;
    bool over = false;
    for (; p < l->end; p++) {
        const int digit = hex_digit(*p);
        if (*p == '_' && p + 1 < l->end && hex_digit(p[1]) >= 0) continue;
        if (digit < 0 || digit >= base) break;
        over = over || __builtin_mul_overflow(x, base, &x) || __builtin_add_overflow(x, digit, &x);
    }
    if (over) LEX_FAIL(l, TARE_E_RANGE, "a whole number does not fit in 64 bits");
    if (p == l->p + 2 || (p < l->end && name_char(*p, false)))
        LEX_FAIL(l, TARE_E_UNSUPPORTED, "a number of this form is not supported");
    TRY(add_token(l, (struct token){.kind = T_INT, .i = x}));
    advance_text(l, p - l->p);
    return TARE_OK;
}

static tare_status lex_number(struct lexer *l)
{
    char digits[64];
    int64_t n = 0;
    bool real = false;
    const char *p = l->p;
    for (; p < l->end && n < 60; p++) {
        const bool point = *p == '.' && !real && p + 1 < l->end && p[1] >= '0' && p[1] <= '9';
        if (!(*p >= '0' && *p <= '9') && !point && *p != '_') break;
        real |= point;
        if (*p != '_') digits[n++] = *p;
    }
    const char *after = p < l->end && (*p == 'e' || *p == 'E') ? p + 1 : p;
    if (after > p && after < l->end && (*after == '+' || *after == '-')) after++;
    if (after > p && after < l->end && *after >= '0' && *after <= '9' && n < 40) { /* an exponent */
        real = true;
        while (after < l->end && *after >= '0' && *after <= '9' && after - p < 20) after++;
        memcpy(digits + n, p, (size_t)(after - p));
        n += after - p;
        p = after;
    }
    digits[n] = 0;
    struct token t = {.kind = real ? T_FLOAT : T_INT};
    if (p < l->end && ((*p >= 'a' && *p <= 'z') || (*p >= 'A' && *p <= 'Z') || (*p >= '0' && *p <= '9')))
        LEX_FAIL(l, TARE_E_UNSUPPORTED, "a number of this form is not supported");
    const tare_status status = real ? str_to_double(digits, &t.f, l->e) : str_to_int(digits, &t.i, l->e);
    if (status) return err_prefix(l->e, "%s:%d", l->where, l->line);
    TRY(add_token(l, t));
    advance_text(l, p - l->p);
    return TARE_OK;
}

static tare_status lex_name(struct lexer *l)
{
    const char *p = l->p;
    while (p < l->end && name_char(*p, p == l->p)) p++;
    char *text;
    TRY(arena_strdup(l->arena, l->p, p - l->p, &text, l->e));
    TRY(add_token(l, (struct token){.kind = T_NAME, .text = {text, p - l->p}}));
    advance_text(l, p - l->p);
    return TARE_OK;
}

static tare_status lex_operator(struct lexer *l)
{
    static const char *const operators[] = {"**", "//", "==", "!=", "<=", ">=", "+", "-", "/", "*", "%", "~", "[",
                                            "]",  "(",  ")",  "{",  "}",  "<",  ">", "=", ".", ":", "|", ",", ";"};
    for (size_t i = 0; i < sizeof operators / sizeof *operators; i++)
        if (starts_with(l, operators[i])) {
            const int64_t n = (int64_t)strlen(operators[i]);
            TRY(add_token(l, (struct token){.kind = T_OP, .text = {operators[i], n}}));
            advance_text(l, n);
            return TARE_OK;
        }
    LEX_FAIL(l, TARE_E_INVALID, "unexpected character '%.1s' (code %d)", *l->p >= ' ' && *l->p <= '~' ? l->p : "?",
             (unsigned char)*l->p);
}

/* Returns the base that a number after 0 has by its letter, or 0. */
static int based(const struct lexer *l)
{
    const char c = l->p + 1 < l->end ? l->p[1] : 0;
    return c == 'x' || c == 'X' ? 16 : c == 'o' || c == 'O' ? 8 : c == 'b' || c == 'B' ? 2 : 0;
}

/* Reads tokens up to and including the tag's end. */
static tare_status lex_inside(struct lexer *l, const char *mark, enum token_kind end_kind)
{
    int open = 0; /* open brackets: }} inside a dict is two braces */
    for (;;) {
        while (l->p < l->end && is_space(*l->p)) advance_text(l, 1);
        if (l->p >= l->end) LEX_FAIL(l, TARE_E_INVALID, "a tag is not closed with %s", mark);
        const int64_t n = open ? 0 : end_size(l, mark);
        if (n) {
            TRY(add_token(l, (struct token){.kind = end_kind}));
            advance_text(l, n);
            return TARE_OK;
        }
        const char c = *l->p;
        open += c == '(' || c == '[' || c == '{';
        open -= (c == ')' || c == ']' || c == '}') && open > 0;
        if (c == '"' || c == '\'')
            TRY(lex_string(l));
        else if (c == '0' && based(l))
            TRY(lex_based(l, based(l)));
        else if (c >= '0' && c <= '9')
            TRY(lex_number(l));
        else if (name_char(c, true))
            TRY(lex_name(l));
        else
            TRY(lex_operator(l));
    }
}

/* ---------------------------------------------------------------- text between tags */

static tare_status lex_comment(struct lexer *l)
{
    for (; l->p < l->end; advance_text(l, 1)) {
        const int64_t n = end_size(l, "#}");
        if (!n) continue;
        advance_text(l, n);
        return TARE_OK;
    }
    LEX_FAIL(l, TARE_E_INVALID, "a comment is not closed with #}");
}

/* Reads text up to the tag that opens at `open` (or the end), without the white space that the tag
 * strips. */
static tare_status lex_text(struct lexer *l, const char *open)
{
    const char *stop = open, sign = open + 2 < l->end ? open[2] : 0;
    if (open < l->end && sign == '-') {
        while (stop > l->p && is_space(stop[-1])) stop--;
    } else if (open < l->end && sign != '+' && open[1] != '{') { /* lstrip_blocks */
        const char *p = open;
        while (p > l->p && is_space(p[-1]) && p[-1] != '\n') p--;
        if (p > l->p ? p[-1] == '\n' : l->line_starting) stop = p;
    }
    if (stop > l->p) {
        char *text;
        TRY(arena_strdup(l->arena, l->p, stop - l->p, &text, l->e));
        TRY(add_token(l, (struct token){.kind = T_TEXT, .text = {text, stop - l->p}}));
    }
    advance_text(l, open - l->p);
    return TARE_OK;
}

/* Returns the size of a tag that has only this word, up to its "%}" with a sign; 0: another tag. */
static int64_t word_tag(const struct lexer *l, const char *open, const char *word)
{
    const char *p = open + 2;
    const size_t n = strlen(word);
    p += p < l->end && (*p == '-' || *p == '+');
    while (p < l->end && is_space(*p)) p++;
    if ((size_t)(l->end - p) < n || memcmp(p, word, n)) return 0;
    for (p += n; p < l->end && is_space(*p);) p++;
    const bool sign = p < l->end && (*p == '-' || *p == '+');
    return l->end - p >= 2 + sign && !memcmp(p + sign, "%}", 2) ? p - open : 0;
}

/* Reads {% raw %}...{% endraw %}, from behind the first word: the text as it is. As in jinja2, the
 * newline after {% raw %} stays. */
static tare_status lex_raw(struct lexer *l)
{
    const bool minus = *l->p == '-';
    advance_text(l, 2 + (minus || *l->p == '+'));
    while (minus && l->p < l->end && is_space(*l->p)) advance_text(l, 1);
    const char *open = l->p;
    while (open < l->end && !(*open == '{' && open + 1 < l->end && open[1] == '%' && word_tag(l, open, "endraw"))) open++;
    if (open >= l->end) LEX_FAIL(l, TARE_E_INVALID, "the template ends before endraw");
    TRY(lex_text(l, open));
    advance_text(l, word_tag(l, l->p, "endraw"));
    advance_text(l, end_size(l, "%}"));
    return TARE_OK;
}

static tare_status lex_all(struct lexer *l)
{
    while (l->p < l->end) {
        const char *open = l->p;
        while (open < l->end && !(*open == '{' && open + 1 < l->end && (open[1] == '{' || open[1] == '%' || open[1] == '#')))
            open++;
        TRY(lex_text(l, open));
        if (l->p >= l->end) break;
        const char kind = l->p[1];
        const int64_t raw = kind == '%' ? word_tag(l, l->p, "raw") : 0;
        if (raw) {
            advance_text(l, raw);
            TRY(lex_raw(l));
            continue;
        }
        const bool sign = l->p + 2 < l->end && (l->p[2] == '-' || l->p[2] == '+');
        if (kind != '#') TRY(add_token(l, (struct token){.kind = kind == '{' ? T_OUT : T_TAG}));
        advance_text(l, 2 + sign);
        /* a comment that opens at the very end is text, as in jinja2 */
        if (kind == '#' && l->p < l->end)
            TRY(lex_comment(l));
        else if (kind == '#')
            break;
        else
            TRY(lex_inside(l, kind == '{' ? "}}" : "%}", kind == '{' ? T_OUT_END : T_TAG_END));
    }
    return add_token(l, (struct token){.kind = T_END});
}

tare_status template_lex(const char *source, int64_t n, const char *where, struct arena *arena, struct tokens *out, struct err *e)
{
    char *text;
    int64_t size = 0;
    TRY(arena_push_raw(arena, n + 1, (void **)&text, e));
    for (int64_t i = 0; i < n; i++) { /* \r\n and \r are newlines */
        if (source[i] == '\r' && i + 1 < n && source[i + 1] == '\n') continue;
        text[size++] = source[i] == '\r' ? '\n' : source[i];
    }
    if (size && text[size - 1] == '\n') size--;
    struct lexer l = {
        .p = text, .end = text + size, .where = where, .arena = arena, .out = out, .e = e, .line = 1, .line_starting = true};
    return lex_all(&l);
}
