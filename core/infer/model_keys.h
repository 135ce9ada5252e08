/* Keys of a configuration on the command line of a verb that opens a model. */
#ifndef TARE_CORE_INFER_MODEL_KEYS_H
#define TARE_CORE_INFER_MODEL_KEYS_H

#include "config/config.h"

struct model_key {
    const char *section, *key;
};

/* "section.key=value" or "key=value". The values are set one by one, not loaded together: what the keys of a training run have to do with each other
 * does not matter here. verb: for the error about a key that is not in the list */
tare_status model_key_set(struct config *c, const char *verb, const struct model_key *keys, int n_keys, const char *argument,
                          struct err *e);
/* Of a run's folder, and of no other: prompts as the run rendered them; with `messages`, which requests bring whole, its chat template and date alone. The
 * command line's own values come later. */
tare_status model_keys_of_run(struct config *c, const char *run, bool messages, struct err *e);

/* What every verb takes that opens one model. */
#define MODEL_KEYS_COMMON                                                                                                          \
    {"run", "threads"}, {"run", "kernels"}, {"run", "device"}, {"run", "deterministic"}, {"model", "base"}, {"model", "dtype"},    \
        {"model", "weights"}, {"model", "rope_theta"},                                                                             \
    {                                                                                                                              \
        "model", "max_position_embeddings"                                                                                         \
    }

#endif
