/* A verifier that repeats its secret in every text that it may write. */
#include <tare/sdk.h>

#include <stdio.h>

static const char *const OLD_KEYS[] = {"key", NULL};
enum { P_WORD, P_REFUSE, P_COUNT };
static const tare_param PARAMS[P_COUNT] = {
    [P_WORD] = {.key = "word",
                .fallback = "",
                .doc = "a secret",
                .type = TARE_PARAM_STRING,
                .flags = TARE_PARAM_SECRET,
                .old_keys = OLD_KEYS},
    [P_REFUSE] = TARE_BOOL_PARAM("refuse", "false", "create fails", 0),
};

struct self {
    const tare_host *host;
    const char *word;
};

static tare_status create(const tare_setup *setup, void **self, tare_error *error)
{
    const char *word = setup->values[P_WORD].s;
    char text[200];
    if (setup->values[P_REFUSE].i) return tare_fail(error, TARE_E_CONFIG, "no entry for %s", word);
    struct self *s = setup->host->alloc(setup->host->ctx, sizeof *s, 16);
    if (!s) return tare_fail(error, TARE_E_NOMEM, "out of memory");
    *s = (struct self){setup->host, word};
    *self = s;
    snprintf(text, sizeof text, "asked with %s", word);
    s->host->log(s->host->ctx, TARE_LOG_WARN, text);
    return TARE_OK;
}

static void destroy(void *self)
{
    struct self *s = self;
    s->host->release(s->host->ctx, s);
}

static uint32_t uses(const tare_value *values)
{
    (void)values;
    return 0;
}

static tare_status verify(void *self, const tare_completion *const *completion, tare_verdict *const *out, int64_t n,
                          tare_error *error)
{
    const struct self *s = self;
    const tare_text word = {s->word, (int64_t)strlen(s->word)};
    (void)completion, (void)error;
    s->host->metric(s->host->ctx, s->word, 1, TARE_METRIC_LAST);
    s->host->metric(s->host->ctx, "bytes", (double)word.size, TARE_METRIC_LAST);
    for (int64_t i = 0; i < n; i++) {
        tare_status status = tare_judge(out[i], TARE_VERDICT_WRONG, 0, word);
        if (!status) status = tare_say(out[i]->note, "the word is ");
        if (!status) status = tare_say(out[i]->note, s->word);
        if (status) return status;
    }
    return TARE_OK;
}

static tare_status identity(const void *self, const tare_stream *out, tare_error *error)
{
    (void)self, (void)error;
    return tare_say(out, "judge-7");
}

static tare_status explain(void *self, const tare_completion *completion, const tare_stream *out, tare_error *error)
{
    (void)completion, (void)error;
    return tare_print(out, "{\"word\":\"%s\"}", ((const struct self *)self)->word);
}

static const tare_verifier FUNCTIONS = {.struct_size = sizeof FUNCTIONS,
                                        .flags = TARE_VERIFIER_REPEATS,
                                        .create = create,
                                        .destroy = destroy,
                                        .identity = identity,
                                        .uses = uses,
                                        .verify = verify,
                                        .explain = explain};
static const tare_descriptor DESCRIPTOR = {
    .struct_size = sizeof DESCRIPTOR,
    .kind = TARE_KIND_VERIFIER,
    .name = "tells_secret",
    .version = "0.1.0",
    .summary = "repeats a secret",
    .license = "Apache-2.0",
    TARE_PARAMS(PARAMS, P_COUNT),
    .functions = &FUNCTIONS,
};
TARE_PLUGIN_ENTRY(&DESCRIPTOR)
