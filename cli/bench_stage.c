/* tare bench step|train|generate: times a whole stage on a model and each of its kernels, next to
 * the peaks of the machine. */
#include "base/clock.h"
#include "base/log.h"
#include "cli/bench.h"
#include "cli/cli.h"
#include "config/config.h"
#include "engine/engine.h"
#include "update/supervised.h"
#include "update/update.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>

enum { PHASES = 2, MAX_ROUNDS = 64 };
struct phase { /* one stage of a round */
    const char *name;
    double seconds;
    int64_t tokens;
    struct bench_profile profile;
};
struct round {
    struct phase phase[PHASES];
    double seconds;
    int64_t grown; /* arenas and caches that allocated memory in this round */
};

struct stage {
    const char *kind, *model;
    bool json;
    int64_t prompt, rounds;
    double started, ready; /* seconds until the model can sample and train */
    double peak, read;     /* of the machine: 10^9 operations and bytes per second */
    struct config config;
    struct engine engine;
    struct arena arena, batch;
    struct sample_request *requests;
    int64_t n_requests;
    struct round round[MAX_ROUNDS];
};

/* ---- running */

static tare_status open_model(struct stage *s, struct err *e)
{
    const struct config *c = &s->config;
    struct engine *g = &s->engine;
    const bool tiny = !strcmp(s->model, "tiny");
    if (c->run.device != RUN_CPU)
        FAIL(e, TARE_E_CONFIG, "run.device = %s: must be cpu; tare bench times the operations of the CPU",
             config_chosen(c, "run", "device"));
    TRY(engine_open(g, ENGINE_KERNELS, e));
    g->kernels = bench_profile_wrap(g->kernels);
    bench_profile_into(&s->round[0].phase[0].profile, NULL);
    if (!tiny && strcmp(s->model, "smollm2") != 0)
        return engine_open(g, ENGINE_MODEL | (strcmp(s->kind, "generate") ? ENGINE_TRAINS : 0), e);
    struct model_config shape = {.dtype = c->model.dtype,
                                 .weights = c->model.weights,
                                 .init = tiny ? INIT_QWEN2 : INIT_LLAMA,
                                 .hidden_size = tiny ? 128 : 576,
                                 .layers = tiny ? 4 : 30,
                                 .heads = tiny ? 4 : 9,
                                 .kv_heads = tiny ? 2 : 3,
                                 .head_dim = tiny ? 32 : 64,
                                 .intermediate_size = tiny ? 512 : 1536,
                                 .context = 4096,
                                 .tie_embeddings = true};
    const struct model_source source = {.config = &shape, .kernels = g->kernels, .pool = g->pool, .seed = 1};
    return model_new(&source, tiny ? 512 : 49152, NULL, 0, &g->model, e);
}

static tare_status make_requests(struct stage *s, struct err *e)
{
    const int64_t n = s->config.rollout.prompts;
    const struct rng_key key = rng_key(1, RNG_DATA);
    int32_t *ids;
    s->n_requests = n;
    TRY(arena_new(&s->arena, &s->requests, n, e));
    TRY(arena_new(&s->arena, &ids, n * s->prompt, e));
    for (int64_t i = 0; i < n * s->prompt; i++)
        ids[i] = (int32_t)rng_below(key, (uint64_t)i, (uint64_t)s->engine.model->shape.vocab);
    for (int64_t i = 0; i < n; i++)
        s->requests[i] = (struct sample_request){.prompt = ids + i * s->prompt,
                                                 .prompt_len = s->prompt,
                                                 .n_samples = !strcmp(s->kind, "step") ? s->config.rollout.group_size : 1,
                                                 .prompt_uid = (uint64_t)i};
    return TARE_OK;
}

static tare_status sample_tokens(struct stage *s, int64_t max_new, int64_t round, struct sample_output *out, struct err *e)
{
    const struct rollout_config *r = &s->config.rollout;
    const struct sample_params p = {.temperature = r->temperature,
                                    .top_p = r->top_p,
                                    .min_p = r->min_p,
                                    .top_k = r->top_k,
                                    .max_new_tokens = max_new,
                                    .ignore_eos = true};
    return sampler_run(
        s->engine.sampler,
        &(struct sample_job){&p, rng_derive(rng_key(1, RNG_TRAIN), (uint64_t)round), s->requests, s->n_requests, NULL, NULL},
        &s->batch, out, e);
}

/* Fills a batch of `size` rollouts per prompt with advantages +1 and -1 in turn. */
static tare_status make_batch(struct stage *s, int64_t size, int64_t prompt, const struct sample_output *o, struct batch *b,
                              struct err *e)
{
    const int64_t groups = o->n / size;
    *b = (struct batch){.n_groups = groups};
    TRY(batch_regular(b, size, prompt, 0, &s->batch, e));
    rollout_columns(b, o);
    TRY(batch_alloc(b, BATCH_ESTIMATE, &s->batch, e));
    TRY(arena_new(&s->batch, &b->prompt_ids, b->n_prompt_tokens, e));
    for (int64_t i = 0; i < o->n; i++) {
        b->advantage[i] = i % 2 ? -1 : 1;
        b->rollout_weight[i] = 1;
    }
    if (s->requests)
        for (int64_t g = 0; g < groups; g++)
            memcpy(b->prompt_ids + g * prompt, s->requests[g].prompt, (size_t)prompt * sizeof(int32_t));
    return TARE_OK;
}

static tare_status run_step(struct stage *s, int64_t i, struct round *r, struct err *e)
{
    struct sample_output out;
    struct batch b;
    struct update_report report;
    const double start = bench_profile_clock();
    bench_profile_into(&r->phase[0].profile, s->engine.model);
    TRY(sample_tokens(s, s->config.rollout.max_new_tokens, i, &out, e));
    TRY(make_batch(s, s->config.rollout.group_size, s->prompt, &out, &b, e));
    const double middle = bench_profile_clock();
    bench_profile_into(&r->phase[1].profile, s->engine.model);
    b.step = i;
    TRY(update_run(s->engine.trainer, &b, &report, e));
    if (report.mismatch != 0) FAIL(e, TARE_E_INVALID, "logprobs of update and sampler differ by %g", report.mismatch);
    const double end = bench_profile_clock();
    r->phase[0].name = "rollout";
    r->phase[0].seconds = middle - start;
    r->phase[0].tokens = out.n_tokens;
    r->phase[1].name = "update";
    r->phase[1].seconds = end - middle;
    r->phase[1].tokens = out.n_tokens;
    return TARE_OK;
}

static tare_status run_train(struct stage *s, int64_t i, struct round *r, struct err *e)
{
    const int64_t rows = s->config.sft.batch, length = s->config.rollout.max_new_tokens;
    struct sample_output o = {.n = rows, .n_tokens = rows * length};
    struct batch b;
    struct supervised_report done;
    (void)i;
    TRY(arena_new(&s->batch, &o.token_begin, rows + 1, e));
    TRY(arena_new(&s->batch, &o.ids, rows * length, e));
    for (int64_t k = 0; k <= rows; k++) o.token_begin[k] = k * length;
    for (int64_t k = 0; k < rows * length; k++)
        o.ids[k] = (int32_t)rng_below(rng_key(1, RNG_DATA), (uint64_t)k, (uint64_t)s->engine.model->shape.vocab);
    TRY(make_batch(s, 1, 1, &o, &b, e));
    const double start = bench_profile_clock();
    bench_profile_into(&r->phase[0].profile, s->engine.model);
    TRY(supervised_step(s->engine.trainer, &b, 0, &done, e));
    r->phase[0].name = "train";
    r->phase[0].seconds = bench_profile_clock() - start;
    r->phase[0].tokens = o.n_tokens;
    return TARE_OK;
}

/* Measures the time to the first tokens by a separate run that stops there. */
static tare_status run_generate(struct stage *s, int64_t i, struct round *r, struct err *e)
{
    struct sample_output out;
    const double start = bench_profile_clock();
    bench_profile_into(&r->phase[0].profile, s->engine.model);
    TRY(sample_tokens(s, 1, i, &out, e));
    const double middle = bench_profile_clock();
    bench_profile_into(&r->phase[1].profile, s->engine.model);
    TRY(sample_tokens(s, s->config.rollout.max_new_tokens, i, &out, e));
    r->phase[0].name = "prefill";
    r->phase[0].seconds = middle - start;
    r->phase[0].tokens = s->n_requests * s->prompt;
    r->phase[1].name = "decode";
    r->phase[1].seconds = bench_profile_clock() - middle - r->phase[0].seconds;
    r->phase[1].tokens = out.n_tokens - s->n_requests;
    for (int o = 0; o < BENCH_OPS; o++) {
        struct bench_op *all = &r->phase[1].profile.op[o];
        const struct bench_op *first = &r->phase[0].profile.op[o];
        all->calls -= first->calls;
        all->seconds -= first->seconds;
        all->flops -= first->flops;
        all->bytes -= first->bytes;
    }
    return TARE_OK;
}

static int64_t memory_taken(const struct stage *s)
{
    const struct trainer *t = s->engine.trainer;
    return s->engine.model->kernel_scratch.grown + s->batch.grown +
           (s->engine.sampler ? sampler_stats(s->engine.sampler).grown : 0) +
           (t ? t->pack.grown + t->acts.grown + t->head.grown + t->work.grown : 0);
}

/* Takes the higher peak of before and after the rounds, because two threads may briefly share a
 * core. */
static void take_peaks(struct stage *s)
{
    s->peak = fmax(s->peak, bench_peak_flops(s->engine.pool, s->engine.kernels->name));
    s->read = fmax(s->read, bench_peak_read(s->engine.pool));
}

static tare_status run_rounds(struct stage *s, struct err *e)
{
    for (int64_t i = 0; i <= s->rounds; i++) {
        struct round *r = &s->round[i];
        const int64_t before = memory_taken(s);
        *r = (struct round){0};
        arena_reset(&s->batch);
        if (!strcmp(s->kind, "step"))
            TRY(run_step(s, i, r, e));
        else if (!strcmp(s->kind, "train"))
            TRY(run_train(s, i, r, e));
        else
            TRY(run_generate(s, i, r, e));
        r->seconds = r->phase[0].seconds + r->phase[1].seconds;
        r->grown = memory_taken(s) - before;
    }
    return TARE_OK;
}

/* ---- printing */

static int by_seconds(const void *a, const void *b)
{
    const double x = ((const struct round *)a)->seconds, y = ((const struct round *)b)->seconds;
    return x < y ? -1 : x > y;
}

static int64_t peak_kib(void)
{
    struct rusage u;
    getrusage(RUSAGE_SELF, &u);
    return (int64_t)u.ru_maxrss;
}

static void print_phase(const struct stage *s, const struct phase *p, double round)
{
    const double flops = s->peak, read = s->read, tile = bench_profile_tile();
    double kernels = 0, work = 0;
    for (int i = 0; i < BENCH_OPS; i++) {
        kernels += p->profile.op[i].seconds;
        work += p->profile.op[i].flops;
    }
    printf(
        "\n%-8s %9.4f s  %5.1f %% of the round  %9.1f tok/s  %7.1f GFLOP/s, %.0f %% of peak, %.0f %% of the loop  outside of kernels %.1f %%\n",
        p->name, p->seconds, 100 * p->seconds / round, (double)p->tokens / p->seconds, work / p->seconds * 1e-9,
        100e-9 * work / p->seconds / flops, tile > 0 ? 100e-9 * work / p->seconds / tile : 0, 100 * (1 - kernels / p->seconds));
    printf("  %-15s %8s %10s %7s %17s %17s\n", "kernel", "calls", "ms", "share", "GFLOP/s of peak", "GB/s of reading");
    for (int i = 0; i < BENCH_OPS; i++) {
        const struct bench_op *o = &p->profile.op[i];
        if (o->calls <= 0 || o->seconds <= 0) continue;
        printf("  %-15s %8lld %10.2f %5.1f %% %9.1f %5.0f %% %9.1f %5.0f %%\n", bench_op_name(i), (long long)o->calls,
               o->seconds * 1e3, 100 * o->seconds / p->seconds, o->flops / o->seconds * 1e-9,
               100e-9 * o->flops / o->seconds / flops, o->bytes / o->seconds * 1e-9, 100e-9 * o->bytes / o->seconds / read);
    }
}

static void print_json(const struct stage *s, const struct round *r)
{
    printf(
        "{\"kind\":\"%s\",\"model\":\"%s\",\"dtype\":\"%s\",\"kernels\":\"%s\",\"threads\":%d,\"prompts\":%lld,\"samples\":%lld,\"prompt\":%lld,\"new\":%lld,\"seconds\":%.6f,\"peak_gflops\":%.2f,\"read_gbs\":%.2f,\"tile_gflops\":%.2f,\"ready\":%.3f,\"rss_mib\":%.1f,\"grown\":%lld",
        s->kind, s->model, config_chosen(&s->config, "model", "dtype"), s->engine.kernels->name, pool_threads(s->engine.pool),
        (long long)s->config.rollout.prompts, (long long)s->config.rollout.group_size, (long long)s->prompt,
        (long long)s->config.rollout.max_new_tokens, r->seconds, s->peak, s->read, bench_profile_tile(), s->ready,
        (double)peak_kib() / 1024, (long long)s->round[s->rounds].grown);
    for (int i = 0; i < PHASES && r->phase[i].name; i++) {
        const struct phase *p = &r->phase[i];
        printf(",\"%s\":{\"seconds\":%.6f,\"tokens\":%lld,\"kernels\":{", p->name, p->seconds, (long long)p->tokens);
        const char *comma = "";
        for (int o = 0; o < BENCH_OPS; o++) {
            const struct bench_op *op = &p->profile.op[o];
            if (op->calls <= 0) continue;
            printf("%s\"%s\":{\"seconds\":%.6f,\"flops\":%.6g,\"bytes\":%.6g}", comma, bench_op_name(o), op->seconds, op->flops,
                   op->bytes);
            comma = ",";
        }
        printf("}}");
    }
    printf("}\n");
}

static void print_report(struct stage *s)
{
    const int64_t grown = s->round[s->rounds].grown; /* in the last round */
    qsort(s->round + 1, (size_t)s->rounds, sizeof *s->round, by_seconds);
    const struct round *r = &s->round[1 + (s->rounds - 1) / 2];
    if (s->json) {
        print_json(s, r);
        return;
    }
    printf("# %s, %s, %s, %s, %d threads: peak %.1f GFLOP/s, reading %.1f GB/s\n", s->kind, s->model,
           config_chosen(&s->config, "model", "dtype"), s->engine.kernels->name, pool_threads(s->engine.pool), s->peak, s->read);
    printf("# in these rounds the innermost loop of a product ran at %.1f GFLOP/s in the first-level cache: %.0f %% of that peak\n",
           bench_profile_tile(), 100 * bench_profile_tile() / s->peak);
    printf(
        "# ready after %.2f s, round %.4f s (%.4f to %.4f of %lld), peak memory %.1f MiB, allocations in the last round: %lld times\n",
        s->ready, r->seconds, s->round[1].seconds, s->round[s->rounds].seconds, (long long)s->rounds, (double)peak_kib() / 1024,
        (long long)grown);
    for (int i = 0; i < PHASES && r->phase[i].name; i++) print_phase(s, &r->phase[i], r->seconds);
}

/* ---- the command */

static tare_status read_whole(const char *text, const char *key, int64_t low, int64_t high, int64_t *out, struct err *e)
{
    char *end;
    const long long n = strtoll(text, &end, 10);
    if (*end || end == text || n < low || n > high)
        FAIL(e, TARE_E_CONFIG, "%s = %s: must be from %lld to %lld", key, text, (long long)low, (long long)high);
    *out = n;
    return TARE_OK;
}

static tare_status read_settings(struct stage *s, int argc, char **argv, struct err *e)
{
    const char *overrides[64];
    int n = 0;
    for (int i = 3; i < argc; i++) {
        if (!strcmp(argv[i], "--json"))
            s->json = true;
        else if (!strncmp(argv[i], "prompt=", 7))
            TRY(read_whole(argv[i] + 7, "prompt", 1, 1 << 20, &s->prompt, e));
        else if (!strncmp(argv[i], "rounds=", 7))
            TRY(read_whole(argv[i] + 7, "rounds", 1, MAX_ROUNDS - 1, &s->rounds, e));
        else if (n == 64)
            FAIL(e, TARE_E_CONFIG, "too many keys: at most 64");
        else
            overrides[n++] = argv[i];
    }
    TRY(config_load(&s->config, NULL, overrides, n, e));
    return s->config.rollout.max_new_tokens ? TARE_OK : config_set(&s->config, "rollout", "max_new_tokens", "256", "default", e);
}

static tare_status run_stage(struct stage *s, int argc, char **argv, struct err *e)
{
    TRY(read_settings(s, argc, argv, e));
    TRY(config_set(&s->config, "model", "path", s->model, "command line", e));
    engine_init(&s->engine, &s->config, NULL);
    TRY(open_model(s, e));
    if (strcmp(s->kind, "train") != 0) {
        TRY(make_requests(s, e));
        TRY(engine_open(&s->engine, ENGINE_SAMPLER, e));
    }
    if (strcmp(s->kind, "generate") != 0) {
        TRY(engine_open_objective(&s->engine, e));
        TRY(engine_open_trainer(&s->engine, s->config.rollout.temperature, MAX_ROUNDS, e));
        s->engine.trainer->gradient_shards = s->config.dist.gradient_shards;
    }
    s->ready = clock_seconds() - s->started;
    take_peaks(s);
    TRY(run_rounds(s, e));
    take_peaks(s);
    print_report(s);
    return cli_flush(e);
}

int bench_stage(int argc, char **argv)
{
    struct err e = {0};
    struct stage *s;
    if (argc < 3) return cli_usage(bench_usage);
    if (mem_new((int64_t)sizeof *s, (void **)&s, &e)) {
        log_error(&e);
        return 1;
    }
    s->kind = argv[1];
    s->model = argv[2];
    s->started = clock_seconds();
    s->prompt = 64;
    s->rounds = 3;
    arena_init(&s->arena, "bench");
    arena_init(&s->batch, "bench batch");
    const tare_status status = run_stage(s, argc, argv, &e);
    if (status) log_error(&e);
    engine_close(&s->engine);
    arena_free(&s->arena);
    arena_free(&s->batch);
    config_free(&s->config);
    mem_free(s);
    return status ? err_exit_code(status) : 0;
}
