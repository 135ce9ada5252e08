/* kmeans: a codebook of K centroids, as `tare cluster train` trains it.
 *
 *   k(x) = argmin_j d(x, c_j),     d(x, c) = sum_i (x_i - c_i)^2            BV-Blend, Eq. (cluster)
 *
 * d is summed in double, in 8 lanes (lane l takes the elements l, l+8, ...) that are added as
 * ((0+4)+(2+6)) + ((1+5)+(3+7)): bit-identical on every machine and for every batch, and equal to
 * the definition in training. Ties go to the lowest index.
 *
 * File: safetensors with "centroids" F32 [K, D] and "encoder_state" U8 [n] (the encoder's state
 * from the corpus; absent: none), and in __metadata__ "format" = "tare.codebook/1", "encoder"
 * (identity of the encoder whose embeddings it takes), how it was made, and "xxh3", the checksum of
 * all of it (core/cluster/codebook.h). A file without a checksum (written by another program) is
 * accepted. */
#include "../../common/built_in.h"
#include "safetensors.h"

#include <inttypes.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <xxhash.h>

enum { P_PATH, N_PARAMS };

static const tare_param PARAMS[N_PARAMS] = {
    TARE_PATH_PARAM("path", NULL, "the codebook's file (safetensors), written by `tare cluster train`",
                    TARE_PARAM_REQUIRED | TARE_PARAM_RUN_FILE),
};

struct kmeans {
    struct safetensors file;
    int64_t k, d;
    const float *centroid; /* [K, D] */
    float *copy;           /* for centroids that are not aligned in the file */
    tare_text encoder, state;
};

static void destroy(void *self)
{
    struct kmeans *c = self;
    if (!c) return;
    safetensors_close(&c->file);
    free(c->copy);
    free(c);
}

static tare_status take_centroids(struct kmeans *c, const char *path, tare_error *error)
{
    const struct tensor *t = safetensors_find(&c->file, "centroids");
    if (!t || t->type != TENSOR_F32 || t->rank != 2 || t->shape[0] < 1 || t->shape[1] < 1 || t->shape[0] > INT32_MAX)
        return tare_fail(error, TARE_E_CORRUPT, "%s: has no tensor \"centroids\" of type F32 and shape [K, D]", path);
    c->k = t->shape[0];
    c->d = t->shape[1];
    c->centroid = (const float *)(const void *)t->data;
    if ((uintptr_t)t->data % sizeof(float)) {
        c->copy = malloc((size_t)(t->end - t->begin));
        if (!c->copy) return tare_fail(error, TARE_E_NOMEM, "no memory for the centroids of %s", path);
        memcpy(c->copy, t->data, (size_t)(t->end - t->begin));
        c->centroid = c->copy;
    }
    for (int64_t i = 0; i < t->items; i++)
        if (!isfinite(c->centroid[i]))
            return tare_fail(error, TARE_E_NOT_FINITE, "%s: centroid %lld is not finite; train the codebook again", path,
                             (long long)(i / c->d));
    return TARE_OK;
}

/* Computes the digest: over the header without the checksum, in the order of its keys, then over
 * each tensor's bytes, each with the previous digest as seed. */
static tare_status compare_sum(const struct kmeans *c, const char *path, tare_error *error)
{
    char was[17], is[17];
    int64_t size;
    const char *sum = safetensors_metadata(&c->file, "xxh3", &size);
    if (!sum) return TARE_OK;
    snprintf(was, sizeof was, "%s", sum);
    json_object_del(json_object_get(c->file.header, "__metadata__"), "xxh3");
    char *header = json_dumps(c->file.header, JSON_COMPACT | JSON_SORT_KEYS);
    if (!header) return tare_fail(error, TARE_E_NOMEM, "no memory for the sum of %s", path);
    uint64_t hash = XXH3_64bits(header, strlen(header));
    free(header);
    for (int64_t i = 0; i < c->file.n; i++)
        hash = XXH3_64bits_withSeed(c->file.tensors[i].data, (size_t)(c->file.tensors[i].end - c->file.tensors[i].begin), hash);
    snprintf(is, sizeof is, "%016" PRIx64, hash);
    if (size == 16 && !strcmp(was, is)) return TARE_OK;
    return tare_fail(
        error, TARE_E_CORRUPT,
        "%s: is damaged: its sum is %s, %s was written; take another copy or train it again with `tare cluster train` (if it was changed on purpose: without xxh3 in its __metadata__ it is taken as it is)",
        path, is, was);
}

static tare_status open_codebook(struct kmeans *c, const char *path, tare_error *error)
{
    tare_status status = safetensors_open(&c->file, path, error);
    if (status) return status;
    const char *format = safetensors_metadata(&c->file, "format", NULL);
    if (!format || strcmp(format, "tare.codebook/1"))
        return tare_fail(error, format ? TARE_E_VERSION : TARE_E_CORRUPT,
                         "%s: not a codebook (__metadata__ format is %s, not tare.codebook/1); make one with `tare cluster train`",
                         path, format ? format : "absent");
    if ((status = take_centroids(c, path, error))) return status;
    c->encoder.data = safetensors_metadata(&c->file, "encoder", &c->encoder.size);
    const struct tensor *state = safetensors_find(&c->file, "encoder_state");
    if (state && (state->type != TENSOR_U8 || state->rank != 1))
        return tare_fail(error, TARE_E_CORRUPT, "%s: tensor \"encoder_state\" is not of type U8 and rank 1", path);
    if (state) c->state = (tare_text){(const char *)state->data, state->items};
    return compare_sum(c, path, error);
}

static tare_status create(const tare_setup *setup, void **self, tare_error *error)
{
    struct kmeans *c = calloc(1, sizeof *c);
    if (!c) return tare_fail(error, TARE_E_NOMEM, "no memory");
    const tare_status status = open_codebook(c, setup->values[P_PATH].s, error);
    if (status) {
        destroy(c);
        return status;
    }
    *self = c;
    return TARE_OK;
}

static tare_status sizes(const void *self, tare_sizes *out, tare_error *error)
{
    const struct kmeans *s = self;
    (void)error;
    out->dim = s->d;
    out->clusters = s->k;
    return TARE_OK;
}

static double squared_distance(const float *x, const float *c, int64_t d)
{
    double lane[8] = {0};
    int64_t i = 0;
    for (; i + 8 <= d; i += 8) {
        for (int l = 0; l < 8; l++) {
            const double difference = (double)x[i + l] - (double)c[i + l];
            lane[l] += difference * difference;
        }
    }
    for (int l = 0; i + l < d; l++) {
        const double difference = (double)x[i + l] - (double)c[i + l];
        lane[l] += difference * difference;
    }
    return ((lane[0] + lane[4]) + (lane[2] + lane[6])) + ((lane[1] + lane[5]) + (lane[3] + lane[7]));
}

static tare_status assign(const void *self, const tare_prompts *prompts, tare_assignment *out, tare_error *error)
{
    const struct kmeans *c = self;
    if (!prompts->embedding) return tare_fail(error, TARE_E_INVALID, "missing embeddings: set the encoder of this codebook");
    for (int64_t i = 0; i < prompts->n; i++) {
        const float *x = prompts->embedding + i * c->d;
        double best = INFINITY;
        int64_t nearest = -1;
        for (int64_t j = 0; j < c->k; j++) {
            const double d2 = squared_distance(x, c->centroid + j * c->d, c->d);
            if (d2 < best) {
                best = d2;
                nearest = j;
            }
        }
        if (nearest < 0) return tare_fail(error, TARE_E_NOT_FINITE, "embedding %lld has a NaN or an infinity", (long long)i);
        out->cluster[i] = (int32_t)nearest;
        if (out->distance) out->distance[i] = (float)best;
    }
    return TARE_OK;
}

static tare_status encoder_identity(const void *self, const tare_stream *out, tare_error *error)
{
    const struct kmeans *c = self;
    (void)error;
    return tare_put(out, c->encoder.data, c->encoder.size);
}

static tare_status encoder_state(const void *self, const tare_stream *out, tare_error *error)
{
    const struct kmeans *c = self;
    (void)error;
    return tare_put(out, c->state.data, c->state.size);
}

static const tare_codebook FUNCTIONS = {
    .struct_size = sizeof FUNCTIONS,
    .create = create,
    .destroy = destroy,
    .sizes = sizes,
    .assign = assign,
    .encoder_identity = encoder_identity,
    .encoder_state = encoder_state,
};

BUILT_IN("kmeans", .kind = TARE_KIND_CODEBOOK, .summary = "the nearest of K centroids, from a file of `tare cluster train`",
         .about = ABOUT("BV-Blend, prompt clustering: k = argmin_j ||E(q) - c_j||^2"), TARE_PARAMS(PARAMS, N_PARAMS))
