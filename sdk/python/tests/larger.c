/* An estimator and a verifier as a later minor version would build them: every struct that they give
 * has a member behind those of 1.0, and they look for one in the structs that they get. Under a host
 * of 1.0 it is absent. */
#include <tare/sdk.h>

#define LARGER(NAME, BASE, MEMBER)                                                                                                 \
    struct NAME {                                                                                                                  \
        union {                                                                                                                    \
            BASE base;                                                                                                             \
            uint32_t struct_size;                                                                                                  \
        };                                                                                                                         \
        MEMBER;                                                                                                                    \
    }
LARGER(larger_batch, tare_batch, const double *added);
LARGER(larger_advantages, tare_advantages, double *added);
LARGER(larger_verdict, tare_verdict, const tare_stream *added);
LARGER(larger_completion, tare_completion, const char *added);
LARGER(larger_estimator, tare_estimator, void (*added)(void));
LARGER(larger_verifier, tare_verifier, void (*added)(void));
LARGER(larger_descriptor, tare_descriptor, const char *added);
LARGER(larger_plugin, tare_plugin, const char *added);
struct larger_param {
    tare_param base;
    const char *added;
};
struct larger_want {
    tare_want base;
    uint64_t added;
};

static void behind(void) {}

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

static tare_status compute(const void *self, const tare_batch *batch, const double *prepared, tare_advantages *out,
                           tare_error *error)
{
    const tare_value *value = self;
    const struct larger_batch *b = (const void *)batch;
    const struct larger_advantages *a = (const void *)out;
    const uint8_t *finish = TARE_COLUMN(batch, 0, uint8_t);
    (void)prepared;
    if (TARE_HAS(b, added) || TARE_HAS(a, added)) return tare_fail(error, TARE_E_PLUGIN, "a member of a later minor");
    for (int64_t i = 0; i < batch->n_rollouts; i++) out->advantage[i] = value[0].f * batch->reward[i] + value[1].f + finish[i];
    return TARE_OK;
}

static tare_status verify(void *self, const tare_completion *const *completion, tare_verdict *const *out, int64_t n,
                          tare_error *error)
{
    const tare_value *value = self;
    (void)error;
    for (int64_t i = 0; i < n; i++) {
        const struct larger_completion *x = (const void *)completion[i];
        const struct larger_verdict *v = (const void *)out[i];
        const int more = TARE_HAS(x, added) || TARE_HAS(v, added);
        const tare_text text = completion[i]->text, answer = completion[i]->answer;
        const int right = text.size == answer.size && !memcmp(text.data, answer.data, (size_t)text.size);
        tare_status status = tare_judge(out[i], right ? TARE_VERDICT_CORRECT : TARE_VERDICT_WRONG, right, text);
        if (!status) status = tare_say(out[i]->note, more ? "a member of a later minor" : "no member behind those of 1.0");
        if (!status && value[0].s[0]) status = tare_print(out[i]->note, "; %s; %s", value[0].s, value[1].s);
        if (status) return status;
    }
    return TARE_OK;
}

static const struct larger_param PARAMS[] = {
    {TARE_FLOAT_PARAM("factor", "2", "A = factor R + offset + finish", 0, TARE_NO_MAX, 0), "more"},
    {TARE_FLOAT_PARAM("offset", "0.5", "see factor", TARE_NO_MIN, TARE_NO_MAX, 0), "more"},
};
static const char *const OLD_KEYS[] = {"data", NULL};
static const tare_param TEXTS[] = {
    TARE_STRING_PARAM("key", "", "a secret that the note repeats", TARE_PARAM_SECRET),
    {.key = "file", .fallback = "", .doc = "a path that the note repeats", .type = TARE_PARAM_PATH, .old_keys = OLD_KEYS},
};
static const struct larger_want WANTS[] = {
    {{"finish", TARE_AXIS_ROLLOUT, TARE_U8, 0, 1}, ~0ull},
    {{"entropy", TARE_AXIS_TOKEN, TARE_F32, TARE_WANT_OPTIONAL, 1}, ~0ull},
};
static const struct larger_estimator ESTIMATOR = {
    {{.struct_size = sizeof ESTIMATOR, .create = create, .destroy = destroy, .compute = compute}}, behind};
static const struct larger_verifier VERIFIER = {
    {{.struct_size = sizeof VERIFIER, .create = create, .destroy = destroy, .verify = verify}}, behind};
static const struct larger_descriptor FIRST = {{{.struct_size = sizeof FIRST,
                                                 .kind = TARE_KIND_ESTIMATOR,
                                                 .name = "larger",
                                                 .version = "1.0.0",
                                                 .summary = "an estimator of a later minor",
                                                 .params = &PARAMS[0].base,
                                                 .n_params = 2,
                                                 .param_size = sizeof *PARAMS,
                                                 .wants = &WANTS[0].base,
                                                 .n_wants = 2,
                                                 .want_size = sizeof *WANTS,
                                                 .functions = &ESTIMATOR}},
                                               "more"};
static const struct larger_descriptor SECOND = {{{.struct_size = sizeof SECOND,
                                                  .kind = TARE_KIND_VERIFIER,
                                                  .name = "larger",
                                                  .version = "1.0.0",
                                                  .summary = "a verifier of a later minor",
                                                  TARE_PARAMS(TEXTS, 2),
                                                  .functions = &VERIFIER}},
                                                "more"};

const tare_plugin *tare_plugin_v1(const tare_host *host, tare_error *error)
{
    static const tare_descriptor *const descriptors[] = {&FIRST.base, &SECOND.base};
    static const struct larger_plugin plugin = {
        {{.struct_size = sizeof plugin, .minor_built = TARE_ABI_MINOR + 1, .n_descriptors = 2, .descriptors = descriptors}},
        "more"};
    (void)host, (void)error;
    return &plugin.base;
}
