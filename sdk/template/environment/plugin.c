/* @NAME@: the policy guesses a number, and hears whether it is higher or lower.
 *
 *   number = 1 + seed mod highest    equal for all rollouts of a prompt; reward 1 for the right guess
 *
 * Replace this with your game, tool or dialogue. A session holds what one episode needs; reset
 * begins an episode in it, and step answers one turn with messages. What is drawn at random comes
 * from the episode's seed (the task) and noise (this rollout), so that equal turns give equal
 * observations (see tare/draft/environment.h). state_key names the state, so that an estimator can
 * compare turns of different rollouts. */
#include <tare/sdk.h>

enum { P_HIGHEST, P_COUNT };

static const tare_param PARAMS[P_COUNT] = {
    [P_HIGHEST] = TARE_INT_PARAM("highest", "100", "the largest number", 2, 1000000000, 0),
};

struct session {
    int64_t number, low, high; /* the number, and the bounds that the answers have told */
};

static tare_status create(const tare_setup *setup, void **self, tare_error *error)
{
    (void)error;
    *self = (void *)(uintptr_t)setup->values; /* no state: the values live as long as the instance */
    return TARE_OK;
}

static void destroy(void *self)
{
    (void)self;
}

static tare_status open_session(void *self, void **session, tare_error *error)
{
    (void)self;
    *session = calloc(1, sizeof(struct session));
    return *session ? TARE_OK : tare_fail(error, TARE_E_NOMEM, "out of memory");
}

static void close_session(void *self, void *session)
{
    (void)self;
    free(session);
}

/* Says a text to the policy, and names the state: the bounds are all that matters. */
static tare_status say(const struct session *s, tare_observation *out, const char *text)
{
    const tare_message message = {.struct_size = sizeof message, .role = TARE_ROLE_USER, .text = {text, (int64_t)strlen(text)}};
    const tare_status status = out->say(out->ctx, &message);
    return status ? status : tare_print(out->state_key, "%lld-%lld", (long long)s->low, (long long)s->high);
}

static tare_status reset(void *self, void *session, const tare_episode *episode, tare_observation *out, tare_error *error)
{
    const tare_value *v = self;
    struct session *s = session;
    char text[96];
    (void)error;
    s->number = 1 + (int64_t)(episode->seed[0] % (uint64_t)v[P_HIGHEST].i);
    s->low = 1;
    s->high = v[P_HIGHEST].i;
    snprintf(text, sizeof text, "I think of a number from 1 to %lld. Guess it.", (long long)s->high);
    return say(s, out, text);
}

/* Reads the last number of a text; 0: none. */
static int64_t last_number(tare_text text)
{
    int64_t number = 0, unit = 1, at = text.size;
    while (at > 0 && (text.data[at - 1] < '0' || text.data[at - 1] > '9')) at--;
    for (; at > 0 && unit <= 1000000000 && text.data[at - 1] >= '0' && text.data[at - 1] <= '9'; at--, unit *= 10)
        number += unit * (text.data[at - 1] - '0');
    return number;
}

static tare_status answer(struct session *s, const tare_act *act, tare_observation *out)
{
    const int64_t guess = last_number(act->text);
    if (guess < 1) return say(s, out, "Name a number.");
    if (guess == s->number) {
        out->end = TARE_EPISODE_DONE;
        out->reward = 1;
        out->verdict = TARE_VERDICT_CORRECT;
        return TARE_OK;
    }
    if (guess < s->number && s->low <= guess) s->low = guess + 1;
    if (guess > s->number && s->high >= guess) s->high = guess - 1;
    return say(s, out, guess < s->number ? "My number is higher." : "My number is lower.");
}

static tare_status step(void *self, void *const *session, const tare_act *const *act, tare_observation *const *out, int64_t n,
                        tare_error *error)
{
    tare_status status = TARE_OK;
    (void)self, (void)error;
    for (int64_t i = 0; i < n && !status; i++) status = answer(session[i], act[i], out[i]);
    return status;
}

static tare_status save_session(void *self, const void *session, const tare_stream *out, tare_error *error)
{
    (void)self, (void)error;
    return tare_put(out, session, sizeof(struct session));
}

static tare_status load_session(void *self, void *session, const tare_stream *in, tare_error *error)
{
    const tare_value *v = self;
    struct session s;
    const tare_status status = tare_get(in, &s, sizeof s);
    if (status) return status;
    if (s.low < 1 || s.number < s.low || s.high < s.number || s.high > v[P_HIGHEST].i)
        return tare_fail(error, TARE_E_CORRUPT, "the saved session has the number %lld in %lld-%lld", (long long)s.number,
                         (long long)s.low, (long long)s.high);
    *(struct session *)session = s;
    return TARE_OK;
}

/* Writes a legal act, whatever it is worth: `tare env demo` makes rows for a warm start of them. */
static tare_status suggest(void *self, const void *session, const uint64_t *draw, const tare_stream *out, tare_error *error)
{
    const tare_value *v = self;
    (void)session, (void)error;
    return tare_print(out, "%lld", (long long)(1 + draw[0] % (uint64_t)v[P_HIGHEST].i));
}

static const tare_environment FUNCTIONS = {.struct_size = sizeof FUNCTIONS,
                                           .flags = TARE_ENVIRONMENT_REPEATS,
                                           .create = create,
                                           .destroy = destroy,
                                           .open = open_session,
                                           .close = close_session,
                                           .reset = reset,
                                           .step = step,
                                           .save_session = save_session,
                                           .load_session = load_session,
                                           .suggest = suggest};

static const tare_descriptor DESCRIPTOR = {
    .struct_size = sizeof DESCRIPTOR,
    .kind = TARE_KIND_ENVIRONMENT,
    .name = "@NAME@",
    .version = "0.1.0",
    .summary = "the policy guesses a number",
    .license = "Apache-2.0",
    TARE_PARAMS(PARAMS, P_COUNT),
    .calls = TARE_CALLS_CONCURRENT, /* an instance changes nothing, so any thread may call it */
    .functions = &FUNCTIONS,
};

TARE_PLUGIN_ENTRY(&DESCRIPTOR)
