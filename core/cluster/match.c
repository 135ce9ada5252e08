#include "cluster/match.h"

#include "base/fs.h"

#include <string.h>

int64_t match_run_file(const struct plugin *codebook)
{
    for (uint32_t i = 0; i < codebook->desc.n_params; i++)
        if (codebook->params[i].flags & TARE_PARAM_RUN_FILE) return i;
    return -1;
}

const char *match_codebook_path(const struct plugin_instance *codebook)
{
    const int64_t i = match_run_file(codebook->plugin);
    return i < 0 ? NULL : codebook->values[i].s;
}

/* Calls one of the functions by which a codebook describes its encoder, and appends its bytes. */
static tare_status read_bytes(const struct plugin_instance *codebook, const char *phase,
                              tare_status (*give)(const void *, const tare_stream *, tare_error *), struct str *out, struct err *e)
{
    struct plugin_stream bytes = {.out = out};
    const tare_stream stream = plugin_stream(&bytes);
    struct plugin_call c;
    if (!give) return TARE_OK;
    plugin_enter(&c);
    return plugin_leave(&c, codebook, phase, -1, give(codebook->self, &stream, &c.error), e);
}

tare_status match_identity(const struct plugin_instance *codebook, struct str *out, struct err *e)
{
    return read_bytes(codebook, "encoder_identity", codebook->plugin->codebook->encoder_identity, out, e);
}

static tare_status same_identity(const struct str *expected, const struct str *got, const char *name, struct err *e)
{
    if (!expected->size || !strcmp(expected->data, got->data)) return TARE_OK;
    FAIL(
        e, TARE_E_CONFIG,
        "%s: the codebook needs the encoder `%s` (hash %016llx), but the encoder is `%s` (hash %016llx); name that encoder with its parameters, or train another codebook (tare cluster train)",
        name, expected->data, (unsigned long long)fs_hash(expected->data, expected->size, 0), got->data,
        (unsigned long long)fs_hash(got->data, got->size, 0));
}

tare_status match_encoder(struct plugin_instance *codebook, struct plugin_instance *encoder, const char *name, struct err *e)
{
    OWNED(str_free) struct str expected = {0}, got = {0}, state = {0};
    const int64_t d = codebook->sizes.dim;
    if (!d) return TARE_OK;
    TRY(match_identity(codebook, &expected, e));
    if (!encoder)
        FAIL(e, TARE_E_CONFIG, "%s: the codebook needs embeddings%s%s%s; name its encoder", name, expected.size ? " of `" : "",
             expected.size ? expected.data : "", expected.size ? "`" : "");
    TRY(plugin_identity(encoder, &got, e));
    TRY(same_identity(&expected, &got, name, e));
    if (encoder->sizes.dim != d)
        FAIL(e, TARE_E_SHAPE, "%s: the codebook needs embeddings of width %lld, but encoder %s has width %lld", name, (long long)d,
             encoder->plugin->desc.name, (long long)encoder->sizes.dim);
    TRY(read_bytes(codebook, "encoder_state", codebook->plugin->codebook->encoder_state, &state, e));
    return state.size ? plugin_load_raw(encoder, state.data, state.size, name, e) : TARE_OK;
}
