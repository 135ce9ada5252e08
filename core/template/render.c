/* Renders a template by walking its tree. Work, memory, output and depth are bounded, so every
 * template terminates. */
#include "template/internal.h"

#include <stdarg.h>
#include <string.h>

enum { MAX_WORK = 5000000, MAX_MEMORY = 1 << 27, MAX_OUTPUT = 1 << 27, MAX_DEPTH = 1000 };

static tare_status eval_node(struct render *r, const struct node *n, struct value *out);
static tare_status run_nodes(struct render *r, const struct node *n);

enum { FLOW_BREAK = 1000, FLOW_CONTINUE }; /* status values that leave a loop's body */

tare_status render_fail(struct render *r, int line, const char *format, ...)
{
    char message[600];
    va_list args;
    va_start(args, format);
    vsnprintf(message, sizeof message, format, args);
    va_end(args);
    FAIL(r->e, TARE_E_INVALID, "%s:%d: %s", r->t->where, line, message);
}

tare_status render_spend(struct render *r, int line, int64_t work)
{
    r->work += work;
    return r->work > MAX_WORK
               ? render_fail(r, line, "the template was stopped after %d steps; check it for endless loops", MAX_WORK)
               : TARE_OK;
}

tare_status render_take(struct render *r, int line, int64_t n, void **out)
{
    if (n < 0 || n > MAX_MEMORY || r->arena.used + n > MAX_MEMORY)
        return render_fail(r, line, "the template was stopped after %d MiB of memory", MAX_MEMORY >> 20);
    TRY(render_spend(r, line, n / 64));
    return arena_push(&r->arena, n, out, r->e);
}

/* ---------------------------------------------------------------- names */

static struct value look_up(const struct render *r, tare_text name)
{
    for (int k = r->scope.n - 1; k >= r->scope.base; k--) {
        const struct value *v = value_dict_find(&r->scope.names[k], name);
        if (v) return *v;
    }
    const struct value *top = r->scope.base ? value_dict_find(&r->scope.names[0], name) : NULL;
    if (top) return *top;
    const struct builtin *function = template_find_function(name);
    if (function) return (struct value){.type = V_FUNCTION, .function = function};
    return (struct value){.type = V_UNDEFINED, .s = name};
}

static tare_status assign_name(struct render *r, int line, tare_text name, struct value v)
{
    return value_dict_put(r, line, &r->scope.names[r->scope.n - 1], name, v);
}

static tare_status enter_scope(struct render *r, int line)
{
    if (r->scope.n == MAX_FRAMES)
        return render_fail(r, line, "loops and macros are nested more than %d levels deep; check for endless recursion",
                           MAX_FRAMES - 1);
    r->scope.names[r->scope.n++] = (struct dict){0};
    return TARE_OK;
}

/* ---------------------------------------------------------------- expressions */

int template_param_index(const struct builtin *b, tare_text key)
{
    int k = 0;
    for (const char *s = b->params; *s; k++) {
        const size_t n = strcspn(s, ",");
        if ((int64_t)n == key.size && !memcmp(s, key.data, n)) return k;
        s += n + (s[n] == ',');
    }
    return -1;
}

static int param_count(const struct builtin *b)
{
    int n = *b->params != 0;
    for (const char *s = b->params; *s; s++) n += *s == ',';
    return n;
}

tare_status template_call_builtin(struct call *c, const struct builtin *b, struct value *out)
{
    int given = 0;
    while (given < MAX_ARGS && c->arg[given]) given++;
    if (given < b->required)
        return render_fail(c->r, c->line, "%s needs %d argument%s", b->name, b->required, b->required > 1 ? "s" : "");
    return b->call(c, out);
}

/* ---------------------------------------------------------------- macros */

/* Evaluates the arguments of a call into the variables of the macro. */
static tare_status take_arguments(struct render *r, const struct node *call, const struct node *macro, struct dict *given)
{
    const struct node *next = macro->target;
    for (const struct node *a = call->args; a; a = a->next) {
        struct value v;
        const struct node *to = a->name2.data ? macro->target : next;
        TRY(eval_node(r, a, &v));
        while (a->name2.data && to &&
               (to->name.size != a->name2.size || memcmp(to->name.data, a->name2.data, (size_t)to->name.size)))
            to = to->next;
        if (!to && a->name2.data)
            return render_fail(r, call->line, "the macro '%.*s' has no parameter '%.*s'", (int)macro->name.size, macro->name.data,
                               (int)a->name2.size, a->name2.data);
        if (!to)
            return render_fail(r, call->line, "the macro '%.*s' has fewer parameters than this call has arguments",
                               (int)macro->name.size, macro->name.data);
        if (value_dict_find(given, to->name))
            return render_fail(r, call->line, "the parameter '%.*s' is given twice", (int)to->name.size, to->name.data);
        TRY(value_dict_put(r, call->line, given, to->name, v));
        if (!a->name2.data) next = next->next;
    }
    return TARE_OK;
}

/* Sets the parameters that the call omitted to their defaults, or to undefined. */
static tare_status set_defaults(struct render *r, const struct node *macro)
{
    int64_t without = 0; /* parameters in front of the first that has a default */
    for (const struct node *p = macro->target; p; p = p->next) without++;
    for (const struct node *d = macro->args; d; d = d->next) without--;
    const struct node *value = macro->args;
    for (const struct node *p = macro->target; p; p = p->next, without--) {
        struct value v = {.type = V_UNDEFINED, .s = p->name};
        if (!value_dict_find(&r->scope.names[r->scope.base], p->name)) {
            if (without <= 0) TRY(eval_node(r, value, &v));
            TRY(assign_name(r, macro->line, p->name, v));
        }
        if (without <= 0) value = value->next;
    }
    return TARE_OK;
}

/* Renders a macro. It sees its parameters and the variables of the template's top level. */
static tare_status call_macro(struct render *r, const struct node *call, const struct node *macro, struct value *out)
{
    OWNED(str_free) struct str text = {0};
    struct str *const outer = r->out;
    const int base = r->scope.base;
    struct dict given = {0};
    TRY(take_arguments(r, call, macro, &given));
    TRY(enter_scope(r, call->line));
    r->scope.base = r->scope.n - 1;
    r->scope.names[r->scope.base] = given;
    TRY(set_defaults(r, macro));
    r->out = &text;
    const tare_status status = run_nodes(r, macro->body);
    r->out = outer;
    r->scope.n--;
    r->scope.base = base;
    TRY(status);
    return template_keep_text(r, call->line, &text, out);
}

/* ---------------------------------------------------------------- calls */

/* Returns the function that the name of a call has now: a variable may hide it, or hold another. */
static tare_status find_called(struct render *r, const struct node *n, struct value v, struct call *c, const struct builtin **out)
{
    static const struct builtin joiner = {"joiner", template_call_joiner, "", 0};
    *out = v.type == V_FUNCTION ? v.function : &joiner;
    c->self = v;
    if (v.type == V_FUNCTION || (v.type == V_DICT && v.dict->object == OBJECT_JOINER)) return TARE_OK;
    if (v.type == V_UNDEFINED) return render_fail(r, n->line, "'%.*s' is undefined", (int)n->name.size, n->name.data);
    return render_fail(r, n->line, "'%.*s' is %s here and cannot be called", (int)n->name.size, n->name.data, value_type_name(v));
}

static tare_status call_node(struct render *r, const struct node *n, struct value *out)
{
    struct call c = {.r = r, .line = n->line};
    const struct builtin *b = n->builtin;
    struct value named;
    if (n->kind == E_FUNCTION) {
        const struct value called = look_up(r, n->name);
        if (called.type == V_MACRO) return call_macro(r, n, called.macro, out);
        TRY(find_called(r, n, called, &c, &b));
    }
    const bool any = !strcmp(b->params, "*");
    const int most = any ? MAX_ARGS : param_count(b);
    if (n->a) TRY(eval_node(r, n->a, &c.self));
    if (n->kind == E_METHOD && template_method_of_text(b) && c.self.type != V_STRING)
        return render_fail(r, n->line, "%s has no method %s(), which strings have", value_type_name(c.self), b->name);
    if (any) {
        TRY(value_new_dict(r, n->line, &named));
        c.named = named.dict;
    }
    int k = 0;
    for (const struct node *a = n->args; a; a = a->next) {
        struct value v;
        TRY(eval_node(r, a, &v));
        if (a->name2.data && any) {
            TRY(value_dict_put(r, n->line, c.named, a->name2, v));
            continue;
        }
        const int at = a->name2.data ? template_param_index(b, a->name2) : k++;
        if (at < 0 || at >= most || at >= MAX_ARGS) return render_fail(r, n->line, "%s has too many arguments", b->name);
        c.rest[at] = v;
        c.arg[at] = &c.rest[at];
    }
    return template_call_builtin(&c, b, out);
}

static tare_status eval_list(struct render *r, const struct node *n, struct value *out)
{
    int64_t count = 0;
    for (const struct node *a = n->args; a; a = a->next) count++;
    TRY(value_new_list(r, n->line, count, out));
    out->list->tuple = n->tuple;
    const struct node *a = n->args;
    for (int64_t i = 0; i < count; i++, a = a->next) TRY(eval_node(r, a, &out->list->items[i]));
    return TARE_OK;
}

static tare_status eval_dict(struct render *r, const struct node *n, struct value *out)
{
    TRY(value_new_dict(r, n->line, out));
    for (const struct node *a = n->args; a; a = a->next->next) {
        struct value key, v;
        TRY(eval_node(r, a, &key));
        TRY(eval_node(r, a->next, &v));
        if (key.type != V_STRING) return render_fail(r, n->line, "%s as the key of a dict is not supported", value_type_name(key));
        TRY(value_dict_put(r, n->line, out->dict, key.s, v));
    }
    return TARE_OK;
}

static tare_status eval_slice(struct render *r, const struct node *n, struct value *out)
{
    struct value v, bound[3] = {{.type = V_NONE}, {.type = V_NONE}, {.type = V_NONE}};
    const struct node *parts[3] = {n->b, n->c, n->body};
    TRY(eval_node(r, n->a, &v));
    for (int k = 0; k < 3; k++)
        if (parts[k]) TRY(eval_node(r, parts[k], &bound[k]));
    return value_get_slice(r, n->line, v, bound, out);
}

static tare_status eval_compare(struct render *r, const struct node *n, struct value *out)
{
    struct value left, right;
    TRY(eval_node(r, n->a, &left));
    for (const struct node *link = n->args; link; link = link->next) {
        TRY(eval_node(r, link->a, &right));
        TRY(value_binary(r, n->line, link->op, left, right, out));
        if (!value_truthy(*out)) break;
        left = right;
    }
    return TARE_OK;
}

static tare_status eval_cond(struct render *r, const struct node *n, struct value *out)
{
    if (!n->b) return eval_node(r, n->a, out); /* an argument */
    struct value condition;
    TRY(eval_node(r, n->b, &condition));
    if (value_truthy(condition)) return eval_node(r, n->a, out);
    if (n->c) return eval_node(r, n->c, out);
    *out = (struct value){.type = V_UNDEFINED, .s = {"the value of an if without else", 31}};
    return TARE_OK;
}

static tare_status eval_negate(struct render *r, const struct node *n, struct value *out)
{
    struct value v;
    TRY(eval_node(r, n->a, &v));
    if (v.type == V_FLOAT) return *out = (struct value){.type = V_FLOAT, .f = -v.f}, TARE_OK;
    return value_binary(r, n->line, OP_SUB, value_int(0), v, out);
}

static tare_status eval_kind(struct render *r, const struct node *n, struct value *out)
{
    struct value a, b;
    switch (n->kind) {
    case E_CONST:
        *out = n->constant;
        return TARE_OK;
    case E_CAPTURED:
        *out = r->captured;
        return TARE_OK;
    case E_NAME:
        *out = look_up(r, n->name);
        return TARE_OK;
    case E_LIST:
        return eval_list(r, n, out);
    case E_DICT:
        return eval_dict(r, n, out);
    case E_ATTRIBUTE:
        TRY(eval_node(r, n->a, &a));
        if (value_is_plain_dict(a) && template_is_dict_method(n->name))
            return render_fail(r, n->line, "'.%.*s' of a dict is its method; write %.*s() to call it, or ['%.*s'] for its entry",
                               (int)n->name.size, n->name.data, (int)n->name.size, n->name.data, (int)n->name.size, n->name.data);
        return value_get_attribute(r, n->line, a, n->name, out);
    case E_ITEM:
        TRY(eval_node(r, n->a, &a));
        TRY(eval_node(r, n->b, &b));
        return value_get_item(r, n->line, a, b, out);
    case E_SLICE:
        return eval_slice(r, n, out);
    case E_FUNCTION:
    case E_METHOD:
    case E_FILTER:
    case E_TEST:
        return call_node(r, n, out);
    case E_NOT:
        TRY(eval_node(r, n->a, &a));
        *out = value_bool(!value_truthy(a));
        return TARE_OK;
    case E_NEGATE:
        return eval_negate(r, n, out);
    case E_AND:
    case E_OR:
        TRY(eval_node(r, n->a, out));
        return value_truthy(*out) == (n->kind == E_AND) ? eval_node(r, n->b, out) : TARE_OK;
    case E_BINARY:
        TRY(eval_node(r, n->a, &a));
        TRY(eval_node(r, n->b, &b));
        return value_binary(r, n->line, n->op, a, b, out);
    case E_COMPARE:
        return eval_compare(r, n, out);
    case E_COND:
        return eval_cond(r, n, out);
    default:
        return render_fail(r, n->line, "a statement was found where an expression is required");
    }
}

/* Counts expressions and statements, which bounds the stack in the recursion of macros, too. */
static tare_status go_deeper(struct render *r, int line)
{
    return ++r->depth > MAX_DEPTH ? render_fail(r, line, "nested more than %d levels deep; check for endless recursion", MAX_DEPTH)
                                  : TARE_OK;
}

static tare_status eval_node(struct render *r, const struct node *n, struct value *out)
{
    TRY(render_spend(r, n->line, 1));
    TRY(go_deeper(r, n->line));
    *out = (struct value){0};
    const tare_status status = eval_kind(r, n, out);
    r->depth--;
    return status;
}

/* ---------------------------------------------------------------- statements */

static tare_status put_entry(struct render *r, int line, struct dict *d, const char *key, struct value v)
{
    return value_dict_put(r, line, d, (tare_text){key, (int64_t)strlen(key)}, v);
}

static tare_status set_loop(struct render *r, const struct node *n, const struct list *items, int64_t i, struct value *changed)
{
    struct value loop;
    const int64_t count = items->n;
    TRY(value_new_dict(r, n->line, &loop));
    TRY(put_entry(r, n->line, loop.dict, "index", value_int(i + 1)));
    TRY(put_entry(r, n->line, loop.dict, "index0", value_int(i)));
    TRY(put_entry(r, n->line, loop.dict, "revindex", value_int(count - i)));
    TRY(put_entry(r, n->line, loop.dict, "revindex0", value_int(count - i - 1)));
    TRY(put_entry(r, n->line, loop.dict, "first", value_bool(i == 0)));
    TRY(put_entry(r, n->line, loop.dict, "last", value_bool(i == count - 1)));
    TRY(put_entry(r, n->line, loop.dict, "length", value_int(count)));
    TRY(put_entry(r, n->line, loop.dict, "depth", value_int(1))); /* counts recursive loops only */
    TRY(put_entry(r, n->line, loop.dict, "depth0", value_int(0)));
    if (i > 0) TRY(put_entry(r, n->line, loop.dict, "previtem", items->items[i - 1]));
    if (i + 1 < count) TRY(put_entry(r, n->line, loop.dict, "nextitem", items->items[i + 1]));
    loop.dict->loop = true;
    loop.dict->changed = changed;
    return assign_name(r, n->line, (tare_text){"loop", 4}, loop);
}

/* Assigns to a variable, or unpacks the value into several. */
static tare_status set_target(struct render *r, const struct node *target, struct value v)
{
    if (target->kind == E_NAME) return assign_name(r, target->line, target->name, v);
    struct list *items;
    int64_t n = 0;
    TRY(value_iterate(r, target->line, v, &items));
    for (const struct node *t = target->args; t; t = t->next) n++;
    if (items->n != n || v.type == V_UNDEFINED)
        return render_fail(r, target->line, "an item of %lld values cannot be unpacked into %lld variables", (long long)items->n,
                           (long long)n);
    n = 0;
    for (const struct node *t = target->args; t; t = t->next) TRY(set_target(r, t, items->items[n++]));
    return TARE_OK;
}

static tare_status filter_items(struct render *r, const struct node *n, struct list **items)
{
    struct value kept, yes;
    TRY(value_new_list(r, n->line, (*items)->n, &kept));
    kept.list->n = 0;
    for (int64_t i = 0; i < (*items)->n; i++) {
        r->scope.names[r->scope.n - 1].n = 0;
        TRY(set_target(r, n->target, (*items)->items[i]));
        TRY(eval_node(r, n->b, &yes));
        if (value_truthy(yes)) kept.list->items[kept.list->n++] = (*items)->items[i];
    }
    *items = kept.list;
    return TARE_OK;
}

static tare_status run_for(struct render *r, const struct node *n)
{
    struct value over;
    struct list *items;
    TRY(eval_node(r, n->a, &over));
    TRY(value_iterate(r, n->line, over, &items));
    TRY(enter_scope(r, n->line));
    if (n->b) TRY(filter_items(r, n, &items));
    tare_status status = TARE_OK;
    /* no iteration ran to its end: as in jinja2, `else` also runs if all were left by break or
     * continue */
    bool none = true;
    struct value changed = {0}; /* undefined: loop.changed() was not called yet */
    for (int64_t i = 0; i < items->n; i++) {
        TRY(render_spend(r, n->line, 1));
        /* variables set in an iteration are dropped before the next */
        r->scope.names[r->scope.n - 1].n = 0;
        TRY(set_loop(r, n, items, i, &changed));
        TRY(set_target(r, n->target, items->items[i]));
        status = run_nodes(r, n->body);
        if (status == FLOW_BREAK) break;
        if (status && status != FLOW_CONTINUE) return status;
        none = none && status;
    }
    r->scope.names[r->scope.n - 1].n = 0;
    status = none ? run_nodes(r, n->otherwise) : TARE_OK;
    r->scope.n--;
    return status;
}

/* Renders a block into r->captured. Variables set inside it are dropped after it. */
static tare_status capture_block(struct render *r, const struct node *n)
{
    OWNED(str_free) struct str text = {0};
    struct str *outer = r->out;
    TRY(enter_scope(r, n->line));
    r->out = &text;
    const tare_status status = run_nodes(r, n->body);
    r->out = outer;
    r->scope.n--;
    TRY(status);
    return template_keep_text(r, n->line, &text, &r->captured);
}

static tare_status run_filter(struct render *r, const struct node *n)
{
    struct value v;
    TRY(capture_block(r, n));
    TRY(eval_node(r, n->a, &v));
    return print_text(r, n->line, v, r->out);
}

static tare_status run_with(struct render *r, const struct node *n)
{
    struct value values;
    int64_t k = 0;
    for (const struct node *a = n->args; a; a = a->next) k++;
    TRY(value_new_list(r, n->line, k, &values));
    k = 0;
    for (const struct node *a = n->args; a; a = a->next) TRY(eval_node(r, a, &values.list->items[k++])); /* outside */
    TRY(enter_scope(r, n->line));
    k = 0;
    tare_status status = TARE_OK;
    for (const struct node *t = n->target; t && !status; t = t->next) status = set_target(r, t, values.list->items[k++]);
    if (!status) status = run_nodes(r, n->body);
    r->scope.n--;
    return status;
}

static tare_status run_set(struct render *r, const struct node *n)
{
    struct value v;
    if (n->kind == S_SET_BLOCK) TRY(capture_block(r, n));
    TRY(eval_node(r, n->a, &v));
    if (n->target) return set_target(r, n->target, v);
    const struct value target = look_up(r, n->name);
    if (target.type != V_DICT || !target.dict->namespace || target.dict->object)
        return render_fail(r, n->line, "'%.*s' is not a namespace, so its attributes cannot be set", (int)n->name.size,
                           n->name.data);
    return value_dict_put(r, n->line, target.dict, n->name2, v);
}

static tare_status run_one(struct render *r, const struct node *n)
{
    struct value v;
    switch (n->kind) {
    case S_TEXT:
        TRY(render_spend(r, n->line, n->name.size / 16));
        return str_add(r->out, n->name.data, n->name.size, r->e);
    case S_OUT:
        TRY(eval_node(r, n->a, &v));
        return print_text(r, n->line, v, r->out);
    case S_IF:
        TRY(eval_node(r, n->a, &v));
        return run_nodes(r, value_truthy(v) ? n->body : n->otherwise);
    case S_FOR:
        return run_for(r, n);
    case S_SET:
    case S_SET_BLOCK:
        return run_set(r, n);
    case S_WITH:
        return run_with(r, n);
    case S_FILTER:
        return run_filter(r, n);
    case S_MACRO:
        return assign_name(r, n->line, n->name, (struct value){.type = V_MACRO, .macro = n});
    case S_BREAK:
        return FLOW_BREAK;
    case S_CONTINUE:
        return FLOW_CONTINUE;
    default:
        return render_fail(r, n->line, "an expression was found where a statement is required");
    }
}

static tare_status run_nodes(struct render *r, const struct node *n)
{
    for (; n; n = n->next) {
        TRY(render_spend(r, n->line, 1));
        TRY(go_deeper(r, n->line));
        const tare_status status = run_one(r, n);
        r->depth--;
        TRY(status);
        if (r->out->size - r->begin > MAX_OUTPUT)
            return render_fail(r, n->line, "the template wrote more than %d MiB", MAX_OUTPUT >> 20);
    }
    return TARE_OK;
}

void template_set_now(struct template *t, int64_t seconds)
{
    t->now = seconds;
}

tare_status template_render(const struct template *t, const json_t *variables, struct str *out, struct err *e)
{
    struct render r = {.t = t, .out = out, .e = e, .begin = out->size};
    struct value names;
    arena_init(&r.arena, "chat rendering");
    r.scope.n = 1;
    const int64_t begin = out->size;
    tare_status status = str_reserve(out, 0, e);
    if (!status && !json_is_object(variables)) status = render_fail(&r, 1, "the variables are not a JSON object");
    if (!status) status = value_from_json(&r, variables, 0, &names);
    if (!status) {
        r.scope.names[0] = *names.dict;
        status = run_nodes(&r, t->body);
    }
    if (status) out->size = begin;
    if (status && out->data) out->data[begin] = 0;
    arena_free(&r.arena);
    return status;
}
