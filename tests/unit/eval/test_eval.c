/* Statistics of an evaluation against brute force and known values; truncated and damaged records;
 * choices, rules, buckets, overlaps. */
#include "check.h"
#include "folder.h"

#include "base/fs.h"
#include "data/choices.h"
#include "data/overlap.h"
#include "eval/eval.h"

#include <math.h>
#include <string.h>
#include <tare/verifier.h>

static const char *folder;

static int make_folder(void **state)
{
    (void)state;
    return (folder = make_test_folder("tare-eval")) ? 0 : -1;
}

static int remove_folder(void **state)
{
    (void)state;
    struct err e = {0};
    return fs_remove_tree(folder, &e) ? -1 : 0;
}

static const char *write_file(const char *name, const char *text)
{
    static char path[4][200];
    static int at;
    char *p = path[at++ % 4];
    struct err e = {0};
    snprintf(p, 200, "%s/%s", folder, name);
    assert_ok(fs_write_atomic(p, text, (int64_t)strlen(text), &e), &e);
    return p;
}

/* ---------------------------------------------------------------- statistics */

/* Returns the share of the k-subsets of n samples that contain a correct one; the first c are
 * correct. */
static double pass_by_counting(int n, int c, int k)
{
    int64_t all = 0, with = 0;
    for (unsigned set = 0; set < 1u << n; set++) {
        if (__builtin_popcount(set) != k) continue;
        all++;
        with += (set & ((1u << c) - 1)) != 0;
    }
    return (double)with / (double)all;
}

static void test_pass_at(void **state)
{
    (void)state;
    for (int n = 1; n <= 12; n++)
        for (int c = 0; c <= n; c++)
            for (int k = 1; k <= n; k++) assert_true(fabs(eval_pass_at(n, c, k) - pass_by_counting(n, c, k)) < 1e-14);
    assert_true(fabs(eval_pass_at(32, 5, 1) - 5.0 / 32) < 1e-15);
    /* exact at the ends */
    assert_true(eval_pass_at(100000, 0, 4) == 0 && eval_pass_at(4, 1, 4) == 1);
}

static void test_quantile(void **state)
{
    (void)state;
    const double x[] = {1, 2, 3, 10}; /* numpy.quantile(x, [0, 0.25, 0.5, 0.9, 1]) */
    const double q[] = {0, 0.25, 0.5, 0.9, 1}, want[] = {1, 1.75, 2.5, 7.9, 10};
    for (int i = 0; i < 5; i++) assert_true(fabs(eval_quantile(x, 4, q[i]) - want[i]) < 1e-12);
    assert_true(eval_quantile(x, 1, 0.9) == 1);
}

static void test_bootstrap(void **state)
{
    (void)state;
    enum { N = 400 };
    double x[2 * N], low[2], high[2], low2[2], high2[2];
    struct err e = {0};
    /* a share of 1/4; a constant */
    for (int i = 0; i < N; i++) x[2 * i] = i % 4 == 0, x[2 * i + 1] = 0.5;
    const struct rng_key key = rng_key(7, RNG_DATA);
    assert_ok(eval_bootstrap(&(struct eval_values){x, N, 2}, (struct eval_resampling){4000, key}, low, high, &e), &e);
    /* normal approximation: 0.25 +- 1.96 sqrt(0.25 * 0.75 / 400) */
    assert_true(fabs(low[0] - 0.2076) < 0.005 && fabs(high[0] - 0.2924) < 0.005);
    /* all equal: at most 1 - 0.025^(1/400) of the questions have another value */
    assert_true(fabs(low[1] - 0.5 * 0.99082) < 1e-5 && fabs(high[1] - (0.5 + 0.5 * 0.00918)) < 1e-5);
    assert_ok(eval_bootstrap(&(struct eval_values){x, N, 2}, (struct eval_resampling){4000, key}, low2, high2, &e), &e);
    assert_memory_equal(low, low2, sizeof low);
    assert_memory_equal(high, high2, sizeof high);
    assert_ok(eval_bootstrap(&(struct eval_values){x, N, 2}, (struct eval_resampling){4000, rng_key(8, RNG_DATA)}, low2, high2, &e),
              &e);
    assert_true(low2[0] != low[0] || high2[0] != high[0]);
    assert_ok(eval_bootstrap(&(struct eval_values){x, N, 2}, (struct eval_resampling){0, key}, low, high, &e), &e);
    assert_true(isnan(low[0]) && isnan(high[1]));
    /* none and all of ten: tables of Clopper and Pearson */
    double ends[20];
    for (int i = 0; i < 10; i++) ends[2 * i] = 0, ends[2 * i + 1] = 1;
    assert_ok(eval_bootstrap(&(struct eval_values){ends, 10, 2}, (struct eval_resampling){200, key}, low, high, &e), &e);
    assert_true(low[0] == 0 && fabs(high[0] - 0.3085) < 1e-4 && fabs(low[1] - 0.6915) < 1e-4 && high[1] == 1);
}

/* ---------------------------------------------------------------- the record */

static const char ROWS[] =
    "{\"id\":\"a\",\"question\":\"one\",\"answer\":\"1\",\"level\":10,\"subject\":\"S|x\",\"hard\":true}\n"
    "{\"id\":\"b\",\"question\":\"two\",\"answer\":\"2\",\"level\":9,\"hard\":false}\n"
    "{\"id\":\"c\",\"question\":\"three w\xC3\xB6rds\",\"answer\":\"3\",\"level\":\"Level 1\",\"hard\":\"complex\"}\n";

static char *sample_line(char *out, const char *id, int sample, const char *verdict, int length)
{
    sprintf(out,
            "{\"id\":\"%s\",\"sample\":%d,\"reward\":%d,\"verdict\":\"%s\",\"length\":%d,\"finish\":\"%s\",\"completion\":\"x\"}\n",
            id, sample, !strcmp(verdict, "correct"), verdict, length, length == 9 ? "length" : "stop");
    return out + strlen(out);
}

static void test_record(void **state)
{
    (void)state;
    struct dataset d;
    struct err e = {0};
    struct eval_sample s[6];
    struct eval_progress there;
    char text[2000], *at = text;
    assert_ok(dataset_load(write_file("rows.jsonl", ROWS), 0, &d, &e), &e);
    at = sample_line(at, "a", 0, "correct", 3);
    at = sample_line(at, "a", 1, "wrong", 9);
    const int64_t whole = at - text;
    at = sample_line(at, "b", 0, "no_answer", 4);
    assert_ok(eval_samples_read(write_file("record", text), &d, 2, s, &there, &e), &e);
    /* the question with one of two samples is repeated */
    assert_true(there.done == 1 && there.bytes == whole);
    assert_true(s[0].verdict == TARE_VERDICT_CORRECT && s[0].reward == 1 && s[0].length == 3 && !s[0].cut);
    assert_true(s[1].verdict == TARE_VERDICT_WRONG && s[1].cut);
    for (int64_t n = 0; n < at - text; n++) { /* a kill at any byte */
        char cut[2000];
        memcpy(cut, text, (size_t)n);
        cut[n] = 0;
        assert_ok(eval_samples_read(write_file("record", cut), &d, 2, s, &there, &e), &e);
        assert_int_equal(there.done, n >= whole);
        assert_int_equal(there.bytes, n >= whole ? whole : 0);
    }
    sample_line(text, "b", 0, "correct", 3); /* another file's record */
    assert_int_equal(eval_samples_read(write_file("record", text), &d, 2, s, &there, &e), TARE_E_CORRUPT);
    assert_non_null(strstr(e.message, "record:1: expected sample 0 of \"a\""));
    at = text;
    for (int q = 0; q < 4; q++) at = sample_line(at, q == 3 ? "a" : (const char *[]){"a", "b", "c"}[q], 0, "correct", 1);
    assert_int_equal(eval_samples_read(write_file("record", text), &d, 1, s, &there, &e), TARE_E_CORRUPT);
    assert_ok(eval_samples_read("/nonexistent/record", &d, 2, s, &there, &e), &e);
    assert_int_equal(there.done, 0);
    dataset_free(&d);
}

/* ---------------------------------------------------------------- the report */

static double real_of(const json_t *o, const char *key)
{
    return json_number_value(json_object_get(o, key));
}

static void test_report(void **state)
{
    (void)state;
    struct dataset d;
    struct err e = {0};
    struct config c;
    struct arena a;
    struct eval_grouping g[EVAL_GROUPINGS];
    int n;
    arena_init(&a, "test");
    const char *estimate = write_file(
        "estimate", "{\"id\":\"a\",\"pass_rate\":0.75}\n{\"id\":\"b\",\"pass_rate\":0}\n{\"id\":\"c\",\"pass_rate\":0.3}\n");
    char difficulty[300];
    snprintf(difficulty, sizeof difficulty, "eval.difficulty=%s", estimate);
    const char *overrides[] = {difficulty, "eval.complex_field=hard", "eval.samples=2", "run.dir=x"};
    assert_ok(dataset_load(write_file("rows.jsonl", ROWS), 0, &d, &e), &e);
    assert_ok(config_load(&c, NULL, overrides, 4, &e), &e);
    assert_ok(eval_groupings(&c, &d, &a, g, &n, &e), &e);
    assert_int_equal(n, 3);
    assert_string_equal(g[2].label[0], "complex Easy"); /* the bound belongs to the easier bucket */
    assert_string_equal(g[2].label[1], "standard Hardest");
    assert_string_equal(g[2].label[2], "complex Hard");
    assert_null(g[1].label[1]); /* a row without a subject */
    const struct eval_sample s[] = {{1, 10, TARE_VERDICT_CORRECT, false},  {0, 20, TARE_VERDICT_WRONG, true},
                                    {0, 1, TARE_VERDICT_NO_ANSWER, false}, {0, 2, TARE_VERDICT_WRONG, false},
                                    {1, 4, TARE_VERDICT_CORRECT, false},   {1, 5, TARE_VERDICT_CORRECT, false}};
    struct eval_report r = {
        .config = &c, .task = "t", .data = &d, .samples = s, .k = 2, .max_new_tokens = 20, .groupings = g, .n_groupings = n};
    json_t *o = NULL;
    assert_ok(eval_results(&r, &o, &e), &e);
    const json_t *pass = json_object_get(o, "pass");
    assert_int_equal(json_array_size(pass), 2);
    assert_true(fabs(real_of(json_array_get(pass, 0), "value") - 0.5) < 1e-15);
    assert_true(fabs(real_of(json_array_get(pass, 1), "value") - 2.0 / 3) < 1e-15);
    const json_t *length = json_object_get(o, "length");
    assert_true(real_of(length, "mean") == 7 && real_of(length, "median") == 4.5 && real_of(length, "max") == 20);
    assert_true(fabs(real_of(length, "p90") - 15) < 1e-12 && fabs(real_of(length, "cut") - 1.0 / 6) < 1e-15);
    const json_t *levels = json_object_get(json_array_get(json_object_get(o, "tables"), 0), "rows");
    /* numbers by value, then texts */
    assert_string_equal(json_text_or(json_array_get(levels, 0), "label", ""), "9");
    assert_string_equal(json_text_or(json_array_get(levels, 1), "label", ""), "10");
    assert_string_equal(json_text_or(json_array_get(levels, 2), "label", ""), "Level 1");
    assert_true(real_of(json_array_get(levels, 1), "accuracy") == 0.5);
    assert_true(fabs(real_of(json_array_get(levels, 1), "length_geometric") - sqrt(200)) < 1e-12);
    struct str text = {0};
    assert_ok(eval_markdown(o, &text, &e), &e);
    assert_non_null(strstr(text.data, "| pass@1 = avg@2 | 50.0 % |"));
    assert_non_null(strstr(text.data, "| S\\|x | 1 |"));
    assert_true(strstr(text.data, "standard Hardest") < strstr(text.data, "complex Easy"));
    str_clear(&text);
    assert_ok(eval_questions(&r, &text, &e), &e);
    assert_non_null(strstr(text.data, "{\"id\":\"a\",\"samples\":2,\"correct\":1,\"pass_rate\":0.5,\"length\":15.0}\n"));
    str_free(&text);
    json_decref(o);
    config_free(&c);
    dataset_free(&d);
    arena_free(&a);
}

static void test_refusals(void **state)
{
    (void)state;
    struct dataset d;
    struct err e = {0};
    struct arena a;
    struct eval_grouping g[EVAL_GROUPINGS];
    int n;
    const char *estimate = write_file("partial", "{\"id\":\"a\",\"pass_rate\":0.75}\n");
    char difficulty[300];
    snprintf(difficulty, sizeof difficulty, "eval.difficulty=%s", estimate);
    const struct {
        const char *overrides[3], *message;
    } cases[] = {
        {{difficulty, "eval.samples=1", "run.dir=x"}, "no line for \"b\""},
        {{difficulty, "eval.buckets=0.5 0.75 0.25", "run.dir=x"}, "three falling pass rates"},
        {{difficulty, "eval.buckets=0.5", "run.dir=x"}, "three falling pass rates"},
        {{difficulty, "eval.complex_field=level", "run.dir=x"}, "\"level\" is 10"},
        {{"eval.complex_field=hard", "eval.samples=1", "run.dir=x"}, "set eval.difficulty"},
        {{"eval.difficulty=/nonexistent", "eval.samples=1", "run.dir=x"}, "cannot be read"},
    };
    assert_ok(dataset_load(write_file("rows.jsonl", ROWS), 0, &d, &e), &e);
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        struct config c;
        arena_init(&a, "test");
        assert_ok(config_load(&c, NULL, cases[i].overrides, 3, &e), &e);
        assert_int_not_equal(eval_groupings(&c, &d, &a, g, &n, &e), 0);
        if (!strstr(e.message, cases[i].message)) fail_msg("case %zu: %s", i, e.message);
        config_free(&c);
        arena_free(&a);
    }
    dataset_free(&d);
}

static void test_rules(void **state)
{
    (void)state;
    const struct {
        const char *rules;
        bool want[3];
    } cases[] = {
        {"level >= 10", {true, false, false}},
        {"level<10", {false, true, false}},
        {"level != 9", {true, false, true}},
        {"length(question) = 11", {false, false, true}}, /* characters, not bytes */
        {"question ~ ^t", {false, true, true}},
        {"subject = S|x", {true, false, false}},
        {"subject != S|x", {false, false, false}}, /* a missing field satisfies nothing */
        {"# any of them\n\n  level > 9 \r\n; and\nquestion = two\n", {true, true, false}},
        {"hard = true", {true, false, false}},
    };
    const char *const bad[] = {"",        "# only a comment", "level",        "= 3",
                               "level >", "level > high",     "question ~ (", "length(question) ~ x"};
    struct dataset d;
    struct err e = {0};
    assert_ok(dataset_load(write_file("rows.jsonl", ROWS), 0, &d, &e), &e);
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        bool got[3] = {0};
        assert_ok(eval_rules(cases[i].rules, "rules", &d, got, &e), &e);
        if (memcmp(got, cases[i].want, sizeof got)) fail_msg("%s: %d %d %d", cases[i].rules, got[0], got[1], got[2]);
    }
    for (size_t i = 0; i < sizeof bad / sizeof *bad; i++) {
        bool got[3] = {0};
        if (!eval_rules(bad[i], "rules", &d, got, &e)) fail_msg("accepted: %s", bad[i]);
        assert_non_null(strstr(e.message, "rules"));
    }
    dataset_free(&d);
}

/* ---------------------------------------------------------------- data */

static void test_choices(void **state)
{
    (void)state;
    static const char rows[] =
        "{\"id\":\"p\",\"question\":\"q\",\"choices\":[\"w0\",\"w1\",\"right\",\"w3\",\"w4\"],\"answer\":\"C\",\"extra\":[1]}\n"
        "{\"id\":\"q\",\"question\":\"q\",\"choices\":[\"w0\",\"w1\",\"right\",\"w3\",\"w4\"],\"answer\":\"C\"}\n"
        "{\"id\":\"m\",\"question\":\"q\",\"choices\":[\"x\",\"y\"],\"answer\":\"B\",\"messages\":[{\"role\":\"user\",\"content\":"
        "\"A. x B. y\"}]}\n"
        "{\"id\":\"n\",\"question\":\"q\",\"answer\":\"7\"}\n";
    struct dataset d[2];
    struct err e = {0};
    struct str text = {0};
    const char *path = write_file("choices.jsonl", rows);
    int moved = 0, differ = 0;
    for (uint64_t seed = 0; seed < 20; seed++) {
        for (int i = 0; i < 2; i++) {
            assert_ok(dataset_load(path, 0, &d[i], &e), &e);
            assert_ok(choices_permute(&d[i], seed, &e), &e);
        }
        for (int64_t i = 0; i < 2; i++) {
            const struct row *r = &d[0].rows[i];
            const tare_text chosen = r->choices[r->answer.data[0] - 'A'];
            assert_true(r->answer.size == 1 && chosen.size == 5 && !memcmp(chosen.data, "right", 5));
            /* the same seed, the same order */
            assert_memory_equal(r->json.data, d[1].rows[i].json.data, (size_t)r->json.size);
            moved += r->answer.data[0] != 'C';
            struct row again;
            assert_ok(dataset_row_parse(r->json.data, r->json.size, "x:1", &d[0].arena, &again, &e),
                      &e); /* plugins see the new order */
            assert_true(again.answer.data[0] == r->answer.data[0] && !memcmp(again.choices[0].data, r->choices[0].data, 2));
        }
        /* each row has a separate order */
        differ += d[0].rows[0].answer.data[0] != d[0].rows[1].answer.data[0];
        /* its messages already show the options */
        assert_int_equal(d[0].rows[2].answer.data[0], 'B');
        assert_int_equal(d[0].rows[3].answer.data[0], '7');
        dataset_free(&d[0]), dataset_free(&d[1]);
    }
    assert_true(moved > 20 && moved < 40 && differ > 8);
    assert_ok(dataset_load(path, 0, &d[0], &e), &e);
    assert_ok(choices_render(&d[0].rows[0], &text, &e), &e);
    assert_string_equal(text.data, "\n\nA. w0\nB. w1\nC. right\nD. w3\nE. w4");
    str_clear(&text);
    assert_ok(choices_render(&d[0].rows[2], &text, &e), &e);
    assert_ok(choices_render(&d[0].rows[3], &text, &e), &e);
    assert_int_equal(text.size, 0);
    str_free(&text);
    dataset_free(&d[0]);
    assert_ok(
        dataset_load(write_file("bad.jsonl", "{\"question\":\"q\",\"choices\":[\"x\",\"y\"],\"answer\":\"C\"}"), 0, &d[0], &e), &e);
    assert_int_equal(choices_permute(&d[0], 0, &e), TARE_E_INVALID);
    assert_non_null(strstr(e.message, "bad.jsonl:1: the answer is not the letter"));
    dataset_free(&d[0]);
}

static tare_text text_of(const char *s)
{
    return (tare_text){s, (int64_t)strlen(s)};
}

/* Options that speak of their place keep it; options that only use such words move. */
static void test_places(void **state)
{
    (void)state;
    static const struct {
        const char *last; /* behind the options "2", "3" and "4" */
        int64_t movable;
    } cases[] = {{"All of the above", 3},
                 {"None of the above.", 3},
                 {"none of these", 3},
                 {"Both of the above", 3},
                 {"Either of the above", 3},
                 {"All the above are true", 3},
                 {"None of the other answers", 3},
                 {"Todas las anteriores", 3},
                 {"\xE4\xBB\xA5\xE4\xB8\x8A\xE9\x83\xBD\xE6\x98\xAF", 3},
                 {"Both A and B", 0},
                 {"Neither A nor B", 0},
                 {"A or B", 0},
                 {"Both (A) and (B)", 0},
                 {"All except C", 0},
                 {"B, but not A", 0},
                 {"The same as A", 0},
                 {"A and C only", 0},
                 {"both a and b", 0},
                 {"Option B is correct", 0},
                 {"Neither A nor B holds for large values", 0},
                 {"5", 4},
                 {"A", 4},
                 {"a cat and a dog", 4},
                 {"Vitamin A and vitamin C", 4},
                 {"both of them died in the war above the river", 4},
                 {"Raise it above the boiling point", 4},
                 {"None", 4},
                 {"all the water", 4},
                 {"the first of May", 4},
                 {"I and II", 4},
                 {"Both sides lost", 4}};
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        tare_text options[] = {text_of("2"), text_of("3"), text_of("4"), text_of(cases[i].last)};
        const struct row row = {.choices = options, .n_choices = 4};
        const char *why;
        const int64_t n = choices_movable(&row, &why);
        if (n != cases[i].movable || (n < 4) != (why != NULL))
            fail_msg("\"%s\": %lld options may move, should be %lld", cases[i].last, (long long)n, (long long)cases[i].movable);
    }
    const char *why;
    tare_text middle[] = {text_of("2"), text_of("All of the above"), text_of("4")},
              own[] = {text_of("A. 2"), text_of("B. 3"), text_of("C. 4")},
              tail[] = {text_of("2"), text_of("3"), text_of("All of the above"), text_of("None of the above")};
    assert_int_equal(choices_movable(&(struct row){.choices = middle, .n_choices = 3}, &why), 0);
    assert_int_equal(choices_movable(&(struct row){.choices = own, .n_choices = 3}, &why), 0);
    assert_int_equal(choices_movable(&(struct row){.choices = tail, .n_choices = 4}, &why), 2);
}

static void test_overlap(void **state)
{
    (void)state;
    struct overlap o;
    struct err e = {0};
    char out[OVERLAP_CHARACTERS + 1];
    const char *name;
    assert_int_equal(overlap_normalise(text_of(" $A$ b-C\n12! "), out), 5);
    assert_string_equal(out, "abc12");
    overlap_init(&o);
    const char *path = write_file("test.jsonl", "{\"id\":\"t1\",\"question\":\"Find $x$ if x+1 = "
                                                "2.\",\"answer\":\"1\"}\n{\"id\":\"t2\",\"question\":\"??\",\"answer\":\"1\"}\n");
    assert_ok(overlap_add(&o, path, &e), &e);
    assert_ok(overlap_find(&o, text_of("find X, if  x + 1 = 2"), &name, &e), &e);
    assert_non_null(name);
    assert_non_null(strstr(name, "t1 of "));
    /* queried twice: a query is not added to the evaluation's questions */
    for (int i = 0; i < 2; i++) {
        assert_ok(overlap_find(&o, text_of("Find x if x+1 = 3."), &name, &e), &e);
        assert_null(name);
    }
    assert_ok(overlap_find(&o, text_of("!!"), &name, &e), &e);
    assert_null(name);
    overlap_free(&o);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_pass_at), cmocka_unit_test(test_quantile), cmocka_unit_test(test_bootstrap),
        cmocka_unit_test(test_record),  cmocka_unit_test(test_report),   cmocka_unit_test(test_refusals),
        cmocka_unit_test(test_rules),   cmocka_unit_test(test_choices),  cmocka_unit_test(test_places),
        cmocka_unit_test(test_overlap),
    };
    return cmocka_run_group_tests(tests, make_folder, remove_folder);
}
