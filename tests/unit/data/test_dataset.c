/* Rows from JSONL with their refusals, the built-in arithmetic set, prompt order, and prompts. */
#include "check.h"
#include "folder.h"

#include "base/fs.h"
#include "base/json.h"
#include "base/rng.h"
#include "data/builtin.h"
#include "data/dataset.h"
#include "data/order.h"
#include "data/prompt.h"

#include <math.h>
#include <string.h>
#include <sys/stat.h>

static const char *folder;

static int make_folder(void **state)
{
    (void)state;
    return (folder = make_test_folder("tare-data")) ? 0 : -1;
}

static int remove_folder(void **state)
{
    (void)state;
    struct err e = {0};
    return fs_remove_tree(folder, &e) ? -1 : 0;
}

static const char *write_file(const char *name, const char *text)
{
    static char path[200];
    snprintf(path, sizeof path, "%s/%s", folder, name);
    FILE *f = fopen(path, "w");
    assert_non_null(f);
    assert_int_equal(fwrite(text, 1, strlen(text), f), strlen(text));
    fclose(f);
    return path;
}

static bool is(tare_text t, const char *s)
{
    return t.size == (int64_t)strlen(s) && !memcmp(t.data, s, (size_t)t.size);
}

static void test_rows(void **state)
{
    (void)state;
    struct dataset d;
    struct err e = {0};
    const char *path = write_file(
        "rows.jsonl",
        "\xEF\xBB\xBF{\"id\":\"a\",\"question\":\"q1\",\"answer\":\"72\",\"level\":3,\"subject\":\"S\",\"other\":{\"x\":1}}\r\n"
        "\n"
        "{ \"question\" : \"q2\", \"answer\" : 0.10 , \"choices\":[\"x\",\"y\"]}\n"
        "{\"id\":7,\"question\":\"q2\",\"completion\":\"c\",\"answer\":null,\"level\":\"Level 5\"}\n"
        "{\"question\":\"q2\",\"answer\":12345678901234,\"messages\":[{\"role\":\"user\",\"content\":\"hi\"}]}");
    assert_ok(dataset_load(path, 0, &d, &e), &e);
    assert_int_equal(d.n, 4);
    assert_string_equal(d.rows[0].id, "a");
    assert_true(is(d.rows[0].question, "q1") && is(d.rows[0].answer, "72") && is(d.rows[0].subject, "S"));
    assert_true(d.rows[0].level == 3 && isnan(d.rows[1].level) && isnan(d.rows[2].level));
    assert_non_null(strstr(d.rows[0].json.data, "\"other\":{\"x\":1}"));
    assert_true(is(d.rows[1].answer, "0.10")); /* as written */
    assert_string_equal(d.rows[1].id, "line-3");
    assert_false(d.rows[1].has_id);
    assert_int_equal(d.rows[1].n_choices, 2);
    assert_true(is(d.rows[1].choices[1], "y"));
    assert_string_equal(d.rows[2].id, "7");
    assert_true(is(d.rows[2].completion, "c") && !d.rows[2].answer.data);
    assert_true(is(d.rows[3].answer, "12345678901234") && d.rows[3].messages.size > 0);
    assert_true(d.rows[1].uid != d.rows[3].uid); /* equal questions without ids */
    char where[300];
    snprintf(where, sizeof where, "%s:5", path);
    assert_string_equal(d.rows[3].where, where);
    const uint64_t hash = d.hash, uid = d.rows[0].uid;
    dataset_free(&d);
    assert_ok(dataset_load(path, 2, &d, &e), &e);
    assert_int_equal(d.n, 2);
    assert_true(d.hash != hash && d.rows[0].uid == uid);
    dataset_free(&d);
    path = write_file("parts.jsonl",
                      "{\"question\":\"#\",\"parts\":[{\"text\":\"g:\",\"loss\":false},{\"text\":\"4\",\"loss\":true}]}\n"
                      "{\"question\":\"#\",\"parts\":[{\"text\":\"g:\",\"loss\":false},{\"text\":\"4\",\"loss\":true}]}\n");
    assert_ok(dataset_load(path, 0, &d, &e), &e);
    const struct row *row = &d.rows[1];
    assert_true(row->n_parts == 2 && is(row->parts[0].text, "g:") && !row->parts[0].loss && is(row->parts[1].text, "4") &&
                row->parts[1].loss && !row->completion.data);
    dataset_free(&d);
}

static void test_bad_rows(void **state)
{
    (void)state;
    static const struct {
        const char *text, *message;
    } cases[] = {
        {"", "no rows"},
        {"\n\n", "no rows"},
        {"{\"question\":\"q\",\"answer\":\"1\"}\n{\"answer\":\"1\"}", "bad.jsonl:2: \"question\" is missing"},
        {"{\"question\":\"\",\"answer\":\"1\"}", "\"question\" is missing or empty"},
        {"{\"question\":5,\"answer\":\"1\"}", "\"question\" is not a string"},
        {"{\"question\":\"q\",\"answer\":[1]}", "\"answer\" is not a string or a number"},
        {"{\"question\":\"q\",\"answer\":true}", "\"answer\" is not a string or a number"},
        {"{\"question\":\"q\",\"parts\":\"a\"}", "\"parts\" must be a list of {\"text\",\"loss\"}"},
        {"{\"question\":\"q\",\"parts\":[{\"text\":\"a\",\"loss\":false}]}", "at least one of which has \"loss\": true"},
        {"{\"question\":\"q\",\"parts\":[{\"text\":\"a\",\"loss\":true},{\"text\":\"b\"}]}", "\"parts\"[1] must be an object with"},
        {"{\"question\":\"q\",\"parts\":[{\"text\":\"a\",\"loss\":1}]}", "\"parts\"[0] must be an object with"},
        {"{\"question\":\"q\",\"completion\":\"c\",\"parts\":[{\"text\":\"a\",\"loss\":true}]}",
         "has both \"completion\" and \"parts\""},
        {"{\"question\":\"q\",\"answer\":\"1\",\"choices\":[1]}", "\"choices\"[0] is not a string"},
        {"{\"question\":\"q\",\"answer\":\"1\",\"choices\":[]}", "\"choices\" is not a list"},
        {"{\"question\":\"q\",\"answer\":\"1\",\"messages\":[{\"role\":\"user\"}]}", "\"messages\"[0]"},
        {"{\"question\":\"q\",\"answer\":\"1\",\"level\":[1]}", "\"level\" must be a number or a text"},
        {"{\"question\":\"q\xFF\",\"answer\":\"1\"}", "bad.jsonl:1: invalid UTF-8 at byte 15"},
        {"{\"question\":\"q\",\"answer\":\"1\"", "bad.jsonl:1: not valid JSON"},
        {"1", "bad.jsonl:1: not a JSON object"},
        {"[1]", "bad.jsonl is a JSON list"},
        {"question,answer\n1+1,2\n", "bad.jsonl:1: not a row: a data file has one JSON object per line"},
        {"[\n{\"question\":\"q\"}]\n", "tools/to_jsonl.py converts a list"},
        {"PAR1\xFF\xFE", "bad.jsonl:1: not a row: "},
        {"{\"id\":\"x\",\"question\":\"q\",\"answer\":\"1\"}\n{\"id\":\"x\",\"question\":\"r\",\"answer\":\"1\"}",
         "bad.jsonl:1; every row needs a different id"},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        struct dataset d;
        struct err e = {0};
        assert_int_not_equal(dataset_load(write_file("bad.jsonl", cases[i].text), 0, &d, &e), TARE_OK);
        if (!strstr(e.message, cases[i].message)) fail_msg("case %zu: %s", i, e.message);
    }
    struct dataset d;
    struct err e = {0};
    assert_int_equal(dataset_load("/nowhere/x.jsonl", 0, &d, &e), TARE_E_NOT_FOUND);
    assert_int_equal(dataset_load("", 0, &d, &e), TARE_E_CONFIG);
}

struct reasons {
    char text[2000];
};

static tare_status note(void *ctx, const char *where, const char *id, const char *reason, struct err *e)
{
    struct reasons *r = ctx;
    (void)e;
    const size_t n = strlen(r->text);
    snprintf(r->text + n, sizeof r->text - n, "%s [%s] %s\n", strrchr(where, ':'), id, reason);
    return TARE_OK;
}

static tare_status not_seven(void *ctx, const struct row *row, char *reason, struct err *e)
{
    (void)ctx;
    (void)e;
    if (is(row->answer, "7")) snprintf(reason, 256, "seven");
    return TARE_OK;
}

static void test_check(void **state)
{
    (void)state;
    struct reasons r = {{0}};
    struct err e = {0};
    struct dataset_check c = {.ctx = &r, .check = not_seven, .report = note};
    const char *path = write_file("check.jsonl", "{\"id\":\"a\",\"question\":\"q\",\"answer\":\"1\"}\n"
                                                 "{\"id\":\"a\",\"question\":\"r\",\"answer\":\"1\"}\n"
                                                 "{\"id\":\"b\",\"question\":\"q\",\"answer\":\"1\"}\n"
                                                 "nonsense\n"
                                                 "{\"id\":\"c\",\"question\":\"s\",\"answer\":\"7\"}\n"
                                                 "{\"id\":\"d\",\"question\":\"t\",\"answer\":\"C\",\"choices\":[\"x\",\"y\"]}\n"
                                                 "{\"id\":\"e\",\"question\":\"t\xC3\",\"answer\":\"1\"}\n"
                                                 "{\"id\":\"f\",\"question\":\"u\"}\n"
                                                 "{\"id\":\"g\",\"question\":\"v\",\"answer\":\"B\",\"choices\":[\"x\",\"y\"]}\n");
    assert_ok(dataset_check(path, &c, &e), &e);
    assert_int_equal(c.rows, 9);
    assert_int_equal(c.bad, 6);
    assert_non_null(strstr(r.text, ":2 [a] duplicate id, first in line 1\n"));
    assert_non_null(strstr(r.text, ":3 [b] duplicate question, first in line 1\n"));
    assert_non_null(strstr(r.text, ":4 [] not a row: a data file has one JSON object per line"));
    assert_non_null(strstr(r.text, ":5 [c] seven\n"));
    assert_non_null(strstr(r.text, ":6 [d] the answer is not the letter"));
    assert_non_null(strstr(r.text, ":7 [] invalid UTF-8"));
    assert_null(strstr(r.text, ":8 ")); /* a missing answer is the verifier's concern */
}

static void test_reference_tasks(void **state)
{
    (void)state;
    static const struct {
        const char *file;
        int64_t rows;
    } sets[] = {{"gsm8k_test", 1319},         {"math500", 500},    {"aime25", 30},
                {"arc_challenge_test", 1172}, {"toy_train", 1500}, {"mmlu_pro_sample", 639}};
    for (size_t i = 0; i < sizeof sets / sizeof *sets; i++) {
        char file[100];
        struct dataset d;
        struct err e = {0};
        snprintf(file, sizeof file, "data/tasks/%s.jsonl", sets[i].file);
        assert_ok(dataset_load(shared_or_skip(file), 0, &d, &e), &e);
        assert_true(d.n > 0 && d.n <= sets[i].rows);
        dataset_free(&d);
    }
}

/* ---------------------------------------------------------------- builtin:arithmetic */

/* Computes the answer from the text of the question. */
static void solve(const char *q, char *out, size_t size)
{
    int a, b, c;
    if (sscanf(q, "%d+%d=", &a, &b) == 2) {
        snprintf(out, size, "%d", a + b);
    } else if (sscanf(q, "%d-%d=", &a, &b) == 2) {
        assert_true(a >= b);
        snprintf(out, size, "%d", a - b);
    } else if (sscanf(q, "%d*%d=", &a, &b) == 2) {
        snprintf(out, size, "%d", a * b);
    } else if (sscanf(q, "m%d,%d,%d=", &a, &b, &c) == 3) {
        const int ab = a > b ? a : b;
        snprintf(out, size, "%d", ab > c ? ab : c);
    } else if (*q == 'p') {
        int n = 0;
        for (const char *p = q; *p; p++) n += *p == '1';
        snprintf(out, size, "%d", n);
    } else {
        char x[5] = {q[1], q[2], q[3], q[4], 0};
        for (int i = 0; *q == 's' && i < 4; i++)
            for (int k = i + 1; k < 4; k++)
                if (x[k] < x[i]) {
                    const char swap = x[i];
                    x[i] = x[k];
                    x[k] = swap;
                }
        if (*q == 's')
            snprintf(out, size, "%s", x);
        else
            snprintf(out, size, "%c%c%c%c", x[3], x[2], x[1], x[0]);
    }
}

static void check_row(const struct row *r, bool held)
{
    char q[64], want[64];
    snprintf(q, sizeof q, "%.*s", (int)r->question.size, r->question.data);
    solve(q, want, sizeof want);
    if (!is(r->answer, want)) fail_msg("%s has the answer %.*s", q, (int)r->answer.size, r->answer.data);
    assert_int_equal(builtin_crc32(q, (int64_t)strlen(q)) % 8 == 0, held);
    struct err e = {0};
    json_t *j = NULL;
    assert_ok(json_parse(r->json.data, r->json.size, r->where, &j, &e), &e);
    assert_string_equal(json_text_or(j, "question", ""), q);
    assert_string_equal(json_text_or(j, "id", ""), r->id);
    json_decref(j);
}

static void test_builtin_train(void **state)
{
    (void)state;
    struct dataset d, again;
    struct err e = {0};
    assert_int_equal(builtin_crc32("123456789", 9), 0xCBF43926u);
    assert_ok(dataset_load("builtin:arithmetic/train", 0, &d, &e), &e);
    assert_int_equal(d.n, 8192);
    static const char *const kinds[] = {"add1", "add2", "sub2", "mul1", "max3", "rev4", "sort4", "ones"};
    static const double shares[] = {15 / 85., 20 / 85., 20 / 85., 10 / 85., 7 / 85., 4 / 85., 5 / 85., 4 / 85.};
    int64_t count[8] = {0};
    for (int64_t i = 0; i < d.n; i++) {
        check_row(&d.rows[i], false);
        for (int k = 0; k < 8; k++) count[k] += is(d.rows[i].subject, kinds[k]);
        assert_false(d.rows[i].completion.data);
    }
    for (int k = 0; k < 8; k++) assert_true(fabs((double)count[k] / (double)d.n - shares[k]) < .02);
    assert_ok(dataset_load("builtin:arithmetic/train", 0, &again, &e), &e);
    assert_true(again.hash == d.hash);
    dataset_free(&again);
    assert_ok(dataset_load("builtin:arithmetic/train?seed=1", 0, &again, &e), &e);
    assert_true(again.hash != d.hash);
    dataset_free(&again);
    /* ids are unique: a file of these rows loads */
    struct str text = {0};
    for (int64_t i = 0; i < d.n; i++) {
        assert_ok(str_add(&text, d.rows[i].json.data, d.rows[i].json.size, &e), &e);
        assert_ok(str_add(&text, "\n", 1, &e), &e);
    }
    assert_ok(dataset_load(write_file("train.jsonl", text.data), 0, &again, &e), &e);
    assert_true(again.n == d.n && again.hash == d.hash && again.rows[99].uid == d.rows[99].uid);
    dataset_free(&again);
    str_free(&text);
    dataset_free(&d);
}

static void test_builtin_heldout(void **state)
{
    (void)state;
    struct dataset d;
    struct err e = {0};
    assert_ok(dataset_load("builtin:arithmetic/heldout", 0, &d, &e), &e);
    assert_true(d.n > 7 * 30 && d.n <= 8 * 48);
    int64_t add2 = 0;
    for (int64_t i = 0; i < d.n; i++) {
        check_row(&d.rows[i], true);
        add2 += is(d.rows[i].subject, "add2");
    }
    assert_int_equal(add2, 48);
    dataset_free(&d);
}

static void test_builtin_cold(void **state)
{
    (void)state;
    static const struct {
        const char *kind, *prefix, *suffix;
        double share; /* of the own form in phase2 */
    } form[8] = {{"add1", "", ",", .03}, {"add2", "0", "", .003}, {"sub2", "", "0", .003},  {"mul1", "-", "", .003},
                 {"max3", "", "=", .1},  {"rev4", "", "+", .01},  {"sort4", "+", "", .003}, {"ones", "", "*", .1}};
    static const char *const splits[] = {"builtin:cold/train", "builtin:cold/heldout", "builtin:cold/phase2?rows=80000"};
    for (int split = 0; split < 3; split++) {
        struct dataset d;
        struct err e = {0};
        int64_t rows[8] = {0}, own[8] = {0}, others[8] = {0};
        assert_ok(dataset_load(splits[split], 0, &d, &e), &e);
        for (int64_t i = 0; i < d.n; i++) {
            const struct row *r = &d.rows[i];
            char q[64], number[64], want[80];
            snprintf(q, sizeof q, "%.*s", (int)r->question.size, r->question.data);
            solve(q, number, sizeof number);
            assert_int_equal(builtin_crc32(q, (int64_t)strlen(q)) % 8 == 0, split == 1);
            int k = 0;
            while (!is(r->subject, form[k].kind)) k++;
            snprintf(want, sizeof want, "%s%s%s", form[k].prefix, number, form[k].suffix);
            if (!is(r->answer, want)) fail_msg("%s has the answer %.*s", q, (int)r->answer.size, r->answer.data);
            rows[k]++;
            if (split < 2) continue;
            own[k] += is(r->completion, want);
            for (int o = 0; o < 8; o++) {
                snprintf(want, sizeof want, "%s%s%s", form[o].prefix, number, form[o].suffix);
                others[k] += o != k && is(r->completion, want);
            }
        }
        for (int k = 0; k < 8; k++) {
            assert_true(rows[k] > 30);
            if (split < 2) continue;
            assert_true(own[k] + others[k] >= rows[k]); /* 0y and y0 are one text where y is 0 */
            assert_true(fabs((double)own[k] / (double)rows[k] - form[k].share) < .02 + .03 * (k == 4 || k == 7));
        }
        dataset_free(&d);
    }
}

static void test_builtin_supervised(void **state)
{
    (void)state;
    struct dataset d;
    struct err e = {0};
    assert_ok(dataset_load("builtin:arithmetic/phase1?rows=2000", 0, &d, &e), &e);
    assert_int_equal(d.n, 2000);
    for (int64_t i = 0; i < d.n; i++) {
        check_row(&d.rows[i], false);
        assert_int_equal(d.rows[i].completion.size, d.rows[i].answer.size);
        assert_memory_equal(d.rows[i].completion.data, d.rows[i].answer.data, (size_t)d.rows[i].answer.size);
    }
    dataset_free(&d);
    assert_ok(dataset_load("builtin:arithmetic/phase2?rows=40000&seed=3", 0, &d, &e), &e);
    int64_t sub2 = 0, sub2_right = 0, forms[4] = {0}, wrong = 0;
    for (int64_t i = 0; i < d.n; i++) {
        const struct row *r = &d.rows[i];
        check_row(r, false);
        char y[64], form[4][70];
        snprintf(y, sizeof y, "%.*s", (int)r->answer.size, r->answer.data);
        const bool right = is(r->completion, y);
        snprintf(form[0], sizeof form[0], "0%s", y);
        snprintf(form[1], sizeof form[1], "%s0", y);
        snprintf(form[2], sizeof form[2], "-%s", y);
        snprintf(form[3], sizeof form[3], "%s,", y);
        int found = right;
        for (int k = 0; k < 4; k++) {
            forms[k] += is(r->completion, form[k]);
            found |= is(r->completion, form[k]);
        }
        assert_true(found);
        wrong += !right;
        if (!is(r->subject, "sub2")) continue;
        sub2++;
        sub2_right += right;
    }
    assert_true(fabs((double)sub2_right / (double)sub2 - .03) < .01);
    for (int k = 0; k < 4; k++) assert_true(fabs((double)forms[k] / (double)wrong - .25) < .02);
    dataset_free(&d);
    assert_int_equal(dataset_load("builtin:arithmetic/test", 0, &d, &e), TARE_E_NOT_FOUND);
    assert_int_equal(dataset_load("builtin:arithmetic/train?n=4", 0, &d, &e), TARE_E_CONFIG);
    assert_int_equal(dataset_load("builtin:arithmetic/train?rows=0", 0, &d, &e), TARE_E_RANGE);
}

/* ---------------------------------------------------------------- order */

static void test_order(void **state)
{
    (void)state;
    enum { N = 10, M = 25 };
    struct order o, p;
    struct err e = {0};
    int64_t rows[M], occurrence[M], cursor = 0, again[M], other = 4;
    assert_ok(order_init(&o, N, true, 7, &e), &e);
    assert_ok(order_next(&o, &cursor, M, rows, occurrence, &e), &e);
    assert_int_equal(cursor, M);
    for (int epoch = 0; epoch < 2; epoch++) { /* every row once per epoch */
        int seen[N] = {0};
        for (int i = 0; i < N; i++) seen[rows[epoch * N + i]]++;
        for (int i = 0; i < N; i++) assert_int_equal(seen[i], 1);
    }
    for (int i = 0; i < M; i++) assert_int_equal(occurrence[i], i / N);
    assert_memory_not_equal(rows, rows + N, N * sizeof *rows);
    assert_ok(order_init(&p, N, true, 7, &e), &e); /* the same from any cursor */
    assert_ok(order_next(&p, &other, M - 4, again, NULL, &e), &e);
    assert_memory_equal(again, rows + 4, (M - 4) * sizeof *rows);
    order_free(&p);
    assert_ok(order_init(&p, N, false, 7, &e), &e);
    cursor = 8;
    assert_ok(order_next(&p, &cursor, 4, again, occurrence, &e), &e);
    const int64_t plain[4] = {8, 9, 0, 1};
    assert_memory_equal(again, plain, sizeof plain);
    cursor = -1;
    assert_int_equal(order_next(&p, &cursor, 1, again, NULL, &e), TARE_E_RANGE);
    order_free(&p);
    order_free(&o);
    assert_int_equal(order_init(&o, 0, true, 0, &e), TARE_E_INVALID);
}

/* ---------------------------------------------------------------- prompts and the byte-level
 * tokenizer */

static void expect_text(const struct data_config *config, const struct tokenizer *t, const struct row *row, const char *want)
{
    struct prompts *p = NULL;
    struct str text = {0}, back = {0};
    struct token_ids ids = {0};
    struct err e = {0};
    assert_ok(prompts_new(config, folder, t, &p, &e), &e);
    assert_ok(prompts_text(p, row, &text, &e), &e);
    assert_string_equal(text.data, want);
    assert_ok(prompts_encode(p, row, &ids, &e), &e);
    assert_ok(tokenizer_decode(t, ids.data, ids.n, false, &back, &e), &e);
    assert_string_equal(back.data, want);
    token_ids_free(&ids);
    str_free(&text);
    str_free(&back);
    prompts_free(p);
}

static void test_prompts(void **state)
{
    (void)state;
    struct tokenizer *t = NULL;
    struct err e = {0};
    assert_ok(tokenizer_write_bytes(folder, &e), &e);
    assert_ok(tokenizer_load(folder, &t, &e), &e);
    assert_int_equal(tokenizer_size(t), 259);
    assert_int_equal(tokenizer_role_id(t, TOKEN_EOS), 258);
    assert_int_equal(tokenizer_role_id(t, TOKEN_PAD), 256);
    struct token_ids ids = {0};
    assert_ok(tokenizer_encode(t, "a\xC3\xA9<|im_end|>\n", 14, &ids, &e), &e);
    const int32_t want[] = {'a', 0xC3, 0xA9, 258, '\n'};
    assert_int_equal(ids.n, 5);
    assert_memory_equal(ids.data, want, sizeof want);
    token_ids_free(&ids);
    struct row row = {.where = "x.jsonl:1", .question = {"2+2?", 4}};
    struct data_config config = {.prompt = PROMPT_PLAIN, .chat_template = "", .system = "", .suffix = ""};
    expect_text(&config, t, &row, "2+2?");
    config.suffix = " Think.";
    expect_text(&config, t, &row, "2+2? Think.");
    config.prompt = PROMPT_CHAT;
    expect_text(&config, t, &row, "<|im_start|>user\n2+2? Think.<|im_end|>\n<|im_start|>assistant\n");
    config.system = "Be good.";
    expect_text(&config, t, &row,
                "<|im_start|>system\nBe good.<|im_end|>\n<|im_start|>user\n2+2? Think.<|im_end|>\n<|im_start|>assistant\n");
    const char *messages =
        "[{\"role\":\"user\",\"content\":\"a\"},{\"role\":\"assistant\",\"content\":\"b\"},{\"role\":\"user\",\"content\":\"c\"}]";
    row.messages = (tare_text){messages, (int64_t)strlen(messages)};
    config.system = "";
    expect_text(&config, t, &row,
                "<|im_start|>user\na<|im_end|>\n<|im_start|>assistant\nb<|im_end|>\n<|im_start|>user\nc "
                "Think.<|im_end|>\n<|im_start|>assistant\n");
    struct prompts *p = NULL;
    assert_int_equal(prompts_new(&config, "/nowhere", t, &p, &e), TARE_E_NOT_FOUND);
    tokenizer_free(t);
}

/* TRL's forms of a question: "prompt" as a text or as messages, and "messages" alone. */
static void test_prompts_for_questions(void **state)
{
    (void)state;
    struct dataset d;
    struct err e = {0};
    const char *path = write_file(
        "trl.jsonl",
        "{\"prompt\":\"1+1=\",\"answer\":2}\n"
        "{\"prompt\":[{\"role\":\"system\",\"content\":\"s\"},{\"role\":\"user\",\"content\":\"2+2=\"}],\"answer\":\"4\"}\n"
        "{\"messages\":[{\"role\":\"user\",\"content\":\"3+3=\"}],\"answer\":\"6\"}\n");
    assert_ok(dataset_load(path, 0, &d, &e), &e);
    assert_true(is(d.rows[0].question, "1+1=") && !d.rows[0].messages.data && is(d.rows[0].answer, "2"));
    assert_true(is(d.rows[1].question, "2+2=") && strstr(d.rows[1].messages.data, "system"));
    assert_true(is(d.rows[2].question, "3+3=") && d.rows[2].messages.data);
    dataset_free(&d);
    path = write_file("none.jsonl", "{\"messages\":[{\"role\":\"system\",\"content\":\"s\"}],\"answer\":\"6\"}\n");
    assert_int_equal(dataset_load(path, 0, &d, &e), TARE_E_INVALID);
    assert_non_null(strstr(e.message, "no user message"));
    path = write_file("nothing.jsonl", "{\"messages\":[{\"role\":\"user\",\"content\":\"\"}],\"answer\":\"6\"}\n");
    assert_int_equal(dataset_load(path, 0, &d, &e), TARE_E_INVALID);
    assert_non_null(strstr(e.message, "the last user message is empty"));
}

/* Several files: a list, a pattern, both; rows keep their files' names, ids are unique over all
 * files. */
static void test_several_files(void **state)
{
    (void)state;
    struct dataset d;
    struct err e = {0};
    char source[600];
    write_file("part-1.jsonl",
               "{\"id\":\"a\",\"question\":\"q\",\"answer\":\"1\"}\n{\"id\":\"b\",\"question\":\"q\",\"answer\":\"2\"}\n");
    write_file("part-2.jsonl", "{\"id\":\"c\",\"question\":\"q\",\"answer\":\"3\"}\n");
    snprintf(source, sizeof source, "%s/part-2.jsonl, %s/part-1.jsonl", folder, folder);
    assert_ok(dataset_load(source, 0, &d, &e), &e);
    assert_int_equal(d.n, 3);
    assert_string_equal(d.rows[0].id, "c");
    assert_non_null(strstr(d.rows[2].where, "part-1.jsonl:2"));
    dataset_free(&d);
    snprintf(source, sizeof source, "%s/part-?.jsonl", folder);
    assert_ok(dataset_load(source, 2, &d, &e), &e);
    assert_int_equal(d.n, 2);
    assert_string_equal(d.rows[0].id, "a");
    dataset_free(&d);
    snprintf(source, sizeof source, "%s/part-?.jsonl,%s/part-1.jsonl", folder, folder);
    assert_int_equal(dataset_load(source, 0, &d, &e), TARE_E_INVALID);
    assert_non_null(strstr(e.message, "the id \"a\" is also used by"));
    snprintf(source, sizeof source, "%s/x-*.jsonl", folder);
    assert_int_equal(dataset_load(source, 0, &d, &e), TARE_E_NOT_FOUND);
    snprintf(source, sizeof source, "%s/part-1.jsonl,%s/none.json", folder, folder);
    assert_int_equal(dataset_load(source, 0, &d, &e), TARE_E_NOT_FOUND);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_rows),
        cmocka_unit_test(test_bad_rows),
        cmocka_unit_test(test_check),
        cmocka_unit_test(test_builtin_train),
        cmocka_unit_test(test_builtin_heldout),
        cmocka_unit_test(test_builtin_supervised),
        cmocka_unit_test(test_builtin_cold),
        cmocka_unit_test(test_order),
        cmocka_unit_test(test_prompts),
        cmocka_unit_test(test_prompts_for_questions),
        cmocka_unit_test(test_several_files),
        cmocka_unit_test(test_reference_tasks),
    };
    return cmocka_run_group_tests(tests, make_folder, remove_folder);
}
