/* Pairs of a gold answer and a boxed answer that must be equal, or different, for the math
 * verifier. */
#ifndef TESTS_VERIFY_PAIRS_H
#define TESTS_VERIFY_PAIRS_H

#include "cases.h"
#include "check.h"

static inline tare_text text(const char *s)
{
    return (tare_text){s, (int64_t)strlen(s)};
}

static inline struct harness opened(const char *const *settings)
{
    struct harness h = {0};
    if (harness_open(&h, "math", settings)) {
        SKIP("the plugin math is not built (FLINT is missing)");
    }
    return h;
}

static inline int boxed_code(struct harness *h, const char *gold, const char *pred, const char **reason)
{
    char b[8192];
    static struct harness_verdict v;
    snprintf(b, sizeof b, "So the answer is $\\boxed{%s}$.", pred);
    assert_int_equal(harness_run(h, text(b), text(gold), (tare_text){0}, &v), 0);
    *reason = v.note;
    return v.v.code;
}

struct pair {
    const char *gold, *pred;
};

static inline void try_pairs(struct harness *h, const struct pair *p, size_t n, bool equal)
{
    int missed = 0;
    for (size_t i = 0; i < n; i++) {
        const char *reason;
        const int code = boxed_code(h, p[i].gold, p[i].pred, &reason);
        if ((code == TARE_VERDICT_CORRECT) != equal) {
            printf("  %s | %s: %s (%s), should be %s\n", p[i].gold, p[i].pred, harness_code(code), reason,
                   equal ? "equal" : "different");
            missed++;
        }
    }
    assert_int_equal(missed, 0);
}
#define TRY_PAIRS(H, PAIRS, EQUAL) try_pairs(H, PAIRS, sizeof(PAIRS) / sizeof *(PAIRS), EQUAL)

static inline void try_by_default(const struct pair *p, size_t n, bool equal)
{
    struct harness h = opened(NULL);
    try_pairs(&h, p, n, equal);
    harness_close(&h);
}
#define TRY_BY_DEFAULT(PAIRS, EQUAL) try_by_default(PAIRS, sizeof(PAIRS) / sizeof *(PAIRS), EQUAL)

#endif
