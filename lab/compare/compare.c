#include "base/log.h"
#include "checkpoint/checkpoint.h"
#include "config/config.h"
#include "lab/compare/finder.h"
#include "observe/run_data.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

/* ---------------------------------------------------------------- differences */

bool compare_found(const struct finder *f, const char *what)
{
    size_t i;
    json_t *d;
    json_array_foreach(json_object_get(f->result, "differences"), i, d)
    {
        if (!strcmp(json_text_or(d, "what", ""), what)) return true;
    }
    return false;
}

tare_status compare_add_difference(struct finder *f, const struct difference *d, struct err *e)
{
    json_t *a = d->a ? d->a : json_null(), *b = d->b ? d->b : json_null(), *by = json_null();
    if (json_is_number(a) && json_is_number(b)) by = json_real(json_number_value(b) - json_number_value(a));
    if (compare_found(f, d->what)) {
        json_decref(a);
        json_decref(b);
        json_decref(by);
        return TARE_OK;
    }
    json_t *o = json_pack("{s:s, s:I, s:s, s:o, s:o, s:o, s:I}", "what", d->what, "step", (json_int_t)d->step, "where", d->where,
                          "a", a, "b", b, "by", by ? by : json_null(), "count", (json_int_t)d->count);
    if (!o || json_array_append_new(json_object_get(f->result, "differences"), o))
        FAIL(e, TARE_E_NOMEM, "no memory for a difference of step %lld", (long long)d->step);
    const json_t *first = json_object_get(f->result, "first_step");
    if (!json_is_integer(first) || json_integer_value(first) > d->step)
        json_object_set_new(f->result, "first_step", json_integer(d->step));
    return TARE_OK;
}

tare_status compare_add_text(struct finder *f, const char *list, const char *text, struct err *e)
{
    json_t *s = json_string(text);
    if (!s || json_array_append_new(json_object_get(f->result, list), s)) FAIL(e, TARE_E_NOMEM, "no memory for a message");
    return TARE_OK;
}

tare_status compare_count(struct finder *f, const char *what, struct err *e)
{
    json_t *all = json_object_get(f->result, "compared");
    if (json_object_set_new(all, what, json_integer(json_int_or(all, what, 0) + 1))) FAIL(e, TARE_E_NOMEM, "no memory to count");
    return TARE_OK;
}

/* ---------------------------------------------------------------- configuration */

static tare_status read_manifest(struct finder *f, int k, struct err *e)
{
    struct err why = {0};
    char path[FS_PATH];
    TRY(fs_join(path, f->o->run[k], "manifest.json", e));
    tare_status status = json_read_file(path, &f->manifest[k], &why);
    if (!status && !json_is_object(f->manifest[k]))
        status = err_set(&why, TARE_E_CORRUPT, __FILE__, __LINE__, "%s: must be a JSON object", path);
    return status ? compare_add_text(f, "damaged", why.message, e) : TARE_OK;
}

/* Returns the hash of the rows that the run read last, or NULL if manifest.json has none. name:
 * "train_xxh3" or "eval_xxh3". */
static const char *rows_hash(const json_t *manifest, const char *name)
{
    const json_t *later = json_object_get(manifest, "resumed");
    const char *hash = json_text_or(json_object_get(manifest, "data"), name, NULL);
    for (size_t i = 0; i < json_array_size(later); i++)
        hash = json_text_or(json_object_get(json_array_get(later, i), "data"), name, hash);
    return hash && *hash ? hash : NULL;
}

/* Returns "same", "other" or "unknown", by the hashes of the rows: the name of a file does not
 * identify its rows. */
static const char *other_rows(const struct finder *f, const char *name)
{
    const char *a = rows_hash(f->manifest[0], name), *b = rows_hash(f->manifest[1], name);
    return !a || !b ? "unknown" : !strcmp(a, b) ? "same" : "other";
}

static tare_status take_key(void *ctx, const struct config_difference *d, struct err *e)
{
    struct finder *f = ctx;
    char key[600];
    const char *rows = NULL;
    bool changes = d->changes_training;
    if (!strcmp(d->section, "run") && (!strcmp(d->key, "dir") || !strcmp(d->key, "name"))) return TARE_OK;
    snprintf(key, sizeof key, "%s.%s", d->section, d->key);
    if (!strcmp(key, "data.train")) changes = strcmp(rows = other_rows(f, "train_xxh3"), "same") != 0;
    if (!strcmp(key, "data.eval")) rows = other_rows(f, "eval_xxh3");
    json_t *o = json_pack("{s:s, s:s, s:s, s:b, s:s*}", "key", key, "a", d->before, "b", d->after, "changes_training", changes,
                          "rows", rows);
    if (!o || json_array_append_new(json_object_get(f->result, "configuration"), o))
        FAIL(e, TARE_E_INVALID, "%s: the value is not valid UTF-8", key);
    return TARE_OK;
}

/* Adds a file with the same path in both runs but other rows: it was changed between them. */
static tare_status add_changed_rows(struct finder *f, const char *key, const char *const path[2], struct err *e)
{
    const bool train = !strcmp(key, "data.train");
    if (!path[0] || !path[1] || strcmp(path[0], path[1])) return TARE_OK;
    if (strcmp(other_rows(f, train ? "train_xxh3" : "eval_xxh3"), "other")) return TARE_OK;
    json_t *o =
        json_pack("{s:s, s:s, s:s, s:b, s:s}", "key", key, "a", path[0], "b", path[1], "changes_training", train, "rows", "other");
    if (!o || json_array_append_new(json_object_get(f->result, "configuration"), o))
        FAIL(e, TARE_E_INVALID, "%s: the value is not valid UTF-8", key);
    return TARE_OK;
}

static tare_status compare_configurations(struct finder *f, struct err *e)
{
    struct config c[2];
    struct err why = {0};
    int n = 0;
    for (int k = 0; k < 2; k++) TRY(read_manifest(f, k, e));
    while (n < 2 && !config_load(&c[n], f->o->run[n], NULL, 0, &why)) n++;
    tare_status status = n < 2 ? compare_add_text(f, "damaged", why.message, e) : config_compare(&c[0], &c[1], take_key, f, e);
    if (!status && n == 2) status = add_changed_rows(f, "data.train", (const char *const[]){c[0].data.train, c[1].data.train}, e);
    if (!status && n == 2) status = add_changed_rows(f, "data.eval", (const char *const[]){c[0].data.eval, c[1].data.eval}, e);
    while (n > 0) config_free(&c[--n]);
    return status;
}

/* ---------------------------------------------------------------- metrics */

static tare_status add_record(struct records *r, const json_t *row, const char *where, struct err *e)
{
    int64_t step;
    TRY(json_get_int(row, "step", where, &step, e));
    if (r->n && step <= r->at[r->n - 1].step)
        FAIL(e, TARE_E_CORRUPT, "%s: step %lld follows step %lld; steps must increase", where, (long long)step,
             (long long)r->at[r->n - 1].step);
    if (r->n == r->capacity) {
        const int64_t capacity = r->capacity ? 2 * r->capacity : 256;
        struct record *larger = realloc(r->at, (size_t)capacity * sizeof *larger);
        if (!larger) FAIL(e, TARE_E_NOMEM, "%s: no memory", where);
        r->at = larger;
        r->capacity = capacity;
    }
    r->at[r->n++] = (struct record){json_incref((json_t *)(uintptr_t)row), step};
    return TARE_OK;
}

/* Reads metrics.jsonl without an incomplete line at its end: the run is in progress or was killed.
 */
static tare_status read_records(const char *run, struct records *r, struct err *e)
{
    char path[FS_PATH];
    OWNED(str_free) struct str text = {0};
    TRY(run_folder_check(run, e));
    TRY(fs_join(path, run, "metrics.jsonl", e));
    if (!fs_exists(path)) return TARE_OK;
    TRY(fs_read_all(path, &text, e));
    int64_t number = 1;
    for (const char *at = text.data, *newline; at < text.data + text.size; at = newline + 1, number++) {
        char where[FS_PATH + 32];
        OWNED(json_decrefp) json_t *row = NULL;
        newline = memchr(at, '\n', (size_t)(text.data + text.size - at));
        if (!newline) break;
        snprintf(where, sizeof where, "%s:%lld", path, (long long)number);
        TRY(json_parse(at, newline - at, where, &row, e));
        TRY(add_record(r, row, where, e));
    }
    return TARE_OK;
}

static bool is_the_machines(const char *name)
{
    return !strncmp(name, "time/", 5) || !strncmp(name, "memory/", 7) || !strncmp(name, "speculation/", 12) ||
           !strcmp(name, "tokens_per_second") || !strcmp(name, "step");
}

/* Compares numbers by their bits: -0.0 differs from 0.0. JSON has 0.5 as a real and 1 as an
 * integer. */
static bool same_value(const json_t *a, const json_t *b)
{
    if (!json_is_number(a) || !json_is_number(b)) return a && b && json_equal(a, b);
    const double x = json_number_value(a), y = json_number_value(b);
    return !memcmp(&x, &y, sizeof x);
}

static tare_status compare_rows(struct finder *f, const json_t *a, const json_t *b, int64_t step, struct err *e)
{
    struct difference d = {.what = "metric", .step = step};
    for (int side = 0; side < 2; side++) { /* the metrics of a, then those of b alone */
        const char *name;
        json_t *value;
        json_object_foreach((json_t *)(uintptr_t)(side ? b : a), name, value)
        {
            json_t *other = json_object_get(side ? a : b, name);
            if (is_the_machines(name) || (side ? other != NULL : same_value(value, other))) continue;
            if (!d.count++) {
                d.where = name;
                d.a = json_incref(side ? NULL : value);
                d.b = json_incref(side ? value : other);
            }
        }
    }
    return d.count ? compare_add_difference(f, &d, e) : TARE_OK;
}

int64_t compare_different_step(const struct finder *f)
{
    size_t i;
    json_t *d;
    json_array_foreach(json_object_get(f->result, "differences"), i, d)
    {
        if (!strcmp(json_text_or(d, "what", ""), "metric")) return json_int_or(d, "step", 0);
    }
    return INT64_MAX;
}

static tare_status compare_metrics(struct finder *f, struct err *e)
{
    const struct records *a = &f->records[0], *b = &f->records[1];
    for (int64_t i = 0, j = 0; i < a->n && j < b->n;) {
        const int64_t step = a->at[i].step;
        if (step != b->at[j].step) {
            const int run = step > b->at[j].step;
            const int64_t at = run ? b->at[j++].step : a->at[i++].step;
            if (at >= f->o->first && at <= f->o->last) TRY(compare_count_only(f, run, "steps", e));
            continue;
        }
        if (step >= f->o->first && step <= f->o->last) {
            TRY(compare_count(f, "steps", e));
            if (!compare_found(f, "metric")) TRY(compare_rows(f, a->at[i].row, b->at[j].row, step, e));
        }
        i++;
        j++;
    }
    return TARE_OK;
}

static tare_status compare_lengths(struct finder *f, struct err *e)
{
    int64_t last[2];
    for (int k = 0; k < 2; k++) last[k] = f->records[k].n ? f->records[k].at[f->records[k].n - 1].step : -1;
    if (last[0] == last[1]) return TARE_OK;
    const struct difference d = {.what = "length",
                                 .step = 1 + (last[0] < last[1] ? last[0] : last[1]),
                                 .where = "the last recorded step",
                                 .a = json_integer(last[0]),
                                 .b = json_integer(last[1])};
    return compare_add_difference(f, &d, e);
}

/* ---------------------------------------------------------------- the comparison */

/* Finds a tokenizer in the first run, to name tokens in differences; without one, bytes are named.
 */
static void find_tokenizer(struct finder *f)
{
    char folder[FS_PATH];
    int64_t step;
    struct config c;
    if (!checkpoint_latest(f->o->run[0], folder, &step, NULL) && step >= 0 && !tokenizer_load(folder, &f->tokenizer, NULL)) return;
    f->tokenizer = NULL;
    if (config_load(&c, f->o->run[0], NULL, 0, NULL)) return;
    if (tokenizer_load(c.model.path, &f->tokenizer, NULL)) f->tokenizer = NULL;
    config_free(&c);
}

/* Refuses a folder that cannot be read, which would otherwise seem empty. */
static tare_status check_folders(struct finder *f, struct err *e)
{
    static const char *const FOLDERS[] = {"checkpoints/.", "rollouts/.", "estimator/."};
    for (int k = 0; k < 2; k++) {
        for (int i = 0; i < 3; i++) {
            char path[FS_PATH];
            struct err why = {0};
            bool there;
            TRY(fs_join(path, f->o->run[k], FOLDERS[i], e));
            if (fs_there(path, &there, &why)) TRY(compare_add_text(f, "damaged", why.message, e));
        }
    }
    return TARE_OK;
}

static tare_status compare_files(struct finder *f, struct err *e)
{
    TRY(check_folders(f, e));
    int64_t last = f->o->last;
    for (int k = 0; k < 2; k++) {
        const struct records *r = &f->records[k];
        const int64_t own = r->n ? r->at[r->n - 1].step : -1;
        if (own < last) last = own;
    }
    for (int64_t step = f->o->first < 1 ? 1 : f->o->first; step <= last; step++) {
        TRY(compare_step_files(f, step, e));
        TRY(compare_checkpoints(f, step, e));
    }
    return compare_missing(f, last, e);
}

/* Sorts differences by step, and within a step in the order in which they were found. */
static tare_status sort_differences(struct finder *f, struct err *e)
{
    json_t *from = json_object_get(f->result, "differences"), *to = json_array();
    size_t i;
    json_t *d;
    json_array_foreach(from, i, d)
    {
        size_t at = json_array_size(to);
        while (at && json_int_or(json_array_get(to, at - 1), "step", 0) > json_int_or(d, "step", 0)) at--;
        if (json_array_insert(to, at, d)) {
            json_decref(to);
            FAIL(e, TARE_E_NOMEM, "no memory to sort the differences");
        }
    }
    json_object_set_new(f->result, "differences", to);
    return TARE_OK;
}

static bool trained_otherwise(const struct finder *f)
{
    size_t i;
    json_t *key;
    json_array_foreach(json_object_get(f->result, "configuration"), i, key)
    {
        if (json_bool_or(key, "changes_training", 1)) return true;
    }
    return false;
}

static tare_status compare_all(struct finder *f, struct err *e)
{
    for (int k = 0; k < 2; k++) TRY(read_records(f->o->run[k], &f->records[k], e));
    find_tokenizer(f);
    if (f->o->configuration) TRY(compare_configurations(f, e));
    TRY(compare_files(f, e));
    TRY(compare_metrics(f, e));
    if (f->o->configuration) TRY(compare_lengths(f, e));
    TRY(compare_curve(f, e));
    TRY(sort_differences(f, e));
    if (f->o->configuration && !f->records[0].n && !f->records[1].n)
        TRY(compare_add_text(f, "damaged", "neither run has a recorded step, so nothing was compared", e));
    const bool same = !json_array_size(json_object_get(f->result, "differences")) && !trained_otherwise(f) &&
                      !json_array_size(json_object_get(f->result, "damaged"));
    json_object_set_new(f->result, "same", json_boolean(same));
    return TARE_OK;
}

tare_status compare_runs(const struct compare_options *o, json_t **out, struct err *e)
{
    struct finder f = {.o = o};
    f.result = json_pack("{s:s, s:s, s:b, s:n, s:[], s:[], s:{}, s:{}, s:{}, s:[], s:[]}", "a", o->run[0], "b", o->run[1], "same",
                         0, "first_step", "configuration", "differences", "compared", "only_a", "only_b", "damaged", "notes");
    *out = NULL;
    if (!f.result) FAIL(e, TARE_E_INVALID, "%s, %s: not valid UTF-8", o->run[0], o->run[1]);
    const tare_status status = compare_all(&f, e);
    for (int k = 0; k < 2; k++) {
        for (int64_t i = 0; i < f.records[k].n; i++) json_decref(f.records[k].at[i].row);
        free(f.records[k].at);
        json_decref(f.manifest[k]);
    }
    tokenizer_free(f.tokenizer);
    if (status)
        json_decref(f.result);
    else
        *out = f.result;
    return status;
}
