/* Tests of environments: observations are valid, equal seeds and turns give equal observations,
 * sessions do not influence each other, and a saved session continues as without a break. */
#include "plugin/check/internal.h"

#include "base/json.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

enum { MOST_TURNS = 8, TEXTS = 4, ROLES = TARE_ROLE_TOOL };

/* A session, and everything that its environment said: two sessions are compared by their logs. */
struct scene {
    struct plugin_instance *i;
    void *session;
    int64_t turn;
    bool open, over;
    struct str log;
    struct err fault; /* of say */
};

/* The output of one reset or step, with the texts of its streams: state key, tools, stop, note. */
struct sight {
    tare_observation out;
    struct plugin_stream from[TEXTS];
    tare_stream stream[TEXTS];
    struct str text[TEXTS];
};

/* ---------------------------------------------------------------- observations */

static tare_status hear(void *ctx, const tare_message *m)
{
    struct scene *s = ctx;
    struct err *e = &s->fault;
    if (!TARE_KNOWS(m, parts))
        FAIL(e, TARE_E_PLUGIN, "a message of %u bytes; set struct_size to sizeof the message", m->struct_size);
    if (m->role < TARE_ROLE_SYSTEM || m->role > ROLES) FAIL(e, TARE_E_PLUGIN, "a message has the unknown role %d", m->role);
    if (m->parts.size)
        FAIL(e, TARE_E_PLUGIN, "a message has parts of %lld bytes; they are reserved: size 0", (long long)m->parts.size);
    TRY(str_addf(&s->log, e, "message %d ", m->role));
    const tare_text *const texts[] = {&m->call_id, &m->name, &m->text};
    for (int k = 0; k < 3; k++) {
        if (texts[k]->size < 0) FAIL(e, TARE_E_PLUGIN, "a message has a text of %lld bytes", (long long)texts[k]->size);
        TRY(str_add(&s->log, texts[k]->data ? texts[k]->data : "", texts[k]->size, e));
        TRY(str_add(&s->log, "\n", 1, e));
    }
    return TARE_OK;
}

/* first: of reset, which has tools and stop texts. */
static void begin_sight(struct scene *s, struct sight *x, bool first)
{
    *x = (struct sight){.out = {.struct_size = sizeof x->out, .ctx = s, .say = hear}};
    for (int k = 0; k < TEXTS; k++) {
        x->from[k] = (struct plugin_stream){.out = &x->text[k]};
        x->stream[k] = plugin_stream(&x->from[k]);
    }
    x->out.state_key = &x->stream[0];
    x->out.tools = first ? &x->stream[1] : NULL;
    x->out.stop = first ? &x->stream[2] : NULL;
    x->out.note = &x->stream[3];
}

static void end_sight(struct sight *x)
{
    for (int k = 0; k < TEXTS; k++) str_free(&x->text[k]);
}

static tare_status check_tools(const struct str *text, struct err *e)
{
    json_t *j;
    if (!text->size) return TARE_OK;
    if (json_parse(text->data, text->size, "tools", &j, e)) return err_frame(e, TARE_E_PLUGIN, __FILE__, __LINE__);
    const bool list = json_is_array(j);
    json_decref(j);
    if (!list) FAIL(e, TARE_E_PLUGIN, "reset: tools must be a JSON list of schemas");
    return TARE_OK;
}

/* Returns a message's fault in place of the status that the plugin passed on. */
static tare_status heard(const struct scene *s, const char *phase, tare_status status, struct err *e)
{
    if (!s->fault.code) return status;
    *e = s->fault;
    return err_prefix(e, "%s", phase);
}

/* Checks an observation and adds it to the log. */
static tare_status look(struct scene *s, struct sight *x, const char *phase, struct err *e)
{
    const tare_observation *o = &x->out;
    if (o->end < TARE_EPISODE_RUNNING || o->end > TARE_EPISODE_TRUNCATED)
        FAIL(e, TARE_E_PLUGIN, "%s: the episode has the unknown end %d", phase, o->end);
    if (!isfinite(o->reward)) FAIL(e, TARE_E_PLUGIN, "%s: the reward of turn %lld is %g", phase, (long long)s->turn, o->reward);
    if (o->verdict < 0 || o->verdict > TARE_VERDICT_PARTIAL || o->verdict == TARE_VERDICT_CRASHED)
        FAIL(e, TARE_E_PLUGIN, "%s: the verdict code %d is invalid", phase, o->verdict);
    if (o->verdict && !o->end) FAIL(e, TARE_E_PLUGIN, "%s: the verdict %d of an episode that is still running", phase, o->verdict);
    TRY(check_tools(&x->text[1], e));
    s->over = o->end != TARE_EPISODE_RUNNING;
    TRY(str_addf(&s->log, e, "%s end %d reward %a verdict %d\n", phase, o->end, o->reward, o->verdict));
    for (int k = 0; k < TEXTS; k++) {
        TRY(str_addf(&s->log, e, "text %d: ", k));
        TRY(str_add(&s->log, x->text[k].data ? x->text[k].data : "", x->text[k].size, e));
        TRY(str_add(&s->log, "\n", 1, e));
    }
    return TARE_OK;
}

/* ---------------------------------------------------------------- sessions */

static tare_status open_scene(struct plugin_instance *i, struct scene *s, struct err *e)
{
    struct plugin_call call;
    *s = (struct scene){.i = i};
    plugin_enter(&call);
    TRY(plugin_leave(&call, i, "open", -1, i->plugin->environment->open(i->self, &s->session, &call.error), e));
    s->open = true;
    return TARE_OK;
}

static void close_scene(struct scene *s)
{
    struct plugin_call call;
    str_free(&s->log);
    if (!s->open) return;
    plugin_enter(&call);
    s->i->plugin->environment->close(s->i->self, s->session);
    plugin_leave(&call, s->i, "close", -1, TARE_OK, NULL);
    s->open = false;
}

/* Begins the episode of a number: equal numbers, equal seeds. */
static tare_status reset_scene(struct scene *s, uint64_t number, struct err *e)
{
    static const char ROW[] = "{\"question\":\"What is 1 + 1?\",\"answer\":\"2\"}",
                      PROMPT[] = "[{\"role\":\"user\",\"content\":\"What is 1 + 1?\"}]";
    const tare_episode episode = {.struct_size = sizeof episode,
                                  .row = {ROW, sizeof ROW - 1},
                                  .messages = {PROMPT, sizeof PROMPT - 1},
                                  .prompt_uid = 1 + number,
                                  .seed = {number, 11},
                                  .noise = {number, 13},
                                  .max_turns = MOST_TURNS};
    struct sight x;
    struct plugin_call call;
    begin_sight(s, &x, true);
    s->turn = 0;
    s->over = false;
    s->log.size = 0;
    plugin_enter(&call);
    tare_status status = plugin_leave(&call, s->i, "reset", -1,
                                      s->i->plugin->environment->reset(s->i->self, s->session, &episode, &x.out, &call.error), e);
    status = heard(s, "reset", status, e);
    if (!status) status = look(s, &x, "reset", e);
    end_sight(&x);
    return status;
}

/* Writes an act that the environment suggests. */
static tare_status suggest(const struct scene *s, const uint64_t draw[2], struct str *out, struct err *e)
{
    struct plugin_stream from = {.out = out};
    const tare_stream stream = plugin_stream(&from);
    struct plugin_call call;
    plugin_enter(&call);
    return plugin_leave(&call, s->i, "suggest", -1,
                        s->i->plugin->environment->suggest(s->i->self, s->session, draw, &stream, &call.error), e);
}

/* The policy's turn: a text that follows from the episode and the turn, sometimes with a tool call, or
 * every other time a suggested one. text: its bytes. */
static tare_status an_act(const struct scene *s, uint64_t number, const tare_call *const *calls, struct str *text, tare_act *out,
                          struct err *e)
{
    static const char *const SAID[] = {"2", "I think that it is 3.", "", "look", "north", "\\boxed{2}"};
    const uint64_t x = (number * 31 + (uint64_t)s->turn) * 0x9e3779b97f4a7c15u >> 40;
    if (s->i->plugin->environment->suggest && x & 1)
        TRY(suggest(s, (const uint64_t[]){x, number}, text, e));
    else
        TRY(str_add(text, SAID[x % 6], -1, e));
    *out = (tare_act){.struct_size = sizeof(tare_act),
                      .turn = s->turn,
                      .text = {text->data, text->size},
                      .call = calls,
                      .n_calls = x % 5 == 0,
                      .n_unparsed = x % 7 == 0,
                      .finish = TARE_FINISH_STOP};
    return TARE_OK;
}

/* One turn of n sessions that still run; together where the environment takes several in a call. */
static tare_status step_scenes(struct scene *const *s, const uint64_t *number, int64_t n, struct err *e)
{
    static const tare_call CALL = {
        .struct_size = sizeof CALL, .id = {"c1", 2}, .name = {"look", 4}, .arguments = {"{\"at\":\"door\"}", 13}};
    static const tare_call *const CALLS[] = {&CALL};
    const tare_environment *f = s[0]->i->plugin->environment;
    struct sight x[2];
    tare_act act[2];
    struct str text[2] = {0};
    void *session[2];
    const tare_act *acts[2] = {&act[0], &act[1]};
    tare_observation *out[2] = {&x[0].out, &x[1].out};
    struct plugin_call call;
    tare_status status = TARE_OK;
    for (int64_t k = 0; k < n; k++) {
        begin_sight(s[k], &x[k], false);
        if (!status) status = an_act(s[k], number[k], CALLS, &text[k], &act[k], e);
        session[k] = s[k]->session;
    }
    plugin_enter(&call);
    if (!status) status = f->step(s[0]->i->self, session, acts, out, n, &call.error);
    status = plugin_leave(&call, s[0]->i, "step", -1, status, e);
    for (int64_t k = 0; k < n; k++) {
        status = heard(s[k], "step", status, e);
        if (!status) status = look(s[k], &x[k], "step", e);
        s[k]->turn++;
        end_sight(&x[k]);
        str_free(&text[k]);
    }
    return status;
}

static tare_status play_on(struct scene *s, uint64_t number, int64_t turns, struct err *e)
{
    for (int64_t k = 0; k < turns && !s->over; k++) TRY(step_scenes(&s, &number, 1, e));
    return TARE_OK;
}

static tare_status play(struct scene *s, uint64_t number, struct err *e)
{
    TRY(reset_scene(s, number, e));
    return play_on(s, number, MOST_TURNS, e);
}

static tare_status same_log(const struct scene *a, const struct scene *b, const char *what, struct err *e)
{
    int64_t at = 0, line = 1;
    while (at < a->log.size && at < b->log.size && a->log.data[at] == b->log.data[at]) line += a->log.data[at++] == '\n';
    if (at == a->log.size && at == b->log.size) return TARE_OK;
    FAIL(e, TARE_E_PLUGIN, "%s: observations differ from byte %lld (line %lld) of the log on", what, (long long)at,
         (long long)line);
}

static bool repeats(const struct check *c)
{
    return c->plugin->environment->flags & TARE_ENVIRONMENT_REPEATS;
}

/* ---------------------------------------------------------------- tests */

static tare_status test_episodes(struct check *c, struct err *e)
{
    OWNED(plugin_destroy_at) struct plugin_instance *i = NULL;
    OWNED(close_scene) struct scene s = {0};
    int64_t turns = 0;
    TRY(check_instance(c, &i, e));
    TRY(open_scene(i, &s, e));
    for (uint64_t number = 0; number < 50; number++) {
        TRY(play(&s, number, e));
        turns += s.turn;
    }
    return str_addf(&c->note, e, "50 episodes of %.1f turns", (double)turns / 50);
}

/* A new session, and one that has played another episode, repeat an episode. */
static tare_status test_repeats(struct check *c, struct err *e)
{
    OWNED(plugin_destroy_at) struct plugin_instance *i = NULL, *other = NULL;
    OWNED(close_scene) struct scene a = {0}, b = {0};
    if (!repeats(c)) return check_skip(c, e, "the environment does not have TARE_ENVIRONMENT_REPEATS");
    TRY(check_instance(c, &i, e));
    TRY(check_instance(c, &other, e));
    TRY(open_scene(i, &a, e));
    TRY(open_scene(other, &b, e));
    for (uint64_t number = 0; number < 20; number++) {
        TRY(play(&a, number, e));
        TRY(play(&b, number + 1, e));
        TRY(play(&b, number, e));
        TRY(same_log(&a, &b, "an episode with equal seeds and turns, after another episode", e));
    }
    return TARE_OK;
}

/* Two episodes at once, turn by turn, are those that each is alone. */
static tare_status test_sessions(struct check *c, struct err *e)
{
    OWNED(plugin_destroy_at) struct plugin_instance *i = NULL;
    OWNED(close_scene) struct scene alone = {0}, a = {0}, b = {0};
    const bool together = c->plugin->environment->flags & TARE_ENVIRONMENT_TOGETHER;
    if (!repeats(c)) return check_skip(c, e, "the environment does not have TARE_ENVIRONMENT_REPEATS");
    TRY(check_instance(c, &i, e));
    TRY(open_scene(i, &alone, e));
    TRY(open_scene(i, &a, e));
    TRY(open_scene(i, &b, e));
    for (uint64_t number = 0; number < 20; number++) {
        const uint64_t numbers[2] = {number, number + 100};
        struct scene *both[2] = {&a, &b};
        TRY(play(&alone, number, e));
        TRY(reset_scene(&a, number, e));
        TRY(reset_scene(&b, number + 100, e));
        while ((!a.over && a.turn < MOST_TURNS) || (!b.over && b.turn < MOST_TURNS)) {
            const bool one = !a.over && a.turn < MOST_TURNS, two = !b.over && b.turn < MOST_TURNS;
            if (one && two && together)
                TRY(step_scenes(both, numbers, 2, e));
            else
                for (int k = 0; k < 2; k++)
                    if (k ? two : one) TRY(step_scenes(&both[k], &numbers[k], 1, e));
        }
        TRY(same_log(&alone, &a, "an episode beside another session's", e));
    }
    return TARE_OK;
}

static tare_status save_scene(const struct scene *s, struct str *out, struct err *e)
{
    struct plugin_stream from = {.out = out};
    const tare_stream stream = plugin_stream(&from);
    struct plugin_call call;
    plugin_enter(&call);
    return plugin_leave(&call, s->i, "save_session", -1,
                        s->i->plugin->environment->save_session(s->i->self, s->session, &stream, &call.error), e);
}

/* *used: the bytes that it read. */
static tare_status load_scene(struct scene *s, const struct str *from, int64_t size, int64_t *used, struct err *e)
{
    struct plugin_stream bytes = {.data = from->data ? from->data : "", .size = size};
    const tare_stream stream = plugin_stream(&bytes);
    struct plugin_call call;
    plugin_enter(&call);
    const tare_status status = plugin_leave(
        &call, s->i, "load_session", -1, s->i->plugin->environment->load_session(s->i->self, s->session, &stream, &call.error), e);
    *used = bytes.at;
    return status;
}

/* Moves an episode into another session after some turns. */
static tare_status move_episode(struct scene *a, struct scene *b, uint64_t number, struct err *e)
{
    OWNED(str_free) struct str one = {0}, two = {0};
    struct err refused = {0};
    int64_t used;
    TRY(reset_scene(a, number, e));
    TRY(play_on(a, number, 1 + (int64_t)(number % 3), e));
    TRY(save_scene(a, &one, e));
    if (one.size && !load_scene(b, &one, one.size - 1, &used, &refused))
        FAIL(e, TARE_E_PLUGIN, "load_session accepts a state that is cut short: %lld of %lld bytes", (long long)one.size - 1,
             (long long)one.size);
    TRY(load_scene(b, &one, one.size, &used, e));
    if (used != one.size) FAIL(e, TARE_E_PLUGIN, "load_session read %lld of %lld bytes", (long long)used, (long long)one.size);
    TRY(save_scene(b, &two, e));
    if (one.size != two.size || (one.size && memcmp(one.data, two.data, (size_t)one.size)))
        FAIL(e, TARE_E_PLUGIN, "save_session and load_session changed the session's state");
    b->turn = a->turn;
    b->over = a->over;
    a->log.size = b->log.size = 0;
    TRY(play_on(a, number, MOST_TURNS, e));
    TRY(play_on(b, number, MOST_TURNS, e));
    return same_log(a, b, "after save_session and load_session", e);
}

static tare_status test_session_state(struct check *c, struct err *e)
{
    OWNED(plugin_destroy_at) struct plugin_instance *i = NULL;
    OWNED(close_scene) struct scene a = {0}, b = {0};
    if (!c->plugin->environment->save_session) return check_skip(c, e, "its sessions cannot be saved");
    if (!repeats(c)) return check_skip(c, e, "the environment does not have TARE_ENVIRONMENT_REPEATS");
    TRY(check_instance(c, &i, e));
    TRY(open_scene(i, &a, e));
    TRY(open_scene(i, &b, e));
    for (uint64_t number = 0; number < 20; number++) TRY(move_episode(&a, &b, number, e));
    return TARE_OK;
}

/* Suggests an act twice with one draw, and looks whether the session changed. */
static tare_status same_suggestion(const struct scene *s, const uint64_t draw[2], struct err *e)
{
    OWNED(str_free) struct str one = {0}, two = {0}, before = {0}, after = {0};
    const bool saves = s->i->plugin->environment->save_session;
    if (saves) TRY(save_scene(s, &before, e));
    TRY(suggest(s, draw, &one, e));
    TRY(suggest(s, draw, &two, e));
    if (saves) TRY(save_scene(s, &after, e));
    if (!one.size) FAIL(e, TARE_E_PLUGIN, "suggest writes an empty act");
    if (str_utf8_error(one.data, one.size)) FAIL(e, TARE_E_PLUGIN, "suggest writes an act that is not valid UTF-8");
    if (one.size != two.size || memcmp(one.data, two.data, (size_t)one.size))
        FAIL(e, TARE_E_PLUGIN, "suggest writes different acts for equal states and draws");
    if (before.size != after.size || (before.size && memcmp(before.data, after.data, (size_t)before.size)))
        FAIL(e, TARE_E_PLUGIN, "suggest changes the session");
    return TARE_OK;
}

static tare_status test_suggest(struct check *c, struct err *e)
{
    OWNED(plugin_destroy_at) struct plugin_instance *i = NULL;
    OWNED(close_scene) struct scene s = {0};
    if (!c->plugin->environment->suggest) return check_skip(c, e, "the environment does not suggest acts");
    TRY(check_instance(c, &i, e));
    TRY(open_scene(i, &s, e));
    for (uint64_t number = 0; number < 20; number++) {
        TRY(reset_scene(&s, number, e));
        while (!s.over && s.turn < MOST_TURNS) {
            TRY(same_suggestion(&s, (const uint64_t[]){number, (uint64_t)s.turn}, e));
            TRY(play_on(&s, number, 1, e));
        }
    }
    return TARE_OK;
}

static tare_status test_card(struct check *c, struct err *e)
{
    const tare_environment *f = c->plugin->environment;
    OWNED(plugin_destroy_at) struct plugin_instance *i = NULL;
    OWNED(str_free) struct str text = {0};
    struct plugin_stream from = {.out = &text};
    const tare_stream stream = plugin_stream(&from);
    struct plugin_call call;
    json_t *j;
    const uint32_t known = TARE_USES_ANSWER | TARE_USES_MAYBE_ANSWER | TARE_USES_ROW, uses = f->uses ? f->uses(c->values) : 0;
    if (uses & ~known) FAIL(e, TARE_E_PLUGIN, "uses returns the bits 0x%x; this program knows only 0x%x", uses, known);
    if (!f->card) return check_skip(c, e, "the environment has no card");
    TRY(check_instance(c, &i, e));
    plugin_enter(&call);
    TRY(plugin_leave(&call, i, "card", -1, f->card(i->given, &stream, &call.error), e));
    if (!text.size || json_parse(text.data, text.size, "card", &j, e))
        FAIL(e, TARE_E_PLUGIN, "card does not write one JSON object");
    const bool object = json_is_object(j);
    json_decref(j);
    if (!object) FAIL(e, TARE_E_PLUGIN, "card does not write one JSON object");
    return TARE_OK;
}

const struct check_test CHECK_ENVIRONMENT[] = {
    {"episodes", "observations are valid: known roles, ends and verdicts, finite rewards", TARE_KIND_ENVIRONMENT, test_episodes},
    {"repeats", "equal seeds and turns give equal observations, in a used session too", TARE_KIND_ENVIRONMENT, test_repeats},
    {"sessions", "two sessions do not influence each other", TARE_KIND_ENVIRONMENT, test_sessions},
    {"session_state", "a saved session continues in another one as without a break", TARE_KIND_ENVIRONMENT, test_session_state},
    {"suggest", "equal draws give equal acts, and the session stays as it is", TARE_KIND_ENVIRONMENT, test_suggest},
    {"card", "card writes one JSON object, and uses returns known bits", TARE_KIND_ENVIRONMENT, test_card},
    {0}};
