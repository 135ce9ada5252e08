/* repetition: a penalty for repeated text, to be added to the reward of a verifier
 * (verifier.plugins = math:1 repetition:0.5).
 *
 * reward = - penalty (1 - distinct / all)     over the completion's overlapping n-grams of words
 *
 * (Demystifying Long Chain-of-Thought, arXiv 2502.03373; open-r1's repetition_penalty.) Words are
 * separated by blanks and compared in lower case, without the punctuation around them. A character of a
 * script without blanks is a word (Chinese, Japanese, Thai, ...); a word of more than 24 characters is
 * cut (words.h), so that "hahaha..." and formulas without blanks repeat too. 0 for a completion of fewer than n words.
 * Verdicts: correct at 0, partial below it; an endless repetition approaches -penalty and never
 * reaches it.
 */
#define _GNU_SOURCE /* qsort_r */
#include "common/text.h"
#include "common/verifier.h"
#include "common/words/words.h"

#include <stdlib.h>
#include <string.h>

enum { P_N, P_PENALTY, N_PARAMS };

static const tare_param PARAMS[N_PARAMS] = {
    [P_N] = TARE_INT_PARAM("n", "3", "n, words in a run", 1, 1000, 0),
    [P_PENALTY] =
        TARE_FLOAT_PARAM("penalty", "1", "upper bound of the penalty, approached by a text that only repeats itself", 0, 1e6, 0),
};

struct grams {
    const tare_text *word;
    int64_t *number, *order; /* [words] each; number: equal for equal words */
    int64_t words, n;
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

static int by_word(const void *a, const void *b, void *ctx)
{
    const struct grams *g = ctx;
    const tare_text x = g->word[*(const int64_t *)a], y = g->word[*(const int64_t *)b];
    const int order = memcmp(x.data, y.data, (size_t)(x.size < y.size ? x.size : y.size));
    return order ? order : (x.size > y.size) - (x.size < y.size);
}

static int by_gram(const void *a, const void *b, void *ctx)
{
    const struct grams *g = ctx;
    const int64_t *x = g->number + *(const int64_t *)a, *y = g->number + *(const int64_t *)b;
    for (int64_t i = 0; i < g->n; i++)
        if (x[i] != y[i]) return x[i] < y[i] ? -1 : 1;
    return 0;
}

static void sort_grams(struct grams *g, int64_t n, int (*compare)(const void *, const void *, void *))
{
    for (int64_t i = 0; i < n; i++) g->order[i] = i;
    qsort_r(g->order, (size_t)n, sizeof *g->order, compare, g);
}

/* Returns the share of n-grams that occurred before. */
static double repeated_share(struct grams *g)
{
    const int64_t all = g->words - g->n + 1;
    int64_t number = 0, distinct = 1;
    sort_grams(g, g->words, by_word);
    for (int64_t i = 0; i < g->words; i++) {
        if (i && by_word(&g->order[i - 1], &g->order[i], g)) number++;
        g->number[g->order[i]] = number;
    }
    sort_grams(g, all, by_gram);
    for (int64_t i = 1; i < all; i++) distinct += by_gram(&g->order[i - 1], &g->order[i], g) != 0;
    return 1 - (double)distinct / (double)all;
}

static tare_status verify_answer(const tare_value *p, const tare_completion *a, tare_verdict *v, tare_error *error)
{
    const tare_text t = words_lower(a->text);
    struct words_units u = {.t = t};
    struct grams g = {.n = p[P_N].i};
    while (t.data && words_unit(&u).size) g.words++;
    tare_text *word = calloc((size_t)g.words + 1, sizeof *word);
    g.number = calloc((size_t)g.words + 1, sizeof *g.number);
    g.order = calloc((size_t)g.words + 1, sizeof *g.order);
    tare_status s = t.data && word && g.number && g.order ? TARE_OK : tare_fail(error, TARE_E_NOMEM, "no memory");
    if (!s) {
        u = (struct words_units){.t = t};
        for (int64_t i = 0; i < g.words; i++) word[i] = words_unit(&u);
        g.word = word;
        const double share = g.words >= g.n ? repeated_share(&g) : 0;
        s = verdict_set(v, share > 0 ? TARE_VERDICT_PARTIAL : TARE_VERDICT_CORRECT, share > 0 ? -p[P_PENALTY].f * share : 0,
                        (tare_text){"", 0}, share > 0 ? "runs of words repeat" : "no run of words repeats");
    }
    free((void *)t.data);
    free(word);
    free(g.number);
    free(g.order);
    return s;
}

USES(0)
VERIFIER("repetition", "a penalty for runs of words that are repeated", verify_answer)
