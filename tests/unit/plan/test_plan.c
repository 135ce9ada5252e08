/* The plan: published parameter counts; a small model computed by hand; the bytes that the engine
 * allocates, class by class, on 1 to 8 ranks; shards of 1/R; whether it fits, and the advice;
 * quantities and devices. */
#include "engine.h"
#include "folder.h"
#include "small.h"

#include "base/fs.h"
#include "dist/threads.h"
#include "model/grads.h"
#include "model/lora.h"
#include "plan/plan.h"
#include "rollout/rollout.h"
#include "update/microbatch.h"
#include "update/update.h"

#include <math.h>
#include <string.h>

static void load_config(struct config *c, const char *const *settings, int64_t n)
{
    struct err e = {0};
    assert_ok(config_load(c, NULL, settings, n, &e), &e);
}

#define LOAD(C, ...)                                                                                                               \
    do {                                                                                                                           \
        static const char *const settings_[] = {__VA_ARGS__};                                                                      \
        load_config((C), settings_, (int64_t)(sizeof settings_ / sizeof *settings_));                                              \
    } while (0)

static struct plan make_plan(const struct config *c, const struct model_shape *s, int64_t ranks, struct plan_machine machine)
{
    struct err e = {0};
    struct plan p;
    const struct plan_input in = {.config = c,
                                  .shape = *s,
                                  .ranks = ranks,
                                  .hosts = 1,
                                  .shard = SHARD_ZERO3,
                                  .gradient_shards = 1,
                                  .eval_rows = -1,
                                  .machine = machine};
    assert_ok(plan_make(&in, &p, &e), &e);
    return p;
}

static void assert_double(double got, double want, double tolerance)
{
    if (!(fabs(got - want) <= tolerance * fmax(1, fabs(want)))) fail_msg("%.17g where %.17g was expected", got, want);
}

static void assert_within(const char *what, double planned, double real, double share)
{
    if (fabs(planned - real) > share * real) fail_msg("%s: planned %.0f bytes, the engine takes %.0f", what, planned, real);
}

static void published_counts(void **state)
{
    (void)state;
    static const struct {
        const char *name;
        int64_t count;
    } MODELS[] = {{"Qwen2.5-Math-7B", 7615616512},
                  {"Qwen2.5-7B-Instruct", 7615616512},
                  {"Qwen2.5-Math-1.5B", 1543714304},
                  {"Qwen2.5-1.5B", 1543714304},
                  {"Llama-3.1-8B-Instruct", 8030261248}};
    for (size_t i = 0; i < sizeof MODELS / sizeof *MODELS; i++) {
        struct config c;
        struct err e = {0};
        struct model_shape s;
        char path[4096];
        snprintf(path, sizeof path, "model.path=%s/configs/models/%s", getenv("SOURCE") ? getenv("SOURCE") : ".", MODELS[i].name);
        const char *const settings[] = {path, "run.dir=x"};
        load_config(&c, settings, 2);
        assert_ok(plan_shape(&c, 0, &s, &e), &e);
        const struct plan p = make_plan(&c, &s, 8, (struct plan_machine){.gpu = true});
        assert_int_equal(p.params, MODELS[i].count);
        config_free(&c);
    }
}

/* 8 prompts of 5 tokens, 2 completions of 7 each, by hand. */
static void by_hand(void **state)
{
    (void)state;
    struct config c;
    LOAD(&c, "run.dir=x", "model.path=x", "rollout.prompts=8", "rollout.group_size=2", "rollout.max_prompt_tokens=5",
         "rollout.max_new_tokens=7", "train.minibatch=8", "model.dtype=bf16");
    const struct plan p = make_plan(&c, &SMALL, 1, (struct plan_machine){.gpu = true});
    /* embedding 32 x 8; a layer: q 8 x 8, k and v 4 x 8, biases 16, o 8 x 8, gate, up, down 16 x 8
     * each, two norms of 8; the last norm */
    assert_int_equal(p.params, 256 + 2 * (64 + 32 + 32 + 16 + 64 + 3 * 128 + 16) + 8);
    /* the products in bf16: q k v, o, gate up, down of two layers, and the head; cos and sin of all
     * positions */
    assert_int_equal(p.first.bytes[PLAN_SAMPLER], 2 * (2 * (128 + 64 + 256 + 128) + 256) + 4 * 4 * SMALL.max_position);
    /* a key and a value of 4, two layers, bf16 */
    assert_int_equal(p.kv_token_bytes, 2 * 2 * 4 * 2);
    /* a prompt of 5 has one block; each completion has one for its 5 + 7 - 1 keys; 8 x (1 + 2)
     * blocks, an eighth more */
    assert_int_equal(p.kv_wanted, 24 * 16);
    assert_int_equal(p.kv_tokens, 27 * 16);
    assert_int_equal(p.kv_sequences, 18);
    /* minibatch of 4 groups: tokens 4 x 5 + 8 x 6, targets 8 x 7 */
    assert_int_equal(p.micro_rows, 68);
    assert_int_equal(p.micro_targets, 56);
    /* Floats of a token in a layer. Of half the size in bf16: norms 8 + 8, act 16, attention 8, qkv
     * 16, gate up 32. In fp32: x2 8, two rms, m and l of two heads: 58. Once: qkv 16 and gate up 32
     * in fp32. Residual stream 3 x 8. Backward: dx 8, dnorm 8, wide 32 in bf16, narrow 16. Of a
     * target: hidden, dhidden, last, dlast 8 each, rms. And the one-layer cache, 5 blocks and a
     * quarter more. Not in this sum: the batch's index arrays, and alignment to 64 bytes. */
    assert_within("activations", (double)p.first.bytes[PLAN_ACTIVATIONS],
                  4 * (68 * (2 * 58 + 48 + 24 + 48) + 56 * 33) + 6 * 16 * 16, 0.08);
    /* one layer's tokens instead of two's: 82, with qkv and gate up only in fp32 */
    c.train.recompute = RECOMPUTE_LAYER;
    const struct plan again = make_plan(&c, &SMALL, 1, (struct plan_machine){.gpu = true});
    assert_int_equal(p.first.bytes[PLAN_ACTIVATIONS] - again.first.bytes[PLAN_ACTIVATIONS], 4 * 68 * (2 * 58 + 48 - 82) + 2 * 48);
    /* the gradient of the embedding and of a layer, 608 floats that start at multiples of 16 and
     * end at one of 64 */
    assert_int_equal(p.first.bytes[PLAN_GATHERED], 4 * (256 + 640));
    assert_int_equal(p.first.bytes[PLAN_REFERENCE], 0);
    /* the region on the device: 1/32 and 64 MiB more than its content */
    int64_t sum = 0;
    for (int i = 0; i < PLAN_CLASSES; i++) sum += i == PLAN_MARGIN || i == PLAN_STAGING ? 0 : p.first.bytes[i];
    assert_int_equal(p.first.bytes[PLAN_MARGIN], sum / 32 + (64 << 20));
    assert_int_equal(p.first.device, sum + p.first.bytes[PLAN_MARGIN]);
    assert_int_equal(p.fits, -1);
    config_free(&c);
}

/* As by_hand, with adapters of rank 2 on all layers. */
static void adapters_by_hand(void **state)
{
    (void)state;
    struct config c;
    LOAD(&c, "run.dir=x", "model.path=x", "rollout.prompts=8", "rollout.group_size=2", "rollout.max_prompt_tokens=5",
         "rollout.max_new_tokens=7", "train.minibatch=8", "model.dtype=bf16", "lora.rank=2", "loss.kl_coef=0.1", "loss.kl=k3");
    const struct plan p = make_plan(&c, &SMALL, 1, (struct plan_machine){.gpu = true});
    /* of the base */
    assert_int_equal(p.params, 256 + 2 * (64 + 32 + 32 + 16 + 64 + 3 * 128 + 16) + 8);
    /* A: q, k, v 2 x 8 each, o 2 x 8, gate and up 2 x 8 each, down 2 x 16; B: q 8 x 2, k and v 4 x
     * 2, o 8 x 2, gate and up 16 x 2, down 8 x 2 */
    assert_int_equal(p.trained, 2 * (3 * 16 + 16 + 2 * 16 + 32 + 16 + 2 * 8 + 16 + 2 * 32 + 16));
    /* in a layer 272 floats that start at multiples of 16 (k's and v's B leave 8 each), and end at
     * one of 64 */
    assert_int_equal(p.first.bytes[PLAN_WEIGHTS], 4 * 640);
    assert_int_equal(p.first.bytes[PLAN_GRADIENTS], 4 * 640);
    assert_int_equal(p.first.bytes[PLAN_MOMENTS], 8 * 640);
    assert_int_equal(p.first.bytes[PLAN_GATHERED], 4 * 320);
    /* the base's products and the adapters in bf16; the embedding, norms and biases in fp32;
     * positions */
    /* 16, 8 and 8 floats start at 0, 16, 32 */
    assert_int_equal(p.first.bytes[PLAN_SAMPLER],
                     2 * (2 * (128 + 64 + 256 + 128) + 256) + 2 * p.trained + 4 * (256 + 2 * 48 + 8) + 4 * 4 * SMALL.max_position);
    /* the reference is the base: a key/value cache of both layers, 5 blocks and a quarter more, and
     * no weights */
    assert_int_equal(p.first.bytes[PLAN_REFERENCE] < 2 * 6 * 16 * 16 + 4 * 68 * 400, true);
    /* as without adapters, plus x A^T of three products and of one, and a row as wide as the widest
     * product: 4 x 2 + 16 floats */
    assert_within("activations", (double)p.first.bytes[PLAN_ACTIVATIONS],
                  4 * (68 * (2 * 102 + 24 + 64 + 4 * 2 + 16) + 56 * 33) + 6 * 16 * 16, 0.08);
    config_free(&c);
}

/* Return the memory that batch_invariant adds on a GPU for the sums of slices of K. The largest
 * product decides. */
static int64_t slice_sums(const struct model_shape *s)
{
    struct config c;
    LOAD(&c, "run.dir=x", "model.path=x", "model.dtype=bf16", "rollout.prompts=8", "rollout.group_size=2",
         "rollout.max_prompt_tokens=5", "rollout.max_new_tokens=7", "train.minibatch=8");
    const struct plan without = make_plan(&c, s, 1, (struct plan_machine){.gpu = true});
    c.run.deterministic = DETERMINISTIC_BATCH_INVARIANT;
    const struct plan with = make_plan(&c, s, 1, (struct plan_machine){.gpu = true});
    config_free(&c);
    return with.first.bytes[PLAN_WORKING] - without.first.bytes[PLAN_WORKING];
}

static void slice_sums_by_hand(void **state)
{
    (void)state;
    struct model_shape s = SMALL;
    s.hidden = 512, s.intermediate = 1536, s.head_dim = 512;
    /* six slices of the MLP's second product, 9 x 128 rows */
    assert_int_equal(slice_sums(&s), 4 * 6 * 9 * 128 * 512);
    s = (struct model_shape){.arch = ARCH_QWEN2,
                             .vocab = 32,
                             .hidden = 3584,
                             .layers = 1,
                             .heads = 28,
                             .kv_heads = 4,
                             .head_dim = 128,
                             .intermediate = 18944,
                             .max_position = 64,
                             .tied = true,
                             .qkv_bias = true};
    assert_int_equal(slice_sums(&s), 4 * 10 * 3 * 128 * 3584); /* of Qwen2.5-7B */
}

/* ---- the engine's real allocations: the CPU's kernels with a backend that counts bytes */

static _Thread_local int64_t taken; /* and not yet freed */
enum { NOTE = 64 };                 /* bytes before an allocation, which hold its size */
static struct backend noting;
static struct kernels noted;

static const struct backend *host_backend(void)
{
    const struct kernels *k;
    struct err e;
    assert_ok(kernels_cpu(NULL, &k, &e), &e);
    return k->backend;
}

static void *note_alloc(const struct kctx *c, int64_t bytes)
{
    char *p = host_backend()->alloc(c, bytes + NOTE);
    if (!p) return NULL;
    memcpy(p, &bytes, sizeof bytes);
    taken += bytes;
    return p + NOTE;
}

static void note_release(const struct kctx *c, void *p)
{
    int64_t bytes;
    memcpy(&bytes, (char *)p - NOTE, sizeof bytes);
    taken -= bytes;
    host_backend()->release(c, (char *)p - NOTE);
}

static int note_kernels(void **state)
{
    const struct kernels *k;
    struct err e;
    (void)state;
    if (kernels_cpu(NULL, &k, &e)) return -1;
    noting = *k->backend;
    noting.counts = 1;
    noting.alloc = note_alloc;
    noting.release = note_release;
    noted = *k;
    noted.backend = &noting;
    return 0;
}

static int64_t cache_bytes(const struct model *m, const struct kv_cache *c)
{
    return c->n_layers * 2 * kv_cache_bytes(m, c->n_blocks);
}

static tare_status no_loss(void *ctx, const struct token_block *s, struct head_grad_row *coef, struct tally *tally, struct err *e)
{
    (void)ctx, (void)tally, (void)e;
    memset(coef, 0, (size_t)s->n * sizeof *coef);
    return TARE_OK;
}

/* Run a step of c at full length: this rank samples all of its prompts, and all ranks update on
 * them. reference: with its logits, and a pass for them. */
static tare_status real_step(const struct config *c, struct trainer *t, struct sampler *s, bool reference, struct err *e)
{
    const int64_t M = c->rollout.prompts, G = c->rollout.group_size, P = c->rollout.max_prompt_tokens,
                  T = c->rollout.max_new_tokens;
    const int64_t own = M / t->m->ranks;
    const struct sample_params params = {.temperature = 1, .top_p = 1, .max_new_tokens = T, .ignore_eos = true};
    struct sample_request requests[64];
    struct sample_output out;
    struct arena a;
    int64_t groups[64];
    arena_init(&a, "test");
    struct batch b = update_batch(&a, M, M * G, M * P, M * G * T);
    tare_status status = batch_regular(&b, G, P, T, &a, e);
    for (int64_t i = 0; i < M * P; i++) b.prompt_ids[i] = (int32_t)(i * 7 % 97);
    for (int64_t i = 0; i < M * G * T; i++) b.ids[i] = (int32_t)(i * 5 % 97);
    for (int64_t i = 0; i < M; i++) groups[i] = i;
    for (int64_t i = 0; i < own; i++)
        requests[i] = (struct sample_request){.prompt = b.prompt_ids + i * P, .prompt_len = P, .n_samples = G};
    if (!status)
        status = sampler_run(
            s, &(struct sample_job){.params = &params, .key = rng_key(1, RNG_TRAIN), .requests = requests, .n = own}, &a, &out, e);
    struct tally tally = {0};
    const struct microbatch_job job = {
        .b = &b, .groups = groups, .n_groups = M, .m = t->m, .exact_kl = reference, .loss = no_loss, .tally = &tally};
    if (!status) status = microbatch_run(t, &job, e);
    if (!status && reference) status = update_logprobs(t, t->reference, &b, NULL, NULL, e);
    arena_free(&a);
    return status;
}

/* One rank's model, reference, trainer and sampler, compared with the plan for the same number of
 * ranks and sharding. */
struct held {
    const struct config *c;
    const char *folder;
    enum shard shard;
    /* transfers overlap with computation, as between GPUs: a second window of a layer's gradient */
    bool overlaps;
};

struct parts {
    struct model *m, *reference;
    struct trainer *t;
    struct sampler *s;
    int64_t model, update; /* bytes allocated by making the model, and the trainer */
    int64_t of_reference;
};

static tare_status open_parts(const struct held *h, struct comm *comm, struct parts *x, struct err *e)
{
    const bool reference = h->c->loss.kl_coef > 0;
    struct lora_spec lora;
    TRY(lora_spec_of(h->c, &lora, e));
    struct model_source source = {.folder = h->folder,
                                  .config = &h->c->model,
                                  .kernels = &noted,
                                  .comm = comm,
                                  .shard = h->shard,
                                  .lora = &lora,
                                  .trains = true};
    taken = 0;
    TRY(model_open(&source, &x->m, e));
    x->model = taken;
    source.lora = NULL;
    if (reference) TRY(lora.rank ? model_base_view(x->m, &x->reference, e) : model_open(&source, &x->reference, e));
    x->of_reference = taken - x->model;
    taken = 0;
    TRY(trainer_new(
        x->m,
        &(struct trainer_options){
            .reference = x->reference, .train = &h->c->train, .loss = &h->c->loss, .temperature = 1, .seed = 1, .total_steps = 10},
        &x->t, e));
    x->update = taken;
    TRY(sampler_new(x->m, h->c->rollout.batch, h->c->rollout.kv_tokens, &x->s, e));
    return real_step(h->c, x->t, x->s, reference, e);
}

static tare_status compare_memory(const struct held *h, const struct comm *comm, const struct parts *x, struct err *e)
{
    const struct model_memory *m = &x->m->memory;
    const struct sampler_memory s = sampler_memory(x->s);
    const struct plan_input in = {.config = h->c,
                                  .shape = x->m->shape,
                                  .ranks = comm->size,
                                  .hosts = 1,
                                  .shard = h->shard,
                                  .gradient_shards = 1,
                                  .eval_rows = -1,
                                  .machine = {.gpu = h->overlaps},
                                  .kernels = &noted};
    struct plan p;
    TRY(plan_make(&in, &p, e));
    const int64_t own = x->t->grads.sum_bytes + x->t->moment_bytes;
    const int64_t real[PLAN_CLASSES] = {
        [PLAN_WEIGHTS] = m->parameters,
        [PLAN_GRADIENTS] = x->t->grads.sum_bytes,
        [PLAN_MOMENTS] = x->t->moment_bytes,
        [PLAN_SAMPLER] = x->model - m->parameters - m->windows,
        [PLAN_GATHERED] = m->windows + x->update - own,
        [PLAN_KV] = s.cache,
        [PLAN_PREFILL] = s.forward,
        [PLAN_REFERENCE] = x->of_reference + cache_bytes(x->m, &x->t->ref_cache),
        [PLAN_ACTIVATIONS] = arena_tensor_bytes(&x->t->acts) + cache_bytes(x->m, &x->t->cache),
        [PLAN_LOGITS] = arena_tensor_bytes(&x->t->head),
    };
    for (int i = 0; i < PLAN_WORKING; i++) {
        /* rank 0 has the only micro-batch */
        const bool of_rank_0 = i == PLAN_REFERENCE || i == PLAN_ACTIVATIONS || i == PLAN_LOGITS;
        if ((!of_rank_0 || !comm->rank) && real[i] != p.first.bytes[i])
            FAIL(e, TARE_E_STATE, "%d ranks, shard %d, adapters of rank %lld, %s: planned %lld bytes, taken %lld", comm->size,
                 (int)h->shard, (long long)h->c->lora.rank, PLAN_CLASS_NAMES[i], (long long)p.first.bytes[i], (long long)real[i]);
    }
    return TARE_OK;
}

static tare_status run_rank(struct comm *comm, void *ctx, struct err *e)
{
    const struct held *h = ctx;
    struct comm beside = *comm;
    struct parts x = {0};
    beside.overlaps = h->overlaps;
    tare_status status = open_parts(h, &beside, &x, e);
    if (!status) status = compare_memory(h, &beside, &x, e);
    sampler_free(x.s);
    trainer_free(x.t);
    model_free(x.reference);
    model_free(x.m);
    return status;
}

static void on_ranks(void **state)
{
    (void)state;
    static const struct {
        const char *arch;
        bool tied;
    } MODELS[] = {{"qwen2", true}, {"llama", false}, {"qwen3", true}};
    for (int i = 0; i < 3; i++) {
        struct config c;
        struct err e = {0};
        struct model *m;
        const struct kernels *k;
        const int32_t eos = 2;
        const char *folder = make_test_folder("tare-plan");
        assert_non_null(folder);
        LOAD(&c, "run.dir=x", "model.path=x", "model.hidden_size=48", "model.layers=3", "model.heads=4", "model.kv_heads=2",
             "model.intermediate_size=112", "model.context=2048", "rollout.prompts=8", "rollout.group_size=2",
             "rollout.max_prompt_tokens=20", "rollout.max_new_tokens=13", "train.minibatch=16", "loss.kl=exact");
        struct model_config shape = c.model;
        shape.init = arch_named(MODELS[i].arch);
        shape.tie_embeddings = MODELS[i].tied;
        assert_ok(kernels_cpu(NULL, &k, &e), &e);
        assert_ok(model_new(&(struct model_source){.config = &shape, .kernels = k, .seed = 5}, 301, &eos, 1, &m, &e), &e);
        assert_ok(model_save(m, folder, DTYPE_F32, NULL, &e), &e);
        model_free(m);
        for (c.lora.rank = 0; c.lora.rank <= 3; c.lora.rank += 3) /* all weights, then adapters */
            for (int ranks = 1; ranks <= 8; ranks *= 2)
                for (int shard = SHARD_ZERO3; shard <= SHARD_NONE; shard++) {
                    struct held h = {&c, folder, (enum shard)shard, false};
                    assert_ok(comm_threads(ranks, 60, run_rank, &h, &e), &e);
                    h.overlaps = true;
                    c.train.recompute = RECOMPUTE_LAYER;
                    c.loss.kl_coef = 0.1;
                    assert_ok(comm_threads(ranks, 60, run_rank, &h, &e), &e);
                    for (c.train.recompute = RECOMPUTE_NORMS; c.train.recompute < RECOMPUTE_LAYER; c.train.recompute++)
                        if (ranks == 1) assert_ok(comm_threads(ranks, 60, run_rank, &h, &e), &e);
                    c.train.recompute = RECOMPUTE_NONE;
                    c.loss.kl_coef = 0;
                }
        assert_ok(fs_remove_tree(folder, &e), &e);
        config_free(&c);
    }
}

/* The cache has the size of an evaluation of the rows that data.eval has: 40 prompts of 5 tokens,
 * one completion of 7 each, 2 blocks a sequence. */
static void evaluation_is_bounded_by_its_rows(void **state)
{
    (void)state;
    static const struct {
        int64_t rows, questions, blocks;
    } CASES[] = {{-1, 256, 512}, {1000, 256, 512}, {40, 40, 80}, {8, 0, 24}};
    struct config c;
    struct err e = {0};
    LOAD(&c, "run.dir=x", "model.path=x", "rollout.prompts=8", "rollout.group_size=2", "rollout.max_prompt_tokens=5",
         "rollout.max_new_tokens=7", "train.minibatch=8", "data.eval=x", "eval.after=true");
    for (size_t i = 0; i < sizeof CASES / sizeof *CASES; i++) {
        struct plan p;
        const struct plan_input in = {.config = &c,
                                      .shape = SMALL,
                                      .ranks = 1,
                                      .hosts = 1,
                                      .gradient_shards = 1,
                                      .eval_rows = CASES[i].rows,
                                      .machine = {.gpu = true}};
        assert_ok(plan_make(&in, &p, &e), &e);
        assert_int_equal(p.kv_eval_rows, CASES[i].questions);
        assert_int_equal(p.kv_wanted, CASES[i].blocks * 16);
        assert_int_equal(CASES[i].rows < 0 ? 256 : config_eval_rows(&c, CASES[i].rows),
                         CASES[i].rows == 8 ? 8 : CASES[i].questions);
    }
    config_free(&c);
}

static void shards_of_ranks(void **state)
{
    (void)state;
    struct config c;
    struct err e = {0};
    struct model_shape s;
    char path[4096];
    snprintf(path, sizeof path, "model.path=%s/configs/models/Qwen2.5-Math-7B", getenv("SOURCE") ? getenv("SOURCE") : ".");
    const char *const settings[] = {path, "run.dir=x"};
    load_config(&c, settings, 2);
    assert_ok(plan_shape(&c, 0, &s, &e), &e);
    const struct plan one = make_plan(&c, &s, 1, (struct plan_machine){.gpu = true});
    for (int64_t ranks = 2; ranks <= 64; ranks *= 2) {
        const struct plan p = make_plan(&c, &s, ranks, (struct plan_machine){.gpu = true});
        for (int i = PLAN_WEIGHTS; i <= PLAN_MOMENTS; i++)
            assert_within("a shard", (double)p.first.bytes[i], (double)one.first.bytes[i] / (double)ranks,
                          ranks <= 16 ? 0.001 : 0.07); /* shards are whole blocks, 240 per unit */
        /* the masters are sharded, so the sampler needs an additional copy of the embedding in
         * fp32 */
        assert_within("the compute copy", (double)p.first.bytes[PLAN_SAMPLER],
                      (double)one.first.bytes[PLAN_SAMPLER] + 4.0 * 152064 * 3584, 0.01);
    }
    /* 16 prompts on 5 ranks: one has 4, four have 3 */
    const struct plan p = make_plan(&c, &s, 5, (struct plan_machine){.gpu = true});
    assert_int_equal(p.first.groups, 4);
    assert_int_equal(p.last.groups, 3);
    config_free(&c);
}

static void fit_and_advice(void **state)
{
    (void)state;
    struct config c;
    struct err e = {0};
    struct model_shape s;
    char path[4096];
    snprintf(path, sizeof path, "model.path=%s/configs/models/Qwen2.5-Math-7B", getenv("SOURCE") ? getenv("SOURCE") : ".");
    const char *const settings[] = {path, "run.dir=x", "model.dtype=bf16", "model.max_position_embeddings=16384"};
    load_config(&c, settings, 4);
    assert_ok(plan_shape(&c, 0, &s, &e), &e);
    const struct plan fits = make_plan(&c, &s, 8, (struct plan_machine){.gpu = true, .memory = 300e9});
    assert_int_equal(fits.fits, 1);
    assert_int_equal(fits.n_advice, 0);
    assert_true((double)fits.kv_free * (double)fits.kv_token_bytes <= fits.budget);
    /* the kept activations of 28 layers are too much; the advice names train.recompute, and with it
     * the plan fits */
    const struct plan advised = make_plan(&c, &s, 8, (struct plan_machine){.gpu = true, .memory = 80e9});
    assert_int_equal(advised.fits, 0);
    assert_string_equal(advised.advice[0].key, "train.recompute");
    assert_int_equal(advised.fits_with_advice, 1);
    const char *const changed[] = {path, "run.dir=x", "model.dtype=bf16", "model.max_position_embeddings=16384",
                                   "train.recompute=layer"};
    struct config d;
    load_config(&d, changed, 5);
    assert_int_equal(make_plan(&d, &s, 8, (struct plan_machine){.gpu = true, .memory = 80e9}).fits, 1);
    const struct plan never = make_plan(&c, &s, 8, (struct plan_machine){.gpu = true, .memory = 40e9});
    assert_int_equal(never.fits, 0);
    assert_int_equal(never.fits_with_advice, 0);
    assert_true(never.ranks_needed > 8);
    /* exactly the needed memory is enough, one byte less is not */
    struct plan_machine m = {.gpu = true, .memory = 300e9};
    m.memory = fits.need + fits.nccl;
    c.rollout.kv_tokens = fits.kv_tokens;
    assert_int_equal(make_plan(&c, &s, 8, m).fits, 1);
    m.memory -= 1;
    assert_int_equal(make_plan(&c, &s, 8, m).fits, 0);
    config_free(&d);
    config_free(&c);
}

static void parsed_quantities(void **state)
{
    (void)state;
    struct err e = {0};
    struct plan_machine m;
    double x;
    static const struct {
        const char *text;
        double value;
    } GOOD[] = {{"80GB", 80e9}, {"40GiB", 40 * 0x1p30}, {"312T", 312e12}, {"1.5e9", 1.5e9}, {"0", 0}, {"2K", 2e3}};
    static const char *const BAD[] = {"", "GB", "80 GB", "80XB", "-1", "nan", "inf", "1e400", "8GBGB"};
    for (size_t i = 0; i < sizeof GOOD / sizeof *GOOD; i++) {
        assert_ok(plan_quantity(GOOD[i].text, &x, &e), &e);
        assert_double(x, GOOD[i].value, 0);
    }
    for (size_t i = 0; i < sizeof BAD / sizeof *BAD; i++) {
        if (!plan_quantity(BAD[i], &x, &e)) fail_msg("'%s' is taken as %g", BAD[i], x);
        assert_non_null(strstr(e.message, "80GB"));
    }
    assert_ok(plan_device("h100", &m, &e), &e);
    assert_double(m.memory, 80e9, 0);
    assert_int_equal(plan_device("tpu", &m, &e), TARE_E_CONFIG);
    assert_non_null(strstr(e.message, "h100"));
}

/* NCCL takes its memory beside the plan, unless it is open already or not used. */
static void nccl_takes_memory_of_several_gpus(void **state)
{
    (void)state;
    struct config c;
    const struct plan_machine m = {.gpu = true, .memory = 80e9}, opened = {.gpu = true, .memory = 80e9, .opened = true};
    load_config(&c, (const char *const[]){"run.dir=x"}, 1);
    const struct plan one = make_plan(&c, &SMALL, 1, m), eight = make_plan(&c, &SMALL, 8, m),
                      late = make_plan(&c, &SMALL, 8, opened);
    assert_true(one.nccl == 0);
    assert_true(eight.nccl > 1.8e9 && eight.nccl < 2e9);
    assert_true(eight.budget == late.budget - eight.nccl);
    assert_true(late.nccl == 0);
    c.dist.communicator = COMMUNICATOR_MPI;
    assert_true(make_plan(&c, &SMALL, 8, m).nccl == 0);
    config_free(&c);
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(nccl_takes_memory_of_several_gpus),
                                       cmocka_unit_test(published_counts),
                                       cmocka_unit_test(by_hand),
                                       cmocka_unit_test(adapters_by_hand),
                                       cmocka_unit_test(slice_sums_by_hand),
                                       cmocka_unit_test(on_ranks),
                                       cmocka_unit_test(evaluation_is_bounded_by_its_rows),
                                       cmocka_unit_test(shards_of_ranks),
                                       cmocka_unit_test(fit_and_advice),
                                       cmocka_unit_test(parsed_quantities)};
    return cmocka_run_group_tests(tests, note_kernels, NULL);
}
