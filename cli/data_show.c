#include "cli/data_show.h"

#include "base/fs.h"
#include "cli/cli.h"
#include "engine/engine.h"
#include "settle/settle.h"

#include <stdio.h>
#include <string.h>

struct request {
    const char *file, *overrides[256];
    int64_t n, rows;
    bool eval;
};

static tare_status read_request(int argc, char **argv, struct request *r, struct err *e)
{
    *r = (struct request){.file = argv[0], .rows = 3};
    for (int i = 1; i < argc; i++) {
        if (!strncmp(argv[i], "rows=", 5)) {
            if (str_to_int(argv[i] + 5, &r->rows, NULL) || r->rows < 1)
                FAIL(e, TARE_E_CONFIG, "rows=%s: must be 1 or greater", argv[i] + 5);
        } else if (!strncmp(argv[i], "set=", 4)) {
            r->eval = !strcmp(argv[i] + 4, "eval");
            if (!r->eval && strcmp(argv[i] + 4, "train") != 0)
                FAIL(e, TARE_E_CONFIG, "set=%s: must be train (data.train) or eval (data.eval)", argv[i] + 4);
        } else if (r->n < 256 && strchr(argv[i], '=')) {
            r->overrides[r->n++] = argv[i];
        } else {
            if (*argv[i] == '-') TRY(config_hint(argv[i], argv[i], "unknown option; keys are set as section.key=value", e));
            return TARE_E_INVALID;
        }
    }
    return TARE_OK;
}

static tare_status print_row(const struct engine *g, const struct row *row, struct err *e)
{
    OWNED(str_free) struct str text = {0}, line = {0};
    OWNED(token_ids_free) struct token_ids ids = {0};
    TRY(prompts_text(g->prompts, row, &text, e));
    TRY(prompts_encode(g->prompts, row, &ids, e));
    OWNED(json_decrefp)
    json_t *out = json_pack("{s:s, s:s, s:o, s:I, s:o}", "where", row->where, "id", row->id, "prompt",
                            json_stringn(text.data ? text.data : "", (size_t)text.size), "tokens", (json_int_t)ids.n, "answer",
                            row->answer.data ? json_stringn(row->answer.data, (size_t)row->answer.size) : json_null());
    if (!out) FAIL(e, TARE_E_NOMEM, "%s: no memory to print it", row->where);
    TRY(json_print(out, &line, e));
    TRY(str_add(&line, "\n", 1, e));
    return cli_print(&line, e);
}

/* Reads tokenizer and chat template of the model, but not its weights. */
static tare_status show_prompts(const struct config *c, const struct request *r, struct err *e)
{
    OWNED(engine_close) struct engine g = {0};
    if (r->eval && !*c->data.eval) FAIL(e, TARE_E_CONFIG, "%s: data.eval is not set", r->file);
    if (!fs_is_dir(c->model.path)) return config_no_model(c, "its tokenizer and chat template are needed", e);
    engine_init(&g, c, NULL);
    TRY(engine_open(&g, (r->eval ? ENGINE_EVAL : ENGINE_TRAIN) | ENGINE_ANSWERS | ENGINE_PROMPTS, e));
    const struct dataset *d = r->eval ? &g.eval : &g.train;
    for (int64_t i = 0; i < d->n && i < r->rows; i++) TRY(print_row(&g, &d->rows[i], e));
    return TARE_OK;
}

tare_status data_show(int argc, char **argv, struct err *e)
{
    struct request r;
    OWNED(config_free) struct config c = {0};
    TRY(read_request(argc, argv, &r, e));
    TRY(config_load(&c, r.file, r.overrides, r.n, e));
    TRY(settle(&c, false, NULL, e));
    return show_prompts(&c, &r, e);
}
