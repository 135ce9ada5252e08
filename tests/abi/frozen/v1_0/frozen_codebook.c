/* frozen_codebook: a row's cluster is a hash of its text, modulo K.
 */
#include <tare/sdk.h>

enum { P_CLUSTERS, P_COUNT };

static const tare_param PARAMS[P_COUNT] = {
    [P_CLUSTERS] = TARE_INT_PARAM("clusters", "8", "K, how many clusters", 1, 1000000, TARE_PARAM_LOCKED_ON_RESUME),
};

static tare_status create(const tare_setup *setup, void **self, tare_error *error)
{
    (void)error;
    *self = (void *)(uintptr_t)setup->values;
    return TARE_OK;
}

static void destroy(void *self)
{
    (void)self;
}

static tare_status sizes(const void *self, tare_sizes *out, tare_error *error)
{
    (void)error;
    out->clusters = ((const tare_value *)self)[P_CLUSTERS].i; /* dim 0: rows, not embeddings */
    return TARE_OK;
}

static tare_status assign(const void *self, const tare_prompts *prompts, tare_assignment *out, tare_error *error)
{
    const uint64_t clusters = (uint64_t)((const tare_value *)self)[P_CLUSTERS].i;
    (void)error;
    for (int64_t i = 0; i < prompts->n; i++) {
        uint64_t hash = 14695981039346656037u; /* FNV-1a */
        for (int64_t j = 0; j < prompts->row[i].size; j++) hash = (hash ^ (unsigned char)prompts->row[i].data[j]) * 1099511628211u;
        out->cluster[i] = (int32_t)(hash % clusters);
        if (out->distance) out->distance[i] = 0;
    }
    return TARE_OK;
}

static const tare_codebook FUNCTIONS = {
    .struct_size = sizeof FUNCTIONS, .create = create, .destroy = destroy, .sizes = sizes, .assign = assign};

static const tare_descriptor DESCRIPTOR = {
    .struct_size = sizeof DESCRIPTOR,
    .kind = TARE_KIND_CODEBOOK,
    .name = "frozen_codebook",
    .version = "0.1.0",
    .summary = "a hash of the row, modulo K",
    .license = "Apache-2.0",
    TARE_PARAMS(PARAMS, P_COUNT),
    .calls = TARE_CALLS_CONCURRENT,
    .functions = &FUNCTIONS,
};

TARE_PLUGIN_ENTRY(&DESCRIPTOR)
