#include "serve/models.h"

#include "base/fs.h"
#include "model/adapter.h"

#include <string.h>

enum { USUAL_BATCH = 32 };

/* Opens the chat template. A model without one still serves completions. */
static tare_status open_chat(struct served *s, const struct config *c, struct err *e)
{
    char folder[FS_PATH];
    TRY(adapter_tokenizer(c->model.path, &c->model, folder, e));
    const tare_status status = chat_load(folder, c->data.chat_template, &s->chat, &s->no_chat);
    if (status == TARE_E_NOT_FOUND && !*c->data.chat_template) return TARE_OK;
    if (status) {
        *e = s->no_chat;
        return status;
    }
    if (*c->data.date) TRY(chat_set_date(s->chat, c->data.date, e));
    return chat_set_kwargs(s->chat, c->data.chat_template_kwargs, e);
}

static tare_status open_session(const struct served_models *m, struct served *s, session_listener *listener, struct err *e)
{
    return session_open(s->engine.sampler, &(struct session_options){.batch = s->batch, .share = m->n, .listener = listener}, e);
}

static tare_status open_model(const struct served_models *m, struct served *s, const struct config *c, session_listener *listener,
                              struct err *e)
{
    engine_init(&s->engine, c, NULL);
    if (s != m->list) s->engine.pool = m->list->engine.pool;
    s->batch = c->rollout.batch ? c->rollout.batch : USUAL_BATCH;
    TRY(engine_open(&s->engine, ENGINE_TOKENIZER | ENGINE_MODEL | ENGINE_SAMPLER, e));
    TRY(open_chat(s, c, e));
    return open_session(m, s, listener, e);
}

tare_status models_open(const struct serve_model *given, int64_t n, session_listener *listener, struct served_models *out,
                        struct err *e)
{
    TRY(mem_new(n * (int64_t)sizeof *out->list, (void **)&out->list, e));
    out->n = n;
    for (int64_t i = 0; i < n; i++) engine_init(&out->list[i].engine, &given[i].config, NULL);
    for (int64_t i = 0; i < n; i++) {
        struct served *s = &out->list[i];
        s->name = given[i].name;
        if (open_model(out, s, &given[i].config, listener, e)) return err_prefix(e, "model '%s'", s->name);
        s->now = session_state(s->engine.sampler);
    }
    return TARE_OK;
}

void models_close(struct served_models *m)
{
    for (int64_t i = m->n; i-- > 0;) {
        struct served *s = &m->list[i];
        if (s->engine.sampler) session_close(s->engine.sampler);
        chat_free(s->chat);
        if (i) s->engine.pool = NULL; /* the pool belongs to the first model */
        engine_close(&s->engine);
    }
    mem_free(m->list);
    *m = (struct served_models){0};
}

struct served *models_find(const struct served_models *m, const char *name)
{
    for (int64_t i = 0; i < m->n; i++)
        if (!strcmp(m->list[i].name, name)) return &m->list[i];
    return NULL;
}

tare_status models_restart(const struct served_models *m, struct served *s, session_listener *listener, struct err *e)
{
    session_close(s->engine.sampler);
    return open_session(m, s, listener, e);
}
