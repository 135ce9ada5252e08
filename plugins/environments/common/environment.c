#include "environment.h"

/* An instance without a state. */
struct self {
    const tare_host *host;
    const tare_value *v;
};

/* ---------------------------------------------------------------- numbers and texts */

static uint64_t mix_bits(uint64_t x)
{
    x = (x ^ x >> 30) * 0xbf58476d1ce4e5b9u;
    x = (x ^ x >> 27) * 0x94d049bb133111ebu;
    return x ^ x >> 31;
}

uint64_t environment_draw(struct draw *d)
{
    return mix_bits(mix_bits(d->key[0] + 0x9e3779b97f4a7c15u * ++d->at) ^ d->key[1]);
}

int64_t environment_below(struct draw *d, int64_t n)
{
    return (int64_t)((environment_draw(d) >> 32) * (uint64_t)n >> 32);
}

int environment_chance(struct draw *d, double probability)
{
    return (double)(environment_draw(d) >> 11) * 0x1p-53 < probability;
}

tare_status environment_row_number(const tare_episode *episode, const char *field, int64_t min, int64_t max, int64_t *out,
                                   tare_error *error)
{
    tare_text value;
    double number;
    if (!episode->row.size || !tare_json_find(episode->row, field, &value)) return TARE_OK;
    if (!tare_json_number(value, &number) || number < (double)min || number > (double)max || number != floor(number))
        return tare_fail(error, TARE_E_INVALID, "the row's \"%s\" must be a whole number from %lld to %lld", field, (long long)min,
                         (long long)max);
    *out = (int64_t)number;
    return TARE_OK;
}

tare_status environment_row_symbols(const tare_episode *episode, const char *field, const char *allowed, int64_t n, uint8_t *out,
                                    tare_error *error)
{
    tare_text value;
    char text[64];
    if (!episode->row.size || !tare_json_find(episode->row, field, &value)) return TARE_OK;
    int good = tare_json_text(value, text, sizeof text) == n;
    for (int64_t i = 0; good && i < n; i++) {
        const int64_t at = environment_symbol((tare_text){text + i, 1}, allowed);
        good = at >= 0;
        if (good) out[i] = (uint8_t)at;
    }
    if (good) return TARE_OK;
    return tare_fail(error, TARE_E_INVALID, "the row's \"%s\" must be a text of %lld characters out of %s", field, (long long)n,
                     allowed);
}

int64_t environment_symbol(tare_text text, const char *symbols)
{
    const char *found = text.size == 1 && text.data[0] ? strchr(symbols, text.data[0]) : NULL;
    return found ? found - symbols : -1;
}

int64_t environment_number(tare_text text)
{
    int64_t number = 0;
    if (text.size < 1 || text.size > 8) return -1;
    for (int64_t i = 0; i < text.size; i++) {
        if (text.data[i] < '0' || text.data[i] > '9') return -1;
        number = number * 10 + (text.data[i] - '0');
    }
    return number;
}

tare_status environment_say(tare_observation *out, const char *format, ...)
{
    char text[64];
    va_list args;
    va_start(args, format);
    const int n = tare_format(text, sizeof text, format, args);
    va_end(args);
    const tare_message message = {.struct_size = sizeof message, .role = TARE_ROLE_USER, .text = {text, n}};
    return out->say(out->ctx, &message);
}

tare_status environment_end(tare_observation *out, int right)
{
    out->end = TARE_EPISODE_DONE;
    out->reward = right;
    out->verdict = right ? TARE_VERDICT_CORRECT : TARE_VERDICT_WRONG;
    return TARE_OK;
}

/* ---------------------------------------------------------------- functions */

static tare_status create(const tare_setup *setup, void **out, tare_error *error)
{
    struct self *self = setup->host->alloc(setup->host->ctx, sizeof *self, 0);
    if (!self) return tare_fail(error, TARE_E_NOMEM, "no memory");
    *self = (struct self){setup->host, setup->values};
    *out = self;
    return TARE_OK;
}

static void destroy(void *instance)
{
    struct self *self = instance;
    self->host->release(self->host->ctx, self);
}

static uint32_t uses(const tare_value *values)
{
    (void)values;
    return TARE_USES_ROW;
}

static tare_status card(const tare_value *values, const tare_stream *out, tare_error *error)
{
    (void)values, (void)error;
    return tare_say(out, ENVIRONMENT_RULES.card);
}

static tare_status open_session(void *instance, void **session, tare_error *error)
{
    struct self *self = instance;
    *session = self->host->alloc(self->host->ctx, ENVIRONMENT_RULES.size, 0);
    return *session ? TARE_OK : tare_fail(error, TARE_E_NOMEM, "no memory");
}

static void close_session(void *instance, void *session)
{
    struct self *self = instance;
    self->host->release(self->host->ctx, session);
}

static tare_status reset(void *instance, void *session, const tare_episode *episode, tare_observation *out, tare_error *error)
{
    const struct self *self = instance;
    memset(session, 0, (size_t)ENVIRONMENT_RULES.size);
    return ENVIRONMENT_RULES.begin(self->v, session, episode, out, error);
}

static tare_status step(void *instance, void *const *session, const tare_act *const *act, tare_observation *const *out, int64_t n,
                        tare_error *error)
{
    const struct self *self = instance;
    tare_status status = TARE_OK;
    (void)error;
    for (int64_t i = 0; i < n && !status; i++) status = ENVIRONMENT_RULES.act(self->v, session[i], act[i]->text, out[i]);
    return status;
}

static tare_status save_session(void *instance, const void *session, const tare_stream *out, tare_error *error)
{
    (void)instance, (void)error;
    return tare_put(out, session, ENVIRONMENT_RULES.size);
}

/* Bytes that are refused do not change the session. */
static tare_status load_session(void *instance, void *session, const tare_stream *in, tare_error *error)
{
    const struct self *self = instance;
    _Alignas(16) char bytes[64];
    const tare_status status = tare_get(in, bytes, ENVIRONMENT_RULES.size);
    if (status) return tare_fail(error, status, "the saved session is cut short");
    if (!ENVIRONMENT_RULES.valid(self->v, bytes))
        return tare_fail(error, TARE_E_CORRUPT, "the saved session is damaged, or the parameters have changed");
    memcpy(session, bytes, (size_t)ENVIRONMENT_RULES.size);
    return TARE_OK;
}

static tare_status suggest(void *instance, const void *session, const uint64_t *key, const tare_stream *out, tare_error *error)
{
    const struct self *self = instance;
    struct draw d = {key, 0};
    (void)error;
    return ENVIRONMENT_RULES.suggest(self->v, session, &d, out);
}

const tare_environment ENVIRONMENT_FUNCTIONS = {.struct_size = sizeof ENVIRONMENT_FUNCTIONS,
                                                .flags = TARE_ENVIRONMENT_REPEATS,
                                                .create = create,
                                                .destroy = destroy,
                                                .uses = uses,
                                                .card = card,
                                                .open = open_session,
                                                .close = close_session,
                                                .reset = reset,
                                                .step = step,
                                                .save_session = save_session,
                                                .load_session = load_session,
                                                .suggest = suggest};
