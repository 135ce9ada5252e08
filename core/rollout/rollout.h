/* Sampling: G completions for each prompt by continuous batching over a paged key/value cache in
 * which the G rollouts of a prompt share the blocks of its prefix, computed once.
 *
 * A completion depends only on the weights, the prompt, the sampling parameters and its Philox key
 * (run seed, purpose; step, prompt uid, occurrence, rollout; position): not on the batch it ran in,
 * the threads, or the ranks. */
#ifndef TARE_CORE_ROLLOUT_ROLLOUT_H
#define TARE_CORE_ROLLOUT_ROLLOUT_H

#include "base/rng.h"
#include "batch/batch.h"
#include "config/config.h"
#include "model/model.h"

struct sample_params {
    double temperature, top_p, min_p; /* temperature 0: greedy */
    int64_t top_k, max_new_tokens;
    const int32_t *stop; /* ids that end a completion, in addition to the model's EOS ids */
    int64_t n_stop;
    bool ignore_eos;
};

struct sample_request {
    const int32_t *prompt;
    int64_t prompt_len, n_samples; /* n_samples >= 1 completions of this prompt */
    uint64_t prompt_uid;
    int64_t occurrence;
    const char *where; /* the row in error messages ("train.jsonl:12"); may be NULL */
};

struct sample_output { /* in the caller's arena; completions in order of request, then sample */
    int64_t n, n_tokens;
    int64_t *token_begin; /* [n+1] */
    int32_t *ids;         /* [n_tokens] including the stop token */
    float *logprob;       /* [n_tokens] softmax at the temperature, before truncation; greedy: at temperature 1 */
    float *entropy;       /* [n_tokens] */
    uint8_t *finish;      /* [n] enum finish */
};

/* Reads the parameters of a configuration. stop_ids is a list such as "151645, 151643" (copied to
 * the arena); where: its key, for the error. */
tare_status rollout_sample_params(const struct rollout_config *c, int64_t vocab, const char *where, struct arena *arena,
                                  struct sample_params *out, struct err *e);

/* Called on the sampling thread: `ended` once per finished completion, `round` once per scheduler
 * iteration. An error ends the run. */
struct sample_ended {
    int64_t request, sample, at; /* at: index in the output */
    const int32_t *ids;          /* [n] until the call returns */
    int64_t n;
    uint8_t finish;
};
struct sample_watch {
    tare_status (*ended)(void *ctx, const struct sample_ended *x, struct err *e);
    tare_status (*round)(void *ctx, struct err *e);
    void *ctx;
};

struct sampler_stats { /* since the sampler was made */
    int64_t prompt_tokens, new_tokens, decode_steps, blocks_peak;
    /* sequences preempted for lack of blocks; their tokens computed a second time */
    int64_t preemptions, refilled_tokens;
    int64_t grown; /* number of times that memory was allocated */
};

struct sampler;
enum { AUTO_BATCH = 256 }; /* rollouts in flight for rollout.batch = 0 */
/* max_batch: sequences decoded together (0: automatic); kv_tokens: capacity of the cache in tokens
 * (0: computed from max_batch and the requested lengths). The model must outlive the sampler; its
 * weights may change between runs. */
tare_status sampler_new(struct model *m, int64_t max_batch, int64_t kv_tokens, struct sampler **out, struct err *e);
/* A prompt that leaves no space in the context, or that the cache cannot hold, is an error that
 * names its row. A completion ends at a stop token, at max_new_tokens, or when prompt and
 * completion fill the context. cancelled: polled between tokens, may be NULL; the call then returns
 * TARE_E_CANCELLED. */
struct sample_job {
    const struct sample_params *params;
    struct rng_key key;
    const struct sample_request *requests; /* [n] */
    int64_t n;
    const volatile int *cancelled;
};
tare_status sampler_run(struct sampler *s, const struct sample_job *job, struct arena *arena, struct sample_output *out,
                        struct err *e);
void sampler_watch(struct sampler *s, const struct sample_watch *watch); /* for later runs; NULL: none */
struct sampler_stats sampler_stats(const struct sampler *s);

struct sampler_need {
    int64_t batch;  /* sequences that run together */
    int64_t blocks; /* cache blocks for them at full length */
    int64_t alone;  /* cache blocks for one sample of the first request */
};
/* Grows the cache as a run on these requests (at least one) would; their prompts are not read. */
tare_status sampler_reserve(struct sampler *s, const struct sample_request *requests, int64_t n, int64_t max_new,
                            struct sampler_need *out, struct err *e);
/* Bytes of the backend's memory. forward: peak of the passes, logits included. */
struct sampler_memory {
    int64_t cache_blocks, cache, forward;
    int64_t token; /* per drawn token, in host memory */
};
struct sampler_memory sampler_memory(const struct sampler *s);
void sampler_free(struct sampler *s);
void sampler_free_at(struct sampler **s);

/* Copies samples to the columns token_begin, ids, logprob, entropy and finish of b, and sets their
 * counts. */
void rollout_columns(struct batch *b, const struct sample_output *o);
/* The rollout stage of a step: batch has rows, prompts and occurrences (data/); the stage fills
 * group_begin, token_begin, ids, logprob, entropy, finish. The caller decodes to text (it has the
 * tokenizer). key: rng_derive(rng_key(seed, purpose), step). */
struct rollout_job {
    const struct rollout_config *config;
    const struct sample_params *params;
    struct rng_key key;
    const volatile int *cancelled; /* as for sampler_run */
};
tare_status rollout_run(struct sampler *s, const struct rollout_job *job, struct batch *b, struct arena *arena, struct err *e);

#endif
