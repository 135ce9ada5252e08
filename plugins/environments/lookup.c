/* lookup: two look-ups in a store, the second with the result of the first.
 *
 *   3:                  the task: give the value of the value of this key
 *   act: g7             get the value of key 7
 *   5                   the value
 *   act: =2             the answer, which ends the episode
 *
 * Reward 1 for the right answer; an episode without an answer after `turns` turns gets 0. The store maps
 * `keys` keys to values that are keys; the row may have it as "store", a text of digits, and the key
 * as "key". The optimum is 1.000; a blind answer gets 1 / keys.
 *
 * Legal play uses digits of this episode: the key and the values seen. It teaches to copy from
 * the context, and not what to copy. With digits drawn blindly nothing was learnt in 150 steps. */
#include "common/environment.h"

enum { P_KEYS, P_TURNS, P_COUNT };
enum { MOST_TURNS = 32 };
static const tare_param PARAMS[P_COUNT] = {
    [P_KEYS] = TARE_INT_PARAM("keys", "10", "keys of the store", 2, 10, 0),
    [P_TURNS] = TARE_INT_PARAM("turns", "3", "turns of an episode, the answer included", 1, MOST_TURNS, 0),
};

struct session {
    uint8_t store[10], turn, n_seen, seen[1 + MOST_TURNS]; /* seen: the key, then the values in turn */
};

static tare_status name_state(const struct session *s, const tare_stream *out)
{
    tare_status status = TARE_OK;
    for (int k = 0; k < s->n_seen && !status; k++) status = tare_print(out, "%d", s->seen[k]);
    return status;
}

static tare_status begin(const tare_value *v, void *session, const tare_episode *episode, tare_observation *out, tare_error *error)
{
    struct session *s = session;
    struct draw d = {episode->seed, 0};
    char digits[] = "0123456789";
    digits[v[P_KEYS].i] = 0;
    int64_t key = environment_below(&d, v[P_KEYS].i);
    for (int64_t k = 0; k < v[P_KEYS].i; k++) s->store[k] = (uint8_t)environment_below(&d, v[P_KEYS].i);
    tare_status status = environment_row_number(episode, "key", 0, v[P_KEYS].i - 1, &key, error);
    if (!status) status = environment_row_symbols(episode, "store", digits, v[P_KEYS].i, s->store, error);
    if (status) return status;
    s->seen[s->n_seen++] = (uint8_t)key;
    status = environment_say(out, "%d:", s->seen[0]);
    return status ? status : name_state(s, out->state_key);
}

static tare_status act(const tare_value *v, void *session, tare_text text, tare_observation *out)
{
    struct session *s = session;
    const int64_t digit = text.size == 2 ? environment_number((tare_text){text.data + 1, 1}) : -1;
    const char verb = digit >= 0 && digit < v[P_KEYS].i ? text.data[0] : '!';
    const int last = ++s->turn >= v[P_TURNS].i, answer = s->store[s->store[s->seen[0]]];
    if (verb == 'g' && !last) s->seen[s->n_seen++] = s->store[digit];
    tare_status status = name_state(s, out->state_key);
    if (!status && (verb == '=' || last)) status = tare_print(out->note, "the answer was %d", answer);
    if (status) return status;
    if (verb == '=' || last) return environment_end(out, verb == '=' && digit == answer);
    return verb == 'g' ? environment_say(out, "%d", s->store[digit]) : environment_say(out, "!");
}

static int valid(const tare_value *v, const void *session)
{
    const struct session *s = session;
    int good = s->turn <= v[P_TURNS].i && s->n_seen >= 1 && s->n_seen <= s->turn + 1;
    for (int64_t k = 0; good && k < v[P_KEYS].i; k++) good = s->store[k] < v[P_KEYS].i;
    for (int k = 0; good && k < s->n_seen; k++) good = s->seen[k] < v[P_KEYS].i;
    return good;
}

static tare_status suggest(const tare_value *v, const void *session, struct draw *d, const tare_stream *out)
{
    const struct session *s = session;
    const int answers = environment_chance(d, 1.0 / 3) || s->turn + 1 >= v[P_TURNS].i;
    return tare_print(out, "%c%d", answers ? '=' : 'g', s->seen[environment_below(d, s->n_seen)]);
}

ENVIRONMENT(
    "lookup", "two look-ups in a store, the second with the result of the first",
    "{\"act\": \"g and a digit: get the value of a key; = and a digit: the answer\", \"observation\": \"the value\","
    " \"reward\": \"1 for the value of the value of the key\","
    " \"known\": \"10 keys and 3 turns: optimum 1.000, a blind answer .100\","
    " \"legal play\": \"a look-up or, with probability 1/3 and in the last turn, an answer, with a digit of this episode\"}")
