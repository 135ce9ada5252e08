/* frozen_encoder: counts of bytes, hashed into D buckets, scaled to length one.
 *
 *   e[d] = #{bytes b of the text: b mod D = d},   E(q) = e / |e|                        the empty text has the zero vector
 */
#include <math.h>
#include <tare/sdk.h>

enum { P_DIM, P_COUNT };

static const tare_param PARAMS[P_COUNT] = {
    [P_DIM] = TARE_INT_PARAM("dim", "32", "D, how many buckets", 1, 4096, 0),
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

static int64_t dim(const void *self)
{
    return ((const tare_value *)self)[P_DIM].i;
}

static tare_status sizes(const void *self, tare_sizes *out, tare_error *error)
{
    (void)error;
    out->dim = dim(self);
    return TARE_OK;
}

static tare_status encode(void *self, const tare_text *texts, int64_t n, float *out, tare_error *error)
{
    const int64_t D = dim(self);
    (void)error;
    for (int64_t i = 0; i < n; i++) {
        float *e = out + i * D;
        double square = 0;
        for (int64_t d = 0; d < D; d++) e[d] = 0;
        for (int64_t j = 0; j < texts[i].size; j++) e[(unsigned char)texts[i].data[j] % D] += 1;
        for (int64_t d = 0; d < D; d++) square += (double)e[d] * e[d];
        for (int64_t d = 0; d < D && square > 0; d++) e[d] = (float)(e[d] / sqrt(square));
    }
    return TARE_OK;
}

static const tare_encoder FUNCTIONS = {
    .struct_size = sizeof FUNCTIONS, .create = create, .destroy = destroy, .sizes = sizes, .encode = encode};

static const tare_descriptor DESCRIPTOR = {
    .struct_size = sizeof DESCRIPTOR,
    .kind = TARE_KIND_ENCODER,
    .name = "frozen_encoder",
    .version = "0.1.0",
    .summary = "counts of bytes in buckets",
    .license = "Apache-2.0",
    TARE_PARAMS(PARAMS, P_COUNT),
    .calls = TARE_CALLS_CONCURRENT,
    .functions = &FUNCTIONS,
};

TARE_PLUGIN_ENTRY(&DESCRIPTOR)
