/* An emulated device: the CPU's reference operations over memory that the host cannot access, as
 * a libtare_cuda.so (TARE_CUDA=this file, run.device = cuda). The region is mapped twice: the
 * addresses given to the program cannot be read or written, and the operations use the other
 * mapping. So host code that accesses the device's memory dies of a signal, and an operation
 * that is given the host's memory reports it. Results are bit-identical to the CPU's, and so is
 * a run on this device. */
#define _GNU_SOURCE
#include "kernels.h"

#include "base/arena.h"
#include "exact.h"
#include "region.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

static const int64_t MAPPED = INT64_C(4) << 30;

static struct fake {
    const struct kernels *cpu;
    char *outside, *inside; /* the mapping given to the program; the one used by operations */
    struct region device;   /* the capacity: all that is mapped, or TARE_FAKE_MEMORY bytes */
    struct region reserved; /* a part of it, divided again (kernels.h, reserve) */
    int64_t reserved_at, beyond, beyond_most, taken;
    const char *beyond_stage;
    /* Operations; the one that fails; those that were asked for batch_invariant. */
    int64_t calls, fail_at, invariant;
    struct waits { /* the number of times that the host waited for the device, by stage */
        const char *stage;
        int64_t n, bytes; /* bytes copied to the host */
    } waits[16];
    const char *report; /* TARE_FAKE_REPORT: a file that gets a line when the process ends */
    struct arena scratch;
} fake;

static void die(const char *op, const char *what)
{
    fprintf(stderr, "fake device: %s: %s\n", op, what);
    abort();
}

/* Returns the working address of a device pointer; NULL stays NULL. */
static void *translate(const char *op, const void *p)
{
    const char *at = p;
    if (!p) return NULL;
    if (at < fake.outside || at >= fake.outside + MAPPED) die(op, "got a pointer outside of the device's memory");
    return fake.inside + (at - fake.outside);
}

static const void *host(const char *op, const void *p)
{
    const char *at = p;
    if (at >= fake.outside && at < fake.outside + MAPPED) die(op, "got the device's memory instead of the host's");
    return p;
}
#define T(P) translate(__func__, (P))
#define H(P) host(__func__, (P))

/* The first failure stays. TARE_FAKE_FAIL=N makes operation N fail, like a lost device. */
static int runs(const struct kctx *c, const char *op)
{
    fake.calls++;
    fake.invariant += c->batch_invariant != 0;
    if (!c->fault) die(op, "the context has no error to write to");
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

static void waited(const struct kctx *c, int64_t bytes)
{
    const char *stage = c->fault && c->fault->stage ? c->fault->stage : "the start";
    struct waits *w = fake.waits;
    while (w->stage && strcmp(w->stage, stage)) w++;
    if (w == fake.waits + 15) die("waits", "too many stages");
    w->stage = stage;
    w->n++;
    w->bytes += bytes;
}

/* Allocates from the device itself; -1: it has no more memory. */
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
    for (const struct waits *w = fake.waits; w->stage; w++)
        fprintf(f, "waits %lld bytes %lld in %s\n", (long long)w->n, (long long)w->bytes, w->stage);
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
    waited(c, bytes);
    memcpy((void *)(uintptr_t)H(to), T(from), (size_t)bytes);
}

static void fake_zero(const struct kctx *c, void *p, int64_t bytes)
{
    RUN(c);
    memset(T(p), 0, (size_t)bytes);
}

static void fake_finish(const struct kctx *c)
{
    waited(c, 0);
    runs(c, __func__);
}

static int64_t fake_memory(const struct kctx *c)
{
    struct kernel_memory m;
    fake_memory_use(c, &m);
    return m.device + m.region - m.held;
}

static int64_t fake_cache_most(const struct kctx *c)
{
    return fake_memory(c) / 2;
}

static int64_t fake_packed_bytes(int64_t n, int64_t k, enum dtype dtype)
{
    return fake.cpu->packed_bytes(n, k, dtype);
}

#include "rows.h"

/* Runs an operation of the CPU on the working addresses of its pointers. */
#define OPERATION(NAME)                                                                                                            \
    RUN(c);                                                                                                                        \
    struct op_##NAME work = *o

static void fake_pack(const struct kctx *c, const struct op_pack *o)
{
    OPERATION(pack);
    work.packed = T(o->packed);
    work.w = T(o->w);
    fake.cpu->pack(&own, &work);
}

static void fake_matmul(const struct kctx *c, const struct op_matmul *o)
{
    OPERATION(matmul);
    work.y = T(o->y);
    work.x = widened(__func__, T(o->x), o->x_dtype, o->t * o->k);
    work.x_dtype = DTYPE_F32;
    work.packed = T(o->packed);
    work.bias = T(o->bias);
    work.residual = T(o->residual);
    fake.cpu->matmul(&own, &work);
    narrowed(NULL, work.x, o->x_dtype, 0);
}

static void fake_matmul_dx(const struct kctx *c, const struct op_matmul_dx *o)
{
    OPERATION(matmul_dx);
    work.dx = T(o->dx);
    work.dy = widened(__func__, T(o->dy), o->dy_dtype, o->t * o->n);
    work.dy_dtype = DTYPE_F32;
    work.packed = T(o->packed);
    fake.cpu->matmul_dx(&own, &work);
    narrowed(NULL, work.dy, o->dy_dtype, 0);
}

static void product_dw(const struct kctx *c, const struct op_matmul_dw *o,
                       void (*run)(const struct kctx *c, const struct op_matmul_dw *o))
{
    struct op_matmul_dw work = *o;
    work.dw = T(o->dw);
    work.dbias = T(o->dbias);
    work.dy = widened(__func__, T(o->dy), o->dy_dtype, o->t * o->n);
    work.dy_dtype = DTYPE_F32;
    work.x = widened(__func__, T(o->x), o->x_dtype, o->t * o->k);
    work.x_dtype = DTYPE_F32;
    run(c, &work);
    narrowed(NULL, work.dy, o->dy_dtype, 0);
    narrowed(NULL, work.x, o->x_dtype, 0);
}

static void fake_matmul_dw(const struct kctx *c, const struct op_matmul_dw *o)
{
    RUN(c);
    product_dw(&own, o, fake.cpu->matmul_dw);
}

static void fake_matmul_dw_apart(const struct kctx *c, const struct op_matmul_dw *o)
{
    RUN(c);
    product_dw(&own, o, fake.cpu->matmul_dw_apart);
}

static void fake_embed(const struct kctx *c, const struct op_embed *o)
{
    OPERATION(embed);
    work.x = T(o->x);
    work.table = T(o->table);
    work.ids = T(o->ids);
    fake.cpu->embed(&own, &work);
}

static void fake_embed_grad(const struct kctx *c, const struct op_embed_grad *o)
{
    OPERATION(embed_grad);
    work.dtable = T(o->dtable);
    work.dx = T(o->dx);
    work.ids = T(o->ids);
    fake.cpu->embed_grad(&own, &work);
}

static void fake_rmsnorm(const struct kctx *c, const struct op_rmsnorm *o)
{
    OPERATION(rmsnorm);
    const int64_t n = o->t * o->ld;
    if (o->y_dtype != DTYPE_F32 && o->ld != o->heads * o->width) die(__func__, "rows in bf16 must be contiguous");
    work.y = wide_room(__func__, T(o->y), o->y_dtype, n);
    work.y_dtype = DTYPE_F32;
    work.rms = T(o->rms);
    work.x = T(o->x);
    work.w = T(o->w);
    fake.cpu->rmsnorm(&own, &work);
    narrowed(T(o->y), work.y, o->y_dtype, n);
}

static void fake_rmsnorm_grad(const struct kctx *c, const struct op_rmsnorm_grad *o)
{
    OPERATION(rmsnorm_grad);
    work.dx = T(o->dx);
    work.dw = T(o->dw);
    work.dy = T(o->dy);
    work.x = T(o->x);
    work.w = T(o->w);
    work.rms = T(o->rms);
    fake.cpu->rmsnorm_grad(&own, &work);
}

static void fake_rope(const struct kctx *c, const struct op_rope *o)
{
    OPERATION(rope);
    work.x = T(o->x);
    work.table = T(o->table);
    work.pos = T(o->pos);
    fake.cpu->rope(&own, &work);
}

static void fake_kv_write(const struct kctx *c, const struct op_kv_write *o)
{
    OPERATION(kv_write);
    work.kv.k = T(o->kv.k);
    work.kv.v = T(o->kv.v);
    work.qkv = T(o->qkv);
    work.rows = T(o->rows);
    work.slots = T(o->slots);
    fake.cpu->kv_write(&own, &work);
}

static void fake_kv_copy(const struct kctx *c, const struct op_kv_copy *o)
{
    OPERATION(kv_copy);
    work.kv.k = T(o->kv.k);
    work.kv.v = T(o->kv.v);
    work.to = T(o->to);
    work.from = T(o->from);
    fake.cpu->kv_copy(&own, &work);
}

static void fake_attention(const struct kctx *c, const struct op_attention *o)
{
    OPERATION(attention);
    for (int64_t i = 0; i < o->n_seqs; i++) H(o->seqs[i].blocks);
    H(o->seqs);
    const int64_t width = o->shape.heads * o->shape.head_dim;
    int64_t rows = 0;
    for (int64_t i = 0; i < o->n_seqs; i++)
        if (o->seqs[i].q_begin + o->seqs[i].q_len > rows) rows = o->seqs[i].q_begin + o->seqs[i].q_len;
    work.out = wide_room(__func__, T(o->out), o->out_dtype, rows * width);
    work.out_dtype = DTYPE_F32;
    work.stats = T(o->stats);
    work.qkv = T(o->qkv);
    work.kv.k = T(o->kv.k);
    work.kv.v = T(o->kv.v);
    fake.cpu->attention(&own, &work);
    narrowed(T(o->out), work.out, o->out_dtype, rows * width);
}

static void fake_attention_grad(const struct kctx *c, const struct op_attention_grad *o)
{
    OPERATION(attention_grad);
    H(o->segs);
    work.dqkv = T(o->dqkv);
    work.dout = T(o->dout);
    work.out = widened(__func__, T(o->out), o->out_dtype, o->t * o->shape.heads * o->shape.head_dim);
    work.out_dtype = DTYPE_F32;
    work.stats = T(o->stats);
    work.qkv = widened(__func__, T(o->qkv), o->qkv_dtype, o->t * o->shape.stride);
    work.qkv_dtype = DTYPE_F32;
    fake.cpu->attention_grad(&own, &work);
    narrowed(NULL, work.out, o->out_dtype, 0);
    narrowed(NULL, work.qkv, o->qkv_dtype, 0);
}

static void fake_swiglu(const struct kctx *c, const struct op_swiglu *o)
{
    OPERATION(swiglu);
    work.act = wide_room(__func__, T(o->act), o->act_dtype, o->t * o->f);
    work.act_dtype = DTYPE_F32;
    work.gu = widened(__func__, T(o->gu), o->gu_dtype, o->t * 2 * o->f);
    work.gu_dtype = DTYPE_F32;
    work.kept = NULL;
    fake.cpu->swiglu(&own, &work);
    uint16_t *kept = o->kept ? T(o->kept) : NULL;
    for (int64_t i = 0; kept && i < o->t * 2 * o->f; i++) kept[i] = bf16_from_f32(((const float *)work.gu)[i]);
    narrowed(NULL, work.gu, o->gu_dtype, 0);
    narrowed(T(o->act), work.act, o->act_dtype, o->t * o->f);
}

static void fake_swiglu_grad(const struct kctx *c, const struct op_swiglu_grad *o)
{
    OPERATION(swiglu_grad);
    work.dgu = wide_room(__func__, T(o->dgu), o->dgu_dtype, o->t * 2 * o->f);
    work.dgu_dtype = DTYPE_F32;
    work.dact = T(o->dact);
    work.gu = widened(__func__, T(o->gu), o->gu_dtype, o->t * 2 * o->f);
    work.gu_dtype = DTYPE_F32;
    fake.cpu->swiglu_grad(&own, &work);
    narrowed(NULL, work.gu, o->gu_dtype, 0);
    narrowed(T(o->dgu), work.dgu, o->dgu_dtype, o->t * 2 * o->f);
}

static void fake_head_stats(const struct kctx *c, const struct op_head_stats *o)
{
    OPERATION(head_stats);
    work.logprob = T(o->logprob);
    work.entropy = T(o->entropy);
    work.lse = T(o->lse);
    work.logits = T(o->logits);
    work.target = T(o->target);
    fake.cpu->head_stats(&own, &work);
}

static void fake_head_kl(const struct kctx *c, const struct op_head_kl *o)
{
    OPERATION(head_kl);
    work.kl = T(o->kl);
    work.logits = T(o->logits);
    work.lse = T(o->lse);
    work.ref_logits = T(o->ref_logits);
    work.ref_lse = T(o->ref_lse);
    fake.cpu->head_kl(&own, &work);
}

static void fake_head_grad(const struct kctx *c, const struct op_head_grad *o)
{
    OPERATION(head_grad);
    work.logits = T(o->logits);
    work.target = T(o->target);
    work.lse = T(o->lse);
    work.entropy = T(o->entropy);
    work.ref_logits = T(o->ref_logits);
    work.ref_lse = T(o->ref_lse);
    work.kl = T(o->kl);
    work.coef = T(o->coef);
    fake.cpu->head_grad(&own, &work);
}

static void fake_sample(const struct kctx *c, const struct op_sample *o)
{
    OPERATION(sample);
    work.token = T(o->token);
    work.logprob = T(o->logprob);
    work.entropy = T(o->entropy);
    work.logits = T(o->logits);
    work.rows = T(o->rows);
    fake.cpu->sample(&own, &work);
}

static void fake_add(const struct kctx *c, const struct op_add *o)
{
    OPERATION(add);
    work.y = T(o->y);
    work.x = T(o->x);
    fake.cpu->add(&own, &work);
}

static void fake_add_columns(const struct kctx *c, const struct op_add_columns *o)
{
    OPERATION(add_columns);
    work.y = T(o->y);
    work.x = T(o->x);
    fake.cpu->add_columns(&own, &work);
}

static void fake_to_bf16(const struct kctx *c, const struct op_to_bf16 *o)
{
    OPERATION(to_bf16);
    work.y = T(o->y);
    work.x = T(o->x);
    fake.cpu->to_bf16(&own, &work);
}

static void fake_gather_rows(const struct kctx *c, const struct op_gather_rows *o)
{
    OPERATION(gather_rows);
    work.y = T(o->y);
    work.x = T(o->x);
    work.rows = T(o->rows);
    fake.cpu->gather_rows(&own, &work);
}

static void fake_scatter_add_rows(const struct kctx *c, const struct op_scatter_add_rows *o)
{
    OPERATION(scatter_add_rows);
    work.y = T(o->y);
    work.x = T(o->x);
    work.rows = T(o->rows);
    fake.cpu->scatter_add_rows(&own, &work);
}

static void fake_sum_squares(const struct kctx *c, const struct op_sum_squares *o)
{
    OPERATION(sum_squares);
    work.out = T(o->out);
    work.x = T(o->x);
    fake.cpu->sum_squares(&own, &work);
}

static void fake_digest(const struct kctx *c, const struct op_digest *o)
{
    OPERATION(digest);
    work.out = T(o->out);
    work.data = T(o->data);
    fake.cpu->digest(&own, &work);
}

static void fake_adamw(const struct kctx *c, const struct op_adamw *o)
{
    OPERATION(adamw);
    work.p = T(o->p);
    work.m = T(o->m);
    work.v = T(o->v);
    work.g = T(o->g);
    fake.cpu->adamw(&own, &work);
}

static const struct backend backend = {
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
    .logits_floats = DEVICE_LOGITS_FLOATS,
    .cache_most = fake_cache_most,
};

#define ENTRY(NAME) .NAME = fake_##NAME,
static const struct kernels table = {.name = "fake",
                                     .backend = &backend,
                                     .bf16_rows = 1,
                                     .row_chains = 1,
                                     .packed_bytes = fake_packed_bytes,
                                     .matmul_dw_apart = fake_matmul_dw_apart,
                                     KERNEL_OPERATIONS(ENTRY)};

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
        snprintf(text, (size_t)size, "TARE_FAKE_MEMORY = %s: must be more than 0 and at most 4 GiB", memory);
        return NULL;
    }
    fake.fail_at = fail ? strtoll(fail, NULL, 10) : 0;
    fake.report = getenv("TARE_FAKE_REPORT");
    if (fake.report) atexit(report);
    arena_init(&fake.scratch, "fake device");
    return &table;
}
