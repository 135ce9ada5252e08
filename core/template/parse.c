/* Tokens -> tree: parses statements; expression.c parses their expressions. */
#include "template/parser.h"

#include <string.h>

static tare_status parse_body(struct parser *p, const char *const *stops, struct node **out);

static tare_status end_tag(struct parser *p)
{
    if (p->at->kind != T_TAG_END) PARSE_FAIL(p, TARE_E_INVALID, "expected %%}");
    step(p);
    return TARE_OK;
}

/* Parses a body whose variables end with it. */
static tare_status parse_block(struct parser *p, const char *const *stops, struct node **out)
{
    p->blocks++;
    TRY(parse_body(p, stops, out));
    p->blocks--;
    return TARE_OK;
}

/* Parses the rest after {% if or {% elif. */
static tare_status parse_if(struct parser *p, struct node **out)
{
    static const char *const stops[] = {"elif", "else", "endif", NULL};
    TRY(new_node(p, S_IF, out));
    TRY(parser_tuple(p, false, &(*out)->a));
    if (skip_name(p, "if")) PARSE_FAIL(p, TARE_E_UNSUPPORTED, "a choice as a condition needs parentheses");
    TRY(end_tag(p));
    TRY(parse_body(p, stops, &(*out)->body));
    if (skip_name(p, "elif")) {
        TRY(deeper(p));
        TRY(parse_if(p, &(*out)->otherwise));
        p->depth--;
        return TARE_OK;
    }
    if (skip_name(p, "else")) {
        TRY(end_tag(p));
        TRY(parse_body(p, stops + 2, &(*out)->otherwise));
    }
    step(p);
    return end_tag(p);
}

/* Parses `a`, `a, b` or `a, (b, c)`. */
static tare_status parse_target(struct parser *p, struct node **out)
{
    struct node *list, **tail;
    bool tuple = false;
    TRY(deeper(p));
    TRY(new_node(p, E_LIST, &list));
    tail = &list->args;
    do {
        if (list->args && p->at->kind != T_NAME && !is_op(p, "(")) break; /* a, */
        if (skip_op(p, "(")) {
            TRY(parse_target(p, tail));
            TRY(expect_op(p, ")"));
        } else {
            TRY(new_node(p, E_NAME, tail));
            TRY(expect_name(p, &(*tail)->name));
        }
        tail = &(*tail)->next;
        tuple = tuple || is_op(p, ",");
    } while (skip_op(p, ",") && !is_name(p, "in"));
    *out = tuple ? list : list->args;
    p->depth--;
    return TARE_OK;
}

static tare_status parse_for(struct parser *p, struct node **out)
{
    static const char *const stops[] = {"else", "endfor", NULL};
    struct node *n;
    TRY(new_node(p, S_FOR, &n));
    *out = n;
    TRY(parse_target(p, &n->target));
    if (!skip_name(p, "in")) PARSE_FAIL(p, TARE_E_INVALID, "expected 'in'");
    TRY(parser_tuple(p, false, &n->a)); /* an `if` after it filters the loop */
    if (skip_name(p, "if")) TRY(parser_expression(p, &n->b));
    if (is_name(p, "recursive")) PARSE_FAIL(p, TARE_E_UNSUPPORTED, "recursive loops are not supported");
    TRY(end_tag(p));
    p->loops++;
    TRY(parse_block(p, stops, &n->body));
    p->loops--;
    if (skip_name(p, "else")) {
        TRY(end_tag(p));
        TRY(parse_block(p, stops + 1, &n->otherwise));
    }
    step(p);
    return end_tag(p);
}

static tare_status parse_set(struct parser *p, struct node **out)
{
    static const char *const stops[] = {"endset", NULL};
    struct node *n;
    TRY(new_node(p, S_SET, &n));
    *out = n;
    TRY(parse_target(p, &n->target));
    if (n->target->kind == E_NAME && skip_op(p, ".")) {
        n->name = n->target->name;
        n->target = NULL;
        TRY(expect_name(p, &n->name2));
    }
    if (skip_op(p, "=")) {
        TRY(parser_tuple(p, true, &n->a));
        return end_tag(p);
    }
    TRY(new_node(p, E_CAPTURED, &n->a));
    TRY(parser_filters(p, &n->a));
    if (p->at->kind != T_TAG_END) PARSE_FAIL(p, TARE_E_INVALID, "expected '='");
    n->kind = S_SET_BLOCK;
    TRY(end_tag(p));
    TRY(parse_block(p, stops, &n->body));
    step(p);
    return end_tag(p);
}

/* Parses {% with a = 1, b = 2 %}, whose variables end with the block. */
static tare_status parse_with(struct parser *p, struct node **out)
{
    static const char *const stops[] = {"endwith", NULL};
    struct node *n, **target, **value;
    TRY(new_node(p, S_WITH, &n));
    *out = n;
    target = &n->target;
    value = &n->args;
    while (p->at->kind != T_TAG_END) {
        if (n->target) TRY(expect_op(p, ","));
        TRY(new_node(p, E_NAME, target));
        TRY(expect_name(p, &(*target)->name));
        TRY(expect_op(p, "="));
        TRY(parser_expression(p, value));
        target = &(*target)->next;
        value = &(*value)->next;
    }
    TRY(end_tag(p));
    TRY(parse_block(p, stops, &n->body));
    step(p);
    return end_tag(p);
}

/* Parses {% filter upper | trim %}, which changes the text of its block. */
static tare_status parse_filter_block(struct parser *p, struct node **out)
{
    static const char *const stops[] = {"endfilter", NULL};
    struct node *n;
    TRY(new_node(p, S_FILTER, &n));
    *out = n;
    TRY(new_node(p, E_CAPTURED, &n->a));
    TRY(parser_one_filter(p, &n->a));
    TRY(parser_filters(p, &n->a));
    TRY(end_tag(p));
    TRY(parse_block(p, stops, &n->body));
    step(p);
    return end_tag(p);
}

/* Parses the parameters of a macro up to `)`: names, of which the last may have defaults. */
static tare_status parse_parameters(struct parser *p, struct node *macro)
{
    struct node **name = &macro->target, **value = &macro->args;
    TRY(expect_op(p, "("));
    while (!skip_op(p, ")")) {
        if (macro->target) TRY(expect_op(p, ","));
        TRY(new_node(p, E_NAME, name));
        TRY(expect_name(p, &(*name)->name));
        for (const struct node *other = macro->target; other != *name; other = other->next)
            if (other->name.size == (*name)->name.size && !memcmp(other->name.data, (*name)->name.data, (size_t)other->name.size))
                PARSE_FAIL(p, TARE_E_INVALID, "two parameters are named '%.*s'", (int)other->name.size, other->name.data);
        name = &(*name)->next;
        if (skip_op(p, "=")) {
            TRY(parser_expression(p, value));
            value = &(*value)->next;
        } else if (macro->args) {
            PARSE_FAIL(p, TARE_E_INVALID, "a parameter without a default follows one that has a default");
        }
    }
    return TARE_OK;
}

/* Parses {% macro name(a, b=1) %}. */
static tare_status parse_macro(struct parser *p, struct node **out)
{
    static const char *const stops[] = {"endmacro", NULL}, *const special[] = {"caller", "kwargs", "varargs"};
    struct node *n;
    if (p->blocks)
        PARSE_FAIL(p, TARE_E_UNSUPPORTED,
                   "a macro inside of a loop, a block or a macro is not supported; define it at the top level");
    TRY(new_node(p, S_MACRO, &n));
    *out = n;
    TRY(expect_name(p, &n->name));
    TRY(parse_parameters(p, n));
    const struct token *t = p->at;
    TRY(end_tag(p));
    const int loops = p->loops; /* break cannot leave a macro */
    p->loops = 0;
    TRY(parse_block(p, stops, &n->body));
    p->loops = loops;
    for (; t < p->at; t++)
        for (size_t k = 0; k < sizeof special / sizeof *special; k++)
            if (t->kind == T_NAME && value_text_is(t->text, special[k]) && !(t[-1].kind == T_OP && value_text_is(t[-1].text, ".")))
                PARSE_FAIL(p, TARE_E_UNSUPPORTED, "%s in the macro '%.*s' is not supported", special[k], (int)n->name.size,
                           n->name.data);
    step(p);
    return end_tag(p);
}

/* Parses {% generation %}, which marks the assistant's text. Its variables end with it, as in
 * transformers. */
static tare_status parse_generation(struct parser *p, struct node **out)
{
    static const char *const stops[] = {"endgeneration", NULL};
    TRY(end_tag(p));
    TRY(new_node(p, S_WITH, out));
    TRY(parse_block(p, stops, &(*out)->body));
    step(p);
    return end_tag(p);
}

static tare_status parse_tag(struct parser *p, struct node **out)
{
    if (skip_name(p, "if")) return parse_if(p, out);
    if (skip_name(p, "for")) return parse_for(p, out);
    if (skip_name(p, "set")) return parse_set(p, out);
    if (skip_name(p, "with")) return parse_with(p, out);
    if (skip_name(p, "filter")) return parse_filter_block(p, out);
    if (skip_name(p, "macro")) return parse_macro(p, out);
    if (is_name(p, "generation")) return step(p), parse_generation(p, out);
    if (is_name(p, "break") || is_name(p, "continue")) {
        if (!p->loops) PARSE_FAIL(p, TARE_E_INVALID, "%.*s is outside of a loop", (int)p->at->text.size, p->at->text.data);
        TRY(new_node(p, is_name(p, "break") ? S_BREAK : S_CONTINUE, out));
        step(p);
        return end_tag(p);
    }
    if (p->at->kind == T_NAME)
        PARSE_FAIL(p, TARE_E_UNSUPPORTED, "the tag '%.*s' is not supported here", (int)p->at->text.size, p->at->text.data);
    PARSE_FAIL(p, TARE_E_INVALID, "expected the name of a tag");
}

static bool stops_here(const struct parser *p, const char *const *stops)
{
    for (; stops && *stops; stops++)
        if (p->at->kind == T_TAG && p->at[1].kind == T_NAME && value_text_is(p->at[1].text, *stops)) return true;
    return false;
}

/* Parses up to a tag named in stops, leaving the parser at its name, or to the end of the
 * template. */
static tare_status parse_body(struct parser *p, const char *const *stops, struct node **out)
{
    TRY(deeper(p));
    *out = NULL;
    while (!stops_here(p, stops)) {
        if (p->at->kind == T_END) {
            if (stops) PARSE_FAIL(p, TARE_E_INVALID, "the template ends before %s", stops[0]);
            break;
        }
        if (p->at->kind == T_TEXT) {
            TRY(new_node(p, S_TEXT, out));
            (*out)->name = p->at->text;
            step(p);
        } else if (p->at->kind == T_OUT) {
            step(p);
            TRY(new_node(p, S_OUT, out));
            TRY(parser_tuple(p, true, &(*out)->a));
            if (p->at->kind != T_OUT_END) PARSE_FAIL(p, TARE_E_INVALID, "expected }}");
            step(p);
        } else {
            step(p);
            TRY(parse_tag(p, out));
        }
        out = &(*out)->next;
    }
    if (stops) step(p);
    p->depth--;
    return TARE_OK;
}

tare_status template_parse(const char *source, int64_t n, const char *where, struct template **out, struct err *e)
{
    struct template *t;
    struct tokens tokens = {0};
    char *name = NULL;
    *out = NULL;
    const int64_t bad = str_utf8_error(source, n);
    if (bad) FAIL(e, TARE_E_INVALID, "%s: the template is not valid UTF-8 at byte %lld", where, (long long)bad);
    TRY(mem_new(sizeof *t, (void **)&t, e));
    arena_init(&t->arena, "chat template");
    tare_status status = arena_strdup(&t->arena, where, -1, &name, e);
    t->where = name;
    if (!status) status = template_lex(source, n, where, &t->arena, &tokens, e);
    struct parser p = {.at = tokens.items, .tokens = tokens.items, .arena = &t->arena, .where = where, .e = e};
    if (!status) status = parse_body(&p, NULL, &t->body);
    mem_free(tokens.items);
    if (status)
        template_free(t);
    else
        *out = t;
    return status;
}

void template_free(struct template *t)
{
    if (!t) return;
    arena_free(&t->arena);
    mem_free(t);
}
