/* grid: walk to a goal on a square of `size` x `size` fields, in `moves` moves.
 *
 *   31:02               the task: goal and start, column and row of each
 *   act: u d l r        a move; one against the border leaves the walker where it is
 *   12                  the field that was reached
 *
 * Reward 1 at the goal, which ends the episode. The row may have "start" and "goal", such as "02".
 *
 * With the defaults, 4 x 4 and 6 moves, every goal is within reach: the optimum is 1.000, random moves
 * get .210. The state key has goal and field, and not the moves that are left. */
#include "common/environment.h"

enum { P_SIZE, P_MOVES, P_COUNT };
static const tare_param PARAMS[P_COUNT] = {
    [P_SIZE] = TARE_INT_PARAM("size", "4", "columns, and rows", 2, 10, 0),
    [P_MOVES] = TARE_INT_PARAM("moves", "6", "moves of an episode", 1, 1000, 0),
};
static const char MOVES[] = "udlr";

struct session {
    uint8_t at[2], goal[2]; /* column, row */
    int32_t left;
};

static tare_status name_state(const struct session *s, const tare_stream *out)
{
    return tare_print(out, "%d%d:%d%d", s->goal[0], s->goal[1], s->at[0], s->at[1]);
}

/* Draws two different fields, all pairs with equal probability. */
static void draw_fields(struct session *s, struct draw *d, int64_t size)
{
    const int64_t start = environment_below(d, size * size), other = environment_below(d, size * size - 1),
                  goal = other + (other >= start);
    s->at[0] = (uint8_t)(start % size);
    s->at[1] = (uint8_t)(start / size);
    s->goal[0] = (uint8_t)(goal % size);
    s->goal[1] = (uint8_t)(goal / size);
}

static tare_status begin(const tare_value *v, void *session, const tare_episode *episode, tare_observation *out, tare_error *error)
{
    struct session *s = session;
    struct draw d = {episode->seed, 0};
    char digits[] = "0123456789";
    digits[v[P_SIZE].i] = 0;
    draw_fields(s, &d, v[P_SIZE].i);
    tare_status status = environment_row_symbols(episode, "start", digits, 2, s->at, error);
    if (!status) status = environment_row_symbols(episode, "goal", digits, 2, s->goal, error);
    if (status) return status;
    if (!memcmp(s->at, s->goal, 2)) return tare_fail(error, TARE_E_INVALID, "the row's \"start\" must differ from the goal");
    s->left = (int32_t)v[P_MOVES].i;
    status = environment_say(out, "%d%d:%d%d", s->goal[0], s->goal[1], s->at[0], s->at[1]);
    return status ? status : name_state(s, out->state_key);
}

static tare_status act(const tare_value *v, void *session, tare_text text, tare_observation *out)
{
    static const int BY[][2] = {{0, -1}, {0, 1}, {-1, 0}, {1, 0}};
    struct session *s = session;
    const int64_t move = environment_symbol(text, MOVES);
    s->left--;
    for (int k = 0; move >= 0 && k < 2; k++) {
        const int to = s->at[k] + BY[move][k];
        if (to >= 0 && to < v[P_SIZE].i) s->at[k] = (uint8_t)to;
    }
    const tare_status status = name_state(s, out->state_key);
    const int right = !memcmp(s->at, s->goal, 2);
    if (status) return status;
    if (right || s->left < 1) return environment_end(out, right);
    return move < 0 ? environment_say(out, "!") : environment_say(out, "%d%d", s->at[0], s->at[1]);
}

static int valid(const tare_value *v, const void *session)
{
    const struct session *s = session;
    int good = s->left >= 0 && s->left <= v[P_MOVES].i;
    for (int k = 0; k < 2; k++) good = good && s->at[k] < v[P_SIZE].i && s->goal[k] < v[P_SIZE].i;
    return good;
}

static tare_status suggest(const tare_value *v, const void *session, struct draw *d, const tare_stream *out)
{
    (void)v, (void)session;
    return tare_print(out, "%c", MOVES[environment_below(d, 4)]);
}

ENVIRONMENT("grid", "walk to a goal on a square",
            "{\"act\": \"u, d, l or r: a move\", \"observation\": \"the field that was reached, column and row\","
            " \"reward\": \"1 at the goal\","
            " \"known\": \"4 x 4 and 6 moves: optimum 1.000, random moves .210\","
            " \"legal play\": \"each move with probability 1/4\"}")
