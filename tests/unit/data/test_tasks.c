/* The tasks of the ladder: every answer solves its question, its pattern lists exactly the right
 * answers, and rows are equal on every machine. */
#include "check.h"

#include "base/fs.h"
#include "base/json.h"
#include "data/builtin.h"
#include "data/dataset.h"

#include <inttypes.h>
#include <string.h>

static void load(const char *source, struct dataset *d)
{
    struct err e = {0};
    assert_ok(dataset_load(source, 0, d, &e), &e);
}

static void text_of(tare_text t, char out[64])
{
    assert_true(t.size < 64);
    snprintf(out, 64, "%.*s", (int)t.size, t.data ? t.data : "");
}

/* Evaluates "3+7-2" with each of the digits "2,3,7" used once. -999: not of that form. */
static int value_of(const char *text, const char *digits)
{
    char left[8] = {0};
    int sum = 0, n = 0;
    for (const char *d = digits; *d && *d != '='; d++)
        if (*d != ',') left[n++] = *d;
    for (int k = 0; k < 3; k++) {
        const char sign = k ? *text++ : '+', digit = *text++;
        char *at = digit ? strchr(left, digit) : NULL;
        if (!at || (sign != '+' && sign != '-')) return -999;
        *at = ' ';
        sum += sign == '+' ? digit - '0' : '0' - digit;
    }
    return *text ? -999 : sum;
}

static void pattern_of(const struct row *r, char out[400])
{
    struct err e = {0};
    json_t *o;
    assert_ok(json_parse(r->json.data, r->json.size, "row", &o, &e), &e);
    snprintf(out, 400, "%s", json_text_or(o, "regex", ""));
    json_decref(o);
}

static void countdown_is_solved(void **state)
{
    struct dataset d;
    (void)state;
    load("builtin:countdown/train?rows=300", &d);
    for (int64_t i = 0; i < d.n; i++) {
        char question[64], answer[64], pattern[400], *rest = NULL;
        text_of(d.rows[i].question, question);
        text_of(d.rows[i].answer, answer);
        const int target = atoi(strchr(question, '=') + 1);
        assert_int_equal(value_of(answer, question), target);
        pattern_of(&d.rows[i], pattern);
        int n = 0;
        for (char *part = strtok_r(pattern, "|", &rest); part; part = strtok_r(NULL, "|", &rest), n++) {
            char plain[64] = "", *to = plain;
            for (const char *c = part; *c; c++)
                if (*c != '[' && *c != ']') *to++ = *c;
            assert_int_equal(value_of(plain, question), target);
        }
        assert_true(n >= 1 && n <= 24);
        assert_true(builtin_crc32(question, (int64_t)strlen(question)) % 8 != 0);
    }
    dataset_free(&d);
}

static void words_are_in_order(void **state)
{
    struct dataset d;
    (void)state;
    load("builtin:rewrite/heldout", &d);
    for (int64_t i = 0; i < d.n; i++) {
        char question[64], answer[64];
        text_of(d.rows[i].question, question);
        text_of(d.rows[i].answer, answer);
        const size_t n = strlen(answer);
        assert_int_equal(strlen(question), n + 2);
        for (size_t k = 0; k + 1 < n; k++) assert_true(answer[k] <= answer[k + 1]);
        for (char c = 'a'; c <= 'c'; c++) {
            int balance = 0;
            for (const char *x = question; *x; x++) balance += *x == c;
            for (const char *x = answer; *x; x++) balance -= *x == c;
            assert_int_equal(balance, 0);
        }
        assert_true(builtin_crc32(question, (int64_t)strlen(question)) % 8 == 0);
    }
    dataset_free(&d);
}

/* All pairs of digits with the sum and no others; the arms whose code is the context modulo 8. */
static void patterns_hold_the_right_ones(void **state)
{
    struct dataset d;
    char question[64], pattern[400], pair[16];
    (void)state;
    load("builtin:answers/train?rows=200", &d);
    for (int64_t i = 0; i < d.n; i++) {
        text_of(d.rows[i].question, question);
        pattern_of(&d.rows[i], pattern);
        const int sum = atoi(question);
        int n = 1, pairs = 0;
        for (const char *c = pattern; *c; c++) n += *c == '|';
        for (int a = 0; a < 10; a++) {
            snprintf(pair, sizeof pair, "%d[+]%d", a, sum - a);
            pairs += sum - a >= 0 && sum - a < 10 && strstr(pattern, pair) != NULL;
        }
        assert_int_equal(n, sum < 10 ? sum + 1 : 19 - sum);
        assert_int_equal(pairs, n);
    }
    dataset_free(&d);
    load("builtin:bandit/heldout?rows=40", &d);
    for (int64_t i = 0; i < d.n; i++) {
        text_of(d.rows[i].question, question);
        pattern_of(&d.rows[i], pattern);
        int n = 0;
        for (const char *c = pattern + 1; *c != ']'; c++, n++) assert_int_equal(*c % 8, question[0] - '0');
        assert_true(n >= 7 && n <= 10);
    }
    dataset_free(&d);
}

/* Extracts the numbers of a question in order. */
static int numbers_of(const char *text, int out[8])
{
    int n = 0;
    while (*text && n < 8) {
        char *end;
        const long x = strtol(text, &end, 10);
        if (end == text) {
            text++;
            continue;
        }
        out[n++] = (int)x;
        text = end;
    }
    return n;
}

/* Every kind occurs; the answers follow from the numbers of the questions, also in the worked
 * examples, which repeat no question. */
static void questions_in_words_are_solved(void **state)
{
    static const char *const KINDS[] = {"after", "before", "larger", "largest", "plus10", "gain", "loss"};
    struct dataset d;
    struct err e = {0};
    int met[7] = {0};
    (void)state;
    load("builtin:words/train?rows=2000", &d);
    for (int64_t i = 0; i < d.n; i++) {
        const struct row *r = &d.rows[i];
        char answer[64], subject[64];
        json_t *turns;
        int k = 0, x[8] = {0};
        text_of(r->answer, answer);
        text_of(r->subject, subject);
        while (k < 7 && strcmp(KINDS[k], subject)) k++;
        assert_true(k < 7);
        met[k]++;
        assert_ok(json_parse(r->messages.data, r->messages.size, r->where, &turns, &e), &e);
        assert_int_equal(json_array_size(turns), 5);
        for (size_t t = 0; t < 5; t += 2) {
            const char *q = json_text_or(json_array_get(turns, t), "content", "");
            const char *said = t < 4 ? json_text_or(json_array_get(turns, t + 1), "content", "") : answer;
            assert_int_equal(numbers_of(q, x), k == 3 ? 3 : k == 0 || k == 1 ? 1 : 2);
            const int larger = x[0] > x[1] ? x[0] : x[1];
            const int right[] = {x[0] + 1, x[0] - 1, larger, larger > x[2] ? larger : x[2], x[0] + 10, x[0] + x[1], x[0] - x[1]};
            assert_int_equal(atoi(said), right[k]);
            if (t == 4) assert_true(strlen(q) == (size_t)r->question.size && !memcmp(q, r->question.data, strlen(q)));
        }
        json_decref(turns);
        assert_true(builtin_crc32(r->question.data, r->question.size) % 8 != 0);
    }
    for (int k = 0; k < 7; k++) assert_true(met[k] > 200);
    dataset_free(&d);
}

/* The bands were made with these rows; a changed row would be another task. */
static void rows_are_the_same_everywhere(void **state)
{
    static const struct {
        const char *source;
        uint64_t hash;
    } SETS[] = {{"builtin:rewrite/train", 0xc8a15d119b2da78b},
                {"builtin:rewrite/heldout", 0x5c086857e4cba955},
                {"builtin:rewrite/warm", 0xe4b282fcf4723a0d},
                {"builtin:countdown/train", 0x88557fee850e9a54},
                {"builtin:countdown/heldout", 0xb0353ae5d5608b72},
                {"builtin:countdown/warm", 0x12bd9e22cb5a73aa},
                {"builtin:answers/train", 0x59730aa0dd358483},
                {"builtin:answers/heldout", 0x255d357e67e558b6},
                {"builtin:answers/warm", 0xed41468ba14ea6e5},
                {"builtin:bandit/train", 0xf610db019de43b16},
                {"builtin:bandit/heldout?rows=64", 0x3caa9fd483a7e5d7},
                {"builtin:bandit/warm", 0x7f6d82c0451f8dd0},
                {"builtin:words/train", 0x3d602b2ec8b22227},
                {"builtin:words/heldout", 0x728f26beb56899fd}};
    (void)state;
    for (size_t i = 0; i < sizeof SETS / sizeof *SETS; i++) {
        struct dataset d;
        load(SETS[i].source, &d);
        if (d.hash != SETS[i].hash) printf("{\"%s\", 0x%016" PRIx64 "},\n", SETS[i].source, d.hash);
        assert_true(d.hash == SETS[i].hash);
        dataset_free(&d);
    }
}

static void wrong_names_are_refused(void **state)
{
    struct dataset d;
    struct err e = {0};
    (void)state;
    assert_int_equal(dataset_load("builtin:rewrite/nothing", 0, &d, &e), TARE_E_NOT_FOUND);
    assert_non_null(strstr(e.message, "builtin:rewrite/train, .../heldout or .../warm"));
    assert_true(dataset_load("builtin:bandit/train?rows=0", 0, &d, &e) != TARE_OK);
    assert_int_equal(dataset_load("builtin:rewrites/train", 0, &d, &e), TARE_E_NOT_FOUND);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(countdown_is_solved),          cmocka_unit_test(words_are_in_order),
        cmocka_unit_test(patterns_hold_the_right_ones), cmocka_unit_test(questions_in_words_are_solved),
        cmocka_unit_test(rows_are_the_same_everywhere), cmocka_unit_test(wrong_names_are_refused)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
