/* Tokens, and the vocabulary that maps command and word names to them. */
#ifndef TARE_MATH_TOKENS_H
#define TARE_MATH_TOKENS_H

#include "math.h"

enum tok {
    T_END,
    T_NUM,   /* text: digits without separators; exp; aux: enum num_flags */
    T_SYM,   /* text: name */
    T_CONST, /* aux: enum constant */
    T_FUNC,  /* aux: enum func */
    T_LOG,
    T_LG,
    T_FRAC,
    T_SQRT,
    T_CBRT,
    T_BINOM,
    T_CHOOSE,
    T_OVER,
    T_SUM,
    T_PROD,
    T_INT,
    T_PLUS,
    T_MINUS,
    T_PM,
    T_MP,
    T_TIMES,
    T_DIV,
    T_CARET,
    T_UNDER,
    T_FACT, /* aux 1: the double factorial */
    T_PRIME,
    T_MOD,
    T_COMMA,
    T_SEMI,
    T_AND,
    T_COLON,
    T_REL, /* aux: enum rel */
    T_LPAREN,
    T_RPAREN,
    T_LBRACK,
    T_RBRACK,
    T_LBRACE,
    T_RBRACE,
    T_LSET,
    T_RSET,
    T_BAR,
    T_LBAR,
    T_RBAR,
    T_LFLOOR,
    T_RFLOOR,
    T_LCEIL,
    T_RCEIL,
    T_LANGLE,
    T_RANGLE,
    T_AMP,
    T_ROW,
    T_BEGIN, /* aux: enum environment */
    T_ENDENV,
    T_CUP,
    T_CAP,
    T_SETMINUS,
    T_TEXT,     /* text: folded words */
    T_UNIT,     /* text: canonical unit */
    T_CURRENCY, /* text: as T_UNIT, before its value */
    T_BASE,     /* after a numeral; aux: its base */
    T_IMPLIES,  /* the text before it is not the answer */
    T_OPTION,   /* text: the letter before an option's text */
    T_LIM,      /* text: its name */
    T_DET,
    T_MARK, /* \angle, \triangle, \#: text; makes a name of the next tokens */
    T_PERCENT,
    T_DEGREE, /* aux 1: a composition of functions */
    T_ARC,    /* aux 1: minutes of arc, 2: seconds */
    T_SCALE,  /* aux: power of ten */
    T_ACCENT, /* text: name; the next group is its argument */
    T_OVERLINE,
    T_GROUP, /* a command that only groups: \boxed */
    T_PMOD,  /* \pmod: its argument is a modulus */
    T_WHERE, /* conditions follow; aux: the set that its words name, or 0 */
    T_NOT,   /* \not: negates the relation after it */
    T_ASIDE, /* a command whose argument is not part of the answer: \color{red} */
    T_SKIP,
    T_STYLE,
    T_WORDS,
    T_BB,
    T_LEFT,
    T_RIGHT,
    T_ENV, /* never reach the parser */
    T_BAD
};
enum num_flags { NUM_DECIMAL = 1, NUM_GROUPED = 2, NUM_ENOTATION = 4 };
enum style { STYLE_ARROW = 1, STYLE_BOLD = 2 };
/* aux of a T_TIMES; of a T_SYM: a vector or matrix, whose products keep their order */
enum { TIMES_CROSS = 1, SYM_ORDERED = 1 };
enum environment { ENV_MATRIX, ENV_DET, ENV_CASES, ENV_LINES, ENV_OTHER };
enum joint { JOINT_COMMA = 1, JOINT_AND = 2, JOINT_OR = 4, JOINT_SIGN = 8 };
/* separators of the members of a list; JOINT_SIGN: \land or \lor, not a word */

struct word {
    const char *name;
    int16_t kind, aux;
    const char *text; /* of a symbol or unit, if it differs from the name */
};

const struct word *find_command(const char *s, int64_t n); /* names after a backslash */
/* names without a backslash: sin, sqrt, pi, inf ... */
const struct word *find_function(const char *s, int64_t n);
bool find_scale(const char *s, int64_t n, int *power);
bool is_percent_word(const char *s, int64_t n);
bool is_degree_word(const char *s, int64_t n);

#endif
