/* The tokens that a piece is made of before anything is merged: bytes, or characters. Internal to the data folder. */
#ifndef TARE_CORE_DATA_SYMBOLS_H
#define TARE_CORE_DATA_SYMBOLS_H

#include "data/vocab.h"

struct symbols {
    bool characters;          /* else bytes */
    int32_t byte_id[256];     /* the token that is this byte, in characters this ASCII character; -1: none */
    int32_t fallback_id[256]; /* <0x0A>, for the bytes of a character that is no token; -1: none */
    int32_t unknown;          /* for a character without bytes either; -1: it vanishes */
    bool fuse_unknown;        /* one for unknown characters in a row */
};

/* Of the tokens that v has now. */
void symbols_init(struct symbols *s, const struct vocab *v, bool characters, bool byte_fallback);

/* The token that is this character; -1: none. */
static inline int32_t symbols_char(const struct symbols *s, const struct vocab *v, const unsigned char *p, int64_t n)
{
    return *p < 0x80 ? s->byte_id[*p] : vocab_find_own(v, (const char *)p, n);
}

bool symbols_have_bytes(const struct symbols *s, const unsigned char *p, int64_t n);

#endif
