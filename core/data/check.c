/* `tare data check`: the rows of data files, each with the reason why it cannot be trained on. */
#include "base/json.h"
#include "data/dataset.h"
#include "data/files.h"
#include "data/hash_set.h"
#include "data/lines.h"

#include <stdio.h>
#include <string.h>

struct checking {
    struct dataset_check *c;
    struct seen ids, questions;
    struct arena arena; /* memory of the current row */
    struct files files;
    int64_t file; /* index of the current file */
};

enum { LINE_BITS = 40 };

/* Encodes file and line as one number for the tables of earlier rows. */
static int64_t place_of(const struct checking *k, int64_t line)
{
    return k->file << LINE_BITS | line;
}

static void tell_duplicate(const struct checking *k, const char *what, int64_t earlier, char reason[256])
{
    const int64_t file = earlier >> LINE_BITS;
    const long long line = (long long)(earlier & (((int64_t)1 << LINE_BITS) - 1));
    if (file == k->file)
        snprintf(reason, 256, "duplicate %s, first in line %lld", what, line);
    else
        snprintf(reason, 256, "duplicate %s, first in %.180s:%lld", what, k->files.path[file], line);
}

static void cut_reason(char reason[256], const char *message)
{
    snprintf(reason, 256, "%.255s", message);
    /* a character truncated by the limit */
    const int64_t broken = str_utf8_error(reason, (int64_t)strlen(reason));
    if (broken) reason[broken - 1] = 0;
}

/* Returns the role of the row's last message; "" without messages. */
static tare_status last_role(const struct row *row, char role[32], struct err *e)
{
    OWNED(json_decrefp) json_t *list = NULL;
    role[0] = 0;
    if (!row->messages.data) return TARE_OK;
    TRY(json_parse(row->messages.data, row->messages.size, row->where, &list, e));
    snprintf(role, 32, "%s", json_text_or(json_array_get(list, json_array_size(list) - 1), "role", ""));
    return TARE_OK;
}

static bool is_letter_of(const struct row *row)
{
    return row->answer.size == 1 && row->answer.data[0] >= 'A' && row->answer.data[0] < 'A' + row->n_choices;
}

/* Checks a row that can be read. */
static tare_status check_parsed(struct checking *k, const struct row *row, int64_t number, char reason[256], struct err *e)
{
    int64_t earlier;
    char role[32];
    if (row->has_id) {
        TRY(hash_set_add(&k->ids, row->uid, place_of(k, number), &earlier, e));
        if (earlier >= 0) return tell_duplicate(k, "id", earlier, reason), TARE_OK;
    }
    uint64_t text = fs_hash(row->question.data, row->question.size, 1);
    text = lines_hash_text(lines_hash_text(text, row->messages), row->completion);
    for (int64_t i = 0; i < row->n_choices; i++) text = lines_hash_text(text, row->choices[i]);
    TRY(hash_set_add(&k->questions, text, place_of(k, number), &earlier, e));
    if (earlier >= 0 && !row->parts) return tell_duplicate(k, "question", earlier, reason), TARE_OK;
    TRY(last_role(row, role, e));
    if (!strcmp(role, "assistant"))
        return snprintf(
                   reason, 256,
                   "the last message is of the assistant: the model is asked to answer its own answer; end with the user's message, and move the answer to \"completion\""),
               TARE_OK;
    if (row->n_choices && !is_letter_of(row))
        return snprintf(reason, 256, "the answer is not the letter of one of the %lld choices", (long long)row->n_choices), TARE_OK;
    return k->c->check ? k->c->check(k->c->ctx, row, reason, e) : TARE_OK;
}

/* Counts a row, and reports it if there is a reason. */
static tare_status count_row(struct checking *k, const char *where, const char *id, const char *reason, struct err *e)
{
    k->c->rows++;
    if (!reason[0]) return TARE_OK;
    k->c->bad++;
    return k->c->report(k->c->ctx, where, id, reason, e);
}

static tare_status check_line(struct checking *k, tare_text line, int64_t number, struct err *e)
{
    char where[FS_PATH], reason[256] = "";
    struct row row = {0};
    struct err bad = {0};
    lines_where(where, k->files.path[k->file], number);
    if (!dataset_row_parse(line.data, line.size, where, &k->arena, &row, &bad)) {
        TRY(check_parsed(k, &row, number, reason, e));
        return count_row(k, where, row.id, reason, e);
    }
    if (bad.code == TARE_E_NOMEM) return *e = bad, bad.code;
    const size_t skip = strlen(where) + 2; /* the report already has the place */
    cut_reason(reason, strlen(bad.message) > skip ? bad.message + skip : bad.message);
    return count_row(k, where, "", reason, e);
}

static tare_status check_file(struct checking *k, struct err *e)
{
    const char *path = k->files.path[k->file];
    OWNED(str_free) struct str text = {0};
    TRY(fs_read_lines(path, &text, e));
    TRY(lines_refuse_list(path, &text, e));
    struct lines lines = lines_begin(&text);
    tare_text line;
    const int64_t before = k->c->rows;
    while (lines_next(&lines, &line)) {
        TRY(check_line(k, line, lines.number, e));
        arena_reset(&k->arena);
    }
    if (k->c->rows == before) FAIL(e, TARE_E_INVALID, "%s: no rows; every line must be a JSON object", path);
    return TARE_OK;
}

/* Checks the rows of a built-in data set. */
static tare_status check_builtin(struct checking *k, const char *source, struct err *e)
{
    OWNED(dataset_free) struct dataset d = {0};
    const char *names[] = {source};
    TRY(dataset_load(source, 0, &d, e));
    k->files = (struct files){.path = names, .n = 1};
    for (int64_t i = 0; i < d.n; i++) {
        char reason[256] = "";
        TRY(check_parsed(k, &d.rows[i], i + 1, reason, e));
        TRY(count_row(k, d.rows[i].where, d.rows[i].id, reason, e));
    }
    return TARE_OK;
}

tare_status dataset_check(const char *source, struct dataset_check *c, struct err *e)
{
    struct checking k = {.c = c};
    struct arena names;
    arena_init(&k.arena, "row check");
    arena_init(&names, "files to check");
    c->rows = c->bad = 0;
    const bool builtin = !strncmp(source, "builtin:", 8);
    tare_status status = builtin ? check_builtin(&k, source, e) : files_of(source, &names, &k.files, e);
    for (k.file = 0; !status && !builtin && k.file < k.files.n; k.file++) status = check_file(&k, e);
    arena_free(&k.arena);
    arena_free(&names);
    hash_set_free(&k.ids);
    hash_set_free(&k.questions);
    return status;
}
