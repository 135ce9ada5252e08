/* bandit: `pulls` pulls of two arms, one of which pays more often.
 *
 *   b:                  the task
 *   act: a or b         an arm
 *   1 or 0              it paid, or did not
 *
 * The good arm pays with probability `good`, the other one with 1 - good. The seed, or "arm" of the row,
 * says which is the good one: equal in a group. Payments are drawn from the rollout's own noise. A
 * payment is worth 1 / pulls, so the reward of an episode is the share of the pulls that paid.
 *
 * With the defaults, .9 and 6 pulls: the optimum is .798, random pulls get .500, and the arm that the
 * first pull suggests gets .767. The state key has payments and pulls of each arm. */
#include "common/environment.h"

enum { P_GOOD, P_PULLS, P_COUNT };
static const tare_param PARAMS[P_COUNT] = {
    [P_GOOD] = TARE_FLOAT_PARAM("good", "0.9", "probability that the good arm pays; the other one pays with 1 - good", 0.5, 1, 0),
    [P_PULLS] = TARE_INT_PARAM("pulls", "6", "pulls of an episode", 1, 1000, 0),
};
static const char ARMS[] = "ab";

struct session {
    uint64_t noise[2];
    int32_t arm, left; /* the good arm; pulls that are left */
    int16_t pulls[2], paid[2];
};

static tare_status name_state(const struct session *s, const tare_stream *out)
{
    return tare_print(out, "%d/%d %d/%d", s->paid[0], s->pulls[0], s->paid[1], s->pulls[1]);
}

static tare_status begin(const tare_value *v, void *session, const tare_episode *episode, tare_observation *out, tare_error *error)
{
    struct session *s = session;
    struct draw d = {episode->seed, 0};
    uint8_t arm = (uint8_t)environment_below(&d, 2);
    tare_status status = environment_row_symbols(episode, "arm", ARMS, 1, &arm, error);
    if (status) return status;
    memcpy(s->noise, episode->noise, sizeof s->noise);
    s->arm = arm;
    s->left = (int32_t)v[P_PULLS].i;
    status = environment_say(out, "b:");
    return status ? status : name_state(s, out->state_key);
}

static tare_status act(const tare_value *v, void *session, tare_text text, tare_observation *out)
{
    struct session *s = session;
    const int64_t arm = environment_symbol(text, ARMS);
    struct draw d = {s->noise, (uint64_t)s->left};
    const int paid = arm >= 0 && environment_chance(&d, arm == s->arm ? v[P_GOOD].f : 1 - v[P_GOOD].f);
    s->left--;
    if (arm >= 0) s->pulls[arm]++;
    if (paid) s->paid[arm]++;
    out->reward = paid / (double)v[P_PULLS].i;
    if (s->left < 1) out->end = TARE_EPISODE_DONE;
    tare_status status = name_state(s, out->state_key);
    if (!status && out->end) status = tare_print(out->note, "the good arm was %c", ARMS[s->arm]);
    if (status || out->end) return status;
    return environment_say(out, "%s", arm < 0 ? "!" : paid ? "1" : "0");
}

static int valid(const tare_value *v, const void *session)
{
    const struct session *s = session;
    int good = s->left >= 0 && s->left <= v[P_PULLS].i && (s->arm == 0 || s->arm == 1);
    for (int k = 0; k < 2; k++) good = good && s->paid[k] >= 0 && s->paid[k] <= s->pulls[k];
    return good && s->pulls[0] + s->pulls[1] + s->left <= v[P_PULLS].i;
}

static tare_status suggest(const tare_value *v, const void *session, struct draw *d, const tare_stream *out)
{
    (void)v, (void)session;
    return tare_print(out, "%c", ARMS[environment_below(d, 2)]);
}

ENVIRONMENT("bandit", "pull the arm that pays more often, which has to be found out",
            "{\"act\": \"a or b: an arm\", \"observation\": \"1 or 0: it paid, or did not\","
            " \"reward\": \"1 / pulls for each payment\","
            " \"known\": \".9 and 6 pulls: optimum .798, the arm that the first pull suggests .767, random pulls .500\","
            " \"legal play\": \"each arm with probability 1/2\"}")
