/* Batches of episodes for tests of estimators: each turn has one token unless it is given more. */
#ifndef TESTS_UNIT_ESTIMATE_EPISODES_H
#define TESTS_UNIT_ESTIMATE_EPISODES_H

#include "check.h"

#include "base/fs.h"
#include "base/json.h"
#include "estimate/estimate.h"

#include <math.h>
#include <string.h>

enum { SAMPLE_MOST = 8192 };

/* component: rewards of "environment" and of "answer", if a test sets them. */
struct sample {
    int64_t group[SAMPLE_MOST], turn[SAMPLE_MOST], token[SAMPLE_MOST], begin[SAMPLE_MOST], end[SAMPLE_MOST], state[SAMPLE_MOST];
    double reward[SAMPLE_MOST], turn_reward[SAMPLE_MOST], component[SAMPLE_MOST][2];
    uint64_t uid[SAMPLE_MOST];
    uint8_t finish[SAMPLE_MOST], sampled[SAMPLE_MOST];
    int32_t verdict[SAMPLE_MOST], cluster[SAMPLE_MOST], ids[SAMPLE_MOST];
    float numbers[SAMPLE_MOST];
    struct batch b;
};

static inline void sample_new(struct sample *s)
{
    memset(s, 0, sizeof *s);
    s->b = (struct batch){.group_begin = s->group,
                          .turn_begin = s->turn,
                          .token_begin = s->token,
                          .act_begin = s->begin,
                          .act_end = s->end,
                          .turn_finish = s->finish,
                          .finish = s->finish,
                          .turn_reward = s->turn_reward,
                          .turn_state = s->state,
                          .sampled = s->sampled,
                          .prompt_uid = s->uid,
                          .cluster = s->cluster,
                          .reward = s->reward,
                          .verdict = s->verdict,
                          .ids = s->ids,
                          .logprob = s->numbers,
                          .entropy = s->numbers};
}

/* Adds a turn of n tokens to the last rollout. */
static inline void sample_turn(struct sample *s, int64_t n, double reward, int64_t state)
{
    const int64_t i = s->b.n_rollouts, u = s->b.n_turns++;
    assert_true(s->b.n_tokens + n <= SAMPLE_MOST);
    s->begin[u] = s->b.n_tokens - s->token[i];
    s->end[u] = s->begin[u] + n;
    for (int64_t t = 0; t < n; t++) s->sampled[s->b.n_tokens + t] = 1;
    s->b.n_tokens += n;
    s->turn_reward[u] = reward;
    s->reward[i] += reward;
    s->state[u] = state;
}

static inline void sample_end_rollout(struct sample *s)
{
    const int64_t i = s->b.n_rollouts++;
    s->verdict[i] = TARE_VERDICT_CORRECT;
    s->turn[i + 1] = s->b.n_turns;
    s->token[i + 1] = s->b.n_tokens;
}

static inline void sample_end_group(struct sample *s)
{
    s->uid[s->b.n_groups] = (uint64_t)s->b.n_groups + 1;
    s->group[++s->b.n_groups] = s->b.n_rollouts;
}

/* Opens an estimator with settings "key=value;key=value". */
static inline struct estimator *sample_open(const char *plugin, const char *settings, const struct estimate_options *more)
{
    static char text[512], section[64];
    struct config_param params[16], *last = NULL;
    struct estimate_options o = more ? *more : (struct estimate_options){0};
    struct estimator *est;
    struct err e = {0};
    int n = 0;
    snprintf(text, sizeof text, "%s", settings);
    snprintf(section, sizeof section, "estimator.%s", plugin);
    for (char *rest = text, *word; (word = strtok_r(rest, ";", &rest));) {
        char *value = strchr(word, '=');
        *value = 0;
        params[n] = (struct config_param){.section = section, .key = word, .value = value + 1, .where = "test", .next = last};
        last = &params[n++];
    }
    o.plugin = plugin;
    o.settings = last;
    assert_ok(estimate_open(&o, &est, &e), &e);
    return est;
}

/* Computes the advantages of one batch without a history. */
static inline void sample_run(struct sample *s, const char *plugin, const char *settings, struct arena *a)
{
    struct err e = {0};
    struct estimator *est = sample_open(plugin, settings, NULL);
    assert_ok(estimate_run(est, &s->b, a, &e), &e);
    estimate_free(est);
}

/* Calls f with each row of a file of JSON lines. Returns the sum of its results. */
static inline int64_t sample_rows(const char *path, int64_t (*f)(const json_t *row))
{
    struct str text = {0};
    struct err e = {0};
    char *rest;
    int64_t n = 0;
    assert_ok(fs_read_all(path, &text, &e), &e);
    for (char *line = strtok_r(text.data, "\n", &rest); line; line = strtok_r(NULL, "\n", &rest)) {
        json_t *row;
        assert_ok(json_parse(line, (int64_t)strlen(line), path, &row, &e), &e);
        n += f(row);
        json_decref(row);
    }
    str_free(&text);
    return n;
}

/* True if the peer divided rounding noise by its epsilon. */
static inline bool sample_is_flagged(const json_t *row, const char *which)
{
    char flag[64];
    size_t k;
    json_t *x;
    snprintf(flag, sizeof flag, "fp_residue:%s", which);
    json_array_foreach(json_object_get(row, "flags"), k, x) if (!strcmp(json_string_value(x), flag)) return true;
    return false;
}

#endif
