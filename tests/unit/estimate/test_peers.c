/* Advantages computed by other trainers' code, for the conventions named after them. */
#include "check.h"

#include "estimate/estimate.h"

#include <math.h>
#include <string.h>

static struct err e;

/* The plugin and parameters of a case; NULL: no plugin, with the reason. */
struct match {
    const char *plugin, *parameters, *why_not;
};

static bool has_flag(const json_t *c, const char *flag)
{
    const json_t *flags = json_object_get(c, "flags");
    for (size_t i = 0; i < json_array_size(flags); i++)
        if (!strcmp(json_string_value(json_array_get(flags, i)), flag)) return true;
    return false;
}

/* Reads a parameter of the peer's call as text ("" when it is missing). */
static const char *param(const json_t *c, const char *key)
{
    static char text[4][32];
    static int slot;
    const json_t *v = json_object_get(json_object_get(c, "params"), key);
    char *out = text[slot++ % 4];
    if (json_is_string(v)) return json_string_value(v);
    if (json_is_boolean(v)) return json_is_true(v) ? "true" : "false";
    if (!json_is_number(v)) return "";
    return str_from_double(out, json_number_value(v));
}

static bool is(const json_t *c, const char *key, const char *value)
{
    return !strcmp(param(c, key), value);
}

static struct match grpo(const json_t *c, const char *peer)
{
    static char text[120];
    if (!strcmp(peer, "roll") && (!is(c, "norm_mean_type", "group") || !is(c, "norm_std_type", "group")))
        return (struct match){.why_not = "statistics of the batch"};
    if (!strcmp(peer, "areal")) {
        if (!is(c, "mean_level", "group") || !is(c, "std_level", "group") || is(c, "mean_leave1out", "true"))
            return (struct match){.why_not = "its own statistics"};
        snprintf(text, sizeof text, "delta=%s ddof=%d", param(c, "eps"), is(c, "std_unbiased", "true"));
        return (struct match){"grpo", text, NULL};
    }
    if (!strcmp(peer, "nemo-rl"))
        return (struct match){"grpo", is(c, "use_leave_one_out_baseline", "true") ? "convention=nemo" : NULL, "not its default"};
    if (!strcmp(peer, "trl"))
        return (struct match){"grpo", is(c, "scale_rewards", "batch") ? "convention=trl scale=batch" : "convention=trl", NULL};
    if (!strcmp(peer, "roll") || !strcmp(peer, "slime") || !strcmp(peer, "tunix"))
        return (struct match){"grpo", "delta=1e-6", NULL};
    snprintf(text, sizeof text, "convention=%s", peer);
    return (struct match){"grpo", text, NULL};
}

static struct match find(const json_t *c, const char *peer, const char *name)
{
    static char text[120];
    const bool r_alone = !strcmp(peer, "verl") || !strcmp(peer, "skyrl");
    if (!strcmp(name, "grpo")) return grpo(c, peer);
    if (!strcmp(name, "dr_grpo")) return (struct match){"dr_grpo", r_alone ? "convention=verl" : "", NULL};
    if (!strcmp(name, "rloo")) {
        if (is(c, "normalize_advantages", "true")) return (struct match){"rloo", "whiten=true", NULL};
        const char *function = json_text_or(c, "function", "");
        const bool alone = !strcmp(peer, "areal") || (!strcmp(peer, "verl") && !strstr(function, "vectorized"));
        return (struct match){"rloo", alone ? "convention=verl" : "", NULL};
    }
    if (!strcmp(name, "opo")) return (struct match){"opo", "convention=verl", NULL};
    if (!strcmp(name, "gpg")) {
        snprintf(text, sizeof text, "convention=verl f_norm=%s", param(c, "f_norm"));
        return (struct match){"gpg", text, NULL};
    }
    if (!strcmp(name, "maxrl")) return (struct match){"maxrl", !strcmp(peer, "skyrl") ? "convention=skyrl" : "", NULL};
    if (!strcmp(name, "passk")) {
        snprintf(text, sizeof text, "k=%s", param(c, "K"));
        return (struct match){"passk", text, NULL};
    }
    if (!strcmp(name, "grpo_passk"))
        return (struct match){"grpo_passk", is(c, "norm_adv_by_std_in_grpo", "true") ? "" : "normalise=false", NULL};
    if (!strcmp(name, "krpo")) {
        snprintf(text, sizeof text, "order=released process_var=%s meas_var=%s", param(c, "process_var"), param(c, "meas_var"));
        return (struct match){"krpo", text, NULL};
    }
    if (!strcmp(name, "rl_zvp")) {
        snprintf(text, sizeof text, "alpha=%s", param(c, "alpha"));
        return (struct match){"rl_zvp", is(c, "use_leave_one_out_baseline", "true") ? NULL : text,
                              "leave-one-out baseline in mixed groups"};
    }
    if (!strcmp(name, "gdpo")) {
        const json_t *params = json_object_get(c, "params");
        const json_t *weights = json_object_get(params, !strcmp(peer, "verl") ? "gdpo_reward_weights" : "reward_weights");
        if (!strcmp(peer, "nemo-rl") && is(c, "use_leave_one_out_baseline", "true"))
            return (struct match){.why_not = "leave-one-out baseline"};
        if (is(c, "norm_adv_by_std_in_grpo", "false")) return (struct match){.why_not = "not divided"};
        snprintf(text, sizeof text, "convention=%s weights=", !strcmp(peer, "nemo-rl") ? "nemo" : peer);
        for (size_t i = 0; i < json_array_size(weights); i++) {
            char number[32];
            const size_t used = strlen(text);
            snprintf(text + used, sizeof text - used, "%s%s", i ? "," : "",
                     str_from_double(number, json_number_value(json_array_get(weights, i))));
        }
        return (struct match){"gdpo", text, NULL};
    }
    if (!strncmp(name, "reinforce_pp", 12)) {
        if (is(c, "use_kl_in_reward", "true") || *param(c, "kl_coef"))
            return (struct match){.why_not = "a KL penalty inside the reward"};
        if (is(c, "no_std_norm", "true")) return (struct match){.why_not = "not divided"};
        const char *gamma = param(c, "gamma");
        const bool discounts = !strcmp(name, "reinforce_pp");
        snprintf(text, sizeof text, "convention=%s%s%s", !strcmp(peer, "nemo-rl") ? "nemo" : peer,
                 discounts && *gamma ? " gamma=" : "", discounts ? gamma : "");
        return (struct match){discounts ? "reinforce_pp" : "reinforce_pp_baseline", text, NULL};
    }
    return (struct match){.why_not = "no such plugin"};
}

static const char *cannot(const json_t *c)
{
    static const char *const FLAGS[] = {
        "fp_residue", "unscorable", "same_prompt_merged", "mask_holes", "non_binary_passthrough", "loo_std_zero_in_mixed_group",
        "stateful"};
    for (size_t i = 0; i < sizeof FLAGS / sizeof *FLAGS; i++)
        if (has_flag(c, FLAGS[i])) return FLAGS[i];
    if (json_object_get(c, "error")) return "the peer raised an exception";
    return NULL;
}

/* Reads component k of the rewards, an array over rollouts. */
static const json_t *column(const json_t *components, const json_t *keys, size_t k)
{
    if (json_is_array(components)) return json_array_get(components, k);
    if (keys) return json_object_get(components, json_string_value(json_array_get(keys, k)));
    void *at = json_object_iter((json_t *)(uintptr_t)components);
    for (; k && at; k--) at = json_object_iter_next((json_t *)(uintptr_t)components, at);
    return json_object_iter_value(at);
}

/* Writes components [[C] of each rollout], and rewards as their sum where the case has none. */
static void add_components(json_t *g, const json_t *group, const json_t *keys)
{
    const json_t *components = json_object_get(group, "reward_components");
    if (!components) return;
    const size_t n = json_array_size(column(components, keys, 0));
    const size_t C = keys                        ? json_array_size(keys)
                     : json_is_array(components) ? json_array_size(components)
                                                 : json_object_size(components);
    json_t *rows = json_array(), *rewards = json_array();
    for (size_t i = 0; i < n; i++) {
        json_t *row = json_array();
        double sum = 0;
        for (size_t k = 0; k < C; k++) {
            json_array_append(row, json_array_get(column(components, keys, k), i));
            sum += json_number_value(json_array_get(row, k));
        }
        json_array_append_new(rows, row);
        json_array_append_new(rewards, json_real(sum));
    }
    json_object_set_new(g, "components", rows);
    if (!json_object_get(g, "rewards")) json_object_set(g, "rewards", rewards);
    json_decref(rewards);
}

/* Writes the case's groups as estimate_parse reads them. */
static json_t *step_of(const json_t *c)
{
    json_t *groups = json_array(), *group;
    const json_t *entropy = json_object_get(c, "token_entropy"), *params = json_object_get(c, "params");
    const json_t *keys = json_object_get(params, json_object_get(params, "reward_keys") ? "reward_keys" : "gdpo_reward_keys");
    size_t m;
    json_array_foreach(json_object_get(c, "groups"), m, group)
    {
        json_t *g = json_object();
        if (json_object_get(group, "rewards")) json_object_set(g, "rewards", json_object_get(group, "rewards"));
        add_components(g, group, keys);
        if (json_object_get(group, "lengths")) json_object_set(g, "lengths", json_object_get(group, "lengths"));
        if (entropy) json_object_set(g, "entropy", json_array_get(entropy, m));
        json_array_append_new(groups, g);
    }
    return json_pack("{s:o}", "groups", groups);
}

struct tally {
    int64_t passed, numbers, skipped;
};

static void compare(double got, const json_t *want, double tolerance, const char *what, struct tally *t)
{
    if (json_is_null(want)) return; /* the peer returned NaN */
    const double w = json_number_value(want);
    if (!(fabs(got - w) <= tolerance * fmax(1, fabs(w)))) fail_msg("%s: %.17g, the peer gives %.17g", what, got, w);
    t->numbers++;
}

/* Zero token rewards mean that the return differs from the reward at the end. */
static bool reward_at_end_only(const json_t *c)
{
    const json_t *rewards = json_object_get(c, "token_rewards");
    for (size_t m = 0; m < json_array_size(rewards); m++)
        for (size_t i = 0; i < json_array_size(json_array_get(rewards, m)); i++) {
            const json_t *tokens = json_array_get(json_array_get(rewards, m), i);
            for (size_t t = 0; t + 1 < json_array_size(tokens); t++)
                if (json_number_value(json_array_get(tokens, t)) != 0) return false;
        }
    return true;
}

static void check_case(const json_t *c, const struct match *match, struct tally *t)
{
    const struct plugin *p;
    const struct config_param *settings;
    struct arena a;
    struct batch b;
    struct estimator *est;
    const char *assignments[8], *id = json_text_or(c, "id", "?"), *dtype = json_text_or(c, "dtype", "");
    char parameters[160], what[200];
    int64_t n = 0;
    arena_init(&a, "test");
    snprintf(parameters, sizeof parameters, "%s", match->parameters);
    for (char *s = strtok(parameters, " "); s; s = strtok(NULL, " ")) assignments[n++] = s;
    assert_ok(plugin_open(match->plugin, TARE_KIND_ESTIMATOR, NULL, &p, &e), &e);
    assert_ok(plugin_settings(p, (struct plugin_words){assignments, n}, NULL, &a, &settings, &e), &e);
    const struct estimate_options o = {.plugin = match->plugin, .settings = settings};
    assert_ok(estimate_open(&o, &est, &e), &e);
    json_t *step = step_of(c);
    assert_ok(estimate_parse(step, id, &a, &b, &e), &e);
    assert_ok(estimate_run(est, &b, &a, &e), &e);
    double tolerance = strstr(dtype, "float32") || json_object_get(c, "token_advantages") ? 1e-5 : 1e-9;
    /* its n/(n-1) is a float32 */
    if (strstr(match->parameters, "convention=nemo")) tolerance = fmax(tolerance, 1e-6);
    const json_t *want = json_object_get(c, "advantages"), *tokens = json_object_get(c, "token_advantages");
    for (int64_t m = 0; m < b.n_groups; m++) {
        for (int64_t i = b.group_begin[m]; i < b.group_begin[m + 1]; i++) {
            const size_t r = (size_t)(i - b.group_begin[m]);
            snprintf(what, sizeof what, "%s (%s): group %lld, rollout %zu", id, match->parameters, (long long)m, r);
            if (want) compare(b.advantage[i], json_array_get(json_array_get(want, (size_t)m), r), tolerance, what, t);
            const json_t *row = json_array_get(json_array_get(tokens, (size_t)m), r);
            for (size_t k = 0; k < json_array_size(row); k++)
                compare(b.token_advantage ? (double)b.token_advantage[b.token_begin[i] + (int64_t)k] : b.advantage[i],
                        json_array_get(row, k), tolerance, what, t);
        }
    }
    json_decref(step);
    estimate_free(est);
    arena_free(&a);
    t->passed++;
}

struct peers {
    const char *name; /* of the estimator */
    struct tally t;
};

static tare_status each(void *ctx, const json_t *c, const char *where, struct err *err)
{
    (void)where, (void)err;
    struct peers *p = ctx;
    char peer[64];
    if (strcmp(json_text_or(c, "estimator", ""), p->name)) return TARE_OK;
    snprintf(peer, sizeof peer, "%s", json_text_or(c, "peer", ""));
    *strchr(peer, '@') = 0;
    struct match match = find(c, peer, p->name);
    if (cannot(c)) match = (struct match){.why_not = cannot(c)};
    if (match.parameters && !reward_at_end_only(c)) match.parameters = NULL;
    if (!match.parameters) {
        p->t.skipped++;
        return TARE_OK;
    }
    check_case(c, &match, &p->t);
    return TARE_OK;
}

static void peers(const char *name, int64_t at_least)
{
    struct peers p = {.name = name};
    const char *path = shared_or_skip("data/peers/estimators.jsonl");
    const int64_t least = shared_is_whole(path) ? at_least : at_least < 5 ? at_least : 5;
    FILE *f = fopen(path, "rb");
    assert_non_null(f);
    assert_ok(json_each_line(f, "estimators.jsonl", each, &p, &e), &e);
    fclose(f);
    printf("%s: %lld cases, %lld numbers; %lld cases have no convention here\n", name, (long long)p.t.passed,
           (long long)p.t.numbers, (long long)p.t.skipped);
    assert_true(p.t.passed >= least);
}

static void peers__grpo(void **state)
{
    (void)state, peers("grpo", 150);
}
static void peers__dr_grpo(void **state)
{
    (void)state, peers("dr_grpo", 150);
}
static void peers__rloo(void **state)
{
    (void)state, peers("rloo", 100);
}
static void peers__opo(void **state)
{
    (void)state, peers("opo", 20);
}
static void peers__gpg(void **state)
{
    (void)state, peers("gpg", 20);
}
static void peers__maxrl(void **state)
{
    (void)state, peers("maxrl", 30);
}
static void peers__passk(void **state)
{
    (void)state, peers("passk", 40);
}
static void peers__grpo_passk(void **state)
{
    (void)state, peers("grpo_passk", 35);
}
static void peers__krpo(void **state)
{
    (void)state, peers("krpo", 25);
}
static void peers__rl_zvp(void **state)
{
    (void)state, peers("rl_zvp", 25);
}
static void peers__gdpo(void **state)
{
    (void)state, peers("gdpo", 20);
}
static void peers__reinforce_pp(void **state)
{
    (void)state, peers("reinforce_pp", 25);
}
static void peers__reinforce_pp_baseline(void **state)
{
    (void)state, peers("reinforce_pp_baseline", 25);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(peers__grpo),
        cmocka_unit_test(peers__dr_grpo),
        cmocka_unit_test(peers__rloo),
        cmocka_unit_test(peers__opo),
        cmocka_unit_test(peers__gpg),
        cmocka_unit_test(peers__maxrl),
        cmocka_unit_test(peers__passk),
        cmocka_unit_test(peers__grpo_passk),
        cmocka_unit_test(peers__krpo),
        cmocka_unit_test(peers__rl_zvp),
        cmocka_unit_test(peers__gdpo),
        cmocka_unit_test(peers__reinforce_pp),
        cmocka_unit_test(peers__reinforce_pp_baseline),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
