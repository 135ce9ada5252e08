/* tare generate: prompts in, sampled completions out, one JSON object a line. */
#include "base/clock.h"
#include "base/fs.h"
#include "base/json.h"
#include "base/log.h"
#include "base/signals.h"
#include "cli/cli.h"
#include "cli/model_keys.h"
#include "data/hash_set.h"
#include "engine/engine.h"
#include "engine/text.h"
#include "model/adapter.h"
#include "settle/settle.h"

#include <string.h>

enum { AUTO_BATCH = 256, BATCHES = 4 }; /* input is read until that many batches of completions are due */

const char generate_usage[] =
    "usage: tare generate MODEL [key=value ...]\n\n"
    "Reads one prompt a line: {\"id\",\"question\"} or {\"id\",\"messages\"} (rendered as data.prompt "
    "says), {\"id\",\"text\"} (encoded as\n"
    "it is), or {\"id\",\"ids\"} (no tokenizer needed; completion is then null). With several of them, "
    "ids, text, messages, question is\n"
    "the order. Writes rollout.group_size lines for each: "
    "{\"id\",\"sample\",\"completion\",\"ids\",\"logprobs\",\"finish\"}, in input\n"
    "order; finish is stop or length. A completion depends on the model, the prompt, its id and the seed, "
    "not on the lines around it;\n"
    "a repeated id draws new ones. MODEL is a Hugging Face folder, or the folder of a run: its newest checkpoint, with the\n"
    "data.{prompt,chat_template,date,system,suffix} of the run's config.ini. As in a training file, \"prompt\" (a text or "
    "messages)\n"
    "may stand for question and messages.\n\n"
    "Keys, the section may be left out: "
    "rollout.{group_size,max_new_tokens,temperature,top_p,top_k,min_p,stop_ids,ignore_eos,batch,kv_tokens,\n"
    "max_prompt_tokens}, run.{seed,threads,kernels}, model.{dtype,rope_theta,max_position_embeddings},\n"
    "data.{prompt,chat_template,system,suffix}; `tare config docs` explains them.\n"
    "--stats: one line at the end, on standard error, with the seconds of sampling and the tokens read and written.\n";

struct generator {
    struct config config;
    struct engine engine; /* tokenizer NULL: the folder has none; prompts are opened when the first line needs them */
    struct arena lines, work;
    bool stats;
    double seconds; /* of sampling */
    /* lines that wait */
    int64_t n, capacity;
    json_t **id;
    const struct row **row; /* of which only `where` is set */
    uint64_t *uid;
    int64_t *occurrence, *begin; /* [capacity], [capacity + 1] */
    struct token_ids ids;
    /* how often each id came */
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
    if (fwrite(out->data, 1, (size_t)out->size, stdout) != (size_t)out->size)
        FAIL(e, TARE_E_IO, "standard output cannot be written");
    return TARE_OK;
}

static void drop_lines(struct generator *g)
{
    for (int64_t i = 0; i < g->n; i++) json_decref(g->id[i]);
    g->n = g->ids.n = 0;
    arena_reset(&g->lines);
}

static tare_status generate(struct generator *g, struct err *e)
{
    struct batch b = {.n_groups = g->n,
                      .row = g->row,
                      .prompt_uid = g->uid,
                      .occurrence = g->occurrence,
                      .prompt_begin = g->begin,
                      .prompt_ids = g->ids.data};
    const struct rng_key key = rng_derive(rng_key((uint64_t)g->config.run.seed, RNG_EVAL), 0);
    arena_reset(&g->work);
    const double began = clock_seconds();
    TRY(rollout_run(g->engine.sampler, &(struct rollout_job){&g->config.rollout, &g->engine.sampling, key, signals_flag()}, &b,
                    &g->work, e));
    g->seconds += clock_seconds() - began;
    if (g->engine.tokenizer) TRY(stage_texts(g->engine.tokenizer, g->engine.model, &b, &g->work, e));
    for (int64_t line = 0; line < g->n; line++)
        for (int64_t i = b.group_begin[line]; i < b.group_begin[line + 1]; i++) TRY(print_rollout(g, &b, line, i, e));
    if (fflush(stdout)) FAIL(e, TARE_E_IO, "standard output cannot be written");
    return TARE_OK;
}

static tare_status flush(struct generator *g, struct err *e)
{
    const tare_status status = g->n ? generate(g, e) : TARE_OK;
    drop_lines(g);
    return status;
}

/* ---- input */

static tare_status read_ids(struct generator *g, const json_t *ids, const char *where, struct err *e)
{
    if (!json_is_array(ids)) FAIL(e, TARE_E_INVALID, "%s: \"ids\" has to be an array of token ids", where);
    for (size_t i = 0; i < json_array_size(ids); i++) {
        const json_t *v = json_array_get(ids, i);
        const int64_t id = json_is_integer(v) ? json_integer_value(v) : -1;
        if (id < 0 || id >= g->engine.model->shape.vocab)
            FAIL(e, TARE_E_RANGE, "%s: ids[%zu] has to be a whole number from 0 to %lld", where, i,
                 (long long)g->engine.model->shape.vocab - 1);
        TRY(token_ids_add(&g->ids, (int32_t)id, e));
    }
    return TARE_OK;
}

static tare_status encode_row(struct generator *g, const json_t *object, const char *where, struct err *e)
{
    const json_t *messages = json_object_get(object, "messages"), *prompt = json_object_get(object, "prompt");
    const json_t *question = json_object_get(object, "question");
    struct row row = {.where = where};
    struct str text = {0};
    TRY(engine_open(&g->engine, ENGINE_PROMPTS, e));
    if ((!messages || json_is_null(messages)) && json_is_array(prompt)) messages = prompt;
    if (!messages || json_is_null(messages)) {
        TRY(json_get_text(object, question && !json_is_null(question) ? "question" : "prompt", where, &row.question, e));
        return prompts_encode(g->engine.prompts, &row, &g->ids, e);
    }
    if (!json_is_array(messages) || !json_array_size(messages))
        FAIL(e, TARE_E_INVALID, "%s: \"%s\" has to be an array of at least one message", where,
             messages == prompt ? "prompt" : "messages");
    if (g->config.data.prompt == PROMPT_PLAIN)
        FAIL(e, TARE_E_CONFIG, "%s: \"messages\" need a chat template, and data.prompt is plain", where);
    tare_status status = json_print(messages, &text, e);
    row.messages = (tare_text){text.data, text.size};
    if (!status) status = prompts_encode(g->engine.prompts, &row, &g->ids, e);
    str_free(&text);
    return status;
}

static tare_status encode_line(struct generator *g, const json_t *object, const char *where, struct err *e)
{
    const json_t *ids = json_object_get(object, "ids"), *text = json_object_get(object, "text");
    const int64_t before = g->ids.n;
    if (ids && !json_is_null(ids)) {
        TRY(read_ids(g, ids, where, e));
    } else if (!g->engine.tokenizer) {
        FAIL(e, TARE_E_NOT_FOUND, "%s: %s has no tokenizer.json, so only \"ids\" can be read; this line has none", where,
             g->config.model.path);
    } else if (text && !json_is_null(text)) {
        tare_text t;
        TRY(json_get_text(object, "text", where, &t, e));
        if (tokenizer_encode(g->engine.tokenizer, t.data, t.size, &g->ids, e)) return err_prefix(e, "%s", where);
    } else if (json_object_get(object, "question") || json_object_get(object, "messages") || json_object_get(object, "prompt")) {
        TRY(encode_row(g, object, where, e));
    } else {
        FAIL(e, TARE_E_INVALID, "%s: one of \"question\", \"prompt\", \"messages\", \"text\", \"ids\" is needed", where);
    }
    const int64_t n = g->ids.n - before, room = engine_prompt_room(&g->engine, false);
    if (!n || n > room)
        FAIL(e, TARE_E_RANGE,
             "%s: the prompt has %lld tokens, 1 to %lld are allowed (context %lld, rollout.max_prompt_tokens %lld)", where,
             (long long)n, (long long)room, (long long)g->engine.model->shape.max_position,
             (long long)g->config.rollout.max_prompt_tokens);
    return TARE_OK;
}

/* The id that is printed, and the uid that it is sampled by: as data/dataset.h makes them of a row's id; without one, the line's number. */
static tare_status read_id(const json_t *object, const char *where, json_t **id, uint64_t *uid, struct err *e)
{
    const json_t *given = json_object_get(object, "id");
    const char *colon = strrchr(where, ':');
    char text[64];
    if (given && !json_is_null(given) && !json_is_string(given) && !json_is_number(given))
        FAIL(e, TARE_E_INVALID, "%s: \"id\" is not a string or a number", where);
    if (json_is_integer(given))
        snprintf(text, sizeof text, "%lld", (long long)json_integer_value(given));
    else if (json_is_real(given))
        str_from_double(text, json_real_value(given));
    else
        snprintf(text, sizeof text, "line-%s", colon ? colon + 1 : where);
    *id = given && !json_is_null(given) ? json_deep_copy(given) : json_string(text);
    if (!*id) FAIL(e, TARE_E_NOMEM, "no memory for a line");
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
    TRY(seen_add(&g->seen, uid, g->n_times, &at, e));
    if (at < 0) at = g->n_times++;
    *occurrence = g->times[at]++;
    return TARE_OK;
}

static tare_status take_line(void *ctx, const json_t *object, const char *where, struct err *e)
{
    struct generator *g = ctx;
    struct row *row;
    const int64_t i = g->n;
    TRY(arena_new(&g->lines, &row, 1, e));
    TRY(arena_strdup(&g->lines, where, -1, (char **)&row->where, e));
    TRY(encode_line(g, object, row->where, e));
    TRY(read_id(object, where, &g->id[i], &g->uid[i], e));
    g->n++; /* from here on drop_lines owns the id */
    g->row[i] = row;
    g->begin[i + 1] = g->ids.n;
    TRY(count_id(g, g->uid[i], &g->occurrence[i], e));
    if (g->n < g->capacity) return TARE_OK;
    return flush(g, e);
}

/* ---- command line */

static const struct model_key KEYS[] = {
    {"rollout", "group_size"},
    {"rollout", "max_new_tokens"},
    {"rollout", "temperature"},
    {"rollout", "top_p"},
    {"rollout", "top_k"},
    {"rollout", "min_p"},
    {"rollout", "stop_ids"},
    {"rollout", "ignore_eos"},
    {"rollout", "batch"},
    {"rollout", "kv_tokens"},
    {"rollout", "max_prompt_tokens"},
    {"run", "seed"},
    {"run", "threads"},
    {"run", "kernels"},
    {"run", "device"},
    {"run", "deterministic"},
    {"model", "base"},
    {"model", "dtype"},
    {"model", "rope_theta"},
    {"model", "max_position_embeddings"},
    {"data", "prompt"},
    {"data", "chat_template"},
    {"data", "system"},
    {"data", "suffix"},
};
enum { N_KEYS = sizeof KEYS / sizeof *KEYS };

static tare_status open_engine(struct generator *g, const char *given, struct err *e)
{
    char path[FS_PATH], folder[FS_PATH], base[FS_PATH];
    TRY(settle_model(given, folder, e));
    TRY(config_set(&g->config, "model", "path", folder, "command line", e));
    TRY(adapter_base(folder, &g->config.model, base, e));
    TRY(fs_join(path, base, "config.json", e)); /* without one the loader says what is missing */
    if (fs_exists(path)) TRY(settle_tokens(&g->config, false, e));
    engine_init(&g->engine, &g->config, NULL);
    TRY(fs_join(path, base, "tokenizer.json", e));
    TRY(engine_open(&g->engine, ENGINE_SAMPLING | ENGINE_SAMPLER | (fs_exists(path) ? ENGINE_TOKENIZER : 0), e));
    const long long most = (long long)g->config.rollout.max_new_tokens, context = (long long)g->engine.model->shape.max_position;
    if (most >= context)
        log_warn("rollout.max_new_tokens = %lld, but %s has a context of %lld tokens for prompt and completion together: "
                 "completions end "
                 "there; set a smaller rollout.max_new_tokens",
                 most, folder, context);
    return TARE_OK;
}

static tare_status make_room(struct generator *g, struct err *e)
{
    const struct rollout_config *c = &g->config.rollout;
    const int64_t due = (c->batch ? c->batch : AUTO_BATCH) * BATCHES;
    g->capacity = (due + c->group_size - 1) / c->group_size;
    TRY(mem_new(g->capacity * (int64_t)sizeof *g->id, (void **)&g->id, e));
    TRY(mem_new(g->capacity * (int64_t)sizeof *g->row, (void **)&g->row, e));
    TRY(mem_new(g->capacity * (int64_t)sizeof *g->uid, (void **)&g->uid, e));
    TRY(mem_new(g->capacity * (int64_t)sizeof *g->occurrence, (void **)&g->occurrence, e));
    return mem_new((g->capacity + 1) * (int64_t)sizeof *g->begin, (void **)&g->begin, e);
}

/* One line on standard error, so that standard output stays one line a rollout. */
static void print_stats(const struct generator *g)
{
    const struct sampler_stats s = sampler_stats(g->engine.sampler);
    fprintf(stderr, "{\"seconds\":%.6f,\"prompt_tokens\":%lld,\"new_tokens\":%lld,\"decode_steps\":%lld}\n", g->seconds,
            (long long)s.prompt_tokens, (long long)s.new_tokens, (long long)s.decode_steps);
}

static tare_status run(struct generator *g, int argc, char **argv, struct err *e)
{
    TRY(config_load(&g->config, NULL, NULL, 0, e));
    TRY(model_keys_of_run(&g->config, argv[1], false, e));
    for (int i = 2; i < argc; i++)
        if (strchr(argv[i], '=')) TRY(model_key_set(&g->config, "generate", KEYS, N_KEYS, argv[i], e));
    TRY(open_engine(g, argv[1], e));
    TRY(make_room(g, e));
    signals_catch();
    /* what was read before a bad line is still answered */
    const tare_status status = json_each_line(stdin, "standard input", take_line, g, e);
    struct err later = {0};
    const tare_status last = status == TARE_E_CANCELLED ? TARE_OK : flush(g, status ? &later : e);
    if (g->stats) print_stats(g);
    return status ? status : last;
}

static void generator_free(struct generator *g)
{
    drop_lines(g);
    engine_close(&g->engine);
    mem_free(g->id);
    mem_free(g->row);
    mem_free(g->uid);
    mem_free(g->occurrence);
    mem_free(g->begin);
    mem_free(g->times);
    seen_free(&g->seen);
    token_ids_free(&g->ids);
    str_free(&g->out);
    arena_free(&g->lines);
    arena_free(&g->work);
    config_free(&g->config);
}

int cmd_generate(int argc, char **argv)
{
    struct err e = {0};
    struct generator g = {0};
    if (argc < 2) return cli_usage(generate_usage);
    for (int i = 2; i < argc; i++) {
        if (strchr(argv[i], '=')) continue;
        if (!strcmp(argv[i], "--stats")) {
            g.stats = true;
            continue;
        }
        log_message(LOG_ERROR, "%s: expected key=value or --stats; see tare generate --help", argv[i]);
        return 2;
    }
    arena_init(&g.lines, "generate lines");
    arena_init(&g.work, "generate");
    const tare_status status = run(&g, argc, argv, &e);
    if (status) log_error(&e);
    generator_free(&g);
    return status ? err_exit_code(status) : 0;
}
