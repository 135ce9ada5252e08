/* libFuzzer target: an untrusted tokenizer.json is parsed. If it loads, it encodes a text and
 * decodes it again, as a whole and token by token. The part after a NUL is the text, the part
 * after a second NUL tokenizer_config.json. */
#include "data/tokenizer.h"
#include "mutate.h"

/* The known steps and models, with the fields that each may have. */
static const char *const STEPS[] = {
    "{\"type\":\"ByteLevel\",\"add_prefix_space\":true,\"trim_offsets\":true,\"use_regex\":true}",
    "{\"type\":\"ByteLevel\",\"add_prefix_space\":false,\"use_regex\":false}",
    "{\"type\":\"Metaspace\",\"replacement\":\"\\u2581\",\"prepend_scheme\":\"first\",\"split\":false}",
    "{\"type\":\"Metaspace\",\"replacement\":\"\\u2581\",\"prepend_scheme\":\"never\"}",
    "{\"type\":\"Metaspace\",\"replacement\":\"_\",\"add_prefix_space\":true,\"str_rep\":\"_\"}",
    "{\"type\":\"Digits\",\"individual_digits\":false}",
    "{\"type\":\"WhitespaceSplit\"}",
    "{\"type\":\"Split\",\"pattern\":{\"String\":\" \"},\"behavior\":\"MergedWithPrevious\",\"invert\":false}",
    "{\"type\":\"Split\",\"pattern\":{\"Regex\":\"[aeiou]+|\\\\s+(?!\\\\S)\"},\"behavior\":\"Removed\"}",
    "{\"type\":\"Split\",\"pattern\":{\"Regex\":\"\\\\p{N}{1,3}\"},\"behavior\":\"MergedWithNext\"}",
    "{\"type\":\"Split\",\"pattern\":{\"Regex\":\"(?=a)|(b*)*\"},\"behavior\":\"Isolated\",\"invert\":true}",
    "{\"type\":\"Sequence\",\"pretokenizers\":[{\"type\":\"WhitespaceSplit\"},{\"type\":\"ByteLevel\"}]}",
    "{\"type\":\"Sequence\",\"normalizers\":[{\"type\":\"NFKC\"},{\"type\":\"Strip\",\"strip_left\":true,\"strip_right\":true}]}",
    "{\"type\":\"Sequence\",\"decoders\":[{\"type\":\"ByteFallback\"},{\"type\":\"Fuse\"},{\"type\":\"Strip\",\"content\":\" "
    "\",\"start\":1,\"stop\":0}]}",
    "{\"type\":\"Prepend\",\"prepend\":\"\\u2581\"}",
    "{\"type\":\"Replace\",\"pattern\":{\"String\":\" \"},\"content\":\"\\u2581\"}",
    "{\"type\":\"Replace\",\"pattern\":{\"Regex\":\" {2,}\"},\"content\":\"\"}",
    "{\"type\":\"NFC\"}",
    "{\"type\":\"NFD\"}",
    "{\"type\":\"NFKC\"}",
    "{\"type\":\"NFKD\"}",
    "{\"type\":\"Strip\",\"strip_left\":false,\"strip_right\":true}",
    "{\"type\":\"Strip\",\"content\":\"x\",\"start\":2,\"stop\":3}",
    "{\"type\":\"ByteFallback\"}",
    "{\"type\":\"Fuse\"}",
    "{\"type\":\"TemplateProcessing\",\"single\":[{\"SpecialToken\":{\"id\":\"<s>\",\"type_id\":0}},{\"Sequence\":{\"id\":\"A\","
    "\"type_id\":0}}]}",
    "{\"type\":\"Sequence\",\"processors\":[{\"type\":\"ByteLevel\"},{\"type\":\"TemplateProcessing\",\"single\":[]}]}",
    "{\"post_processor\":{\"type\":\"ByteLevel\"},\"normalizer\":{\"type\":\"NFC\"},\"pre_tokenizer\":null,\"decoder\":null}",
    "{\"type\":\"BPE\",\"unk_token\":\"<unk>\",\"fuse_unk\":true,\"byte_fallback\":true,\"ignore_merges\":true,\"dropout\":null}",
    "{\"type\":\"BPE\",\"vocab\":{\"<unk>\":0,\"<s>\":1,\"\\u2581\":2,\"a\":3,\"b\":4,\"ab\":5,\"<0x41>\":6},\"merges\":[\"a b\"]}",
    "{\"type\":\"Unigram\",\"unk_id\":0,\"byte_fallback\":true,\"vocab\":[[\"<unk>\",0],[\"\\u2581\",-2],[\"a\",-3],[\"<0x0A>\",-1]"
    "]}",
    "{\"id\":300,\"content\":\"<t>\",\"single_word\":false,\"lstrip\":true,\"rstrip\":true,\"normalized\":true,\"special\":false}",
    "{\"id\":1,\"content\":\"<s>\",\"normalized\":false,\"special\":true}",
    "{\"bos_token\":\"<s>\",\"eos_token\":{\"content\":\"<x>\"},\"pad_token\":null,\"unk_token\":\"<unk>\",\"add_bos_token\":true}",
    "\"always\"",
    "\"first\"",
    "\"never\"",
    "\"\\u2581\"",
    "\"\\u0120\"",
    "\" \"",
    "\"<s>\"",
    "\"a b\"",
    "\"\"",
    "[\"a\",\"b\"]",
    "[\"ab\",-1.5]",
    "true",
    "false",
    "null",
    "0",
    "1",
    "255",
    "2147483647",
    "-1",
};

/* Checks that decoding token by token gives the same text. */
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
    const char *text = nul ? nul + 1 : usual, *end = json + size;
    const char *second = nul && text < end ? memchr(text, 0, (size_t)(end - text)) : NULL;
    const int64_t text_size = !nul ? (int64_t)sizeof usual - 1 : (second ? second : end) - text;
    const tare_text config = second ? (tare_text){second + 1, end - second - 1} : (tare_text){0};
    struct tokenizer *t = NULL;
    struct err e = {0};
    if (tokenizer_parse((tare_text){json, json_size}, config, "fuzz", &t, &e)) return 0;
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

static size_t change_json(uint8_t *part, size_t n, size_t room, struct chance *c)
{
    const struct parts parts = PARTS(STEPS);
    return mutate_json(part, n, room, &parts, c);
}

static size_t change_text(uint8_t *part, size_t n, size_t room, struct chance *c)
{
    (void)c;
    return LLVMFuzzerMutate(part, n, room);
}

size_t LLVMFuzzerCustomMutator(uint8_t *data, size_t size, size_t max_size, unsigned seed)
{
    /* Text and configuration for an input without them. */
    static const char more[] = "\0a <s>b\0{\"bos_token\":\"<s>\"}";
    struct chance c;
    chance_begin(&c, seed);
    uint8_t *nul = size ? memchr(data, 0, size) : NULL;
    if (!nul && size + sizeof more <= max_size && chance_below(&c, 8) == 0) {
        memcpy(data + size, more, sizeof more - 1);
        nul = data + size;
        size += sizeof more - 1;
    }
    const size_t json = nul ? (size_t)(nul - data) : size;
    struct span part = {data, size, max_size, 0, json};
    if (!nul || chance_below(&c, 3)) return mutate_span(&part, change_json, &c);
    part.begin = json + 1;
    for (part.n = 0; part.begin + part.n < size && data[part.begin + part.n];) part.n++;
    if (part.begin + part.n == size || chance_below(&c, 2)) return mutate_span(&part, change_text, &c);
    part.begin += part.n + 1;
    part.n = size - part.begin;
    return mutate_span(&part, change_json, &c);
}
