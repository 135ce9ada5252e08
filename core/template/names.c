/* Collects the variables that a template reads but that are never defined. Jinja renders them as
 * empty, so a misspelt name would go unnoticed. */
#include "template/internal.h"

#include <string.h>

enum { MAX_DEPTH = 1000 }; /* as in rendering, which refuses deeper nesting */

struct name {
    struct name *next;
    tare_text text;
};

struct names {
    struct arena arena;
    /* names defined by the template or tested before use; names read by it */
    struct name *given, *read;
    int depth;
    struct err *e;
};

static bool contains_name(const struct name *list, tare_text text)
{
    for (; list; list = list->next)
        if (list->text.size == text.size && !memcmp(list->text.data, text.data, (size_t)text.size)) return true;
    return false;
}

static tare_status note_name(struct names *w, struct name **list, tare_text text)
{
    struct name *n;
    if (!text.data || contains_name(*list, text)) return TARE_OK;
    TRY(arena_new(&w->arena, &n, 1, w->e));
    n->text = text;
    while (*list) list = &(*list)->next;
    *list = n;
    return TARE_OK;
}

/* Returns whether the node is "x is defined" or "x | default(...)": the template expects that x may
 * be missing. */
static bool asks_first(const struct node *n)
{
    static const char *const ASKING[] = {"defined", "undefined", "default", "d"};
    if ((n->kind != E_TEST && n->kind != E_FILTER) || !n->a || n->a->kind != E_NAME) return false;
    for (size_t i = 0; i < sizeof ASKING / sizeof *ASKING; i++)
        if (!strcmp(n->builtin->name, ASKING[i])) return true;
    return false;
}

/* Notes the variables that a statement assigns. */
static tare_status note_targets(struct names *w, const struct node *n)
{
    for (; n; n = n->next) {
        TRY(note_name(w, &w->given, n->kind == E_NAME ? n->name : (tare_text){0}));
        TRY(note_targets(w, n->args));
    }
    return TARE_OK;
}

static tare_status visit_node(struct names *w, const struct node *n)
{
    if (n->kind == E_NAME) return note_name(w, &w->read, n->name);
    if (asks_first(n)) return note_name(w, &w->given, n->a->name);
    TRY(note_targets(w, n->target));
    if (n->kind == S_FOR) return note_name(w, &w->given, (tare_text){"loop", 4});
    const bool sets = n->kind == S_MACRO || ((n->kind == S_SET || n->kind == S_SET_BLOCK) && !n->name2.data);
    return sets ? note_name(w, &w->given, n->name) : TARE_OK;
}

static tare_status walk_nodes(struct names *w, const struct node *n)
{
    if (w->depth == MAX_DEPTH) return TARE_OK;
    w->depth++;
    for (; n; n = n->next) {
        const struct node *const parts[] = {n->a, n->b, n->c, n->body, n->otherwise, n->args};
        TRY(visit_node(w, n));
        for (size_t i = 0; i < sizeof parts / sizeof *parts; i++) TRY(walk_nodes(w, parts[i]));
    }
    w->depth--;
    return TARE_OK;
}

static bool is_variable(const char *const *variables, tare_text name)
{
    for (; *variables; variables++)
        if (value_text_is(name, *variables)) return true;
    return false;
}

tare_status template_unknown(const struct template *t, const char *const *variables, struct str *out, struct err *e)
{
    struct names w = {.e = e};
    arena_init(&w.arena, "names of a template");
    tare_status status = walk_nodes(&w, t->body);
    const int64_t begin = out->size;
    for (const struct name *n = w.read; n && !status; n = n->next)
        if (!contains_name(w.given, n->text) && !is_variable(variables, n->text) && !template_find_function(n->text))
            status = str_addf(out, e, "%s%.*s", out->size > begin ? ", " : "", (int)n->text.size, n->text.data);
    arena_free(&w.arena);
    return status;
}
