/* The row's fields that change how a pair is compared, read from its JSON text without building a
 * tree. A value that is invalid for the parameter is ignored. */
#include "math.h"

#include <string.h>

static bool read_flag(tare_text row, const char *key, bool *out)
{
    const tare_text v = text_row_field(row, key);
    if (text_equal(v, text_of("true"), false)) return *out = true, true;
    if (text_equal(v, text_of("false"), false)) return *out = false, true;
    return false;
}

static bool read_number(tare_text row, const char *key, int64_t most, int64_t *out)
{
    const tare_text v = text_row_field(row, key);
    int64_t x = 0;
    if (!v.size || v.size > 9) return false;
    for (int64_t i = 0; i < v.size; i++) {
        if (!text_is_digit(v.data[i])) return false;
        x = x * 10 + (v.data[i] - '0');
    }
    if (x > most) return false;
    return *out = x, true;
}

static bool field_holds(tare_text list, const char *word)
{
    for (int64_t i = 0; i < list.size; i++)
        if (text_starts(list, i, word, false)) return true;
    return false;
}

void row_options(struct options *o, tare_text row)
{
    if (!row.size) return;
    if (read_flag(row, "gold_is_latex", &o->gold_latex)) o->gold_auto = false;
    read_flag(row, "strict", &o->strict);
    read_flag(row, "allow_set_relation_comp", &o->allow_set_relation);
    read_number(row, "boxed_priority", 100, &o->boxed_priority);
    read_number(row, "float_rounding", MAX_ROUNDING, &o->rounding);
    const tare_text extract = text_row_field(row, "extract");
    if (extract.size && extract.data[0] == '[') {
        o->use_latex = field_holds(extract, "\"latex\"");
        o->use_expr = field_holds(extract, "\"expr\"");
    }
}
