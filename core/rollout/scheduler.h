/* The scheduler: admission, growth, preemption and the end of sequences, over the block allocator.
 * It computes nothing; the sampler executes its decisions.
 *
 * Sequences are numbered in output order (request, then sample) and are admitted in that order;
 * when blocks run out, the running sequence with the highest number is preempted. So every running
 * sequence has a lower number than every waiting one, the whole queue is one cursor (`next`), and
 * samples of a prompt are adjacent in `running`.
 *
 * Blocks of a prompt of P tokens: P / 16 full ones, which its samples share, and if P % 16 > 0 a
 * partial one, which is copied for each sample; the last sample to be admitted takes it over. Once
 * the partial block is taken or released, a running sibling's block can be copied instead: its
 * first P % 16 lanes are the prompt's. A prompt stays in the cache while one of its samples runs,
 * or is the next to run.
 *
 * In episodes a sequence that waits for its next text is parked: it is neither running nor to be
 * admitted, and keeps its blocks until they are needed. Then `next` is the lowest number that may be
 * ready. Blocks are taken, in this order, from prompts without a holder, from parked or ready
 * sequences, the youngest first, and from running ones. A ready sequence takes blocks only from
 * younger ones, unless nothing runs.
 *
 *   waiting --admit--> running --park--> parked --resume--> ready --admit--> running
 *      ^--- preempted ----'  '--finish--> done <--finish--'      (parked, ready: with or without blocks)
 *
 * Threads: one owner. */
#ifndef TARE_CORE_ROLLOUT_SCHEDULER_H
#define TARE_CORE_ROLLOUT_SCHEDULER_H

#include "rollout/kv_blocks.h"
#include "rollout/rollout.h"

struct drawing { /* how the tokens of a group are drawn; ignored by the scheduler */
    const struct sample_params *params;
    const int32_t *stop; /* ids that end a completion */
    int64_t n_stop;
    /* Set by a session. */
    void *owner;
    bool prompt_rows, token_rows;
};

struct group { /* one request */
    const struct sample_request *request;
    const struct drawing *how;
    int64_t first, remaining, holders; /* its first sequence; unfinished sequences; those with blocks */
    int64_t limit;                     /* maximum of tokens after the prompt: as requested, and within the context */
    int32_t *blocks;                   /* [ceil(P / 16)], the partial block last */
    /* resident: the full blocks are held; has_partial: so is the partial block (false: the prompt
     * has none, or it was taken over). */
    bool resident, has_partial;
    bool drawn; /* the first tokens of all samples are drawn */
};

struct sequence {
    int64_t group, n; /* n: number of tokens after the prompt */
    struct rng_key key;
    int64_t cached;  /* keys in the cache, while it has blocks */
    int64_t kept;    /* those that need not be computed when it is admitted */
    int64_t known;   /* keys after the prompt that were computed when it lost its blocks */
    int32_t *blocks; /* a row of scheduler.tables, while running, or parked with its keys */
    int64_t n_blocks;
    int32_t last;   /* the newest token; its key is not in the cache yet */
    int64_t newest; /* its index in the sampler's log */
    bool running, parked, done;
    uint8_t finish;
    int64_t drafts;                      /* its handle in speculation.drafts, or 0; ignored by the scheduler */
    int64_t n_sampled, act_begin, turns; /* of an episode: drawn tokens; first token of this turn; finished turns */
};

struct scheduler {
    struct kv_blocks pool;
    struct group *groups;
    struct sequence *seqs;
    int64_t n_groups, n_seqs, max_batch;
    /* Admit as soon as a sequence slot is free, although a pass for one prompt is expensive: in
     * sessions, where a client waits. */
    bool eager;
    bool episodes;    /* sequences may be parked */
    int64_t n_parked; /* sequences that wait for a text */
    int64_t parked_drops;
    int64_t next, remaining; /* first sequence that may have to be admitted; unfinished sequences */
    int64_t *running;        /* [max_batch] ascending */
    int64_t n_running;
    int32_t **tables; /* free rows of block tables, a stack: max_batch, in episodes one for each sequence */
    int64_t n_tables;
    int64_t preemptions;
    int64_t group_capacity, seq_capacity; /* of a session's arrays */
    /* Set by the last scheduler_admit. */
    int64_t *fresh; /* [max_batch] groups whose prompt has to be computed */
    int64_t n_fresh;
    int64_t admitted;             /* running[admitted ..] are new */
    int32_t *copy_to, *copy_from; /* [max_batch] partial blocks to copy once the prompts are computed */
    int64_t n_copies;
};

/* Queues the groups and sequences of the requests, in the arena. scheduler_start prepares the
 * pool. */
struct scheduler_work {
    const struct sample_request *requests; /* [n] */
    int64_t n, max_new, context;           /* maximum tokens of a completion; of prompt and completion */
    struct rng_key key;
};
tare_status scheduler_enqueue(struct scheduler *s, const struct scheduler_work *w, struct arena *arena, struct err *e);
/* Number of blocks that group g needs if one of its samples runs alone to its limit. */
int64_t scheduler_group_need(const struct group *g);
/* Number of blocks with which max_batch sequences run to their limits without preemption. */
int64_t scheduler_batch_need(const struct scheduler *s, int64_t max_batch);
/* Allocates tables for max_batch sequences and frees all blocks. A group that cannot fit is an
 * error that names its row. */
tare_status scheduler_start(struct scheduler *s, int64_t max_batch, struct arena *arena, struct err *e);

/* ---- a session: groups join at the end of the queue, and are removed after they have ended */
/* Allocates tables for max_batch sequences of up to `width` blocks, without groups. */
tare_status scheduler_open(struct scheduler *s, int64_t max_batch, int64_t width, struct arena *arena, struct err *e);
/* Reserves capacity for one more group and n more sequences. Free the arrays of a session's groups
 * and sequences with mem_free. */
tare_status scheduler_reserve(struct scheduler *s, int64_t n, struct err *e);
/* Appends g, with request, how, limit and blocks set, to the reserved capacity. key: the request's,
 * from which the keys of its samples are derived. */
void scheduler_join(struct scheduler *s, const struct group *g, struct rng_key key);
/* Removes finished groups; the others keep their order and are renumbered. map [n_seqs]: the new
 * number of each sequence, -1: removed */
void scheduler_remove_ended(struct scheduler *s, int64_t *map);

/* ---- an iteration */
/* Moves sequences from the queue into `running` while blocks and max_batch allow. */
void scheduler_admit(struct scheduler *s);
/* Gives every running sequence blocks for its next keys, up to `tokens` of them or its limit;
 * preempts the youngest if there are not enough. */
void scheduler_grow(struct scheduler *s, int64_t tokens);
/* Ends a sequence, running or not, after its last token. It stays in `running` until
 * scheduler_compact, which also sorts what was admitted. */
void scheduler_finish(struct scheduler *s, int64_t seq, enum finish finish);
void scheduler_compact(struct scheduler *s);
/* Parks a sequence after its last token, running or not. As for scheduler_finish. */
void scheduler_park(struct scheduler *s, int64_t seq);
/* Makes a parked sequence ready, with the tokens that were appended. */
void scheduler_resume(struct scheduler *s, int64_t seq);

#endif
