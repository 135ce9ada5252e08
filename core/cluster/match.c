#include "cluster/match.h"

#include "base/fs.h"

#include <string.h>

enum { IDENTITY = 4096 };

const char *match_codebook_path(const struct plugin_instance *codebook)
{
    for (uint32_t i = 0; i < codebook->plugin->desc.n_params; i++)
        if (codebook->plugin->params[i].type == TARE_PATH && !strcmp(codebook->plugin->params[i].key, "path"))
            return codebook->values[i].s;
    return NULL;
}

tare_status match_identity(struct plugin_instance *codebook, char *text, int64_t capacity, struct err *e)
{
    text[0] = 0;
    if (!codebook->plugin->codebook->encoder_identity) return TARE_OK;
    struct plugin_call c;
    plugin_enter(&c);
    TRY(plugin_leave(&c, codebook, "encoder_identity", -1,
                     codebook->plugin->codebook->encoder_identity(codebook->self, text, capacity, &c.error), e));
    text[capacity - 1] = 0;
    return TARE_OK;
}

static tare_status same_identity(const char *expected, const struct str *got, const char *name, struct err *e)
{
    if (!expected[0] || !strcmp(expected, got->data)) return TARE_OK;
    FAIL(
        e, TARE_E_CONFIG,
        "%s: the codebook needs the encoder `%s` (hash %016llx), but the encoder is `%s` (hash %016llx); name that encoder with its parameters, or train another codebook (tare cluster train)",
        name, expected, (unsigned long long)fs_hash(expected, (int64_t)strlen(expected), 0), got->data,
        (unsigned long long)fs_hash(got->data, got->size, 0));
}

tare_status match_encoder(struct plugin_instance *codebook, struct plugin_instance *encoder, const char *name, struct err *e)
{
    char expected[IDENTITY];
    if (!plugin_dim(codebook)) return TARE_OK;
    TRY(match_identity(codebook, expected, IDENTITY, e));
    if (!encoder)
        FAIL(e, TARE_E_CONFIG, "%s: the codebook needs embeddings%s%s%s; name its encoder", name, expected[0] ? " of `" : "",
             expected, expected[0] ? "`" : "");
    OWNED(str_free) struct str got = {0};
    TRY(plugin_identity(encoder, &got, e));
    TRY(same_identity(expected, &got, name, e));
    if (plugin_dim(encoder) != plugin_dim(codebook))
        FAIL(e, TARE_E_SHAPE, "%s: the codebook needs embeddings of width %lld, but encoder %s has width %lld", name,
             (long long)plugin_dim(codebook), encoder->plugin->desc.name, (long long)plugin_dim(encoder));
    if (!codebook->plugin->codebook->encoder_state) return TARE_OK;
    const tare_text state = codebook->plugin->codebook->encoder_state(codebook->self);
    return state.size ? plugin_load_raw(encoder, state.data, state.size, name, e) : TARE_OK;
}
