/* hashed: hashed character n-grams with TF-IDF. A prompt encoder that needs no model file.
 *
 * The text is read as characters c_1 .. c_n: ASCII letters in lower case (if asked), runs of white
 * space as one blank, a blank before and after. Every run of ngram_min .. ngram_max characters is
 * an n-gram; its hash names one of F features. With tf(f) the count of feature f in the text, df(f)
 * the number of texts of the corpus that hold it, and n the size of the corpus,
 *
 *   x(f) = (1 + ln tf(f)) * idf(f),     idf(f) = 1 + ln((1 + n) / (1 + df(f)));
 *          idf = 1 before fit
 *   e(d) = sum over f with b(f) = d of s(f) x(f),     E = e / ||e||_2
 *
 * b(f) in [0, D) and s(f) in {-1, +1} are hashes: a count sketch, which preserves inner products in
 * expectation (Weinberger et al. 2009, "Feature Hashing for Large Scale Multitask Learning"). A
 * text without n-grams gives the zero vector. Sums run in double in the order of the features in
 * the text, so an embedding depends on its text alone. */
#include "../common/built_in.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

enum { P_DIM, P_NGRAM_MIN, P_NGRAM_MAX, P_FEATURES, P_LOWERCASE, P_SUBLINEAR, N_PARAMS };

static const tare_param PARAMS[N_PARAMS] = {
    TARE_INT_PARAM("dim", "256", "width D of the embedding", 8, 65536, TARE_PARAM_SWEEPABLE | TARE_PARAM_LOCKED_ON_RESUME),
    TARE_INT_PARAM("ngram_min", "3", "characters of the shortest n-gram", 1, 16,
                   TARE_PARAM_SWEEPABLE | TARE_PARAM_LOCKED_ON_RESUME),
    TARE_INT_PARAM("ngram_max", "5", "characters of the longest n-gram; at least ngram_min", 1, 16,
                   TARE_PARAM_SWEEPABLE | TARE_PARAM_LOCKED_ON_RESUME),
    TARE_INT_PARAM("features", "65536", "number F of hashed features with document frequencies", 64, 16777216,
                   TARE_PARAM_LOCKED_ON_RESUME),
    TARE_BOOL_PARAM("lowercase", "true", "convert ASCII letters to lower case", TARE_PARAM_LOCKED_ON_RESUME),
    TARE_BOOL_PARAM("sublinear", "true", "use 1 + ln tf as the term frequency; false: tf", TARE_PARAM_LOCKED_ON_RESUME),
};

struct hashed {
    int64_t dim, ngram_min, ngram_max, features;
    int64_t lowercase, sublinear;
    uint64_t documents;  /* n; 0: not fitted */
    uint32_t *frequency; /* [F] df */
};

/* Scratch memory of one call. */
struct scratch {
    uint32_t *count;   /* [F] tf; zero between texts */
    uint32_t *touched; /* [F] features in the order of the text */
    int64_t n_touched;
    double *sum; /* [D] */
};

static void destroy(void *self)
{
    struct hashed *h = self;
    if (h) free(h->frequency);
    free(h);
}

static tare_status create(const tare_setup *setup, void **self, tare_error *error)
{
    const tare_value *values = setup->values;
    if (values[P_NGRAM_MAX].i < values[P_NGRAM_MIN].i)
        return tare_fail(error, TARE_E_RANGE, "ngram_max = %lld: must be at least ngram_min = %lld",
                         (long long)values[P_NGRAM_MAX].i, (long long)values[P_NGRAM_MIN].i);
    struct hashed *h = calloc(1, sizeof *h);
    if (!h) return tare_fail(error, TARE_E_NOMEM, "no memory");
    h->dim = values[P_DIM].i;
    h->ngram_min = values[P_NGRAM_MIN].i;
    h->ngram_max = values[P_NGRAM_MAX].i;
    h->features = values[P_FEATURES].i;
    h->lowercase = values[P_LOWERCASE].i;
    h->sublinear = values[P_SUBLINEAR].i;
    *self = h;
    return TARE_OK;
}

static tare_status sizes(const void *self, tare_sizes *out, tare_error *error)
{
    const struct hashed *s = self;
    (void)error;
    out->dim = s->dim;
    return TARE_OK;
}

static void scratch_free(struct scratch *s)
{
    free(s->count);
    free(s->touched);
    free(s->sum);
}

static tare_status scratch_new(const struct hashed *h, struct scratch *s, tare_error *error)
{
    s->count = calloc((size_t)h->features, sizeof *s->count);
    s->touched = malloc((size_t)h->features * sizeof *s->touched);
    s->sum = malloc((size_t)h->dim * sizeof *s->sum);
    s->n_touched = 0;
    if (s->count && s->touched && s->sum) return TARE_OK;
    scratch_free(s);
    return tare_fail(error, TARE_E_NOMEM, "no memory for %lld features; lower features", (long long)h->features);
}

static uint64_t mix(uint64_t x) /* The finaliser of splitmix64. */
{
    x = (x ^ (x >> 30)) * 0xBF58476D1CE4E5B9u;
    x = (x ^ (x >> 27)) * 0x94D049BB133111EBu;
    return x ^ (x >> 31);
}

/* Returns the length of the UTF-8 character at p; a byte that cannot begin one counts as a separate
 * character. */
static int64_t char_size(const unsigned char *p, const unsigned char *end)
{
    const int64_t n = *p < 0x80 ? 1 : *p >= 0xF0 && *p < 0xF5 ? 4 : *p >= 0xE0 ? 3 : *p >= 0xC2 ? 2 : 1;
    if (n > end - p) return 1;
    for (int64_t i = 1; i < n; i++)
        if ((p[i] & 0xC0) != 0x80) return 1;
    return n;
}

static int is_blank(unsigned char c)
{
    return c == ' ' || (c >= '\t' && c <= '\r');
}

/* Reads the next character as a number; consecutive blanks count as one. Returns the position after
 * it. */
static const unsigned char *next_char(const struct hashed *h, const unsigned char *p, const unsigned char *end, uint32_t *out)
{
    if (is_blank(*p)) {
        while (p < end && is_blank(*p)) p++;
        *out = ' ';
        return p;
    }
    const int64_t n = char_size(p, end);
    uint32_t c = 0;
    for (int64_t i = 0; i < n; i++) c = c << 8 | p[i];
    if (h->lowercase && c >= 'A' && c <= 'Z') c += 'a' - 'A';
    *out = c;
    return p + n;
}

static void count_feature(struct scratch *s, uint32_t feature)
{
    if (!s->count[feature]++) s->touched[s->n_touched++] = feature;
}

/* Counts the n-grams of a text, with a window of the last ngram_max characters. */
static void count_text(const struct hashed *h, tare_text text, struct scratch *s)
{
    const unsigned char *p = (const unsigned char *)text.data, *end = p + text.size;
    while (p < end && is_blank(*p)) p++;
    if (p == end) return;
    uint32_t window[16];
    int64_t filled = 0;
    window[filled++] = ' ';
    for (int last = 0; !last;) {
        uint32_t c = ' ';
        if (p < end) p = next_char(h, p, end, &c);
        last = p >= end && c == ' '; /* the blank after the text, from the text or added */
        if (filled == h->ngram_max) {
            memmove(window, window + 1, (size_t)(filled - 1) * sizeof *window);
            filled--;
        }
        window[filled++] = c;
        uint64_t hash = 0x9E3779B97F4A7C15u; /* every n-gram that ends here, shortest first */
        for (int64_t n = 1; n <= filled; n++) {
            hash = mix(hash ^ window[filled - n]) + 0x9E3779B97F4A7C15u;
            if (n >= h->ngram_min) count_feature(s, (uint32_t)(mix(hash ^ (uint64_t)n) % (uint64_t)h->features));
        }
    }
}

static void scratch_clear(struct scratch *s)
{
    for (int64_t i = 0; i < s->n_touched; i++) s->count[s->touched[i]] = 0;
    s->n_touched = 0;
}

static void encode_text(const struct hashed *h, tare_text text, struct scratch *s, float *out)
{
    memset(s->sum, 0, (size_t)h->dim * sizeof *s->sum);
    count_text(h, text, s);
    for (int64_t i = 0; i < s->n_touched; i++) {
        const uint32_t f = s->touched[i];
        const uint64_t bits = mix(f + 0xD1B54A32D192ED03u);
        double x = s->count[f];
        if (h->sublinear) x = 1 + log(x);
        if (h->documents) x *= 1 + log((1 + (double)h->documents) / (1 + (double)h->frequency[f]));
        s->sum[(bits >> 1) % (uint64_t)h->dim] += bits & 1 ? x : -x;
    }
    scratch_clear(s);
    double squares = 0;
    for (int64_t d = 0; d < h->dim; d++) squares += s->sum[d] * s->sum[d];
    const double scale = squares > 0 ? 1 / sqrt(squares) : 0;
    for (int64_t d = 0; d < h->dim; d++) out[d] = (float)(s->sum[d] * scale);
}

static tare_status encode(void *self, const tare_text *texts, int64_t n, float *out, tare_error *error)
{
    const struct hashed *h = self;
    struct scratch s;
    const tare_status status = scratch_new(h, &s, error);
    if (status) return status;
    for (int64_t i = 0; i < n; i++) encode_text(h, texts[i], &s, out + i * h->dim);
    scratch_free(&s);
    return TARE_OK;
}

static tare_status fit(void *self, const tare_text *texts, int64_t n, tare_error *error)
{
    struct hashed *h = self;
    if (n <= 0) return tare_fail(error, TARE_E_INVALID, "no texts to learn document frequencies from");
    struct scratch s;
    const tare_status status = scratch_new(h, &s, error);
    if (status) return status;
    uint32_t *frequency = calloc((size_t)h->features, sizeof *frequency);
    if (!frequency) {
        scratch_free(&s);
        return tare_fail(error, TARE_E_NOMEM, "no memory for %lld features; lower features", (long long)h->features);
    }
    for (int64_t i = 0; i < n; i++) {
        count_text(h, texts[i], &s);
        for (int64_t j = 0; j < s.n_touched; j++) frequency[s.touched[j]]++;
        scratch_clear(&s);
    }
    scratch_free(&s);
    free(h->frequency);
    h->frequency = frequency;
    h->documents = (uint64_t)n;
    return TARE_OK;
}

/* State: n, F, then df as F words; n = 0 when there was no fit. Little-endian, like every supported
 * machine. */
static tare_status save(const void *self, const tare_stream *out, tare_error *error)
{
    const struct hashed *h = self;
    const uint64_t head[2] = {h->documents, (uint64_t)h->features};
    tare_status status = out->write(out->ctx, head, sizeof head);
    if (!status && h->documents) status = out->write(out->ctx, h->frequency, h->features * (int64_t)sizeof *h->frequency);
    return status ? tare_fail(error, status, "the document frequencies cannot be written") : TARE_OK;
}

static tare_status load(void *self, const tare_stream *in, tare_error *error)
{
    struct hashed *h = self;
    uint64_t head[2];
    tare_status status = in->read(in->ctx, head, sizeof head);
    if (status) return tare_fail(error, status, "the document frequencies are cut short");
    if (head[1] != (uint64_t)h->features)
        return tare_fail(error, TARE_E_CORRUPT,
                         "the document frequencies are for %llu features, but the parameter features is %lld",
                         (unsigned long long)head[1], (long long)h->features);
    uint32_t *frequency = NULL;
    if (head[0]) {
        frequency = malloc((size_t)h->features * sizeof *frequency);
        if (!frequency) return tare_fail(error, TARE_E_NOMEM, "no memory for %lld features", (long long)h->features);
        status = in->read(in->ctx, frequency, h->features * (int64_t)sizeof *frequency);
        for (int64_t f = 0; !status && f < h->features; f++)
            if (frequency[f] > head[0]) status = TARE_E_CORRUPT;
        if (status) {
            free(frequency);
            return tare_fail(error, status, "the document frequencies are damaged or cut short");
        }
    }
    free(h->frequency);
    h->frequency = frequency;
    h->documents = head[0];
    return TARE_OK;
}

static const tare_encoder FUNCTIONS = {
    .struct_size = sizeof FUNCTIONS,
    .create = create,
    .destroy = destroy,
    .sizes = sizes,
    .encode = encode,
    .fit = fit,
    .save = save,
    .load = load,
};

BUILT_IN("hashed", .kind = TARE_KIND_ENCODER, .summary = "hashed character n-grams with TF-IDF; needs no model file",
         .about = ABOUT("Weinberger et al. 2009, arXiv 0902.2206"), TARE_PARAMS(PARAMS, N_PARAMS), .calls = TARE_CALLS_CONCURRENT,
         .state_version = 1, .state_oldest = 1)
