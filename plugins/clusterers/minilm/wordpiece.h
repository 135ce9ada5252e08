/* WordPiece with BERT's normalisation, from a Hugging Face folder: tokenizer.json, or vocab.txt with tokenizer_config.json.
 *
 *   text -> added tokens ("[MASK]") cut out -> normaliser: control characters out, white space to blanks, CJK characters apart, accents
 *   stripped (NFD without Mn), lower case -> split at blanks, punctuation apart -> each word by longest match from the left, further pieces
 *   with the prefix "##"; a word that cannot be cut is [UNK] -> [CLS] pieces [SEP], cut to max_length
 *
 * Source: Devlin et al. 2019 and the tokenizers library (BertNormalizer, BertPreTokenizer, WordPiece). Read only after wordpiece_open. */
#ifndef TARE_CLUSTERERS_WORDPIECE_H
#define TARE_CLUSTERERS_WORDPIECE_H

#include <tare/plugin.h>

struct piece {
    const char *text; /* in the arena; NULL: an empty slot */
    int32_t size, id;
    uint64_t hash;
};

struct added_token {
    char *text;
    int64_t size;
    int32_t id;
};

struct wordpiece {
    struct piece *table; /* [slots] open addressing */
    int64_t slots, n;    /* slots: a power of two */
    struct added_token *added;
    int64_t n_added;
    int32_t cls, sep, unk;
    int64_t max_word; /* characters; longer words are [UNK] */
    char prefix[16];
    int clean, chinese, lowercase, strip_accents;
    uint64_t hash; /* of everything above */
    char **owned;  /* texts of the pieces */
};

tare_status wordpiece_open(struct wordpiece *w, const char *folder, tare_error *error);
void wordpiece_close(struct wordpiece *w);
/* ids: room for max_length; at most that many are written, [CLS] and [SEP] included (max_length >= 2). */
tare_status wordpiece_encode(const struct wordpiece *w, tare_text text, int64_t max_length, int32_t *ids, int64_t *n,
                             tare_error *error);

/* 64 bits over bytes, eight at a time; for identities. */
uint64_t bytes_hash(const void *data, int64_t n, uint64_t seed);

#endif
