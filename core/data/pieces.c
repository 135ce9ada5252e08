#include "data/pieces.h"

#include "base/arena.h"

#include <string.h>

enum { CACHE_TEXT = 28, CACHE_IDS = 8, CACHE_SLOTS = 1 << 14 };

struct cached_piece { /* one cache line */
    uint8_t size, n;
    unsigned char text[CACHE_TEXT + 2];
    int32_t ids[CACHE_IDS];
};

static uint64_t read_word(const unsigned char *p, int64_t n)
{
    uint64_t w = 0;
    memcpy(&w, p, (size_t)n);
    return w;
}

static struct cached_piece *cache_slot(struct piece_scratch *s, const unsigned char *piece, int64_t n)
{
    uint64_t h = (uint64_t)n * 0xA0761D6478BD642Fu;
    for (; n >= 8; piece += 8, n -= 8) {
        h = (h ^ read_word(piece, 8)) * 0x9E3779B97F4A7C15u;
        h ^= h >> 29;
    }
    h = (h ^ read_word(piece, n)) * 0xE7037ED1A0B428DBu;
    return &s->cache[(h >> 40) & (CACHE_SLOTS - 1)];
}

tare_status piece_scratch_new(struct piece_scratch **out, struct err *e)
{
    struct piece_scratch *s;
    TRY(mem_new(sizeof *s, (void **)&s, e));
    const tare_status status = mem_new(CACHE_SLOTS * (int64_t)sizeof *s->cache, (void **)&s->cache, e);
    if (status) mem_free(s);
    *out = status ? NULL : s;
    return status;
}

void piece_scratch_free(struct piece_scratch *s)
{
    if (!s) return;
    bpe_scratch_free(&s->bpe);
    unigram_scratch_free(&s->unigram);
    mem_free(s->cache);
    mem_free(s);
}

void token_model_free(struct token_model *m)
{
    unigram_free(&m->unigram);
    bpe_merges_free(&m->merges);
    vocab_free(&m->vocab);
}

static tare_status append_ids(struct token_ids *out, const int32_t *ids, int64_t n, struct err *e)
{
    if (out->n + n > out->capacity) TRY(mem_grow((void **)&out->data, &out->capacity, out->n + n, sizeof *out->data, e));
    if (n) memcpy(out->data + out->n, ids, (size_t)n * sizeof *ids);
    out->n += n;
    return TARE_OK;
}

static int32_t whole_token(const struct token_model *m, const unsigned char *piece, int64_t n)
{
    return m->symbols.characters ? vocab_find_own(&m->vocab, (const char *)piece, n) : vocab_find_bytes(&m->vocab, piece, n);
}

static tare_status encode_piece(const struct token_model *m, struct piece_scratch *s, tare_text piece, struct token_ids *out,
                                struct err *e)
{
    const unsigned char *text = (const unsigned char *)piece.data;
    if (m->is_unigram) return unigram_encode(&(struct viterbi){&m->unigram, &m->vocab, &m->symbols}, &s->unigram, piece, out, e);
    const int32_t id = m->whole ? whole_token(m, text, piece.size) : -1;
    if (id >= 0) return append_ids(out, &id, 1, e);
    return bpe_encode(&(struct bpe){&m->vocab, &m->merges, &m->symbols}, &s->bpe, text, piece.size, out, e);
}

tare_status piece_encode(const struct token_model *m, struct piece_scratch *s, const unsigned char *piece, int64_t n,
                         struct token_ids *out, struct err *e)
{
    struct cached_piece *c = n <= CACHE_TEXT ? cache_slot(s, piece, n) : NULL;
    if (c && c->size == n && !memcmp(c->text, piece, (size_t)n)) return append_ids(out, c->ids, c->n, e);
    const int64_t begin = out->n;
    TRY(encode_piece(m, s, (tare_text){(const char *)piece, n}, out, e));
    if (!c || out->n - begin > CACHE_IDS) return TARE_OK;
    c->size = (uint8_t)n;
    c->n = (uint8_t)(out->n - begin);
    memcpy(c->text, piece, (size_t)n);
    if (c->n) memcpy(c->ids, out->data + begin, c->n * sizeof *c->ids);
    return TARE_OK;
}
