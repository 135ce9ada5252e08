#include "data/tokenizer_impl.h"

#include "base/arena.h"
#include "base/fs.h"

#include <stdlib.h>
#include <string.h>
#include <utf8proc.h>

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

static tare_status configure(struct tokenizer *t, const char *config, int64_t n, const char *where, struct err *e)
{
    OWNED(json_decrefp) json_t *root = NULL;
    TRY(json_parse(config, n, where, &root, e));
    return tokenizer_read_config(t, root, where, e);
}

tare_status tokenizer_parse(tare_text json, tare_text config, const char *where, struct tokenizer **out, struct err *e)
{
    *out = NULL;
    struct tokenizer *t;
    TRY(mem_new(sizeof *t, (void **)&t, e));
    vocab_init(&t->vocab);
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
        status = configure(t, config.data, config.size, path, e);
    }
    if (status)
        tokenizer_free(t);
    else
        *out = t;
    return status;
}

tare_status tokenizer_load(const char *folder, struct tokenizer **out, struct err *e)
{
    char path[FS_PATH], config_path[FS_PATH];
    struct str json = {0}, config = {0};
    *out = NULL;
    TRY(fs_join(path, folder, "tokenizer.json", e));
    TRY(fs_join(config_path, folder, "tokenizer_config.json", e));
    tare_status status = fs_read_all(path, &json, e);
    if (status) {
        str_free(&json);
        return err_prefix(e, "a byte-level BPE tokenizer.json is needed");
    }
    const bool configured = fs_exists(config_path);
    if (configured) status = fs_read_all(config_path, &config, e);
    if (!status) status = tokenizer_parse((tare_text){json.data, json.size}, (tare_text){config.data, config.size}, path, out, e);
    str_free(&json);
    str_free(&config);
    return status;
}

void tokenizer_free(struct tokenizer *t)
{
    if (!t) return;
    if (t->pool) {
        for (struct bpe_scratch *s = t->pool->idle, *next; s; s = next) {
            next = s->next;
            bpe_scratch_free(s);
        }
        pthread_mutex_destroy(&t->pool->lock);
        mem_free(t->pool);
    }
    for (int64_t i = 0; i < t->n_splits; i++) split_free(&t->splits[i]);
    added_free(&t->raw);
    added_free(&t->normalized);
    merges_free(&t->merges);
    vocab_free(&t->vocab);
    mem_free(t);
}

/* ---------------------------------------------------------------- encoding */

static tare_status take_scratch(const struct tokenizer *t, struct bpe_scratch **out, struct err *e)
{
    pthread_mutex_lock(&t->pool->lock);
    *out = t->pool->idle;
    if (*out) t->pool->idle = (*out)->next;
    pthread_mutex_unlock(&t->pool->lock);
    return *out ? TARE_OK : bpe_scratch_new(out, e);
}

static void return_scratch(const struct tokenizer *t, struct bpe_scratch *s)
{
    pthread_mutex_lock(&t->pool->lock);
    s->next = t->pool->idle;
    t->pool->idle = s;
    pthread_mutex_unlock(&t->pool->lock);
}

struct encoding {
    const struct tokenizer *t;
    struct bpe_scratch *scratch;
    struct token_ids *out;
};

static tare_status encode_piece(void *ctx, const unsigned char *text, int64_t n, struct err *e)
{
    const struct encoding *k = ctx;
    return bpe_encode(&(struct bpe){&k->t->vocab, &k->t->merges, k->t->ignore_merges}, k->scratch, text, n, k->out, e);
}

/* Normalised text: the added tokens that are looked for here, and the pieces between them. */
static tare_status encode_normalized(struct encoding *k, const unsigned char *text, int64_t n, struct err *e)
{
    const struct tokenizer *t = k->t;
    const struct pretokenizer p = {t->splits, t->n_splits, encode_piece, k};
    int64_t at, size;
    int32_t id;
    while (added_find(&t->normalized, text, n, &at, &size, &id)) {
        TRY(pretokenize(&p, text, at, e));
        TRY(token_ids_add(k->out, id, e));
        text += at + size;
        n -= at + size;
    }
    return pretokenize(&p, text, n, e);
}

/* End of the stretch from p on that is in NFC for certain: nothing but characters that are starters and neither decompose nor compose. */
static const unsigned char *plain_until(const unsigned char *p, const unsigned char *end)
{
    while (p < end) {
        if (*p < 0xCC) { /* below U+0300 */
            p++;
            continue;
        }
        if (*p >= 0xD0 && *p <= 0xD3 && !(*p == 0xD2 && p[1] < 0x8A)) { /* U+0400-U+04FF but for the combining U+0480-U+0489 */
            p += 2;
            continue;
        }
        const int32_t c = (*p & 0xF0) == 0xE0 ? (*p & 0x0F) << 12 | (p[1] & 0x3F) << 6 | (p[2] & 0x3F) : 0;
        if (!((c >= 0x2010 && c <= 0x2027) || (c >= 0x4E00 && c <= 0x9FFF) || (c >= 0x3041 && c <= 0x3096) ||
              (c >= 0x30A1 && c <= 0x30FA)))
            break;
        p += 3;
    }
    return p;
}

/* Appends NFC of text. Only what plain_until does not vouch for goes through utf8proc, from the character before (it may compose) up to
 * the next ASCII character (which never does with what is before it). */
static tare_status normalize(const unsigned char *p, int64_t n, struct str *out, struct err *e)
{
    const unsigned char *end = p + n;
    TRY(str_reserve(out, n, e));
    while (p < end) {
        const unsigned char *stop = plain_until(p, end);
        if (stop < end)
            while (stop > p && (*--stop & 0xC0) == 0x80) continue;
        TRY(str_add(out, (const char *)p, stop - p, e));
        p = stop;
        if (p == end) break;
        stop = plain_until(p, end);
        while (stop < end && *stop >= 0x80) stop++;
        utf8proc_uint8_t *composed = NULL;
        const utf8proc_ssize_t size = utf8proc_map(p, stop - p, &composed, UTF8PROC_STABLE | UTF8PROC_COMPOSE);
        if (size < 0) FAIL(e, TARE_E_INVALID, "the text cannot be normalised to NFC: %s", utf8proc_errmsg(size));
        const tare_status status = str_add(out, (const char *)composed, size, e);
        free(composed);
        TRY(status);
        p = stop;
    }
    return TARE_OK;
}

/* A stretch between added tokens. */
static tare_status encode_stretch(struct encoding *k, const unsigned char *text, int64_t n, struct err *e)
{
    if (!n) return TARE_OK;
    if (!k->t->nfc || plain_until(text, text + n) == text + n) return encode_normalized(k, text, n, e);
    OWNED(str_free) struct str composed = {0};
    TRY(normalize(text, n, &composed, e));
    return encode_normalized(k, (const unsigned char *)composed.data, composed.size, e);
}

tare_status tokenizer_encode(const struct tokenizer *t, const char *text, int64_t n, struct token_ids *out, struct err *e)
{
    const int64_t bad = str_utf8_error(text, n);
    if (bad) FAIL(e, TARE_E_INVALID, "the text is not valid UTF-8 at byte %lld", (long long)bad);
    struct encoding k = {.t = t, .out = out};
    TRY(take_scratch(t, &k.scratch, e));
    const unsigned char *p = (const unsigned char *)text;
    tare_status status = TARE_OK;
    int64_t at, size;
    int32_t id;
    while (!status && added_find(&t->raw, p, n, &at, &size, &id)) {
        status = encode_stretch(&k, p, at, e);
        if (!status) status = token_ids_add(out, id, e);
        p += at + size;
        n -= at + size;
    }
    if (!status) status = encode_stretch(&k, p, n, e);
    return_scratch(t, k.scratch);
    return status;
}

/* ---------------------------------------------------------------- decoding */

void token_stream_init(struct token_stream *s, const struct tokenizer *t, bool skip_special)
{
    *s = (struct token_stream){.tokenizer = t, .skip_special = skip_special};
}

static int sequence_size(unsigned char lead) /* 0: no character begins so */
{
    if (lead < 0x80) return 1;
    if (lead < 0xC2 || lead > 0xF4) return 0;
    return lead < 0xE0 ? 2 : lead < 0xF0 ? 3 : 4;
}

/* Whether b may follow the n bytes held. */
static bool continues(const unsigned char *held, int n, unsigned char b)
{
    if ((b & 0xC0) != 0x80) return false;
    if (n > 1) return true;
    switch (held[0]) {
    case 0xE0:
        return b >= 0xA0;
    case 0xED:
        return b <= 0x9F;
    case 0xF0:
        return b >= 0x90;
    case 0xF4:
        return b <= 0x8F;
    default:
        return true;
    }
}

static tare_status give_up(struct token_stream *s, struct str *out, struct err *e)
{
    s->n_held = 0;
    return str_add(out, "\xEF\xBF\xBD", 3, e); /* U+FFFD for the longest beginning of a character that broke off */
}

static tare_status push_byte(struct token_stream *s, unsigned char b, struct str *out, struct err *e)
{
    if (s->n_held && !continues(s->held, s->n_held, b)) TRY(give_up(s, out, e));
    s->held[s->n_held++] = b;
    const int size = sequence_size(s->held[0]);
    if (!size) return give_up(s, out, e);
    if (s->n_held < size) return TARE_OK;
    s->n_held = 0;
    return str_add(out, (const char *)s->held, size, e);
}

tare_status token_stream_push(struct token_stream *s, int32_t id, struct str *out, struct err *e)
{
    const struct vocab *v = &s->tokenizer->vocab;
    if (id < 0 || id >= v->size || (s->skip_special && v->tokens[id].special)) return TARE_OK;
    const struct vocab_token *t = &v->tokens[id];
    const unsigned char *p = (const unsigned char *)v->text.data + t->bytes;
    const int64_t n = t->bytes_size;
    int64_t i = 0;
    while (i < n) {
        int64_t plain = i;
        while (!s->n_held && plain < n && p[plain] < 0x80) plain++;
        if (plain > i)
            TRY(str_add(out, (const char *)p + i, plain - i, e));
        else
            TRY(push_byte(s, p[plain++], out, e));
        i = plain;
    }
    return TARE_OK;
}

tare_status token_stream_end(struct token_stream *s, struct str *out, struct err *e)
{
    return s->n_held ? give_up(s, out, e) : TARE_OK;
}

tare_status tokenizer_decode(const struct tokenizer *t, const int32_t *ids, int64_t n, bool skip_special, struct str *out,
                             struct err *e)
{
    struct token_stream s;
    token_stream_init(&s, t, skip_special);
    TRY(str_reserve(out, 0, e));
    for (int64_t i = 0; i < n; i++) TRY(token_stream_push(&s, ids[i], out, e));
    return token_stream_end(&s, out, e);
}

/* ---------------------------------------------------------------- questions about tokens */

int64_t tokenizer_size(const struct tokenizer *t)
{
    return t->vocab.size;
}

tare_text tokenizer_bytes(const struct tokenizer *t, int32_t id)
{
    if (id < 0 || id >= t->vocab.size) return (tare_text){"", 0};
    const struct vocab_token *token = &t->vocab.tokens[id];
    return (tare_text){t->vocab.text.data + token->bytes, token->bytes_size};
}

bool tokenizer_is_special(const struct tokenizer *t, int32_t id)
{
    return id >= 0 && id < t->vocab.size && t->vocab.tokens[id].special;
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
