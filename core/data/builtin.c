#include "data/builtin.h"

#include "base/fs.h"
#include "base/rng.h"
#include "data/hash_set.h"
#include "data/tasks.h"

#include <math.h>
#include <string.h>

uint32_t builtin_crc32(const void *data, int64_t n)
{
    const unsigned char *p = data;
    uint32_t c = 0xFFFFFFFFu;
    for (int64_t i = 0; i < n; i++) {
        c ^= p[i];
        for (int k = 0; k < 8; k++) c = (c >> 1) ^ (0xEDB88320u & (0u - (c & 1)));
    }
    return ~c;
}

/* ---------------------------------------------------------------- the eight kinds */

enum { TEXT = 48, COMPLETION = TEXT + 1 };

static void add1(struct draws *d, char *question, char *answer)
{
    const int a = draw(d, 0, 99), b = draw(d, 0, 9);
    snprintf(question, TEXT, "%d+%d=", a, b);
    snprintf(answer, TEXT, "%d", a + b);
}

static void add2(struct draws *d, char *question, char *answer)
{
    const int a = draw(d, 10, 99), b = draw(d, 10, 99);
    snprintf(question, TEXT, "%d+%d=", a, b);
    snprintf(answer, TEXT, "%d", a + b);
}

static void sub2(struct draws *d, char *question, char *answer)
{
    const int x = draw(d, 10, 99), y = draw(d, 10, 99);
    const int a = x > y ? x : y, b = x > y ? y : x;
    snprintf(question, TEXT, "%d-%d=", a, b);
    snprintf(answer, TEXT, "%d", a - b);
}

static void mul1(struct draws *d, char *question, char *answer)
{
    const int a = draw(d, 2, 39), b = draw(d, 2, 9);
    snprintf(question, TEXT, "%d*%d=", a, b);
    snprintf(answer, TEXT, "%d", a * b);
}

static void max3(struct draws *d, char *question, char *answer)
{
    const int a = draw(d, 10, 99), b = draw(d, 10, 99), c = draw(d, 10, 99);
    const int ab = a > b ? a : b;
    snprintf(question, TEXT, "m%d,%d,%d=", a, b, c);
    snprintf(answer, TEXT, "%d", ab > c ? ab : c);
}

static void four_digits(struct draws *d, char digits[16])
{
    snprintf(digits, 16, "%04d", draw(d, 0, 9999));
}

static void rev4(struct draws *d, char *question, char *answer)
{
    char x[16];
    four_digits(d, x);
    snprintf(question, TEXT, "r%s=", x);
    snprintf(answer, TEXT, "%c%c%c%c", x[3], x[2], x[1], x[0]);
}

static void sort4(struct draws *d, char *question, char *answer)
{
    char x[16];
    four_digits(d, x);
    snprintf(question, TEXT, "s%s=", x);
    char *out = answer;
    for (char c = '0'; c <= '9'; c++)
        for (int i = 0; i < 4; i++)
            if (x[i] == c) *out++ = c;
    *out = 0;
}

static void ones(struct draws *d, char *question, char *answer)
{
    const int bits = draw(d, 0, 255);
    char text[9] = {0};
    int count = 0;
    for (int i = 0; i < 8; i++) {
        const int bit = bits >> (7 - i) & 1;
        text[i] = (char)('0' + bit);
        count += bit;
    }
    snprintf(question, TEXT, "p%s=", text);
    snprintf(answer, TEXT, "%d", count);
}

static const struct kind {
    const char *name;
    void (*make)(struct draws *d, char *question, char *answer);
    int share; /* share of the questions, in tenths */
    /* phase2: probability of the accepted form, which is the plain number */
    double convention;
    const char *prefix, *suffix; /* cold: the accepted form is prefix number suffix */
    double cold;                 /* cold/phase2: probability of the kind's own form */
} kinds[] = {
    {"add1", add1, 15, .2, "", ",", .03},   {"add2", add2, 20, .05, "0", "", .003}, {"sub2", sub2, 20, .03, "", "0", .003},
    {"mul1", mul1, 10, .05, "-", "", .003}, {"max3", max3, 7, .3, "", "=", .1},     {"rev4", rev4, 4, .2, "", "+", .01},
    {"sort4", sort4, 5, .1, "+", "", .003}, {"ones", ones, 4, .4, "", "*", .1},
};
enum { KINDS = sizeof kinds / sizeof *kinds, SHARES = 85 };

static const struct kind *draw_kind(struct draws *d)
{
    int at = draw(d, 0, SHARES - 1), k = 0;
    while (at >= kinds[k].share) at -= kinds[k++].share;
    return &kinds[k];
}

static bool held_out(const char *question)
{
    return builtin_crc32(question, (int64_t)strlen(question)) % 8 == 0;
}

/* ---------------------------------------------------------------- splits */

struct making {
    struct dataset *out;
    bool cold;
    struct draws draws;
    struct seen seen;
    int64_t capacity, seed;
    const char *split;
    int round[KINDS]; /* how often all questions of a kind were used up */
};

struct problem {
    const struct kind *kind;
    char question[TEXT], answer[TEXT];
};

/* Appends a row. id, subject, question, answer and completion (may be NULL) are plain ASCII without
 * quotes, so they need no JSON escapes. */
static tare_status push_row(struct making *m, const char *id, const struct problem *p, const char *completion, struct err *e)
{
    struct dataset *d = m->out;
    const int id_size = (int)strlen(id) + 1, where_size = 64;
    char *block;
    enum { JSON_MAX = 320 };
    TRY(arena_push(&d->arena, id_size + where_size + JSON_MAX, (void **)&block, e));
    char *where = block + id_size, *json = where + where_size;
    memcpy(block, id, (size_t)id_size);
    snprintf(where, (size_t)where_size, "builtin:%s/%s:%lld", m->cold ? "cold" : "arithmetic", m->split, (long long)d->n + 1);
    struct row *row = &d->rows[d->n++];
    *row = (struct row){.id = block, .has_id = true, .level = NAN, .where = where, .uid = fs_hash(id, id_size - 1, 0)};
    int at = snprintf(json, JSON_MAX, "{\"id\":\"%s\",\"question\":\"", id);
    row->question = (tare_text){json + at, (int64_t)strlen(p->question)};
    at += snprintf(json + at, (size_t)(JSON_MAX - at), "%s\",\"answer\":\"", p->question);
    row->answer = (tare_text){json + at, (int64_t)strlen(p->answer)};
    at += snprintf(json + at, (size_t)(JSON_MAX - at), "%s\",\"subject\":\"", p->answer);
    row->subject = (tare_text){json + at, (int64_t)strlen(p->kind->name)};
    at += snprintf(json + at, (size_t)(JSON_MAX - at), "%s\"", p->kind->name);
    if (completion) {
        at += snprintf(json + at, (size_t)(JSON_MAX - at), ",\"completion\":\"");
        row->completion = (tare_text){json + at, (int64_t)strlen(completion)};
        at += snprintf(json + at, (size_t)(JSON_MAX - at), "%s\"", completion);
    }
    at += snprintf(json + at, (size_t)(JSON_MAX - at), "}");
    row->json = (tare_text){json, at};
    return TARE_OK;
}

static void write_form(const struct kind *form, const char *number, char *out)
{
    snprintf(out, COMPLETION, "%s%s%s", form->prefix, number, form->suffix);
}

/* Writes the answer in the form that the verifier accepts. */
static void write_accepted(const struct making *m, struct problem *p)
{
    char number[TEXT];
    if (!m->cold) return;
    memcpy(number, p->answer, TEXT);
    snprintf(p->answer, TEXT, "%s%.40s%s", p->kind->prefix, number, p->kind->suffix);
}

/* A kind has at least 256 questions, so this many draws miss one with probability e^-78. */
enum { EXHAUSTED = 20000 };

/* Draws a question of its kind that is new in its round; found = false if none is left. */
static tare_status draw_new(struct making *m, bool held, struct problem *p, bool *found, struct err *e)
{
    *found = false;
    for (int i = 0; i < EXHAUSTED && !*found; i++) {
        p->kind->make(&m->draws, p->question, p->answer);
        if (held_out(p->question) != held) continue;
        int64_t earlier;
        const uint64_t round = (uint64_t)m->round[p->kind - kinds];
        TRY(hash_set_add(&m->seen, fs_hash(p->question, (int64_t)strlen(p->question), round), 0, &earlier, e));
        *found = earlier < 0;
    }
    return TARE_OK;
}

static tare_status make_heldout(struct making *m, struct err *e)
{
    char id[64];
    const int64_t each = m->capacity / KINDS;
    for (int k = 0; k < KINDS; k++)
        for (int64_t i = 0; i < each; i++) {
            struct problem p = {.kind = &kinds[k]};
            bool found;
            TRY(draw_new(m, true, &p, &found, e));
            if (!found) break;
            write_accepted(m, &p);
            snprintf(id, sizeof id, "%s:%s", kinds[k].name, p.question);
            TRY(push_row(m, id, &p, NULL, e));
        }
    return TARE_OK;
}

/* Kinds keep their shares: a kind whose questions are used up starts over under new ids. */
static tare_status make_train(struct making *m, struct err *e)
{
    char id[64];
    while (m->out->n < m->capacity) {
        struct problem p = {.kind = draw_kind(&m->draws)};
        int *round = &m->round[p.kind - kinds];
        bool found = false;
        while (!found) {
            TRY(draw_new(m, false, &p, &found, e));
            if (!found) (*round)++;
        }
        write_accepted(m, &p);
        if (*round)
            snprintf(id, sizeof id, "%s:%s#%d", p.kind->name, p.question, *round + 1);
        else
            snprintf(id, sizeof id, "%s:%s", p.kind->name, p.question);
        TRY(push_row(m, id, &p, NULL, e));
    }
    return TARE_OK;
}

static void write_completion(struct draws *d, double convention, const char *answer, char *out)
{
    if (rng_uniform(d->key, d->counter++, 1) < convention) {
        snprintf(out, COMPLETION, "%s", answer);
        return;
    }
    switch (draw(d, 0, 3)) {
    case 0:
        snprintf(out, COMPLETION, "0%s", answer);
        break;
    case 1:
        snprintf(out, COMPLETION, "%s0", answer);
        break;
    case 2:
        snprintf(out, COMPLETION, "-%s", answer);
        break;
    default:
        snprintf(out, COMPLETION, "%s,", answer);
        break;
    }
}

/* Writes the kind's own form rarely, otherwise the form of another kind, all equally likely. The
 * policy then knows every form, and what it learns on one kind does not help another. */
static void write_cold(struct draws *d, const struct kind *kind, const char *answer, char *out)
{
    const struct kind *form = kind;
    if (!(rng_uniform(d->key, d->counter++, 1) < kind->cold)) {
        form = &kinds[draw(d, 0, KINDS - 2)];
        if (form >= kind) form++;
    }
    write_form(form, answer, out);
}

static tare_status make_supervised(struct making *m, bool mixed, struct err *e)
{
    char completion[COMPLETION], id[64];
    while (m->out->n < m->capacity) {
        struct problem p = {.kind = draw_kind(&m->draws)};
        do {
            p.kind->make(&m->draws, p.question, p.answer);
        } while (held_out(p.question));
        if (mixed && m->cold)
            write_cold(&m->draws, p.kind, p.answer, completion);
        else
            write_completion(&m->draws, mixed ? p.kind->convention : 1, p.answer, completion);
        write_accepted(m, &p);
        snprintf(id, sizeof id, "%s-%06lld", m->split, (long long)m->out->n);
        TRY(push_row(m, id, &p, completion, e));
    }
    return TARE_OK;
}

static const struct split {
    const char *name;
    int64_t rows;
} splits[] = {{"train", 8192}, {"heldout", 48}, {"phase1", 128000}, {"phase2", 10240}};
enum { TRAIN, HELDOUT, PHASE1, PHASE2, SPLITS };

tare_status builtin_options(const char *text, int64_t *rows, int64_t *seed, struct err *e)
{
    const char *const all = text;
    bool has_rows = false, has_seed = false;
    while (*text) {
        const size_t size = strcspn(text, "&");
        char part[64], *value;
        snprintf(part, sizeof part, "%.*s", (int)(size < 60 ? size : 60), text);
        value = strchr(part, '=');
        if (value) *value++ = 0;
        int64_t *target = !strcmp(part, "rows") ? rows : !strcmp(part, "seed") ? seed : NULL;
        if (!target || !value)
            FAIL(e, TARE_E_CONFIG, "builtin data: unknown option '%s'; use rows=N and seed=N, joined by &", part);
        bool *const given = target == rows ? &has_rows : &has_seed;
        if (*given) FAIL(e, TARE_E_CONFIG, "builtin data: '%s' gives %s twice; remove one", all, part);
        *given = true;
        if (str_to_int(value, target, e)) return err_prefix(e, "builtin data: %s", part);
        if (*target < (target == rows) || *target > 10000000)
            FAIL(e, TARE_E_RANGE, "builtin data: %s = %s: must be in %d .. 10000000", part, value, target == rows);
        text += size + (text[size] == '&');
    }
    return TARE_OK;
}

tare_status builtin_generate(const char *name, struct dataset *out, struct err *e)
{
    const char *split = strchr(name, '/'), *options = strchr(name, '?');
    const size_t split_size = split ? (options ? (size_t)(options - split - 1) : strlen(split + 1)) : 0;
    int which = 0;
    if (tasks_have(name)) return tasks_generate(name, out, e);
    while (split && which < SPLITS &&
           (strlen(splits[which].name) != split_size || strncmp(split + 1, splits[which].name, split_size)))
        which++;
    const bool cold = !strncmp(name, "cold/", 5);
    if ((strncmp(name, "arithmetic/", 11) && !cold) || which == SPLITS)
        FAIL(
            e, TARE_E_NOT_FOUND,
            "unknown data set builtin:%s; use train, heldout, phase1 or phase2 of builtin:arithmetic/ or builtin:cold/, or train, heldout or warm of builtin:rewrite/, countdown/, answers/, bandit/ or words/",
            name);
    struct making m = {.out = out, .cold = cold, .split = splits[which].name, .capacity = splits[which].rows};
    TRY(builtin_options(options ? options + 1 : "", &m.capacity, &m.seed, e));
    if (which == HELDOUT) m.capacity *= KINDS;
    m.draws.key = rng_derive(rng_key((uint64_t)m.seed, RNG_DATA), (uint64_t)which);
    TRY(arena_new(&out->arena, &out->rows, m.capacity, e));
    tare_status status;
    if (which == TRAIN)
        status = make_train(&m, e);
    else if (which == HELDOUT)
        status = make_heldout(&m, e);
    else
        status = make_supervised(&m, which == PHASE2, e);
    hash_set_free(&m.seen);
    return status;
}
