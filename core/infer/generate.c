#include "infer/generate.h"

#include "base/fs.h"
#include "base/signals.h"
#include "collect/collector.h"
#include "data/hash_set.h"

#include <string.h>

enum { BATCHES = 4 }; /* input is read until this many batches of completions are due */

struct generator {
    /* m->engine.prompts (the chat template) is loaded when the first line needs it. */
    struct infer *m;
    struct generator_output output;
    struct sample_params sampling;
    struct arena lines, work, own;
    double seconds; /* in the sampler */
    /* Lines waiting for the next batch. */
    int64_t n, capacity;
    json_t **id;
    const struct row **row; /* only `where` is set */
    uint64_t *uid;
    int64_t *occurrence, *begin; /* [capacity], [capacity + 1] */
    struct token_ids ids;
    /* Number of occurrences of each id. */
    struct seen seen;
    int64_t *times, n_times, times_capacity;
    struct str out;
};

/* ---- output */

static tare_status print_rollout(struct generator *g, const struct batch *b, int64_t line, int64_t i, struct err *e)
{
    const int64_t begin = b->token_begin[i], end = b->token_begin[i + 1];
    struct str *out = &g->out;
    str_clear(out);
    TRY(str_add(out, "{\"id\":", -1, e));
    TRY(json_print(g->id[line], out, e));
    TRY(str_addf(out, e, ",\"sample\":%lld,\"completion\":", (long long)(i - b->group_begin[line])));
    json_t *text = b->completion ? json_stringn(b->completion[i].data, (size_t)b->completion[i].size) : json_null();
    if (!text) FAIL(e, TARE_E_INVALID, "%s: the completion is not valid UTF-8", g->row[line]->where);
    const tare_status status = json_print(text, out, e);
    json_decref(text);
    TRY(status);
    for (int64_t k = begin; k < end; k++) TRY(str_addf(out, e, "%s%d", k == begin ? ",\"ids\":[" : ",", b->ids[k]));
    for (int64_t k = begin; k < end; k++)
        TRY(str_addf(out, e, "%s%.9g", k == begin ? "],\"logprobs\":[" : ",", (double)b->logprob[k]));
    TRY(str_addf(out, e, "],\"finish\":\"%s\"}\n", b->finish[i] == FINISH_STOP ? "stop" : "length"));
    return g->output.line(g->output.ctx, out, e);
}

static void drop_lines(struct generator *g)
{
    for (int64_t i = 0; i < g->n; i++) json_decref(g->id[i]);
    g->n = g->ids.n = 0;
    arena_reset(&g->lines);
}

static tare_status generate_lines(struct generator *g, struct err *e)
{
    struct batch b = {.n_groups = g->n,
                      .row = g->row,
                      .prompt_uid = g->uid,
                      .occurrence = g->occurrence,
                      .prompt_begin = g->begin,
                      .prompt_ids = g->ids.data};
    struct collector c = engine_collector(&g->m->engine, &g->work);
    c.config = g->m->config.rollout;
    c.params = &g->sampling;
    c.cancelled = signals_flag();
    arena_reset(&g->work);
    const struct rng_key key = rng_derive(rng_key((uint64_t)g->m->config.run.seed, RNG_EVAL), 0);
    TRY(collector_run(&c, &(struct collect_request){.key = key}, &b, e));
    g->seconds += c.seconds;
    for (int64_t line = 0; line < g->n; line++)
        for (int64_t i = b.group_begin[line]; i < b.group_begin[line + 1]; i++) TRY(print_rollout(g, &b, line, i, e));
    return g->output.end ? g->output.end(g->output.ctx, e) : TARE_OK;
}

static tare_status flush_lines(struct generator *g, struct err *e)
{
    const tare_status status = g->n ? generate_lines(g, e) : TARE_OK;
    drop_lines(g);
    return status;
}

/* ---- input */

static tare_status read_ids(struct generator *g, const json_t *ids, const char *where, struct err *e)
{
    if (!json_is_array(ids)) FAIL(e, TARE_E_INVALID, "%s: \"ids\" must be an array of token ids", where);
    for (size_t i = 0; i < json_array_size(ids); i++) {
        const json_t *v = json_array_get(ids, i);
        const int64_t id = json_is_integer(v) ? json_integer_value(v) : -1;
        if (id < 0 || id >= g->m->engine.model->shape.vocab)
            FAIL(e, TARE_E_RANGE, "%s: ids[%zu]: must be an integer from 0 to %lld", where, i,
                 (long long)g->m->engine.model->shape.vocab - 1);
        TRY(token_ids_add(&g->ids, (int32_t)id, e));
    }
    return TARE_OK;
}

static tare_status encode_row(struct generator *g, const json_t *object, const char *where, struct err *e)
{
    const json_t *messages = json_object_get(object, "messages"), *prompt = json_object_get(object, "prompt");
    const json_t *question = json_object_get(object, "question");
    struct row row = {.where = where};
    OWNED(str_free) struct str text = {0}, whole = {0};
    TRY(engine_open(&g->m->engine, ENGINE_PROMPTS, e));
    TRY(json_print(object, &whole, e)); /* its variables of the template */
    row.json = (tare_text){whole.data, whole.size};
    if ((!messages || json_is_null(messages)) && json_is_array(prompt)) messages = prompt;
    if (!messages || json_is_null(messages)) {
        TRY(json_get_text(object, question && !json_is_null(question) ? "question" : "prompt", where, &row.question, e));
        return prompts_encode(g->m->engine.prompts, &row, &g->ids, e);
    }
    if (!json_is_array(messages) || !json_array_size(messages))
        FAIL(e, TARE_E_INVALID, "%s: \"%s\" must be an array of at least one message", where,
             messages == prompt ? "prompt" : "messages");
    if (g->m->config.data.prompt == PROMPT_PLAIN)
        FAIL(e, TARE_E_CONFIG, "%s: \"messages\" need a chat template, but data.prompt is plain", where);
    TRY(json_print(messages, &text, e));
    row.messages = (tare_text){text.data, text.size};
    return prompts_encode(g->m->engine.prompts, &row, &g->ids, e);
}

static tare_status encode_line(struct generator *g, const json_t *object, const char *where, struct err *e)
{
    const json_t *ids = json_object_get(object, "ids"), *text = json_object_get(object, "text");
    const int64_t before = g->ids.n;
    if (ids && !json_is_null(ids)) {
        TRY(read_ids(g, ids, where, e));
    } else if (!g->m->engine.tokenizer) {
        FAIL(e, TARE_E_NOT_FOUND, "%s: %s has no tokenizer.json, so the line must have \"ids\"", where, g->m->config.model.path);
    } else if (text && !json_is_null(text)) {
        tare_text t;
        TRY(json_get_text(object, "text", where, &t, e));
        if (tokenizer_encode(g->m->engine.tokenizer, t.data, t.size, &g->ids, e)) return err_prefix(e, "%s", where);
    } else if (json_object_get(object, "question") || json_object_get(object, "messages") || json_object_get(object, "prompt")) {
        TRY(encode_row(g, object, where, e));
    } else {
        FAIL(e, TARE_E_INVALID, "%s: missing prompt: one of \"question\", \"prompt\", \"messages\", \"text\", \"ids\"", where);
    }
    const int64_t n = g->ids.n - before, limit = engine_prompt_limit(&g->m->engine, false);
    if (!n || n > limit)
        FAIL(e, TARE_E_RANGE, "%s: the prompt has %lld tokens: must be 1 to %lld (context %lld, rollout.max_prompt_tokens %lld)",
             where, (long long)n, (long long)limit, (long long)g->m->engine.model->shape.max_position,
             (long long)g->m->config.rollout.max_prompt_tokens);
    return TARE_OK;
}

/* The id that is printed, and the uid that keys its draws, made from a row's id as in
 * data/dataset.h; without an id, the line number. */
static tare_status read_id(const json_t *object, const char *where, json_t **id, uint64_t *uid, struct err *e)
{
    const json_t *given = json_object_get(object, "id");
    const char *colon = strrchr(where, ':');
    char text[64];
    if (given && !json_is_null(given) && !json_is_string(given) && !json_is_number(given))
        FAIL(e, TARE_E_INVALID, "%s: \"id\" must be a string or a number", where);
    if (json_is_integer(given))
        snprintf(text, sizeof text, "%lld", (long long)json_integer_value(given));
    else if (json_is_real(given))
        str_from_double(text, json_real_value(given));
    else
        snprintf(text, sizeof text, "line-%s", colon ? colon + 1 : where);
    *id = given && !json_is_null(given) ? json_deep_copy(given) : json_string(text);
    if (!*id) FAIL(e, TARE_E_NOMEM, "out of memory for a line");
    if (json_is_string(given))
        *uid = fs_hash(json_string_value(given), (int64_t)json_string_length(given), 0);
    else
        *uid = fs_hash(text, (int64_t)strlen(text), 0);
    return TARE_OK;
}

static tare_status count_id(struct generator *g, uint64_t uid, int64_t *occurrence, struct err *e)
{
    int64_t at;
    TRY(mem_grow((void **)&g->times, &g->times_capacity, g->n_times + 1, (int64_t)sizeof *g->times, e));
    TRY(hash_set_add(&g->seen, uid, g->n_times, &at, e));
    if (at < 0) at = g->n_times++;
    *occurrence = g->times[at]++;
    return TARE_OK;
}

static tare_status add_line(void *ctx, const json_t *object, const char *where, struct err *e)
{
    struct generator *g = ctx;
    struct row *row;
    const int64_t i = g->n;
    TRY(arena_new(&g->lines, &row, 1, e));
    TRY(arena_strdup(&g->lines, where, -1, (char **)&row->where, e));
    TRY(encode_line(g, object, row->where, e));
    TRY(read_id(object, where, &g->id[i], &g->uid[i], e));
    g->n++; /* drop_lines owns the id from here on */
    g->row[i] = row;
    g->begin[i + 1] = g->ids.n;
    TRY(count_id(g, g->uid[i], &g->occurrence[i], e));
    if (g->n < g->capacity) return TARE_OK;
    return flush_lines(g, e);
}

/* ---- the generator */

static tare_status allocate_lines(struct generator *g, struct err *e)
{
    const struct rollout_config *c = &g->m->config.rollout;
    const int64_t due = (c->batch ? c->batch : AUTO_BATCH) * BATCHES;
    g->capacity = (due + c->group_size - 1) / c->group_size;
    TRY(mem_new(g->capacity * (int64_t)sizeof *g->id, (void **)&g->id, e));
    TRY(mem_new(g->capacity * (int64_t)sizeof *g->row, (void **)&g->row, e));
    TRY(mem_new(g->capacity * (int64_t)sizeof *g->uid, (void **)&g->uid, e));
    TRY(mem_new(g->capacity * (int64_t)sizeof *g->occurrence, (void **)&g->occurrence, e));
    return mem_new((g->capacity + 1) * (int64_t)sizeof *g->begin, (void **)&g->begin, e);
}

static tare_status open_generator(struct generator *g, struct err *e)
{
    const struct config *c = &g->m->config;
    const char *where = config_where(c, "rollout", "stop_ids");
    TRY(rollout_sample_params(&c->rollout, g->m->engine.model->shape.vocab, where, &g->own, &g->sampling, e));
    return allocate_lines(g, e);
}

tare_status generator_new(struct infer *m, const struct generator_output *output, struct generator **out, struct err *e)
{
    struct generator *g;
    *out = NULL;
    TRY(mem_new((int64_t)sizeof *g, (void **)&g, e));
    g->m = m;
    /* greedy completions of a prompt are equal: one, unless more are asked for */
    if (!m->config.rollout.temperature && !m->group_given) m->config.rollout.group_size = 1;
    g->output = *output;
    arena_init(&g->lines, "generate lines");
    arena_init(&g->work, "generate");
    arena_init(&g->own, "generate settings");
    const tare_status status = open_generator(g, e);
    if (status) {
        generator_free(g);
        return status;
    }
    *out = g;
    return TARE_OK;
}

tare_status generator_read(struct generator *g, FILE *in, const char *name, struct err *e)
{
    /* Lines before a bad one are still answered. */
    const tare_status status = json_each_line(in, name, add_line, g, e);
    struct err later = {0};
    const tare_status last = status == TARE_E_CANCELLED ? TARE_OK : flush_lines(g, status ? &later : e);
    return status ? status : last;
}

struct generator_stats generator_stats(const struct generator *g)
{
    return (struct generator_stats){g->seconds, sampler_stats(g->m->engine.sampler)};
}

void generator_free(struct generator *g)
{
    if (!g) return;
    drop_lines(g);
    mem_free(g->id);
    mem_free(g->row);
    mem_free(g->uid);
    mem_free(g->occurrence);
    mem_free(g->begin);
    mem_free(g->times);
    hash_set_free(&g->seen);
    token_ids_free(&g->ids);
    str_free(&g->out);
    arena_free(&g->lines);
    arena_free(&g->work);
    arena_free(&g->own);
    mem_free(g);
}
