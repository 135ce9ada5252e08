/* tare score: reads token ids; writes the logprob of every token but the first, and the entropy of
 * its distribution. */
#include "base/json.h"
#include "base/log.h"
#include "cli/cli.h"
#include "engine/engine.h"
#include "infer/score.h"
#include "settle/settle.h"

#include <string.h>

enum { BATCH_MAX = 4096, TOKENS_MAX = 16384 }; /* limits on pending lines, and on their tokens */

struct score {
    struct config config;
    struct engine engine;
    struct model *m; /* the engine's */
    struct scorer *scorer;
    struct arena work;
    double temperature;
    int64_t batch, n;
    json_t **id;
    struct token_ids ids; /* of the pending lines */
    int64_t *begin;
};

const char score_usage[] =
    "usage: tare score MODEL [temperature=1] [dtype=f32|bf16] [weights=dtype|int8] [threads=0] [batch=16]\n"
    "                        [model.base=FOLDER] [model.rope_theta=NUMBER]\n\n"
    "Reads {\"ids\":[...]} and writes {\"logprobs\":[...],\"entropy\":[...]}, line by line: logprob of token t+1 and entropy of its\n"
    "distribution given tokens 0..t, in nats, under the softmax at the temperature. A member \"id\" is copied to the output.\n"
    "MODEL is a Hugging Face folder; no tokenizer is needed.\n"
    "  batch=16           lines that are computed together; results do not depend on it\n"
    "  threads=0          0: one per core\n"
    "  weights=int8       store the weights in blocks of 32 with a scale each (model.weights)\n"
    "  model.base=        folder of an adapter's base, if not the one that adapter_config.json names\n"
    "  model.rope_theta=  rope_theta that the adapter was trained with, if not the one in the base's config.json\n";

/* ---- a batch of lines */
static tare_status print_numbers(const float *x, int64_t n, struct str *out, struct err *e)
{
    TRY(str_add(out, "[", 1, e));
    for (int64_t i = 0; i < n; i++) TRY(str_addf(out, e, i ? ",%.9g" : "%.9g", (double)x[i]));
    return str_add(out, "]", 1, e);
}

static tare_status print_line(const struct score *s, int64_t line, const float *logprob, const float *entropy, struct str *out,
                              struct err *e)
{
    str_clear(out);
    TRY(str_add(out, "{", 1, e));
    if (s->id[line]) {
        TRY(str_add(out, "\"id\":", -1, e));
        TRY(json_print(s->id[line], out, e));
        TRY(str_add(out, ",", 1, e));
    }
    TRY(str_add(out, "\"logprobs\":", -1, e));
    const int64_t n = s->begin[line + 1] - s->begin[line] - 1;
    TRY(print_numbers(logprob, n, out, e));
    TRY(str_add(out, ",\"entropy\":", -1, e));
    TRY(print_numbers(entropy, n, out, e));
    TRY(str_add(out, "}\n", 2, e));
    cli_add(out);
    return TARE_OK;
}

static tare_status print_batch(const struct score *s, const float *logprob, const float *entropy, struct err *e)
{
    OWNED(str_free) struct str line = {0};
    for (int64_t i = 0, at = 0; i < s->n; i++) {
        TRY(print_line(s, i, logprob + at, entropy + at, &line, e));
        at += s->begin[i + 1] - s->begin[i] - 1;
    }
    return cli_flush(e);
}

static void drop_lines(struct score *s)
{
    for (int64_t i = 0; i < s->n; i++) json_decref(s->id[i]);
    s->n = s->ids.n = 0;
}

static tare_status compute_lines(struct score *s, struct err *e)
{
    float *logprob, *entropy;
    arena_reset(&s->work);
    TRY(arena_new_raw(&s->work, &logprob, s->ids.n, e));
    TRY(arena_new_raw(&s->work, &entropy, s->ids.n, e));
    TRY(scorer_run(s->scorer, &(struct score_lines){s->ids.data, s->begin, s->n, s->temperature}, logprob, entropy, e));
    return print_batch(s, logprob, entropy, e);
}

static tare_status flush_lines(struct score *s, struct err *e)
{
    if (!s->n) return TARE_OK;
    const tare_status status = compute_lines(s, e);
    drop_lines(s);
    return status;
}

/* ---- reading */
static tare_status read_ids(struct score *s, const json_t *ids, const char *where, struct err *e)
{
    for (size_t i = 0; i < json_array_size(ids); i++) {
        const json_t *v = json_array_get(ids, i);
        const int64_t id = json_is_integer(v) ? json_integer_value(v) : -1;
        if (id < 0 || id >= s->m->shape.vocab)
            FAIL(e, TARE_E_RANGE, "%s: ids[%zu] must be an integer from 0 to %lld", where, i, (long long)s->m->shape.vocab - 1);
        TRY(token_ids_add(&s->ids, (int32_t)id, e));
    }
    return TARE_OK;
}

static tare_status read_score_line(void *ctx, const json_t *object, const char *where, struct err *e)
{
    struct score *s = ctx;
    const json_t *ids = json_object_get(object, "ids");
    const int64_t n = (int64_t)json_array_size(ids), max = s->m->shape.max_position;
    if (!json_is_array(ids) || !n) FAIL(e, TARE_E_INVALID, "%s: \"ids\" must be an array of at least one token id", where);
    if (n - 1 > max)
        FAIL(e, TARE_E_RANGE, "%s: %lld tokens exceed the model's context of %lld", where, (long long)n, (long long)max);
    if (s->n && s->ids.n + n > TOKENS_MAX) TRY(flush_lines(s, e));
    TRY(read_ids(s, ids, where, e));
    s->id[s->n] = json_incref(json_object_get(object, "id"));
    s->n++;
    s->begin[s->n] = s->ids.n;
    return s->n == s->batch ? flush_lines(s, e) : TARE_OK;
}

/* ---- command line */
struct options {
    const char *model, *dtype, *weights, *base, *rope_theta;
    double temperature;
    int64_t threads, batch;
};

static tare_status set_option(struct options *o, const char *key, const char *value, struct err *e)
{
    if (!strcmp(key, "temperature")) {
        TRY(str_to_double(value, &o->temperature, e));
        if (!(o->temperature >= 0.01 && o->temperature <= 100))
            FAIL(e, TARE_E_RANGE, "temperature = %s: must be from 0.01 to 100", value);
    } else if (!strcmp(key, "dtype")) {
        o->dtype = value;
    } else if (!strcmp(key, "weights")) {
        o->weights = value;
    } else if (!strcmp(key, "model.base")) {
        o->base = value;
    } else if (!strcmp(key, "model.rope_theta")) {
        o->rope_theta = value;
    } else if (!strcmp(key, "threads")) {
        TRY(str_to_int(value, &o->threads, e));
        if (o->threads < 0 || o->threads > 1024) FAIL(e, TARE_E_RANGE, "threads = %s: must be from 0 to 1024", value);
    } else if (!strcmp(key, "batch")) {
        TRY(str_to_int(value, &o->batch, e));
        if (o->batch < 1 || o->batch > BATCH_MAX) FAIL(e, TARE_E_RANGE, "batch = %s: must be from 1 to %d", value, BATCH_MAX);
    } else {
        const char *ours;
        if (config_is_foreign(key, &ours)) return config_hint(key, "tare score has no such key", "", e);
        FAIL(e, TARE_E_CONFIG, "%s: unknown key; known: temperature, dtype, weights, threads, batch, model.base, model.rope_theta",
             key);
    }
    return TARE_OK;
}

static tare_status parse_options(int argc, char **argv, struct options *o, struct err *e)
{
    *o = (struct options){.dtype = "f32", .weights = "dtype", .temperature = 1, .batch = 16};
    for (int i = 1; i < argc; i++) {
        char key[64];
        const char *equals = strchr(argv[i], '=');
        if (!o->model) {
            o->model = argv[i];
            continue;
        }
        if (!equals || equals - argv[i] >= (int)sizeof key)
            FAIL(e, TARE_E_CONFIG, "%s: must be key=value; see tare score --help", argv[i]);
        snprintf(key, sizeof key, "%.*s", (int)(equals - argv[i]), argv[i]);
        if (set_option(o, key, equals + 1, e)) {
            e->code = TARE_E_CONFIG;
            return err_prefix(e, "%s", argv[i]);
        }
    }
    return TARE_OK;
}

static tare_status run_score(const struct options *o, struct score *s, struct err *e)
{
    char folder[FS_PATH];
    TRY(settle_model(o->model, folder, e));
    TRY(config_load(&s->config, NULL, NULL, 0, e));
    TRY(config_set(&s->config, "model", "path", folder, "command line", e));
    TRY(config_set(&s->config, "model", "dtype", o->dtype, "command line", e));
    TRY(config_set(&s->config, "model", "weights", o->weights, "command line", e));
    if (o->base) TRY(config_set(&s->config, "model", "base", o->base, "command line", e));
    if (o->rope_theta) TRY(config_set(&s->config, "model", "rope_theta", o->rope_theta, "command line", e));
    s->config.run.threads = o->threads;
    engine_init(&s->engine, &s->config, NULL);
    TRY(engine_open(&s->engine, ENGINE_MODEL, e));
    s->m = s->engine.model;
    s->temperature = o->temperature;
    s->batch = o->batch;
    TRY(scorer_new(s->m, &s->scorer, e));
    TRY(mem_new(s->batch * (int64_t)sizeof *s->id, (void **)&s->id, e));
    TRY(mem_new((s->batch + 1) * (int64_t)sizeof *s->begin, (void **)&s->begin, e));
    /* the lines before an invalid one are still answered */
    const tare_status status = json_each_line(stdin, "standard input", read_score_line, s, e);
    struct err later = {0};
    const tare_status last = flush_lines(s, status ? &later : e);
    return status ? status : last;
}

int cmd_score(int argc, char **argv)
{
    struct err e = {0};
    struct options o;
    struct score s = {0};
    if (argc < 2) return cli_usage(score_usage);
    arena_init(&s.work, "score");
    tare_status status = parse_options(argc, argv, &o, &e);
    if (!status) status = run_score(&o, &s, &e);
    drop_lines(&s);
    scorer_free(s.scorer);
    mem_free(s.id);
    mem_free(s.begin);
    token_ids_free(&s.ids);
    engine_close(&s.engine);
    config_free(&s.config);
    arena_free(&s.work);
    return cli_end(status, &e);
}
