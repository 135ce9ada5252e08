/* Small built-in tasks that need no file, each of a different character: the tasks of
 * configs/ladder. Internal to core/data.
 *
 * rewrite    a word of a, b, c ("wcabca=") to its normal form under ba -> ab, ca -> ac, cb -> bc:
 *            its letters in order ("aabcc")
 * countdown  three digits and a target ("2,3,7=8"): the digits, each once, joined by + and - to
 *            give the target ("3+7-2"); `regex` lists all solutions
 * answers    a number ("9="): two digits that add up to it ("4+5"); `regex` lists all, for pass@k
 * bandit     a context ("5="): one of the 62 letters and digits, a single token. A token is right
 *            if its code equals the context modulo 8 (`regex`), so with one token the expected reward
 *            of context k is J_k = sum of pi(a) over the right a, and its derivative in the logit of a
 *            is pi(a) (1[a is right] - J_k)
 * words      for small language models: seven kinds of short questions in words ("What number comes
 *            right after 81?", "Ben has 14 eggs and gets 3 more. How many eggs does Ben have
 *            now?"), each after two of its kind with their answers, as a chat (`messages`); the kind is the
 *            subject
 *
 * builtin:TASK/train      questions with an answer, none held out (crc32(question) % 8 == 0); for
 *                         bandit all
 * builtin:TASK/heldout    the held-out questions; for bandit all
 * builtin:TASK/warm       supervised rows with well-formed completions. For rewrite and words the
 *                         right one; for answers a right sum with probability 0.3; otherwise, and
 *                         for the other tasks, a random one, right by chance */
#ifndef TARE_CORE_DATA_TASKS_H
#define TARE_CORE_DATA_TASKS_H

#include "base/rng.h"
#include "data/dataset.h"

/* A stream of random numbers. */
struct draws {
    struct rng_key key;
    uint64_t counter;
};
static inline int draw(struct draws *d, int low, int high) /* low..high inclusive */
{
    return low + (int)rng_below(d->key, d->counter++, (uint64_t)(high - low + 1));
}

/* Parses "rows=N&seed=N" (builtin.c). */
tare_status builtin_options(const char *text, int64_t *rows, int64_t *seed, struct err *e);

/* Returns whether TASK/... is one of these. */
bool tasks_have(const char *name);
tare_status tasks_generate(const char *name, struct dataset *out, struct err *e);

#endif
