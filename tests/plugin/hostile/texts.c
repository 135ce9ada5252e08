/* Plugins with texts, names and secrets that the host must not take over, and plugins that ignore what
 * their streams and sizes say: compiled once for each CASE (tests/plugin/fixtures.cmake). CASE
 * plain_texts breaks nothing. */
#include <tare/sdk.h>

#include <stdlib.h>

enum cases {
    plain_texts,
    old_key_is_a_key,
    old_key_of_two,
    old_key_twice,
    old_key_invalid,
    doc_of_two_lines,
    unit_with_escape,
    default_not_utf8,
    summary_of_two_lines,
    about_of_two_lines,
    about_not_utf8,
    choice_twice,
    choice_without_doc,
    field_of_secret,
    identity_binary,
    identity_of_two_lines,
    identity_not_utf8,
    identity_endless,
    identity_with_secret,
    describes_secret,
    saves_secret,
    logs_secret,
    fails_with_secret,
    measures_secret,
    measures_oddly,
    selects_beyond,
    writes_null,
    writes_negative,
    reads_on,
    grows_at_load,
    takes_half,
    list_of_records,
    describes_in_words,
    describes_a_list,
    describes_two,
    describes_nothing,
};
#define IS(X) (CASE == X)

static const char *const MODES[] = {"low", IS(choice_twice) ? "low" : "high", NULL};
static const char *const MODE_DOCS[] = {"the least", IS(choice_without_doc) ? NULL : "the most", NULL};
static const char *const OLD_RATE[] = {IS(old_key_is_a_key)  ? "mode"
                                       : IS(old_key_of_two)  ? "style"
                                       : IS(old_key_invalid) ? "Bad key"
                                                             : "lr",
                                       IS(old_key_twice) ? "lr" : "speed", NULL};
static const char *const OLD_MODE[] = {"style", NULL};
enum { P_RATE, P_MODE, P_TOKEN, P_LABEL, P_COUNT };
static const tare_param PARAMS[P_COUNT] = {
    [P_RATE] = {.key = "rate",
                .fallback = "1",
                .doc = IS(doc_of_two_lines) ? "a rate\nrate = 7" : "a rate",
                .unit = IS(unit_with_escape) ? "\x1b[31m" : "1/s",
                .type = TARE_PARAM_FLOAT,
                .group = "speed",
                .old_keys = OLD_RATE},
    [P_MODE] = {.key = "mode",
                .fallback = "low",
                .doc = "a mode",
                .type = TARE_PARAM_CHOICE,
                .choices = MODES,
                .choice_docs = MODE_DOCS,
                .old_keys = OLD_MODE},
    [P_TOKEN] = TARE_STRING_PARAM("token", "", "a token", TARE_PARAM_SECRET),
    [P_LABEL] = TARE_STRING_PARAM("label", IS(default_not_utf8) ? "\xff" : "none", "a label", TARE_PARAM_LOCKED_ON_RESUME),
};
static const tare_want WANTS[] = {
    {IS(field_of_secret) ? "row.$token" : "row.level", TARE_AXIS_GROUP, TARE_F64, TARE_WANT_OPTIONAL, 1},
};
static const char *const ABOUT[] = {"paper", IS(about_of_two_lines) ? "a\nb" : IS(about_not_utf8) ? "\xc3" : "none", NULL};

struct self {
    const tare_host *host;
    const char *token;
    double sum;
    int64_t n; /* updates */
};

static tare_status create(const tare_setup *setup, void **self, tare_error *error)
{
    struct self *s = setup->host->alloc(setup->host->ctx, sizeof *s, 16);
    if (!s) return tare_fail(error, TARE_E_NOMEM, "out of memory");
    *s = (struct self){setup->host, setup->values[P_TOKEN].s, 0, 0};
    *self = s;
    if (IS(logs_secret)) s->host->log(s->host->ctx, TARE_LOG_WARN, s->token);
    return TARE_OK;
}

static void destroy(void *self)
{
    struct self *s = self;
    s->host->release(s->host->ctx, s);
}

static tare_status sizes(const void *self, tare_sizes *out, tare_error *error)
{
    (void)error;
    out->collect = IS(grows_at_load) && ((const struct self *)self)->sum > 0 ? 1000 : 1;
    return TARE_OK;
}

static tare_status compute(const void *self, const tare_batch *batch, const double *prepared, tare_advantages *out,
                           tare_error *error)
{
    static const char *const NAMES[] = {"",
                                        "two\nlines",
                                        "a b",
                                        "/a",
                                        "a/",
                                        "a//b",
                                        "../a",
                                        "\xc3\xa4",
                                        "a,b",
                                        "a\"b",
                                        "a123456789b123456789c123456789d123456789e123456789f123456789g123",
                                        "good/name-1.5_x"};
    const struct self *s = self;
    (void)prepared;
    memcpy(out->advantage, batch->reward, (size_t)batch->n_rollouts * sizeof *batch->reward);
    if (IS(fails_with_secret)) return tare_fail(error, TARE_E_IO, "cannot log in as %s", s->token);
    if (IS(measures_secret)) s->host->metric(s->host->ctx, s->token, 1, TARE_METRIC_LAST);
    for (size_t i = 0; IS(measures_oddly) && i < sizeof NAMES / sizeof *NAMES; i++)
        s->host->metric(s->host->ctx, NAMES[i], 1, TARE_METRIC_LAST);
    return TARE_OK;
}

static tare_status collect(const void *self, const tare_batch *batch, int64_t group, double *sum, tare_error *error)
{
    (void)self, (void)error;
    for (int64_t i = batch->group_begin[group]; i < batch->group_begin[group + 1]; i++) sum[0] += batch->reward[i];
    return TARE_OK;
}

static tare_status apply(void *self, const tare_update *update, tare_error *error)
{
    (void)error;
    ((struct self *)self)->sum += update->collected[0];
    ((struct self *)self)->n++;
    return TARE_OK;
}

static tare_status save(const void *self, const tare_stream *out, tare_error *error)
{
    const struct self *s = self;
    const double one = 1;
    (void)error;
    if (IS(writes_null)) (void)out->write(out->ctx, NULL, 8);
    if (IS(writes_negative)) (void)out->write(out->ctx, s, -8);
    if (IS(saves_secret)) return tare_say(out, s->token);
    for (int64_t i = 1; IS(list_of_records) && i < s->n; i++) (void)tare_put(out, &s->sum, sizeof s->sum);
    if (IS(list_of_records) && !s->n) return TARE_OK;
    return tare_put(out, IS(grows_at_load) ? &one : &s->sum, sizeof one);
}

static tare_status load(void *self, const tare_stream *in, tare_error *error)
{
    struct self *s = self;
    char more[8];
    if (IS(takes_half)) return tare_get(in, &s->sum, in->size < 8 ? in->size : 8);
    if (IS(list_of_records)) {
        if (in->size % 8) return tare_fail(error, TARE_E_CORRUPT, "the state is cut short");
        for (s->n = 0; s->n < in->size / 8; s->n++)
            if (tare_get(in, &s->sum, 8)) return tare_fail(error, TARE_E_CORRUPT, "the state is cut short");
        return TARE_OK;
    }
    const tare_status status = tare_get(in, &s->sum, sizeof(double));
    if (IS(reads_on)) (void)in->read(in->ctx, more, sizeof more);
    return status;
}

static tare_status describe(const void *self, const tare_stream *out, tare_error *error)
{
    (void)error;
    if (IS(describes_in_words)) return tare_say(out, "three \"rollouts");
    if (IS(describes_a_list)) return tare_say(out, "[1,2]");
    if (IS(describes_two)) return tare_say(out, "{}{}");
    if (IS(describes_nothing)) return TARE_OK;
    return IS(describes_secret) ? tare_print(out, "{\"token\":\"%s\"}", ((const struct self *)self)->token) : tare_say(out, "{}");
}

static tare_status identity(const void *self, const tare_stream *out, tare_error *error)
{
    (void)error;
    if (IS(identity_binary)) return tare_put(out, "a\0b", 3);
    if (IS(identity_of_two_lines)) return tare_say(out, "a\nb");
    if (IS(identity_not_utf8)) return tare_say(out, "\xff");
    for (int i = 0; IS(identity_endless) && i < 1000; i++) tare_say(out, "0123456789");
    return tare_say(out, IS(identity_with_secret) ? ((const struct self *)self)->token : "judge-7");
}

static tare_status choose(const tare_value *values, uint8_t *wanted, tare_error *error)
{
    (void)values, (void)error;
    if (IS(selects_beyond)) wanted[1] = 0;
    return TARE_OK;
}

static const tare_estimator FUNCTIONS = {.struct_size = sizeof FUNCTIONS,
                                         .create = create,
                                         .destroy = destroy,
                                         .save = save,
                                         .load = load,
                                         .describe = describe,
                                         .identity = identity,
                                         .select = choose,
                                         .sizes = sizes,
                                         .compute = compute,
                                         .collect = collect,
                                         .apply = apply};
static const tare_descriptor DESCRIPTOR = {
    .struct_size = sizeof DESCRIPTOR,
    .kind = TARE_KIND_ESTIMATOR,
    .name = "texts",
    .version = "0.1.0",
    .summary = IS(summary_of_two_lines) ? "one\ntwo" : "passes rewards on",
    .license = "Apache-2.0",
    .about = ABOUT,
    TARE_PARAMS(PARAMS, P_COUNT),
    TARE_WANTS(WANTS, 1),
    .state_version = 1,
    .state_oldest = 1,
    .functions = &FUNCTIONS,
};
TARE_PLUGIN_ENTRY(&DESCRIPTOR)
