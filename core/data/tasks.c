#include "data/tasks.h"

#include "base/fs.h"
#include "data/builtin.h"

#include <math.h>
#include <string.h>

enum { SHORT = 24, QUESTION = 96, PATTERN = 320, MESSAGES = 640, ROW = 640, LONG_ROW = 1280 };

struct task_row {
    char question[QUESTION], answer[SHORT], completion[SHORT], pattern[PATTERN], messages[MESSAGES];
    const char *subject; /* NULL: the task's name */
};

/* ---------------------------------------------------------------- the tasks */

static void make_rewrite(struct draws *d, struct task_row *r)
{
    char word[SHORT];
    const int n = draw(d, 4, 6);
    for (int i = 0; i < n; i++) word[i] = (char)('a' + draw(d, 0, 2));
    word[n] = 0;
    snprintf(r->question, QUESTION, "w%.8s=", word);
    char *out = r->answer;
    for (char c = 'a'; c <= 'c'; c++)
        for (int i = 0; i < n; i++)
            if (word[i] == c) *out++ = c;
    *out = 0;
    memcpy(r->completion, r->answer, SHORT);
}

static const int ORDERS[6][3] = {{0, 1, 2}, {0, 2, 1}, {1, 0, 2}, {1, 2, 0}, {2, 0, 1}, {2, 1, 0}};

/* Writes expression k of 24: an order of the digits and two signs. Returns its value. */
static int write_expression(const int digit[3], int k, char out[SHORT], bool pattern)
{
    const int *o = ORDERS[k / 4];
    const int one = k & 1 ? -1 : 1, two = k & 2 ? -1 : 1;
    const char *plus = pattern ? "[+]" : "+";
    snprintf(out, SHORT, "%d%s%d%s%d", digit[o[0]], one > 0 ? plus : "-", digit[o[1]], two > 0 ? plus : "-", digit[o[2]]);
    return digit[o[0]] + one * digit[o[1]] + two * digit[o[2]];
}

static void make_countdown(struct draws *d, struct task_row *r)
{
    int digit[3];
    char text[SHORT];
    for (int i = 0; i < 3; i++) digit[i] = draw(d, 1, 9);
    int target = write_expression(digit, draw(d, 0, 23), r->answer, false);
    while (target < 0) target = write_expression(digit, draw(d, 0, 23), r->answer, false);
    snprintf(r->question, QUESTION, "%d,%d,%d=%d", digit[0], digit[1], digit[2], target);
    size_t at = 0;
    for (int k = 0; k < 24; k++)
        if (write_expression(digit, k, text, true) == target)
            at += (size_t)snprintf(r->pattern + at, PATTERN - at, "%s%s", at ? "|" : "", text);
    write_expression(digit, draw(d, 0, 23), r->completion, false);
}

static void make_answers(struct draws *d, struct task_row *r)
{
    const int sum = draw(d, 2, 17), least = sum > 9 ? sum - 9 : 0, most = sum < 9 ? sum : 9;
    size_t at = 0;
    snprintf(r->question, QUESTION, "%d=", sum);
    snprintf(r->answer, SHORT, "%d+%d", most, sum - most);
    for (int a = least; a <= most; a++)
        at += (size_t)snprintf(r->pattern + at, PATTERN - at, "%s%d[+]%d", at ? "|" : "", a, sum - a);
    const bool right = draw(d, 0, 9) < 3;
    const int one = right ? draw(d, least, most) : draw(d, 0, 9), other = right ? sum - one : draw(d, 0, 9);
    snprintf(r->completion, SHORT, "%d+%d", one, other);
}

static void make_bandit(struct draws *d, struct task_row *r)
{
    static const char ARMS[] = "0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz";
    const int context = draw(d, 0, 7);
    size_t at = 0;
    snprintf(r->question, QUESTION, "%d=", context);
    r->pattern[at++] = '[';
    for (const char *c = ARMS; *c; c++)
        if (*c % 8 == context) r->pattern[at++] = *c;
    snprintf(r->answer, SHORT, "%c", r->pattern[1]);
    snprintf(r->pattern + at, PATTERN - at, "]");
    snprintf(r->completion, SHORT, "%c", ARMS[draw(d, 0, (int)sizeof ARMS - 2)]);
}

/* Writes a question of one of seven kinds; returns its answer. */
static int write_question(struct draws *d, int kind, char q[QUESTION])
{
    static const char *const PEOPLE[] = {"Anna", "Ben", "Carla", "David", "Emma", "Felix", "Grace", "Henry"};
    static const char *const THINGS[] = {"apples", "books", "cards", "coins", "eggs", "marbles", "pencils", "stamps"};
    const char *who = PEOPLE[draw(d, 0, 7)], *what = THINGS[draw(d, 0, 7)];
    const int a = draw(d, 10, 98), b = draw(d, 10, 98), c = draw(d, 10, 98), few = draw(d, 2, 9), more = draw(d, 2, 20);
    const int larger = a > b ? a : b, answer[] = {a + 1, a - 1, larger, larger > c ? larger : c, a + 10, more + few, more};
    if (kind == 0) snprintf(q, QUESTION, "What number comes right after %d?", a);
    if (kind == 1) snprintf(q, QUESTION, "What number comes right before %d?", a);
    if (kind == 2) snprintf(q, QUESTION, "Which is larger, %d or %d?", a, b);
    if (kind == 3) snprintf(q, QUESTION, "What is the largest of %d, %d, %d?", a, b, c);
    if (kind == 4) snprintf(q, QUESTION, "What is %d plus 10?", a);
    if (kind == 5)
        snprintf(q, QUESTION, "%s has %d %s and gets %d more. How many %s does %s have now?", who, more, what, few, what, who);
    if (kind == 6) snprintf(q, QUESTION, "%s has %d %s and gives %d away. How many %s are left?", who, more + few, what, few, what);
    return answer[kind];
}

/* Writes the question as a chat, after two questions of its kind with their answers. */
static void make_words(struct draws *d, struct task_row *r)
{
    static const char *const KINDS[] = {"after", "before", "larger", "largest", "plus10", "gain", "loss"};
    const int kind = draw(d, 0, 6);
    size_t at = (size_t)snprintf(r->messages, MESSAGES, "[");
    for (int turn = 0; turn < 2; turn++) {
        const int answer = write_question(d, kind, r->question);
        at += (size_t)snprintf(r->messages + at, MESSAGES - at,
                               "{\"role\":\"user\",\"content\":\"%s\"},{\"role\":\"assistant\",\"content\":\"%d\"},", r->question,
                               answer);
    }
    snprintf(r->answer, SHORT, "%d", write_question(d, kind, r->question));
    snprintf(r->messages + at, MESSAGES - at, "{\"role\":\"user\",\"content\":\"%s\"}]", r->question);
    memcpy(r->completion, r->answer, SHORT);
    r->subject = KINDS[kind];
}

static const struct task {
    const char *name;
    void (*make)(struct draws *d, struct task_row *r);
    bool holds_out;
} TASKS[] = {{"rewrite", make_rewrite, true},
             {"countdown", make_countdown, true},
             {"answers", make_answers, false},
             {"bandit", make_bandit, false},
             {"words", make_words, true}};
enum { N_TASKS = sizeof TASKS / sizeof *TASKS };
static const struct split {
    const char *name;
    int64_t rows;
} SPLITS[] = {{"train", 4096}, {"heldout", 256}, {"warm", 20480}};
enum { TRAIN, HELDOUT, WARM, N_SPLITS };

/* ---------------------------------------------------------------- rows */

/* Everything is ASCII without quotes and backslashes, so it needs no JSON escapes. */
static tare_text put_member(char *json, int *at, const char *key, const char *value)
{
    *at += snprintf(json + *at, (size_t)(ROW - *at), "%s\"%s\":\"", *at > 1 ? "," : "", key);
    const tare_text text = {json + *at, (int64_t)strlen(value)};
    *at += snprintf(json + *at, (size_t)(ROW - *at), "%s\"", value);
    return text;
}

static tare_status push_row(struct dataset *d, const struct task *task, const char *split, const struct task_row *r, struct err *e)
{
    char *json, *id, *where;
    const int capacity = r->messages[0] ? LONG_ROW : ROW;
    int at = 1;
    TRY(arena_push(&d->arena, capacity, (void **)&json, e));
    TRY(arena_push(&d->arena, 64, (void **)&id, e));
    TRY(arena_push(&d->arena, 64, (void **)&where, e));
    snprintf(id, 64, "%s-%s-%06lld", task->name, split, (long long)d->n);
    snprintf(where, 64, "builtin:%s/%s:%lld", task->name, split, (long long)d->n + 1);
    struct row *row = &d->rows[d->n++];
    *row = (struct row){.id = id, .has_id = true, .level = NAN, .where = where, .uid = fs_hash(id, (int64_t)strlen(id), 0)};
    json[0] = '{';
    put_member(json, &at, "id", id);
    row->question = put_member(json, &at, "question", r->question);
    row->answer = put_member(json, &at, "answer", r->answer);
    row->subject = put_member(json, &at, "subject", r->subject ? r->subject : task->name);
    if (r->completion[0]) row->completion = put_member(json, &at, "completion", r->completion);
    if (r->pattern[0]) put_member(json, &at, "regex", r->pattern);
    if (r->messages[0]) {
        at += snprintf(json + at, (size_t)(capacity - at), ",\"messages\":");
        row->messages = (tare_text){json + at, (int64_t)strlen(r->messages)};
        at += snprintf(json + at, (size_t)(capacity - at), "%s", r->messages);
    }
    at += snprintf(json + at, (size_t)(capacity - at), "}");
    row->json = (tare_text){json, at};
    return TARE_OK;
}

static const struct task *task_of(const char *name)
{
    for (int k = 0; k < N_TASKS; k++) {
        const size_t n = strlen(TASKS[k].name);
        if (!strncmp(name, TASKS[k].name, n) && name[n] == '/') return &TASKS[k];
    }
    return NULL;
}

bool tasks_have(const char *name)
{
    return task_of(name) != NULL;
}

tare_status tasks_generate(const char *name, struct dataset *out, struct err *e)
{
    const struct task *task = task_of(name);
    const char *split = strchr(name, '/') + 1, *options = strchr(split, '?');
    const size_t size = options ? (size_t)(options - split) : strlen(split);
    int which = 0;
    int64_t seed = 0;
    while (which < N_SPLITS && (strlen(SPLITS[which].name) != size || strncmp(split, SPLITS[which].name, size))) which++;
    if (which == N_SPLITS)
        FAIL(e, TARE_E_NOT_FOUND, "unknown data set builtin:%s; use builtin:%s/train, .../heldout or .../warm", name, task->name);
    int64_t rows = SPLITS[which].rows;
    TRY(builtin_options(options ? options + 1 : "", &rows, &seed, e));
    struct draws d = {
        .key = rng_derive(rng_derive(rng_key((uint64_t)seed, RNG_DATA), (uint64_t)which), (uint64_t)(task - TASKS) + 100)};
    TRY(arena_new(&out->arena, &out->rows, rows, e));
    while (out->n < rows) {
        struct task_row r = {.subject = NULL};
        task->make(&d, &r);
        if (task->holds_out && (builtin_crc32(r.question, (int64_t)strlen(r.question)) % 8 == 0) != (which == HELDOUT)) continue;
        if (which != WARM) r.completion[0] = 0;
        TRY(push_row(out, task, SPLITS[which].name, &r, e));
    }
    return TARE_OK;
}
