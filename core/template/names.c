/* The variables that a template reads and that nobody gives it: Jinja takes them for empty, so a misspelt one goes unnoticed. */
#include "template/internal.h"

#include <string.h>

enum { MAX_DEPTH = 1000 }; /* as in rendering, which refuses what is deeper */

struct name {
    struct name *next;
    tare_text text;
};

struct names {
    struct arena arena;
    struct name *given, *read; /* set by the template, or asked for with care; read by it */
    int depth;
    struct err *e;
};

static bool among(const struct name *list, tare_text text)
{
    for (; list; list = list->next)
        if (list->text.size == text.size && !memcmp(list->text.data, text.data, (size_t)text.size)) return true;
    return false;
}

static tare_status note(struct names *w, struct name **list, tare_text text)
{
    struct name *n;
    if (!text.data || among(*list, text)) return TARE_OK;
    TRY(arena_new(&w->arena, &n, 1, w->e));
    n->text = text;
    while (*list) list = &(*list)->next;
    *list = n;
    return TARE_OK;
}

/* "x is defined" and "x | default(...)": the template knows that x may be missing. */
static bool asks_first(const struct node *n)
{
    static const char *const ASKING[] = {"defined", "undefined", "default", "d"};
    if ((n->kind != E_TEST && n->kind != E_FILTER) || !n->a || n->a->kind != E_NAME) return false;
    for (size_t i = 0; i < sizeof ASKING / sizeof *ASKING; i++)
        if (!strcmp(n->builtin->name, ASKING[i])) return true;
    return false;
}

static tare_status visit(struct names *w, const struct node *n)
{
    if (n->kind == E_NAME) return note(w, &w->read, n->name);
    if (asks_first(n)) return note(w, &w->given, n->a->name);
    if (n->kind == S_FOR) {
        TRY(note(w, &w->given, (tare_text){"loop", 4}));
        TRY(note(w, &w->given, n->name));
        return note(w, &w->given, n->name2);
    }
    const bool sets = (n->kind == S_SET || n->kind == S_SET_BLOCK) && !n->name2.data;
    return sets ? note(w, &w->given, n->name) : TARE_OK;
}

static tare_status walk(struct names *w, const struct node *n)
{
    if (w->depth == MAX_DEPTH) return TARE_OK;
    w->depth++;
    for (; n; n = n->next) {
        const struct node *const parts[] = {n->a, n->b, n->c, n->body, n->otherwise, n->args};
        TRY(visit(w, n));
        for (size_t i = 0; i < sizeof parts / sizeof *parts; i++) TRY(walk(w, parts[i]));
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
    tare_status status = walk(&w, t->body);
    const int64_t begin = out->size;
    for (const struct name *n = w.read; n && !status; n = n->next)
        if (!among(w.given, n->text) && !is_variable(variables, n->text))
            status = str_addf(out, e, "%s%.*s", out->size > begin ? ", " : "", (int)n->text.size, n->text.data);
    arena_free(&w.arena);
    return status;
}
