/* The backend that computes nothing (kernels_counting). An allocation is a header that holds its
 * size; its bytes do not exist. */
#include "sizes.h"

#include <stdlib.h>
#include <string.h>

/* region: memory of the machine for which the run is planned; 0: unlimited */
static _Thread_local struct kernel_memory counted;

struct block {
    int64_t bytes;
};

static void *counting_alloc(const struct kctx *c, int64_t bytes)
{
    struct block *p = malloc(sizeof *p);
    (void)c;
    if (!p) return NULL;
    p->bytes = bytes;
    counted.held += bytes;
    if (counted.held > counted.most) counted.most = counted.held;
    return p;
}

static void counting_release(const struct kctx *c, void *p)
{
    (void)c;
    counted.held -= ((struct block *)p)->bytes;
    free(p);
}

static void counting_upload(const struct kctx *c, void *dst, const void *host, int64_t bytes)
{
    (void)c, (void)dst, (void)host, (void)bytes;
}

static void counting_download(const struct kctx *c, void *host, const void *src, int64_t bytes)
{
    (void)c, (void)src;
    memset(host, 0, (size_t)bytes);
}

static void counting_zero(const struct kctx *c, void *p, int64_t bytes)
{
    (void)c, (void)p, (void)bytes;
}

static int counting_reserve(const struct kctx *c, int64_t bytes)
{
    (void)c;
    counted.region = bytes;
    return 1;
}

static void counting_use(const struct kctx *c, struct kernel_memory *out)
{
    (void)c;
    *out = counted;
}

static int64_t host_cache_most(const struct kctx *c)
{
    (void)c;
    return counted.region ? counted.region / 4 : INT64_MAX;
}

static int64_t gpu_cache_most(const struct kctx *c)
{
    (void)c;
    if (!counted.region) return INT64_MAX;
    return counted.region > counted.held ? (counted.region - counted.held) / 2 : 0;
}

#define COUNTING                                                                                                                   \
    .counts = 1, .alloc = counting_alloc, .release = counting_release, .upload = counting_upload, .download = counting_download,   \
    .zero = counting_zero, .reserve = counting_reserve, .memory_use = counting_use
static const struct backend COUNTING_HOST = {COUNTING, .logits_floats = HOST_LOGITS_FLOATS, .cache_most = host_cache_most};
static const struct backend COUNTING_GPU = {COUNTING, .device = 1, .logits_floats = DEVICE_LOGITS_FLOATS,
                                            .cache_most = gpu_cache_most};

/* ---- operations */

#define NOTHING(NAME)                                                                                                              \
    static void counting_##NAME(const struct kctx *c, const struct op_##NAME *o)                                                   \
    {                                                                                                                              \
        (void)c, (void)o;                                                                                                          \
    }
KERNEL_OPERATIONS(NOTHING)

NOTHING(matmul_low_rank)
NOTHING(matmul_dx_low_rank)
NOTHING(low_rank_dw)

/* On the host the caller reads the tokens in place; on a device it downloads them. */
static void counting_sample_zeros(const struct kctx *c, const struct op_sample *o)
{
    (void)c;
    memset(o->token, 0, (size_t)o->r * sizeof *o->token);
    memset(o->logprob, 0, (size_t)o->r * sizeof *o->logprob);
    if (o->entropy) memset(o->entropy, 0, (size_t)o->r * sizeof *o->entropy);
}

static void counting_rope_kv_write(const struct kctx *c, const struct op_rope *rope, const struct op_kv_write *write)
{
    (void)c, (void)rope, (void)write;
}

static void counting_matmul_swiglu(const struct kctx *c, const struct op_matmul *product, const struct op_swiglu *act)
{
    (void)c, (void)product, (void)act;
}

static void counting_matmul_rmsnorm(const struct kctx *c, const struct op_matmul *product, const struct op_rmsnorm *norm)
{
    (void)c, (void)product, (void)norm;
}

/* ---- decoding: nothing is issued, and every sequence gets token 0 */

struct decode {
    int64_t tokens; /* tokens of all rows of the last load */
};

static struct decode *counting_decode_open(const struct kctx *c)
{
    (void)c;
    return calloc(1, sizeof(struct decode));
}

static void counting_decode_close(const struct kctx *c, struct decode *d)
{
    (void)c;
    free(d);
}

static void counting_decode_load(const struct kctx *c, struct decode *d, const struct decode_load *load,
                                 struct decode_places *places)
{
    (void)c;
    d->tokens = load->n * load->tokens;
    *places = (struct decode_places){.rows = load->n};
}

static int counting_decode_begin(const struct kctx *c, struct decode *d)
{
    (void)c, (void)d;
    return 0;
}

static void counting_decode_read(const struct kctx *c, struct decode *d, int32_t *token, float *logprob, float *entropy)
{
    (void)c;
    memset(token, 0, (size_t)d->tokens * sizeof *token);
    memset(logprob, 0, (size_t)d->tokens * sizeof *logprob);
    memset(entropy, 0, (size_t)d->tokens * sizeof *entropy);
}

void kernels_counting(const struct kernels *like, struct kernels *out)
{
    const bool device = !like || like->backend->device;
#define ENTRY(NAME) .NAME = counting_##NAME,
    *out = (struct kernels){.name = "counting",
                            .backend = device ? &COUNTING_GPU : &COUNTING_HOST,
                            .windows = like ? like->windows : 0,
                            .bf16_rows = like ? like->bf16_rows : 1,
                            .row_chains = like ? like->row_chains : 0,
                            .packed_bytes = like ? like->packed_bytes : gpu_packed_bytes,
                            .int8_bytes = like ? like->int8_bytes : NULL,
                            .kv_bytes = like ? like->kv_bytes : gpu_kv_bytes,
                            .few_rows = like ? like->few_rows : NULL,
                            .matmul_dw_apart = counting_matmul_dw,
                            KERNEL_OPERATIONS(ENTRY)};
#undef ENTRY
    if (!device) out->sample = counting_sample_zeros;
    if (!like || like->rope_kv_write) out->rope_kv_write = counting_rope_kv_write;
    if (!like || like->matmul_swiglu) out->matmul_swiglu = counting_matmul_swiglu;
    if (!like || like->matmul_rmsnorm) out->matmul_rmsnorm = counting_matmul_rmsnorm;
    if (like && like->matmul_low_rank) {
        out->matmul_low_rank = counting_matmul_low_rank;
        out->matmul_dx_low_rank = counting_matmul_dx_low_rank;
        out->low_rank_dw = counting_low_rank_dw;
    }
    if (like && !like->decode_open) return;
    out->decode_open = counting_decode_open;
    out->decode_close = counting_decode_close;
    out->decode_load = counting_decode_load;
    out->decode_begin = counting_decode_begin;
    out->decode_read = counting_decode_read;
}
