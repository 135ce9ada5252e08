/* format: the completion has the form of a thought and an answer.
 *
 * <think> thought </think> answer
 * <think> thought </think> <answer> answer </answer>        with answer_open
 *
 * The conditions, each true or false:
 * 1  the text begins with `open`, after optional blanks; with opened = true the template has
 *    written it, and it may be missing
 * 2  `open` does not occur a second time
 * 3  `close` occurs exactly once
 * 4  the thought, from `open` to `close`, is not blank
 * 5  the text after `close` is not blank
 * 6  only with answer_open: that text is one `answer_open`, text, one `answer_close`, with optional
 *    blanks around them
 * reward 1 if all are true; else 0, or with partial = true the share of true ones. Verdicts:
 * correct, wrong, partial, and no_answer for an empty text.
 */
#include "common/text.h"
#include "common/verifier.h"

#include <stdlib.h>

enum { P_OPEN, P_CLOSE, P_ANSWER_OPEN, P_ANSWER_CLOSE, P_OPENED, P_PARTIAL, N_PARAMS };

static const tare_param PARAMS[N_PARAMS] = {
    [P_OPEN] = TARE_STRING_PARAM("open", "<think>", "tag that opens the thought", 0),
    [P_CLOSE] = TARE_STRING_PARAM("close", "</think>", "tag that closes the thought", 0),
    [P_ANSWER_OPEN] = TARE_STRING_PARAM("answer_open", "",
                                        "tag that must open the answer, for example <answer>; empty: any text is an answer", 0),
    [P_ANSWER_CLOSE] = TARE_STRING_PARAM("answer_close", "</answer>", "tag that closes the answer, if answer_open is set", 0),
    [P_OPENED] = TARE_BOOL_PARAM(
        "opened", "false",
        "the prompt has opened the thought already, so that `open` may be missing; default: verifier.opened, unless open is set",
        0),
    [P_PARTIAL] = TARE_BOOL_PARAM("partial", "false", "the reward is the share of the conditions that hold, not all or nothing", 0),
};

struct format {
    const char *open, *close, *answer_open, *answer_close;
    bool opened, partial;
};

static tare_status create(const tare_setup *setup, void **self, tare_error *error)
{
    const tare_value *values = setup->values;
    if (!*values[P_OPEN].s || !*values[P_CLOSE].s || (*values[P_ANSWER_OPEN].s && !*values[P_ANSWER_CLOSE].s))
        return tare_fail(error, TARE_E_CONFIG, "%s is empty; give the text of the tag",
                         !*values[P_OPEN].s    ? "open"
                         : !*values[P_CLOSE].s ? "close"
                                               : "answer_close");
    struct format *f = malloc(sizeof *f);
    if (!f) return tare_fail(error, TARE_E_NOMEM, "no memory");
    *f = (struct format){.open = values[P_OPEN].s,
                         .close = values[P_CLOSE].s,
                         .answer_open = values[P_ANSWER_OPEN].s,
                         .answer_close = values[P_ANSWER_CLOSE].s,
                         .opened = values[P_OPENED].i,
                         .partial = values[P_PARTIAL].i};
    *self = f;
    return TARE_OK;
}

static void destroy(void *self)
{
    free(self);
}

static bool is_once(tare_text t, const char *tag)
{
    const int64_t at = text_find(t, tag);
    return at >= 0 && at == text_find_last(t, tag);
}

/* Returns whether the text is one pair of tags around a text, with blanks outside. */
static bool is_enclosed(const struct format *f, tare_text t)
{
    const int64_t begin = text_of(f->answer_open).size, end = t.size - text_of(f->answer_close).size;
    return text_starts(t, 0, f->answer_open, false) && is_once(t, f->answer_open) && is_once(t, f->answer_close) && begin <= end &&
           text_starts(t, end, f->answer_close, false) && text_trim(text_slice(t, begin, end)).size;
}

static tare_status verify_answer(const struct format *f, const tare_completion *a, tare_verdict *v, tare_error *error)
{
    (void)error;
    const tare_text t = text_trim(a->text);
    const bool opens = text_starts(t, 0, f->open, false);
    const tare_text inside = opens ? text_slice(t, text_of(f->open).size, t.size) : t;
    const int64_t at = text_find(inside, f->close);
    const tare_text thought = text_trim(text_slice(inside, 0, at < 0 ? 0 : at)),
                    answer = at < 0 ? (tare_text){"", 0} : text_trim(text_slice(inside, at + text_of(f->close).size, inside.size));
    const struct {
        bool holds;
        const char *otherwise;
    } conditions[] = {{opens || f->opened, "the thought does not begin the text"},
                      {text_find(inside, f->open) < 0, "the tag that begins the thought is there twice"},
                      {is_once(inside, f->close), "the tag that ends the thought is not there exactly once"},
                      {thought.size > 0, "the thought is empty"},
                      {answer.size > 0, "nothing follows the thought"},
                      {*f->answer_open && is_enclosed(f, answer), "the answer is not between its tags"}};
    const int n = *f->answer_open ? 6 : 5;
    int hold = 0;
    const char *reason = NULL;
    for (int i = 0; i < n; i++) {
        hold += conditions[i].holds;
        if (!conditions[i].holds && !reason) reason = conditions[i].otherwise;
    }
    if (!t.size) return verdict_set(v, TARE_VERDICT_NO_ANSWER, 0, answer, "the completion is empty");
    if (hold == n) return verdict_set(v, TARE_VERDICT_CORRECT, 1, answer, "the form is as asked");
    if (f->partial && hold) return verdict_set(v, TARE_VERDICT_PARTIAL, (double)hold / n, answer, reason);
    return verdict_set(v, TARE_VERDICT_WRONG, 0, answer, reason);
}

USES(0)
VERIFIER("format", "the completion has the form of a thought between tags and an answer after it", verify_answer)
