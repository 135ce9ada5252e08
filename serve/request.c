#include "serve/request.h"

#include "base/json.h"
#include "serve/prompt.h"

#include <math.h>
#include <string.h>

void request_refuse(struct refusal *no, int http, const char *code, const char *param)
{
    no->http = http;
    no->code = code;
    no->type = http < 500 ? "invalid_request_error" : "server_error";
    if (http == 401) no->type = "authentication_error";
    if (http == 429) no->type = "rate_limit_error";
    snprintf(no->param, sizeof no->param, "%s", param ? param : "");
}

/* ---- values */

struct value {
    const char *name;
    const json_t *json;
    struct refusal *no;
};

#define WRONG(V, ...) REFUSE((V)->no, 400, "invalid_value", (V)->name, TARE_E_INVALID, __VA_ARGS__)

static tare_status read_int(const struct value *v, int64_t least, int64_t most, int64_t *out)
{
    const int64_t x = json_is_integer(v->json) ? json_integer_value(v->json) : least - 1;
    if (x < least || x > most) WRONG(v, "'%s' must be an integer from %lld to %lld", v->name, (long long)least, (long long)most);
    *out = x;
    return TARE_OK;
}

static tare_status read_bool(const struct value *v, bool *out)
{
    if (!json_is_boolean(v->json)) WRONG(v, "'%s' must be true or false", v->name);
    *out = json_is_true(v->json);
    return TARE_OK;
}

static tare_status read_share(const struct value *v, bool zero, double *out)
{
    const double x = json_number_value(v->json);
    if (!json_is_number(v->json) || !(x <= 1) || x < 0 || (x == 0 && !zero))
        WRONG(v, "'%s' must be a number %s 0 and at most 1", v->name, zero ? "of at least" : "above");
    *out = x;
    return TARE_OK;
}

/* ---- fields */

typedef tare_status read_field(struct request *r, const struct value *v, const struct serve_options *o);

static tare_status read_temperature(struct request *r, const struct value *v, const struct serve_options *o)
{
    const double x = json_number_value(v->json);
    (void)o;
    if (!json_is_number(v->json) || !((x >= 0.01 && x <= 100) || x == 0))
        WRONG(v, "'%s' must be 0 (always the likeliest token) or from 0.01 to 100", v->name);
    r->temperature = x;
    return TARE_OK;
}

static tare_status read_top_p(struct request *r, const struct value *v, const struct serve_options *o)
{
    (void)o;
    return read_share(v, false, &r->top_p);
}

static tare_status read_min_p(struct request *r, const struct value *v, const struct serve_options *o)
{
    (void)o;
    return read_share(v, true, &r->min_p);
}

static tare_status read_top_k(struct request *r, const struct value *v, const struct serve_options *o)
{
    (void)o;
    return read_int(v, 0, INT32_MAX, &r->top_k);
}

static tare_status read_n(struct request *r, const struct value *v, const struct serve_options *o)
{
    return read_int(v, 1, o->max_n, &r->n);
}

static tare_status read_seed(struct request *r, const struct value *v, const struct serve_options *o)
{
    (void)o;
    if (!json_is_integer(v->json)) WRONG(v, "'%s' must be an integer of at most 64 bits", v->name);
    r->seed = json_integer_value(v->json);
    return TARE_OK;
}

static tare_status read_max_tokens(struct request *r, const struct value *v, const struct serve_options *o)
{
    (void)o;
    return read_int(v, r->chat ? 1 : 0, INT32_MAX, &r->max_tokens);
}

static tare_status read_stream(struct request *r, const struct value *v, const struct serve_options *o)
{
    (void)o;
    return read_bool(v, &r->stream);
}

static tare_status read_stream_options(struct request *r, const struct value *v, const struct serve_options *o)
{
    const json_t *usage = json_object_get(v->json, "include_usage");
    (void)o;
    if (!json_is_object(v->json) || json_object_size(v->json) > 1 || (json_object_size(v->json) && !json_is_boolean(usage)))
        WRONG(v, "'%s' must be an object whose only member is \"include_usage\": true or false", v->name);
    r->usage = json_is_true(usage);
    return TARE_OK;
}

/* Reads "logprobs". Completions: the number of likeliest tokens; chat: true or false, with the
 * number in top_logprobs. */
static tare_status read_logprobs(struct request *r, const struct value *v, const struct serve_options *o)
{
    (void)o;
    if (r->chat) return read_bool(v, &r->logprobs);
    r->logprobs = true;
    return read_int(v, 0, MAX_TOP, &r->top);
}

static tare_status read_top_logprobs(struct request *r, const struct value *v, const struct serve_options *o)
{
    (void)o;
    return read_int(v, 0, MAX_TOP, &r->top);
}

static tare_status read_echo(struct request *r, const struct value *v, const struct serve_options *o)
{
    (void)o;
    return read_bool(v, &r->echo);
}

static tare_status read_ignore_eos(struct request *r, const struct value *v, const struct serve_options *o)
{
    (void)o;
    return read_bool(v, &r->ignore_eos);
}

static tare_status read_token_ids(struct request *r, const struct value *v, const struct serve_options *o)
{
    (void)o;
    return read_bool(v, &r->token_ids);
}

static tare_status read_add_special(struct request *r, const struct value *v, const struct serve_options *o)
{
    (void)o;
    return read_bool(v, &r->add_special);
}

static tare_status add_stop(struct request *r, const struct value *v, const json_t *text)
{
    if (!json_is_string(text) || !json_string_length(text))
        WRONG(v, "'%s' must be a non-empty text, or a list of at most %d of them", v->name, MAX_STOPS);
    return str_add(&r->stop[r->n_stop++], json_string_value(text), (int64_t)json_string_length(text), &v->no->e);
}

static tare_status read_stop(struct request *r, const struct value *v, const struct serve_options *o)
{
    (void)o;
    if (!json_is_array(v->json)) return add_stop(r, v, v->json);
    if (json_array_size(v->json) > MAX_STOPS) return add_stop(r, v, NULL);
    for (size_t i = 0; i < json_array_size(v->json); i++) TRY(add_stop(r, v, json_array_get(v->json, i)));
    return TARE_OK;
}

static tare_status read_stop_ids(struct request *r, const struct value *v, const struct serve_options *o)
{
    (void)o;
    if (!json_is_array(v->json) || json_array_size(v->json) > MAX_STOP_IDS)
        WRONG(v, "'%s' must be a list of at most %d token ids", v->name, MAX_STOP_IDS);
    for (size_t i = 0; i < json_array_size(v->json); i++) {
        const struct value one = {v->name, json_array_get(v->json, i), v->no};
        int64_t id;
        TRY(read_int(&one, 0, r->model->engine.model->shape.vocab - 1, &id));
        r->stop_ids[r->n_stop_ids++] = (int32_t)id;
    }
    return TARE_OK;
}

static tare_status read_prompt(struct request *r, const struct value *v, const struct serve_options *o)
{
    (void)o;
    r->prompt = v->json;
    return TARE_OK;
}

static tare_status read_messages(struct request *r, const struct value *v, const struct serve_options *o)
{
    (void)o;
    r->messages = v->json;
    return TARE_OK;
}

static tare_status read_variables(struct request *r, const struct value *v, const struct serve_options *o)
{
    (void)o;
    if (!json_is_object(v->json)) WRONG(v, "'%s' must be an object: variables of the chat template", v->name);
    if (json_object_get(v->json, "messages") || json_object_get(v->json, "add_generation_prompt"))
        WRONG(v, "'%s' cannot replace messages or add_generation_prompt; remove them", v->name);
    r->template_variables = v->json;
    return TARE_OK;
}

static tare_status read_nothing(struct request *r, const struct value *v, const struct serve_options *o)
{
    (void)r;
    (void)v;
    (void)o;
    return TARE_OK;
}

/* Reads a number that is not supported and accepts it only with the value that has no effect. */
static tare_status read_zero(struct request *r, const struct value *v, const struct serve_options *o)
{
    (void)r;
    (void)o;
    if (!json_is_number(v->json) || json_number_value(v->json) != 0)
        WRONG(v, "'%s' is not supported by this server; omit it or set it to 0", v->name);
    return TARE_OK;
}

static tare_status read_empty(struct request *r, const struct value *v, const struct serve_options *o)
{
    (void)r;
    (void)o;
    const bool empty = (json_is_string(v->json) && !json_string_length(v->json)) ||
                       (json_is_array(v->json) && !json_array_size(v->json)) ||
                       (json_is_object(v->json) && !json_object_size(v->json));
    if (!empty) WRONG(v, "'%s' is not supported by this server; omit it", v->name);
    return TARE_OK;
}

static tare_status read_none(struct request *r, const struct value *v, const struct serve_options *o)
{
    (void)r;
    (void)o;
    const char *type = json_string_value(json_is_object(v->json) ? json_object_get(v->json, "type") : v->json);
    if (!type || (strcmp(type, "none") != 0 && strcmp(type, "text") != 0))
        WRONG(v, "'%s' is not supported by this server; omit it", v->name);
    return TARE_OK;
}

static tare_status read_best_of(struct request *r, const struct value *v, const struct serve_options *o)
{
    int64_t best = 1;
    (void)o;
    TRY(read_int(v, 1, INT32_MAX, &best));
    if (best != 1) WRONG(v, "'best_of' is not supported by this server; omit it, or set it to 1 and use 'n'");
    (void)r;
    return TARE_OK;
}

enum { TEXT = 1, CHAT = 2, BOTH = 3 };
static const struct field {
    const char *name;
    int where;
    read_field *read;
} FIELDS[] = {
    {"model", BOTH, read_nothing}, /* read before the others */
    {"prompt", TEXT, read_prompt},
    {"messages", CHAT, read_messages},
    {"max_tokens", BOTH, read_max_tokens},
    {"max_completion_tokens", CHAT, read_max_tokens},
    {"temperature", BOTH, read_temperature},
    {"top_p", BOTH, read_top_p},
    {"top_k", BOTH, read_top_k},
    {"min_p", BOTH, read_min_p},
    {"n", BOTH, read_n},
    {"seed", BOTH, read_seed},
    {"stop", BOTH, read_stop},
    {"stop_token_ids", BOTH, read_stop_ids},
    {"ignore_eos", BOTH, read_ignore_eos},
    {"stream", BOTH, read_stream},
    {"stream_options", BOTH, read_stream_options},
    {"logprobs", BOTH, read_logprobs},
    {"top_logprobs", CHAT, read_top_logprobs},
    {"echo", TEXT, read_echo},
    {"add_special_tokens", TEXT, read_add_special},
    {"return_token_ids", BOTH, read_token_ids},
    {"chat_template_kwargs", CHAT, read_variables},
    {"best_of", TEXT, read_best_of},
    {"frequency_penalty", BOTH, read_zero},
    {"presence_penalty", BOTH, read_zero},
    {"logit_bias", BOTH, read_empty},
    {"suffix", TEXT, read_empty},
    {"tools", CHAT, read_empty},
    {"functions", CHAT, read_empty},
    {"tool_choice", CHAT, read_none},
    {"function_call", CHAT, read_none},
    {"response_format", BOTH, read_none},
    {"parallel_tool_calls", CHAT, read_nothing},
    {"user", BOTH, read_nothing},
    {"metadata", BOTH, read_nothing},
    {"store", BOTH, read_nothing},
    {"service_tier", BOTH, read_nothing},
    {"prompt_cache_key", BOTH, read_nothing},
    {"safety_identifier", BOTH, read_nothing},
};
enum { N_FIELDS = sizeof FIELDS / sizeof *FIELDS };

static tare_status unknown_field(const struct request *r, const char *name, struct refusal *no)
{
    const char *near = NULL;
    int64_t nearest = INT64_MAX;
    for (int i = 0; i < N_FIELDS; i++) {
        const int64_t distance = str_distance(name, FIELDS[i].name);
        if (!(FIELDS[i].where & (r->chat ? CHAT : TEXT)) || distance >= nearest) continue;
        nearest = distance;
        near = FIELDS[i].name;
    }
    REFUSE(no, 400, "unknown_field", name, TARE_E_INVALID, "unknown field '%.60s'; the nearest is '%s', docs/serving.md lists all",
           name, near);
}

/* Refuses two limits that differ: the order of members in a JSON object has no meaning. */
static tare_status check_limits(const struct request *r, const json_t *body, struct refusal *no)
{
    const json_t *old = json_object_get(body, "max_tokens"), *new = json_object_get(body, "max_completion_tokens");
    if (!r->chat || !json_is_integer(old) || !json_is_integer(new) || json_equal(old, new)) return TARE_OK;
    REFUSE(no, 400, "invalid_value", "max_completion_tokens", TARE_E_INVALID,
           "'max_tokens' = %lld and 'max_completion_tokens' = %lld are the same limit: set one of them",
           (long long)json_integer_value(old), (long long)json_integer_value(new));
}

static tare_status read_fields(struct request *r, const json_t *body, const struct serve_options *o, struct refusal *no)
{
    const char *name;
    json_t *json;
    json_object_foreach((json_t *)(uintptr_t)body, name, json)
    {
        int i = 0;
        while (i < N_FIELDS && (!(FIELDS[i].where & (r->chat ? CHAT : TEXT)) || strcmp(FIELDS[i].name, name) != 0)) i++;
        if (i == N_FIELDS) return unknown_field(r, name, no);
        const struct value v = {name, json, no};
        if (!json_is_null(json)) TRY(FIELDS[i].read(r, &v, o));
    }
    TRY(check_limits(r, body, no));
    if (r->chat && r->top && !r->logprobs)
        REFUSE(no, 400, "invalid_value", "top_logprobs", TARE_E_INVALID, "'top_logprobs' needs \"logprobs\": true");
    if (r->usage && !r->stream)
        REFUSE(no, 400, "invalid_value", "stream_options", TARE_E_INVALID, "'stream_options' needs \"stream\": true");
    return TARE_OK;
}

/* ---- the body */

static tare_status find_model(struct request *r, const json_t *body, const struct served_models *models, struct refusal *no)
{
    const json_t *name = json_object_get(body, "model");
    if (!json_is_string(name))
        REFUSE(no, 400, "invalid_value", "model", TARE_E_INVALID,
               "'model' must be the name of a model; GET /v1/models lists the models");
    r->model = models_find(models, json_string_value(name));
    if (!r->model)
        REFUSE(no, 404, "model_not_found", "model", TARE_E_NOT_FOUND, "unknown model '%.200s'; GET /v1/models lists the models",
               json_string_value(name));
    return TARE_OK;
}

static tare_status read_body(const json_t *body, const struct served_models *models, const struct serve_options *o,
                             struct request *r, struct refusal *no)
{
    if (!json_is_object(body)) REFUSE(no, 400, "invalid_json", NULL, TARE_E_INVALID, "the body must be a JSON object");
    TRY(find_model(r, body, models, no));
    r->n = 1;
    r->temperature = r->top_p = 1;
    r->max_tokens = r->chat ? -1 : 16;
    r->seed = r->model->engine.config->run.seed;
    r->add_special = true;
    TRY(read_fields(r, body, o, no));
    TRY(prompt_of_request(r, no));
    if (r->n_prompts * r->n > o->max_n)
        REFUSE(no, 400, "invalid_value", "n", TARE_E_RANGE,
               "%lld prompts with n = %lld are %lld completions: must be at most %lld per request", (long long)r->n_prompts,
               (long long)r->n, (long long)(r->n_prompts * r->n), (long long)o->max_n);
    return TARE_OK;
}

tare_status request_read(const struct str *body, bool chat, const struct served_models *models, const struct serve_options *o,
                         struct request *out, struct refusal *no)
{
    json_t *json = NULL;
    out->chat = chat;
    if (json_parse(body->data ? body->data : "", body->size, "the body", &json, &no->e)) {
        request_refuse(no, 400, "invalid_json", NULL);
        return no->e.code;
    }
    const tare_status status = read_body(json, models, o, out, no);
    out->prompt = out->messages = out->template_variables = NULL;
    json_decref(json);
    if (status && !no->http) request_refuse(no, status == TARE_E_NOMEM ? 500 : 400, "invalid_value", NULL);
    return status;
}

void request_free(struct request *r)
{
    for (int64_t i = 0; i < r->n_stop; i++) str_free(&r->stop[i]);
    token_ids_free(&r->ids);
    mem_free(r->begin);
}
