/* Tokenizers from tokenizer.json of a Hugging Face folder: byte-level BPE as in Qwen2.5/Qwen3,
 * Llama 3 and SmolLM2, and conversions of SentencePiece models: BPE on characters with byte
 * fallback (Gemma, Phi-3, Llama 2, Mistral) and Unigram. The ids equal those of HF `tokenizers`:
 * special tokens in the text are recognised, none are added. Unsupported features of tokenizer.json
 * are refused at load, with their place in the file. Threads: any number of threads may encode and
 * decode with one tokenizer. A struct token_ids or token_stream has one owner. */
#ifndef TARE_CORE_DATA_TOKENIZER_H
#define TARE_CORE_DATA_TOKENIZER_H

#include "base/str.h"

#include <stdbool.h>

struct tokenizer;

struct token_ids { /* growable; zero-initialise, free with token_ids_free */
    int32_t *data;
    int64_t n, capacity;
};
tare_status token_ids_add(struct token_ids *ids, int32_t id, struct err *e);
void token_ids_free(struct token_ids *ids);

/* folder: has tokenizer.json, optionally tokenizer_config.json. */
tare_status tokenizer_load(const char *folder, struct tokenizer **out, struct err *e);
/* Parses a tokenizer from memory (tests, fuzzing). config.data NULL: none. */
tare_status tokenizer_parse(tare_text json, tare_text config, const char *where, struct tokenizer **out, struct err *e);
void tokenizer_free(struct tokenizer *t);

/* Appends the ids of text (valid UTF-8, else TARE_E_INVALID with the offset). */
tare_status tokenizer_encode(const struct tokenizer *t, const char *text, int64_t n, struct token_ids *out, struct err *e);
/* Appends the text of ids; the result is always valid UTF-8. Invalid bytes become U+FFFD, as in HF:
 * one for a truncated character; for byte tokens (<0x0A>), one for each token of a run that is not
 * valid UTF-8 as a whole. Ids without a token (embedding rows beyond the vocabulary) have no text.
 * skip_special omits tokens marked special. */
tare_status tokenizer_decode(const struct tokenizer *t, const int32_t *ids, int64_t n, bool skip_special, struct str *out,
                             struct err *e);

/* Decodes id by id: each output is a whole number of UTF-8 sequences, and all outputs together
 * equal tokenizer_decode. */
struct token_stream {
    const struct tokenizer *tokenizer;
    bool skip_special;
    bool begun; /* a token was decoded */
    /* characters stripped from the front of the text; -1: stripping is done */
    int64_t stripped;
    unsigned char held[4]; /* start of an incomplete sequence */
    int n_held;
    struct str run; /* consecutive byte tokens: valid text or not is known at their end */
};
void token_stream_init(struct token_stream *s, const struct tokenizer *t, bool skip_special);
void token_stream_free(struct token_stream *s);
tare_status token_stream_push(struct token_stream *s, int32_t id, struct str *out, struct err *e);
tare_status token_stream_end(struct token_stream *s, struct str *out, struct err *e);

int64_t tokenizer_size(const struct tokenizer *t); /* largest id + 1 */
/* Returns the bytes of a token, which may not be valid UTF-8; empty for an id without a token. */
tare_text tokenizer_bytes(const struct tokenizer *t, int32_t id);
bool tokenizer_is_special(const struct tokenizer *t, int32_t id);

/* From tokenizer_config.json; -1 if it does not name one. */
enum token_role { TOKEN_BOS, TOKEN_EOS, TOKEN_PAD, TOKEN_UNK, TOKEN_ROLES };
int32_t tokenizer_role_id(const struct tokenizer *t, enum token_role role);
/* Returns true if plain text should start with BOS: add_bos_token, or a post-processor of
 * tokenizer.json that prepends BOS. */
bool tokenizer_add_bos(const struct tokenizer *t);
/* Hash of the content of tokenizer.json. */
uint64_t tokenizer_hash(const struct tokenizer *t);

/* Writes tokenizer.json and tokenizer_config.json of a new byte-level model: ids 0-255 are the
 * bytes, then <|endoftext|> (256), <|im_start|> (257), <|im_end|> (258); no merges; chat template
 * in ChatML form. EOS is <|im_end|>. Creates the folder if necessary. */
tare_status tokenizer_write_bytes(const char *folder, struct err *e);

#endif
