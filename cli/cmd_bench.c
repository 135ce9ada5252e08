/* tare bench: times kernels and compares them with the machine's peaks, measured in the same run.
 */
#include "base/arena.h"
#include "base/clock.h"
#include "base/log.h"
#include "bench.h"
#include "cli.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

const char bench_usage[] =
    "usage: tare bench [PATTERN] [--isa NAME|all] [--threads N]\n"
    "       tare bench step|train|generate MODEL [--json] [key=value ...]\n"
    "The first form times kernels:\n"
    "  PATTERN      only cases with this text in their name, for example \"matmul\", \"smollm2\", \"T=1024\"\n"
    "  --isa NAME   ref, avx2, avx512, avx512bf16, amx or neon instead of the fastest; all: every one that this machine supports\n"
    "  --threads N  0 (the default): one per core\n"
    "It prints a line per case: median time, the best rate in 10^9 operations and bytes per second, and its share of the peaks\n"
    "for fused multiply-adds and for reading memory (above 100 % the data came from a cache). One thread is timed by its CPU\n"
    "time, several threads by the clock.\n"
    "\nThe second form times a whole stage on a model:\n"
    "  step       sampling and policy update: rollout.prompts x rollout.group_size completions, each of `prompt` random tokens\n"
    "             and rollout.max_new_tokens new ones\n"
    "  train      one supervised optimizer step on sft.batch rows of rollout.max_new_tokens tokens\n"
    "  generate   rollout.prompts prompts with one completion each\n"
    "  MODEL      a Hugging Face folder, or `tiny` or `smollm2`: new models of that shape\n"
    "  prompt=64  tokens of a prompt\n"
    "  rounds=3   rounds after the first, of which the median is shown; all other keys are those of a configuration\n"
    "  --json     print one JSON object instead of the tables\n";

enum { RUNS = 15 };
/* Shorter than a time slice, so that the best of many runs is undisturbed. */
#define RUN_SECONDS 0.0015
#define CASE_SECONDS 0.25

struct bench {
    const char *pattern, *isa;
    int threads;
    struct arena scratch;
    struct kctx c;
    const struct kernels *k;
    double flops, read; /* peaks */
    int64_t cases;
};

static int by_double(const void *a, const void *b)
{
    const double x = *(const double *)a, y = *(const double *)b;
    return x < y ? -1 : x > y;
}

static double time_runs(struct bench_case *b, int64_t runs)
{
    const double start = bench_clock(b->c->pool);
    for (int64_t i = 0; i < runs; i++) b->run(b);
    return (bench_clock(b->c->pool) - start) / (double)runs;
}

static void measure_case(struct bench_case *b, const struct bench *s)
{
    double took[RUNS];
    time_runs(b, 1);
    const double one = time_runs(b, 1);
    const int64_t runs = one > RUN_SECONDS ? 1 : (int64_t)(RUN_SECONDS / (one > 1e-7 ? one : 1e-7)) + 1;
    int n = 0;
    for (const double start = clock_seconds(); n < RUNS && (n < 3 || clock_seconds() - start < CASE_SECONDS); n++)
        took[n] = time_runs(b, runs);
    qsort(took, (size_t)n, sizeof *took, by_double);
    const double flops = b->flops / took[0] * 1e-9, bytes = b->bytes / took[0] * 1e-9;
    printf("%-7s %-42s %12.1f us %8.1f GFLOP/s %4.0f %% %8.1f GB/s %4.0f %%\n", s->k->name, b->name, took[n / 2] * 1e6, flops,
           s->flops > 0 ? 100 * flops / s->flops : 0, bytes, s->read > 0 ? 100 * bytes / s->read : 0);
    fflush(stdout);
}

static int visit_case(const struct bench_case *given, void *arg)
{
    struct bench *s = arg;
    struct bench_case b = *given;
    if (s->pattern && !strstr(b.name, s->pattern)) return 0;
    s->cases++;
    b.k = s->k;
    b.c = &s->c;
    const int failed = b.setup(&b);
    if (!failed) measure_case(&b, s);
    for (int i = 0; i < b.n_memory; i++) b.k->backend->release(b.c, b.memory[i]);
    if (failed) log_message(LOG_ERROR, "bench: no memory for %s", b.name);
    return failed;
}

static int run_isa(struct bench *s, const char *isa)
{
    struct err e;
    if (kernels_cpu(isa, &s->k, &e)) {
        log_error(&e);
        return err_exit_code(e.code);
    }
    s->flops = bench_peak_flops(s->c.pool, s->k->name);
    s->read = bench_peak_read(s->c.pool);
    printf("# %s, %d threads: peak %.1f GFLOP/s, reading %.1f GB/s\n", s->k->name, pool_threads(s->c.pool), s->flops, s->read);
    return bench_kernels(visit_case, s) ? 1 : 0;
}

static int run_cases(struct bench *s)
{
    static const char *const names[] = {"ref", "avx2", "avx512", "avx512bf16", "amx", "neon"};
    if (!s->isa || strcmp(s->isa, "all") != 0) return run_isa(s, s->isa);
    for (int i = 0; i < (int)(sizeof names / sizeof *names); i++) {
        struct err e;
        const struct kernels *k;
        if (kernels_cpu(names[i], &k, &e)) {
            printf("# SKIP %s\n", e.message);
            continue;
        }
        const int status = run_isa(s, names[i]);
        if (status) return status;
    }
    return 0;
}

/* Returns 0 to continue, otherwise the exit status plus one. */
static int read_bench_arguments(struct bench *s, int argc, char **argv)
{
    for (int i = 1; i < argc; i++) {
        if (!strcmp(argv[i], "--isa") && i + 1 < argc) {
            s->isa = argv[++i];
        } else if (!strcmp(argv[i], "--threads") && i + 1 < argc) {
            char *end;
            const long n = strtol(argv[++i], &end, 10);
            if (*end || end == argv[i] || n < 0 || n > 1024) {
                log_message(LOG_ERROR, "bench: --threads %s: must be from 0 to 1024", argv[i]);
                return 3;
            }
            s->threads = (int)n;
        } else if (argv[i][0] != '-' && !s->pattern) {
            s->pattern = argv[i];
        } else {
            log_message(LOG_ERROR, "bench: unexpected argument \"%s\"; see tare bench --help", argv[i]);
            return 3;
        }
    }
    return 0;
}

int cmd_bench(int argc, char **argv)
{
    if (argc > 1 && (!strcmp(argv[1], "step") || !strcmp(argv[1], "train") || !strcmp(argv[1], "generate")))
        return bench_stage(argc, argv);
    struct bench s = {0};
    struct err e;
    const int stop = read_bench_arguments(&s, argc, argv);
    if (stop) return stop - 1;
    if (pool_new(s.threads, &s.c.pool, &e)) {
        log_error(&e);
        return err_exit_code(e.code);
    }
    arena_init(&s.scratch, "bench scratch");
    s.c.scratch = &s.scratch;
    int status = run_cases(&s);
    if (!status && !s.cases) {
        log_message(LOG_ERROR, "bench: no case matches \"%s\"; run tare bench without arguments for all cases",
                    s.pattern ? s.pattern : "");
        status = 1;
    }
    if (!status && (fflush(stdout) || ferror(stdout))) {
        log_message(LOG_ERROR, "bench: standard output cannot be written");
        status = 1;
    }
    pool_free(s.c.pool);
    arena_free(&s.scratch);
    return status;
}
