#include "model/pack.h"

#include <string.h>

static int64_t blocks_for(int64_t keys)
{
    return (keys + KV_BLOCK - 1) / KV_BLOCK;
}

/* Returns the input rows of a completion: all tokens but the last. */
static int64_t n_inputs(int64_t completion_len)
{
    return completion_len > 0 ? completion_len - 1 : 0;
}

int64_t pack_group_rows(const struct pack_group *g, bool share)
{
    int64_t rows = 0, used = 0;
    for (int64_t i = 0; i < g->n; i++) {
        if (g->completion_len[i] <= 0) continue;
        rows += n_inputs(g->completion_len[i]) + (share ? 0 : g->prompt_len);
        used = 1;
    }
    return rows + (share && used ? g->prompt_len : 0);
}

/* Sizes of all arrays, so that each is allocated from the arena once. */
struct sizes {
    int64_t rows, writes, seqs, block_lists, targets;
};

static int64_t count_targets(const struct pack_group *g, int64_t i)
{
    int64_t n = g->completion_len[i];
    for (int64_t t = 0; g->sampled && t < g->completion_len[i]; t++) n -= !g->sampled[i][t];
    return n;
}

static tare_status count_group(const struct pack_group *g, int64_t index, bool share, struct sizes *s, struct err *e)
{
    if (g->prompt_len < 1)
        FAIL(e, TARE_E_INVALID, "group %lld: the prompt has no tokens; a completion needs at least one to follow",
             (long long)index);
    const int64_t rows = pack_group_rows(g, share), tail = g->prompt_len % KV_BLOCK;
    s->rows += rows;
    s->writes += rows;
    if (share && rows) {
        s->seqs++;
        s->block_lists += blocks_for(g->prompt_len);
    }
    for (int64_t i = 0; i < g->n; i++) {
        const int64_t len = g->completion_len[i], inputs = n_inputs(len);
        if (len < 0)
            FAIL(e, TARE_E_INVALID, "group %lld, completion %lld: length %lld", (long long)index, (long long)i, (long long)len);
        if (!len) continue;
        s->targets += count_targets(g, i);
        if (share && !inputs) continue;
        s->seqs++;
        s->block_lists += blocks_for(g->prompt_len + inputs);
        if (share) s->writes += tail;
    }
    return TARE_OK;
}

/* The arrays being filled. */
struct packer {
    int32_t *ids, *pos, *blocks, *target;
    int64_t *write_row, *write_slot, *out_rows;
    struct attn_seq *seqs;
    struct attn_seg *segs;
    int64_t rows, writes, n_seqs, n_blocks, block_lists, targets;
};

/* Appends n rows of ids at positions pos, pos + 1, ... */
static void add_rows(struct packer *p, const int32_t *ids, int64_t n, int64_t pos)
{
    for (int64_t i = 0; i < n; i++, p->rows++) {
        p->ids[p->rows] = ids[i];
        p->pos[p->rows] = (int32_t)(pos + i);
    }
}

/* Adds rows q_begin .. +q_len-1 as a sequence with the keys 0 .. prefix_len-1 of the rows from
 * prefix_begin on. shared: blocks that hold the whole blocks of that prefix (NULL: none). Writes
 * its keys and returns its block list. */
static const int32_t *add_seq(struct packer *p, int64_t q_begin, int64_t q_len, int64_t prefix_begin, int64_t prefix_len,
                              const int32_t *shared)
{
    int32_t *const blocks = p->blocks + p->block_lists;
    const int64_t n_blocks = blocks_for(prefix_len + q_len), n_shared = prefix_len / KV_BLOCK;
    for (int64_t b = 0; b < n_blocks; b++) blocks[b] = b < n_shared ? shared[b] : (int32_t)p->n_blocks++;
    p->block_lists += n_blocks;
    for (int64_t j = n_shared * KV_BLOCK; j < prefix_len + q_len; j++, p->writes++) {
        p->write_row[p->writes] = j < prefix_len ? prefix_begin + j : q_begin + j - prefix_len;
        p->write_slot[p->writes] = (int64_t)blocks[j / KV_BLOCK] * KV_BLOCK + j % KV_BLOCK;
    }
    p->seqs[p->n_seqs] = (struct attn_seq){q_begin, q_len, prefix_len, blocks, 0};
    p->segs[p->n_seqs++] = (struct attn_seg){q_begin, q_len, prefix_begin, prefix_len};
    return blocks;
}

/* Adds the targets of completion i, whose first token follows row `last` and whose inputs start at
 * row `first`. */
static void add_targets(struct packer *p, const struct pack_group *g, int64_t i, int64_t last, int64_t first)
{
    for (int64_t t = 0; t < g->completion_len[i]; t++) {
        if (g->sampled && !g->sampled[i][t]) continue;
        p->out_rows[p->targets] = t ? first + t - 1 : last;
        p->target[p->targets++] = g->completion[i][t];
    }
}

/* Appends the prompt once, then the completions, which attend to its rows. */
static void pack_shared(struct packer *p, const struct pack_group *g)
{
    const int64_t prefix = p->rows, P = g->prompt_len;
    add_rows(p, g->prompt, P, 0);
    const int32_t *blocks = add_seq(p, prefix, P, prefix, 0, NULL);
    for (int64_t i = 0; i < g->n; i++) {
        const int64_t first = p->rows, inputs = n_inputs(g->completion_len[i]);
        add_rows(p, g->completion[i], inputs, P);
        if (inputs) add_seq(p, first, inputs, prefix, P, blocks);
        add_targets(p, g, i, prefix + P - 1, first);
    }
}

/* Appends every completion with its own copy of the prompt. */
static void pack_repeated(struct packer *p, const struct pack_group *g)
{
    for (int64_t i = 0; i < g->n; i++) {
        if (!g->completion_len[i]) continue;
        const int64_t begin = p->rows, P = g->prompt_len, inputs = n_inputs(g->completion_len[i]);
        add_rows(p, g->prompt, P, 0);
        add_rows(p, g->completion[i], inputs, P);
        add_seq(p, begin, P + inputs, begin, 0, NULL);
        add_targets(p, g, i, begin + P - 1, begin + P);
    }
}

static tare_status alloc_arrays(struct packer *p, const struct sizes *s, struct arena *arena, struct err *e)
{
    TRY(arena_new_raw(arena, &p->ids, s->rows, e));
    TRY(arena_new_raw(arena, &p->pos, s->rows, e));
    TRY(arena_new_raw(arena, &p->blocks, s->block_lists, e));
    TRY(arena_new_raw(arena, &p->target, s->targets, e));
    TRY(arena_new_raw(arena, &p->write_row, s->writes, e));
    TRY(arena_new_raw(arena, &p->write_slot, s->writes, e));
    TRY(arena_new_raw(arena, &p->out_rows, s->targets, e));
    TRY(arena_new_raw(arena, &p->seqs, s->seqs, e));
    return arena_new_raw(arena, &p->segs, s->seqs, e);
}

tare_status pack_groups(const struct pack_group *groups, int64_t n, bool share, struct arena *arena, struct packed_batch *out,
                        struct err *e)
{
    struct sizes s = {0};
    struct packer p = {0};
    *out = (struct packed_batch){0};
    for (int64_t g = 0; g < n; g++) TRY(count_group(&groups[g], g, share, &s, e));
    TRY(alloc_arrays(&p, &s, arena, e));
    for (int64_t g = 0; g < n; g++) {
        if (!pack_group_rows(&groups[g], share)) continue;
        if (share)
            pack_shared(&p, &groups[g]);
        else
            pack_repeated(&p, &groups[g]);
    }
    int64_t max_len = 0;
    for (int64_t r = 0; r < p.rows; r++)
        if (p.pos[r] >= max_len) max_len = p.pos[r] + 1;
    out->forward = (struct forward_batch){.t = p.rows,
                                          .ids = p.ids,
                                          .pos = p.pos,
                                          .write_row = p.write_row,
                                          .write_slot = p.write_slot,
                                          .n_writes = p.writes,
                                          .seqs = p.seqs,
                                          .n_seqs = p.n_seqs,
                                          .out_rows = p.out_rows,
                                          .n_out = p.targets};
    out->segs = p.segs;
    out->n_segs = p.n_seqs;
    out->n_blocks = p.n_blocks;
    out->max_len = max_len;
    out->n_targets = p.targets;
    out->target = p.target;
    return TARE_OK;
}
