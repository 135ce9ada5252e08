/* tokenizer.json -> struct tokenizer. Every member that HF `tokenizers` acts on is either done here or refused with its path. */
#include "data/tokenizer_impl.h"

#include <stdlib.h>
#include <string.h>

/* null and absent are the same everywhere in tokenizer.json. */
static const json_t *member(const json_t *o, const char *key)
{
    const json_t *v = json_object_get(o, key);
    return json_is_null(v) ? NULL : v;
}

static tare_status only_keys(const json_t *o, const char *const *allowed, const char *where, struct err *e)
{
    if (!json_is_object(o)) FAIL(e, TARE_E_UNSUPPORTED, "%s is not an object", where);
    const char *key;
    json_t *value;
    json_object_foreach((json_t *)o, key, value)
    {
        size_t i = 0;
        while (allowed[i] && strcmp(allowed[i], key)) i++;
        if (!allowed[i]) FAIL(e, TARE_E_UNSUPPORTED, "%s: the member \"%.60s\" is not supported", where, key);
    }
    return TARE_OK;
}

static const char *type_of(const json_t *o)
{
    return json_text_or(o, "type", "");
}

/* The members of a Sequence, or the object itself; NULL after the last. */
static const json_t *part(const json_t *o, const char *list, size_t i)
{
    if (!strcmp(type_of(o), "Sequence")) return json_array_get(json_object_get(o, list), i);
    return i ? NULL : o;
}

/* ---------------------------------------------------------------- normaliser, pre-tokenizer, decoder, post-processor */

static tare_status read_normalizer(struct tokenizer *t, const json_t *n, const char *where, struct err *e)
{
    const json_t *p;
    for (size_t i = 0; n && (p = part(n, "normalizers", i)); i++) {
        if (strcmp(type_of(p), "NFC"))
            FAIL(e, TARE_E_UNSUPPORTED, "%s: normalizer of type \"%.60s\" is not supported; NFC or none is", where, type_of(p));
        t->nfc = true;
    }
    return TARE_OK;
}

static tare_status read_split(struct split *out, const json_t *p, const char *where, struct err *e)
{
    static const char *const keys[] = {"type", "pattern", "behavior", "invert", NULL};
    TRY(only_keys(p, keys, where, e));
    const char *behavior = json_text_or(p, "behavior", "");
    if (strcmp(behavior, "Isolated"))
        FAIL(e, TARE_E_UNSUPPORTED, "%s: Split with behavior \"%.60s\" is not supported; Isolated is", where, behavior);
    const json_t *pattern = json_object_get(p, "pattern"), *regex = json_object_get(pattern, "Regex");
    const json_t *text = regex ? regex : json_object_get(pattern, "String");
    if (!json_is_string(text)) FAIL(e, TARE_E_UNSUPPORTED, "%s: Split has neither a pattern.Regex nor a pattern.String", where);
    return split_regex(json_string_value(text), (int64_t)json_string_length(text), !regex, where, out, e);
}

static tare_status read_digits(struct split *out, const json_t *p, const char *where, struct err *e)
{
    static const char *const keys[] = {"type", "individual_digits", NULL};
    TRY(only_keys(p, keys, where, e));
    *out = (struct split){.kind = SPLIT_DIGITS, .individual = json_bool_or(p, "individual_digits", 0)};
    return TARE_OK;
}

/* ByteLevel comes last: it turns pieces into bytes, and with use_regex cuts by GPT-2's expression before. */
static tare_status read_byte_level(struct tokenizer *t, const json_t *p, const char *where, struct err *e)
{
    static const char *const keys[] = {"type", "add_prefix_space", "trim_offsets", "use_regex", NULL};
    TRY(only_keys(p, keys, where, e));
    if (json_bool_or(p, "add_prefix_space", 1))
        FAIL(e, TARE_E_UNSUPPORTED, "%s: ByteLevel with add_prefix_space is not supported", where);
    if (!json_bool_or(p, "use_regex", 1)) return TARE_OK;
    return split_regex(PATTERN_GPT2, (int64_t)strlen(PATTERN_GPT2), false, where, &t->splits[t->n_splits++], e);
}

static tare_status read_pre_tokenizer(struct tokenizer *t, const json_t *root, const char *where, struct err *e)
{
    const json_t *pre = member(root, "pre_tokenizer"), *p;
    bool byte_level = false;
    if (pre)
        for (size_t i = 0; (p = part(pre, "pretokenizers", i)); i++) {
            char place[600];
            snprintf(place, sizeof place, "%.500s: pre_tokenizer[%zu]", where, i);
            if (byte_level) FAIL(e, TARE_E_UNSUPPORTED, "%s comes after ByteLevel, which has to be the last", place);
            if (t->n_splits == MAX_SPLITS)
                FAIL(e, TARE_E_UNSUPPORTED, "%s: more than %d steps are not supported", place, MAX_SPLITS);
            const char *type = type_of(p);
            if (!strcmp(type, "Split"))
                TRY(read_split(&t->splits[t->n_splits++], p, place, e));
            else if (!strcmp(type, "Digits"))
                TRY(read_digits(&t->splits[t->n_splits++], p, place, e));
            else if (!strcmp(type, "ByteLevel"))
                TRY(read_byte_level(t, p, place, e));
            else
                FAIL(e, TARE_E_UNSUPPORTED, "%s: type \"%.60s\" is not supported; Split, Digits and ByteLevel are", place, type);
            byte_level = !strcmp(type, "ByteLevel");
        }
    if (!byte_level) FAIL(e, TARE_E_UNSUPPORTED, "%s: pre_tokenizer has no ByteLevel; only byte-level BPE is supported", where);
    return TARE_OK;
}

static tare_status read_decoder(const json_t *root, const char *where, struct err *e)
{
    const json_t *decoder = member(root, "decoder"), *p;
    size_t n = 0;
    for (; decoder && (p = part(decoder, "decoders", n)); n++)
        if (strcmp(type_of(p), "ByteLevel"))
            FAIL(e, TARE_E_UNSUPPORTED, "%s: decoder of type \"%.60s\" is not supported; ByteLevel is", where, type_of(p));
    if (n != 1) FAIL(e, TARE_E_UNSUPPORTED, "%s: the decoder has to be one ByteLevel", where);
    return TARE_OK;
}

/* Nothing is added while encoding; what is read here is whether plain text is meant to begin with BOS. */
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
            FAIL(e, TARE_E_UNSUPPORTED, "%s: post_processor puts more than one token in front of the text, which is not supported",
                 where);
        const char *id = json_text_or(special, "id", "");
        t->role_id[TOKEN_BOS] = vocab_find(&t->vocab, id, (int64_t)strlen(id));
        if (t->role_id[TOKEN_BOS] < 0) FAIL(e, TARE_E_CORRUPT, "%s: post_processor names \"%.60s\", which is no token", where, id);
        t->add_bos = true;
    }
    return TARE_OK;
}

static tare_status read_post_processor(struct tokenizer *t, const json_t *root, const char *where, struct err *e)
{
    const json_t *post = member(root, "post_processor"), *p;
    if (post)
        for (size_t i = 0; (p = part(post, "processors", i)); i++) {
            if (!strcmp(type_of(p), "TemplateProcessing"))
                TRY(read_template(t, p, where, e));
            else if (strcmp(type_of(p), "ByteLevel")) /* ByteLevel changes offsets only */
                FAIL(e, TARE_E_UNSUPPORTED,
                     "%s: post_processor of type \"%.60s\" is not supported; ByteLevel and TemplateProcessing are", where,
                     type_of(p));
        }
    return TARE_OK;
}

/* ---------------------------------------------------------------- model */

static tare_status read_vocab(struct tokenizer *t, const json_t *vocab, const char *where, struct err *e)
{
    if (!json_is_object(vocab)) FAIL(e, TARE_E_CORRUPT, "%s: model.vocab is not an object", where);
    TRY(vocab_reserve(&t->vocab, (int64_t)json_object_size(vocab), e));
    for (void *i = json_object_iter((json_t *)vocab); i; i = json_object_iter_next((json_t *)vocab, i)) {
        const char *content = json_object_iter_key(i);
        const json_t *id = json_object_iter_value(i);
        const int64_t n = (int64_t)strlen(content);
        if (!json_is_integer(id)) FAIL(e, TARE_E_CORRUPT, "%s: model.vocab[\"%.60s\"] is not a whole number", where, content);
        if (n > VOCAB_MAX_BYTES)
            FAIL(e, TARE_E_UNSUPPORTED, "%s: model.vocab has a token of %lld bytes; at most %d are supported", where, (long long)n,
                 VOCAB_MAX_BYTES);
        TRY(vocab_add(&t->vocab, json_integer_value(id), content, n, where, e));
    }
    for (int b = 0; b < 256; b++) {
        const unsigned char byte = (unsigned char)b;
        t->vocab.byte_id[b] = vocab_find_bytes(&t->vocab, &byte, 1);
    }
    return TARE_OK;
}

/* "left right", or ["left", "right"] */
static tare_status read_merge(const struct vocab *v, const json_t *merge, int32_t pair[2])
{
    const char *text[2] = {NULL, NULL};
    int64_t size[2] = {0, 0};
    if (json_is_string(merge)) {
        const char *all = json_string_value(merge), *space = strchr(all, ' ');
        if (!space) return TARE_E_CORRUPT;
        text[0] = all;
        size[0] = space - all;
        text[1] = space + 1;
        size[1] = (int64_t)json_string_length(merge) - size[0] - 1;
    } else {
        if (json_array_size(merge) != 2) return TARE_E_CORRUPT;
        for (size_t k = 0; k < 2; k++) {
            const json_t *half = json_array_get(merge, k);
            if (!json_is_string(half)) return TARE_E_CORRUPT;
            text[k] = json_string_value(half);
            size[k] = (int64_t)json_string_length(half);
        }
    }
    for (int k = 0; k < 2; k++) pair[k] = vocab_find(v, text[k], size[k]);
    return pair[0] < 0 || pair[1] < 0 ? TARE_E_NOT_FOUND : TARE_OK;
}

static tare_status read_merges(struct tokenizer *t, const json_t *merges, const char *where, struct err *e)
{
    if (!json_is_array(merges)) FAIL(e, TARE_E_CORRUPT, "%s: model.merges is not a list", where);
    const size_t n = json_array_size(merges);
    TRY(merges_new(&t->merges, (int64_t)n, e));
    for (size_t i = 0; i < n; i++) {
        int32_t pair[2];
        const tare_status status = read_merge(&t->vocab, json_array_get(merges, i), pair);
        if (status == TARE_E_CORRUPT)
            FAIL(e, status, "%s: model.merges[%zu] is neither \"left right\" nor [\"left\", \"right\"]", where, i);
        const int32_t joined = status ? -1 : vocab_find_pair(&t->vocab, pair[0], pair[1]);
        if (joined < 0)
            FAIL(e, TARE_E_CORRUPT, "%s: model.merges[%zu] has a half, or a whole, that is not in model.vocab", where, i);
        merges_add(&t->merges, pair[0], pair[1], (int32_t)i, joined);
    }
    return TARE_OK;
}

static tare_status refuse_option(const json_t *model, const char *key, const char *where, struct err *e)
{
    const json_t *v = member(model, key);
    const bool off =
        !v || json_is_false(v) || (json_is_string(v) && !json_string_length(v)) || (json_is_number(v) && json_number_value(v) == 0);
    if (!off) FAIL(e, TARE_E_UNSUPPORTED, "%s: model.%s is set, which is not supported", where, key);
    return TARE_OK;
}

static tare_status read_model(struct tokenizer *t, const json_t *root, const char *where, struct err *e)
{
    static const char *const keys[] = {"type",
                                       "dropout",
                                       "unk_token",
                                       "continuing_subword_prefix",
                                       "end_of_word_suffix",
                                       "fuse_unk",
                                       "byte_fallback",
                                       "ignore_merges",
                                       "vocab",
                                       "merges",
                                       NULL};
    const json_t *model = json_object_get(root, "model");
    if (!json_is_object(model)) FAIL(e, TARE_E_CORRUPT, "%s: \"model\" is missing; this is no tokenizer.json", where);
    const char *type = json_text_or(model, "type", "BPE");
    if (strcmp(type, "BPE")) FAIL(e, TARE_E_UNSUPPORTED, "%s: model.type \"%.60s\" is not supported; BPE is", where, type);
    char place[600];
    snprintf(place, sizeof place, "%.500s: model", where);
    TRY(only_keys(model, keys, place, e));
    TRY(refuse_option(model, "dropout", where, e));
    TRY(refuse_option(model, "continuing_subword_prefix", where, e));
    TRY(refuse_option(model, "end_of_word_suffix", where, e));
    TRY(refuse_option(model, "byte_fallback", where, e));
    t->ignore_merges = json_bool_or(model, "ignore_merges", 0);
    TRY(read_vocab(t, json_object_get(model, "vocab"), where, e));
    if (member(model, "unk_token")) /* without missing bytes it is never used */
        for (int b = 0; b < 256; b++)
            if (t->vocab.byte_id[b] < 0)
                FAIL(e, TARE_E_UNSUPPORTED, "%s: model.unk_token is set and byte %02X has no token, which is not supported", where,
                     b);
    return read_merges(t, json_object_get(model, "merges"), where, e);
}

/* ---------------------------------------------------------------- added tokens */

static tare_status read_added_token(struct tokenizer *t, const json_t *a, const char *where, struct err *e)
{
    static const char *const keys[] = {"id", "content", "single_word", "lstrip", "rstrip", "normalized", "special", NULL};
    static const char *const refused[] = {"single_word", "lstrip", "rstrip"};
    TRY(only_keys(a, keys, where, e));
    tare_text content;
    int64_t id;
    TRY(json_get_text(a, "content", where, &content, e));
    TRY(json_get_int(a, "id", where, &id, e));
    for (int k = 0; k < 3; k++)
        if (json_bool_or(a, refused[k], 0)) FAIL(e, TARE_E_UNSUPPORTED, "%s: %s is set, which is not supported", where, refused[k]);
    if (!content.size) return TARE_OK; /* HF leaves empty ones out as well */
    if (vocab_find(&t->vocab, content.data, content.size) != id)
        TRY(vocab_add(&t->vocab, id, content.data, content.size, where, e));
    t->vocab.tokens[id].special = json_bool_or(a, "special", 0);
    const bool normalized = json_bool_or(a, "normalized", !t->vocab.tokens[id].special);
    if (t->nfc)
        for (int64_t i = 0; normalized && i < content.size; i++) /* HF would look for its normal form */
            if (content.data[i] & 0x80)
                FAIL(e, TARE_E_UNSUPPORTED, "%s: \"normalized\" is set for a token that is not plain ASCII, which is not supported",
                     where);
    struct added *set = normalized ? &t->normalized : &t->raw;
    return added_insert(set, content.data, content.size, (int32_t)id, e);
}

static tare_status read_added(struct tokenizer *t, const json_t *root, const char *where, struct err *e)
{
    const json_t *list = member(root, "added_tokens"), *a;
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
    TRY(only_keys(root, keys, where, e));
    TRY(read_normalizer(t, member(root, "normalizer"), where, e));
    TRY(read_pre_tokenizer(t, root, where, e));
    TRY(read_decoder(root, where, e));
    TRY(read_model(t, root, where, e));
    TRY(read_added(t, root, where, e));
    return read_post_processor(t, root, where, e);
}

/* ---------------------------------------------------------------- tokenizer_config.json */

tare_status tokenizer_read_config(struct tokenizer *t, const json_t *config, const char *where, struct err *e)
{
    static const char *const roles[TOKEN_ROLES] = {"bos_token", "eos_token", "pad_token", "unk_token"};
    if (!json_is_object(config)) FAIL(e, TARE_E_CORRUPT, "%s: not a JSON object", where);
    for (int k = 0; k < TOKEN_ROLES; k++) {
        const json_t *v = member(config, roles[k]);
        if (json_is_object(v)) v = json_object_get(v, "content"); /* an AddedToken written out */
        if (!v) continue;
        if (!json_is_string(v)) FAIL(e, TARE_E_CORRUPT, "%s: %s is neither a string nor a token", where, roles[k]);
        t->role_id[k] = vocab_find(&t->vocab, json_string_value(v), (int64_t)json_string_length(v));
    }
    t->add_bos = json_bool_or(config, "add_bos_token", t->add_bos);
    if (t->add_bos && t->role_id[TOKEN_BOS] < 0)
        FAIL(e, TARE_E_CONFIG, "%s: add_bos_token is true, and bos_token names no token of the vocabulary", where);
    return TARE_OK;
}
