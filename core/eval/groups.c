/* Levels, subjects, and the difficulty buckets with their two halves, standard and complex. */
#define PCRE2_CODE_UNIT_WIDTH 8
#include "eval/eval.h"

#include "base/fs.h"

#include <math.h>
#include <pcre2.h>
#include <stdlib.h>
#include <string.h>

/* ---------------------------------------------------------------- a field of a row as text */

/* Returns NULL for a missing field, a number as its shortest text, true and false by name. */
static tare_status field_text(const json_t *row, const char *field, struct arena *a, const char **out, struct err *e)
{
    const json_t *v = json_object_get(row, field);
    char number[32];
    const char *text = NULL;
    *out = NULL;
    if (json_is_string(v) && json_string_length(v))
        text = json_string_value(v);
    else if (json_is_number(v) && fabs(json_number_value(v)) < 1e15 && json_number_value(v) == floor(json_number_value(v))) {
        snprintf(number, sizeof number, "%.0f", json_number_value(v)); /* 5 and 5.0 are one level */
        text = number;
    } else if (json_is_number(v))
        text = str_from_double(number, json_number_value(v));
    else if (json_is_boolean(v))
        text = json_is_true(v) ? "true" : "false";
    if (!text) return TARE_OK;
    char *copy;
    TRY(arena_strdup(a, text, -1, &copy, e));
    *out = copy;
    return TARE_OK;
}

static tare_status row_json(const struct row *row, json_t **out, struct err *e)
{
    return json_parse(row->json.data, row->json.size, row->where, out, e);
}

static tare_status group_by_field(const struct dataset *d, const char *field, struct arena *a, struct eval_grouping *g, bool *any,
                                  struct err *e)
{
    *g = (struct eval_grouping){.name = field};
    *any = false;
    TRY(arena_new(a, &g->label, d->n, e));
    TRY(arena_new(a, &g->rank, d->n, e));
    for (int64_t i = 0; i < d->n; i++) {
        json_t *row = NULL;
        TRY(row_json(&d->rows[i], &row, e));
        const tare_status s = field_text(row, field, a, &g->label[i], e);
        json_decref(row);
        TRY(s);
        if (g->label[i]) *any = true;
    }
    return TARE_OK;
}

/* ---------------------------------------------------------------- rules */

enum operator{ OP_LESS, OP_AT_MOST, OP_MORE, OP_AT_LEAST, OP_EQUAL, OP_OTHER, OP_MATCH };

struct rule {
    char field[128], value[1024];
    bool length; /* of the field's text, in characters */
    enum operator op;
    double number;
    bool is_number;
    pcre2_code *pattern;
};

static tare_status bad_rule(const char *where, const char *what, struct err *e)
{
    FAIL(e, TARE_E_CONFIG, "%s: %s; a rule is FIELD OP VALUE or length(FIELD) OP VALUE, with OP one of < <= > >= = != ~", where,
         what);
}

static const struct {
    const char *text;
    enum operator op;
} OPERATORS[] = {{"<=", OP_AT_MOST}, {">=", OP_AT_LEAST}, {"!=", OP_OTHER}, {"<", OP_LESS},
                 {">", OP_MORE},     {"=", OP_EQUAL},     {"~", OP_MATCH}};

static tare_status compile_pattern(struct rule *r, const char *where, struct err *e)
{
    int code;
    size_t at;
    PCRE2_UCHAR message[200];
    r->pattern = pcre2_compile((PCRE2_SPTR)r->value, PCRE2_ZERO_TERMINATED, PCRE2_UTF, &code, &at, NULL);
    if (r->pattern) return TARE_OK;
    pcre2_get_error_message(code, message, sizeof message);
    FAIL(e, TARE_E_CONFIG, "%s: the pattern %s: %s at character %zu", where, r->value, (const char *)message, at);
}

static tare_status parse_rule(const char *line, int64_t n, const char *where, struct rule *r, struct err *e)
{
    struct err ignored;
    const int64_t name = (int64_t)strcspn(line, " \t<>=!~");
    *r = (struct rule){0};
    if (!name || name >= (int64_t)sizeof r->field || name >= n) return bad_rule(where, "no field", e);
    if (name > 8 && !strncmp(line, "length(", 7) && line[name - 1] == ')') {
        r->length = true;
        memcpy(r->field, line + 7, (size_t)name - 8);
    } else {
        memcpy(r->field, line, (size_t)name);
    }
    const char *at = line + name + strspn(line + name, " \t");
    size_t k = 0;
    while (k < sizeof OPERATORS / sizeof *OPERATORS && strncmp(at, OPERATORS[k].text, strlen(OPERATORS[k].text))) k++;
    if (k == sizeof OPERATORS / sizeof *OPERATORS) return bad_rule(where, "no operator", e);
    r->op = OPERATORS[k].op;
    at += strlen(OPERATORS[k].text);
    at += strspn(at, " \t");
    const int64_t size = line + n - at;
    if (size < 1 || size >= (int64_t)sizeof r->value) return bad_rule(where, "the value is missing or too long", e);
    memcpy(r->value, at, (size_t)size);
    r->is_number = !str_to_double(r->value, &r->number, &ignored);
    if (r->op <= OP_AT_LEAST && !r->is_number) return bad_rule(where, "the value must be a number", e);
    if (r->length && (r->op == OP_MATCH || !r->is_number)) return bad_rule(where, "a length must be compared with a number", e);
    return r->op == OP_MATCH ? compile_pattern(r, where, e) : TARE_OK;
}

static double count_characters(const char *text)
{
    int64_t n = 0;
    for (; *text; text++) n += ((unsigned char)*text & 0xC0) != 0x80;
    return (double)n;
}

static bool compare_values(enum operator op, double x, double y)
{
    switch (op) {
    case OP_LESS:
        return x < y;
    case OP_AT_MOST:
        return x <= y;
    case OP_MORE:
        return x > y;
    case OP_AT_LEAST:
        return x >= y;
    case OP_EQUAL:
        return x == y;
    default:
        return x != y;
    }
}

static bool text_matches(const struct rule *r, const char *text)
{
    pcre2_match_data *m = pcre2_match_data_create_from_pattern(r->pattern, NULL);
    const bool yes = m && pcre2_match(r->pattern, (PCRE2_SPTR)text, PCRE2_ZERO_TERMINATED, 0, 0, m, NULL) >= 0;
    pcre2_match_data_free(m);
    return yes;
}

/* A field that is missing, or not a number where one is compared, satisfies no rule. */
static bool rule_holds(const struct rule *r, const char *text)
{
    struct err ignored;
    double x;
    if (!text) return false;
    if (r->length) return compare_values(r->op, count_characters(text), r->number);
    if (r->op == OP_MATCH) return text_matches(r, text);
    if (r->is_number && !str_to_double(text, &x, &ignored)) return compare_values(r->op, x, r->number);
    if (r->op == OP_EQUAL) return !strcmp(text, r->value);
    return r->op == OP_OTHER && strcmp(text, r->value) != 0;
}

static tare_status apply_rule(const struct rule *r, const struct dataset *d, bool *out, struct err *e)
{
    OWNED(arena_free) struct arena a = {0};
    arena_init(&a, "rule");
    for (int64_t i = 0; i < d->n; i++) {
        json_t *row = NULL;
        const char *text = NULL;
        TRY(row_json(&d->rows[i], &row, e));
        TRY(field_text(row, r->field, &a, &text, e));
        if (rule_holds(r, text)) out[i] = true;
        json_decref(row);
        arena_reset(&a);
    }
    return TARE_OK;
}

tare_status eval_rules(const char *text, const char *name, const struct dataset *d, bool *out, struct err *e)
{
    int64_t number = 0, rules = 0;
    for (const char *at = text; *at;) {
        const int64_t n = (int64_t)strcspn(at, "\n");
        const char *begin = at + strspn(at, " \t\r"), *end = at + n;
        char where[FS_PATH], line[2048];
        at += n + (at[n] == '\n');
        number++;
        while (end > begin && strchr(" \t\r", end[-1])) end--;
        if (begin >= end || *begin == '#' || *begin == ';') continue;
        snprintf(where, sizeof where, "%.*s:%lld", FS_PATH - 32, name, (long long)number);
        if (end - begin >= (int64_t)sizeof line) return bad_rule(where, "too long", e);
        snprintf(line, sizeof line, "%.*s", (int)(end - begin), begin);
        struct rule r;
        tare_status s = parse_rule(line, end - begin, where, &r, e);
        if (!s) s = apply_rule(&r, d, out, e);
        pcre2_code_free(r.pattern);
        TRY(s);
        rules++;
    }
    if (!rules) FAIL(e, TARE_E_CONFIG, "%s: missing rules; write lines such as: length(question) >= 400", name);
    return TARE_OK;
}

/* ---------------------------------------------------------------- difficulty */

static const char *const BUCKETS[] = {"Easy", "Medium", "Hard", "Hardest"};

static tare_status parse_buckets(const struct config *c, double bound[3], struct err *e)
{
    char text[128], *rest = NULL;
    int n = 0;
    snprintf(text, sizeof text, "%s", c->eval.buckets);
    for (char *word = strtok_r(text, ", \t", &rest); word; word = strtok_r(NULL, ", \t", &rest), n++) {
        struct err ignored;
        if (n == 3 || str_to_double(word, &bound[n], &ignored) || bound[n] < 0 || bound[n] > 1 || (n && bound[n] >= bound[n - 1])) {
            n = -1;
            break;
        }
    }
    if (n != 3)
        FAIL(e, TARE_E_CONFIG, "%s: eval.buckets = %s: must be three falling pass rates between 0 and 1, such as 0.75 0.5 0.25",
             config_where(c, "eval", "buckets"), c->eval.buckets);
    return TARE_OK;
}

struct estimates {
    json_t *rate; /* id -> pass rate */
    double bound[3];
    bool *complex_row; /* NULL: not distinguished */
};

static tare_status take_estimate(void *ctx, const json_t *o, const char *where, struct err *e)
{
    struct estimates *s = ctx;
    tare_text id;
    double rate;
    TRY(json_get_text(o, "id", where, &id, e));
    TRY(json_get_double(o, "pass_rate", where, &rate, e));
    if (!(rate >= 0 && rate <= 1)) FAIL(e, TARE_E_RANGE, "%s: pass_rate = %g: must be between 0 and 1", where, rate);
    if (json_object_set_new(s->rate, id.data, json_real(rate))) FAIL(e, TARE_E_NOMEM, "no memory for the difficulty estimate");
    return TARE_OK;
}

static tare_status read_estimates(const char *path, struct estimates *s, struct err *e)
{
    OWNED(fs_close_at) FILE *f = fopen(path, "r");
    if (!f) FAIL(e, TARE_E_IO, "eval.difficulty = %s cannot be read; run `tare eval` first to write it (questions.jsonl)", path);
    s->rate = json_object();
    return s->rate ? json_each_line(f, path, take_estimate, s, e) : TARE_E_NOMEM;
}

static tare_status complex_by_field(const struct config *c, const struct dataset *d, bool *out, struct err *e)
{
    OWNED(arena_free) struct arena a = {0};
    struct eval_grouping g;
    bool any;
    arena_init(&a, "complex");
    TRY(group_by_field(d, c->eval.complex_field, &a, &g, &any, e));
    for (int64_t i = 0; i < d->n; i++) {
        const char *v = g.label[i] ? g.label[i] : "absent";
        out[i] = !strcmp(v, "true") || !strcmp(v, "complex");
        if (!out[i] && strcmp(v, "false") && strcmp(v, "standard"))
            FAIL(e, TARE_E_INVALID, "%s: \"%s\" is %s; eval.complex_field must be true or \"complex\", false or \"standard\"",
                 d->rows[i].where, c->eval.complex_field, v);
    }
    return TARE_OK;
}

static tare_status read_complex(const struct config *c, const struct dataset *d, bool *out, struct err *e)
{
    if (*c->eval.complex_field && *c->eval.complex_rules)
        FAIL(e, TARE_E_CONFIG, "eval.complex_field (%s) and eval.complex_rules (%s) are both set; keep one",
             config_where(c, "eval", "complex_field"), config_where(c, "eval", "complex_rules"));
    if (*c->eval.complex_field) return complex_by_field(c, d, out, e);
    OWNED(str_free) struct str text = {0};
    TRY(fs_read_written(c->eval.complex_rules, &text, e));
    return eval_rules(text.data ? text.data : "", c->eval.complex_rules, d, out, e);
}

static tare_status label_difficulty(const struct config *c, const struct dataset *d, const struct estimates *s, struct arena *a,
                                    struct eval_grouping *g, struct err *e)
{
    for (int64_t i = 0; i < d->n; i++) {
        const json_t *v = json_object_get(s->rate, d->rows[i].id);
        const bool hard = s->complex_row && s->complex_row[i];
        if (!v)
            FAIL(e, TARE_E_NOT_FOUND,
                 "%s: eval.difficulty = %s has no line for \"%s\"; make it with `tare eval` on the same questions",
                 d->rows[i].where, c->eval.difficulty, d->rows[i].id);
        int bucket = 0;
        while (bucket < 3 && json_number_value(v) < s->bound[bucket]) bucket++;
        char label[64], *copy;
        snprintf(label, sizeof label, "%s%s", !s->complex_row ? "" : hard ? "complex " : "standard ", BUCKETS[bucket]);
        TRY(arena_strdup(a, label, -1, &copy, e));
        g->label[i] = copy;
        g->rank[i] = bucket + (hard ? 4 : 0);
    }
    return TARE_OK;
}

static void estimates_free(struct estimates *s)
{
    json_decref(s->rate);
}

static tare_status group_by_difficulty(const struct config *c, const struct dataset *d, struct arena *a, struct eval_grouping *g,
                                       struct err *e)
{
    OWNED(estimates_free) struct estimates s = {0};
    *g = (struct eval_grouping){.name = "difficulty"};
    TRY(arena_new(a, &g->label, d->n, e));
    TRY(arena_new(a, &g->rank, d->n, e));
    if (*c->eval.complex_field || *c->eval.complex_rules) {
        TRY(arena_new(a, &s.complex_row, d->n, e));
        TRY(read_complex(c, d, s.complex_row, e));
    }
    TRY(read_estimates(c->eval.difficulty, &s, e));
    TRY(parse_buckets(c, s.bound, e));
    return label_difficulty(c, d, &s, a, g, e);
}

tare_status eval_groupings(const struct config *c, const struct dataset *d, struct arena *a,
                           struct eval_grouping out[EVAL_GROUPINGS], int *n, struct err *e)
{
    static const char *const fields[] = {"level", "subject"};
    *n = 0;
    for (int i = 0; i < 2; i++) {
        bool any;
        TRY(group_by_field(d, fields[i], a, &out[*n], &any, e));
        *n += any;
    }
    if (!*c->eval.difficulty) {
        if (*c->eval.complex_field || *c->eval.complex_rules)
            FAIL(e, TARE_E_CONFIG, "eval.complex_field and eval.complex_rules split the difficulty table; set eval.difficulty");
        return TARE_OK;
    }
    TRY(group_by_difficulty(c, d, a, &out[*n], e));
    ++*n;
    return TARE_OK;
}
