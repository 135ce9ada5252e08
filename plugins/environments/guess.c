/* guess: find a number from 1 to `highest` in `guesses` guesses.
 *
 *   g:                  the task
 *   act: a digit        a guess
 *   < or >              the number is lower, or higher, than the guess
 *
 * Reward 1 for the right guess, which ends the episode. The row may have the number as "number".
 *
 * With the defaults, 7 in 3: binary search always finds it, guesses that the hints allow find it with
 * probability .678, and guesses that ignore the hints with .370. The optimum of 9 in 3 is 7/9. The
 * state key has the numbers that the hints allow, and not the guesses that are left. */
#include "common/environment.h"

enum { P_HIGHEST, P_GUESSES, P_COUNT };
static const tare_param PARAMS[P_COUNT] = {
    [P_HIGHEST] = TARE_INT_PARAM("highest", "7", "the largest number", 2, 9, 0),
    [P_GUESSES] = TARE_INT_PARAM("guesses", "3", "guesses of an episode", 1, 100, 0),
};

struct session {
    int32_t number, low, high, left; /* low, high: what the hints allow; left: guesses */
};

static tare_status begin(const tare_value *v, void *session, const tare_episode *episode, tare_observation *out, tare_error *error)
{
    struct session *s = session;
    struct draw d = {episode->seed, 0};
    int64_t number = 1 + environment_below(&d, v[P_HIGHEST].i);
    tare_status status = environment_row_number(episode, "number", 1, v[P_HIGHEST].i, &number, error);
    if (status) return status;
    *s = (struct session){(int32_t)number, 1, (int32_t)v[P_HIGHEST].i, (int32_t)v[P_GUESSES].i};
    status = environment_say(out, "g:");
    return status ? status : tare_print(out->state_key, "%d-%d", s->low, s->high);
}

static tare_status act(const tare_value *v, void *session, tare_text text, tare_observation *out)
{
    struct session *s = session;
    const int32_t guess = text.size == 1 ? (int32_t)environment_number(text) : -1;
    const int legal = guess >= 1 && guess <= v[P_HIGHEST].i;
    s->left--;
    if (legal && guess < s->number && s->low <= guess) s->low = guess + 1;
    if (legal && guess > s->number && s->high >= guess) s->high = guess - 1;
    tare_status status = tare_print(out->state_key, "%d-%d", s->low, s->high);
    if (!status && (guess == s->number || s->left < 1)) status = tare_print(out->note, "the number was %d", s->number);
    if (status) return status;
    if (guess == s->number || s->left < 1) return environment_end(out, guess == s->number);
    return environment_say(out, "%s", !legal ? "!" : s->number < guess ? "<" : ">");
}

static int valid(const tare_value *v, const void *session)
{
    const struct session *s = session;
    return s->low >= 1 && s->number >= s->low && s->high >= s->number && s->high <= v[P_HIGHEST].i && s->left >= 0 &&
           s->left <= v[P_GUESSES].i;
}

static tare_status suggest(const tare_value *v, const void *session, struct draw *d, const tare_stream *out)
{
    (void)session;
    return tare_print(out, "%lld", (long long)(1 + environment_below(d, v[P_HIGHEST].i)));
}

ENVIRONMENT("guess", "find a number by guesses that are answered with lower or higher",
            "{\"act\": \"a digit: a guess\", \"observation\": \"< or >: the number is lower, or higher\","
            " \"reward\": \"1 for the right guess\","
            " \"known\": \"7 in 3: optimum 1.000, guesses that the hints allow .678, blind guesses .370\","
            " \"legal play\": \"every number, whatever the hints\"}")
