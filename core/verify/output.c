/* The host's side of a verdict: the texts that a plugin writes are copied at once, so that a note may
 * be composed for one completion. */
#include "verify/internal.h"

#include <string.h>

static bool continues_character(char c)
{
    return ((unsigned char)c & 0xC0) == 0x80;
}

/* Appends what fits. A text that is too long ends before the character that is cut. */
static tare_status write_text(void *ctx, const void *data, int64_t size)
{
    struct verify_text *t = ctx;
    const char *bytes = data;
    if (size < 0 || (size && !data)) return TARE_E_INVALID;
    if (t->cut || !size) return TARE_OK;
    const int64_t left = t->limit - t->size, n = size < left ? size : left;
    memcpy(t->data + t->size, bytes, (size_t)n);
    t->size += n;
    t->cut = n < size;
    for (char next = t->cut ? bytes[n] : 0; t->size && continues_character(next);) next = t->data[--t->size];
    t->data[t->size] = 0;
    return TARE_OK;
}

static const tare_stream *open_text(tare_stream *stream, struct verify_text *t, int64_t limit)
{
    if (!t) return NULL;
    t->size = 0;
    t->limit = limit;
    t->cut = false;
    t->data[0] = 0;
    *stream = (tare_stream){.struct_size = sizeof *stream, .ctx = t, .write = write_text};
    return stream;
}

void verify_output_open(struct verify_output *o, struct verify_text *extracted, struct verify_text *note)
{
    o->verdict = (tare_verdict){.struct_size = sizeof o->verdict,
                                .extracted = open_text(&o->extracted, extracted, TARE_LIMIT_EXTRACTED),
                                .note = open_text(&o->note, note, TARE_LIMIT_NOTE)};
}

void verify_put(const tare_stream *out, tare_text text)
{
    if (out) write_text(out->ctx, text.data, text.size);
}

static void hide_in(const tare_stream *stream, const struct plugin_instance *i)
{
    struct verify_text *t = stream ? stream->ctx : NULL;
    if (t) plugin_hide_secrets(i, t->data, t->size);
}

void verify_output_hide(const tare_verdict *v, const struct plugin_instance *i)
{
    hide_in(v->extracted, i);
    hide_in(v->note, i);
}

void verify_output_lose(struct verify_output *o, int32_t code, const char *note)
{
    o->verdict.code = code;
    o->verdict.reward = 0;
    o->verdict.n_segments = 0;
    if (o->verdict.extracted) open_text(&o->extracted, o->extracted.ctx, TARE_LIMIT_EXTRACTED);
    if (o->verdict.note) open_text(&o->note, o->note.ctx, TARE_LIMIT_NOTE);
    verify_put(o->verdict.note, (tare_text){note, (int64_t)strlen(note)});
}
