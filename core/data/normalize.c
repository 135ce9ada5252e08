#include "data/normalize.h"

#include "base/utf8.h"
#include "data/pretokenize.h"
#include "data/tokenizer_json.h"

#include <stdlib.h>
#include <string.h>
#include <utf8proc.h>

/* ---------------------------------------------------------------- Unicode's normal forms */

static const struct form {
    const char *name;
    int options;
} forms[] = {{"NFC", UTF8PROC_STABLE | UTF8PROC_COMPOSE},
             {"NFD", UTF8PROC_STABLE | UTF8PROC_DECOMPOSE},
             {"NFKC", UTF8PROC_STABLE | UTF8PROC_COMPOSE | UTF8PROC_COMPAT},
             {"NFKD", UTF8PROC_STABLE | UTF8PROC_DECOMPOSE | UTF8PROC_COMPAT}};

/* Returns the end of the longest prefix of p that is certainly in the normal form. For every form
 * that includes ASCII; for NFC it includes all starters that neither decompose nor compose. */
static const unsigned char *plain_until(int form, const unsigned char *p, const unsigned char *end)
{
    if (form != forms[0].options) {
        while (p < end && *p < 0x80) p++;
        return p;
    }
    while (p < end) {
        if (*p < 0xCC) { /* below U+0300 */
            p++;
            continue;
        }
        /* U+0400-U+04FF except the combining U+0480-U+0489 */
        if (*p >= 0xD0 && *p <= 0xD3 && !(*p == 0xD2 && p[1] < 0x8A)) {
            p += 2;
            continue;
        }
        const int32_t c = (*p & 0xF0) == 0xE0 ? (*p & 0x0F) << 12 | (p[1] & 0x3F) << 6 | (p[2] & 0x3F) : 0;
        if (!((c >= 0x2010 && c <= 0x2027) || (c >= 0x4E00 && c <= 0x9FFF) || (c >= 0x3041 && c <= 0x3096) ||
              (c >= 0x30A1 && c <= 0x30FA)))
            break;
        p += 3;
    }
    return p;
}

/* Characters missing from Unicode 9.0, the version by which `tokenizers` (0.23) normalizes: it
 * neither combines, composes nor decomposes them. In all forms, and in the compatibility forms. */
struct range {
    int32_t first, last;
};
static const struct range YOUNG[] = {
    {0x07FD, 0x07FD},   {0x0898, 0x089F},   {0x08CA, 0x08D3},   {0x09FE, 0x09FE},   {0x0C3C, 0x0C3C},   {0x0D3B, 0x0D3C},
    {0x0EBA, 0x0EBA},   {0x1715, 0x1715},   {0x1ABF, 0x1ACE},   {0x1DF6, 0x1DFA},   {0xA82C, 0xA82C},   {0x10D24, 0x10D27},
    {0x10EAB, 0x10EAC}, {0x10F46, 0x10F50}, {0x10F82, 0x10F85}, {0x11070, 0x11070}, {0x1133B, 0x1133B}, {0x1145E, 0x1145E},
    {0x11839, 0x1183A}, {0x11930, 0x11930}, {0x11935, 0x11935}, {0x11938, 0x11938}, {0x1193D, 0x1193E}, {0x11943, 0x11943},
    {0x119E0, 0x119E0}, {0x11A34, 0x11A34}, {0x11A47, 0x11A47}, {0x11A99, 0x11A99}, {0x11D42, 0x11D42}, {0x11D44, 0x11D45},
    {0x11D97, 0x11D97}, {0x16FF0, 0x16FF1}, {0x1E130, 0x1E136}, {0x1E2AE, 0x1E2AE}, {0x1E2EC, 0x1E2EF}};
static const struct range YOUNG_COMPAT[] = {{0x32FF, 0x32FF},   {0xA7F2, 0xA7F4},   {0xAB69, 0xAB69},   {0x10781, 0x10785},
                                            {0x10787, 0x107B0}, {0x107B2, 0x107BA}, {0x1F16C, 0x1F16C}, {0x1FBF0, 0x1FBF9}};

static bool is_among(const struct range *r, size_t n, int32_t c)
{
    for (size_t i = 0; i < n; i++)
        if (c >= r[i].first && c <= r[i].last) return true;
    return false;
}

static bool is_young(int form, int32_t c)
{
    if (c < YOUNG[0].first) return false;
    return is_among(YOUNG, sizeof YOUNG / sizeof *YOUNG, c) ||
           ((form & UTF8PROC_COMPAT) && is_among(YOUNG_COMPAT, sizeof YOUNG_COMPAT / sizeof *YOUNG_COMPAT, c));
}

static tare_status map_old(int form, const unsigned char *p, const unsigned char *end, struct str *out, struct err *e)
{
    utf8proc_uint8_t *mapped = NULL;
    if (p == end) return TARE_OK;
    const utf8proc_ssize_t size = utf8proc_map(p, end - p, &mapped, (utf8proc_option_t)form);
    if (size < 0) FAIL(e, TARE_E_INVALID, "the text cannot be normalised: %s", utf8proc_errmsg(size));
    const tare_status status = str_add(out, (const char *)mapped, size, e);
    free(mapped);
    return status;
}

/* Characters newer than Unicode 9.0 are kept; they separate the text before and after them. */
static tare_status map_stretch(int form, const unsigned char *p, const unsigned char *end, struct str *out, struct err *e)
{
    for (const unsigned char *q = p, *begin = p; q < end;) {
        begin = q;
        if (!is_young(form, utf8_next(&q))) continue;
        TRY(map_old(form, p, begin, out, e));
        TRY(str_add(out, (const char *)begin, q - begin, e));
        p = q;
    }
    return map_old(form, p, end, out, e);
}

/* Passes only the text that plain_until excludes through utf8proc: from the preceding character,
 * which may compose, to the next ASCII character, which never composes with the text before it. */
static tare_status to_form(int form, tare_text text, struct str *out, struct err *e)
{
    const unsigned char *p = (const unsigned char *)text.data, *end = p + text.size;
    while (p < end) {
        const unsigned char *stop = plain_until(form, p, end);
        if (stop < end)
            while (stop > p && (*--stop & 0xC0) == 0x80) continue;
        TRY(str_add(out, (const char *)p, stop - p, e));
        p = stop;
        if (p == end) break;
        stop = plain_until(form, p, end);
        while (stop < end && *stop >= 0x80) stop++;
        TRY(map_stretch(form, p, stop, out, e));
        p = stop;
    }
    return TARE_OK;
}

/* ---------------------------------------------------------------- the other steps */

struct replacing {
    const struct str *with;
    struct str *out;
};

static tare_status put_part(void *ctx, const unsigned char *text, int64_t n, bool match, struct err *e)
{
    const struct replacing *r = ctx;
    if (match) return str_add(r->out, r->with->data, r->with->size, e);
    return str_add(r->out, (const char *)text, n, e);
}

static tare_status strip_spaces(const struct normalizer_step *s, tare_text text, struct str *out, struct err *e)
{
    const unsigned char *begin = (const unsigned char *)text.data, *end = begin + text.size;
    while (s->left && begin < end) {
        const unsigned char *p = begin;
        if (!pretokenize_is_space(utf8_next(&p))) break;
        begin = p;
    }
    while (s->right && begin < end) {
        const unsigned char *last = end - 1;
        while (last > begin && (*last & 0xC0) == 0x80) last--;
        const unsigned char *p = last;
        if (!pretokenize_is_space(utf8_next(&p))) break;
        end = last;
    }
    return str_add(out, (const char *)begin, end - begin, e);
}

static tare_status apply_step(const struct normalizer_step *s, tare_text text, struct str *out, struct err *e)
{
    switch (s->kind) {
    case NORMALIZE_PREPEND:
        if (text.size) TRY(str_add(out, s->text.data, s->text.size, e));
        return str_add(out, text.data, text.size, e);
    case NORMALIZE_REPLACE:
        return regex_each(&s->regex, (const unsigned char *)text.data, text.size, put_part, &(struct replacing){&s->text, out}, e);
    case NORMALIZE_STRIP:
        return strip_spaces(s, text, out, e);
    default:
        return to_form(s->form, text, out, e);
    }
}

bool normalizer_keeps(const struct normalizer *z, const unsigned char *text, int64_t n)
{
    bool keeps = true;
    for (int64_t i = 0; keeps && i < z->n; i++)
        keeps = z->steps[i].kind == NORMALIZE_UNICODE && plain_until(z->steps[i].form, text, text + n) == text + n;
    return keeps;
}

/* Limits on growth: a file could exhaust memory with consecutive steps that each multiply the text.
 * NFKC turns one character into at most 18. */
enum { MOST_GROWTH = 64, MOST_SMALL = 1 << 20 };

tare_status normalizer_apply(const struct normalizer *z, const unsigned char *text, int64_t n, struct str *out, struct err *e)
{
    OWNED(str_free) struct str now = {0};
    OWNED(str_free) struct str next = {0};
    TRY(str_add(&now, (const char *)text, n, e));
    for (int64_t i = 0; i < z->n; i++) {
        str_clear(&next);
        TRY(str_reserve(&next, now.size, e));
        TRY(apply_step(&z->steps[i], (tare_text){now.data, now.size}, &next, e));
        if (next.size > MOST_SMALL && next.size / MOST_GROWTH > n)
            FAIL(
                e, TARE_E_INVALID,
                "tokenizer.json: its normalizer expands a text to %lld bytes from %lld (step %lld); at most %d times as many are allowed",
                (long long)next.size, (long long)n, (long long)i + 1, MOST_GROWTH);
        const struct str made = next;
        next = now;
        now = made;
    }
    return str_add(out, now.data, now.size, e);
}

void normalizer_free(struct normalizer *z)
{
    for (int64_t i = 0; i < z->n; i++) {
        str_free(&z->steps[i].text);
        regex_free(&z->steps[i].regex);
    }
    z->n = 0;
}

/* ---------------------------------------------------------------- from tokenizer.json */

static tare_status read_replace(struct normalizer_step *s, const json_t *p, const char *where, struct err *e)
{
    static const char *const keys[] = {"type", "pattern", "content", NULL};
    tare_text content, pattern;
    bool literal;
    TRY(tokenizer_json_only_keys(p, keys, where, e));
    TRY(json_get_text(p, "content", where, &content, e));
    TRY(tokenizer_json_pattern(p, where, &pattern, &literal, e));
    s->kind = NORMALIZE_REPLACE;
    TRY(str_add(&s->text, content.data, content.size, e));
    return regex_compile(pattern.data, pattern.size, literal, where, &s->regex, e);
}

static tare_status read_prepend(struct normalizer_step *s, const json_t *p, const char *where, struct err *e)
{
    static const char *const keys[] = {"type", "prepend", NULL};
    tare_text prepend;
    TRY(tokenizer_json_only_keys(p, keys, where, e));
    TRY(json_get_text(p, "prepend", where, &prepend, e));
    s->kind = NORMALIZE_PREPEND;
    return str_add(&s->text, prepend.data, prepend.size, e);
}

static tare_status read_strip(struct normalizer_step *s, const json_t *p, const char *where, struct err *e)
{
    static const char *const keys[] = {"type", "strip_left", "strip_right", NULL};
    TRY(tokenizer_json_only_keys(p, keys, where, e));
    *s = (struct normalizer_step){
        .kind = NORMALIZE_STRIP, .left = json_bool_or(p, "strip_left", 0), .right = json_bool_or(p, "strip_right", 0)};
    return TARE_OK;
}

static tare_status read_step(struct normalizer_step *s, const json_t *p, const char *where, struct err *e)
{
    const char *type = tokenizer_json_type(p);
    for (size_t k = 0; k < sizeof forms / sizeof *forms; k++)
        if (!strcmp(type, forms[k].name)) {
            s->form = forms[k].options;
            return TARE_OK;
        }
    if (!strcmp(type, "Prepend")) return read_prepend(s, p, where, e);
    if (!strcmp(type, "Replace")) return read_replace(s, p, where, e);
    if (!strcmp(type, "Strip")) return read_strip(s, p, where, e);
    FAIL(e, TARE_E_UNSUPPORTED, "%s: type \"%.60s\" is not supported; use NFC, NFD, NFKC, NFKD, Prepend, Replace or Strip", where,
         type);
}

tare_status normalizer_read(struct normalizer *z, const json_t *json, const char *where, struct err *e)
{
    const json_t *p;
    for (size_t i = 0; json && (p = tokenizer_json_part(json, "normalizers", i)); i++) {
        char place[600];
        snprintf(place, sizeof place, "%.500s: normalizer[%zu]", where, i);
        if (z->n == MAX_NORMALIZERS)
            FAIL(e, TARE_E_UNSUPPORTED, "%s: more than %d steps are not supported", place, MAX_NORMALIZERS);
        TRY(read_step(&z->steps[z->n++], p, place, e));
    }
    return TARE_OK;
}
