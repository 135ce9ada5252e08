#include "lab/audit/internal.h"

#include <math.h>
#include <string.h>

/* Explains why no row of a field was checked although the dump has the columns. */
static const char *explain_rows(const struct audit *a, enum audit_column c)
{
    switch (c) {
    case AUDIT_STEP:
        return "no file name has the number of a step, as completions_00012.jsonl does";
    case AUDIT_REWARD:
        if (verify_unrepeatable(a->verify)) return "the verifier does not promise the same verdict twice, so the dump counts";
        return a->unjudged ? "the verifier could not verify any row" : "no row has both a reward and an answer";
    case AUDIT_ADVANTAGE:
    case AUDIT_WEIGHT:
        return "no row with one is in a complete group";
    case AUDIT_LOSS_SCALE:
        return a->had[c] ? "no row with one is in a complete group of rows with lengths" : "the dump has none";
    default:
        return "the dump has none";
    }
}

/* Returns the column that the check of a field needs and no row has. */
static enum audit_column missing_column(const struct audit *a, enum audit_column c)
{
    const enum audit_column needed = c == AUDIT_LOSS_SCALE ? AUDIT_LENGTH : c == AUDIT_REWARD ? AUDIT_ANSWER : c;
    const bool can_lack = c == AUDIT_STEP || c == AUDIT_ANSWER || c == AUDIT_REWARD || c == AUDIT_ADVANTAGE || c == AUDIT_WEIGHT ||
                          c == AUDIT_LOSS_SCALE;
    if (c == AUDIT_REWARD && verify_unrepeatable(a->verify)) return AUDIT_N;
    if (!can_lack || a->had[needed] || (c == AUDIT_REWARD && a->answers.open)) return AUDIT_N;
    return needed;
}

/* Explains why no row of a field was checked, and names the option for its column. Few trainers
 * write weights and lengths, so no option is proposed for them. */
static void explain_unchecked(const struct audit *a, enum audit_column c, char *out, size_t capacity)
{
    const enum audit_column needed = missing_column(a, c);
    if (needed == AUDIT_N) {
        snprintf(out, capacity, "%s", explain_rows(a, c));
        return;
    }
    const char *name = audit_column_name(needed);
    const int n = snprintf(out, capacity, "the dump has no %ss", name);
    if (a->own || needed == AUDIT_WEIGHT || needed == AUDIT_LENGTH || n < 0) return;
    snprintf(out + n, capacity - (size_t)n, "; set %s--field %s=COLUMN%s%s", needed == AUDIT_ANSWER ? "data.train=FILE or " : "",
             name, *a->unused ? "; unused columns: " : "", a->unused);
}

static tare_status pack_fields(const struct audit *a, json_t *fields, struct err *e)
{
    for (int c = 0; c < AUDIT_N; c++) {
        char why[600];
        if (c == AUDIT_LENGTH) continue;
        explain_unchecked(a, (enum audit_column)c, why, sizeof why);
        json_t *o = json_pack("{s:I, s:I, s:o}", "checked", (json_int_t)a->checked[c], "disagree", (json_int_t)a->disagree[c],
                              "why", a->checked[c] ? json_null() : json_string(why));
        if (!o || json_object_set_new(fields, audit_column_name((enum audit_column)c), o))
            FAIL(e, TARE_E_NOMEM, "no memory for the result");
    }
    return TARE_OK;
}

static tare_status pack_result(const struct audit *a, json_t **out, struct err *e)
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
    TRY(plugin_open(c->estimator.plugin, TARE_KIND_ESTIMATOR, &search, &estimator, e));
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
    if (!status && !a.rows) status = err_set(e, TARE_E_INVALID, __FILE__, __LINE__, "%s: must have at least one row", o->dumps[0]);
    if (!status) status = pack_result(&a, out, e);
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
