/* Rows for training and evaluation: a JSONL file of {"id","question","answer"} (optional choices,
 * level, subject, completion, messages; other fields remain available as the row's JSON text), or a
 * generated set, "builtin:arithmetic/SPLIT?seed=N&rows=N" (builtin.h). A row that cannot be used is
 * refused with file:line. A JSON number as answer counts as its text. Ownership: everything a row
 * points to lives until dataset_free. Threads: read only after loading. */
#ifndef TARE_CORE_DATA_DATASET_H
#define TARE_CORE_DATA_DATASET_H

#include "base/arena.h"
#include "base/str.h"
#include "config/config.h"

#include <stdbool.h>

/* A part of an example of several turns: an act of the policy, which is learnt, or a text that
 * answers it. */
struct row_part {
    tare_text text;
    bool loss;
};

struct row {
    const char *id; /* "line-12" if the file has none */
    bool has_id;
    tare_text question; /* valid UTF-8, not empty */
    /* size 0: none (for supervised training, and for verifiers that do not compare with it) */
    tare_text answer;
    tare_text completion;         /* {NULL, 0}: none */
    const struct row_part *parts; /* for supervised training, instead of the completion */
    int64_t n_parts;
    tare_text subject; /* {NULL, 0}: none */
    /* JSON text of the array that replaces the single user message; {NULL, 0}: none */
    tare_text messages;
    const tare_text *choices;
    int64_t n_choices;
    double level;   /* NAN: none; levels written as text ("Level 5") are only in json */
    tare_text json; /* the whole row as the file has it */
    /* hash of the id, or of the question if the id is missing: equal in every run, split and order */
    uint64_t uid;
    const char *where; /* file:line */
    int32_t source;    /* index of its source in the data set */
};

struct dataset {
    struct row *rows;
    int64_t n;
    /* hash of the content: ids, questions, answers, completions, messages and choices, in order */
    uint64_t hash;
    const char *name;
    int64_t n_sources; /* number of listed files or patterns */
    /* [n_sources] weights as in a.jsonl:0.7, finite and positive; NULL: no weights */
    double *weight;
    struct arena arena;
};

/* source: a file, several separated by commas, or patterns such as data/part-?.jsonl. A file may
 * have a weight for use by a curriculum, "a.jsonl:0.7 b.jsonl:0.3": either all have one or none.
 * limit: reads only the first rows; 0: all. On failure out needs no dataset_free. */
tare_status dataset_load(const char *source, int64_t limit, struct dataset *out, struct err *e);
/* Loads data.train ("train") or data.eval ("eval") of a configuration. The error for a missing file
 * names the configuration line. */
tare_status dataset_of(const struct config *c, const char *key, struct dataset *out, struct err *e);
/* Warns if data.train has fewer rows than a step has prompts. */
void dataset_warn_few(const struct config *c, int64_t rows);
/* shared.c: Warns if questions of data.eval are also in data.train, under any id. */
tare_status dataset_warn_shared(const struct config *c, const struct dataset *train, const struct dataset *eval, struct err *e);
void dataset_free(struct dataset *d);

/* Parses one row from the text of a JSON object (for filters that read rows from standard input);
 * memory from the arena. */
tare_status dataset_row_parse(const char *json, int64_t n, const char *where, struct arena *arena, struct row *out, struct err *e);

/* Reads whole files and reports every row that cannot be used: bad JSON, missing fields, invalid
 * UTF-8, duplicate ids and questions, and errors found by `check` (may be NULL). check and report
 * are called in file order; a failure of either stops. */
struct dataset_check {
    void *ctx;
    /* Fills reason (256 bytes) if the row cannot be trained on; otherwise leaves it empty. */
    tare_status (*check)(void *ctx, const struct row *row, char *reason, struct err *e);
    tare_status (*report)(void *ctx, const char *where, const char *id, const char *reason, struct err *e);
    int64_t rows, bad; /* results */
};
/* source: as in dataset_load. */
tare_status dataset_check(const char *source, struct dataset_check *c, struct err *e);

#endif
