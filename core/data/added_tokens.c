#include "data/added_tokens.h"

#include "base/arena.h"
#include "base/utf8.h"
#include "data/pretokenize.h"

#include <string.h>

tare_status added_insert(struct added *a, const char *content, int64_t n, struct added_token token, struct err *e)
{
    const unsigned char first = (unsigned char)content[0];
    if (!a->n) a->only = first;
    if (a->only != first) a->only = -1;
    a->begins[first] = true;
    TRY(mem_grow((void **)&a->tokens, &a->capacity, a->n + 1, sizeof *a->tokens, e));
    a->tokens[a->n] = token;
    return trie_insert(&a->trie, content, n, (int32_t)a->n++, e);
}

void added_free(struct added *a)
{
    trie_free(&a->trie);
    mem_free(a->tokens);
    *a = (struct added){0};
}

static int64_t longest_at(const struct added *a, const unsigned char *p, const unsigned char *end, int32_t *place)
{
    const unsigned char *begin = p;
    int64_t size = 0;
    for (int32_t node = 0; p < end && (node = trie_step(&a->trie, node, *p));) {
        p++;
        if (a->trie.nodes[node].id < 0) continue;
        *place = a->trie.nodes[node].id;
        size = p - begin;
    }
    return size;
}

/* Finds the first token at or after `from`. Returns its size; 0: none found. */
static int64_t find_token(const struct added *a, const struct added_walk *w, int64_t *at, int32_t *place)
{
    if (!a->n) return 0;
    for (const unsigned char *p = w->text + w->searched, *end = w->text + w->n; p < end; p++) {
        if (a->only >= 0) {
            p = memchr(p, a->only, (size_t)(end - p));
            if (!p) return 0;
        } else if (!a->begins[*p]) {
            continue;
        }
        const int64_t size = longest_at(a, p, end, place);
        *at = p - w->text;
        if (size) return size;
    }
    return 0;
}

/* Returns where the white space that ends at `at` begins. */
static int64_t blanks_before(const unsigned char *text, int64_t at)
{
    while (at > 0) {
        int64_t begin = at - 1;
        while (begin > 0 && (text[begin] & 0xC0) == 0x80) begin--;
        const unsigned char *p = text + begin;
        if (!pretokenize_is_space(utf8_next(&p))) break;
        at = begin;
    }
    return at;
}

static int64_t blanks_after(const unsigned char *text, int64_t n, int64_t at)
{
    while (at < n) {
        const unsigned char *p = text + at;
        if (!pretokenize_is_space(utf8_next(&p))) break;
        at = p - text;
    }
    return at;
}

bool added_next(struct added_walk *w, int64_t *before, int64_t *before_size, int32_t *id)
{
    int64_t at = 0;
    int32_t place = 0;
    const int64_t size = find_token(w->set, w, &at, &place);
    *before = w->done;
    if (!size) {
        *before_size = w->n - w->done;
        return false;
    }
    const struct added_token *token = &w->set->tokens[place];
    int64_t begin = at, end = at + size;
    w->searched = end;
    if (token->flags & ADDED_LSTRIP) begin = blanks_before(w->text, begin);
    if (token->flags & ADDED_RSTRIP) end = blanks_after(w->text, w->n, end);
    /* a token inside the white space of the previous one still counts */
    *before_size = begin > w->done ? begin - w->done : 0;
    w->done = end;
    *id = token->id;
    return true;
}
