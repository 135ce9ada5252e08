#include "plugin/episode.h"

#include <math.h>
#include <string.h>

enum { STREAMS = 4 };

/* The output of a call, with its streams: state key, note, tools, stop texts. */
struct observed {
    tare_observation out;
    struct str stop;
    struct plugin_stream from[STREAMS];
    tare_stream stream[STREAMS];
};

static tare_status hear_message(void *ctx, const tare_message *m)
{
    struct plugin_episode *x = ctx;
    struct err *e = &x->fault;
    if (!TARE_KNOWS(m, parts) || m->text.size < 0 || m->name.size < 0 || m->call_id.size < 0 || m->parts.size)
        FAIL(e, TARE_E_PLUGIN, "a message of %u bytes with a text of %lld bytes and parts of %lld bytes", m->struct_size,
             (long long)m->text.size, (long long)m->parts.size);
    if (m->role < TARE_ROLE_SYSTEM || m->role > TARE_ROLE_TOOL)
        FAIL(e, TARE_E_PLUGIN, "a message has the unknown role %d", m->role);
    if (str_utf8_error(m->text.data, m->text.size) || str_utf8_error(m->name.data, m->name.size) ||
        str_utf8_error(m->call_id.data, m->call_id.size))
        FAIL(e, TARE_E_PLUGIN, "a message is not valid UTF-8");
    if (x->n_messages == x->capacity)
        TRY(mem_grow((void **)&x->message, &x->capacity, x->n_messages + 1, (int64_t)sizeof *x->message, e));
    struct episode_message *to = &x->message[x->n_messages++];
    *to = (struct episode_message){.role = m->role, .begin = x->said.size, .name = x->names.size};
    TRY(str_add(&x->said, m->text.data ? m->text.data : "", m->text.size, e));
    to->end = x->said.size;
    TRY(str_add(&x->names, m->name.size ? m->name.data : "", m->name.size, e));
    to->call_id = x->names.size;
    TRY(str_add(&x->names, m->call_id.size ? m->call_id.data : "", m->call_id.size, e));
    to->id_end = x->names.size;
    return TARE_OK;
}

/* first: of reset, which has tools and stop texts. */
static void begin_observation(struct plugin_episode *x, struct observed *o, bool first)
{
    struct str *const to[] = {&x->key, &x->note, &x->tools, &o->stop};
    *o = (struct observed){.out = {.struct_size = sizeof o->out, .ctx = x, .say = hear_message}};
    str_clear(&x->said);
    str_clear(&x->names);
    x->n_messages = 0;
    for (int k = 0; k < STREAMS; k++) {
        if (k < 2 || first) str_clear(to[k]);
        o->from[k] = (struct plugin_stream){.out = to[k]};
        o->stream[k] = plugin_stream(&o->from[k]);
    }
    o->out.state_key = &o->stream[0];
    o->out.note = &o->stream[1];
    o->out.tools = first ? &o->stream[2] : NULL;
    o->out.stop = first ? &o->stream[3] : NULL;
}

static tare_status end_observation(struct plugin_episode *x, struct observed *o, const char *phase, tare_status status,
                                   struct err *e)
{
    const tare_observation *out = &o->out;
    const char *name = x->i->plugin->desc.name;
    str_free(&o->stop);
    if (x->fault.code) {
        *e = x->fault;
        x->fault = (struct err){0};
        return err_prefix(e, "environment %s: %s", name, phase);
    }
    TRY(status);
    if (out->end < TARE_EPISODE_RUNNING || out->end > TARE_EPISODE_TRUNCATED)
        FAIL(e, TARE_E_PLUGIN, "environment %s: %s: the episode has the unknown end %d", name, phase, out->end);
    if (!isfinite(out->reward)) FAIL(e, TARE_E_PLUGIN, "environment %s: %s: the reward is %g", name, phase, out->reward);
    if (out->verdict < 0 || out->verdict > TARE_VERDICT_PARTIAL)
        FAIL(e, TARE_E_PLUGIN, "environment %s: %s: the verdict code %d is invalid", name, phase, out->verdict);
    x->end = out->end;
    x->verdict = out->verdict;
    x->reward = out->reward;
    x->total += out->reward;
    return TARE_OK;
}

tare_status plugin_episode_open(struct plugin_instance *i, struct plugin_episode *out, struct err *e)
{
    struct plugin_call call;
    *out = (struct plugin_episode){.i = i};
    plugin_enter(&call);
    TRY(plugin_leave(&call, i, "open", -1, i->plugin->environment->open(i->self, &out->session, &call.error), e));
    out->open = true;
    return TARE_OK;
}

void plugin_episode_close(struct plugin_episode *x)
{
    struct plugin_call call;
    struct str *const texts[] = {&x->said, &x->key, &x->tools, &x->note, &x->names};
    for (size_t k = 0; k < sizeof texts / sizeof *texts; k++) str_free(texts[k]);
    json_decref(x->tool_list);
    mem_free(x->message);
    x->tool_list = NULL;
    x->message = NULL;
    x->n_messages = x->capacity = 0;
    if (!x->open) return;
    plugin_enter(&call);
    x->i->plugin->environment->close(x->i->self, x->session);
    plugin_leave(&call, x->i, "close", -1, TARE_OK, NULL);
    x->open = false;
}

static tare_status read_tools(struct plugin_episode *x, struct err *e)
{
    const char *name = x->i->plugin->desc.name;
    json_decref(x->tool_list);
    x->tool_list = NULL;
    if (!x->tools.size) return TARE_OK;
    if (json_parse(x->tools.data, x->tools.size, "its tools", &x->tool_list, e))
        return err_prefix(e, "environment %s: reset", name);
    if (json_is_array(x->tool_list)) return TARE_OK;
    FAIL(e, TARE_E_PLUGIN, "environment %s: reset: its tools must be a JSON list of schemas", name);
}

tare_status plugin_episode_reset(struct plugin_episode *x, const tare_episode *episode, struct err *e)
{
    struct observed o;
    struct plugin_call call;
    x->turn = 0;
    x->total = 0;
    begin_observation(x, &o, true);
    plugin_enter(&call);
    const tare_status status = x->i->plugin->environment->reset(x->i->self, x->session, episode, &o.out, &call.error);
    TRY(end_observation(x, &o, "reset", plugin_leave(&call, x->i, "reset", -1, status, e), e));
    return read_tools(x, e);
}

tare_status plugin_episode_step(struct plugin_episode *x, struct episode_text act, struct err *e)
{
    struct observed o;
    struct plugin_call call;
    if (x->end) FAIL(e, TARE_E_STATE, "the episode has ended");
    const tare_act a = {.struct_size = sizeof a,
                        .turn = x->turn++,
                        .text = act.text,
                        .call = act.call,
                        .n_calls = act.n_calls,
                        .n_unparsed = act.n_unparsed,
                        .finish = TARE_FINISH_STOP};
    const tare_act *const acts[] = {&a};
    tare_observation *const outs[] = {&o.out};
    begin_observation(x, &o, false);
    plugin_enter(&call);
    const tare_status status = x->i->plugin->environment->step(x->i->self, &x->session, acts, outs, 1, &call.error);
    return end_observation(x, &o, "step", plugin_leave(&call, x->i, "step", -1, status, e), e);
}

tare_status plugin_episode_suggest(const struct plugin_episode *x, const uint64_t draw[2], struct str *out, struct err *e)
{
    const tare_environment *f = x->i->plugin->environment;
    struct plugin_stream from = {.out = out};
    const tare_stream stream = plugin_stream(&from);
    struct plugin_call call;
    if (!f->suggest) FAIL(e, TARE_E_UNSUPPORTED, "environment %s: it suggests no acts", x->i->plugin->desc.name);
    plugin_enter(&call);
    return plugin_leave(&call, x->i, "suggest", -1, f->suggest(x->i->self, x->session, draw, &stream, &call.error), e);
}
