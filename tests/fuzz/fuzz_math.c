/* libFuzzer target: the math verifier on any pair. The input is the gold answer, a NUL, and the
 * completion. Checked: no report of the sanitizers, a valid verdict, no time above the bound for
 * any gold answer, and the same verdict when asked again.
 *
 *   clang -g -O1 -fsanitize=fuzzer,address,undefined -Isdk/include -Iplugins/verifiers \
 *     -D_GNU_SOURCE tests/fuzz/fuzz_math.c plugins/verifiers/common/[a-z]*.c \
 *     plugins/verifiers/math/[a-z]*.c -lcalcium -lantic -lflint-arb -lflint -lmpfr -lgmp -lm. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <tare/plugin.h>
#include <time.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static const tare_verifier *functions;
static void *self;

static void open_plugin(void)
{
    static tare_value values[64];
    tare_error error = {.struct_size = sizeof error};
    const tare_descriptor *d = tare_plugin_v1(NULL, &error)->descriptors[0];
    for (uint32_t i = 0; i < d->n_params; i++) {
        if (d->params[i].type == TARE_PARAM_BOOL) values[i].i = !strcmp(d->params[i].fallback, "true");
        if (d->params[i].type == TARE_PARAM_INT) values[i].i = atoi(d->params[i].fallback);
    }
    const tare_setup setup = {.struct_size = sizeof setup, .values = values, .instance = "math"};
    functions = d->functions;
    if (functions->create(&setup, &self, &error)) abort();
}

/* Reads every byte of a text. */
static tare_status take_text(void *ctx, const void *data, int64_t size)
{
    uint32_t *sum = ctx;
    if (size < 0) abort();
    for (int64_t i = 0; i < size; i++) *sum = *sum * 31 + ((const uint8_t *)data)[i];
    return TARE_OK;
}

static int verify_pair(tare_text gold, tare_text text)
{
    uint32_t sum = 0;
    const tare_stream out = {.struct_size = sizeof out, .ctx = &sum, .write = take_text};
    const tare_completion completion = {
        .struct_size = sizeof completion, .text = text, .answer = gold, .row = {"{\"gold_is_latex\":true}", 22}};
    const tare_completion *completions = &completion;
    tare_verdict verdict = {.struct_size = sizeof verdict, .extracted = &out, .note = &out};
    tare_verdict *verdicts = &verdict;
    tare_error error = {.struct_size = sizeof error};
    if (functions->verify(self, &completions, &verdicts, 1, &error)) abort();
    if (verdict.code < TARE_VERDICT_CORRECT || verdict.code > TARE_VERDICT_UNPARSABLE) abort();
    return verdict.code;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    if (!functions) open_plugin();
    const uint8_t *cut = size ? memchr(data, 0, size) : NULL;
    const int64_t n = cut ? cut - data : (int64_t)size;
    const tare_text gold = {(const char *)data, n}, rest = cut ? (tare_text){(const char *)cut + 1, (int64_t)size - n - 1} : gold;
    struct timespec a, b;
    clock_gettime(CLOCK_THREAD_CPUTIME_ID, &a);
    const int first = verify_pair(gold, rest);
    clock_gettime(CLOCK_THREAD_CPUTIME_ID, &b);
    const double ms = (double)(b.tv_sec - a.tv_sec) * 1e3 + (double)(b.tv_nsec - a.tv_nsec) * 1e-6;
    /* Set when time matters: sanitizers make everything several times slower. */
    const char *limit = getenv("FUZZ_MAX_MS");
    if (limit && ms > atof(limit)) {
        fprintf(stderr, "%.1f ms: %.*s | %.*s\n", ms, (int)gold.size, gold.data, (int)rest.size, rest.data);
        abort();
    }
    if (verify_pair(gold, rest) != first) abort();
    return 0;
}
