/* LoRA (Hu et al. 2021, arXiv 2106.09685). The weights of the base are frozen, and a targeted
 * product becomes
 *
 *   y = x W^T + s (x A^T) B^T        A [r, in],  B [out, r]
 *   s = alpha / r, or alpha / sqrt(r)                (rsLoRA, Kalajdzievski 2023, arXiv 2312.03732)
 *
 * Only A and B are trained: the flat buffers of such a model (weights, sums of gradients, moments;
 * model.h, shards.h) hold A and B of all layers and nothing of the base. The base has only its
 * compute copy, made once. So the optimizer, the ranks and the checkpoints treat adapters as they
 * treat a whole model; units 0 and L+1 are empty.
 *
 * The products of a layer are q|k|v, o, gate|up and down. Adapters of one product share x: their
 * A's are adjacent, [parts * r, in], and form one product; each B adds to its own columns. Sampling
 * and training run the same lora_product. */
#ifndef TARE_CORE_MODEL_LORA_H
#define TARE_CORE_MODEL_LORA_H

#include "model/grads.h"
#include "model/model.h"

enum { LORA_ALL = (1 << LORA_KINDS) - 1, LORA_PARTS = 3 };

/* A linear layer that adapters can target, in the order of CHOICES_LORA_TARGET, which is the order
 * of the products. */
struct lora_kind {
    const char *name, *path; /* "q_proj", "self_attn.q_proj" */
    enum product_role role;  /* the product that it belongs to */
    /* Which checkpoints have it: all, those with separate q, k, v, or those with one fused
     * tensor. */
    enum { LORA_ANY, LORA_APART, LORA_FUSED } in;
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
    int64_t begin, n; /* columns of the product that it adds to */
    int64_t b;        /* offset of B in the unit */
    void *packed;     /* B in the compute copy */
};

struct lora_group {  /* the adapters of one product */
    int n;           /* 0: none */
    int64_t rows, k; /* A's: n * r, in */
    int64_t columns; /* columns of the product */
    int64_t a;       /* offset of the A's in the unit */
    void *packed;
    struct lora_part part[LORA_PARTS];
};

struct lora {
    struct lora_spec spec;
    float scale;               /* s */
    struct lora_group *groups; /* [n_products] by model_product.id; the head's is empty */
    float *table;              /* the base's embedding, [V, C] */
    char base[4096];           /* folder of the base */
    uint64_t base_hash;        /* XXH3 of the base's tensors as fp32, in the order of the layout */
};

/* Scratch rows of the adapters, used by one layer after the other. Where the kernels compute
 * adapters together with the base's products (kernels.h, low_rank), the backward pass reads u as
 * kept by the forward pass and also needs `all`; otherwise it recomputes x A^T, and both passes use
 * all, part and wide. */
struct lora_rows {
    float *all;  /* [T, 3 r] x A^T of a group; then its gradient */
    float *part; /* [T, r] */
    float *wide; /* [T, the widest of a product] */
    /* [T, parts * r] by role: s x A^T. NULL in sampling, and where it is recomputed */
    float *u[LAYER_PRODUCTS];
};

/* Returns the adapters of product p; NULL: it has none. */
static inline const struct lora_group *lora_group_of(const struct model *m, const struct model_product *p)
{
    return m->lora && m->lora->groups[p->id].n ? &m->lora->groups[p->id] : NULL;
}

/* Input rows of a product. */
struct product_rows {
    const void *at;
    enum dtype dtype;
};

/* Reads [lora] of a configuration; rank 0: off. */
tare_status lora_spec_of(const struct config *c, struct lora_spec *out, struct err *e);

/* Computes the mask of targets in the model: all of them, or those in `asked`. TARE_E_CONFIG names
 * a target that the model does not have. where: for the message. */
tare_status lora_targets(const struct model_shape *s, unsigned asked, const char *where, unsigned *out, struct err *e);
/* Creates m->lora with its groups; the layout of the base must exist. */
tare_status lora_new(struct model *m, const struct lora_spec *spec, struct err *e);
void lora_free(struct model *m);
/* Allocates the adapters' compute copy, after layout_make_adapters. */
tare_status lora_copy_new(struct model *m, struct err *e);
/* Initialises A as peft does, uniform in +- 1/sqrt(in) from the seed, and B to zero. */
tare_status lora_init(struct model *m, uint64_t seed, struct err *e);

struct refresh_proof;
/* Makes the compute copy of the adapters of unit u. */
void lora_pack(struct model *m, struct refresh_proof *proof, int64_t u, const float *whole);

/* Allocates scratch for t rows, which all layers share; none without adapters. */
tare_status lora_rows_new(const struct model *m, int64_t t, bool training, struct arena *a, struct lora_rows *out, struct err *e);
/* Allocates u for a layer's products, from role `first` on. */
tare_status lora_kept_new(const struct model *m, int64_t t, enum product_role first, struct arena *a, struct lora_rows *out,
                          struct err *e);
/* Computes o.y[t, n] = o.x[t, k] W^T plus the contribution of p's adapters. The caller sets y, x,
 * bias, residual and t of o. */
void lora_product(const struct model *m, const struct model_product *p, struct op_matmul o, const struct lora_rows *r);
/* A product of a layer in the backward pass: y[t, n] = x[t, k] W^T. */
struct layer_product {
    const struct model_product *product;
    /* With adapters dy is fp32, because they read columns of it. */
    struct product_rows x, dy;
    float *dx; /* NULL: not needed */
    int64_t t;
};
/* Computes dx of a product with its adapters, and the gradients of A and B. */
void lora_backward(const struct model *m, const struct unit_grads *to, const struct layer_product *p, const struct lora_rows *r);

#endif
