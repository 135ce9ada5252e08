/* RUN/chain.jsonl: the sums of all that a run writes, each line chained to the one before it.
 *
 *   {"step":3,"link":"step","files":{"rollouts/step-000003.jsonl":SUM,"estimator/step-000003.state":SUM,"metrics.jsonl":SUM},"chain":SUM}
 *
 * link: process (config.ini, manifest.json and lock as they are about to be written when the run begins or goes on, the checkpoint that it goes on
 * from; where it goes back, links and records of later steps are removed after it), fork (the same, when the
 * run branched off another; the lines before are that run's), step (what the step left;
 * of metrics.jsonl its line), back (a rollback: manifest.json as it is about to be written), checkpoint (its complete.json, which has the hash of every file of it), end (the process ended by itself).
 * A SUM is XXH3's of 128 bits, 32 hexadecimal digits; "chain" that of the line before it ("" for the first), then of this line up to its comma. So
 * one bit that changes anywhere, a line that is taken out or put in, is found, and the last "chain" stands for the whole run. XXH3 is no
 * cryptographic hash: who writes files to deceive can also write their sums. Against that stands the replay of steps (`tare verify-run --steps`).
 *
 * Lines are written after what they are about and before the checkpoint that would make a run go on after them; a run that goes on from a checkpoint
 * cuts the chain there, with all other records, so it is the same as that of a run that was never killed but for its process links. */
#ifndef TARE_CORE_OBSERVE_CHAIN_H
#define TARE_CORE_OBSERVE_CHAIN_H

#include "base/fs.h"

struct chain;

/* A file of the run's folder. text: what it is about to be; NULL: as it is. */
struct chain_text {
    const char *name;
    const struct str *text;
};
extern const char CHAIN_PROCESS[], CHAIN_FORK[], CHAIN_BACK[]; /* kinds of links */
struct chain_start {
    int64_t step; /* -1: from the beginning */
    const char *kind;
    const struct chain_text *texts; /* [n] what the link is about, with the step's checkpoint */
    int n;
};
/* Continues the chain after the step with a link of this kind. Links of later steps stay before it until chain_settle, so that whatever is on the disk in
 * between has a link. TARE_E_CORRUPT: the lines that are kept are damaged. A run without a chain gets one that begins there. */
tare_status chain_open(const char *run_dir, const struct chain_start *start, struct chain **out, struct err *e);
/* The files are as they were announced, and the records of later steps are gone: now their links go. Before any other link. */
tare_status chain_settle(struct chain *c, struct err *e);
/* The sum of something that the next link is about. */
tare_status chain_cover(struct chain *c, const char *name, const void *data, int64_t n, struct err *e);
/* The link of what was covered since the last one. */
tare_status chain_step(struct chain *c, int64_t step, struct err *e);
/* The checkpoint of the step is there. */
tare_status chain_checkpoint(struct chain *c, int64_t step, struct err *e);
/* The run goes back to a checkpoint while it makes the step after this one, and its manifest is about to be this text. */
tare_status chain_rollback(struct chain *c, int64_t step, const char *manifest, int64_t n, struct err *e);
tare_status chain_end(struct chain *c, int64_t step, struct err *e);
tare_status chain_sync(struct chain *c, struct err *e);
void chain_close(struct chain *c); /* NULL: nothing */

/* ---- reading */
enum { CHAIN_SUM = 33 };
void chain_sum(const void *data, int64_t n, char out[CHAIN_SUM]);
/* A line: its number, its members, and whether its sum follows from the line before. */
struct chain_link {
    int64_t line, step;
    const char *kind, *chain;
    const void *files; /* json_t: name -> sum */
    bool follows;
};
typedef tare_status (*chain_visit)(void *ctx, const struct chain_link *link, struct err *e);
/* Calls visit for every whole line. *half: bytes at the end without a line's end. TARE_E_NOT_FOUND: no chain. TARE_E_CORRUPT: a line is no link. */
tare_status chain_each(const char *run_dir, chain_visit visit, void *ctx, int64_t *half, struct err *e);
/* Whether the links up to a step follow from each other; TARE_E_CORRUPT with file:line. Without a chain: TARE_OK. */
tare_status chain_check(const char *run_dir, int64_t step, struct err *e);

#endif
