/* The built-in curricula on cases computed by hand, through core/curriculum. */
#include "check.h"

#include "curriculum/curriculum.h"

#include <math.h>
#include <string.h>
#include <tare/sdk.h>

enum { ROWS = 20, MOST = 64 };

static struct err e;

/* A data set of two files, 15 rows and 5, without texts; a curriculum; a step's arena. */
struct rig {
    struct row rows[ROWS];
    double weight[2];
    struct dataset data;
    struct curriculum *c;
    struct arena arena;
    int64_t step, cursor;
};

/* settings: "key=value;key=value" */
static void rig_new(struct rig *g, const char *plugin, const char *settings, bool weights)
{
    *g = (struct rig){.weight = {3, 1}};
    char text[256], section[64];
    struct config_param params[8], *last = NULL;
    int n = 0;
    for (int i = 0; i < ROWS; i++)
        g->rows[i] = (struct row){.uid = 100 + (uint64_t)i, .source = i >= 15, .level = NAN, .where = "here", .id = "id"};
    g->rows[2].json = (tare_text){"{\"level\":2.5}", 13};
    g->rows[5].json = (tare_text){"{\"level\":true}", 14};
    g->data =
        (struct dataset){.rows = g->rows, .n = ROWS, .n_sources = 2, .weight = weights ? g->weight : NULL, .name = "two files"};
    snprintf(text, sizeof text, "%s", settings);
    snprintf(section, sizeof section, "curriculum.%s", plugin);
    for (char *rest = text, *word; (word = strtok_r(rest, ";", &rest));) {
        char *value = strchr(word, '=');
        *value = 0;
        params[n] = (struct config_param){.section = section, .key = word, .value = value + 1, .where = "test", .next = last};
        last = &params[n++];
    }
    arena_init(&g->arena, "test");
    const struct curriculum_options o = {
        .plugin = plugin, .settings = last, .rows = &g->data, .prompts = 4, .group_size = 4, .env = {.seed = 5}};
    assert_ok(curriculum_open(&o, &g->c, &e), &e);
}

static void rig_free(struct rig *g)
{
    curriculum_free(g->c);
    arena_free(&g->arena);
}

static void begin(struct rig *g)
{
    arena_reset(&g->arena);
    assert_ok(curriculum_begin(g->c, ++g->step, &g->arena, &e), &e);
}

static void next(struct rig *g, int64_t n, int64_t *row)
{
    int64_t ordered[MOST], rollouts[MOST];
    for (int64_t i = 0; i < n; i++) ordered[i] = (g->cursor + i) % ROWS;
    assert_ok(curriculum_next(g->c, &(struct curriculum_draw){n, g->cursor, ordered}, row, rollouts, &e), &e);
    for (int64_t i = 0; i < n; i++) assert_int_equal(rollouts[i], 4);
    g->cursor += n;
}

/* Groups of four as letters: 1 and 0 correct and wrong, h half a reward, t out of time; a space
 * between groups. length: of rollout i, or NULL. */
static struct batch verify_groups(struct rig *g, const int64_t *row, const char *outcomes, const int64_t *length)
{
    struct batch b = {.step = g->step, .n_groups = (int64_t)(strlen(outcomes) + 1) / 5, .n_components = 0};
    assert_ok(batch_regular(&b, 4, 1, 1, &g->arena, &e), &e);
    assert_ok(batch_alloc(&b, BATCH_DATA | BATCH_VERIFY, &g->arena, &e), &e);
    assert_ok(arena_new(&g->arena, &b.finish, b.n_rollouts, &e), &e);
    for (int64_t i = 0; i < b.n_rollouts; i++) {
        const char what = outcomes[i + i / 4];
        b.finish[i] = TARE_FINISH_STOP;
        b.reward[i] = what == '1' ? 1 : what == 'h' ? 0.5 : 0;
        b.verdict[i] = what == '1' ? TARE_VERDICT_CORRECT : what == 't' ? TARE_VERDICT_TIMED_OUT : TARE_VERDICT_WRONG;
        b.token_begin[i + 1] = b.token_begin[i] + (length ? length[i] : 1);
    }
    for (int64_t m = 0; m < b.n_groups; m++) {
        b.row[m] = &g->rows[row[m]];
        b.prompt_uid[m] = b.row[m]->uid;
    }
    assert_ok(curriculum_keep(g->c, &b, &e), &e);
    return b;
}

/* ---------------------------------------------------------------- what is kept */

/* fates: k (kept), o (left out) and c (counted) for each rollout, or empty where all is kept. */
static const struct {
    const char *plugin, *settings, *outcomes, *fates;
    int64_t replaces;
} KEPT[] = {
    {"shuffle", "", "1111 0000", "", 0},
    {"mix", "", "1111 0000", "", 0},
    {"dapo_filter", "", "1000 1111 0000 1110", "kkkk oooo oooo kkkk", 2},
    {"dapo_filter", "", "hhh0", "oooo", 1}, /* nothing is correct, though the rewards differ */
    {"dapo_filter", "", "1t1t tttt 10tt", "oooo oooo kkkk", 2},
    {"dapo_filter", "low=0.25;high=0.75", "1000 1100 1110", "oooo kkkk oooo", 2},
    {"dapo_filter", "replace=false", "1111", "oooo", 0},
    /* two of four: one right, one wrong, the earliest of each ... and the last of the equal ones at
     * the other end */
    {"pods", "keep=2", "1100", "kook", 0},
    {"pods", "keep=2", "0001", "ookk", 0},
    {"pods", "keep=2", "0000", "kook", 0},
    /* of h 1 0 0: the variance of {1, 0} is .25, of {1, h} and {h, 0} .0625 */
    {"pods", "keep=2", "h100", "okok", 0},
    /* three: {1, 1, 0} and {1, 0, 0} have the same variance; k = 1 is nearest to 3/2, with k = 2,
     * and comes first */
    {"pods", "keep=3", "1100", "kokk", 0},
    {"pods", "keep=4", "1100", "", 0},
    {"pods", "keep=2", "1t00", "kkok", 0}, /* t has no reward, and the estimator is not shown it */
    /* two of four groups: of the deviations .5 .58 .58 .5 the larger, of equal ones the earlier */
    {"starpo_s", "share=0.5", "1000 1100 0011 0111", "oooo kkkk kkkk oooo", 0},
    {"starpo_s", "share=0.5", "1110 0000 1000 1111", "kkkk oooo kkkk oooo", 0},
    {"starpo_s", "", "1110 1100 1111", "oooo kkkk oooo", 0},                    /* at least one */
    {"starpo_s", "share=0.5", "0000 tttt 1ttt 1111", "kkkk oooo kkkk oooo", 0}, /* without a deviation, the earlier */
    {"starpo_s", "share=1", "0000 1100", "", 0},
    {"gfpo", "keep=2", "1001", "okko", 0}, /* lengths 4 2 1 3 */
    {"gfpo", "keep=2;by=efficiency", "1001", "kook", 0},
    {"gfpo", "keep=2;by=efficiency", "1111", "okko", 0},
    {"gfpo", "keep=2", "t001", "kkko", 0},
    {"cppo", "", "1000", "kkcc", 0}, /* |R - 1/4|: .75 .25 .25 .25 */
    {"cppo", "", "0111", "kkcc", 0},
    {"cppo", "", "h10h", "ckkc", 0},
    {"cppo", "pruning=0.75", "0100", "ckcc", 0},
    {"cppo", "pruning=0.99", "0000", "kccc", 0},
    {"cppo", "pruning=0", "0100", "", 0},
    /* 4 / (1 - 1/2) = 8 groups in all */
    {"cppo", "fill=true", "1000 1100 1000 0001", "kkcc kkcc kkcc kcck", 4},
    {"cppo", "fill=true;pruning=0.75", "1000 1000 1000 1000", "kccc kccc kccc kccc", 12},
    /* floor(6.67); floor(2.4) of four */
    {"cppo", "fill=true;pruning=0.4", "1000 1000 1000 1000", "kkcc kkcc kkcc kkcc", 2},
    {"cppo", "fill=true;pruning=0", "1000 1000 1000 1000", "", 0},
};

static void what_is_kept(void **state)
{
    static const int64_t row[MOST] = {0, 1, 2, 3}, length[16] = {4, 2, 1, 3, 4, 2, 1, 3, 4, 2, 1, 3, 4, 2, 1, 3};
    (void)state;
    for (size_t k = 0; k < sizeof KEPT / sizeof *KEPT; k++) {
        struct rig g;
        char got[MOST] = "";
        size_t at = 0;
        rig_new(&g, KEPT[k].plugin, KEPT[k].settings, false);
        begin(&g);
        const struct batch b = verify_groups(&g, row, KEPT[k].outcomes, length);
        for (int64_t i = 0; b.fate && i < b.n_rollouts; i++) {
            if (i && i % 4 == 0) got[at++] = ' ';
            got[at++] = "koc"[b.fate[i]];
        }
        if (strcmp(got, KEPT[k].fates) || curriculum_extra_groups(g.c) != KEPT[k].replaces)
            fail_msg("%s %s on %s: %s and %lld more, not %s and %lld", KEPT[k].plugin, KEPT[k].settings, KEPT[k].outcomes, got,
                     (long long)curriculum_extra_groups(g.c), KEPT[k].fates, (long long)KEPT[k].replaces);
        rig_free(&g);
    }
}

/* Writes a group's fates as letters. */
static void assert_fates(const struct batch *b, const char *want)
{
    char got[2 * MOST] = "";
    size_t at = 0;
    for (int64_t i = 0; i < b->n_rollouts; i++) {
        if (i && i % 4 == 0) got[at++] = ' ';
        got[at++] = "koc"[b->fate ? b->fate[i] : 0];
    }
    assert_string_equal(got, want);
}

/* Eight groups in all: four, then four more, and no more; in the next step again. */
static void freed_places_are_filled(void **state)
{
    static const int64_t row[] = {0, 1, 2, 3};
    struct rig g;
    (void)state;
    rig_new(&g, "cppo", "fill=true", false);
    for (int step = 0; step < 2; step++) {
        begin(&g);
        verify_groups(&g, row, "1000 1000 1000 1000", NULL);
        assert_int_equal(curriculum_extra_groups(g.c), 4);
        verify_groups(&g, row, "1000 1000 1000", NULL);
        assert_int_equal(curriculum_extra_groups(g.c), 1);
        verify_groups(&g, row, "1000", NULL);
        assert_int_equal(curriculum_extra_groups(g.c), 0);
        assert_ok(curriculum_apply(g.c, &e), &e);
    }
    rig_free(&g);
}

/* Mean rewards of the first step 0 1/4 1/2 3/4: median 1/4, upper quartile 1/2. keep = 4: 4, then
 * 3, then 2; lengths 4 2 1 3. */
static void fewer_are_kept_of_what_is_easy(void **state)
{
    static const int64_t row[] = {0, 1, 2, 3}, length[16] = {4, 2, 1, 3, 4, 2, 1, 3, 4, 2, 1, 3, 4, 2, 1, 3};
    struct rig g, again;
    struct str saved = {0}, other = {0};
    (void)state;
    rig_new(&g, "gfpo", "keep=4;adaptive=true", false);
    begin(&g);
    struct batch b = verify_groups(&g, row, "0000 1000 1100 1110", length);
    assert_fates(&b, "kkkk kkkk kkkk kkkk"); /* no history yet */
    assert_ok(curriculum_apply(g.c, &e), &e);
    begin(&g);
    b = verify_groups(&g, row, "1000 1t00 1001 1111", length); /* 1t00: 1/3 of three */
    assert_fates(&b, "kkkk kkkk okkk okko");
    assert_ok(curriculum_save(g.c, &saved, &e), &e);
    rig_new(&again, "gfpo", "keep=4;adaptive=true", false);
    assert_ok(curriculum_load(again.c, saved.data, saved.size, "test", &e), &e);
    again.step = 1;
    begin(&again);
    b = verify_groups(&again, row, "0000 tttt 1001 1111", length);
    assert_fates(&b, "kkkk kkkk okkk okko");
    assert_int_equal(curriculum_load(again.c, saved.data, saved.size - 1, "test", &e), TARE_E_CORRUPT);
    rig_free(&again);
    /* a memory of four has the last four: 1 1 1 1 of a further step, and no mean is above them */
    rig_new(&again, "gfpo", "keep=4;adaptive=true;memory=4", false);
    assert_ok(curriculum_load(again.c, saved.data, saved.size, "test", &e), &e);
    begin(&again);
    verify_groups(&again, row, "1111 1111 1111 1111", length);
    assert_ok(curriculum_apply(again.c, &e), &e);
    begin(&again);
    b = verify_groups(&again, row, "1111 0000 1000 1111", length);
    assert_fates(&b, "kkkk kkkk kkkk kkkk");
    rig_free(&again);
    /* a curriculum that was not adaptive has no state, and does not become adaptive */
    rig_new(&again, "gfpo", "keep=4", false);
    assert_ok(curriculum_save(again.c, &other, &e), &e);
    assert_int_not_equal(curriculum_load(g.c, other.data, other.size, "test", &e), TARE_OK);
    rig_free(&again), rig_free(&g);
    str_free(&saved), str_free(&other);
}

/* ---------------------------------------------------------------- which rows */

static void the_plain_order(void **state)
{
    static const char *const names[] = {"shuffle", "dapo_filter", "pods", "gfpo", "cppo", "replay"};
    (void)state;
    for (int k = 0; k < 6; k++) {
        struct rig g;
        int64_t row[MOST];
        rig_new(&g, names[k], "", false);
        begin(&g);
        next(&g, 4, row);
        next(&g, 2, row + 4); /* instead of replaced ones */
        for (int i = 0; i < 6; i++) assert_int_equal(row[i], i);
        rig_free(&g);
    }
}

/* Weights 3 : 1. Behind by .75 or .25, then by 1.5 - 1 = .5 or .5 (the first of equals), then 1.25
 * - 2 = .25 or .75, then 3 - 2 = 1 or 0. */
static void shares_of_files(void **state)
{
    struct rig g;
    int64_t row[MOST], seen[ROWS] = {0};
    (void)state;
    rig_new(&g, "mix", "", true);
    for (int step = 0; step < 5; step++) {
        static const int file[4] = {0, 0, 1, 0};
        begin(&g);
        next(&g, 3, row);
        next(&g, 1, row + 3); /* a replaced file continues where the step was */
        for (int i = 0; i < 4; i++) {
            assert_int_equal(g.rows[row[i]].source, file[i]);
            seen[row[i]]++;
        }
        verify_groups(&g, row, "1000 1000 1000", NULL);
        verify_groups(&g, row + 3, "1000", NULL);
        assert_ok(curriculum_apply(g.c, &e), &e);
    }
    for (int i = 0; i < ROWS; i++) assert_int_equal(seen[i], 1); /* 15 and 5: an epoch of each */
    rig_free(&g);
    /* the same share of each: the second file begins again after ten */
    rig_new(&g, "mix", "shuffle=false", false);
    begin(&g);
    next(&g, 12, row);
    for (int i = 0; i < 12; i++) assert_int_equal(row[i], i % 2 ? 15 + i / 2 % 5 : i / 2);
    rig_free(&g);
    rig_new(&g, "mix", "draw=random", true);
    int64_t first = 0;
    for (int step = 0; step < 500; step++) {
        begin(&g);
        next(&g, 4, row);
        for (int i = 0; i < 4; i++) first += g.rows[row[i]].source == 0;
        verify_groups(&g, row, "1000 1000 1000 1000", NULL);
        assert_ok(curriculum_apply(g.c, &e), &e);
    }
    /* 1500 of 2000 are expected, with a deviation of 19 */
    assert_true(first > 1400 && first < 1600);
    rig_free(&g);
}

/* Rows 0 .. 3 have been always correct, always wrong, half correct, and without a verdict; the
 * other rows did not occur. */
static void teach(struct rig *g)
{
    static const int64_t row[] = {0, 1, 2, 3};
    begin(g);
    verify_groups(g, row, "1111 0000 1100 tttt", NULL);
    assert_ok(curriculum_apply(g->c, &e), &e);
}

static void how_often(struct rig *g, int64_t steps, int64_t count[ROWS])
{
    int64_t row[MOST];
    memset(count, 0, ROWS * sizeof *count);
    for (int64_t k = 0; k < steps; k++) {
        begin(g);
        next(g, 4, row);
        for (int i = 0; i < 4; i++) {
            count[row[i]]++;
            for (int j = 0; j < i; j++) assert_int_not_equal(row[i], row[j]);
        }
    }
}

static void by_pass_rate(void **state)
{
    struct rig g;
    int64_t count[ROWS];
    (void)state;
    rig_new(&g, "difficulty", "outside=0.01", false);
    teach(&g);
    /* 2000 draws: rows 0 and 1 nearly never, the 18 others about 111 times each */
    how_often(&g, 500, count);
    assert_true(count[0] < 12 && count[1] < 12);
    for (int i = 2; i < ROWS; i++) assert_true(count[i] > 70 && count[i] < 150);
    rig_free(&g);
    /* v: 4.5/5 for row 0, .5/5 for row 1: weights .3 + .05; 2.5/5 for row 2 and .5 for the others:
     * .5 + .05 */
    rig_new(&g, "spo_priority", "", false);
    teach(&g);
    how_often(&g, 500, count); /* .35 to .55 are near 7 to 11 */
    assert_true(count[0] > 40 && count[0] < 95 && count[1] > 40 && count[1] < 95);
    for (int i = 2; i < ROWS; i++) assert_true(count[i] > 70 && count[i] < 145);
    rig_free(&g);
}

static void rows_that_come_again(void **state)
{
    static const int64_t first[] = {7, 9, 11, 13};
    struct rig g;
    int64_t row[MOST];
    (void)state;
    rig_new(&g, "replay", "share=0.5", false);
    begin(&g);
    verify_groups(&g, first, "1000 1110 1100 0000", NULL); /* 7 and 11 wait: solved, by no more than half */
    assert_ok(curriculum_apply(g.c, &e), &e);
    begin(&g);
    next(&g, 4, row);
    const int64_t want[] = {7, 11, 0, 1};
    assert_memory_equal(row, want, sizeof want);
    next(&g, 2, row + 4); /* the waiting rows are drawn */
    assert_int_equal(row[4], 4);
    assert_int_equal(row[5], 5);
    verify_groups(&g, row, "1110 1000 1000 0000", NULL); /* 7 is mastered; 11 waits again, 0 too */
    assert_ok(curriculum_apply(g.c, &e), &e);
    begin(&g);
    g.cursor = 12; /* the plain order has 12 13 14 15 */
    next(&g, 4, row);
    const int64_t then[] = {11, 0, 12, 13};
    assert_memory_equal(row, then, sizeof then);
    rig_free(&g);
}

/* ---------------------------------------------------------------- state */

static void a_state_goes_on(void **state)
{
    static const char *const names[] = {"mix", "difficulty", "spo_priority", "replay"};
    (void)state;
    for (int k = 0; k < 4; k++) {
        struct rig a, b;
        struct str saved = {0};
        int64_t one[MOST], two[MOST];
        rig_new(&a, names[k], "", false);
        rig_new(&b, names[k], "", false);
        teach(&a);
        assert_ok(curriculum_save(a.c, &saved, &e), &e);
        assert_ok(curriculum_load(b.c, saved.data, saved.size, "test", &e), &e);
        b.step = a.step, b.cursor = a.cursor;
        begin(&a), begin(&b);
        next(&a, 8, one), next(&b, 8, two);
        assert_memory_equal(one, two, 8 * sizeof *one);
        assert_int_not_equal(curriculum_load(b.c, saved.data, saved.size - 1, "test", &e), TARE_OK);
        str_free(&saved);
        rig_free(&a), rig_free(&b);
    }
}

/* ---------------------------------------------------------------- columns */

/* A curriculum that reads fields of rows, and remembers what it saw. */
enum { W_LEVEL, W_LEVELS, W_INDEX, W_FINISH, W_FATE, W_COUNT };
static const tare_want WANTS[W_COUNT] = {
    [W_LEVEL] = {"row.level", TARE_AXIS_GROUP, TARE_F64, 0, 1}, [W_LEVELS] = {"row.level", TARE_AXIS_ROW, TARE_F64, 0, 1},
    [W_INDEX] = {"row.index", TARE_AXIS_GROUP, TARE_I64, 0, 1}, [W_FINISH] = {"finish", TARE_AXIS_ROLLOUT, TARE_U8, 0, 1},
    [W_FATE] = {"fate", TARE_AXIS_ROLLOUT, TARE_U8, 0, 1},
};
static struct {
    double of_rows[ROWS], of_groups[MOST];
    int64_t applied, groups, kept, n_before, uid, tokens;
} seen;

static tare_status create_reader(const tare_setup *setup, void **self, tare_error *error)
{
    (void)error;
    memcpy(seen.of_rows, TARE_COLUMN(setup->dataset, W_LEVELS, double), sizeof seen.of_rows);
    *self = &seen;
    return TARE_OK;
}

static void destroy_reader(void *self)
{
    (void)self;
}

static tare_status keep_odd(const void *self, const tare_batch *b, tare_kept *out, tare_error *error)
{
    (void)self;
    if (b->column[W_FATE].data) return tare_fail(error, TARE_E_STATE, "keep sees fates");
    for (int64_t i = 0; i < b->n_rollouts; i++) {
        const int64_t t = b->token_begin[i];
        if (b->turn_begin[i] != i || b->act_begin[i] != t || b->act_end[i] != t + b->length[i] || !b->sampled[t])
            return tare_fail(error, TARE_E_SHAPE, "rollout %lld is not one turn", (long long)i);
        if (TARE_COLUMN(b, W_FINISH, uint8_t)[i] != TARE_FINISH_STOP) return tare_fail(error, TARE_E_SHAPE, "finish");
        out->fate[i] = i % 2 ? TARE_FATE_KEPT : TARE_FATE_LEFT_OUT;
    }
    seen.n_before = b->n_before;
    out->extra_groups = 3;
    return TARE_OK;
}

static tare_status apply_reader(void *self, const tare_batch *b, tare_error *error)
{
    (void)self, (void)error;
    seen.applied++;
    seen.groups = b->n_groups;
    seen.tokens = b->n_tokens;
    seen.kept = 0;
    for (int64_t i = 0; i < b->n_rollouts; i++) seen.kept += TARE_COLUMN(b, W_FATE, uint8_t)[i] == TARE_FATE_KEPT;
    for (int64_t m = 0; m < b->n_groups; m++) {
        seen.of_groups[m] = TARE_COLUMN(b, W_LEVEL, double)[m];
        assert_int_equal(b->prompt_uid[m], 100 + TARE_COLUMN(b, W_INDEX, int64_t)[m]);
    }
    return TARE_OK;
}

static tare_status save_reader(const void *self, const tare_stream *out, tare_error *error)
{
    (void)self, (void)error;
    return tare_put(out, &seen.applied, sizeof seen.applied);
}

static tare_status load_reader(void *self, const tare_stream *in, tare_error *error)
{
    (void)self, (void)error;
    return tare_get(in, &seen.applied, sizeof seen.applied);
}

static const tare_curriculum READER_FUNCTIONS = {.struct_size = sizeof READER_FUNCTIONS,
                                                 .create = create_reader,
                                                 .destroy = destroy_reader,
                                                 .save = save_reader,
                                                 .load = load_reader,
                                                 .keep = keep_odd,
                                                 .apply = apply_reader};
static const tare_descriptor READER = {.struct_size = sizeof READER,
                                       .kind = TARE_KIND_CURRICULUM,
                                       .name = "reader",
                                       .version = "1.0.0",
                                       .summary = "reads fields of rows",
                                       .param_size = sizeof(tare_param),
                                       .state_version = 1,
                                       .state_oldest = 1,
                                       TARE_WANTS(WANTS, W_COUNT),
                                       .functions = &READER_FUNCTIONS};

static void rows_are_read_once(void **state)
{
    static const int64_t row[MOST] = {2, 0, 5, 2}, length[16] = {4, 2, 1, 3, 4, 2, 1, 3, 4, 2, 1, 3, 4, 2, 1, 3};
    static const tare_descriptor *const descriptors[] = {&READER};
    static const tare_plugin plugin = {.struct_size = sizeof plugin, .n_descriptors = 1, .descriptors = descriptors};
    struct rig g;
    (void)state;
    assert_ok(plugin_add("test", &plugin, &e), &e);
    rig_new(&g, "reader", "", false);
    assert_true(seen.of_rows[2] == 2.5 && isnan(seen.of_rows[0]) && seen.of_rows[5] == 1 && isnan(seen.of_rows[ROWS - 1]));
    begin(&g);
    verify_groups(&g, row, "1000 1000", length);
    assert_int_equal(curriculum_extra_groups(g.c), 3);
    verify_groups(&g, row + 2, "1000 1000", length);
    assert_int_equal(seen.n_before, 2);
    assert_ok(curriculum_apply(g.c, &e), &e);
    assert_true(seen.groups == 4 && seen.kept == 8 && seen.tokens == 40);
    assert_true(seen.of_groups[0] == 2.5 && isnan(seen.of_groups[1]) && seen.of_groups[2] == 1 && seen.of_groups[3] == 2.5);
    begin(&g); /* a step without groups */
    assert_ok(curriculum_apply(g.c, &e), &e);
    assert_true(seen.applied == 2 && seen.groups == 0);
    /* a field that is no number is refused before the first step, with file and line */
    const struct curriculum_options o = {.plugin = "reader", .rows = &g.data, .prompts = 4, .group_size = 4};
    struct curriculum *c;
    g.rows[7].json = (tare_text){"{\"level\":\"hard\"}", 16};
    assert_int_equal(curriculum_open(&o, &c, &e), TARE_E_INVALID);
    assert_non_null(strstr(e.message, "here: \"level\" is a text"));
    rig_free(&g);
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(what_is_kept),
                                       cmocka_unit_test(the_plain_order),
                                       cmocka_unit_test(shares_of_files),
                                       cmocka_unit_test(by_pass_rate),
                                       cmocka_unit_test(rows_that_come_again),
                                       cmocka_unit_test(a_state_goes_on),
                                       cmocka_unit_test(rows_are_read_once),
                                       cmocka_unit_test(freed_places_are_filled),
                                       cmocka_unit_test(fewer_are_kept_of_what_is_easy)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
