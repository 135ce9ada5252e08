/* number: compares the last number of the completion with the answer, in exact rational arithmetic.
 *
 * reward 1  if  last(completion) = answer  as rationals  else 0      a/b = c/d  iff  a d = b c
 *
 * A number is: digits with or without thousands separators (1,234,567), a decimal point (0.5, .5,
 * 5.), an exponent (1.85e5), a sign directly in front (+, -, U+2212; "3-5" is 3 and 5), a fraction
 * a/b or \frac{a}{b}, a mixed number "2 1/2". Digit strings of any length compare exactly; nothing
 * becomes a double. A comma followed by exactly three digits is a separator: "100,200" is 100200,
 * "1,2" is two numbers. A full stop after a number ends the sentence. Currency signs and % are
 * dropped on both sides, or % means a hundredth (percent). Digits attached to letters (x2, H2O) and
 * the exponent of a unit (m^2) are not numbers. Dates, times, versions and powers (3/4/2024, 3:45,
 * 1.2.3, 2^5) have digits but are not numbers: if one of them comes last, the verdict is
 * unparsable, and no earlier number is used. The answer is the text after its last "####" if there
 * is one (GSM8K), and must be a single number. Verdicts: correct; wrong; no_answer (no digits at
 * all); unparsable (the number of the completion or the answer cannot be read).
 */
#include "common/text.h"
#include "common/verifier.h"

#include <stdlib.h>
#include <string.h>

enum { MAX_FRACTION_DIGITS = 50000 }; /* products are quadratic: longer fractions are refused */

static const char *const PERCENTS[] = {"drop", "hundredth", NULL};
static const tare_param PARAMS[] = {
    TARE_BOOL_PARAM("thousands", "true", "a comma followed by exactly three digits separates thousands", 0),
    TARE_CHOICE_PARAM("percent", "drop", "value of 50%: 50 (drop) or 1/2 (hundredth), in the answer and in the completion",
                      PERCENTS, 0),
};
enum { THOUSANDS, PERCENT, N_PARAMS };
enum { PERCENT_DROP, PERCENT_HUNDREDTH };

struct options {
    bool thousands, hundredth;
};

/* A number as written, as spans of the text. den.size 0: no denominator; whole.size > 0: a mixed
 * number. */
struct written {
    tare_text all, whole, num, den;
    bool negative, percent, readable;
};

/* ---------------------------------------------------------------- finding numbers */

/* Returns the end of an unsigned decimal that starts at i (digits, thousands, point, exponent), or
 * i if there is none. */
static int64_t decimal_end(tare_text t, int64_t i, bool thousands)
{
    int64_t p = i;
    while (p < t.size && text_is_digit(t.data[p])) p++;
    if (thousands && p > i && p - i <= 3) {
        for (int64_t q = p; q + 3 < t.size && t.data[q] == ',' && text_is_digit(t.data[q + 1]) && text_is_digit(t.data[q + 2]) &&
                            text_is_digit(t.data[q + 3]) && !(q + 4 < t.size && text_is_digit(t.data[q + 4]));)
            p = q += 4;
    }
    if (p + 1 < t.size && t.data[p] == '.' && text_is_digit(t.data[p + 1]))
        for (p++; p < t.size && text_is_digit(t.data[p]);) p++;
    if (p > i && p + 1 < t.size && (t.data[p] == 'e' || t.data[p] == 'E')) {
        int64_t q = p + 1 + (t.data[p + 1] == '-' || t.data[p + 1] == '+');
        if (q < t.size && text_is_digit(t.data[q])) {
            while (q < t.size && text_is_digit(t.data[q])) q++;
            if (q == t.size || !text_is_letter(t.data[q])) p = q;
        }
    }
    return p;
}

/* Returns whether a minus belongs to the number that starts at i. Looks back over a currency
 * sign. */
static bool negative_before(tare_text t, int64_t i, int64_t *begin)
{
    if (i > 0 && t.data[i - 1] == '$')
        i -= i > 1 && t.data[i - 2] == '\\' ? 2 : 1;
    else if (i > 2 && !memcmp(t.data + i - 3, "\xE2\x82\xAC", 3))
        i -= 3;
    else if (i > 1 && !memcmp(t.data + i - 2, "\xC2\xA3", 2))
        i -= 2;
    int64_t sign = i;
    bool minus = false;
    if (i > 0 && (t.data[i - 1] == '-' || t.data[i - 1] == '+')) {
        sign = i - 1;
        minus = t.data[i - 1] == '-';
    } else if (i > 2 && !memcmp(t.data + i - 3, "\xE2\x88\x92", 3)) {
        sign = i - 3;
        minus = true;
    }
    if (sign == i) return false;
    if (sign > 0) { /* after an operand it is an operator or a dash */
        const char c = t.data[sign - 1];
        if (text_is_digit(c) || text_is_letter(c) || c == ')' || c == ']' || c == '}' || c == '%') return false;
    }
    *begin = sign;
    return minus;
}

/* returns the position after the braces that open at i */
static int64_t skip_group(tare_text t, int64_t i)
{
    int64_t depth = 0;
    for (; i < t.size; i++) {
        if (t.data[i] == '{') depth++;
        if (t.data[i] == '}' && --depth <= 0) return i + 1;
    }
    return i;
}

/* Reads \frac{a}{b} that starts at i (at the backslash). Returns its end, or i if there is none. */
static int64_t latex_fraction(tare_text t, int64_t i, const struct options *o, struct written *w)
{
    const int64_t p = text_starts(t, i, "\\frac{", false)                                            ? i + 5
                      : text_starts(t, i, "\\dfrac{", false) || text_starts(t, i, "\\tfrac{", false) ? i + 6
                                                                                                     : i;
    if (p == i) return i;
    const int64_t a = decimal_end(t, p + 1, o->thousands);
    if (a > p + 1 && text_starts(t, a, "}{", false)) {
        const int64_t b = decimal_end(t, a + 2, o->thousands);
        if (b > a + 2 && b < t.size && t.data[b] == '}') {
            w->num = text_slice(t, p + 1, a);
            w->den = text_slice(t, a + 2, b);
            w->readable = true;
            return b + 1;
        }
    }
    const int64_t end = skip_group(t, p);
    return end < t.size && t.data[end] == '{' ? skip_group(t, end) : end;
}

static int64_t plain_number(tare_text t, int64_t i, const struct options *o, struct written *w)
{
    int64_t p = decimal_end(t, i, o->thousands);
    w->num = text_slice(t, i, p);
    w->readable = true;
    if (p + 1 < t.size && t.data[p] == '/') {
        const int64_t q = decimal_end(t, p + 1, o->thousands);
        if (q > p + 1) {
            w->den = text_slice(t, p + 1, q);
            p = q;
        }
    }
    /* attached characters make it a date, a time, a version or a power */
    if (p < t.size && t.data[p] == '^') w->readable = false;
    while (p + 1 < t.size && strchr("/:.^", t.data[p]) && t.data[p] && text_is_digit(t.data[p + 1])) {
        w->readable = false;
        for (p++; p < t.size && text_is_digit(t.data[p]);) p++;
    }
    return p;
}

/* Finds the last number of t as written; false: no digits that could be one. */
static bool last_number(tare_text t, const struct options *o, struct written *last)
{
    bool found = false;
    for (int64_t i = 0; i < t.size;) {
        const char c = t.data[i];
        struct written w = {0};
        int64_t end = i;
        if (c == '\\')
            end = latex_fraction(t, i, o, &w);
        else if (text_is_digit(c) || (c == '.' && i + 1 < t.size && text_is_digit(t.data[i + 1])))
            end = plain_number(t, i, o, &w);
        if (end == i) {
            /* a word: attached digits belong to it, unless it is a LaTeX command */
            if (text_is_letter(c)) {
                const bool command = i > 0 && t.data[i - 1] == '\\';
                while (i < t.size && (text_is_letter(t.data[i]) || (!command && (text_is_digit(t.data[i]) || t.data[i] == '_'))))
                    i++;
                /* exponent of a unit or a variable */
                if (!command && i < t.size && t.data[i] == '^')
                    for (i += 1 + (i + 1 < t.size && (t.data[i + 1] == '{' || t.data[i + 1] == '-'));
                         i < t.size && text_is_digit(t.data[i]);)
                        i++;
            } else {
                i++;
            }
            continue;
        }
        int64_t begin = i;
        w.negative = negative_before(t, i, &begin);
        if (i > 0 && (t.data[i - 1] == '^' || (t.data[i - 1] == '{' && i > 1 && t.data[i - 2] == '^'))) w.readable = false;
        if (found && w.den.size && begin == i && last->readable && !last->den.size && !last->percent && i > 0 &&
            t.data[i - 1] == ' ' && last->all.data + last->all.size == t.data + i - 1 && last->all.size &&
            text_is_digit(last->all.data[last->all.size - 1])) {
            w.whole = last->num;
            w.negative = last->negative;
            begin = last->all.data - t.data;
        }
        if (end < t.size && t.data[end] == '%') {
            w.percent = true;
            end++;
        } else if (text_starts(t, end, "\\%", false)) {
            w.percent = true;
            end += 2;
        }
        w.all = text_slice(t, begin, end);
        *last = w;
        found = true;
        i = end;
    }
    return found;
}

/* ---------------------------------------------------------------- exact values */

/* d[0..n) decimal digits, most significant first, without zeros at either end, times 10^exponent; n
 * 0: zero. d is allocated. */
struct digits {
    char *d;
    int64_t n, exponent;
};

struct rational {
    struct digits num, den; /* den > 0 */
    bool negative;
};

static void digits_tidy(struct digits *x)
{
    while (x->n && x->d[x->n - 1] == '0') {
        x->n--;
        x->exponent++;
    }
    int64_t zeros = 0;
    while (zeros < x->n && x->d[zeros] == '0') zeros++;
    if (zeros) memmove(x->d, x->d + zeros, (size_t)(x->n - zeros));
    x->n -= zeros;
    if (!x->n) x->exponent = 0;
}

/* 1: read; 0: the exponent has more than 15 digits; -1: no memory */
static int digits_read(tare_text t, struct digits *out)
{
    *out = (struct digits){.d = malloc((size_t)t.size + 1)};
    if (!out->d) return -1;
    bool point = false;
    int64_t i = 0;
    for (; i < t.size && t.data[i] != 'e' && t.data[i] != 'E'; i++) {
        if (t.data[i] == '.') point = true;
        if (!text_is_digit(t.data[i])) continue;
        out->d[out->n++] = t.data[i];
        out->exponent -= point;
    }
    if (i < t.size) {
        const bool minus = t.data[++i] == '-';
        i += minus || t.data[i] == '+';
        while (i < t.size - 1 && t.data[i] == '0') i++;
        if (t.size - i > 15) return 0;
        int64_t e = 0;
        for (; i < t.size; i++) e = e * 10 + (t.data[i] - '0');
        out->exponent += minus ? -e : e;
    }
    digits_tidy(out);
    return 1;
}

enum { LIMB = 9, BASE = 1000000000 };

/* limbs of 9 digits, least significant first; NULL: no memory */
static uint32_t *limbs_of(const struct digits *x, int64_t *n)
{
    *n = x->n / LIMB + 1;
    uint32_t *limb = calloc((size_t)*n, sizeof *limb);
    if (limb)
        for (int64_t i = 0; i < x->n; i++) { /* digit i has weight 10^(n-1-i) */
            uint32_t *l = &limb[(x->n - 1 - i) / LIMB];
            *l = *l * 10 + (uint32_t)(x->d[i] - '0');
        }
    return limb;
}

static bool digits_from_limbs(const uint32_t *limb, int64_t n, int64_t exponent, struct digits *out)
{
    *out = (struct digits){.d = malloc((size_t)(n * LIMB)), .n = n * LIMB, .exponent = exponent};
    if (!out->d) return false;
    for (int64_t i = 0; i < n; i++) {
        uint32_t v = limb[i];
        for (int k = 0; k < LIMB; k++, v /= 10) out->d[out->n - 1 - i * LIMB - k] = (char)('0' + v % 10);
    }
    digits_tidy(out);
    return true;
}

static bool digits_mul(const struct digits *a, const struct digits *b, struct digits *out)
{
    int64_t na, nb;
    uint32_t *x = limbs_of(a, &na), *y = limbs_of(b, &nb), *z = x && y ? calloc((size_t)(na + nb), sizeof *z) : NULL;
    if (z)
        for (int64_t i = 0; i < na; i++) {
            uint64_t carry = 0;
            for (int64_t j = 0; j < nb; j++) {
                const uint64_t v = z[i + j] + (uint64_t)x[i] * y[j] + carry;
                z[i + j] = (uint32_t)(v % BASE);
                carry = v / BASE;
            }
            z[i + nb] = (uint32_t)carry;
        }
    const bool ok = z && digits_from_limbs(z, na + nb, a->exponent + b->exponent, out);
    free(x);
    free(y);
    free(z);
    return ok;
}

/* *a += b, for integers */
static bool digits_add(struct digits *a, const struct digits *b)
{
    const struct digits *in[2] = {a, b};
    struct digits full[2] = {{0}}, sum = {0};
    uint32_t *limb[2] = {NULL, NULL};
    int64_t n[2] = {0, 0};
    for (int k = 0; k < 2; k++) { /* append the zeros of the exponent */
        full[k] = (struct digits){.d = malloc((size_t)(in[k]->n + in[k]->exponent + 1)), .n = in[k]->n + in[k]->exponent};
        if (!full[k].d) continue;
        memcpy(full[k].d, in[k]->d, (size_t)in[k]->n);
        memset(full[k].d + in[k]->n, '0', (size_t)in[k]->exponent);
        limb[k] = limbs_of(&full[k], &n[k]);
    }
    const int64_t size = (n[0] > n[1] ? n[0] : n[1]) + 1;
    uint32_t *z = limb[0] && limb[1] ? calloc((size_t)size, sizeof *z) : NULL;
    uint32_t carry = 0;
    if (z)
        for (int64_t i = 0; i < size; i++) {
            const uint32_t v = (i < n[0] ? limb[0][i] : 0) + (i < n[1] ? limb[1][i] : 0) + carry;
            z[i] = v % BASE;
            carry = v / BASE;
        }
    const bool ok = z && digits_from_limbs(z, size, 0, &sum);
    if (ok) {
        free(a->d);
        *a = sum;
    }
    for (int k = 0; k < 2; k++) {
        free(full[k].d);
        free(limb[k]);
    }
    free(z);
    return ok;
}

static void rational_free(struct rational *r)
{
    free(r->num.d);
    free(r->den.d);
}

/* 1: read; 0: not a number (division by zero, too long, "2 .5/2"); -1: no memory */
static int rational_read(const struct written *w, const struct options *o, struct rational *r)
{
    *r = (struct rational){.negative = w->negative};
    if (!w->readable) return 0;
    if (w->den.size && w->whole.size + w->num.size + w->den.size > MAX_FRACTION_DIGITS) return 0;
    int got = digits_read(w->num, &r->num);
    if (got > 0) got = digits_read(w->den.size ? w->den : text_of("1"), &r->den);
    if (got > 0 && !r->den.n) got = 0;
    if (got > 0 && w->whole.size) {
        struct digits whole, product = {0};
        got = digits_read(w->whole, &whole);
        if (got > 0 && (whole.exponent < 0 || r->num.exponent < 0 || r->den.exponent < 0 || whole.exponent > MAX_FRACTION_DIGITS ||
                        r->num.exponent > MAX_FRACTION_DIGITS || r->den.exponent > MAX_FRACTION_DIGITS))
            got = 0;
        if (got > 0 && !(digits_mul(&whole, &r->den, &product) && digits_add(&r->num, &product))) got = -1;
        free(whole.d);
        free(product.d);
    }
    if (got > 0 && w->percent && o->hundredth && r->num.n) r->num.exponent -= 2;
    return got;
}

static bool digits_equal(const struct digits *a, const struct digits *b)
{
    return a->n == b->n && a->exponent == b->exponent && (!a->n || !memcmp(a->d, b->d, (size_t)a->n));
}

/* 1, 0, or -1: no memory */
static int rational_equal(const struct rational *a, const struct rational *b)
{
    if (!a->num.n || !b->num.n) return !a->num.n && !b->num.n;
    if (a->negative != b->negative) return 0;
    if (digits_equal(&a->den, &b->den)) return digits_equal(&a->num, &b->num);
    struct digits ad = {0}, cb = {0};
    const int equal = digits_mul(&a->num, &b->den, &ad) && digits_mul(&b->num, &a->den, &cb) ? digits_equal(&ad, &cb) : -1;
    free(ad.d);
    free(cb.d);
    return equal;
}

/* ---------------------------------------------------------------- the plugin */

static tare_status verify_answer(const struct options *o, const tare_completion *a, tare_verdict *v, tare_error *error)
{
    struct written said = {0}, gold = {0};
    struct rational x = {0}, y = {0};
    const int64_t mark = text_find_last(a->answer, "####");
    const tare_text answer = text_trim(mark < 0 ? a->answer : text_slice(a->answer, mark + 4, a->answer.size));
    int got = 0;
    tare_status s = TARE_OK;
    if (last_number(answer, o, &gold)) {
        /* the text must be one number: only punctuation or a unit may follow, and no digits may
         * precede */
        struct written before;
        const tare_text head = text_slice(answer, 0, gold.all.data - answer.data);
        got = last_number(head, o, &before) ? 0 : rational_read(&gold, o, &y);
    }
    if (got == 0) {
        s = verdict_set(v, TARE_VERDICT_UNPARSABLE, 0, text_of(""), "the answer of the row is not a number");
    } else if (got > 0 && !last_number(a->text, o, &said)) {
        s = verdict_set(v, TARE_VERDICT_NO_ANSWER, 0, text_of(""), "no number in the completion");
    } else if (got > 0) {
        got = rational_read(&said, o, &x);
        const int equal = got > 0 ? rational_equal(&x, &y) : got;
        if (got == 0)
            s = verdict_set(v, TARE_VERDICT_UNPARSABLE, 0, said.all,
                            "the last number cannot be read (date, time, power, division by zero)");
        else if (equal > 0)
            s = verdict_set(v, TARE_VERDICT_CORRECT, 1, said.all, "equal numbers");
        else if (equal == 0)
            s = verdict_set(v, TARE_VERDICT_WRONG, 0, said.all, "different numbers");
        got = equal;
    }
    rational_free(&x);
    rational_free(&y);
    return got < 0 ? tare_fail(error, TARE_E_NOMEM, "no memory to compare two numbers") : s;
}

static tare_status create(const tare_setup *setup, void **self, tare_error *error)
{
    const tare_value *values = setup->values;
    struct options *o = malloc(sizeof *o);
    if (!o) return tare_fail(error, TARE_E_NOMEM, "no memory");
    *o = (struct options){.thousands = values[THOUSANDS].i, .hundredth = values[PERCENT].i == PERCENT_HUNDREDTH};
    *self = o;
    return TARE_OK;
}

static void destroy(void *self)
{
    free(self);
}

USES(TARE_USES_ANSWER)
VERIFIER("number", "the last number of the completion equals the answer, in exact rational arithmetic", verify_answer)
