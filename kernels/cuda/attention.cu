/* The attention operation: plans tiles on the host, chooses a kernel and launches it. */
#include "attention_plan.h"

#include "decode.h"

#include <string.h>

void attention_plan_whole(attn_plan &p, const struct attn_seq *seqs, int64_t n, int64_t queries)
{
    for (int64_t i = 0; i < n; i++) {
        const struct attn_seq &s = seqs[i];
        const int64_t table = (int64_t)p.tables.size(), blocks = (s.pos + s.q_len + KV_BLOCK - 1) / KV_BLOCK;
        if (s.q_len <= 0) continue;
        p.tables.insert(p.tables.end(), s.blocks, s.blocks + blocks);
        for (int64_t at = 0; at < s.q_len; at += queries) {
            const int64_t m = s.q_len - at < queries ? s.q_len - at : queries;
            p.tiles.push_back(attn_tile{(int32_t)(s.q_begin + at), (int32_t)m, 0, (int32_t)(s.pos + at + m),
                                        (int32_t)(s.pos + at + 1), -1, table});
        }
    }
    /* Blocks start in grid order: those with many keys come first, so that all end together. */
    std::vector<attn_tile> sorted;
    std::vector<std::vector<attn_tile>> by(33);
    for (const attn_tile &t : p.tiles) {
        int bits = 0;
        while (t.end >> bits) bits++;
        by[(size_t)bits].push_back(t);
    }
    for (size_t b = by.size(); b-- > 0;) sorted.insert(sorted.end(), by[b].rbegin(), by[b].rend());
    p.tiles.swap(sorted);
}

bool attention_plan_decodes(const struct attn_seq *seqs, int64_t n)
{
    for (int64_t i = 0; i < n; i++)
        if (seqs[i].q_len != 1 || seqs[i].q_begin != i) return false;
    return n > 0;
}

/* Number of leading keys that others may share. The block of the newest key belongs to the sequence
 * alone. */
static int32_t shareable_keys(const struct attn_seq &s)
{
    return (int32_t)((s.shared < s.pos ? s.shared : s.pos) / KV_BLOCK * KV_BLOCK);
}

static bool same_blocks(const struct attn_seq &a, const struct attn_seq &b, int32_t keys)
{
    return !memcmp(a.blocks, b.blocks, (size_t)(keys / KV_BLOCK) * sizeof *a.blocks);
}

std::vector<attn_run> attention_runs(const struct attn_seq *seqs, int64_t n, int64_t queries)
{
    std::vector<attn_run> runs;
    for (int64_t i = 0; i < n; i++) {
        const int32_t shared = shareable_keys(seqs[i]);
        if (!runs.empty()) {
            attn_run &r = runs.back();
            if (r.n < queries && shared > 0 && shared == r.shared && same_blocks(seqs[r.first], seqs[i], shared)) {
                r.n++;
                continue;
            }
        }
        runs.push_back(attn_run{(int32_t)i, 1, shared});
    }
    return runs;
}

void attention_plan_split(attn_plan &p, const struct attn_seq *seqs, int64_t n, int64_t queries)
{
    p.parts.assign((size_t)n, attn_parts{});
    for (const attn_run &r : attention_runs(seqs, n, queries)) {
        const int32_t shared = r.shared;
        int64_t table = (int64_t)p.tables.size();
        for (int32_t i = r.first; i < r.first + r.n; i++) {
            const struct attn_seq &s = seqs[i];
            p.tables.insert(p.tables.end(), s.blocks, s.blocks + (s.pos + KV_BLOCK) / KV_BLOCK);
        }
        for (int32_t begin = 0; begin < shared; begin += SPLIT_KEYS) {
            const int32_t end = shared < begin + SPLIT_KEYS ? shared : begin + SPLIT_KEYS;
            p.tiles.push_back(attn_tile{r.first, r.n, begin, end, end, (int32_t)p.n_parts, table});
            for (int32_t i = 0; i < r.n; i++) {
                attn_parts &q = p.parts[(size_t)(r.first + i)];
                if (begin == 0) q.first[0] = (int32_t)p.n_parts + i, q.stride[0] = r.n;
                q.count[0]++;
            }
            p.n_parts += r.n;
        }
        for (int32_t i = r.first; i < r.first + r.n; i++) {
            const int32_t keys = (int32_t)seqs[i].pos + 1;
            attn_parts &q = p.parts[(size_t)i];
            q.first[1] = (int32_t)p.n_parts, q.stride[1] = 1;
            for (int32_t begin = shared; begin < keys; begin += SPLIT_KEYS) {
                const int32_t end = keys < begin + SPLIT_KEYS ? keys : begin + SPLIT_KEYS;
                p.tiles.push_back(attn_tile{i, 1, begin, end, end, (int32_t)p.n_parts, table});
                q.count[1]++;
                p.n_parts++;
            }
            table += (keys + KV_BLOCK - 1) / KV_BLOCK;
        }
    }
}

/* ---- the operation */

/* The plan of the last attention on the device; every layer of a pass uses the same one. */
static struct plan_memo {
    std::vector<attn_seq> seqs;
    std::vector<int32_t> blocks;
    int64_t queries = 0;
    bool split = false;
    unsigned char *device = nullptr;
    int64_t bytes = 0, n_tiles = 0, n_parts = 0, tables_at = 0, parts_at = 0;
} memo;

static bool memo_holds(const struct attn_seq *seqs, int64_t n, int64_t queries, bool split)
{
    if (memo.seqs.size() != (size_t)n || memo.queries != queries || memo.split != split) return false;
    size_t at = 0;
    for (int64_t i = 0; i < n; i++) {
        const attn_seq &a = memo.seqs[(size_t)i], &b = seqs[i];
        const int64_t blocks = b.q_len > 0 ? (b.pos + b.q_len + KV_BLOCK - 1) / KV_BLOCK : 0;
        if (a.q_begin != b.q_begin || a.q_len != b.q_len || a.pos != b.pos || a.shared != b.shared) return false;
        for (int64_t j = 0; j < blocks; j++)
            if (memo.blocks[at++] != b.blocks[j]) return false;
    }
    return true;
}

static int64_t add_aligned(int64_t *total, int64_t bytes)
{
    const int64_t at = *total;
    *total += (bytes + 255) / 256 * 256;
    return at;
}

static void memo_make(const struct kctx *c, const struct attn_seq *seqs, int64_t n, int64_t queries, bool split)
{
    attn_plan plan;
    if (split)
        attention_plan_split(plan, seqs, n, queries);
    else
        attention_plan_whole(plan, seqs, n, queries);
    memo.seqs.clear();
    memo.blocks.clear();
    int64_t bytes = 0;
    add_aligned(&bytes, (int64_t)(plan.tiles.size() * sizeof(attn_tile)));
    memo.tables_at = add_aligned(&bytes, (int64_t)(plan.tables.size() * sizeof(int32_t)));
    memo.parts_at = add_aligned(&bytes, (int64_t)(plan.parts.size() * sizeof(attn_parts)));
    if (bytes > memo.bytes) {
        void *p = nullptr;
        cuda_give(memo.device);
        memo.device = nullptr, memo.bytes = 0;
        if (!(p = cuda_take(c, 2 * bytes, "attention's tiles"))) return;
        memo.device = static_cast<unsigned char *>(p), memo.bytes = 2 * bytes;
    }
    std::vector<unsigned char> host((size_t)bytes);
    memcpy(host.data(), plan.tiles.data(), plan.tiles.size() * sizeof(attn_tile));
    memcpy(host.data() + memo.tables_at, plan.tables.data(), plan.tables.size() * sizeof(int32_t));
    if (!plan.parts.empty()) memcpy(host.data() + memo.parts_at, plan.parts.data(), plan.parts.size() * sizeof(attn_parts));
    cuda_no_kernel();
    if (!CUDA_TRY(c, cudaMemcpyAsync(memo.device, host.data(), (size_t)bytes, cudaMemcpyHostToDevice, cuda_stream(c)))) return;
    memo.seqs.assign(seqs, seqs + n);
    for (int64_t i = 0; i < n; i++)
        if (seqs[i].q_len > 0)
            memo.blocks.insert(memo.blocks.end(), seqs[i].blocks,
                               seqs[i].blocks + (seqs[i].pos + seqs[i].q_len + KV_BLOCK - 1) / KV_BLOCK);
    memo.queries = queries, memo.split = split;
    memo.n_tiles = (int64_t)plan.tiles.size(), memo.n_parts = plan.n_parts;
}

/* rows: rows of a tile, 64 or 128. */
static void attention_run(const struct kctx *c, attn_args &a, struct attn_shape s, const decode_view &v, int rows)
{
    a.tiles = v.tiles, a.tables = v.tables;
    if (v.parts) {
        const int64_t results = v.n_parts * s.heads;
        a.part = static_cast<float *>(cuda_scratch(c, results * (s.head_dim + 2) * (int64_t)sizeof(float)));
        if (!a.part) return;
        a.part_stats = a.part + results * s.head_dim;
    }
    if (attention_mma_fits(s))
        attention_mma_launch(c, a, v.n_tiles, rows);
    else
        attention_plain_launch(c, a, v.n_tiles, s.dtype);
    if (v.parts) attention_combine_launch(c, a, v.parts, v.rows);
}

void cuda_attention(const struct kctx *c, const struct op_attention *o)
{
    CUDA_OP(c, "attention", "heads kv_heads head_dim sequences", o->shape.heads, o->shape.kv_heads, o->shape.head_dim, o->n_seqs);
    attn_args a = {};
    a.out = o->out, a.out_dtype = o->out_dtype, a.stats = o->stats, a.qkv = o->qkv, a.k = o->kv.k, a.v = o->kv.v,
    a.stride = o->shape.stride, a.scale = o->shape.scale;
    a.heads = (int)o->shape.heads, a.kv_heads = (int)o->shape.kv_heads, a.dim = (int)o->shape.head_dim;
    const int64_t group = o->shape.heads / o->shape.kv_heads, mma_rows = 128;
    if (const decode_view *d = decode_current()) {
        attention_run(c, a, o->shape, *d, 64);
        return;
    }
    if (o->n_seqs <= 0) return;
    const bool split = attention_plan_decodes(o->seqs, o->n_seqs) && !c->batch_invariant;
    const int64_t rows = split ? 64 : mma_rows, queries = rows / group > 0 ? rows / group : 1;
    if (!memo_holds(o->seqs, o->n_seqs, queries, split)) memo_make(c, o->seqs, o->n_seqs, queries, split);
    if (kernel_faulted(c) || !memo.n_tiles) return;
    const attn_parts *parts = split ? reinterpret_cast<const attn_parts *>(memo.device + memo.parts_at) : nullptr;
    const decode_view whole = {reinterpret_cast<const attn_tile *>(memo.device),
                               parts,
                               reinterpret_cast<const int32_t *>(memo.device + memo.tables_at),
                               o->n_seqs,
                               memo.n_tiles,
                               memo.n_parts};
    attention_run(c, a, o->shape, whole, (int)rows);
}
