/* A device that is none: the CPU's reference operations over memory that the host cannot touch, as a libtare_cuda.so (TARE_CUDA=this file,
 * run.device = cuda). The region is mapped twice: the addresses that are handed out cannot be read or written, the operations work on the other mapping.
 * So host code that touches the device's memory dies of a signal, and an operation that is given the host's memory says so. Results have the CPU's
 * bits, and a run on this device must be the run on the CPU. */
#define _GNU_SOURCE
#include "kernels.h"

#include "base/arena.h"
#include "region.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

static const int64_t MAPPED = INT64_C(4) << 30;

static struct fake {
    const struct kernels *cpu;
    char *outside, *inside; /* the mapping that is handed out; the one that works */
    struct region device;   /* what there is: all that is mapped, or TARE_FAKE_MEMORY bytes */
    struct region reserved; /* a piece of it, cut in pieces again (kernels.h, reserve) */
    int64_t reserved_at, beyond, beyond_most, taken;
    const char *beyond_stage;
    int64_t calls, fail_at, invariant; /* operations; the one that fails; those that were asked for batch_invariant */
    const char *report;                /* TARE_FAKE_REPORT: a file that gets a line about memory when the process ends */
    struct arena scratch;
} fake;

static void die(const char *op, const char *what)
{
    fprintf(stderr, "fake device: %s: %s\n", op, what);
    abort();
}

/* The working address of a device pointer; NULL stays. */
static void *translate(const char *op, const void *p)
{
    const char *at = p;
    if (!p) return NULL;
    if (at < fake.outside || at >= fake.outside + MAPPED) die(op, "was given a pointer that is not the device's memory");
    return fake.inside + (at - fake.outside);
}

static const void *host(const char *op, const void *p)
{
    const char *at = p;
    if (at >= fake.outside && at < fake.outside + MAPPED) die(op, "was given the device's memory where the host's has to be");
    return p;
}
#define T(P) translate(__func__, (P))
#define H(P) host(__func__, (P))

/* The first failure stays; TARE_FAKE_FAIL=N makes operation N fail, as a device that is lost. */
static int runs(const struct kctx *c, const char *op)
{
    fake.calls++;
    fake.invariant += c->batch_invariant != 0;
    if (!c->fault) die(op, "the context has no place for a fault");
    if (c->fault->code) return 0;
    if (!fake.fail_at || fake.calls < fake.fail_at) return 1;
    c->fault->code = TARE_E_DEVICE;
    snprintf(c->fault->message, sizeof c->fault->message, "%s: the device was lost", op);
    return 0;
}
#define RUN(C)                                                                                                                     \
    struct kctx own = *(C);                                                                                                        \
    own.scratch = &fake.scratch;                                                                                                   \
    (void)own;                                                                                                                     \
    if (!runs((C), __func__)) return

/* From the device itself; -1: it has no more. */
static int64_t take_beside(const struct kctx *c, int64_t bytes)
{
    const int64_t at = region_take(&fake.device, bytes);
    if (at < 0) return -1;
    fake.taken++;
    fake.beyond += region_round(bytes);
    if (fake.beyond > fake.beyond_most) fake.beyond_most = fake.beyond;
    if (fake.reserved.size && !fake.beyond_stage)
        fake.beyond_stage = c->fault && c->fault->stage ? c->fault->stage : "an operation";
    return at;
}

static void *fake_alloc(const struct kctx *c, int64_t bytes)
{
    if (c->fault && c->fault->code) return NULL;
    int64_t at = fake.reserved.size ? region_take(&fake.reserved, bytes) : -1;
    at = at < 0 ? take_beside(c, bytes) : fake.reserved_at + at;
    if (at < 0) return NULL;
    memset(fake.inside + at, 0, (size_t)region_round(bytes));
    return fake.outside + at;
}

static void fake_release(const struct kctx *c, void *pointer)
{
    (void)c;
    if (!pointer) return;
    const int64_t at = (char *)pointer - fake.outside, place = at - fake.reserved_at;
    const int64_t reserved =
        fake.reserved.size && place >= 0 && place < fake.reserved.size ? region_give(&fake.reserved, place) : 0;
    const int64_t beside = reserved ? 0 : region_give(&fake.device, at);
    if (!reserved && !beside) die("release", "of memory that was not allocated");
    fake.beyond -= beside;
    memset(fake.inside + at, 0xff, (size_t)(reserved + beside));
}

static int fake_reserve(const struct kctx *c, int64_t bytes)
{
    const int64_t size = region_round(bytes);
    (void)c;
    if (fake.reserved.held) return 0;
    if (fake.reserved.size) region_give(&fake.device, fake.reserved_at);
    region_close(&fake.reserved);
    fake.taken = 0, fake.beyond_most = fake.beyond, fake.beyond_stage = NULL;
    if (bytes <= 0) return 1;
    fake.reserved_at = region_take(&fake.device, size);
    if (fake.reserved_at < 0 || !region_open(&fake.reserved, size)) return 0;
    fake.taken = 1;
    return 1;
}

static void fake_memory_use(const struct kctx *c, struct kernel_memory *out)
{
    (void)c;
    *out = (struct kernel_memory){.region = fake.reserved.size,
                                  .held = fake.reserved.held,
                                  .most = fake.reserved.most,
                                  .largest = region_largest(&fake.reserved),
                                  .beyond = fake.beyond,
                                  .beyond_most = fake.beyond_most,
                                  .beyond_stage = fake.beyond_stage,
                                  .taken = fake.taken,
                                  .device = fake.device.size - fake.device.held};
}

static void report(void)
{
    FILE *f = fopen(fake.report, "a");
    if (!f) return;
    fprintf(f, "region %lld most %lld taken %lld beyond %lld invariant %lld of %lld\n", (long long)fake.reserved.size,
            (long long)fake.reserved.most, (long long)fake.taken, (long long)fake.beyond_most, (long long)fake.invariant,
            (long long)fake.calls);
    fclose(f);
}

static void fake_upload(const struct kctx *c, void *to, const void *from, int64_t bytes)
{
    RUN(c);
    memcpy(T(to), H(from), (size_t)bytes);
}

static void fake_download(const struct kctx *c, void *to, const void *from, int64_t bytes)
{
    RUN(c);
    memcpy((void *)(uintptr_t)H(to), T(from), (size_t)bytes);
}

static void fake_zero(const struct kctx *c, void *p, int64_t bytes)
{
    RUN(c);
    memset(T(p), 0, (size_t)bytes);
}

static void fake_finish(const struct kctx *c)
{
    runs(c, __func__);
}

static int64_t fake_memory(const struct kctx *c)
{
    struct kernel_memory m;
    fake_memory_use(c, &m);
    return m.device + m.region - m.held;
}

static int64_t fake_packed_bytes(int64_t n, int64_t k, enum dtype dtype)
{
    return fake.cpu->packed_bytes(n, k, dtype);
}

static void fake_pack(const struct kctx *c, void *packed, const float *w, int64_t n, int64_t k, enum dtype dtype)
{
    RUN(c);
    fake.cpu->pack(&own, T(packed), T(w), n, k, dtype);
}

static void fake_matmul(const struct kctx *c, float *y, int64_t ldy, const float *x, const void *packed, const float *bias,
                        const float *residual, int64_t t, int64_t n, int64_t k, enum dtype dtype)
{
    RUN(c);
    fake.cpu->matmul(&own, T(y), ldy, T(x), T(packed), T(bias), T(residual), t, n, k, dtype);
}

static void fake_matmul_dx(const struct kctx *c, float *dx, const float *dy, const float *w, int64_t t, int64_t n, int64_t k,
                           int accumulate, enum dtype dtype)
{
    RUN(c);
    fake.cpu->matmul_dx(&own, T(dx), T(dy), T(w), t, n, k, accumulate, dtype);
}

static void fake_matmul_dw(const struct kctx *c, float *dw, float *dbias, const float *dy, const float *x, int64_t t, int64_t n,
                           int64_t k, enum dtype dtype)
{
    RUN(c);
    fake.cpu->matmul_dw(&own, T(dw), T(dbias), T(dy), T(x), t, n, k, dtype);
}

static void fake_embed(const struct kctx *c, float *x, const float *table, const int32_t *ids, int64_t t, int64_t width)
{
    RUN(c);
    fake.cpu->embed(&own, T(x), T(table), T(ids), t, width);
}

static void fake_embed_grad(const struct kctx *c, float *dtable, const float *dx, const int32_t *ids, int64_t t, int64_t width)
{
    RUN(c);
    fake.cpu->embed_grad(&own, T(dtable), T(dx), T(ids), t, width);
}

static void fake_rmsnorm(const struct kctx *c, float *y, int64_t ldy, float *rms, const float *x, int64_t ldx, const float *w,
                         int64_t t, int64_t heads, int64_t width, float eps)
{
    RUN(c);
    fake.cpu->rmsnorm(&own, T(y), ldy, T(rms), T(x), ldx, T(w), t, heads, width, eps);
}

static void fake_rmsnorm_grad(const struct kctx *c, float *dx, int64_t lddx, float *dw, const float *dy, int64_t lddy,
                              const float *x, int64_t ldx, const float *w, const float *rms, int64_t t, int64_t heads,
                              int64_t width, int accumulate)
{
    RUN(c);
    fake.cpu->rmsnorm_grad(&own, T(dx), lddx, T(dw), T(dy), lddy, T(x), ldx, T(w), T(rms), t, heads, width, accumulate);
}

static void fake_rope(const struct kctx *c, float *x, int64_t ld, const float *table, const int32_t *pos, int64_t t,
                      int64_t n_heads, int64_t head_dim, int inverse)
{
    RUN(c);
    fake.cpu->rope(&own, T(x), ld, T(table), T(pos), t, n_heads, head_dim, inverse);
}

static void fake_kv_write(const struct kctx *c, struct kv_layer kv, const float *qkv, struct attn_shape s, const int64_t *rows,
                          const int64_t *slots, int64_t n)
{
    RUN(c);
    fake.cpu->kv_write(&own, (struct kv_layer){T(kv.k), T(kv.v)}, T(qkv), s, T(rows), T(slots), n);
}

static void fake_kv_copy(const struct kctx *c, struct kv_layer kv, struct attn_shape s, const int32_t *to_block,
                         const int32_t *from_block, int64_t n)
{
    RUN(c);
    fake.cpu->kv_copy(&own, (struct kv_layer){T(kv.k), T(kv.v)}, s, T(to_block), T(from_block), n);
}

static void fake_attention(const struct kctx *c, float *out, float *stats, const float *qkv, struct kv_layer kv,
                           struct attn_shape s, const struct attn_seq *seqs, int64_t n_seqs)
{
    RUN(c);
    for (int64_t i = 0; i < n_seqs; i++) H(seqs[i].blocks);
    fake.cpu->attention(&own, T(out), T(stats), T(qkv), (struct kv_layer){T(kv.k), T(kv.v)}, s, H(seqs), n_seqs);
}

static void fake_attention_grad(const struct kctx *c, float *dqkv, const float *dout, const float *out, const float *stats,
                                const float *qkv, struct attn_shape s, const struct attn_seg *segs, int64_t n_segs, int64_t t)
{
    RUN(c);
    fake.cpu->attention_grad(&own, T(dqkv), T(dout), T(out), T(stats), T(qkv), s, H(segs), n_segs, t);
}

static void fake_swiglu(const struct kctx *c, float *act, const float *gu, int64_t t, int64_t f)
{
    RUN(c);
    fake.cpu->swiglu(&own, T(act), T(gu), t, f);
}

static void fake_swiglu_grad(const struct kctx *c, float *dgu, const float *dact, const float *gu, int64_t t, int64_t f)
{
    RUN(c);
    fake.cpu->swiglu_grad(&own, T(dgu), T(dact), T(gu), t, f);
}

static void fake_head_stats(const struct kctx *c, float *logprob, float *entropy, float *lse, const float *logits, int64_t ld,
                            const int32_t *target, float temperature, int64_t r, int64_t v)
{
    RUN(c);
    fake.cpu->head_stats(&own, T(logprob), T(entropy), T(lse), T(logits), ld, T(target), temperature, r, v);
}

static void fake_head_kl(const struct kctx *c, float *kl, const float *logits, const float *lse, const float *ref_logits,
                         const float *ref_lse, int64_t ld, float temperature, int64_t r, int64_t v)
{
    RUN(c);
    fake.cpu->head_kl(&own, T(kl), T(logits), T(lse), T(ref_logits), T(ref_lse), ld, temperature, r, v);
}

static void fake_head_grad(const struct kctx *c, float *logits, int64_t ld, const int32_t *target, const float *lse,
                           const float *entropy, const float *ref_logits, const float *ref_lse, const float *kl,
                           const struct head_grad_row *coef, float temperature, int64_t r, int64_t v)
{
    RUN(c);
    fake.cpu->head_grad(&own, T(logits), ld, T(target), T(lse), T(entropy), T(ref_logits), T(ref_lse), T(kl), T(coef), temperature,
                        r, v);
}

static void fake_sample(const struct kctx *c, int32_t *token, float *logprob, float *entropy, const float *logits, int64_t ld,
                        const struct sample_row *rows, int64_t r, int64_t v)
{
    RUN(c);
    fake.cpu->sample(&own, T(token), T(logprob), T(entropy), T(logits), ld, T(rows), r, v);
}

static void fake_add(const struct kctx *c, float *y, const float *x, int64_t n)
{
    RUN(c);
    fake.cpu->add(&own, T(y), T(x), n);
}

static void fake_gather_rows(const struct kctx *c, float *y, const float *x, const int64_t *rows, int64_t n, int64_t width)
{
    RUN(c);
    fake.cpu->gather_rows(&own, T(y), T(x), T(rows), n, width);
}

static void fake_scatter_add_rows(const struct kctx *c, float *y, const float *x, const int64_t *rows, int64_t n, int64_t width)
{
    RUN(c);
    fake.cpu->scatter_add_rows(&own, T(y), T(x), T(rows), n, width);
}

static double fake_sum_squares(const struct kctx *c, const float *x, int64_t n)
{
    RUN(c) 0;
    return fake.cpu->sum_squares(&own, T(x), n);
}

static void fake_block_squares(const struct kctx *c, double *out, const float *x, int64_t n, int64_t block)
{
    RUN(c);
    for (int64_t at = 0; at < n; at += block)
        *(double *)(uintptr_t)H(out++) = fake.cpu->sum_squares(&own, T(x + at), n - at < block ? n - at : block);
}

static void fake_adamw(const struct kctx *c, float *p, const float *g, float *m, float *v, int64_t n, float grad_scale, float lr,
                       float beta1, float beta2, float eps, float decay, double correct1, double correct2)
{
    RUN(c);
    fake.cpu->adamw(&own, T(p), T(g), T(m), T(v), n, grad_scale, lr, beta1, beta2, eps, decay, correct1, correct2);
}

static const struct kernels table = {
    .name = "fake",
    .device = 1,
    .finish = fake_finish,
    .alloc = fake_alloc,
    .release = fake_release,
    .upload = fake_upload,
    .download = fake_download,
    .zero = fake_zero,
    .memory = fake_memory,
    .reserve = fake_reserve,
    .memory_use = fake_memory_use,
    .packed_bytes = fake_packed_bytes,
    .pack = fake_pack,
    .matmul = fake_matmul,
    .matmul_dx = fake_matmul_dx,
    .matmul_dw = fake_matmul_dw,
    .embed = fake_embed,
    .embed_grad = fake_embed_grad,
    .rmsnorm = fake_rmsnorm,
    .rmsnorm_grad = fake_rmsnorm_grad,
    .rope = fake_rope,
    .kv_write = fake_kv_write,
    .kv_copy = fake_kv_copy,
    .attention = fake_attention,
    .attention_grad = fake_attention_grad,
    .swiglu = fake_swiglu,
    .swiglu_grad = fake_swiglu_grad,
    .head_stats = fake_head_stats,
    .head_kl = fake_head_kl,
    .head_grad = fake_head_grad,
    .sample = fake_sample,
    .add = fake_add,
    .gather_rows = fake_gather_rows,
    .scatter_add_rows = fake_scatter_add_rows,
    .sum_squares = fake_sum_squares,
    .block_squares = fake_block_squares,
    .adamw = fake_adamw,
};

TARE_EXPORT const struct kernels *tare_cuda_open(uint64_t abi, int local, char *text, int64_t size);
const struct kernels *tare_cuda_open(uint64_t abi, int local, char *text, int64_t size)
{
    struct err e;
    const char *fail = getenv("TARE_FAKE_FAIL"), *memory = getenv("TARE_FAKE_MEMORY");
    const int64_t bytes = memory ? strtoll(memory, NULL, 10) / REGION_ALIGN * REGION_ALIGN : MAPPED;
    (void)local;
    if (abi != KERNELS_ABI) {
        snprintf(text, (size_t)size, "the fake device was built for another version of tare; build both again");
        return NULL;
    }
    if (kernels_cpu(NULL, &fake.cpu, &e)) {
        snprintf(text, (size_t)size, "%s", e.message);
        return NULL;
    }
    const int file = memfd_create("fake device", 0);
    if (file < 0 || ftruncate(file, MAPPED)) {
        snprintf(text, (size_t)size, "no memory for the fake device");
        return NULL;
    }
    fake.outside = mmap(NULL, (size_t)MAPPED, PROT_NONE, MAP_SHARED | MAP_NORESERVE, file, 0);
    fake.inside = mmap(NULL, (size_t)MAPPED, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_NORESERVE, file, 0);
    close(file);
    if (fake.outside == MAP_FAILED || fake.inside == MAP_FAILED) {
        snprintf(text, (size_t)size, "no address space for the fake device");
        return NULL;
    }
    if (bytes <= 0 || bytes > MAPPED || !region_open(&fake.device, bytes)) {
        snprintf(text, (size_t)size, "TARE_FAKE_MEMORY = %s: more than 0 and at most 4 GiB", memory);
        return NULL;
    }
    fake.fail_at = fail ? strtoll(fail, NULL, 10) : 0;
    fake.report = getenv("TARE_FAKE_REPORT");
    if (fake.report) atexit(report);
    arena_init(&fake.scratch, "fake device");
    return &table;
}
