/* @NAME@: counts of bytes, hashed into D buckets, scaled to length one.
 *
 *   e[d] = #{bytes b of the text: b mod D = d},   E(q) = e / |e|    zero for the empty text
 *
 * Replace this with your encoder. A text's embedding may not depend on the other texts in the
 * call. An encoder that learns from a corpus adds fit, save and load; one whose weights come from
 * a file adds identity (see tare/encoder.h). */
#include <tare/sdk.h>

enum { P_DIM, P_COUNT };

static const tare_param PARAMS[P_COUNT] = {
    [P_DIM] = TARE_INT_PARAM("dim", "32", "number of buckets D", 1, 4096, 0),
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
    out->dim = v[P_DIM].i;
    return TARE_OK;
}

static tare_status encode(void *self, const tare_text *texts, int64_t n, float *out, tare_error *error)
{
    const int64_t D = ((const tare_value *)self)[P_DIM].i;
    (void)error;
    for (int64_t i = 0; i < n; i++) {
        float *e = out + i * D;
        double square = 0;
        for (int64_t d = 0; d < D; d++) e[d] = 0;
        for (int64_t j = 0; j < texts[i].size; j++) e[(unsigned char)texts[i].data[j] % D] += 1;
        for (int64_t d = 0; d < D; d++) square += (double)e[d] * (double)e[d];
        for (int64_t d = 0; d < D && square > 0; d++) e[d] = (float)((double)e[d] / sqrt(square));
    }
    return TARE_OK;
}

static const tare_encoder FUNCTIONS = {
    .struct_size = sizeof FUNCTIONS, .create = create, .destroy = destroy, .sizes = sizes, .encode = encode};

static const tare_descriptor DESCRIPTOR = {
    .struct_size = sizeof DESCRIPTOR,
    .kind = TARE_KIND_ENCODER,
    .name = "@NAME@",
    .version = "0.1.0",
    .summary = "counts of bytes in buckets",
    .license = "Apache-2.0",
    TARE_PARAMS(PARAMS, P_COUNT),
    .calls = TARE_CALLS_CONCURRENT, /* an instance changes nothing, so any thread may call it */
    .functions = &FUNCTIONS,
};

TARE_PLUGIN_ENTRY(&DESCRIPTOR)
