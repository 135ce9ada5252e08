/* Runs tare plugin check on plugins that break the contract: the right test fails with a message
 * that names the fault, and the checking program continues. */
#include "check.h"

#include "plugin/check/check.h"

#include <string.h>

static struct err e;

struct found {
    char failed[400]; /* names of the failed tests */
    char message[4000];
    int64_t passed;
};

static void take(void *ctx, const struct check_result *r)
{
    struct found *f = ctx;
    f->passed += r->outcome == CHECK_PASS;
    if (r->outcome != CHECK_FAIL) return;
    size_t used = strlen(f->failed);
    snprintf(f->failed + used, sizeof f->failed - used, "%s ", r->name);
    used = strlen(f->message);
    snprintf(f->message + used, sizeof f->message - used, "%s: %s\n", r->name, r->message);
}

static struct found check_file(const char *path, const char *only, double limit)
{
    struct found f = {.passed = 0};
    const struct check_options o = {.path = path, .only = only, .seed = 7, .limit = limit};
    int64_t failed;
    assert_ok(check_run(&o, take, &f, &failed, &e), &e);
    assert_true(!failed == !f.failed[0]);
    return f;
}

static const char *fixture(const char *name)
{
    static char path[4096];
    snprintf(path, sizeof path, "%s/%s.so", getenv("FIXTURES"), name);
    return path;
}

/* A fixture, the test that finds its fault, and a part of the message. */
static const struct {
    const char *name, *test, *part;
} FAULTS[] = {
    {"aborts", "shapes", "killed by signal 6"},
#ifndef __SANITIZE_ADDRESS__ /* the sanitizer turns the fault into an exit */
    {"segfaults", "shapes", "killed by signal 11"},
    {"reads_undeclared", "shapes", "killed by signal"},
#endif
    {"hangs", "shapes", "still running after 2 s"},
    {"exits_in_compute", "shapes", "a plugin may not call exit"},
    {"grows_size", "shapes", "sizes: collect changed from 2 to 3 in a step"},
    {"endless_save", "state", "save wrote more than 4 GiB"},
    {"names_no_answer", "uses", "uses does not include TARE_USES_ANSWER, but another answer changes the verdict"},
    {"uses_by_call", "uses", "uses returns 0x1 and then 0x0"},
    {"unknown_uses", "uses", "uses returns the bits 0x100000; this program knows only 0x7"},
    {"exits", "instances", "a plugin may not call exit"},
    {"writes_state", "phases", "changed the state; only apply may"},
    {"counts_calls", "phases", "compute again on the same batch: advantages"},
    {"counts_calls", "ranks", "a rank's groups: advantages"},
    {"overwrites_sums", "sums", "collect does not add"},
    {"leaks_memory", "memory", "destroy le"},
    {"leaks_files", "parameters", "create and destroy left 1 files open"},
    {"takes_signals", "parameters", "changed a signal handler"},
    {"changes_locale", "process", "tare_plugin_v1 changed the locale"},
    {"forgets_cluster", "shapes", "no cluster: the advantage of rollout 0"},
    {"past_end", "shapes", "wrote outside of an output buffer"},
    {"unwritten", "shapes", "the advantage of rollout"},
    {"takes_half", "state", "load accepts a state that is cut short: "},
    {"trusts_state", "state", "load ignores that a state is cut short"},
    {"create_fails", "parameters", "with the defaults: estimator hostile: create: factor 1 does not please"},
    {"silent_failure", "parameters", "and no message"},
    {"loses_prompts", "state", "after save and load: advantages"},
    {"weight_by_call", "phases", "compute again on the same batch: weights of rollouts"},
    {"baseline_by_call", "phases", "compute again on the same batch: baselines"},
    {"scale_by_call", "phases", "compute again on the same batch: scales"},
    {"confidence_by_call", "phases", "compute again on the same batch: confidences"},
    {"tokens_by_call", "phases", "compute again on the same batch: token advantages"},
    {"extra_by_call", "phases", "compute again on the same batch: extra_groups"},
    {"records_by_call", "phases", "records: number"},
    {"weight_by_rank", "ranks", "a rank's groups: weights of rollouts"},
    {"uncounted_params", "parameters", "the descriptor has a table of parameters but n_params is 0"},
    {"baseline_by_rank", "ranks", "a rank's groups: baselines"},
    {"tokens_by_rank", "ranks", "a rank's groups: token advantages"},
    {"column_by_rank", "ranks", "a rank's groups: baselines"},
    {"ignores_nan", "shapes", "so that column is nan; test it with isnan"},
    {"weight_by_order", "order", "groups in another order: weights of rollouts"},
    {"changes_fp", "phases", "compute changed the floating-point mode"},
    {"prints", "shapes", "compute wrote 20 bytes to standard output"},
#ifndef __SANITIZE_ADDRESS__ /* the sanitizer reports it there */
    {"prints_error", "shapes", "compute wrote 20 bytes to standard error"},
    {"leaks_heap", "memory", "create and destroy leak 1"},
#endif
    {"leaves_thread", "parameters", "create and destroy left 1 threads running"},
    {"signals_in_compute", "shapes", "compute changed a signal handler"},
    {"changes_folder", "shapes", "compute changed the working directory"},
    {"infinite_at_end", "extremes", "with factor = 5: the advantage of rollout 0"},
    {"past_tokens", "shapes", "wrote outside of an output buffer"},
    {"past_record", "shapes", "record wrote outside of its buffer"},
    {"past_sums", "shapes", "collect wrote outside of its buffer"},
    {"nan_sums", "shapes", "collect: number 0 of group 0 is nan"},
    {"nan_advantage", "shapes", "the advantage of rollout 0"},
    {"bad_confidence", "shapes", "the confidence of group 0 is 1.5"},
    {"infinite_scale", "shapes", "the scale of group 0 is inf"},
    {"negative_weight", "shapes", "the weight of rollout 0 is -1"},
    {"negative_size", "shapes", "sizes: collect is -1"},
    {"state_changes", "state", "after save and load"},
    {"reads_too_much", "state", "the state is cut short"},
    {"first_verdict_only", "batches", "completion 1: the verdict code 0 is invalid"},
    {"depends_on_neighbours", "batches", "in a call got code"},
    {"verdict_by_wishes", "streams", "the verdict changes where the host does not want"},
    {"drops_status", "streams", "a stream refused the extracted text"},
    {"judges_by_call", "texts", "the same text got two verdicts"},
    {"shares_buffer", "threads", "a verdict differs on several threads"},
    {"dies_of_row", "rows", "killed by signal 6"},
    {"explains_nothing", "explain", "explain does not write one JSON object"},
    {"explains_half", "explain", "explain does not write one JSON object"},
    {"ignores_deadline", "long", "still running after 2 s"},
    {"swaps_tickets", "waits", "from take, but code"},
    {"waits_too_long", "waits", "poll with wait_ns 0 took"},
    {"differs_when_waited_for", "waits", "from take, but code"},
    {"never_judges", "waits", "has a verdict after"},
    {"keeps_views", "waits", "from take, but code"},
    {"cancels_nothing", "waits", "from take, but code"},
    {"unknown_state", "waits", "has the unknown state 7"},
    {"depends_on_batch", "encode", "depends on the other texts in the call"},
    {"nan_embedding", "encode", "encode, text 1"},
    {"cluster_by_batch", "assign", "when alone, but in"},
    {"distance_by_batch", "assign", "when alone, but at"},
    {"loses_fit", "fit", "save and load changed"},
    {"takes_damage", "fit", "load ignores that a state is cut short"},
    {"learns_in_assign", "assign", "assign or cluster_name changed the state"},
    {"name_by_call", "assign", "has another name when asked again"},
    {"identity_by_instance", "identity", "its identity changed from"},
    {"shares_scratch", "threads", "its answers differ on several threads"},
    {"row_unwritten", "shapes", "choice 0 is the invalid row -1"},
    {"row_past_end", "shapes", "choice 0 is the invalid row 24"},
    {"rollouts_none", "shapes", "choice 0 gets 0 rollouts"},
    {"rollouts_over", "shapes", "rollouts: must be at least 1 each"},
    {"writes_past_rows", "shapes", "next wrote outside of an output buffer"},
    {"writes_past_fates", "shapes", "keep wrote outside of its output buffer"},
    {"fate_three", "shapes", "rollout 0 has the fate 3"},
    {"extra_negative", "shapes", "keep requests -1 more groups"},
    {"fails_on_unjudged", "shapes", "no verdicts"},
    {"chooses_by_call", "phases", "next chooses other rows when it is called again"},
    {"keeps_by_call", "phases", "keep decides differently when it is called again"},
    {"writes_in_next", "shapes", "next or keep changed the state; only apply may"},
    {"writes_in_keep", "phases", "next or keep changed the state; only apply may"},
    {"chooses_by_instance", "ranks", "two instances with equal calls choose"},
    {"forgets_stride", "state", "save and load changed the rows chosen"},
    {"takes_short_course", "state", "load ignores that a state is cut short"},
    {"slope_sign", "gradient", "the derivative of token"},
    {"slope_in_clip", "gradient", "the derivative of token"},
    {"slope_half", "gradient", "the derivative of token"},
    {"slope_of_detached", "gradient", "the value changes by 0 per unit"},
    {"entropy_without_slope", "gradient", "in entropy is 0, but the value changes by -0.1"},
    {"wrong_way", "direction", "the policy would move away from it"},
    {"learns_nothing", "direction", "so nothing is learned"},
    {"value_unwritten", "shapes", "the value of token 0"},
    {"value_infinite", "shapes", "the value of token 0 of"},
    {"past_values", "shapes", "compute wrote outside of an output buffer"},
    {"past_marks", "shapes", "compute wrote outside of an output buffer"},
    {"past_annotated", "shapes", "annotate wrote outside of its buffer"},
    {"marks_two", "shapes", "is marked as clipped with 2"},
    {"uses_neighbour", "blocks", "in smaller blocks: values"},
#ifndef __SANITIZE_ADDRESS__ /* the sanitizer turns the fault into an exit */
    {"reads_unwanted", "shapes", "killed by signal 11"},
    {"reads_logprob_early", "shapes", "killed by signal 11"},
#endif
    {"annotates_by_call", "phases", "again on the same minibatch"},
    {"pulls_at_zero", "zero", "TARE_OBJECTIVE_ZERO_AT_ZERO is set, but token 0 with the advantage 0 has the value"},
    {"computes_by_call", "phases", "again on the same minibatch: values"},
    {"annotates_no_number", "shapes", "sizes gives prepare = 0"},
    {"collects_over", "sums", "collect does not add"},
    {"collects_nan", "shapes", "collect: number 1 is nan"},
    {"writes_in_compute", "phases", "changed the state; only apply may"},
    {"forgets_bound", "state", "after save and load"},
    {"takes_short_state", "state", "load ignores that a state is cut short"},
    {"infinite_at_edge", "extremes", "with steepness = 8: the value of token 0"},
    {"reads_behind", "oldest", "the results under a host of ABI 1.0 are other ones"},
    {"reads_behind", "future", "the results under a later host"},
    {"writes_behind", "oldest", "it wrote behind the host's tare_advantages"},
    {"compares_size", "future", "under a later host"},
    {"compares_flags", "future", "under a later host"},
    {"unknown_role", "episodes", "a message has the unknown role 9"},
    {"unknown_end", "episodes", "the episode has the unknown end 3"},
    {"unknown_episode_verdict", "episodes", "the verdict code 99 is invalid"},
    {"early_verdict", "episodes", "of an episode that is still running"},
    {"infinite_reward", "episodes", "the reward of turn 0 is inf"},
    {"says_parts", "episodes", "they are reserved: size 0"},
    {"episode_by_call", "repeats", "an episode with equal seeds and turns"},
    {"keeps_episode", "repeats", "an episode with equal seeds and turns"},
    {"shares_session", "sessions", "an episode beside another session's"},
    {"loses_session", "session_state", "save_session and load_session changed"},
    {"takes_short_session", "session_state", "load_session accepts a state that is cut short"},
    {"spoils_card", "card", "card does not write one JSON object"},
    {"suggests_by_call", "suggest", "different acts for equal states and draws"},
    {"changes_by_suggesting", "suggest", "suggest changes the session"},
    {"suggests_nothing", "suggest", "suggest writes an empty act"},
    {"needs_folder", "linking", "it searches libraries in /opt/nowhere (DT_RUNPATH)"},
    {"create_fails", "parameters", "nothing more was tested; add KEY=VALUE after the plugin's name"},
    {"no_entry", "loads", "exports no function tare_plugin_v1"},
    {"null_member", "loads", "the function compute is missing"},
};

static void check__finds_what_is_wrong(void **state)
{
    (void)state;
    int missed = 0;
    for (size_t i = 0; i < sizeof FAULTS / sizeof *FAULTS; i++) {
        const struct found f = check_file(fixture(FAULTS[i].name), FAULTS[i].test, strstr(FAULTS[i].part, "after 2 s") ? 2 : 120);
        if (strstr(f.failed, FAULTS[i].test) && strstr(f.message, FAULTS[i].part)) continue;
        missed++;
        print_error("%s, test %s: failed '%s': %s\n", FAULTS[i].name, FAULTS[i].test, f.failed, f.message);
    }
    if (missed) fail_msg("%d of %zu faults were not found as they should be", missed, sizeof FAULTS / sizeof *FAULTS);
}

static void check__passes_good_plugins(void **state)
{
    (void)state;
    static const char *const names[] = {"bv_blend", "grpo", "krpo", "passk", "rl_zvp", "spo"};
    for (int i = 0; i < 6; i++) {
        char path[4096];
        snprintf(path, sizeof path, "%s/estimators/%s.so", getenv("TARE_PLUGIN_PATH"), names[i]);
        const struct found f = check_file(path, NULL, 120);
        if (f.failed[0] || f.passed < 10) fail_msg("%s: %lld passed; %s", names[i], (long long)f.passed, f.message);
    }
    static const char *const fixtures[] = {"good",           "good_verifier",   "good_clusterer",   "good_objective",
                                           "own_kl",         "good_curriculum", "good_environment", "plain_texts",
                                           "list_of_records"};
    for (size_t i = 0; i < sizeof fixtures / sizeof *fixtures; i++) {
        const struct found f = check_file(fixture(fixtures[i]), NULL, 120);
        if (f.failed[0] || f.passed < 8) fail_msg("%s: %lld passed; %s", fixtures[i], (long long)f.passed, f.message);
    }
}

static void check__knows_its_tests(void **state)
{
    (void)state;
    struct found f = {.passed = 0};
    int64_t failed;
    const struct check_options o = {.path = fixture("good"), .only = "nothing"};
    assert_int_equal(check_run(&o, take, &f, &failed, &e), TARE_E_INVALID);
    const char *word = "factr=1";
    const struct check_options misspelt = {.path = fixture("good"), .assignments = &word, .n_assignments = 1, .limit = 60};
    f = (struct found){.passed = 0};
    assert_ok(check_run(&misspelt, take, &f, &failed, &e), &e);
    assert_true(failed == 1 && strstr(f.message, "no plugin in the file has a parameter factr"));
    f = check_file("/nowhere.so", NULL, 1);
    assert_non_null(strstr(f.failed, "loads"));
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(check__finds_what_is_wrong), cmocka_unit_test(check__passes_good_plugins),
                                       cmocka_unit_test(check__knows_its_tests)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
