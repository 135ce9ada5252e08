/* Values as text: str() and repr() of Python, and JSON. */
#include "base/utf8.h"
#include "template/internal.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <utf8proc.h>

/* Writes repr() of a float: the shortest digits that read back, with an exponent below 1e-4 and
 * from 1e16. */
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

static bool is_printable(int32_t c)
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

/* Writes \uXXXX, as a pair of surrogates beyond U+FFFF. */
static tare_status print_unicode(struct render *r, int32_t c, struct str *out)
{
    if (c < 0x10000) return str_addf(out, r->e, "\\u%04x", (unsigned)c);
    const unsigned rest = (unsigned)c - 0x10000;
    return str_addf(out, r->e, "\\u%04x\\u%04x", 0xD800 + (rest >> 10), 0xDC00 + (rest & 0x3FF));
}

static tare_status print_quoted(struct render *r, tare_text t, bool json, bool ascii, struct str *out)
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
        else if (ascii && c > '~')
            TRY(print_unicode(r, c, out));
        else if (json ? c < ' ' : !is_printable(c))
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

/* Output format: JSON, or Python's repr() (json NULL). */
struct writing {
    struct render *r;
    int line;
    const struct json_style *json;
    struct str *out;
};

static tare_status write_break(const struct writing *w, int level)
{
    if (!w->json || !w->json->indent.data) return TARE_OK;
    TRY(render_spend(w->r, w->line, w->json->indent.size * level / 16));
    TRY(str_add(w->out, "\n", 1, w->r->e));
    for (int i = 0; i < level; i++) TRY(str_add(w->out, w->json->indent.data, w->json->indent.size, w->r->e));
    return TARE_OK;
}

static tare_status write_quoted(const struct writing *w, tare_text text)
{
    TRY(render_spend(w->r, w->line, text.size / 16));
    return print_quoted(w->r, text, w->json != NULL, w->json && w->json->ascii, w->out);
}

static tare_status write_value(const struct writing *w, struct value v, int level);

static tare_status write_item(const struct writing *w, int64_t i, const tare_text *key, struct value v, int level)
{
    const tare_text item = w->json ? w->json->item : (tare_text){", ", 2}, colon = w->json ? w->json->key : (tare_text){": ", 2};
    if (i) TRY(str_add(w->out, item.data, item.size, w->r->e));
    TRY(write_break(w, level));
    if (key) {
        TRY(write_quoted(w, *key));
        TRY(str_add(w->out, colon.data, colon.size, w->r->e));
    }
    return write_value(w, v, level);
}

static int by_key(const void *a, const void *b)
{
    const tare_text x = ((const struct dict_entry *)a)->key, y = ((const struct dict_entry *)b)->key;
    const int order = memcmp(x.data, y.data, (size_t)(x.size < y.size ? x.size : y.size));
    return order ? order : (x.size > y.size) - (x.size < y.size);
}

/* Replaces a dict by a copy in the order of its keys. */
static tare_status sort_entries(const struct writing *w, struct value *v)
{
    struct value copy;
    const struct dict *d = v->dict;
    TRY(render_spend(w->r, w->line, 4 * d->n));
    TRY(value_new_dict(w->r, w->line, &copy));
    TRY(render_take(w->r, w->line, (d->n + 1) * (int64_t)sizeof *d->entries, (void **)&copy.dict->entries));
    copy.dict->n = copy.dict->capacity = d->n;
    if (d->n) memcpy(copy.dict->entries, d->entries, (size_t)d->n * sizeof *d->entries);
    if (d->n) qsort(copy.dict->entries, (size_t)d->n, sizeof *d->entries, by_key);
    *v = copy;
    return TARE_OK;
}

static tare_status write_value(const struct writing *w, struct value v, int level)
{
    struct render *r = w->r;
    if (level > MAX_NESTING) return render_fail(r, w->line, "a value is nested more than %d levels deep", MAX_NESTING);
    TRY(render_spend(r, w->line, 1));
    switch (v.type) {
    case V_UNDEFINED:
        if (!w->json) return str_add(w->out, "Undefined", -1, r->e);
        return render_fail(r, w->line, "'%.*s' is undefined and cannot be written as JSON", (int)v.s.size, v.s.data);
    case V_NONE:
        return str_add(w->out, w->json ? "null" : "None", -1, r->e);
    case V_BOOL:
        if (w->json) return str_add(w->out, v.i ? "true" : "false", -1, r->e);
        return str_add(w->out, v.i ? "True" : "False", -1, r->e);
    case V_INT:
        return str_addf(w->out, r->e, "%lld", (long long)v.i);
    case V_FLOAT:
        return print_float(r, v.f, w->json != NULL, w->out);
    case V_STRING:
        return write_quoted(w, v.s);
    case V_LIST:
        TRY(str_add(w->out, v.list->tuple && !w->json ? "(" : "[", 1, r->e));
        for (int64_t i = 0; i < v.list->n; i++) TRY(write_item(w, i, NULL, v.list->items[i], level + 1));
        if (v.list->n) TRY(write_break(w, level));
        if (v.list->tuple && !w->json) return str_add(w->out, v.list->n == 1 ? ",)" : ")", -1, r->e);
        return str_add(w->out, "]", 1, r->e);
    case V_METHOD:
        return template_fail_method(r, w->line, v.s);
    case V_FUNCTION:
        return render_fail(r, w->line, "'%s' is a function here, not a value; write %s() to call it", v.function->name,
                           v.function->name);
    case V_MACRO:
        return render_fail(r, w->line, "'%.*s' is a macro here, not a value; write %.*s() to call it", (int)v.macro->name.size,
                           v.macro->name.data, (int)v.macro->name.size, v.macro->name.data);
    case V_DICT:
        break;
    }
    if (v.dict->namespace || v.dict->loop)
        return render_fail(r, w->line, "%s cannot be %s", v.dict->loop ? "the variable loop" : "a namespace",
                           w->json ? "written as JSON" : "printed");
    TRY(str_add(w->out, "{", 1, r->e));
    if (w->json && w->json->sorted) TRY(sort_entries(w, &v));
    for (int64_t i = 0; i < v.dict->n; i++) TRY(write_item(w, i, &v.dict->entries[i].key, v.dict->entries[i].value, level + 1));
    if (v.dict->n) TRY(write_break(w, level));
    return str_add(w->out, "}", 1, r->e);
}

tare_status print_text(struct render *r, int line, struct value v, struct str *out)
{
    if (v.type == V_UNDEFINED) return TARE_OK;
    if (v.type != V_STRING) return write_value(&(struct writing){r, line, NULL, out}, v, 0);
    TRY(render_spend(r, line, v.s.size / 16));
    return str_add(out, v.s.data, v.s.size, r->e);
}

tare_status print_json(struct render *r, int line, struct value v, const struct json_style *style, struct str *out)
{
    return write_value(&(struct writing){r, line, style, out}, v, 0);
}

tare_status template_keep_text(struct render *r, int line, const struct str *text, struct value *out)
{
    char *copy = NULL;
    TRY(render_take(r, line, text->size + 1, (void **)&copy));
    if (text->size) memcpy(copy, text->data, (size_t)text->size);
    *out = value_string(copy, text->size);
    return TARE_OK;
}

tare_status template_as_text(struct render *r, int line, struct value v, tare_text *out)
{
    *out = v.s;
    if (v.type == V_STRING) return TARE_OK;
    OWNED(str_free) struct str text = {0};
    struct value kept = {0};
    TRY(print_text(r, line, v, &text));
    TRY(template_keep_text(r, line, &text, &kept));
    *out = kept.s;
    return TARE_OK;
}
