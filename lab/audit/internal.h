/* What the parts of an audit share. Internal to lab/audit. */
#ifndef TARE_LAB_AUDIT_INTERNAL_H
#define TARE_LAB_AUDIT_INTERNAL_H

#include "base/fs.h"
#include "data/dataset.h"
#include "estimate/estimate.h"
#include "lab/audit/audit.h"
#include "observe/written.h"
#include "verify/verify.h"

/* What a row has, in the order in which it is checked. */
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

/* How the rollouts of a prompt are found. */
enum audit_grouping {
    GROUPS_IN_ORDER, /* they stand one after another */
    GROUPS_BY_PROMPT /* the trainer may have changed the order: those with one prompt, or one value of the column `group` */
};

enum { MAP_TERMS = 16 };
struct field_map {
    const char *name;
    const char *column[AUDIT_N]; /* NULL: none; a path as "metadata.answer", "prompt.-1.content"; reward: a sum as "a+0.5*b" */
    enum audit_grouping grouping;
};
/* The map for rows such as this one, with the user's own columns, in the arena. */
tare_status fields_choose(const struct audit_options *o, const json_t *row, const char *where, struct arena *a,
                          struct field_map *out, struct err *e);
/* The names of the row's columns that the map does not take, with commas between them. */
void fields_unused(const struct field_map *m, const json_t *row, char *out, size_t room);

struct audit_row {
    json_t *object;
    int64_t line, step, group, length;    /* step, length -1: none; group: set by groups.c */
    bool no_reward;                       /* a column of the reward is missing, or holds something else than a number or null */
    const char *group_key;                /* text of the column `group`; NULL: none */
    tare_text prompt, completion, answer; /* data NULL: none */
    double reward, advantage, weight, loss_scale; /* NAN: none */
    bool odd[AUDIT_N];                            /* it is there, and no number; step, length: no whole number of 0 or more */
};
/* Takes a row's columns out of its object, which has to outlive it. */
tare_status fields_read(const struct field_map *m, const json_t *object, struct arena *a, struct audit_row *out, struct err *e);

/* One step of a dump, its rows in groups: order[begin[m]] .. order[begin[m+1]-1] are the rows of group m. */
struct audit_step {
    struct audit_row *row;
    int64_t n, n_groups, number, in_name; /* number: step of the rows; in_name: of the file's name, -1: none */
    const char *file, *state;             /* state: the estimator's, before this step; NULL: none */
    int64_t *order, *begin;
    bool *whole; /* [n_groups] as many rollouts as there have to be */
};
struct audit;
/* Fills order, begin, whole, row.group, and tells groups of another size. */
tare_status groups_find(struct audit *a, struct audit_step *s, struct err *e);

/* answers.c: the rows of data.train by their question. */
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
/* The row whose question is the prompt, else the one with the longest question in it; NULL: none. */
const struct row *answers_find(const struct answers *a, tare_text prompt);

struct audit {
    const struct audit_options *o;
    struct field_map map;
    bool mapped, own; /* mapped: the map has been chosen; own: the rows are those of a run of ours */
    struct verify *verify;
    struct estimator *estimator;
    struct answers answers;
    struct written written; /* of the run whose dumps are read */
    struct arena step;      /* reset for each file */
    struct arena run;
    int64_t group_size, files, steps, rows, groups;
    int64_t checked[AUDIT_N], disagree[AUDIT_N];
    bool had[AUDIT_N];                  /* whether some row has the column */
    char unused[400];                   /* columns of the first row that the map does not take */
    int64_t judged, disputed, unjudged; /* rewards that the verifier gave, gives otherwise, could not give */
    double least, most;                 /* share of the loss of a rollout; most 0: not known */
    struct finding *findings;           /* of this file */
    int64_t n_findings, room;
    json_t *list; /* the findings of all files, the first 1,000 */
};

/* A disagreement of a row. says, expected: texts, or NULL; text: what is wrong, as a sentence. */
struct finding {
    int64_t row_line, step, group, rollout;
    enum audit_column column;
    const char *says, *expected, *text;
};
tare_status tell(struct audit *a, const struct audit_step *s, int64_t i, struct finding f, struct err *e);
/* A text in the arena of the file. */
tare_status say(struct audit *a, const char **out, struct err *e, const char *format, ...) ERR_PRINTF(4, 5);
bool agree(const struct audit *a, double x, double y);

/* check.c, advantages.c */
tare_status check_step(struct audit *a, struct audit_step *s, struct err *e);
tare_status audit_check_advantages(struct audit *a, struct audit_step *s, struct err *e);

/* dump.c: calls each step of each file, in order. */
tare_status dump_read(struct audit *a, struct err *e);

#endif
