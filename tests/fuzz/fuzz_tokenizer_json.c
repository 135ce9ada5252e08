/* tokenizer.json from anybody: parse; if it loads, encode a text with it and decode that again. The part after a NUL is the text. */
#include "data/tokenizer.h"

#include <stdlib.h>
#include <string.h>

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
    }
    token_ids_free(&ids);
    str_free(&back);
    tokenizer_free(t);
    return 0;
}
