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
/* k < 0: before the cursor; T_END outside the tokens */
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
bool enter(struct parser *p); /* depth + 1; false: too deep */

/* product.c: products of vectors and matrices, in order. sign: ' ' adjacent, '.', 'x' */
void find_ordered(struct parser *p); /* before parsing */
int ordered_mul(struct parser *p, int a, int b, char sign);
int ordered_pow(struct parser *p, int x, int exponent);

int parse_sum(struct parser *p);      /* a + b - c */
int parse_set_expr(struct parser *p); /* unions over sums */
int parse_element(struct parser *p);  /* a relation chain, ratio or value with its unit */
/* number of items, -1 */
int parse_list(struct parser *p, int stop1, int stop2, int *items, int max, bool *semicolons);
/* ( [ { \{ \langle at the cursor */
int parse_brackets(struct parser *p);
int parse_matrix(struct parser *p);
int parse_exponent(struct parser *p); /* after ^ */
int parse_argument(struct parser *p); /* of a command: a group, a digit, or any single atom */
int number_of(struct parser *p, const struct token *t);
int parse_atom(struct parser *p);
int between_limits(struct parser *p, int x); /* postfix.c: x at _{x=2}, or from _0 to ^1 */
int parse_power(struct parser *p);           /* a factor with what follows it: ^ ! degrees */
/* returns whether a factor of a product without a sign could start here */
bool starts_factor(const struct parser *p);
/* the member of a set of one: braces that only group */
int parse_unset(const struct math *m, int x);
int parse_big(struct parser *p);      /* big.c: sums, products */
int parse_integral(struct parser *p); /* big.c */
int parse_limit(struct parser *p);    /* big.c */
/* label.c: consumes the name before "=", or the application that ends a chain; -2: none */
int parse_label(struct parser *p, bool front);

/* apply.c: the value of a function that is only named, at the cursor; -2: other tokens */
int parse_application(struct parser *p);
/* x as printed between both, as one letter */
int named_value(struct parser *p, const char *front, int x, const char *after);

/* functions.c: f of n arguments; base: the base of a logarithm, or -1 */
int parse_function_value(struct parser *p, int f, int base, int *args, int n);
int function_inverse(int f); /* sin: arcsin; 0: none */
/* label.c: {dy}{dx}, the arguments of a \frac at the cursor, as the symbol y', consumed; -2:
 * another fraction */
int parse_derivative(struct parser *p);

/* where.c */
/* returns whether brackets after a value hold its condition */
bool at_condition(const struct parser *p);
/* parses them, or those at a T_WHERE, after the value x */
int parse_conditions(struct parser *p, int x);
/* the relation x; x itself if it is not a congruence */
int parse_congruence(struct parser *p, int x);
/* x \in R, x != 3 as one value */
int lift_memberships(struct parser *p, int *items, int n, int joints);

/* matrix.c: of nodes; -1: not matrices of matching shapes, or too large */
int matrix_determinant(struct math *m, const int *entries, int n);
int matrix_det(struct math *m, int a);

#endif
