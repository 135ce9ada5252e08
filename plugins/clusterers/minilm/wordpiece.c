#include "wordpiece.h"

#include <stdlib.h>
#include <string.h>
#include <utf8proc.h>

/* The word that is being collected, and the output of its pieces. */
struct gather {
    const struct wordpiece *w;
    char *word; /* UTF-8 */
    int64_t size, capacity;
    int64_t chars;
    int32_t *ids;
    int64_t n, limit;
    int out_of_memory;
};

static int is_white(int32_t c)
{
    return (c >= 9 && c <= 13) || c == ' ' || c == 0x85 || c == 0xA0 || c == 0x1680 || (c >= 0x2000 && c <= 0x200A) ||
           c == 0x2028 || c == 0x2029 || c == 0x202F || c == 0x205F || c == 0x3000;
}

static int is_control(int32_t c)
{
    if (c == '\t' || c == '\n' || c == '\r') return 0;
    const utf8proc_category_t k = utf8proc_category(c);
    return k == UTF8PROC_CATEGORY_CC || k == UTF8PROC_CATEGORY_CF || k == UTF8PROC_CATEGORY_CS || k == UTF8PROC_CATEGORY_CO;
}

static int is_chinese(int32_t c)
{
    return (c >= 0x4E00 && c <= 0x9FFF) || (c >= 0x3400 && c <= 0x4DBF) || (c >= 0x20000 && c <= 0x2A6DF) ||
           (c >= 0x2A700 && c <= 0x2B73F) || (c >= 0x2B740 && c <= 0x2B81F) || (c >= 0x2B920 && c <= 0x2CEAF) ||
           (c >= 0xF900 && c <= 0xFAFF) || (c >= 0x2F800 && c <= 0x2FA1F);
}

static int is_punctuation(int32_t c)
{
    if (c < 128) return (c >= 33 && c <= 47) || (c >= 58 && c <= 64) || (c >= 91 && c <= 96) || (c >= 123 && c <= 126);
    const utf8proc_category_t k = utf8proc_category(c);
    return k >= UTF8PROC_CATEGORY_PC && k <= UTF8PROC_CATEGORY_PO;
}

static void emit_token(struct gather *g, int32_t id)
{
    if (g->n < g->limit) g->ids[g->n] = id;
    g->n++;
}

/* Returns the length in bytes of the longest piece at the start of text[0..size), 0 for none.
 * inside: with the prefix. */
static int64_t longest_piece(const struct wordpiece *w, const char *text, int64_t size, int inside, int32_t *id)
{
    uint64_t hash = 0xCBF29CE484222325u;
    const int64_t lead = inside ? (int64_t)strlen(w->prefix) : 0;
    for (int64_t i = 0; i < lead; i++) hash = (hash ^ (unsigned char)w->prefix[i]) * 0x100000001B3u;
    int64_t found = 0;
    for (int64_t i = 0; i < size; i++) {
        hash = (hash ^ (unsigned char)text[i]) * 0x100000001B3u;
        /* inside a character */
        if (i + 1 < size && ((unsigned char)text[i + 1] & 0xC0) == 0x80) continue;
        for (uint64_t at = hash;; at++) {
            const struct piece *p = &w->table[at & (uint64_t)(w->slots - 1)];
            if (!p->text) break;
            if (p->hash != hash || p->size != lead + i + 1 || memcmp(p->text, w->prefix, (size_t)lead) ||
                memcmp(p->text + lead, text, (size_t)(i + 1)))
                continue;
            found = i + 1;
            *id = p->id;
            break;
        }
    }
    return found;
}

static void end_word(struct gather *g)
{
    const int64_t before = g->n;
    int64_t at = 0;
    if (g->chars > g->w->max_word) {
        emit_token(g, g->w->unk);
    } else {
        while (at < g->size) {
            int32_t id = 0;
            const int64_t n = longest_piece(g->w, g->word + at, g->size - at, at > 0, &id);
            if (!n) { /* one unknown part makes the whole word unknown */
                g->n = before;
                emit_token(g, g->w->unk);
                break;
            }
            emit_token(g, id);
            at += n;
        }
    }
    g->size = g->chars = 0;
}

static void add_char(struct gather *g, int32_t c)
{
    if (g->size + 4 > g->capacity) {
        const int64_t capacity = g->capacity ? 2 * g->capacity : 256;
        char *word = realloc(g->word, (size_t)capacity);
        if (!word) {
            g->out_of_memory = 1;
            return;
        }
        g->word = word;
        g->capacity = capacity;
    }
    g->size += utf8proc_encode_char(c, (utf8proc_uint8_t *)g->word + g->size);
    g->chars++;
}

/* Adds a normalised character: a blank ends a word, punctuation is a word. */
static void take_normal(struct gather *g, int32_t c)
{
    if (is_white(c)) {
        if (g->size) end_word(g);
        return;
    }
    const int alone = is_punctuation(c);
    if (alone && g->size) end_word(g);
    add_char(g, c);
    if (alone) end_word(g);
}

static void take_lower(struct gather *g, int32_t c)
{
    /* the only character whose lower case has two characters */
    if (g->w->lowercase && c == 0x130) {
        take_normal(g, 'i');
        take_normal(g, 0x307);
        return;
    }
    take_normal(g, g->w->lowercase ? utf8proc_tolower(c) : c);
}

static void take_char(struct gather *g, int32_t c)
{
    if (g->w->clean) {
        if (c == 0 || c == 0xFFFD || is_control(c)) return;
        if (is_white(c)) c = ' ';
    }
    const int apart = g->w->chinese && is_chinese(c);
    if (apart && g->size) end_word(g);
    if (c < 128 || !g->w->strip_accents) {
        take_lower(g, c);
    } else {
        utf8proc_int32_t parts[32];
        int boundary = 0;
        const utf8proc_ssize_t n = utf8proc_decompose_char(c, parts, 32, UTF8PROC_DECOMPOSE, &boundary);
        for (utf8proc_ssize_t i = 0; i < n && i < 32; i++)
            if (utf8proc_category(parts[i]) != UTF8PROC_CATEGORY_MN) take_lower(g, parts[i]);
    }
    if (apart && g->size) end_word(g);
}

/* Returns the longest added token at the start of text, or NULL. */
static const struct added_token *added_at(const struct wordpiece *w, const char *text, int64_t size)
{
    const struct added_token *best = NULL;
    for (int64_t i = 0; i < w->n_added; i++) {
        const struct added_token *a = &w->added[i];
        if (a->text[0] == text[0] && a->size <= size && !memcmp(a->text, text, (size_t)a->size) && (!best || a->size > best->size))
            best = a;
    }
    return best;
}

tare_status wordpiece_encode(const struct wordpiece *w, tare_text text, int64_t max_length, int32_t *ids, int64_t *n,
                             tare_error *error)
{
    struct gather g = {.w = w, .ids = ids + 1, .limit = max_length - 2};
    for (int64_t i = 0; i < text.size && g.n <= g.limit && !g.out_of_memory;) {
        const struct added_token *added = added_at(w, text.data + i, text.size - i);
        if (added) {
            if (g.size) end_word(&g);
            emit_token(&g, added->id);
            i += added->size;
            continue;
        }
        utf8proc_int32_t c;
        const utf8proc_ssize_t used = utf8proc_iterate((const utf8proc_uint8_t *)text.data + i, text.size - i, &c);
        take_char(&g, used > 0 ? c : 0xFFFD);
        i += used > 0 ? used : 1;
    }
    if (g.size) end_word(&g);
    free(g.word);
    if (g.out_of_memory) return tare_fail(error, TARE_E_NOMEM, "no memory for a word");
    if (g.n > g.limit) g.n = g.limit;
    ids[0] = w->cls;
    ids[g.n + 1] = w->sep;
    *n = g.n + 2;
    return TARE_OK;
}
