/* python: the reward is computed by a user's Python function, with the signature of TRL's reward
 * functions:
 *
 * def reward(prompts, completions, answers, **row) -> list[float]    one list per field of the rows
 *
 * One call receives all completions of a step, in order (with several ranks: those of the rank).
 * The function runs in a separate python process (driver.py, over a pipe), so neither libpython nor
 * its lock is in this process. Verdicts: correct at `correct_at` or more, wrong at 0 or less,
 * partial between. None, "this function does not apply", is refused unless `none` = zero: it then
 * adds 0 to the verifiers' sum, as in TRL. TRL also leaves a completion that no function rewarded
 * out of its group, which this engine does not support. A late call is ended, and all its verdicts
 * are timeout. An exception stops the run with its message and line.
 *
 * The function is taken to repeat its verdicts (TARE_VERIFIER_REPEATS), so that `tare audit` and
 * `tare reproduce` can check them. One that draws random numbers or asks a model is reported there
 * as a difference. */
#include "common/program/driver.h"
#include "common/program/program.h"
#include "common/text.h"

#include <stdlib.h>
#include <string.h>
#include <tare/sdk.h>

enum { P_FILE, P_FUNCTION, P_PYTHON, P_MESSAGES, P_TIMEOUT, P_START, P_CORRECT_AT, P_NONE, P_COUNT };
enum { NONE_REFUSE, NONE_ZERO };

static const char *const NONES[] = {"refuse", "zero", NULL};

static const tare_param PARAMS[P_COUNT] = {
    [P_FILE] = TARE_PATH_PARAM("file", NULL, "the Python file that holds the function", TARE_PARAM_REQUIRED),
    [P_FUNCTION] = TARE_STRING_PARAM("function", "reward", "its name", 0),
    [P_PYTHON] = TARE_STRING_PARAM("python", "python3", "the interpreter: a name in PATH, or a file", 0),
    [P_MESSAGES] = TARE_BOOL_PARAM(
        "messages", "false", "hand over prompts and completions as lists of chat messages, as TRL does for conversational data", 0),
    [P_TIMEOUT] = PROGRAM_TIMEOUT("call, which has all completions of a step"),
    [P_START] = PROGRAM_START("seconds that python may take to start and to import the file"),
    [P_CORRECT_AT] = PROGRAM_CORRECT_AT("a reward of at least this counts as correct"),
    [P_NONE] = TARE_CHOICE_PARAM(
        "none", "refuse",
        "a reward of None: refuse stops the run; zero adds nothing to the sum of the verifiers (for rows that another verifier rewards)",
        NONES, 0),
};

static const char DRIVER[] =
#include "common/verifier.h"
#include "driver.inc"
    ;

struct python {
    const tare_host *host;
    const tare_progress_v1 *progress; /* NULL: not known */
    const tare_value *values;
    struct program *program;
    char *argv[8];
};

static void destroy(void *self)
{
    struct python *p = self;
    program_free(p->program);
    for (int i = 0; i < 8; i++) free(p->argv[i]);
    free(p);
}

static tare_status create(const tare_setup *setup, void **self, tare_error *error)
{
    const tare_value *values = setup->values;
    const tare_host *host = setup->host;
    struct python *p = calloc(1, sizeof *p);
    if (!p) return tare_fail(error, TARE_E_NOMEM, "no memory");
    p->host = host;
    p->values = values;
    p->progress = host->extension(host->ctx, "tare.progress/1");
    const char *const fields = host->extension(host->ctx, "tare.row_fields/1");
    const char *const words[] = {
        values[P_PYTHON].s,    "-c", DRIVER, values[P_FILE].s, values[P_FUNCTION].s, values[P_MESSAGES].i ? "true" : "false",
        fields ? fields : "{}"};
    tare_status s = TARE_OK;
    for (int i = 0; i < 7; i++)
        if (!(p->argv[i] = strdup(words[i]))) s = tare_fail(error, TARE_E_NOMEM, "no memory");
    const struct program_options options = {
        .host = host, .argv = p->argv, .name = values[P_PYTHON].s, .says_ready = true, .start = values[P_START].f};
    if (!s) s = program_new(&options, &p->program, error);
    /* report a missing file, or a field that the function takes and no row has, before the run */
    if (!s && program_start(p->program, error)) s = driver_error(error);
    if (s)
        destroy(p);
    else
        *self = p;
    return s;
}

/* The host's tokenizer has replaced most invalid UTF-8; this replaces the rest. */
static json_t *text_json(tare_text t)
{
    json_t *j = json_stringn(t.size ? t.data : "", (size_t)t.size);
    if (j) return j;
    char *clean = malloc((size_t)t.size + 1);
    if (clean)
        for (int64_t i = 0; i < t.size; i++) clean[i] = (unsigned char)t.data[i] < 0x80 ? t.data[i] : '?';
    j = clean ? json_stringn(clean, (size_t)t.size) : NULL;
    free(clean);
    return j;
}

static char *write_question(const tare_progress_v1 *progress, const tare_completion *const *said, int64_t n)
{
    json_t *prompts = json_array(), *completions = json_array(), *golds = json_array(), *rows = json_array();
    for (int64_t i = 0; i < n; i++) {
        const tare_text row = said[i]->row;
        json_t *object = row.size ? json_loadb(row.data, (size_t)row.size, 0, NULL) : NULL;
        json_array_append_new(prompts, text_json(said[i]->prompt));
        json_array_append_new(completions, text_json(said[i]->text));
        json_array_append_new(golds, text_json(said[i]->answer));
        json_array_append_new(rows, json_is_object(object) ? json_incref(object) : json_object());
        json_decref(object);
    }
    json_t *all = json_pack("{s:o, s:o, s:o, s:o}", "prompts", prompts, "completions", completions, "answers", golds, "rows", rows);
    if (progress) {
        json_object_set_new(all, "step", json_integer(progress->finished(progress->ctx)));
        json_object_set_new(all, "steps", json_integer(progress->steps));
    }
    char *line = json_dumps(all, JSON_COMPACT);
    json_decref(all);
    return line;
}

/* Returns the values that the function logged for completion i (log_extra), or the usual note. */
static const char *note_of(const json_t *reply, int64_t i, int32_t code)
{
    const char *note = json_string_value(json_array_get(json_object_get(reply, "notes"), (size_t)i));
    if (note && *note) return note;
    return code == TARE_VERDICT_NO_ANSWER ? "the function returned no reward" : "the function's reward";
}

/* Records the values that the function logged (log_metric), by their mean. */
static void record_metrics(const tare_host *host, const json_t *metrics)
{
    size_t at;
    const json_t *pair;
    json_array_foreach(metrics, at, pair)
    {
        const char *name = json_string_value(json_array_get(pair, 0));
        if (name) host->metric(host->ctx, name, json_number_value(json_array_get(pair, 1)), TARE_METRIC_MEAN);
    }
}

static tare_status read_reply(const struct python *p, tare_text reply, tare_verdict *const *out, int64_t n, tare_error *error)
{
    json_t *j;
    tare_status s = driver_answer(reply, &j, error);
    const json_t *rewards = json_object_get(j, "rewards");
    if (!s && (!json_is_array(rewards) || (int64_t)json_array_size(rewards) != n)) s = driver_refuse(reply, error);
    for (int64_t i = 0; i < n && !s; i++) {
        const json_t *reward = json_array_get(rewards, (size_t)i);
        const double x = json_number_value(reward);
        if (!json_is_number(reward) && p->values[P_NONE].i == NONE_REFUSE) {
            s = tare_fail(
                error, TARE_E_PLUGIN,
                "%s returned None for completion %lld of %lld, so it has no reward; return a number, or set [verifier.python] none = zero if another verifier judges that row",
                p->values[P_FUNCTION].s, (long long)i + 1, (long long)n);
            break;
        }
        const int32_t code = json_is_number(reward) ? program_verdict(x, p->values[P_CORRECT_AT].f) : TARE_VERDICT_NO_ANSWER;
        s = verdict_set(out[i], code, x, (tare_text){0}, note_of(j, i, code));
    }
    if (!s) record_metrics(p->host, json_object_get(j, "metrics"));
    json_decref(j);
    return s;
}

static tare_status verify(void *self, const tare_completion *const *completions, tare_verdict *const *out, int64_t n,
                          tare_error *error)
{
    struct python *p = self;
    const int64_t deadline = program_deadline(p->values[P_TIMEOUT].f, completions, n);
    char *line = write_question(p->progress, completions, n);
    tare_text reply;
    if (!line) return tare_fail(error, TARE_E_NOMEM, "no memory for a row");
    const enum program_result r = program_ask(p->program, (tare_text){line, (int64_t)strlen(line)}, deadline, &reply, error);
    free(line);
    if (r == PROGRAM_ANSWERED) return read_reply(p, reply, out, n, error);
    if (r != PROGRAM_LATE) return driver_error(error);
    tare_status s = TARE_OK;
    for (int64_t i = 0; i < n && !s; i++)
        s = verdict_set(out[i], TARE_VERDICT_TIMED_OUT, 0, (tare_text){0}, "the function took too long");
    return s;
}

USES(TARE_USES_MAYBE_ANSWER)

static const tare_verifier FUNCTIONS = {.struct_size = sizeof FUNCTIONS,
                                        .flags = TARE_VERIFIER_TOGETHER | TARE_VERIFIER_REPEATS,
                                        .create = create,
                                        .destroy = destroy,
                                        .verify = verify,
                                        .uses = uses};

BUILT_IN("python", .kind = TARE_KIND_VERIFIER,
         .summary = "a Python function with the signature of TRL's reward functions; one call has all completions of a step",
         TARE_PARAMS(PARAMS, P_COUNT), .calls = TARE_CALLS_INSTANCE_PER_THREAD)
