#include "cluster/codebook.h"

#include "base/fs.h"

#include <string.h>

static tare_status add_text(json_t *o, const char *key, const char *value, struct err *e)
{
    if (json_object_set_new(o, key, json_string(value)))
        FAIL(e, TARE_E_NOMEM, "codebook: %s cannot be stored (no memory or invalid UTF-8)", key);
    return TARE_OK;
}

static tare_status add_int(json_t *o, const char *key, int64_t value, struct err *e)
{
    char text[32];
    snprintf(text, sizeof text, "%lld", (long long)value);
    return add_text(o, key, text, e);
}

static tare_status add_hash(json_t *o, const char *key, uint64_t value, struct err *e)
{
    char text[32];
    snprintf(text, sizeof text, "%016llx", (unsigned long long)value);
    return add_text(o, key, text, e);
}

static tare_status set_metadata(json_t *m, int64_t d, const struct kmeans_options *o, const struct codebook_origin *from,
                                const struct kmeans_result *r, struct err *e)
{
    char inertia[32];
    TRY(add_text(m, "format", "tare.codebook/1", e));
    TRY(add_text(m, "encoder", from->encoder, e));
    TRY(add_hash(m, "encoder_hash", fs_hash(from->encoder, (int64_t)strlen(from->encoder), 0), e));
    TRY(add_int(m, "K", r->k, e));
    TRY(add_int(m, "D", d, e));
    TRY(add_text(m, "corpus", from->corpus, e));
    TRY(add_hash(m, "corpus_hash", from->corpus_hash, e));
    TRY(add_int(m, "corpus_rows", from->corpus_rows, e));
    TRY(add_text(m, "method", "greedy k-means++, Lloyd, swaps", e));
    TRY(add_int(m, "seed", (int64_t)o->seed, e));
    TRY(add_int(m, "restarts", o->restarts, e));
    TRY(add_int(m, "iterations", r->iterations, e));
    TRY(add_int(m, "iterations_limit", o->iterations, e));
    TRY(add_int(m, "swaps", o->swaps, e));
    TRY(add_int(m, "swaps_kept", r->swaps_kept, e));
    TRY(add_text(m, "converged", r->converged ? "true" : "false", e));
    TRY(add_text(m, "inertia", str_from_double(inertia, r->inertia), e));
    return add_text(m, "created_by", "tare " TARE_VERSION, e);
}

/* Writes the header, padded so that the floats after it are aligned, and the tensors. */
static tare_status write_tensors(const char *path, json_t *header, const float *centroids, int64_t bytes, tare_text state,
                                 struct err *e)
{
    OWNED(str_free) struct str text = {0}, file = {0};
    TRY(json_print(header, &text, e));
    while ((text.size + 8) % 64) TRY(str_add(&text, " ", 1, e));
    char length[8];
    for (int i = 0; i < 8; i++) length[i] = (char)((uint64_t)text.size >> (8 * i));
    TRY(str_add(&file, length, 8, e));
    TRY(str_add(&file, text.data, text.size, e));
    TRY(str_add(&file, (const char *)centroids, bytes, e));
    if (state.size) TRY(str_add(&file, state.data, state.size, e));
    char folder[FS_PATH];
    fs_dirname(folder, path);
    TRY(fs_mkdirs(folder, e));
    return fs_write_atomic(path, file.data, file.size, e);
}

static tare_status add_sum(const char *path, json_t *header, const float *centroids, int64_t bytes, tare_text state, struct err *e)
{
    OWNED(mem_free_at) char *text = json_dumps(header, JSON_COMPACT | JSON_SORT_KEYS);
    if (!text) FAIL(e, TARE_E_NOMEM, "%s: no memory for the checksum of the header", path);
    uint64_t hash = fs_hash(centroids, bytes, fs_hash(text, (int64_t)strlen(text), 0));
    if (state.size) hash = fs_hash(state.data, state.size, hash);
    return add_hash(json_object_get(header, "__metadata__"), "xxh3", hash, e);
}

static tare_status write_codebook(const char *path, int64_t d, const struct kmeans_options *o, const struct codebook_origin *from,
                                  const struct kmeans_result *r, struct err *e)
{
    const int64_t bytes = r->k * d * (int64_t)sizeof(float);
    json_t *metadata = json_object();
    OWNED(json_decrefp)
    json_t *header = json_pack("{s:o, s:{s:s, s:[I,I], s:[I,I]}}", "__metadata__", metadata, "centroids", "dtype", "F32", "shape",
                               (json_int_t)r->k, (json_int_t)d, "data_offsets", (json_int_t)0, (json_int_t)bytes);
    if (!header) FAIL(e, TARE_E_NOMEM, "%s: no memory for the header", path);
    TRY(set_metadata(metadata, d, o, from, r, e));
    const json_int_t size = (json_int_t)from->encoder_state.size;
    if (size && json_object_set_new(header, "encoder_state",
                                    json_pack("{s:s, s:[I], s:[I,I]}", "dtype", "U8", "shape", size, "data_offsets",
                                              (json_int_t)bytes, (json_int_t)bytes + size)))
        FAIL(e, TARE_E_NOMEM, "%s: no memory for the header", path);
    TRY(add_sum(path, header, r->centroids, bytes, from->encoder_state, e));
    return write_tensors(path, header, r->centroids, bytes, from->encoder_state, e);
}

tare_status codebook_train(const char *path, struct kmeans_rows rows, const struct kmeans_options *o,
                           const struct codebook_origin *from, struct kmeans_result *out, struct err *e)
{
    TRY(kmeans_train(rows, o, out, e));
    const tare_status status = write_codebook(path, rows.d, o, from, out, e);
    if (status) kmeans_result_free(out);
    return status;
}

tare_status codebook_train_texts(const char *path, const struct encoding *texts, const char *corpus, const struct kmeans_options *o,
                                 struct kmeans_result *out, struct err *e)
{
    struct plugin_instance *encoder = texts->encoder;
    const int64_t n = texts->n, d = encoder->sizes.dim;
    OWNED(str_free) struct str identity = {0}, state = {0};
    OWNED(mem_free_at) float *x = NULL;
    TRY(kmeans_check(o, n, e)); /* before the expensive encoding */
    TRY(plugin_fit(encoder, texts->texts, n, e));
    TRY(plugin_identity(encoder, &identity, e));
    if (encoder->plugin->encoder->save) TRY(plugin_save_raw(encoder, &state, e));
    TRY(mem_new(n * d * (int64_t)sizeof *x, (void **)&x, e));
    TRY(encode_texts(texts, x, e));
    const struct codebook_origin from = {.encoder = identity.data ? identity.data : "",
                                         .corpus = corpus,
                                         .corpus_hash = encode_hash_texts(texts->texts, n),
                                         .corpus_rows = n,
                                         .encoder_state = {state.data, state.size}};
    return codebook_train(path, (struct kmeans_rows){x, n, d}, o, &from, out, e);
}
