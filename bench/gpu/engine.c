/* Benchmarks of tare on a GPU: random weights in the shapes of Qwen2.5.
 *
 *   bench_gpu bandwidth
 *       bytes per second of reading, of writing, and of both (y += x)
 *   bench_gpu operations SHAPE ROWS [invariant]
 *       single operations on that many rows, one object each; invariant: run.deterministic =
 *       batch_invariant
 *   bench_gpu train SHAPE LAYERS TOKENS RECOMPUTE
 *       forward, backward and AdamW of one sequence of TOKENS tokens; RECOMPUTE: none, norms, mlp,
 *       layer
 *   bench_gpu decode SHAPE LAYERS SEQUENCES CONTEXT
 *       one token of all sequences at that context
 *   bench_gpu step SHAPE LAYERS PROMPTS SAMPLES NEW
 *       sampling and policy update, with the time of each
 *
 * SHAPE: 1.5b, 7b, toy. LAYERS 0: all of them. Each prints one JSON object. run.sh compares them
 * with PyTorch. */
#include "base/arena.h"
#include "base/clock.h"
#include "base/log.h"
#include "base/pool.h"
#include "config/config.h"
#include "rollout/rollout.h"
#include "update/supervised.h"
#include "update/update.h"

#include "operations.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { ROUNDS = 5, DECODE_NEW = 128 };

static const struct shape {
    const char *name;
    int64_t hidden, layers, heads, kv_heads, intermediate, vocab;
    bool tied;
} SHAPES[] = {{"1.5b", 1536, 28, 12, 2, 8960, 151936, true},
              {"7b", 3584, 28, 28, 4, 18944, 152064, false},
              {"toy", 256, 2, 4, 2, 512, 1024, true}};
enum { N_SHAPES = sizeof SHAPES / sizeof *SHAPES };

struct bench {
    const char *what;
    const struct kernels *k;
    struct model *m;
    struct pool *pool; /* draws the weights: 7.6e9 numbers for 7b */
    struct config config;
    struct arena arena;
    struct shape shape;
    int64_t args[4]; /* after SHAPE */
    const char *recompute;
};

static int ascending(const void *a, const void *b)
{
    const double x = *(const double *)a, y = *(const double *)b;
    return x < y ? -1 : x > y;
}

static double median(double *x, int n)
{
    qsort(x, (size_t)n, sizeof *x, ascending);
    return x[n / 2];
}

static int64_t head_dim(const struct shape *s)
{
    return s->name[0] == 't' ? 64 : 128;
}

static tare_status make_model(struct bench *b, struct err *e)
{
    const struct shape *s = &b->shape;
    const struct model_config c = {.dtype = PRECISION_BF16,
                                   .save_dtype = SAVE_AUTO,
                                   .init = INIT_QWEN2,
                                   .hidden_size = s->hidden,
                                   .layers = s->layers,
                                   .heads = s->heads,
                                   .kv_heads = s->kv_heads,
                                   .head_dim = head_dim(s),
                                   .intermediate_size = s->intermediate,
                                   .context = 32768,
                                   .tie_embeddings = s->tied};
    TRY(pool_new(0, &b->pool, e));
    return model_new(&(struct model_source){.config = &c, .kernels = b->k, .pool = b->pool, .seed = 1}, s->vocab, NULL, 0, &b->m,
                     e);
}

/* Operations of a token's products in the forward pass: 2 for each weight by which it is
 * multiplied, without the embedding's lookup. */
static double product_flops(const struct shape *s, int64_t width)
{
    const double qkv = (double)((s->heads + 2 * s->kv_heads) * width), C = (double)s->hidden;
    const double layer = C * qkv + C * (double)(s->heads * width) + 3 * C * (double)s->intermediate;
    return 2 * ((double)s->layers * layer + C * (double)s->vocab);
}

/* Bytes of weights that a token reads, in bf16. */
static double weight_bytes(const struct shape *s, int64_t width)
{
    return product_flops(s, width); /* 2 operations and 2 bytes per weight */
}

/* ---- bandwidth */
static tare_status bandwidth(struct bench *b, struct err *e)
{
    enum { FLOATS = 1 << 30 };
    struct kernel_fault fault = {.layer = -1};
    const struct kctx c = {.fault = &fault};
    double took[ROUNDS], wrote[ROUNDS], both[ROUNDS];
    float *x = b->k->backend->alloc(&c, (int64_t)FLOATS * 4), *y = b->k->backend->alloc(&c, (int64_t)FLOATS * 4);
    if (!x || !y) FAIL(e, TARE_E_NOMEM, "cannot allocate 8 GiB of device memory");
    for (int i = -1; i < ROUNDS; i++) {
        TRY(kernels_finish(b->k, &c, e));
        const double start = clock_seconds();
        KERNEL(b->k, &c, sum_squares, .out = (double *)y, .x = x, .n = FLOATS, .block = 1 << 20);
        TRY(kernels_finish(b->k, &c, e));
        const double middle = clock_seconds();
        b->k->backend->zero(&c, x, (int64_t)FLOATS * 4);
        TRY(kernels_finish(b->k, &c, e));
        const double written = clock_seconds();
        KERNEL(b->k, &c, add, .y = y, .x = x, .n = FLOATS);
        TRY(kernels_finish(b->k, &c, e));
        if (i >= 0) took[i] = middle - start, wrote[i] = written - middle, both[i] = clock_seconds() - written;
    }
    b->k->backend->release(&c, x);
    b->k->backend->release(&c, y);
    const double read = 4e-9 * FLOATS / median(took, ROUNDS), moved = 12e-9 * FLOATS / median(both, ROUNDS);
    printf("{\"bench\":\"bandwidth\",\"peer\":\"tare\",\"read_gbs\":%.1f,\"write_gbs\":%.1f,\"add_gbs\":%.1f}\n",
           read > moved ? read : moved, 4e-9 * FLOATS / median(wrote, ROUNDS), moved);
    return TARE_OK;
}

/* ---- training */
static tare_status batch_of(struct bench *b, int64_t size, int64_t prompt, const struct sample_output *o, struct batch *out,
                            struct err *e)
{
    *out = (struct batch){.n_groups = o->n / size};
    TRY(batch_regular(out, size, prompt, 0, &b->arena, e));
    rollout_columns(out, o);
    TRY(batch_alloc(out, BATCH_ESTIMATE, &b->arena, e));
    TRY(arena_new(&b->arena, &out->prompt_ids, out->n_prompt_tokens, e));
    for (int64_t i = 0; i < o->n; i++) out->advantage[i] = i % 2 ? -1 : 1, out->rollout_weight[i] = 1;
    return TARE_OK;
}

static tare_status recompute_named(const char *text, enum recompute *out, struct err *e)
{
#define CHOICE_TEXT(ID, TEXT) [ID] = TEXT,
    static const char *const texts[] = {CHOICES_RECOMPUTE(CHOICE_TEXT)};
#undef CHOICE_TEXT
    for (*out = RECOMPUTE_NONE; *out <= RECOMPUTE_LAYER; ++*out)
        if (!strcmp(text, texts[*out])) return TARE_OK;
    FAIL(e, TARE_E_CONFIG, "recompute \"%s\": must be none, norms, mlp or layer", text);
}

static tare_status train(struct bench *b, struct err *e)
{
    const int64_t tokens = b->args[1];
    struct sample_output o = {.n = 1, .n_tokens = tokens};
    struct trainer *t;
    struct batch batch;
    struct supervised_report done = {0};
    double took[ROUNDS];
    b->config.train.micro_tokens = tokens + 1;
    TRY(recompute_named(b->recompute, &b->config.train.recompute, e));
    TRY(trainer_new(b->m, &(struct trainer_options){NULL, &b->config.train, &b->config.loss, 1, 1, 100}, &t, e));
    TRY(arena_new(&b->arena, &o.token_begin, 2, e));
    TRY(arena_new(&b->arena, &o.ids, tokens, e));
    o.token_begin[1] = tokens;
    for (int64_t i = 0; i < tokens; i++)
        o.ids[i] = (int32_t)rng_below(rng_key(1, RNG_DATA), (uint64_t)i, (uint64_t)b->m->shape.vocab);
    TRY(batch_of(b, 1, 1, &o, &batch, e));
    for (int i = -2; i < ROUNDS; i++) {
        const double start = clock_seconds();
        TRY(supervised_step(t, &batch, 0, &done, e));
        TRY(model_finish(b->m, e));
        if (i >= 0) took[i] = clock_seconds() - start;
    }
    const int64_t D = b->m->shape.head_dim;
    /* attention: 2 products of T^2/2 pairs and width D in each head; training: three times the
     * forward pass */
    const double attention = 2.0 * (double)b->shape.layers * (double)(b->shape.heads * D) * (double)tokens * (double)tokens;
    const double flops = 3 * (product_flops(&b->shape, D) * (double)tokens + attention), seconds = median(took, ROUNDS);
    printf(
        "{\"bench\":\"train\",\"peer\":\"tare\",\"shape\":\"%s\",\"layers\":%lld,\"tokens\":%lld,\"recompute\":\"%s\",\"seconds\":%.6f,\"tokens_per_second\":%.1f,\"tflops\":%.1f,\"mfu_989\":%.4f,\"loss\":%.6f}\n",
        b->shape.name, (long long)b->shape.layers, (long long)tokens, b->recompute, seconds, (double)tokens / seconds,
        1e-12 * flops / seconds, flops / seconds / 989e12, done.loss);
    trainer_free(t);
    return TARE_OK;
}

/* ---- sampling */
static tare_status requests_of(struct bench *b, int64_t n, int64_t samples, int64_t prompt, struct sample_request **out,
                               struct err *e)
{
    int32_t *ids;
    TRY(arena_new(&b->arena, out, n, e));
    TRY(arena_new(&b->arena, &ids, n * prompt, e));
    for (int64_t i = 0; i < n * prompt; i++)
        ids[i] = (int32_t)rng_below(rng_key(2, RNG_DATA), (uint64_t)i, (uint64_t)b->m->shape.vocab);
    for (int64_t i = 0; i < n; i++)
        (*out)[i] = (struct sample_request){
            .prompt = ids + i * prompt, .prompt_len = prompt, .n_samples = samples, .prompt_uid = (uint64_t)i};
    return TARE_OK;
}

struct requests {
    const struct sample_request *at;
    int64_t n, new_tokens;
};

static tare_status sample_timed(struct bench *b, struct sampler *s, struct requests r, struct sample_output *out, double *seconds,
                                struct err *e)
{
    const struct sample_params p = {.temperature = 1, .top_p = 1, .max_new_tokens = r.new_tokens, .ignore_eos = true};
    const double start = clock_seconds();
    TRY(sampler_run(s, &(struct sample_job){&p, rng_key(1, RNG_TRAIN), r.at, r.n, NULL, NULL}, &b->arena, out, e));
    *seconds = clock_seconds() - start;
    return TARE_OK;
}

static tare_status decode(struct bench *b, struct err *e)
{
    const int64_t n = b->args[1], context = b->args[2];
    struct sample_request *r;
    struct sample_output out;
    struct sampler *s;
    double first[ROUNDS], all[ROUNDS], token[ROUNDS];
    TRY(sampler_new(b->m, n, n * (context + DECODE_NEW + 2 * KV_BLOCK), &s, e));
    TRY(requests_of(b, n, 1, context - DECODE_NEW / 2, &r, e)); /* at that context on average */
    /* the first rounds issue operations one by one, and capture them */
    for (int i = -2; i < ROUNDS; i++) {
        double one, many;
        TRY(sample_timed(b, s, (struct requests){r, n, 1}, &out, &one, e));
        TRY(sample_timed(b, s, (struct requests){r, n, 1 + DECODE_NEW}, &out, &many, e));
        if (i >= 0) first[i] = one, all[i] = many, token[i] = (many - one) / DECODE_NEW;
    }
    const int64_t D = b->m->shape.head_dim;
    const double keys = 4.0 * (double)(b->shape.layers * b->shape.kv_heads * D) * (double)(n * context);
    const double bytes = weight_bytes(&b->shape, D) + keys, seconds = median(token, ROUNDS);
    const char *chain = getenv("TARE_CUDA_CHAIN"); /* read by the CUDA backend */
    printf(
        "{\"bench\":\"decode\",\"peer\":\"tare\",\"launches\":\"%s\",\"shape\":\"%s\",\"layers\":%lld,\"sequences\":%lld,\"context\":%lld,\"seconds_per_token\":%.8f,\"tokens_per_second\":%.1f,\"bytes\":%.0f,\"gbs\":%.1f,\"prefill_seconds\":%.6f,\"run_seconds\":%.6f}\n",
        chain && !strcmp(chain, "0") ? "apart" : "chained", b->shape.name, (long long)b->shape.layers, (long long)n,
        (long long)context, seconds, (double)n / seconds, bytes, 1e-9 * bytes / seconds, median(first, ROUNDS),
        median(all, ROUNDS));
    sampler_free(s);
    return TARE_OK;
}

/* One step of the recipe without verifier and estimator: sampling, then the update in minibatches
 * of 64 rollouts. */
static tare_status step(struct bench *b, struct err *e)
{
    enum { PROMPT = 256 };
    const int64_t prompts = b->args[1], samples = b->args[2], new_tokens = b->args[3];
    struct sample_request *r;
    struct sample_output out;
    struct sampler *s;
    struct trainer *t;
    struct batch batch;
    struct update_report report = {0};
    double rollout = 0, update = 0;
    b->config.train.recompute = RECOMPUTE_LAYER;
    TRY(sampler_new(b->m, prompts * samples, 0, &s, e));
    TRY(trainer_new(b->m, &(struct trainer_options){NULL, &b->config.train, &b->config.loss, 1, 1, 100}, &t, e));
    TRY(objective_open(&(struct objective_options){.plugin = b->config.objective.plugin, .loss = &b->config.loss}, &t->objective,
                       e));
    TRY(requests_of(b, prompts, samples, PROMPT, &r, e));
    for (int i = 0; i < 2; i++) { /* prints the second */
        TRY(sample_timed(b, s, (struct requests){r, prompts, new_tokens}, &out, &rollout, e));
        TRY(batch_of(b, samples, PROMPT, &out, &batch, e));
        for (int64_t g = 0; g < prompts; g++) memcpy(batch.prompt_ids + g * PROMPT, r[g].prompt, (size_t)PROMPT * sizeof(int32_t));
        const double start = clock_seconds();
        TRY(update_run(t, &batch, &report, e));
        TRY(model_finish(b->m, e));
        update = clock_seconds() - start;
    }
    const int64_t D = b->m->shape.head_dim;
    const double flops = 3 * product_flops(&b->shape, D) * (double)(out.n_tokens + prompts * PROMPT);
    printf(
        "{\"bench\":\"step\",\"peer\":\"tare\",\"shape\":\"%s\",\"layers\":%lld,\"prompts\":%lld,\"samples\":%lld,\"new_"
        "tokens\":%lld,"
        "\"rollout_seconds\":%.6f,\"rollout_tokens_per_second\":%.1f,\"update_seconds\":%.6f,\"update_mfu_989\":%.4f,\"mismatch\":%.8g}\n",
        b->shape.name, (long long)b->shape.layers, (long long)prompts, (long long)samples, (long long)new_tokens, rollout,
        (double)out.n_tokens / rollout, update, flops / update / 989e12, report.mismatch);
    sampler_free(s);
    objective_free(t->objective);
    trainer_free(t);
    return TARE_OK;
}

/* ---- the program */
static tare_status run(struct bench *b, int argc, char **argv, struct err *e)
{
    TRY(kernels_cuda(0, &b->k, e));
    TRY(config_load(&b->config, NULL, NULL, 0, e));
    if (!strcmp(b->what, "bandwidth")) return bandwidth(b, e);
    const bool operations = !strcmp(b->what, "operations");
    const int needed = operations ? 4 : !strcmp(b->what, "step") ? 7 : 6;
    if (argc < needed) FAIL(e, TARE_E_INVALID, "bench_gpu %s: too few arguments; see the head of bench/gpu/engine.c", b->what);
    for (int i = 0; i < N_SHAPES; i++)
        if (!strcmp(SHAPES[i].name, argv[2])) b->shape = SHAPES[i];
    if (!b->shape.name) FAIL(e, TARE_E_INVALID, "unknown shape %s: must be 1.5b, 7b or toy", argv[2]);
    for (int i = 0; i < 4 && 3 + i < argc; i++) b->args[i] = strtoll(argv[3 + i], NULL, 10);
    if (operations && b->args[0] > 0) {
        const struct shape *s = &b->shape;
        const bool invariant = argc > 4 && !strcmp(argv[4], "invariant");
        return operations_run(b->k,
                              &(struct operations_shape){s->name, s->hidden, s->heads, s->kv_heads, head_dim(s), s->intermediate,
                                                         s->vocab, invariant},
                              b->args[0], e);
    }
    if (operations) FAIL(e, TARE_E_INVALID, "bench_gpu operations: ROWS = %s: must be at least 1", argv[3]);
    if (b->args[0] > 0) b->shape.layers = b->args[0];
    b->recompute = argv[5];
    TRY(make_model(b, e));
    if (!strcmp(b->what, "train")) return train(b, e);
    if (!strcmp(b->what, "decode")) return decode(b, e);
    if (!strcmp(b->what, "step")) return step(b, e);
    FAIL(e, TARE_E_INVALID, "unknown command bench_gpu %s: must be bandwidth, operations, train, decode or step", b->what);
}

int main(int argc, char **argv)
{
    struct bench b = {.what = argc > 1 ? argv[1] : ""};
    struct err e = {0};
    arena_init(&b.arena, "bench");
    const tare_status status = run(&b, argc, argv, &e);
    if (status) log_error(&e);
    fflush(stdout);
    model_free(b.m);
    pool_free(b.pool);
    config_free(&b.config);
    arena_free(&b.arena);
    return status ? err_exit_code(status) : 0;
}
