/* Compares the hand-written matchers with PCRE2 and the same expressions on random Unicode strings;
 * Digits, PCRE2 steps, NFC's short cut. */
#define PCRE2_CODE_UNIT_WIDTH 8
#include "check.h"

#include "base/rng.h"
#include "base/str.h"
#include "base/utf8.h"
#include "data/pretokenize.h"

#include <pcre2.h>
#include <string.h>
#include <utf8proc.h>

/* PCRE2 and utf8proc follow different Unicode versions; characters on which they differ are
 * skipped. */
static bool same_class(pcre2_code *const codes[3], pcre2_match_data *m, int32_t c)
{
    char text[4];
    const int n = utf8_put(text, c);
    bool is[3];
    for (int k = 0; k < 3; k++) is[k] = pcre2_match(codes[k], (PCRE2_SPTR)text, (PCRE2_SIZE)n, 0, 0, m, NULL) > 0;
    const char *category = utf8proc_category_string(c);
    return is[0] == (category[0] == 'L') && is[1] == (category[0] == 'N');
}

static pcre2_code *compile(const char *pattern)
{
    int code;
    PCRE2_SIZE at;
    char text[1000] = "";
    /* \s is White_Space, not PCRE2's, which includes U+180E */
    for (const char *p = pattern; *p; p++) {
        const size_t n = strlen(text);
        if (p[0] == '\\' && (p[1] == 's' || p[1] == 'S'))
            snprintf(text + n, sizeof text - n, "\\%c{White_Space}", *++p == 's' ? 'p' : 'P');
        else
            snprintf(text + n, sizeof text - n, "%c", *p);
    }
    pcre2_code *c = pcre2_compile((PCRE2_SPTR)text, PCRE2_ZERO_TERMINATED, PCRE2_UTF | PCRE2_UCP, &code, &at, NULL);
    assert_non_null(c);
    pcre2_jit_compile(c, PCRE2_JIT_COMPLETE);
    return c;
}

static int32_t random_char(struct rng_key key, uint64_t counter)
{
    static const char ascii[] = "aZ sStTmMdDlLvVrReE'' '  \n\r\t09.,!?_-\f\v\"";
    static const int32_t wide[] = {0x17F, 0x212A, 0x85,  0xA0,   0x180E, 0x2028,  0x3000, 0x200B, 0xFEFF,
                                   0x301, 0x4E2D, 0x660, 0x2160, 0xBD,   0x1F600, 0xE9,   0x3A9};
    const uint64_t kind = rng_below(key, 3 * counter, 10);
    if (kind < 6) return ascii[rng_below(key, 3 * counter + 1, sizeof ascii - 1)];
    if (kind < 8) return wide[rng_below(key, 3 * counter + 1, sizeof wide / sizeof *wide)];
    const int32_t c = (int32_t)rng_below(key, 3 * counter + 1, kind < 9 ? 0x3000 : 0x20000);
    return c >= 0xD800 && c < 0xE000 ? 'x' : c;
}

static void check_matcher(const char *pattern, piece_matcher match)
{
    pcre2_code *const classes[3] = {compile("\\p{L}"), compile("\\p{N}"), compile("x")}, *code = compile(pattern);
    pcre2_match_data *m = pcre2_match_data_create_from_pattern(code, NULL);
    const PCRE2_SIZE *span = pcre2_get_ovector_pointer(m);
    const struct rng_key key = rng_key(11, RNG_DATA);
    uint64_t counter = 1;
    int64_t pieces = 0;
    for (int round = 0; round < 20000; round++) {
        char text[200];
        int n = 0;
        const int length = 1 + (int)rng_below(key, 3 * counter + 2, 24);
        for (int i = 0; i < length; i++) {
            const int32_t c = random_char(key, counter++);
            if (c < 0x80 || same_class(classes, m, c)) n += utf8_put(text + n, c);
        }
        const unsigned char *p = (const unsigned char *)text, *end = p + n;
        for (int64_t at = 0; at < n; pieces++) {
            assert_true(pcre2_match(code, p, (PCRE2_SIZE)n, (PCRE2_SIZE)at, 0, m, NULL) > 0);
            assert_int_equal(span[0], at);
            const int64_t stop = match(p + at, end) - p;
            if (stop != (int64_t)span[1])
                fail_msg("round %d: at %lld to %lld, PCRE2 %zu: %.*s", round, (long long)at, (long long)stop, span[1], n, text);
            at = stop;
        }
    }
    assert_true(pieces > 100000);
    pcre2_match_data_free(m);
    pcre2_code_free(code);
    for (int k = 0; k < 3; k++) pcre2_code_free(classes[k]);
}

static void test_gpt2(void **state)
{
    (void)state;
    check_matcher(PATTERN_GPT2, pretokenize_gpt2);
}

static void test_qwen2(void **state)
{
    (void)state;
    check_matcher(PATTERN_QWEN2, pretokenize_qwen2);
}

static void test_llama3(void **state)
{
    (void)state;
    check_matcher(PATTERN_LLAMA3, pretokenize_llama3);
}

static tare_status join(void *ctx, const unsigned char *text, int64_t n, struct err *e)
{
    TRY(str_add(ctx, (const char *)text, n, e));
    return str_add(ctx, "|", 1, e);
}

static void expect_pieces(const struct split *steps, int64_t n_steps, const char *text, const char *want)
{
    struct str got = {0};
    struct err e = {0};
    const struct pretokenizer p = {steps, n_steps, join, &got, NULL};
    assert_ok(pretokenize(&p, (const unsigned char *)text, (int64_t)strlen(text), &e), &e);
    assert_string_equal(got.data, want);
    str_free(&got);
}

static void test_steps(void **state)
{
    (void)state;
    struct err e = {0};
    struct split steps[3] = {{.kind = SPLIT_DIGITS, .individual = true}};
    assert_ok(pretokenize_regex(PATTERN_GPT2, (int64_t)strlen(PATTERN_GPT2), false, "test", &steps[1], &e), &e);
    assert_int_equal(steps[1].kind, SPLIT_MATCHER);
    expect_pieces(steps, 2, "ab  12 \xC2\xBD x", "ab|  |1|2| |\xC2\xBD| x|");
    steps[0].individual = false;
    expect_pieces(steps, 1, "ab12c", "ab|12|c|");
    assert_ok(pretokenize_regex("[aeiou]+|(?=x)", 14, false, "test", &steps[2], &e), &e);
    assert_int_equal(steps[2].kind, SPLIT_REGEX);
    /* empty matches split nothing */
    expect_pieces(steps + 2, 1, "bcaaxd\xC3\xA9ozz", "bc|aa|xd\xC3\xA9|o|zz|");
    pretokenize_free(&steps[2]);
    assert_ok(pretokenize_regex("a.", 2, true, "test", &steps[2], &e), &e);
    expect_pieces(steps + 2, 1, "aba.b", "ab|a.|b|");
    pretokenize_free(&steps[2]);
    assert_int_equal(pretokenize_regex("a(", 2, false, "here", &steps[2], &e), TARE_E_UNSUPPORTED);
    assert_int_equal(strncmp(e.message, "here: ", 6), 0);
    pretokenize_free(&steps[2]);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_steps),
        cmocka_unit_test(test_gpt2),
        cmocka_unit_test(test_qwen2),
        cmocka_unit_test(test_llama3),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
