/* field: the value of a field of the row is the cluster ("subject", for example): K clusters made
 * by people.
 *
 * The values are those of the parameter `values`, in that order, or else the distinct values of the
 * data set in ascending byte order, learnt by fit. A string counts as it is; whole numbers, other
 * numbers and booleans as JSON writes them. A row without the field, or with a value that is not in
 * the list, is in no cluster (-1).
 */
#include "../../common/built_in.h"

#include <jansson.h>
#include <stdlib.h>
#include <string.h>

enum { P_FIELD, P_VALUES, N_PARAMS };
enum { VALUE_LIMIT = 1 << 20 };

static const tare_param PARAMS[N_PARAMS] = {
    TARE_STRING_PARAM("field", "subject", "the row's field whose value is the cluster",
                      TARE_PARAM_SWEEPABLE | TARE_PARAM_LOCKED_ON_RESUME),
    TARE_STRING_PARAM("values", "", "the values that are clusters, separated by commas; empty: every value in the data set",
                      TARE_PARAM_LOCKED_ON_RESUME),
};

struct value {
    char *text; /* allocated */
    int64_t size;
    int64_t cluster;
};

struct field {
    char *name;
    struct value *values; /* [n] in ascending byte order */
    int64_t n, capacity;
    int64_t *of_cluster; /* [n] index into values of cluster k */
    int fixed;           /* values came as a parameter */
};

static void drop_values(struct field *f)
{
    for (int64_t i = 0; i < f->n; i++) free(f->values[i].text);
    free(f->values);
    free(f->of_cluster);
    f->values = NULL;
    f->of_cluster = NULL;
    f->n = f->capacity = 0;
}

static void destroy(void *self)
{
    struct field *f = self;
    if (!f) return;
    drop_values(f);
    free(f->name);
    free(f);
}

static int compare(const char *a, int64_t n, const char *b, int64_t m)
{
    const int order = memcmp(a, b, (size_t)(n < m ? n : m));
    return order ? order : n < m ? -1 : n > m;
}

static int by_text(const void *x, const void *y)
{
    const struct value *a = x, *b = y;
    return compare(a->text, a->size, b->text, b->size);
}

static const struct value *find_value(const struct field *f, const char *text, int64_t size)
{
    int64_t low = 0, high = f->n;
    while (low < high) {
        const int64_t middle = low + (high - low) / 2;
        const int order = compare(f->values[middle].text, f->values[middle].size, text, size);
        if (!order) return &f->values[middle];
        if (order < 0) {
            low = middle + 1;
        } else {
            high = middle;
        }
    }
    return NULL;
}

/* Inserts a value at its position in the order, unless it exists. Its cluster is the number of
 * values inserted before it. */
static tare_status insert_value(struct field *f, const char *text, int64_t size, tare_error *error)
{
    if (find_value(f, text, size)) return TARE_OK;
    if (f->n == VALUE_LIMIT)
        return tare_fail(error, TARE_E_RANGE, "field %s has more than %d values; choose another field", f->name, VALUE_LIMIT);
    if (f->n == f->capacity) {
        const int64_t capacity = f->capacity ? 2 * f->capacity : 16;
        struct value *values = realloc(f->values, (size_t)capacity * sizeof *values);
        if (!values) return tare_fail(error, TARE_E_NOMEM, "no memory for the values of field %s", f->name);
        f->values = values;
        f->capacity = capacity;
    }
    char *copy = malloc((size_t)size + 1);
    if (!copy) return tare_fail(error, TARE_E_NOMEM, "no memory for the values of field %s", f->name);
    memcpy(copy, text, (size_t)size);
    copy[size] = 0;
    struct value v = {copy, size, f->n};
    int64_t at = f->n;
    while (at > 0 && by_text(&f->values[at - 1], &v) > 0) at--;
    memmove(f->values + at + 1, f->values + at, (size_t)(f->n - at) * sizeof v);
    f->values[at] = v;
    f->n++;
    return TARE_OK;
}

static tare_status number_clusters(struct field *f, int by_order, tare_error *error)
{
    free(f->of_cluster);
    f->of_cluster = malloc((size_t)(f->n ? f->n : 1) * sizeof *f->of_cluster);
    if (!f->of_cluster) return tare_fail(error, TARE_E_NOMEM, "no memory for the values of field %s", f->name);
    for (int64_t i = 0; i < f->n; i++) {
        if (by_order) f->values[i].cluster = i;
        f->of_cluster[f->values[i].cluster] = i;
    }
    return TARE_OK;
}

static tare_status take_list(struct field *f, const char *list, tare_error *error)
{
    while (*list) {
        const char *comma = strchr(list, ',');
        const char *begin = list, *end = comma ? comma : list + strlen(list);
        list = comma ? comma + 1 : end;
        while (begin < end && *begin == ' ') begin++;
        while (end > begin && end[-1] == ' ') end--;
        if (begin == end) return tare_fail(error, TARE_E_INVALID, "values has an empty entry; write them as \"algebra, geometry\"");
        if (find_value(f, begin, end - begin))
            return tare_fail(error, TARE_E_INVALID, "values names \"%.*s\" twice", (int)(end - begin), begin);
        const tare_status status = insert_value(f, begin, end - begin, error);
        if (status) return status;
    }
    f->fixed = f->n > 0;
    return number_clusters(f, 0, error);
}

static tare_status create(const tare_setup *setup, void **self, tare_error *error)
{
    const tare_value *values = setup->values;
    if (!values[P_FIELD].s[0]) return tare_fail(error, TARE_E_INVALID, "field is empty; name a field of the rows, such as subject");
    struct field *f = calloc(1, sizeof *f);
    if (f) f->name = strdup(values[P_FIELD].s);
    if (!f || !f->name) {
        free(f);
        return tare_fail(error, TARE_E_NOMEM, "no memory");
    }
    const tare_status status = take_list(f, values[P_VALUES].s, error);
    if (status) {
        destroy(f);
        return status;
    }
    *self = f;
    return TARE_OK;
}

static tare_status sizes(const void *self, tare_sizes *out, tare_error *error)
{
    const struct field *s = self;
    (void)error;
    out->clusters = s->n;
    return TARE_OK;
}

/* Returns the row's value as text (the caller frees it), or NULL when the row has none. */
static tare_status field_value(const struct field *f, tare_text row, int64_t index, char **text, int64_t *text_size,
                               tare_error *error)
{
    json_error_t bad;
    *text = NULL;
    json_t *object = json_loadb(row.data, (size_t)row.size, JSON_REJECT_DUPLICATES | JSON_ALLOW_NUL, &bad);
    if (!json_is_object(object)) {
        json_decref(object);
        return tare_fail(error, TARE_E_INVALID, "row %lld is not a JSON object", (long long)index);
    }
    const json_t *v = json_object_get(object, f->name);
    tare_status status = TARE_OK;
    if (json_is_string(v)) {
        *text_size = (int64_t)json_string_length(v);
        *text = malloc((size_t)*text_size + 1);
        if (*text) memcpy(*text, json_string_value(v), (size_t)*text_size + 1);
        if (!*text) status = tare_fail(error, TARE_E_NOMEM, "no memory");
    } else if (json_is_number(v) || json_is_boolean(v)) {
        *text = json_dumps(v, JSON_ENCODE_ANY | JSON_REAL_PRECISION(17));
        if (*text) *text_size = (int64_t)strlen(*text);
        if (!*text) status = tare_fail(error, TARE_E_NOMEM, "no memory");
    } else if (v && !json_is_null(v)) {
        status = tare_fail(error, TARE_E_INVALID,
                           "row %lld: field %s is a list or an object; a cluster needs a text, a number or a boolean",
                           (long long)index, f->name);
    }
    json_decref(object);
    return status;
}

static tare_status fit(void *self, const tare_prompts *prompts, tare_error *error)
{
    struct field *f = self;
    if (f->fixed) return TARE_OK;
    struct field learnt = {.name = f->name};
    tare_status status = TARE_OK;
    for (int64_t i = 0; i < prompts->n && !status; i++) {
        char *text;
        int64_t text_size = 0;
        status = field_value(f, prompts->row[i], i, &text, &text_size, error);
        if (!status && text) status = insert_value(&learnt, text, text_size, error);
        free(text);
    }
    if (!status && !learnt.n)
        status = tare_fail(error, TARE_E_CONFIG,
                           "none of the %lld rows has the field %s; choose one that they have, or another codebook",
                           (long long)prompts->n, f->name);
    if (!status) status = number_clusters(&learnt, 1, error);
    if (status) {
        drop_values(&learnt);
        return status;
    }
    drop_values(f);
    f->values = learnt.values;
    f->of_cluster = learnt.of_cluster;
    f->n = learnt.n;
    f->capacity = learnt.capacity;
    return TARE_OK;
}

static tare_status assign(const void *self, const tare_prompts *prompts, tare_assignment *out, tare_error *error)
{
    const struct field *f = self;
    if (!prompts->row) return tare_fail(error, TARE_E_INVALID, "missing rows: this codebook reads rows of a data set");
    for (int64_t i = 0; i < prompts->n; i++) {
        char *text;
        int64_t text_size = 0;
        const tare_status status = field_value(f, prompts->row[i], i, &text, &text_size, error);
        if (status) return status;
        const struct value *found = text ? find_value(f, text, text_size) : NULL;
        free(text);
        out->cluster[i] = found ? (int32_t)found->cluster : -1;
        if (out->distance) out->distance[i] = 0;
    }
    return TARE_OK;
}

/* State: n, then for each cluster its size and its bytes. */
static tare_status save(const void *self, const tare_stream *out, tare_error *error)
{
    const struct field *f = self;
    tare_status status = out->write(out->ctx, &f->n, sizeof f->n);
    for (int64_t k = 0; !status && k < f->n; k++) {
        const struct value *v = &f->values[f->of_cluster[k]];
        status = out->write(out->ctx, &v->size, sizeof v->size);
        if (!status) status = out->write(out->ctx, v->text, v->size);
    }
    return status ? tare_fail(error, status, "the values of field %s cannot be written", f->name) : TARE_OK;
}

static tare_status load_values(struct field *f, const tare_stream *in, tare_error *error)
{
    int64_t n = 0;
    tare_status status = in->read(in->ctx, &n, sizeof n);
    if (!status && (n < 0 || n > VALUE_LIMIT)) status = TARE_E_CORRUPT;
    for (int64_t k = 0; !status && k < n; k++) {
        int64_t text_size = 0;
        status = in->read(in->ctx, &text_size, sizeof text_size);
        if (!status && (text_size < 0 || text_size > VALUE_LIMIT)) status = TARE_E_CORRUPT;
        char *text = status ? NULL : malloc((size_t)text_size + 1);
        if (!status && !text) status = TARE_E_NOMEM;
        if (!status && text_size) status = in->read(in->ctx, text, text_size);
        if (!status) status = find_value(f, text, text_size) ? TARE_E_CORRUPT : insert_value(f, text, text_size, error);
        free(text);
    }
    if (status) return tare_fail(error, status, "the saved values of field %s are damaged or cut short", f->name);
    return number_clusters(f, 0, error);
}

static tare_status load(void *self, const tare_stream *in, tare_error *error)
{
    struct field *f = self, loaded = {.name = f->name};
    const tare_status status = load_values(&loaded, in, error);
    if (status) {
        drop_values(&loaded);
        return status;
    }
    drop_values(f);
    f->values = loaded.values;
    f->of_cluster = loaded.of_cluster;
    f->n = loaded.n;
    f->capacity = loaded.capacity;
    return TARE_OK;
}

static tare_status cluster_name(const void *self, int64_t k, const tare_stream *out, tare_error *error)
{
    const struct field *f = self;
    (void)error;
    if (k < 0 || k >= f->n) return TARE_OK;
    const struct value *v = &f->values[f->of_cluster[k]];
    return tare_put(out, v->text, v->size);
}

static const tare_codebook FUNCTIONS = {
    .struct_size = sizeof FUNCTIONS,
    .create = create,
    .destroy = destroy,
    .sizes = sizes,
    .assign = assign,
    .fit = fit,
    .save = save,
    .load = load,
    .cluster_name = cluster_name,
};

BUILT_IN("field", .kind = TARE_KIND_CODEBOOK, .summary = "the value of a field of the row is the cluster",
         TARE_PARAMS(PARAMS, N_PARAMS), .state_version = 1, .state_oldest = 1)
