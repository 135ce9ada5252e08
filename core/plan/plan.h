/* `tare plan`: how much memory a configuration needs, before anything is allocated: bytes by class
 * and rank, and the capacity of the key/value cache. No formula computes it: model, trainer and
 * sampler make their own buffers on a backend that only counts (counted.c), so a new buffer is
 * included automatically.
 *
 *   TRY(plan_shape(&config, vocab, &shape, e));                only config.json is read
 *   TRY(plan_make(&(struct plan_input){...}, &plan, e));
 *   TRY(plan_print(&plan, &text, e));  or  TRY(plan_json(&plan, &object, e));
 *
 * Letters: M prompts, G rollouts of each, P prompt tokens, T completion tokens, C width, F MLP
 * width, H and J query and key heads, D head width, L layers, V vocabulary, N parameters, R ranks.
 * 1 GB is 10^9 bytes. Not thread-safe; keeps no state. */
#ifndef TARE_CORE_PLAN_PLAN_H
#define TARE_CORE_PLAN_PLAN_H

#include "base/json.h"
#include "config/config.h"
#include "model/model.h"
#include "rollout/rollout.h"
#include "update/objective.h"

/* Classes of memory, in the order of the table. */
enum plan_class {
    PLAN_WEIGHTS,   /* fp32 masters of the rank's shard */
    PLAN_GRADIENTS, /* fp32 sums of the rank's shard */
    PLAN_MOMENTS,   /* both AdamW moments of the rank's shard, fp32 */
    /* the compute copy of all products and the table of positions, read by sampling and the forward
     * pass */
    PLAN_SAMPLER,
    PLAN_GATHERED,  /* units of weights and gradients that are gathered at one time */
    PLAN_REFERENCE, /* the frozen reference policy, if the loss needs one */
    PLAN_KV,        /* the sampler's key/value cache */
    /* of one micro-batch, forward and backward, with its one-layer key/value cache */
    PLAN_ACTIVATIONS,
    PLAN_LOGITS,  /* logits of one chunk of head rows in the update */
    PLAN_PREFILL, /* the sampler's passes, with their logits */
    PLAN_WORKING, /* a GPU's matrix products: rounded copies, workspace */
    /* reserve of a GPU's region for fragmentation and for buffers that grow while the old one still
     * exists */
    PLAN_MARGIN,
    PLAN_STAGING, /* host memory: one tensor of the checkpoint, the step's tokens */
    PLAN_CLASSES
};

/* The machine of a rank. 0: unknown; results that depend on it are left out. */
struct plan_machine {
    char name[64];
    bool gpu;       /* each rank has its own device; false: the ranks of a host share its memory */
    double memory;  /* bytes of the device or of the host */
    double reserve; /* bytes kept out of the plan: driver, libraries, fragmentation */
    bool opened;    /* `memory` is what is left after NCCL has taken its own */
};

struct plan_input {
    const struct config *config;
    struct model_shape shape, reference; /* reference: filled by plan_make */
    /* hosts: number of machines that the ranks are spread over (CPU) */
    int64_t ranks, hosts;
    enum shard shard;
    /* number of shards that share the groups of a minibatch; each is split into micro-batches */
    int64_t gradient_shards;
    struct objective_uses objective;
    /* rows of data.eval; -1: unknown, then evaluation is planned for the most that eval.rows
     * allows */
    int64_t eval_rows;
    struct plan_machine machine;
    /* the backend whose buffer sizes count; NULL: a GPU's if machine.gpu, else this machine's
     * CPU */
    const struct kernels *kernels;
};

struct plan_rank {
    int64_t groups; /* prompts of a step */
    int64_t bytes[PLAN_CLASSES], device, host, total;
};

struct plan_advice {
    char key[48], value[32];
    double saves; /* bytes of the fullest rank, in addition to the advice before this one */
};
enum { PLAN_ADVICE = 8, PLAN_ADAPTER_RANK = 16 };

struct plan {
    struct plan_input in;
    int64_t params, trained;                    /* N; trained parameters: all, or the adapters' */
    int64_t prompt_tokens, new_tokens, longest; /* P and T that memory is planned for; P + T - 1 */
    /* rank 0 has the most prompts, rank R-1 the fewest */
    struct plan_rank first, last;
    /* capacity; needed for all sequences at once; full-length sequences that fit; bytes per
     * token */
    int64_t kv_tokens, kv_wanted, kv_sequences, kv_token_bytes;
    /* questions of the evaluation inside training that determines the size of the cache; 0: the
     * step does */
    int64_t kv_eval_rows;
    int64_t kv_free;                   /* tokens that the cache could have in the free memory */
    int64_t micro_rows, micro_targets; /* of the largest micro-batch */
    double budget, need;               /* of a device, or of a host with all its ranks */
    double nccl;                       /* bytes that NCCL takes outside of the plan; in no class */
    int fits;                          /* 1, 0, or -1 if the memory is unknown */
    struct plan_advice advice[PLAN_ADVICE];
    int n_advice;
    int fits_with_advice;
    /* After all advice: ranks, hosts (0 on GPUs) and rollout.max_new_tokens (0: unchanged).
     * ranks_needed = 0: not found up to 4,096. */
    int64_t ranks_needed, hosts_needed, tokens_needed;
    /* With adapters of rank PLAN_ADAPTER_RANK and all advice: `need` and the number of ranks. 0:
     * does not fit or does not apply. */
    double adapters_need;
    int64_t adapters_ranks;
};

/* Reads config.json of model.path, or follows model.warm_start and model.init if the folder does
 * not exist. vocab: vocabulary size of a new model; 0: that of the engine's byte tokenizer. */
tare_status plan_shape(const struct config *c, int64_t vocab, struct model_shape *out, struct err *e);
tare_status plan_make(const struct plan_input *in, struct plan *out, struct err *e);

/* ---- memory.c */
/* Fills params, the ranks' memory, the cache and the micro-batch of out from out->in. */
tare_status plan_memory(struct plan *out, struct err *e);
/* Returns the bytes of a device that NCCL takes, an estimate. */
double plan_nccl(const struct plan_input *in);

/* ---- counted.c */
struct plan_counted {
    int64_t params, trained; /* without padding */
    int64_t staging;         /* host memory while the model is read */
    /* bytes of a cached token; blocks of the cache; host bytes of a sampled token */
    int64_t kv_token, kv_blocks, drawn;
    /* eval.blocks = 0: no evaluation, or training's cache is large enough */
    struct sampler_need train, eval;
    int64_t rows, targets; /* of the largest micro-batch */
    int64_t bytes[PLAN_CLASSES];
};
/* Allocates the buffers of the rank with `groups` prompts on the counting backend, and frees
 * them. */
tare_status plan_count(const struct plan *p, int64_t groups, struct plan_counted *out, struct err *e);

/* ---- machine.c */
/* Looks up a device by name ("h100"); TARE_E_CONFIG lists the known names. */
tare_status plan_device(const char *name, struct plan_machine *out, struct err *e);
/* Parses "80GB", "1.5e9", "40GiB". */
tare_status plan_quantity(const char *text, double *out, struct err *e);

/* ---- print.c */
extern const char *const PLAN_CLASS_NAMES[PLAN_CLASSES];
tare_status plan_print(const struct plan *p, struct str *out, struct err *e);
tare_status plan_json(const struct plan *p, json_t **out, struct err *e);

#endif
