/* Checks a step, except for its advantages. */
#include "batch/verdict.h"
#include "lab/audit/internal.h"

#include <math.h>
#include <stdarg.h>
#include <string.h>

/* ---------------------------------------------------------------- findings */

tare_status audit_format(struct audit *a, const char **out, struct err *e, const char *format, ...)
{
    char text[2000], *copy;
    va_list args;
    va_start(args, format);
    const int n = vsnprintf(text, sizeof text, format, args);
    va_end(args);
    int64_t size = n < (int)sizeof text ? n : (int64_t)sizeof text - 1;
    const int64_t bad = str_utf8_error(text, size);
    if (bad) size = bad - 1; /* the limit cut a character */
    TRY(arena_strdup(&a->step, text, size, &copy, e));
    *out = copy;
    return TARE_OK;
}

bool audit_agrees(const struct audit *a, double x, double y)
{
    return fabs(x - y) <= a->o->tolerance * fmax(1, fabs(y));
}

tare_status audit_add_finding(struct audit *a, const struct audit_step *s, int64_t i, struct finding f, struct err *e)
{
    const struct audit_row *r = &s->row[i];
    TRY(mem_grow((void **)&a->findings, &a->capacity, a->n_findings + 1, sizeof *a->findings, e));
    f.row_line = r->line;
    f.step = s->number;
    f.group = r->group;
    f.rollout = 0;
    for (int64_t k = s->begin ? s->begin[r->group] : 0; s->begin && s->order[k] != i; k++) f.rollout++;
    a->findings[a->n_findings++] = f;
    a->disagree[f.column]++;
    return TARE_OK;
}

static tare_status add_number_finding(struct audit *a, const struct audit_step *s, int64_t i, struct finding f, const double x[2],
                                      struct err *e)
{
    char says[32], expected[32];
    TRY(audit_format(a, &f.says, e, "%s", str_from_double(says, x[0])));
    TRY(audit_format(a, &f.expected, e, "%s", str_from_double(expected, x[1])));
    return audit_add_finding(a, s, i, f, e);
}

/* ---------------------------------------------------------------- required columns */

static tare_status check_present(struct audit *a, struct audit_step *s, int64_t i, struct err *e)
{
    const struct audit_row *r = &s->row[i];
    const bool missing[AUDIT_N] = {[AUDIT_PROMPT] = !r->prompt.data,
                                   [AUDIT_COMPLETION] = !r->completion.data,
                                   [AUDIT_ANSWER] = a->had[AUDIT_ANSWER] && !r->answer.data,
                                   [AUDIT_REWARD] = r->no_reward,
                                   [AUDIT_ADVANTAGE] = a->had[AUDIT_ADVANTAGE] && isnan(r->advantage),
                                   [AUDIT_LOSS_SCALE] = a->had[AUDIT_LOSS_SCALE] && isnan(r->loss_scale)};
    a->checked[AUDIT_COMPLETION]++;
    if (r->no_reward) s->whole[r->group] = false; /* its advantages cannot be recomputed */
    for (int c = 0; c < AUDIT_N; c++)
        if (missing[c] || r->odd[c])
            TRY(audit_add_finding(
                a, s, i, (struct finding){.column = (enum audit_column)c, .text = "missing in this row or of another type"}, e));
    return TARE_OK;
}

static tare_status check_number(struct audit *a, const struct audit_step *s, int64_t i, struct err *e)
{
    if (s->in_name < 0 || s->row[i].step < 0) return TARE_OK;
    a->checked[AUDIT_STEP]++;
    if (s->row[i].step == s->in_name) return TARE_OK;
    const double x[2] = {(double)s->row[i].step, (double)s->in_name};
    return add_number_finding(a, s, i, (struct finding){.column = AUDIT_STEP, .text = "differs from the step in the file's name"},
                              x, e);
}

static bool equal_texts(tare_text a, tare_text b)
{
    return a.size == b.size && (!a.size || !memcmp(a.data, b.data, (size_t)a.size));
}

static tare_status add_text_finding(struct audit *a, const struct audit_step *s, int64_t i, struct finding f, const tare_text x[2],
                                    struct err *e)
{
    TRY(audit_format(a, &f.says, e, "%.*s", (int)(x[0].size < 400 ? x[0].size : 400), x[0].data ? x[0].data : ""));
    TRY(audit_format(a, &f.expected, e, "%.*s", (int)(x[1].size < 400 ? x[1].size : 400), x[1].data ? x[1].data : ""));
    return audit_add_finding(a, s, i, f, e);
}

/* Compares prompts or answers of a group with the text that most of its rollouts have (the first of
 * equally frequent ones). */
static tare_status check_equal(struct audit *a, const struct audit_step *s, int64_t m, enum audit_column c, struct err *e)
{
    const int64_t first = s->begin[m], end = s->begin[m + 1];
    int64_t best = first, most = 0;
    for (int64_t k = first; k < end; k++) {
        const struct audit_row *x = &s->row[s->order[k]];
        int64_t n = 0;
        for (int64_t j = first; j < end; j++) {
            const struct audit_row *y = &s->row[s->order[j]];
            n += c == AUDIT_PROMPT ? equal_texts(x->prompt, y->prompt) : equal_texts(x->answer, y->answer);
        }
        if (n > most) {
            most = n;
            best = k;
        }
    }
    const struct audit_row *right = &s->row[s->order[best]];
    for (int64_t k = first; k < end; k++) {
        const struct audit_row *r = &s->row[s->order[k]];
        const tare_text x[2] = {c == AUDIT_PROMPT ? r->prompt : r->answer, c == AUDIT_PROMPT ? right->prompt : right->answer};
        if (!x[0].data || !x[1].data) continue;
        a->checked[c]++;
        if (!equal_texts(x[0], x[1]))
            TRY(add_text_finding(a, s, s->order[k], (struct finding){.column = c, .text = "differs from the rest of its group"}, x,
                                 e));
    }
    return TARE_OK;
}

/* ---------------------------------------------------------------- answers and rewards */

static tare_status check_answer(struct audit *a, const struct audit_step *s, int64_t i, const struct row *row, struct err *e)
{
    const tare_text x[2] = {s->row[i].answer, row ? row->answer : (tare_text){0}};
    if (!row) {
        return audit_add_finding(
            a, s, i, (struct finding){.column = AUDIT_PROMPT, .text = "no question of data.train is in this prompt"}, e);
    }
    if (!x[0].data || !x[1].data || equal_texts(x[0], x[1])) return TARE_OK;
    return add_text_finding(a, s, i, (struct finding){.column = AUDIT_ANSWER, .text = "differs from the answer in data.train"}, x,
                            e);
}

/* Prepares the verifier's input. Its row is the one of data.train if found, otherwise the dump's.
 */
static tare_status make_item(struct audit *a, const struct audit_step *s, int64_t i, const struct row *row,
                             struct verify_item *item, struct err *e)
{
    const struct audit_row *r = &s->row[i];
    OWNED(str_free) struct str json = {0};
    char *name, *copy = NULL;
    struct verify_text *text;
    TRY(audit_format(a, (const char **)(uintptr_t)&name, e, "%s:%lld", s->file, (long long)r->line));
    TRY(arena_new(&a->step, &text, 2, e));
    if (!row) {
        TRY(json_print(r->object, &json, e));
        TRY(arena_strdup(&a->step, json.data, json.size, &copy, e));
    }
    const char *finish = json_text_or(r->object, "finish", NULL);
    *item = (struct verify_item){.prompt = row ? row->question : r->prompt,
                                 .completion = r->completion,
                                 .answer = r->answer.data ? r->answer
                                           : row          ? row->answer
                                                          : (tare_text){"", 0},
                                 .row = row ? row->json : (tare_text){copy, json.size},
                                 .name = name,
                                 .uid = row ? row->uid : 0,
                                 .group = r->group,
                                 .sample = i,
                                 .tokens = r->length < 0 ? 0 : r->length,
                                 .finish = batch_finish_code(finish),
                                 .extracted = &text[0],
                                 .note = &text[1]};
    return TARE_OK;
}

static tare_status compare_reward(struct audit *a, const struct audit_step *s, int64_t i, const struct verify_item *item,
                                  struct err *e)
{
    const double x[2] = {s->row[i].reward, a->o->wrong + item->reward * (a->o->right - a->o->wrong)};
    const char *text;
    if (item->verdict == TARE_VERDICT_TIMED_OUT || item->verdict == TARE_VERDICT_CRASHED) {
        a->unjudged++;
        return TARE_OK;
    }
    a->checked[AUDIT_REWARD]++;
    a->judged++;
    if (audit_agrees(a, x[0], x[1])) return TARE_OK;
    a->disputed++;
    TRY(audit_format(a, &text, e, "the verifier reads \"%.*s\" and the answer is \"%.*s\": %s%s%s",
                     (int)(item->extracted->size < 200 ? item->extracted->size : 200), item->extracted->data,
                     (int)(item->answer.size < 200 ? item->answer.size : 200), item->answer.data, verdict_name(item->verdict),
                     item->note->size ? ", " : "", item->note->data));
    return add_number_finding(a, s, i, (struct finding){.column = AUDIT_REWARD, .text = text}, x, e);
}

static bool can_judge(const struct audit_row *r, const struct row *row)
{
    return r->completion.data && !isnan(r->reward) && (r->answer.data || (row && row->answer.data));
}

/* Verifies the rows again, except those without a known answer or without a reward in the dump. A
 * verifier that may give another verdict the second time proves nothing: the dump counts. */
static tare_status check_rewards(struct audit *a, struct audit_step *s, const struct row *const *row, struct err *e)
{
    struct verify_item *items;
    int64_t *at, n = 0;
    if (verify_unrepeatable(a->verify)) return TARE_OK;
    TRY(arena_new(&a->step, &items, s->n, e));
    TRY(arena_new(&a->step, &at, s->n, e));
    for (int64_t k = 0; k < s->n; k++) {
        const int64_t i = s->order[k];
        if (!can_judge(&s->row[i], row[i])) continue;
        TRY(make_item(a, s, i, row[i], &items[n], e));
        at[n++] = i;
    }
    if (!n) return TARE_OK;
    TRY(verify_items(a->verify, items, n, (struct verify_parts){0}, e));
    for (int64_t k = 0; k < n; k++) TRY(compare_reward(a, s, at[k], &items[k], e));
    return TARE_OK;
}

tare_status check_step(struct audit *a, struct audit_step *s, struct err *e)
{
    const struct row **row;
    TRY(groups_find(a, s, e));
    TRY(arena_new(&a->step, &row, s->n, e));
    for (int64_t i = 0; i < s->n; i++) {
        TRY(check_present(a, s, i, e));
        TRY(check_number(a, s, i, e));
    }
    for (int64_t m = 0; m < s->n_groups; m++) {
        TRY(check_equal(a, s, m, AUDIT_PROMPT, e));
        TRY(check_equal(a, s, m, AUDIT_ANSWER, e));
    }
    for (int64_t i = 0; i < s->n && a->answers.open; i++) {
        const struct audit_row *r = &s->row[i];
        const bool again = i && equal_texts(r->prompt, r[-1].prompt) && equal_texts(r->answer, r[-1].answer);
        row[i] = again ? row[i - 1] : answers_find(&a->answers, r->prompt, r->answer);
        TRY(check_answer(a, s, i, row[i], e));
    }
    TRY(check_rewards(a, s, row, e));
    return audit_check_advantages(a, s, e);
}
