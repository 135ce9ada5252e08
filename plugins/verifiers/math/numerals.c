#include "numerals.h"

#include <stdio.h>

enum kind { NONE, UNIT_DIGIT, TEEN, TENS, HUNDRED, SCALE, PART, ORDINAL, HALF, POINT, ARTICLE, AND };

struct numeral {
    enum kind kind;
    int64_t value;
    bool plural; /* of a fraction: thirds */
};

static const char *const SMALL[] = {"zero",     "one",     "two",     "three",     "four",     "five",    "six",
                                    "seven",    "eight",   "nine",    "ten",       "eleven",   "twelve",  "thirteen",
                                    "fourteen", "fifteen", "sixteen", "seventeen", "eighteen", "nineteen"};
static const char *const ORDINALS[] = {"",          "first",     "second",      "third",      "fourth",
                                       "fifth",     "sixth",     "seventh",     "eighth",     "ninth",
                                       "tenth",     "eleventh",  "twelfth",     "thirteenth", "fourteenth",
                                       "fifteenth", "sixteenth", "seventeenth", "eighteenth", "nineteenth"};
static const char *const DECADES[] = {"", "", "twenty", "thirty", "forty", "fifty", "sixty", "seventy", "eighty", "ninety"};
static const char *const DECADE_ORDINALS[] = {"",         "",         "twentieth",  "thirtieth", "fortieth",
                                              "fiftieth", "sixtieth", "seventieth", "eightieth", "ninetieth"};
static const struct {
    const char *name;
    int64_t value;
} SCALES[] = {{"thousand", 1000}, {"million", 1000000}, {"billion", 1000000000}, {"trillion", 1000000000000}};

static bool is_kind(tare_text w, const char *s)
{
    return text_equal(w, text_of(s), true);
}

static int find_numeral(tare_text w, const char *const *list, int n)
{
    for (int i = 0; i < n; i++)
        if (*list[i] && is_kind(w, list[i])) return i;
    return -1;
}

static struct numeral fraction_part(int64_t value, bool plural)
{
    return (struct numeral){PART, value, plural};
}

static struct numeral numeral_of(tare_text w)
{
    enum { N_SMALL = sizeof SMALL / sizeof *SMALL, N_DECADES = sizeof DECADES / sizeof *DECADES };
    if (w.size > 14) return (struct numeral){NONE, 0, false};
    int i = find_numeral(w, SMALL, N_SMALL);
    if (i >= 0) return (struct numeral){i < 10 ? UNIT_DIGIT : TEEN, i, false};
    if ((i = find_numeral(w, DECADES, N_DECADES)) >= 0) return (struct numeral){TENS, 10 * i, false};
    if (is_kind(w, "hundred")) return (struct numeral){HUNDRED, 100, false};
    if (is_kind(w, "dozen")) return (struct numeral){SCALE, 12, false};
    for (size_t k = 0; k < sizeof SCALES / sizeof *SCALES; k++)
        if (is_kind(w, SCALES[k].name)) return (struct numeral){SCALE, SCALES[k].value, false};
    if (is_kind(w, "half") || is_kind(w, "halves")) return (struct numeral){HALF, 2, w.size > 4};
    if (is_kind(w, "quarter") || is_kind(w, "quarters")) return fraction_part(4, w.size > 7);
    if (is_kind(w, "hundredth") || is_kind(w, "hundredths")) return fraction_part(100, w.size > 9);
    if (is_kind(w, "thousandth") || is_kind(w, "thousandths")) return fraction_part(1000, w.size > 10);
    if (is_kind(w, "point")) return (struct numeral){POINT, 0, false};
    if (is_kind(w, "a") || is_kind(w, "an")) return (struct numeral){ARTICLE, 1, false};
    if (is_kind(w, "and")) return (struct numeral){AND, 0, false};
    const bool plural = w.size > 3 && text_lower(w.data[w.size - 1]) == 's';
    const tare_text single = text_slice(w, 0, w.size - plural);
    if ((i = find_numeral(single, ORDINALS, N_SMALL)) > 0) return (struct numeral){ORDINAL, i, plural};
    if ((i = find_numeral(single, DECADE_ORDINALS, N_DECADES)) > 0) return (struct numeral){ORDINAL, 10 * i, plural};
    return (struct numeral){NONE, 0, false};
}

bool is_numeral_word(tare_text w)
{
    const enum kind k = numeral_of(w).kind;
    return k != NONE && k != AND && k != ARTICLE && k != POINT;
}

/* Reads an integer: three hundred and twelve thousand and five. Returns the number of words
 * used. */
static int read_whole(const tare_text *words, int n, int64_t *out)
{
    int64_t total = 0, group = 0; /* group: value below the next scale */
    int used = 0;
    bool units = false, tens = false;
    for (int i = 0; i < n; i++) {
        struct numeral k = numeral_of(words[i]);
        if (k.kind == AND && used && i + 1 < n && !units && !tens && i > 0) { /* hundred and five */
            const enum kind next = numeral_of(words[i + 1]).kind, before = numeral_of(words[i - 1]).kind;
            if ((before != HUNDRED && before != SCALE) || (next != UNIT_DIGIT && next != TEEN && next != TENS)) break;
            if (i + 2 < n && (numeral_of(words[i + 2]).kind == HALF || numeral_of(words[i + 2]).kind == ORDINAL ||
                              numeral_of(words[i + 2]).kind == PART))
                break;
            continue;
        }
        if (k.kind == ARTICLE && !i && n > 1 && (numeral_of(words[1]).kind == HUNDRED || numeral_of(words[1]).kind == SCALE))
            k = (struct numeral){UNIT_DIGIT, 1, false};
        if (k.kind == UNIT_DIGIT && !units)
            group += k.value, units = true;
        else if (k.kind == TEEN && !units && !tens)
            group += k.value, units = tens = true;
        else if (k.kind == TENS && !units && !tens)
            group += k.value, tens = true;
        else if (k.kind == HUNDRED && group > 0 && group < 100)
            group *= 100, units = tens = false;
        else if (k.kind == SCALE && group > 0 && total < 1000000000000000)
            total += group * k.value, group = 0, units = tens = false;
        else
            break;
        used = i + 1;
    }
    *out = total + group;
    return used;
}

/* Returns the denominator of "thirds" after a number or "third" after one; 0: not a fraction. */
static int64_t read_denominator(tare_text w, int64_t numerator)
{
    const struct numeral k = numeral_of(w);
    if (k.kind == HALF || k.kind == PART) return k.plural || numerator == 1 ? k.value : 0;
    return k.kind == ORDINAL && k.value > 2 && (k.plural || numerator == 1) ? k.value : 0;
}

/* Reads "three quarters", "a half", "half". Returns the number of words used. */
static int read_fraction(const tare_text *words, int n, int64_t *a, int64_t *b)
{
    const bool article = n > 1 && numeral_of(words[0]).kind == ARTICLE;
    if (numeral_of(words[0]).kind == HALF && !numeral_of(words[0]).plural) return *a = 1, *b = 2, 1;
    int used = article ? 1 : read_whole(words, n, a);
    if (article) *a = 1;
    if (!used || used >= n || !(*b = read_denominator(words[used], *a))) return 0;
    return used + 1;
}

int read_numeral(const tare_text *words, int n, bool last, char out[NUMERAL_TEXT])
{
    int64_t whole, a, b;
    if (n < 1) return 0;
    const int fraction = read_fraction(words, n, &a, &b);
    if (fraction) return snprintf(out, NUMERAL_TEXT, "\\frac{%lld}{%lld}", (long long)a, (long long)b), fraction;
    int used = read_whole(words, n, &whole);
    const struct numeral next = numeral_of(used < n ? words[used] : (tare_text){"", 0});
    if (next.kind == ORDINAL && !next.plural && last && used + 1 == n && (!used || (whole % 10 == 0 && next.value < 10)))
        /* twenty first */
        return snprintf(out, NUMERAL_TEXT, "%lld", (long long)((used ? whole : 0) + next.value)), n;
    if (!used) return 0;
    if (next.kind == POINT) { /* three point one four */
        int size = snprintf(out, NUMERAL_TEXT, "%lld.", (long long)whole), k = used + 1;
        for (; k < n && size + 2 < NUMERAL_TEXT && numeral_of(words[k]).kind == UNIT_DIGIT; k++)
            out[size++] = (char)('0' + numeral_of(words[k]).value);
        out[size] = 0;
        if (k > used + 1) return k;
    }
    if (next.kind == AND && used + 1 < n) { /* two and a half */
        const int more = read_fraction(words + used + 1, n - used - 1, &a, &b);
        if (more && a < b)
            return snprintf(out, NUMERAL_TEXT, "%lld\\frac{%lld}{%lld}", (long long)whole, (long long)a, (long long)b),
                   used + 1 + more;
    }
    return snprintf(out, NUMERAL_TEXT, "%lld", (long long)whole), used;
}
