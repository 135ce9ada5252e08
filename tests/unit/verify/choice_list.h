/* A list of completions against one answer, of rows with the options w, x, y and z. */
#ifndef TESTS_CHOICES_LIST_H
#define TESTS_CHOICES_LIST_H

#include "check.h"
#include "harness.h"

static inline bool is_right(struct harness *h, const char *completion, const char *answer, const char *row,
                            struct harness_verdict *v)
{
    const tare_text t = {completion, (int64_t)strlen(completion)}, a = {answer, (int64_t)strlen(answer)},
                    r = {row, (int64_t)strlen(row)};
    assert_int_equal(harness_run(h, t, a, r, v), 0);
    return v->v.code == TARE_VERDICT_CORRECT;
}

static inline void try_list(const char *const *list, const char *answer, bool right)
{
    struct harness h = {0};
    struct harness_verdict v;
    assert_int_equal(harness_open(&h, "choice", NULL), 0);
    for (; *list; list++)
        if (is_right(&h, *list, answer, "{\"choices\":[\"w\",\"x\",\"y\",\"z\"]}", &v) != right)
            fail_msg("\"%s\" against %s: \"%s\" (%s)", *list, answer, v.extracted, v.note);
    harness_close(&h);
}

#endif
