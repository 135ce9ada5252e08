/* The kernel table: the operations on which the model, the sampler and the optimizer are built.
 * kernels/ref defines every operation in plain C, kernels/cpu overrides it for AVX2 and AVX-512,
 * and kernels/cuda is a separate shared object. kernels_ops.h defines the operations and their
 * arguments.
 *
 * Memory. Every pointer passed to an operation (tensors, index arrays, arguments per row, results)
 * points to the backend's memory (alloc). The host must not touch a device's memory; upload and
 * download copy to and from it. Only sequence descriptors (arrays of attn_seq and attn_seg, and the
 * block lists they point to) are host memory; they are read before the operation returns.
 *
 * Failures. Operations return nothing. A context's fault keeps the first failure, later operations
 * on that context do nothing, and the caller checks with kernels_finish at the end of a pass.
 */
#ifndef TARE_KERNELS_KERNELS_H
#define TARE_KERNELS_KERNELS_H

#include "base/err.h"
#include "base/pool.h"
#include "kernels_ops.h"

#include <stdbool.h>
#include <stdint.h>

/* Number of logits in a chunk of head rows. The head's weights and gradient are read once per
 * chunk, so large chunks are faster but take more memory. */
enum { HOST_LOGITS_FLOATS = 32 << 20, DEVICE_LOGITS_FLOATS = 160 << 20 };

/* The first failure on a context: the operation, its shapes and the system's error text. stage and
 * layer give the caller's position. */
struct kernel_fault {
    tare_status code;  /* TARE_OK: no failure */
    const char *stage; /* "forward pass", ...; a string literal */
    int64_t layer;     /* -1: outside any layer */
    char message[700];
};

/* Execution context of an operation. */
struct kctx {
    struct pool *pool; /* CPU threads; NULL: run on the calling thread */
    void *stream;      /* CUDA stream; NULL: the process's default */
    /* Owned by the context. An operation that uses it restores it with arena_reset before it
     * returns. */
    struct arena *scratch;
    struct kernel_fault *fault; /* owned by the caller; NULL: failures are only logged */
    /* 1: forward operations give a row bit-identical results in every batch, at some cost. The CPU
     * backends always do. */
    int batch_invariant;
};

/* Record the caller's position for failure messages. */
static inline void kernels_at(const struct kctx *c, const char *stage, int64_t layer)
{
    if (!c->fault || c->fault->code) return;
    c->fault->stage = stage;
    c->fault->layer = layer;
}

/* ---- Decoding on the device.
 *
 * A session keeps running sequences in fixed slots of the backend's memory. The operations of one
 * token are issued on those slots once and then replayed; each sampled token is the next
 * iteration's input. The host receives results after `tokens` iterations. */
struct decode_row {         /* a running sequence */
    int32_t token, pos;     /* newest token, whose key is not yet in the cache, and its position */
    int32_t remaining;      /* tokens that may still be sampled, at least 1 */
    int32_t shared;         /* as in attn_seq */
    const int32_t *blocks;  /* [ceil((pos + min(tokens, remaining)) / 16)] */
    struct sample_row draw; /* for the next token; its position increases with every token */
};

struct decode_load {
    const struct decode_row *rows; /* [n]; sequences that share leading blocks are adjacent */
    int64_t n, tokens;             /* tokens: 1 .. DECODE_TOKENS */
    const int32_t *stop;           /* ids that end a sequence */
    int64_t n_stop;
    struct attn_shape shape;
    /* Hash of the addresses of the tensors that are issued. A recording is replayed only under the
     * hash under which it was made. */
    uint64_t addresses;
};
enum { DECODE_TOKENS = 64 };

/* Slots in the backend's memory for the batch that is issued: `rows` rows, of which the first n are
 * sequences and the others write nothing. */
struct decode_places {
    int64_t rows;
    const int32_t *ids, *pos; /* [rows] */
    /* [rows]; a slot below 0: nothing is written */
    const int64_t *write_row, *write_slot, *out_rows;
    const struct sample_row *draw; /* [rows] */
    int32_t *token;                /* [rows]; destination of the operation `sample` */
    float *logprob, *entropy;
};
struct decode; /* a decoding session */

/* Memory that alloc has handed out and still has available, in bytes; see reserve. */
struct kernel_memory {
    /* of the region: size, bytes handed out, peak; region 0: no region is reserved */
    int64_t region, held, most;
    int64_t largest; /* largest free block of the region */
    /* bytes taken from the device outside the region: now, and at most since reserve */
    int64_t beyond, beyond_most;
    /* the caller's position (kernels_at) at the first such allocation; NULL: none yet */
    const char *beyond_stage;
    /* number of allocations from the device itself since reserve, including the region */
    int64_t taken;
    int64_t device; /* free memory of the device outside the region */
};

/* The memory and the queue of a backend. The host's bytes may change as soon as upload returns;
 * download has stored the bytes when it returns. */
struct backend {
    /* 1: the host must not touch alloc's memory, and operations run asynchronously until finish. */
    int device;
    /* 1: alloc only counts, and a pass also allocates its temporary tensors from it. */
    int counts;
    int64_t logits_floats; /* number of logits in a chunk of head rows */
    /* Waits for all operations issued so far and stores a failure in c->fault. NULL: operations are
     * complete when they return. */
    void (*finish)(const struct kctx *c);
    /* zeroed, 64-byte aligned; NULL: out of memory */
    void *(*alloc)(const struct kctx *c, int64_t bytes);
    void (*release)(const struct kctx *c, void *p);
    void (*upload)(const struct kctx *c, void *dst, const void *host, int64_t bytes);
    void (*download)(const struct kctx *c, void *host, const void *src, int64_t bytes);
    void (*zero)(const struct kctx *c, void *p, int64_t bytes);
    /* Largest size in bytes of a key/value cache whose size the user did not set: half of a
     * device's free memory, a quarter of the host's memory. */
    int64_t (*cache_most)(const struct kctx *c);
    /* The remaining entries are for devices and NULL on the host. memory: approximate number of
     * bytes that alloc can still provide. */
    int64_t (*memory)(const struct kctx *c);
    /* Reserves one region of the device's memory per process. From then on alloc and the
     * operations' own memory are allocated from it. Allocations that do not fit are taken from the
     * device outside the region, and counted. Returns 0 if the device cannot provide that many
     * contiguous bytes, or if a region with allocated blocks exists; an empty region is released
     * first (bytes 0: release it and reserve none). */
    int (*reserve)(const struct kctx *c, int64_t bytes);
    void (*memory_use)(const struct kctx *c, struct kernel_memory *out);
    /* The device stream on which operations are issued, so that transfers can be ordered after
     * them; NULL: none. */
    void *(*stream)(const struct kctx *c);
    /* Describes the code path chosen for this device, probing it on first use, which takes a
     * moment. Returns 0 if the line is a warning. NULL: there is nothing to report. */
    int (*about)(const struct kctx *c, char *text, int64_t size);
};

struct kernels {
    const char *name; /* "ref", "avx2", "avx512", "cuda" */
    const struct backend *backend;

    /* One entry per operation of KERNEL_OPERATIONS:
     * void NAME(const struct kctx *, const struct op_NAME *). */
#define KERNEL_ENTRY(NAME) void (*NAME)(const struct kctx *c, const struct op_##NAME *o);
    KERNEL_OPERATIONS(KERNEL_ENTRY)
#undef KERNEL_ENTRY

    /* 1: attention and its gradient support attn_shape.window; 0: window must be 0. */
    int windows;
    /* 1: operations can write rows in bf16 and products read such rows (op_matmul); 0: all rows are
     * fp32. */
    int bf16_rows;
    /* 1: the sums over rows of matmul_dw and low_rank_dw in fp32 are one chain in the order of the
     * rows, so leaving out rows of zeros changes no bit. In bf16 no backend promises it. */
    int row_chains;
    /* Size of packed weights; 0: this dtype is not supported. */
    int64_t (*packed_bytes)(int64_t n, int64_t k, enum dtype dtype);
    /* Size of packed weights in int8; NULL: int8 is not supported and `int8` of the operations must
     * be 0. */
    int64_t (*int8_bytes)(int64_t n, int64_t k, enum dtype dtype);
    /* Bytes of k (v needs as many) for n_blocks blocks of the key/value cache; NULL: fp32 in the
     * layout of struct kv_layer. A backend with this entry decides precision and layout, and only
     * its own operations read k and v. */
    int64_t (*kv_bytes)(struct attn_shape s, int64_t n_blocks);
    /* Number of rows up to which a product takes little longer than reading its weights, at least 1.
     * NULL: unknown. */
    int64_t (*few_rows)(enum dtype dtype, int int8);
    /* Low-rank products: rows are fp32 and W is packed. All three may be NULL; then the caller
     * composes them from the operations above. */
    void (*matmul_low_rank)(const struct kctx *c, const struct op_matmul_low_rank *o);
    void (*matmul_dx_low_rank)(const struct kctx *c, const struct op_matmul_dx_low_rank *o);
    void (*low_rank_dw)(const struct kctx *c, const struct op_low_rank_dw *o);
    /* Like matmul_dw, but each sum over t is a separate chain that starts at 0 and is then added to
     * dw: bit-identical to matmul_dw into zeros followed by `add`. dbias is as in matmul_dw. NULL:
     * the caller runs those two operations. */
    void (*matmul_dw_apart)(const struct kctx *c, const struct op_matmul_dw *o);

    /* Two operations in one launch: rope (not inverse), then keys and values of the same rows are
     * written to the cache, row i to slots[i] (write.n is rope.t, and write.rows[i] is i).
     * Bit-identical to the two operations. NULL: the caller runs them. */
    void (*rope_kv_write)(const struct kctx *c, const struct op_rope *rope, const struct op_kv_write *write);
    /* A product without residual, followed by swiglu of its result: product.n is 2 act.f, act.gu is
     * product.y and act.kept is NULL. Bit-identical to the two operations; the contents of y
     * afterwards are unspecified. NULL: the caller runs them. */
    void (*matmul_swiglu)(const struct kctx *c, const struct op_matmul *product, const struct op_swiglu *act);
    /* A product followed by rmsnorm of its result: norm.x is product.y, norm.heads is 1, and
     * norm.width and norm.ld are product.n. Bit-identical to the two operations. NULL: the caller
     * runs them. */
    void (*matmul_rmsnorm)(const struct kctx *c, const struct op_matmul *product, const struct op_rmsnorm *norm);

    /* ---- Decoding on the device; all NULL if the host issues every token. A context has at most
     * one session at a time.
     *   decode_load(c, d, &load, &places);
     *   for each of load.tokens:
     *       while (decode_begin(c, d)) {
     *           ... the model on places, attention without sequences, sample ...
     *           if (!decode_end(c, d)) break;
     *       }
     *   decode_read(c, d, token, logprob, entropy);
     * Results are [tokens, n]; after the end of a sequence its token is -1. The issued tensors keep
     * their addresses from a load to its read; `addresses` of the next load shows whether one has
     * moved. */
    struct decode *(*decode_open)(const struct kctx *c); /* NULL: out of memory */
    void (*decode_close)(const struct kctx *c, struct decode *d);
    void (*decode_load)(const struct kctx *c, struct decode *d, const struct decode_load *load, struct decode_places *places);
    /* 0: the token was replayed, so there is nothing to issue. */
    int (*decode_begin)(const struct kctx *c, struct decode *d);
    /* Not 0: nothing was done, because it could not be recorded; the same token is issued again. */
    int (*decode_end)(const struct kctx *c, struct decode *d);
    /* Waits for the results. */
    void (*decode_read)(const struct kctx *c, struct decode *d, int32_t *token, float *logprob, float *entropy);
};

/* Call an operation with its arguments by name; omitted arguments are 0 or NULL:
 *   KERNEL(k, c, add, .y = y, .x = x, .n = n); */
#define KERNEL(K, C, NAME, ...) (K)->NAME((C), &(struct op_##NAME){__VA_ARGS__})

/* Select the fastest table that this CPU can run. TARE_CPU=ref|avx2|avx512|avx512bf16|amx restricts
 * the choice; name, if not NULL, overrides TARE_CPU. An unknown name, or one that this CPU cannot
 * run, is an error. */
tare_status kernels_cpu(const char *name, const struct kernels **out, struct err *e);
/* Make a table that computes nothing: allocations have a size but no bytes, operations return at
 * once, and every sampled token is 0. core/plan replays a run's allocations on it and reads
 * memory_use, which counts for the calling thread. reserve sets the machine's memory (0: unknown).
 * like is the table whose sizes are used; NULL: those of the CUDA backend. */
void kernels_counting(const struct kernels *like, struct kernels *out);
/* Open libtare_cuda.so once per process (TARE_CUDA=FILE, next to the program, in ../lib/tare, or in
 * the loader's search path) on GPU `local` modulo the number of GPUs. `local` is the process's
 * number on this machine. A missing object, driver or GPU is an error whose one line names the
 * cause. */
tare_status kernels_cuda(int local, const struct kernels **out, struct err *e);
/* Copies for backends with their own memory. kernels_place makes host bytes readable by operations,
 * kernels_fetch makes operands readable by the host; each copies through `staging`, a buffer of
 * kernels_staging_bytes(k, bytes) bytes on the reading side, and returns the readable bytes. If
 * both are one memory, that size is 0, staging is NULL and the given pointer is returned. */
int64_t kernels_staging_bytes(const struct kernels *k, int64_t bytes);
const void *kernels_place(const struct kernels *k, const struct kctx *c, void *staging, const void *host, int64_t bytes);
const void *kernels_fetch(const struct kernels *k, const struct kctx *c, void *staging, const void *bytes_there, int64_t bytes);
/* Open the table chosen by run.device and run.kernels: kernels is "auto" or a name accepted by
 * kernels_cpu (device = cpu). */
tare_status kernels_open(bool cuda, const char *name, int local, const struct kernels **out, struct err *e);
/* Wait, then turn a fault of the context into an error with stage, layer, operation and shapes. */
tare_status kernels_finish(const struct kernels *k, const struct kctx *c, struct err *e);

/* Return the reason why alloc failed: the context's fault, or TARE_E_NOMEM with the purpose of the
 * memory, the bytes requested and the bytes available. */
tare_status kernels_no_memory(const struct kernels *k, const struct kctx *c, const char *what, int64_t bytes, struct err *e);

/* Interface between the program and libtare_cuda.so, which exports one symbol. abi is KERNELS_ABI;
 * text receives the reason of a failure, in one line. */
#define KERNELS_ABI ((UINT64_C(6) << 32) + (sizeof(struct kernels) + sizeof(struct backend)) * 4096 + sizeof(struct kctx))
typedef const struct kernels *(*kernels_cuda_entry)(uint64_t abi, int local, char *text, int64_t size);
#define KERNELS_CUDA_ENTRY "tare_cuda_open"

#endif
