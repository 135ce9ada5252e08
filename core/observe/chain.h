/* RUN/chain.jsonl: checksums of all files that a run writes, each line chained to the previous one.
 *
 *   {"step":3,"link":"step","files":{"rollouts/step-000003.jsonl":SUM,
 *    "estimator/step-000003.state":SUM,"metrics.jsonl":SUM},"chain":SUM}
 *
 * Kinds of links:
 *   process     a process starts or resumes the run: config.ini, manifest.json and lock as they are
 *               about to be written, and the checkpoint that it resumes from; if it goes back,
 *               links and records of later steps are removed afterwards
 *   fork        the same, for a run forked from another; the lines before it are the other run's
 *   step        the files written by a step; of metrics.jsonl, its line
 *   back        a rollback: manifest.json as it is about to be written
 *   checkpoint  its complete.json, which holds the hash of each file
 *   end         the process ended normally
 *
 * SUM is a 128-bit XXH3 in 32 hexadecimal digits. "chain" covers the SUM of the previous line (""
 * for the first) followed by this line up to its comma. A single changed bit, or a line that is
 * removed or inserted, is therefore found, and the last "chain" identifies the whole run. XXH3 is
 * not a cryptographic hash: an attacker who forges files can also forge the checksums. Replaying
 * steps (`tare verify-run --steps`) protects against that.
 *
 * A line is written after its files, and before the checkpoint that would let a run resume after
 * them. A run that resumes from a checkpoint cuts the chain there, with all other records, so apart
 * from its process links the chain equals that of a run that was never killed. */
#ifndef TARE_CORE_OBSERVE_CHAIN_H
#define TARE_CORE_OBSERVE_CHAIN_H

#include "base/fs.h"

struct chain;

/* A file in the run folder. text: its future content; NULL: its current content. */
struct chain_text {
    const char *name;
    const struct str *text;
};
extern const char CHAIN_PROCESS[], CHAIN_FORK[], CHAIN_BACK[]; /* kinds of links */
struct chain_start {
    int64_t step; /* -1: a new run */
    const char *kind;
    /* [n] files of the link, in addition to the step's checkpoint */
    const struct chain_text *texts;
    int n;
};
/* Continues the chain after the step with a link of this kind. Links of later steps stay before it
 * until chain_settle, so files on the disk always have a link. TARE_E_CORRUPT: the kept lines are
 * damaged. A run without a chain gets one that begins there. */
tare_status chain_open(const char *run_dir, const struct chain_start *start, struct chain **out, struct err *e);
/* Removes the links of later steps. Call it once the files are written as announced and the records
 * of later steps are removed, before adding another link. */
tare_status chain_settle(struct chain *c, struct err *e);
/* Adds a checksum to the next link. */
tare_status chain_cover(struct chain *c, const char *name, const void *data, int64_t n, struct err *e);
/* Writes a link with the checksums added since the last one. */
tare_status chain_step(struct chain *c, int64_t step, struct err *e);
/* Writes the link of a complete checkpoint. */
tare_status chain_checkpoint(struct chain *c, int64_t step, struct err *e);
/* Writes the link of a rollback during the step after this one. manifest: the text that
 * manifest.json is about to have. */
tare_status chain_rollback(struct chain *c, int64_t step, const char *manifest, int64_t n, struct err *e);
tare_status chain_end(struct chain *c, int64_t step, struct err *e);
tare_status chain_sync(struct chain *c, struct err *e);
void chain_close(struct chain *c); /* no-op for NULL */

/* ---- reading */
enum { CHAIN_SUM = 33 };
void chain_sum(const void *data, int64_t n, char out[CHAIN_SUM]);
/* A line: its number, its members, and whether its checksum follows from the previous line. */
struct chain_link {
    int64_t line, step;
    const char *kind, *chain;
    const void *files; /* json_t: name -> checksum */
    bool follows;
};
typedef tare_status (*chain_visit)(void *ctx, const struct chain_link *link, struct err *e);
/* Calls visit for every complete line. *half: bytes of a partial last line. TARE_E_NOT_FOUND: no
 * chain. TARE_E_CORRUPT: a line is not a link. */
tare_status chain_each(const char *run_dir, chain_visit visit, void *ctx, int64_t *half, struct err *e);
/* Checks that the links up to a step follow from each other; TARE_E_CORRUPT with file:line. Returns
 * TARE_OK without a chain. */
tare_status chain_check(const char *run_dir, int64_t step, struct err *e);

#endif
