/* Reads the model of tokenizer.json: BPE or Unigram. */
#include "data/tokenizer_impl.h"
#include "data/tokenizer_json.h"

#include <string.h>

/* ---------------------------------------------------------------- BPE */

static tare_status read_vocab(struct tokenizer *t, const json_t *vocab, const char *where, struct err *e)
{
    if (!json_is_object(vocab)) FAIL(e, TARE_E_CORRUPT, "%s: model.vocab is not an object", where);
    TRY(vocab_reserve(&t->model.vocab, (int64_t)json_object_size(vocab), e));
    for (void *i = json_object_iter((json_t *)vocab); i; i = json_object_iter_next((json_t *)vocab, i)) {
        const char *content = json_object_iter_key(i);
        const json_t *id = json_object_iter_value(i);
        const int64_t n = (int64_t)strlen(content);
        if (!json_is_integer(id)) FAIL(e, TARE_E_CORRUPT, "%s: model.vocab[\"%.60s\"] is not a whole number", where, content);
        if (n > VOCAB_MAX_BYTES)
            FAIL(e, TARE_E_UNSUPPORTED, "%s: model.vocab has a token of %lld bytes; at most %d are supported", where, (long long)n,
                 VOCAB_MAX_BYTES);
        TRY(vocab_add(&t->model.vocab, json_integer_value(id), content, n, where, e));
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
    TRY(bpe_merges_new(&t->model.merges, (int64_t)n, e));
    for (size_t i = 0; i < n; i++) {
        int32_t pair[2];
        const tare_status status = read_merge(&t->model.vocab, json_array_get(merges, i), pair);
        if (status == TARE_E_CORRUPT)
            FAIL(e, status, "%s: model.merges[%zu] is neither \"left right\" nor [\"left\", \"right\"]", where, i);
        const int32_t joined = status ? -1 : vocab_find_pair(&t->model.vocab, pair[0], pair[1]);
        if (joined < 0)
            FAIL(e, TARE_E_CORRUPT, "%s: model.merges[%zu] has a part or a result that is not in model.vocab", where, i);
        bpe_merges_add(&t->model.merges, pair[0], pair[1], (int32_t)i, joined);
    }
    return TARE_OK;
}

static tare_status refuse_option(const json_t *model, const char *key, const char *where, struct err *e)
{
    const json_t *v = tokenizer_json_member(model, key);
    const bool off =
        !v || json_is_false(v) || (json_is_string(v) && !json_string_length(v)) || (json_is_number(v) && json_number_value(v) == 0);
    if (!off) FAIL(e, TARE_E_UNSUPPORTED, "%s: model.%s is set, which is not supported", where, key);
    return TARE_OK;
}

/* A byte-level model with all 256 bytes never uses its unknown token. */
static tare_status read_unknown(struct tokenizer *t, const json_t *model, const char *where, struct err *e)
{
    struct symbols *s = &t->model.symbols;
    const json_t *name = tokenizer_json_member(model, "unk_token");
    if (!name) return TARE_OK;
    for (int b = 0; b < 256 && !s->characters; b++)
        if (s->byte_id[b] < 0)
            FAIL(e, TARE_E_UNSUPPORTED, "%s: model.unk_token is set but byte %02X has no token, which is not supported", where, b);
    if (!s->characters) return TARE_OK;
    s->unknown =
        vocab_find(&t->model.vocab, json_is_string(name) ? json_string_value(name) : "", (int64_t)json_string_length(name));
    if (s->unknown < 0) FAIL(e, TARE_E_CORRUPT, "%s: model.unk_token is not in model.vocab", where);
    return TARE_OK;
}

static tare_status read_bpe(struct tokenizer *t, const json_t *model, const char *where, struct err *e)
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
    const bool characters = !t->model.vocab.spelling.byte_level;
    char place[600];
    snprintf(place, sizeof place, "%.500s: model", where);
    TRY(tokenizer_json_only_keys(model, keys, place, e));
    TRY(refuse_option(model, "dropout", where, e));
    TRY(refuse_option(model, "continuing_subword_prefix", where, e));
    TRY(refuse_option(model, "end_of_word_suffix", where, e));
    if (!characters) TRY(refuse_option(model, "byte_fallback", where, e));
    t->model.whole = json_bool_or(model, "ignore_merges", 0);
    TRY(read_vocab(t, json_object_get(model, "vocab"), where, e));
    symbols_init(&t->model.symbols, &t->model.vocab, characters, json_bool_or(model, "byte_fallback", 0));
    t->model.symbols.fuse_unknown = json_bool_or(model, "fuse_unk", 0);
    TRY(read_unknown(t, model, where, e));
    return read_merges(t, json_object_get(model, "merges"), where, e);
}

/* ---------------------------------------------------------------- Unigram */

static tare_status read_scored(struct tokenizer *t, const json_t *vocab, const char *where, struct err *e)
{
    if (!json_is_array(vocab)) FAIL(e, TARE_E_CORRUPT, "%s: model.vocab is not a list", where);
    const size_t n = json_array_size(vocab);
    TRY(vocab_reserve(&t->model.vocab, (int64_t)n, e));
    for (size_t i = 0; i < n; i++) {
        const json_t *pair = json_array_get(vocab, i), *content = json_array_get(pair, 0), *score = json_array_get(pair, 1);
        if (json_array_size(pair) != 2 || !json_is_string(content) || !json_is_number(score))
            FAIL(e, TARE_E_CORRUPT, "%s: model.vocab[%zu] is not [\"token\", score]", where, i);
        TRY(vocab_add(&t->model.vocab, (int64_t)i, json_string_value(content), (int64_t)json_string_length(content), where, e));
        TRY(unigram_add(&t->model.unigram, &t->model.vocab, (int32_t)i, json_number_value(score), e));
    }
    return TARE_OK;
}

static tare_status read_unigram(struct tokenizer *t, const json_t *model, const char *where, struct err *e)
{
    static const char *const keys[] = {"type", "unk_id", "vocab", "byte_fallback", "fuse_unk", NULL};
    char place[600];
    snprintf(place, sizeof place, "%.500s: model", where);
    TRY(tokenizer_json_only_keys(model, keys, place, e));
    if (t->model.vocab.spelling.byte_level)
        FAIL(e, TARE_E_UNSUPPORTED, "%s: model.type Unigram with a pre_tokenizer ByteLevel is not supported", where);
    TRY(read_scored(t, json_object_get(model, "vocab"), where, e));
    symbols_init(&t->model.symbols, &t->model.vocab, true, json_bool_or(model, "byte_fallback", 0));
    t->model.is_unigram = true;
    const json_t *unknown = tokenizer_json_member(model, "unk_id");
    if (!unknown) return TARE_OK;
    if (!json_is_integer(unknown) || json_integer_value(unknown) < 0 || json_integer_value(unknown) >= t->model.vocab.size)
        FAIL(e, TARE_E_CORRUPT, "%s: model.unk_id is outside model.vocab", where);
    t->model.symbols.unknown = (int32_t)json_integer_value(unknown);
    return TARE_OK;
}

tare_status tokenizer_read_model(struct tokenizer *t, const json_t *root, const char *where, struct err *e)
{
    const json_t *model = json_object_get(root, "model");
    if (!json_is_object(model)) FAIL(e, TARE_E_CORRUPT, "%s: missing \"model\"; this is not a tokenizer.json", where);
    const char *type = json_text_or(model, "type", json_is_array(json_object_get(model, "vocab")) ? "Unigram" : "BPE");
    if (!strcmp(type, "BPE")) return read_bpe(t, model, where, e);
    if (!strcmp(type, "Unigram")) return read_unigram(t, model, where, e);
    FAIL(e, TARE_E_UNSUPPORTED, "%s: model.type \"%.60s\" is not supported; use BPE or Unigram", where, type);
}
