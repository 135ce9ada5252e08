/* Functions, tests, and the filters that do not take strings. */
#include "base/utf8.h"
#include "template/internal.h"

#include <ctype.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <utf8proc.h>

/* ---------------------------------------------------------------- functions */

static tare_status do_raise(struct call *c, struct value *out)
{
    tare_text text;
    *out = (struct value){0};
    TRY(template_as_text(c->r, c->line, *c->arg[0], &text));
    return render_fail(c->r, c->line, "the template refuses these messages: %.*s", (int)(text.size < 500 ? text.size : 500),
                       text.data);
}

static tare_status do_namespace(struct call *c, struct value *out)
{
    TRY(value_new_dict(c->r, c->line, out));
    out->dict->namespace = true;
    const struct value *from = c->arg[0];
    if (from && (from->type != V_DICT || from->dict->namespace))
        return render_fail(c->r, c->line, "namespace takes keywords or a dict");
    if (from)
        for (int64_t i = 0; i < from->dict->n; i++)
            TRY(value_dict_put(c->r, c->line, out->dict, from->dict->entries[i].key, from->dict->entries[i].value));
    for (int64_t i = 0; i < c->named->n; i++)
        TRY(value_dict_put(c->r, c->line, out->dict, c->named->entries[i].key, c->named->entries[i].value));
    return TARE_OK;
}

static tare_status do_dict(struct call *c, struct value *out)
{
    TRY(do_namespace(c, out));
    out->dict->namespace = false;
    return TARE_OK;
}

static tare_status do_range(struct call *c, struct value *out)
{
    int64_t bound[3] = {0, 0, 1};
    for (int k = 0; k < 3; k++) {
        if (!c->arg[k]) continue;
        if (c->arg[k]->type != V_INT)
            return render_fail(c->r, c->line, "range needs whole numbers, not %s", value_type_name(*c->arg[k]));
        bound[k] = c->arg[k]->i;
    }
    if (!c->arg[1]) {
        bound[1] = bound[0];
        bound[0] = 0;
    }
    const int64_t limit = 1 << 30, by = bound[2];
    for (int k = 0; k < 3; k++)
        if (bound[k] > limit || bound[k] < -limit) return render_fail(c->r, c->line, "range reaches too far");
    if (!by) return render_fail(c->r, c->line, "range cannot go in steps of 0");
    const int64_t span = by > 0 ? bound[1] - bound[0] : bound[0] - bound[1], stride = by > 0 ? by : -by;
    const int64_t n = span > 0 ? (span - 1) / stride + 1 : 0;
    if (n > 100000) return render_fail(c->r, c->line, "range of more than 100000 numbers");
    TRY(value_new_list(c->r, c->line, n, out));
    for (int64_t i = 0; i < n; i++) out->list->items[i] = value_int(bound[0] + i * by);
    return TARE_OK;
}

static tare_status do_strftime(struct call *c, struct value *out)
{
    char format[128], text[256];
    const time_t now = (time_t)c->r->t->now;
    struct tm parts;
    if (c->arg[0]->type != V_STRING || c->arg[0]->s.size >= (int64_t)sizeof format)
        return render_fail(c->r, c->line, "strftime_now takes a short string");
    snprintf(format, sizeof format, "%.*s", (int)c->arg[0]->s.size, c->arg[0]->s.data);
    gmtime_r(&now, &parts);
    const size_t n = strftime(text, sizeof text, format, &parts);
    OWNED(str_free) struct str kept = {0};
    TRY(str_add(&kept, text, (int64_t)n, c->r->e));
    return template_keep_text(c->r, c->line, &kept, out);
}

/* ---------------------------------------------------------------- filters */

static tare_status filter_length(struct call *c, struct value *out)
{
    struct list *items;
    if (c->self.type == V_STRING) return *out = value_int(value_count_chars(c->self.s)), TARE_OK;
    TRY(value_iterate(c->r, c->line, c->self, &items));
    *out = value_int(items->n);
    return TARE_OK;
}

/* Reads the indent of tojson; -1: everything on one line. As in Python's json, a negative number
 * counts as 0: line breaks without spaces. */
static tare_status json_indent(const struct call *c, int64_t *indent)
{
    enum { MOST = 64 };
    const struct value *v = c->arg[0];
    *indent = -1;
    if (!v || v->type == V_NONE) return TARE_OK;
    if ((v->type != V_INT && v->type != V_BOOL) || v->i > MOST)
        return render_fail(c->r, c->line, "tojson takes an indent of at most %d spaces, as a number", MOST);
    *indent = v->i > 0 ? v->i : 0;
    return TARE_OK;
}

static tare_status filter_tojson(struct call *c, struct value *out)
{
    int64_t indent;
    TRY(json_indent(c, &indent));
    OWNED(str_free) struct str text = {0};
    TRY(print_json(c->r, c->line, c->self, indent, &text));
    return template_keep_text(c->r, c->line, &text, out);
}

static tare_status end_item(struct call *c, bool last, struct value *out)
{
    struct list *items;
    TRY(value_iterate(c->r, c->line, c->self, &items));
    *out = items->n ? items->items[last ? items->n - 1 : 0] : (struct value){.type = V_UNDEFINED, .s = {"item", 4}};
    return TARE_OK;
}

static tare_status filter_first(struct call *c, struct value *out)
{
    return end_item(c, false, out);
}

static tare_status filter_last(struct call *c, struct value *out)
{
    return end_item(c, true, out);
}

static tare_status filter_list(struct call *c, struct value *out)
{
    struct list *items;
    TRY(value_iterate(c->r, c->line, c->self, &items));
    TRY(value_new_list(c->r, c->line, items->n, out));
    for (int64_t i = 0; i < items->n; i++) out->list->items[i] = items->items[i];
    return TARE_OK;
}

static tare_status filter_reverse(struct call *c, struct value *out)
{
    const struct value back[3] = {{.type = V_NONE}, {.type = V_NONE}, {.type = V_INT, .i = -1}};
    if (c->self.type == V_STRING) return value_get_slice(c->r, c->line, c->self, back, out);
    TRY(filter_list(c, out));
    return value_get_slice(c->r, c->line, *out, back, out);
}

static tare_status filter_default(struct call *c, struct value *out)
{
    const bool falsy = c->arg[1] && value_truthy(*c->arg[1]) && !value_truthy(c->self);
    *out = c->self;
    if (c->self.type == V_UNDEFINED || falsy) *out = c->arg[0] ? *c->arg[0] : value_string("", 0);
    return TARE_OK;
}

static tare_status filter_string(struct call *c, struct value *out)
{
    out->type = V_STRING;
    return template_as_text(c->r, c->line, c->self, &out->s);
}

/* Maps c to ASCII as Python's int() and float() do: a digit of any script to its ASCII digit,
 * non-ASCII white space to a blank. */
static char plain_digit(int32_t c)
{
    int32_t zero = c;
    if (c < 127) return (char)c;
    if (value_is_python_space(c)) return ' ';
    if (utf8proc_category(c) != UTF8PROC_CATEGORY_ND) return '?';
    /* the digits of a script are consecutive, and sets may be adjacent */
    while (utf8proc_category(zero - 1) == UTF8PROC_CATEGORY_ND) zero--;
    return (char)('0' + (c - zero) % 10);
}

/* Copies t if it has only digits, signs, points and exponents; leaves out empty if Python's int()
 * and float() would not read a number. */
static tare_status plain_number(struct call *c, tare_text t, struct str *out)
{
    const unsigned char *p = (const unsigned char *)t.data, *end = p + t.size;
    TRY(render_spend(c->r, c->line, t.size / 4));
    while (p < end) {
        const char next = plain_digit(utf8_next(&p));
        TRY(str_add(out, &next, 1, c->r->e));
    }
    const char *s = out->data;
    int64_t from = 0, to = out->size, n = 0;
    while (from < to && isspace((unsigned char)s[from])) from++;
    while (to > from && isspace((unsigned char)s[to - 1])) to--;
    bool good = to > from;
    for (int64_t i = from; i < to; i++) {
        const bool between = i > from && i + 1 < to && isdigit((unsigned char)s[i - 1]) && isdigit((unsigned char)s[i + 1]);
        good = good && s[i] && (s[i] == '_' ? between : strchr("0123456789+-.eE", s[i]) != NULL);
        if (s[i] != '_') out->data[n++] = s[i];
    }
    if (good) out->data[n] = 0;
    out->size = good ? n : 0;
    return TARE_OK;
}

static tare_status filter_int(struct call *c, struct value *out)
{
    if (c->self.type == V_UNDEFINED) return render_fail(c->r, c->line, "'%.*s' is undefined", (int)c->self.s.size, c->self.s.data);
    *out = c->arg[0] ? *c->arg[0] : value_int(0);
    if (c->self.type == V_INT || c->self.type == V_BOOL) *out = value_int(c->self.i);
    if (c->self.type == V_FLOAT && isfinite(c->self.f) && fabs(c->self.f) >= 9e18)
        return render_fail(c->r, c->line, "a whole number does not fit in 64 bits");
    if (c->self.type == V_FLOAT && isfinite(c->self.f)) *out = value_int((int64_t)c->self.f);
    if (c->self.type != V_STRING) return TARE_OK;
    OWNED(str_free) struct str text = {0};
    struct err unused = {0};
    int64_t i;
    double f;
    TRY(plain_number(c, c->self.s, &text));
    if (!text.size) return TARE_OK;
    const tare_status whole = str_to_int(text.data, &i, &unused);
    const bool real = whole && !str_to_double(text.data, &f, &unused);
    if (whole == TARE_E_RANGE || (real && fabs(f) >= 9e18))
        return render_fail(c->r, c->line, "a whole number does not fit in 64 bits");
    if (!whole) *out = value_int(i);
    if (real) *out = value_int((int64_t)f);
    return TARE_OK;
}

static tare_status filter_abs(struct call *c, struct value *out)
{
    if (c->self.type == V_FLOAT) return *out = (struct value){.type = V_FLOAT, .f = fabs(c->self.f)}, TARE_OK;
    if (c->self.type != V_INT || c->self.i == INT64_MIN)
        return render_fail(c->r, c->line, "abs needs a number, not %s", value_type_name(c->self));
    *out = value_int(c->self.i < 0 ? -c->self.i : c->self.i);
    return TARE_OK;
}

/* Returns the members that a filter iterates over: none for any false value. */
static tare_status list_members(struct call *c, struct list **items)
{
    struct value none;
    if (value_truthy(c->self)) return value_iterate(c->r, c->line, c->self, items);
    TRY(value_new_list(c->r, c->line, 0, &none));
    *items = none.list;
    return TARE_OK;
}

/* Applies the test named by argument k, with the arguments after it, to v; without one tests for
 * truth. */
static tare_status passes_test(struct call *c, int k, struct value v, bool *out)
{
    struct value yes;
    *out = value_truthy(v);
    if (!c->arg[k]) return TARE_OK;
    const struct builtin *test = c->arg[k]->type == V_STRING ? template_find_test(c->arg[k]->s) : NULL;
    if (!test) return render_fail(c->r, c->line, "a filter names a test that is not supported");
    struct call inner = {.r = c->r, .line = c->line, .self = v};
    for (int i = k + 1; i < MAX_ARGS; i++) inner.arg[i - k - 1] = c->arg[i];
    TRY(template_call_builtin(&inner, test, &yes));
    *out = value_truthy(yes);
    return TARE_OK;
}

static tare_status select_items(struct call *c, bool attribute, bool keep, struct value *out)
{
    struct list *items;
    TRY(list_members(c, &items));
    TRY(value_new_list(c->r, c->line, items->n, out));
    out->list->n = 0;
    if (attribute && c->arg[0]->type != V_STRING) return render_fail(c->r, c->line, "the name of an attribute is needed");
    for (int64_t i = 0; i < items->n; i++) {
        struct value v = items->items[i];
        bool yes;
        TRY(render_spend(c->r, c->line, 1));
        if (attribute) TRY(value_get_attribute(c->r, c->line, items->items[i], c->arg[0]->s, &v));
        TRY(passes_test(c, attribute, v, &yes));
        if (yes == keep) out->list->items[out->list->n++] = items->items[i];
    }
    return TARE_OK;
}

static tare_status filter_select(struct call *c, struct value *out)
{
    return select_items(c, false, true, out);
}

static tare_status filter_reject(struct call *c, struct value *out)
{
    return select_items(c, false, false, out);
}

static tare_status filter_selectattr(struct call *c, struct value *out)
{
    return select_items(c, true, true, out);
}

static tare_status filter_rejectattr(struct call *c, struct value *out)
{
    return select_items(c, true, false, out);
}

/* map(attribute="x"), or map("filter") */
static tare_status filter_map(struct call *c, struct value *out)
{
    struct list *items;
    const struct builtin *filter = NULL;
    TRY(list_members(c, &items));
    if (!c->arg[1]) {
        filter = c->arg[0] && c->arg[0]->type == V_STRING ? template_find_filter(c->arg[0]->s) : NULL;
        if (!filter) return render_fail(c->r, c->line, "map takes attribute=\"name\", or the name of a supported filter");
    } else if (c->arg[1]->type != V_STRING) {
        return render_fail(c->r, c->line, "the name of an attribute is needed");
    }
    TRY(value_new_list(c->r, c->line, items->n, out));
    for (int64_t i = 0; i < items->n; i++) {
        TRY(render_spend(c->r, c->line, 1));
        struct call inner = {.r = c->r, .line = c->line, .self = items->items[i]};
        if (filter)
            TRY(template_call_builtin(&inner, filter, &out->list->items[i]));
        else
            TRY(value_get_attribute(c->r, c->line, items->items[i], c->arg[1]->s, &out->list->items[i]));
    }
    return TARE_OK;
}

static const struct builtin filters[] = {
    {"length", filter_length, "", 0},
    {"count", filter_length, "", 0},
    {"tojson", filter_tojson, "indent", 0},
    {"first", filter_first, "", 0},
    {"last", filter_last, "", 0},
    {"list", filter_list, "", 0},
    {"reverse", filter_reverse, "", 0},
    {"default", filter_default, "default_value,boolean", 0},
    {"d", filter_default, "default_value,boolean", 0},
    {"string", filter_string, "", 0},
    {"safe", filter_string, "", 0},
    {"int", filter_int, "default", 0},
    {"abs", filter_abs, "", 0},
    {"select", filter_select, "test,a,b,c", 0},
    {"reject", filter_reject, "test,a,b,c", 0},
    {"selectattr", filter_selectattr, "attribute,test,a,b", 1},
    {"rejectattr", filter_rejectattr, "attribute,test,a,b", 1},
    {"map", filter_map, "filter,attribute", 0},
};

/* ---------------------------------------------------------------- tests */

#define TYPE_TEST(NAME, CONDITION)                                                                                                 \
    static tare_status NAME(struct call *c, struct value *out)                                                                     \
    {                                                                                                                              \
        const struct value v = c->self;                                                                                            \
        *out = value_bool(CONDITION);                                                                                              \
        return TARE_OK;                                                                                                            \
    }

TYPE_TEST(is_defined, v.type != V_UNDEFINED)
TYPE_TEST(is_undefined, v.type == V_UNDEFINED)
TYPE_TEST(is_none, v.type == V_NONE)
TYPE_TEST(is_string, v.type == V_STRING)
TYPE_TEST(is_boolean, v.type == V_BOOL)
TYPE_TEST(is_integer, v.type == V_INT)
TYPE_TEST(is_float, v.type == V_FLOAT)
TYPE_TEST(is_number, v.type == V_INT || v.type == V_FLOAT || v.type == V_BOOL)
TYPE_TEST(is_mapping, v.type == V_DICT && !v.dict->namespace)
TYPE_TEST(is_iterable, v.type == V_STRING || v.type == V_LIST || v.type == V_UNDEFINED || (v.type == V_DICT && !v.dict->namespace))
TYPE_TEST(is_sequence, v.type == V_STRING || v.type == V_LIST || v.type == V_UNDEFINED || (v.type == V_DICT && !v.dict->namespace))
TYPE_TEST(is_true, v.type == V_BOOL && v.i)
TYPE_TEST(is_false, v.type == V_BOOL && !v.i)

static tare_status compare_values(struct call *c, enum operation op, struct value *out)
{
    return value_binary(c->r, c->line, op, c->self, *c->arg[0], out);
}

static tare_status is_equal(struct call *c, struct value *out)
{
    return compare_values(c, OP_EQ, out);
}

static tare_status is_unequal(struct call *c, struct value *out)
{
    return compare_values(c, OP_NE, out);
}

static tare_status is_less(struct call *c, struct value *out)
{
    return compare_values(c, OP_LT, out);
}

static tare_status is_greater(struct call *c, struct value *out)
{
    return compare_values(c, OP_GT, out);
}

static tare_status is_in(struct call *c, struct value *out)
{
    return compare_values(c, OP_IN, out);
}

static tare_status test_remainder(struct call *c, struct value by, int64_t rest, struct value *out)
{
    TRY(value_binary(c->r, c->line, OP_MOD, c->self, by, out));
    *out = value_bool(out->type == V_INT ? out->i == rest : out->f == (double)rest);
    return TARE_OK;
}

static tare_status is_divisible(struct call *c, struct value *out)
{
    return test_remainder(c, *c->arg[0], 0, out);
}

static tare_status is_even(struct call *c, struct value *out)
{
    return test_remainder(c, value_int(2), 0, out);
}

static tare_status is_odd(struct call *c, struct value *out)
{
    return test_remainder(c, value_int(2), 1, out);
}

static const struct builtin tests[] = {
    {"defined", is_defined, "", 0},   {"undefined", is_undefined, "", 0},
    {"none", is_none, "", 0},         {"string", is_string, "", 0},
    {"boolean", is_boolean, "", 0},   {"integer", is_integer, "", 0},
    {"float", is_float, "", 0},       {"number", is_number, "", 0},
    {"mapping", is_mapping, "", 0},   {"iterable", is_iterable, "", 0},
    {"sequence", is_sequence, "", 0}, {"true", is_true, "", 0},
    {"false", is_false, "", 0},       {"equalto", is_equal, "other", 1},
    {"eq", is_equal, "other", 1},     {"ne", is_unequal, "other", 1},
    {"lt", is_less, "other", 1},      {"lessthan", is_less, "other", 1},
    {"gt", is_greater, "other", 1},   {"greaterthan", is_greater, "other", 1},
    {"in", is_in, "seq", 1},          {"divisibleby", is_divisible, "num", 1},
    {"even", is_even, "", 0},         {"odd", is_odd, "", 0},
};

static const struct builtin functions[] = {
    {"raise_exception", do_raise, "message", 1}, {"namespace", do_namespace, "*", 0},        {"dict", do_dict, "*", 0},
    {"range", do_range, "start,stop,step", 1},   {"strftime_now", do_strftime, "format", 1},
};

#define FIND_IN(TABLE, NAME)                                                                                                       \
    for (size_t i = 0; i < sizeof(TABLE) / sizeof *(TABLE); i++)                                                                   \
        if (value_text_is((NAME), (TABLE)[i].name)) return &(TABLE)[i];                                                            \
    return NULL

static const struct builtin *find_plain_filter(tare_text name)
{
    FIND_IN(filters, name);
}

const struct builtin *template_find_filter(tare_text name)
{
    const struct builtin *b = find_plain_filter(name);
    return b ? b : template_find_string_filter(name);
}

const struct builtin *template_find_test(tare_text name)
{
    FIND_IN(tests, name);
}

const struct builtin *template_find_function(tare_text name)
{
    FIND_IN(functions, name);
}
