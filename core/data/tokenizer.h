/* Tokenizers from a Hugging Face folder's tokenizer.json: byte-level BPE as Qwen2.5/Qwen3, Llama 3 and SmolLM2 have it, and what is made
 * of SentencePiece models: BPE on characters with byte fallback (Gemma, Phi-3, Llama 2, Mistral) and Unigram. The ids are those of HF
 * `tokenizers`, special tokens inside the text recognised, none added. What tokenizer.json asks for and this does not do is refused at
 * load, with its place in the file.
 * Threads: encode and decode may run on one tokenizer from any number of threads. A struct token_ids or token_stream has one owner. */
#ifndef TARE_CORE_DATA_TOKENIZER_H
#define TARE_CORE_DATA_TOKENIZER_H

#include "base/str.h"

#include <stdbool.h>

struct tokenizer;

struct token_ids { /* growable; zero-initialise, token_ids_free when done */
    int32_t *data;
    int64_t n, capacity;
};
tare_status token_ids_add(struct token_ids *ids, int32_t id, struct err *e);
void token_ids_free(struct token_ids *ids);

/* folder: tokenizer.json, and tokenizer_config.json when it is there. */
tare_status tokenizer_load(const char *folder, struct tokenizer **out, struct err *e);
/* From text in memory (tests, fuzzing); config.data NULL: none. */
tare_status tokenizer_parse(tare_text json, tare_text config, const char *where, struct tokenizer **out, struct err *e);
void tokenizer_free(struct tokenizer *t);

/* Appends the ids of text (valid UTF-8, else TARE_E_INVALID with the offset). */
tare_status tokenizer_encode(const struct tokenizer *t, const char *text, int64_t n, struct token_ids *out, struct err *e);
/* Appends the text of ids. Bytes that are no UTF-8 become U+FFFD, as in HF: one for the beginning of a character that broke off; of
 * byte tokens (<0x0A>), one for each in a row that is no UTF-8 as a whole. So the result is always valid. Ids without a token (embedding
 * rows beyond the vocabulary) have no text. skip_special leaves out tokens marked special. */
tare_status tokenizer_decode(const struct tokenizer *t, const int32_t *ids, int64_t n, bool skip_special, struct str *out,
                             struct err *e);

/* Decoding id by id: pieces are whole UTF-8 sequences, and all pieces together are what tokenizer_decode gives. */
struct token_stream {
    const struct tokenizer *tokenizer;
    bool skip_special;
    bool begun;            /* a token came */
    int64_t stripped;      /* characters taken from the front of the text; -1: no more will be */
    unsigned char held[4]; /* the beginning of a sequence that is not complete yet */
    int n_held;
    struct str run; /* byte tokens in a row: whether they are a text is known when they end */
};
void token_stream_init(struct token_stream *s, const struct tokenizer *t, bool skip_special);
void token_stream_free(struct token_stream *s);
tare_status token_stream_push(struct token_stream *s, int32_t id, struct str *out, struct err *e);
tare_status token_stream_end(struct token_stream *s, struct str *out, struct err *e);

int64_t tokenizer_size(const struct tokenizer *t); /* largest id + 1 */
/* The bytes of a token, which may be no UTF-8; of an id without a token: none. */
tare_text tokenizer_bytes(const struct tokenizer *t, int32_t id);
bool tokenizer_is_special(const struct tokenizer *t, int32_t id);

/* From tokenizer_config.json; -1 where it names none. */
enum token_role { TOKEN_BOS, TOKEN_EOS, TOKEN_PAD, TOKEN_UNK, TOKEN_ROLES };
int32_t tokenizer_role_id(const struct tokenizer *t, enum token_role role);
/* True when plain text is to start with BOS: add_bos_token, or a post-processor of tokenizer.json that puts the BOS in front. */
bool tokenizer_add_bos(const struct tokenizer *t);
/* Of tokenizer.json's content. */
uint64_t tokenizer_hash(const struct tokenizer *t);

/* Writes tokenizer.json, tokenizer_config.json for a new byte-level model: ids 0-255 are the bytes, then <|endoftext|> (256),
 * <|im_start|> (257), <|im_end|> (258); no merges; chat template in ChatML form. EOS is <|im_end|>. The folder is made if absent. */
tare_status tokenizer_write_bytes(const char *folder, struct err *e);

#endif
