/* The estimator gigpo, compared with verl-agent (data/episodes/gigpo.jsonl of the reference data). */
#include "episodes.h"

/* Equal keys have equal numbers. */
static int64_t number_of(const char *key, const char **seen, int64_t *n)
{
    int64_t k = 0;
    while (k < *n && strcmp(seen[k], key) != 0) k++;
    if (k == *n) seen[(*n)++] = key;
    return k;
}

static void read_row(const json_t *row, struct sample *s)
{
    static const char *seen[SAMPLE_MOST];
    int64_t n_seen = 0;
    size_t g, i, u;
    json_t *group, *rollout, *reward;
    sample_new(s);
    json_array_foreach(json_object_get(row, "groups"), g, group)
    {
        json_array_foreach(json_object_get(group, "rollouts"), i, rollout)
        {
            const json_t *keys = json_object_get(rollout, "state_keys");
            json_array_foreach(json_object_get(rollout, "rewards"), u, reward)
                sample_turn(s, 1, json_number_value(reward), number_of(json_string_value(json_array_get(keys, u)), seen, &n_seen));
            sample_end_rollout(s);
        }
        sample_end_group(s);
    }
}

/* Returns the number of turns compared. A group of one episode is another convention. */
static int64_t compare(const json_t *row, struct sample *s, const char *peer, const char *episode)
{
    const json_t *p = json_object_get(row, "params"),
                 *total = json_object_get(json_object_get(json_object_get(row, "peers"), peer), "total");
    const bool std = !strcmp(json_string_value(json_object_get(p, "mode")), "mean_std_norm");
    char settings[256];
    struct arena a;
    int64_t n = 0;
    if (sample_is_flagged(row, peer)) return 0;
    snprintf(settings, sizeof settings, "omega=%.17g;gamma=%.17g;norm=%s;episode=%s",
             json_number_value(json_object_get(p, "omega")), json_number_value(json_object_get(p, "gamma")), std ? "std" : "none",
             episode);
    arena_init(&a, "test");
    read_row(row, s);
    sample_run(s, "gigpo", settings, &a);
    for (int64_t m = 0; m < s->b.n_groups; m++)
        for (int64_t i = s->group[m]; s->group[m + 1] - s->group[m] > 1 && i < s->group[m + 1]; i++)
            for (int64_t u = s->turn[i]; u < s->turn[i + 1]; u++, n++) {
                const json_t *group = json_array_get(total, (size_t)m), *rollout = json_array_get(group, (size_t)(i - s->group[m]));
                const double want = json_number_value(json_array_get(rollout, (size_t)(u - s->turn[i])));
                if (!(fabs((double)s->b.token_advantage[u] - want) <= 3e-5 * (1 + fabs(want))))
                    fail_msg("%s, %s, group %lld, turn %lld: %.9g, expected %.9g", json_string_value(json_object_get(row, "id")),
                             peer, (long long)m, (long long)u, (double)s->b.token_advantage[u], want);
            }
    arena_free(&a);
    return n;
}

static int64_t compare_row(const json_t *row)
{
    static struct sample s;
    if (json_object_get(json_object_get(row, "params"), "similarity")) return 0; /* equal keys only */
    return compare(row, &s, "verl-agent-per-episode", "episodes") + compare(row, &s, "verl-agent", "turns");
}

static void equals_verl_agent(void **state)
{
    (void)state;
    const char *path = shared_or_skip("data/episodes/gigpo.jsonl");
    const int64_t n = sample_rows(path, compare_row), least = shared_is_whole(path) ? 1000 : 30;
    if (n < least) fail_msg("only %lld turns were compared", (long long)n);
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(equals_verl_agent)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
