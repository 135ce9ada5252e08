/* Shared by tests that sample and train: the shape of a small model, the settings of an update,
 * and memory for a batch. A test changes the values that it is about. */
#ifndef TARE_TESTS_ENGINE_H
#define TARE_TESTS_ENGINE_H

#include "check.h"

#include <string.h>

#include "batch/batch.h"
#include "config/config.h"

/* The constants that tests name in tables and in their messages. */
static inline enum model_init arch_named(const char *name)
{
    return !strcmp(name, "qwen2") ? INIT_QWEN2 : !strcmp(name, "llama") ? INIT_LLAMA : INIT_QWEN3;
}

static inline enum precision precision_named(const char *name)
{
    return strcmp(name, "bf16") ? PRECISION_F32 : PRECISION_BF16;
}

/* Grouped queries, a head width that is not a power of two, and hidden sizes that are not
 * multiples of a tile. */
static inline struct model_config small_shape(const char *arch, const char *dtype)
{
    return (struct model_config){.init = arch_named(arch),
                                 .dtype = precision_named(dtype),
                                 .save_dtype = SAVE_AUTO,
                                 .hidden_size = 48,
                                 .layers = 2,
                                 .heads = 4,
                                 .kv_heads = 2,
                                 .head_dim = 12,
                                 .intermediate_size = 80,
                                 .context = 160,
                                 .tie_embeddings = true};
}

static inline struct train_config plain_train(int64_t minibatch, int64_t micro_tokens)
{
    return (struct train_config){.minibatch = minibatch,
                                 .epochs = 1,
                                 .micro_tokens = micro_tokens,
                                 .lr = 1e-3,
                                 .schedule = SCHEDULE_CONSTANT,
                                 .beta1 = 0.9,
                                 .beta2 = 0.999,
                                 .eps = 1e-8,
                                 .weight_decay = 0.01,
                                 .max_grad_norm = 1,
                                 .recompute = RECOMPUTE_NONE,
                                 .on_nonfinite = NONFINITE_STOP,
                                 .prompt_sharing = true};
}

static inline struct loss_config plain_loss(enum aggregation aggregation)
{
    return (struct loss_config){
        .aggregation = aggregation, .clip = 0.2, .kl = KL_K3, .old_logprobs = OLD_SAMPLER, .rollout_is = ROLLOUT_IS_NONE};
}

/* The inputs of an update, set to zero: at most this many prompt ids and tokens; the test sets
 * n_tokens. */
static inline struct batch update_batch(struct arena *a, int64_t n_groups, int64_t n_rollouts, int64_t prompt_ids, int64_t tokens)
{
    struct err e = {0};
    struct batch b = {.n_groups = n_groups, .n_rollouts = n_rollouts, .n_prompt_tokens = prompt_ids, .n_tokens = tokens};
    assert_ok(batch_alloc(&b, BATCH_DATA | BATCH_ROLLOUT | BATCH_ESTIMATE, a, &e), &e);
    b.n_tokens = 0;
    return b;
}

#endif
