#include "cost.h"

#include "exact.h"
#include "sizes.h"

#define COST(FLOPS, BYTES) ((struct kernel_cost){(double)(FLOPS), (double)(BYTES)})

/* Return the bytes of n x k packed weights. int8 has a two-byte scale for every INT8_BLOCK
 * weights. */
static int64_t packed_bytes(int64_t n, int64_t k, enum dtype dtype, int int8)
{
    return int8 ? n * (k + (k + INT8_BLOCK - 1) / INT8_BLOCK * 2) : n * k * dtype_bytes(dtype);
}

struct kernel_cost cost_pack(const struct op_pack *o)
{
    return COST(0, o->n * o->k * 4 + packed_bytes(o->n, o->k, o->dtype, o->int8));
}

struct kernel_cost cost_matmul(const struct op_matmul *o)
{
    return COST(2 * o->t * o->n * o->k,
                o->t * (4 * o->n + o->k * dtype_bytes(o->x_dtype)) + packed_bytes(o->n, o->k, o->dtype, o->int8));
}

struct kernel_cost cost_matmul_dx(const struct op_matmul_dx *o)
{
    return COST(2 * o->t * o->n * o->k, o->t * (o->n * dtype_bytes(o->dy_dtype) + 4 * o->k) + 4 * o->n * o->k);
}

struct kernel_cost cost_matmul_dw(const struct op_matmul_dw *o)
{
    return COST(2 * o->t * o->n * o->k,
                o->t * (o->n * dtype_bytes(o->dy_dtype) + o->k * dtype_bytes(o->x_dtype)) + 8 * o->n * o->k);
}

/* Cost of the two products of adapters next to one product with k (or n) columns: with the A's, or
 * with the B's. Reads the packed factors; writes u or d. */
static struct kernel_cost low_rank(const struct low_rank *l, int64_t t, int64_t k, enum dtype dtype)
{
    int64_t columns = 0;
    for (int64_t i = 0; i < l->parts; i++) columns += l->n[i];
    const int64_t rows = l->parts * l->rank, numbers = rows * k + l->rank * columns;
    return COST(2 * t * numbers, numbers * dtype_bytes(dtype) + 4 * t * rows);
}

static struct kernel_cost add_costs(struct kernel_cost a, struct kernel_cost b)
{
    return COST(a.flops + b.flops, a.bytes + b.bytes);
}

struct kernel_cost cost_matmul_low_rank(const struct op_matmul_low_rank *o)
{
    return add_costs(cost_matmul(&o->product), low_rank(&o->adapter, o->product.t, o->product.k, o->product.dtype));
}

struct kernel_cost cost_matmul_dx_low_rank(const struct op_matmul_dx_low_rank *o)
{
    const struct op_matmul_dx *p = &o->product;
    const struct kernel_cost adapters = low_rank(&o->adapter, p->t, p->dx ? p->k : 0, p->dtype);
    return p->dx ? add_costs(cost_matmul_dx(p), adapters) : adapters;
}

struct kernel_cost cost_low_rank_dw(const struct op_low_rank_dw *o)
{
    const struct kernel_cost adapters = low_rank(&o->adapter, o->t, o->k, DTYPE_F32);
    return COST(adapters.flops, 2 * adapters.bytes + (double)(4 * o->t * (o->n + o->k)));
}

/* Rows, pairs of a query and a key that it sees, and keys read when leading blocks shared by
 * neighbours are read once. */
struct attention_work {
    double rows, pairs, keys;
};

static struct attention_work attention_work(const struct op_attention *o)
{
    struct attention_work w = {0};
    for (int64_t i = 0; i < o->n_seqs; i++) {
        const struct attn_seq *q = &o->seqs[i];
        int64_t shared = 0, blocks = (q->pos + q->q_len + KV_BLOCK - 1) / KV_BLOCK;
        while (i && shared < blocks && shared * KV_BLOCK < q[-1].pos + q[-1].q_len && q->blocks[shared] == q[-1].blocks[shared])
            shared++;
        w.pairs += (double)q->q_len * ((double)q->pos + 0.5 * (double)(q->q_len + 1));
        w.keys += (double)(blocks - shared) * KV_BLOCK;
        w.rows += (double)q->q_len;
    }
    return w;
}

struct kernel_cost cost_attention(const struct op_attention *o)
{
    const struct attention_work w = attention_work(o);
    const double width = (double)(o->shape.heads * o->shape.head_dim), kv = (double)(o->shape.kv_heads * o->shape.head_dim);
    return COST(4 * w.pairs * width,
                2 * (double)dtype_bytes(o->shape.dtype) * w.keys * kv + (4 + (double)dtype_bytes(o->out_dtype)) * w.rows * width);
}

static double attention_grad_pairs(const struct op_attention_grad *o)
{
    double pairs = 0;
    for (int64_t i = 0; i < o->n_segs; i++)
        pairs += (double)o->segs[i].q_len * ((double)o->segs[i].prefix_len + 0.5 * (double)(o->segs[i].q_len + 1));
    return pairs;
}

struct kernel_cost cost_attention_grad(const struct op_attention_grad *o)
{
    const int64_t width = o->shape.heads * o->shape.head_dim;
    const int64_t qkv = (4 + dtype_bytes(o->qkv_dtype)) * o->shape.stride, out = (4 + dtype_bytes(o->out_dtype)) * width;
    return COST(10 * attention_grad_pairs(o) * (double)width, o->t * (qkv + out));
}

struct kernel_cost cost_kv_write(const struct op_kv_write *o)
{
    return COST(0, (8 + 2 * dtype_bytes(o->shape.dtype)) * o->n * o->shape.kv_heads * o->shape.head_dim);
}

struct kernel_cost cost_kv_copy(const struct op_kv_copy *o)
{
    return COST(0, 4 * dtype_bytes(o->shape.dtype) * o->n * KV_BLOCK * o->shape.kv_heads * o->shape.head_dim);
}

struct kernel_cost cost_rmsnorm(const struct op_rmsnorm *o)
{
    return COST(4 * o->t * o->heads * o->width, (4 + dtype_bytes(o->y_dtype)) * o->t * o->heads * o->width);
}

struct kernel_cost cost_rmsnorm_grad(const struct op_rmsnorm_grad *o)
{
    return COST(11 * o->t * o->heads * o->width, 16 * o->t * o->heads * o->width);
}

struct kernel_cost cost_rope(const struct op_rope *o)
{
    return COST(3 * o->t * o->n_heads * o->head_dim, 8 * o->t * o->n_heads * o->head_dim);
}

struct kernel_cost cost_swiglu(const struct op_swiglu *o)
{
    const int64_t kept = o->kept ? 2 * dtype_bytes(DTYPE_BF16) : 0;
    return COST(20 * o->t * o->f, (2 * dtype_bytes(o->gu_dtype) + kept + dtype_bytes(o->act_dtype)) * o->t * o->f);
}

struct kernel_cost cost_swiglu_grad(const struct op_swiglu_grad *o)
{
    return COST(26 * o->t * o->f, (4 + 2 * dtype_bytes(o->gu_dtype) + 2 * dtype_bytes(o->dgu_dtype)) * o->t * o->f);
}

struct kernel_cost cost_head_stats(const struct op_head_stats *o)
{
    return COST(22 * o->r * o->v, 4 * o->r * o->v);
}

struct kernel_cost cost_head_kl(const struct op_head_kl *o)
{
    return COST(24 * o->r * o->v, 8 * o->r * o->v);
}

struct kernel_cost cost_head_grad(const struct op_head_grad *o)
{
    return COST(22 * o->r * o->v, 8 * o->r * o->v);
}

struct kernel_cost cost_sample(const struct op_sample *o)
{
    return COST(24 * o->r * o->v, 4 * (o->ld ? o->r : 1) * o->v);
}

struct kernel_cost cost_embed(const struct op_embed *o)
{
    return COST(0, 8 * o->t * o->width);
}

struct kernel_cost cost_embed_grad(const struct op_embed_grad *o)
{
    return COST(o->t * o->width, 12 * o->t * o->width);
}

struct kernel_cost cost_to_bf16(const struct op_to_bf16 *o)
{
    return COST(0, 6 * o->n);
}

struct kernel_cost cost_gather_rows(const struct op_gather_rows *o)
{
    return COST(0, 8 * o->n * o->width);
}

struct kernel_cost cost_scatter_add_rows(const struct op_scatter_add_rows *o)
{
    return COST(o->n * o->width, 12 * o->n * o->width);
}

struct kernel_cost cost_add(const struct op_add *o)
{
    return COST(o->n, 12 * o->n);
}

struct kernel_cost cost_add_columns(const struct op_add_columns *o)
{
    return COST(o->t * o->n, 12 * o->t * o->n);
}

struct kernel_cost cost_sum_squares(const struct op_sum_squares *o)
{
    return COST(2 * o->n, 4 * o->n);
}

struct kernel_cost cost_digest(const struct op_digest *o)
{
    return COST(0, o->bytes);
}

struct kernel_cost cost_adamw(const struct op_adamw *o)
{
    return COST(14 * o->n, 28 * o->n);
}
