#include "verify/rows.h"

#include "verify/internal.h"

#include <string.h>

static const struct known {
    const char *plugin;
    enum row_answer answer;
    const char *param; /* one that makes it compare with the answer, unless it is one of `not`; NULL: none does */
    const char * not [2];
    bool reads; /* fields of the row, at little cost: every row can be tried before a run */
} KNOWN[] = {
    {.plugin = "ifeval", .answer = ROW_ANSWER_UNUSED, .reads = true},
    {.plugin = "json", .answer = ROW_ANSWER_UNUSED, .param = "compare", .not = {"schema", "none"}, .reads = true},
    {.plugin = "regex", .answer = ROW_ANSWER_UNUSED, .param = "group", .not = {"", ""}, .reads = true},
    {.plugin = "code", .answer = ROW_ANSWER_UNUSED},
    {.plugin = "format", .answer = ROW_ANSWER_UNUSED},
    {.plugin = "length", .answer = ROW_ANSWER_UNUSED},
    {.plugin = "repetition", .answer = ROW_ANSWER_UNUSED},
    {.plugin = "python", .answer = ROW_ANSWER_UNKNOWN},
    {.plugin = "command", .answer = ROW_ANSWER_UNKNOWN},
    {.plugin = PLUGIN_OF_CALLER, .answer = ROW_ANSWER_UNKNOWN},
};

static const struct known *find(const char *plugin)
{
    for (size_t i = 0; i < sizeof KNOWN / sizeof *KNOWN; i++)
        if (!strcmp(KNOWN[i].plugin, plugin)) return &KNOWN[i];
    return NULL;
}

/* A choice is kept as its number, a text as it is. */
static const char *text_of_param(const tare_param *p, const tare_value *value)
{
    return p->type == TARE_CHOICE ? p->choices[value->i] : value->s ? value->s : "";
}

enum row_answer verify_row_answer(const struct verify *v, int64_t c)
{
    const struct verifier *f = &v->verifiers[c];
    const tare_descriptor *desc = &f->plugin->desc;
    const struct known *known = find(desc->name);
    if (!known) return ROW_ANSWER_COMPARED;
    for (int64_t i = 0; known->param && i < desc->n_params; i++) {
        if (strcmp(desc->params[i].key, known->param) != 0) continue;
        const char *text = text_of_param(&desc->params[i], &f->values[i]);
        if (strcmp(text, known->not [0]) != 0 && strcmp(text, known->not [1]) != 0) return ROW_ANSWER_COMPARED;
    }
    return known->answer;
}

tare_status verify_try_row(struct verify *v, const struct row *row, struct err *e)
{
    static const char PLACE[] = "row ?, sample 0: "; /* of an item without a name; the caller knows the place better */
    struct verify_item item = {.prompt = row->question,
                               .completion = {"-", 1}, /* not blank: ifeval looks at no instruction for a blank one */
                               .answer = row->answer,
                               .row = row->json,
                               .uid = row->uid,
                               .tokens = 1,
                               .finish = -1};
    const tare_status s = verify_items(v, &item, 1, (struct verify_parts){0}, e);
    if (s && !strncmp(e->message, PLACE, sizeof PLACE - 1))
        memmove(e->message, e->message + sizeof PLACE - 1, strlen(e->message) - sizeof PLACE + 2);
    return s;
}

/* Adds those of verifier.plugins that read fields; *compared: one of all compares with the answer. */
static tare_status add_readers(struct verify *v, const struct config *c, char *text, bool *compared, struct err *e)
{
    const struct plugin_search search = {.folder = c->run.plugins};
    const struct plugin_env env = {.seed = (uint64_t)c->run.seed};
    struct verify_list list = {.next = text};
    struct verify_use use;
    *compared = true;
    bool more, any = false, found = false;
    TRY(verify_list_next(&list, &use, &more, e));
    for (; more; found = true) {
        const struct known *known = find(use.plugin);
        if (known && known->reads) {
            TRY(verify_add(v, &use, &search, c->params, &env, e));
            any |= verify_row_answer(v, v->n_verifiers - 1) == ROW_ANSWER_COMPARED;
        }
        any |= !known;
        TRY(verify_list_next(&list, &use, &more, e));
    }
    *compared = any || !found;
    return TARE_OK;
}

static tare_status check_rows(struct verify *v, bool compared, const struct dataset *d, struct err *e)
{
    for (int64_t i = 0; i < d->n; i++) {
        const struct row *row = &d->rows[i];
        if (compared && !row->answer.size)
            FAIL(e, TARE_E_INVALID,
                 "%s: \"answer\" is missing or empty, and a verifier of verifier.plugins compares with it; every row needs one "
                 "(tools/to_jsonl.py takes it from a field of another name)",
                 row->where);
        if (v->n_verifiers && verify_try_row(v, row, e)) return err_prefix(e, "%s", row->where);
    }
    return TARE_OK;
}

tare_status verify_check_rows(const struct config *c, const struct dataset *d, struct err *e)
{
    const struct verify_options options = {.workers = 1, .max_crash_share = 1};
    const size_t size = strlen(c->verifier.plugins) + 1;
    struct err unused;
    OWNED(verify_close_at) struct verify *v = NULL;
    OWNED(mem_free_at) char *text = NULL;
    bool compared;
    TRY(mem_new((int64_t)size, (void **)&text, e));
    memcpy(text, c->verifier.plugins, size);
    TRY(verify_new(&options, &v, e));
    /* verify_open tells what is wrong with the list; the rows are then not tried */
    if (add_readers(v, c, text, &compared, &unused)) {
        verify_close(v);
        v = NULL;
        TRY(verify_new(&options, &v, e));
    }
    return check_rows(v, compared, d, e);
}
