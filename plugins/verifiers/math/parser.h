/* A Pratt parser over the tokens: parse.c parses scalars, top.c compounds of scalars. Every
 * function returns a node, or -1 with m->parse_error set; p->depth bounds the recursion. */
#ifndef TARE_MATH_PARSER_H
#define TARE_MATH_PARSER_H

#include "tokens.h"

enum { WORD_FACTORS = 8, MAX_WORDS = 16 };

struct factor {
    int32_t symbol;
    int8_t power;
    bool transposed;
};

/* A product of vectors or matrices that do not commute, and the symbol that represents it. */
struct word_of_letters {
    int32_t symbol;
    int n;
    struct factor f[WORD_FACTORS];
};

struct ordered {
    /* bit s: the symbol s keeps its position in a product; it is a matrix */
    uint64_t letters, matrices;
    int n_words;
    struct word_of_letters words[MAX_WORDS];
};

struct parser {
    struct math *m;
    int t, depth, bars, bound; /* bars: open |; bound: number of open sums */
    /* inside a sum's limits: 3_ is not a base; the open bar began with a second one */
    bool limits, twin_bars;
    bool no_bar;      /* | separates (set builder) */
    bool determinant; /* inside one: no second, because each copies its entries */
    int joints;       /* of the list parsed last: enum joint */
    struct ordered ordered;
    int32_t currency, n_currency; /* in the pool: the currency sign before the value being parsed */
};

static inline const struct token *peek(const struct parser *p)
{
    return &p->m->tokens[p->t];
}
/* Returns the token k after the cursor (k < 0: before it); T_END outside the tokens. */
static inline const struct token *ahead(const struct parser *p, int k)
{
    const int i = p->t + k;
    return &p->m->tokens[i >= 0 && i < p->m->n_tokens ? i : p->m->n_tokens - 1];
}
static inline bool accept(struct parser *p, int kind)
{
    return peek(p)->kind == kind && (p->t++, true);
}
int parse_fail(struct parser *p, const char *why);
bool enter(struct parser *p); /* increments the depth; false: too deep */

/* product.c: products of vectors and matrices, which keep their order. sign: '.', 'x', or ' ' for
 * adjacent factors */
void find_ordered(struct parser *p); /* before parsing */
int ordered_mul(struct parser *p, int a, int b, char sign);
int ordered_pow(struct parser *p, int x, int exponent);

int parse_sum(struct parser *p);      /* a + b - c */
int parse_set_expr(struct parser *p); /* unions over sums */
int parse_element(struct parser *p);  /* a relation chain, ratio or value with its unit */
/* returns the number of items; -1: error */
int parse_list(struct parser *p, int stop1, int stop2, int *items, int max, bool *semicolons);
/* parses from ( [ { \{ or \langle at the cursor */
int parse_brackets(struct parser *p);
int parse_matrix(struct parser *p);
int parse_exponent(struct parser *p); /* after ^ */
int parse_argument(struct parser *p); /* a command's argument: a group, a digit, or any single atom */
int number_of(struct parser *p, const struct token *t);
int parse_atom(struct parser *p);
int between_limits(struct parser *p, int x); /* postfix.c: x at _{x=2}, or from _0 to ^1 */
int parse_power(struct parser *p);           /* a factor and its postfixes: ^ ! degrees */
/* returns true if a factor of a product without a sign could start here */
bool starts_factor(const struct parser *p);
/* returns the member of a set with one member, whose braces only group; x for other nodes */
int parse_unset(const struct math *m, int x);
int parse_big(struct parser *p);      /* big.c: sums, products */
int parse_integral(struct parser *p); /* big.c */
int parse_limit(struct parser *p);    /* big.c */
/* label.c: consumes the name before "=", or the application that ends a chain; -2: none */
int parse_label(struct parser *p, bool front);

/* apply.c: parses the value f(x) of a function without a definition, at the cursor; -2: other
 * tokens */
int parse_application(struct parser *p);
/* returns one letter named by the text of x between front and after */
int named_value(struct parser *p, const char *front, int x, const char *after);

/* functions.c: applies f to n arguments; base: the base of a logarithm, or -1 */
int parse_function_value(struct parser *p, int f, int base, int *args, int n);
int function_inverse(int f); /* sin: arcsin; 0: none */
/* label.c: consumes {dy}{dx}, the arguments of a \frac at the cursor, and returns the symbol y';
 * -2: another fraction */
int parse_derivative(struct parser *p);

/* where.c */
/* returns true if brackets after a value contain its condition */
bool at_condition(const struct parser *p);
/* parses the conditions of the value x, in brackets or after a T_WHERE */
int parse_conditions(struct parser *p, int x);
/* parses the modulus of the relation x; returns x if it is not a congruence */
int parse_congruence(struct parser *p, int x);
/* combines items such as x \in R, x != 3 into one value */
int lift_memberships(struct parser *p, int *items, int n, int joints);

/* matrix.c: determinants as nodes; -1: the shape does not fit, or is too large */
int matrix_determinant(struct math *m, const int *entries, int n);
int matrix_det(struct math *m, int a);

#endif
