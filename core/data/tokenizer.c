#include "data/tokenizer_impl.h"

#include "base/arena.h"
#include "base/fs.h"

#include <string.h>

tare_status token_ids_add(struct token_ids *ids, int32_t id, struct err *e)
{
    if (ids->n == ids->capacity) TRY(mem_grow((void **)&ids->data, &ids->capacity, ids->n + 1, sizeof *ids->data, e));
    ids->data[ids->n++] = id;
    return TARE_OK;
}

void token_ids_free(struct token_ids *ids)
{
    mem_free(ids->data);
    *ids = (struct token_ids){0};
}

/* ---------------------------------------------------------------- life */

static tare_status parse_into(struct tokenizer *t, const char *json, int64_t n, const char *where, struct err *e)
{
    OWNED(json_decrefp) json_t *root = NULL;
    TRY(json_parse(json, n, where, &root, e));
    return tokenizer_read(t, root, where, e);
}

static tare_status read_config(struct tokenizer *t, const char *config, int64_t n, const char *where, struct err *e)
{
    OWNED(json_decrefp) json_t *root = NULL;
    TRY(json_parse_wide(config, n, where, &root, e));
    return tokenizer_read_config(t, root, where, e);
}

tare_status tokenizer_parse(tare_text json, tare_text config, const char *where, struct tokenizer **out, struct err *e)
{
    *out = NULL;
    struct tokenizer *t;
    TRY(mem_new(sizeof *t, (void **)&t, e));
    vocab_init(&t->model.vocab);
    for (int k = 0; k < TOKEN_ROLES; k++) t->role_id[k] = -1;
    t->hash = fs_hash(json.data, json.size, 0);
    tare_status status = mem_new(sizeof *t->pool, (void **)&t->pool, e);
    if (!status) {
        pthread_mutex_init(&t->pool->lock, NULL);
        status = parse_into(t, json.data, json.size, where, e);
    }
    if (!status && config.data) {
        char place[FS_PATH];
        fs_dirname(place, where);
        char path[FS_PATH + 32];
        snprintf(path, sizeof path, "%s/tokenizer_config.json", place);
        status = read_config(t, config.data, config.size, path, e);
    }
    if (status)
        tokenizer_free(t);
    else
        *out = t;
    return status;
}

/* Reports why tokenizer.json could not be read; e has the error so far. */
static tare_status no_tokenizer(const char *folder, struct err *e)
{
    char path[FS_PATH];
    struct err none = {0};
    const bool sentencepiece = !fs_join(path, folder, "tokenizer.model", &none) && fs_exists(path);
    if (!sentencepiece) return err_prefix(e, "a tokenizer.json is needed");
    FAIL(
        e, TARE_E_UNSUPPORTED,
        "%s: tokenizer.model is not supported; convert it to tokenizer.json: pip install transformers sentencepiece protobuf && python3 -c 'import sys, transformers as t; t.AutoTokenizer.from_pretrained(sys.argv[1]).save_pretrained(sys.argv[1])' %s",
        folder, folder);
}

tare_status tokenizer_load(const char *folder, struct tokenizer **out, struct err *e)
{
    char path[FS_PATH], config_path[FS_PATH];
    OWNED(str_free) struct str json = {0}, config = {0};
    *out = NULL;
    TRY(fs_join(path, folder, "tokenizer.json", e));
    TRY(fs_join(config_path, folder, "tokenizer_config.json", e));
    if (fs_read_all(path, &json, e)) return no_tokenizer(folder, e);
    const bool configured = fs_exists(config_path);
    if (configured) TRY(fs_read_all(config_path, &config, e));
    return tokenizer_parse((tare_text){json.data, json.size}, (tare_text){config.data, config.size}, path, out, e);
}

void tokenizer_free(struct tokenizer *t)
{
    if (!t) return;
    if (t->pool) {
        for (struct piece_scratch *s = t->pool->idle, *next; s; s = next) {
            next = s->next;
            piece_scratch_free(s);
        }
        pthread_mutex_destroy(&t->pool->lock);
        mem_free(t->pool);
    }
    for (int64_t i = 0; i < t->n_splits; i++) pretokenize_free(&t->splits[i]);
    added_free(&t->raw);
    added_free(&t->normalized);
    normalizer_free(&t->normalizer);
    str_free(&t->decoding.first);
    token_model_free(&t->model);
    mem_free(t);
}

/* ---------------------------------------------------------------- encoding */

static tare_status take_scratch(const struct tokenizer *t, struct piece_scratch **out, struct err *e)
{
    pthread_mutex_lock(&t->pool->lock);
    *out = t->pool->idle;
    if (*out) t->pool->idle = (*out)->next;
    pthread_mutex_unlock(&t->pool->lock);
    return *out ? TARE_OK : piece_scratch_new(out, e);
}

static void return_scratch(const struct tokenizer *t, struct piece_scratch *s)
{
    pthread_mutex_lock(&t->pool->lock);
    s->next = t->pool->idle;
    t->pool->idle = s;
    pthread_mutex_unlock(&t->pool->lock);
}

struct encoding {
    const struct tokenizer *t;
    struct piece_scratch *scratch;
    struct token_ids *out;
};

static tare_status encode_piece(void *ctx, const unsigned char *text, int64_t n, struct err *e)
{
    const struct encoding *k = ctx;
    return piece_encode(&k->t->model, k->scratch, text, n, k->out, e);
}

/* Encodes normalised text: added tokens that match normalised text, and the pieces between them.
 * first: the whole text begins here. */
static tare_status encode_normalized(struct encoding *k, tare_text text, bool first, struct err *e)
{
    const struct tokenizer *t = k->t;
    const unsigned char *begin = (const unsigned char *)text.data;
    const struct pretokenizer p = {t->splits, t->n_splits, encode_piece, k, first ? begin : NULL};
    struct added_walk walk = {.set = &t->normalized, .text = begin, .n = text.size};
    int64_t before, size;
    int32_t id;
    while (added_next(&walk, &before, &size, &id)) {
        TRY(pretokenize(&p, begin + before, size, e));
        TRY(token_ids_add(k->out, id, e));
    }
    return pretokenize(&p, begin + before, size, e);
}

/* Encodes the text between added tokens. */
static tare_status encode_stretch(struct encoding *k, tare_text text, bool first, struct err *e)
{
    if (!text.size) return TARE_OK;
    const unsigned char *begin = (const unsigned char *)text.data;
    if (normalizer_keeps(&k->t->normalizer, begin, text.size)) return encode_normalized(k, text, first, e);
    OWNED(str_free) struct str normal = {0};
    TRY(normalizer_apply(&k->t->normalizer, begin, text.size, &normal, e));
    return encode_normalized(k, (tare_text){normal.data, normal.size}, first, e);
}

tare_status tokenizer_encode(const struct tokenizer *t, const char *text, int64_t n, struct token_ids *out, struct err *e)
{
    const int64_t bad = str_utf8_error(text, n);
    if (bad) FAIL(e, TARE_E_INVALID, "the text is not valid UTF-8 at byte %lld", (long long)bad);
    struct encoding k = {.t = t, .out = out};
    TRY(take_scratch(t, &k.scratch, e));
    struct added_walk walk = {.set = &t->raw, .text = (const unsigned char *)text, .n = n};
    tare_status status = TARE_OK;
    int64_t before = 0, size = 0;
    int32_t id;
    while (!status && added_next(&walk, &before, &size, &id)) {
        status = encode_stretch(&k, (tare_text){text + before, size}, !before, e);
        if (!status) status = token_ids_add(out, id, e);
    }
    if (!status) status = encode_stretch(&k, (tare_text){text + before, size}, !before, e);
    return_scratch(t, k.scratch);
    return status;
}

/* ---------------------------------------------------------------- questions about tokens */

int64_t tokenizer_size(const struct tokenizer *t)
{
    return t->model.vocab.size;
}

tare_text tokenizer_bytes(const struct tokenizer *t, int32_t id)
{
    if (id < 0 || id >= t->model.vocab.size) return (tare_text){"", 0};
    const struct vocab_token *token = &t->model.vocab.tokens[id];
    return (tare_text){t->model.vocab.text.data + token->bytes, token->bytes_size};
}

bool tokenizer_is_special(const struct tokenizer *t, int32_t id)
{
    return id >= 0 && id < t->model.vocab.size && t->model.vocab.tokens[id].special;
}

int32_t tokenizer_role_id(const struct tokenizer *t, enum token_role role)
{
    return t->role_id[role];
}

bool tokenizer_add_bos(const struct tokenizer *t)
{
    return t->add_bos;
}

uint64_t tokenizer_hash(const struct tokenizer *t)
{
    return t->hash;
}
