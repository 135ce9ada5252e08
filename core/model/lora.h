/* LoRA (Hu et al. 2021, arXiv 2106.09685). The weights of the base are frozen, and a product that was chosen becomes
 *
 *   y = x W^T + s (x A^T) B^T        A [r, in],  B [out, r],  s = alpha / r, or alpha / sqrt(r) (rsLoRA, Kalajdzievski 2023, arXiv 2312.03732)
 *
 * Only A and B are trained: the flat buffers of such a model (weights, sums of gradients, moments; model.h, shards.h) hold A and B of all layers and
 * nothing of the base. Of the base there is the compute copy alone, made once. So the optimizer, the ranks and the checkpoints work on adapters as they
 * work on a whole model; units 0 and L+1 are empty.
 *
 * The products of a layer are q|k|v, o, gate|up and down. Adapters of one product share x: their A's lie one after another, [parts * r, in], and are one
 * product; each B adds to its own columns. Sampling and training run the same lora_product. */
#ifndef TARE_CORE_MODEL_LORA_H
#define TARE_CORE_MODEL_LORA_H

#include "model/grads.h"
#include "model/model.h"

enum { LORA_ALL = (1 << LORA_KINDS) - 1, LORA_PARTS = 3 };

/* A linear layer that may have an adapter, in the order of CHOICES_LORA_TARGET, which is that of the products. */
struct lora_kind {
    const char *name, *path;                      /* "q_proj", "self_attn.q_proj" */
    enum product_role role;                       /* the product that it is part of */
    enum { LORA_ANY, LORA_APART, LORA_FUSED } in; /* which checkpoints have it: all, those with q, k, v apart, or in one tensor */
};
extern const struct lora_kind LORA_KIND[LORA_KINDS];

struct lora_spec {
    int64_t rank; /* r; 0: no adapters, the base alone (model.weights = int8) */
    double alpha;
    bool rslora;
    unsigned targets; /* bit i: LORA_KIND[i] */
};

struct lora_part {
    int kind;
    int64_t begin, n; /* its columns of the product */
    int64_t b;        /* where B begins in the unit */
    void *packed;     /* B for products */
};

struct lora_group {  /* the adapters of one product */
    int n;           /* 0: none */
    int64_t rows, k; /* A's: n * r, in */
    int64_t columns; /* of the product */
    int64_t a;       /* where the A's begin in the unit */
    void *packed;
    struct lora_part part[LORA_PARTS];
};

struct lora {
    struct lora_spec spec;
    float scale;               /* s */
    struct lora_group *groups; /* [n_products] by model_product.id; the head's is empty */
    float *table;              /* the base's embedding, [V, C] */
    char base[4096];           /* its folder */
    uint64_t base_hash;        /* XXH3 of its tensors as fp32, in the order of the layout */
};

/* Rows that adapters are computed in, of a layer after the other. Where the kernels compute them beside the base's products (kernels.h, low_rank) the
 * backward pass reads u, which the forward pass has kept, and needs `all` besides; else it computes x A^T again, and all three are used in both. */
struct lora_rows {
    float *all;               /* [T, 3 r] x A^T of a group; its gradient */
    float *part;              /* [T, r] */
    float *wide;              /* [T, the widest of a product] */
    float *u[LAYER_PRODUCTS]; /* [T, parts * r] by role: s x A^T. NULL in sampling, and where it is computed again */
};

/* The adapters of product p; NULL: it has none. */
static inline const struct lora_group *lora_group_of(const struct model *m, const struct model_product *p)
{
    return m->lora && m->lora->groups[p->id].n ? &m->lora->groups[p->id] : NULL;
}

/* Rows that a product reads. */
struct product_rows {
    const void *at;
    enum dtype dtype;
};

/* [lora] of a configuration; rank 0: off. */
tare_status lora_spec_of(const struct config *c, struct lora_spec *out, struct err *e);

/* Of the targets asked for (all: those that the model has) the mask; TARE_E_CONFIG names one that the model has not. where: for the message. */
tare_status lora_targets(const struct model_shape *s, unsigned asked, const char *where, unsigned *out, struct err *e);
/* m->lora, and its groups for m->shape. */
tare_status lora_new(struct model *m, const struct lora_spec *spec, struct err *e);
void lora_free(struct model *m);
/* The memory of the adapters' compute copy, after layout_make_adapters. */
tare_status lora_copy_new(struct model *m, struct err *e);
/* A as peft starts it, uniform in +- 1/sqrt(in) from the seed; B zero. */
tare_status lora_init(struct model *m, uint64_t seed, struct err *e);

struct refresh_proof;
/* The compute copy of the adapters of unit u. */
void lora_pack(struct model *m, struct refresh_proof *proof, int64_t u, const float *whole);

/* Room for t rows, which all layers use; none without adapters. */
tare_status lora_rows_new(const struct model *m, int64_t t, bool training, struct arena *a, struct lora_rows *out, struct err *e);
/* Allocates u of a layer's products, from role `first` on. */
tare_status lora_kept_new(const struct model *m, int64_t t, enum product_role first, struct arena *a, struct lora_rows *out,
                          struct err *e);
/* o.y[t, n] = o.x[t, k] W^T plus what the adapters of p add. The caller sets y, x, bias, residual and t of o. */
void lora_product(const struct model *m, const struct model_product *p, struct op_matmul o, const struct lora_rows *r);
/* A product of a layer in the backward pass: y[t, n] = x[t, k] W^T. */
struct layer_product {
    const struct model_product *product;
    struct product_rows x, dy; /* with adapters dy is fp32: they take columns of it */
    float *dx;                 /* NULL: nobody reads it */
    int64_t t;
};
/* dx of a product with its adapters, and the gradients of A and B. */
void lora_backward(const struct model *m, const struct unit_grads *to, const struct layer_product *p, const struct lora_rows *r);

#endif
