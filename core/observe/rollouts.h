/* RUN/rollouts/step-NNNNNN.jsonl: one line for each rollout of a step.
 *
 * Fields: id, group (index of the prompt in the step), sample (index in the group), prompt_uid
 * (hex), occurrence, question and answer (of the row; answer "" if it has none), prompt (in the first
 * line of a group: the text that the model read, including the chat template), completion, reward,
 * components, verdict, extracted, reason, cluster, baseline, scale, confidence, advantage,
 * rollout_weight, fate (the curriculum's decision, if it does not keep everything), length (sampled
 * tokens, including the end), finish; of an episode also ids, sampled and turns (rollout_turns.h).
 * Numbers have 17 digits, so advantages can be recomputed from them bit for bit. Bytes that are not
 * UTF-8, as in a completion cut inside a character, become U+FFFD. Stages that did not run omit
 * their fields. */
#ifndef TARE_CORE_OBSERVE_ROLLOUTS_H
#define TARE_CORE_OBSERVE_ROLLOUTS_H

#include "base/str.h"
#include "batch/batch.h"
#include "observe/chain.h"

tare_status rollouts_print(const struct batch *b, struct str *out, struct err *e);
/* Writes to a temporary file and renames it, replacing an existing dump of the step. Does not sync,
 * which would cost more than a short step. chain receives the checksum; may be NULL. */
tare_status rollouts_write(const char *run_dir, int64_t step, const struct batch *b, struct chain *chain, struct err *e);
/* The same for the state that the estimator had before the step: RUN/estimator/step-N.state. */
tare_status rollouts_write_state(const char *run_dir, int64_t step, const struct str *state, struct chain *chain, struct err *e);
/* Syncs the existing dumps and states of steps first .. last. Call it before the checkpoint of `last` becomes
 * visible. */
tare_status rollouts_sync(const char *run_dir, int64_t first, int64_t last, struct err *e);
/* Removes the dumps of steps after `step`, and the matching estimator states. */
tare_status rollouts_cut(const char *run_dir, int64_t step, struct err *e);
/* path: FS_PATH bytes. */
tare_status rollouts_path(const char *run_dir, int64_t step, char *path, struct err *e);

#endif
