#define _GNU_SOURCE /* memmem */
/* Values of the template language, with Python's semantics. */
#include "base/utf8.h"
#include "template/internal.h"

#include <math.h>
#include <string.h>

bool value_text_is(tare_text t, const char *s)
{
    return t.size == (int64_t)strlen(s) && !memcmp(t.data, s, (size_t)t.size);
}

static bool same_text(tare_text a, tare_text b)
{
    return a.size == b.size && (!a.size || !memcmp(a.data, b.data, (size_t)a.size));
}

struct value value_string(const char *data, int64_t n)
{
    return (struct value){.type = V_STRING, .s = {data, n}};
}

struct value value_bool(bool b)
{
    return (struct value){.type = V_BOOL, .i = b};
}

struct value value_int(int64_t i)
{
    return (struct value){.type = V_INT, .i = i};
}

const char *value_type_name(struct value v)
{
    static const char *const names[] = {"undefined", "none",   "a bool",   "an int",     "a float", "a string",
                                        "a list",    "a dict", "a method", "a function", "a macro"};
    if (v.type == V_LIST && v.list->tuple) return "a tuple";
    return v.type == V_DICT && v.dict->namespace ? "a namespace" : names[v.type];
}

bool value_truthy(struct value v)
{
    switch (v.type) {
    case V_BOOL:
    case V_INT:
        return v.i != 0;
    case V_FLOAT:
        return v.f != 0;
    case V_STRING:
        return v.s.size > 0;
    case V_LIST:
        return v.list->n > 0;
    case V_DICT:
        return v.dict->n > 0 || v.dict->namespace;
    case V_METHOD:
    case V_FUNCTION:
    case V_MACRO:
        return true;
    default:
        return false;
    }
}

static bool is_number(struct value v)
{
    return v.type == V_BOOL || v.type == V_INT || v.type == V_FLOAT;
}

static bool is_whole(struct value v)
{
    return v.type == V_BOOL || v.type == V_INT;
}

static double number_value(struct value v)
{
    return v.type == V_FLOAT ? v.f : (double)v.i;
}

tare_status template_fail_method(struct render *r, int line, tare_text name)
{
    return render_fail(r, line, "'%.*s' is a method here, not a value; write %.*s() to call it", (int)name.size, name.data,
                       (int)name.size, name.data);
}

static tare_status equal_at(struct render *r, int line, struct value a, struct value b, int depth, bool *out)
{
    TRY(render_spend(r, line, 1));
    if (depth > MAX_NESTING) return render_fail(r, line, "a value is nested more than %d levels deep", MAX_NESTING);
    *out = false;
    if (is_number(a) && is_number(b)) {
        *out = a.type == V_FLOAT || b.type == V_FLOAT ? number_value(a) == number_value(b) : a.i == b.i;
    } else if (a.type != b.type) {
        return TARE_OK;
    } else if (a.type == V_METHOD) { /* methods are equal if they belong to the same dict */
        return template_fail_method(r, line, a.s);
    } else if (a.type == V_FUNCTION) {
        *out = a.function == b.function;
    } else if (a.type == V_MACRO) {
        *out = a.macro == b.macro;
    } else if (a.type == V_STRING) {
        *out = same_text(a.s, b.s);
    } else if (a.type == V_LIST) {
        *out = a.list->n == b.list->n && a.list->tuple == b.list->tuple;
        for (int64_t i = 0; i < a.list->n && *out; i++) TRY(equal_at(r, line, a.list->items[i], b.list->items[i], depth + 1, out));
    } else if (a.type == V_DICT && (a.dict->namespace || b.dict->namespace)) {
        *out = a.dict == b.dict;
    } else if (a.type == V_DICT) {
        *out = a.dict->n == b.dict->n;
        for (int64_t i = 0; i < a.dict->n && *out; i++) {
            const struct value *other = value_dict_find(b.dict, a.dict->entries[i].key);
            *out = other != NULL;
            if (other) TRY(equal_at(r, line, a.dict->entries[i].value, *other, depth + 1, out));
        }
    } else {
        *out = true;
    }
    return TARE_OK;
}

tare_status value_equal(struct render *r, int line, struct value a, struct value b, bool *out)
{
    return equal_at(r, line, a, b, 0, out);
}

tare_status value_new_list(struct render *r, int line, int64_t n, struct value *out)
{
    struct list *list;
    TRY(render_take(r, line, sizeof *list, (void **)&list));
    TRY(render_take(r, line, n * (int64_t)sizeof *list->items, (void **)&list->items));
    list->n = n;
    *out = (struct value){.type = V_LIST, .list = list};
    return TARE_OK;
}

tare_status value_new_dict(struct render *r, int line, struct value *out)
{
    out->type = V_DICT;
    return render_take(r, line, sizeof *out->dict, (void **)&out->dict);
}

struct value *value_dict_find(const struct dict *d, tare_text key)
{
    for (int64_t i = 0; i < d->n; i++)
        if (same_text(d->entries[i].key, key)) return &d->entries[i].value;
    return NULL;
}

tare_status value_dict_put(struct render *r, int line, struct dict *d, tare_text key, struct value v)
{
    struct value *old = value_dict_find(d, key);
    TRY(render_spend(r, line, d->n / 8));
    if (old) return *old = v, TARE_OK;
    if (d->n == d->capacity) {
        struct dict_entry *bigger;
        const int64_t capacity = d->capacity ? 2 * d->capacity : 8;
        TRY(render_take(r, line, capacity * (int64_t)sizeof *bigger, (void **)&bigger));
        if (d->n) memcpy(bigger, d->entries, (size_t)d->n * sizeof *bigger);
        d->entries = bigger;
        d->capacity = capacity;
    }
    d->entries[d->n++] = (struct dict_entry){key, v};
    return TARE_OK;
}

tare_status value_from_json(struct render *r, const json_t *j, int depth, struct value *out)
{
    if (depth > MAX_NESTING) return render_fail(r, 1, "a variable is nested more than %d levels deep", MAX_NESTING);
    switch (json_typeof(j)) {
    case JSON_NULL:
        *out = (struct value){.type = V_NONE};
        return TARE_OK;
    case JSON_TRUE:
    case JSON_FALSE:
        *out = value_bool(json_is_true(j));
        return TARE_OK;
    case JSON_INTEGER:
        *out = value_int(json_integer_value(j));
        return TARE_OK;
    case JSON_REAL:
        *out = (struct value){.type = V_FLOAT, .f = json_real_value(j)};
        return TARE_OK;
    case JSON_STRING:
        *out = value_string(json_string_value(j), (int64_t)json_string_length(j));
        return TARE_OK;
    case JSON_ARRAY:
        TRY(value_new_list(r, 1, (int64_t)json_array_size(j), out));
        for (int64_t i = 0; i < out->list->n; i++)
            TRY(value_from_json(r, json_array_get(j, (size_t)i), depth + 1, &out->list->items[i]));
        return TARE_OK;
    case JSON_OBJECT:
        TRY(value_new_dict(r, 1, out));
        for (void *i = json_object_iter((json_t *)j); i; i = json_object_iter_next((json_t *)j, i)) {
            struct value v;
            const char *key = json_object_iter_key(i);
            TRY(value_from_json(r, json_object_iter_value(i), depth + 1, &v));
            TRY(value_dict_put(r, 1, out->dict, (tare_text){key, (int64_t)strlen(key)}, v));
        }
        return TARE_OK;
    }
    return TARE_OK;
}

/* ---------------------------------------------------------------- parts of values */

bool value_is_python_space(int32_t c)
{
    return (c >= 9 && c <= 13) || (c >= 28 && c <= 32) || c == 0x85 || c == 0xA0 || c == 0x1680 || (c >= 0x2000 && c <= 0x200A) ||
           c == 0x2028 || c == 0x2029 || c == 0x202F || c == 0x205F || c == 0x3000;
}

int64_t value_count_chars(tare_text t)
{
    int64_t n = 0;
    for (int64_t i = 0; i < t.size; i++) n += (t.data[i] & 0xC0) != 0x80;
    return n;
}

tare_status value_iterate(struct render *r, int line, struct value v, struct list **out)
{
    struct value list;
    if (v.type == V_LIST) return *out = v.list, TARE_OK;
    if (v.type == V_UNDEFINED) {
        TRY(value_new_list(r, line, 0, &list));
    } else if (v.type == V_DICT && !v.dict->namespace) {
        TRY(value_new_list(r, line, v.dict->n, &list));
        for (int64_t i = 0; i < v.dict->n; i++) list.list->items[i] = (struct value){.type = V_STRING, .s = v.dict->entries[i].key};
    } else if (v.type == V_STRING) {
        TRY(render_spend(r, line, v.s.size));
        TRY(value_new_list(r, line, value_count_chars(v.s), &list));
        const unsigned char *p = (const unsigned char *)v.s.data;
        for (int64_t i = 0; i < list.list->n; i++) {
            const unsigned char *begin = p;
            utf8_next(&p);
            list.list->items[i] = value_string((const char *)begin, p - begin);
        }
    } else {
        return render_fail(r, line, "%s cannot be iterated over", value_type_name(v));
    }
    *out = list.list;
    return TARE_OK;
}

static struct value undefined_value(tare_text name)
{
    return (struct value){.type = V_UNDEFINED, .s = name};
}

bool value_is_plain_dict(struct value v)
{
    return v.type == V_DICT && !v.dict->namespace && !v.dict->loop;
}

tare_status value_get_attribute(struct render *r, int line, struct value v, tare_text name, struct value *out)
{
    if (v.type == V_UNDEFINED)
        return render_fail(r, line, "'%.*s' is undefined and has no '%.*s'", (int)v.s.size, v.s.data, (int)name.size, name.data);
    const struct value *found = v.type == V_DICT ? value_dict_find(v.dict, name) : NULL;
    *out = found ? *found : undefined_value(name);
    const bool method = v.type == V_STRING ? template_is_string_method(name)
                        : v.type == V_LIST ? template_is_list_method(name, v.list->tuple)
                                           : value_is_plain_dict(v) && template_is_reading_method(name);
    if (v.type == V_LIST && v.list->group && value_text_is(name, "grouper")) *out = v.list->items[0];
    if (v.type == V_LIST && v.list->group && value_text_is(name, "list")) *out = v.list->items[1];
    if (!found && method) *out = (struct value){.type = V_METHOD, .s = name};
    return TARE_OK;
}

/* Returns the character or item at index; negative indices count from the end. */
static tare_status at_index(struct render *r, int line, struct value v, int64_t index, struct value *out)
{
    struct list *items;
    TRY(value_iterate(r, line, v, &items));
    if (index < 0) index += items->n;
    *out = index >= 0 && index < items->n ? items->items[index] : undefined_value((tare_text){"item", 4});
    return TARE_OK;
}

tare_status value_get_item(struct render *r, int line, struct value v, struct value key, struct value *out)
{
    const bool integer = key.type == V_INT || key.type == V_BOOL;
    if (v.type == V_UNDEFINED) return render_fail(r, line, "'%.*s' is undefined and has no items", (int)v.s.size, v.s.data);
    if (key.type == V_STRING) return value_get_attribute(r, line, v, key.s, out);
    if (integer && (v.type == V_LIST || v.type == V_STRING)) return at_index(r, line, v, key.i, out);
    *out = undefined_value((tare_text){"item", 4});
    return TARE_OK;
}

static int64_t clamp_index(int64_t x, int64_t low, int64_t high)
{
    return x < low ? low : x > high ? high : x;
}

tare_status value_get_slice(struct render *r, int line, struct value v, const struct value bound[3], struct value *out)
{
    for (int k = 0; k < 3; k++)
        if (bound[k].type != V_NONE && !is_whole(bound[k]))
            return render_fail(r, line, "a slice needs whole numbers, not %s", value_type_name(bound[k]));
    if (v.type != V_LIST && v.type != V_STRING) return render_fail(r, line, "%s cannot be sliced", value_type_name(v));
    struct list *items;
    TRY(value_iterate(r, line, v, &items));
    const int64_t n = items->n, by = is_whole(bound[2]) ? bound[2].i : 1;
    if (!by || by < -(INT64_MAX / 4) || by > INT64_MAX / 4) return render_fail(r, line, "invalid slice step");
    const int64_t low = by > 0 ? 0 : -1, high = by > 0 ? n : n - 1;
    int64_t limits[2] = {by > 0 ? low : high, by > 0 ? high : low};
    for (int k = 0; k < 2; k++)
        if (is_whole(bound[k]))
            limits[k] = clamp_index(bound[k].i < 0 ? clamp_index(bound[k].i, -n - 1, 0) + n : bound[k].i, low, high);
    const int64_t span = by > 0 ? limits[1] - limits[0] : limits[0] - limits[1], stride = by > 0 ? by : -by;
    const int64_t count = span > 0 ? (span - 1) / stride + 1 : 0;
    TRY(render_spend(r, line, count));
    TRY(value_new_list(r, line, count, out));
    for (int64_t i = 0; i < count; i++) out->list->items[i] = items->items[limits[0] + i * by];
    out->list->tuple = items->tuple;
    if (v.type == V_LIST) return TARE_OK;
    OWNED(str_free) struct str text = {0};
    for (int64_t i = 0; i < count; i++) TRY(str_add(&text, out->list->items[i].s.data, out->list->items[i].s.size, r->e));
    return template_keep_text(r, line, &text, out);
}

/* ---------------------------------------------------------------- operators */

static tare_status concatenate_texts(struct render *r, int line, tare_text a, tare_text b, struct value *out)
{
    char *joined;
    TRY(render_take(r, line, a.size + b.size + 1, (void **)&joined));
    if (a.size) memcpy(joined, a.data, (size_t)a.size);
    if (b.size) memcpy(joined + a.size, b.data, (size_t)b.size);
    *out = value_string(joined, a.size + b.size);
    return TARE_OK;
}

static tare_status join_lists(struct render *r, int line, const struct list *a, const struct list *b, struct value *out)
{
    TRY(value_new_list(r, line, a->n + b->n, out));
    for (int64_t i = 0; i < a->n + b->n; i++) out->list->items[i] = i < a->n ? a->items[i] : b->items[i - a->n];
    out->list->tuple = a->tuple;
    return TARE_OK;
}

static tare_status repeat_list(struct render *r, int line, const struct list *a, int64_t times, struct value *out)
{
    int64_t n;
    if (__builtin_mul_overflow(a->n, times < 0 ? 0 : times, &n) || n > INT64_MAX / (int64_t)sizeof *a->items)
        return render_fail(r, line, "a repeated list is too long");
    TRY(value_new_list(r, line, n, out));
    for (int64_t i = 0; i < n; i++) out->list->items[i] = a->items[i % a->n];
    out->list->tuple = a->tuple;
    return TARE_OK;
}

static tare_status repeat_text(struct render *r, int line, tare_text t, int64_t times, struct value *out)
{
    int64_t size;
    if (times < 0) times = 0;
    char *text;
    if (__builtin_mul_overflow(t.size, times, &size)) return render_fail(r, line, "a repeated string is too long");
    TRY(render_take(r, line, size + 1, (void **)&text));
    if (t.size)
        for (int64_t i = 0; i < times; i++) memcpy(text + i * t.size, t.data, (size_t)t.size);
    *out = value_string(text, size);
    return TARE_OK;
}

static tare_status contains_value(struct render *r, int line, struct value item, struct value v, bool *out)
{
    *out = false;
    if (v.type == V_STRING) {
        if (item.type != V_STRING) return render_fail(r, line, "%s cannot be searched for in a string", value_type_name(item));
        TRY(render_spend(r, line, v.s.size / 16));
        *out = memmem(v.s.data, (size_t)v.s.size, item.s.data, (size_t)item.s.size) != NULL;
    } else if (v.type == V_DICT && !v.dict->namespace) {
        if (item.type == V_DICT || (item.type == V_LIST && !item.list->tuple))
            return render_fail(r, line, "%s cannot be the key of a dict", value_type_name(item));
        *out = item.type == V_STRING && value_dict_find(v.dict, item.s);
    } else {
        struct list *items;
        TRY(value_iterate(r, line, v, &items));
        TRY(render_spend(r, line, items->n));
        for (int64_t i = 0; i < items->n && !*out; i++) TRY(value_equal(r, line, item, items->items[i], out));
    }
    return TARE_OK;
}

static bool of_one_kind(struct value a, struct value b)
{
    return a.type == V_LIST && b.type == V_LIST && a.list->tuple == b.list->tuple;
}

static tare_status order_values(struct render *r, int line, enum operation op, struct value a, struct value b, struct value *out)
{
    int sign = 0, depth = 0;
    while (of_one_kind(a, b)) { /* compare the first items that differ, else the lengths */
        const struct list *x = a.list, *y = b.list;
        bool same = true;
        int64_t i = 0;
        for (; i < x->n && i < y->n && same; i += same) TRY(value_equal(r, line, x->items[i], y->items[i], &same));
        if (++depth > MAX_NESTING) return render_fail(r, line, "a value is nested more than %d levels deep", MAX_NESTING);
        a = same ? value_int(x->n) : x->items[i];
        b = same ? value_int(y->n) : y->items[i];
    }
    if (a.type == V_STRING && b.type == V_STRING) {
        const int64_t n = a.s.size < b.s.size ? a.s.size : b.s.size;
        sign = n ? memcmp(a.s.data, b.s.data, (size_t)n) : 0;
        if (!sign) sign = (a.s.size > b.s.size) - (a.s.size < b.s.size);
    } else if (is_number(a) && is_number(b)) {
        const bool real = a.type == V_FLOAT || b.type == V_FLOAT;
        sign = real ? (number_value(a) > number_value(b)) - (number_value(a) < number_value(b)) : (a.i > b.i) - (a.i < b.i);
    } else {
        return render_fail(r, line, "%s and %s cannot be ordered", value_type_name(a), value_type_name(b));
    }
    *out = value_bool(op == OP_LT ? sign < 0 : op == OP_LE ? sign <= 0 : op == OP_GT ? sign > 0 : sign >= 0);
    return TARE_OK;
}

static tare_status whole_arithmetic(struct render *r, int line, enum operation op, int64_t a, int64_t b, struct value *out)
{
    int64_t x = 0;
    bool over = false;
    if (op == OP_ADD) over = __builtin_add_overflow(a, b, &x);
    if (op == OP_SUB) over = __builtin_sub_overflow(a, b, &x);
    if (op == OP_MUL) over = __builtin_mul_overflow(a, b, &x);
    if (op == OP_FLOORDIV || op == OP_MOD) {
        if (!b) return render_fail(r, line, "division by zero");
        over = a == INT64_MIN && b == -1;
        if (!over) {
            const int64_t rest = a % b, carry = rest && (rest < 0) != (b < 0);
            x = op == OP_MOD ? rest + carry * b : a / b - carry;
        }
    }
    if (over) return render_fail(r, line, "a whole number does not fit in 64 bits");
    *out = value_int(x);
    return TARE_OK;
}

/* Computes x // y or x % y of floats as Python does: the remainder is exact and has the sign of
 * y. */
static double floor_divide(double x, double y, bool rest)
{
    double mod = fmod(x, y);
    const double div = (x - mod) / y - (mod != 0 && (y < 0) != (mod < 0) ? 1 : 0);
    if (mod == 0)
        mod = copysign(0, y);
    else if ((y < 0) != (mod < 0))
        mod += y;
    if (rest) return mod;
    if (div == 0) return copysign(0, x / y);
    return floor(div) + (div - floor(div) > 0.5 ? 1 : 0);
}

static tare_status eval_arithmetic(struct render *r, int line, enum operation op, struct value a, struct value b, struct value *out)
{
    if (!is_number(a) || !is_number(b)) {
        const struct value *unknown = a.type == V_UNDEFINED ? &a : b.type == V_UNDEFINED ? &b : NULL;
        if (unknown) return render_fail(r, line, "'%.*s' is undefined", (int)unknown->s.size, unknown->s.data);
        return render_fail(r, line, "%s and %s cannot be combined by this operator", value_type_name(a), value_type_name(b));
    }
    const bool real = a.type == V_FLOAT || b.type == V_FLOAT || op == OP_DIV;
    if (!real) return whole_arithmetic(r, line, op, a.i, b.i, out);
    const double x = number_value(a), y = number_value(b);
    if (op >= OP_DIV && op <= OP_MOD && y == 0) return render_fail(r, line, "division by zero");
    const double z = op == OP_ADD   ? x + y
                     : op == OP_SUB ? x - y
                     : op == OP_MUL ? x * y
                     : op == OP_DIV ? x / y
                                    : floor_divide(x, y, op == OP_MOD);
    *out = (struct value){.type = V_FLOAT, .f = z};
    return TARE_OK;
}

static tare_status raise_power(struct render *r, int line, struct value a, struct value b, struct value *out)
{
    if (!is_number(a) || !is_number(b)) return eval_arithmetic(r, line, OP_POW, a, b, out);
    if (is_whole(a) && is_whole(b) && b.i >= 0) {
        int64_t x = 1, base = a.i;
        bool over = false;
        for (int64_t n = b.i; n && !over; n >>= 1) {
            if (n & 1) over = __builtin_mul_overflow(x, base, &x);
            if (n > 1 && !over) over = __builtin_mul_overflow(base, base, &base);
        }
        if (over) return render_fail(r, line, "a whole number does not fit in 64 bits");
        *out = value_int(x);
        return TARE_OK;
    }
    const double x = number_value(a), y = number_value(b), z = pow(x, y);
    if (x == 0 && y < 0) return render_fail(r, line, "0 cannot be raised to a negative power");
    if (x < 0 && y != floor(y)) return render_fail(r, line, "a negative number has no real power of this exponent");
    if (isinf(z) && isfinite(x) && isfinite(y)) return render_fail(r, line, "the result of ** is too large");
    *out = (struct value){.type = V_FLOAT, .f = z};
    return TARE_OK;
}

tare_status value_binary(struct render *r, int line, enum operation op, struct value a, struct value b, struct value *out)
{
    bool found;
    switch (op) {
    case OP_ADD:
        if (a.type == V_STRING && b.type == V_STRING) return concatenate_texts(r, line, a.s, b.s, out);
        if (of_one_kind(a, b)) return join_lists(r, line, a.list, b.list, out);
        return eval_arithmetic(r, line, op, a, b, out);
    case OP_MUL:
        if (is_whole(a) && (b.type == V_STRING || b.type == V_LIST)) return value_binary(r, line, op, b, a, out);
        if (a.type == V_STRING && is_whole(b)) return repeat_text(r, line, a.s, b.i, out);
        if (a.type == V_LIST && is_whole(b)) return repeat_list(r, line, a.list, b.i, out);
        return eval_arithmetic(r, line, op, a, b, out);
    case OP_MOD:
        if (a.type == V_STRING) return template_percent(r, line, a.s, b, out);
        return eval_arithmetic(r, line, op, a, b, out);
    case OP_POW:
        return raise_power(r, line, a, b, out);
    case OP_CONCAT: {
        tare_text x, y;
        TRY(template_as_text(r, line, a, &x));
        TRY(template_as_text(r, line, b, &y));
        return concatenate_texts(r, line, x, y, out);
    }
    case OP_EQ:
    case OP_NE:
        TRY(value_equal(r, line, a, b, &found));
        *out = value_bool(found == (op == OP_EQ));
        return TARE_OK;
    case OP_LT:
    case OP_LE:
    case OP_GT:
    case OP_GE:
        return order_values(r, line, op, a, b, out);
    case OP_IN:
    case OP_NOT_IN:
        TRY(contains_value(r, line, a, b, &found));
        *out = value_bool(found == (op == OP_IN));
        return TARE_OK;
    default:
        return eval_arithmetic(r, line, op, a, b, out);
    }
}
