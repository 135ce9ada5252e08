/* Every column of the table is filled, selected, joined, packed and unpacked, with columns missing
 * and bytes damaged. The expected values of a group are looked up by hand on each axis. */
#include "check.h"

#include "base/fs.h"
#include "base/rng.h"
#include "batch/pack.h"
#include "batch/select.h"
#include "batch/table.h"

#include <string.h>

enum { M = 7, C = 3, MOST = 5 };

static struct arena arena;
static struct err e;
static uint64_t draws;

static int64_t draw(int64_t below)
{
    return (int64_t)rng_below(rng_key(5, RNG_DATA), draws++, (uint64_t)below);
}

static void fill_column(struct batch *b, int c)
{
    const struct batch_column *t = &BATCH_TABLE[c];
    const int64_t n = batch_count(b, t->axis);
    assert_ok(batch_new_array(b, c, n, &arena, &e), &e);
    unsigned char *bytes = batch_array(b, c);
    for (int64_t i = 0; i < n; i++) {
        char *text;
        if (batch_is_begin(t->kind)) {
            int64_t *begin = batch_array(b, c);
            begin[i + 1] = begin[i] + draw(MOST); /* may be 0 */
        } else if (t->kind == KIND_TEXT || t->kind == KIND_STRING) {
            const int64_t size = draw(MOST) - 1; /* -1: no text */
            if (size < 0) continue;
            assert_ok(arena_strdup(&arena, &"abcdefgh"[draw(4)], size, &text, &e), &e);
            if (t->kind == KIND_TEXT)
                ((tare_text *)(void *)bytes)[i] = (tare_text){text, size};
            else
                ((const char **)(void *)bytes)[i] = text;
        }
    }
    if (t->kind == KIND_NUMBER || t->kind == KIND_OPTIONAL || t->kind == KIND_MASK || t->kind == KIND_LOCAL)
        for (int64_t i = 0; i < n * batch_width(b, c) * (int64_t)t->size; i++) bytes[i] = (unsigned char)draw(256);
}

/* Makes all columns of m groups. BEGIN columns come before those that they count, as in the
 * table. */
static struct batch full(int64_t m)
{
    struct batch b = {.step = 9, .n_groups = m, .n_components = C, .n_clusters = 4};
    for (int c = 0; c < BATCH_N_COLUMNS; c++) {
        fill_column(&b, c);
        if (batch_is_begin(BATCH_TABLE[c].kind)) batch_set_count(&b, batch_child(c), batch_count(&b, batch_child(c)));
    }
    return b;
}

/* Returns the first entry of group m. */
static int64_t first_of(const struct batch *b, enum batch_axis axis, int64_t m)
{
    switch (axis) {
    case AXIS_GROUP:
        return m;
    case AXIS_PROMPT:
        return b->prompt_begin[m];
    case AXIS_ROLLOUT:
        return b->group_begin[m];
    case AXIS_TURN:
        return b->turn_begin[b->group_begin[m]];
    case AXIS_TOKEN:
        return b->token_begin[b->group_begin[m]];
    default:
        fail_msg("axis %d: say here where a group's entries begin", (int)axis);
        return 0;
    }
}

static void same_text(const struct batch *x, const struct batch *y, int c, int64_t i, int64_t j)
{
    if (BATCH_TABLE[c].kind == KIND_TEXT) {
        const tare_text s = ((const tare_text *)batch_array(x, c))[i], t = ((const tare_text *)batch_array(y, c))[j];
        assert_true(!s.data == !t.data && s.size == t.size);
        if (s.data) assert_memory_equal(s.data, t.data, (size_t)s.size + 1);
        return;
    }
    const char *s = ((const char *const *)batch_array(x, c))[i], *t = ((const char *const *)batch_array(y, c))[j];
    assert_true(!s == !t);
    if (s) assert_string_equal(s, t);
}

/* Compares group m of x with group g of y in column c. */
static void same_group(const struct batch *x, int64_t m, const struct batch *y, int64_t g, int c)
{
    const struct batch_column *t = &BATCH_TABLE[c];
    const int64_t i = first_of(x, t->axis, m), j = first_of(y, t->axis, g), n = first_of(x, t->axis, m + 1) - i;
    const size_t entry = t->size * (size_t)batch_width(x, c);
    assert_int_equal(n, first_of(y, t->axis, g + 1) - j);
    const char *a = batch_array(x, c), *b = batch_array(y, c);
    if (!a || !b) fail_msg("the column %s is missing", t->name);
    for (int64_t k = 0; k < n; k++)
        if (t->kind == KIND_TEXT || t->kind == KIND_STRING) {
            same_text(x, y, c, i + k, j + k);
        } else if (batch_is_begin(t->kind)) {
            const int64_t *p = batch_array(x, c), *q = batch_array(y, c);
            assert_int_equal(p[i + k + 1] - p[i + k], q[j + k + 1] - q[j + k]);
        } else if (memcmp(a + (size_t)(i + k) * entry, b + (size_t)(j + k) * entry, entry)) {
            fail_msg("column %s, entry %lld of group %lld is another", t->name, (long long)k, (long long)m);
        }
}

static bool hangs_on(int c, int without) /* returns whether column c has no entries if `without` is missing */
{
    for (enum batch_axis axis = BATCH_TABLE[c].axis; axis != AXIS_GROUP; axis = batch_parent(axis))
        if (batch_begin_column(axis) == without) return true;
    return false;
}

/* Compares groups[k] of x with the groups of y. without: a column that both lack, -1: none. local:
 * whether y has LOCAL columns */
static void same(const struct batch *x, const int64_t *groups, int64_t n, const struct batch *y, int without, bool local)
{
    assert_int_equal(y->n_groups, n);
    assert_int_equal(y->step, x->step);
    for (int c = 0; c < BATCH_N_COLUMNS; c++) {
        if (c == without || (!local && BATCH_TABLE[c].kind == KIND_LOCAL)) {
            assert_null(batch_array(y, c));
            continue;
        }
        if (without >= 0 && hangs_on(c, without)) continue;
        for (int64_t k = 0; k < n; k++) same_group(x, groups ? groups[k] : k, y, k, c);
        if (batch_is_begin(BATCH_TABLE[c].kind)) {
            const int64_t *begin = batch_array(y, c);
            assert_int_equal(begin[0], 0);
            assert_int_equal(begin[batch_count(y, BATCH_TABLE[c].axis)], batch_count(y, batch_child(c)));
        }
    }
    if (without < 0) {
        assert_int_equal(y->n_prompt_tokens, batch_count(y, AXIS_PROMPT));
        assert_int_equal(y->n_rollouts, batch_count(y, AXIS_ROLLOUT));
        assert_int_equal(y->n_turns, batch_count(y, AXIS_TURN));
        assert_int_equal(y->n_tokens, batch_count(y, AXIS_TOKEN));
    }
}

static struct batch without_column(const struct batch *b, int c)
{
    struct batch less = *b;
    if (c >= 0) batch_set_array(&less, c, NULL);
    return less;
}

static void chosen_groups_keep_every_column(void **state)
{
    (void)state;
    static const int64_t GROUPS[] = {3, 0, 3, 6, 5};
    const struct batch b = full(M);
    struct batch out;
    for (int c = -1; c < BATCH_N_COLUMNS; c++) {
        const struct batch less = without_column(&b, c);
        assert_ok(batch_select(&less, (struct batch_indices){GROUPS, 5}, BATCH_ALL, &arena, &out, &e), &e);
        same(&b, GROUPS, 5, &out, c, true);
    }
    assert_ok(batch_select(&b, (struct batch_indices){GROUPS, 0}, BATCH_ALL, &arena, &out, &e), &e);
    same(&b, NULL, 0, &out, -1, true);
    assert_int_equal(out.token_begin[0], 0);
}

static void stages_say_which_columns(void **state)
{
    (void)state;
    static const int64_t ONE[] = {1};
    const struct batch b = full(M);
    for (unsigned stages = 0; stages <= BATCH_ALL; stages++) {
        struct batch out;
        assert_ok(batch_select(&b, (struct batch_indices){ONE, 1}, stages, &arena, &out, &e), &e);
        for (int c = 0; c < BATCH_N_COLUMNS; c++) assert_true(!batch_array(&out, c) == !(BATCH_TABLE[c].stage & stages));
        out = (struct batch){.n_groups = M};
        batch_adopt(&out, &b, stages);
        for (int c = 0; c < BATCH_N_COLUMNS; c++)
            assert_ptr_equal(batch_array(&out, c), BATCH_TABLE[c].stage & stages ? batch_array(&b, c) : NULL);
    }
}

static void parts_make_the_whole(void **state)
{
    (void)state;
    static const int64_t ORDER[] = {0, 1, 2, 3, 4, 5, 6};
    const struct batch b = full(M);
    for (int c = -1; c < BATCH_N_COLUMNS; c++)
        for (int64_t cut = 0; cut <= M; cut += c < 0 ? 1 : 3) {
            const struct batch less = without_column(&b, c);
            struct batch part[3], out;
            assert_ok(batch_select(&less, (struct batch_indices){ORDER, cut}, BATCH_ALL, &arena, &part[0], &e), &e);
            part[1] = (struct batch){0}; /* a part without groups lacks every column */
            assert_ok(batch_select(&less, (struct batch_indices){ORDER + cut, M - cut}, BATCH_ALL, &arena, &part[2], &e), &e);
            assert_ok(batch_concat((struct batch_parts){part, 3}, BATCH_ALL, &arena, &out, &e), &e);
            same(&b, NULL, M, &out, c, true);
        }
}

static void split_and_joined_is_the_same(void **state)
{
    (void)state;
    const struct batch b = full(M);
    for (int64_t hands = 1; hands < M + 3; hands++) {
        int64_t hand[M];
        struct batch part[M + 3], out;
        for (int m = 0; m < M; m++) hand[m] = draw(hands);
        for (int64_t k = 0; k < hands; k++) assert_ok(batch_split(&b, hand, k, &arena, &part[k], &e), &e);
        const struct batch_parts parts = {part, hands};
        assert_ok(batch_join(parts, (struct batch_indices){hand, M}, BATCH_ALL, &arena, &out, &e), &e);
        same(&b, NULL, M, &out, -1, true);
        part[hand[0]].n_groups--;
        assert_int_equal(batch_join(parts, (struct batch_indices){hand, M}, BATCH_ALL, &arena, &out, &e), TARE_E_SHAPE);
    }
}

static void bytes_hold_every_column(void **state)
{
    (void)state;
    const struct batch b = full(M);
    for (int c = -1; c < BATCH_N_COLUMNS; c++) {
        const struct batch less = without_column(&b, c);
        struct str text = {0};
        struct batch out;
        void *bytes;
        assert_ok(batch_pack(&less, BATCH_ALL, &text, &e), &e);
        const int64_t first = text.size;
        assert_int_equal(first % 64, 0);
        assert_ok(batch_pack(&b, BATCH_VERIFY, &text, &e), &e);
        assert_ok(arena_push(&arena, text.size, &bytes, &e), &e);
        memcpy(bytes, text.data, (size_t)text.size);
        assert_ok(batch_unpack(bytes, first, &arena, &out, &e), &e);
        same(&b, NULL, M, &out, c, false);
        assert_ok(batch_unpack((char *)bytes + first, text.size - first, &arena, &out, &e), &e);
        assert_int_equal(out.n_groups, M);
        assert_int_equal(out.n_rollouts, 0); /* no column assigns them to groups */
        str_free(&text);
    }
}

static void mend(char *bytes, int64_t n)
{
    const uint64_t hash = fs_hash(bytes + sizeof hash, n - (int64_t)sizeof hash, 0);
    memcpy(bytes, &hash, sizeof hash);
}

/* Bytes are truncated or changed; then the hash is made to match: the result may be a valid batch,
 * which must be copyable. */
static void damaged_bytes_are_refused(void **state)
{
    (void)state;
    const struct batch b = full(2);
    struct batch out, again;
    struct str text = {0};
    struct arena work;
    int64_t refused = 0, whole = 0;
    arena_init(&work, "damage");
    assert_ok(batch_pack(&b, BATCH_ALL, &text, &e), &e);
    for (int64_t n = 0; n < text.size; n++) {
        /* The exact size, so that a read beyond it is detected. */
        char *bytes = malloc((size_t)n + 1);
        memcpy(bytes, text.data, (size_t)n);
        if (n >= 24) memcpy(bytes + 16, &n, sizeof n); /* the header's length */
        assert_int_equal(batch_unpack(bytes, n, &work, &out, &e), TARE_E_CORRUPT);
        if (n > 8) mend(bytes, n);
        assert_int_equal(batch_unpack(bytes, n, &work, &out, &e), TARE_E_CORRUPT);
        free(bytes);
        arena_reset(&work);
    }
    for (int64_t at = 0; at < text.size; at++)
        for (int bit = 0; bit < 8; bit++) {
            text.data[at] = (char)(text.data[at] ^ 1 << bit);
            assert_int_equal(batch_unpack(text.data, text.size, &work, &out, &e), TARE_E_CORRUPT);
            uint64_t hash;
            memcpy(&hash, text.data, sizeof hash);
            mend(text.data, text.size);
            const bool bad = batch_unpack(text.data, text.size, &work, &out, &e) != TARE_OK;
            refused += bad, whole += !bad;
            if (!bad) {
                const tare_status copied = batch_concat((struct batch_parts){&out, 1}, BATCH_ALL, &work, &again, &e);
                assert_true(copied == TARE_OK || copied == TARE_E_SHAPE);
            }
            memcpy(text.data, &hash, sizeof hash);
            text.data[at] = (char)(text.data[at] ^ 1 << bit);
            arena_reset(&work);
        }
    assert_true(refused > 500 && whole > 500); /* counts, sizes and ends; numbers */
    arena_free(&work);
    str_free(&text);
}

static void missing_in_one_part(void **state)
{
    (void)state;
    const struct batch b = full(M);
    for (int c = 0; c < BATCH_N_COLUMNS; c++) {
        struct batch parts[2] = {b, without_column(&b, c)}, out;
        const tare_status status = batch_concat((struct batch_parts){parts, 2}, BATCH_ALL, &arena, &out, &e);
        const enum batch_axis axis = BATCH_TABLE[c].axis;
        if (BATCH_TABLE[c].kind == KIND_OPTIONAL_BEGIN) {
            assert_ok(status, &e);
            assert_int_equal(out.n_turns, b.n_turns);
            for (int64_t i = 0; i <= 2 * b.n_rollouts; i++)
                assert_int_equal(out.turn_begin[i], i <= b.n_rollouts ? b.turn_begin[i] : b.n_turns);
            continue;
        }
        if (!batch_may_lack(BATCH_TABLE[c].kind)) {
            assert_int_equal(status, TARE_E_SHAPE);
            assert_non_null(strstr(e.message, BATCH_TABLE[c].name));
            continue;
        }
        assert_ok(status, &e);
        const size_t bytes = (size_t)batch_count(&b, axis) * BATCH_TABLE[c].size;
        const char *array = batch_array(&out, c);
        assert_memory_equal(array, batch_array(&b, c), bytes);
        for (size_t i = 0; i < bytes; i++) assert_int_equal(array[bytes + i], BATCH_TABLE[c].kind == KIND_MASK);
    }
    struct batch parts[2] = {b, b}, out;
    parts[1].n_components = C - 1;
    assert_int_equal(batch_concat((struct batch_parts){parts, 2}, BATCH_ALL, &arena, &out, &e), TARE_E_SHAPE);
}

static void replaced_rollouts(void **state)
{
    (void)state;
    const struct batch b = full(M);
    struct batch with = full(3), out;
    const int64_t n = b.n_rollouts, at[] = {0, 1, n - 1};
    assert_true(n > 3);
    /* One rollout each. */
    for (int64_t k = 0; k <= 3; k++) with.group_begin[k] = k;
    with.n_rollouts = 3;
    assert_ok(batch_replace(&b, (struct batch_indices){at, 3}, &with, &arena, &out, &e), &e);
    assert_memory_equal(out.group_begin, b.group_begin, (M + 1) * sizeof *b.group_begin);
    assert_memory_equal(out.prompt_ids, b.prompt_ids, (size_t)b.n_prompt_tokens * sizeof *b.prompt_ids);
    assert_memory_equal(out.baseline, b.baseline, M * sizeof *b.baseline);
    assert_int_equal(out.n_tokens, out.token_begin[n]);
    for (int64_t i = 0; i < n; i++) {
        const bool new = i < 2 || i == n - 1;
        const struct batch *from = new ? &with : &b;
        const int64_t j = !new ? i : i < 2 ? i : 2, first = from->token_begin[j], length = from->token_begin[j + 1] - first;
        assert_int_equal(out.token_begin[i + 1] - out.token_begin[i], length);
        assert_memory_equal(out.ids + out.token_begin[i], from->ids + first, (size_t)length * sizeof *out.ids);
        assert_memory_equal(&out.reward[i], &from->reward[j], sizeof *out.reward);
        assert_ptr_equal(out.reason[i], from->reason[j]);
    }
    assert_int_equal(batch_replace(&b, (struct batch_indices){at, 2}, &with, &arena, &out, &e), TARE_E_SHAPE);
}

static void room_has_every_column_of_a_stage(void **state)
{
    (void)state;
    struct batch b = {.n_groups = 2, .n_components = 2};
    assert_ok(batch_regular(&b, 3, 4, 5, &arena, &e), &e);
    assert_int_equal(batch_count(&b, AXIS_PROMPT), 8);
    assert_int_equal(batch_count(&b, AXIS_ROLLOUT), 6);
    assert_int_equal(batch_count(&b, AXIS_TOKEN), 30);
    assert_ok(batch_alloc(&b, BATCH_ALL & ~BATCH_ROLLOUT, &arena, &e), &e);
    for (int c = 0; c < BATCH_N_COLUMNS; c++) {
        const struct batch_column *t = &BATCH_TABLE[c];
        const bool there = !batch_may_lack(t->kind) && t->stage != BATCH_ROLLOUT;
        if (t->kind != KIND_BEGIN) assert_true(!batch_array(&b, c) == !there);
    }
    for (int64_t i = 0; i < 12; i++) assert_true(b.component[i] == 0);
}

static int open_arena(void **state)
{
    (void)state;
    arena_init(&arena, "test");
    return 0;
}

static int close_arena(void **state)
{
    (void)state;
    arena_free(&arena);
    return 0;
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(chosen_groups_keep_every_column),
                                       cmocka_unit_test(stages_say_which_columns),
                                       cmocka_unit_test(parts_make_the_whole),
                                       cmocka_unit_test(split_and_joined_is_the_same),
                                       cmocka_unit_test(bytes_hold_every_column),
                                       cmocka_unit_test(damaged_bytes_are_refused),
                                       cmocka_unit_test(missing_in_one_part),
                                       cmocka_unit_test(replaced_rollouts),
                                       cmocka_unit_test(room_has_every_column_of_a_stage)};
    return cmocka_run_group_tests(tests, open_arena, close_arena);
}
