#include "estimate/fields.h"

#include "base/json.h"

#include <math.h>
#include <string.h>

const char *field_of(const struct plugin_instance *i, uint32_t w)
{
    const bool is_field = i->plugin->column[w] == COLUMN_ROW_FIELD && i->wanted[w];
    return is_field ? i->plugin->wants[w].name + strlen("row.") : NULL;
}

static const char *json_kind(const json_t *value)
{
    return json_is_string(value) ? "a text" : json_is_array(value) ? "a list" : "an object";
}

static tare_status read_field(const json_t *row, const char *name, const char *where, double *out, struct err *e)
{
    const json_t *value = json_object_get(row, name);
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

tare_status fields_read(const struct plugin_instance *i, tare_text row, const char *where, double *out, struct err *e)
{
    OWNED(json_decrefp) json_t *object = NULL;
    for (uint32_t w = 0; w < i->plugin->desc.n_wants; w++) out[w] = (double)NAN;
    if (!plugin_wants(i, COLUMN_ROW_FIELD) || !row.size) return TARE_OK;
    TRY(json_parse(row.data, row.size, where, &object, e));
    for (uint32_t w = 0; w < i->plugin->desc.n_wants; w++)
        if (field_of(i, w)) TRY(read_field(object, field_of(i, w), where, &out[w], e));
    return TARE_OK;
}
