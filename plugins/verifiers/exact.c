/* exact: the completion equals the answer, letter for letter.
 *
 *   reward 1  if  norm(completion) = norm(answer)  else 0
 *
 * norm: strips blanks at both ends (strip), maps ASCII letters to lower case (ignore_case), merges
 * runs of blanks (collapse). With opened the text after the thought is compared. Verdicts: correct;
 * wrong; no_answer if the completion is blank (and the answer is not empty).
 */
#include "common/text.h"
#include "common/verifier.h"

#include <stdlib.h>

static const tare_param PARAMS[] = {
    TARE_BOOL_PARAM("strip", "true", "cut blanks and newlines at both ends of completion and answer", 0),
    TARE_BOOL_PARAM("ignore_case", "false", "compare ASCII letters without their case", 0),
    TARE_BOOL_PARAM("collapse", "false", "a run of blanks inside counts as one blank", 0),
    TARE_BOOL_PARAM("opened", "false",
                    "compare only the text after the thought, which the prompt has opened; default: verifier.opened", 0),
};
enum { STRIP, IGNORE_CASE, COLLAPSE, OPENED, N_PARAMS };

struct exact {
    bool strip, ignore_case, collapse, opened;
};

static tare_status create(const tare_setup *setup, void **self, tare_error *error)
{
    const tare_value *values = setup->values;
    struct exact *x = malloc(sizeof *x);
    if (!x) return tare_fail(error, TARE_E_NOMEM, "no memory");
    *x = (struct exact){
        .strip = values[STRIP].i, .ignore_case = values[IGNORE_CASE].i, .collapse = values[COLLAPSE].i, .opened = values[OPENED].i};
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

static tare_status judge(const struct exact *x, const tare_completion *a, tare_verdict *out, tare_error *error)
{
    (void)error;
    const tare_text text = x->opened ? text_after_thought(a->text, true) : a->text;
    const tare_text said = x->strip ? text_trim(text) : text, gold = x->strip ? text_trim(a->answer) : a->answer;
    if (same_text(x, said, gold)) return verdict_set(out, TARE_VERDICT_CORRECT, 1, said, "equal text");
    if (!text_trim(said).size) return verdict_set(out, TARE_VERDICT_NO_ANSWER, 0, text_of(""), "the completion is empty");
    return verdict_set(out, TARE_VERDICT_WRONG, 0, said, "different text");
}

USES(TARE_USES_ANSWER)
VERIFIER("exact", "the completion equals the answer, as text", judge)
