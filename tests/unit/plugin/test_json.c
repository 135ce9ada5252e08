/* The JSON reader of the SDK (tare/json.h): values, strings with escapes, and damaged texts. */
#include "check.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <tare/json.h>

static tare_text view(const char *text)
{
    return (tare_text){text, (int64_t)strlen(text)};
}

static void find__gives_the_first_member_with_the_key(void **state)
{
    (void)state;
    const tare_text row = view(" {\"a\": {\"level\": 1}, \"le\\u0076el\" : 2.5e1 , \"level\":3,\"list\":[1,\"]\",{}]} ");
    tare_text value;
    double x = 0;
    assert_true(tare_json_find(row, "level", &value));
    assert_true(tare_json_number(value, &x));
    assert_true(x == 25);
    assert_true(tare_json_find(row, "list", &value));
    assert_int_equal(value.size, 10);
    assert_false(tare_json_number(value, &x));
    assert_false(tare_json_find(row, "lev", &value));
    assert_false(tare_json_find(row, "levels", &value));
    assert_false(tare_json_find(value, "level", &value)); /* an array */
    assert_false(tare_json_find((tare_text){NULL, 0}, "level", &value));
}

static void next__visits_every_element(void **state)
{
    (void)state;
    struct tare_json_items items = tare_json_begin(view("[ 1 , -2.5,3e2 ]"));
    const double expected[] = {1, -2.5, 300};
    int n = 0;
    for (double x = 0; tare_json_next(&items); n++) {
        assert_true(tare_json_number(items.value, &x));
        assert_true(x == expected[n]);
        assert_int_equal(items.key.size, 0);
    }
    assert_int_equal(n, 3);
    assert_false(tare_json_next(&items));
    items = tare_json_begin(view("{\"x\":true,\"y\":{\"z\":null}}"));
    assert_true(tare_json_next(&items));
    assert_true(tare_json_equals(items.key, "x"));
    assert_true(tare_json_next(&items));
    assert_true(tare_json_equals(items.key, "y"));
    assert_int_equal(items.value.size, 10);
    assert_false(tare_json_next(&items));
    for (const char *const *t = (const char *const[]){"[]", "{ }", "1", "", "[1,2", NULL}; *t; t++) {
        items = tare_json_begin(view(*t));
        assert_false(tare_json_next(&items));
    }
}

static void text__decodes_escapes(void **state)
{
    (void)state;
    const tare_text value = view("\"a\\n\\\"\\/\\u00e9\\u20ac\\ud83d\\ude00\\ud83dx\\u0000\"");
    static const char EXPECTED[] = "a\n\"/\xc3\xa9\xe2\x82\xac\xf0\x9f\x98\x80\xef\xbf\xbdx";
    char out[64];
    const int64_t n = (int64_t)sizeof EXPECTED; /* the NUL at the end is \u0000 */
    assert_int_equal(tare_json_text(value, NULL, 0), n);
    assert_int_equal(tare_json_text(value, out, sizeof out), n);
    assert_memory_equal(out, EXPECTED, sizeof EXPECTED);
    memset(out, 'z', sizeof out);
    assert_int_equal(tare_json_text(value, out, 5), n); /* no half of a character */
    assert_memory_equal(out, "a\n\"/z", 5);
    assert_int_equal(tare_json_text(view("12"), out, sizeof out), -1);
    assert_int_equal(tare_json_text(view("\"open"), out, sizeof out), -1);
    assert_true(tare_json_equals(view("\"\\u0061b\""), "ab"));
    assert_false(tare_json_equals(view("\"ab\""), "a"));
    assert_false(tare_json_equals(view("\"ab\""), "abc"));
}

static void damaged__texts_are_not_values(void **state)
{
    (void)state;
    static const char *const BAD[] = {
        "",      "nul",     "+1",    "01",         ".5",        "1.",      "1e",          "-",       "[1,]",
        "[,1]",  "{\"a\"}", "{a:1}", "{\"a\":1,}", "{\"a\" 1}", "\"\\x\"", "\"\\u12g4\"", "\"\n\"",  "[1}",
        "{1:2}", "1 2",     "[1] x", "\"\\",       "\"\\u00",   "{\"a\":", "[[]",         "tru\xff", "\"\\u\x10\x10\x10\x10\""};
    double x = 7;
    for (size_t i = 0; i < sizeof BAD / sizeof *BAD; i++) {
        if (tare_json_valid(view(BAD[i]))) fail_msg("'%s' is valid", BAD[i]);
        assert_false(tare_json_number(view(BAD[i]), &x));
    }
    assert_false(tare_json_number(view("1e999"), &x));
    assert_true(x == 7);
    static const char *const GOOD[] = {"0", "-0.5E+3", "true", "null", " [ ] ", "{\"\":{}}", "\"\\uD800\"", "[1,[2,{\"a\":[]}]]"};
    for (size_t i = 0; i < sizeof GOOD / sizeof *GOOD; i++)
        if (!tare_json_valid(view(GOOD[i]))) fail_msg("'%s' is not valid", GOOD[i]);
}

static void deep__nesting_is_refused(void **state)
{
    (void)state;
    static char deep[2000001];
    for (int depth = TARE_JSON_DEPTH; depth <= TARE_JSON_DEPTH + 1; depth++) {
        memset(deep, '[', (size_t)depth);
        memset(deep + depth, ']', (size_t)depth);
        assert_int_equal(tare_json_valid((tare_text){deep, 2 * depth}), depth == TARE_JSON_DEPTH);
    }
    memset(deep, '[', sizeof deep);
    assert_false(tare_json_valid((tare_text){deep, sizeof deep}));
}

/* Every prefix of a text, and every text with one byte changed, in a buffer of exactly its size, so
 * that a sanitizer sees a read beyond it. */
static void hostile__texts_are_read_within_their_bounds(void **state)
{
    (void)state;
    static const char TEXT[] = "{\"a\":[1,-2.5e3,\"\\ud83d\\ude00\\n\"],\"b\":{\"c\":[true,false,null]}}";
    for (size_t size = 0; size < sizeof TEXT; size++)
        for (int byte = 0; byte < 256; byte += 3) {
            char *copy = malloc(size ? size : 1), out[8];
            assert_non_null(copy);
            memcpy(copy, TEXT, size);
            if (size) copy[size / 2] = (char)byte;
            const tare_text text = {copy, (int64_t)size};
            tare_text value = {NULL, 0};
            struct tare_json_items items = tare_json_begin(text);
            while (tare_json_next(&items)) tare_json_text(items.key, out, sizeof out);
            if (tare_json_find(text, "b", &value)) assert_true(value.data >= copy && value.data + value.size <= copy + size);
            free(copy);
        }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(find__gives_the_first_member_with_the_key),
        cmocka_unit_test(next__visits_every_element),
        cmocka_unit_test(text__decodes_escapes),
        cmocka_unit_test(damaged__texts_are_not_values),
        cmocka_unit_test(deep__nesting_is_refused),
        cmocka_unit_test(hostile__texts_are_read_within_their_bounds),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
