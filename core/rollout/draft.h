/* Drafts of a sequence's next tokens, by lookup: the longest suffix of the sequence (4 to 2 tokens)
 * that occurred before, in itself or in another sequence of its group, and the tokens that followed
 * it there.
 *
 * Every token that is appended is compared with the lookup's prediction, drafted or not. So each
 * sequence knows how often a match of a certain length continues rightly, and a draft comes with an
 * estimate of its chance, also after a time without drafts.
 *
 * The memory is bounded: DRAFT_SOURCES sequences, of which the one used least recently makes space
 * for a new one, and a table of one place for each hash of a suffix, where the newest wins. A token
 * is compared before it is proposed, so a hash collision or a replaced sequence costs a match and
 * nothing else. Threads: one owner. */
#ifndef TARE_CORE_ROLLOUT_DRAFT_H
#define TARE_CORE_ROLLOUT_DRAFT_H

#include "base/err.h"

#include <stdbool.h>
#include <stdint.h>

enum { DRAFT_SOURCES = 64, DRAFT_MOST = 31 };

struct drafts;
tare_status drafts_new(struct drafts **out, struct err *e);
void drafts_free(struct drafts *d);
/* Forgets all sequences. */
void drafts_clear(struct drafts *d);
/* Begins a sequence without tokens and returns its handle, never 0. Sequences of the same group draft
 * from each other. */
int64_t drafts_open(struct drafts *d, uint64_t group);
/* Returns the number of its tokens; -1: the handle is 0, or another sequence took its place. Counts
 * as a use. */
int64_t drafts_length(struct drafts *d, int64_t handle);
/* Appends ids[0 .. n-1] to a sequence that drafts_length has found. */
tare_status drafts_append(struct drafts *d, int64_t handle, const int32_t *ids, int64_t n, struct err *e);
/* Proposes up to `most` (at most DRAFT_MOST) next tokens and returns their number. chance[i]: the
 * estimated probability that ids[0 .. i] are all right, descending */
int64_t drafts_propose(const struct drafts *d, int64_t handle, int64_t most, int32_t *ids, double *chance);

#endif
