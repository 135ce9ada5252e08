#include "data/vocab.h"

#include "base/arena.h"
#include "base/fs.h"
#include "base/utf8.h"

#include <string.h>

int32_t vocab_byte_to_char(unsigned char b)
{
    if ((b >= '!' && b <= '~') || (b >= 0xA1 && b <= 0xAC) || b >= 0xAE) return b;
    if (b <= ' ') return 0x100 + b;           /* 00-20 are 100-120 */
    if (b <= 0xA0) return 0x121 + (b - 0x7F); /* 7F-A0 are 121-142 */
    return 0x143;                             /* AD */
}

int vocab_char_to_byte(int32_t c)
{
    if (c < 0x100) return vocab_byte_to_char((unsigned char)c) == c ? c : -1;
    if (c <= 0x120) return c - 0x100;
    if (c <= 0x142) return c - 0x121 + 0x7F;
    return c == 0x143 ? 0xAD : -1;
}

void vocab_init(struct vocab *v)
{
    *v = (struct vocab){0};
}

void vocab_free(struct vocab *v)
{
    str_free(&v->text);
    mem_free(v->tokens);
    mem_free(v->slots);
    *v = (struct vocab){0};
}

static uint64_t hash_of(const char *content, int64_t n)
{
    return fs_hash(content, n, 0);
}

static const char *content_of(const struct vocab *v, int32_t id)
{
    return v->text.data + v->tokens[id].content;
}

static int64_t slot_of(const struct vocab *v, const char *content, int64_t n)
{
    const int64_t mask = v->n_slots - 1;
    int64_t i = (int64_t)(hash_of(content, n) & (uint64_t)mask);
    for (; v->slots[i]; i = (i + 1) & mask) {
        const int32_t id = v->slots[i] - 1;
        if (v->tokens[id].content_size == n && !memcmp(content_of(v, id), content, (size_t)n)) break;
    }
    return i;
}

tare_status vocab_reserve(struct vocab *v, int64_t tokens, struct err *e)
{
    if (2 * tokens <= v->n_slots) return TARE_OK;
    int64_t wanted = v->n_slots ? v->n_slots : 1024;
    while (wanted < 2 * tokens) wanted *= 2;
    int32_t *old = v->slots;
    const int64_t n_old = v->n_slots;
    int32_t *slots;
    TRY(mem_new(wanted * (int64_t)sizeof *slots, (void **)&slots, e));
    v->slots = slots;
    v->n_slots = wanted;
    for (int64_t i = 0; i < n_old; i++)
        if (old[i]) {
            const int32_t id = old[i] - 1;
            v->slots[slot_of(v, content_of(v, id), v->tokens[id].content_size)] = id + 1;
        }
    mem_free(old);
    return TARE_OK;
}

/* Adds a content in GPT-2's alphabet: its characters as bytes, or the content itself if a character
 * is not in the alphabet (as in HF). */
static tare_status add_byte_level(struct vocab *v, struct vocab_token *t, struct err *e)
{
    TRY(str_reserve(&v->text, t->content_size, e));
    const unsigned char *p = (const unsigned char *)v->text.data + t->content, *end = p + t->content_size;
    t->bytes = v->text.size;
    while (p < end) {
        const int b = vocab_char_to_byte(utf8_next(&p));
        if (b < 0) {
            v->text.size = t->bytes;
            t->bytes = t->content;
            t->bytes_size = t->content_size;
            return TARE_OK;
        }
        v->text.data[v->text.size++] = (char)b;
    }
    t->bytes_size = (int32_t)(v->text.size - t->bytes);
    return TARE_OK;
}

static int hex_digit(char c) /* -1: none */
{
    const char *digits = "0123456789ABCDEFabcdef", *at = c ? strchr(digits, c) : NULL;
    if (!at) return -1;
    return (int)(at - digits < 16 ? at - digits : at - digits - 6);
}

static int byte_of(const char *content, int64_t n) /* <0x0A>; -1: not a byte token */
{
    if (n != 6 || memcmp(content, "<0x", 3) != 0 || content[5] != '>') return -1;
    const int high = hex_digit(content[3]), low = hex_digit(content[4]);
    return high < 0 || low < 0 ? -1 : 16 * high + low;
}

tare_status vocab_spell(const struct spelling *s, tare_text content, struct str *out, struct err *e)
{
    for (int64_t i = 0; i < content.size;) {
        const bool mark =
            s->mark_size && content.size - i >= s->mark_size && !memcmp(content.data + i, s->mark, (size_t)s->mark_size);
        TRY(str_add(out, mark ? s->in_place : content.data + i, mark ? s->in_place_size : 1, e));
        i += mark ? s->mark_size : 1;
    }
    return TARE_OK;
}

static tare_status add_spelt(struct vocab *v, struct vocab_token *t, struct err *e)
{
    const int byte = v->spelling.byte_tokens ? byte_of(v->text.data + t->content, t->content_size) : -1;
    OWNED(str_free) struct str spelt = {0};
    t->byte = byte >= 0;
    t->bytes = v->text.size;
    tare_status status = t->byte ? str_add(&spelt, &(char){(char)byte}, 1, e)
                                 : vocab_spell(&v->spelling, (tare_text){v->text.data + t->content, t->content_size}, &spelt, e);
    if (!status) status = str_add(&v->text, spelt.data, spelt.size, e);
    t->bytes_size = (int32_t)spelt.size;
    return status;
}

tare_status vocab_set_text(struct vocab *v, int32_t id, tare_text content, struct err *e)
{
    struct vocab_token *t = &v->tokens[id];
    struct vocab_token other = {.content = v->text.size, .content_size = (int32_t)content.size};
    TRY(str_add(&v->text, content.data, content.size, e));
    TRY(v->spelling.byte_level ? add_byte_level(v, &other, e) : add_spelt(v, &other, e));
    t->bytes = other.bytes;
    t->bytes_size = other.bytes_size;
    t->byte = other.byte;
    return TARE_OK;
}

tare_status vocab_add(struct vocab *v, int64_t id, const char *content, int64_t n, const char *where, struct err *e)
{
    if (id < 0 || id >= VOCAB_MAX_ID)
        FAIL(e, TARE_E_RANGE, "%s: id %lld of token \"%.*s\" is not in 0..%d", where, (long long)id, (int)(n < 99 ? n : 99),
             content, VOCAB_MAX_ID - 1);
    if (n > 1 << 20) FAIL(e, TARE_E_RANGE, "%s: the token with id %lld has %lld bytes", where, (long long)id, (long long)n);
    TRY(vocab_reserve(v, v->n_used + 1, e));
    TRY(mem_grow((void **)&v->tokens, &v->capacity, id + 1, sizeof *v->tokens, e));
    struct vocab_token *t = &v->tokens[id];
    const int64_t slot = slot_of(v, content, n);
    if (v->slots[slot])
        FAIL(e, TARE_E_CORRUPT, "%s: token \"%.*s\" has the ids %d and %lld", where, (int)(n < 99 ? n : 99), content,
             v->slots[slot] - 1, (long long)id);
    if (t->present)
        FAIL(e, TARE_E_CORRUPT, "%s: id %lld belongs to \"%.*s\" and \"%.*s\"", where, (long long)id,
             t->content_size < 99 ? t->content_size : 99, content_of(v, (int32_t)id), (int)(n < 99 ? n : 99), content);
    *t = (struct vocab_token){.content = v->text.size, .content_size = (int32_t)n, .present = true};
    TRY(str_add(&v->text, content, n, e));
    TRY(v->spelling.byte_level ? add_byte_level(v, t, e) : add_spelt(v, t, e));
    v->slots[slot] = (int32_t)id + 1;
    v->n_used++;
    if (id >= v->size) v->size = id + 1;
    return TARE_OK;
}

int32_t vocab_find(const struct vocab *v, const char *content, int64_t n)
{
    return v->n_slots ? v->slots[slot_of(v, content, n)] - 1 : -1;
}

int32_t vocab_find_own(const struct vocab *v, const char *content, int64_t n)
{
    const int32_t id = vocab_find(v, content, n);
    return id >= 0 && v->tokens[id].added ? -1 : id;
}

int32_t vocab_find_pair(const struct vocab *v, int32_t left, int32_t right)
{
    char joined[VOCAB_MAX_BYTES];
    const struct vocab_token *a = &v->tokens[left], *b = &v->tokens[right];
    const int64_t n = (int64_t)a->content_size + b->content_size;
    if (n > (int64_t)sizeof joined) return -1;
    memcpy(joined, content_of(v, left), (size_t)a->content_size);
    memcpy(joined + a->content_size, content_of(v, right), (size_t)b->content_size);
    return vocab_find(v, joined, n);
}

int32_t vocab_find_bytes(const struct vocab *v, const unsigned char *bytes, int64_t n)
{
    char content[2 * VOCAB_MAX_BYTES];
    int64_t size = 0;
    if (2 * n > (int64_t)sizeof content) return -1;
    for (int64_t i = 0; i < n; i++) {
        const int32_t c = vocab_byte_to_char(bytes[i]);
        if (c >= 0x80) content[size++] = (char)(0xC0 | c >> 6);
        content[size++] = (char)(c >= 0x80 ? 0x80 | (c & 0x3F) : c);
    }
    return vocab_find_own(v, content, size);
}
