#define PCRE2_CODE_UNIT_WIDTH 8
#include "data/regex.h"

#include "base/str.h"

#include <pcre2.h>
#include <stdio.h>

/* PCRE2's \s under UCP includes U+180E; other regex engines of the ecosystem match
 * \p{White_Space}. */
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

tare_status regex_compile(const char *pattern, int64_t n, bool literal, const char *where, struct regex *out, struct err *e)
{
    OWNED(str_free) struct str text = {0};
    const uint32_t options = PCRE2_UTF | (literal ? PCRE2_LITERAL : PCRE2_UCP);
    if (!n) FAIL(e, TARE_E_INVALID, "%s: the pattern is empty", where);
    TRY(literal ? str_add(&text, pattern, n, e) : white_space(pattern, n, &text, e));
    snprintf(out->where, sizeof out->where, "%.255s", where);
    int code;
    PCRE2_SIZE at;
    out->code = pcre2_compile((PCRE2_SPTR)text.data, (PCRE2_SIZE)text.size, options, &code, &at, NULL);
    if (!out->code) {
        PCRE2_UCHAR message[160] = {0};
        pcre2_get_error_message(code, message, sizeof message);
        FAIL(e, TARE_E_UNSUPPORTED, "%s: the expression \"%.*s\" cannot be compiled: %s (at byte %zu)", where,
             (int)(n < 300 ? n : 300), pattern, (const char *)message, (size_t)at);
    }
    /* without JIT the interpreter runs: slower, same matches */
    pcre2_jit_compile(out->code, PCRE2_JIT_COMPLETE);
    return TARE_OK;
}

void regex_free(struct regex *r)
{
    pcre2_code_free(r->code);
    *r = (struct regex){0};
}

static void match_free(pcre2_match_data **match)
{
    pcre2_match_data_free(*match);
}

/* Names the pattern and the text, because neither the row nor the model is known here. */
static tare_status refuse_text(const struct regex *r, const unsigned char *text, int64_t n, int found, struct err *e)
{
    PCRE2_UCHAR why[160] = {0};
    int shown = n < 40 ? (int)n : 40;
    while (shown > 0 && shown < n && (text[shown] & 0xC0) == 0x80) shown--;
    pcre2_get_error_message(found, why, sizeof why);
    FAIL(
        e, TARE_E_RANGE,
        "%s: the tokenizer's pattern failed on a text of %lld bytes that begins with '%.*s': %s; use another tokenizer, or remove the text",
        r->where, (long long)n, shown, (const char *)text, (const char *)why);
}

tare_status regex_each(const struct regex *r, const unsigned char *text, int64_t n, regex_sink sink, void *ctx, struct err *e)
{
    OWNED(match_free) pcre2_match_data *match = pcre2_match_data_create_from_pattern(r->code, NULL);
    if (!match) FAIL(e, TARE_E_NOMEM, "no memory to match a tokenizer's pattern");
    const PCRE2_SIZE *span = pcre2_get_ovector_pointer(match);
    int64_t done = 0, at = 0; /* [done, at) was searched without a match */
    while (at < n) {
        const int found = pcre2_match(r->code, text, (PCRE2_SIZE)n, (PCRE2_SIZE)at, PCRE2_NO_UTF_CHECK, match, NULL);
        if (found == PCRE2_ERROR_NOMATCH) break;
        if (found < 0) return refuse_text(r, text, n, found, e);
        const int64_t begin = (int64_t)span[0], stop = (int64_t)span[1];
        if (stop <= begin) { /* an empty match splits nothing */
            at = (begin > at ? begin : at) + 1;
            while (at < n && (text[at] & 0xC0) == 0x80) at++;
            continue;
        }
        if (begin > done) TRY(sink(ctx, text + done, begin - done, false, e));
        TRY(sink(ctx, text + begin, stop - begin, true, e));
        done = at = stop;
    }
    return done < n ? sink(ctx, text + done, n - done, false, e) : TARE_OK;
}
