/* `tare eval`: a task's questions, k samples each, judged, written out, and counted.
 *
 *   eval_run      samples what is missing in the folder eval.out, then makes the table from what the folder holds
 *
 * The folder:
 *   eval.json        what the samples depend on; a folder is continued only on the same
 *   samples.jsonl    one line a sample, the samples of a question together, questions in the file's order; the record
 *   questions.jsonl  one line a question: id, samples, correct, pass_rate, mean length (what eval.difficulty reads)
 *   results.json     the table; the same as Markdown goes to standard output
 * A process killed at any moment continues after the last question whose k samples are all there. The table is made from samples.jsonl
 * alone, so it has the same bytes however often the work was interrupted.
 *
 * Letters: n questions, k samples of each, c_q of them correct (verdict `correct` of the first verifier).
 *   avg@k  = mean over q of c_q / k               the estimate of pass@1
 *   pass@j = mean over q of 1 - C(k - c_q, j) / C(k, j)     unbiased (Chen et al. 2021, arXiv 2107.03374, equation 1), j = 1, 2, 4, ..., k
 * Intervals: bootstrap over questions (percentiles 2.5 and 97.5 of eval.bootstrap resamplings, drawn by Philox from run.seed).
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
/* make is called on rank 0 when the model is not there; NULL: nothing is made. The table as Markdown is appended to table, on rank 0. comm: of the job, all
 * ranks call it; the folder is rank 0's, and has the same bytes for any number of ranks. TARE_E_CANCELLED: interrupted; the same call continues, on
 * any number of ranks. */
tare_status eval_run(const struct config *c, make_model make, struct comm *comm, struct str *table, struct err *e);

/* ---- checkpoints.c */
/* eval.name, else the file name of data.eval without its ending; what a folder's name cannot hold becomes '-'. TARE_E_CONFIG: there is none, or it
 * has a slash. */
tare_status eval_task_name(const struct config *c, char task[256], struct err *e);

/* ---- statistics.c: pure functions */
/* 1 - C(n - c, k) / C(n, k), 0 <= c <= n, 1 <= k <= n. */
double eval_pass_at(int64_t n, int64_t c, int64_t k);
/* Quantile q in [0, 1] of x [n], sorted, n >= 1: linear between order statistics (type 7 of Hyndman and Fan). */
double eval_quantile(const double *x, int64_t n, double q);
struct eval_values {
    const double *x; /* [n, m], in [0, 1] */
    int64_t n, m;
};
struct eval_resampling {
    int64_t rounds;
    struct rng_key key;
};
/* low and high [m] of the means over rounds resamplings of the n rows, the same rows for all m. Where all rows are equal: an exact
 * bound in place of an interval of no width. rounds 0 or n 0: NAN. */
tare_status eval_bootstrap(const struct eval_values *v, struct eval_resampling how, double *low, double *high, struct err *e);

/* ---- samples.c: samples.jsonl */
struct eval_sample {
    double reward;
    int64_t length;
    int32_t verdict; /* tare_verdict_code */
    bool cut;
};

struct eval_progress {
    int64_t done, bytes; /* whole questions, and where they end in the file */
};
/* Reads the record of rows [n] with k samples each into out [n, k]. done: questions that are complete; bytes: where they end. A half-written
 * end is left out; anything else that does not fit the rows is TARE_E_CORRUPT with file:line. An absent file holds nothing. */
tare_status eval_samples_read(const char *path, const struct dataset *d, int64_t k, struct eval_sample *out,
                              struct eval_progress *there, struct err *e);
/* Appends the lines of a judged batch. */
tare_status eval_samples_print(const struct batch *b, struct str *out, struct err *e);

/* ---- groups.c: which questions are counted together */
struct eval_grouping {
    const char *name;   /* "level", "subject", "difficulty" */
    const char **label; /* [n]; NULL: the question is in none */
    int32_t *rank;      /* [n] the order of labels; equal ranks are ordered by number, then text */
};
enum { EVAL_GROUPINGS = 3 };
/* The groupings that the rows and the configuration give, in the arena. */
tare_status eval_groupings(const struct config *c, const struct dataset *d, struct arena *a,
                           struct eval_grouping out[EVAL_GROUPINGS], int *n, struct err *e);
/* Rules "FIELD OP VALUE" a line: which rows are complex. text is that of a file called name. out [d->n]. */
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
/* results as one JSON object; the caller owns it. */
tare_status eval_results(const struct eval_report *r, json_t **out, struct err *e);
/* The same as Markdown. */
tare_status eval_markdown(const json_t *results, struct str *out, struct err *e);
/* questions.jsonl */
tare_status eval_questions(const struct eval_report *r, struct str *out, struct err *e);

#endif
