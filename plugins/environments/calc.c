/* calc: multiply two numbers with a tool.
 *
 *   12*34:              the task
 *   act: m12,34         calls the tool
 *   408                 its result
 *   act: =408           the answer, which ends the episode
 *
 * Reward 1 for the right answer; an episode without an answer after `turns` turns gets 0. The operands
 * are from `low` to `high`; the row may have them as "a" and "b". With the tool the optimum is 1.000; a
 * number from low^2 to high^2 at random is almost never right.
 *
 * Legal play calls the tool with the numbers of the task. Its answer, with probability .3 a turn and
 * always in the last one, is the tool's last result with probability .3, else a random number: it
 * teaches to copy, and not that the copy is right. Calls with random numbers teach nothing. */
#include "common/environment.h"

enum { P_LOW, P_HIGH, P_TURNS, P_COUNT };
enum { MOST = 9999 };
static const tare_param PARAMS[P_COUNT] = {
    [P_LOW] = TARE_INT_PARAM("low", "10", "the smallest operand", 0, MOST, 0),
    [P_HIGH] = TARE_INT_PARAM("high", "99", "the largest operand", 0, MOST, 0),
    [P_TURNS] = TARE_INT_PARAM("turns", "3", "turns of an episode, the answer included", 1, 1000, 0),
};

struct session {
    int32_t a, b, turn, result; /* result: of the last call; -1: none */
};

/* low > high means the same range as high, low. */
static int64_t smallest(const tare_value *v)
{
    return v[P_LOW].i < v[P_HIGH].i ? v[P_LOW].i : v[P_HIGH].i;
}

static int64_t largest(const tare_value *v)
{
    return v[P_LOW].i < v[P_HIGH].i ? v[P_HIGH].i : v[P_LOW].i;
}

static tare_status name_state(const struct session *s, const tare_stream *out)
{
    const tare_status status = tare_print(out, "%d*%d", s->a, s->b);
    return status || s->result < 0 ? status : tare_print(out, "=%d", s->result);
}

static tare_status begin(const tare_value *v, void *session, const tare_episode *episode, tare_observation *out, tare_error *error)
{
    struct session *s = session;
    struct draw d = {episode->seed, 0};
    const int64_t low = smallest(v), n = largest(v) - low + 1;
    int64_t a = low + environment_below(&d, n), b = low + environment_below(&d, n);
    tare_status status = environment_row_number(episode, "a", 0, MOST, &a, error);
    if (!status) status = environment_row_number(episode, "b", 0, MOST, &b, error);
    if (status) return status;
    *s = (struct session){(int32_t)a, (int32_t)b, 0, -1};
    status = environment_say(out, "%d*%d:", s->a, s->b);
    return status ? status : name_state(s, out->state_key);
}

/* Reads m12,34 and returns the product; -1: another text, or operands of more than four digits. */
static int64_t call_tool(tare_text text)
{
    int64_t comma = 1;
    if (text.size < 4 || text.data[0] != 'm') return -1;
    while (comma < text.size && text.data[comma] != ',') comma++;
    const int64_t a = environment_number((tare_text){text.data + 1, comma - 1});
    const int64_t b = comma < text.size ? environment_number((tare_text){text.data + comma + 1, text.size - comma - 1}) : -1;
    return a < 0 || b < 0 || a > MOST || b > MOST ? -1 : a * b;
}

static tare_status act(const tare_value *v, void *session, tare_text text, tare_observation *out)
{
    struct session *s = session;
    const int64_t product = call_tool(text);
    const int answers = text.size > 1 && text.data[0] == '=' && environment_number((tare_text){text.data + 1, text.size - 1}) >= 0;
    const int last = ++s->turn >= v[P_TURNS].i;
    if (product >= 0) s->result = (int32_t)product;
    tare_status status = name_state(s, out->state_key);
    if (!status && (answers || last)) status = tare_print(out->note, "the answer was %d", s->a * s->b);
    if (status) return status;
    if (answers || last)
        return environment_end(out, answers && environment_number((tare_text){text.data + 1, text.size - 1}) == s->a * s->b);
    return product < 0 ? environment_say(out, "!") : environment_say(out, "%lld", (long long)product);
}

static int valid(const tare_value *v, const void *session)
{
    const struct session *s = session;
    return s->a >= 0 && s->a <= MOST && s->b >= 0 && s->b <= MOST && s->turn >= 0 && s->turn <= v[P_TURNS].i && s->result >= -1 &&
           s->result <= MOST * MOST;
}

static tare_status suggest(const tare_value *v, const void *session, struct draw *d, const tare_stream *out)
{
    const struct session *s = session;
    const int64_t low = smallest(v), high = largest(v);
    const int answers = environment_chance(d, 0.3) || s->turn + 1 >= v[P_TURNS].i, copies = environment_chance(d, 0.3);
    if (!answers) return tare_print(out, "m%d,%d", s->a, s->b);
    const int64_t random = low * low + environment_below(d, high * high - low * low + 1);
    return tare_print(out, "=%lld", copies && s->result >= 0 ? (long long)s->result : (long long)random);
}

ENVIRONMENT("calc", "multiply two numbers with a tool",
            "{\"act\": \"m12,34: call the tool; =408: the answer\", \"observation\": \"the tool's result\","
            " \"reward\": \"1 for the right product\","
            " \"known\": \"10 to 99: optimum 1.000, a random answer .000\","
            " \"legal play\": \"a call with the numbers of the task, or with probability .3 and in the last turn an answer:"
            " the last result with probability .3, else a random number\"}")
