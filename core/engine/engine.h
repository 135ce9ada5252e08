/* The parts that a verb works with: tokenizer, model, data, prompts, verifier, sampler, trainer.
 * Opened here for all verbs, by flags, and closed in reverse.
 *
 *   struct engine g;
 *   engine_init(&g, &config, NULL);
 *   status = engine_open(&g, ENGINE_EVAL | ENGINE_ANSWERS | ENGINE_VERIFIER, e);
 *   ...
 *   if (!status) status = engine_open(&g, ENGINE_PROMPTS | ENGINE_SAMPLER, e);
 *   engine_close(&g);
 *
 * Parts are opened in the order of the flags, together with the parts that they need; the verb may
 * make its checks between two calls. A part that is already open is left unchanged, so a verb may
 * first put a part into the struct (a new model, profiled kernels). The engine owns the parts.
 * Errors are those of the parts; engine_close also closes after an error. Not thread-safe. */
#ifndef TARE_CORE_ENGINE_ENGINE_H
#define TARE_CORE_ENGINE_ENGINE_H

#include "base/fs.h"
#include "collect/collector.h"
#include "data/order.h"
#include "data/prompt.h"
#include "dist/comm.h"
#include "rollout/rollout.h"
#include "update/trainer.h"
#include "verify/verify.h"

enum engine_part {
    ENGINE_TRAIN = 1 << 0, /* train, order: data.train */
    ENGINE_EVAL = 1 << 1,  /* eval: data.eval */
    /* The verifiers can verify every row of these; options are permuted as data.permute_choices
     * says. */
    ENGINE_ANSWERS = 1 << 2,
    ENGINE_VERIFIER = 1 << 3,  /* verify */
    ENGINE_POOL = 1 << 4,      /* pool: run.threads */
    ENGINE_KERNELS = 1 << 5,   /* kernels, and the communicator between devices; needs the pool */
    ENGINE_TOKENIZER = 1 << 6, /* tokenizer */
    /* A training run's memory on a device (device_memory.h); needs kernels and tokenizer. */
    ENGINE_REGION = 1 << 7,
    ENGINE_MODEL = 1 << 8,   /* model; needs the kernels */
    ENGINE_PROMPTS = 1 << 9, /* prompts; needs the tokenizer */
    /* Fields sampling and evaluating: parameters of the sampler; needs the model. */
    ENGINE_SAMPLING = 1 << 10,
    ENGINE_SAMPLER = 1 << 11, /* sampler; needs the model */
    /* The model of these is trained: it gets the adapters of [lora] and may not itself be an
     * adapter. */
    ENGINE_TRAINS = 1 << 12,
    /* The model of these is whole on every rank and not trained. */
    ENGINE_WHOLE = 1 << 13,
};

struct engine {
    const struct config *config; /* borrowed; model.path is the model */
    struct comm *comm;           /* borrowed; NULL: one rank */
    struct plugin_env env;       /* for the verifier; set before it is opened */
    struct dataset train, eval;
    struct order order; /* of train */
    struct verify *verify;
    struct pool *pool;
    const struct kernels *kernels;
    struct tokenizer *tokenizer;
    struct model *model, *reference;
    struct prompts *prompts;
    struct sample_params sampling, evaluating;
    struct sampler *sampler;
    struct episodes *episodes;   /* opened with the sampler; NULL: no environment.plugin */
    struct objective *objective; /* the policy's loss; NULL until engine_open_objective */
    struct trainer *trainer;
    /* The process reward model of [process_reward], its trainer and its optimizer's settings; NULL:
     * none. */
    struct model *reward_model;
    struct trainer *reward_trainer;
    struct train_config reward_train;
    struct kctx comm_ctx; /* of collectives in the backend's memory */
    struct kernel_fault comm_fault;
    struct arena arena; /* lives as long as the engine */
    /* A resumed training: its models are compared with its manifest (models.h), not with the
     * checksums in their folders. Set before they are opened. */
    bool resumed;
    char verified_folder[FS_PATH]; /* the folder whose checksums were verified last */
    unsigned opened;               /* enum engine_part */
};

/* comm: the job's, outlives the engine; NULL: one rank. With it all functions are collective. */
void engine_init(struct engine *g, const struct config *c, struct comm *comm);
tare_status engine_open(struct engine *g, unsigned parts, struct err *e);
/* Opens the frozen reference policy: model.reference, or the initial model. It may have another
 * shape but must have the policy's tokenizer; otherwise TARE_E_CONFIG. */
tare_status engine_open_reference(struct engine *g, struct err *e);
/* Opens objective.plugin with the environment in env. Called before engine_open_reference and
 * engine_open_trainer, which read its needs. */
tare_status engine_open_objective(struct engine *g, struct err *e);
/* Opens the trainer of the model (and the reference), with its gradients in one shard. temperature:
 * the temperature of pi and pi_old; steps: optimizer steps of the whole run. */
tare_status engine_open_trainer(struct engine *g, double temperature, int64_t steps, struct err *e);
/* Opens the process reward model of [process_reward] and its trainer; the reference is open
 * already. */
tare_status engine_open_reward_model(struct engine *g, struct err *e);
/* Checks that the rewards of tokens or steps that the estimator reads (TARE_NEED_SEGMENTS) come
 * from exactly one source: a verifier (verifier_gives: verify_gives_segments) or [process_reward].
 * TARE_E_CONFIG. */
tare_status engine_check_segments(const struct config *c, bool verifier_gives, bool estimator_reads, struct err *e);
void engine_close(struct engine *g);
/* Returns the id that ends a completion written by a row: the tokenizer's EOS, which ends a turn in
 * the chat template, or else the first one of the model's files. Without any: TARE_E_CONFIG. */
tare_status engine_end_id(const struct engine *g, int32_t *out, struct err *e);

/* Makes a collector of the open parts, for batches in arena. The caller sets config, params and
 * further settings, and calls collector_free. */
struct collector engine_collector(const struct engine *g, struct arena *arena);
/* Returns the sampling of `tare eval` and of a training run's evaluation: rollout.*, with eval's
 * samples, temperature, top_p, top_k, min_p and, if set, max_new_tokens. stop_ids and ignore_eos
 * are those of training. */
struct rollout_config engine_evaluation_rollout(const struct config *c);
/* Returns the most tokens that a prompt may have: one less than the context, and at most
 * rollout.max_prompt_tokens (0: no limit). Its default suits training runs, whose memory follows
 * from it; elsewhere (training false) it only counts if it is set. */
int64_t engine_prompt_limit(const struct engine *g, bool training);
/* Calls prompts_check with that limit. */
tare_status engine_check_prompts(struct engine *g, const struct dataset *d, bool training, uint64_t *hash, struct err *e);

#endif
