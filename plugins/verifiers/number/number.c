/* number: compares the number that the completion gives with the answer, in exact rational arithmetic.
 *
 * reward 1  if  said(completion) = answer  as rationals  else 0      a/b = c/d  iff  a d = b c
 *
 * Where the number is: claimed.h. Only the text after the thought is read. A number is: digits,
 * alone or in groups of three with one and the same separator (1,234,567; 1.234.567; 1 234 567;
 * 1'234'567; 1,23,456 as in India), a decimal point (0.5, .5, 5.), or a comma behind groups of
 * another sign (1.234,5), an exponent (1.85e5, 1.85 x 10^5), "hundred" to "trillion", a sign
 * directly in front (+, -, U+2212; "3-5" is 3 and 5), a fraction a/b or \frac{a}{b}, a mixed number
 * "2 1/2". Digits, signs and fractions of Unicode are those of ASCII. Digit strings of any length
 * compare exactly; nothing becomes a double. The members of a list of three and more need no blank:
 * "1,2,3" ends in 3. A full stop after a number ends the sentence. Currency signs and % are dropped
 * on both sides, or % means a hundredth (percent). Digits attached to letters (x2, H2O) and the
 * exponent of a unit (m^2) are not numbers. Dates, times, versions powers, roots, telephone numbers
 * and "1,5" where the answer is whole (3/4/2024, 3:45, 1.2.3, 2^5) have digits but are not numbers:
 * if one of them is said, the verdict is unparsable, and no earlier number is used. The answer is
 * the text after its last "####" if there is one (GSM8K), and must be a single number. Verdicts:
 * correct; wrong; no_answer (no digits at all, or none that a sentence gives); unparsable (the
 * number of the completion or the answer cannot be read).
 */
#include "number.h"
#include "claimed.h"
#include "common/verifier.h"

#include <stdlib.h>
#include <string.h>

static const char *const PERCENTS[] = {"drop", "hundredth", NULL};
static const tare_param PARAMS[] = {
    TARE_BOOL_PARAM("thousands", "true", "a comma followed by exactly three digits separates thousands", 0),
    TARE_CHOICE_PARAM("percent", "drop", "value of 50%: 50 (drop) or 1/2 (hundredth), in the answer and in the completion",
                      PERCENTS, 0),
    OPENED_PARAM,
};
enum { THOUSANDS, PERCENT, OPENED, N_PARAMS };
enum { PERCENT_DROP, PERCENT_HUNDREDTH };

/* Reads the answer of the row, which must be one number. 1: read; 0: it is none; -1: no memory */
static int read_gold(tare_text answer, const struct options *o, struct rational *y)
{
    struct written gold, before;
    const int64_t mark = text_find_last(answer, "####");
    const tare_text t = text_trim(mark < 0 ? answer : text_slice(answer, mark + 4, answer.size));
    if (!number_last(t, o, &gold)) return 0;
    /* only punctuation or a unit may follow, and no digits may precede */
    return number_last(text_slice(t, 0, gold.all.data - t.data), o, &before) ? 0 : rational_read(&gold, o, y);
}

static tare_status compare(tare_text text, const struct options *o, const struct rational *y, tare_verdict *v, tare_error *error)
{
    struct written said;
    struct rational x = {0};
    if (!number_last(text, o, &said)) return verdict_set(v, TARE_VERDICT_NO_ANSWER, 0, text_of(""), "no number in the completion");
    if (number_is_cut(text)) return verdict_set(v, TARE_VERDICT_UNPARSABLE, 0, said.all, "the text stops in the middle");
    if (!number_last(number_claimed(text), o, &said))
        return verdict_set(v, TARE_VERDICT_NO_ANSWER, 0, text_of(""), "no sentence gives a number as the answer");
    int got = rational_read(&said, o, &x);
    const bool read = got > 0;
    if (read) got = rational_equal(&x, y);
    rational_free(&x);
    if (got < 0) return tare_fail(error, TARE_E_NOMEM, "no memory to compare two numbers");
    if (!read)
        return verdict_set(v, TARE_VERDICT_UNPARSABLE, 0, said.all,
                           "the number cannot be read (date, time, power, root, division by zero)");
    return verdict_set(v, got ? TARE_VERDICT_CORRECT : TARE_VERDICT_WRONG, got, said.all,
                       got ? "equal numbers" : "different numbers");
}

static tare_status verify_answer(const struct options *o, const tare_completion *a, tare_verdict *v, tare_error *error)
{
    struct rational y = {0};
    const tare_text after = text_after_thought(a->text, o->opened);
    char *text = malloc((size_t)after.size * 2 + 1), *answer = malloc((size_t)a->answer.size * 2 + 1);
    tare_status s = TARE_OK;
    if (!text || !answer) {
        s = tare_fail(error, TARE_E_NOMEM, "no memory to read a completion");
    } else {
        const int got = read_gold(number_plain(a->answer, answer), o, &y);
        if (got < 0)
            s = tare_fail(error, TARE_E_NOMEM, "no memory to read the answer of the row");
        else if (!got)
            s = verdict_set(v, TARE_VERDICT_UNPARSABLE, 0, text_of(""), "the answer of the row is not a number");
        else {
            struct options how = *o;
            how.comma = !rational_is_whole(&y);
            s = compare(number_plain(after, text), &how, &y, v, error);
        }
    }
    rational_free(&y);
    free(text);
    free(answer);
    return s;
}

static tare_status create(const tare_setup *setup, void **self, tare_error *error)
{
    const tare_value *values = setup->values;
    struct options *o = malloc(sizeof *o);
    if (!o) return tare_fail(error, TARE_E_NOMEM, "no memory");
    *o = (struct options){
        .thousands = values[THOUSANDS].i, .opened = values[OPENED].i, .hundredth = values[PERCENT].i == PERCENT_HUNDREDTH};
    *self = o;
    return TARE_OK;
}

static void destroy(void *self)
{
    free(self);
}

USES(TARE_USES_ANSWER)
VERIFIER("number", "the number that the completion gives equals the answer, in exact rational arithmetic", verify_answer)
