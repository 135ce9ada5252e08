/* Declarations shared by the lexer's files. Functions that return false have reported why
 * (lex_fail). */
#ifndef TARE_MATH_LEXER_H
#define TARE_MATH_LEXER_H

#include "units.h"

struct lexer {
    struct math *m;
    const char *s;
    /* no_group: digits and commas before this position are a list */
    int64_t n, i, skip_from, skip_to, no_group;
    int depth, matrices, nesting, angles;
    enum commas commas;
    bool plain, space, after_left, negated; /* negated: a \not precedes */
};

bool lex_fail(struct lexer *x, const char *why);
bool lex_push(struct lexer *x, int kind, int aux, const char *text, int64_t n_text);
bool lex_push_word(struct lexer *x, const struct word *w);
/* Pushes a symbol with the primes and the subscript that follow it. */
bool lex_push_symbol(struct lexer *x, const char *name, int64_t n);
/* Lexes words after a value, at s: units, percent, degrees, million. *used: number of bytes; 0:
 * none. */
bool lex_push_measure(struct lexer *x, const char *s, int64_t n, bool in_text, int64_t *used);
bool lex_push_unit(struct lexer *x, const struct unit *u);
bool lex_unit_follows(const struct lexer *x); /* true if a unit may appear here */
/* Returns the base named by squashed text: 8 for "8", "(base8)" and "eight"; 0: not a base. */
int lex_base_of(const char *s, int64_t n);
int lex_last_kind(const struct lexer *x);
bool lex_after_operand(const struct lexer *x);
/* Returns the end of the group that opens at i (after its closing brace), or of the character or
 * command there. */
int64_t lex_group_end(const struct lexer *x, int64_t i);
/* Returns a copy of x that ends NEAR_BYTES after i, for groups that are short or irrelevant: nested
 * groups would otherwise cost the square of their depth. */
enum { NEAR_BYTES = 96 };
struct lexer lex_near(const struct lexer *x, int64_t i);
bool lex_starts(const struct lexer *x, int64_t i, const char *word);
int64_t lex_digits_end(const struct lexer *x, int64_t i);
int64_t lex_skip_spaces(const struct lexer *x, int64_t i);
bool lex_word_is(const char *s, int64_t n, const char *w);

/* Lexes the characters from .. to - 1, then continues at the previous position. */
bool lex_range(struct lexer *x, int64_t from, int64_t to);
/* lex_whole.c: lexes an answer that is a numeral in a base above ten; *done: it was one */
bool lex_large_base(struct lexer *x, bool *done);
/* lex_number.c */
bool lex_number(struct lexer *x);
bool lex_decimal_comma(const struct lexer *x); /* at a comma: true if decimals (,75) start there */
/* lex_notation.c */
bool lex_prescript(struct lexer *x, bool *done); /* {}_n C_r; *done: it was one */
bool lex_counted(struct lexer *x, char letter, bool *done);
/* lexes _n^k after C, A or P; *done: it was one */
bool lex_combinations(struct lexer *x, char letter, bool *done);
bool lex_braced_sign(struct lexer *x, bool *done);
bool lex_after_degree(const struct lexer *x);
/* lexes primes after a number as minutes of arc or feet; *done: it was one */
bool lex_arc(struct lexer *x, bool *done);
const char *lex_temperature(const struct lexer *x, const char *s, int64_t n);
/* Returns the length of the numeral in "3 hours", or of all of "6 and 8"; 0: neither. */
int64_t lex_measure_in_text(const char *s, int64_t n);
/* Returns the unit vector i, j or k under a hat (squashed, also dotless); 0: another name. */
char lex_unit_vector(const char *s, int64_t n);
/* returns true if another unit vector follows in braces */
bool lex_other_unit_vector(const struct lexer *x, char letter);
bool lex_push_unit_vector(struct lexer *x, char letter);
/* lexes the exponent of 3\text{e}5; *done: it was one */
bool lex_e_notation(struct lexer *x, const char *s, int64_t n, bool *done);
/* lexes siunitx: \SI{5}{m/s}, \qty, \num, \ang, \unit; *done: it was one */
bool lex_siunitx(struct lexer *x, const char *name, int64_t n, bool *done);
bool lex_is_complex(const char *s, int64_t n);
/* returns true for single words between commas and connectives: A, C, and F */
bool lex_is_enumeration(const char *s, int64_t n);
bool lex_enumeration(struct lexer *x, const char *s, int64_t n);
bool lex_is_ordinal(const char *s, int64_t n); /* true for th, as in 17th */
/* Returns the length of a label before an option's text: "(B)", "B)" or "B."; 0: none. */
int64_t lex_option_label(const char *s, int64_t n);
/* returns true if a value is at i, after a label */
bool lex_option_follows(const struct lexer *x, int64_t i);
bool lex_push_option(struct lexer *x, const char *label);
bool lex_option(struct lexer *x); /* lexes a label at the start of the answer */
/* lex_words.c: lexes the words of \text and similar commands; math_font: of \mathrm, which also
 * makes symbols upright */
bool lex_words(struct lexer *x, bool math_font);
/* lex_command.c: lexes a command at a backslash */
bool lex_command(struct lexer *x);

#endif
