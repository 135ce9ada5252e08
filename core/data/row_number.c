#include "data/row_number.h"

#include "base/json.h"

#include <math.h>
#include <string.h>

static const char *json_kind(const json_t *value)
{
    return json_is_string(value) ? "a text" : json_is_array(value) ? "a list" : "an object";
}

static tare_status read_number(const json_t *row, const char *key, const char *reader, const char *where, double *out,
                               struct err *e)
{
    const json_t *value = json_object_get(row, key);
    if (!value || json_is_null(value)) return TARE_OK;
    if (json_is_boolean(value))
        *out = json_is_true(value);
    else if (json_is_number(value))
        *out = json_number_value(value);
    else
        FAIL(e, TARE_E_INVALID, "%s: \"%s\" is %s, but the %s reads it as a number: write a number%s, or remove it", where, key,
             /* a row's level is never true */
             json_kind(value), reader, strcmp(key, "level") ? ", true or false" : "");
    return TARE_OK;
}

tare_status row_numbers(const struct row_keys *keys, tare_text row, const char *where, double *out, struct err *e)
{
    OWNED(json_decrefp) json_t *object = NULL;
    for (int64_t k = 0; k < keys->n; k++) out[k] = (double)NAN;
    if (!keys->n || !row.size) return TARE_OK;
    TRY(json_parse(row.data, row.size, where, &object, e));
    for (int64_t k = 0; k < keys->n; k++) TRY(read_number(object, keys->key[k], keys->reader, where, &out[k], e));
    return TARE_OK;
}
