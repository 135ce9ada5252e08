/* Compares the files of a step: its rollouts, and the estimator's state before it. */
#include "observe/rollouts.h"
#include "lab/compare/finder.h"

#include <string.h>

/* Kinds of the members of a rollout's line, in the order of a step's stages; other members have the
 * kind "rollout". */
static const struct {
    const char *member, *what;
} KINDS[] = {{"completion", "token"},
             {"length", "token"},
             {"finish", "token"},
             {"reward", "reward"},
             {"components", "reward"},
             {"verdict", "reward"},
             {"component_verdicts", "reward"},
             {"extracted", "reward"},
             {"reason", "reward"},
             {"baseline", "baseline"},
             {"scale", "scale"},
             {"confidence", "confidence"},
             {"advantage", "advantage"},
             {"rollout_weight", "rollout_weight"}};

static const char *kind_of(const char *member)
{
    for (size_t i = 0; i < sizeof KINDS / sizeof *KINDS; i++)
        if (!strcmp(KINDS[i].member, member)) return KINDS[i].what;
    return "rollout";
}

static bool same_number(const json_t *a, const json_t *b)
{
    const double x = json_number_value(a), y = json_number_value(b);
    return !memcmp(&x, &y, sizeof x);
}

static bool same_member(const json_t *a, const json_t *b)
{
    return a && b && (json_is_number(a) && json_is_number(b) ? same_number(a, b) : json_equal(a, b));
}

/* ---------------------------------------------------------------- tokens */

struct text {
    const char *data;
    int64_t n;
};

static struct text text_of(const json_t *j)
{
    return (struct text){json_is_string(j) ? json_string_value(j) : "", (int64_t)json_string_length(j)};
}

/* Names the first id that differs as "token N" with its text in both runs. Returns false without a
 * tokenizer. */
static bool name_token(const struct finder *f, struct text a, struct text b, char *where, size_t capacity, struct str *out)
{
    struct token_ids ids[2] = {0};
    bool named = f->tokenizer && !tokenizer_encode(f->tokenizer, a.data, a.n, &ids[0], NULL) &&
                 !tokenizer_encode(f->tokenizer, b.data, b.n, &ids[1], NULL);
    int64_t at = 0;
    while (named && at < ids[0].n && at < ids[1].n && ids[0].data[at] == ids[1].data[at]) at++;
    snprintf(where, capacity, "token %lld of the completion", (long long)at + 1);
    for (int k = 0; k < 2 && named; k++)
        if (at < ids[k].n) named = !tokenizer_decode(f->tokenizer, ids[k].data + at, 1, false, &out[k], NULL);
    token_ids_free(&ids[0]);
    token_ids_free(&ids[1]);
    return named;
}

static tare_status add_token(struct finder *f, struct difference *d, const json_t *a, const json_t *b, struct err *e)
{
    char where[200], token[100];
    struct str text[2] = {0};
    const struct text x = text_of(a), y = text_of(b);
    if (!name_token(f, x, y, token, sizeof token, text)) {
        int64_t at = 0;
        while (at < x.n && at < y.n && x.data[at] == y.data[at]) at++;
        snprintf(token, sizeof token, "byte %lld of the completion", (long long)at + 1);
        str_clear(&text[0]);
        str_clear(&text[1]);
        tare_status status = str_add(&text[0], x.data, x.n, e);
        if (!status) status = str_add(&text[1], y.data, y.n, e);
        if (status) {
            str_free(&text[0]);
            str_free(&text[1]);
            return status;
        }
    }
    snprintf(where, sizeof where, "%s, %s", d->where, token);
    d->where = where;
    d->a = json_stringn(text[0].size ? text[0].data : "", (size_t)text[0].size);
    d->b = json_stringn(text[1].size ? text[1].data : "", (size_t)text[1].size);
    const tare_status status = compare_add_difference(f, d, e);
    str_free(&text[0]);
    str_free(&text[1]);
    return status;
}

/* ---------------------------------------------------------------- rollouts */

static tare_status compare_member(struct finder *f, struct difference d, const char *member, json_t *const value[2], struct err *e)
{
    char where[200];
    d.what = kind_of(member);
    if (same_member(value[0], value[1]) || compare_found(f, d.what)) return TARE_OK;
    /* records of older builds lack it */
    if (!strcmp(member, "answer") && (!value[0] || !value[1])) return TARE_OK;
    if (!strcmp(member, "completion")) return add_token(f, &d, value[0], value[1], e);
    snprintf(where, sizeof where, "%s, %s", d.where, member);
    d.where = where;
    d.a = json_incref(value[0]);
    d.b = json_incref(value[1]);
    return compare_add_difference(f, &d, e);
}

static tare_status compare_rollout(struct finder *f, int64_t step, json_t *const row[2], struct err *e)
{
    char where[100];
    const char *member;
    json_t *value;
    snprintf(where, sizeof where, "group %lld, rollout %lld", (long long)json_int_or(row[0], "group", -1),
             (long long)json_int_or(row[0], "sample", -1));
    const struct difference d = {.step = step, .where = where};
    for (int side = 0; side < 2; side++) {
        json_object_foreach(row[side], member, value)
        {
            json_t *const pair[2] = {json_object_get(row[0], member), json_object_get(row[1], member)};
            if (!side || !pair[0]) TRY(compare_member(f, d, member, pair, e));
        }
    }
    return TARE_OK;
}

/* Reads the next line as an object; NULL at the end. */
static tare_status next_line(const struct fs_map *m, int64_t *at, const char *path, int64_t line, json_t **out, struct err *e)
{
    char where[FS_PATH + 32];
    *out = NULL;
    if (*at >= m->size) return TARE_OK;
    const char *begin = (const char *)m->data + *at, *newline = memchr(begin, '\n', (size_t)(m->size - *at));
    snprintf(where, sizeof where, "%.*s:%lld", FS_PATH - 1, path, (long long)line);
    if (!newline) FAIL(e, TARE_E_CORRUPT, "%s: incomplete line", where);
    *at += newline + 1 - begin;
    return json_parse(begin, newline - begin, where, out, e);
}

static tare_status compare_lines(struct finder *f, int64_t step, const char (*path)[FS_PATH], const struct fs_map *m, struct err *e)
{
    int64_t at[2] = {0};
    tare_status status = TARE_OK;
    bool more = true;
    for (int64_t line = 1; !status && more; line++) {
        json_t *row[2] = {0};
        struct err why = {0};
        for (int k = 0; k < 2; k++)
            if (next_line(&m[k], &at[k], path[k], line, &row[k], &why)) more = false;
        if (why.code) {
            status = compare_add_text(f, "damaged", why.message, e);
        } else if (row[0] && row[1]) {
            status = compare_rollout(f, step, row, e);
        } else {
            more = false;
            const struct difference d = {.what = "rollout",
                                         .step = step,
                                         .where = "number of rollouts",
                                         .a = json_string(row[0] ? "more" : "fewer"),
                                         .b = json_string(row[1] ? "more" : "fewer")};
            if (row[0] || row[1])
                status = compare_add_difference(f, &d, e);
            else {
                json_decref(d.a);
                json_decref(d.b);
            }
        }
        json_decref(row[0]);
        json_decref(row[1]);
    }
    return status;
}

static tare_status compare_states(struct finder *f, int64_t step, const struct fs_map *m, struct err *e)
{
    int64_t at = 0;
    char where[100];
    TRY(compare_count(f, "estimator_states", e));
    while (at < m[0].size && at < m[1].size && m[0].data[at] == m[1].data[at]) at++;
    if (at == m[0].size && at == m[1].size) return TARE_OK;
    snprintf(where, sizeof where, "byte %lld of estimator/step-%06lld.state", (long long)at, (long long)step);
    return compare_add_difference(f, &(struct difference){.what = "estimator_state", .step = step, .where = where}, e);
}

static tare_status compare_dumps(struct finder *f, int64_t step, const char (*path)[FS_PATH], const struct fs_map *m, struct err *e)
{
    TRY(compare_count(f, "rollouts", e));
    if (m[0].size == m[1].size && (!m[0].size || !memcmp(m[0].data, m[1].data, (size_t)m[0].size))) return TARE_OK;
    return compare_lines(f, step, path, m, e);
}

/* Maps the file of both runs and compares it if both have it. */
static tare_status compare_rollout_pair(struct finder *f, int64_t step, const char *name, bool dump, struct err *e)
{
    char path[2][FS_PATH];
    struct fs_map m[2] = {0};
    struct err why = {0};
    int n = 0;
    for (int k = 0; k < 2; k++) TRY(fs_join(path[k], f->o->run[k], name, e));
    const bool there[2] = {fs_exists(path[0]), fs_exists(path[1])};
    for (int k = 0; k < 2; k++)
        if (there[k] && !there[!k]) TRY(compare_count_only(f, k, dump ? "rollouts" : "estimator_states", e));
    if (!there[0] || !there[1]) return TARE_OK;
    while (n < 2 && !fs_map(path[n], &m[n], &why)) n++;
    tare_status status = n < 2  ? compare_add_text(f, "damaged", why.message, e)
                         : dump ? compare_dumps(f, step, (const char(*)[FS_PATH])path, m, e)
                                : compare_states(f, step, m, e);
    while (n > 0) fs_unmap(&m[--n]);
    return status;
}

tare_status compare_step_files(struct finder *f, int64_t step, struct err *e)
{
    char name[100];
    snprintf(name, sizeof name, "rollouts/step-%06lld.jsonl", (long long)step);
    TRY(compare_rollout_pair(f, step, name, true, e));
    snprintf(name, sizeof name, "estimator/step-%06lld.state", (long long)step);
    return compare_rollout_pair(f, step, name, false, e);
}
