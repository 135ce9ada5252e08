/* The initial tokens of a piece before merging: bytes or characters. Internal to core/data. */
#ifndef TARE_CORE_DATA_SYMBOLS_H
#define TARE_CORE_DATA_SYMBOLS_H

#include "data/vocab.h"

struct symbols {
    bool characters; /* false: bytes */
    /* token of this byte, or in character mode of this ASCII character; -1: none */
    int32_t byte_id[256];
    /* <0x0A> tokens, for the bytes of a character without a token; -1: none */
    int32_t fallback_id[256];
    /* token of a character without byte tokens; -1: the character vanishes */
    int32_t unknown;
    bool fuse_unknown; /* consecutive unknown characters become one token */
};

/* Uses the tokens that v has at this moment. */
void symbols_init(struct symbols *s, const struct vocab *v, bool characters, bool byte_fallback);

/* Returns the token of a character; -1: none. */
static inline int32_t symbols_char(const struct symbols *s, const struct vocab *v, const unsigned char *p, int64_t n)
{
    return *p < 0x80 ? s->byte_id[*p] : vocab_find_own(v, (const char *)p, n);
}

bool symbols_have_bytes(const struct symbols *s, const unsigned char *p, int64_t n);

#endif
