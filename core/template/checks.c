/* Tests: `x is defined`. */
#include "template/internal.h"

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
TYPE_TEST(is_callable, v.type == V_FUNCTION || v.type == V_MACRO || v.type == V_METHOD || v.type == V_UNDEFINED ||
                           (v.type == V_DICT && (v.dict->loop || v.dict->object == OBJECT_JOINER)))
TYPE_TEST(is_true, v.type == V_BOOL && v.i)
TYPE_TEST(is_false, v.type == V_BOOL && !v.i)

/* Autoescape is off. */
static tare_status is_escaped(struct call *c, struct value *out)
{
    (void)c;
    *out = value_bool(false);
    return TARE_OK;
}

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

static tare_status is_at_most(struct call *c, struct value *out)
{
    return compare_values(c, OP_LE, out);
}

static tare_status is_at_least(struct call *c, struct value *out)
{
    return compare_values(c, OP_GE, out);
}

/* Identity in Python: equal for None, bools and small numbers, otherwise the same object. */
static tare_status is_same(struct call *c, struct value *out)
{
    const struct value a = c->self, b = *c->arg[0];
    bool same = a.type == b.type;
    if (same && (a.type == V_BOOL || a.type == V_INT)) same = a.i == b.i;
    if (same && a.type == V_FLOAT) same = a.f == b.f;
    if (same && a.type == V_STRING) same = a.s.data == b.s.data && a.s.size == b.s.size;
    if (same && a.type == V_LIST) same = a.list == b.list;
    if (same && a.type == V_DICT) same = a.dict == b.dict;
    if (same && a.type == V_FUNCTION) same = a.function == b.function;
    if (same && a.type == V_MACRO) same = a.macro == b.macro;
    *out = value_bool(same && a.type != V_METHOD);
    return TARE_OK;
}

/* str(x).islower(), str(x).isupper() */
static tare_status has_case(struct call *c, enum text_case how, struct value *out)
{
    struct call text = {.r = c->r, .line = c->line, .self = {.type = V_STRING}};
    TRY(template_as_text(c->r, c->line, c->self, &text.self.s));
    return template_has_case(&text, how, out);
}

static tare_status is_lower(struct call *c, struct value *out)
{
    return has_case(c, CASE_LOWER, out);
}

static tare_status is_upper(struct call *c, struct value *out)
{
    return has_case(c, CASE_UPPER, out);
}

static tare_status is_filter(struct call *c, struct value *out)
{
    *out = value_bool(c->self.type == V_STRING && template_find_filter(c->self.s));
    return TARE_OK;
}

static tare_status is_test(struct call *c, struct value *out)
{
    *out = value_bool(c->self.type == V_STRING && template_find_test(c->self.s));
    return TARE_OK;
}

static const struct builtin tests[] = {
    {"defined", is_defined, "", 0},
    {"undefined", is_undefined, "", 0},
    {"none", is_none, "", 0},
    {"string", is_string, "", 0},
    {"boolean", is_boolean, "", 0},
    {"integer", is_integer, "", 0},
    {"float", is_float, "", 0},
    {"number", is_number, "", 0},
    {"mapping", is_mapping, "", 0},
    {"iterable", is_iterable, "", 0},
    {"sequence", is_sequence, "", 0},
    {"callable", is_callable, "", 0},
    {"escaped", is_escaped, "", 0},
    {"true", is_true, "", 0},
    {"false", is_false, "", 0},
    {"lower", is_lower, "", 0},
    {"upper", is_upper, "", 0},
    {"filter", is_filter, "", 0},
    {"test", is_test, "", 0},
    {"sameas", is_same, "other", 1},
    {"equalto", is_equal, "other", 1},
    {"eq", is_equal, "other", 1},
    {"==", is_equal, "other", 1},
    {"ne", is_unequal, "other", 1},
    {"!=", is_unequal, "other", 1},
    {"lt", is_less, "other", 1},
    {"lessthan", is_less, "other", 1},
    {"<", is_less, "other", 1},
    {"le", is_at_most, "other", 1},
    {"<=", is_at_most, "other", 1},
    {"gt", is_greater, "other", 1},
    {"greaterthan", is_greater, "other", 1},
    {">", is_greater, "other", 1},
    {"ge", is_at_least, "other", 1},
    {">=", is_at_least, "other", 1},
    {"in", is_in, "seq", 1},
    {"divisibleby", is_divisible, "num", 1},
    {"even", is_even, "", 0},
    {"odd", is_odd, "", 0},
};

const struct builtin *template_find_test(tare_text name)
{
    for (size_t i = 0; i < sizeof tests / sizeof *tests; i++)
        if (value_text_is(name, tests[i].name)) return &tests[i];
    return NULL;
}
