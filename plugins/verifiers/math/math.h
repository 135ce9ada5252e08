/* Internal to the math verifier: declarations shared by its files. A struct math belongs to one
 * instance, an instance to one thread.
 *
 *   extract.c    completion -> the text of its answer
 *   normalize.c  Unicode and TeX spelling -> ASCII TeX; text for comparing words
 *   lex.c        text -> tokens; words.c: the vocabulary
 *   parse.c      tokens -> scalars; top.c: lists, relations, brackets
 *   denial.c     does the text deny the answer found?
 *   apply.c      functions that are only named
 *   product.c    products of vectors and matrices that are only named
 *   dag.c        hash-consed nodes: equal subtrees are one node
 *   exact.c      rational values; modular.c: values mod p (identities)
 *   numeric.c    complex balls at a precision
 *   algebraic.c  qqbar and ca: equality of algebraic and elementary numbers
 *   decide.c     are two scalars equal? cheapest first
 *   compare.c    types: sets, tuples, matrices, texts; interval.c, relation.c
 *
 * Bounded by construction: bytes of an answer, tokens, nodes, depth, bits of a rational, precision,
 * degree, and the number of evaluation steps per pair (struct math.budget). Nothing is evaluated
 * while parsing. No signals, no state outside of the instance.
 */
#ifndef TARE_MATH_H
#define TARE_MATH_H

#include "common/text.h"

#include <stdbool.h>

enum {
    MAX_ANSWER = 16384, /* bytes of an answer that is parsed; longer ones are compared as text */
    MAX_TOKENS = 8192,
    MAX_NODES = 20000,
    MAX_KIDS = 60000,
    MAX_POOL = 262144, /* bytes of names and digits */
    MAX_DEPTH = 200,
    MAX_BITS = 1 << 20, /* bits of a rational number's numerator or denominator */
    MAX_STEPS = 60000,  /* evaluations of a node per pair */
    MAX_SYMBOLS = 64,
    MAX_ITEMS = 2048, /* items of one list */
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
    OP_PROD, /* bound symbol, from, to, body */
    OP_PM,   /* a +- b; aux 1: -+ */
    OP_DEG,  /* degrees */
    /* from here on: not scalars */
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
    /* aux 1: from, to, the integrand with its differential, without it, the variable; else the
     * integrand with it */
    OP_INT,
    OP_TEXT, /* digits: folded words */
    /* a value and its conditions; aux 1: they only give the kind of number of a letter */
    OP_WHERE,
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
    F_DIAG, /* never a node: a matrix */
    F_N
};

struct node {
    uint8_t op;
    uint16_t flags;        /* NODE_* of the node and its subtree */
    int32_t aux, n, first; /* kids[first .. first+n-1] */
    uint32_t hash;
    int32_t digits, n_digits; /* in pool */
    int64_t exp;
};
enum {
    NODE_VAR = 1,
    NODE_TRANS = 2 /* pi, e, exp, log, trigonometry */,
    NODE_SHAPE = 4 /* a non-scalar in the subtree */,
    NODE_PM = 8,
    NODE_DEG = 16,
    NODE_DISCRETE = 32 /* factorial, floor, mod, sum */,
    NODE_INF = 64,
    NODE_DECIMAL = 128,
    NODE_BOUND = 256, /* the index of an open sum */
    /* a sum up to infinity, a gcd of irrational arguments: may have a value, and equals itself */
    NODE_OPAQUE = 512
};

struct values; /* evaluation caches: numeric.c, exact.c, modular.c */

struct token {
    int16_t kind;
    bool space;              /* preceded by a blank */
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
    bool opened;    /* the prompt has opened the thought */
    bool guess;     /* the last number of a text that announces none counts */
    bool evaluated; /* an operation that only restates the question is no answer */
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
        int symbol, under, body; /* nodes: the symbol, x \to a, and the body */
    } limits[MAX_LIMITS];
    int n_limits;
    bool integrals; /* a definite integral was parsed */
    struct token *tokens;
    int32_t n_tokens;
    char *buffer;                    /* [4 * MAX_ANSWER] the folded answer that is being lexed */
    char *scratch;                   /* [2][4 * MAX_ANSWER] */
    int items[2][2 * MAX_ITEMS + 2]; /* of the lists being compared */
    char *clean;                     /* the completion without programs and struck out text, of clean_capacity bytes */
    int64_t clean_capacity;
    int nesting;
    int64_t steps;              /* remaining for this pair */
    int32_t alias[MAX_SYMBOLS]; /* letters of the other case, if cases are merged */
    struct values *values;
    const char *reason, *parse_error;
    /* precision in bits of the balls on which the verdict depends; 0: it is exact */
    int64_t precision;
    bool commas_ambiguous; /* some 1,234 was read as one number */
    bool commas_between;   /* another comma is between digits */
};

enum { TABLE = 32768 };

bool math_alloc(struct math *m);
void math_release(struct math *m);
void math_reset(struct math *m); /* drops all nodes */
/* Constructors return a node, or -1 if a kid is -1 or a limit is reached. */
int mk(struct math *m, enum op op, int aux, const int *kids, int n);
int mk_text(struct math *m, enum op op, int aux, const int *kids, int n, tare_text text);
int mk_rel(struct math *m, int left, enum rel sign, int right);
/* values that belong together, such as "measures" */
int mk_named(struct math *m, const char *name, const int *kids, int n);
int mk_unit(struct math *m, int x, tare_text unit);
/* a copy of node a with other kids */
int mk_again(struct math *m, const struct node *a, const int *kids);
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
/* matrix.c; -1: not matrices of matching shapes */
int matrix_product(struct math *m, int a, int b);
bool is_transpose(const struct math *m, int exponent);
/* integer powers, -1 the inverse, T the transpose */
int matrix_power(struct math *m, int a, int exponent);
/* x with the symbol s (its index) replaced */
int substitute(struct math *m, int x, int s, int value);
/* x with every a +- b replaced by a + b (sign 0) or a - b (sign 1) */
int pm_expand(struct math *m, int x, int sign);
/* an integer NUM of at most 18 digits */
bool small_int(const struct math *m, int x, int64_t *out);
bool num_is(const struct math *m, int x, int64_t value);

/* ---------------------------------------------------------------- reading */

/* Location of an answer in its text. */
struct found {
    tare_text text[64]; /* parts: several adjacent boxes or environments make one list */
    int n;
    const char *rule; /* NULL: none */
    bool plain;       /* not TeX: a comma may be a decimal comma */
    tare_text whole;  /* the sentence around the answer; size 0: none */
    /* from the start of a single answer to the end of its sentence, if text follows it; size 0:
     * none */
    tare_text onward;
    bool operated;  /* the words after the number operate on it, so it does not count alone */
    bool refused;   /* the anchor announces a request */
    tare_text read; /* the text around a guess that was read; size 0: all */
    int joints;     /* separators between the parts: enum joint */
};
/* Gives the text after the thought without programs and struck out text; false: no memory. It is valid until the next call. */
bool clean_text(struct math *m, tare_text completion, tare_text *out);
/* Finds the answer in a cleaned text. */
void extract_answer(const struct options *o, tare_text completion, struct found *out);

/* Writes the folded, unescaped ASCII form to m->buffer; returns its length, or -1 if it is too
 * long. */
int64_t fold_tex(struct math *m, tare_text t, char *out, int64_t capacity);
/* Removes blanks, \left, \right, style commands and unnecessary braces; lower-cases words if
 * fold_case. Returns the length. */
int64_t squash(const char *s, int64_t n, char *out, bool fold_case);
/* For squashed text: 3/4/2024, 555-1234; and two or more capitals alone, as in IV. */
bool is_date_or_phone(const char *s, int64_t n);
bool is_capitals(const char *s, int64_t n);

/* The meaning of a comma between digits: 1,234 is one number and 1,5 two; every comma separates;
 * every comma is a decimal mark. */
enum commas { COMMA_GROUPS, COMMA_LISTS, COMMA_DECIMALS };
/* am, PM, a.m., A. M. at i: number of bytes; 0: other text. Pm is a unit. */
int64_t half_of_day(tare_text t, int64_t i);
enum truth { NO = 0, YES = 1, UNKNOWN = 2 };
/* lex_whole.c: the same chemical formula, in any typesetting of its digits */
bool same_formula(const struct found *gold, const struct found *pred);
/* dates.c; sentence: that of pred, or empty. UNKNOWN: one is not a date in words */
enum truth compare_dates(tare_text gold, tare_text pred, tare_text sentence);

/* false: see m->parse_error. plain: not TeX, so 1,5 may be one number */
bool lex(struct math *m, const char *s, int64_t n, enum commas commas, bool plain);
int parse_answer(struct math *m); /* from the tokens; -1: see m->parse_error */

/* ---------------------------------------------------------------- deciding */

enum value { V_OK = 0, V_NOT_RATIONAL, V_UNDEFINED, V_TOO_BIG };

/* Makes FLINT allocate through guarded(). Call it before any FLINT function. */
void memory_begin(void);
/* Runs call(arg). false: it was abandoned because FLINT got no memory or gave up. m->values must
 * then be set to NULL without releasing it. */
bool guarded(void (*call)(void *arg), void *arg);
bool values_alloc(struct math *m);
void values_release(struct math *m);
void values_reset(struct math *m);

enum truth exact_equal(struct math *m, int a, int b);    /* UNKNOWN: not both rational */
enum value exact_sign(struct math *m, int a, int *sign); /* V_OK: sign of a rational */
/* closed; NO is proved; YES: 1,000 digits agree; UNKNOWN: see m->values */
enum truth numeric_equal(struct math *m, int a, int b);
/* closed and real: a < b proved YES, a >= b NO */
enum truth numeric_less(struct math *m, int a, int b);
bool numeric_close(struct math *m, int a, int b); /* within one percent */
bool numeric_is_undefined(struct math *m, int a); /* evaluates to something undefined */
/* the cheap first passes: NO or UNKNOWN */
enum truth numeric_refutes(struct math *m, int a, int b, bool *undefined);
enum truth numeric_rounded(struct math *m, int a, int b, int64_t decimals);
/* qqbar, then ca; UNKNOWN: over the guards */
enum truth algebraic_equal(struct math *m, int a, int b);
enum truth identity_equal(struct math *m, int a, int b); /* with variables */
/* p = c q identically, with a constant c != 0; *sign: the sign of c if it is real and known, else
 * 0 */
enum truth identity_proportional(struct math *m, int p, int q, int *sign);
/* a rational function over Q(variables, pi) */
bool modular_is_rational(const struct math *m, int a);
enum truth modular_equal(struct math *m, int a, int b);
enum truth modular_proportional(struct math *m, int p, int q);
enum truth numeric_identity(struct math *m, int a, int b);
enum truth numeric_proportional(struct math *m, int p, int q, int *sign);

bool decide(struct math *m, int a, int b); /* scalars */
/* which letters are identified under the options; -1, -1: none */
void math_alias(struct math *m, int a, int b);
bool compare(struct math *m, int gold, int pred);
/* where.c: either side has conditions */
bool compare_where(struct math *m, int gold, int pred);
/* family.c: a + b k over all integers k; YES or UNKNOWN */
enum truth compare_families(struct math *m, int gold, int pred);
enum truth compare_relations(struct math *m, int gold, int pred);
/* x = v, an assignment or a chain that ends in a value */
bool relation_value(struct math *m, int x, int *lhs, int *value);
bool is_name(const struct math *m, int x);
bool same_segment(const struct math *m, int a, int b); /* AB, \\overline{BA} */
int relation_op(const struct math *m, int x, int i);   /* enum rel between members i and i + 1 */
/* Members from the least to the greatest, ops[i] 1 if the ends may be equal; false: mixed
 * directions or other relations. */
bool relation_ascending(const struct math *m, int x, int *members, int *ops);
/* Unions of intervals and finite sets; UNKNOWN: cannot be ordered. */
enum truth compare_intervals(struct math *m, int a, int b);
/* functions.c: degrees as multiples of pi / 180 */
int in_radians(struct math *m, int x);
bool same_notation(struct math *m, int *gold, int *pred); /* shapes.c: vectors and matrices */
/* calculus.c */
int derivative(struct math *m, int x, int s); /* by the symbol s; -1: no rule */
/* x + C and y + K, where x and y differ by a constant */
/* out: MAX_TAYLOR + 1; returns the number; 0: not a polynomial of the symbol s */
int coefficients(struct math *m, int f, int s, int *out);
bool same_antiderivatives(struct math *m, int gold, int pred);
/* all letters other than s are names of constants */
bool only_constants(const struct math *m, int x, int s);
/* replaces the limits and definite integrals in gold and pred by their values; false: none are
 * known */
bool calculus_values(struct math *m, int *gold, int *pred);
bool is_real_set(const struct math *m, int x);
/* inequality.c: an inequality in one symbol, as an interval; -1: none */
int relation_to_set(struct math *m, int x);
/* Returns the symbol's node of one inequality, or a list of them all in the same symbol; else
 * -1. */
int inequality_symbol(const struct math *m, int x);

/* ---------------------------------------------------------------- row and output */

/* Returns whether the answer is an operation that only restates the question, where the gold answer has none (restated.c). */
bool restates_question(const struct found *gold, const struct found *pred);
void row_options(struct options *o, tare_text row);
/* Prints the node as an S-expression, for explanations; at most capacity bytes. Returns the
 * length. */
int64_t print_node(const struct math *m, int x, char *out, int64_t capacity);

#endif
