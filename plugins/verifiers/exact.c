/* exact: the completion equals the answer, letter for letter.
 *
 *   reward 1  if  norm(completion) = norm(answer)  else 0
 *
 * norm: strips blanks at both ends (strip), maps ASCII letters to lower case (ignore_case), merges
 * runs of blanks (collapse). Verdicts: correct; wrong; no_answer if the completion is blank (and
 * the answer is not empty).
 */
#include "../common/built_in.h"
#include "common/text.h"

#include <stdlib.h>

static const tare_param PARAMS[] = {
    {.key = "strip", .type = TARE_BOOL, .fallback = "true", .doc = "cut blanks and newlines at both ends of completion and answer"},
    {.key = "ignore_case", .type = TARE_BOOL, .fallback = "false", .doc = "compare ASCII letters without their case"},
    {.key = "collapse", .type = TARE_BOOL, .fallback = "false", .doc = "a run of blanks inside counts as one blank"},
};
enum { STRIP, IGNORE_CASE, COLLAPSE, N_PARAMS };

struct exact {
    bool strip, ignore_case, collapse;
};

static tare_status create(const tare_host *host, const tare_value *values, void **self, tare_error *error)
{
    (void)host;
    struct exact *x = malloc(sizeof *x);
    if (!x) return text_fail(error, TARE_E_NOMEM, "no memory");
    *x = (struct exact){.strip = values[STRIP].i, .ignore_case = values[IGNORE_CASE].i, .collapse = values[COLLAPSE].i};
    *self = x;
    return TARE_OK;
}

static void destroy(void *self)
{
    free(self);
}

/* Returns the next character of t at *i after normalisation, -1 at the end. */
static int next_character(const struct exact *x, tare_text t, int64_t *i)
{
    if (*i >= t.size) return -1;
    char c = t.data[(*i)++];
    if (x->collapse && text_is_space(c)) {
        while (*i < t.size && text_is_space(t.data[*i])) ++*i;
        c = ' ';
    }
    return (unsigned char)(x->ignore_case ? text_lower(c) : c);
}

static bool same_text(const struct exact *x, tare_text a, tare_text b)
{
    for (int64_t i = 0, j = 0;;) {
        const int c = next_character(x, a, &i);
        if (c != next_character(x, b, &j)) return false;
        if (c < 0) return true;
    }
}

static tare_status verify(void *self, const tare_answer *const *answers, tare_verdict *const *verdicts, int64_t n,
                          tare_error *error)
{
    (void)error;
    const struct exact *x = self;
    for (int64_t i = 0; i < n; i++) {
        const tare_text said = x->strip ? text_trim(answers[i]->completion) : answers[i]->completion;
        const tare_text gold = x->strip ? text_trim(answers[i]->answer) : answers[i]->answer;
        if (same_text(x, said, gold))
            verdict_set(verdicts[i], TARE_CORRECT, 1, said, "equal text");
        else if (!text_trim(said).size)
            verdict_set(verdicts[i], TARE_NO_ANSWER, 0, text_of(""), "the completion is empty");
        else
            verdict_set(verdicts[i], TARE_WRONG, 0, said, "different text");
    }
    return TARE_OK;
}

static const tare_verifier FUNCTIONS = {.struct_size = sizeof FUNCTIONS, .create = create, .destroy = destroy, .verify = verify};

BUILT_IN("exact", .kind = TARE_VERIFIER, .summary = "the completion equals the answer, as text", .params = PARAMS,
         .n_params = N_PARAMS, .threading = TARE_REENTRANT)
