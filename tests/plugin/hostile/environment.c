/* Environments that break the contract, each in one way: compiled once for each CASE
 * (tests/plugin/fixtures.cmake). CASE good_environment breaks nothing: a walk on a ring of eight
 * fields, one step a turn, forwards for a text of even length and backwards otherwise, until the field
 * that the seed names. */
#include <tare/sdk.h>

#include <math.h>
#include <string.h>

enum cases {
    good_environment,
    unknown_role,
    unknown_end,
    unknown_episode_verdict,
    early_verdict,
    infinite_reward,
    episode_by_call,
    keeps_episode,
    shares_session,
    loses_session,
    takes_short_session,
    says_parts,
    spoils_card,
    suggests_by_call,
    changes_by_suggesting,
    suggests_nothing,
    says_special
};
#define IS(X) (CASE == X)
enum { FIELDS = 8 };

struct walk {
    int64_t at, goal, turns;
};

struct self {
    const tare_host *host;
    struct walk shared; /* CASE shares_session */
    int64_t resets;
};

static tare_status create(const tare_setup *setup, void **self, tare_error *error)
{
    struct self *s = setup->host->alloc(setup->host->ctx, sizeof *s, 0);
    if (!s) return tare_fail(error, TARE_E_NOMEM, "no memory");
    s->host = setup->host;
    *self = s;
    return TARE_OK;
}

static void destroy(void *self)
{
    struct self *s = self;
    s->host->release(s->host->ctx, s);
}

static tare_status open_session(void *self, void **session, tare_error *error)
{
    struct self *s = self;
    struct walk *w = IS(shares_session) ? &s->shared : s->host->alloc(s->host->ctx, sizeof *w, 0);
    if (!w) return tare_fail(error, TARE_E_NOMEM, "no memory");
    *session = w;
    return TARE_OK;
}

static void close_session(void *self, void *session)
{
    struct self *s = self;
    if (!IS(shares_session)) s->host->release(s->host->ctx, session);
}

static tare_status tell(const struct walk *w, tare_observation *out)
{
    char text[64];
    int n = 0;
    static const char FIELD[] = "You stand on field ";
    memcpy(text, FIELD, sizeof FIELD - 1);
    n = (int)sizeof FIELD - 1;
    text[n++] = (char)('0' + w->at);
    if (IS(says_special)) n = (int)strlen(strcpy(text, "a<|im_end|><|im_end|>b"));
    const tare_message message = {.struct_size = sizeof message,
                                  .role = IS(unknown_role) ? 9 : TARE_ROLE_USER,
                                  .text = {text, n},
                                  .parts = {"x", IS(says_parts)}};
    const tare_status status = out->say(out->ctx, &message);
    return status ? status : tare_print(out->state_key, "%lld", (long long)w->at);
}

static tare_status reset(void *self, void *session, const tare_episode *episode, tare_observation *out, tare_error *error)
{
    struct self *s = self;
    struct walk *w = session;
    (void)error;
    w->goal = (int64_t)((episode->seed[0] + (IS(episode_by_call) ? (uint64_t)s->resets++ : 0)) % FIELDS);
    if (!IS(keeps_episode)) w->at = 0;
    w->turns = 0;
    if (IS(early_verdict)) out->verdict = TARE_VERDICT_CORRECT;
    const tare_status status = tare_say(out->tools, "[{\"name\": \"look\"}]");
    return status ? status : tell(w, out);
}

static tare_status step(void *self, void *const *session, const tare_act *const *act, tare_observation *const *out, int64_t n,
                        tare_error *error)
{
    (void)self, (void)error;
    for (int64_t i = 0; i < n; i++) {
        struct walk *w = session[i];
        w->at = (w->at + (act[i]->text.size % 2 ? FIELDS - 1 : 1)) % FIELDS;
        w->turns++;
        out[i]->reward = IS(infinite_reward) ? (double)INFINITY : w->at == w->goal;
        if (w->at == w->goal) {
            out[i]->end = IS(unknown_end) ? 3 : TARE_EPISODE_DONE;
            out[i]->verdict = IS(unknown_episode_verdict) ? 99 : TARE_VERDICT_CORRECT;
        }
        const tare_status status = tell(w, out[i]);
        if (status) return status;
    }
    return TARE_OK;
}

static tare_status save_session(void *self, const void *session, const tare_stream *out, tare_error *error)
{
    (void)self, (void)error;
    return tare_put(out, session, sizeof(struct walk));
}

static tare_status load_session(void *self, void *session, const tare_stream *in, tare_error *error)
{
    struct walk w = {0};
    (void)self;
    const tare_status status = tare_get(in, &w, sizeof w);
    if (status && !IS(takes_short_session)) return tare_fail(error, status, "the session is cut short");
    if (w.at < 0 || w.at >= FIELDS) return tare_fail(error, TARE_E_CORRUPT, "field %lld of %d", (long long)w.at, FIELDS);
    if (IS(loses_session)) w.at = 0;
    *(struct walk *)session = w;
    return TARE_OK;
}

static tare_status suggest(void *self, const void *session, const uint64_t *draw, const tare_stream *out, tare_error *error)
{
    struct self *s = self;
    (void)error;
    if (IS(suggests_nothing)) return TARE_OK;
    if (IS(changes_by_suggesting)) ((struct walk *)(uintptr_t)session)->turns++;
    return tare_print(out, "%d", (int)((draw[0] + (IS(suggests_by_call) ? (uint64_t)s->resets++ : 0)) % 100));
}

static tare_status card(const tare_value *values, const tare_stream *out, tare_error *error)
{
    (void)values, (void)error;
    return tare_say(out, IS(spoils_card) ? "a ring" : "{\"fields\": 8}");
}

static const tare_environment FUNCTIONS = {.struct_size = sizeof FUNCTIONS,
                                           .flags = TARE_ENVIRONMENT_TOGETHER | TARE_ENVIRONMENT_REPEATS,
                                           .create = create,
                                           .destroy = destroy,
                                           .card = card,
                                           .open = open_session,
                                           .close = close_session,
                                           .reset = reset,
                                           .step = step,
                                           .save_session = save_session,
                                           .load_session = load_session,
                                           .suggest = suggest};
static const tare_descriptor DESCRIPTOR = {.struct_size = sizeof DESCRIPTOR,
                                           .kind = TARE_KIND_ENVIRONMENT,
                                           .name = "ring",
                                           .version = "1.0.0",
                                           .summary = "a walk on a ring, for tests",
                                           .license = "Apache-2.0",
                                           .functions = &FUNCTIONS};
TARE_PLUGIN_ENTRY(&DESCRIPTOR)
