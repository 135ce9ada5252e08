/* regex: the completion matches a pattern.
 *
 * reward 1  if  the pattern matches (with `group`: and that group's text equals the answer) else 0;
 * `absent` inverts it
 *
 * Patterns are those of PCRE2 with UTF-8; a leading (?i), (?m) or (?s) ignores case, lets ^ and $
 * match at lines, or lets . match newlines. The text is what follows the last </think>, unless
 * `thought` is on. Invalid UTF-8 in it matches nothing. The search is limited by counted steps and
 * not by a clock, without PCRE2's JIT compiler, so a verdict is the same on every machine; a search
 * that reaches the limit gets the verdict timeout. Verdicts: correct; wrong; no_answer (the text is
 * empty); timeout.
 */
#include "common/text.h"
#include "common/verifier.h"

#define PCRE2_CODE_UNIT_WIDTH 8
#include <jansson.h>
#include <pcre2.h>
#include <stdlib.h>
#include <string.h>

enum { P_PATTERN, P_FIELD, P_GROUP, P_WHOLE, P_ABSENT, P_THOUGHT, P_LIMIT, P_OPENED, N_PARAMS };
enum { HEAP_KIB = 65536 };

static const tare_param PARAMS[N_PARAMS] = {
    [P_PATTERN] = TARE_STRING_PARAM("pattern", "", "the pattern; empty: each row has its own, in `field`", 0),
    [P_FIELD] = TARE_STRING_PARAM("field", "regex", "the row's field that holds its pattern", 0),
    [P_GROUP] = TARE_STRING_PARAM(
        "group", "",
        "name or number of a group of the pattern whose text, blanks cut, has to be the row's answer; empty: a match is enough", 0),
    [P_WHOLE] = TARE_BOOL_PARAM("whole", "false", "the pattern has to match the whole text, blanks at both ends cut", 0),
    [P_ABSENT] = TARE_BOOL_PARAM("absent", "false", "reward 1 where the pattern is not found", 0),
    [P_OPENED] = OPENED_PARAM,
    [P_THOUGHT] = TARE_BOOL_PARAM("thought", "false", "look at the thought as well", 0),
    [P_LIMIT] = TARE_INT_PARAM("limit", "1000000", "most steps of one search (PCRE2's match limit)", 1, 1e9, 0),
};

struct regex {
    const tare_value *values;
    pcre2_code *code; /* of `pattern`; NULL: each row has one */
    pcre2_match_context *limits;
};

static pcre2_code *compile_pattern(const struct regex *r, tare_text pattern, tare_error *error)
{
    int code;
    size_t at;
    char message[200];
    const uint32_t whole = r->values[P_WHOLE].i ? PCRE2_ANCHORED | PCRE2_ENDANCHORED : 0;
    pcre2_code *c = pcre2_compile((PCRE2_SPTR)pattern.data, (size_t)pattern.size,
                                  PCRE2_UTF | PCRE2_UCP | PCRE2_MATCH_INVALID_UTF | whole, &code, &at, NULL);
    if (c) return c;
    pcre2_get_error_message(code, (PCRE2_UCHAR *)message, sizeof message);
    tare_fail(error, TARE_E_CONFIG, "the pattern '%.*s' cannot be read at byte %zu: %s",
              (int)(pattern.size < 200 ? pattern.size : 200), pattern.data, at + 1, message);
    return NULL;
}

/* Returns the group's number; -1: the pattern has no such group. */
static int group_of(const struct regex *r, const pcre2_code *code)
{
    const char *name = r->values[P_GROUP].s;
    uint32_t count = 0;
    pcre2_pattern_info(code, PCRE2_INFO_CAPTURECOUNT, &count);
    if (!*name) return 0;
    if (name[strspn(name, "0123456789")]) {
        const int number = pcre2_substring_number_from_name(code, (PCRE2_SPTR)name);
        return number > 0 ? number : -1;
    }
    return strlen(name) < 6 && (uint32_t)atoi(name) <= count ? atoi(name) : -1;
}

static tare_status check_group(const struct regex *r, const pcre2_code *code, tare_error *error)
{
    if (group_of(r, code) >= 0) return TARE_OK;
    return tare_fail(error, TARE_E_CONFIG, "group = %s: the pattern has no group, or more than one, of that name or number",
                     r->values[P_GROUP].s);
}

static void destroy(void *self)
{
    struct regex *r = self;
    pcre2_code_free(r->code);
    pcre2_match_context_free(r->limits);
    free(r);
}

static tare_status create(const tare_setup *setup, void **self, tare_error *error)
{
    const tare_value *values = setup->values;
    struct regex *r = calloc(1, sizeof *r);
    if (!r) return tare_fail(error, TARE_E_NOMEM, "no memory");
    r->values = values;
    tare_status s = TARE_OK;
    if (values[P_ABSENT].i && *values[P_GROUP].s)
        s = tare_fail(error, TARE_E_CONFIG, "absent = true and group = %s exclude each other: what is absent has no text",
                      values[P_GROUP].s);
    if (!s && !(r->limits = pcre2_match_context_create(NULL))) s = tare_fail(error, TARE_E_NOMEM, "no memory");
    if (!s) {
        pcre2_set_match_limit(r->limits, (uint32_t)values[P_LIMIT].i);
        pcre2_set_heap_limit(r->limits, HEAP_KIB);
    }
    if (!s && *values[P_PATTERN].s && !(r->code = compile_pattern(r, text_of(values[P_PATTERN].s), error))) s = error->code;
    if (!s && r->code) s = check_group(r, r->code, error);
    if (s)
        destroy(r);
    else
        *self = r;
    return s;
}

static tare_status row_code(const struct regex *r, tare_text row, pcre2_code **out, tare_error *error)
{
    const char *key = r->values[P_FIELD].s;
    json_t *j = row.size ? json_loadb(row.data, (size_t)row.size, JSON_ALLOW_NUL, NULL) : NULL;
    const json_t *pattern = json_object_get(j, key);
    tare_status s = TARE_OK;
    if (!json_is_string(pattern))
        s = tare_fail(error, TARE_E_CONFIG,
                      "the row has no text in its field \"%s\"; set pattern, or field to where the rows have theirs", key);
    else if (!(*out = compile_pattern(r, (tare_text){json_string_value(pattern), (int64_t)json_string_length(pattern)}, error)))
        s = error->code;
    else
        s = check_group(r, *out, error);
    json_decref(j);
    return s;
}

static tare_status decide_verdict(const struct regex *r, tare_text found, tare_text answer, tare_verdict *v)
{
    const bool compared = *r->values[P_GROUP].s;
    if (compared && !text_equal(found, text_trim(answer), false))
        return verdict_set(v, TARE_VERDICT_WRONG, 0, found, "the group's text is not the answer");
    if (r->values[P_ABSENT].i) return verdict_set(v, TARE_VERDICT_WRONG, 0, found, "the pattern is found");
    return verdict_set(v, TARE_VERDICT_CORRECT, 1, found, compared ? "the group's text is the answer" : "the pattern is found");
}

static tare_status search_text(const struct regex *r, const pcre2_code *code, const tare_completion *a, tare_verdict *v,
                               tare_error *error)
{
    const tare_text t = text_trim(r->values[P_THOUGHT].i ? a->text : text_after_thought(a->text, r->values[P_OPENED].i)),
                    none = {"", 0};
    pcre2_match_data *match = pcre2_match_data_create_from_pattern(code, NULL);
    if (!match) return tare_fail(error, TARE_E_NOMEM, "no memory");
    const int got = pcre2_match(code, (PCRE2_SPTR)(t.size ? t.data : ""), (size_t)t.size, 0, PCRE2_NO_JIT, match, r->limits);
    tare_status s;
    if (got >= 0) {
        const size_t *span = pcre2_get_ovector_pointer(match);
        const int g = group_of(r, code);
        const bool set = span[2 * g] != PCRE2_UNSET;
        s = decide_verdict(r, set ? text_trim(text_slice(t, (int64_t)span[2 * g], (int64_t)span[2 * g + 1])) : none, a->answer, v);
    } else if (got != PCRE2_ERROR_NOMATCH) {
        s = verdict_set(v, TARE_VERDICT_TIMED_OUT, 0, none, "the search reached its limit");
    } else if (r->values[P_ABSENT].i) {
        s = verdict_set(v, TARE_VERDICT_CORRECT, 1, none, "the pattern is not found");
    } else {
        s = verdict_set(v, t.size ? TARE_VERDICT_WRONG : TARE_VERDICT_NO_ANSWER, 0, none, "the pattern is not found");
    }
    pcre2_match_data_free(match);
    return s;
}

static tare_status verify_answer(const struct regex *r, const tare_completion *a, tare_verdict *v, tare_error *error)
{
    pcre2_code *own = NULL;
    tare_status s = r->code ? TARE_OK : row_code(r, a->row, &own, error);
    if (!s) s = search_text(r, r->code ? r->code : own, a, v, error);
    pcre2_code_free(own);
    return s;
}

static uint32_t uses(const tare_value *values)
{
    return TARE_USES_ROW | (*values[P_GROUP].s ? TARE_USES_ANSWER : 0u);
}

VERIFIER("regex", "a pattern is found in the completion, or a group of it is the answer", verify_answer)
