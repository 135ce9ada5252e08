#include "estimate/fields.h"

#include "batch/row_number.h"

#include <math.h>
#include <string.h>

const char *fields_key(const struct plugin_instance *i, uint32_t w)
{
    return i->wanted[w] ? plugin_row_key(i->plugin, i->values, w) : NULL;
}

tare_status fields_numbers(const struct plugin_instance *i, tare_text row, const char *where, double *out, struct err *e)
{
    const char *key[TARE_LIMIT_WANTS];
    double number[TARE_LIMIT_WANTS];
    struct row_keys keys = {.key = key, .reader = "estimator"};
    for (uint32_t w = 0; w < i->plugin->desc.n_wants; w++)
        if (fields_key(i, w)) key[keys.n++] = fields_key(i, w);
    TRY(row_numbers(&keys, row, where, number, e));
    for (uint32_t w = 0, k = 0; w < i->plugin->desc.n_wants; w++) out[w] = fields_key(i, w) ? number[k++] : (double)NAN;
    return TARE_OK;
}
