/* Inference with one open model: `tare generate`, `tare score`, and the embeddings of encoders. */
#include "api/internal.h"
#include "engine/embed_service.h"
#include "infer/generate.h"
#include "infer/score.h"

#include <string.h>
#include <unistd.h>

struct tare_api_model {
    struct infer infer;
    struct scorer *scorer;       /* made on first use */
    struct embed_service *embed; /* made on first use */
    pid_t pid;
};

static tare_status check_model(const tare_api_model *m, struct err *e)
{
    return api_check(m, m ? m->pid : 0, "model", e);
}

static tare_status check_tokenizer(const tare_api_model *m, struct err *e)
{
    TRY(check_model(m, e));
    if (!m->infer.engine.tokenizer)
        FAIL(e, TARE_E_NOT_FOUND, "%s has no tokenizer.json, so only token ids can be used", m->infer.config.model.path);
    return TARE_OK;
}

tare_status tare_api_model_open(const char *folder, const char *const *settings, int64_t n, tare_api_model **out,
                                tare_api_error *error)
{
    struct err e = {0};
    struct tare_api_model *m = NULL;
    *out = NULL;
    tare_status status = mem_new((int64_t)sizeof *m, (void **)&m, &e);
    if (status) return api_finish(status, &e, error);
    m->pid = getpid();
    status = infer_open(&m->infer, folder, settings, n, &e);
    if (status)
        tare_api_model_close(m);
    else
        *out = m;
    return api_finish(status, &e, error);
}

void tare_api_model_close(tare_api_model *m)
{
    if (!m || m->pid != getpid()) return;
    embed_service_free(m->embed);
    scorer_free(m->scorer);
    infer_close(&m->infer);
    mem_free(m);
}

tare_status tare_api_model_facts(const tare_api_model *m, tare_api_facts *out, tare_api_error *error)
{
    struct err e = {0};
    const tare_status status = check_model(m, &e);
    if (status) return api_finish(status, &e, error);
    const struct model_shape *s = &m->infer.engine.model->shape;
    *out = (tare_api_facts){s->vocab, s->hidden, s->layers, s->max_position, m->infer.engine.tokenizer != NULL};
    return api_finish(TARE_OK, &e, error);
}

static tare_status add_line(void *ctx, const struct str *line, struct err *e)
{
    return str_add(ctx, line->data, line->size, e);
}

static tare_status generate_text(struct infer *m, tare_text lines, struct str *out, struct err *e)
{
    const struct generator_output output = {.ctx = out, .line = add_line};
    struct generator *g;
    if (!lines.size) return TARE_OK;
    FILE *in = fmemopen((void *)(uintptr_t)lines.data, (size_t)lines.size, "r");
    if (!in) FAIL(e, TARE_E_NOMEM, "out of memory while reading the prompts");
    tare_status status = generator_new(m, &output, &g, e);
    if (!status) status = generator_read(g, in, "prompts", e);
    generator_free(g);
    fclose(in);
    return status;
}

/* On success the text becomes the caller's; on error it is freed. */
static tare_status give_text(tare_status status, struct str *text, tare_api_text *out)
{
    *out = (tare_api_text){0};
    if (status)
        str_free(text);
    else
        *out = (tare_api_text){text->data, text->size};
    return status;
}

tare_status tare_api_generate(tare_api_model *m, const tare_text *lines, const tare_api_settings *settings, tare_api_text *out,
                              tare_api_error *error)
{
    struct err e = {0};
    struct str text = {0};
    tare_status status = check_model(m, &e);
    if (status) return api_finish(give_text(status, &text, out), &e, error);
    const struct rollout_config before = m->infer.config.rollout;
    const int64_t seed = m->infer.config.run.seed;
    const bool group_given = m->infer.group_given;
    for (int64_t i = 0; i < settings->n && !status; i++) status = infer_set(&m->infer, settings->list[i], &e);
    if (!status) status = str_add(&text, "", 0, &e);
    if (!status) status = generate_text(&m->infer, *lines, &text, &e);
    m->infer.config.rollout = before;
    m->infer.config.run.seed = seed;
    m->infer.group_given = group_given;
    return api_finish(give_text(status, &text, out), &e, error);
}

tare_status tare_api_score(tare_api_model *m, const tare_api_lines *lines, float *logprob, float *entropy, tare_api_error *error)
{
    struct err e = {0};
    tare_status status = check_model(m, &e);
    if (!status && !(lines->temperature >= 0.01 && lines->temperature <= 100))
        status = err_set(&e, TARE_E_RANGE, __FILE__, __LINE__, "temperature = %g: must be from 0.01 to 100", lines->temperature);
    if (!status && !m->scorer) status = scorer_new(m->infer.engine.model, &m->scorer, &e);
    const struct score_lines x = {lines->ids, lines->begin, lines->n, lines->temperature};
    if (!status) status = scorer_run(m->scorer, &x, logprob, entropy, &e);
    return api_finish(status, &e, error);
}

tare_status tare_api_embed(tare_api_model *m, const tare_text *texts, int64_t n, float *out, tare_api_error *error)
{
    struct err e = {0};
    tare_error inner = {.struct_size = sizeof inner};
    tare_status status = check_tokenizer(m, &e);
    if (!status && !m->embed) status = embed_service_new(m->infer.engine.model, m->infer.engine.tokenizer, &m->embed, &e);
    if (!status) {
        const tare_embed_v1 *service = embed_service_extension(m->embed);
        status = service->embed(service->ctx, texts, n, out, &inner);
        if (status) err_set(&e, status, __FILE__, __LINE__, "%s", inner.message);
    }
    return api_finish(status, &e, error);
}

tare_status tare_api_encode(tare_api_model *m, tare_text text, int32_t **ids, int64_t *n, tare_api_error *error)
{
    struct err e = {0};
    OWNED(token_ids_free) struct token_ids found = {0};
    *ids = NULL;
    *n = 0;
    if (check_tokenizer(m, &e) || tokenizer_encode(m->infer.engine.tokenizer, text.data, text.size, &found, &e))
        return api_finish(e.code, &e, error);
    *ids = found.data;
    *n = found.n;
    found = (struct token_ids){0};
    return api_finish(TARE_OK, &e, error);
}

static tare_status decode_ids(const struct infer *m, const int32_t *ids, int64_t n, struct str *text, struct err *e)
{
    TRY(str_add(text, "", 0, e));
    for (int64_t i = 0; i < n; i++)
        if (ids[i] < 0) FAIL(e, TARE_E_RANGE, "token id %d: must be at least 0", ids[i]);
    return tokenizer_decode(m->engine.tokenizer, ids, n, false, text, e);
}

tare_status tare_api_decode(tare_api_model *m, const int32_t *ids, int64_t n, tare_api_text *out, tare_api_error *error)
{
    struct err e = {0};
    struct str text = {0};
    tare_status status = check_tokenizer(m, &e);
    if (!status) status = decode_ids(&m->infer, ids, n, &text, &e);
    return api_finish(give_text(status, &text, out), &e, error);
}
