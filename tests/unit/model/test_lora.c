/* Adapters: compared with peft (tests/data/lora) and with other ways to compute the same; and their
 * folders. */
#include "folder.h"
#include "goldens.h"
#include "small.h"

#include "exact.h"
#include "model/adapter.h"
#include "model/grads.h"
#include "model/lora.h"
#include "model/merge.h"
#include "model/shards.h"

#include <stdio.h>
#include <unistd.h>

static const char *const CASES[] = {"qwen3", "qwen2-untied-bf16", "llama-tied-bf16", "phi3", "gemma3"};

static const char *data(const char *folder, const char *name, char out[FS_PATH])
{
    snprintf(out, FS_PATH, "%s/tests/data/%s/%s", getenv("SOURCE"), folder, name);
    return out;
}

static struct model *opened(const struct model_source *s)
{
    struct err e = {0};
    struct model *m;
    const struct kernels *k;
    struct model_source with = *s;
    assert_ok(kernels_cpu(NULL, &k, &e), &e);
    with.kernels = k;
    assert_ok(model_open(&with, &m, &e), &e);
    return m;
}

static const char *base_of(const char *name, char out[FS_PATH])
{
    return data(strcmp(name, "phi3") && strcmp(name, "gemma3") ? "models/tiny" : "models/families", name, out);
}

static struct model *adapter_of(const char *name)
{
    char folder[FS_PATH], base[FS_PATH];
    const struct model_config c = {.base = base_of(name, base)};
    return opened(&(struct model_source){.folder = data("lora", name, folder), .config = &c});
}

/* Makes a tiny model with new adapters and a nonzero B. */
static struct model *trained(const char *name, struct model_config *c, uint64_t seed)
{
    char folder[FS_PATH];
    const struct lora_spec spec = {.rank = 4, .alpha = 6, .targets = LORA_ALL};
    struct model *m =
        opened(&(struct model_source){.folder = base_of(name, folder), .config = c, .lora = &spec, .seed = seed, .trains = true});
    for (int64_t i = 0; i < m->n_tensors; i++) {
        const struct tensor *t = &m->tensors[i];
        for (int64_t j = 0; j < t->rows * t->cols && strstr(t->name, "lora_B"); j++)
            m->weights[t->offset + j] = 0.05f * (float)sin((double)(i + 7 * j));
    }
    assert_int_equal(model_refresh(m, NULL), TARE_OK);
    return m;
}

/* ---- a pass over two sequences; every token after the first is predicted */
enum { SEQS = 2, LENGTH = 13, TARGETS = SEQS * (LENGTH - 1) };

struct pass {
    struct arena plan, acts;
    struct kv_cache cache;
    struct packed_batch p;
    struct train_pass *pass;
    float *hidden, *logits;
};

static void pass_open(struct pass *x, struct model *m, const int32_t ids[SEQS][LENGTH], enum recompute recompute)
{
    struct err e = {0};
    const int32_t *completion[SEQS] = {ids[0] + 1, ids[1] + 1};
    const int64_t length[SEQS] = {LENGTH - 1, LENGTH - 1};
    const struct pack_group groups[SEQS] = {{ids[0], 1, 1, completion, length, NULL},
                                            {ids[1], 1, 1, completion + 1, length + 1, NULL}};
    *x = (struct pass){0};
    arena_init(&x->plan, "plan");
    arena_init(&x->acts, "acts");
    assert_ok(pack_groups(groups, SEQS, true, &x->plan, &x->p, &e), &e);
    assert_int_equal(x->p.n_targets, TARGETS);
    assert_ok(kv_cache_new(m, 1, x->p.n_blocks, &x->cache, &e), &e);
    assert_ok(model_train_forward(m, &(struct train_input){&x->cache, &x->p.forward, x->p.segs, x->p.n_segs, recompute}, &x->acts,
                                  &x->pass, &x->hidden, &e),
              &e);
    assert_ok(arena_new(&x->acts, &x->logits, TARGETS * m->shape.vocab, &e), &e);
    model_logits(m, x->hidden, TARGETS, x->logits);
}

static void pass_close(struct pass *x, const struct model *m)
{
    kv_cache_free(m, &x->cache);
    arena_free(&x->plan);
    arena_free(&x->acts);
}

/* Computes the gradient of -mean log p in g. */
static void pass_backward(struct pass *x, struct model *m, struct grads *g)
{
    struct err e = {0};
    float logprob[TARGETS], entropy[TARGETS], lse[2 * TARGETS], *dhidden;
    struct head_grad_row coef[TARGETS] = {0};
    for (int i = 0; i < TARGETS; i++) coef[i].logprob = -1.0f / TARGETS;
    const int64_t V = m->shape.vocab;
    KERNEL(m->k, &m->ctx, head_stats, .logprob = logprob, .entropy = entropy, .lse = lse, .logits = x->logits,
           .target = x->p.target, .temperature = 1, .r = TARGETS, .v = V);
    KERNEL(m->k, &m->ctx, head_grad, .logits = x->logits, .target = x->p.target, .lse = lse, .entropy = entropy, .coef = coef,
           .temperature = 1, .r = TARGETS, .v = V);
    assert_ok(arena_new(&x->acts, &dhidden, TARGETS * m->shape.hidden, &e), &e);
    assert_ok(grads_new(m, g, &e), &e);
    model_backward_begin(m, g);
    model_logits_grad(m, &(struct logits_grad){x->logits, x->hidden, TARGETS, dhidden}, g);
    assert_ok(model_backward(m, x->pass, dhidden, g, &e), &e);
}

static void some_ids(int32_t ids[SEQS][LENGTH])
{
    for (int i = 0; i < SEQS * LENGTH; i++) ids[i / LENGTH][i % LENGTH] = 8 + (i * 37 + i * i * 5) % 89;
}

/* ---- peft */
static void read_case(const char *name, struct safetensors *file, int32_t ids[SEQS][LENGTH])
{
    struct err e = {0};
    char folder[FS_PATH], path[FS_PATH];
    assert_ok(fs_join(path, data("lora", name, folder), "case.safetensors", &e), &e);
    assert_ok(safetensors_open(path, file, &e), &e);
    const struct st_tensor *t = safetensors_find(file, "ids");
    assert_non_null(t);
    assert_int_equal(safetensors_count(t), SEQS * LENGTH);
    for (int i = 0; i < SEQS * LENGTH; i++) ids[i / LENGTH][i % LENGTH] = st_i32(t, i);
}

static void check_logits(const char *name, const struct pass *x, int64_t V, const struct st_tensor *want)
{
    double worst = 0;
    for (int64_t i = 0; i < TARGETS; i++)
        for (int64_t v = 0; v < V; v++) {
            const int64_t row = i / (LENGTH - 1) * LENGTH + i % (LENGTH - 1);
            worst = fmax(worst, fabs((double)x->logits[i * V + v] - (double)st_f32(want, row * V + v)));
        }
    printf("%-20s logits, worst difference %.2e\n", name, worst);
    assert_true(worst < 1e-4);
}

static void check_gradients(const char *name, const struct model *m, const struct grads *g, const struct safetensors *file)
{
    double worst = 0;
    for (int64_t i = 0; i < m->n_tensors; i++) {
        const struct tensor *t = &m->tensors[i];
        char key[128];
        double d = 0, s = 0;
        snprintf(key, sizeof key, "grad.%s", t->name);
        const struct st_tensor *want = safetensors_find(file, key);
        assert_non_null(want);
        assert_int_equal(safetensors_count(want), t->rows * t->cols);
        for (int64_t j = 0; j < t->rows * t->cols; j++) {
            const double a = (double)st_f32(want, j), b = (double)g->sum[t->offset + j];
            d += (a - b) * (a - b), s += a * a;
        }
        assert_true(s > 0);
        worst = fmax(worst, sqrt(d / s));
    }
    printf("%-20s gradients, worst relative L2 %.2e\n", name, worst);
    assert_true(worst < 1e-4);
}

static void adapters_of_peft_give_its_logits_and_gradients(void **state)
{
    (void)state;
    for (size_t i = 0; i < sizeof CASES / sizeof *CASES; i++)
        for (enum recompute recompute = RECOMPUTE_NONE; recompute <= RECOMPUTE_LAYER; recompute++) {
            struct safetensors file;
            struct pass x;
            struct grads g;
            int32_t ids[SEQS][LENGTH];
            struct model *m = adapter_of(CASES[i]);
            read_case(CASES[i], &file, ids);
            pass_open(&x, m, ids, recompute);
            check_logits(CASES[i], &x, m->shape.vocab, safetensors_find(&file, "logits"));
            pass_backward(&x, m, &g);
            check_gradients(CASES[i], m, &g, &file);
            grads_free(&g);
            pass_close(&x, m);
            safetensors_close(&file);
            model_free(m);
        }
}

/* ---- sampling (a prefill, then one token at a time) gives the logits of the update,
 * bit-identical */
static void sampling_and_update_have_the_same_bits(void **state)
{
    (void)state;
    for (int i = 0; i < 4; i++) {
        struct err e = {0};
        struct model_config c = {
            .base = "", .dtype = i % 2 ? PRECISION_BF16 : PRECISION_F32, .weights = i / 2 ? WEIGHTS_INT8 : WEIGHTS_AS_DTYPE};
        struct model *m = trained("qwen3", &c, 1);
        struct pass x;
        struct kv_cache cache;
        struct arena a;
        int32_t ids[SEQS][LENGTH];
        const int64_t V = m->shape.vocab;
        some_ids(ids);
        pass_open(&x, m, ids, RECOMPUTE_NONE);
        arena_init(&a, "decode");
        assert_ok(kv_cache_new(m, m->shape.layers, 4, &cache, &e), &e);
        for (int32_t at = 0; at < LENGTH - 1; at++) {
            const int32_t blocks[1] = {0}, pos = at;
            const int64_t row = 0, slot = at;
            const struct attn_seq seq = {0, 1, at, blocks, 0};
            const struct forward_batch b = {1, &ids[0][at], &pos, &row, &slot, 1, true, &seq, 1, false, &row, 1};
            float *hidden, *logits;
            assert_ok(model_forward(m, &cache, &b, &a, &hidden, &e), &e);
            assert_ok(arena_new(&a, &logits, V, &e), &e);
            model_logits(m, hidden, 1, logits);
            assert_memory_equal(logits, x.logits + at * V, (size_t)V * sizeof *logits);
        }
        kv_cache_free(m, &cache);
        arena_free(&a);
        pass_close(&x, m);
        model_free(m);
    }
}

/* New adapters change nothing, and the base view has them off. */
static void the_base_is_what_it_was(void **state)
{
    (void)state;
    for (size_t i = 0; i < sizeof CASES / sizeof *CASES; i++) {
        char folder[FS_PATH];
        struct err e = {0};
        struct model_config c = {.base = ""};
        const struct lora_spec spec = {.rank = 4, .alpha = 6, .targets = LORA_ALL};
        struct model *plain = opened(&(struct model_source){.folder = base_of(CASES[i], folder), .config = &c});
        struct model *fresh =
            opened(&(struct model_source){.folder = folder, .config = &c, .lora = &spec, .seed = 3, .trains = true});
        struct model *m = trained(CASES[i], &c, 3), *view;
        struct pass want, same, off, on;
        int32_t ids[SEQS][LENGTH];
        some_ids(ids);
        assert_ok(model_base_view(m, &view, &e), &e);
        pass_open(&want, plain, ids, RECOMPUTE_NONE);
        pass_open(&same, fresh, ids, RECOMPUTE_NONE);
        pass_open(&off, view, ids, RECOMPUTE_NONE);
        pass_open(&on, m, ids, RECOMPUTE_NONE);
        bool differs = false;
        for (int64_t j = 0; j < TARGETS * plain->shape.vocab; j++) {
            assert_true(want.logits[j] == same.logits[j]);
            assert_true(want.logits[j] == off.logits[j]);
            differs |= want.logits[j] != on.logits[j];
        }
        assert_true(differs);
        pass_close(&want, plain);
        pass_close(&same, fresh);
        pass_close(&off, view);
        pass_close(&on, m);
        model_free(view);
        model_free(m);
        model_free(fresh);
        model_free(plain);
    }
}

/* ---- a base in int8 */

/* Writes the folder of a base with the weights that products read from an int8 base. */
static void write_dequantized(const char *name, enum dtype dtype, const char *out)
{
    char folder[FS_PATH];
    struct err e = {0};
    const struct model_config c = {.base = ""};
    struct model *m = opened(&(struct model_source){.folder = base_of(name, folder), .config = &c});
    for (int64_t i = 0; i < m->n_tensors; i++) {
        const struct tensor *t = &m->tensors[i];
        for (int64_t at = 0; at < t->rows * t->cols && !t->vector && t->offset != m->embed;) {
            float *w = m->weights + t->offset + at;
            const int64_t left = t->cols - at % t->cols, n = left < INT8_BLOCK ? left : INT8_BLOCK;
            const uint16_t scale = int8_scale(w, n);
            for (int64_t j = 0; j < n; j++) w[j] = int8_to_f32(int8_from_f32(w[j], scale), scale, dtype == DTYPE_BF16);
            at += n;
        }
    }
    assert_ok(model_save(m, out, DTYPE_F32, NULL, &e), &e);
    model_free(m);
}

/* Logits and gradients of adapters on an int8 base are bit-identical to those on a base of the
 * rounded weights. */
static void an_int8_base_is_the_base_of_its_rounded_weights(void **state)
{
    (void)state;
    for (int bf16 = 0; bf16 < 2; bf16++) {
        const char *out = make_test_folder("tare-int8");
        const struct lora_spec spec = {.rank = 4, .alpha = 6, .targets = LORA_ALL};
        struct model_config c = {.base = "", .dtype = bf16 ? PRECISION_BF16 : PRECISION_F32, .weights = WEIGHTS_INT8}, plain = c;
        struct err e = {0};
        struct grads g[2];
        struct pass x[2];
        int32_t ids[SEQS][LENGTH];
        plain.weights = WEIGHTS_AS_DTYPE;
        assert_non_null(out);
        write_dequantized("qwen2-untied-bf16", bf16 ? DTYPE_BF16 : DTYPE_F32, out);
        struct model *m[2] = {trained("qwen2-untied-bf16", &c, 5),
                              opened(&(struct model_source){.folder = out, .config = &plain, .lora = &spec, .trains = true})};
        memcpy(m[1]->weights, m[0]->weights, (size_t)m[0]->n_params * sizeof(float));
        assert_int_equal(model_refresh(m[1], NULL), TARE_OK);
        some_ids(ids);
        for (int i = 0; i < 2; i++) pass_open(&x[i], m[i], ids, false);
        assert_memory_equal(x[0].logits, x[1].logits, (size_t)(TARGETS * m[0]->shape.vocab) * sizeof(float));
        for (int i = 0; i < 2; i++) pass_backward(&x[i], m[i], &g[i]);
        assert_memory_equal(g[0].sum, g[1].sum, (size_t)m[0]->n_params * sizeof(float));
        for (int i = 0; i < 2; i++) {
            grads_free(&g[i]);
            pass_close(&x[i], m[i]);
            model_free(m[i]);
        }
        assert_ok(fs_remove_tree(out, &e), &e);
    }
}

/* A model that is not trained may be int8 without adapters: its logits are those of the base with
 * its adapters off. */
static void a_frozen_model_may_be_int8_alone(void **state)
{
    (void)state;
    char folder[FS_PATH];
    struct err e = {0};
    struct model_config c = {.base = "", .weights = WEIGHTS_INT8};
    struct model *alone = opened(&(struct model_source){.folder = base_of("qwen3", folder), .config = &c}),
                 *with = trained("qwen3", &c, 3), *view;
    struct pass a, b;
    int32_t ids[SEQS][LENGTH];
    some_ids(ids);
    assert_int_equal(alone->n_params, 0);
    assert_ok(model_base_view(with, &view, &e), &e);
    pass_open(&a, alone, ids, false);
    pass_open(&b, view, ids, false);
    assert_memory_equal(a.logits, b.logits, (size_t)(TARGETS * alone->shape.vocab) * sizeof(float));
    pass_close(&a, alone);
    pass_close(&b, view);
    model_free(view);
    model_free(with);
    model_free(alone);
}

static void a_starts_within_pefts_bounds_by_the_seed(void **state)
{
    (void)state;
    struct model_config c = {.base = ""};
    char folder[FS_PATH];
    const struct lora_spec spec = {.rank = 8, .alpha = 16, .targets = LORA_ALL};
    struct model *m[3];
    for (int i = 0; i < 3; i++)
        m[i] = opened(&(struct model_source){
            .folder = data("models/tiny", "qwen3", folder), .config = &c, .lora = &spec, .seed = i < 2 ? 1 : 2, .trains = true});
    for (int64_t i = 0; i < m[0]->n_tensors; i++) {
        const struct tensor *t = &m[0]->tensors[i];
        const double bound = 1 / sqrt((double)t->cols);
        double most = 0;
        for (int64_t j = 0; j < t->rows * t->cols; j++) most = fmax(most, fabs((double)m[0]->weights[t->offset + j]));
        if (strstr(t->name, "lora_B"))
            assert_true(most == 0);
        else
            assert_true(most <= bound && most > 0.9 * bound);
    }
    const size_t bytes = (size_t)m[0]->n_params * sizeof(float);
    assert_memory_equal(m[0]->weights, m[1]->weights, bytes);
    assert_true(memcmp(m[0]->weights, m[2]->weights, bytes) != 0);
    for (int i = 0; i < 3; i++) model_free(m[i]);
}

/* ---- folders */
static void a_saved_adapter_is_read_to_the_bit(void **state)
{
    (void)state;
    struct err e = {0};
    const char *out = make_test_folder("tare-lora");
    struct model_config c = {.base = ""};
    struct model *m = trained("qwen2-untied-bf16", &c, 5);
    assert_non_null(out);
    assert_ok(model_save(m, out, DTYPE_F32, NULL, &e), &e);
    struct model *back = opened(&(struct model_source){.folder = out, .config = &c});
    assert_int_equal(back->n_params, m->n_params);
    assert_memory_equal(back->weights, m->weights, (size_t)m->n_params * sizeof(float));
    assert_int_equal(model_frozen_hash(back), model_frozen_hash(m));
    model_free(back);
    model_free(m);
    assert_ok(fs_remove_tree(out, &e), &e);
}

/* The merged model gives the logits of base and adapter. */
static void a_merged_model_has_the_same_logits(void **state)
{
    (void)state;
    for (size_t i = 0; i < sizeof CASES / sizeof *CASES; i++) {
        struct err e = {0};
        const char *out = make_test_folder("tare-lora");
        struct model *m = adapter_of(CASES[i]);
        const struct model_config c = {.base = ""};
        struct pass a, b;
        int32_t ids[SEQS][LENGTH];
        some_ids(ids);
        assert_non_null(out);
        assert_ok(model_merge(m, out, MERGE_F32, out, &e), &e);
        struct model *merged = opened(&(struct model_source){.folder = out, .config = &c});
        assert_null(merged->lora);
        pass_open(&a, m, ids, RECOMPUTE_NONE);
        pass_open(&b, merged, ids, RECOMPUTE_NONE);
        for (int64_t j = 0; j < TARGETS * m->shape.vocab; j++) assert_true(fabsf(a.logits[j] - b.logits[j]) < 1e-4f);
        pass_close(&a, m);
        pass_close(&b, merged);
        model_free(merged);
        model_free(m);
        assert_ok(fs_remove_tree(out, &e), &e);
    }
}

/* ---- refusals */
static void expect(const struct model_source *s, tare_status code, const char *says)
{
    struct err e = {0};
    struct model *m = NULL;
    const struct kernels *k;
    struct model_source with = *s;
    assert_int_equal(kernels_cpu(NULL, &k, &e), TARE_OK);
    with.kernels = k;
    assert_int_equal(model_open(&with, &m, &e), code);
    assert_null(m);
    if (!strstr(e.message, says)) fail_msg("the message \"%s\" does not say \"%s\"", e.message, says);
}

static void write_text(const char *folder, const char *file, const char *text)
{
    struct err e = {0};
    char path[FS_PATH];
    assert_ok(fs_join(path, folder, file, &e), &e);
    assert_ok(fs_write_atomic(path, text, (int64_t)strlen(text), &e), &e);
}

static void settings_that_are_not_computed_are_refused_by_name(void **state)
{
    (void)state;
    static const struct {
        const char *json, *says;
        tare_status code;
    } BAD[] = {
        {"\"peft_type\": \"LOHA\"", "peft_type = \"LOHA\"", TARE_E_UNSUPPORTED},
        {"\"use_dora\": true", "use_dora is set", TARE_E_UNSUPPORTED},
        {"\"bias\": \"all\"", "bias = \"all\"", TARE_E_UNSUPPORTED},
        {"\"modules_to_save\": [\"lm_head\"]", "modules_to_save is set", TARE_E_UNSUPPORTED},
        {"\"rank_pattern\": {\"q_proj\": 2}", "rank_pattern is set", TARE_E_UNSUPPORTED},
        {"\"layers_to_transform\": [0]", "layers_to_transform is set", TARE_E_UNSUPPORTED},
        {"\"init_lora_weights\": \"pissa\"", "init_lora_weights = \"pissa\"", TARE_E_UNSUPPORTED},
        {"\"target_modules\": [\"q_proj\", \"lm_head\"]", "\"lm_head\"", TARE_E_CONFIG},
        {"\"target_modules\": []", "target_modules is empty", TARE_E_INVALID},
        {"\"use_rslora\": \"yes\"", "use_rslora must be true or false", TARE_E_INVALID},
        {"\"use_rslora\": 1", "use_rslora must be true or false", TARE_E_INVALID},
        {"\"r\": 0", "r = 0", TARE_E_RANGE},
        {"\"base_model_name_or_path\": \"nowhere/at/all\"", "model.base=FOLDER", TARE_E_NOT_FOUND},
    };
    struct err e = {0};
    const char *out = make_test_folder("tare-lora");
    char text[1024];
    assert_non_null(out);
    for (size_t i = 0; i < sizeof BAD / sizeof *BAD; i++) {
        snprintf(text, sizeof text,
                 "{\"peft_type\": \"LORA\", \"base_model_name_or_path\": \"%s/tests/data/models/tiny/qwen3\", \"r\": 4, "
                 "\"lora_alpha\": 8, \"target_modules\": [\"q_proj\"], %s}",
                 getenv("SOURCE"), BAD[i].json);
        /* JSON with two equal keys would be refused, so the default one is removed. */
        char key[64];
        snprintf(key, sizeof key, "%.*s", (int)(strchr(BAD[i].json + 1, '"') + 1 - BAD[i].json), BAD[i].json);
        char *first = strstr(text, key), *again = strstr(first + 1, key);
        if (again) first[1] = '_';
        write_text(out, "adapter_config.json", text);
        expect(&(struct model_source){.folder = out}, BAD[i].code, BAD[i].says);
    }
    assert_ok(fs_remove_tree(out, &e), &e);
}

static void the_wrong_base_and_damaged_weights_are_refused(void **state)
{
    (void)state;
    struct err e = {0};
    const char *out = make_test_folder("tare-lora");
    char other[FS_PATH], path[FS_PATH];
    struct model_config c = {.base = ""};
    struct model *m = trained("qwen3", &c, 5);
    assert_non_null(out);
    assert_ok(model_save(m, out, DTYPE_F32, NULL, &e), &e);
    expect(&(struct model_source){.folder = out, .trains = true}, TARE_E_CONFIG, "tare merge");
    write_text(out, "base.json", "{\"path\": \"elsewhere\", \"xxh3\": \"0123456789abcdef\"}");
    expect(&(struct model_source){.folder = out}, TARE_E_CONFIG, "hash 0123456789abcdef (elsewhere)");
    assert_ok(fs_join(path, out, "base.json", &e), &e);
    assert_int_equal(unlink(path), 0);
    const struct model_config llama = {.base = data("models/tiny", "llama-tied-bf16", other)};
    expect(&(struct model_source){.folder = out, .config = &llama}, TARE_E_SHAPE, "lora_A");
    write_text(out, "adapter_model.safetensors", "short");
    expect(&(struct model_source){.folder = out}, TARE_E_CORRUPT, "adapter_model.safetensors");
    assert_ok(fs_join(path, out, "adapter_model.safetensors", &e), &e);
    assert_int_equal(unlink(path), 0);
    expect(&(struct model_source){.folder = out}, TARE_E_NOT_FOUND, "adapter_model.safetensors");
    model_free(m);
    assert_ok(fs_remove_tree(out, &e), &e);
}

static void int8_is_refused_where_weights_are_trained(void **state)
{
    (void)state;
    char folder[FS_PATH];
    const struct model_config c = {.base = "", .weights = WEIGHTS_INT8};
    expect(&(struct model_source){.folder = base_of("qwen3", folder), .config = &c, .trains = true}, TARE_E_CONFIG,
           "set lora.rank");
}

/* Tests every way to open a model: whole, in bf16, in int8, as the base of new adapters. */
static void weights_that_are_not_finite_are_refused(void **state)
{
    (void)state;
    struct err e = {0};
    char folder[FS_PATH];
    const char *out = make_test_folder("tare-finite");
    const struct model_config plain = {.base = ""}, int8 = {.base = "", .weights = WEIGHTS_INT8};
    const struct model_config bf16 = {.base = "", .dtype = PRECISION_BF16};
    const struct lora_spec lora = {.rank = 2, .alpha = 4, .targets = LORA_ALL};
    assert_non_null(out);
    for (int i = 0; i < 4; i++) {
        struct model *m = opened(&(struct model_source){.folder = base_of("qwen3", folder), .config = &plain});
        const bool matrix = i % 2;
        const int64_t at =
            matrix ? m->unit_begin[1] + model_layer_product(m, 0, PRODUCT_DOWN)->offset + 3 * m->shape.intermediate : m->final_norm;
        const char *says = matrix ? "\"model.layers.0.mlp.down_proj.weight\": row 3, column 5 is NaN"
                                  : "\"model.norm.weight\": row 0, column 5 is infinite";
        m->weights[at + 5] = matrix ? -NAN : -INFINITY;
        assert_ok(model_save(m, out, i < 2 ? DTYPE_F32 : DTYPE_BF16, NULL, &e), &e);
        model_free(m);
        expect(&(struct model_source){.folder = out, .config = &plain}, TARE_E_NOT_FINITE, says);
        expect(&(struct model_source){.folder = out, .config = &bf16}, TARE_E_NOT_FINITE, "model.safetensors: tensor");
        expect(&(struct model_source){.folder = out, .config = &int8}, TARE_E_NOT_FINITE, says);
        expect(&(struct model_source){.folder = out, .config = &plain, .lora = &lora, .trains = true}, TARE_E_NOT_FINITE, says);
    }
    assert_ok(fs_remove_tree(out, &e), &e);
}

static void targets_are_names_or_all(void **state)
{
    (void)state;
    struct err e = {0};
    unsigned mask;
    assert_ok(config_lora_targets("q_proj, v_proj", "x", &mask, &e), &e);
    assert_int_equal(mask, 5);
    assert_ok(config_lora_targets("all-linear", "x", &mask, &e), &e);
    assert_int_equal(mask, LORA_ALL);
    assert_int_equal(config_lora_targets("q_proj,w_proj", "a.ini:3", &mask, &e), TARE_E_CONFIG);
    assert_non_null(strstr(e.message, "a.ini:3: \"w_proj\""));
    assert_int_equal(config_lora_targets(" , ", "x", &mask, &e), TARE_E_CONFIG);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(adapters_of_peft_give_its_logits_and_gradients),
        cmocka_unit_test(sampling_and_update_have_the_same_bits),
        cmocka_unit_test(the_base_is_what_it_was),
        cmocka_unit_test(an_int8_base_is_the_base_of_its_rounded_weights),
        cmocka_unit_test(a_frozen_model_may_be_int8_alone),
        cmocka_unit_test(int8_is_refused_where_weights_are_trained),
        cmocka_unit_test(weights_that_are_not_finite_are_refused),
        cmocka_unit_test(a_starts_within_pefts_bounds_by_the_seed),
        cmocka_unit_test(a_saved_adapter_is_read_to_the_bit),
        cmocka_unit_test(a_merged_model_has_the_same_logits),
        cmocka_unit_test(settings_that_are_not_computed_are_refused_by_name),
        cmocka_unit_test(the_wrong_base_and_damaged_weights_are_refused),
        cmocka_unit_test(targets_are_names_or_all),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
