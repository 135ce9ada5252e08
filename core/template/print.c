/* Values as text: str() and repr() of Python, and JSON. */
#include "base/utf8.h"
#include "template/internal.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <utf8proc.h>

/* repr() of a float: the shortest digits that read back, an exponent below 1e-4 and from 1e16 on. */
static tare_status print_float(struct render *r, double x, bool json, struct str *out)
{
    if (isnan(x)) return str_add(out, json ? "NaN" : "nan", -1, r->e);
    if (isinf(x)) return str_addf(out, r->e, "%s%s", x < 0 ? "-" : "", json ? "Infinity" : "inf");
    char text[32];
    int digits = 1;
    for (; digits <= 17; digits++) {
        snprintf(text, sizeof text, "%.*e", digits - 1, x);
        if (strtod(text, NULL) == x) break;
    }
    const int exponent = atoi(strchr(text, 'e') + 1);
    if (exponent < -4 || exponent >= 16) return str_add(out, text, -1, r->e);
    const int decimals = digits - 1 - exponent;
    return str_addf(out, r->e, "%.*f", decimals > 1 ? decimals : 1, x);
}

static bool printable(int32_t c)
{
    if (c < 0x80) return c >= ' ' && c < 0x7F;
    switch (utf8proc_category(c)) {
    case UTF8PROC_CATEGORY_CC:
    case UTF8PROC_CATEGORY_CF:
    case UTF8PROC_CATEGORY_CS:
    case UTF8PROC_CATEGORY_CO:
    case UTF8PROC_CATEGORY_CN:
    case UTF8PROC_CATEGORY_ZL:
    case UTF8PROC_CATEGORY_ZP:
    case UTF8PROC_CATEGORY_ZS:
        return false;
    default:
        return true;
    }
}

static tare_status print_quoted(struct render *r, tare_text t, bool json, struct str *out)
{
    const bool single = t.size && memchr(t.data, '\'', (size_t)t.size) && !memchr(t.data, '"', (size_t)t.size);
    const char quote = json || single ? '"' : '\'';
    TRY(str_add(out, &quote, 1, r->e));
    for (const unsigned char *p = (const unsigned char *)t.data, *end = p + t.size; p < end;) {
        const unsigned char *begin = p;
        const int32_t c = utf8_next(&p);
        if (c == quote || c == '\\')
            TRY(str_addf(out, r->e, "\\%c", (int)c));
        else if (c == '\n' || c == '\r' || c == '\t')
            TRY(str_add(out, c == '\n' ? "\\n" : c == '\r' ? "\\r" : "\\t", 2, r->e));
        else if (json && (c == '\b' || c == '\f'))
            TRY(str_add(out, c == '\b' ? "\\b" : "\\f", 2, r->e));
        else if (json ? c < ' ' : !printable(c))
            TRY(str_addf(out, r->e,
                         json || (c > 0xFF && c < 0x10000) ? "\\u%04x"
                         : c <= 0xFF                       ? "\\x%02x"
                                                           : "\\U%08x",
                         (unsigned)c));
        else
            TRY(str_add(out, (const char *)begin, p - begin, r->e));
    }
    return str_add(out, &quote, 1, r->e);
}

static tare_status print_repr(struct render *r, int line, struct value v, int depth, struct str *out)
{
    if (depth > MAX_NESTING) return render_fail(r, line, "a value is nested more than %d deep", MAX_NESTING);
    TRY(spend(r, line, 1));
    switch (v.type) {
    case V_UNDEFINED:
        return str_add(out, "Undefined", -1, r->e);
    case V_NONE:
        return str_add(out, "None", -1, r->e);
    case V_BOOL:
        return str_add(out, v.i ? "True" : "False", -1, r->e);
    case V_INT:
        return str_addf(out, r->e, "%lld", (long long)v.i);
    case V_FLOAT:
        return print_float(r, v.f, false, out);
    case V_STRING:
        TRY(spend(r, line, v.s.size / 16));
        return print_quoted(r, v.s, false, out);
    case V_LIST:
        TRY(str_add(out, "[", 1, r->e));
        for (int64_t i = 0; i < v.list->n; i++) {
            if (i) TRY(str_add(out, ", ", 2, r->e));
            TRY(print_repr(r, line, v.list->items[i], depth + 1, out));
        }
        return str_add(out, "]", 1, r->e);
    case V_DICT:
        break;
    }
    if (v.dict->namespace) return render_fail(r, line, "a namespace cannot be printed");
    TRY(str_add(out, "{", 1, r->e));
    for (int64_t i = 0; i < v.dict->n; i++) {
        if (i) TRY(str_add(out, ", ", 2, r->e));
        TRY(spend(r, line, v.dict->entries[i].key.size / 16));
        TRY(print_quoted(r, v.dict->entries[i].key, false, out));
        TRY(str_add(out, ": ", 2, r->e));
        TRY(print_repr(r, line, v.dict->entries[i].value, depth + 1, out));
    }
    return str_add(out, "}", 1, r->e);
}

tare_status print_text(struct render *r, int line, struct value v, struct str *out)
{
    if (v.type == V_UNDEFINED) return TARE_OK;
    if (v.type != V_STRING) return print_repr(r, line, v, 0, out);
    TRY(spend(r, line, v.s.size / 16));
    return str_add(out, v.s.data, v.s.size, r->e);
}

static tare_status json_break(struct render *r, int line, int64_t indent, int level, struct str *out)
{
    if (indent < 0) return TARE_OK;
    TRY(spend(r, line, indent * level / 16));
    TRY(str_add(out, "\n", 1, r->e));
    for (int64_t i = 0; i < indent * level; i++) TRY(str_add(out, " ", 1, r->e));
    return TARE_OK;
}

tare_status print_json(struct render *r, int line, struct value v, int64_t indent, int level, struct str *out)
{
    const char *comma = indent < 0 ? ", " : ",";
    if (level > MAX_NESTING) return render_fail(r, line, "a value is nested more than %d deep", MAX_NESTING);
    TRY(spend(r, line, 1));
    switch (v.type) {
    case V_UNDEFINED:
        return render_fail(r, line, "'%.*s' is undefined and cannot be written as JSON", (int)v.s.size, v.s.data);
    case V_NONE:
        return str_add(out, "null", -1, r->e);
    case V_BOOL:
        return str_add(out, v.i ? "true" : "false", -1, r->e);
    case V_INT:
        return str_addf(out, r->e, "%lld", (long long)v.i);
    case V_FLOAT:
        return print_float(r, v.f, true, out);
    case V_STRING:
        TRY(spend(r, line, v.s.size / 16));
        return print_quoted(r, v.s, true, out);
    case V_LIST:
        TRY(str_add(out, "[", 1, r->e));
        for (int64_t i = 0; i < v.list->n; i++) {
            if (i) TRY(str_add(out, comma, -1, r->e));
            TRY(json_break(r, line, indent, level + 1, out));
            TRY(print_json(r, line, v.list->items[i], indent, level + 1, out));
        }
        if (v.list->n) TRY(json_break(r, line, indent, level, out));
        return str_add(out, "]", 1, r->e);
    case V_DICT:
        break;
    }
    if (v.dict->namespace) return render_fail(r, line, "a namespace cannot be written as JSON");
    TRY(str_add(out, "{", 1, r->e));
    for (int64_t i = 0; i < v.dict->n; i++) {
        if (i) TRY(str_add(out, comma, -1, r->e));
        TRY(json_break(r, line, indent, level + 1, out));
        TRY(spend(r, line, v.dict->entries[i].key.size / 16));
        TRY(print_quoted(r, v.dict->entries[i].key, true, out));
        TRY(str_add(out, ": ", 2, r->e));
        TRY(print_json(r, line, v.dict->entries[i].value, indent, level + 1, out));
    }
    if (v.dict->n) TRY(json_break(r, line, indent, level, out));
    return str_add(out, "}", 1, r->e);
}

tare_status keep_text(struct render *r, int line, struct str *text, struct value *out)
{
    char *copy = NULL;
    const tare_status status = take(r, line, text->size + 1, (void **)&copy);
    if (!status && text->size) memcpy(copy, text->data, (size_t)text->size);
    *out = string_value(copy, text->size);
    str_free(text);
    return status;
}

tare_status as_text(struct render *r, int line, struct value v, tare_text *out)
{
    *out = v.s;
    if (v.type == V_STRING) return TARE_OK;
    struct str text = {0};
    struct value kept = {0};
    const tare_status status = print_text(r, line, v, &text);
    if (status) return str_free(&text), status;
    TRY(keep_text(r, line, &text, &kept));
    *out = kept.s;
    return TARE_OK;
}
