/* choice: checks whether the completion chose the right option.
 *
 * reward 1  if  letter(completion) = letter(answer)  else 0
 *
 * The text after the last </think> is cut into sentences (tokens.c), without programs in fences,
 * struck-out text and comments. A sentence claims an option, calls one wrong, takes the sentence before
 * back, names several, or says nothing (claim.c). The first of these that is there decides:
 * 1  the last \boxed or \fbox, even if it holds no option, unless its sentence denies, reports or
 *    imagines it, or a later sentence names another answer. A box that is never closed names the
 *    option that is its whole content; with any other content, the box before it does not count as an
 *    answer either
 * 2  the last claim: "the answer is B", "Answer: (B)", "#### B", "<answer>B</answer>", "option B is
 *    correct", "I would pick B", "So B."; and "Antwort: B" in the languages of anchors.c
 * 3  a line that is only an option, if all such lines name the same one or it is the last line
 * 4  a first line that opens with an option, "B. colder", if no later line opens with another
 * A letter in running prose is not an answer ("Plan B failed", "I do not know"), nor are several
 * letters ("A or C"), nor a letter without an option, nor an answer that a later sentence takes back.
 * The text of an option (row field "choices") stands for its letter. The number of options comes from the
 * row's "choices" or "letters" (after the host has permuted them), else from the parameter letters.
 * The gold answer is a letter or an option's text. Verdicts: correct; wrong; no_answer; unparsable
 * (the gold answer names no option).
 */
#include "choice.h"
#include "common/verifier.h"

#include <stdlib.h>
#include <string.h>

static const tare_param PARAMS[] = {
    TARE_STRING_PARAM("letters", "ABCDEFGHIJ", "the options' letters for rows that have neither choices nor letters", 0),
    TARE_BOOL_PARAM("lowercase", "true",
                    "(b) and b) are B, and so is b in a box or as the whole text; elsewhere a bare lower-case letter never is", 0),
    OPENED_PARAM,
};
enum { P_LETTERS, P_LOWERCASE, P_OPENED, N_PARAMS };

struct self {
    struct options defaults;
    bool opened;
};

/* Reads option texts from a JSON array of strings. Texts with escapes are skipped because they
 * cannot be compared in place. */
static int read_choices(tare_text array, tare_text *choices)
{
    int n = 0;
    for (int64_t i = 0; i < array.size && n < MAX_OPTIONS;) {
        if (array.data[i] != '"') {
            i++;
            continue;
        }
        int64_t end = i + 1;
        bool escaped = false;
        for (; end < array.size && array.data[end] != '"'; end++)
            if (array.data[end] == '\\') {
                escaped = true;
                end++;
            }
        choices[n++] = escaped || end >= array.size ? (tare_text){0} : text_trim(text_slice(array, i + 1, end));
        i = end + 1;
    }
    return n;
}

static struct options row_options(const struct options *defaults, tare_text row)
{
    struct options o = *defaults;
    const tare_text choices = text_row_field(row, "choices"), letters = text_row_field(row, "letters");
    if (choices.size && choices.data[0] == '[') {
        o.n_choices = read_choices(choices, o.choices);
        if (o.n_choices) {
            o.n = o.n_choices;
            for (int i = 0; i < o.n; i++) o.letters[i] = (char)('A' + i);
        }
    }
    if (letters.size > 2 && letters.data[0] == '"' && letters.size - 2 <= MAX_OPTIONS) {
        o.n = (int)letters.size - 2;
        memcpy(o.letters, letters.data + 1, (size_t)o.n);
    }
    return o;
}

static tare_status verify_answer(const struct self *self, const tare_completion *a, tare_verdict *v, tare_error *error)
{
    const struct options o = row_options(&self->defaults, a->row);
    const char gold = choice_of_gold(&o, a->answer);
    char *clean = malloc((size_t)a->text.size + 1);
    if (!clean) return tare_fail(error, TARE_E_NOMEM, "no memory to read a completion");
    struct chosen c = choice_extract(&o, choice_clean(text_after_thought(a->text, self->opened), clean));
    free(clean);
    const tare_text letter = {&c.letter, c.letter != 0};
    if (!gold) return verdict_set(v, TARE_VERDICT_UNPARSABLE, 0, letter, "the answer of the row names no option");
    if (!c.letter) return verdict_set(v, TARE_VERDICT_NO_ANSWER, 0, letter, c.rule);
    return verdict_set(v, c.letter == gold ? TARE_VERDICT_CORRECT : TARE_VERDICT_WRONG, c.letter == gold, letter, c.rule);
}

static tare_status create(const tare_setup *setup, void **out, tare_error *error)
{
    const tare_value *values = setup->values;
    const char *letters = values[P_LETTERS].s;
    const size_t n = strlen(letters);
    if (n < 2 || n > MAX_OPTIONS)
        return tare_fail(error, TARE_E_CONFIG, "letters: \"%s\"; give 2 to %d capital letters", letters, MAX_OPTIONS);
    for (size_t i = 0; i < n; i++)
        if (letters[i] < 'A' || letters[i] > 'Z')
            return tare_fail(error, TARE_E_CONFIG, "letters: \"%s\"; capital letters only", letters);
    struct self *self = calloc(1, sizeof *self);
    if (!self) return tare_fail(error, TARE_E_NOMEM, "no memory");
    self->defaults.n = (int)n;
    memcpy(self->defaults.letters, letters, n);
    self->defaults.lowercase = values[P_LOWERCASE].i;
    self->opened = values[P_OPENED].i;
    *out = self;
    return TARE_OK;
}

static void destroy(void *self)
{
    free(self);
}

USES(TARE_USES_ANSWER)
VERIFIER("choice", "the completion chooses the right option of a multiple-choice question", verify_answer)
