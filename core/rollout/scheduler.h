/* Which sequences run: admission, growth, preemption and the end of sequences, over the block allocator. It computes nothing; the sampler
 * runs what is decided here.
 *
 * Sequences are numbered in output order (request, then sample) and are admitted in that order; the one put back when blocks run out is
 * always the one with the highest number. So every running sequence has a lower number than every waiting one, the whole queue is one
 * cursor (`next`), and samples of a prompt are neighbours in `running`.
 *
 * Blocks of a prompt of P tokens: P / 16 full ones, which its samples share, and when P % 16 > 0 a partly filled one (the template), copied
 * for each sample; the last sample to be admitted takes it over. When the template is gone, a running sibling's block serves as well: its
 * first P % 16 lanes are the prompt's. A prompt stays in the cache while one of its samples runs, or is the next to run.
 *
 * Threads: one owner. */
#ifndef TARE_CORE_ROLLOUT_SCHEDULER_H
#define TARE_CORE_ROLLOUT_SCHEDULER_H

#include "rollout/kv_blocks.h"
#include "rollout/rollout.h"

struct drawing { /* how the tokens of a group are drawn; the scheduler does not look at it */
    const struct sample_params *params;
    const int32_t *stop; /* ids that end a completion */
    int64_t n_stop;
    /* of a session */
    void *owner;
    bool prompt_rows, token_rows;
};

struct group { /* one request */
    const struct sample_request *request;
    const struct drawing *how;
    int64_t first, left, running; /* its first sequence; sequences not finished; sequences running */
    int64_t limit;                /* most new tokens: what was asked for, and what the context leaves */
    int32_t *blocks;              /* [ceil(P / 16)], the template last */
    bool resident, has_template;  /* full blocks are held; the template is held too (false: there is none, or it was taken over) */
    bool drawn;                   /* the first tokens of all samples are drawn */
};

struct sequence {
    int64_t group, n; /* n: tokens so far */
    struct rng_key key;
    int64_t cached;  /* keys in the cache, while running */
    int32_t *blocks; /* a row of scheduler.tables, while running */
    int64_t n_blocks;
    int32_t last;   /* the newest token, whose key is not in the cache yet */
    int64_t newest; /* where the sampler's log has it */
    bool running, done;
    uint8_t finish;
};

struct scheduler {
    struct kv_blocks pool;
    struct group *groups;
    struct sequence *seqs;
    int64_t n_groups, n_seqs, max_batch;
    bool
        eager; /* a free place is taken at once, though a pass for one prompt costs much: of a session, whose requests are waited for */
    int64_t next, left; /* first sequence that may have to be admitted; sequences not finished */
    int64_t *running;   /* [max_batch] ascending */
    int64_t n_running;
    int32_t **tables; /* [max_batch] free rows of block tables, a stack */
    int64_t n_tables;
    int64_t preemptions;
    int64_t group_room, seq_room; /* of a session's arrays */
    /* decided by the last scheduler_admit */
    int64_t *fresh; /* [max_batch] groups whose prompt has to be computed */
    int64_t n_fresh;
    int64_t admitted;             /* running[admitted ..] are new */
    int32_t *copy_to, *copy_from; /* [max_batch] templates to copy once the prompts are computed */
    int64_t n_copies;
};

/* Groups and sequences of the requests, in the arena. The pool is not touched; scheduler_start does that. */
struct scheduler_work {
    const struct sample_request *requests; /* [n] */
    int64_t n, max_new, context;           /* most tokens of a completion; of prompt and completion */
    struct rng_key key;
};
tare_status scheduler_plan(struct scheduler *s, const struct scheduler_work *w, struct arena *arena, struct err *e);
/* Blocks that group g needs when one of its samples runs alone to its limit. */
int64_t scheduler_group_need(const struct group *g);
/* Blocks with which max_batch sequences run to their limits without preemption. */
int64_t scheduler_batch_need(const struct scheduler *s, int64_t max_batch);
/* Queues and tables for max_batch sequences; every block is free. A group that fits in no case is an error that names its row. */
tare_status scheduler_start(struct scheduler *s, int64_t max_batch, struct arena *arena, struct err *e);

/* ---- a session: groups join at the end of the queue, and are forgotten when they have ended */
/* Queues and tables for max_batch sequences of up to `width` blocks; no group is there yet. */
tare_status scheduler_open(struct scheduler *s, int64_t max_batch, int64_t width, struct arena *arena, struct err *e);
/* Room for one group and n sequences more. The arrays of a session's groups and sequences are mem_free's. */
tare_status scheduler_make_room(struct scheduler *s, int64_t n, struct err *e);
/* g, of which request, how, limit and blocks are set; the room has been made. key: of the request, from which its samples' are derived */
void scheduler_join(struct scheduler *s, const struct group *g, struct rng_key key);
/* Forgets the groups that have ended; the others keep their order, and get new numbers. map [n_seqs]: the new number of each sequence, -1: forgotten */
void scheduler_forget(struct scheduler *s, int64_t *map);

/* ---- a turn */
/* Moves sequences from the queue into `running` while blocks and max_batch allow. */
void scheduler_admit(struct scheduler *s);
/* Gives every running sequence blocks for its next keys, as many as it may still need of `tokens`; puts the youngest back when there are not enough. */
void scheduler_grow(struct scheduler *s, int64_t tokens);
/* A sequence, running or not, has got its last token. It stays in `running` until scheduler_compact. */
void scheduler_finish(struct scheduler *s, int64_t seq, enum finish finish);
void scheduler_compact(struct scheduler *s);

#endif
