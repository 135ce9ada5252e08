/* Filters of lists and dicts. */
#include "template/internal.h"

#include <string.h>

static tare_status end_item(struct call *c, bool last, struct value *out)
{
    struct list *items;
    TRY(value_iterate(c->r, c->line, c->self, &items));
    *out = items->n ? items->items[last ? items->n - 1 : 0] : (struct value){.type = V_UNDEFINED, .s = {"item", 4}};
    return TARE_OK;
}

static tare_status filter_first(struct call *c, struct value *out)
{
    return end_item(c, false, out);
}

static tare_status filter_last(struct call *c, struct value *out)
{
    return end_item(c, true, out);
}

static tare_status filter_list(struct call *c, struct value *out)
{
    struct list *items;
    TRY(value_iterate(c->r, c->line, c->self, &items));
    TRY(value_new_list(c->r, c->line, items->n, out));
    for (int64_t i = 0; i < items->n; i++) out->list->items[i] = items->items[i];
    return TARE_OK;
}

static tare_status filter_reverse(struct call *c, struct value *out)
{
    const struct value back[3] = {{.type = V_NONE}, {.type = V_NONE}, {.type = V_INT, .i = -1}};
    if (c->self.type == V_STRING) return value_get_slice(c->r, c->line, c->self, back, out);
    TRY(filter_list(c, out));
    return value_get_slice(c->r, c->line, *out, back, out);
}

/* Returns the members that a filter iterates over: none for any false value. */
static tare_status list_members(struct call *c, struct list **items)
{
    struct value none;
    if (value_truthy(c->self)) return value_iterate(c->r, c->line, c->self, items);
    TRY(value_new_list(c->r, c->line, 0, &none));
    *items = none.list;
    return TARE_OK;
}

/* Applies the test named by argument k, with the arguments after it, to v; without one tests for
 * truth. */
static tare_status passes_test(struct call *c, int k, struct value v, bool *out)
{
    struct value yes;
    *out = value_truthy(v);
    if (!c->arg[k]) return TARE_OK;
    const struct builtin *test = c->arg[k]->type == V_STRING ? template_find_test(c->arg[k]->s) : NULL;
    if (!test) return render_fail(c->r, c->line, "a filter names a test that is not supported");
    struct call inner = {.r = c->r, .line = c->line, .self = v};
    for (int i = k + 1; i < MAX_ARGS; i++) inner.arg[i - k - 1] = c->arg[i];
    TRY(template_call_builtin(&inner, test, &yes));
    *out = value_truthy(yes);
    return TARE_OK;
}

/* Returns the member at a path such as "function.name" or "0.text", or at an index. */
static tare_status get_path(struct call *c, struct value v, struct value path, struct value *out)
{
    *out = v;
    if (path.type == V_INT) return value_get_item(c->r, c->line, v, path, out);
    if (path.type != V_STRING) return render_fail(c->r, c->line, "the name of an attribute is needed");
    const char *at = path.s.data, *end = at + path.s.size;
    for (;;) {
        const char *dot = at;
        bool digits = true;
        int64_t index = 0;
        for (; dot < end && *dot != '.'; dot++) {
            digits = digits && *dot >= '0' && *dot <= '9' && dot - at < 9;
            if (digits) index = 10 * index + (*dot - '0');
        }
        const struct value part = *out, key = digits && dot > at ? value_int(index) : value_string(at, dot - at);
        TRY(value_get_item(c->r, c->line, part, key, out));
        if (dot == end) return TARE_OK;
        at = dot + 1;
    }
}

static tare_status select_items(struct call *c, bool attribute, bool keep, struct value *out)
{
    struct list *items;
    TRY(list_members(c, &items));
    TRY(value_new_list(c->r, c->line, items->n, out));
    out->list->n = 0;
    for (int64_t i = 0; i < items->n; i++) {
        struct value v = items->items[i];
        bool yes;
        TRY(render_spend(c->r, c->line, 1));
        if (attribute) TRY(get_path(c, items->items[i], *c->arg[0], &v));
        TRY(passes_test(c, attribute, v, &yes));
        if (yes == keep) out->list->items[out->list->n++] = items->items[i];
    }
    return TARE_OK;
}

static tare_status filter_select(struct call *c, struct value *out)
{
    return select_items(c, false, true, out);
}

static tare_status filter_reject(struct call *c, struct value *out)
{
    return select_items(c, false, false, out);
}

static tare_status filter_selectattr(struct call *c, struct value *out)
{
    return select_items(c, true, true, out);
}

static tare_status filter_rejectattr(struct call *c, struct value *out)
{
    return select_items(c, true, false, out);
}

tare_status template_map_attribute(struct call *c, struct value path, struct value *out)
{
    struct list *items;
    TRY(value_iterate(c->r, c->line, c->self, &items));
    TRY(value_new_list(c->r, c->line, items->n, out));
    for (int64_t i = 0; i < items->n; i++) TRY(get_path(c, items->items[i], path, &out->list->items[i]));
    return TARE_OK;
}

/* Calls a filter with the arguments that map() has after its name. */
static tare_status call_mapped(struct call *c, const struct builtin *filter, struct value v, struct value *out)
{
    struct call inner = {.r = c->r, .line = c->line, .self = v, .named = c->named};
    for (int k = 1; k < MAX_ARGS; k++) inner.arg[k - 1] = c->arg[k];
    for (int64_t i = 0; strcmp(filter->params, "*") && i < c->named->n; i++) {
        const int at = template_param_index(filter, c->named->entries[i].key);
        if (at < 0) return render_fail(c->r, c->line, "%s does not support an argument that map passes", filter->name);
        inner.arg[at] = &c->named->entries[i].value;
    }
    return template_call_builtin(&inner, filter, out);
}

/* map(attribute="x", default=y), or map("filter", arguments) */
static tare_status filter_map(struct call *c, struct value *out)
{
    struct list *items;
    const struct value *path = value_dict_find(c->named, (tare_text){"attribute", 9}),
                       *fallback = value_dict_find(c->named, (tare_text){"default", 7});
    const struct builtin *filter = NULL;
    TRY(list_members(c, &items));
    if (c->arg[0] || !path || c->named->n > 1 + (fallback != NULL)) {
        filter = c->arg[0] && c->arg[0]->type == V_STRING ? template_find_filter(c->arg[0]->s) : NULL;
        if (!filter) return render_fail(c->r, c->line, "map takes attribute=\"name\", or the name of a supported filter");
    }
    TRY(value_new_list(c->r, c->line, items->n, out));
    for (int64_t i = 0; i < items->n; i++) {
        struct value *to = &out->list->items[i];
        TRY(render_spend(c->r, c->line, 1));
        if (filter)
            TRY(call_mapped(c, filter, items->items[i], to));
        else
            TRY(get_path(c, items->items[i], *path, to));
        if (!filter && fallback && fallback->type != V_NONE && to->type == V_UNDEFINED) *to = *fallback;
    }
    return TARE_OK;
}

/* ---------------------------------------------------------------- order */

/* Returns the value that items are compared by: small letters unless case_sensitive. */
static tare_status fold_case(struct call *c, struct value v, bool sensitive, struct value *out)
{
    struct call inner = {.r = c->r, .line = c->line, .self = v};
    *out = v;
    return !sensitive && v.type == V_STRING ? template_change_case(&inner, CASE_LOWER, out) : TARE_OK;
}

static tare_status one_key(struct call *c, struct value item, const struct value *attribute, bool sensitive, struct value *out)
{
    struct value v = item;
    if (attribute && attribute->type != V_NONE) TRY(get_path(c, item, *attribute, &v));
    return fold_case(c, v, sensitive, out);
}

/* The key of sort, as in jinja2 always a list: with "a,b" it has two items, and items without the
 * attribute are equal. */
static tare_status sort_key(struct call *c, struct value item, const struct value *attribute, bool sensitive, struct value *out)
{
    const struct value none = {.type = V_NONE};
    if (!attribute) attribute = &none;
    const bool text = attribute->type == V_STRING;
    int64_t n = 0;
    TRY(value_new_list(c->r, c->line, 1 + (text ? attribute->s.size : 0), out));
    out->list->n = 1;
    if (!text) return one_key(c, item, attribute, sensitive, &out->list->items[0]);
    for (const char *at = attribute->s.data, *end = at + attribute->s.size; at <= end;) {
        const char *comma = memchr(at, ',', (size_t)(end - at));
        const struct value part = value_string(at, (comma ? comma : end) - at);
        TRY(one_key(c, item, &part, sensitive, &out->list->items[n++]));
        at = (comma ? comma : end) + 1;
    }
    out->list->n = n;
    return TARE_OK;
}

struct keyed {
    struct value key, item;
};

/* Merges two sorted halves; of equal keys the one of the left half comes first. */
static tare_status merge_halves(struct call *c, struct keyed *a, int64_t n, bool reverse, struct keyed *to)
{
    const int64_t half = n / 2;
    int64_t i = 0, j = half;
    for (int64_t k = 0; k < n; k++) {
        struct value later = {0};
        TRY(render_spend(c->r, c->line, 1));
        if (i < half && j < n) TRY(value_binary(c->r, c->line, reverse ? OP_GT : OP_LT, a[j].key, a[i].key, &later));
        to[k] = j == n || (i < half && !later.i) ? a[i++] : a[j++];
    }
    memcpy(a, to, (size_t)n * sizeof *a);
    return TARE_OK;
}

/* Sorts stably from the bottom of a recursion, whose depth is the logarithm of n. */
static tare_status sort_keyed(struct call *c, struct keyed *a, int64_t n, bool reverse, struct keyed *scratch)
{
    if (n < 2) return TARE_OK;
    TRY(sort_keyed(c, a, n / 2, reverse, scratch));
    TRY(sort_keyed(c, a + n / 2, n - n / 2, reverse, scratch));
    return merge_halves(c, a, n, reverse, scratch);
}

static bool is_set(const struct value *arg)
{
    return arg && value_truthy(*arg);
}

/* Makes an array of the items of self, without keys. */
static tare_status take_items(struct call *c, struct keyed **out, int64_t *n)
{
    struct list *items;
    TRY(value_iterate(c->r, c->line, c->self, &items));
    *n = items->n;
    TRY(render_take(c->r, c->line, (*n + 1) * (int64_t)sizeof **out, (void **)out));
    for (int64_t i = 0; i < *n; i++) (*out)[i].item = items->items[i];
    return TARE_OK;
}

static tare_status sorted_list(struct call *c, struct keyed *items, int64_t n, bool reverse, struct value *out)
{
    struct keyed *scratch;
    TRY(render_take(c->r, c->line, (n + 1) * (int64_t)sizeof *scratch, (void **)&scratch));
    TRY(sort_keyed(c, items, n, reverse, scratch));
    TRY(value_new_list(c->r, c->line, n, out));
    for (int64_t i = 0; i < n; i++) out->list->items[i] = items[i].item;
    return TARE_OK;
}

static tare_status filter_sort(struct call *c, struct value *out)
{
    struct keyed *items;
    int64_t n;
    TRY(take_items(c, &items, &n));
    for (int64_t i = 0; i < n; i++) TRY(sort_key(c, items[i].item, c->arg[2], is_set(c->arg[1]), &items[i].key));
    return sorted_list(c, items, n, is_set(c->arg[0]), out);
}

/* Sorts the pairs of a dict by key or by value. */
static tare_status filter_dictsort(struct call *c, struct value *out)
{
    const tare_text by = c->arg[1] && c->arg[1]->type == V_STRING ? c->arg[1]->s : (tare_text){"key", 3};
    const struct value position = value_int(value_text_is(by, "value"));
    struct call inner = {.r = c->r, .line = c->line, .self = c->self};
    struct keyed *items;
    int64_t n;
    if (!position.i && !value_text_is(by, "key")) return render_fail(c->r, c->line, "dictsort sorts by 'key' or 'value'");
    TRY(template_call_builtin(&inner, template_find_method((tare_text){"items", 5}), &inner.self));
    TRY(take_items(&inner, &items, &n));
    for (int64_t i = 0; i < n; i++) TRY(one_key(c, items[i].item, &position, is_set(c->arg[0]), &items[i].key));
    return sorted_list(c, items, n, is_set(c->arg[2]), out);
}

static tare_status extreme_item(struct call *c, enum operation better, struct value *out)
{
    struct list *items;
    struct value best = {0}, key, yes;
    TRY(value_iterate(c->r, c->line, c->self, &items));
    *out = (struct value){.type = V_UNDEFINED, .s = {"item", 4}};
    for (int64_t i = 0; i < items->n; i++) {
        TRY(one_key(c, items->items[i], c->arg[1], is_set(c->arg[0]), &key));
        if (i) TRY(value_binary(c->r, c->line, better, key, best, &yes));
        if (i && !yes.i) continue;
        best = key;
        *out = items->items[i];
    }
    return TARE_OK;
}

static tare_status filter_max(struct call *c, struct value *out)
{
    return extreme_item(c, OP_GT, out);
}

static tare_status filter_min(struct call *c, struct value *out)
{
    return extreme_item(c, OP_LT, out);
}

static tare_status filter_sum(struct call *c, struct value *out)
{
    struct list *items;
    TRY(value_iterate(c->r, c->line, c->self, &items));
    struct value sum = c->arg[1] ? *c->arg[1] : value_int(0), v;
    if (sum.type == V_STRING) return render_fail(c->r, c->line, "sum cannot add strings; use join");
    for (int64_t i = 0; i < items->n; i++) {
        TRY(one_key(c, items->items[i], c->arg[0], true, &v));
        TRY(value_binary(c->r, c->line, OP_ADD, sum, v, &sum));
    }
    *out = sum;
    return TARE_OK;
}

static bool is_hashable(struct value v)
{
    if (v.type == V_DICT) return v.dict->namespace || v.dict->loop;
    if (v.type != V_LIST) return true;
    for (int64_t i = 0; v.list->tuple && i < v.list->n; i++)
        if (!is_hashable(v.list->items[i])) return false;
    return v.list->tuple;
}

static tare_status filter_unique(struct call *c, struct value *out)
{
    struct list *items;
    struct value keys, key;
    TRY(value_iterate(c->r, c->line, c->self, &items));
    TRY(value_new_list(c->r, c->line, items->n, &keys));
    TRY(value_new_list(c->r, c->line, items->n, out));
    keys.list->n = out->list->n = 0;
    for (int64_t i = 0; i < items->n; i++) {
        bool seen = false;
        TRY(one_key(c, items->items[i], c->arg[1], is_set(c->arg[0]), &key));
        if (!is_hashable(key)) return render_fail(c->r, c->line, "unique cannot compare %s", value_type_name(key));
        for (int64_t k = 0; k < keys.list->n && !seen; k++) TRY(value_equal(c->r, c->line, keys.list->items[k], key, &seen));
        if (seen) continue;
        keys.list->items[keys.list->n++] = key;
        out->list->items[out->list->n++] = items->items[i];
    }
    return TARE_OK;
}

/* ---------------------------------------------------------------- groups */

static tare_status new_group(struct call *c, const struct keyed *items, int64_t n, struct value *out)
{
    struct value list;
    TRY(value_new_list(c->r, c->line, n, &list));
    for (int64_t i = 0; i < n; i++) list.list->items[i] = items[i].item;
    TRY(value_new_list(c->r, c->line, 2, out));
    out->list->tuple = out->list->group = true;
    TRY(one_key(c, items[0].item, c->arg[0], true, &out->list->items[0])); /* in its own case */
    if (out->list->items[0].type == V_UNDEFINED && c->arg[1]) out->list->items[0] = *c->arg[1];
    out->list->items[1] = list;
    return TARE_OK;
}

static tare_status filter_groupby(struct call *c, struct value *out)
{
    struct keyed *all, *scratch;
    int64_t begin = 0, n;
    TRY(take_items(c, &all, &n));
    TRY(render_take(c->r, c->line, (n + 1) * (int64_t)sizeof *all, (void **)&scratch));
    for (int64_t i = 0; i < n; i++) {
        TRY(one_key(c, all[i].item, c->arg[0], is_set(c->arg[2]), &all[i].key));
        if (all[i].key.type == V_UNDEFINED && c->arg[1]) TRY(fold_case(c, *c->arg[1], is_set(c->arg[2]), &all[i].key));
    }
    TRY(sort_keyed(c, all, n, false, scratch));
    TRY(value_new_list(c->r, c->line, n, out));
    out->list->n = 0;
    for (int64_t i = 1; i <= n; i++) {
        bool same = false;
        if (i < n) TRY(value_equal(c->r, c->line, all[i].key, all[begin].key, &same));
        if (same) continue;
        TRY(new_group(c, all + begin, i - begin, &out->list->items[out->list->n++]));
        begin = i;
    }
    return TARE_OK;
}

/* Copies items[begin, begin + n) and `fill` more. */
static tare_status copy_part(struct call *c, const struct list *items, const int64_t span[2], int64_t fill, struct value *out)
{
    TRY(value_new_list(c->r, c->line, span[1] + fill, out));
    for (int64_t i = 0; i < span[1]; i++) out->list->items[i] = items->items[span[0] + i];
    for (int64_t i = span[1]; i < span[1] + fill; i++) out->list->items[i] = *c->arg[1];
    return TARE_OK;
}

static tare_status need_count(struct call *c, struct list **items)
{
    TRY(value_iterate(c->r, c->line, c->self, items));
    if (c->arg[0]->type != V_INT || c->arg[0]->i < 1 || c->arg[0]->i > 100000)
        return render_fail(c->r, c->line, "a number of items from 1 to 100000 is needed");
    return TARE_OK;
}

static tare_status filter_batch(struct call *c, struct value *out)
{
    struct list *items;
    TRY(need_count(c, &items));
    const int64_t by = c->arg[0]->i, n = (items->n + by - 1) / by;
    TRY(value_new_list(c->r, c->line, n, out));
    for (int64_t i = 0; i < n; i++) {
        const int64_t left = items->n - i * by, here = left < by ? left : by;
        const bool fills = c->arg[1] && c->arg[1]->type != V_NONE;
        TRY(copy_part(c, items, (int64_t[]){i * by, here}, fills ? by - here : 0, &out->list->items[i]));
    }
    return TARE_OK;
}

static tare_status filter_slice(struct call *c, struct value *out)
{
    struct list *items;
    TRY(need_count(c, &items));
    const int64_t n = c->arg[0]->i, each = items->n / n, more = items->n % n;
    TRY(value_new_list(c->r, c->line, n, out));
    for (int64_t i = 0; i < n; i++) {
        const int64_t begin = i * each + (i < more ? i : more), here = each + (i < more);
        const bool fills = c->arg[1] && c->arg[1]->type != V_NONE && i >= more;
        TRY(copy_part(c, items, (int64_t[]){begin, here}, fills, &out->list->items[i]));
    }
    return TARE_OK;
}

static const struct builtin list_filters[] = {
    {"first", filter_first, "", 0},
    {"last", filter_last, "", 0},
    {"list", filter_list, "", 0},
    {"reverse", filter_reverse, "", 0},
    {"select", filter_select, "test,a,b,c", 0},
    {"reject", filter_reject, "test,a,b,c", 0},
    {"selectattr", filter_selectattr, "attribute,test,a,b", 1},
    {"rejectattr", filter_rejectattr, "attribute,test,a,b", 1},
    {"map", filter_map, "*", 0},
    {"sort", filter_sort, "reverse,case_sensitive,attribute", 0},
    {"dictsort", filter_dictsort, "case_sensitive,by,reverse", 0},
    {"max", filter_max, "case_sensitive,attribute", 0},
    {"min", filter_min, "case_sensitive,attribute", 0},
    {"sum", filter_sum, "attribute,start", 0},
    {"unique", filter_unique, "case_sensitive,attribute", 0},
    {"groupby", filter_groupby, "attribute,default,case_sensitive", 1},
    {"batch", filter_batch, "linecount,fill_with", 1},
    {"slice", filter_slice, "slices,fill_with", 1},
};

const struct builtin *template_find_list_filter(tare_text name)
{
    for (size_t i = 0; i < sizeof list_filters / sizeof *list_filters; i++)
        if (value_text_is(name, list_filters[i].name)) return &list_filters[i];
    return NULL;
}
