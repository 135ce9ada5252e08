/* The built-in environments against their known values (docs/environments.md): the reward of the best
 * player, over all hidden states where they are few, and of the blind one. */
#include "check.h"

#include "plugin/episode.h"

#include <math.h>

static struct err e;
static struct plugin_instance *instance;
static struct plugin_episode episode;

static void open_environment(const char *name, const char *const *assignments, int64_t n)
{
    static struct arena arena;
    const struct plugin *p;
    const struct config_param *settings;
    const tare_value *values;
    arena_init(&arena, "test");
    assert_ok(plugin_open(name, TARE_KIND_ENVIRONMENT, NULL, &p, &e), &e);
    assert_ok(plugin_settings(p, (struct plugin_words){assignments, n}, NULL, &arena, &settings, &e), &e);
    assert_ok(plugin_params(p, settings, &arena, &values, &e), &e);
    assert_ok(plugin_create(p, values, 0, NULL, &instance, &e), &e);
    arena_free(&arena);
    assert_ok(plugin_episode_open(instance, &episode, &e), &e);
}

static void close_environment(void)
{
    plugin_episode_close(&episode);
    plugin_destroy(instance);
}

/* row: NULL: the seed chooses the hidden state. */
static void reset(const char *row, uint64_t seed)
{
    const tare_episode begun = {
        .struct_size = sizeof begun, .row = {row, row ? (int64_t)strlen(row) : 0}, .seed = {seed, 7}, .noise = {seed, 11}};
    assert_ok(plugin_episode_reset(&episode, &begun, &e), &e);
}

static void step(const char *act)
{
    assert_ok(plugin_episode_step(&episode, (struct episode_text){.text = {act, (int64_t)strlen(act)}}, &e), &e);
}

static const char *text_of(const struct str *s)
{
    return s->size ? s->data : "";
}

#define assert_said(TEXT) assert_string_equal(text_of(&episode.said), TEXT)

static void assert_mean(double mean, double expected, double tolerance)
{
    if (fabs(mean - expected) > tolerance) fail_msg("the mean reward is %.4f; expected %.4f +- %.4f", mean, expected, tolerance);
}

/* The mean reward of the environment's suggestions. */
static double mean_of_suggestions(int64_t episodes)
{
    struct str act = {0};
    double total = 0;
    for (int64_t k = 0; k < episodes; k++) {
        reset(NULL, (uint64_t)k);
        while (!episode.end) {
            str_clear(&act);
            assert_ok(plugin_episode_suggest(&episode, (const uint64_t[]){(uint64_t)k, 100 + (uint64_t)episode.turn}, &act, &e),
                      &e);
            assert_ok(plugin_episode_step(&episode, (struct episode_text){.text = {act.data, act.size}}, &e), &e);
            assert_false(episode.said.size && episode.said.data[0] == '!'); /* they are legal */
        }
        total += episode.total;
    }
    str_free(&act);
    return total / (double)episodes;
}

/* ---------------------------------------------------------------- guess */

enum rule { BLIND, CONSISTENT, BEST };

/* The exact reward of a player after the first `n` guesses of an episode. */
static double value_of_guesses(const char *row, enum rule rule, const int *guess, int n)
{
    int longer[9], low, high;
    char act[2] = "0";
    double sum = 0;
    reset(row, 0);
    for (int k = 0; k < n; k++) {
        act[0] = (char)('0' + guess[k]);
        step(act);
    }
    if (episode.end) return episode.total;
    assert_int_equal(sscanf(text_of(&episode.key), "%d-%d", &low, &high), 2);
    if (rule == BEST) low = high = (low + high) / 2;
    if (rule == BLIND) low = 1, high = 7;
    for (int k = 0; k < n; k++) longer[k] = guess[k];
    for (longer[n] = low; longer[n] <= high; longer[n]++) sum += value_of_guesses(row, rule, longer, n + 1);
    return sum / (high - low + 1);
}

static double value_of_rule(enum rule rule)
{
    double sum = 0;
    for (int number = 1; number <= 7; number++) {
        char row[40];
        snprintf(row, sizeof row, "{\"number\": %d}", number);
        sum += value_of_guesses(row, rule, NULL, 0);
    }
    return sum / 7;
}

static void guess__has_the_known_values(void **state)
{
    (void)state;
    open_environment("guess", NULL, 0);
    assert_mean(value_of_rule(BEST), 1, 0);
    assert_mean(value_of_rule(CONSISTENT), 0.678, 0.0005);
    assert_mean(value_of_rule(BLIND), 0.370, 0.0005);
    assert_mean(mean_of_suggestions(40000), 0.370, 0.008);
    close_environment();
    const char *const nine[] = {"highest=9"};
    open_environment("guess", nine, 1);
    double sum = 0;
    for (int number = 1; number <= 9; number++) {
        char row[40];
        snprintf(row, sizeof row, "{\"number\": %d}", number);
        sum += value_of_guesses(row, BEST, NULL, 0);
    }
    assert_mean(sum / 9, 7.0 / 9, 1e-12);
    close_environment();
}

static void guess__answers_an_illegal_act_and_takes_the_turn(void **state)
{
    (void)state;
    open_environment("guess", NULL, 0);
    reset("{\"number\": 5}", 0);
    assert_said("g:");
    step("4");
    assert_said(">");
    assert_string_equal(text_of(&episode.key), "5-7");
    step("8");
    assert_said("!");
    step("55");
    assert_true(episode.end == TARE_EPISODE_DONE && episode.total == 0 && episode.verdict == TARE_VERDICT_WRONG);
    assert_string_equal(text_of(&episode.note), "the number was 5");
    const tare_episode wrong = {.struct_size = sizeof wrong, .row = {"{\"number\": 8}", 13}};
    assert_int_equal(plugin_episode_reset(&episode, &wrong, &e), TARE_E_INVALID);
    assert_non_null(strstr(e.message, "the row's \"number\" must be a whole number from 1 to 7"));
    close_environment();
}

/* ---------------------------------------------------------------- bandit */

/* A payment of one arm says as much as a failure of the other, so the best player pulls the likelier
 * good arm. */
static double mean_of_pulls(int64_t episodes)
{
    double total = 0;
    for (int64_t k = 0; k < episodes; k++) {
        reset(NULL, (uint64_t)k);
        while (!episode.end) {
            int paid[2], pulls[2];
            assert_int_equal(sscanf(text_of(&episode.key), "%d/%d %d/%d", &paid[0], &pulls[0], &paid[1], &pulls[1]), 4);
            step(2 * paid[0] - pulls[0] >= 2 * paid[1] - pulls[1] ? "a" : "b");
        }
        total += episode.total;
    }
    return total / (double)episodes;
}

static void bandit__has_the_known_values(void **state)
{
    (void)state;
    static const struct {
        const char *good, *pulls;
        double best;
    } cases[] = {{"good=0.9", "pulls=6", 0.798}, {"good=0.9", "pulls=8", 0.822}, {"good=0.8", "pulls=6", 0.683}};
    for (int k = 0; k < 3; k++) {
        const char *const words[] = {cases[k].good, cases[k].pulls};
        open_environment("bandit", words, 2);
        assert_mean(mean_of_pulls(40000), cases[k].best, 0.004);
        assert_mean(mean_of_suggestions(40000), 0.5, 0.004);
        close_environment();
    }
}

static void bandit__has_one_good_arm_in_a_group(void **state)
{
    (void)state;
    const char *const sure[] = {"good=1"};
    open_environment("bandit", sure, 1);
    reset("{\"arm\": \"b\"}", 1);
    assert_said("b:");
    step("b");
    assert_said("1");
    step("a");
    assert_said("0");
    step("c");
    assert_said("!");
    assert_string_equal(text_of(&episode.key), "0/1 1/1");
    for (int k = 0; k < 3; k++) step("b");
    assert_true(episode.end == TARE_EPISODE_DONE && fabs(episode.total - 4.0 / 6) < 1e-12);
    close_environment();
}

/* ---------------------------------------------------------------- grid */

/* Walks straight to the goal. */
static double reward_of_walk(const char *row)
{
    int goal[2], at[2];
    reset(row, 0);
    while (!episode.end) {
        assert_int_equal(sscanf(text_of(&episode.key), "%1d%1d:%1d%1d", &goal[0], &goal[1], &at[0], &at[1]), 4);
        step(at[0] < goal[0] ? "r" : at[0] > goal[0] ? "l" : at[1] < goal[1] ? "d" : "u");
    }
    return episode.total;
}

static void grid__has_the_known_values(void **state)
{
    (void)state;
    double sum = 0;
    int pairs = 0;
    open_environment("grid", NULL, 0);
    for (int start = 0; start < 16; start++)
        for (int goal = 0; goal < 16; goal++) {
            char row[60];
            if (start == goal) continue;
            snprintf(row, sizeof row, "{\"start\": \"%d%d\", \"goal\": \"%d%d\"}", start % 4, start / 4, goal % 4, goal / 4);
            sum += reward_of_walk(row);
            pairs++;
        }
    assert_mean(sum / pairs, 1, 0);
    assert_mean(mean_of_suggestions(40000), 0.210, 0.007);
    reset("{\"start\": \"02\", \"goal\": \"31\"}", 0);
    assert_said("31:02");
    step("l"); /* against the border */
    assert_said("02");
    step("x");
    assert_said("!");
    step("r");
    assert_said("12");
    close_environment();
}

/* ---------------------------------------------------------------- recall */

static void recall__has_the_known_values(void **state)
{
    (void)state;
    const char *const words[] = {"wait=8", "distractors=true"};
    for (int hard = 0; hard < 2; hard++) {
        open_environment("recall", words, hard ? 2 : 0);
        for (int k = 0; k < 8; k++) {
            char row[40];
            const char symbol[2] = {(char)('a' + k), 0};
            snprintf(row, sizeof row, "{\"symbol\": \"%s\"}", symbol);
            reset(row, 3);
            assert_true(episode.said.data[0] == symbol[0] && episode.said.data[1] == ':');
            while (strcmp(text_of(&episode.said), "?")) step(".");
            assert_int_equal(episode.turn, hard ? 8 : 4);
            step(symbol);
            assert_true(episode.end == TARE_EPISODE_DONE && episode.total == 1);
        }
        assert_mean(mean_of_suggestions(40000), 1.0 / 8, 0.006);
        close_environment();
    }
}

static void recall__asks_after_illegal_acts(void **state)
{
    (void)state;
    const char *const words[] = {"wait=2"};
    open_environment("recall", words, 1);
    reset("{\"symbol\": \"c\"}", 0);
    assert_said("c:");
    step("c");
    assert_said("!:");
    step("");
    assert_said("!?");
    step("c");
    assert_true(episode.total == 1);
    close_environment();
}

/* ---------------------------------------------------------------- lookup, calc */

static void lookup__has_the_known_values(void **state)
{
    (void)state;
    double best = 0, blind = 0;
    char act[3] = "g0";
    open_environment("lookup", NULL, 0);
    for (uint64_t seed = 0; seed < 200; seed++) {
        reset(NULL, seed);
        for (int k = 0; k < 2; k++) {
            act[0] = 'g';
            act[1] = episode.said.data[0];
            step(act);
        }
        act[0] = '=';
        act[1] = episode.said.data[0];
        step(act);
        best += episode.total / 200;
        for (int digit = 0; digit < 10; digit++) {
            act[1] = (char)('0' + digit);
            reset(NULL, seed);
            step(act);
            blind += episode.total / 2000;
        }
    }
    assert_mean(best, 1, 1e-9);
    assert_mean(blind, 0.1, 1e-9);
    reset("{\"key\": 3, \"store\": \"0127567890\"}", 0);
    assert_said("3:");
    step("g3");
    assert_said("7");
    step("g");
    assert_said("!");
    assert_string_equal(text_of(&episode.key), "37");
    step("=8");
    assert_true(episode.total == 1);
    assert_mean(mean_of_suggestions(20000), 0.2, 0.06); /* copies from the context are right more often than blind digits */
    close_environment();
}

static void calc__has_the_known_values(void **state)
{
    (void)state;
    double best = 0;
    char text[40];
    open_environment("calc", NULL, 0);
    for (int a = 10; a < 100; a += 3)
        for (int b = 10; b < 100; b++) {
            snprintf(text, sizeof text, "{\"a\": %d, \"b\": %d}", a, b);
            reset(text, 0);
            snprintf(text, sizeof text, "m%d,%d", a, b);
            step(text);
            snprintf(text, sizeof text, "=%s", text_of(&episode.said));
            step(text);
            best += episode.total / (30 * 90);
        }
    assert_mean(best, 1, 1e-9);
    double blind = 0; /* one answer of 9702 is right */
    for (int answer = 100; answer <= 9801; answer++) {
        snprintf(text, sizeof text, "=%d", answer);
        reset("{\"a\": 42, \"b\": 57}", 0);
        step(text);
        blind += episode.total / 9702;
    }
    assert_mean(blind, 0, 0.0005);
    reset("{\"a\": 12, \"b\": 34}", 0);
    assert_said("12*34:");
    step("m12;34");
    assert_said("!");
    step("m99999,1");
    assert_said("!");
    step("m12,34"); /* the last turn is not an answer */
    assert_true(episode.end == TARE_EPISODE_DONE && episode.total == 0);
    mean_of_suggestions(1000);
    close_environment();
}

/* ---------------------------------------------------------------- all */

static tare_status add_bytes(void *ctx, const void *data, int64_t n)
{
    (void)data;
    *(int64_t *)ctx += n;
    return TARE_OK;
}

static void environments__save_at_most_64_bytes(void **state)
{
    (void)state;
    static const char *const names[] = {"guess", "bandit", "grid", "recall", "lookup", "calc"};
    for (int k = 0; k < 6; k++) {
        int64_t size = 0;
        const tare_stream out = {.struct_size = sizeof out, .ctx = &size, .write = add_bytes};
        open_environment(names[k], NULL, 0);
        reset(NULL, 1);
        assert_int_equal(instance->plugin->environment->save_session(instance->self, episode.session, &out, NULL), TARE_OK);
        assert_in_range(size, 1, 64);
        close_environment();
    }
}

static void environments__draw_every_hidden_state(void **state)
{
    (void)state;
    int guessed[10] = {0}, fields[100] = {0};
    open_environment("guess", NULL, 0);
    for (uint64_t seed = 0; seed < 7000; seed++) {
        int number;
        reset(NULL, seed);
        for (int k = 0; k < 3; k++) step("!");
        assert_int_equal(sscanf(text_of(&episode.note), "the number was %d", &number), 1);
        guessed[number]++;
    }
    close_environment();
    for (int k = 1; k <= 7; k++) assert_in_range(guessed[k], 900, 1100);
    open_environment("grid", NULL, 0);
    for (uint64_t seed = 0; seed < 16000; seed++) {
        reset(NULL, seed);
        fields[(episode.said.data[3] - '0') * 10 + episode.said.data[4] - '0']++;
        assert_memory_not_equal(episode.said.data, episode.said.data + 3, 2);
    }
    close_environment();
    for (int k = 0; k < 16; k++) assert_in_range(fields[k / 4 * 10 + k % 4], 850, 1150);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(guess__has_the_known_values),          cmocka_unit_test(guess__answers_an_illegal_act_and_takes_the_turn),
        cmocka_unit_test(bandit__has_the_known_values),         cmocka_unit_test(bandit__has_one_good_arm_in_a_group),
        cmocka_unit_test(grid__has_the_known_values),           cmocka_unit_test(recall__has_the_known_values),
        cmocka_unit_test(recall__asks_after_illegal_acts),      cmocka_unit_test(lookup__has_the_known_values),
        cmocka_unit_test(calc__has_the_known_values),           cmocka_unit_test(environments__save_at_most_64_bytes),
        cmocka_unit_test(environments__draw_every_hidden_state)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
