/* Answers in a single notation that would be split wrongly: numerals in a base above ten, chemical
 * formulas. */
#include "lexer.h"

#include <ctype.h>
#include <string.h>

enum { LONGEST = 80 };

/* Reads the digits of s in a base above ten, with at least one letter, into *value. */
static bool read_digits(const char *s, int64_t n, int base, int64_t *value)
{
    bool letter = false, small = false;
    *value = 0;
    if (n < 2 || n > 10) return false;
    for (int64_t i = 0; i < n; i++) {
        const char c = text_lower(s[i]);
        const int digit = text_is_digit(c) ? c - '0' : text_is_letter(c) ? c - 'a' + 10 : base;
        if (digit >= base) return false;
        letter |= digit > 9, small |= s[i] >= 'a';
        *value = *value * base + digit;
    }
    return letter && (!small || text_is_digit(s[0])); /* a_{11} is a name */
}

bool lex_large_base(struct lexer *x, bool *done)
{
    char text[2 * LONGEST], digits[24];
    int64_t value;
    *done = false;
    if (x->n > LONGEST || !memchr(x->s, '_', (size_t)x->n)) return true;
    const int64_t n = squash(x->s, x->n, text, false);
    int64_t i = n > 2 && text[1] == '=' ? 2 : 0;
    const bool brackets = i < n && text[i] == '(';
    const int64_t from = i += brackets;
    while (i < n && isalnum((unsigned char)text[i])) i++;
    const int64_t to = i;
    i += brackets && i < n && text[i] == ')';
    if (i >= n || text[i] != '_' || to == from) return true;
    const bool braced = i + 1 < n && text[i + 1] == '{';
    i += 1 + braced;
    const int base = lex_base_of(text + i, n - i - braced);
    if (base < 11 || !read_digits(text + from, to - from, base, &value)) return true;
    int size = 0;
    for (int64_t v = value; v || !size; v /= 10) digits[sizeof digits - (size_t)++size] = (char)('0' + v % 10);
    *done = true;
    x->i = x->n;
    return lex_push(x, T_NUM, 0, digits + sizeof digits - (size_t)size, size);
}

/* ---------------------------------------------------------------- chemistry */

static bool is_element(const char *s, int64_t n)
{
    static const char names[] =
        "H He Li Be B C N O F Ne Na Mg Al Si P S Cl Ar K Ca Sc Ti V Cr Mn Fe Co Ni Cu Zn Ga Ge As Se Br Kr Rb Sr Y Zr Mo Ag Cd Sn Sb Te I Xe Cs Ba W Pt Au Hg Pb Bi Rn Ra U ";
    const int64_t size = (int64_t)sizeof names - 1;
    for (int64_t i = 0; i < size;) {
        const char *end = memchr(names + i, ' ', (size_t)(size - i));
        const int64_t k = end - (names + i);
        if (k == n && !memcmp(names + i, s, (size_t)n)) return true;
        i += k + 1;
    }
    return false;
}

/* Copies the symbols of elements with their counts, arrows as >; skips blanks, fonts and braces. 0:
 * not a formula. */
static int64_t read_formula(const struct found *f, char *out)
{
    char text[2 * LONGEST];
    int64_t size = 0;
    int elements = 0, digits = 0;
    if (f->n != 1 || f->text[0].size > LONGEST) return 0;
    const int64_t n = squash(f->text[0].data, f->text[0].size, text, false);
    for (int64_t i = 0; i < n;) {
        const char c = text[i];
        if (c >= 'A' && c <= 'Z') {
            const int64_t two = i + 1 < n && text[i + 1] >= 'a' && text[i + 1] <= 'z' && is_element(text + i, 2) ? 2 : 1;
            if (!is_element(text + i, two)) return 0;
            for (int64_t k = 0; k < two; k++) out[size++] = text[i++];
            elements++;
        } else if (c == '\\') {
            int64_t k = i + 1;
            while (k < n && text_is_letter(text[k])) k++;
            const bool arrow = lex_word_is(text + i, k - i, "\\to") || lex_word_is(text + i, k - i, "\\rightarrow") ||
                               lex_word_is(text + i, k - i, "\\longrightarrow");
            if (arrow) out[size++] = '>';
            if (!arrow && !lex_word_is(text + i, k - i, "\\ce")) return 0;
            i = k;
        } else if (c == '-' && i + 1 < n && text[i + 1] == '>') {
            out[size++] = '>', i += 2;
        } else if (text_is_digit(c) || strchr("()[]+-^", c)) {
            digits += text_is_digit(c);
            out[size++] = c, i++;
        } else if (strchr("_{} ", c)) {
            i++;
        } else {
            return 0;
        }
    }
    return elements > 1 && digits ? size : 0;
}

bool same_formula(const struct found *gold, const struct found *pred)
{
    char a[2 * LONGEST], b[2 * LONGEST];
    const int64_t n = read_formula(gold, a);
    return n && n == read_formula(pred, b) && !memcmp(a, b, (size_t)n);
}
