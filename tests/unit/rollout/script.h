/* A scripted environment: its texts depend on the turn and the act, and come after a delay. */
#ifndef TARE_TESTS_SCRIPT_H
#define TARE_TESTS_SCRIPT_H

#include "rig.h"

#include "base/fs.h"

enum { SCRIPT_TURNS = 5, SCRIPT_TURN = 24, SCRIPT_MOST = 100, SCRIPT_STOPS = 15, SCRIPT_TEXT = 18 };

struct script {
    int64_t turns; /* 0: SCRIPT_TURNS */
    bool lasting;  /* turns end at the model's ids only, after 25 tokens in the mean */
    int delay;     /* mean number of calls before an answer; 0: at once */
    int64_t calls, ended;
};

struct script_text {
    int32_t ids[SCRIPT_TEXT];
    int64_t n;
};

static inline bool script_is_stop(const struct script *s, int32_t id)
{
    return id < 10 + (s->lasting ? 0 : SCRIPT_STOPS); /* ids 0 to 9 are the model's */
}

/* A turn has ten tokens in the mean. */
static inline struct sample_params script_params(const struct script *s, int32_t stop[SCRIPT_STOPS])
{
    struct sample_params p = rig_params(1, 1000);
    for (int i = 0; i < SCRIPT_STOPS; i++) stop[i] = 10 + i;
    p.stop = stop;
    p.n_stop = s->lasting ? 0 : SCRIPT_STOPS;
    return p;
}

/* 0 to SCRIPT_TEXT - 1 tokens, stop tokens among them. */
static inline struct script_text script_text(const int32_t *act, int64_t n, int64_t turn)
{
    const struct rng_key key = rng_key(fs_hash(act, n * (int64_t)sizeof *act, (uint64_t)turn), RNG_DATA);
    struct script_text text = {.n = (int64_t)rng_below(key, 0, SCRIPT_TEXT)};
    for (int64_t i = 0; i < text.n; i++) text.ids[i] = (int32_t)rng_below(key, 1 + (uint64_t)i, 250);
    return text;
}

static inline tare_status script_next(void *ctx, const struct episode_act *act, struct episode_answer *out, struct err *e)
{
    static _Thread_local struct script_text text;
    struct script *s = ctx;
    (void)e;
    assert_true(out->what == EPISODE_LATER);
    assert_true(act->begin < act->n && script_is_stop(s, act->ids[act->n - 1]));
    if (s->delay && rng_below(rng_key((uint64_t)s->delay, RNG_DATA), (uint64_t)s->calls++, (uint64_t)s->delay + 1)) return TARE_OK;
    if (act->turn + 1 == (s->turns ? s->turns : SCRIPT_TURNS)) {
        s->ended++;
        out->what = EPISODE_END;
        return TARE_OK;
    }
    text = script_text(act->ids + act->begin, act->n - act->begin, act->turn);
    *out = (struct episode_answer){EPISODE_TEXT, text.ids, text.n};
    return TARE_OK;
}

static inline struct sample_episodes script_episodes(struct script *s)
{
    return (struct sample_episodes){
        .next_text = script_next, .ctx = s, .max_turn_tokens = s->lasting ? 0 : SCRIPT_TURN, .max_tokens = SCRIPT_MOST};
}

#endif
