/* What the files of the sampler share. One turn of its loop:
 *
 *   admit     sequences from the queue (scheduler.c)
 *   prefill   the prompts that are not in the cache, several packed into one forward pass, long ones cut; the last row of a prompt gives the
 *             logits from which the first tokens of all its samples are drawn (prefill.c)
 *   refill    the tokens of sequences that were put back: the same forward, no logits
 *   decode    one row a running sequence: its newest token in, the next one out (decode.c)
 *
 * Tokens go to a log in the order they are drawn; the output of a run is the log sorted by sequence, so memory follows the tokens there are and
 * not the longest that was allowed. A session (session.h) tells its listener each token as well. */
#ifndef TARE_CORE_ROLLOUT_SAMPLER_H
#define TARE_CORE_ROLLOUT_SAMPLER_H

#include "model/layer.h"
#include "rollout/decoder.h"
#include "rollout/rows.h"
#include "rollout/scheduler.h"
#include "rollout/session.h"

enum { LOGIT_ROWS = 64, DRAW_ROWS = 1024, PREFILL_ROWS = 2048 };

struct drawn { /* one token */
    int32_t seq, id;
    float logprob, entropy;
    int64_t before; /* of a run: where the log has the token before it of the sequence; of the first token: nothing */
};

/* A stretch of one sequence that goes through the model for its keys. */
struct stretch {
    const int32_t *ids, *blocks;
    int64_t n, pos;
    int64_t group; /* whose first tokens the last row gives; -1: none wanted */
};

struct sampler {
    struct model *model;
    int64_t max_batch, kv_tokens, prefill_rows;
    struct kv_cache cache;
    struct scheduler sched;
    struct arena run, scratch; /* of one sampler_run; of one forward pass */
    struct drawn *log;
    int64_t n_log, log_capacity;
    int32_t *refill; /* ids of the sequences that are computed again */
    int64_t refill_capacity;
    struct sample_watch watch; /* of runs */
    int32_t *told;             /* ids of a completion that the watch is told of */
    int64_t told_capacity;
    int64_t grown_elsewhere; /* log, refill, told and cache */
    struct sampler_stats stats;
    struct draw_room *room;     /* in the backend's memory; NULL where that is the host's */
    struct decoder *decoder;    /* NULL: a token at a time */
    session_listener *listener; /* of a session; NULL: none */
    /* of the current run or session */
    struct stretch *stretches; /* [max_batch] */
    int64_t *ended;            /* [max_batch] */
};

/* What draws read beside the logits, and what they give: tokens, logprobs and entropies, one after another. */
struct draw_room {
    struct sample_row rows[DRAW_ROWS];
    float results[3 * DRAW_ROWS];
};

/* Draws that the host waits for together: each is issued as soon as its logits are. */
struct draws {
    struct sampler *s;
    int64_t n, room;      /* issued; how many may be, at most DRAW_ROWS */
    int64_t *seqs;        /* [room] */
    const float **logits; /* [room] what each is drawn from */
    struct sample_row *rows;
    void *host;   /* [3 room] results where the host reads them */
    bool listens; /* someone asks for the logits: they have to stay until sampler_draws_end */
};

/* ---- sampler.c */
tare_status sampler_check_params(const struct sample_params *p, struct err *e);
tare_status sampler_check_ids(const struct sampler *s, const struct sample_request *requests, int64_t n, struct err *e);
/* Makes the cache hold n blocks at least; what was in it is gone then. */
tare_status sampler_cache(struct sampler *s, int64_t n, struct err *e);
int64_t sampler_block_bytes(const struct model *m);
/* What the turns of a run or session work in, in s->run. */
tare_status sampler_room(struct sampler *s, struct err *e);
/* One turn of the loop; at least one sequence is left. */
tare_status sampler_turn(struct sampler *s, const volatile int *cancelled, struct err *e);

/* ---- draw.c */
/* Ids that end a completion. stop: room for p->n_stop and the model's */
int64_t draw_stops(const struct model *m, const struct sample_params *p, int32_t *stop);
struct sample_row draw_row(const struct sampler *s, const struct sequence *q);
/* A token of a sequence. logits: what it was drawn from, where the group asks for that; may be NULL */
tare_status draw_accept(struct sampler *s, struct drawn token, const float *logits, struct err *e);
/* The next tokens of `most` sequences, in s->scratch. sampler_draws_add: those of seqs[0 .. n-1] from logits with ld floats a row (0: all from one row), which
 * may be overwritten by later operations; sampler_draws_end brings all to the host. */
tare_status sampler_draws_begin(struct sampler *s, int64_t most, struct draws *b, struct err *e);
tare_status sampler_draws_add(struct draws *b, const int64_t *seqs, int64_t n, const float *logits, int64_t ld, struct err *e);
tare_status sampler_draws_end(struct draws *b, struct err *e);
/* Tells a session's listener tokens at .. at + n of a group's prompt, whose logits come from hidden [n, C]. */
tare_status draw_prompt(struct sampler *s, int64_t group, int64_t at, int64_t n, const float *hidden, struct err *e);
/* Room for a piece of logits, at most LOGIT_ROWS rows. */
tare_status sampler_logits_new(struct sampler *s, int64_t rows, float **logits, struct err *e);
tare_status sampler_rows_forward(struct sampler *s, const struct rows *r, float **hidden, struct err *e);

/* ---- prefill.c, decode.c */
tare_status prefill(struct sampler *s, const volatile int *cancelled, struct err *e);
tare_status decode(struct sampler *s, struct err *e);

#endif
