/* Decoding without the host: a session's rows in fixed device memory, a kernel that carries them from one token to the next, and the token's
 * operations as a CUDA graph a number of rows and of key pieces (both in buckets, so that few graphs serve all batches).
 *
 * Row r has at most 2 C tiles of keys for attention, C pieces of SPLIT_KEYS for the leading blocks that it shares with its neighbours (only the first
 * row of such a run has them) and C for its own; those after its newest key are empty. So a graph's launches never change while sequences grow.
 */
#include "decode.h"

#include "attention_plan.h"

#include <map>
#include <new>
#include <string.h>

/* What the host loads, each [rows] but stop and tables; one piece of memory. */
struct decode_loaded {
    int32_t *ids, *pos, *left, *step, *run_first, *run_n, *run_shared, *stop, *tables; /* run_shared: keys; tables: [rows, width] */
    struct sample_row *draw;
};

struct decode_state {
    struct decode_loaded in;
    int64_t *write_row, *write_slot, *out_rows;
    int32_t *token, *log_token; /* log: [DECODE_TOKENS, rows] */
    float *logprob, *entropy, *log_logprob, *log_entropy;
    struct attn_tile *tiles; /* [rows, 2, pieces] */
    struct attn_parts *parts;
    int rows, width, pieces, n_stop;
    int whole; /* one tile of all keys a row, as in a pass over many tokens: batch_invariant */
};

enum decode_mode { IDLE, AT_ONCE, CAPTURE };

struct decode_graph {
    bool tried = false; /* issued once without a capture: working memory has its size, modules are loaded */
    cudaGraphExec_t run = nullptr;
};

struct decode {
    struct decode_state s = {};
    struct decode_view view = {};
    struct decode_load load = {};
    unsigned char *memory = nullptr, *results = nullptr; /* device, pinned */
    int64_t bytes = 0, results_bytes = 0;
    int64_t most_rows = 0, most_width = 0, most_pieces = 0, most_stop = 0;
    std::map<std::pair<int, int>, decode_graph> graphs; /* by rows, pieces */
    void *scratch = nullptr;                            /* working memory that the graphs point to */
    uint64_t addresses = 0;                             /* of the tensors that they point to */
    enum decode_mode mode = IDLE;
};

static struct decode *issuing; /* the session whose token is being issued */

const struct decode_view *decode_current(void)
{
    return issuing ? &issuing->view : nullptr;
}

/* ---- on the device */

__device__ inline bool is_stop(const decode_state &s, int32_t id)
{
    for (int i = 0; i < s.n_stop; i++)
        if (s.in.stop[i] == id) return true;
    return false;
}

/* The token that was drawn becomes the row's newest. */
__device__ inline void accept(const decode_state &s, int r)
{
    const int at = s.in.step[r] * s.rows + r;
    s.in.step[r]++;
    if (s.in.left[r] <= 0) {
        s.log_token[at] = -1;
        return;
    }
    s.log_token[at] = s.token[r];
    s.log_logprob[at] = s.logprob[r];
    s.log_entropy[at] = s.entropy[r];
    s.in.ids[r] = s.token[r];
    s.in.pos[r]++;
    s.in.draw[r].position++;
    s.in.left[r] = is_stop(s, s.token[r]) ? 0 : s.in.left[r] - 1;
}

__device__ inline attn_tile tile_of(const decode_state &s, int row, int n, int begin, int end, int part)
{
    attn_tile t = {};
    if (begin >= end) return t;
    t.row = row, t.n = n, t.begin = begin, t.end = end < begin + SPLIT_KEYS ? end : begin + SPLIT_KEYS;
    t.limit = t.end, t.part = part, t.table = (int64_t)row * s.width;
    return t;
}

/* A block a row. first: after a load, when nothing has been drawn. */
static __global__ void decode_advance(const decode_state s, int first)
{
    __shared__ int now[2]; /* keys of the row after the next token, or 0; keys that it shares */
    const int r = (int)blockIdx.x, thread = (int)threadIdx.x;
    if (thread == 0) {
        if (!first) accept(s, r);
        const int pos = s.in.pos[r];
        const bool runs = s.in.left[r] > 0;
        s.write_row[r] = s.out_rows[r] = r;
        s.write_slot[r] = runs ? (int64_t)s.in.tables[(int64_t)r * s.width + pos / KV_BLOCK] * KV_BLOCK + pos % KV_BLOCK : -1;
        now[0] = runs ? pos + 1 : 0, now[1] = s.in.run_shared[r];
    }
    __syncthreads();
    const int begin = s.in.run_first[r], n = s.in.run_n[r], keys = now[0], shared = now[1];
    attn_tile *tiles = s.tiles + (int64_t)r * 2 * s.pieces;
    for (int i = thread; i < s.pieces; i += (int)blockDim.x) {
        tiles[i] = tile_of(s, r, n, i * SPLIT_KEYS, begin == r ? shared : 0, begin * s.pieces + i * n);
        tiles[s.pieces + i] = tile_of(s, r, 1, shared + i * SPLIT_KEYS, keys, (s.rows + r) * s.pieces + i);
    }
    if (thread) return;
    if (s.whole && keys) {
        tiles[1].end = keys, tiles[1].limit = keys, tiles[1].part = -1;
        return;
    }
    attn_parts p = {};
    p.first[0] = begin * s.pieces + r - begin, p.stride[0] = n;
    p.first[1] = (s.rows + r) * s.pieces, p.stride[1] = 1;
    if (keys) p.count[0] = (shared + SPLIT_KEYS - 1) / SPLIT_KEYS, p.count[1] = (keys - shared + SPLIT_KEYS - 1) / SPLIT_KEYS;
    s.parts[r] = p;
}

/* ---- memory */

static unsigned char *take(unsigned char *base, int64_t *used, int64_t bytes)
{
    unsigned char *p = base + *used;
    *used += (bytes + 255) / 256 * 256;
    return p;
}

template <typename T> static T *take(unsigned char *base, int64_t *used, int64_t n, T *)
{
    return reinterpret_cast<T *>(take(base, used, n * (int64_t)sizeof(T)));
}

/* Places in `base`: what is loaded first, in one piece. Returns its bytes. */
static int64_t place_loaded(decode_loaded &in, unsigned char *base, int64_t rows, int64_t width, int64_t n_stop)
{
    int64_t used = 0;
    in.ids = take(base, &used, rows, in.ids), in.pos = take(base, &used, rows, in.pos);
    in.left = take(base, &used, rows, in.left), in.step = take(base, &used, rows, in.step);
    in.run_first = take(base, &used, rows, in.run_first), in.run_n = take(base, &used, rows, in.run_n);
    in.run_shared = take(base, &used, rows, in.run_shared);
    in.draw = take(base, &used, rows, in.draw);
    in.stop = take(base, &used, n_stop, in.stop);
    in.tables = take(base, &used, rows * width, in.tables);
    return used;
}

static int64_t place(decode_state &s, unsigned char *base, int64_t rows, int64_t width, int64_t pieces, int64_t n_stop)
{
    int64_t used = place_loaded(s.in, base, rows, width, n_stop);
    s.write_row = take(base, &used, rows, s.write_row), s.write_slot = take(base, &used, rows, s.write_slot);
    s.out_rows = take(base, &used, rows, s.out_rows), s.token = take(base, &used, rows, s.token);
    s.logprob = take(base, &used, rows, s.logprob), s.entropy = take(base, &used, rows, s.entropy);
    s.log_token = take(base, &used, rows * DECODE_TOKENS, s.log_token);
    s.log_logprob = take(base, &used, rows * DECODE_TOKENS, s.log_logprob);
    s.log_entropy = take(base, &used, rows * DECODE_TOKENS, s.log_entropy);
    s.parts = take(base, &used, rows, s.parts);
    s.tiles = take(base, &used, rows * 2 * pieces, s.tiles);
    return used;
}

static void drop_graphs(struct decode *d)
{
    for (auto &g : d->graphs)
        if (g.second.run) cudaGraphExecDestroy(g.second.run);
    d->graphs.clear();
}

static int64_t most(int64_t a, int64_t b)
{
    return a > b ? a : b;
}

/* Room for that many; graphs of a smaller room are dropped with it. */
static bool reserve(const struct kctx *c, struct decode *d, int64_t rows, int64_t width, int64_t pieces, int64_t n_stop)
{
    if (rows <= d->most_rows && width <= d->most_width && pieces <= d->most_pieces && n_stop <= d->most_stop) return true;
    rows = most(rows, d->most_rows), pieces = most(pieces, d->most_pieces), n_stop = most(most(n_stop, 16), d->most_stop);
    width = width > d->most_width ? 2 * width : d->most_width;
    decode_state s = {};
    const int64_t bytes = place(s, nullptr, rows, width, pieces, n_stop), results = rows * DECODE_TOKENS * 3 * 4;
    void *p = nullptr, *q = nullptr;
    drop_graphs(d);
    if (!CUDA_TRY(c, cudaStreamSynchronize(cuda_stream(c)))) return false;
    cuda_give(d->memory);
    cudaFreeHost(d->results);
    d->memory = d->results = nullptr;
    d->most_rows = d->most_width = d->most_pieces = d->most_stop = 0;
    if (!(p = cuda_take(c, bytes, "the places of a decode session"))) return false;
    d->memory = static_cast<unsigned char *>(p);
    if (!CUDA_TRY(c, cudaMallocHost(&q, (size_t)results))) return false;
    if (!CUDA_TRY(c, cudaMemsetAsync(p, 0, (size_t)bytes, cuda_stream(c)))) return false;
    d->results = static_cast<unsigned char *>(q);
    d->most_rows = rows, d->most_width = width, d->most_pieces = pieces, d->most_stop = n_stop;
    place(d->s, d->memory, rows, width, pieces, n_stop);
    return true;
}

/* ---- the operations */

struct decode *cuda_decode_open(const struct kctx *c)
{
    CUDA_OP_OR(c, nullptr, "decode_open", "", 0);
    return new (std::nothrow) decode;
}

void cuda_decode_close(const struct kctx *c, struct decode *d)
{
    if (!d) return;
    if (issuing == d) issuing = nullptr;
    cudaStreamSynchronize(cuda_stream(c));
    drop_graphs(d);
    cuda_give(d->memory);
    cudaFreeHost(d->results);
    delete d;
}

/* Rows that a batch of n is issued with. */
static int64_t bucket(int64_t n)
{
    static const int64_t steps[] = {8, 32, 128, 256}, units[] = {1, 4, 8, 16, 64};
    int i = 0;
    while (i < 4 && n > steps[i]) i++;
    return (n + units[i] - 1) / units[i] * units[i];
}

static void fill(decode_loaded &host, const struct decode_load &l, int64_t rows, int64_t width, bool whole)
{
    std::vector<attn_seq> seqs((size_t)l.n);
    for (int64_t r = 0; r < rows; r++) {
        host.run_first[r] = (int32_t)r, host.run_n[r] = 1;
        if (r >= l.n) continue;
        const decode_row &row = l.rows[r];
        const int64_t tokens = row.left < l.tokens ? row.left : l.tokens;
        host.ids[r] = row.token, host.pos[r] = row.pos, host.left[r] = row.left, host.draw[r] = row.draw;
        memcpy(host.tables + r * width, row.blocks, (size_t)((row.pos + tokens + KV_BLOCK - 1) / KV_BLOCK) * sizeof(int32_t));
        seqs[(size_t)r] = attn_seq{r, 1, row.pos, row.blocks};
    }
    const int64_t group = l.shape.heads / l.shape.kv_heads, queries = group < 64 ? 64 / group : 1;
    for (const attn_run &run : attention_runs(seqs.data(), whole ? 0 : l.n, queries))
        for (int32_t i = run.first; i < run.first + run.n; i++)
            host.run_first[i] = run.first, host.run_n[i] = run.n, host.run_shared[i] = run.shared * KV_BLOCK;
    if (l.n_stop) memcpy(host.stop, l.stop, (size_t)l.n_stop * sizeof *l.stop);
}

void cuda_decode_load(const struct kctx *c, struct decode *d, const struct decode_load *load, struct decode_places *places)
{
    CUDA_OP(c, "decode_load", "sequences tokens", load->n, load->tokens);
    if (load->addresses != d->addresses) drop_graphs(d);
    d->addresses = load->addresses;
    const int64_t rows = bucket(load->n);
    int64_t keys = 1, pieces = 1;
    for (int64_t i = 0; i < load->n; i++) keys = most(keys, load->rows[i].pos + load->tokens + 1);
    while (!c->batch_invariant && pieces * SPLIT_KEYS < keys) pieces *= 2;
    if (!reserve(c, d, rows, (keys + KV_BLOCK - 1) / KV_BLOCK, pieces, load->n_stop)) return;
    decode_loaded host = {};
    std::vector<unsigned char> bytes((size_t)place_loaded(host, nullptr, d->most_rows, d->most_width, d->most_stop));
    place_loaded(host, bytes.data(), d->most_rows, d->most_width, d->most_stop);
    fill(host, *load, rows, d->most_width, c->batch_invariant);
    if (!CUDA_TRY(c, cudaMemcpyAsync(d->memory, bytes.data(), bytes.size(), cudaMemcpyHostToDevice, cuda_stream(c)))) return;
    d->load = *load;
    d->s.rows = (int)rows, d->s.width = (int)d->most_width, d->s.pieces = (int)pieces, d->s.n_stop = (int)load->n_stop;
    d->s.whole = c->batch_invariant;
    d->view =
        decode_view{d->s.tiles, d->s.whole ? nullptr : d->s.parts, d->s.in.tables, rows, rows * 2 * pieces, 2 * rows * pieces};
    CUDA_LAUNCH(c, decode_advance, (unsigned)rows, 64, 0, d->s, 1);
    *places = decode_places{rows,          d->s.in.ids,  d->s.in.pos, d->s.write_row, d->s.write_slot,
                            d->s.out_rows, d->s.in.draw, d->s.token,  d->s.logprob,   d->s.entropy};
}

/* Graphs hold the address of the working memory; when an operation has needed more of it, they are made again. n_stop and width are theirs too. */
static decode_graph *graph_of(const struct kctx *c, struct decode *d)
{
    void *scratch = cuda_scratch(c, 256);
    if (!scratch) return nullptr;
    if (scratch != d->scratch) drop_graphs(d);
    d->scratch = scratch;
    return &d->graphs[std::make_pair(d->s.rows, d->s.pieces | d->s.n_stop << 16)];
}

int cuda_decode_begin(const struct kctx *c, struct decode *d)
{
    CUDA_OP_OR(c, 0, "decode", "rows pieces", d->s.rows, d->s.pieces);
    decode_graph *g = graph_of(c, d);
    if (!g) return 0;
    if (g->run) {
        CUDA_TRY(c, cudaGraphLaunch(g->run, cuda_stream(c)));
        return 0;
    }
    if (g->tried && !CUDA_TRY(c, cudaStreamBeginCapture(cuda_stream(c), cudaStreamCaptureModeThreadLocal))) return 0;
    d->mode = g->tried ? CAPTURE : AT_ONCE;
    issuing = d;
    cuda_chain(true);
    return 1;
}

void cuda_decode_end(const struct kctx *c, struct decode *d)
{
    CUDA_LAUNCH(c, decode_advance, (unsigned)d->s.rows, 64, 0, d->s, 0);
    cuda_chain(false);
    issuing = nullptr;
    decode_graph &g = d->graphs[std::make_pair(d->s.rows, d->s.pieces | d->s.n_stop << 16)];
    if (d->mode == CAPTURE) { /* ended after a failure too */
        cudaGraph_t graph = nullptr;
        if (CUDA_TRY(c, cudaStreamEndCapture(cuda_stream(c), &graph)) && !kernel_faulted(c) &&
            CUDA_TRY(c, cudaGraphInstantiate(&g.run, graph, 0)))
            CUDA_TRY(c, cudaGraphLaunch(g.run, cuda_stream(c)));
        if (graph) cudaGraphDestroy(graph);
    }
    g.tried = true;
    d->mode = IDLE;
}

void cuda_decode_read(const struct kctx *c, struct decode *d, int32_t *token, float *logprob, float *entropy)
{
    CUDA_OP(c, "decode_read", "rows tokens", d->load.n, d->load.tokens);
    const int64_t n = d->load.tokens * d->s.rows, bytes = n * 4;
    int32_t *ids = reinterpret_cast<int32_t *>(d->results);
    float *p = reinterpret_cast<float *>(d->results) + n, *h = p + n;
    if (!CUDA_TRY(c, cudaMemcpyAsync(ids, d->s.log_token, (size_t)bytes, cudaMemcpyDeviceToHost, cuda_stream(c))) ||
        !CUDA_TRY(c, cudaMemcpyAsync(p, d->s.log_logprob, (size_t)bytes, cudaMemcpyDeviceToHost, cuda_stream(c))) ||
        !CUDA_TRY(c, cudaMemcpyAsync(h, d->s.log_entropy, (size_t)bytes, cudaMemcpyDeviceToHost, cuda_stream(c))) ||
        !CUDA_TRY(c, cudaStreamSynchronize(cuda_stream(c))))
        return;
    for (int64_t i = 0; i < d->load.tokens; i++)
        for (int64_t r = 0; r < d->load.n; r++) {
            token[i * d->load.n + r] = ids[i * d->s.rows + r];
            logprob[i * d->load.n + r] = p[i * d->s.rows + r];
            entropy[i * d->load.n + r] = h[i * d->s.rows + r];
        }
}
