/* Encoders and codebooks that break the contract, each in one way: compiled once for each CASE
 * (tests/plugin/fixtures.cmake). CASE good_clusterer breaks nothing: the encoder counts bytes,
 * and the codebook distinguishes rows by their size. Both learn the longest text. */
#include <tare/sdk.h>

#include <math.h>
#include <sched.h>
#include <string.h>

enum cases {
    good_clusterer,
    depends_on_batch,
    nan_embedding,
    distance_by_batch,
    cluster_by_batch,
    loses_fit,
    takes_damage,
    identity_by_instance,
    shares_scratch
};
#define IS(X) (CASE == X)
enum { DIM = 4, CLUSTERS = 3 };

struct self {
    const tare_host *host;
    int64_t longest;
};

static tare_status create(const tare_host *host, const tare_value *values, void **self, tare_error *error)
{
    (void)values;
    struct self *s = host->alloc(host->ctx, sizeof *s, 0);
    if (!s) return tare_fail(error, TARE_E_NOMEM, "no memory");
    s->host = host;
    *self = s;
    return TARE_OK;
}

static void destroy(void *self)
{
    struct self *s = self;
    s->host->release(s->host->ctx, s);
}

static int64_t dim(const void *self)
{
    (void)self;
    return DIM;
}

static tare_status encode(void *self, const tare_text *texts, int64_t n, float *out, tare_error *error)
{
    static float scratch[DIM];
    const struct self *s = self;
    (void)error;
    for (int64_t i = 0; i < n; i++) {
        float mine[DIM] = {0}, *x = IS(shares_scratch) ? scratch : mine;
        for (int k = 0; k < DIM; k++) x[k] = (float)s->longest;
        for (int64_t k = 0; k < texts[i].size; k++) {
            x[k % DIM] += (float)(unsigned char)texts[i].data[k];
            if (IS(shares_scratch)) sched_yield();
        }
        if (IS(depends_on_batch)) x[0] += (float)n;
        if (IS(nan_embedding) && !texts[i].size) x[1] = NAN;
        memcpy(out + i * DIM, x, sizeof mine);
    }
    return TARE_OK;
}

static tare_status fit(void *self, const tare_text *texts, int64_t n, tare_error *error)
{
    struct self *s = self;
    (void)error;
    for (int64_t i = 0; i < n; i++)
        if (texts[i].size > s->longest) s->longest = texts[i].size;
    return TARE_OK;
}

static tare_status save(const void *self, const tare_stream *out, tare_error *error)
{
    (void)error;
    return out->write(out->ctx, &((const struct self *)self)->longest, 8);
}

static tare_status load(void *self, const tare_stream *in, tare_error *error)
{
    int64_t longest = 0;
    const tare_status status = in->read(in->ctx, &longest, 8);
    if (status && !IS(takes_damage)) return tare_fail(error, status, "the state is cut short");
    ((struct self *)self)->longest = IS(loses_fit) ? 0 : longest;
    return TARE_OK;
}

static tare_status identity(const void *self, char *text, int64_t capacity, tare_error *error)
{
    static int instances;
    (void)self, (void)error;
    if (capacity > 0) text[0] = (char)('a' + (IS(identity_by_instance) ? instances++ % 26 : 0));
    if (capacity > 1) text[1] = 0;
    return TARE_OK;
}

static const tare_encoder ENCODER = {sizeof ENCODER, 0, create, destroy, dim, encode, fit, save, load, identity};

static int64_t size(const void *self)
{
    (void)self;
    return CLUSTERS;
}

static int64_t no_dim(const void *self)
{
    (void)self;
    return 0;
}

static tare_status assign(const void *self, const float *embedding, const tare_text *rows, int64_t n, int32_t *cluster,
                          float *distance, tare_error *error)
{
    const struct self *s = self;
    (void)embedding, (void)error;
    for (int64_t i = 0; i < n; i++) {
        cluster[i] = (int32_t)((rows[i].size + s->longest + (IS(cluster_by_batch) ? n : 0)) % CLUSTERS);
        if (distance) distance[i] = (float)rows[i].size + (IS(distance_by_batch) ? (float)n : 0);
    }
    return TARE_OK;
}

static const tare_codebook CODEBOOK = {
    .struct_size = sizeof CODEBOOK,
    .create = create,
    .destroy = destroy,
    .size = size,
    .dim = no_dim,
    .assign = assign,
    .fit = fit,
    .save = save,
    .load = load,
};

static const tare_descriptor FIRST = {.struct_size = sizeof FIRST,
                                      .kind = TARE_ENCODER,
                                      .name = "hostile",
                                      .version = "1.0.0",
                                      .summary = "a fixture of the tests",
                                      .threading = TARE_REENTRANT,
                                      .param_size = sizeof(tare_param),
                                      .functions = &ENCODER},
                             SECOND = {.struct_size = sizeof SECOND,
                                       .kind = TARE_CODEBOOK,
                                       .name = "hostile",
                                       .version = "1.0.0",
                                       .summary = "a fixture of the tests",
                                       .threading = TARE_REENTRANT,
                                       .param_size = sizeof(tare_param),
                                       .functions = &CODEBOOK};

const tare_plugin *tare_plugin_v1(const tare_host *host, tare_error *error)
{
    static const tare_descriptor *const descriptors[] = {&FIRST, &SECOND};
    static const tare_plugin plugin = {sizeof plugin, TARE_ABI_MINOR, 0, 2, descriptors};
    (void)host, (void)error;
    return &plugin;
}
