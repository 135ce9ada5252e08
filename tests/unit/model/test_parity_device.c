/* Compares the engine on a device with the engine on the CPU (which test_parity compares with the
 * goldens): logprobs, entropies and every tensor's gradient of small models of each architecture,
 * in fp32 and bf16, with shared prompts. The CUDA kernels run as fibers on the host, and on a GPU
 * if there is one. */
#include "devices.h"
#include "engine.h"
#include "folder.h"

#include "base/fs.h"
#include "model/grads.h"
#include "model/lora.h"
#include "model/pack.h"

#include <math.h>
#include <string.h>
#include <unistd.h>

enum { VOCAB = 96, TARGETS = 64 };

struct result {
    float logprob[TARGETS], entropy[TARGETS];
    float *grads; /* [n_params] */
    int64_t n;
};

static struct model *model_of(const struct kernels *k, const char *arch, const char *dtype, int64_t width)
{
    struct err e = {0};
    struct model *m;
    const struct model_config c = {.init = arch_named(arch),
                                   .dtype = precision_named(dtype),
                                   .hidden_size = 64,
                                   .layers = 2,
                                   .heads = 4,
                                   .kv_heads = 2,
                                   .head_dim = width,
                                   .intermediate_size = 72,
                                   .context = 128,
                                   .init_std = 0.15,
                                   .tie_embeddings = true};
    assert_ok(model_new(&(struct model_source){.config = &c, .kernels = k, .seed = 5}, VOCAB, NULL, 0, &m, &e), &e);
    return m;
}

/* Makes the same model as a frozen base with adapters on all its layers and a nonzero B. */
static struct model *adapters_of(const struct kernels *k, const char *arch, const char *dtype, int64_t width)
{
    struct err e = {0};
    const char *folder = make_test_folder("tare-parity");
    const struct kernels *cpu;
    struct model *m;
    float *host;
    const struct model_config c = {.dtype = precision_named(dtype), .base = ""};
    const struct lora_spec spec = {.rank = 5, .alpha = 10, .targets = LORA_ALL};
    assert_ok(kernels_cpu(NULL, &cpu, &e), &e);
    assert_non_null(folder);
    struct model *base = model_of(cpu, arch, "f32", width);
    assert_ok(model_save(base, folder, DTYPE_F32, NULL, &e), &e);
    model_free(base);
    assert_ok(model_open(&(struct model_source){.folder = folder, .config = &c, .kernels = k, .lora = &spec, .seed = 1}, &m, &e),
              &e);
    assert_ok(fs_remove_tree(folder, &e), &e);
    assert_ok(mem_new(m->n_params * 4, (void **)&host, &e), &e);
    k->backend->download(&m->ctx, host, m->weights, m->n_params * 4);
    for (int64_t i = 0; i < m->n_tensors; i++)
        for (int64_t j = 0; j < m->tensors[i].rows * m->tensors[i].cols && strstr(m->tensors[i].name, "lora_B"); j++)
            host[m->tensors[i].offset + j] = 0.1f * (float)sin((double)(3 * i + j));
    k->backend->upload(&m->ctx, m->weights, host, m->n_params * 4);
    mem_free(host);
    assert_ok(model_refresh(m, &e), &e);
    return m;
}

/* Copies these bytes to device memory in a; on the CPU to host memory. */
static void *there(const struct model *m, struct arena *a, const void *host, int64_t bytes)
{
    struct err e = {0};
    void *room;
    assert_ok(arena_push_tensor_raw(a, bytes, &room, &e), &e);
    if (host) m->k->backend->upload(&m->ctx, room, host, bytes);
    return room;
}

/* Computes L = sum_i a_i logp_i + b_i H_i and its gradient. */
static void run_so(struct model *m, enum recompute recompute, struct result *r)
{
    static const int32_t ids[] = {3,  14, 15, 92, 65, 35, 89, 79, 32, 38, 46, 26, 43, 38, 32,
                                  79, 50, 28, 84, 19, 71, 69, 39, 93, 75, 10, 58, 20, 95, 94};
    static const int32_t *const completion[] = {ids + 5, ids + 11, ids + 20, ids + 2};
    static const int64_t len[] = {4, 9, 1, 19};
    static const struct pack_group groups[] = {{ids, 19, 3, completion, len, NULL},
                                               {ids + 4, 16, 1, completion + 3, len + 3, NULL}};
    struct err e = {0};
    struct packed_batch p;
    struct kv_cache cache;
    struct arena plan, acts;
    struct train_pass *pass;
    struct grads grads;
    struct head_grad_row coef[TARGETS];
    float *hidden;
    arena_init(&plan, "plan");
    model_arena_init(m, &acts, "acts");
    assert_ok(pack_groups(groups, 2, true, &plan, &p, &e), &e);
    assert_ok(kv_cache_new(m, 1, p.n_blocks, &cache, &e), &e);
    assert_ok(grads_new(m, &grads, &e), &e);
    const int64_t n = r->n = p.n_targets;
    assert_true(n <= TARGETS);
    assert_ok(
        model_train_forward(m, &(struct train_input){&cache, &p.forward, p.segs, p.n_segs, recompute}, &acts, &pass, &hidden, &e),
        &e);
    float *logits = there(m, &acts, NULL, n * VOCAB * 4), *logprob = there(m, &acts, NULL, n * 4),
          *entropy = there(m, &acts, NULL, n * 4), *lse = there(m, &acts, NULL, n * 8),
          *dhidden = there(m, &acts, NULL, n * m->shape.hidden * 4);
    const int32_t *target = there(m, &acts, p.target, n * 4);
    model_logits(m, hidden, n, logits);
    KERNEL(m->k, &m->ctx, head_stats, .logprob = logprob, .entropy = entropy, .lse = lse, .logits = logits, .target = target,
           .temperature = 0.8f, .r = n, .v = VOCAB);
    for (int64_t i = 0; i < n; i++)
        coef[i] = (struct head_grad_row){.logprob = (float)cos((double)i), .entropy = (float)sin(2.0 * (double)i)};
    KERNEL(m->k, &m->ctx, head_grad, .logits = logits, .target = target, .lse = lse, .entropy = entropy,
           .coef = there(m, &acts, coef, n * (int64_t)sizeof *coef), .temperature = 0.8f, .r = n, .v = VOCAB);
    model_backward_begin(m, &grads);
    model_logits_grad(m, &(struct logits_grad){logits, hidden, n, dhidden}, &grads);
    assert_ok(model_backward(m, pass, dhidden, &grads, &e), &e);
    assert_ok(model_finish(m, &e), &e);
    r->grads = malloc((size_t)m->n_params * 4);
    assert_non_null(r->grads);
    m->k->backend->download(&m->ctx, r->logprob, logprob, n * 4);
    m->k->backend->download(&m->ctx, r->entropy, entropy, n * 4);
    m->k->backend->download(&m->ctx, r->grads, grads.sum, m->n_params * 4);
    grads_free(&grads);
    kv_cache_free(m, &cache);
    arena_free(&plan);
    arena_free(&acts);
}

static void run(struct model *m, struct result *r)
{
    run_so(m, RECOMPUTE_LAYER, r);
}

/* The largest difference of a token's logprob and entropy; of a tensor's gradient, relative to its
 * norm. */
struct distance {
    double values, gradients;
};

static struct distance between(const struct model *m, const struct result *got, const struct result *expected)
{
    struct distance far = {0};
    assert_int_equal(got->n, expected->n);
    for (int64_t i = 0; i < got->n; i++) {
        const double d = fmax(fabs((double)got->logprob[i] - (double)expected->logprob[i]),
                              fabs((double)got->entropy[i] - (double)expected->entropy[i]));
        if (!(d <= far.values) && !isnan(far.values)) far.values = d;
    }
    for (int64_t t = 0; t < m->n_tensors; t++) {
        const struct tensor *x = &m->tensors[t];
        double d = 0, s = 0;
        for (int64_t j = 0; j < x->rows * x->cols; j++) {
            const double a = (double)got->grads[x->offset + j], b = (double)expected->grads[x->offset + j];
            d += (a - b) * (a - b), s += b * b;
        }
        /* A key's bias shifts all attention scores of a query equally, except for the rotation: its
         * gradient consists of rounding errors. */
        if (s < 1e-6 || strstr(x->name, "k_proj.bias")) continue;
        if (!(sqrt(d / s) <= far.gradients) && !isnan(far.gradients)) far.gradients = sqrt(d / s);
    }
    return far;
}

static void result_free(struct result *r)
{
    free(r->grads);
}

/* fp32: equals the CPU's values up to rounding. bf16: as far from the CPU's fp32 values as the
 * CPU's own bf16 is, or slightly farther, since a device also rounds keys, values and weights of
 * attention. */
static void check_case(struct model *(*make)(const struct kernels *k, const char *arch, const char *dtype, int64_t width),
                       const struct kernels *k, const char *arch, const char *dtype, int64_t width)
{
    struct err e = {0};
    const struct kernels *cpu;
    assert_ok(kernels_cpu(NULL, &cpu, &e), &e);
    struct model *exact = make(cpu, arch, "f32", width), *same = make(cpu, arch, dtype, width), *m = make(k, arch, dtype, width);
    struct result expected, rounded, got, again;
    run(exact, &expected);
    run(same, &rounded);
    run(m, &got);
    run(m, &again);
    const struct distance own = between(exact, &rounded, &expected), far = between(exact, &got, &expected);
    printf("%s %s, heads of %lld: logprob and entropy within %.1e (CPU %.1e), gradients within %.1e of their norms (CPU %.1e)\n",
           arch, dtype, (long long)width, far.values, own.values, far.gradients, own.gradients);
    if (!(far.values <= 2.5 * own.values + 1e-4) || !(far.gradients <= 2.5 * own.gradients + 1e-4))
        fail_msg("%s %s, heads of %lld: further than that from the CPU", arch, dtype, (long long)width);
    assert_memory_equal(got.grads, again.grads, (size_t)exact->n_params * 4); /* deterministic */
    assert_memory_equal(got.logprob, again.logprob, sizeof got.logprob[0] * (size_t)got.n);
    result_free(&expected);
    result_free(&rounded);
    result_free(&got);
    result_free(&again);
    model_free(exact);
    model_free(same);
    model_free(m);
}

static void assert_same(const char *what, const struct model *m, const struct result *got, const struct result *want)
{
    if (memcmp(got->logprob, want->logprob, sizeof got->logprob[0] * (size_t)got->n) ||
        memcmp(got->entropy, want->entropy, sizeof got->entropy[0] * (size_t)got->n))
        fail_msg("%s: other logprobs or entropies", what);
    if (memcmp(got->grads, want->grads, (size_t)m->n_params * 4)) fail_msg("%s: other gradients", what);
}

/* Rows that only products read are bf16 where the kernels round them, and fp32 where the products
 * do: bit-identical, whatever is recomputed. */
static void check_rows(struct model *(*make)(const struct kernels *k, const char *arch, const char *dtype, int64_t width),
                       const struct kernels *k, const char *arch, int64_t width, enum recompute recompute)
{
    struct kernels fp32 = *k;
    struct result want, got;
    assert_true(k->bf16_rows);
    fp32.bf16_rows = 0;
    struct model *before = make(&fp32, arch, "bf16", width), *after = make(k, arch, "bf16", width);
    run_so(before, RECOMPUTE_NONE, &want);
    run_so(after, recompute, &got);
    assert_same(arch, after, &got, &want);
    result_free(&got);
    result_free(&want);
    model_free(before);
    model_free(after);
}

static void on_backend(const struct kernels *k)
{
    check_rows(model_of, k, "qwen2", 64, RECOMPUTE_NORMS);
    check_rows(model_of, k, "qwen3", 12, RECOMPUTE_MLP);
    check_rows(adapters_of, k, "llama", 64, RECOMPUTE_NONE);
    check_case(model_of, k, "qwen2", "f32", 12);
    check_case(model_of, k, "llama", "f32", 64);
    check_case(model_of, k, "qwen3", "f32", 16);
    check_case(model_of, k, "qwen2", "bf16", 64); /* tensor cores */
    check_case(model_of, k, "qwen3", "bf16", 128);
    check_case(model_of, k, "llama", "bf16", 12);
    check_case(adapters_of, k, "qwen3", "f32", 16);
    check_case(adapters_of, k, "qwen2", "bf16", 64);
}

ON_DEVICES(on_backend)
