/* An environment for tests: it says the row, repeats each turn and the arguments of its tool calls,
 * and ends after `turns` turns. */
#include <tare/sdk.h>

#include <stdlib.h>

struct session {
    int64_t turn;
};

static tare_status create(const tare_setup *setup, void **self, tare_error *error)
{
    (void)error;
    *self = (void *)(uintptr_t)setup->values;
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

static tare_status card(const tare_value *values, const tare_stream *out, tare_error *error)
{
    (void)values, (void)error;
    return tare_say(out, "{\"game\":\"echo\"}");
}

static tare_status reset(void *self, void *session, const tare_episode *episode, tare_observation *out, tare_error *error)
{
    struct session *s = session;
    char text[256];
    const int n = snprintf(text, sizeof text, "the row is %.*s", (int)episode->row.size, episode->row.data);
    const tare_message message = {.struct_size = sizeof message, .role = TARE_ROLE_USER, .text = {text, n}};
    (void)self, (void)error;
    s->turn = 0;
    tare_status status = out->say(out->ctx, &message);
    if (!status) status = tare_say(out->tools, "[]");
    return status ? status : tare_say(out->stop, "</s>\n");
}

static tare_status step(void *self, void *const *session, const tare_act *const *act, tare_observation *const *out, int64_t n,
                        tare_error *error)
{
    const tare_value *values = self;
    (void)error;
    for (int64_t i = 0; i < n; i++) {
        struct session *s = session[i];
        const tare_message said = {.struct_size = sizeof said, .role = TARE_ROLE_USER, .text = act[i]->text};
        tare_status status = out[i]->say(out[i]->ctx, &said);
        for (int64_t k = 0; k < act[i]->n_calls && !status; k++) {
            const tare_call *call = act[i]->call[k];
            const tare_message result = {
                .struct_size = sizeof result, .role = TARE_ROLE_TOOL, .name = call->name, .text = call->arguments};
            status = out[i]->say(out[i]->ctx, &result);
        }
        if (++s->turn >= values[0].i) {
            out[i]->end = TARE_EPISODE_DONE;
            out[i]->reward = 1;
            out[i]->verdict = TARE_VERDICT_CORRECT;
        }
        if (!status) status = tare_print(out[i]->state_key, "%lld", (long long)s->turn);
        if (status) return status;
    }
    return TARE_OK;
}

static tare_status save_session(void *self, const void *session, const tare_stream *out, tare_error *error)
{
    (void)self, (void)error;
    return tare_put(out, session, sizeof(struct session));
}

static tare_status load_session(void *self, void *session, const tare_stream *in, tare_error *error)
{
    (void)self, (void)error;
    return tare_get(in, session, sizeof(struct session));
}

static const tare_param PARAMS[] = {TARE_INT_PARAM("turns", "3", "turns of an episode", 1, TARE_NO_MAX, 0)};
static const tare_environment FUNCTIONS = {.struct_size = sizeof FUNCTIONS,
                                           .flags = TARE_ENVIRONMENT_REPEATS,
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
                                           .name = "echo",
                                           .version = "1.0.0",
                                           .summary = "repeats what it hears",
                                           TARE_PARAMS(PARAMS, 1),
                                           .functions = &FUNCTIONS};
TARE_PLUGIN_ENTRY(&DESCRIPTOR)
