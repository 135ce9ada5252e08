/* WordPiece with BERT's normalisation, from a Hugging Face folder: tokenizer.json, or vocab.txt
 * with tokenizer_config.json.
 *
 *   text -> added tokens ("[MASK]") are split off
 *        -> normaliser: removes control characters, turns white space into blanks, separates CJK
 *           characters, strips accents (NFD without Mn), lower case
 *        -> split at blanks, with punctuation separate
 *        -> each word by longest match from the left, later pieces with the prefix "##"; a word
 *           without a match is [UNK]
 *        -> [CLS] pieces [SEP], truncated to max_length
 *
 * Source: Devlin et al. 2019 and the tokenizers library (BertNormalizer, BertPreTokenizer,
 * WordPiece). Read only after wordpiece_open. */
#ifndef TARE_CLUSTERERS_WORDPIECE_H
#define TARE_CLUSTERERS_WORDPIECE_H

#include <tare/sdk.h>

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
/* Writes at most max_length ids, [CLS] and [SEP] included (max_length >= 2), to ids [max_length].
 */
tare_status wordpiece_encode(const struct wordpiece *w, tare_text text, int64_t max_length, int32_t *ids, int64_t *n,
                             tare_error *error);

/* Hashes bytes to 64 bits, eight bytes at a time; for identities. */
uint64_t bytes_hash(const void *data, int64_t n, uint64_t seed);

#endif
