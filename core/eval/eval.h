/* `tare eval`: samples k completions for each question of a task, verifies them, writes them out,
 * and tabulates them.
 *
 *   eval_run      samples what the folder eval.out lacks, then makes the table from the folder
 *
 * The folder:
 *   eval.json        settings of the samples; a folder is only continued with the same ones
 *   samples.jsonl    the record: one line a sample, grouped by question, in the file's order
 *   questions.jsonl  one line a question: id, samples, correct, pass_rate, mean length
 *                    (read by eval.difficulty)
 *   results.json     the table; also printed as Markdown
 *
 * A process killed at any moment continues after the last question with all k samples. The table is
 * made from samples.jsonl alone, so it is bit-identical however often the work was interrupted.
 *
 * Letters: n questions, k samples of each, c_q of them correct (verdict `correct` of the first
 * verifier).
 *   avg@k  = mean over q of c_q / k               the estimate of pass@1
 *   pass@j = mean over q of 1 - C(k - c_q, j) / C(k, j), j = 1, 2, 4, ..., k
 *            unbiased (Chen et al. 2021, arXiv 2107.03374, equation 1)
 *
 * Intervals: bootstrap over questions (percentiles 2.5 and 97.5 of eval.bootstrap resamplings,
 * drawn by Philox from run.seed).
 *
 * Threads: one evaluation from one thread at a time. */
#ifndef TARE_CORE_EVAL_EVAL_H
#define TARE_CORE_EVAL_EVAL_H

#include "base/arena.h"
#include "base/json.h"
#include "base/rng.h"
#include "batch/batch.h"
#include "config/config.h"
#include "data/dataset.h"
#include "dist/comm.h"
#include "engine/make_model.h"

/* ---- run.c */
/* make is called on rank 0 if the model is missing; NULL: it is not made. The table is appended as
 * Markdown to `table` on rank 0. comm: the job's; all ranks call this function. The folder belongs
 * to rank 0 and has the same bytes for any number of ranks. TARE_E_CANCELLED: interrupted; the same
 * call continues, on any number of ranks. */
tare_status eval_run(const struct config *c, make_model make, struct comm *comm, struct str *table, struct err *e);

/* ---- checkpoints.c */
/* eval.name, or the file name of data.eval without its extension; characters that a folder name
 * cannot contain become '-'. TARE_E_CONFIG: missing, or it contains a slash. */
tare_status eval_task_name(const struct config *c, char task[256], struct err *e);

/* ---- statistics.c: pure functions */
/* Returns 1 - C(n - c, k) / C(n, k), for 0 <= c <= n, 1 <= k <= n. */
double eval_pass_at(int64_t n, int64_t c, int64_t k);
/* Returns quantile q in [0, 1] of x [n], sorted, n >= 1: linear between order statistics (type 7 of
 * Hyndman and Fan). */
double eval_quantile(const double *x, int64_t n, double q);
struct eval_values {
    const double *x; /* [n, m], in [0, 1] */
    int64_t n, m;
};
struct eval_resampling {
    int64_t rounds;
    struct rng_key key;
};
/* Bootstraps the means: low and high [m] over `rounds` resamplings of the n rows, the same rows for
 * all m. If all rows are equal, the result is an exact bound instead of an interval of zero width.
 * NAN for rounds = 0 or n = 0. */
tare_status eval_bootstrap(const struct eval_values *v, struct eval_resampling how, double *low, double *high, struct err *e);

/* ---- samples.c: samples.jsonl */
struct eval_sample {
    double reward;
    int64_t length;
    int32_t verdict; /* TARE_VERDICT_... */
    bool cut;
};

struct eval_progress {
    int64_t done, bytes; /* complete questions, and their end in the file */
};
/* Reads the record of rows [n] with k samples each into out [n, k]. done: complete questions;
 * bytes: their end in the file. An incomplete end is skipped; anything else that does not match the
 * rows is TARE_E_CORRUPT with file:line. A missing file is empty. */
tare_status eval_samples_read(const char *path, const struct dataset *d, int64_t k, struct eval_sample *out,
                              struct eval_progress *there, struct err *e);
/* Appends the lines of a verified batch. */
tare_status eval_samples_print(const struct batch *b, struct str *out, struct err *e);

/* ---- groups.c: questions that are counted together */
struct eval_grouping {
    const char *name;   /* "level", "subject", "difficulty" */
    const char **label; /* [n]; NULL: the question is in no group */
    int32_t *rank;      /* [n] order of the labels; equal ranks are ordered by number, then text */
};
enum { EVAL_GROUPINGS = 3 };
/* Finds the groupings that the rows and the configuration define, in the arena. */
tare_status eval_groupings(const struct config *c, const struct dataset *d, struct arena *a,
                           struct eval_grouping out[EVAL_GROUPINGS], int *n, struct err *e);
/* Applies rules, one "FIELD OP VALUE" a line, that mark complex rows: out [d->n]. text: the content
 * of a file called name. */
tare_status eval_rules(const char *text, const char *name, const struct dataset *d, bool *out, struct err *e);

/* ---- results.c */
struct eval_report {
    const struct config *config;
    const char *task;
    const struct dataset *data;
    const struct eval_sample *samples; /* [n, k] */
    int64_t k, max_new_tokens;
    const struct eval_grouping *groupings;
    int n_groupings;
    const json_t *identity; /* eval.json */
};
/* Makes results as one JSON object, owned by the caller. */
tare_status eval_results(const struct eval_report *r, json_t **out, struct err *e);
/* Prints results as Markdown. */
tare_status eval_markdown(const json_t *results, struct str *out, struct err *e);
/* questions.jsonl */
tare_status eval_questions(const struct eval_report *r, struct str *out, struct err *e);

#endif
