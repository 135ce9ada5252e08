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

/* Episodes of several turns. After the stop token of a turn the sequence is parked: it keeps its keys
 * and values while there is space, and gives up its place in the batch. `next_text` is called on the
 * sampling thread, once per scheduler iteration for each parked sequence, until it answers. The
 * tokens that it gives are context: they use up positions, and so counters of the random numbers,
 * but no draws. The order in which answers come changes time, never a token. A turn that is cut by a
 * limit ends its episode unasked, and so does an answer that leaves no space for a new token. */
struct episode_act {
    int64_t request, sample, at, turn; /* at: index in the output; turn: from 0 */
    const int32_t *ids;                /* [n] all tokens after the prompt, until the call returns */
    int64_t n, begin;                  /* the act: ids[begin .. n-1] */
    bool idle;                         /* all unfinished sequences are parked: the call may wait */
};
enum episode_next { EPISODE_LATER, EPISODE_TEXT, EPISODE_END };
struct episode_answer {
    enum episode_next what; /* EPISODE_LATER on entry */
    const int32_t *ids;     /* [n] context of EPISODE_TEXT, until the next call; n may be 0 */
    int64_t n;
};
struct sample_episodes {
    tare_status (*next_text)(void *ctx, const struct episode_act *act, struct episode_answer *out, struct err *e);
    void *ctx;
    int64_t max_turn_tokens; /* sampled tokens of a turn; 0: no limit */
    int64_t max_tokens;      /* tokens after the prompt, context included; 0: the model's context */
};

struct sample_output { /* in the caller's arena; completions in order of request, then sample */
    int64_t n, n_tokens;
    int64_t *token_begin; /* [n+1] */
    int32_t *ids;         /* [n_tokens] including the stop token */
    float *logprob;       /* [n_tokens] softmax at the temperature, before truncation; greedy: at temperature 1 */
    float *entropy;       /* [n_tokens] */
    uint8_t *finish;      /* [n] enum finish */
    /* Of episodes, else NULL. */
    uint8_t *sampled;     /* [n_tokens] 0: context, with logprob and entropy 0 */
    int64_t *turn_begin;  /* [n+1] */
    int64_t *act_begin;   /* [n_turns] from the first token of the completion */
    int64_t *act_end;     /* [n_turns] */
    uint8_t *turn_finish; /* [n_turns] enum finish */
    int64_t n_turns;
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
    int64_t context_tokens;    /* given by environments */
    int64_t parked_drops;      /* parked sequences whose blocks were taken */
    int64_t grown;             /* number of times that memory was allocated */
    int64_t drafted, accepted; /* tokens that were drafted; those of them that were drawn */
};

struct sampler;
enum { AUTO_BATCH = 256 }; /* rollouts in flight for rollout.batch = 0 */
/* max_batch: sequences decoded together (0: automatic); kv_tokens: capacity of the cache in tokens
 * (0: computed from max_batch and the requested lengths). The model must outlive the sampler; its
 * weights may change between runs. */
tare_status sampler_new(struct model *m, int64_t max_batch, int64_t kv_tokens, struct sampler **out, struct err *e);
/* A prompt that leaves no space in the context, or that the cache cannot hold, is an error that
 * names its row. A completion ends at a stop token, at max_new_tokens (of an episode, sampled ones),
 * or when prompt and completion fill the context. cancelled: polled between tokens, may be NULL; the call then returns
 * TARE_E_CANCELLED. */
struct sample_job {
    const struct sample_params *params;
    struct rng_key key;
    const struct sample_request *requests; /* [n] */
    int64_t n;
    const volatile int *cancelled;
    const struct sample_episodes *episodes; /* NULL: completions of one turn */
};
tare_status sampler_run(struct sampler *s, const struct sample_job *job, struct arena *arena, struct sample_output *out,
                        struct err *e);
/* Turns speculation on or off (as it is in a new sampler): tokens that repeat earlier ones are drafted
 * and verified several at a time (speculate.c). It changes time and the stats, never a token. */
void sampler_speculate(struct sampler *s, bool on);
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

/* Copies samples to the columns token_begin, ids, logprob, entropy and finish of b, and those of
 * turns, and sets their counts. */
void rollout_columns(struct batch *b, const struct sample_output *o);
/* The rollout stage of a step: batch has rows, prompts and occurrences (data/); the stage fills
 * group_begin, token_begin, ids, logprob, entropy, finish. The caller decodes to text (it has the
 * tokenizer). key: rng_derive(rng_key(seed, purpose), step). */
struct rollout_job {
    const struct rollout_config *config;
    const struct sample_params *params;
    struct rng_key key;
    const volatile int *cancelled; /* as for sampler_run */
    const struct sample_episodes *episodes;
};
tare_status rollout_run(struct sampler *s, const struct rollout_job *job, struct batch *b, struct arena *arena, struct err *e);

#endif
