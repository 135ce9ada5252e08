/* Decoding without the host: a session's rows in fixed device memory, a kernel that advances them
 * from one token to the next, and the token's operations as a CUDA graph for each number of rows
 * and of attention tiles (both in buckets, so that few graphs serve all batches).
 *
 * Attention's tiles are consecutive. A load gives each row as many as its keys can need until the
 * next load, and gives a run of rows that share leading keys those tiles once; after each token a
 * kernel updates where the newest keys end. A row's own tile that no key has reached yet is empty,
 * and so are those that fill up the bucket. There is at most one of the former per row, since a
 * load is at most DECODE_TOKENS, and there are less than half as many of the latter as of all
 * others. So a graph's launches never change while sequences grow, and their blocks follow the
 * total length. */
#include "decode.h"

#include "attention_plan.h"

#include <array>
#include <map>
#include <new>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* How a row's keys are split: those it shares with the run of rows first .. first+n-1, and its own
 * keys after them. */
struct decode_keys {
    int32_t first, n, shared;
    /* the run's first tile, and the first of its n partial results */
    int32_t shared_tile, shared_part;
    /* the row's own tiles: the first, their number, the first partial result */
    int32_t tile, tiles, part;
};

/* Data loaded by the host, each [rows] except stop and tables; one block of memory. */
struct decode_loaded {
    int32_t *ids, *pos, *remaining, *step, *stop, *tables; /* tables: [rows, width] */
    struct decode_keys *keys;
    struct sample_row *draw;
};

struct decode_state {
    struct decode_loaded in;
    int64_t *write_row, *write_slot, *out_rows;
    int32_t *token, *log_token; /* log: [DECODE_TOKENS, rows] */
    float *logprob, *entropy, *log_logprob, *log_entropy;
    struct attn_tile *tiles; /* [n_tiles] */
    struct attn_parts *parts;
    int rows, width, n_stop;
    /* 1: one tile of all keys per row, as in a pass over many tokens (batch_invariant) */
    int whole;
};

enum decode_mode { IDLE, AT_ONCE, CAPTURE };

struct decode_graph {
    /* issued once without a capture, so scratch memory has its size and modules are loaded */
    bool tried = false;
    cudaGraphExec_t run = nullptr;
};

struct decode {
    struct decode_state s = {};
    struct decode_view view = {};
    struct decode_load load = {};
    unsigned char *memory = nullptr, *results = nullptr; /* on the device; in pinned host memory */
    int64_t bytes = 0, results_bytes = 0;
    int64_t most_rows = 0, most_width = 0, most_tiles = 0, most_parts = 0, most_stop = 0;
    std::map<std::array<int64_t, 3>, decode_graph> graphs; /* by rows, tiles, stop ids */
    void *scratch = nullptr;                               /* scratch of the graphs */
    uint64_t addresses = 0;                                /* hash of their tensors' addresses */
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

/* Make the sampled token the row's newest. */
__device__ inline void accept_token(const decode_state &s, int r)
{
    const int at = s.in.step[r] * s.rows + r;
    s.in.step[r]++;
    if (s.in.remaining[r] <= 0) {
        s.log_token[at] = -1;
        return;
    }
    s.log_token[at] = s.token[r];
    s.log_logprob[at] = s.logprob[r];
    s.log_entropy[at] = s.entropy[r];
    s.in.ids[r] = s.token[r];
    s.in.pos[r]++;
    s.in.draw[r].position++;
    s.in.remaining[r] = is_stop(s, s.token[r]) ? 0 : s.in.remaining[r] - 1;
}

__device__ inline attn_tile tile_of(const decode_state &s, int row, int n, int begin, int end, int part)
{
    attn_tile t = {};
    if (begin >= end) return t;
    t.row = row, t.n = n, t.begin = begin, t.end = end < begin + SPLIT_KEYS || s.whole ? end : begin + SPLIT_KEYS;
    t.limit = t.end, t.part = s.whole ? -1 : part, t.table = (int64_t)row * s.width;
    return t;
}

/* One block per row. first: after a load, when nothing has been sampled. */
static __global__ void decode_advance(const decode_state s, int first)
{
    __shared__ int now; /* number of keys of the row after the next token, or 0 */
    const int r = (int)blockIdx.x, thread = (int)threadIdx.x;
    if (thread == 0) {
        if (!first) accept_token(s, r);
        const int pos = s.in.pos[r];
        const bool runs = s.in.remaining[r] > 0;
        s.write_row[r] = s.out_rows[r] = r;
        s.write_slot[r] = runs ? (int64_t)s.in.tables[(int64_t)r * s.width + pos / KV_BLOCK] * KV_BLOCK + pos % KV_BLOCK : -1;
        now = runs ? pos + 1 : 0;
    }
    __syncthreads();
    const decode_keys k = s.in.keys[r];
    const int keys = now, chunks = (k.shared + SPLIT_KEYS - 1) / SPLIT_KEYS;
    for (int i = thread; i < k.tiles; i += (int)blockDim.x)
        s.tiles[k.tile + i] = tile_of(s, r, 1, k.shared + i * SPLIT_KEYS, keys, k.part + i);
    if (first && k.first == r) /* they do not change until the next load */
        for (int i = thread; i < chunks; i += (int)blockDim.x)
            s.tiles[k.shared_tile + i] = tile_of(s, r, k.n, i * SPLIT_KEYS, k.shared, k.shared_part + i * k.n);
    if (thread) return;
    attn_parts p = {};
    p.first[0] = k.shared_part + r - k.first, p.stride[0] = k.n;
    p.first[1] = k.part, p.stride[1] = 1;
    if (keys) p.count[0] = chunks, p.count[1] = (keys - k.shared + SPLIT_KEYS - 1) / SPLIT_KEYS;
    s.parts[r] = p;
}

/* ---- memory */

static unsigned char *place_array(unsigned char *base, int64_t *used, int64_t bytes)
{
    unsigned char *p = base + *used;
    *used += (bytes + 255) / 256 * 256;
    return p;
}

template <typename T> static T *place_array(unsigned char *base, int64_t *used, int64_t n, T *)
{
    return reinterpret_cast<T *>(place_array(base, used, n * (int64_t)sizeof(T)));
}

/* Compute the addresses in `base` of the loaded data, in one block. Returns its bytes. */
static int64_t place_loaded(decode_loaded &in, unsigned char *base, int64_t rows, int64_t width, int64_t n_stop)
{
    int64_t used = 0;
    in.ids = place_array(base, &used, rows, in.ids), in.pos = place_array(base, &used, rows, in.pos);
    in.remaining = place_array(base, &used, rows, in.remaining), in.step = place_array(base, &used, rows, in.step);
    in.keys = place_array(base, &used, rows, in.keys);
    in.draw = place_array(base, &used, rows, in.draw);
    in.stop = place_array(base, &used, n_stop, in.stop);
    in.tables = place_array(base, &used, rows * width, in.tables);
    return used;
}

static int64_t place_state(decode_state &s, unsigned char *base, int64_t rows, int64_t width, int64_t tiles, int64_t n_stop)
{
    int64_t used = place_loaded(s.in, base, rows, width, n_stop);
    s.write_row = place_array(base, &used, rows, s.write_row), s.write_slot = place_array(base, &used, rows, s.write_slot);
    s.out_rows = place_array(base, &used, rows, s.out_rows), s.token = place_array(base, &used, rows, s.token);
    s.logprob = place_array(base, &used, rows, s.logprob), s.entropy = place_array(base, &used, rows, s.entropy);
    s.log_token = place_array(base, &used, rows * DECODE_TOKENS, s.log_token);
    s.log_logprob = place_array(base, &used, rows * DECODE_TOKENS, s.log_logprob);
    s.log_entropy = place_array(base, &used, rows * DECODE_TOKENS, s.log_entropy);
    s.parts = place_array(base, &used, rows, s.parts);
    s.tiles = place_array(base, &used, tiles, s.tiles);
    return used;
}

static void drop_graphs(struct decode *d)
{
    for (auto &g : d->graphs)
        if (g.second.run) cudaGraphExecDestroy(g.second.run);
    d->graphs.clear();
}

static int64_t larger_of(int64_t a, int64_t b)
{
    return a > b ? a : b;
}

/* Allocate for that many rows, tiles and stop ids; graphs of a smaller allocation are dropped with
 * it. */
static bool reserve_session(const struct kctx *c, struct decode *d, int64_t rows, int64_t width, int64_t tiles, int64_t n_stop)
{
    if (rows <= d->most_rows && width <= d->most_width && tiles <= d->most_tiles && n_stop <= d->most_stop) return true;
    rows = larger_of(rows, d->most_rows), n_stop = larger_of(larger_of(n_stop, 16), d->most_stop);
    width = width > d->most_width ? 2 * width : d->most_width;
    tiles = tiles > d->most_tiles ? 2 * tiles : d->most_tiles;
    decode_state s = {};
    const int64_t bytes = place_state(s, nullptr, rows, width, tiles, n_stop), results = rows * DECODE_TOKENS * 3 * 4;
    void *p = nullptr, *q = nullptr;
    drop_graphs(d);
    if (!CUDA_TRY(c, cudaStreamSynchronize(cuda_stream(c)))) return false;
    cuda_give(d->memory);
    cudaFreeHost(d->results);
    d->memory = d->results = nullptr;
    d->most_rows = d->most_width = d->most_tiles = d->most_stop = 0;
    if (!(p = cuda_take(c, bytes, "the slots of a decoding session"))) return false;
    d->memory = static_cast<unsigned char *>(p);
    if (!CUDA_TRY(c, cudaMallocHost(&q, (size_t)results))) return false;
    if (!CUDA_TRY(c, cudaMemsetAsync(p, 0, (size_t)bytes, cuda_stream(c)))) return false;
    d->results = static_cast<unsigned char *>(q);
    d->most_rows = rows, d->most_width = width, d->most_tiles = tiles, d->most_stop = n_stop;
    place_state(d->s, d->memory, rows, width, tiles, n_stop);
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

/* Number of rows with which a batch of n is issued. */
static int64_t row_bucket(int64_t n)
{
    static const int64_t steps[] = {8, 32, 128, 256}, units[] = {1, 4, 8, 16, 64};
    int i = 0;
    while (i < 4 && n > steps[i]) i++;
    return (n + units[i] - 1) / units[i] * units[i];
}

/* Number of attention tiles with which n are issued: 1, 2, 3, 4, 6, 8, 12, ... */
static int64_t tile_bucket(int64_t n)
{
    int64_t unit = 1;
    while (2 * unit < n) unit *= 2;
    return n <= unit ? unit : 2 * n <= 3 * unit ? 3 * unit / 2 : 2 * unit;
}

static void fill_loaded(decode_loaded &host, const struct decode_load &l, int64_t width)
{
    for (int64_t r = 0; r < l.n; r++) {
        const decode_row &row = l.rows[r];
        const int64_t tokens = row.remaining < l.tokens ? row.remaining : l.tokens;
        host.ids[r] = row.token, host.pos[r] = row.pos, host.remaining[r] = row.remaining, host.draw[r] = row.draw;
        memcpy(host.tables + r * width, row.blocks, (size_t)((row.pos + tokens + KV_BLOCK - 1) / KV_BLOCK) * sizeof(int32_t));
    }
    if (l.n_stop) memcpy(host.stop, l.stop, (size_t)l.n_stop * sizeof *l.stop);
}

static int32_t chunks_of(int64_t keys)
{
    return (int32_t)((keys + SPLIT_KEYS - 1) / SPLIT_KEYS);
}

struct decode_work {
    int64_t tiles, parts;
};

/* Assign tiles and partial results to every row: those of a run's shared keys, then each row's
 * own. */
static decode_work cut_keys(decode_keys *keys, const struct decode_load &l)
{
    std::vector<attn_seq> seqs((size_t)l.n);
    const int64_t group = l.shape.heads / l.shape.kv_heads, queries = group < 64 ? 64 / group : 1;
    int32_t tile = 0, part = 0;
    for (int64_t r = 0; r < l.n; r++) seqs[(size_t)r] = attn_seq{r, 1, l.rows[r].pos, l.rows[r].blocks, l.rows[r].shared};
    for (const attn_run &run : attention_runs(seqs.data(), l.n, queries)) {
        const int32_t chunks = chunks_of(run.shared);
        const decode_keys first = {run.first, run.n, run.shared, tile, part, 0, 0, 0};
        tile += chunks, part += chunks * run.n;
        for (int32_t r = run.first; r < run.first + run.n; r++) {
            const decode_row &row = l.rows[r];
            const int32_t own = chunks_of(row.pos + (row.remaining < l.tokens ? row.remaining : l.tokens) - run.shared);
            keys[r] = first;
            keys[r].tile = tile, keys[r].tiles = own, keys[r].part = part;
            tile += own, part += own;
        }
    }
    return {tile, part};
}

/* batch_invariant: one tile of all keys per row. */
static decode_work cut_whole(decode_keys *keys, int64_t n)
{
    for (int32_t r = 0; r < n; r++) keys[r] = {r, 1, 0, 0, 0, r, 1, 0};
    return {n, 0};
}

void cuda_decode_load(const struct kctx *c, struct decode *d, const struct decode_load *load, struct decode_places *places)
{
    CUDA_OP(c, "decode_load", "sequences tokens", load->n, load->tokens);
    const int64_t rows = row_bucket(load->n);
    int64_t keys = 1;
    /* rows without a sequence have no tile */
    std::vector<decode_keys> cuts((size_t)rows, decode_keys{-1, 1, 0, 0, 0, 0, 0, 0});
    for (int64_t i = 0; i < load->n; i++) keys = larger_of(keys, load->rows[i].pos + load->tokens + 1);
    const decode_work work = c->batch_invariant ? cut_whole(cuts.data(), load->n) : cut_keys(cuts.data(), *load);
    const int64_t tiles = c->batch_invariant ? rows : tile_bucket(work.tiles), parts = tile_bucket(work.parts);
    if (load->addresses != d->addresses || parts > d->most_parts) drop_graphs(d);
    d->addresses = load->addresses, d->most_parts = larger_of(parts, d->most_parts);
    if (!reserve_session(c, d, rows, (keys + KV_BLOCK - 1) / KV_BLOCK, tiles, load->n_stop)) return;
    decode_loaded host = {};
    std::vector<unsigned char> bytes((size_t)place_loaded(host, nullptr, d->most_rows, d->most_width, d->most_stop));
    place_loaded(host, bytes.data(), d->most_rows, d->most_width, d->most_stop);
    fill_loaded(host, *load, d->most_width);
    memcpy(host.keys, cuts.data(), cuts.size() * sizeof *host.keys);
    if (!CUDA_TRY(c, cudaMemcpyAsync(d->memory, bytes.data(), bytes.size(), cudaMemcpyHostToDevice, cuda_stream(c))) ||
        !CUDA_TRY(c, cudaMemsetAsync(d->s.tiles, 0, (size_t)tiles * sizeof *d->s.tiles, cuda_stream(c))))
        return;
    d->load = *load;
    d->s.rows = (int)rows, d->s.width = (int)d->most_width, d->s.n_stop = (int)load->n_stop;
    d->s.whole = c->batch_invariant;
    d->view = decode_view{d->s.tiles, d->s.whole ? nullptr : d->s.parts, d->s.in.tables, rows, tiles, d->most_parts};
    CUDA_LAUNCH(c, decode_advance, (unsigned)rows, 64, 0, d->s, 1);
    *places = decode_places{rows,          d->s.in.ids,  d->s.in.pos, d->s.write_row, d->s.write_slot,
                            d->s.out_rows, d->s.in.draw, d->s.token,  d->s.logprob,   d->s.entropy};
}

static std::array<int64_t, 3> graph_key(const struct decode *d)
{
    return {d->s.rows, d->view.n_tiles, d->s.n_stop};
}

/* Graphs hold the address of the scratch memory, n_stop and width. They are made again if an
 * operation has needed more scratch memory. */
static decode_graph *graph_of(const struct kctx *c, struct decode *d)
{
    void *scratch = cuda_scratch(c, 256);
    if (!scratch) return nullptr;
    if (scratch != d->scratch) drop_graphs(d);
    d->scratch = scratch;
    return &d->graphs[graph_key(d)];
}

/* Tokens are issued one by one if a GPU or driver refuses to record them: a run should not end for that. */
static bool graphs_failed;

static bool graphs_wanted(void)
{
    static const char *const asked = getenv("TARE_CUDA_GRAPH");
    return !graphs_failed && !(asked && !strcmp(asked, "0"));
}

static void give_up_graphs(const char *call)
{
    const cudaError_t why = cudaGetLastError(); /* or the next launch would be blamed for it */
    if (!graphs_failed)
        fprintf(stderr, "tare: warning: CUDA graphs are not used: %s: %s; tokens are issued one by one (TARE_CUDA_GRAPH=0)\n", call,
                cudaGetErrorString(why));
    graphs_failed = true;
}

/* Ends the recording, and runs it. False: it failed, and nothing has run. */
static bool end_capture(const struct kctx *c, decode_graph *g)
{
    cudaGraph_t graph = nullptr; /* the capture must end even after a failure */
    const bool ended = cudaStreamEndCapture(cuda_stream(c), &graph) == cudaSuccess && !kernel_faulted(c);
    const bool made = ended && cudaGraphInstantiate(&g->run, graph, 0) == cudaSuccess;
    if (graph) cudaGraphDestroy(graph);
    if (made) {
        CUDA_TRY(c, cudaGraphLaunch(g->run, cuda_stream(c)));
        return true;
    }
    g->run = nullptr;
    give_up_graphs(ended ? "cudaGraphInstantiate" : "recording a token");
    /* an operation's error while it was recorded: a real one comes again when it is issued */
    if (c->fault) c->fault->code = TARE_OK;
    return false;
}

int cuda_decode_begin(const struct kctx *c, struct decode *d)
{
    CUDA_OP_OR(c, 0, "decode", "rows tiles", d->s.rows, d->view.n_tiles);
    decode_graph *g = graph_of(c, d);
    if (!g) return 0;
    if (g->run) {
        CUDA_TRY(c, cudaGraphLaunch(g->run, cuda_stream(c)));
        return 0;
    }
    d->mode = AT_ONCE;
    if (g->tried && graphs_wanted()) {
        if (cudaStreamBeginCapture(cuda_stream(c), cudaStreamCaptureModeThreadLocal) == cudaSuccess)
            d->mode = CAPTURE;
        else
            give_up_graphs("cudaStreamBeginCapture");
    }
    issuing = d;
    cuda_chain(true);
    return 1;
}

int cuda_decode_end(const struct kctx *c, struct decode *d)
{
    bool done = true;
    CUDA_LAUNCH(c, decode_advance, (unsigned)d->s.rows, 64, 0, d->s, 0);
    cuda_chain(false);
    issuing = nullptr;
    decode_graph &g = d->graphs[graph_key(d)];
    if (d->mode == CAPTURE) done = end_capture(c, &g);
    g.tried = true;
    d->mode = IDLE;
    return !done;
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
