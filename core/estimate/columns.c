#include "estimate/columns.h"

#include "base/json.h"

#include <math.h>
#include <string.h>

static tare_status check_name(const struct plugin *p, const char *const *names, int64_t k, struct err *e)
{
    if (k == COLUMNS_MOST)
        FAIL(e, TARE_E_PLUGIN, "estimator %s: columns returns more than %d names; is the NULL at the end missing?", p->desc.name,
             COLUMNS_MOST);
    if (!*names[k]) FAIL(e, TARE_E_PLUGIN, "estimator %s: columns: empty name %lld", p->desc.name, (long long)k);
    for (int64_t j = 0; j < k; j++)
        if (!strcmp(names[j], names[k]))
            FAIL(e, TARE_E_PLUGIN, "estimator %s: columns: duplicate name \"%s\"", p->desc.name, names[k]);
    return TARE_OK;
}

tare_status columns_open(const struct plugin_instance *i, struct columns *out, struct err *e)
{
    struct plugin_call c;
    *out = (struct columns){0};
    if (!i->plugin->estimator->columns) return TARE_OK;
    plugin_enter(&c);
    out->name = i->plugin->estimator->columns(i->self);
    TRY(plugin_leave(&c, i, "columns", -1, TARE_OK, e));
    for (; out->name && out->name[out->n]; out->n++) TRY(check_name(i->plugin, out->name, out->n, e));
    return TARE_OK;
}

static const char *json_kind(const json_t *value)
{
    return json_is_string(value) ? "a text" : json_is_array(value) ? "a list" : "an object";
}

static tare_status read_field(const json_t *row, const char *name, const char *where, double *out, struct err *e)
{
    const json_t *value = json_object_get(row, name);
    *out = (double)NAN;
    if (!value || json_is_null(value)) return TARE_OK;
    if (json_is_boolean(value))
        *out = json_is_true(value);
    else if (json_is_number(value))
        *out = json_number_value(value);
    else
        FAIL(e, TARE_E_INVALID, "%s: \"%s\" is %s, but the estimator reads it as a number: write a number%s, or remove it", where,
             /* a row's level is never true */
             name, json_kind(value), strcmp(name, "level") ? ", true or false" : "");
    return TARE_OK;
}

tare_status columns_read(const struct columns *c, tare_text row, const char *where, double *out, struct err *e)
{
    OWNED(json_decrefp) json_t *object = NULL;
    for (int64_t k = 0; k < c->n; k++) out[k] = (double)NAN;
    if (!c->n || !row.size) return TARE_OK;
    TRY(json_parse(row.data, row.size, where, &object, e));
    for (int64_t k = 0; k < c->n; k++) TRY(read_field(object, c->name[k], where, &out[k], e));
    return TARE_OK;
}

tare_status columns_of(const struct columns *c, const struct batch *b, struct arena *a, const double **out, struct err *e)
{
    double *number;
    char where[96];
    TRY(arena_new(a, &number, b->n_groups * c->n + 1, e));
    for (int64_t m = 0; m < b->n_groups; m++) {
        snprintf(where, sizeof where, "step %lld: the row of group %lld", (long long)b->step, (long long)m);
        TRY(columns_read(c, b->row_json[m], where, number + m * c->n, e));
    }
    *out = number;
    return TARE_OK;
}
