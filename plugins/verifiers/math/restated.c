/* Answers that only restate the question: an operation that the question asks to carry out. */
#include "math.h"

#include <string.h>

static const char *const OPERATIONS[] = {"\\sum",
                                         "\\prod",
                                         "\\int",
                                         "\\iint",
                                         "\\iiint",
                                         "\\oint",
                                         "\\lim",
                                         "\\gcd",
                                         "\\operatorname{gcd}",
                                         "\\operatorname{lcm}",
                                         "\\text{gcd}",
                                         "\\text{lcm}",
                                         "\\bmod",
                                         "\\mod",
                                         "\\pmod",
                                         "\\det",
                                         "\\frac{d}{d",
                                         "\\frac{\\mathrm{d}}{\\mathrm{d",
                                         "\\dfrac{d}{d",
                                         "\\frac{\\partial}{\\partial",
                                         "\\begin{vmatrix}",
                                         "gcd(",
                                         "lcm(",
                                         " mod ",
                                         NULL};

/* Returns what follows the last equals sign, where the value is. */
static tare_text last_member(tare_text t)
{
    int64_t depth = 0, from = 0;
    for (int64_t i = 0; i < t.size; i++) {
        depth += t.data[i] == '{' || t.data[i] == '(' ? 1 : t.data[i] == '}' || t.data[i] == ')' ? -1 : 0;
        if (t.data[i] == '=' && !depth) from = i + 1;
    }
    return text_slice(t, from, t.size);
}

/* Returns whether the text is a formula, written without $: it begins with an operation and has no words. */
static bool is_bare_operation(tare_text t)
{
    t = text_trim(t);
    bool begins = false;
    for (const char *const *w = OPERATIONS; *w && !begins; w++) begins = text_starts(t, 0, *w, false);
    for (int64_t i = 0; i < t.size && begins;) {
        int64_t k = i;
        while (k < t.size && text_is_letter(t.data[k])) k++;
        begins = k - i < 2 || (k - i == 2 && t.data[i] == 'd') || (i && t.data[i - 1] == '\\');
        i = k > i ? k : i + 1;
    }
    return begins;
}

static bool has_operation(const struct found *f)
{
    if (f->n == 1 && f->whole.size && is_bare_operation(last_member(f->whole))) return true;
    for (int k = 0; k < f->n; k++) {
        const tare_text t = last_member(f->text[k]);
        for (const char *const *w = OPERATIONS; *w; w++)
            if (text_find(t, *w) >= 0) return true;
    }
    return false;
}

/* Returns whether the text is a product of two whole numbers, written with a sign: 123 \cdot 456. */
static bool is_product(tare_text t)
{
    t = text_trim(t);
    int64_t i = 0;
    int factors = 0;
    for (;;) {
        const int64_t from = i;
        while (i < t.size && text_is_digit(t.data[i])) i++;
        if (i == from) return false;
        factors++;
        while (i < t.size && text_is_space(t.data[i])) i++;
        if (i == t.size) return factors > 1;
        const int64_t sign = text_starts(t, i, "\\cdot", false)    ? 5
                             : text_starts(t, i, "\\times", false) ? 6
                             : t.data[i] == '*'                    ? 1
                                                                   : 0;
        if (!sign) return false;
        for (i += sign; i < t.size && text_is_space(t.data[i]);) i++;
    }
}

bool restates_question(const struct found *gold, const struct found *pred)
{
    if (has_operation(pred)) return !has_operation(gold);
    if (pred->n != 1 || gold->n != 1 || !is_product(last_member(pred->text[0]))) return false;
    for (int64_t i = 0; i < gold->text[0].size; i++) /* a number in digits only */
        if (!text_is_digit(gold->text[0].data[i]) && !strchr(" ,$", gold->text[0].data[i])) return false;
    return true;
}
