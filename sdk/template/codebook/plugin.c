/* @NAME@: a row's cluster is a hash of its text, modulo K.
 *
 * Replace this with your assignment. A codebook that takes embeddings returns their width from dim;
 * one that takes rows returns 0. The cluster of a row may not depend on the other rows in the call
 * (see tare/clusterer.h). */
#include <tare/sdk.h>

enum { P_CLUSTERS, P_COUNT };

static const tare_param PARAMS[P_COUNT] = {
    [P_CLUSTERS] = {"clusters", "8", "K, how many clusters", NULL, NULL, 1, 1000000, TARE_INT, TARE_LOCKED_ON_RESUME},
};

static tare_status create(const tare_host *host, const tare_value *values, void **self, tare_error *error)
{
    (void)host, (void)error;
    *self = (void *)(uintptr_t)values;
    return TARE_OK;
}

static void destroy(void *self)
{
    (void)self;
}

static int64_t size(const void *self)
{
    return ((const tare_value *)self)[P_CLUSTERS].i;
}

static int64_t dim(const void *self)
{
    (void)self;
    return 0; /* rows, not embeddings */
}

static tare_status assign(const void *self, const float *embedding, const tare_text *rows, int64_t n, int32_t *cluster, float *distance, tare_error *error)
{
    (void)embedding, (void)error;
    for (int64_t i = 0; i < n; i++) {
        uint64_t hash = 14695981039346656037u; /* FNV-1a */
        for (int64_t j = 0; j < rows[i].size; j++) hash = (hash ^ (unsigned char)rows[i].data[j]) * 1099511628211u;
        cluster[i] = (int32_t)(hash % (uint64_t)size(self));
        if (distance) distance[i] = 0;
    }
    return TARE_OK;
}

static const tare_codebook FUNCTIONS = {
    .struct_size = sizeof FUNCTIONS, .create = create, .destroy = destroy, .size = size, .dim = dim, .assign = assign};

static const tare_descriptor DESCRIPTOR = {
    .struct_size = sizeof DESCRIPTOR,
    .kind = TARE_CODEBOOK,
    .name = "@NAME@",
    .version = "0.1.0",
    .summary = "a hash of the row, modulo K",
    .license = "Apache-2.0",
    .params = PARAMS,
    .n_params = P_COUNT,
    .param_size = sizeof(tare_param),
    .threading = TARE_REENTRANT,
    .functions = &FUNCTIONS,
};

TARE_PLUGIN_ENTRY(DESCRIPTOR)
