#include "cli/data_show.h"

#include "base/fs.h"
#include "cli/cli.h"
#include "engine/engine.h"
#include "settle/settle.h"

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
                FAIL(e, TARE_E_CONFIG, "rows=%s: how many rows, 1 or more", argv[i] + 5);
        } else if (!strncmp(argv[i], "set=", 4)) {
            r->eval = !strcmp(argv[i] + 4, "eval");
            if (!r->eval && strcmp(argv[i] + 4, "train") != 0)
                FAIL(e, TARE_E_CONFIG, "set=%s: train (data.train) or eval (data.eval)", argv[i] + 4);
        } else if (r->n < 256 && strchr(argv[i], '=')) {
            r->overrides[r->n++] = argv[i];
        } else {
            return TARE_E_INVALID;
        }
    }
    return TARE_OK;
}

static tare_status print_row(const struct engine *g, const struct row *row, struct err *e)
{
    struct str text = {0}, line = {0};
    struct token_ids ids = {0};
    json_t *out = NULL;
    tare_status status = prompts_text(g->prompts, row, &text, e);
    if (!status) status = prompts_encode(g->prompts, row, &ids, e);
    if (status) goto end;
    out = json_pack("{s:s, s:s, s:o, s:I, s:o}", "where", row->where, "id", row->id, "prompt",
                    json_stringn(text.data ? text.data : "", (size_t)text.size), "tokens", (json_int_t)ids.n, "answer",
                    row->answer.data ? json_stringn(row->answer.data, (size_t)row->answer.size) : json_null());
    if (!out) FAIL_TO(status, end, e, TARE_E_NOMEM, "%s: no memory to print it", row->where);
    TRY_TO(status, end, json_print(out, &line, e));
    TRY_TO(status, end, str_add(&line, "\n", 1, e));
    status = cli_print(&line, e);
end:
    json_decref(out);
    token_ids_free(&ids);
    str_free(&text);
    str_free(&line);
    return status;
}

/* The model's weights are not read: tokenizer and chat template do. */
static tare_status show(const struct config *c, const struct request *r, struct err *e)
{
    struct engine g;
    if (r->eval && !*c->data.eval) FAIL(e, TARE_E_CONFIG, "%s: data.eval is not set", r->file);
    if (!fs_is_dir(c->model.path)) return config_no_model(c, "its tokenizer and chat template are needed", e);
    engine_init(&g, c, NULL);
    tare_status status = engine_open(&g, (r->eval ? ENGINE_EVAL : ENGINE_TRAIN) | ENGINE_ANSWERS | ENGINE_PROMPTS, e);
    const struct dataset *d = r->eval ? &g.eval : &g.train;
    for (int64_t i = 0; i < d->n && i < r->rows && !status; i++) status = print_row(&g, &d->rows[i], e);
    engine_close(&g);
    return status;
}

tare_status data_show(int argc, char **argv, struct err *e)
{
    struct request r;
    struct config c;
    TRY(read_request(argc, argv, &r, e));
    TRY(config_load(&c, r.file, r.overrides, r.n, e));
    tare_status status = settle(&c, false, NULL, e);
    if (!status) status = show(&c, &r, e);
    config_free(&c);
    return status;
}
