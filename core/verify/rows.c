#include "verify/rows.h"

#include "base/json.h"
#include "verify/internal.h"

#include <string.h>

enum row_answer verify_row_answer(const struct verify *v, int64_t c)
{
    const uint32_t uses = v->verifiers[c].uses;
    return uses & TARE_USES_ANSWER ? ROW_ANSWER_COMPARED : uses & TARE_USES_MAYBE_ANSWER ? ROW_ANSWER_UNKNOWN : ROW_ANSWER_UNUSED;
}

tare_status verify_try_row(struct verify *v, const struct row *row, struct err *e)
{
    /* prefix for an item without a name; the caller knows the place */
    static const char PLACE[] = "row ?, sample 0: ";
    struct verify_item item = {.prompt = row->question,
                               /* not blank: ifeval checks no instruction on a blank completion */
                               .completion = {"-", 1},
                               .answer = row->answer,
                               .row = row->json,
                               .uid = row->uid,
                               .tokens = 1};
    const tare_status s = verify_items(v, &item, 1, (struct verify_parts){0}, e);
    if (s && !strncmp(e->message, PLACE, sizeof PLACE - 1))
        memmove(e->message, e->message + sizeof PLACE - 1, strlen(e->message) - sizeof PLACE + 2);
    return s;
}

/* Reads which fields an entry of verifier.plugins uses, without an instance: `python` and `command`
 * would start a program. */
static tare_status uses_of(struct verify *v, const struct verify_use *use, const struct plugin_search *search,
                           const struct config_param *settings, uint32_t *out, struct err *e)
{
    const struct plugin *p;
    const tare_value *values;
    TRY(plugin_open(use->plugin, TARE_KIND_VERIFIER, search, &p, e));
    TRY(plugin_params_as(p, use->as ? use->as : p->desc.name, settings, &v->arena, &values, e));
    return plugin_uses(p, values, out, e);
}

/* Adds the verifiers that can refuse a row. *compared: at least one verifier compares with the
 * answer. */
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
        uint32_t uses;
        TRY(uses_of(v, &use, &search, c->params, &uses, e));
        if (uses & TARE_USES_ROW) TRY(verify_add(v, &use, &search, c->params, &env, e));
        any |= (uses & TARE_USES_ANSWER) != 0;
        TRY(verify_list_next(&list, &use, &more, e));
    }
    *compared = any || (!found && !*c->environment.plugin);
    return TARE_OK;
}

/* *found: a verifier of verifier.plugins runs a program of the user. */
static tare_status find_program(struct verify *v, const struct config *c, char *text, bool *found, struct err *e)
{
    const struct plugin_search search = {.folder = c->run.plugins};
    struct verify_list list = {.next = text};
    struct verify_use use;
    bool more;
    *found = false;
    TRY(verify_list_next(&list, &use, &more, e));
    while (more) {
        uint32_t uses;
        TRY(uses_of(v, &use, &search, c->params, &uses, e));
        *found |= (uses & TARE_USES_MAYBE_ANSWER) != 0;
        TRY(verify_list_next(&list, &use, &more, e));
    }
    return TARE_OK;
}

static tare_status add_fields(json_t *all, const char *key, const struct dataset *d, struct err *e)
{
    OWNED(json_decrefp) json_t *seen = json_object();
    json_t *names = json_array();
    const char *name;
    json_t *value;
    for (int64_t i = 0; i < d->n; i++) {
        OWNED(json_decrefp) json_t *row = NULL;
        if (!d->rows[i].json.size) continue;
        TRY(json_parse(d->rows[i].json.data, d->rows[i].json.size, d->rows[i].where, &row, e));
        json_object_update_missing(seen, row);
    }
    json_object_foreach(seen, name, value) json_array_append_new(names, json_string(name));
    if (json_object_set_new(all, key, names)) FAIL(e, TARE_E_NOMEM, "%s: no memory for the names of its fields", key);
    return TARE_OK;
}

tare_status verify_row_fields(const struct config *c, const struct dataset *const data[2], struct arena *a, const char **out,
                              struct err *e)
{
    static const char *const KEYS[] = {"data.train", "data.eval"};
    const struct verify_options options = {.workers = 1, .max_crash_share = 1};
    const size_t size = strlen(c->verifier.plugins) + 1;
    struct err unused;
    OWNED(verify_close_at) struct verify *v = NULL;
    OWNED(mem_free_at) char *text = NULL;
    OWNED(json_decrefp) json_t *all = json_object();
    OWNED(str_free) struct str line = {0};
    bool found;
    *out = NULL;
    TRY(mem_new((int64_t)size, (void **)&text, e));
    memcpy(text, c->verifier.plugins, size);
    TRY(verify_new(&options, &v, e));
    /* verify_open reports errors in the list */
    if (find_program(v, c, text, &found, &unused) || !found) return TARE_OK;
    for (int i = 0; i < 2; i++)
        if (data[i] && data[i]->n) TRY(add_fields(all, KEYS[i], data[i], e));
    TRY(json_print(all, &line, e));
    return arena_strdup(a, line.data, line.size, (char **)(uintptr_t)out, e);
}

tare_status verify_find_unrepeatable(const struct config *c, struct arena *a, const char **out, struct err *e)
{
    const struct plugin_search search = {.folder = c->run.plugins};
    struct verify_list list = {0};
    struct verify_use use;
    bool more;
    *out = NULL;
    TRY(arena_strdup(a, c->verifier.plugins, -1, &list.next, e));
    TRY(verify_list_next(&list, &use, &more, e));
    while (more && !*out) {
        const struct plugin *p;
        TRY(plugin_open(use.plugin, TARE_KIND_VERIFIER, &search, &p, e));
        if (!(p->verifier->flags & TARE_VERIFIER_REPEATS)) *out = use.as ? use.as : p->desc.name;
        TRY(verify_list_next(&list, &use, &more, e));
    }
    return TARE_OK;
}

static tare_status check_rows(struct verify *v, bool compared, const struct dataset *d, struct err *e)
{
    for (int64_t i = 0; i < d->n; i++) {
        const struct row *row = &d->rows[i];
        if (compared && !row->answer.size)
            FAIL(
                e, TARE_E_INVALID,
                "%s: \"answer\" is missing or empty, and a verifier of verifier.plugins compares with it; add one to every row (tools/to_jsonl.py converts a field with another name)",
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
    /* verify_open reports errors in the list; the rows are then not checked */
    if (add_readers(v, c, text, &compared, &unused)) {
        verify_close(v);
        v = NULL;
        TRY(verify_new(&options, &v, e));
    }
    return check_rows(v, compared, d, e);
}
