/* frozen_environment: a walk on a ring of eight fields, one step a turn, forwards for a text of even
 * length and backwards otherwise, until the field that the seed names. */
#include <tare/sdk.h>

#include <string.h>

enum { FIELDS = 8 };

struct walk {
    int64_t at, goal, turns;
};

struct self {
    const tare_host *host;
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
    struct walk *w = s->host->alloc(s->host->ctx, sizeof *w, 0);
    if (!w) return tare_fail(error, TARE_E_NOMEM, "no memory");
    *session = w;
    return TARE_OK;
}

static void close_session(void *self, void *session)
{
    struct self *s = self;
    s->host->release(s->host->ctx, session);
}

static tare_status tell(const struct walk *w, tare_observation *out)
{
    char text[64];
    int n = 0;
    static const char FIELD[] = "You stand on field ";
    memcpy(text, FIELD, sizeof FIELD - 1);
    n = (int)sizeof FIELD - 1;
    text[n++] = (char)('0' + w->at);
    const tare_message message = {.struct_size = sizeof message, .role = TARE_ROLE_USER, .text = {text, n}};
    const tare_status status = out->say(out->ctx, &message);
    return status ? status : tare_print(out->state_key, "%lld", (long long)w->at);
}

static tare_status reset(void *self, void *session, const tare_episode *episode, tare_observation *out, tare_error *error)
{
    struct walk *w = session;
    (void)self, (void)error;
    w->goal = (int64_t)(episode->seed[0] % FIELDS);
    w->at = 0;
    w->turns = 0;
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
        out[i]->reward = w->at == w->goal;
        if (w->at == w->goal) {
            out[i]->end = TARE_EPISODE_DONE;
            out[i]->verdict = TARE_VERDICT_CORRECT;
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
    if (status) return tare_fail(error, status, "the session is cut short");
    if (w.at < 0 || w.at >= FIELDS) return tare_fail(error, TARE_E_CORRUPT, "field %lld of %d", (long long)w.at, FIELDS);
    *(struct walk *)session = w;
    return TARE_OK;
}

static tare_status card(const tare_value *values, const tare_stream *out, tare_error *error)
{
    (void)values, (void)error;
    return tare_say(out, "{\"fields\": 8}");
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
                                           .load_session = load_session};
static const tare_descriptor DESCRIPTOR = {.struct_size = sizeof DESCRIPTOR,
                                           .kind = TARE_KIND_ENVIRONMENT,
                                           .name = "frozen_environment",
                                           .version = "1.0.0",
                                           .summary = "a walk on a ring",
                                           .license = "Apache-2.0",
                                           .functions = &FUNCTIONS};
TARE_PLUGIN_ENTRY(&DESCRIPTOR)
