/* Filters and methods that format or examine text: `%`, escape, center, isdigit, ... */
#include "base/utf8.h"
#include "template/internal.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <utf8proc.h>

enum { MOST_PADDING = 10000 };

static tare_status need_text(const struct call *c, struct value v)
{
    return v.type == V_STRING ? TARE_OK : render_fail(c->r, c->line, "a string is needed here, not %s", value_type_name(v));
}

static tare_status add_repeated(struct call *c, const char *text, int64_t size, int64_t times, struct str *out)
{
    TRY(render_spend(c->r, c->line, 1 + (times > 0 ? times : 0) / 16));
    for (int64_t i = 0; i < times; i++) TRY(str_add(out, text, size, c->r->e));
    return TARE_OK;
}

/* ---------------------------------------------------------------- % */

struct conversion {
    bool minus, plus, blank, zero, alternate;
    int64_t width, precision; /* precision -1: none */
    char kind;
};

struct percent {
    struct call call;
    const char *at, *end;
    struct value args;
    int64_t used;
    bool keyed; /* %(name)s was used */
    struct str *out;
};

static tare_status next_value(struct percent *p, struct value *out)
{
    const bool tuple = p->args.type == V_LIST && p->args.list->tuple;
    if (p->used >= (tuple ? p->args.list->n : 1))
        return render_fail(p->call.r, p->call.line, "a format has more conversions than values");
    *out = tuple ? p->args.list->items[p->used] : p->args;
    p->used++;
    return TARE_OK;
}

/* Reads digits, or * for the next value. */
static tare_status read_count(struct percent *p, int64_t *out)
{
    struct value v = {0};
    *out = 0;
    if (p->at < p->end && *p->at == '*') {
        p->at++;
        TRY(next_value(p, &v));
        if (v.type != V_INT) return render_fail(p->call.r, p->call.line, "* in a format needs a whole number");
        *out = v.i;
    }
    while (p->at < p->end && *p->at >= '0' && *p->at <= '9' && *out <= MOST_PADDING) *out = 10 * *out + (*p->at++ - '0');
    return *out >= 0 && *out <= MOST_PADDING ? TARE_OK
                                             : render_fail(p->call.r, p->call.line, "a format is wider than %d", MOST_PADDING);
}

static tare_status read_conversion(struct percent *p, struct conversion *f, struct value *v, bool *named)
{
    *f = (struct conversion){.precision = -1};
    *named = p->at < p->end && *p->at == '(';
    if (*named) {
        const char *close = memchr(p->at, ')', (size_t)(p->end - p->at));
        if (!close || !value_is_plain_dict(p->args))
            return render_fail(p->call.r, p->call.line, "%%(name) in a format needs a dict");
        const tare_text key = {p->at + 1, close - p->at - 1};
        const struct value *found = value_dict_find(p->args.dict, key);
        if (!found) return render_fail(p->call.r, p->call.line, "the format's dict has no '%.*s'", (int)key.size, key.data);
        *v = *found;
        p->at = close + 1;
        p->keyed = true;
    }
    for (; p->at < p->end && strchr("-+ 0#", *p->at); p->at++) {
        f->minus |= *p->at == '-';
        f->plus |= *p->at == '+';
        f->blank |= *p->at == ' ';
        f->zero |= *p->at == '0';
        f->alternate |= *p->at == '#';
    }
    TRY(read_count(p, &f->width));
    if (p->at < p->end && *p->at == '.') {
        p->at++;
        TRY(read_count(p, &f->precision));
    }
    while (p->at < p->end && strchr("hlL", *p->at)) p->at++;
    if (p->at == p->end) return render_fail(p->call.r, p->call.line, "a format ends after %%");
    f->kind = *p->at++;
    return TARE_OK;
}

/* Writes a converted value, padded: zeros come after the sign. */
static tare_status add_padded(struct percent *p, const struct conversion *f, tare_text text, bool number)
{
    const int64_t more = f->width - value_count_chars(text);
    const bool zeros = number && f->zero && !f->minus;
    int64_t sign = zeros && text.size && strchr("+- ", text.data[0]);
    if (zeros && text.size - sign > 1 && text.data[sign] == '0' && strchr("xXo", text.data[sign + 1])) sign += 2;
    if (!f->minus && !zeros) TRY(add_repeated(&p->call, " ", 1, more, p->out));
    TRY(str_add(p->out, text.data, sign, p->call.r->e));
    if (zeros) TRY(add_repeated(&p->call, "0", 1, more, p->out));
    TRY(str_add(p->out, text.data + sign, text.size - sign, p->call.r->e));
    return f->minus ? add_repeated(&p->call, " ", 1, more, p->out) : TARE_OK;
}

static tare_status add_number(struct percent *p, const struct conversion *f, struct value v)
{
    OWNED(str_free) struct str text = {0};
    char form[16], digits[32];
    const bool real = strchr("eEfFgG", f->kind) != NULL;
    if (v.type != V_INT && v.type != V_BOOL && v.type != V_FLOAT)
        return render_fail(p->call.r, p->call.line, "%%%c needs a number, not %s", f->kind, value_type_name(v));
    const char *sign = f->plus ? "+" : f->blank ? " " : "";
    if (real) {
        const double x = v.type == V_FLOAT ? v.f : (double)v.i;
        snprintf(form, sizeof form, "%%%s%s.*%c", sign, f->alternate ? "#" : "", f->kind);
        TRY(str_reserve(&text, 400 + (f->precision < 0 ? 6 : f->precision), p->call.r->e));
#pragma GCC diagnostic push
#pragma GCC diagnostic ignored "-Wformat-nonliteral"
        text.size = snprintf(text.data, (size_t)text.capacity, form, f->precision < 0 ? 6 : (int)f->precision, x);
#pragma GCC diagnostic pop
        return add_padded(p, f, (tare_text){text.data, text.size}, isfinite(x));
    }
    if (v.type == V_FLOAT && (strchr("xXo", f->kind) || !(fabs(v.f) < 9e18)))
        return render_fail(p->call.r, p->call.line, "%%%c needs a whole number of at most 64 bits", f->kind);
    const int64_t i = v.type == V_FLOAT ? (int64_t)v.f : v.i;
    const uint64_t size = i < 0 ? 0 - (uint64_t)i : (uint64_t)i;
    const char *prefix = !f->alternate ? "" : f->kind == 'x' ? "0x" : f->kind == 'X' ? "0X" : f->kind == 'o' ? "0o" : "";
    if (f->kind == 'x')
        snprintf(digits, sizeof digits, "%llx", (unsigned long long)size);
    else if (f->kind == 'X')
        snprintf(digits, sizeof digits, "%llX", (unsigned long long)size);
    else if (f->kind == 'o')
        snprintf(digits, sizeof digits, "%llo", (unsigned long long)size);
    else
        snprintf(digits, sizeof digits, "%llu", (unsigned long long)size);
    TRY(str_addf(&text, p->call.r->e, "%s%s", i < 0 ? "-" : sign, prefix));
    TRY(add_repeated(&p->call, "0", 1, f->precision - (int64_t)strlen(digits), &text));
    TRY(str_add(&text, digits, -1, p->call.r->e));
    return add_padded(p, f, (tare_text){text.data, text.size}, true);
}

static tare_status add_conversion(struct percent *p)
{
    struct conversion f;
    struct value v = {0}, list;
    bool named;
    TRY(read_conversion(p, &f, &v, &named));
    if (f.kind == '%') return str_add(p->out, "%", 1, p->call.r->e);
    if (!strchr("sradiuxXoeEfFgGc", f.kind)) return render_fail(p->call.r, p->call.line, "a format has the unknown %%%c", f.kind);
    if (!named) TRY(next_value(p, &v));
    if (f.kind == 'c' || f.kind == 'a') return render_fail(p->call.r, p->call.line, "%%%c in a format is not supported", f.kind);
    if (f.kind != 's' && f.kind != 'r') return add_number(p, &f, v);
    tare_text text;
    if (f.kind == 'r' && v.type == V_STRING) { /* repr: as the only item of a list, without its brackets */
        TRY(value_new_list(p->call.r, p->call.line, 1, &list));
        list.list->items[0] = v;
        TRY(template_as_text(p->call.r, p->call.line, list, &text));
        text = (tare_text){text.data + 1, text.size - 2};
    } else {
        TRY(template_as_text(p->call.r, p->call.line, v, &text));
    }
    int64_t size = 0;
    for (int64_t n = 0; size < text.size; size++) {
        n += (text.data[size] & 0xC0) != 0x80;
        if (f.precision >= 0 && n > f.precision) break;
    }
    return add_padded(p, &f, (tare_text){text.data, size}, false);
}

tare_status template_percent(struct render *r, int line, tare_text text, struct value args, struct value *out)
{
    OWNED(str_free) struct str written = {0};
    struct percent p = {
        .call = {.r = r, .line = line}, .at = text.data, .end = text.data + text.size, .args = args, .out = &written};
    TRY(str_reserve(&written, 0, r->e));
    TRY(render_spend(r, line, 1 + text.size / 16));
    while (p.at < p.end) {
        const char *mark = memchr(p.at, '%', (size_t)(p.end - p.at));
        TRY(str_add(&written, p.at, (mark ? mark : p.end) - p.at, r->e));
        p.at = mark ? mark + 1 : p.end;
        if (mark) TRY(add_conversion(&p));
    }
    const bool tuple = args.type == V_LIST && args.list->tuple, left = p.used < (tuple ? args.list->n : 1);
    const bool ignored = !tuple && (args.type == V_LIST || value_is_plain_dict(args)); /* as in Python */
    if (left && !p.keyed && !ignored) return render_fail(r, line, "a format does not use all of its values");
    return template_keep_text(r, line, &written, out);
}

static tare_status filter_format(struct call *c, struct value *out)
{
    tare_text text;
    struct value args;
    int64_t n = 0;
    TRY(template_as_text(c->r, c->line, c->self, &text));
    while (n < MAX_ARGS && c->arg[n]) n++;
    if (n && c->named->n) return render_fail(c->r, c->line, "format takes values or keywords, not both");
    if (c->named->n) return template_percent(c->r, c->line, text, (struct value){.type = V_DICT, .dict = c->named}, out);
    TRY(value_new_list(c->r, c->line, n, &args));
    args.list->tuple = true;
    for (int64_t i = 0; i < n; i++) args.list->items[i] = *c->arg[i];
    return template_percent(c->r, c->line, text, args, out);
}

/* ---------------------------------------------------------------- padding */

/* Pads text to a width given in characters. side: -1 text to the left, 1 to the right, 0 centred. */
static tare_status pad_text(struct call *c, tare_text text, int64_t width, int side, struct value *out)
{
    OWNED(str_free) struct str padded = {0};
    const int64_t n = value_count_chars(text), more = width > n ? width - n : 0;
    tare_text fill = {" ", 1};
    if (c->arg[1] && c->arg[1]->type == V_STRING) fill = c->arg[1]->s;
    if (value_count_chars(fill) != 1) return render_fail(c->r, c->line, "text is padded with one character");
    if (width > MOST_PADDING) return render_fail(c->r, c->line, "text is padded to at most %d characters", MOST_PADDING);
    const int64_t before = side < 0 ? 0 : side > 0 ? more : more / 2 + (more & width & 1);
    TRY(str_reserve(&padded, 0, c->r->e));
    TRY(add_repeated(c, fill.data, fill.size, before, &padded));
    TRY(str_add(&padded, text.data, text.size, c->r->e));
    TRY(add_repeated(c, fill.data, fill.size, more - before, &padded));
    return template_keep_text(c->r, c->line, &padded, out);
}

static tare_status pad_method(struct call *c, int side, struct value *out)
{
    TRY(need_text(c, c->self));
    if (c->arg[0]->type != V_INT) return render_fail(c->r, c->line, "a width is needed, not %s", value_type_name(*c->arg[0]));
    return pad_text(c, c->self.s, c->arg[0]->i, side, out);
}

static tare_status do_ljust(struct call *c, struct value *out)
{
    return pad_method(c, -1, out);
}

static tare_status do_rjust(struct call *c, struct value *out)
{
    return pad_method(c, 1, out);
}

static tare_status do_center(struct call *c, struct value *out)
{
    return pad_method(c, 0, out);
}

static tare_status filter_center(struct call *c, struct value *out)
{
    tare_text text;
    TRY(template_as_text(c->r, c->line, c->self, &text));
    if (c->arg[0] && c->arg[0]->type != V_INT) return render_fail(c->r, c->line, "center takes a width");
    return pad_text(c, text, c->arg[0] ? c->arg[0]->i : 80, 0, out);
}

static tare_status do_zfill(struct call *c, struct value *out)
{
    OWNED(str_free) struct str text = {0};
    TRY(need_text(c, c->self));
    const int64_t width = c->arg[0]->type == V_INT ? c->arg[0]->i : -1;
    if (width < 0 || width > MOST_PADDING) return render_fail(c->r, c->line, "zfill takes a width of at most %d", MOST_PADDING);
    const int64_t sign = c->self.s.size && (c->self.s.data[0] == '-' || c->self.s.data[0] == '+');
    TRY(str_add(&text, c->self.s.data, sign, c->r->e));
    TRY(add_repeated(c, "0", 1, width - value_count_chars(c->self.s), &text));
    TRY(str_add(&text, c->self.s.data + sign, c->self.s.size - sign, c->r->e));
    return template_keep_text(c->r, c->line, &text, out);
}

/* ---------------------------------------------------------------- parts */

static tare_status part_text(struct call *c, bool last, struct value *out)
{
    TRY(need_text(c, c->self));
    TRY(need_text(c, *c->arg[0]));
    const tare_text text = c->self.s, by = c->arg[0]->s;
    int64_t at = -1;
    if (!by.size) return render_fail(c->r, c->line, "a separator is empty");
    TRY(render_spend(c->r, c->line, 1 + text.size / 16));
    for (int64_t i = 0; i + by.size <= text.size && (at < 0 || last); i++)
        if (!memcmp(text.data + i, by.data, (size_t)by.size)) at = i;
    const tare_text whole[3] = {last ? (tare_text){"", 0} : text, {"", 0}, last ? text : (tare_text){"", 0}};
    const tare_text split[3] = {{text.data, at}, by, {text.data + at + by.size, text.size - at - by.size}};
    TRY(value_new_list(c->r, c->line, 3, out));
    out->list->tuple = true;
    for (int k = 0; k < 3; k++) out->list->items[k] = (struct value){.type = V_STRING, .s = at < 0 ? whole[k] : split[k]};
    return TARE_OK;
}

static tare_status do_partition(struct call *c, struct value *out)
{
    return part_text(c, false, out);
}

static tare_status do_rpartition(struct call *c, struct value *out)
{
    return part_text(c, true, out);
}

/* index of a text or a list, which fails where find gives -1 */
static tare_status find_index(struct call *c, const char *find, struct value *out)
{
    bool same = false;
    if (c->self.type == V_LIST) {
        for (int64_t i = 0; i < c->self.list->n && !same; i++) {
            TRY(value_equal(c->r, c->line, c->self.list->items[i], *c->arg[0], &same));
            if (same) *out = value_int(i);
        }
        return same ? TARE_OK : render_fail(c->r, c->line, "index finds no such item");
    }
    TRY(need_text(c, c->self));
    TRY(template_call_builtin(c, template_find_method((tare_text){find, (int64_t)strlen(find)}), out));
    return out->i >= 0 ? TARE_OK : render_fail(c->r, c->line, "index finds no such text");
}

static tare_status do_index(struct call *c, struct value *out)
{
    return find_index(c, "find", out);
}

static tare_status do_rindex(struct call *c, struct value *out)
{
    return find_index(c, "rfind", out);
}

static tare_status do_copy(struct call *c, struct value *out)
{
    if (c->self.type == V_LIST || value_is_plain_dict(c->self)) return *out = c->self, TARE_OK; /* nothing changes either */
    return render_fail(c->r, c->line, "%s has no method copy()", value_type_name(c->self));
}

/* ---------------------------------------------------------------- kinds of characters */

enum text_kind { KIND_DIGIT, KIND_DECIMAL, KIND_ALPHA, KIND_ALNUM, KIND_SPACE };

static bool is_letter(utf8proc_category_t k)
{
    return k >= UTF8PROC_CATEGORY_LU && k <= UTF8PROC_CATEGORY_LO;
}

static bool has_kind(int32_t ch, enum text_kind kind)
{
    const utf8proc_category_t k = utf8proc_category(ch);
    const bool superscript =
        ch == 0xB2 || ch == 0xB3 || ch == 0xB9 || ch == 0x2070 || (ch >= 0x2074 && ch <= 0x2079) || (ch >= 0x2080 && ch <= 0x2089);
    switch (kind) {
    case KIND_DECIMAL:
        return k == UTF8PROC_CATEGORY_ND;
    case KIND_DIGIT:
        return k == UTF8PROC_CATEGORY_ND || superscript;
    case KIND_ALPHA:
        return is_letter(k);
    case KIND_ALNUM:
        return is_letter(k) || (k >= UTF8PROC_CATEGORY_ND && k <= UTF8PROC_CATEGORY_NO);
    default:
        return value_is_python_space(ch);
    }
}

static tare_status test_text(struct call *c, enum text_kind kind, struct value *out)
{
    TRY(need_text(c, c->self));
    TRY(render_spend(c->r, c->line, 1 + c->self.s.size / 16));
    bool all = c->self.s.size > 0;
    for (const unsigned char *p = (const unsigned char *)c->self.s.data, *end = p + c->self.s.size; p < end && all;)
        all = has_kind(utf8_next(&p), kind);
    *out = value_bool(all);
    return TARE_OK;
}

static tare_status do_isdigit(struct call *c, struct value *out)
{
    return test_text(c, KIND_DIGIT, out);
}

static tare_status do_isdecimal(struct call *c, struct value *out)
{
    return test_text(c, KIND_DECIMAL, out);
}

static tare_status do_isalpha(struct call *c, struct value *out)
{
    return test_text(c, KIND_ALPHA, out);
}

static tare_status do_isalnum(struct call *c, struct value *out)
{
    return test_text(c, KIND_ALNUM, out);
}

static tare_status do_isspace(struct call *c, struct value *out)
{
    return test_text(c, KIND_SPACE, out);
}

tare_status template_has_case(struct call *c, enum text_case how, struct value *out)
{
    TRY(need_text(c, c->self));
    TRY(render_spend(c->r, c->line, 1 + c->self.s.size / 16));
    bool any = false, all = true;
    for (const unsigned char *p = (const unsigned char *)c->self.s.data, *end = p + c->self.s.size; p < end;) {
        const int32_t ch = utf8_next(&p);
        const utf8proc_category_t k = utf8proc_category(ch);
        const bool lower = k == UTF8PROC_CATEGORY_LL || ch == 0xAA || ch == 0xBA, upper = k == UTF8PROC_CATEGORY_LU;
        if (!lower && !upper && k != UTF8PROC_CATEGORY_LT) continue;
        any = true;
        all = all && (how == CASE_LOWER ? lower : upper);
    }
    *out = value_bool(any && all);
    return TARE_OK;
}

static tare_status do_islower(struct call *c, struct value *out)
{
    return template_has_case(c, CASE_LOWER, out);
}

static tare_status do_isupper(struct call *c, struct value *out)
{
    return template_has_case(c, CASE_UPPER, out);
}

/* ---------------------------------------------------------------- filters */

static tare_status filter_escape(struct call *c, struct value *out)
{
    static const char marks[] = "&<>\"'";
    static const char *const names[] = {"&amp;", "&lt;", "&gt;", "&#34;", "&#39;"};
    OWNED(str_free) struct str escaped = {0};
    tare_text text;
    TRY(template_as_text(c->r, c->line, c->self, &text));
    TRY(render_spend(c->r, c->line, 1 + text.size / 16));
    TRY(str_reserve(&escaped, text.size, c->r->e));
    for (int64_t i = 0; i < text.size; i++) {
        const char *mark = text.data[i] ? strchr(marks, text.data[i]) : NULL;
        TRY(mark ? str_add(&escaped, names[mark - marks], -1, c->r->e) : str_add(&escaped, text.data + i, 1, c->r->e));
    }
    return template_keep_text(c->r, c->line, &escaped, out);
}

static tare_status filter_wordcount(struct call *c, struct value *out)
{
    tare_text text;
    int64_t n = 0;
    bool inside = false;
    TRY(template_as_text(c->r, c->line, c->self, &text));
    TRY(render_spend(c->r, c->line, 1 + text.size / 16));
    for (const unsigned char *p = (const unsigned char *)text.data, *end = p + text.size; p < end;) {
        const int32_t ch = utf8_next(&p);
        const bool word = ch == '_' || has_kind(ch, KIND_ALNUM);
        n += word && !inside;
        inside = word;
    }
    *out = value_int(n);
    return TARE_OK;
}

static tare_status whole_arg(struct call *c, int k, int64_t fallback, int64_t *out)
{
    *out = fallback;
    if (!c->arg[k] || c->arg[k]->type == V_NONE) return TARE_OK;
    if (c->arg[k]->type != V_INT)
        return render_fail(c->r, c->line, "a whole number is needed, not %s", value_type_name(*c->arg[k]));
    *out = c->arg[k]->i;
    return TARE_OK;
}

/* Returns the bytes of the first n characters. */
static int64_t bytes_of(tare_text text, int64_t n)
{
    int64_t size = 0;
    for (int64_t k = 0; size < text.size; size++) {
        k += (text.data[size] & 0xC0) != 0x80;
        if (k > n) break;
    }
    return size;
}

static tare_status filter_truncate(struct call *c, struct value *out)
{
    int64_t length, leeway;
    struct list *items;
    TRY(whole_arg(c, 0, 255, &length));
    TRY(whole_arg(c, 3, 5, &leeway));
    const bool kill = c->arg[1] && value_truthy(*c->arg[1]);
    const struct value mark = c->arg[2] ? *c->arg[2] : value_string("...", 3);
    TRY(need_text(c, mark));
    if (length < value_count_chars(mark.s) || leeway < 0)
        return render_fail(c->r, c->line, "truncate needs a length of at least that of its end");
    *out = c->self;
    const tare_text text = c->self.s;
    if (c->self.type != V_STRING) { /* Python compares the length of any value */
        TRY(value_iterate(c->r, c->line, c->self, &items));
        if (items->n <= length + leeway) return TARE_OK;
        return need_text(c, c->self);
    }
    if (value_count_chars(text) <= length + leeway) return TARE_OK;
    int64_t size = bytes_of(text, length - value_count_chars(mark.s));
    for (int64_t i = size; !kill && i-- > 0;)
        if (text.data[i] == ' ') {
            size = i;
            break;
        }
    return value_binary(c->r, c->line, OP_ADD, value_string(text.data, size), mark, out);
}

static const struct builtin format_filters[] = {
    {"format", filter_format, "*", 0},
    {"center", filter_center, "width", 0},
    {"e", filter_escape, "", 0},
    {"escape", filter_escape, "", 0},
    {"forceescape", filter_escape, "", 0},
    {"wordcount", filter_wordcount, "", 0},
    {"truncate", filter_truncate, "length,killwords,end,leeway", 0},
};

static const struct builtin text_methods[] = {
    {"ljust", do_ljust, "width,fillchar", 1},
    {"rjust", do_rjust, "width,fillchar", 1},
    {"center", do_center, "width,fillchar", 1},
    {"zfill", do_zfill, "width", 1},
    {"partition", do_partition, "sep", 1},
    {"rpartition", do_rpartition, "sep", 1},
    {"index", do_index, "sub", 1},
    {"rindex", do_rindex, "sub", 1},
    {"copy", do_copy, "", 0},
    {"isdigit", do_isdigit, "", 0},
    {"isdecimal", do_isdecimal, "", 0},
    {"isalpha", do_isalpha, "", 0},
    {"isalnum", do_isalnum, "", 0},
    {"isspace", do_isspace, "", 0},
    {"islower", do_islower, "", 0},
    {"isupper", do_isupper, "", 0},
};

const struct builtin *template_find_format_filter(tare_text name)
{
    for (size_t i = 0; i < sizeof format_filters / sizeof *format_filters; i++)
        if (value_text_is(name, format_filters[i].name)) return &format_filters[i];
    return NULL;
}

const struct builtin *template_find_text_method(tare_text name)
{
    for (size_t i = 0; i < sizeof text_methods / sizeof *text_methods; i++)
        if (value_text_is(name, text_methods[i].name)) return &text_methods[i];
    return NULL;
}
