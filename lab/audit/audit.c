#include "lab/audit/internal.h"

#include <math.h>
#include <string.h>

/* Why a field of no row was checked, where the dump has what the check needs. */
static const char *why_of_rows(const struct audit *a, enum audit_column c)
{
    switch (c) {
    case AUDIT_STEP:
        return "no file's name has the number of a step, as completions_00012.jsonl";
    case AUDIT_REWARD:
        return a->unjudged ? "the verifier could judge no row" : "no row has both a reward and an answer";
    case AUDIT_ADVANTAGE:
    case AUDIT_WEIGHT:
        return "no row that has one is in a whole group";
    case AUDIT_LOSS_SCALE:
        return a->had[c] ? "no row that has one is in a whole group of rows with lengths" : "the dump has none";
    default:
        return "the dump has none";
    }
}

/* What the check of a field needs and no row has. */
static enum audit_column lacking(const struct audit *a, enum audit_column c)
{
    const enum audit_column needed = c == AUDIT_LOSS_SCALE ? AUDIT_LENGTH : c == AUDIT_REWARD ? AUDIT_ANSWER : c;
    const bool can_lack = c == AUDIT_STEP || c == AUDIT_ANSWER || c == AUDIT_REWARD || c == AUDIT_ADVANTAGE || c == AUDIT_WEIGHT ||
                          c == AUDIT_LOSS_SCALE;
    if (!can_lack || a->had[needed] || (c == AUDIT_REWARD && a->answers.open)) return AUDIT_N;
    return needed;
}

/* Why a field of no row was checked, and which option names its column. Weights and lengths few trainers write: no option is proposed. */
static void why_not(const struct audit *a, enum audit_column c, char *out, size_t room)
{
    const enum audit_column needed = lacking(a, c);
    if (needed == AUDIT_N) {
        snprintf(out, room, "%s", why_of_rows(a, c));
        return;
    }
    const char *name = audit_column_name(needed);
    const int n = snprintf(out, room, "the dump has no %ss", name);
    if (a->own || needed == AUDIT_WEIGHT || needed == AUDIT_LENGTH || n < 0) return;
    snprintf(out + n, room - (size_t)n, "; give %s--field %s=COLUMN%s%s", needed == AUDIT_ANSWER ? "data.train=FILE or " : "", name,
             *a->unused ? "; columns not used: " : "", a->unused);
}

static tare_status pack_fields(const struct audit *a, json_t *fields, struct err *e)
{
    for (int c = 0; c < AUDIT_N; c++) {
        char why[600];
        if (c == AUDIT_LENGTH) continue;
        why_not(a, (enum audit_column)c, why, sizeof why);
        json_t *o = json_pack("{s:I, s:I, s:o}", "checked", (json_int_t)a->checked[c], "disagree", (json_int_t)a->disagree[c],
                              "why", a->checked[c] ? json_null() : json_string(why));
        if (!o || json_object_set_new(fields, audit_column_name((enum audit_column)c), o))
            FAIL(e, TARE_E_NOMEM, "no memory for the result");
    }
    return TARE_OK;
}

static tare_status pack(const struct audit *a, json_t **out, struct err *e)
{
    const struct config *c = a->o->config;
    const json_t *first = json_array_get(a->list, 0);
    *out = json_pack("{s:s, s:I, s:I, s:I, s:I, s:I, s:s, s:s, s:s?, s:s, s:I, s:I, s:I, s:b, s:b, s:O, s:O, s:{}, s:o}", "format",
                     a->map.name, "files", (json_int_t)a->files, "steps", (json_int_t)a->steps, "rows", (json_int_t)a->rows,
                     "groups", (json_int_t)a->groups, "group_size", (json_int_t)a->group_size, "verifier", c->verifier.plugins,
                     "estimator", c->estimator.plugin, "as", c->run.as == AS_NONE ? NULL : config_chosen(c, "run", "as"),
                     "aggregation", config_chosen(c, "loss", "aggregation"), "judged", (json_int_t)a->judged, "disputed",
                     (json_int_t)a->disputed, "unjudged", (json_int_t)a->unjudged, "agrees", first == NULL, "computed",
                     a->checked[AUDIT_REWARD] || a->checked[AUDIT_ADVANTAGE], "first", first ? first : json_null(), "disagreements",
                     a->list, "fields", "loss_scale",
                     a->most > 0 ? json_pack("{s:f, s:f}", "least", a->least, "most", a->most) : json_null());
    if (!*out) FAIL(e, TARE_E_NOMEM, "no memory for the result");
    return pack_fields(a, json_object_get(*out, "fields"), e);
}

static tare_status open_parts(struct audit *a, struct err *e)
{
    const struct config *c = a->o->config;
    const struct plugin_search search = {.folder = c->run.plugins};
    const struct plugin *estimator;
    a->list = json_array();
    if (!a->list) FAIL(e, TARE_E_NOMEM, "no memory for the result");
    TRY(plugin_open(c->estimator.plugin, TARE_ESTIMATOR, &search, &estimator, e));
    TRY(verify_open(c, &search, NULL, &a->verify, e));
    return answers_open(c, &a->answers, e);
}

tare_status audit(const struct audit_options *o, json_t **out, struct err *e)
{
    struct audit a = {.o = o};
    *out = NULL;
    arena_init(&a.step, "rows of a dump");
    arena_init(&a.run, "audit");
    tare_status status = open_parts(&a, e);
    if (!status) status = dump_read(&a, e);
    written_report(&a.written);
    if (!status && !a.rows) status = err_set(e, TARE_E_INVALID, __FILE__, __LINE__, "%s: no row is in it", o->dumps[0]);
    if (!status) status = pack(&a, out, e);
    if (status) {
        json_decref(*out);
        *out = NULL;
    }
    written_close(&a.written);
    json_decref(a.list);
    mem_free(a.findings);
    estimate_free(a.estimator);
    verify_close(a.verify);
    answers_close(&a.answers);
    arena_free(&a.step);
    arena_free(&a.run);
    return status;
}
