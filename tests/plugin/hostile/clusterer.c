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
    learns_in_assign,
    name_by_call,
    identity_by_instance,
    shares_scratch
};
#define IS(X) (CASE == X)
enum { DIM = 4, CLUSTERS = 3 };

struct self {
    const tare_host *host;
    int64_t longest;
};

static tare_status create(const tare_setup *setup, void **self, tare_error *error)
{
    struct self *s = setup->host->alloc(setup->host->ctx, sizeof *s, 0);
    if (!s) return tare_fail(error, TARE_E_NOMEM, "no memory");
    s->host = setup->host;
    *self = s;
    return TARE_OK;
}

static void destroy(void *self)
{
    struct self *s = self;
    s->host->release(s->host->ctx, s);
}

static tare_status encoder_sizes(const void *self, tare_sizes *out, tare_error *error)
{
    (void)self, (void)error;
    out->dim = DIM;
    return TARE_OK;
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

static tare_status identity(const void *self, const tare_stream *out, tare_error *error)
{
    static int instances;
    const char letter = (char)('a' + (IS(identity_by_instance) ? instances++ % 26 : 0));
    (void)self, (void)error;
    return tare_put(out, &letter, 1);
}

static const tare_encoder ENCODER = {
    .struct_size = sizeof ENCODER,
    .create = create,
    .destroy = destroy,
    .sizes = encoder_sizes,
    .encode = encode,
    .fit = fit,
    .save = save,
    .load = load,
    .identity = identity,
};

static tare_status codebook_sizes(const void *self, tare_sizes *out, tare_error *error)
{
    (void)self, (void)error;
    out->clusters = CLUSTERS;
    return TARE_OK;
}

static tare_status fit_rows(void *self, const tare_prompts *prompts, tare_error *error)
{
    return fit(self, prompts->row, prompts->n, error);
}

static tare_status assign(const void *self, const tare_prompts *prompts, tare_assignment *out, tare_error *error)
{
    const struct self *s = self;
    const int64_t n = prompts->n;
    (void)error;
    for (int64_t i = 0; i < n; i++) {
        const int64_t size = prompts->row[i].size;
        out->cluster[i] = (int32_t)((size + s->longest + (IS(cluster_by_batch) ? n : 0)) % CLUSTERS);
        if (out->distance) out->distance[i] = (float)size + (IS(distance_by_batch) ? (float)n : 0);
    }
    if (IS(learns_in_assign)) ((struct self *)(uintptr_t)self)->longest += CLUSTERS;
    return TARE_OK;
}

static tare_status cluster_name(const void *self, int64_t k, const tare_stream *out, tare_error *error)
{
    static int calls;
    const char letter = (char)('a' + (IS(name_by_call) ? calls++ % 26 : k));
    (void)self, (void)error;
    return tare_put(out, &letter, 1);
}

static const tare_codebook CODEBOOK = {
    .struct_size = sizeof CODEBOOK,
    .create = create,
    .destroy = destroy,
    .sizes = codebook_sizes,
    .assign = assign,
    .fit = fit_rows,
    .save = save,
    .load = load,
    .cluster_name = cluster_name,
};

#define DESCRIPTOR(KIND, CALLS, TABLE)                                                                                             \
    {                                                                                                                              \
        .struct_size = sizeof(tare_descriptor), .kind = TARE_KIND_##KIND, .name = "hostile", .version = "1.0.0",                   \
        .summary = "a fixture of the tests", .calls = TARE_CALLS_##CALLS, .param_size = sizeof(tare_param),                        \
        .want_size = sizeof(tare_want), .state_version = 1, .state_oldest = 1, .functions = &(TABLE)                               \
    }

static const tare_descriptor FIRST = DESCRIPTOR(ENCODER, CONCURRENT, ENCODER), SECOND = DESCRIPTOR(CODEBOOK, SERIAL, CODEBOOK);

TARE_PLUGIN_ENTRY(&FIRST, &SECOND)
