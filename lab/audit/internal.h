/* State shared by the parts of an audit. Internal to lab/audit. */
#ifndef TARE_LAB_AUDIT_INTERNAL_H
#define TARE_LAB_AUDIT_INTERNAL_H

#include "base/fs.h"
#include "data/dataset.h"
#include "estimate/estimate.h"
#include "lab/audit/audit.h"
#include "observe/written.h"
#include "verify/verify.h"

/* Columns of a row, in the order in which they are checked. */
#define AUDIT_COLUMNS(X)                                                                                                           \
    X(STEP, step)                                                                                                                  \
    X(GROUP, group)                                                                                                                \
    X(PROMPT, prompt)                                                                                                              \
    X(COMPLETION, completion)                                                                                                      \
    X(ANSWER, answer) X(REWARD, reward) X(ADVANTAGE, advantage) X(WEIGHT, weight) X(LENGTH, length) X(LOSS_SCALE, loss_scale)
#define AUDIT_COLUMN(NAME, TEXT) AUDIT_##NAME,
enum audit_column { AUDIT_COLUMNS(AUDIT_COLUMN) AUDIT_N };
#undef AUDIT_COLUMN
const char *audit_column_name(enum audit_column c);

/* Ways to find the rollouts of a prompt. */
enum audit_grouping {
    GROUPS_IN_ORDER, /* consecutive rows */
    GROUPS_BY_PROMPT /* rows with one prompt, or one value of the column `group`, in any order */
};

enum { MAP_TERMS = 16 };
struct field_map {
    const char *name;
    /* NULL: none; a path such as "metadata.answer" or "prompt.-1.content"; reward: a sum such as
     * "a+0.5*b". */
    const char *column[AUDIT_N];
    enum audit_grouping grouping;
};
/* Chooses the map for a row and applies the user's columns; strings are in the arena. */
tare_status fields_choose(const struct audit_options *o, const json_t *row, const char *where, struct arena *a,
                          struct field_map *out, struct err *e);
/* Lists the row's columns that the map does not use, separated by commas. */
void fields_unused(const struct field_map *m, const json_t *row, char *out, size_t capacity);

struct audit_row {
    json_t *object;
    /* step, length -1: none; group: set by groups.c */
    int64_t line, step, group, length;
    /* a column of the reward is missing, or not a number or null */
    bool no_reward;
    const char *group_key;                        /* text of the column `group`; NULL: none */
    tare_text prompt, completion, answer;         /* data NULL: none */
    double reward, advantage, weight, loss_scale; /* NAN: none */
    /* the value is not a number (step, length: not an integer >= 0) */
    bool odd[AUDIT_N];
};
/* Reads a row's columns from its object, which must outlive it. */
tare_status fields_read(const struct field_map *m, const json_t *object, struct arena *a, struct audit_row *out, struct err *e);

/* A step of a dump with its rows in groups: order[begin[m]] .. order[begin[m + 1] - 1] are the rows
 * of group m. */
struct audit_step {
    struct audit_row *row;
    /* number: the rows' step; in_name: the step in the file's name, -1: none */
    int64_t n, n_groups, number, in_name;
    const char *file, *state; /* state: the estimator's, before this step; NULL: none */
    int64_t *order, *begin;
    bool *whole; /* [n_groups] the group has all its rollouts */
};
struct audit;
/* Fills order, begin, whole and row.group, and reports groups of another size. */
tare_status groups_find(struct audit *a, struct audit_step *s, struct err *e);

/* The rows of data.train by their question (answers.c). */
struct answers {
    struct dataset data;
    struct answer_key {
        uint64_t hash;
        int64_t row;
    } * by_hash;
    bool open;
};
tare_status answers_open(const struct config *c, struct answers *out, struct err *e);
void answers_close(struct answers *a);
/* Returns the row whose question is the prompt (of several, one with this answer if there is any),
 * else the one with the longest question inside it, or NULL. */
const struct row *answers_find(const struct answers *a, tare_text prompt, tare_text answer);

struct audit {
    const struct audit_options *o;
    struct field_map map;
    bool mapped, own; /* mapped: the map has been chosen; own: the dump is of a tare run */
    struct verify *verify;
    struct estimator *estimator;
    struct answers answers;
    struct written written; /* checksums of the run that wrote the dumps */
    struct arena step;      /* reset for each file */
    struct arena run;
    int64_t group_size, files, steps, rows, groups;
    int64_t checked[AUDIT_N], disagree[AUDIT_N];
    bool had[AUDIT_N]; /* a row has the column */
    char unused[400];  /* columns of the first row that the map does not use */
    /* rewards computed, different from the dump, not computed */
    int64_t judged, disputed, unjudged;
    double least, most;       /* share of the loss of a rollout; most 0: unknown */
    struct finding *findings; /* of this file */
    int64_t n_findings, capacity;
    json_t *list; /* the findings of all files, the first 1,000 */
};

/* A disagreement of a row. says: the value in the dump; expected: the recomputed value; either may
 * be NULL. text describes the fault. */
struct finding {
    int64_t row_line, step, group, rollout;
    enum audit_column column;
    const char *says, *expected, *text;
};
/* Adds a finding about row i of the step. */
tare_status audit_add_finding(struct audit *a, const struct audit_step *s, int64_t i, struct finding f, struct err *e);
/* Formats a text in the arena of the file. */
tare_status audit_format(struct audit *a, const char **out, struct err *e, const char *format, ...) ERR_PRINTF(4, 5);
bool audit_agrees(const struct audit *a, double x, double y);

/* check.c, advantages.c */
tare_status check_step(struct audit *a, struct audit_step *s, struct err *e);
tare_status audit_check_advantages(struct audit *a, struct audit_step *s, struct err *e);

/* Checks each step of each file in order (dump.c). */
tare_status dump_read(struct audit *a, struct err *e);

#endif
