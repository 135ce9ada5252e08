/* The tokens of a tokenizer: id -> bytes and content, content -> id. Internal to core/data. */
#ifndef TARE_CORE_DATA_VOCAB_H
#define TARE_CORE_DATA_VOCAB_H

#include "base/str.h"

#include <stdbool.h>

struct vocab_token {
    int64_t content, bytes;           /* offsets into text */
    int32_t content_size, bytes_size; /* bytes as in the file; bytes after decoding */
    bool present, special;
    bool added; /* only in added_tokens: the model does not know the token */
    bool byte;  /* written as <0x0A>, decodes to that byte */
};

/* How the content of a token becomes text. */
struct spelling {
    bool byte_level;  /* in GPT-2's alphabet */
    bool byte_tokens; /* <0x0A> decodes to a byte */
    char mark[8];     /* every mark decodes to in_place */
    char in_place[8];
    int mark_size, in_place_size; /* mark_size 0: no marks */
};

struct vocab {
    struct spelling spelling;
    struct str text;
    struct vocab_token *tokens; /* [size] by id */
    int64_t size, capacity;     /* size: largest id + 1 */
    int32_t *slots;             /* hash table of contents: id + 1; 0: empty slot */
    int64_t n_slots, n_used;
};

/* VOCAB_MAX_BYTES: of a token that BPE produces */
enum { VOCAB_MAX_ID = 1 << 24, VOCAB_MAX_BYTES = 512 };

/* GPT-2's alphabet maps every byte to a printable character. */
int32_t vocab_byte_to_char(unsigned char b);
int vocab_char_to_byte(int32_t c); /* -1: not in the alphabet */

void vocab_init(struct vocab *v);
void vocab_free(struct vocab *v);
tare_status vocab_reserve(struct vocab *v, int64_t tokens, struct err *e);
/* Fails if the id or the content is in use. */
tare_status vocab_add(struct vocab *v, int64_t id, const char *content, int64_t n, const char *where, struct err *e);
int32_t vocab_find(const struct vocab *v, const char *content, int64_t n);
/* Searches the model's own tokens only. */
int32_t vocab_find_own(const struct vocab *v, const char *content, int64_t n);
/* Makes the token decode as if this were its content. */
tare_status vocab_set_text(struct vocab *v, int32_t id, tare_text content, struct err *e);
/* Writes the text of a content in v's spelling, if it is not a byte token. */
tare_status vocab_spell(const struct spelling *s, tare_text content, struct str *out, struct err *e);
/* Returns the token whose content is the concatenation of the two. */
int32_t vocab_find_pair(const struct vocab *v, int32_t left, int32_t right);
/* Returns the model's own token whose bytes, in the alphabet, are these. */
int32_t vocab_find_bytes(const struct vocab *v, const unsigned char *bytes, int64_t n);

#endif
