/* Configuration keys on the command line of a verb that opens a model. */
#ifndef TARE_CORE_INFER_MODEL_KEYS_H
#define TARE_CORE_INFER_MODEL_KEYS_H

#include "config/config.h"

struct model_key {
    const char *section, *key;
};

/* Sets "section.key=value" or "key=value". Values are set one by one and not checked against each
 * other, as those of a training run are. verb: for the error about an unknown key. */
tare_status model_key_set(struct config *c, const char *verb, const struct model_key *keys, int n_keys, const char *argument,
                          struct err *e);
/* Takes the data.* keys of a run's folder; other folders have none. Prompts are rendered as in the
 * run; with `messages`, where requests bring the whole conversation, only its chat template and
 * date are used. Values on the command line are set later. */
tare_status model_keys_of_run(struct config *c, const char *run, bool messages, struct err *e);

/* Keys of every verb that opens one model. */
#define MODEL_KEYS_COMMON                                                                                                          \
    {"run", "threads"}, {"run", "kernels"}, {"run", "device"}, {"run", "deterministic"}, {"model", "base"}, {"model", "dtype"},    \
        {"model", "weights"}, {"model", "rope_theta"},                                                                             \
    {                                                                                                                              \
        "model", "max_position_embeddings"                                                                                         \
    }

#endif
