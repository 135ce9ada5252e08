/* Rows to train and evaluate on: a JSONL file of {"id","question","answer"} (optional choices, level, subject, completion, messages;
 * other fields stay available as the row's JSON text), or a set made on the spot, "builtin:arithmetic/SPLIT?seed=N&rows=N" (builtin.h).
 * A row that cannot be used is refused with file:line. A JSON number as answer counts as its text.
 * Ownership: everything a row points to lives until dataset_free. Threads: read only after loading. */
#ifndef TARE_CORE_DATA_DATASET_H
#define TARE_CORE_DATA_DATASET_H

#include "base/arena.h"
#include "base/str.h"
#include "config/config.h"

#include <stdbool.h>

struct row {
    const char *id; /* "line-12" when the file gives none */
    bool has_id;
    tare_text question;   /* valid UTF-8, not empty */
    tare_text answer;     /* size 0: none (for supervised training, and for verifiers that compare with none) */
    tare_text completion; /* {NULL, 0}: none */
    tare_text subject;    /* {NULL, 0}: none */
    tare_text messages;   /* JSON text of the array that replaces the single user turn; {NULL, 0}: none */
    const tare_text *choices;
    int64_t n_choices;
    double level;      /* NAN: none; levels written as text ("Level 5") stay in json only */
    tare_text json;    /* the whole row as it is in the file */
    uint64_t uid;      /* hash of the id, or of the question when there is no id: the same in every run, split and order */
    const char *where; /* file:line */
    int32_t source;    /* which of the data set's sources */
};

struct dataset {
    struct row *rows;
    int64_t n;
    uint64_t hash; /* of the content: the ids, questions, answers, completions, messages and choices, in order */
    const char *name;
    int64_t n_sources; /* files or patterns, as they are listed */
    double *weight;    /* [n_sources] a.jsonl:0.7, finite and above 0; NULL: none has one */
    struct arena arena;
};

/* source: a file, several with commas between them, or patterns such as data/part-?.jsonl. A file may have a weight for a curriculum to use,
 * "a.jsonl:0.7 b.jsonl:0.3": all of them or none.
 * limit: first rows only, 0 all. On failure out holds nothing to free. */
tare_status dataset_load(const char *source, int64_t limit, struct dataset *out, struct err *e);
/* data.train ("train") or data.eval ("eval") of a configuration; a file that is not there is reported with the line that names it. */
tare_status dataset_of(const struct config *c, const char *key, struct dataset *out, struct err *e);
void dataset_free(struct dataset *d);

/* One row from the text of a JSON object (for filters that read rows from standard input); memory from the arena. */
tare_status dataset_row_parse(const char *json, int64_t n, const char *where, struct arena *arena, struct row *out, struct err *e);

/* Reads whole files and tells every row that cannot be used: bad JSON, missing fields, invalid UTF-8, duplicate ids and questions, and
 * what `check` (may be NULL) finds. check and report are called in file order; a status from either one stops. */
struct dataset_check {
    void *ctx;
    /* Fills reason (256 bytes) when the row cannot be trained on, else leaves it empty. */
    tare_status (*check)(void *ctx, const struct row *row, char *reason, struct err *e);
    tare_status (*report)(void *ctx, const char *where, const char *id, const char *reason, struct err *e);
    int64_t rows, bad; /* results */
};
/* source: as dataset_load takes it. */
tare_status dataset_check(const char *source, struct dataset_check *c, struct err *e);

#endif
