/* Small tasks that need no file, each of another character: the rungs of configs/ladder. Internal to the data folder.
 *
 *   rewrite    a word of a, b, c ("wcabca=") to its normal form under ba -> ab, ca -> ac, cb -> bc: its letters in order ("aabcc")
 *   countdown  three digits and a target ("2,3,7=8"): the digits, each once, joined by + and - so that they give it ("3+7-2"); `regex` has all that do
 *   answers    a number ("9="): two digits whose sum it is ("4+5"); `regex` has all, for pass@k
 *   bandit     a context ("5="): one of the 62 letters and digits, a single token; right are those whose code is the context modulo 8 (`regex`), so
 *              that with one token the expected reward of context k is J_k = sum of pi(a) over the right a, and its derivative in the logit of a is
 *              pi(a) (1[a is right] - J_k)
 *   words      for small language models: seven kinds of short questions in words ("What number comes right after 81?", "Ben has 14 eggs and gets 3 more.
 *              How many eggs does Ben have now?"), each after two of its kind with their answers, as a chat (`messages`); the kind is the subject
 *
 *   builtin:TASK/train      questions with an answer, none held out (crc32(question) % 8 == 0); of bandit all
 *   builtin:TASK/heldout    the others; of bandit all
 *   builtin:TASK/warm       supervised rows with completions of the right form: of rewrite and words the right one; of answers a right sum three times in ten;
 *                           else, and of the others, a random one, right by chance */
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

/* builtin.c: "rows=N&seed=N". */
tare_status builtin_options(const char *text, int64_t *rows, int64_t *seed, struct err *e);

/* Whether TASK/... is one of these. */
bool tasks_have(const char *name);
tare_status tasks_generate(const char *name, struct dataset *out, struct err *e);

#endif
