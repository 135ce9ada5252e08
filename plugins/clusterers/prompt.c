/* prompt: every prompt is a separate cluster. With it BV-Blend keeps moments for each prompt, not
 * for clusters of prompts.
 *
 * A row is identified by a 128-bit hash of its JSON text. Clusters are numbered in the order in
 * which rows first occur in fit; equal rows share one. A row that did not occur in fit is in no
 * cluster (-1).
 */
#include "../common/built_in.h"

#include <stdlib.h>
#include <string.h>

struct row_key {
    uint64_t a, b;
    int64_t cluster;
};

struct prompt {
    struct row_key *keys; /* [n] in ascending order of (a, b) */
    int64_t n;
};

static struct row_key key_of(tare_text row)
{
    uint64_t a = 0xCBF29CE484222325u, b = 0x9AE16A3B2F90404Fu ^ (uint64_t)row.size;
    for (int64_t i = 0; i < row.size; i++) {
        const uint64_t c = (unsigned char)row.data[i];
        a = (a ^ c) * 0x100000001B3u;
        b = (b + c) * 0x9E3779B97F4A7C15u;
        b ^= b >> 29;
    }
    return (struct row_key){a, b, -1};
}

static int by_key(const void *x, const void *y)
{
    const struct row_key *p = x, *q = y;
    if (p->a != q->a) return p->a < q->a ? -1 : 1;
    if (p->b != q->b) return p->b < q->b ? -1 : 1;
    return 0;
}

static int by_key_then_first(const void *x, const void *y)
{
    const struct row_key *p = x, *q = y;
    const int order = by_key(x, y);
    return order ? order : p->cluster < q->cluster ? -1 : p->cluster > q->cluster;
}

static int by_first(const void *x, const void *y)
{
    const struct row_key *p = x, *q = y;
    return p->cluster < q->cluster ? -1 : p->cluster > q->cluster;
}

static tare_status create(const tare_setup *setup, void **self, tare_error *error)
{
    (void)setup;
    *self = calloc(1, sizeof(struct prompt));
    return *self ? TARE_OK : tare_fail(error, TARE_E_NOMEM, "no memory");
}

static void destroy(void *self)
{
    struct prompt *p = self;
    if (p) free(p->keys);
    free(p);
}

static tare_status sizes(const void *self, tare_sizes *out, tare_error *error)
{
    const struct prompt *s = self;
    (void)error;
    out->clusters = s->n;
    return TARE_OK;
}

static tare_status fit(void *self, const tare_prompts *prompts, tare_error *error)
{
    struct prompt *p = self;
    const int64_t n = prompts->n;
    if (n <= 0) return tare_fail(error, TARE_E_INVALID, "the data set has no rows");
    if (n > INT32_MAX)
        return tare_fail(error, TARE_E_RANGE, "%lld rows; at most %d clusters are possible", (long long)n, INT32_MAX);
    struct row_key *keys = malloc((size_t)n * sizeof *keys);
    if (!keys) return tare_fail(error, TARE_E_NOMEM, "no memory for %lld rows", (long long)n);
    for (int64_t i = 0; i < n; i++) {
        keys[i] = key_of(prompts->row[i]);
        keys[i].cluster = i;
    }
    qsort(keys, (size_t)n, sizeof *keys, by_key_then_first);
    int64_t distinct = 0;
    for (int64_t i = 0; i < n; i++)
        if (!i || by_key(&keys[i], &keys[distinct - 1])) keys[distinct++] = keys[i];
    qsort(keys, (size_t)distinct, sizeof *keys, by_first);
    for (int64_t i = 0; i < distinct; i++) keys[i].cluster = i;
    qsort(keys, (size_t)distinct, sizeof *keys, by_key);
    free(p->keys);
    p->keys = keys;
    p->n = distinct;
    return TARE_OK;
}

static tare_status assign(const void *self, const tare_prompts *prompts, tare_assignment *out, tare_error *error)
{
    const struct prompt *p = self;
    if (!prompts->row) return tare_fail(error, TARE_E_INVALID, "missing rows: this codebook reads rows of a data set");
    for (int64_t i = 0; i < prompts->n; i++) {
        const struct row_key key = key_of(prompts->row[i]);
        const struct row_key *found = p->n ? bsearch(&key, p->keys, (size_t)p->n, sizeof key, by_key) : NULL;
        out->cluster[i] = found ? (int32_t)found->cluster : -1;
        if (out->distance) out->distance[i] = 0;
    }
    return TARE_OK;
}

static tare_status save(const void *self, const tare_stream *out, tare_error *error)
{
    const struct prompt *p = self;
    tare_status status = out->write(out->ctx, &p->n, sizeof p->n);
    if (!status && p->n) status = out->write(out->ctx, p->keys, p->n * (int64_t)sizeof *p->keys);
    return status ? tare_fail(error, status, "the rows' hashes cannot be written") : TARE_OK;
}

/* Memory grows with the bytes read, so a damaged number of rows does not allocate more than the
 * state has. */
static tare_status read_keys(const tare_stream *in, int64_t n, struct row_key **keys, tare_error *error)
{
    for (int64_t have = 0, next; have < n; have = next) {
        next = have ? 2 * have : 4096;
        if (next > n) next = n;
        struct row_key *more = realloc(*keys, (size_t)next * sizeof **keys);
        if (!more) return tare_fail(error, TARE_E_NOMEM, "no memory for %lld rows", (long long)n);
        *keys = more;
        const tare_status status = in->read(in->ctx, more + have, (next - have) * (int64_t)sizeof **keys);
        if (status) return tare_fail(error, status, "the rows' hashes are damaged or cut short");
    }
    return TARE_OK;
}

static tare_status load(void *self, const tare_stream *in, tare_error *error)
{
    struct prompt *p = self;
    struct row_key *keys = NULL;
    int64_t n = 0;
    tare_status status = in->read(in->ctx, &n, sizeof n);
    if (status) return tare_fail(error, status, "the rows' hashes are cut short");
    if (n < 0 || n > INT32_MAX) return tare_fail(error, TARE_E_CORRUPT, "the saved number of rows is %lld", (long long)n);
    status = read_keys(in, n, &keys, error);
    for (int64_t i = 0; !status && i < n; i++)
        if (keys[i].cluster < 0 || keys[i].cluster >= n || (i && by_key(&keys[i - 1], &keys[i]) >= 0))
            status = tare_fail(error, TARE_E_CORRUPT, "the rows' hashes are damaged or cut short");
    if (status) {
        free(keys);
        return status;
    }
    free(p->keys);
    p->keys = keys;
    p->n = n;
    return TARE_OK;
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
};

BUILT_IN("prompt", .kind = TARE_KIND_CODEBOOK, .summary = "every prompt is a separate cluster", .state_version = 1,
         .state_oldest = 1)
