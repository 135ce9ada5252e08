/* What a verb works with: tokenizer, model, data, prompts, verifier, sampler, trainer. Opened here for all verbs, by flags; closed in reverse.
 *
 *   struct engine g;
 *   engine_init(&g, &config, NULL);
 *   status = engine_open(&g, ENGINE_EVAL | ENGINE_ANSWERS | ENGINE_VERIFIER, e);          parts are opened in the order of the flags
 *   ...                                                                                   what the verb checks in between
 *   if (!status) status = engine_open(&g, ENGINE_PROMPTS | ENGINE_SAMPLER, e);            and those they need come along
 *   engine_close(&g);
 *
 * A part that is open already is left alone, so a verb may put one of its own into the struct first (a new model, profiled kernels). Parts are owned by
 * the engine. Errors are those of the parts; after one engine_close still closes what was opened. Not thread-safe. */
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
    ENGINE_TRAIN = 1 << 0,     /* train, order: data.train */
    ENGINE_EVAL = 1 << 1,      /* eval: data.eval */
    ENGINE_ANSWERS = 1 << 2,   /* the verifiers can judge every row of these; options are permuted as data.permute_choices says */
    ENGINE_VERIFIER = 1 << 3,  /* verify */
    ENGINE_POOL = 1 << 4,      /* pool: run.threads */
    ENGINE_KERNELS = 1 << 5,   /* kernels, and the communicator between devices; needs the pool */
    ENGINE_TOKENIZER = 1 << 6, /* tokenizer */
    ENGINE_REGION = 1 << 7,    /* a training run's memory on a device (device_memory.h); needs kernels and tokenizer */
    ENGINE_MODEL = 1 << 8,     /* model; needs the kernels */
    ENGINE_PROMPTS = 1 << 9,   /* prompts; needs the tokenizer */
    ENGINE_SAMPLING = 1 << 10, /* sampling, evaluating: how rollouts and evaluations are sampled; needs the model */
    ENGINE_SAMPLER = 1 << 11,  /* sampler; needs the same */
    ENGINE_TRAINS = 1 << 12,   /* the model of these is trained: it gets the adapters of [lora], and may not be an adapter itself */
    ENGINE_WHOLE = 1 << 13,    /* the model of these is whole on every rank, which knows of no other: nothing is trained */
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
    struct objective *objective; /* the policy's loss; NULL until engine_open_objective */
    struct trainer *trainer;
    struct model *reward_model; /* the implicit process reward model, its trainer and its optimizer's settings; NULL: none */
    struct trainer *reward_trainer;
    struct train_config reward_train;
    struct kctx comm_ctx; /* of collectives in the backend's memory */
    struct kernel_fault comm_fault;
    struct arena arena; /* what lives as long as the engine */
    bool
        goes_on; /* a training, whose models are compared with its manifest (models.h) and not with their own sums; set before they are opened */
    char summed[FS_PATH]; /* the folder whose sums were compared last */
    unsigned opened;      /* enum engine_part */
};

/* comm: of the job, outlives the engine; NULL: one rank. With it all functions are collective. */
void engine_init(struct engine *g, const struct config *c, struct comm *comm);
tare_status engine_open(struct engine *g, unsigned parts, struct err *e);
/* The frozen reference policy: model.reference, or the initial model. It may have another shape, with the policy's tokenizer;
 * TARE_E_CONFIG where it has not. */
tare_status engine_open_reference(struct engine *g, struct err *e);
/* objective.plugin, with the environment in env. Before engine_open_reference and engine_open_trainer, which asks what it needs. */
tare_status engine_open_objective(struct engine *g, struct err *e);
/* The trainer of the model (and the reference), with its gradients in one shard; temperature: of pi and pi_old; steps: optimizer steps of the
 * whole run. */
tare_status engine_open_trainer(struct engine *g, double temperature, int64_t steps, struct err *e);
/* The implicit process reward model of [process_reward] and its trainer; the reference is open already. */
tare_status engine_open_reward_model(struct engine *g, struct err *e);
/* Whether somebody gives the rewards of tokens or steps that the estimator reads (TARE_NEED_SEGMENTS), and one alone: a verifier or [process_reward].
 * verifier_gives: verify_gives_segments. TARE_E_CONFIG. */
tare_status engine_check_segments(const struct config *c, bool verifier_gives, bool estimator_reads, struct err *e);
void engine_close(struct engine *g);

/* A collector of the open parts, for batches in arena. The caller sets config, params and what else it needs, and calls collector_free. */
struct collector engine_collector(const struct engine *g, struct arena *arena);
/* How `tare eval` and a training run's evaluation sample: rollout.* with eval's samples, temperature, top_p, top_k, min_p and, where it is set,
 * max_new_tokens in place. All else is as in training, stop_ids and ignore_eos too. */
struct rollout_config engine_evaluation_rollout(const struct config *c);
/* The most tokens that a prompt may have: one less than the context, and rollout.max_prompt_tokens (0: no limit). Its default is meant for training
 * runs, whose memory follows from it: elsewhere (training false) it counts only where it is set. */
int64_t engine_prompt_room(const struct engine *g, bool training);
/* prompts_check with that room. */
tare_status engine_check_prompts(struct engine *g, const struct dataset *d, bool training, uint64_t *hash, struct err *e);

#endif
