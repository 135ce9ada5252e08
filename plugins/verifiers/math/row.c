/* The row's fields that change how one pair is judged, read from its JSON text without building a tree. */
#define _GNU_SOURCE /* memmem */
#include "math.h"

#include <string.h>

static int64_t skip_string(tare_text t, int64_t i) /* i at the opening quote */
{
    for (i++; i < t.size && t.data[i] != '"'; i++)
        if (t.data[i] == '\\') i++;
    return i < t.size ? i + 1 : t.size;
}

/* The value of a key of the outermost object; size 0: not there. Only flat values and arrays are of interest. */
static tare_text field(tare_text t, const char *key)
{
    int depth = 0;
    if (!memmem(t.data, (size_t)t.size, key, strlen(key))) return (tare_text){0};
    for (int64_t i = 0; i < t.size;) {
        const char c = t.data[i];
        if (c == '"') {
            const int64_t end = skip_string(t, i);
            int64_t k = end;
            while (k < t.size && text_is_space(t.data[k])) k++;
            if (depth == 1 && k < t.size && t.data[k] == ':') {
                const bool wanted = text_equal(text_slice(t, i + 1, end - 1), text_of(key), false);
                for (k++; k < t.size && text_is_space(t.data[k]);) k++;
                if (wanted) {
                    int64_t v = k, nested = 0;
                    while (v < t.size && (nested || !strchr(",}", t.data[v]))) {
                        if (t.data[v] == '"') {
                            v = skip_string(t, v);
                            continue;
                        }
                        nested += t.data[v] == '[' ? 1 : t.data[v] == ']' ? -1 : 0;
                        v++;
                    }
                    return text_trim(text_slice(t, k, v));
                }
                i = k;
                continue;
            }
            i = end;
            continue;
        }
        depth += c == '{' || c == '[' ? 1 : c == '}' || c == ']' ? -1 : 0;
        i++;
    }
    return (tare_text){0};
}

static bool flag(tare_text row, const char *key, bool *out)
{
    const tare_text v = field(row, key);
    if (text_equal(v, text_of("true"), false)) return *out = true, true;
    if (text_equal(v, text_of("false"), false)) return *out = false, true;
    return false;
}

static bool number(tare_text row, const char *key, int64_t *out)
{
    const tare_text v = field(row, key);
    int64_t x = 0;
    if (!v.size || v.size > 9) return false;
    for (int64_t i = 0; i < v.size; i++) {
        if (!text_is_digit(v.data[i])) return false;
        x = x * 10 + (v.data[i] - '0');
    }
    return *out = x, true;
}

static bool holds(tare_text list, const char *word)
{
    for (int64_t i = 0; i < list.size; i++)
        if (text_starts(list, i, word, false)) return true;
    return false;
}

void row_options(struct options *o, tare_text row)
{
    if (!row.size) return;
    if (flag(row, "gold_is_latex", &o->gold_latex)) o->gold_auto = false;
    flag(row, "strict", &o->strict);
    flag(row, "allow_set_relation_comp", &o->allow_set_relation);
    number(row, "boxed_priority", &o->boxed_priority);
    number(row, "float_rounding", &o->rounding);
    const tare_text extract = field(row, "extract");
    if (extract.size && extract.data[0] == '[') {
        o->use_latex = holds(extract, "\"latex\"");
        o->use_expr = holds(extract, "\"expr\"");
    }
}
