/* Writes the tokenizer files of a new byte-level model. */
#include "data/tokenizer.h"

#include "base/fs.h"
#include "base/json.h"
#include "base/utf8.h"
#include "data/pretokenize.h"
#include "data/vocab.h"

#include <string.h>

static const char *const specials[] = {"<|endoftext|>", "<|im_start|>", "<|im_end|>"};

static const char chatml[] = "{%- for message in messages %}\n"
                             "    {{- '<|im_start|>' + message.role + '\\n' + message.content + '<|im_end|>' + '\\n' }}\n"
                             "{%- endfor %}\n"
                             "{%- if add_generation_prompt %}\n"
                             "    {{- '<|im_start|>assistant\\n' }}\n"
                             "{%- endif %}\n";

/* A NULL anywhere makes json_pack fail as a whole, so out of memory is detected once, at the
 * end. */
static json_t *added_token(int id, bool with_id)
{
    json_t *t = json_pack("{s:s, s:b, s:b, s:b, s:b, s:b}", "content", specials[id - 256], "single_word", 0, "lstrip", 0, "rstrip",
                          0, "normalized", 0, "special", 1);
    bool bad = !t;
    if (with_id) json_put(t, &bad, "id", json_integer(id));
    return json_unless(bad, t);
}

static json_t *byte_vocab(void)
{
    json_t *vocab = json_object();
    bool bad = !vocab;
    for (int b = 0; b < 256; b++) {
        char key[5] = {0};
        utf8_put(key, vocab_byte_to_char((unsigned char)b));
        json_put(vocab, &bad, key, json_integer(b));
    }
    return json_unless(bad, vocab);
}

static json_t *byte_level(void)
{
    return json_pack("{s:s, s:b, s:b, s:b}", "type", "ByteLevel", "add_prefix_space", 0, "trim_offsets", 0, "use_regex", 0);
}

static json_t *tokenizer_json(void)
{
    json_t *added = json_array();
    bool bad = !added;
    for (int id = 256; id < 259; id++) json_add(added, &bad, added_token(id, true));
    json_t *split = json_pack("{s:s, s:{s:s}, s:s, s:b}", "type", "Split", "pattern", "Regex", PATTERN_QWEN2, "behavior",
                              "Isolated", "invert", 0);
    json_t *model = json_pack("{s:s, s:n, s:n, s:n, s:n, s:b, s:b, s:b, s:o, s:[]}", "type", "BPE", "dropout", "unk_token",
                              "continuing_subword_prefix", "end_of_word_suffix", "fuse_unk", 0, "byte_fallback", 0, "ignore_merges",
                              0, "vocab", byte_vocab(), "merges");
    return json_pack("{s:s, s:n, s:n, s:o, s:n, s:{s:s, s:[o,o]}, s:n, s:o, s:o}", "version", "1.0", "truncation", "padding",
                     "added_tokens", json_unless(bad, added), "normalizer", "pre_tokenizer", "type", "Sequence", "pretokenizers",
                     split, byte_level(), "post_processor", "decoder", byte_level(), "model", model);
}

static json_t *config_json(void)
{
    json_t *decoder = json_object();
    bool bad = !decoder;
    for (int id = 256; id < 259; id++) {
        char key[8];
        snprintf(key, sizeof key, "%d", id);
        json_put(decoder, &bad, key, added_token(id, false));
    }
    return json_pack("{s:b, s:o, s:n, s:s, s:s, s:s, s:b, s:i, s:s}", "add_prefix_space", 0, "added_tokens_decoder",
                     json_unless(bad, decoder), "bos_token", "eos_token", specials[2], "pad_token", specials[0], "chat_template",
                     chatml, "clean_up_tokenization_spaces", 0, "model_max_length", 1 << 20, "tokenizer_class",
                     "PreTrainedTokenizerFast");
}

static tare_status write_json(const char *folder, const char *name, json_t *made, struct err *e)
{
    char path[FS_PATH];
    OWNED(str_free) struct str text = {0};
    OWNED(json_decrefp) json_t *j = made;
    if (!j) FAIL(e, TARE_E_NOMEM, "no memory to write %s", name);
    TRY(fs_join(path, folder, name, e));
    TRY(json_print(j, &text, e));
    TRY(str_add(&text, "\n", 1, e));
    return fs_write_atomic(path, text.data, text.size, e);
}

tare_status tokenizer_write_bytes(const char *folder, struct err *e)
{
    TRY(fs_mkdirs(folder, e));
    TRY(write_json(folder, "tokenizer.json", tokenizer_json(), e));
    return write_json(folder, "tokenizer_config.json", config_json(), e);
}
