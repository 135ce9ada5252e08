/* Functions, and the filters of single values. */
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

/* Makes an object with these entries, which cannot be printed or iterated over. */
static tare_status new_object(struct call *c, int object, struct value *out)
{
    TRY(value_new_dict(c->r, c->line, out));
    out->dict->namespace = true;
    out->dict->object = object;
    return TARE_OK;
}

static tare_status set_entry(struct call *c, struct dict *d, const char *key, struct value v)
{
    return value_dict_put(c->r, c->line, d, (tare_text){key, (int64_t)strlen(key)}, v);
}

static tare_status do_cycler(struct call *c, struct value *out)
{
    struct value items;
    int64_t n = 0;
    while (n < MAX_ARGS && c->arg[n]) n++;
    if (!n || c->named->n) return render_fail(c->r, c->line, "cycler needs at least one item, and no keywords");
    TRY(value_new_list(c->r, c->line, n, &items));
    items.list->tuple = true;
    for (int64_t i = 0; i < n; i++) items.list->items[i] = *c->arg[i];
    TRY(new_object(c, OBJECT_CYCLER, out));
    TRY(set_entry(c, out->dict, "items", items));
    TRY(set_entry(c, out->dict, "pos", value_int(0)));
    return set_entry(c, out->dict, "current", items.list->items[0]);
}

static tare_status move_cycler(struct call *c, bool back, struct value *out)
{
    if (c->self.type != V_DICT || c->self.dict->object != OBJECT_CYCLER)
        return render_fail(c->r, c->line, "%s is not a cycler", value_type_name(c->self));
    const struct list *items = value_dict_find(c->self.dict, (tare_text){"items", 5})->list;
    const int64_t at = value_dict_find(c->self.dict, (tare_text){"pos", 3})->i, next = back ? 0 : (at + 1) % items->n;
    *out = back ? (struct value){.type = V_NONE} : items->items[at];
    TRY(set_entry(c, c->self.dict, "pos", value_int(next)));
    return set_entry(c, c->self.dict, "current", items->items[next]);
}

static tare_status do_next(struct call *c, struct value *out)
{
    return move_cycler(c, false, out);
}

static tare_status do_reset(struct call *c, struct value *out)
{
    return move_cycler(c, true, out);
}

static tare_status do_joiner(struct call *c, struct value *out)
{
    TRY(new_object(c, OBJECT_JOINER, out));
    TRY(set_entry(c, out->dict, "sep", c->arg[0] ? *c->arg[0] : value_string(", ", 2)));
    return set_entry(c, out->dict, "used", value_bool(false));
}

tare_status template_call_joiner(struct call *c, struct value *out)
{
    *out = *value_dict_find(c->self.dict, (tare_text){"sep", 3});
    if (!value_dict_find(c->self.dict, (tare_text){"used", 4})->i) *out = value_string("", 0);
    return set_entry(c, c->self.dict, "used", value_bool(true));
}

static tare_status need_loop(struct call *c)
{
    if (c->self.type == V_DICT && c->self.dict->loop) return TARE_OK;
    return render_fail(c->r, c->line, "%s is not the variable loop", value_type_name(c->self));
}

static tare_status do_cycle(struct call *c, struct value *out) /* loop.cycle("odd", "even") */
{
    int64_t n = 0;
    TRY(need_loop(c));
    while (n < MAX_ARGS && c->arg[n]) n++;
    *out = *c->arg[value_dict_find(c->self.dict, (tare_text){"index0", 6})->i % n];
    return TARE_OK;
}

static tare_status do_changed(struct call *c, struct value *out) /* loop.changed(x) */
{
    struct value now;
    bool same = false;
    int64_t n = 0;
    TRY(need_loop(c));
    while (n < MAX_ARGS && c->arg[n]) n++;
    TRY(value_new_list(c->r, c->line, n, &now));
    for (int64_t i = 0; i < n; i++) now.list->items[i] = *c->arg[i];
    if (c->self.dict->changed->type != V_UNDEFINED) TRY(value_equal(c->r, c->line, *c->self.dict->changed, now, &same));
    *c->self.dict->changed = now;
    *out = value_bool(!same);
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

/* Reads the indent of tojson: a text, or a number of spaces. As in Python's json, a negative number
 * counts as 0: line breaks without spaces. */
static tare_status json_indent(const struct call *c, const struct value *v, tare_text *out)
{
    enum { MOST = 64 };
    static const char spaces[MOST + 1] = "                                                                ";
    if (!v || v->type == V_NONE) return TARE_OK;
    if (v->type == V_STRING) return *out = (tare_text){v->s.size ? v->s.data : "", v->s.size}, TARE_OK;
    if ((v->type != V_INT && v->type != V_BOOL) || v->i > MOST)
        return render_fail(c->r, c->line, "tojson takes an indent of at most %d spaces, as a number, or a string", MOST);
    *out = (tare_text){spaces, v->i > 0 ? v->i : 0};
    return TARE_OK;
}

/* tojson of transformers, whose parameters are those of json.dumps */
static tare_status filter_tojson(struct call *c, struct value *out)
{
    struct json_style style = {.ascii = c->arg[0] && value_truthy(*c->arg[0]),
                               .sorted = c->arg[3] && value_truthy(*c->arg[3]),
                               .item = {", ", 2},
                               .key = {": ", 2}};
    TRY(json_indent(c, c->arg[1], &style.indent));
    if (style.indent.data) style.item.size = 1;
    if (c->arg[2] && c->arg[2]->type != V_NONE) {
        const struct list *both = c->arg[2]->type == V_LIST ? c->arg[2]->list : NULL;
        if (!both || both->n != 2 || both->items[0].type != V_STRING || both->items[1].type != V_STRING)
            return render_fail(c->r, c->line, "tojson takes two strings as separators, as in separators=(',', ':')");
        style.item = both->items[0].s;
        style.key = both->items[1].s;
    }
    OWNED(str_free) struct str text = {0};
    TRY(print_json(c->r, c->line, c->self, &style, &text));
    return template_keep_text(c->r, c->line, &text, out);
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

static tare_status filter_float(struct call *c, struct value *out)
{
    double f;
    *out = c->arg[0] ? *c->arg[0] : (struct value){.type = V_FLOAT};
    if (c->self.type == V_UNDEFINED) return render_fail(c->r, c->line, "'%.*s' is undefined", (int)c->self.s.size, c->self.s.data);
    if (c->self.type == V_FLOAT) *out = c->self;
    if (c->self.type == V_INT || c->self.type == V_BOOL) *out = (struct value){.type = V_FLOAT, .f = (double)c->self.i};
    if (c->self.type != V_STRING) return TARE_OK;
    OWNED(str_free) struct str text = {0};
    struct err unused = {0};
    TRY(plain_number(c, c->self.s, &text));
    if (text.size && !str_to_double(text.data, &f, &unused)) *out = (struct value){.type = V_FLOAT, .f = f};
    return TARE_OK;
}

/* Rounds to a number of decimals: to the nearest as Python's round(), or up or down. */
static tare_status filter_round(struct call *c, struct value *out)
{
    const int64_t places = c->arg[0] && c->arg[0]->type == V_INT ? c->arg[0]->i : 0;
    const tare_text how = c->arg[1] && c->arg[1]->type == V_STRING ? c->arg[1]->s : (tare_text){"common", 6};
    const bool whole = c->self.type == V_INT || c->self.type == V_BOOL, up = value_text_is(how, "ceil"),
               down = value_text_is(how, "floor");
    char text[400];
    if (!whole && c->self.type != V_FLOAT)
        return render_fail(c->r, c->line, "round needs a number, not %s", value_type_name(c->self));
    if ((!up && !down && !value_text_is(how, "common")) || places < -15 || places > 30)
        return render_fail(c->r, c->line, "round takes -15 to 30 decimals, and the method common, ceil or floor");
    if (whole && places >= 0 && !up && !down) return *out = value_int(c->self.i), TARE_OK;
    const double x = whole ? (double)c->self.i : c->self.f, unit = pow(10, (double)places);
    /* Python's math.ceil and math.floor give an int, which has no negative zero */
    double y = ((up ? ceil(x * unit) : floor(x * unit)) + 0.0) / unit;
    if (!up && !down && places < 0) y = nearbyint(x * unit) / unit;
    if (!up && !down && places >= 0) {
        snprintf(text, sizeof text, "%.*f", (int)places, x);
        y = strtod(text, NULL);
    }
    *out = whole && !up && !down ? value_int((int64_t)y) : (struct value){.type = V_FLOAT, .f = y};
    return TARE_OK;
}

/* The attribute of an object, not the entry of a dict. */
static tare_status filter_attr(struct call *c, struct value *out)
{
    if (c->arg[0]->type != V_STRING) return render_fail(c->r, c->line, "the name of an attribute is needed");
    const tare_text name = c->arg[0]->s;
    if (!value_is_plain_dict(c->self)) return value_get_attribute(c->r, c->line, c->self, name, out);
    *out = (struct value){.type = template_is_reading_method(name) ? V_METHOD : V_UNDEFINED, .s = name};
    return TARE_OK;
}

static const struct builtin filters[] = {
    {"length", filter_length, "", 0},
    {"count", filter_length, "", 0},
    {"tojson", filter_tojson, "ensure_ascii,indent,separators,sort_keys", 0},
    {"default", filter_default, "default_value,boolean", 0},
    {"d", filter_default, "default_value,boolean", 0},
    {"string", filter_string, "", 0},
    {"safe", filter_string, "", 0},
    {"int", filter_int, "default", 0},
    {"float", filter_float, "default", 0},
    {"abs", filter_abs, "", 0},
    {"round", filter_round, "precision,method", 0},
    {"attr", filter_attr, "name", 1},
};

static tare_status do_lipsum(struct call *c, struct value *out)
{
    *out = (struct value){0};
    return render_fail(c->r, c->line, "lipsum() gives random text and is not supported");
}

static const struct builtin functions[] = {
    {"lipsum", do_lipsum, "*", 0},
    {"raise_exception", do_raise, "message", 1},
    {"namespace", do_namespace, "*", 0},
    {"dict", do_dict, "*", 0},
    {"range", do_range, "start,stop,step", 1},
    {"strftime_now", do_strftime, "format", 1},
    {"cycler", do_cycler, "*", 0},
    {"joiner", do_joiner, "sep", 0},
};

/* methods of the objects above and of loop */
static const struct builtin object_methods[] = {
    {"next", do_next, "", 0},
    {"reset", do_reset, "", 0},
    {"cycle", do_cycle, "a,b,c,d,e,f,g,h", 1},
    {"changed", do_changed, "a,b,c,d,e,f,g,h", 0},
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
    if (!b) b = template_find_list_filter(name);
    if (!b) b = template_find_format_filter(name);
    return b ? b : template_find_string_filter(name);
}

const struct builtin *template_find_function(tare_text name)
{
    FIND_IN(functions, name);
}

const struct builtin *template_find_object_method(tare_text name)
{
    FIND_IN(object_methods, name);
}
