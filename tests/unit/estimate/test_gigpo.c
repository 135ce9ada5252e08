/* The estimator gigpo, compared with verl-agent (data/episodes/gigpo.jsonl of the reference data). */
#include "base/fs.h"
#include "base/json.h"
#include "check.h"
#include "estimate/estimate.h"

#include <math.h>
#include <string.h>

enum { MOST = 4096 };
static struct err e;

/* A batch whose turns have one token each. */
struct sample {
    int64_t group[MOST], turn[MOST], token[MOST], begin[MOST], end[MOST], state[MOST];
    double reward[MOST], turn_reward[MOST];
    uint64_t uid[MOST];
    uint8_t finish[MOST], sampled[MOST];
    int32_t verdict[MOST], ids[MOST];
    float numbers[MOST];
    const char *key[MOST];
    struct batch b;
};

static void add_turn(struct sample *s, int64_t i, double reward, const char *key)
{
    const int64_t u = s->b.n_turns++;
    int64_t k = 0;
    s->begin[u] = u - s->turn[i];
    s->end[u] = s->begin[u] + 1;
    s->turn_reward[u] = reward;
    s->reward[i] += reward;
    s->sampled[u] = 1;
    while (k < u && strcmp(s->key[k], key) != 0) k++;
    s->key[u] = key;
    s->state[u] = k;
}

static void read_row(const json_t *row, struct sample *s)
{
    size_t g, i, u;
    json_t *group, *rollout, *reward;
    memset(s, 0, sizeof *s);
    json_array_foreach(json_object_get(row, "groups"), g, group)
    {
        json_array_foreach(json_object_get(group, "rollouts"), i, rollout)
        {
            const json_t *keys = json_object_get(rollout, "state_keys");
            s->verdict[s->b.n_rollouts] = TARE_VERDICT_CORRECT;
            json_array_foreach(json_object_get(rollout, "rewards"), u, reward)
                add_turn(s, s->b.n_rollouts, json_number_value(reward), json_string_value(json_array_get(keys, u)));
            s->turn[++s->b.n_rollouts] = s->b.n_turns;
            s->token[s->b.n_rollouts] = s->b.n_turns;
        }
        s->uid[s->b.n_groups] = g + 1;
        s->group[++s->b.n_groups] = s->b.n_rollouts;
    }
    s->b.n_tokens = s->b.n_turns;
    s->b.group_begin = s->group;
    s->b.turn_begin = s->turn;
    s->b.token_begin = s->token;
    s->b.act_begin = s->begin;
    s->b.act_end = s->end;
    s->b.turn_finish = s->b.finish = s->finish;
    s->b.turn_reward = s->turn_reward;
    s->b.turn_state = s->state;
    s->b.sampled = s->sampled;
    s->b.prompt_uid = s->uid;
    s->b.reward = s->reward;
    s->b.verdict = s->verdict;
    s->b.ids = s->ids;
    s->b.logprob = s->b.entropy = s->numbers;
}

static bool is_flagged(const json_t *row, const char *peer)
{
    char flag[64];
    size_t k;
    json_t *x;
    snprintf(flag, sizeof flag, "fp_residue:%s", peer);
    json_array_foreach(json_object_get(row, "flags"), k, x) if (!strcmp(json_string_value(x), flag)) return true;
    return false;
}

/* Returns the number of turns compared. A group of one episode is another convention. */
static int64_t compare(const json_t *row, struct sample *s, const char *peer, const char *episode)
{
    static char omega[32], gamma[32];
    const json_t *p = json_object_get(row, "params"),
                 *total = json_object_get(json_object_get(json_object_get(row, "peers"), peer), "total");
    const bool std = !strcmp(json_string_value(json_object_get(p, "mode")), "mean_std_norm");
    struct arena a;
    struct estimator *est;
    int64_t n = 0;
    snprintf(omega, sizeof omega, "%.17g", json_number_value(json_object_get(p, "omega")));
    snprintf(gamma, sizeof gamma, "%.17g", json_number_value(json_object_get(p, "gamma")));
    const char *const pairs[][2] = {{"omega", omega}, {"gamma", gamma}, {"norm", std ? "std" : "none"}, {"episode", episode}};
    struct config_param settings[4];
    for (int k = 0; k < 4; k++)
        settings[k] = (struct config_param){.section = "estimator.gigpo",
                                            .key = pairs[k][0],
                                            .value = pairs[k][1],
                                            .where = "test",
                                            .next = k < 3 ? &settings[k + 1] : NULL};
    arena_init(&a, "test");
    read_row(row, s);
    assert_ok(estimate_open(&(struct estimate_options){.plugin = "gigpo", .settings = settings}, &est, &e), &e);
    assert_ok(estimate_run(est, &s->b, &a, &e), &e);
    for (int64_t m = 0; m < s->b.n_groups; m++)
        for (int64_t i = s->group[m]; s->group[m + 1] - s->group[m] > 1 && i < s->group[m + 1]; i++)
            for (int64_t u = s->turn[i]; u < s->turn[i + 1]; u++, n++) {
                const json_t *group = json_array_get(total, (size_t)m), *rollout = json_array_get(group, (size_t)(i - s->group[m]));
                const double want = json_number_value(json_array_get(rollout, (size_t)(u - s->turn[i])));
                if (!(fabs((double)s->b.token_advantage[u] - want) <= 3e-5 * (1 + fabs(want))))
                    fail_msg("%s, %s, group %lld, turn %lld: %.9g, expected %.9g", json_string_value(json_object_get(row, "id")),
                             peer, (long long)m, (long long)u, (double)s->b.token_advantage[u], want);
            }
    estimate_free(est);
    arena_free(&a);
    return n;
}

static void equals_verl_agent(void **state)
{
    static struct sample s;
    struct str text = {0};
    int64_t n = 0;
    (void)state;
    const char *path = shared_or_skip("data/episodes/gigpo.jsonl");
    const int64_t least = shared_is_whole(path) ? 1000 : 30;
    assert_ok(fs_read_all(path, &text, &e), &e);
    for (char *line = strtok(text.data, "\n"); line; line = strtok(NULL, "\n")) {
        json_t *row;
        assert_ok(json_parse(line, (int64_t)strlen(line), "gigpo.jsonl", &row, &e), &e);
        if (json_object_get(json_object_get(row, "params"), "similarity")) { /* equal keys only */
            json_decref(row);
            continue;
        }
        if (!is_flagged(row, "verl-agent-per-episode")) n += compare(row, &s, "verl-agent-per-episode", "episodes");
        if (!is_flagged(row, "verl-agent")) n += compare(row, &s, "verl-agent", "turns");
        json_decref(row);
    }
    if (n < least) fail_msg("only %lld turns were compared", (long long)n);
    str_free(&text);
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(equals_verl_agent)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
