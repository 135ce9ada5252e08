/* Reads one step from JSON. */
#include "estimate/parse.h"
#include "estimate/estimate.h"

#include <stdlib.h>
#include <string.h>

struct counts {
    int64_t groups, rollouts, tokens, components;
};

struct place {
    const char *where;
    size_t m; /* the group */
};

static tare_status array_of(const json_t *group, const char *key, size_t n, struct place at, const json_t **out, struct err *e)
{
    *out = json_object_get(group, key);
    if (*out && (!json_is_array(*out) || json_array_size(*out) != n))
        FAIL(e, TARE_E_SHAPE, "%s: group %zu: \"%s\" must be an array of %zu, one for each reward", at.where, at.m, key, n);
    return TARE_OK;
}

/* Refuses a misspelt key, which would be ignored otherwise. */
static tare_status check_keys(const json_t *group, const char *where, size_t m, struct err *e)
{
    static const char *const KEYS[] = {"rewards",     "cluster",
                                       "uid",         "lengths",
                                       "components",  "entropy",
                                       "logprob",     "ref_logprob",
                                       "row",         "finish",
                                       "completions", "ids",
                                       "verdicts",    "component_verdicts",
                                       "off_policy",  "policy_version",
                                       "segments",    "segment_rewards"};
    const char *key, *near = NULL;
    json_t *value;
    json_object_foreach((json_t *)(uintptr_t)group, key, value)
    {
        int64_t least = (int64_t)strlen(key) / 3;
        size_t i = 0;
        while (i < sizeof KEYS / sizeof *KEYS && strcmp(key, KEYS[i])) i++;
        if (i < sizeof KEYS / sizeof *KEYS) continue;
        for (i = 0; i < sizeof KEYS / sizeof *KEYS; i++) {
            const int64_t d = str_distance(key, KEYS[i]);
            if (d <= least) {
                least = d - 1;
                near = KEYS[i];
            }
        }
        if (near) FAIL(e, TARE_E_INVALID, "%s: group %zu: unknown key \"%s\"; did you mean \"%s\"?", where, m, key, near);
    }
    return TARE_OK;
}

static tare_status count_groups(const json_t *groups, const char *where, struct counts *c, struct err *e)
{
    *c = (struct counts){.groups = (int64_t)json_array_size(groups)};
    for (size_t m = 0; m < json_array_size(groups); m++) {
        const json_t *group = json_array_get(groups, m), *rewards = json_object_get(group, "rewards"), *lengths, *components;
        TRY(check_keys(group, where, m, e));
        if (!json_is_array(rewards) || !json_array_size(rewards))
            FAIL(e, TARE_E_INVALID, "%s: group %zu: missing \"rewards\"", where, m);
        const size_t n = json_array_size(rewards);
        TRY(array_of(group, "lengths", n, (struct place){where, m}, &lengths, e));
        TRY(array_of(group, "components", n, (struct place){where, m}, &components, e));
        c->rollouts += (int64_t)n;
        for (size_t i = 0; i < n; i++) {
            const json_int_t length = lengths ? json_integer_value(json_array_get(lengths, i)) : 1;
            if (length < 1 || length > 1 << 26)
                FAIL(e, TARE_E_RANGE, "%s: group %zu, rollout %zu: invalid length of %lld tokens", where, m, i, (long long)length);
            c->tokens += length;
            const int64_t parts = (int64_t)json_array_size(json_array_get(components, i));
            if (components && (!parts || (c->components && c->components != parts)))
                FAIL(e, TARE_E_SHAPE, "%s: group %zu, rollout %zu: %lld components, but other rollouts have %lld", where, m, i,
                     (long long)parts, (long long)c->components);
            if (parts) c->components = parts;
        }
    }
    return TARE_OK;
}

static tare_status parse_number(const json_t *j, const char *what, struct place at, size_t i, double *out, struct err *e)
{
    if (!json_is_number(j)) FAIL(e, TARE_E_INVALID, "%s: group %zu, rollout %zu: %s is not a number", at.where, at.m, i, what);
    *out = json_number_value(j);
    return TARE_OK;
}

struct column {
    const char *key;
    float *out;
    bool given; /* by any group */
};

/* Reads a column of tokens, where the group has it. */
static tare_status parse_tokens(const json_t *group, const struct batch *b, struct place where, struct column *c, struct err *e)
{
    const int64_t *begin = b->token_begin + b->group_begin[where.m];
    const size_t n = (size_t)(b->group_begin[where.m + 1] - b->group_begin[where.m]);
    const json_t *rows;
    TRY(array_of(group, c->key, n, where, &rows, e));
    if (!rows) return TARE_OK;
    c->given = true;
    for (size_t i = 0; i < n; i++) {
        const int64_t at = begin[i], length = begin[i + 1] - at;
        const json_t *row = json_array_get(rows, i);
        if ((int64_t)json_array_size(row) != length)
            FAIL(e, TARE_E_SHAPE, "%s: group %zu, rollout %zu: \"%s\" must be an array of %lld, one for each token", where.where,
                 where.m, i, c->key, (long long)length);
        for (int64_t t = 0; t < length; t++) {
            double x = 0;
            TRY(parse_number(json_array_get(row, (size_t)t), c->key, where, i, &x, e));
            c->out[at + t] = (float)x;
        }
    }
    return TARE_OK;
}

/* Reads a whole number, or 16 hexadecimal digits (a rollout dump's prompt_uid). */
static tare_status parse_uid(const json_t *uid, const char *where, size_t m, uint64_t *out, struct err *e)
{
    char *end = NULL;
    if (json_is_integer(uid))
        *out = (uint64_t)json_integer_value(uid);
    else if (json_is_string(uid))
        *out = strtoull(json_string_value(uid), &end, 16);
    if (!json_is_integer(uid) && (!end || *end || end == json_string_value(uid)))
        FAIL(e, TARE_E_INVALID, "%s: group %zu: \"uid\" must be a whole number or hexadecimal digits", where, m);
    return TARE_OK;
}

static tare_status fill_group(const json_t *group, const char *where, size_t m, struct batch *b, struct column columns[3],
                              struct err *e)
{
    const struct place place = {where, m};
    const json_t *rewards = json_object_get(group, "rewards"), *lengths = json_object_get(group, "lengths"),
                 *components = json_object_get(group, "components");
    const int64_t first = b->group_begin[m];
    const size_t n = json_array_size(rewards);
    const json_t *cluster = json_object_get(group, "cluster"), *uid = json_object_get(group, "uid");
    if (cluster && !json_is_null(cluster) &&
        (!json_is_integer(cluster) || json_integer_value(cluster) < -1 || json_integer_value(cluster) > INT32_MAX))
        FAIL(e, TARE_E_INVALID, "%s: group %zu: \"cluster\" must be a whole number, -1 for none", where, m);
    uint64_t prompt = (uint64_t)m;
    if (uid) TRY(parse_uid(uid, where, m, &prompt, e));
    b->cluster[m] = json_is_integer(cluster) ? (int32_t)json_integer_value(cluster) : -1;
    b->prompt_uid[m] = prompt;
    b->group_begin[m + 1] = first + (int64_t)n;
    for (size_t i = 0; i < n; i++) {
        const int64_t at = first + (int64_t)i;
        TRY(parse_number(json_array_get(rewards, i), "a reward", place, i, &b->reward[at], e));
        b->token_begin[at + 1] = b->token_begin[at] + (lengths ? json_integer_value(json_array_get(lengths, i)) : 1);
        b->verdict[at] = b->reward[at] > 0 ? TARE_VERDICT_CORRECT : TARE_VERDICT_WRONG;
        if (b->component && !components)
            FAIL(e, TARE_E_SHAPE, "%s: group %zu: missing \"components\", which other groups have", where, m);
        for (int64_t c = 0; c < b->n_components; c++)
            TRY(parse_number(json_array_get(json_array_get(components, i), (size_t)c), "a component", place, i,
                             &b->component[at * b->n_components + c], e));
    }
    for (int c = 0; c < 3; c++) TRY(parse_tokens(group, b, place, &columns[c], e));
    return TARE_OK;
}

tare_status estimate_parse(const json_t *object, const char *where, struct arena *a, struct batch *b, struct err *e)
{
    const json_t *groups = json_object_get(object, "groups");
    struct counts c;
    if (!json_is_array(groups))
        FAIL(e, TARE_E_INVALID, "%s: \"groups\" is missing: {\"groups\":[{\"cluster\":0,\"rewards\":[1,0]}]}", where);
    TRY(count_groups(groups, where, &c, e));
    *b = (struct batch){.n_groups = c.groups, .n_rollouts = c.rollouts, .n_tokens = c.tokens, .n_components = c.components};
    TRY(arena_new(a, &b->group_begin, c.groups + 1, e));
    TRY(arena_new(a, &b->prompt_uid, c.groups, e));
    TRY(arena_new(a, &b->cluster, c.groups, e));
    TRY(arena_new(a, &b->token_begin, c.rollouts + 1, e));
    TRY(arena_new(a, &b->reward, c.rollouts, e));
    TRY(arena_new(a, &b->verdict, c.rollouts, e));
    if (c.components) TRY(arena_new(a, &b->component, c.rollouts * c.components, e));
    TRY(arena_new(a, &b->entropy, c.tokens, e));
    TRY(arena_new(a, &b->logprob, c.tokens, e));
    TRY(arena_new(a, &b->ref_logprob, c.tokens, e));
    struct column columns[3] = {
        {"entropy", b->entropy, false}, {"logprob", b->logprob, false}, {"ref_logprob", b->ref_logprob, false}};
    for (size_t m = 0; m < (size_t)c.groups; m++) TRY(fill_group(json_array_get(groups, m), where, m, b, columns, e));
    if (!columns[0].given) b->entropy = NULL;
    if (!columns[1].given) b->logprob = NULL;
    if (!columns[2].given) b->ref_logprob = NULL;
    return estimate_parse_facts(groups, where, a, b, e);
}
