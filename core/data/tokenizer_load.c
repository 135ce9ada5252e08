/* tokenizer.json -> struct tokenizer. Every member that HF `tokenizers` uses is either supported or
 * refused with its path. */
#include "data/tokenizer_impl.h"
#include "data/tokenizer_json.h"

#include <string.h>

/* ---------------------------------------------------------------- post-processor */

/* Encoding adds no tokens; this only reads whether plain text should begin with BOS. */
static tare_status read_template(struct tokenizer *t, const json_t *p, const char *where, struct err *e)
{
    const json_t *single = json_object_get(p, "single"), *item;
    bool text = false;
    size_t i;
    json_array_foreach(single, i, item)
    {
        const json_t *special = json_object_get(item, "SpecialToken");
        if (json_object_get(item, "Sequence")) text = true;
        if (!special) continue;
        if (text || i)
            FAIL(e, TARE_E_UNSUPPORTED, "%s: post_processor prepends more than one token, which is not supported", where);
        const char *id = json_text_or(special, "id", "");
        t->role_id[TOKEN_BOS] = vocab_find(&t->model.vocab, id, (int64_t)strlen(id));
        if (t->role_id[TOKEN_BOS] < 0) FAIL(e, TARE_E_CORRUPT, "%s: post_processor names the unknown token \"%.60s\"", where, id);
        t->add_bos = true;
    }
    return TARE_OK;
}

static tare_status read_post_processor(struct tokenizer *t, const json_t *root, const char *where, struct err *e)
{
    const json_t *post = tokenizer_json_member(root, "post_processor"), *p;
    if (post)
        for (size_t i = 0; (p = tokenizer_json_part(post, "processors", i)); i++) {
            if (!strcmp(tokenizer_json_type(p), "TemplateProcessing")) TRY(read_template(t, p, where, e));
            /* ByteLevel changes offsets only */
            else if (strcmp(tokenizer_json_type(p), "ByteLevel"))
                FAIL(e, TARE_E_UNSUPPORTED,
                     "%s: post_processor of type \"%.60s\" is not supported; use ByteLevel or TemplateProcessing", where,
                     tokenizer_json_type(p));
        }
    return TARE_OK;
}

/* ---------------------------------------------------------------- added tokens */

/* A token matched in normalised text is matched, and decoded, in its own normal form. */
static tare_status insert_normalized(struct tokenizer *t, tare_text content, struct added_token token, struct err *e)
{
    OWNED(str_free) struct str normal = {0};
    tare_status status = normalizer_apply(&t->normalizer, (const unsigned char *)content.data, content.size, &normal, e);
    if (!status && normal.size) status = added_insert(&t->normalized, normal.data, normal.size, token, e);
    if (!status && (normal.size != content.size || memcmp(normal.data, content.data, (size_t)content.size) != 0))
        status = vocab_set_text(&t->model.vocab, token.id, (tare_text){normal.data, normal.size}, e);
    return status;
}

static tare_status read_added_token(struct tokenizer *t, const json_t *a, const char *where, struct err *e)
{
    static const char *const keys[] = {"id", "content", "single_word", "lstrip", "rstrip", "normalized", "special", NULL};
    TRY(tokenizer_json_only_keys(a, keys, where, e));
    struct vocab *v = &t->model.vocab;
    tare_text content;
    int64_t id;
    TRY(json_get_text(a, "content", where, &content, e));
    TRY(json_get_int(a, "id", where, &id, e));
    if (json_bool_or(a, "single_word", 0)) FAIL(e, TARE_E_UNSUPPORTED, "%s: single_word is set, which is not supported", where);
    if (!content.size) return TARE_OK; /* HF skips empty ones too */
    if (vocab_find(v, content.data, content.size) != id) {
        TRY(vocab_add(v, id, content.data, content.size, where, e));
        v->tokens[id].added = true;
    }
    v->tokens[id].special = json_bool_or(a, "special", 0);
    const struct added_token token = {(int32_t)id, (json_bool_or(a, "lstrip", 0) ? ADDED_LSTRIP : 0) |
                                                       (json_bool_or(a, "rstrip", 0) ? ADDED_RSTRIP : 0)};
    if (json_bool_or(a, "normalized", !v->tokens[id].special)) return insert_normalized(t, content, token, e);
    return added_insert(&t->raw, content.data, content.size, token, e);
}

static tare_status read_added(struct tokenizer *t, const json_t *root, const char *where, struct err *e)
{
    const json_t *list = tokenizer_json_member(root, "added_tokens"), *a;
    size_t i;
    if (list && !json_is_array(list)) FAIL(e, TARE_E_CORRUPT, "%s: added_tokens is not a list", where);
    json_array_foreach(list, i, a)
    {
        char place[600];
        snprintf(place, sizeof place, "%.500s: added_tokens[%zu]", where, i);
        TRY(read_added_token(t, a, place, e));
    }
    return TARE_OK;
}

tare_status tokenizer_read(struct tokenizer *t, const json_t *root, const char *where, struct err *e)
{
    static const char *const keys[] = {"version",       "truncation",     "padding", "added_tokens", "normalizer",
                                       "pre_tokenizer", "post_processor", "decoder", "model",        NULL};
    if (!json_is_object(root)) FAIL(e, TARE_E_CORRUPT, "%s: not a JSON object", where);
    TRY(tokenizer_json_only_keys(root, keys, where, e));
    TRY(normalizer_read(&t->normalizer, tokenizer_json_member(root, "normalizer"), where, e));
    TRY(tokenizer_read_steps(t, root, where, e));
    TRY(tokenizer_read_model(t, root, where, e));
    TRY(read_added(t, root, where, e));
    return read_post_processor(t, root, where, e);
}

/* ---------------------------------------------------------------- tokenizer_config.json */

tare_status tokenizer_read_config(struct tokenizer *t, const json_t *config, const char *where, struct err *e)
{
    static const char *const roles[TOKEN_ROLES] = {"bos_token", "eos_token", "pad_token", "unk_token"};
    if (!json_is_object(config)) FAIL(e, TARE_E_CORRUPT, "%s: not a JSON object", where);
    for (int k = 0; k < TOKEN_ROLES; k++) {
        const json_t *v = tokenizer_json_member(config, roles[k]);
        if (json_is_object(v)) v = json_object_get(v, "content"); /* an AddedToken object */
        if (!v) continue;
        if (!json_is_string(v)) FAIL(e, TARE_E_CORRUPT, "%s: %s is neither a string nor a token", where, roles[k]);
        t->role_id[k] = vocab_find(&t->model.vocab, json_string_value(v), (int64_t)json_string_length(v));
    }
    t->add_bos = json_bool_or(config, "add_bos_token", t->add_bos);
    if (t->add_bos && t->role_id[TOKEN_BOS] < 0)
        FAIL(e, TARE_E_CONFIG, "%s: add_bos_token is true, but bos_token is not in the vocabulary", where);
    return TARE_OK;
}
