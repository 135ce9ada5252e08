/* @NAME@: a row's cluster is a hash of its text, modulo K.
 *
 * Replace this with your assignment. A codebook of embeddings gives their width as dim; one of
 * rows leaves it 0. The cluster of a row may not depend on the other rows in the call. A codebook
 * that learns the values that occur adds fit, save and load (see tare/codebook.h). */
#include <tare/sdk.h>

enum { P_CLUSTERS, P_COUNT };

static const tare_param PARAMS[P_COUNT] = {
    [P_CLUSTERS] = TARE_INT_PARAM("clusters", "8", "number of clusters K", 1, 1000000, TARE_PARAM_LOCKED_ON_RESUME),
};

static tare_status create(const tare_setup *setup, void **self, tare_error *error)
{
    (void)error;
    *self = (void *)(uintptr_t)setup->values; /* no state: the values live as long as the instance */
    return TARE_OK;
}

static void destroy(void *self)
{
    (void)self;
}

static tare_status sizes(const void *self, tare_sizes *out, tare_error *error)
{
    const tare_value *v = self;
    (void)error;
    out->clusters = v[P_CLUSTERS].i; /* dim stays 0: rows, not embeddings */
    return TARE_OK;
}

static tare_status assign(const void *self, const tare_prompts *prompts, tare_assignment *out, tare_error *error)
{
    const tare_value *v = self;
    if (prompts->n && !prompts->row) return tare_fail(error, TARE_E_INVALID, "the rows are missing");
    for (int64_t i = 0; i < prompts->n; i++) {
        const tare_text row = prompts->row[i];
        uint64_t hash = 14695981039346656037u; /* FNV-1a */
        for (int64_t j = 0; j < row.size; j++) hash = (hash ^ (unsigned char)row.data[j]) * 1099511628211u;
        out->cluster[i] = (int32_t)(hash % (uint64_t)v[P_CLUSTERS].i);
    }
    return TARE_OK;
}

static const tare_codebook FUNCTIONS = {
    .struct_size = sizeof FUNCTIONS, .create = create, .destroy = destroy, .sizes = sizes, .assign = assign};

static const tare_descriptor DESCRIPTOR = {
    .struct_size = sizeof DESCRIPTOR,
    .kind = TARE_KIND_CODEBOOK,
    .name = "@NAME@",
    .version = "0.1.0",
    .summary = "a hash of the row, modulo K",
    .license = "Apache-2.0",
    TARE_PARAMS(PARAMS, P_COUNT),
    .calls = TARE_CALLS_CONCURRENT, /* an instance changes nothing, so any thread may call it */
    .functions = &FUNCTIONS,
};

TARE_PLUGIN_ENTRY(&DESCRIPTOR)
