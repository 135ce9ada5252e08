#include "eval/eval.h"

#include "base/fs.h"
#include "batch/turns.h"
#include "batch/verdict.h"
#include "verify/verify.h"

#include <string.h>

/* ---------------------------------------------------------------- writing */

static json_t *text_json(tare_text t)
{
    return json_stringn(t.data ? t.data : "", (size_t)t.size);
}

/* Prints the order of the options, if choices_permute changed it. */
static void put_choice_order(json_t *o, bool *bad, const struct row *row)
{
    json_t *parsed = row->n_choices ? json_loadb(row->json.data, (size_t)row->json.size, JSON_ALLOW_NUL, NULL) : NULL;
    const json_t *order = json_object_get(parsed, "choice_order");
    if (order) json_put(o, bad, "choice_order", json_copy((json_t *)(uintptr_t)order));
    json_decref(parsed);
}

static tare_status print_sample(const struct batch *b, int64_t m, int64_t i, struct str *out, struct err *e)
{
    const struct row *row = b->row[m];
    OWNED(json_decrefp) json_t *o = json_object();
    bool bad = !o;
    json_put(o, &bad, "id", json_string(row->id));
    json_put(o, &bad, "sample", json_integer(i - b->group_begin[m]));
    json_put(o, &bad, "reward", json_real(b->reward[i]));
    json_put(o, &bad, "verdict", json_string(verdict_name(b->verdict[i])));
    json_put(o, &bad, "length", json_integer(batch_length(b, i)));
    json_put(o, &bad, "finish", json_string(batch_finish_name(b->finish[i])));
    json_put(o, &bad, "answer", text_json(row->answer));
    json_put(o, &bad, "extracted", text_json(b->extracted[i]));
    if (b->reason[i]) json_put(o, &bad, "reason", json_string(b->reason[i]));
    put_choice_order(o, &bad, row);
    json_put(o, &bad, "completion", text_json(b->completion[i]));
    TRY(bad ? err_set(e, TARE_E_INVALID, __FILE__, __LINE__,
                      "%s: sample %lld cannot be written as JSON (no memory, or a verifier's text is not UTF-8)", row->where,
                      (long long)(i - b->group_begin[m]))
            : json_print(o, out, e));
    return str_add(out, "\n", 1, e);
}

tare_status eval_samples_print(const struct batch *b, struct str *out, struct err *e)
{
    for (int64_t m = 0; m < b->n_groups; m++)
        for (int64_t i = b->group_begin[m]; i < b->group_begin[m + 1]; i++) TRY(print_sample(b, m, i, out, e));
    return TARE_OK;
}

/* ---------------------------------------------------------------- reading */

static tare_status read_line(tare_text line, const char *where, const struct row *row, int64_t sample, struct eval_sample *out,
                             struct err *e)
{
    OWNED(json_decrefp) json_t *o = NULL;
    TRY(json_parse(line.data, line.size, where, &o, e));
    const char *id = json_text_or(o, "id", ""), *finish = json_text_or(o, "finish", NULL);
    out->verdict = verdict_code(json_text_or(o, "verdict", ""));
    out->cut = batch_finish_code(finish) == TARE_FINISH_LENGTH;
    TRY(json_get_double(o, "reward", where, &out->reward, e));
    TRY(json_get_int(o, "length", where, &out->length, e));
    if (strcmp(id, row->id) || json_int_or(o, "sample", -1) != sample || !out->verdict || !batch_finish_code(finish))
        FAIL(e, TARE_E_CORRUPT,
             "%s: expected sample %lld of \"%s\" but found another line; remove the folder, or choose another eval.out", where,
             (long long)sample, row->id);
    return TARE_OK;
}

tare_status eval_samples_read(const char *path, const struct dataset *d, int64_t k, struct eval_sample *out,
                              struct eval_progress *there, struct err *e)
{
    OWNED(str_free) struct str text = {0};
    *there = (struct eval_progress){0};
    if (!fs_exists(path)) return TARE_OK;
    TRY(fs_read_all(path, &text, e));
    int64_t line = 0, at = 0;
    while (at < text.size) {
        const char *begin = text.data + at, *end = memchr(begin, '\n', (size_t)(text.size - at));
        char where[FS_PATH + 32];
        /* A kill may leave half a line; after a crash of the machine, an unsynced page reads as
         * zeros. All samples from there on are repeated. */
        if (!end || memchr(begin, 0, (size_t)(end - begin))) break;
        snprintf(where, sizeof where, "%s:%lld", path, (long long)line + 1);
        if (line >= d->n * k)
            FAIL(e, TARE_E_CORRUPT, "%s: more lines than %lld questions with %lld samples each", where, (long long)d->n,
                 (long long)k);
        else
            TRY(read_line((tare_text){begin, end - begin}, where, &d->rows[line / k], line % k, &out[line], e));
        line++;
        at = end + 1 - text.data;
        if (line % k == 0) *there = (struct eval_progress){.done = line / k, .bytes = at};
    }
    return TARE_OK;
}
