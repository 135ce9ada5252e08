#include "ifeval.h"

#define PCRE2_CODE_UNIT_WIDTH 8
#include <math.h>
#include <pcre2.h>
#include <string.h>

enum { MATCH_LIMIT = 1000000, HEAP_KIB = 65536 };

static tare_status missing_argument(const struct ifeval_case *c, const char *key, const char *what, tare_error *error)
{
    return tare_fail(error, TARE_E_CONFIG, "the row's kwargs for %s need \"%s\", %s", c->id, key, what);
}

/* The published data set has its numbers as floats. */
tare_status arg_whole(const struct ifeval_case *c, const char *key, int64_t *out, tare_error *error)
{
    const json_t *v = json_object_get(c->args, key);
    const double x = json_number_value(v);
    if (!json_is_number(v) || x < 0 || x > 1e9 || x > floor(x))
        return missing_argument(c, key, "a whole number of 0 or more", error);
    *out = (int64_t)x;
    return TARE_OK;
}

tare_status arg_text(const struct ifeval_case *c, const char *key, tare_text *out, tare_error *error)
{
    const json_t *v = json_object_get(c->args, key);
    if (!json_is_string(v) || !json_string_length(v)) return missing_argument(c, key, "a text", error);
    *out = (tare_text){json_string_value(v), (int64_t)json_string_length(v)};
    return TARE_OK;
}

tare_status arg_compare(const struct ifeval_case *c, int64_t n, const char *key, const char *relation, bool *out, tare_error *error)
{
    const char *r = json_string_value(json_object_get(c->args, relation));
    int64_t bound = 0;
    const tare_status s = arg_whole(c, key, &bound, error);
    if (s) return s;
    if (!r || (strcmp(r, "less than") != 0 && strcmp(r, "at least") != 0))
        return missing_argument(c, relation, "either \"less than\" or \"at least\"", error);
    *out = *r == 'l' ? n < bound : n >= bound;
    return TARE_OK;
}

static void count_in(const pcre2_code *code, tare_text t, int64_t most, int64_t *n)
{
    pcre2_match_context *limits = pcre2_match_context_create(NULL);
    pcre2_match_data *match = pcre2_match_data_create(1, NULL);
    *n = 0;
    if (limits && match) {
        pcre2_set_match_limit(limits, MATCH_LIMIT);
        pcre2_set_heap_limit(limits, HEAP_KIB);
        for (size_t at = 0; *n < most && at <= (size_t)t.size; ++*n) {
            if (pcre2_match(code, (PCRE2_SPTR)t.data, (size_t)t.size, at, PCRE2_NO_JIT | PCRE2_NO_UTF_CHECK, match, limits) < 0)
                break;
            const size_t *span = pcre2_get_ovector_pointer(match);
            at = span[1];
            if (span[1] == span[0]) /* empty match: continue after the next character */
                for (at++; at < (size_t)t.size && ((unsigned char)t.data[at] & 0xC0) == 0x80;) at++;
        }
    }
    pcre2_match_data_free(match);
    pcre2_match_context_free(limits);
}

/* Counts the matches of a pattern. Disables PCRE2's search for the first letter: for each match,
 * version 10.42 searches for both cases of the letter, and to the end of the text if one is
 * absent. */
tare_status arg_count(const struct ifeval_case *c, const char *pattern, int64_t most, int64_t *n, tare_error *error)
{
    int code;
    size_t at;
    char message[128];
    pcre2_code *compiled = pcre2_compile((PCRE2_SPTR)pattern, PCRE2_ZERO_TERMINATED,
                                         PCRE2_UTF | PCRE2_UCP | PCRE2_CASELESS | PCRE2_NO_START_OPTIMIZE, &code, &at, NULL);
    if (!compiled) {
        pcre2_get_error_message(code, (PCRE2_UCHAR *)message, sizeof message);
        return tare_fail(error, TARE_E_CONFIG, "%s: the pattern '%.200s' cannot be read at byte %zu: %s", c->id, pattern, at + 1,
                         message);
    }
    count_in(compiled, c->text, most, n);
    pcre2_code_free(compiled);
    return TARE_OK;
}
