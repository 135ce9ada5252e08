/* Reads the columns of a JSON step that only some estimators need. A column exists for all groups
 * or for none. */
#include "batch/table.h"
#include "batch/verdict.h"
#include "estimate/parse.h"

#include <stdbool.h>
#include <string.h>

/* Reads one entry: at is the group or the rollout. Returns false when the column does not accept
 * the value. */
typedef bool (*take_fact)(const json_t *value, struct batch *b, int64_t at);

static bool take_finish(const json_t *value, struct batch *b, int64_t at)
{
    const int32_t finish = batch_finish_code(json_string_value(value));
    if (finish == TARE_FINISH_NONE) return false;
    b->finish[at] = (uint8_t)finish;
    return true;
}

static bool take_completion(const json_t *value, struct batch *b, int64_t at)
{
    b->completion[at] = (tare_text){json_string_value(value), (int64_t)json_string_length(value)};
    return json_is_string(value);
}

static bool take_ids(const json_t *value, struct batch *b, int64_t at)
{
    const int64_t first = b->token_begin[at], n = b->token_begin[at + 1] - first;
    if (!json_is_array(value) || (int64_t)json_array_size(value) != n) return false;
    for (int64_t t = 0; t < n; t++) {
        const json_t *id = json_array_get(value, (size_t)t);
        if (!json_is_integer(id) || json_integer_value(id) < 0 || json_integer_value(id) > INT32_MAX) return false;
        b->ids[first + t] = (int32_t)json_integer_value(id);
    }
    return true;
}

static bool parse_verdict(const json_t *value, struct batch *b, int64_t at)
{
    b->verdict[at] = verdict_code(json_string_value(value));
    return b->verdict[at] != 0;
}

static bool take_component_verdicts(const json_t *value, struct batch *b, int64_t at)
{
    const int64_t C = b->n_components;
    if (!json_is_array(value) || (int64_t)json_array_size(value) != C) return false;
    for (int64_t c = 0; c < C; c++) {
        const json_t *name = json_array_get(value, (size_t)c);
        const int32_t code = verdict_code(json_string_value(name));
        if (!code && !json_is_null(name)) return false;
        b->component_verdict[at * C + c] = code;
    }
    return true;
}

static bool take_off_policy(const json_t *value, struct batch *b, int64_t at)
{
    b->off_policy[at] = json_is_true(value);
    return json_is_boolean(value);
}

static bool take_fate(const json_t *value, struct batch *b, int64_t at)
{
    const int32_t fate = batch_fate_code(json_string_value(value));
    if (fate < 0) return false;
    b->fate[at] = (uint8_t)fate;
    return true;
}

static bool take_policy_version(const json_t *value, struct batch *b, int64_t at)
{
    b->policy_version[at] = json_integer_value(value);
    return json_is_integer(value) && b->policy_version[at] >= -1;
}

static bool take_segments(const json_t *value, struct batch *b, int64_t at)
{
    const int64_t first = b->token_begin[at], n = b->token_begin[at + 1] - first;
    if (!json_is_array(value) || (int64_t)json_array_size(value) != n) return false;
    for (int64_t t = 0; t < n; t++) {
        const json_t *segment = json_array_get(value, (size_t)t);
        if (!json_is_integer(segment) || json_integer_value(segment) < 0 || json_integer_value(segment) > n) return false;
        b->segment[first + t] = (int32_t)json_integer_value(segment);
    }
    return true;
}

static bool take_segment_rewards(const json_t *value, struct batch *b, int64_t at)
{
    const int64_t first = b->token_begin[at], n = b->token_begin[at + 1] - first;
    if (!json_is_array(value) || (int64_t)json_array_size(value) != n) return false;
    for (int64_t t = 0; t < n; t++) {
        if (!json_is_number(json_array_get(value, (size_t)t))) return false;
        b->segment_reward[first + t] = json_number_value(json_array_get(value, (size_t)t));
    }
    return true;
}

static const struct fact {
    const char *key;
    int column;
    take_fact take;
    const char *allowed;
} FACTS[] = {
    {"finish", COLUMN_finish, take_finish, "\"stop\" or \"length\""},
    {"completions", COLUMN_completion, take_completion, "a text"},
    {"ids", COLUMN_ids, take_ids, "an array of token ids, one for each token"},
    {"verdicts", COLUMN_verdict, parse_verdict,
     "a verdict: \"correct\", \"wrong\", \"no_answer\", \"unparsable\", \"timeout\", \"crashed\", \"partial\""},
    {"component_verdicts", COLUMN_component_verdict, take_component_verdicts,
     "an array of verdicts, one for each of its \"components\", null where no verifier gave one"},
    {"off_policy", COLUMN_off_policy, take_off_policy, "true or false"},
    {"fate", COLUMN_fate, take_fate, "\"kept\", \"left_out\" or \"counted\""},
    {"policy_version", COLUMN_policy_version, take_policy_version, "a whole number, -1 for another policy"},
    {"segments", COLUMN_segment, take_segments, "an array of segment numbers, one for each token, from 1, 0 for none"},
    {"segment_rewards", COLUMN_segment_reward, take_segment_rewards,
     "an array of numbers, one for each token: the reward of the segment that ends in it"},
};

static bool has_column(const json_t *groups, const char *key)
{
    for (size_t m = 0; m < json_array_size(groups); m++)
        if (json_object_get(json_array_get(groups, m), key)) return true;
    return false;
}

static tare_status of_rollouts(const struct fact *f, const json_t *group, const char *where, struct batch *b, int64_t m,
                               struct err *e)
{
    const json_t *values = json_object_get(group, f->key);
    const int64_t first = b->group_begin[m], n = b->group_begin[m + 1] - first;
    if (!json_is_array(values) || (int64_t)json_array_size(values) != n)
        FAIL(e, TARE_E_SHAPE, "%s: group %lld: \"%s\" must be an array of %lld, one for each reward%s", where, (long long)m, f->key,
             (long long)n, values ? "" : "; other groups have it");
    for (int64_t i = 0; i < n; i++)
        if (!f->take(json_array_get(values, (size_t)i), b, first + i))
            FAIL(e, TARE_E_INVALID, "%s: group %lld, rollout %lld: \"%s\" must be %s", where, (long long)m, (long long)i, f->key,
                 f->allowed);
    return TARE_OK;
}

static tare_status parse_rows(const json_t *groups, const char *where, struct arena *a, struct batch *b, struct err *e)
{
    if (!has_column(groups, "row")) return TARE_OK;
    TRY(arena_new(a, &b->row_json, b->n_groups, e));
    for (int64_t m = 0; m < b->n_groups; m++) {
        const json_t *row = json_object_get(json_array_get(groups, (size_t)m), "row");
        struct str text = {0};
        char *copy = NULL;
        if (!json_is_object(row)) FAIL(e, TARE_E_INVALID, "%s: group %lld: \"row\" must be an object", where, (long long)m);
        tare_status status = json_print(row, &text, e);
        if (!status) status = arena_strdup(a, text.data, text.size, &copy, e);
        b->row_json[m] = (tare_text){copy, text.size};
        str_free(&text);
        TRY(status);
    }
    return TARE_OK;
}

/* The texts in JSON end with the line; the batch's texts live as long as the arena. */
static tare_status keep_completions(struct arena *a, struct batch *b, struct err *e)
{
    if (b->completion)
        for (int64_t i = 0; i < b->n_rollouts; i++) {
            char *copy;
            TRY(arena_strdup(a, b->completion[i].data, b->completion[i].size, &copy, e));
            b->completion[i].data = copy;
        }
    return TARE_OK;
}

tare_status estimate_parse_facts(const json_t *groups, const char *where, struct arena *a, struct batch *b, struct err *e)
{
    for (size_t k = 0; k < sizeof FACTS / sizeof *FACTS; k++) {
        const struct fact *f = &FACTS[k];
        if (!has_column(groups, f->key)) continue;
        TRY(batch_new_array(b, f->column, BATCH_TABLE[f->column].axis == AXIS_TOKEN ? b->n_tokens : b->n_rollouts, a, e));
        for (int64_t m = 0; m < b->n_groups; m++) TRY(of_rollouts(f, json_array_get(groups, (size_t)m), where, b, m, e));
    }
    TRY(keep_completions(a, b, e));
    return parse_rows(groups, where, a, b, e);
}
