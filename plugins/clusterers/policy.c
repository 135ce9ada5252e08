/* policy: mean-pooled last hidden states of the frozen initial policy, from the host's service
 * tare.embed/1. Needs no second model. With normalize, E = e / ||e||_2. */
#include "../common/built_in.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

enum { P_NORMALIZE, N_PARAMS };

static const tare_param PARAMS[N_PARAMS] = {
    TARE_BOOL_PARAM("normalize", "true", "divide an embedding by its L2 norm", TARE_PARAM_LOCKED_ON_RESUME),
};

struct policy {
    const tare_embed_v1 *service;
    int64_t dim, normalize;
};

static tare_status create(const tare_setup *setup, void **self, tare_error *error)
{
    const tare_embed_v1 *service = setup->host->extension(setup->host->ctx, "tare.embed/1");
    if (!service)
        return tare_fail(
            error, TARE_E_UNSUPPORTED,
            "the encoder policy needs the service tare.embed/1 (hidden states of a loaded policy), which is not available here; use it in a training run or with a model, or choose another encoder");
    const int64_t dim = service->dim(service->ctx);
    if (dim <= 0) return tare_fail(error, TARE_E_SHAPE, "invalid width %lld of the embeddings of tare.embed/1", (long long)dim);
    struct policy *p = calloc(1, sizeof *p);
    if (!p) return tare_fail(error, TARE_E_NOMEM, "no memory");
    *p = (struct policy){service, dim, setup->values[P_NORMALIZE].i};
    *self = p;
    return TARE_OK;
}

static void destroy(void *self)
{
    free(self);
}

static tare_status sizes(const void *self, tare_sizes *out, tare_error *error)
{
    const struct policy *s = self;
    (void)error;
    out->dim = s->dim;
    return TARE_OK;
}

static tare_status encode(void *self, const tare_text *texts, int64_t n, float *out, tare_error *error)
{
    const struct policy *p = self;
    const tare_status status = p->service->embed(p->service->ctx, texts, n, out, error);
    if (status) return status;
    for (int64_t i = 0; i < n; i++) {
        float *e = out + i * p->dim;
        double squares = 0;
        for (int64_t d = 0; d < p->dim; d++) squares += (double)e[d] * (double)e[d];
        if (!isfinite(squares))
            return tare_fail(error, TARE_E_NOT_FINITE, "the policy's hidden states of text %lld are not finite", (long long)i);
        if (!p->normalize || !(squares > 0)) continue;
        const double scale = 1 / sqrt(squares);
        for (int64_t d = 0; d < p->dim; d++) e[d] = (float)((double)e[d] * scale);
    }
    return TARE_OK;
}

static tare_status identity(const void *self, const tare_stream *out, tare_error *error)
{
    const struct policy *p = self;
    return p->service->identity(p->service->ctx, out, error);
}

static const tare_encoder FUNCTIONS = {
    .struct_size = sizeof FUNCTIONS,
    .create = create,
    .destroy = destroy,
    .sizes = sizes,
    .encode = encode,
    .identity = identity,
};

BUILT_IN("policy", .kind = TARE_KIND_ENCODER, .summary = "mean-pooled last hidden states of the frozen initial policy",
         TARE_PARAMS(PARAMS, N_PARAMS))
