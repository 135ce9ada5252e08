/* Maps the columns of a dump to their meaning. Each trainer is a line of MAPS. */
#include "lab/audit/internal.h"

#include <math.h>
#include <string.h>

#define AUDIT_COLUMN(NAME, TEXT) #TEXT,
static const char *const NAMES[AUDIT_N] = {AUDIT_COLUMNS(AUDIT_COLUMN)};
#undef AUDIT_COLUMN

/* `known` is the column that identifies a trainer's rows. TRL has a column for each reward
 * function, under its name. OpenRLHF: the output of its batch inference. slime: the samples of
 * --save-debug-rollout-data, as tools/to_jsonl.py --rows writes them. */
static const struct {
    struct field_map map;
    const char *known;
} MAPS[] = {
    {{"tare",
      {[AUDIT_GROUP] = "group",
       [AUDIT_PROMPT] = "question",
       [AUDIT_COMPLETION] = "completion",
       [AUDIT_ANSWER] = "answer",
       [AUDIT_REWARD] = "reward",
       [AUDIT_ADVANTAGE] = "advantage",
       [AUDIT_WEIGHT] = "rollout_weight",
       [AUDIT_LENGTH] = "length"},
      GROUPS_BY_PROMPT},
     "question"},
    {{"verl",
      {[AUDIT_STEP] = "step",
       [AUDIT_PROMPT] = "input",
       [AUDIT_COMPLETION] = "output",
       [AUDIT_ANSWER] = "gts",
       [AUDIT_REWARD] = "score",
       [AUDIT_ADVANTAGE] = "advantage"},
      GROUPS_BY_PROMPT},
     "score"},
    {{"slime",
      {[AUDIT_GROUP] = "group_index",
       [AUDIT_PROMPT] = "prompt",
       [AUDIT_COMPLETION] = "response",
       [AUDIT_ANSWER] = "label",
       [AUDIT_REWARD] = "reward",
       [AUDIT_LENGTH] = "response_length"},
      GROUPS_BY_PROMPT},
     "response"},
    {{"openrlhf",
      {[AUDIT_PROMPT] = "input", [AUDIT_COMPLETION] = "output", [AUDIT_ANSWER] = "label", [AUDIT_REWARD] = "reward"},
      GROUPS_BY_PROMPT},
     "output"},
    {{"trl",
      {[AUDIT_STEP] = "step",
       [AUDIT_PROMPT] = "prompt",
       [AUDIT_COMPLETION] = "completion",
       [AUDIT_ANSWER] = "answer",
       [AUDIT_ADVANTAGE] = "advantage"},
      GROUPS_IN_ORDER},
     "completion"},
};
enum { N_MAPS = sizeof MAPS / sizeof *MAPS };

const char *audit_column_name(enum audit_column c)
{
    return NAMES[c];
}

/* ---------------------------------------------------------------- the map */

/* True if a term of the sum is this column, or a path into it. */
static bool uses_column(const char *sum, const char *key)
{
    const size_t n = strlen(key);
    if (!strcmp(sum, key)) return true;
    while (*sum) {
        const size_t size = strcspn(sum, "+");
        const char *end = sum + size, *star = memchr(sum, '*', size), *name = star ? star + 1 : sum;
        if ((size_t)(end - name) >= n && !memcmp(name, key, n) && (name + n == end || name[n] == '.')) return true;
        sum = end + (*end == '+');
    }
    return false;
}

static bool takes_column(const struct field_map *m, const char *key)
{
    for (int c = 0; c < AUDIT_N; c++)
        if (m->column[c] && uses_column(m->column[c], key)) return true;
    return false;
}

/* Lists the columns that the map does not use; m NULL: all. Omits names that do not fit. */
static void list_columns(const json_t *row, const struct field_map *m, char *out, size_t capacity)
{
    static const char MORE[] = ", ...";
    const char *key;
    json_t *value;
    size_t at = 0;
    out[0] = 0;
    json_object_foreach((json_t *)(uintptr_t)row, key, value)
    {
        if (m && takes_column(m, key)) continue;
        if (at + 2 + strlen(key) + sizeof MORE > capacity) {
            snprintf(out + at, capacity - at, "%s", at ? MORE : MORE + 2);
            return;
        }
        at += (size_t)snprintf(out + at, capacity - at, "%s%s", at ? ", " : "", key);
    }
}

void fields_unused(const struct field_map *m, const json_t *row, char *out, size_t capacity)
{
    list_columns(row, m, out, capacity);
}

static tare_status start_map(const struct audit_options *o, const json_t *row, const char *where, struct field_map *out,
                             struct err *e)
{
    char columns[400];
    size_t k = 0;
    while (k < N_MAPS && (o->format ? strcmp(o->format, MAPS[k].map.name) != 0 : !json_object_get(row, MAPS[k].known))) k++;
    if (k < N_MAPS) {
        *out = MAPS[k].map;
        return TARE_OK;
    }
    if (o->format) FAIL(e, TARE_E_CONFIG, "--format %s: unknown; use tare, verl, slime, openrlhf or trl", o->format);
    if (o->n_fields) {
        *out = (struct field_map){.name = "own", .grouping = GROUPS_IN_ORDER};
        return TARE_OK;
    }
    list_columns(row, NULL, columns, sizeof columns);
    FAIL(e, TARE_E_CONFIG, "%s: no field map fits the columns (%s); name them: --field prompt=COLUMN --field completion=COLUMN ...",
         where, columns);
}

static tare_status take_field(const char *text, struct arena *a, struct field_map *m, struct err *e)
{
    const char *equals = strchr(text, '=');
    const size_t n = equals ? (size_t)(equals - text) : 0;
    char *copy;
    if (equals && n == 6 && !memcmp(text, "groups", 6)) {
        const bool order = !strcmp(equals + 1, "order");
        if (!order && strcmp(equals + 1, "prompt") != 0) FAIL(e, TARE_E_CONFIG, "--field %s: groups must be order or prompt", text);
        m->grouping = order ? GROUPS_IN_ORDER : GROUPS_BY_PROMPT;
        return TARE_OK;
    }
    for (int c = 0; equals && c < AUDIT_N; c++) {
        if (strlen(NAMES[c]) != n || memcmp(NAMES[c], text, n)) continue;
        TRY(arena_strdup(a, equals + 1, -1, &copy, e));
        m->column[c] = *copy ? copy : NULL;
        return TARE_OK;
    }
    FAIL(
        e, TARE_E_CONFIG,
        "--field %s: must be NAME=COLUMN, where NAME is step, group, prompt, completion, answer, reward, advantage, weight, length, loss_scale or groups",
        text);
}

/* Finds the reward column of TRL, which has the name of the reward function: the only number column
 * without another meaning. */
static tare_status find_reward(const json_t *row, const char *where, struct arena *a, struct field_map *m, struct err *e)
{
    const char *key, *only = NULL;
    json_t *value;
    int n = 0, empty = 0;
    char columns[400] = "", *copy;
    json_object_foreach((json_t *)(uintptr_t)row, key, value)
    {
        bool taken = !json_is_number(value) || !strcmp(key, "advantage") || !strcmp(key, "step");
        for (int c = 0; c < AUDIT_N; c++) taken = taken || (m->column[c] && !strcmp(m->column[c], key));
        empty += json_is_null(value);
        if (taken) continue;
        const size_t at = strlen(columns);
        snprintf(columns + at, sizeof columns - at, "%s%s", n++ ? ", " : "", key);
        only = key;
    }
    if (n != 1)
        FAIL(e, TARE_E_CONFIG, "%s: %s; name the reward with --field reward=COLUMN, or a weighted sum with --field reward=a+0.5*b",
             where,
             n       ? columns
             : empty ? "no column of this row is a number, and some are null"
                     : "no column is a reward");
    TRY(arena_strdup(a, only, -1, &copy, e));
    m->column[AUDIT_REWARD] = copy;
    return TARE_OK;
}

tare_status fields_choose(const struct audit_options *o, const json_t *row, const char *where, struct arena *a,
                          struct field_map *out, struct err *e)
{
    TRY(start_map(o, row, where, out, e));
    for (int64_t i = 0; i < o->n_fields; i++) TRY(take_field(o->fields[i], a, out, e));
    if (!out->column[AUDIT_REWARD]) TRY(find_reward(row, where, a, out, e));
    if (!out->column[AUDIT_PROMPT] || !out->column[AUDIT_COMPLETION])
        FAIL(e, TARE_E_CONFIG, "%s: missing column for the %s; name it with --field %s=COLUMN", where,
             out->column[AUDIT_PROMPT] ? "completion" : "prompt", out->column[AUDIT_PROMPT] ? "completion" : "prompt");
    return TARE_OK;
}

/* ---------------------------------------------------------------- a row */

/* Finds a column by name or path: names of members, and indices of arrays, from the end if
 * negative. */
static const json_t *find_value(const json_t *row, const char *path)
{
    const json_t *value = json_object_get(row, path);
    char part[128];
    for (value = value ? NULL : row; value && *path;) {
        const size_t n = strcspn(path, ".");
        int64_t at;
        snprintf(part, sizeof part, "%.*s", (int)(n < 127 ? n : 127), path);
        path += n + (path[n] == '.');
        if (json_is_object(value)) {
            value = json_object_get(value, part);
        } else if (json_is_array(value) && !str_to_int(part, &at, NULL)) {
            if (at < 0) at += (int64_t)json_array_size(value);
            value = at < 0 ? NULL : json_array_get(value, (size_t)at);
        } else {
            value = NULL;
        }
    }
    return value;
}

static const json_t *find_column(const json_t *row, const char *path)
{
    const json_t *plain = path ? json_object_get(row, path) : NULL;
    return !path ? NULL : plain ? plain : find_value(row, path);
}

/* Returns a value as text: for chat messages the content of the last one, for a number its text,
 * for other values their JSON. data NULL: missing. */
static tare_status read_text(const json_t *value, struct arena *a, tare_text *out, struct err *e)
{
    *out = (tare_text){0};
    if (json_is_array(value) && json_array_size(value)) {
        const json_t *last = json_array_get(value, json_array_size(value) - 1);
        if (json_is_string(json_object_get(last, "content"))) value = json_object_get(last, "content");
    }
    if (!value || json_is_null(value)) return TARE_OK;
    if (json_is_string(value)) {
        *out = (tare_text){json_string_value(value), (int64_t)json_string_length(value)};
        return TARE_OK;
    }
    OWNED(str_free) struct str text = {0};
    char number[32], *copy = NULL;
    TRY(json_is_real(value) ? str_add(&text, str_from_double(number, json_real_value(value)), -1, e) : json_print(value, &text, e));
    TRY(arena_strdup(a, text.data, text.size, &copy, e));
    *out = (tare_text){copy, text.size};
    return TARE_OK;
}

static double number_of(const json_t *value)
{
    if (json_is_boolean(value)) return json_is_true(value) ? 1 : 0;
    return json_is_number(value) ? json_number_value(value) : (double)NAN;
}

/* Computes a reward "a+0.5*b". A null term is skipped, as in TRL; NAN if all are null. */
static tare_status read_reward(const json_t *row, const char *sum, struct audit_row *out, struct err *e)
{
    double total = 0;
    int n = 0;
    while (*sum) {
        char term[200], *name = term;
        double weight = 1;
        const size_t size = strcspn(sum, "+");
        snprintf(term, sizeof term, "%.*s", (int)(size < 199 ? size : 199), sum);
        sum += size + (sum[size] == '+');
        char *star = strchr(term, '*');
        if (star) {
            *star = 0;
            name = star + 1;
            if (str_to_double(term, &weight, NULL))
                FAIL(e, TARE_E_CONFIG, "--field reward: '%s*%s' must be WEIGHT*COLUMN", term, name);
        }
        const json_t *value = find_column(row, name);
        out->no_reward = out->no_reward || !value || !(json_is_number(value) || json_is_boolean(value) || json_is_null(value));
        const double x = number_of(value);
        if (isnan(x)) continue;
        total += weight * x;
        n++;
    }
    out->reward = n ? total : (double)NAN;
    return TARE_OK;
}

static bool is_there(const json_t *value)
{
    return value && !json_is_null(value);
}

/* Returns a non-negative integer; 12.0 counts, as tables write a column with gaps. -1: missing, or
 * another value, which sets `odd`. */
static int64_t read_integer(const json_t *row, const struct field_map *m, enum audit_column c, struct audit_row *out)
{
    const json_t *value = find_column(row, m->column[c]);
    const double x = json_is_number(value) ? json_number_value(value) : -1;
    if (x >= 0 && x < 9e15 && x == floor(x)) return (int64_t)x;
    out->odd[c] = is_there(value);
    return -1;
}

static double real_of(const json_t *row, const struct field_map *m, enum audit_column c, struct audit_row *out)
{
    const json_t *value = find_column(row, m->column[c]);
    const double x = number_of(value);
    out->odd[c] = isnan(x) && is_there(value);
    return x;
}

tare_status fields_read(const struct field_map *m, const json_t *object, struct arena *a, struct audit_row *out, struct err *e)
{
    const char *const *c = m->column;
    tare_text key;
    *out = (struct audit_row){.object = (json_t *)(uintptr_t)object};
    out->step = read_integer(object, m, AUDIT_STEP, out);
    out->length = read_integer(object, m, AUDIT_LENGTH, out);
    TRY(read_text(find_column(object, c[AUDIT_GROUP]), a, &key, e));
    out->group_key = key.data;
    TRY(read_text(find_column(object, c[AUDIT_PROMPT]), a, &out->prompt, e));
    TRY(read_text(find_column(object, c[AUDIT_COMPLETION]), a, &out->completion, e));
    TRY(read_text(find_column(object, c[AUDIT_ANSWER]), a, &out->answer, e));
    TRY(read_reward(object, c[AUDIT_REWARD], out, e));
    out->advantage = real_of(object, m, AUDIT_ADVANTAGE, out);
    out->weight = real_of(object, m, AUDIT_WEIGHT, out);
    out->loss_scale = real_of(object, m, AUDIT_LOSS_SCALE, out);
    return TARE_OK;
}
