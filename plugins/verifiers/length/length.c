/* length: a reward for the length l of a completion, to be added to that of a verifier
 * (verifier.plugins = math:1 length:0.2).
 *
 * most     1 up to `length`, then linear down to 0 at length + width; shorter is as good
 * target   max(0, 1 - |l - length| / width); a requested length
 * group    0.5 - (l - least) / (largest - least) over the rollouts of the prompt, 0 if all have the
 *          same length; Kimi k1.5, arXiv 2501.12599, section 2.3.3, without its rule for wrong
 *          answers (see below)
 *
 * l counts tokens (with the stop token), words or characters. Each row may have a separate length,
 * in `field`. A component does not see the verdicts of other verifiers: a reward for short answers
 * also rewards short wrong ones, so keep its weight small, or use an estimator that handles
 * components (gdpo). Verdicts: correct at the best possible reward, wrong at the least, partial
 * between.
 */
#include "common/text.h"
#include "common/verifier.h"
#include "common/words/words.h"

#include <math.h>
#include <stdlib.h>

enum { P_MODE, P_UNIT, P_LENGTH, P_WIDTH, P_FIELD, N_PARAMS };
enum { MODE_MOST, MODE_TARGET, MODE_GROUP };
enum { UNIT_TOKENS, UNIT_WORDS, UNIT_CHARACTERS };
static const char *const MODES[] = {"most", "target", "group", NULL};
static const char *const UNITS[] = {"tokens", "words", "characters", NULL};

static const tare_param PARAMS[N_PARAMS] = {
    [P_MODE] = TARE_CHOICE_PARAM(
        "mode", "most",
        "most: 1 up to length, then falling; target: 1 at length, falling on both sides; group: shorter than the other rollouts of the prompt",
        MODES, 0),
    [P_UNIT] = TARE_CHOICE_PARAM("unit", "tokens", "unit of the length", UNITS, 0),
    [P_LENGTH] = TARE_FLOAT_PARAM("length", "512", "the length of modes most and target", 0, 1e9, 0),
    [P_WIDTH] = TARE_FLOAT_PARAM("width", "512", "distance over which the reward falls from 1 to 0", 0, 1e9, TARE_PARAM_ABOVE_MIN),
    [P_FIELD] = TARE_STRING_PARAM("field", "", "a field of the rows that holds the length of each; empty: `length`", 0),
};

static tare_status create(const tare_setup *setup, void **self, tare_error *error)
{
    const tare_value *values = setup->values;
    (void)error;
    *self = (void *)values;
    return TARE_OK;
}

static void destroy(void *self)
{
    (void)self;
}

static tare_status length_of(const tare_value *p, const tare_completion *a, double *out, tare_error *error)
{
    if (p[P_UNIT].i != UNIT_TOKENS) {
        *out = (double)(p[P_UNIT].i == UNIT_WORDS ? words_count(a->text) : words_characters(a->text));
        return TARE_OK;
    }
    *out = (double)a->n_tokens;
    if (*out > 0 || !a->text.size) return TARE_OK;
    return tare_fail(error, TARE_E_CONFIG,
                     "how many tokens a completion has is not known here; set unit = words or unit = characters");
}

static tare_status wanted_length(const tare_value *p, const tare_completion *a, double *out, tare_error *error)
{
    *out = p[P_LENGTH].f;
    if (!*p[P_FIELD].s) return TARE_OK;
    const tare_text t = text_row_field(a->row, p[P_FIELD].s);
    if (t.size && tare_read_number(t.data, t.size, out) && *out >= 0 && *out <= 1e9) return TARE_OK;
    return tare_fail(error, TARE_E_CONFIG, "the row has no length, a number of 0 to 1e9, in its field \"%s\"", p[P_FIELD].s);
}

static tare_status set_verdict(tare_verdict *v, double reward, double least, double best, const char *reason)
{
    const int32_t code = reward >= best ? TARE_VERDICT_CORRECT : reward <= least ? TARE_VERDICT_WRONG : TARE_VERDICT_PARTIAL;
    return verdict_set(v, code, reward, (tare_text){"", 0}, reason);
}

static tare_status judge_alone(const tare_value *p, const tare_completion *a, tare_verdict *v, tare_error *error)
{
    double l, length;
    tare_status s = length_of(p, a, &l, error);
    if (!s) s = wanted_length(p, a, &length, error);
    if (s) return s;
    const double over = p[P_MODE].i == MODE_MOST ? fmax(0, l - length) : fabs(l - length);
    return set_verdict(v, fmax(0, 1 - over / p[P_WIDTH].f), 0, 1,
                       p[P_MODE].i == MODE_MOST ? "length against the most that is allowed" : "length against the target");
}

/* Judges the n rollouts of one prompt. Stores lengths in the verdicts until the extremes are
 * known. */
static tare_status judge_group(const tare_value *p, const tare_completion *const *a, tare_verdict *const *v, int64_t n,
                               tare_error *error)
{
    double least = INFINITY, largest = 0;
    for (int64_t i = 0; i < n; i++) {
        const tare_status s = length_of(p, a[i], &v[i]->reward, error);
        if (s) return s;
        least = fmin(least, v[i]->reward);
        largest = fmax(largest, v[i]->reward);
    }
    tare_status s = TARE_OK;
    for (int64_t i = 0; i < n && !s; i++)
        s = set_verdict(v[i], largest > least ? 0.5 - (v[i]->reward - least) / (largest - least) : 0, -0.5, 0.5,
                        "length against the prompt's other rollouts");
    return s;
}

static tare_status verify(void *self, const tare_completion *const *completions, tare_verdict *const *out, int64_t n,
                          tare_error *error)
{
    const tare_value *p = self;
    tare_status s = TARE_OK;
    for (int64_t i = 0, end; i < n && !s; i = end) {
        end = i + 1;
        if (p[P_MODE].i != MODE_GROUP) {
            s = judge_alone(p, completions[i], out[i], error);
            continue;
        }
        while (end < n && completions[end]->group == completions[i]->group) end++;
        s = judge_group(p, completions + i, out + i, end - i, error);
    }
    return s;
}

USES(0)
VERIFIER_OF("length", "a reward for the length of the completion: at most, near a target, or shorter than the group",
            TARE_VERIFIER_TOGETHER | TARE_VERIFIER_REPEATS)
