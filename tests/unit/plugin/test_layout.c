/* The layout gate: sizes and offsets of every public struct, compared with sdk/abi/v1.layout.
 * Within a major version a line may only be appended to a struct (its size grows, its other lines
 * stay); anything else breaks plugins that were built before. After an append, run
 * tests/abi/tables.py write. */
#include "check.h"

#include "base/fs.h"

#include <string.h>
#include <tare/plugin.h>

static void layout(struct str *out)
{
    struct err e;
#define LAYOUT(S) assert_ok(str_addf(out, &e, #S " size %zu align %zu\n", sizeof(S), _Alignof(S)), &e);
#define MEMBER(S, M) assert_ok(str_addf(out, &e, "  %4zu %4zu " #M "\n", offsetof(S, M), sizeof(((S *)0)->M)), &e);
#define CONSTANT(C) assert_ok(str_addf(out, &e, #C " = %d\n", (int)(C)), &e);
#include "abi/members.def"
#undef LAYOUT
#undef MEMBER
#undef CONSTANT
}

static void layout__is_the_released_one(void **state)
{
    (void)state;
    struct str now = {0}, released = {0};
    struct err e = {0};
    char path[4096];
    layout(&now);
    snprintf(path, sizeof path, "%s/sdk/abi/v1.layout", getenv("SOURCE"));
    assert_ok(fs_read_all(path, &released, &e), &e);
    const char *a = now.data, *b = released.data;
    while (*a || *b) {
        const int an = (int)strcspn(a, "\n"), bn = (int)strcspn(b, "\n");
        if (an != bn || strncmp(a, b, (size_t)an)) fail_msg("the layout is '%.*s', released is '%.*s'", an, a, bn, b);
        a += an + (a[an] != 0);
        b += bn + (b[bn] != 0);
    }
    str_free(&now);
    str_free(&released);
}

/* Every member of the structs is listed: their sizes leave no gap for another one. */
static void layout__leaves_no_holes(void **state)
{
    (void)state;
    size_t end = 0, size = 0;
    const char *name = "";
    int at_union = 0;
#define LAYOUT(S)                                                                                                                  \
    if (end != size) fail_msg("%s: members end at %zu, its size is %zu", name, end, size);                                         \
    name = #S, size = sizeof(S), end = 0, at_union = !strcmp(#S, "tare_value");
#define MEMBER(S, M)                                                                                                               \
    if (offsetof(S, M) != (at_union ? 0 : end)) fail_msg(#S ": a hole before " #M ": %zu, expected %zu", offsetof(S, M), end);     \
    end = offsetof(S, M) + sizeof(((S *)0)->M);
#define CONSTANT(C)
#include "abi/members.def"
#undef LAYOUT
#undef MEMBER
    assert_int_equal(end, size);
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(layout__is_the_released_one), cmocka_unit_test(layout__leaves_no_holes)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
