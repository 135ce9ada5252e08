/* python_class: a user's Python class plays the episodes. Two kinds of classes work:
 *
 *   - as TRL's environment_factory takes it: reset(**row) returns a text or None, every other public
 *     method is a tool of the chat template, an act without a tool call ends the episode, and
 *     get_reward() is asked once then. A tool that raises answers with its error, as in TRL.
 *   - with gymnasium's step: observation, reward, terminated, truncated, info = step(text).
 *
 * Each session is an instance of the class. They run in a python process (driver.py, over a pipe). An
 * exception of reset, step or get_reward ends the run with its message and line; so does a call that
 * takes longer than `timeout`. The class is taken to repeat its answers (TARE_ENVIRONMENT_REPEATS):
 * what reset says is compared within a group, and `tare env check` plays episodes twice. */
#include "../../common/built_in.h"
#include "common/program/driver.h"
#include "common/program/program.h"

#include <stdlib.h>
#include <string.h>
#include <tare/draft/environment.h>

enum { P_FILE, P_CLASS, P_ARGUMENTS, P_PYTHON, P_TIMEOUT, P_START, P_COUNT };

static const tare_param PARAMS[P_COUNT] = {
    [P_FILE] = TARE_PATH_PARAM("file", NULL, "the Python file that holds the class", TARE_PARAM_REQUIRED),
    [P_CLASS] = TARE_STRING_PARAM("class", "Environment", "its name, or that of a function that returns an instance", 0),
    [P_ARGUMENTS] = TARE_STRING_PARAM("arguments", "{}", "what it is made with: a JSON object of its arguments", 0),
    [P_PYTHON] = TARE_STRING_PARAM("python", "python3", "the interpreter: a name in PATH, or a file", 0),
    [P_TIMEOUT] = PROGRAM_TIMEOUT("turn"),
    [P_START] = PROGRAM_START("seconds that python may take to start and to import the file"),
};

static const char DRIVER[] =
#include "driver.inc"
    ;

struct self {
    const tare_host *host;
    const tare_value *values;
    struct program *program;
    char *argv[7];
    int any_session; /* the driver has made one to try the class */
};

struct session {
    int64_t id;
};

static void destroy(void *instance)
{
    struct self *self = instance;
    program_free(self->program);
    for (int i = 0; i < 7; i++) free(self->argv[i]);
    free(self);
}

static tare_status check_arguments(const char *text, tare_error *error)
{
    json_t *j = json_loads(text, 0, NULL);
    const int ok = json_is_object(j);
    json_decref(j);
    return ok ? TARE_OK : tare_fail(error, TARE_E_CONFIG, "arguments = %s: must be a JSON object, such as {\"size\": 4}", text);
}

static tare_status create(const tare_setup *setup, void **out, tare_error *error)
{
    const tare_value *values = setup->values;
    struct self *self = calloc(1, sizeof *self);
    if (!self) return tare_fail(error, TARE_E_NOMEM, "no memory");
    self->host = setup->host;
    self->values = values;
    const char *const words[] = {values[P_PYTHON].s, "-c", DRIVER, values[P_FILE].s, values[P_CLASS].s, values[P_ARGUMENTS].s};
    tare_status s = check_arguments(values[P_ARGUMENTS].s, error);
    for (int i = 0; i < 6; i++)
        if (!(self->argv[i] = strdup(words[i])) && !s) s = tare_fail(error, TARE_E_NOMEM, "no memory");
    const struct program_options options = {
        .host = setup->host, .argv = self->argv, .name = values[P_PYTHON].s, .says_ready = true, .start = values[P_START].f};
    if (!s) s = program_new(&options, &self->program, error);
    if (!s && program_start(self->program, error)) s = driver_error(error);
    if (s)
        destroy(self);
    else
        *out = self;
    return s;
}

/* Asks the driver; steals question. *out: its answer, without "error". */
static tare_status ask(struct self *self, json_t *question, json_t **out, tare_error *error)
{
    const double timeout = self->values[P_TIMEOUT].f;
    const int64_t deadline = timeout > 0 ? program_now() + (int64_t)(timeout * 1e9) : 0;
    char *line = question ? json_dumps(question, JSON_COMPACT) : NULL;
    tare_text reply;
    json_decref(question);
    *out = NULL;
    if (!line) return tare_fail(error, TARE_E_NOMEM, "no memory for a turn");
    const enum program_result r = program_ask(self->program, (tare_text){line, (int64_t)strlen(line)}, deadline, &reply, error);
    free(line);
    if (r == PROGRAM_LATE)
        return tare_fail(error, TARE_E_TIMEOUT, "%s took more than %g s for a turn", self->values[P_CLASS].s, timeout);
    if (r != PROGRAM_ANSWERED) return driver_error(error);
    return driver_answer(reply, out, error);
}

static tare_status open_session(void *instance, void **out, tare_error *error)
{
    struct self *self = instance;
    struct session *session = malloc(sizeof *session);
    json_t *answer;
    if (!session) return tare_fail(error, TARE_E_NOMEM, "no memory");
    const tare_status s = ask(self, json_pack("{s:s}", "open", self->any_session ? "another" : "first"), &answer, error);
    if (s) {
        free(session);
        return s;
    }
    self->any_session = 1;
    session->id = json_integer_value(json_object_get(answer, "session"));
    json_decref(answer);
    *out = session;
    return TARE_OK;
}

static void close_session(void *instance, void *session)
{
    struct self *self = instance;
    struct session *s = session;
    json_t *answer = NULL;
    tare_error unused = {.struct_size = sizeof unused};
    (void)ask(self, json_pack("{s:I}", "close", (json_int_t)s->id), &answer, &unused);
    json_decref(answer);
    free(s);
}

static tare_text text_of(const json_t *j, const char *key)
{
    const json_t *s = json_object_get(j, key);
    return (tare_text){json_is_string(s) ? json_string_value(s) : "", (int64_t)json_string_length(s)};
}

static tare_status write_text(const tare_stream *to, tare_text text)
{
    return to && text.size ? tare_put(to, text.data, text.size) : TARE_OK;
}

static tare_status observe(const json_t *answer, tare_observation *out)
{
    size_t i;
    const json_t *said;
    json_array_foreach(json_object_get(answer, "say"), i, said)
    {
        const tare_message message = {.struct_size = sizeof message,
                                      .role = !strcmp(text_of(said, "role").data, "tool") ? TARE_ROLE_TOOL : TARE_ROLE_USER,
                                      .call_id = text_of(said, "call_id"),
                                      .name = text_of(said, "name"),
                                      .text = text_of(said, "text")};
        const tare_status s = out->say(out->ctx, &message);
        if (s) return s;
    }
    out->reward = json_number_value(json_object_get(answer, "reward"));
    out->end = (int32_t)json_integer_value(json_object_get(answer, "end"));
    tare_status s = write_text(out->state_key, text_of(answer, "state"));
    if (!s) s = write_text(out->note, text_of(answer, "note"));
    return s ? s : write_text(out->tools, text_of(answer, "tools"));
}

static tare_status reset(void *instance, void *session, const tare_episode *episode, tare_observation *out, tare_error *error)
{
    const struct session *s = session;
    json_t *row = episode->row.size ? json_loadb(episode->row.data, (size_t)episode->row.size, 0, NULL) : NULL, *answer;
    if (!json_is_object(row)) {
        json_decref(row);
        row = json_object();
    }
    /* of 31 bits, which every generator's seed takes */
    const json_int_t seed = (json_int_t)(episode->seed[0] >> 33);
    json_t *q = json_pack("{s:I, s:o, s:I, s:I}", "reset", (json_int_t)s->id, "row", row, "seed", seed, "max_turns",
                          (json_int_t)episode->max_turns);
    tare_status status = ask(instance, q, &answer, error);
    if (!status) status = observe(answer, out);
    json_decref(answer);
    return status;
}

static json_t *calls_of(const tare_act *act)
{
    json_t *list = json_array();
    for (int64_t i = 0; i < act->n_calls; i++) {
        const tare_call *c = act->call[i];
        /* its text, since Python reads numbers that jansson does not */
        json_array_append_new(list, json_pack("{s:s%, s:s%, s:s%}", "id", c->id.size ? c->id.data : "", (size_t)c->id.size, "name",
                                              c->name.data, (size_t)c->name.size, "arguments", c->arguments.data,
                                              (size_t)c->arguments.size));
    }
    return list;
}

static tare_status step(void *instance, void *const *session, const tare_act *const *act, tare_observation *const *out, int64_t n,
                        tare_error *error)
{
    tare_status status = TARE_OK;
    for (int64_t i = 0; i < n && !status; i++) {
        const struct session *s = session[i];
        json_t *answer, *text = json_stringn(act[i]->text.size ? act[i]->text.data : "", (size_t)act[i]->text.size);
        if (!text) text = json_string("");
        status = ask(instance,
                     json_pack("{s:I, s:o, s:o, s:I}", "step", (json_int_t)s->id, "text", text, "calls", calls_of(act[i]), "turn",
                               (json_int_t)act[i]->turn),
                     &answer, error);
        if (!status) status = observe(answer, out[i]);
        json_decref(answer);
    }
    return status;
}

static uint32_t uses(const tare_value *values)
{
    (void)values;
    return TARE_USES_ROW;
}

static const tare_environment FUNCTIONS = {.struct_size = sizeof FUNCTIONS,
                                           .flags = TARE_ENVIRONMENT_REPEATS,
                                           .create = create,
                                           .destroy = destroy,
                                           .uses = uses,
                                           .open = open_session,
                                           .close = close_session,
                                           .reset = reset,
                                           .step = step};

BUILT_IN("python_class", .kind = TARE_KIND_ENVIRONMENT,
         .summary = "a Python class plays the episodes: one of TRL's environment_factory, or with gymnasium's step",
         TARE_PARAMS(PARAMS, P_COUNT), .calls = TARE_CALLS_INSTANCE_PER_THREAD)
