/* The parser's position among the tokens and the functions that advance it, shared by parse.c and
 * expression.c. Internal to core/template. */
#ifndef TARE_CORE_TEMPLATE_PARSER_H
#define TARE_CORE_TEMPLATE_PARSER_H

#include "template/internal.h"

struct parser {
    const struct token *at; /* ends with T_END, which is never consumed */
    struct arena *arena;
    const struct token *tokens; /* all of them */
    const char *where;
    struct err *e;
    int depth, loops;
    int blocks; /* around the position: those that end the variables set in them */
};

#define PARSE_FAIL(P, CODE, ...)                                                                                                   \
    do {                                                                                                                           \
        err_set((P)->e, (CODE), __FILE__, __LINE__, __VA_ARGS__);                                                                  \
        return err_prefix((P)->e, "%s:%d", (P)->where, (P)->at->line);                                                             \
    } while (0)

/* expression.c */
tare_status parser_expression(struct parser *p, struct node **out);
/* Parses `a, b` as a tuple. choice: also `x if y else z`; otherwise an `if` is left. */
tare_status parser_tuple(struct parser *p, bool choice, struct node **out);
/* Parses the filters from `|` on and applies them to *node. */
tare_status parser_filters(struct parser *p, struct node **node);
/* Parses a filter with its arguments, at its name, and applies it to *node. */
tare_status parser_one_filter(struct parser *p, struct node **node);

static inline bool is_op(const struct parser *p, const char *op)
{
    return p->at->kind == T_OP && value_text_is(p->at->text, op);
}

static inline bool is_name(const struct parser *p, const char *name)
{
    return p->at->kind == T_NAME && value_text_is(p->at->text, name);
}

static inline void step(struct parser *p)
{
    if (p->at->kind != T_END) p->at++;
}

static inline bool skip_op(struct parser *p, const char *op)
{
    const bool yes = is_op(p, op);
    if (yes) step(p);
    return yes;
}

static inline bool skip_name(struct parser *p, const char *name)
{
    const bool yes = is_name(p, name);
    if (yes) step(p);
    return yes;
}

static inline tare_status expect_op(struct parser *p, const char *op)
{
    if (!skip_op(p, op)) PARSE_FAIL(p, TARE_E_INVALID, "expected '%s'", op);
    return TARE_OK;
}

static inline tare_status expect_name(struct parser *p, tare_text *out)
{
    if (p->at->kind != T_NAME) PARSE_FAIL(p, TARE_E_INVALID, "expected a name");
    *out = p->at->text;
    step(p);
    return TARE_OK;
}

static inline tare_status new_node(struct parser *p, enum node_kind kind, struct node **out)
{
    TRY(arena_new(p->arena, out, 1, p->e));
    (*out)->kind = kind;
    (*out)->line = p->at->line;
    return TARE_OK;
}

static inline tare_status deeper(struct parser *p)
{
    if (++p->depth > MAX_NESTING) PARSE_FAIL(p, TARE_E_UNSUPPORTED, "nested more than %d levels deep", MAX_NESTING);
    return TARE_OK;
}

#endif
