/* recall: a symbol is shown, and asked for `wait` turns later.
 *
 *   c:                  the task: the symbol, or c? if it is asked for at once
 *   act: .              waiting
 *   : or f:             nothing happens, or, with distractors, another symbol passes
 *   ?                   the question, after `wait` acts
 *   act: a symbol       the answer
 *
 * Reward 1 for the right symbol. An act other than . while waiting is answered with ! and what would
 * have been said. The row may have "symbol". The optimum is 1.000, a blind answer gets 1 / symbols. The
 * state key has the symbol and the turn. */
#include "common/environment.h"

enum { P_SYMBOLS, P_WAIT, P_DISTRACTORS, P_COUNT };
static const tare_param PARAMS[P_COUNT] = {
    [P_SYMBOLS] = TARE_INT_PARAM("symbols", "8", "k, the number of symbols: a, b, ...", 2, 26, 0),
    [P_WAIT] = TARE_INT_PARAM("wait", "4", "turns between the symbol and the question", 0, 10000, 0),
    [P_DISTRACTORS] = TARE_BOOL_PARAM("distractors", "false", "other symbols pass while the policy waits", 0),
};
static const char SYMBOLS[] = "abcdefghijklmnopqrstuvwxyz";

struct session {
    uint64_t seed[2];
    int32_t symbol, turn;
};

static tare_status begin(const tare_value *v, void *session, const tare_episode *episode, tare_observation *out, tare_error *error)
{
    struct session *s = session;
    struct draw d = {episode->seed, 0};
    char allowed[sizeof SYMBOLS];
    memcpy(allowed, SYMBOLS, sizeof SYMBOLS);
    allowed[v[P_SYMBOLS].i] = 0;
    uint8_t symbol = (uint8_t)environment_below(&d, v[P_SYMBOLS].i);
    tare_status status = environment_row_symbols(episode, "symbol", allowed, 1, &symbol, error);
    if (status) return status;
    memcpy(s->seed, episode->seed, sizeof s->seed);
    s->symbol = symbol;
    status = environment_say(out, "%c%c", SYMBOLS[symbol], v[P_WAIT].i ? ':' : '?');
    return status ? status : tare_print(out->state_key, "%c0", SYMBOLS[symbol]);
}

static tare_status pass_turn(const tare_value *v, struct session *s, int legal, tare_observation *out)
{
    struct draw d = {s->seed, 1 + (uint64_t)s->turn};
    const char *fault = legal ? "" : "!";
    if (++s->turn == v[P_WAIT].i) return environment_say(out, "%s?", fault);
    if (!v[P_DISTRACTORS].i) return environment_say(out, "%s:", fault);
    return environment_say(out, "%s%c:", fault, SYMBOLS[environment_below(&d, v[P_SYMBOLS].i)]);
}

static tare_status act(const tare_value *v, void *session, tare_text text, tare_observation *out)
{
    struct session *s = session;
    tare_status status;
    if (s->turn < v[P_WAIT].i) {
        status = pass_turn(v, s, text.size == 1 && text.data[0] == '.', out);
        return status ? status : tare_print(out->state_key, "%c%d", SYMBOLS[s->symbol], s->turn);
    }
    status = tare_print(out->note, "the symbol was %c", SYMBOLS[s->symbol]);
    return status ? status : environment_end(out, environment_symbol(text, SYMBOLS) == s->symbol);
}

static int valid(const tare_value *v, const void *session)
{
    const struct session *s = session;
    return s->symbol >= 0 && s->symbol < v[P_SYMBOLS].i && s->turn >= 0 && s->turn <= v[P_WAIT].i;
}

static tare_status suggest(const tare_value *v, const void *session, struct draw *d, const tare_stream *out)
{
    const struct session *s = session;
    if (s->turn < v[P_WAIT].i) return tare_say(out, ".");
    return tare_print(out, "%c", SYMBOLS[environment_below(d, v[P_SYMBOLS].i)]);
}

ENVIRONMENT("recall", "remember a symbol over several turns",
            "{\"act\": \"., and a symbol when ? asks for it\", \"observation\": \": or, with distractors, another symbol\","
            " \"reward\": \"1 for the right symbol\","
            " \"known\": \"optimum 1.000, a blind answer 1 / symbols\","
            " \"legal play\": \". until the question, then any symbol\"}")
