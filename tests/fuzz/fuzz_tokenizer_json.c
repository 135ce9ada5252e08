/* tokenizer.json from anybody: parse; if it loads, encode a text with it and decode that again, as a whole and token by token. The part after a NUL is the text. */
#include "data/tokenizer.h"

#include <stdlib.h>
#include <string.h>

/* Token by token it is the same text. */
static void stream(const struct tokenizer *t, const struct token_ids *ids, const struct str *whole)
{
    struct token_stream s;
    struct err e = {0};
    struct str text = {0};
    token_stream_init(&s, t, false);
    tare_status status = TARE_OK;
    for (int64_t i = 0; !status && i < ids->n; i++) {
        const int64_t before = text.size;
        status = token_stream_push(&s, ids->data[i], &text, &e);
        if (text.size > before && str_utf8_error(text.data + before, text.size - before)) abort();
    }
    if (!status) status = token_stream_end(&s, &text, &e);
    if (status || text.size != whole->size || (text.size && memcmp(text.data, whole->data, (size_t)text.size) != 0)) abort();
    token_stream_free(&s);
    str_free(&text);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    static const char usual[] = "Hello  w\xC3\xB6rld's 12345 <|im_end|> e\xCC\x81 \xE6\x97\xA5\n\n x";
    const char *json = (const char *)data;
    const char *nul = size ? memchr(json, 0, size) : NULL;
    const int64_t json_size = nul ? nul - json : (int64_t)size;
    const char *text = nul ? nul + 1 : usual;
    const int64_t text_size = nul ? (int64_t)size - json_size - 1 : (int64_t)sizeof usual - 1;
    struct tokenizer *t = NULL;
    struct err e = {0};
    if (tokenizer_parse((tare_text){json, json_size}, (tare_text){0}, "fuzz", &t, &e)) return 0;
    struct token_ids ids = {0};
    struct str back = {0};
    if (!tokenizer_encode(t, text, text_size, &ids, &e)) {
        if (tokenizer_decode(t, ids.data, ids.n, false, &back, &e) || str_utf8_error(back.data, back.size)) abort();
        stream(t, &ids, &back);
    }
    token_ids_free(&ids);
    str_free(&back);
    tokenizer_free(t);
    return 0;
}
