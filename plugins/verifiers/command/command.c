/* command: a user's program in any language computes the reward.
 *
 * It reads one JSON object per line and writes one line for each, in the same order, flushed:
 *   {"prompt","completion","answer","row":{...}}  ->  {"reward": x}
 * The reply may also have "verdict", "extracted" and "note", or be the number alone.
 *
 * Without "verdict" the reward decides: correct at `correct_at` or more, wrong at 0 or less,
 * partial between. A program that is late is killed, with the verdict timeout. A program that dies
 * is restarted and asked once more; if it dies twice on one row, the run stops unless on_death says
 * otherwise. Its standard error is passed through.
 *
 * The program is taken to repeat its verdicts (TARE_VERIFIER_REPEATS), so that `tare audit` and `tare
 * reproduce` can check them. One that draws random numbers or asks a model is reported there as a
 * difference.
 *
 * A host that works meanwhile keeps several tickets open (submit, poll, take). Each has a separate
 * program, which is kept for later ones.
 */
#define _GNU_SOURCE
#include "common/program/program.h"
#include "common/text.h"
#include "common/verifier.h"

#include <jansson.h>
#include <stdlib.h>
#include <string.h>
#include <tare/sdk.h>

enum { P_COMMAND, P_TIMEOUT, P_READY, P_START, P_CORRECT_AT, P_ON_DEATH, P_COUNT };
enum { DEATH_STOP, DEATH_UNPARSABLE };
static const char *const ON_DEATH[] = {"stop", "unparsable", NULL};

static const tare_param PARAMS[P_COUNT] = {
    [P_COMMAND] = TARE_STRING_PARAM(
        "command", NULL,
        "the program and its arguments, as a line for the shell; one runs for each answer that is verified at the same time",
        TARE_PARAM_REQUIRED),
    [P_TIMEOUT] = PROGRAM_TIMEOUT("row"),
    [P_READY] =
        TARE_BOOL_PARAM("ready", "false", "the program writes the line {\"ready\":true} when it has started, and is waited for", 0),
    [P_START] = PROGRAM_START("seconds it may take until it is ready"),
    [P_CORRECT_AT] = PROGRAM_CORRECT_AT("a reward of at least this counts as correct where the program gives no verdict"),
    [P_ON_DEATH] = TARE_CHOICE_PARAM("on_death", "stop",
                                     "when it dies twice over one row: stop the run, or count the row as unparsable with reward 0",
                                     ON_DEATH, 0),
};

/* A program and the request it is working on. */
struct seat {
    struct program *program;
    char *question;
    size_t size, capacity;
    int64_t ticket;
    bool open;                  /* it is working for `ticket`, or has its result */
    enum program_result result; /* PROGRAM_WORKS: none yet */
    tare_text reply;
    tare_error error;
};

struct command {
    const tare_value *values;
    struct program_options options;
    char *argv[4];
    struct seat *seats;
    struct program **working; /* [n_seats] */
    size_t n_seats;           /* the first is created at the start */
};

static tare_status write_question(void *ctx, const void *data, int64_t n)
{
    struct seat *c = ctx;
    if (c->capacity - c->size < (size_t)n) {
        char *more = realloc(c->question, (c->size + (size_t)n) * 2);
        if (!more) return TARE_E_NOMEM;
        c->question = more;
        c->capacity = (c->size + (size_t)n) * 2;
    }
    for (int64_t i = 0; i < n; i++) { /* one line; a newline outside of JSON strings is a blank */
        const char x = ((const char *)data)[i];
        c->question[c->size++] = x == '\n' ? ' ' : x;
    }
    return TARE_OK;
}

static tare_status add_seat(struct command *c, tare_error *error)
{
    struct seat *seats = realloc(c->seats, (c->n_seats + 1) * sizeof *seats);
    if (seats) c->seats = seats;
    struct program **working = realloc(c->working, (c->n_seats + 1) * sizeof *working);
    if (working) c->working = working;
    if (!seats || !working) return tare_fail(error, TARE_E_NOMEM, "no memory");
    seats[c->n_seats] = (struct seat){0};
    const tare_status s = program_new(&c->options, &seats[c->n_seats].program, error);
    if (!s) c->n_seats++;
    return s;
}

static void destroy(void *self)
{
    struct command *c = self;
    for (size_t k = 0; k < c->n_seats; k++) {
        program_free(c->seats[k].program);
        free(c->seats[k].question);
    }
    free(c->seats);
    free(c->working);
    free(c->argv[2]);
    free(c);
}

static tare_status create(const tare_setup *setup, void **self, tare_error *error)
{
    const tare_value *values = setup->values;
    static char SH[] = "sh", FLAG[] = "-c";
    struct command *c = calloc(1, sizeof *c);
    if (!c) return tare_fail(error, TARE_E_NOMEM, "no memory");
    const size_t n = strlen(values[P_COMMAND].s) + 8;
    c->values = values;
    c->argv[0] = SH;
    c->argv[1] = FLAG;
    c->argv[2] = malloc(n);
    tare_status s = c->argv[2] ? TARE_OK : tare_fail(error, TARE_E_NOMEM, "no memory");
    if (!s) snprintf(c->argv[2], n, "%s", values[P_COMMAND].s);
    if (!s && !c->argv[2][strspn(c->argv[2], " \t")]) s = tare_fail(error, TARE_E_CONFIG, "command is empty; give a program");
    c->options = (struct program_options){.host = setup->host,
                                          .argv = c->argv,
                                          .name = values[P_COMMAND].s,
                                          .says_ready = values[P_READY].i,
                                          .start = values[P_START].f};
    if (!s) s = add_seat(c, error);
    if (!s && values[P_READY].i && program_start(c->seats->program, error)) s = error->code;
    if (s)
        destroy(c);
    else
        *self = c;
    return s;
}

static tare_status write_row(struct seat *c, const tare_completion *a)
{
    const tare_stream out = {.struct_size = sizeof out, .ctx = c, .write = write_question};
    c->size = 0;
    tare_status s = explain_text(&out, true, "prompt", a->prompt);
    if (!s) s = explain_text(&out, false, "completion", a->text);
    if (!s) s = explain_text(&out, false, "answer", a->answer);
    if (!s) s = tare_say(&out, ",\"row\":");
    if (!s) s = a->row.size ? write_question(c, a->row.data, a->row.size) : tare_say(&out, "{}");
    return s ? s : tare_say(&out, "}");
}

static int32_t code_of(const char *name)
{
    static const char *const NAMES[] = {NULL, "correct", "wrong", "no_answer", "unparsable", "timeout", NULL, "partial"};
    for (int32_t k = TARE_VERDICT_CORRECT; k <= TARE_VERDICT_PARTIAL; k++)
        if (NAMES[k] && !strcmp(name, NAMES[k])) return k;
    return 0;
}

static tare_status read_reply(const struct command *c, tare_text reply, tare_verdict *v, tare_error *error)
{
    json_t *j = json_loadb(reply.data, (size_t)reply.size, JSON_DECODE_ANY, NULL);
    const json_t *reward = json_is_object(j) ? json_object_get(j, "reward") : j;
    const json_t *verdict = json_object_get(j, "verdict"), *extracted = json_object_get(j, "extracted"),
                 *note = json_object_get(j, "note");
    tare_status s = TARE_OK;
    if (!json_is_number(reward)) {
        s = tare_fail(error, TARE_E_PLUGIN, "the program answered '%.*s'; expected {\"reward\": number} or a number",
                      (int)(reply.size < 200 ? reply.size : 200), reply.data);
    } else {
        const double x = json_number_value(reward);
        const int32_t code = json_is_string(verdict) ? code_of(json_string_value(verdict))
                             : verdict               ? 0
                                                     : program_verdict(x, c->values[P_CORRECT_AT].f);
        tare_text text = {0};
        if (json_is_string(extracted)) text = (tare_text){json_string_value(extracted), (int64_t)json_string_length(extracted)};
        if (!code)
            s = tare_fail(
                error, TARE_E_PLUGIN,
                "the program returned an unknown verdict '%.*s': must be correct, wrong, no_answer, unparsable, timeout or partial",
                (int)(reply.size < 200 ? reply.size : 200), reply.data);
        else
            s = verdict_set(v, code, x, text, json_is_string(note) ? json_string_value(note) : "the program's verdict");
    }
    json_decref(j);
    return s;
}

/* Turns the result of a question into a verdict or an error. */
static tare_status conclude_verdict(const struct command *c, enum program_result r, tare_text reply, tare_verdict *v,
                                    tare_error *error)
{
    const tare_text none = {0};
    switch (r) {
    case PROGRAM_ANSWERED:
        return read_reply(c, reply, v, error);
    case PROGRAM_LATE:
        return verdict_set(v, TARE_VERDICT_TIMED_OUT, 0, none, "the program did not answer in time");
    case PROGRAM_DIED:
        if (c->values[P_ON_DEATH].i == DEATH_STOP) return error->code;
        return verdict_set(v, TARE_VERDICT_UNPARSABLE, 0, none, "the program died over it");
    default:
        return error->code;
    }
}

static tare_status judge_one(struct command *c, const tare_completion *a, tare_verdict *v, tare_error *error)
{
    struct seat *s = c->seats;
    const int64_t deadline = program_deadline(c->values[P_TIMEOUT].f, &a, 1);
    tare_text reply = {0};
    if (write_row(s, a)) return tare_fail(error, TARE_E_NOMEM, "no memory for a row");
    const enum program_result r = program_ask(s->program, (tare_text){s->question, (int64_t)s->size}, deadline, &reply, error);
    return conclude_verdict(c, r, reply, v, error);
}

VERIFY(judge_one)

static tare_status submit(void *self, const tare_completion *a, int64_t ticket, tare_error *error)
{
    struct command *c = self;
    size_t k = 0;
    while (k < c->n_seats && c->seats[k].open) k++;
    if (k == c->n_seats) {
        const tare_status status = add_seat(c, error);
        if (status) return status;
    }
    struct seat *s = &c->seats[k];
    /* Waits once for a program that reports when it is ready; its row then has its full time. */
    const int64_t begun = program_now();
    if (c->values[P_READY].i && program_start(s->program, error)) return error->code;
    int64_t deadline = program_deadline(c->values[P_TIMEOUT].f, &a, 1);
    if (deadline && deadline == a->deadline_ns) deadline += program_now() - begun;
    if (write_row(s, a)) return tare_fail(error, TARE_E_NOMEM, "no memory for a row");
    const enum program_result r = program_begin(s->program, (tare_text){s->question, (int64_t)s->size}, deadline, error);
    if (r != PROGRAM_WORKS) return error->code;
    s->ticket = ticket;
    s->open = true;
    s->result = r;
    return TARE_OK;
}

static struct seat *seat_of(const struct command *c, int64_t ticket)
{
    for (size_t k = 0; k < c->n_seats; k++)
        if (c->seats[k].open && c->seats[k].ticket == ticket) return &c->seats[k];
    return NULL;
}

/* Sets the states of the tickets. any: one is done. */
static tare_status look_once(const struct command *c, const tare_waiting *w, bool *any, tare_error *error)
{
    for (int64_t i = 0; i < w->n; i++) {
        struct seat *s = seat_of(c, w->ticket[i]);
        if (!s) return tare_fail(error, TARE_E_STATE, "ticket %lld is not open", (long long)w->ticket[i]);
        s->error.struct_size = sizeof s->error;
        if (s->result == PROGRAM_WORKS) s->result = program_look(s->program, &s->reply, &s->error);
        if (s->result == PROGRAM_WORKS) continue;
        w->state[i] = TARE_TICKET_DONE;
        *any = true;
    }
    return TARE_OK;
}

static tare_status poll_tickets(void *self, const tare_waiting *w, tare_error *error)
{
    struct command *c = self;
    bool any = false;
    int64_t n = 0;
    const tare_status status = look_once(c, w, &any, error);
    if (status || any || !w->wait_ns) return status;
    for (int64_t i = 0; i < w->n; i++) c->working[n++] = seat_of(c, w->ticket[i])->program;
    program_wait(c->working, n, w->wait_ns);
    return look_once(c, w, &any, error);
}

static tare_status take(void *self, int64_t ticket, tare_verdict *out, tare_error *error)
{
    struct seat *s = seat_of(self, ticket);
    if (!s || s->result == PROGRAM_WORKS) return tare_fail(error, TARE_E_STATE, "ticket %lld is not done", (long long)ticket);
    s->open = false;
    tare_fail(error, s->error.code, "%s", s->error.message); /* counts only where there is no verdict */
    return conclude_verdict(self, s->result, s->reply, out, error);
}

static void cancel(void *self, int64_t ticket)
{
    struct seat *s = seat_of(self, ticket);
    if (!s) return;
    if (s->result == PROGRAM_WORKS) program_stop(s->program);
    s->open = false;
}

USES(TARE_USES_MAYBE_ANSWER)

static const tare_verifier FUNCTIONS = {.struct_size = sizeof FUNCTIONS,
                                        .flags = TARE_VERIFIER_REPEATS,
                                        .create = create,
                                        .destroy = destroy,
                                        .verify = verify,
                                        .submit = submit,
                                        .poll = poll_tickets,
                                        .take = take,
                                        .cancel = cancel,
                                        .uses = uses};

BUILT_IN("command", .kind = TARE_KIND_VERIFIER,
         .summary = "a program of the user's verifies answers: one JSON line in, one JSON line out", TARE_PARAMS(PARAMS, P_COUNT),
         .calls = TARE_CALLS_INSTANCE_PER_THREAD)
