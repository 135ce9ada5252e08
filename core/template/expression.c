/* Parses expressions with Jinja's precedence: filters bind tighter than any operator, `is` tighter
 * than comparison. */
#include "template/parser.h"

#include <string.h>

static tare_status parse_unary(struct parser *p, bool filters, struct node **out);

static tare_status wrap_nodes(struct parser *p, enum node_kind kind, struct node *a, struct node *b, struct node **out)
{
    struct node *n;
    TRY(new_node(p, kind, &n));
    n->a = a;
    n->b = b;
    *out = n;
    return TARE_OK;
}

/* ---------------------------------------------------------------- primary expressions */

static tare_status parse_string(struct parser *p, struct node **out)
{
    TRY(new_node(p, E_CONST, out));
    tare_text all = p->at->text;
    step(p);
    while (p->at->kind == T_STRING) { /* adjacent strings are concatenated */
        char *joined;
        TRY(arena_push(p->arena, all.size + p->at->text.size + 1, (void **)&joined, p->e));
        memcpy(joined, all.data, (size_t)all.size);
        memcpy(joined + all.size, p->at->text.data, (size_t)p->at->text.size);
        all = (tare_text){joined, all.size + p->at->text.size};
        step(p);
    }
    (*out)->constant = (struct value){.type = V_STRING, .s = all};
    return TARE_OK;
}

static tare_status parse_name(struct parser *p, struct node **out)
{
    static const struct {
        const char *name;
        struct value value;
    } constants[] = {{"true", {.type = V_BOOL, .i = 1}}, {"True", {.type = V_BOOL, .i = 1}}, {"false", {.type = V_BOOL}},
                     {"False", {.type = V_BOOL}},        {"none", {.type = V_NONE}},         {"None", {.type = V_NONE}}};
    TRY(new_node(p, E_NAME, out));
    (*out)->name = p->at->text;
    for (size_t i = 0; i < sizeof constants / sizeof *constants; i++)
        if (is_name(p, constants[i].name)) {
            (*out)->kind = E_CONST;
            (*out)->constant = constants[i].value;
        }
    step(p);
    return TARE_OK;
}

/* Parses items up to close; for a dict keys and values alternate. */
static tare_status parse_items(struct parser *p, const char *close, bool pairs, struct node *list)
{
    struct node **tail = &list->args;
    while (!skip_op(p, close)) {
        TRY(parser_expression(p, tail));
        tail = &(*tail)->next;
        if (pairs) {
            TRY(expect_op(p, ":"));
            TRY(parser_expression(p, tail));
            tail = &(*tail)->next;
        }
        if (!skip_op(p, ",") && !is_op(p, close)) PARSE_FAIL(p, TARE_E_INVALID, "',' or expected '%s'", close);
    }
    return TARE_OK;
}

static tare_status parse_parentheses(struct parser *p, struct node **out)
{
    struct node *list;
    TRY(new_node(p, E_LIST, &list));
    list->tuple = true;
    if (is_op(p, ")")) {
        step(p);
        *out = list;
        return TARE_OK;
    }
    TRY(parser_expression(p, out));
    if (skip_op(p, ")")) return TARE_OK;
    TRY(expect_op(p, ","));
    list->args = *out;
    struct node rest = {0};
    TRY(parse_items(p, ")", false, &rest));
    list->args->next = rest.args;
    *out = list;
    return TARE_OK;
}

static tare_status parse_primary(struct parser *p, struct node **out)
{
    switch (p->at->kind) {
    case T_NAME:
        return parse_name(p, out);
    case T_STRING:
        return parse_string(p, out);
    case T_INT:
    case T_FLOAT:
        TRY(new_node(p, E_CONST, out));
        (*out)->constant = p->at->kind == T_INT ? value_int(p->at->i) : (struct value){.type = V_FLOAT, .f = p->at->f};
        step(p);
        return TARE_OK;
    default:
        break;
    }
    if (skip_op(p, "(")) return parse_parentheses(p, out);
    if (is_op(p, "[") || is_op(p, "{")) {
        const bool dict = is_op(p, "{");
        TRY(new_node(p, dict ? E_DICT : E_LIST, out));
        step(p);
        return parse_items(p, dict ? "}" : "]", dict, *out);
    }
    if (p->at->kind == T_OP) PARSE_FAIL(p, TARE_E_INVALID, "unexpected '%.*s'", (int)p->at->text.size, p->at->text.data);
    PARSE_FAIL(p, TARE_E_INVALID, "expected an expression");
}

/* ---------------------------------------------------------------- calls, attributes, filters,
 * tests */

static bool takes_keyword(const struct builtin *b, tare_text key)
{
    if (!strcmp(b->params, "*")) return true;
    for (const char *s = b->params; *s;) {
        const size_t n = strcspn(s, ",");
        if ((int64_t)n == key.size && !memcmp(s, key.data, n)) return true;
        s += n + (s[n] == ',');
    }
    return false;
}

static tare_status parse_arguments(struct parser *p, struct node *call)
{
    struct node **tail = &call->args;
    int n = 0;
    bool keyword = false;
    while (!skip_op(p, ")")) {
        tare_text key = {0};
        if (p->at->kind == T_NAME && p->at[1].kind == T_OP && value_text_is(p->at[1].text, "=")) {
            key = p->at->text;
            step(p);
            step(p);
            if (!takes_keyword(call->builtin, key))
                PARSE_FAIL(p, TARE_E_UNSUPPORTED, "%s does not support the argument '%.*s'", call->builtin->name, (int)key.size,
                           key.data);
        } else if (keyword) {
            PARSE_FAIL(p, TARE_E_INVALID, "a positional argument follows a keyword argument");
        }
        keyword = key.data != NULL;
        if (++n > MAX_ARGS && strcmp(call->builtin->params, "*"))
            PARSE_FAIL(p, TARE_E_UNSUPPORTED, "%s has too many arguments", call->builtin->name);
        TRY(parser_expression(p, tail));
        struct node *copy; /* constants may be shared; the keyword belongs to this call */
        TRY(wrap_nodes(p, E_COND, *tail, NULL, &copy));
        copy->name2 = key;
        *tail = copy;
        tail = &copy->next;
        if (!skip_op(p, ",") && !is_op(p, ")")) PARSE_FAIL(p, TARE_E_INVALID, "expected ',' or ')'");
    }
    return TARE_OK;
}

/* Returns whether a statement of the template may assign the name. */
static bool is_assigned(const struct parser *p, tare_text name)
{
    bool tag = false;
    for (const struct token *t = p->tokens; t->kind != T_END; t++) {
        tag = t->kind == T_TAG || (tag && t->kind != T_TAG_END);
        if (tag && t->kind == T_NAME && t->text.size == name.size && !memcmp(t->text.data, name.data, (size_t)name.size) &&
            !(t[1].kind == T_OP && value_text_is(t[1].text, "(")))
            return true;
    }
    return false;
}

/* Returns whether the template defines a macro of this name, before or after this position. */
static bool is_macro(const struct parser *p, tare_text name)
{
    for (const struct token *t = p->tokens; t->kind != T_END; t++)
        if (t->kind == T_TAG && t[1].kind == T_NAME && value_text_is(t[1].text, "macro") && t[2].kind == T_NAME &&
            t[2].text.size == name.size && !memcmp(t[2].text.data, name.data, (size_t)name.size))
            return true;
    return false;
}

static tare_status parse_call(struct parser *p, struct node **node)
{
    struct node *callee = *node;
    const bool method = callee->kind == E_ATTRIBUTE;
    if (!method && callee->kind != E_NAME) PARSE_FAIL(p, TARE_E_UNSUPPORTED, "only functions and methods can be called");
    /* {% set f = range %}, {% macro f() %} */
    static const struct builtin assigned = {"a variable", NULL, "*", 0};
    const struct builtin *b = method ? template_find_method(callee->name) : template_find_function(callee->name);
    if (!method && (is_macro(p, callee->name) || (!b && is_assigned(p, callee->name)))) b = &assigned;
    if (!b)
        PARSE_FAIL(p, TARE_E_UNSUPPORTED, "the %s %.*s() is not supported", method ? "method" : "function", (int)callee->name.size,
                   callee->name.data);
    TRY(wrap_nodes(p, method ? E_METHOD : E_FUNCTION, method ? callee->a : NULL, NULL, node));
    (*node)->builtin = b;
    (*node)->name = callee->name;
    step(p);
    return parse_arguments(p, *node);
}

static tare_status parse_subscript(struct parser *p, struct node **node)
{
    struct node *bound[3] = {NULL, NULL, NULL}, *item;
    int k = 0;
    step(p);
    if (!is_op(p, ":")) TRY(parser_expression(p, &bound[0]));
    while (k < 2 && skip_op(p, ":")) {
        k++;
        if (!is_op(p, ":") && !is_op(p, "]")) TRY(parser_expression(p, &bound[k]));
    }
    TRY(expect_op(p, "]"));
    TRY(wrap_nodes(p, k ? E_SLICE : E_ITEM, *node, bound[0], &item));
    item->c = bound[1];
    item->body = bound[2];
    *node = item;
    return TARE_OK;
}

static tare_status parse_attribute(struct parser *p, struct node **node)
{
    struct node *n;
    step(p);
    if (p->at->kind == T_INT) { /* items.0 */
        struct node *index;
        TRY(parse_primary(p, &index));
        return wrap_nodes(p, E_ITEM, *node, index, node);
    }
    TRY(wrap_nodes(p, E_ATTRIBUTE, *node, NULL, &n));
    TRY(expect_name(p, &n->name));
    *node = n;
    return TARE_OK;
}

static tare_status parse_postfix(struct parser *p, struct node **node)
{
    for (int n = 0;; n++) {
        if (n > MAX_NESTING) PARSE_FAIL(p, TARE_E_UNSUPPORTED, "a chain of more than %d attributes", MAX_NESTING);
        if (is_op(p, "."))
            TRY(parse_attribute(p, node));
        else if (is_op(p, "["))
            TRY(parse_subscript(p, node));
        else if (is_op(p, "("))
            TRY(parse_call(p, node));
        else
            return TARE_OK;
    }
}

tare_status parser_one_filter(struct parser *p, struct node **node)
{
    tare_text name;
    TRY(expect_name(p, &name));
    TRY(wrap_nodes(p, E_FILTER, *node, NULL, node));
    (*node)->builtin = template_find_filter(name);
    if (!(*node)->builtin) PARSE_FAIL(p, TARE_E_UNSUPPORTED, "the filter '%.*s' is not supported", (int)name.size, name.data);
    return skip_op(p, "(") ? parse_arguments(p, *node) : TARE_OK;
}

tare_status parser_filters(struct parser *p, struct node **node)
{
    for (int n = 0; skip_op(p, "|"); n++) {
        if (n == MAX_NESTING) PARSE_FAIL(p, TARE_E_UNSUPPORTED, "a chain of more than %d filters", MAX_NESTING);
        TRY(parser_one_filter(p, node));
    }
    return TARE_OK;
}

static bool argument_follows(const struct parser *p)
{
    if (p->at->kind == T_STRING || p->at->kind == T_INT || p->at->kind == T_FLOAT) return true;
    if (p->at->kind == T_NAME)
        return !is_name(p, "else") && !is_name(p, "or") && !is_name(p, "and") && !is_name(p, "if") && !is_name(p, "is") &&
               !is_name(p, "in") && !is_name(p, "not");
    return is_op(p, "[") || is_op(p, "{");
}

static tare_status parse_test(struct parser *p, struct node **node)
{
    tare_text name;
    step(p);
    const bool negated = skip_name(p, "not");
    TRY(expect_name(p, &name));
    TRY(wrap_nodes(p, E_TEST, *node, NULL, node));
    struct node *test = *node;
    test->builtin = template_find_test(name);
    if (!test->builtin) PARSE_FAIL(p, TARE_E_UNSUPPORTED, "the test '%.*s' is not supported", (int)name.size, name.data);
    if (skip_op(p, "(")) {
        TRY(parse_arguments(p, test));
    } else if (test->builtin->required && argument_follows(p)) { /* x is divisibleby 3 */
        TRY(parse_primary(p, &test->args));
        TRY(parse_postfix(p, &test->args));
        TRY(wrap_nodes(p, E_COND, test->args, NULL, &test->args));
    }
    if (is_name(p, "is")) PARSE_FAIL(p, TARE_E_INVALID, "tests cannot be chained with `is`; use parentheses");
    return negated ? wrap_nodes(p, E_NOT, test, NULL, node) : TARE_OK;
}

static tare_status parse_unary(struct parser *p, bool filters, struct node **out)
{
    TRY(deeper(p));
    if (is_op(p, "-")) {
        step(p);
        TRY(parse_unary(p, false, out));
        TRY(wrap_nodes(p, E_NEGATE, *out, NULL, out));
    } else if (is_op(p, "+")) {
        step(p);
        TRY(parse_unary(p, false, out));
        TRY(wrap_nodes(p, E_NEGATE, *out, NULL, out));
        TRY(wrap_nodes(p, E_NEGATE, *out, NULL, out));
    } else {
        TRY(parse_primary(p, out));
    }
    TRY(parse_postfix(p, out));
    if (filters)
        for (int n = 0; n <= MAX_NESTING; n++) {
            if (skip_op(p, "|"))
                TRY(parser_one_filter(p, out));
            else if (is_name(p, "is"))
                TRY(parse_test(p, out));
            else
                break;
            if (n == MAX_NESTING) PARSE_FAIL(p, TARE_E_UNSUPPORTED, "a chain of more than %d filters", MAX_NESTING);
        }
    p->depth--;
    return TARE_OK;
}

/* ---------------------------------------------------------------- operators, loosest last */

struct level {
    const char *ops[6];
    enum operation meant[6];
};

static const struct level levels[] = {
    {{"**"}, {OP_POW}}, /* from the left, as in jinja2 */
    {{"*", "/", "//", "%"}, {OP_MUL, OP_DIV, OP_FLOORDIV, OP_MOD}},
    {{"~"}, {OP_CONCAT}},
    {{"+", "-"}, {OP_ADD, OP_SUB}},
};

static tare_status parse_level(struct parser *p, int level, struct node **out)
{
    if (level < 0) return parse_unary(p, true, out);
    TRY(parse_level(p, level - 1, out));
    for (int n = 0;; n++) {
        int k = 0;
        while (k < 6 && levels[level].ops[k] && !is_op(p, levels[level].ops[k])) k++;
        if (k == 6 || !levels[level].ops[k]) return TARE_OK;
        if (n == 10 * MAX_NESTING) PARSE_FAIL(p, TARE_E_UNSUPPORTED, "an expression of more than %d operators", n);
        struct node *right;
        step(p);
        TRY(parse_level(p, level - 1, &right));
        TRY(wrap_nodes(p, E_BINARY, *out, right, out));
        (*out)->op = levels[level].meant[k];
    }
}

/* Parses a < b < c: all operands but the first are linked as args, each with its operator. */
static tare_status parse_compare(struct parser *p, struct node **out)
{
    static const char *const ops[] = {"==", "!=", "<", "<=", ">", ">="};
    TRY(parse_level(p, 3, out));
    struct node *chain = NULL, **tail = NULL;
    for (;;) {
        int op = -1;
        for (int k = 0; k < 6; k++)
            if (is_op(p, ops[k])) op = OP_EQ + k;
        if (is_name(p, "in")) op = OP_IN;
        if (is_name(p, "not") && p->at[1].kind == T_NAME && value_text_is(p->at[1].text, "in")) op = OP_NOT_IN;
        if (op < 0) return TARE_OK;
        step(p);
        if (op == OP_NOT_IN) step(p);
        struct node *right, *link;
        TRY(parse_level(p, 3, &right));
        TRY(wrap_nodes(p, E_BINARY, right, NULL, &link));
        link->op = (enum operation)op;
        if (!chain) {
            TRY(wrap_nodes(p, E_COMPARE, *out, NULL, &chain));
            *out = chain;
            tail = &chain->args;
        }
        *tail = link;
        tail = &link->next;
    }
}

static tare_status parse_not(struct parser *p, struct node **out)
{
    if (!skip_name(p, "not")) return parse_compare(p, out);
    TRY(deeper(p));
    TRY(parse_not(p, out));
    p->depth--;
    return wrap_nodes(p, E_NOT, *out, NULL, out);
}

static tare_status parse_logic(struct parser *p, bool or, struct node **out)
{
    TRY(or ? parse_logic(p, false, out) : parse_not(p, out));
    for (int n = 0; skip_name(p, or ? "or" : "and"); n++) {
        struct node *right;
        if (n == 10 * MAX_NESTING) PARSE_FAIL(p, TARE_E_UNSUPPORTED, "an expression of more than %d operators", n);
        TRY(or ? parse_logic(p, false, &right) : parse_not(p, &right));
        TRY(wrap_nodes(p, or ? E_OR : E_AND, *out, right, out));
    }
    return TARE_OK;
}

tare_status parser_expression(struct parser *p, struct node **out)
{
    TRY(deeper(p));
    TRY(parse_logic(p, true, out));
    for (int n = 0; skip_name(p, "if"); n++) { /* value if condition else otherwise */
        struct node *cond;
        if (n == MAX_NESTING) PARSE_FAIL(p, TARE_E_UNSUPPORTED, "nested more than %d levels deep", MAX_NESTING);
        TRY(wrap_nodes(p, E_COND, *out, NULL, &cond));
        TRY(parse_logic(p, true, &cond->b));
        if (skip_name(p, "else")) TRY(parser_expression(p, &cond->c));
        *out = cond;
    }
    p->depth--;
    return TARE_OK;
}

tare_status parser_tuple(struct parser *p, bool choice, struct node **out)
{
    TRY(choice ? parser_expression(p, out) : parse_logic(p, true, out));
    if (!is_op(p, ",")) return TARE_OK;
    struct node *tuple, **tail;
    TRY(new_node(p, E_LIST, &tuple));
    tuple->tuple = true;
    tuple->args = *out;
    tail = &tuple->args->next;
    while (skip_op(p, ",") && p->at->kind != T_TAG_END && p->at->kind != T_OUT_END) {
        TRY(choice ? parser_expression(p, tail) : parse_logic(p, true, tail));
        tail = &(*tail)->next;
    }
    *out = tuple;
    return TARE_OK;
}
