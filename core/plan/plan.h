/* `tare plan`: what a configuration needs, before anything is allocated: bytes by class and rank, and capacity of the
 * key/value cache. Memory is not computed here: model, trainer and sampler make their own buffers on a backend that only counts
 * (counted.c), so a new buffer is in the plan by itself.
 *
 *   TRY(plan_shape(&config, vocab, &shape, e));                only config.json is read
 *   TRY(plan_make(&(struct plan_input){...}, &plan, e));
 *   TRY(plan_print(&plan, &text, e));  or  TRY(plan_json(&plan, &object, e));
 *
 * Letters: M prompts, G rollouts of each, P prompt tokens, T completion tokens, C width, F MLP width, H and J query and key heads, D head
 * width, L layers, V vocabulary, N parameters, R ranks. Bytes are bytes; GB is 10^9 of them. Not thread-safe, keeps no state. */
#ifndef TARE_CORE_PLAN_PLAN_H
#define TARE_CORE_PLAN_PLAN_H

#include "base/json.h"
#include "config/config.h"
#include "model/model.h"
#include "rollout/rollout.h"

/* Classes of memory, in the order of the table. */
enum plan_class {
    PLAN_WEIGHTS,     /* fp32 masters: the own piece */
    PLAN_GRADIENTS,   /* fp32 sums: the own piece */
    PLAN_MOMENTS,     /* both of AdamW, fp32: the own piece */
    PLAN_SAMPLER,     /* the compute copy of all products and the table of positions, which sampling and the forward pass read */
    PLAN_GATHERED,    /* units of weights and gradients that are whole at the moment */
    PLAN_REFERENCE,   /* the frozen reference policy, where the loss wants one */
    PLAN_KV,          /* key/value cache of sampling */
    PLAN_ACTIVATIONS, /* of one micro-batch, forward and backward, with its one-layer key/value cache */
    PLAN_LOGITS,      /* a chunk of the update's head rows */
    PLAN_PREFILL,     /* the sampler's passes, with their logits */
    PLAN_WORKING,     /* a GPU's products: rounded copies, workspace */
    PLAN_MARGIN, /* what a GPU's region has beyond all the above: fragments, and room to grow a buffer while the old one is still there */
    PLAN_STAGING, /* host memory: a tensor of the checkpoint, the step's tokens */
    PLAN_CLASSES
};

/* What a rank runs on. 0: not known; then what depends on it is not said. */
struct plan_machine {
    char name[64];
    bool gpu;       /* a device of its own for each rank; else all ranks of a host share its memory */
    double memory;  /* bytes of the device, or of the host */
    double reserve; /* bytes that are left out of the plan: driver, libraries, fragments */
};

struct plan_input {
    const struct config *config;
    struct model_shape shape, reference; /* reference: filled by plan_make */
    int64_t ranks, hosts;                /* hosts: machines that the ranks are spread over (CPU) */
    enum shard shard;
    int64_t gradient_shards;  /* a minibatch's groups are dealt to so many before they are cut into micro-batches */
    uint32_t objective_needs; /* TARE_OBJECTIVE_..., of the objective's plugin */
    struct plan_machine machine;
    const struct kernels
        *kernels; /* whose sizes the buffers have; NULL: a GPU's where machine.gpu, else those of this machine's CPU */
};

struct plan_rank {
    int64_t groups; /* prompts of a step */
    int64_t bytes[PLAN_CLASSES], device, host, total;
};

struct plan_advice {
    char key[48], value[32];
    double saves; /* bytes of the fullest rank, after the advice before this one */
};
enum { PLAN_ADVICE = 8, PLAN_ADAPTER_RANK = 16 };

struct plan {
    struct plan_input in;
    int64_t params, trained;                    /* N; those that are trained: all, or the adapters' */
    int64_t prompt_tokens, new_tokens, longest; /* P and T that memory is planned for; P + T - 1 */
    struct plan_rank first, last;               /* rank 0 has most prompts, rank R-1 fewest */
    int64_t kv_tokens, kv_wanted, kv_sequences,
        kv_token_bytes;                /* capacity; for all sequences at once; full-length ones that fit; bytes */
    bool kv_for_eval;                  /* evaluation inside training is what makes the cache this large */
    int64_t kv_room;                   /* tokens it could have in the memory that is left */
    int64_t micro_rows, micro_targets; /* of the largest micro-batch */
    double budget, need;               /* of a device, or of a host with all its ranks */
    int fits;                          /* 1, 0, or -1: the memory is not known */
    struct plan_advice advice[PLAN_ADVICE];
    int n_advice;
    int fits_with_advice;
    /* After all advice: ranks, hosts (0 on GPUs) and rollout.max_new_tokens (0: as it is); ranks 0: none found up to 4,096. */
    int64_t ranks_needed, hosts_needed, tokens_needed;
    /* With adapters of rank PLAN_ADAPTER_RANK and all advice: as need, on so many ranks; 0: that does not fit, or is no choice. */
    double adapters_need;
    int64_t adapters_ranks;
};

/* Reads config.json of model.path, or follows model.warm_start and model.init when the folder is not there. vocab: of a new model; 0: as
 * the engine's byte tokenizer. */
tare_status plan_shape(const struct config *c, int64_t vocab, struct model_shape *out, struct err *e);
tare_status plan_make(const struct plan_input *in, struct plan *out, struct err *e);

/* ---- memory.c */
/* Fills params, ranks' memory, cache and micro-batch of out from out->in. */
tare_status plan_memory(struct plan *out, struct err *e);

/* ---- counted.c */
struct plan_counted {
    int64_t params, trained;            /* without padding */
    int64_t staging;                    /* host memory while the model is read */
    int64_t kv_token, kv_blocks, drawn; /* bytes of a token in the cache; its blocks; bytes of a drawn token on the host */
    struct sampler_need train, eval;    /* eval: blocks 0 where there is none, or where training's cache is enough */
    int64_t rows, targets;              /* of the largest micro-batch */
    int64_t bytes[PLAN_CLASSES];
};
/* Makes the buffers of the rank with `groups` prompts, and gives them back. */
tare_status plan_count(const struct plan *p, int64_t groups, struct plan_counted *out, struct err *e);

/* ---- machine.c */
/* A device of the table by name ("h100"); TARE_E_CONFIG names all of them. */
tare_status plan_device(const char *name, struct plan_machine *out, struct err *e);
/* "80GB", "1.5e9", "40GiB" */
tare_status plan_quantity(const char *text, double *out, struct err *e);

/* ---- print.c */
extern const char *const PLAN_CLASS_NAMES[PLAN_CLASSES];
tare_status plan_print(const struct plan *p, struct str *out, struct err *e);
tare_status plan_json(const struct plan *p, json_t **out, struct err *e);

#endif
