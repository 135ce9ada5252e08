#include "audit/internal.h"

#include <math.h>
#include <string.h>

/* Why a field of no row was checked; NULL: it was. */
static const char *why_not(const struct audit *a, enum audit_column c)
{
    if (a->checked[c]) return NULL;
    switch (c) {
    case AUDIT_STEP:
        return "the dump's steps, or the files' names, say none";
    case AUDIT_ANSWER:
        return "the dump has no answers";
    case AUDIT_REWARD:
        return a->had[AUDIT_ANSWER] || a->answers.open ? "no row has both a reward and an answer"
                                                       : "the dump has no answers, and data.train is not set";
    case AUDIT_ADVANTAGE:
        return "the dump has no advantages";
    case AUDIT_LOSS_SCALE:
        return a->had[AUDIT_LENGTH] ? "the dump has none" : "the dump has no lengths";
    case AUDIT_WEIGHT:
        return "the dump has no weights";
    default:
        return "the dump has none";
    }
}

static tare_status pack_fields(const struct audit *a, json_t *fields, struct err *e)
{
    for (int c = 0; c < AUDIT_N; c++) {
        const char *why = why_not(a, (enum audit_column)c);
        if (c == AUDIT_LENGTH) continue;
        json_t *o = json_pack("{s:I, s:I, s:o}", "checked", (json_int_t)a->checked[c], "disagree", (json_int_t)a->disagree[c],
                              "why", why ? json_string(why) : json_null());
        if (!o || json_object_set_new(fields, audit_column_name((enum audit_column)c), o))
            FAIL(e, TARE_E_NOMEM, "no memory for the result");
    }
    return TARE_OK;
}

static tare_status pack(const struct audit *a, json_t **out, struct err *e)
{
    const struct config *c = a->o->config;
    const json_t *first = json_array_get(a->list, 0);
    *out = json_pack("{s:s, s:I, s:I, s:I, s:I, s:I, s:s, s:s, s:s?, s:s, s:I, s:I, s:I, s:b, s:O, s:O, s:{}, s:o}", "format",
                     a->map.name, "files", (json_int_t)a->files, "steps", (json_int_t)a->steps, "rows", (json_int_t)a->rows,
                     "groups", (json_int_t)a->groups, "group_size", (json_int_t)a->group_size, "verifier", c->verifier.plugins,
                     "estimator", c->estimator.plugin, "as", c->run.as == AS_NONE ? NULL : config_chosen(c, "run", "as"),
                     "aggregation", config_chosen(c, "loss", "aggregation"), "judged", (json_int_t)a->judged, "disputed",
                     (json_int_t)a->disputed, "unjudged", (json_int_t)a->unjudged, "agrees", first == NULL, "first",
                     first ? first : json_null(), "disagreements", a->list, "fields", "loss_scale",
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
    if (!status && !a.rows) status = err_set(e, TARE_E_INVALID, __FILE__, __LINE__, "%s: no row is in it", o->dumps[0]);
    if (!status) status = pack(&a, out, e);
    if (status) {
        json_decref(*out);
        *out = NULL;
    }
    json_decref(a.list);
    mem_free(a.findings);
    estimate_free(a.estimator);
    verify_close(a.verify);
    answers_close(&a.answers);
    arena_free(&a.step);
    arena_free(&a.run);
    return status;
}
