/* Decodes ids to text, all at once or one by one. */
#include "data/tokenizer_impl.h"

#include <string.h>

/* ---------------------------------------------------------------- byte-level tokens */

static int sequence_size(unsigned char lead) /* 0: not a lead byte */
{
    if (lead < 0x80) return 1;
    if (lead < 0xC2 || lead > 0xF4) return 0;
    return lead < 0xE0 ? 2 : lead < 0xF0 ? 3 : 4;
}

/* Returns whether b may follow the n bytes held. */
static bool continues_sequence(const unsigned char *held, int n, unsigned char b)
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
    /* U+FFFD for the longest prefix of a truncated character */
    return str_add(out, "\xEF\xBF\xBD", 3, e);
}

static tare_status push_byte(struct token_stream *s, unsigned char b, struct str *out, struct err *e)
{
    if (s->n_held && !continues_sequence(s->held, s->n_held, b)) TRY(give_up(s, out, e));
    s->held[s->n_held++] = b;
    const int size = sequence_size(s->held[0]);
    if (!size) return give_up(s, out, e);
    if (s->n_held < size) return TARE_OK;
    s->n_held = 0;
    return str_add(out, (const char *)s->held, size, e);
}

static tare_status put_bytes(struct token_stream *s, tare_text bytes, struct str *out, struct err *e)
{
    const unsigned char *p = (const unsigned char *)bytes.data;
    for (int64_t i = 0, n = bytes.size; i < n;) {
        int64_t plain = i;
        while (!s->n_held && plain < n && p[plain] < 0x80) plain++;
        if (plain > i)
            TRY(str_add(out, bytes.data + i, plain - i, e));
        else
            TRY(push_byte(s, p[plain++], out, e));
        i = plain;
    }
    return TARE_OK;
}

/* ---------------------------------------------------------------- tokens that are characters, and
 * tokens that are bytes */

/* Appends text, without the characters to strip from the front. */
static tare_status put_text(struct token_stream *s, tare_text text, struct str *out, struct err *e)
{
    const struct decoding *d = &s->tokenizer->decoding;
    int64_t at = 0;
    while (s->stripped >= 0 && s->stripped < d->n_first && text.size - at >= d->first.size) {
        if (memcmp(text.data + at, d->first.data, (size_t)d->first.size) != 0) break;
        at += d->first.size;
        s->stripped++;
    }
    if (at < text.size) s->stripped = -1;
    return str_add(out, text.data + at, text.size - at, e);
}

static tare_status end_run(struct token_stream *s, struct str *out, struct err *e)
{
    const int64_t n = s->run.size;
    if (!n) return TARE_OK;
    s->run.size = 0;
    if (!str_utf8_error(s->run.data, n)) return put_text(s, (tare_text){s->run.data, n}, out, e);
    for (int64_t i = 0; i < n; i++) TRY(put_text(s, (tare_text){"\xEF\xBF\xBD", 3}, out, e));
    return TARE_OK;
}

/* Appends the text of the first token, for decoders that drop the space of its mark. */
static tare_status put_first(struct token_stream *s, tare_text content, struct str *out, struct err *e)
{
    struct spelling bare = s->tokenizer->model.vocab.spelling;
    OWNED(str_free) struct str text = {0};
    bare.in_place_size = 0;
    TRY(vocab_spell(&bare, content, &text, e));
    return put_text(s, (tare_text){text.data, text.size}, out, e);
}

static tare_status put_spelt(struct token_stream *s, const struct vocab_token *t, bool first, struct str *out, struct err *e)
{
    const char *texts = s->tokenizer->model.vocab.text.data;
    if (t->byte) return str_add(&s->run, texts + t->bytes, 1, e);
    TRY(end_run(s, out, e));
    if (first && s->tokenizer->decoding.drops_first_marks)
        return put_first(s, (tare_text){texts + t->content, t->content_size}, out, e);
    return put_text(s, (tare_text){texts + t->bytes, t->bytes_size}, out, e);
}

/* ---------------------------------------------------------------- the stream */

void token_stream_init(struct token_stream *s, const struct tokenizer *t, bool skip_special)
{
    *s = (struct token_stream){.tokenizer = t, .skip_special = skip_special};
}

void token_stream_free(struct token_stream *s)
{
    str_free(&s->run);
}

tare_status token_stream_push(struct token_stream *s, int32_t id, struct str *out, struct err *e)
{
    const struct vocab *v = &s->tokenizer->model.vocab;
    if (id < 0 || id >= v->size || !v->tokens[id].present || (s->skip_special && v->tokens[id].special)) return TARE_OK;
    const struct vocab_token *t = &v->tokens[id];
    const bool first = !s->begun;
    s->begun = true;
    if (!v->spelling.byte_level) return put_spelt(s, t, first, out, e);
    return put_bytes(s, (tare_text){v->text.data + t->bytes, t->bytes_size}, out, e);
}

tare_status token_stream_end(struct token_stream *s, struct str *out, struct err *e)
{
    TRY(end_run(s, out, e));
    return s->n_held ? give_up(s, out, e) : TARE_OK;
}

tare_status tokenizer_decode(const struct tokenizer *t, const int32_t *ids, int64_t n, bool skip_special, struct str *out,
                             struct err *e)
{
    OWNED(token_stream_free) struct token_stream s;
    token_stream_init(&s, t, skip_special);
    TRY(str_reserve(out, 0, e));
    for (int64_t i = 0; i < n; i++) TRY(token_stream_push(&s, ids[i], out, e));
    return token_stream_end(&s, out, e);
}
