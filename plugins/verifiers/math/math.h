/* Inside the math verifier: what its files share. One struct math belongs to one instance, one instance to one thread.
 *
 *   extract.c    completion -> the text of its answer             normalize.c  Unicode and TeX spelling -> ASCII TeX; text for comparing words
 *   lex.c        text -> tokens, words.c the vocabulary           parse.c      tokens -> scalars;  top.c  lists, relations, brackets
 *   denial.c     does the text deny what was found?                apply.c      functions that are only named
 *   product.c    products of vectors and matrices that are only named
 *   dag.c        hash-consed nodes: equal subtrees are one node   exact.c      rational values     modular.c  values mod p (identities)
 *   numeric.c    complex balls at a precision                     algebraic.c  qqbar and ca: equality of algebraic and elementary numbers
 *   decide.c     are two scalars equal? cheapest first            compare.c    types: sets, tuples, matrices, texts;  interval.c, relation.c
 *
 * Bounded by construction: bytes of an answer, tokens, nodes, depth, bits of a rational, precision, degree, and a count of evaluation
 * steps for each pair (struct math.budget). Nothing is evaluated while parsing. No signals, no state beyond the instance.
 */
#ifndef TARE_MATH_H
#define TARE_MATH_H

#include "common/text.h"

#include <stdbool.h>

enum {
    MAX_ANSWER = 16384, /* bytes of an answer that are parsed; longer ones are compared as text */
    MAX_TOKENS = 8192,
    MAX_NODES = 20000,
    MAX_KIDS = 60000,
    MAX_POOL = 262144, /* bytes of names and digits */
    MAX_DEPTH = 200,
    MAX_BITS = 1 << 20, /* of a rational number's numerator or denominator */
    MAX_STEPS = 60000,  /* evaluations of a node for one pair */
    MAX_SYMBOLS = 64,
    MAX_ITEMS = 2048, /* of one list */
    MAX_ROUNDING = 30 /* decimals */
};

/* ---------------------------------------------------------------- nodes */

enum op {
    OP_NUM = 1, /* digits * 10^exp, sign in aux */
    OP_SYM,     /* aux: symbol index */
    OP_CONST,   /* aux: enum constant */
    OP_ADD,
    OP_MUL,
    OP_POW,  /* base, exponent */
    OP_ROOT, /* radicand, odd index >= 3 (a NUM): real for a negative radicand */
    OP_FUNC, /* aux: enum func */
    OP_FACT,
    OP_BINOM,
    OP_MOD,
    OP_SUM,  /* bound symbol, from, to, body */
    OP_PROD, /* the same */
    OP_PM,   /* a +- b; aux 1: -+ */
    OP_DEG,  /* degrees */
    /* below: no scalars */
    OP_PCT,
    OP_UNIT,  /* x; digits: the unit's canonical name */
    OP_BASE,  /* the numeral's value; aux: base */
    OP_TUPLE, /* aux: bit 0 left closed, bit 1 right closed */
    OP_SET,   /* in braces */
    OP_LIST,  /* between commas */
    OP_UNION,
    OP_INTER,
    OP_DIFF,
    OP_REL,    /* digits: one enum rel a byte, between kid i and i+1 */
    OP_MATRIX, /* aux: columns */
    OP_RATIO,
    OP_INT,    /* aux 1: from, to, the integrand with its differential, without it, the variable; else the integrand with it */
    OP_TEXT,   /* digits: folded words */
    OP_WHERE,  /* a value and its conditions; aux 1: they only say what kind of number a letter is */
    OP_OPTION, /* (B) 12: the value; aux: the letter */
    OP_SAID    /* 5 km north, 4% less: the value; digits: the words after its unit */
};

enum { TEXT_NAME = 1 }; /* aux of an OP_TEXT: the name of something */
enum constant { C_PI = 1, C_E, C_I, C_INF, C_UNDEFINED, C_EMPTY, C_REALS, C_INTEGERS, C_NATURALS, C_RATIONALS, C_COMPLEXES };
enum rel { R_EQ = 1, R_NE, R_LT, R_LE, R_GT, R_GE, R_APPROX, R_IN, R_NOTIN, R_SUBSET, R_EQUIV, R_TO, R_SIM, R_SUPSET };
enum func {
    F_SIN = 1,
    F_COS,
    F_TAN,
    F_COT,
    F_SEC,
    F_CSC,
    F_ASIN,
    F_ACOS,
    F_ATAN,
    F_ACOT,
    F_ASEC,
    F_ACSC,
    F_SINH,
    F_COSH,
    F_TANH,
    F_COTH,
    F_SECH,
    F_CSCH,
    F_ASINH,
    F_ACOSH,
    F_ATANH,
    F_EXP,
    F_LN,
    F_LOG /* x, base */,
    F_ABS,
    F_FLOOR,
    F_CEIL,
    F_MAX,
    F_MIN,
    F_GCD,
    F_LCM,
    F_RE,
    F_IM,
    F_ARG,
    F_CONJ,
    F_SIGN,
    F_CIS,  /* never a node: e^{ix} */
    F_DIAG, /* never one: a matrix */
    F_N
};

struct node {
    uint8_t op;
    uint16_t flags;        /* NODE_* of the node and everything below */
    int32_t aux, n, first; /* kids[first .. first+n-1] */
    uint32_t hash;
    int32_t digits, n_digits; /* in pool */
    int64_t exp;
};
enum {
    NODE_VAR = 1,
    NODE_TRANS = 2 /* pi, e, exp, log, trigonometry */,
    NODE_SHAPE = 4 /* a non-scalar inside */,
    NODE_PM = 8,
    NODE_DEG = 16,
    NODE_DISCRETE = 32 /* factorial, floor, mod, sum */,
    NODE_INF = 64,
    NODE_DECIMAL = 128,
    NODE_BOUND = 256, /* the index of a sum that is open */
    NODE_OPAQUE = 512 /* a sum up to infinity, a gcd of what is not rational: may have a value, and is equal to itself */
};

struct values; /* evaluation caches: numeric.c, exact.c, modular.c */

struct token {
    int16_t kind;
    bool space;              /* blank before it */
    int32_t aux, begin, end; /* end: in src */
    int32_t text, n_text;    /* in pool: digits, names, words */
    int32_t rep;             /* T_NUM: how many of the last digits repeat */
    int64_t exp;
};

struct options {
    int64_t boxed_priority; /* 0, 50, 100 */
    int64_t rounding;       /* decimals that must agree when one side is a decimal; -1: exact */
    bool strict, allow_set_relation, gold_latex, gold_auto, use_latex, use_expr;
    bool unit_missing, letter_case, number_words;
};

enum { MAX_LIMITS = 8, MAX_TAYLOR = 12 };

struct math {
    struct options defaults, o;
    struct node *nodes;
    int32_t n_nodes, *kids, n_kids, *table; /* table: hash -> node + 1 */
    char *pool;
    int32_t n_pool;
    struct {
        int32_t name, n_name;
    } symbol[MAX_SYMBOLS];
    int32_t n_symbols;
    struct limit {
        int symbol, under, body; /* nodes: what stands for it; x \to a; of what */
    } limits[MAX_LIMITS];
    int n_limits;
    bool integrals; /* some definite integral was read */
    struct token *tokens;
    int32_t n_tokens;
    char *buffer;                    /* [4 * MAX_ANSWER] the answer being lexed, folded */
    char *scratch;                   /* [2][4 * MAX_ANSWER] */
    int items[2][2 * MAX_ITEMS + 2]; /* of the lists being compared */
    int nesting;
    int64_t steps;              /* left for this pair */
    int32_t alias[MAX_SYMBOLS]; /* letters of the other case, when folded */
    struct values *values;
    const char *reason, *parse_error;
    int64_t precision;     /* bits of the balls that the verdict rests on; 0: it is exact */
    bool commas_ambiguous; /* some 1,234 was read as one number */
    bool commas_between;   /* some other comma stands between digits */
};

enum { TABLE = 32768 };

bool math_alloc(struct math *m);
void math_release(struct math *m);
void math_reset(struct math *m); /* forgets all nodes */
/* All makers return a node, or -1 when a kid is -1 or a limit is reached. */
int mk(struct math *m, enum op op, int aux, const int *kids, int n);
int mk_text(struct math *m, enum op op, int aux, const int *kids, int n, tare_text text);
int mk_rel(struct math *m, int left, enum rel sign, int right);
int mk_named(struct math *m, const char *name, const int *kids, int n); /* values that mean something together, as "measures" */
int mk_unit(struct math *m, int x, tare_text unit);
int mk_again(struct math *m, const struct node *a, const int *kids); /* a, a copy of a node, with other kids */
int mk_num(struct math *m, bool negative, const char *digits, int64_t n, int64_t exp);
int mk_int(struct math *m, int64_t x);
int mk_sym(struct math *m, const char *name, int64_t n);
int mk_const(struct math *m, enum constant c);
int mk_add(struct math *m, int a, int b);
int mk_mul(struct math *m, int a, int b);
int mk_neg(struct math *m, int a);
int mk_div(struct math *m, int a, int b);
int mk_pow(struct math *m, int a, int b);
int mk_root(struct math *m, int a, int64_t index);
int mk_func(struct math *m, enum func f, int a);
int mk_func2(struct math *m, enum func f, int a, int b);
int pool_add(struct math *m, const char *s, int64_t n); /* offset, or -1 */
static inline const struct node *at(const struct math *m, int i)
{
    return &m->nodes[i];
}
static inline int kid(const struct math *m, int i, int k)
{
    return m->kids[m->nodes[i].first + k];
}
static inline tare_text token_text(const struct math *m, const struct token *t)
{
    return (tare_text){m->pool + t->text, t->n_text};
}
int matrix_product(struct math *m, int a, int b); /* matrix.c; -1: not matrices of fitting shapes */
bool is_transpose(const struct math *m, int exponent);
int matrix_power(struct math *m, int a, int exponent); /* whole powers, -1 the inverse, T the transpose */
/* x with the symbol s (its index) replaced */
int substitute(struct math *m, int x, int s, int value);
/* x with every a +- b taken as a + b (sign 0) or a - b (sign 1) */
int pm_expand(struct math *m, int x, int sign);
/* a NUM that is a whole number of at most 18 digits */
bool small_int(const struct math *m, int x, int64_t *out);
bool num_is(const struct math *m, int x, int64_t value);

/* ---------------------------------------------------------------- reading */

/* Where an answer was found. */
struct found {
    tare_text text[64]; /* parts: several adjacent boxes or environments make one list */
    int n;
    const char *rule; /* NULL: nothing */
    bool plain;       /* not TeX: a comma may be a decimal comma */
    tare_text whole;  /* the sentence that the answer was cut from; size 0: none */
    tare_text onward; /* from the start of a single answer to the end of its sentence, where more follows; size 0: nothing does */
    bool operated;    /* the words after the number do something with it: it does not count alone */
    int joints;       /* what stands between the parts: enum joint */
};
void extract_answer(const struct options *o, tare_text completion, struct found *out);

/* The folded, unescaped ASCII form in m->buffer; its length, or -1 when too long. */
int64_t fold_tex(struct math *m, tare_text t, char *out, int64_t capacity);
/* Blanks, \left, \right, style commands and needless braces taken out; words lower-case if fold_case. Returns the length. */
int64_t squash(const char *s, int64_t n, char *out, bool fold_case);
/* Of squashed text: 3/4/2024, 555-1234; and two or more capitals with nothing else, as in IV. */
bool is_date_or_phone(const char *s, int64_t n);
bool is_capitals(const char *s, int64_t n);

/* What a comma between digits is: 1,234 one number, and 1,5 two; every comma separates; every one is a decimal mark. */
enum commas { COMMA_GROUPS, COMMA_LISTS, COMMA_DECIMALS };
/* am, PM, a.m., A. M. at i: how many bytes; 0: something else. Pm is a unit. */
int64_t half_of_day(tare_text t, int64_t i);
enum truth { NO = 0, YES = 1, UNKNOWN = 2 };
/* lex_whole.c: the same chemical formula, however its digits are set */
bool same_formula(const struct found *gold, const struct found *pred);
/* dates.c; sentence: that of pred, or empty. UNKNOWN: one is no date in words */
enum truth compare_dates(tare_text gold, tare_text pred, tare_text sentence);

/* false: m->parse_error. plain: no TeX, where 1,5 may be one number */
bool lex(struct math *m, const char *s, int64_t n, enum commas commas, bool plain);
int parse_answer(struct math *m); /* of the tokens; -1: m->parse_error */

/* ---------------------------------------------------------------- deciding */

enum value { V_OK = 0, V_NOT_RATIONAL, V_UNDEFINED, V_TOO_BIG };

/* Once in the process, before anything of FLINT. */
void memory_begin(void);
/* Runs call(arg); false: it was left where FLINT got no memory or gave up. m->values is then to be abandoned (set NULL), not released. */
bool guarded(void (*call)(void *arg), void *arg);
bool values_alloc(struct math *m);
void values_release(struct math *m);
void values_reset(struct math *m);

enum truth exact_equal(struct math *m, int a, int b);    /* UNKNOWN: not both rational */
enum value exact_sign(struct math *m, int a, int *sign); /* V_OK: sign of a rational */
enum truth numeric_equal(struct math *m, int a, int b);  /* closed; NO is proved; YES: 1,000 digits agree; UNKNOWN: see m->values */
enum truth numeric_less(struct math *m, int a, int b);   /* closed and real: a < b proved YES, a >= b NO */
bool numeric_close(struct math *m, int a, int b);        /* within one percent */
bool numeric_is_undefined(struct math *m, int a);        /* evaluates to something that is no number */
enum truth numeric_refutes(struct math *m, int a, int b, bool *undefined); /* the cheap first passes: NO or UNKNOWN */
enum truth numeric_rounded(struct math *m, int a, int b, int64_t decimals);
enum truth algebraic_equal(struct math *m, int a, int b); /* qqbar, then ca; UNKNOWN: over the guards */
enum truth identity_equal(struct math *m, int a, int b);  /* with variables */
/* p = c q identically, with a constant c != 0; *sign: of c when it is real and known, else 0 */
enum truth identity_proportional(struct math *m, int p, int q, int *sign);
bool modular_is_rational(const struct math *m, int a); /* a rational function over Q(variables, pi) */
enum truth modular_equal(struct math *m, int a, int b);
enum truth modular_proportional(struct math *m, int p, int q);
enum truth numeric_identity(struct math *m, int a, int b);
enum truth numeric_proportional(struct math *m, int p, int q, int *sign);

bool decide(struct math *m, int a, int b);     /* scalars */
void math_alias(struct math *m, int a, int b); /* which letters stand for which under the options; -1, -1: none */
bool compare(struct math *m, int gold, int pred);
bool compare_where(struct math *m, int gold, int pred);          /* where.c: either has conditions */
enum truth compare_families(struct math *m, int gold, int pred); /* family.c: a + b k over all whole k; YES or UNKNOWN */
enum truth compare_relations(struct math *m, int gold, int pred);
bool relation_value(struct math *m, int x, int *lhs, int *value); /* x = v, an assignment or a chain that ends in a value */
bool is_name(const struct math *m, int x);
bool same_segment(const struct math *m, int a, int b); /* AB, \\overline{BA} */
int relation_op(const struct math *m, int x, int i);   /* enum rel between members i and i + 1 */
/* Members from the least to the greatest, ops[i] 1 where the ends may meet; false: mixed directions or other relations. */
bool relation_ascending(const struct math *m, int x, int *members, int *ops);
/* Unions of intervals and finite sets; UNKNOWN: cannot be ordered. */
enum truth compare_intervals(struct math *m, int a, int b);
int in_radians(struct math *m, int x);                    /* functions.c: degrees as multiples of pi / 180 */
bool same_notation(struct math *m, int *gold, int *pred); /* shapes.c: vectors and matrices */
/* calculus.c */
int derivative(struct math *m, int x, int s); /* by the symbol s; -1: no rule */
/* x + C and y + K, where x and y differ by a constant */
int coefficients(struct math *m, int f, int s, int *out); /* out: MAX_TAYLOR + 1; how many; 0: no polynomial of the symbol s */
bool same_antiderivatives(struct math *m, int gold, int pred);
bool only_constants(const struct math *m, int x, int s); /* letters other than s stand for constants, by their names */
/* gold and pred with the limits and definite integrals in them replaced by their values; false: there are none that are known */
bool calculus_values(struct math *m, int *gold, int *pred);
bool is_real_set(const struct math *m, int x);
int relation_to_set(struct math *m, int x); /* inequality.c: an inequality in one symbol, as an interval; -1: none */
/* One inequality, or a list of them, all in the same symbol: that symbol's node; else -1. */
int inequality_symbol(const struct math *m, int x);

/* ---------------------------------------------------------------- row and output */

void row_options(struct options *o, tare_text row);
/* The node as text (an S-expression) for explanations; at most capacity bytes. Returns the length. */
int64_t print_node(const struct math *m, int x, char *out, int64_t capacity);

#endif
