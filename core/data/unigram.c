#include "data/unigram.h"

#include "base/arena.h"
#include "base/utf8.h"

enum { UNKNOWN = -1 };
static const double unknown_penalty = 10; /* below the lowest score, as in SentencePiece */

struct unigram_end { /* the best segmentation of the text up to here */
    double score;
    int64_t begin; /* start of its last token; -1: no segmentation */
    int32_t id;
};

tare_status unigram_add(struct unigram *u, const struct vocab *v, int32_t id, double score, struct err *e)
{
    const struct vocab_token *t = &v->tokens[id];
    TRY(mem_grow((void **)&u->scores, &u->capacity, id + 1, sizeof *u->scores, e));
    if (!u->n || score < u->lowest) u->lowest = score;
    u->scores[id] = score;
    if (id >= u->n) u->n = id + 1;
    return t->content_size ? trie_insert(&u->trie, v->text.data + t->content, t->content_size, id, e) : TARE_OK;
}

void unigram_free(struct unigram *u)
{
    trie_free(&u->trie);
    mem_free(u->scores);
    *u = (struct unigram){0};
}

void unigram_scratch_free(struct unigram_scratch *s)
{
    mem_free(s->ends);
    *s = (struct unigram_scratch){0};
}

static void offer_path(struct unigram_end *end, double score, int64_t begin, int32_t id)
{
    if (end->begin < 0 || score > end->score) *end = (struct unigram_end){score, begin, id};
}

/* Extends the paths by every token that begins at `at`, and by the unknown token if no token is
 * exactly this character. */
static void extend_paths(const struct unigram *u, struct unigram_end *ends, const unsigned char *text, int64_t n, int64_t at)
{
    const double so_far = ends[at].score;
    const unsigned char *next = text + at;
    utf8_next(&next);
    const int64_t character = next - text;
    bool covered = false;
    int32_t node = 0;
    for (int64_t i = at; i < n && (node = trie_step(&u->trie, node, text[i]));) {
        const int32_t id = u->trie.nodes[node].id;
        i++;
        if (id < 0) continue;
        offer_path(&ends[i], u->scores[id] + so_far, at, id);
        covered = covered || i == character;
    }
    if (!covered) offer_path(&ends[character], u->lowest - unknown_penalty + so_far, at, UNKNOWN);
}

static tare_status put_unknown(const struct viterbi *m, tare_text run, struct token_ids *out, struct err *e)
{
    const struct symbols *symbols = m->symbols;
    const unsigned char *p = (const unsigned char *)run.data;
    const int32_t id = vocab_find_own(m->vocab, run.data, run.size);
    if (id >= 0) return token_ids_add(out, id, e);
    if (symbols_have_bytes(symbols, p, run.size)) {
        for (int64_t i = 0; i < run.size; i++) TRY(token_ids_add(out, symbols->fallback_id[p[i]], e));
        return TARE_OK;
    }
    if (symbols->unknown < 0) FAIL(e, TARE_E_RANGE, "the text has a character without a token, and model.unk_id is not set");
    return token_ids_add(out, symbols->unknown, e);
}

static bool is_unknown(const struct symbols *symbols, int32_t id)
{
    return id == UNKNOWN || id == symbols->unknown;
}

/* Reverses the path, which is known from its end; afterwards ends[i].begin is the end of the token
 * that begins at i. */
static void turn_round(struct unigram_end *ends, int64_t n)
{
    for (int64_t at = n, after = n; at >= 0;) {
        const int64_t begin = at ? ends[at].begin : -1;
        ends[at].begin = after;
        after = at;
        at = begin;
    }
}

tare_status unigram_encode(const struct viterbi *m, struct unigram_scratch *s, tare_text piece, struct token_ids *out,
                           struct err *e)
{
    const unsigned char *text = (const unsigned char *)piece.data;
    const int64_t n = piece.size;
    TRY(mem_grow((void **)&s->ends, &s->n_ends, n + 1, sizeof *s->ends, e));
    for (int64_t i = 0; i <= n; i++) s->ends[i] = (struct unigram_end){.begin = -1};
    for (const unsigned char *p = text; p < text + n; utf8_next(&p)) extend_paths(m->unigram, s->ends, text, n, p - text);
    turn_round(s->ends, n);
    for (int64_t at = 0, end; at < n; at = end) {
        end = s->ends[at].begin;
        const int32_t id = s->ends[end].id;
        if (!is_unknown(m->symbols, id)) {
            TRY(token_ids_add(out, id, e));
            continue;
        }
        while (end < n && is_unknown(m->symbols, s->ends[s->ends[end].begin].id)) end = s->ends[end].begin;
        TRY(put_unknown(m, (tare_text){piece.data + at, end - at}, out, e));
    }
    return TARE_OK;
}
