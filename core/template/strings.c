/* Methods of strings and dicts, and the filters with the same effect. */
#define _GNU_SOURCE /* memmem */
#include "base/utf8.h"
#include "template/internal.h"

#include <stdio.h>
#include <string.h>
#include <utf8proc.h>

#define NEED_TEXT(C, V)                                                                                                            \
    do {                                                                                                                           \
        if ((V).type != V_STRING) return render_fail((C)->r, (C)->line, "a string is needed here, not %s", value_type_name(V));    \
    } while (0)

static tare_status text_arg(struct call *c, int k, tare_text fallback, tare_text *out)
{
    *out = fallback;
    if (!c->arg[k] || c->arg[k]->type == V_NONE) return TARE_OK;
    NEED_TEXT(c, *c->arg[k]);
    *out = c->arg[k]->s;
    return TARE_OK;
}

static tare_status int_arg(struct call *c, int k, int64_t fallback, int64_t *out)
{
    *out = fallback;
    if (!c->arg[k]) return TARE_OK;
    if (c->arg[k]->type != V_INT)
        return render_fail(c->r, c->line, "a whole number is needed here, not %s", value_type_name(*c->arg[k]));
    *out = c->arg[k]->i;
    return TARE_OK;
}

/* ---------------------------------------------------------------- stripping */

static bool is_stripped(const unsigned char *p, const tare_text *chars)
{
    const unsigned char *q = p;
    const int32_t c = utf8_next(&q);
    if (!chars->data) return value_is_python_space(c);
    const unsigned char *k = (const unsigned char *)chars->data, *end = k + chars->size;
    while (k < end)
        if (utf8_next(&k) == c) return true;
    return false;
}

static tare_status strip_text(struct call *c, bool left, bool right, struct value *out)
{
    tare_text chars, text;
    TRY(text_arg(c, 0, (tare_text){0}, &chars));
    TRY(template_as_text(c->r, c->line, c->self, &text));
    TRY(render_spend(c->r, c->line, text.size / 16 * (1 + chars.size / 16)));
    const unsigned char *p = (const unsigned char *)text.data, *end = p + text.size;
    while (left && p < end && is_stripped(p, &chars)) utf8_next(&p);
    while (right && end > p) {
        const unsigned char *last = end - 1;
        while ((*last & 0xC0) == 0x80) last--;
        if (!is_stripped(last, &chars)) break;
        end = last;
    }
    *out = value_string((const char *)p, end - p);
    return TARE_OK;
}

static tare_status do_strip(struct call *c, struct value *out)
{
    return strip_text(c, true, true, out);
}

static tare_status do_lstrip(struct call *c, struct value *out)
{
    return strip_text(c, true, false, out);
}

static tare_status do_rstrip(struct call *c, struct value *out)
{
    return strip_text(c, false, true, out);
}

/* ---------------------------------------------------------------- case */

static tare_status do_lower(struct call *c, struct value *out)
{
    return template_change_case(c, CASE_LOWER, out);
}

static tare_status do_upper(struct call *c, struct value *out)
{
    return template_change_case(c, CASE_UPPER, out);
}

static tare_status do_title(struct call *c, struct value *out)
{
    return template_change_case(c, CASE_TITLE, out);
}

/* The title filter: words begin after white space and -({[<. The title method starts a word at
 * every letter that follows a non-letter. */
static tare_status filter_title(struct call *c, struct value *out)
{
    return template_change_case(c, CASE_WORDS, out);
}

static tare_status do_capitalize(struct call *c, struct value *out)
{
    return template_change_case(c, CASE_CAPITAL, out);
}

/* ---------------------------------------------------------------- searching */

static tare_status has_affix(struct call *c, bool at_end, bool *out)
{
    struct list *options;
    struct value one = *c->arg[0], list;
    NEED_TEXT(c, c->self);
    if (one.type == V_LIST && one.list->tuple) { /* a tuple: any of its items */
        options = one.list;
    } else {
        TRY(value_new_list(c->r, c->line, 1, &list));
        list.list->items[0] = one;
        options = list.list;
    }
    *out = false;
    for (int64_t i = 0; i < options->n && !*out; i++) {
        NEED_TEXT(c, options->items[i]);
        const tare_text s = options->items[i].s;
        const char *at = at_end ? c->self.s.data + c->self.s.size - s.size : c->self.s.data;
        *out = s.size <= c->self.s.size && (!s.size || !memcmp(at, s.data, (size_t)s.size));
    }
    return TARE_OK;
}

static tare_status do_startswith(struct call *c, struct value *out)
{
    bool yes = false;
    TRY(has_affix(c, false, &yes));
    *out = value_bool(yes);
    return TARE_OK;
}

static tare_status do_endswith(struct call *c, struct value *out)
{
    bool yes = false;
    TRY(has_affix(c, true, &yes));
    *out = value_bool(yes);
    return TARE_OK;
}

static tare_status do_removeprefix(struct call *c, struct value *out)
{
    bool yes = false;
    TRY(has_affix(c, false, &yes));
    const int64_t n = yes && c->arg[0]->type == V_STRING ? c->arg[0]->s.size : 0;
    *out = value_string(c->self.s.data + n, c->self.s.size - n);
    return TARE_OK;
}

static tare_status do_removesuffix(struct call *c, struct value *out)
{
    bool yes = false;
    TRY(has_affix(c, true, &yes));
    const int64_t n = yes && c->arg[0]->type == V_STRING ? c->arg[0]->s.size : 0;
    *out = value_string(c->self.s.data, c->self.s.size - n);
    return TARE_OK;
}

static const char *find_last(tare_text text, tare_text what)
{
    for (int64_t i = text.size - what.size; i >= 0; i--)
        if (!memcmp(text.data + i, what.data, (size_t)what.size)) return text.data + i;
    return NULL;
}

static tare_status find_substring(struct call *c, bool last, struct value *out)
{
    NEED_TEXT(c, c->self);
    NEED_TEXT(c, *c->arg[0]);
    const tare_text text = c->self.s, what = c->arg[0]->s;
    TRY(render_spend(c->r, c->line, text.size / 16 * (last ? 1 + what.size / 16 : 1)));
    const char *at = last ? find_last(text, what) : memmem(text.data, (size_t)text.size, what.data, (size_t)what.size);
    *out = value_int(at ? value_count_chars((tare_text){text.data, at - text.data}) : -1);
    return TARE_OK;
}

static tare_status do_find(struct call *c, struct value *out)
{
    return find_substring(c, false, out);
}

static tare_status do_rfind(struct call *c, struct value *out)
{
    return find_substring(c, true, out);
}

static tare_status count_items(struct call *c, struct value *out)
{
    *out = value_int(0);
    for (int64_t i = 0; i < c->self.list->n; i++) {
        bool same;
        TRY(value_equal(c->r, c->line, c->self.list->items[i], *c->arg[0], &same));
        out->i += same;
    }
    return TARE_OK;
}

static tare_status do_count(struct call *c, struct value *out)
{
    if (c->self.type == V_LIST) return count_items(c, out);
    NEED_TEXT(c, c->self);
    NEED_TEXT(c, *c->arg[0]);
    const tare_text what = c->arg[0]->s;
    const char *p = c->self.s.data, *end = p + c->self.s.size;
    int64_t n = what.size ? 0 : value_count_chars(c->self.s) + 1;
    TRY(render_spend(c->r, c->line, c->self.s.size / 16));
    while (what.size && p < end && (p = memmem(p, (size_t)(end - p), what.data, (size_t)what.size))) {
        n++;
        p += what.size;
    }
    *out = value_int(n);
    return TARE_OK;
}

/* Replaces `old` by `new`, at most `count` times (negative: all). */
static tare_status do_replace(struct call *c, struct value *out)
{
    tare_text text, old, new;
    int64_t count;
    TRY(template_as_text(c->r, c->line, c->self, &text));
    NEED_TEXT(c, *c->arg[0]);
    NEED_TEXT(c, *c->arg[1]);
    old = c->arg[0]->s;
    new = c->arg[1]->s;
    TRY(int_arg(c, 2, -1, &count));
    if (!old.size) return render_fail(c->r, c->line, "replacing an empty string is not supported");
    OWNED(str_free) struct str replaced = {0};
    const char *p = text.data, *end = p + text.size;
    while (p < end) {
        const char *at = count ? memmem(p, (size_t)(end - p), old.data, (size_t)old.size) : NULL;
        TRY(render_spend(c->r, c->line, 1 + ((at ? at : end) - p + new.size) / 16));
        TRY(str_add(&replaced, p, (at ? at : end) - p, c->r->e));
        if (at) TRY(str_add(&replaced, new.data, new.size, c->r->e));
        p = at ? at + old.size : end;
        count -= at != NULL;
    }
    return template_keep_text(c->r, c->line, &replaced, out);
}

/* ---------------------------------------------------------------- splitting and joining */

static tare_status push_part(struct call *c, struct value list, int64_t *capacity, const char *data, int64_t n)
{
    if (list.list->n == *capacity) {
        struct value *bigger;
        TRY(render_take(c->r, c->line, 2 * *capacity * (int64_t)sizeof *bigger, (void **)&bigger));
        memcpy(bigger, list.list->items, (size_t)*capacity * sizeof *bigger);
        list.list->items = bigger;
        *capacity *= 2;
    }
    list.list->items[list.list->n++] = value_string(data, n);
    return TARE_OK;
}

/* split() without a separator: splits at runs of white space and drops empty parts. */
static tare_status split_blank(struct call *c, int64_t most, struct value list, int64_t *capacity)
{
    static const tare_text blank = {0};
    const unsigned char *p = (const unsigned char *)c->self.s.data, *end = p + c->self.s.size;
    for (;;) {
        while (p < end && is_stripped(p, &blank)) utf8_next(&p);
        if (p >= end) return TARE_OK;
        const unsigned char *begin = p;
        if (most >= 0 && list.list->n == most) return push_part(c, list, capacity, (const char *)begin, end - begin);
        while (p < end && !is_stripped(p, &blank)) utf8_next(&p);
        TRY(push_part(c, list, capacity, (const char *)begin, p - begin));
    }
}

static tare_status do_split(struct call *c, struct value *out)
{
    tare_text by;
    int64_t most, capacity = 8;
    NEED_TEXT(c, c->self);
    TRY(text_arg(c, 0, (tare_text){0}, &by));
    TRY(int_arg(c, 1, -1, &most));
    TRY(render_spend(c->r, c->line, c->self.s.size / 8));
    TRY(value_new_list(c->r, c->line, capacity, out));
    out->list->n = 0;
    if (!by.data) return split_blank(c, most, *out, &capacity);
    if (!by.size) return render_fail(c->r, c->line, "split needs a separator that is not empty");
    const char *p = c->self.s.data, *end = p + c->self.s.size, *at;
    while ((most < 0 || out->list->n < most) && (at = memmem(p, (size_t)(end - p), by.data, (size_t)by.size))) {
        TRY(push_part(c, *out, &capacity, p, at - p));
        p = at + by.size;
    }
    return push_part(c, *out, &capacity, p, end - p);
}

static tare_status do_rsplit(struct call *c, struct value *out)
{
    int64_t most, capacity = 8;
    NEED_TEXT(c, c->self);
    TRY(int_arg(c, 1, -1, &most));
    if (most < 0) return do_split(c, out);
    if (!c->arg[0] || c->arg[0]->type != V_STRING || !c->arg[0]->s.size)
        return render_fail(c->r, c->line, "rsplit needs a separator that is not empty");
    const tare_text by = c->arg[0]->s;
    tare_text rest = c->self.s;
    TRY(value_new_list(c->r, c->line, capacity, out));
    out->list->n = 0;
    for (const char *at; most-- > 0 && (at = find_last(rest, by));) {
        TRY(render_spend(c->r, c->line, 1 + (rest.data + rest.size - at) / 16));
        TRY(push_part(c, *out, &capacity, at + by.size, rest.data + rest.size - at - by.size));
        rest.size = at - rest.data;
    }
    TRY(push_part(c, *out, &capacity, rest.data, rest.size));
    for (int64_t i = 0, j = out->list->n - 1; i < j; i++, j--) {
        const struct value swap = out->list->items[i];
        out->list->items[i] = out->list->items[j];
        out->list->items[j] = swap;
    }
    return TARE_OK;
}

static tare_status do_splitlines(struct call *c, struct value *out)
{
    int64_t capacity = 8;
    NEED_TEXT(c, c->self);
    TRY(render_spend(c->r, c->line, c->self.s.size / 8));
    TRY(value_new_list(c->r, c->line, capacity, out));
    out->list->n = 0;
    const unsigned char *p = (const unsigned char *)c->self.s.data, *end = p + c->self.s.size, *begin = p;
    while (p < end) {
        const unsigned char *at = p;
        const int32_t ch = utf8_next(&p);
        if (!((ch >= 10 && ch <= 13) || (ch >= 28 && ch <= 30) || ch == 0x85 || ch == 0x2028 || ch == 0x2029)) continue;
        if (ch == '\r' && p < end && *p == '\n') p++;
        TRY(push_part(c, *out, &capacity, (const char *)begin, at - begin));
        begin = p;
    }
    return begin < end ? push_part(c, *out, &capacity, (const char *)begin, end - begin) : TARE_OK;
}

static tare_status join_items(struct call *c, tare_text by, struct value over, bool strict, struct value *out)
{
    struct list *items;
    OWNED(str_free) struct str text = {0};
    TRY(value_iterate(c->r, c->line, over, &items));
    TRY(str_reserve(&text, 0, c->r->e));
    for (int64_t i = 0; i < items->n; i++) {
        if (strict && items->items[i].type != V_STRING)
            TRY(render_fail(c->r, c->line, "join needs strings, not %s", value_type_name(items->items[i])));
        if (i) TRY(str_add(&text, by.data, by.size, c->r->e));
        TRY(render_spend(c->r, c->line, 1 + by.size / 16));
        TRY(print_text(c->r, c->line, items->items[i], &text));
    }
    return template_keep_text(c->r, c->line, &text, out);
}

static tare_status do_join(struct call *c, struct value *out) /* ",".join(list) */
{
    NEED_TEXT(c, c->self);
    return join_items(c, c->self.s, *c->arg[0], true, out);
}

static tare_status filter_join(struct call *c, struct value *out) /* list | join(",") */
{
    tare_text by;
    struct value items = c->self;
    TRY(text_arg(c, 0, (tare_text){"", 0}, &by));
    if (c->arg[1] && c->arg[1]->type != V_NONE) TRY(template_map_attribute(c, *c->arg[1], &items));
    return join_items(c, by, items, false, out);
}

/* Indents every line but the first by `width` spaces; empty lines are indented only with blank. */
static tare_status filter_indent(struct call *c, struct value *out)
{
    static const char spaces[] = "                                                                ";
    int64_t width;
    struct value lines;
    NEED_TEXT(c, c->self);
    TRY(int_arg(c, 0, 4, &width));
    if (width < 0 || width >= (int64_t)sizeof spaces)
        return render_fail(c->r, c->line, "indent takes 0 to %zu spaces", sizeof spaces - 1);
    const bool first = c->arg[1] && value_truthy(*c->arg[1]), blank = c->arg[2] && value_truthy(*c->arg[2]);
    /* keeps the last newline */
    TRY(value_binary(c->r, c->line, OP_ADD, c->self, value_string("\n", 1), &c->self));
    TRY(do_splitlines(c, &lines));
    OWNED(str_free) struct str text = {0};
    TRY(str_reserve(&text, 0, c->r->e));
    for (int64_t i = 0; i < lines.list->n; i++) {
        const tare_text line = lines.list->items[i].s;
        const bool pad = i ? blank || line.size : first;
        TRY(render_spend(c->r, c->line, 1 + (line.size + width) / 16));
        if (i) TRY(str_add(&text, "\n", 1, c->r->e));
        if (pad) TRY(str_add(&text, spaces, width, c->r->e));
        TRY(str_add(&text, line.data, line.size, c->r->e));
    }
    return template_keep_text(c->r, c->line, &text, out);
}

/* ---------------------------------------------------------------- dicts */

static tare_status need_dict(struct call *c)
{
    if (c->self.type == V_DICT && !c->self.dict->namespace) return TARE_OK;
    return render_fail(c->r, c->line, "a dict is needed here, not %s", value_type_name(c->self));
}

enum { PART_KEYS, PART_VALUES, PART_ITEMS };

static tare_status dict_part(struct call *c, int part, struct value *out)
{
    TRY(need_dict(c));
    const struct dict *d = c->self.dict;
    TRY(value_new_list(c->r, c->line, d->n, out));
    for (int64_t i = 0; i < d->n; i++) {
        const struct value key = {.type = V_STRING, .s = d->entries[i].key};
        struct value *item = &out->list->items[i];
        *item = part == PART_KEYS ? key : d->entries[i].value;
        if (part != PART_ITEMS) continue;
        TRY(value_new_list(c->r, c->line, 2, item));
        item->list->tuple = true;
        item->list->items[0] = key;
        item->list->items[1] = d->entries[i].value;
    }
    return TARE_OK;
}

static tare_status do_keys(struct call *c, struct value *out)
{
    return dict_part(c, PART_KEYS, out);
}

static tare_status do_values(struct call *c, struct value *out)
{
    return dict_part(c, PART_VALUES, out);
}

static tare_status do_items(struct call *c, struct value *out)
{
    return dict_part(c, PART_ITEMS, out);
}

static tare_status filter_items(struct call *c, struct value *out)
{
    return c->self.type == V_UNDEFINED ? value_new_list(c->r, c->line, 0, out) : do_items(c, out);
}

static tare_status do_get(struct call *c, struct value *out)
{
    TRY(need_dict(c));
    const struct value *found = c->arg[0]->type == V_STRING ? value_dict_find(c->self.dict, c->arg[0]->s) : NULL;
    *out = found ? *found : c->arg[1] ? *c->arg[1] : (struct value){.type = V_NONE};
    return TARE_OK;
}

static const struct builtin methods[] = {
    {"strip", do_strip, "chars", 0},
    {"lstrip", do_lstrip, "chars", 0},
    {"rstrip", do_rstrip, "chars", 0},
    {"lower", do_lower, "", 0},
    {"upper", do_upper, "", 0},
    {"title", do_title, "", 0},
    {"capitalize", do_capitalize, "", 0},
    {"startswith", do_startswith, "prefix", 1},
    {"endswith", do_endswith, "suffix", 1},
    {"removeprefix", do_removeprefix, "prefix", 1},
    {"removesuffix", do_removesuffix, "suffix", 1},
    {"find", do_find, "sub", 1},
    {"rfind", do_rfind, "sub", 1},
    {"count", do_count, "sub", 1},
    {"replace", do_replace, "old,new,count", 2},
    {"split", do_split, "sep,maxsplit", 0},
    {"rsplit", do_rsplit, "sep,maxsplit", 0},
    {"splitlines", do_splitlines, "", 0},
    {"join", do_join, "iterable", 1},
    {"keys", do_keys, "", 0},
    {"values", do_values, "", 0},
    {"items", do_items, "", 0},
    {"get", do_get, "key,default", 1},
};

static const struct builtin string_filters[] = {
    {"trim", do_strip, "chars", 0},
    {"lower", do_lower, "", 0},
    {"upper", do_upper, "", 0},
    {"title", filter_title, "", 0},
    {"capitalize", do_capitalize, "", 0},
    {"replace", do_replace, "old,new,count", 2},
    {"join", filter_join, "d,attribute", 0},
    {"indent", filter_indent, "width,first,blank", 0},
    {"items", filter_items, "", 0},
};

static const struct builtin *find_in(const struct builtin *table, size_t n, tare_text name)
{
    for (size_t i = 0; i < n; i++)
        if (value_text_is(name, table[i].name)) return &table[i];
    return NULL;
}

const struct builtin *template_find_method(tare_text name)
{
    const struct builtin *b = find_in(methods, sizeof methods / sizeof *methods, name);
    if (!b) b = template_find_text_method(name);
    return b ? b : template_find_object_method(name);
}

const struct builtin *template_find_string_filter(tare_text name)
{
    return find_in(string_filters, sizeof string_filters / sizeof *string_filters, name);
}

/* names: separated and enclosed by spaces */
static bool is_among(tare_text name, const char *names)
{
    char word[32];
    if (!name.size || name.size > 24 || memchr(name.data, ' ', (size_t)name.size)) return false;
    snprintf(word, sizeof word, " %.*s ", (int)name.size, name.data);
    return strstr(names, word) != NULL;
}

bool template_is_reading_method(tare_text name)
{
    return is_among(name, " keys values items get copy fromkeys ");
}

bool template_is_dict_method(tare_text name)
{
    return is_among(name, " pop popitem update clear setdefault ") || template_is_reading_method(name);
}

bool template_is_string_method(tare_text name)
{
    return is_among(
        name,
        " capitalize casefold center count encode endswith expandtabs find format format_map index isalnum isalpha isascii isdecimal isdigit isidentifier islower isnumeric isprintable isspace istitle isupper join ljust lower lstrip maketrans partition removeprefix removesuffix replace rfind rindex rjust rpartition rsplit rstrip split splitlines startswith strip swapcase title translate upper zfill ");
}

bool template_is_list_method(tare_text name, bool tuple)
{
    return is_among(name, tuple ? " count index " : " count index copy ");
}

bool template_method_of_text(const struct builtin *b)
{
    const tare_text name = {b->name, (int64_t)strlen(b->name)};
    return !is_among(name, " count index ") && !template_is_dict_method(name) && !template_find_object_method(name);
}
