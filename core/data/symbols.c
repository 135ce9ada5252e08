#include "data/symbols.h"

#include <stdio.h>

void symbols_init(struct symbols *s, const struct vocab *v, bool characters, bool byte_fallback)
{
    *s = (struct symbols){.characters = characters, .unknown = -1};
    for (int b = 0; b < 256; b++) {
        const unsigned char byte = (unsigned char)b;
        char name[8];
        snprintf(name, sizeof name, "<0x%02X>", (unsigned)b);
        s->fallback_id[b] = byte_fallback ? vocab_find_own(v, name, 6) : -1;
        s->byte_id[b] = characters ? vocab_find_own(v, (const char *)&byte, 1) : vocab_find_bytes(v, &byte, 1);
    }
}

bool symbols_have_bytes(const struct symbols *s, const unsigned char *p, int64_t n)
{
    for (int64_t i = 0; i < n; i++)
        if (s->fallback_id[p[i]] < 0) return false;
    return true;
}
