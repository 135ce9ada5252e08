#include "observe/rollout_turns.h"

#include "batch/turns.h"
#include "batch/verdict.h"

#include <string.h>

static json_t *turn_json(const struct batch *b, int64_t u, bool *bad)
{
    json_t *turn = json_object();
    if (!turn) *bad = true;
    json_put(turn, bad, "begin", json_integer(b->act_begin[u]));
    json_put(turn, bad, "end", json_integer(b->act_end[u]));
    if (b->turn_reward) json_put(turn, bad, "reward", json_real(b->turn_reward[u]));
    if (b->turn_finish) json_put(turn, bad, "finish", json_string(batch_finish_name(b->turn_finish[u])));
    return turn;
}

static void append(json_t *list, bool *bad, json_t *item)
{
    if (!list || json_array_append_new(list, item)) *bad = true;
}

void rollout_turns_put(json_t *record, bool *bad, const struct batch *b, int64_t i)
{
    if (!b->turn_begin || b->turn_begin[i] == b->turn_begin[i + 1]) return;
    json_t *ids = json_array(), *runs = json_array(), *turns = json_array();
    int64_t run = 0;
    bool sampled = true;
    for (int64_t t = b->token_begin[i]; t < b->token_begin[i + 1]; t++, run++) {
        append(ids, bad, json_integer(b->ids[t]));
        if (batch_is_sampled(b, t) == sampled) continue;
        append(runs, bad, json_integer(run));
        run = 0;
        sampled = !sampled;
    }
    append(runs, bad, json_integer(run));
    for (int64_t u = b->turn_begin[i]; u < b->turn_begin[i + 1]; u++) append(turns, bad, turn_json(b, u, bad));
    json_put(record, bad, "ids", ids);
    json_put(record, bad, "sampled", runs);
    json_put(record, bad, "turns", turns);
}

/* ---------------------------------------------------------------- reading */

/* Reads entry k of a list as a number from 0 to most. */
static tare_status read_count(const json_t *value, const char *what, int64_t most, const char *where, int64_t *out, struct err *e)
{
    if (!json_is_integer(value) || json_integer_value(value) < 0 || json_integer_value(value) > most)
        FAIL(e, TARE_E_CORRUPT, "%s: %s: must be a whole number from 0 to %lld", where, what, (long long)most);
    *out = json_integer_value(value);
    return TARE_OK;
}

static tare_status read_turn_ids(const json_t *ids, const char *where, struct rollout_turns *out, struct err *e)
{
    for (int64_t t = 0; t < out->n_tokens; t++) {
        int64_t id = 0;
        TRY(read_count(json_array_get(ids, (size_t)t), "a token of \"ids\"", INT32_MAX, where, &id, e));
        out->ids[t] = (int32_t)id;
    }
    return TARE_OK;
}

static tare_status read_mask_runs(const json_t *runs, const char *where, struct rollout_turns *out, struct err *e)
{
    int64_t at = 0, run = 0;
    for (size_t k = 0; k < json_array_size(runs); k++) {
        TRY(read_count(json_array_get(runs, k), "a run of \"sampled\"", out->n_tokens - at, where, &run, e));
        memset(out->sampled + at, k % 2 == 0, (size_t)run);
        at += run;
    }
    if (at != out->n_tokens)
        FAIL(e, TARE_E_CORRUPT, "%s: the runs of \"sampled\" have %lld tokens: must be %lld, the number of \"ids\"", where,
             (long long)at, (long long)out->n_tokens);
    return TARE_OK;
}

static tare_status read_turn(const json_t *turn, const char *where, int64_t u, struct rollout_turns *out, struct err *e)
{
    const int64_t before = u ? out->act_end[u - 1] : 0;
    int64_t begin = 0, end = 0;
    TRY(read_count(json_object_get(turn, "begin"), "\"begin\" of a turn", out->n_tokens, where, &begin, e));
    TRY(read_count(json_object_get(turn, "end"), "\"end\" of a turn", out->n_tokens, where, &end, e));
    if (begin < before || end <= begin || !out->sampled[begin] || !out->sampled[end - 1])
        FAIL(e, TARE_E_CORRUPT,
             "%s: turn %lld, tokens %lld to %lld: must follow the turn before and begin and end with a sampled token", where,
             (long long)u, (long long)begin, (long long)end);
    out->act_begin[u] = begin;
    out->act_end[u] = end;
    out->finish[u] = (uint8_t)batch_finish_code(json_string_value(json_object_get(turn, "finish")));
    return TARE_OK;
}

tare_status rollout_turns_read(const json_t *record, const char *where, struct arena *a, struct rollout_turns *out, struct err *e)
{
    const json_t *ids = json_object_get(record, "ids"), *runs = json_object_get(record, "sampled"),
                 *turns = json_object_get(record, "turns");
    *out = (struct rollout_turns){0};
    if (!turns) return TARE_OK;
    if (!json_is_array(ids) || !json_is_array(runs) || !json_is_array(turns))
        FAIL(e, TARE_E_CORRUPT, "%s: \"turns\", \"ids\" and \"sampled\" must be arrays", where);
    out->n_tokens = (int64_t)json_array_size(ids);
    out->n = (int64_t)json_array_size(turns);
    TRY(arena_new(a, &out->ids, out->n_tokens, e));
    TRY(arena_new(a, &out->sampled, out->n_tokens, e));
    TRY(arena_new(a, &out->act_begin, out->n, e));
    TRY(arena_new(a, &out->act_end, out->n, e));
    TRY(arena_new(a, &out->finish, out->n, e));
    TRY(read_turn_ids(ids, where, out, e));
    TRY(read_mask_runs(runs, where, out, e));
    for (int64_t u = 0; u < out->n; u++) TRY(read_turn(json_array_get(turns, (size_t)u), where, u, out, e));
    return TARE_OK;
}
