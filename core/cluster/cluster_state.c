/* The state of a run's clusters in a checkpoint. */
#include "base/fs.h"
#include "base/json.h"
#include "cluster/cluster.h"
#include "cluster/codebook.h"
#include "cluster/match.h"

#include <string.h>

static tare_status set_member(json_t *o, const char *key, json_t *value, struct err *e)
{
    if (json_object_set_new(o, key, value)) FAIL(e, TARE_E_NOMEM, "clusters: no memory for %s", key);
    return TARE_OK;
}

static tare_status set_identity(json_t *o, const char *key, const struct plugin_instance *i, struct err *e)
{
    OWNED(str_free) struct str identity = {0};
    TRY(plugin_identity(i, &identity, e));
    return set_member(o, key, json_stringn(identity.data, (size_t)identity.size), e);
}

static tare_status set_hash(json_t *o, const char *key, uint64_t hash, struct err *e)
{
    char text[32];
    snprintf(text, sizeof text, "%016llx", (unsigned long long)hash);
    return set_member(o, key, json_string(text), e);
}

/* Stores everything that determines the clusters: plugins, the codebook's file, and the cluster of
 * every row. */
static tare_status set_origin(const struct cluster *c, json_t *o, struct err *e)
{
    TRY(set_member(o, "clusters", json_integer((json_int_t)c->n_clusters), e));
    if (!c->codebook) return TARE_OK;
    TRY(set_identity(o, "codebook", c->codebook, e));
    if (c->encoder) TRY(set_identity(o, "encoder", c->encoder, e));
    const char *path = match_codebook_path(c->codebook);
    uint64_t hash;
    if (path) {
        TRY(fs_hash_file(path, &hash, e));
        TRY(set_hash(o, "codebook_hash", hash, e));
    }
    return set_hash(o, "assignment_hash", fs_hash(c->of_row, c->data->n * (int64_t)sizeof *c->of_row, 0), e);
}

static tare_status set_counts(const struct cluster *c, json_t *o, const char *key, const int64_t *counts, struct err *e)
{
    json_t *list = json_array();
    if (list)
        for (int64_t k = 0; k < c->n_clusters; k++)
            if (json_array_append_new(list, json_integer((json_int_t)counts[k]))) {
                json_decref(list);
                list = NULL;
            }
    return set_member(o, key, list, e);
}

static tare_status print_state(json_t *o, tare_status status, struct str *out, struct err *e)
{
    if (!status) status = json_print(o, out, e);
    json_decref(o);
    return status;
}

tare_status cluster_save(const struct cluster *c, struct str *out, struct err *e)
{
    json_t *o = json_object();
    tare_status status = set_origin(c, o, e);
    if (!status && c->codebook) status = set_counts(c, o, "used", c->used, e);
    return print_state(o, status, out, e);
}

static tare_status check_origin(const json_t *saved, const json_t *now, const char *where, struct err *e)
{
    static const char *const KEYS[] = {"clusters", "codebook", "encoder", "codebook_hash", "assignment_hash"};
    for (size_t i = 0; i < sizeof KEYS / sizeof *KEYS; i++) {
        const json_t *a = json_object_get(saved, KEYS[i]), *b = json_object_get(now, KEYS[i]);
        if ((!a && !b) || (a && b && json_equal(a, b))) continue;
        struct str was = {0}, is = {0};
        if (a) TRY(json_print(a, &was, e));
        if (b) TRY(json_print(b, &is, e));
        err_set(
            e, TARE_E_CONFIG, __FILE__, __LINE__,
            "%s: the run's clusters have %s %s, but now it is %s; the moments of one clustering are meaningless in another: restore the codebook, the encoder and the data set, or start a new run",
            where, KEYS[i], was.size ? was.data : "none", is.size ? is.data : "none");
        str_free(&was);
        str_free(&is);
        return e->code;
    }
    return TARE_OK;
}

tare_status cluster_resume(struct cluster *c, const char *data, int64_t n, const char *where, struct err *e)
{
    OWNED(json_decrefp) json_t *saved = NULL, *now = json_object();
    TRY(json_parse(data, n, where, &saved, e));
    TRY(set_origin(c, now, e));
    TRY(check_origin(saved, now, where, e));
    const json_t *used = json_object_get(saved, "used");
    if (c->codebook && json_array_size(used) != (size_t)c->n_clusters)
        FAIL(e, TARE_E_CORRUPT, "%s: \"used\" must have one number for each of %lld clusters", where, (long long)c->n_clusters);
    if (c->codebook)
        for (int64_t k = 0; k < c->n_clusters; k++) c->used[k] = json_integer_value(json_array_get(used, (size_t)k));
    return TARE_OK;
}
