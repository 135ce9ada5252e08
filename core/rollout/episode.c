/* Episodes of several turns: the ends of turns, parked sequences and their next texts. */
#include "rollout/sampler.h"

tare_status episodes_begin(struct sampler *s, const struct sample_episodes *how, struct err *e)
{
    struct episodes *x = &s->episodes;
    x->how = how;
    x->n_turns = x->n_parked = 0;
    s->sched.episodes = how != NULL;
    if (!how) return TARE_OK;
    if (how->max_turn_tokens < 0 || how->max_tokens < 0)
        FAIL(e, TARE_E_RANGE, "an episode's limits, %lld tokens a turn and %lld in all: must be 0 or more (0: no limit)",
             (long long)how->max_turn_tokens, (long long)how->max_tokens);
    return arena_new_raw(&s->run, &x->parked, s->sched.n_seqs, e);
}

tare_status episodes_end_turn(struct sampler *s, int64_t seq, enum finish finish, struct err *e)
{
    struct episodes *x = &s->episodes;
    struct sequence *q = &s->sched.seqs[seq];
    if (x->n_turns == x->turn_capacity) {
        TRY(mem_grow((void **)&x->turns, &x->turn_capacity, x->n_turns + 1, (int64_t)sizeof *x->turns, e));
        s->grown_elsewhere++;
    }
    x->turns[x->n_turns++] = (struct ended_turn){seq, q->act_begin, q->n, (uint8_t)finish};
    q->turns++;
    if (finish != FINISH_STOP) return draw_end(s, seq, finish, e);
    scheduler_park(&s->sched, seq);
    x->parked[x->n_parked++] = seq;
    return TARE_OK;
}

/* Appends a text to a parked sequence, which is then ready; or ends an episode in which nothing can
 * follow it. */
static tare_status append_text(struct sampler *s, int64_t seq, const struct episode_answer *answer, struct err *e)
{
    struct sequence *q = &s->sched.seqs[seq];
    const struct group *g = &s->sched.groups[q->group];
    if (answer->n < 0) FAIL(e, TARE_E_RANGE, "turn %lld: a text of %lld tokens", (long long)q->turns - 1, (long long)answer->n);
    if (answer->n >= g->limit - q->n || q->n_sampled >= g->how->params->max_new_tokens) return draw_end(s, seq, FINISH_LENGTH, e);
    for (int64_t i = 0; i < answer->n; i++) {
        if (answer->ids[i] < 0 || answer->ids[i] >= s->model->shape.vocab)
            FAIL(e, TARE_E_RANGE, "%s: token %lld of the text after turn %lld is %d: must be 0 to %lld",
                 g->request->where ? g->request->where : "a prompt", (long long)i, (long long)q->turns - 1, answer->ids[i],
                 (long long)s->model->shape.vocab - 1);
        TRY(draw_append(s, (struct drawn){(int32_t)seq, answer->ids[i], 0, 0, 0}, e));
    }
    s->stats.context_tokens += answer->n;
    q->act_begin = q->n;
    scheduler_resume(&s->sched, seq);
    return TARE_OK;
}

static tare_status ask_one(struct sampler *s, int64_t seq, bool idle, bool *later, struct err *e)
{
    const struct sequence *q = &s->sched.seqs[seq];
    const struct ended_turn last = {.seq = seq, .begin = q->act_begin, .end = q->n};
    struct episode_answer answer = {0};
    TRY(draw_report_ids(s, q, e));
    const struct episode_act act = {.request = q->group,
                                    .sample = seq - s->sched.groups[q->group].first,
                                    .at = seq,
                                    .turn = q->turns - 1,
                                    .ids = s->report_ids,
                                    .n = last.end,
                                    .begin = last.begin,
                                    .idle = idle};
    TRY(s->episodes.how->next_text(s->episodes.how->ctx, &act, &answer, e));
    *later = answer.what == EPISODE_LATER;
    if (*later) return TARE_OK;
    return answer.what == EPISODE_TEXT ? append_text(s, seq, &answer, e) : draw_end(s, seq, FINISH_ENDED, e);
}

tare_status episodes_ask(struct sampler *s, struct err *e)
{
    struct episodes *x = &s->episodes;
    const int64_t n = x->n_parked;
    x->n_parked = 0;
    for (int64_t i = 0; i < n; i++) {
        const int64_t seq = x->parked[i];
        bool later;
        TRY(ask_one(s, seq, s->sched.n_parked == s->sched.remaining, &later, e));
        if (later) x->parked[x->n_parked++] = seq;
    }
    return TARE_OK;
}

/* ---- the output */

tare_status episodes_collect(const struct sampler *s, struct arena *arena, struct sample_output *out, struct err *e)
{
    const struct episodes *x = &s->episodes;
    const struct scheduler *d = &s->sched;
    int64_t *next;
    out->n_turns = x->n_turns;
    TRY(arena_new(arena, &out->sampled, out->n_tokens, e));
    TRY(arena_new(arena, &out->turn_begin, out->n + 1, e));
    TRY(arena_new_raw(arena, &out->act_begin, x->n_turns, e));
    TRY(arena_new_raw(arena, &out->act_end, x->n_turns, e));
    TRY(arena_new_raw(arena, &out->turn_finish, x->n_turns, e));
    TRY(arena_new(arena, &next, out->n, e));
    for (int64_t i = 0; i < out->n; i++) {
        next[i] = out->turn_begin[i];
        out->turn_begin[i + 1] = out->turn_begin[i] + d->seqs[i].turns;
    }
    for (int64_t u = 0; u < x->n_turns; u++) {
        const struct ended_turn *turn = &x->turns[u];
        const int64_t at = next[turn->seq]++, first = out->token_begin[turn->seq];
        out->act_begin[at] = turn->begin;
        out->act_end[at] = turn->end;
        out->turn_finish[at] = turn->finish;
        for (int64_t t = first + turn->begin; t < first + turn->end; t++) out->sampled[t] = 1;
    }
    return TARE_OK;
}
