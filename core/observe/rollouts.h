/* RUN/rollouts/step-NNNNNN.jsonl: one line for each rollout of a step.
 *
 * id, group (index of the prompt in the step), sample (index in the group), prompt_uid (hex), occurrence, question (of the row), prompt (in the first
 * line of a group: the text that the model read, chat template and all), completion, reward, components, verdict, extracted, reason, cluster, baseline, scale, confidence, advantage, rollout_weight, fate (what the curriculum made of it, where it does not keep everything), length (tokens, the end included), finish.
 * Numbers have 17 digits, so that the advantages can be computed again from them bit for bit. Bytes that are not UTF-8 (a completion
 * that was cut inside a character) are written as U+FFFD. Stages that did not run leave their fields out. */
#ifndef TARE_CORE_OBSERVE_ROLLOUTS_H
#define TARE_CORE_OBSERVE_ROLLOUTS_H

#include "base/str.h"
#include "batch/batch.h"
#include "observe/chain.h"

tare_status rollouts_print(const struct batch *b, struct str *out, struct err *e);
/* Beside, then renamed: an existing dump of the step is replaced. Not synced: that costs more than a short step. chain takes its sum; may be NULL. */
tare_status rollouts_write(const char *run_dir, int64_t step, const struct batch *b, struct chain *chain, struct err *e);
/* Syncs the dumps of steps first .. last, as far as there are any: before the checkpoint of `last` becomes visible. */
tare_status rollouts_sync(const char *run_dir, int64_t first, int64_t last, struct err *e);
/* Removes the dumps of steps after `step`, and the estimator's states that belong to them. */
tare_status rollouts_cut(const char *run_dir, int64_t step, struct err *e);
tare_status rollouts_path(const char *run_dir, int64_t step, char *path /* FS_PATH bytes */, struct err *e);

#endif
