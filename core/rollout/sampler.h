/* Declarations shared by the files of the sampler. One iteration of its loop:
 *
 *   ask       in episodes, for the next texts of parked sequences (episode.c)
 *   admit     sequences from the queue (scheduler.c)
 *   prefill   the prompts that are not in the cache, several packed into one forward pass, long ones
 *             cut; the first tokens of a prompt's samples are drawn from the logits of its last
 *             row (prefill.c)
 *   refill    the tokens of preempted sequences, and the context given to parked ones: the same
 *             forward pass, without logits
 *   decode    one row for each running sequence: its newest token in, the next one out (decode.c).
 *             If few run, further rows verify drafts of the tokens that follow (speculate.c)
 *
 * Tokens are appended to a log in the order they are drawn; the output of a run is the log sorted
 * by sequence, so memory grows with the tokens drawn and not with the longest length allowed. Context
 * of episodes is appended to it in the same way. A session (session.h) also reports each token to its listener. */
#ifndef TARE_CORE_ROLLOUT_SAMPLER_H
#define TARE_CORE_ROLLOUT_SAMPLER_H

#include "model/layer.h"
#include "rollout/decoder.h"
#include "rollout/draft.h"
#include "rollout/rows.h"
#include "rollout/scheduler.h"
#include "rollout/session.h"

enum { LOGIT_ROWS = 64, DRAW_ROWS = 1024, PREFILL_ROWS = 2048 };

struct drawn { /* one token; context has logprob and entropy 0 */
    int32_t seq, id;
    float logprob, entropy;
    /* In a run, index in the log of the sequence's previous token; undefined for the first
     * token. */
    int64_t before;
};

struct ended_turn {
    int64_t seq, begin, end; /* from the first token after the prompt */
    uint8_t finish;
};

/* Episodes of the current run. */
struct episodes {
    const struct sample_episodes *how; /* NULL: none */
    struct ended_turn *turns;          /* [n_turns] in the order in which they ended */
    int64_t n_turns, turn_capacity;
    int64_t *parked; /* [n_parked] sequences that wait for a text */
    int64_t n_parked;
};

/* Consecutive tokens of a sequence that the model computes keys for. */
struct stretch {
    const int32_t *ids, *blocks;
    int64_t n, pos;
    int64_t group; /* group whose first tokens the last row predicts; -1: none */
};

/* Drafts of the next pass (speculate.c). */
enum { SPECULATE_ROWS = 32 };
struct speculation {
    bool off;
    double row_cost;       /* of each further row of a pass, as a part of the cost of one; 0: unknown */
    int64_t rows;          /* most rows of a pass with drafts */
    struct drafts *drafts; /* NULL until the first use */
    int32_t *unread;       /* tokens that are not in drafts yet */
    int64_t unread_capacity;
    /* ids[i][0] is the newest token of running[i], and n[i] drafts follow it. */
    int64_t total, n[SPECULATE_ROWS]; /* total: 0: the pass has no drafts, and the arrays are not set */
    int32_t ids[SPECULATE_ROWS][1 + DRAFT_MOST];
    double chance[SPECULATE_ROWS][DRAFT_MOST];
};

struct sampler {
    struct model *model;
    int64_t max_batch, kv_tokens, prefill_rows;
    struct kv_cache cache;
    struct scheduler sched;
    struct arena run, scratch; /* memory of one sampler_run, and of one forward pass */
    struct drawn *log;
    int64_t n_log, log_capacity;
    int32_t *refill; /* ids of the sequences computed again */
    int64_t refill_capacity;
    struct sample_watch watch; /* of runs */
    struct episodes episodes;  /* of runs */
    int32_t *report_ids;       /* ids of a completion reported to the watch, or to an environment */
    int64_t report_capacity;
    int64_t grown_elsewhere; /* of log, refill, report_ids and cache */
    struct sampler_stats stats;
    struct draw_buffers *draw_memory; /* in the backend's memory; NULL where that is the host's */
    struct decoder *decoder;          /* NULL: decode one token at a time */
    session_listener *listener;       /* of a session; NULL: none */
    struct speculation speculation;
    /* of the current run or session */
    struct stretch *stretches; /* [max_batch] */
    int64_t *ended;            /* [max_batch] */
};

/* Inputs of draws other than logits, and their results: tokens, logprobs and entropies, one after
 * another. */
struct draw_buffers {
    struct sample_row rows[DRAW_ROWS];
    float results[3 * DRAW_ROWS];
};

/* Draws that the host waits for together: each is issued as soon as its logits are. */
struct draws {
    struct sampler *s;
    int64_t n, capacity;  /* number issued; capacity, at most DRAW_ROWS */
    int64_t *seqs;        /* [capacity] */
    const float **logits; /* [capacity] logits of each draw */
    struct sample_row *rows;
    void *host; /* [3 capacity] results in host memory */
    /* A listener reads the logits, which must stay valid until sampler_draws_end. */
    bool listens;
    /* [n] in decoding: the token that each draw follows. Adjacent draws of a sequence follow one
     * another: those after a draw that is not the next one's input are dropped. NULL: else */
    const int32_t *inputs;
};

/* ---- sampler.c */
tare_status sampler_check_params(const struct sample_params *p, struct err *e);
tare_status sampler_check_ids(const struct sampler *s, const struct sample_request *requests, int64_t n, struct err *e);
/* Grows the cache to at least n blocks; its contents are lost. */
tare_status sampler_cache(struct sampler *s, int64_t n, struct err *e);
int64_t sampler_block_bytes(const struct model *m);
/* Allocates the scratch of a run or session in s->run. */
tare_status sampler_scratch_new(struct sampler *s, struct err *e);
/* Runs one iteration of the loop; at least one sequence must be unfinished. */
tare_status sampler_iterate(struct sampler *s, const volatile int *cancelled, struct err *e);

/* ---- draw.c */
/* Collects the ids that end a completion. stop: capacity for p->n_stop and the model's */
int64_t draw_stops(const struct model *m, const struct sample_params *p, int32_t *stop);
/* Number of tokens that may be drawn for a sequence before its turn, or its completion, must end. */
int64_t draw_remaining(const struct sampler *s, const struct sequence *q);
/* Copies tokens begin .. begin + n of a sequence, counted from the first after the prompt. For runs
 * only. */
void draw_copy_ids(const struct sampler *s, const struct sequence *q, int64_t begin, int64_t n, int32_t *out);
/* Copies the newest n tokens of a sequence, of runs and sessions. */
void draw_copy_newest(const struct sampler *s, int64_t seq, int64_t n, int32_t *out);
/* Copies all tokens of a sequence to report_ids. */
tare_status draw_report_ids(struct sampler *s, const struct sequence *q, struct err *e);
tare_status draw_append(struct sampler *s, struct drawn token, struct err *e);
/* Ends a sequence and reports it to the watch of a run. */
tare_status draw_end(struct sampler *s, int64_t seq, enum finish finish, struct err *e);
struct sample_row draw_row(const struct sampler *s, const struct sequence *q);
/* Records a token of a sequence. logits: the row it was drawn from, if the group wants it; may be
 * NULL */
tare_status draw_accept(struct sampler *s, struct drawn token, const float *logits, struct err *e);
/* Draw the next tokens of at most `most` sequences, in s->scratch. sampler_draws_add issues those
 * of seqs[0 .. n-1] from logits with ld floats a row (0: all from one row), which later operations
 * may overwrite; sampler_draws_end copies all results to the host, and records them. */
tare_status sampler_draws_begin(struct sampler *s, int64_t most, struct draws *b, struct err *e);
tare_status sampler_draws_add(struct draws *b, const int64_t *seqs, int64_t n, const float *logits, int64_t ld, struct err *e);
tare_status sampler_draws_end(struct draws *b, struct err *e);
/* Reports tokens at .. at + n of a group's prompt to a session's listener, with logits computed
 * from hidden [n, C]. */
tare_status draw_prompt(struct sampler *s, int64_t group, int64_t at, int64_t n, const float *hidden, struct err *e);
/* Allocates logits for at most LOGIT_ROWS rows. */
tare_status sampler_logits_new(struct sampler *s, int64_t rows, float **logits, struct err *e);
tare_status sampler_rows_forward(struct sampler *s, const struct rows *r, float **hidden, struct err *e);

/* ---- episode.c */
tare_status episodes_begin(struct sampler *s, const struct sample_episodes *how, struct err *e);
/* Records a turn that ended with the newest token. Parks the sequence, or ends its episode. */
tare_status episodes_end_turn(struct sampler *s, int64_t seq, enum finish finish, struct err *e);
/* Asks for the next text of every parked sequence. */
tare_status episodes_ask(struct sampler *s, struct err *e);
/* Writes turns and mask of the output, whose tokens are complete. */
tare_status episodes_collect(const struct sampler *s, struct arena *arena, struct sample_output *out, struct err *e);

/* ---- speculate.c */
void speculate_begin(struct sampler *s);
void speculate_free(struct speculation *x);
/* Chooses the drafts that the next pass verifies, and gives their sequences blocks. All running
 * sequences have a block for their next key. */
tare_status speculate_plan(struct sampler *s, struct err *e);

/* ---- prefill.c, decode.c */
tare_status prefill(struct sampler *s, const volatile int *cancelled, struct err *e);
tare_status decode(struct sampler *s, struct err *e);

#endif
