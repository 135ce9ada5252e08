/* The kernels of a GPU by arithmetic: a small model computed by hand. */
#include "engine.h"
#include "small.h"

#include "plan/launches.h"

#include <math.h>
#include <string.h>

static const struct model_shape *shape = &SMALL;
static int capability;

static int64_t working; /* of the last plan */

static struct launches made(const char *const *settings, int64_t n, int64_t ranks)
{
    const struct plan_machine m = {
        .gpu = true, .capability = capability, .memory = 1e9, .flops = 1e9, .bandwidth = 1e6, .link = 1e6};
    struct config c;
    struct err e = {0};
    struct plan p;
    struct launches l;
    assert_ok(config_load(&c, NULL, settings, n, &e), &e);
    const struct plan_input in = {
        .config = &c, .shape = *shape, .ranks = ranks, .hosts = 1, .shard = SHARD_ZERO3, .gradient_shards = ranks, .machine = m};
    assert_ok(plan_make(&in, &p, &e), &e);
    assert_ok(launches_make(&p, &l, &e), &e);
    working = p.first.bytes[PLAN_WORKING];
    config_free(&c);
    return l;
}

#define MADE(RANKS, ...)                                                                                                           \
    made((const char *const[]){"run.dir=x", "model.path=x", "model.dtype=bf16", "rollout.prompts=8", "rollout.group_size=2",       \
                               "rollout.max_prompt_tokens=5", "rollout.max_new_tokens=7", "train.minibatch=8", __VA_ARGS__},       \
         8 + (int64_t)(sizeof((const char *const[]){__VA_ARGS__}) / sizeof(char *)), (RANKS))

static struct launch of(const struct launches *l, enum launch_stage stage, const char *kernel)
{
    const struct launch_stage_cost *s = &l->stage[stage];
    for (int i = 0; i < s->n; i++)
        if (!strcmp(s->kernel[i].kernel, kernel)) return s->kernel[i];
    return (struct launch){.kernel = kernel};
}

static void assert_double(double got, double want)
{
    if (!(fabs(got - want) <= 1e-9 * fmax(1, fabs(want)))) fail_msg("%.17g where %.17g was expected", got, want);
}

/* 4 groups of 2: rows 4 x 5 + 8 x 6 = 68, targets 56. A row has 2 x 576 multiply-adds in the layers, a target 256 in the head. Pairs of a query and a key:
 * 4 x 15 in the prompts, 8 x (30 + 21) in the completions; a pair costs 2 x 8 multiply-adds in each of two layers, forward. */
enum { ROWS = 68, TARGETS = 56, PAIRS = 4 * 15 + 8 * 51 };

static void micro_batch(void **state)
{
    (void)state;
    const struct launches l = MADE(1, "train.recompute=none");
    const double products = 2.0 * (1152 * ROWS + 256 * TARGETS);
    assert_string_equal(l.stage[LAUNCH_MICRO_BATCH].what, "forward and backward of a micro-batch of 68 rows, 56 of them targets");
    assert_double(of(&l, LAUNCH_MICRO_BATCH, "cublaslt").flops, products);
    assert_double(of(&l, LAUNCH_MICRO_BATCH, "cublaslt dw").flops, products);
    assert_double(of(&l, LAUNCH_MICRO_BATCH, "cublaslt dx").flops, products);
    assert_int_equal(of(&l, LAUNCH_MICRO_BATCH, "cublaslt dw").launches, 4 * 2 + 1);
    /* S and P V forward; S, dP, dV, dK for the keys and S, dP, dQ for the queries: 4, 8 and 6 operations a pair and element */
    assert_double(of(&l, LAUNCH_MICRO_BATCH, "attention").flops, 4.0 * PAIRS * 8 * 2);
    assert_double(of(&l, LAUNCH_MICRO_BATCH, "attention_grad keys").flops, 8.0 * PAIRS * 8 * 2);
    assert_double(of(&l, LAUNCH_MICRO_BATCH, "attention_grad queries").flops, 6.0 * PAIRS * 8 * 2);
    /* by definition S and dP are computed once */
    assert_double(l.stage[LAUNCH_MICRO_BATCH].useful, 3 * products + (4.0 + 10) * PAIRS * 8 * 2);
    /* Rows that products read are bf16. Left are, forward, the head's; backward dy of qkv, o and down, of the head both, which dx takes over; dout of
     * attention's gradient */
    assert_int_equal(of(&l, LAUNCH_MICRO_BATCH, "convert").launches, 1 + (2 * 3 + 2) + 2);
    /* at these peaks everything is bound by memory: a second a million bytes */
    double bytes = 0, seconds = 0;
    for (int i = 0; i < l.stage[LAUNCH_MICRO_BATCH].n; i++)
        bytes += l.stage[LAUNCH_MICRO_BATCH].kernel[i].bytes, seconds += l.stage[LAUNCH_MICRO_BATCH].kernel[i].seconds;
    assert_double(seconds, bytes / 1e6);
    assert_double(l.stage[LAUNCH_MICRO_BATCH].seconds, seconds);
}

/* What is recomputed takes time and is of no use. */
static void recomputed(void **state)
{
    (void)state;
    const struct launches l = MADE(1, "train.recompute=none"), norms = MADE(1, "train.recompute=norms"),
                          mlp = MADE(1, "train.recompute=mlp"), again = MADE(1, "train.recompute=layer");
    const double products = of(&l, LAUNCH_MICRO_BATCH, "cublaslt").flops;
    assert_double(again.stage[LAUNCH_MICRO_BATCH].useful, l.stage[LAUNCH_MICRO_BATCH].useful);
    assert_double(mlp.stage[LAUNCH_MICRO_BATCH].useful, l.stage[LAUNCH_MICRO_BATCH].useful);
    /* of the first layer; the last one still has its own: two norms and an activation, then gate and up, then qkv and o too, and no product of a
     * layer's end is needed */
    assert_double(of(&norms, LAUNCH_MICRO_BATCH, "cublaslt").flops, products);
    assert_int_equal(of(&norms, LAUNCH_MICRO_BATCH, "rmsnorm").launches, of(&l, LAUNCH_MICRO_BATCH, "rmsnorm").launches + 2);
    assert_int_equal(of(&norms, LAUNCH_MICRO_BATCH, "swiglu").launches, of(&l, LAUNCH_MICRO_BATCH, "swiglu").launches + 1);
    assert_double(of(&mlp, LAUNCH_MICRO_BATCH, "cublaslt").flops - products, 2.0 * ROWS * 256);
    assert_double(of(&mlp, LAUNCH_MICRO_BATCH, "attention").flops, of(&l, LAUNCH_MICRO_BATCH, "attention").flops);
    assert_double(of(&again, LAUNCH_MICRO_BATCH, "cublaslt").flops - products, 2.0 * ROWS * (576 - 128));
    assert_true(norms.stage[LAUNCH_MICRO_BATCH].seconds > l.stage[LAUNCH_MICRO_BATCH].seconds);
    assert_true(mlp.stage[LAUNCH_MICRO_BATCH].seconds > norms.stage[LAUNCH_MICRO_BATCH].seconds);
    assert_true(again.stage[LAUNCH_MICRO_BATCH].seconds > mlp.stage[LAUNCH_MICRO_BATCH].seconds);
}

/* A gradient that is made in the sums needs no window of zeros that is added to them; on several ranks it does. */
static void windows(void **state)
{
    (void)state;
    const struct launches one = MADE(1, "train.recompute=none"), two = MADE(2, "train.recompute=none");
    const double embedding = 4.0 * 32 * 8;
    /* the embedding's window and a row's gradient; of a layer norms and biases alone */
    assert_true(of(&one, LAUNCH_MICRO_BATCH, "memset").bytes < 2 * embedding + 4 * ROWS * 8);
    assert_true(of(&two, LAUNCH_MICRO_BATCH, "memset").bytes > embedding + 2 * 4 * 576 + 4 * ROWS / 2 * 8);
}

static void sampling(void **state)
{
    (void)state;
    const struct launches l = MADE(1, "train.recompute=none");
    assert_string_equal(l.stage[LAUNCH_PREFILL].what, "prefill of 8 prompts of 5 tokens");
    assert_double(of(&l, LAUNCH_PREFILL, "cublaslt").flops, 2.0 * (1152 * 40 + 256 * 8));
    /* 16 rows in the middle of their completions, 5 + 3 tokens before them: a key each, and their own */
    assert_string_equal(l.stage[LAUNCH_DECODE].what, "one decoded token of 16 sequences with 8 keys");
    assert_double(of(&l, LAUNCH_DECODE, "cublaslt").flops, 2.0 * (1152 + 256) * 16);
    assert_double(of(&l, LAUNCH_DECODE, "attention decode").flops, 4.0 * 16 * 9 * 8 * 2);
    assert_int_equal(of(&l, LAUNCH_DECODE, "attention decode").launches, 2);
    assert_double(of(&l, LAUNCH_DECODE, "attention combine").bytes,
                  2.0 * 16 * (4 * (8 + 2 * 2) + 2 * 8)); /* a partial result a row */
    assert_int_equal(of(&l, LAUNCH_DECODE, "attention").launches, 0);
    assert_int_equal(of(&l, LAUNCH_DECODE, "rope_kv_write").launches, 2); /* one a layer, for two operations */
    assert_int_equal(of(&l, LAUNCH_PREFILL, "rope_kv_write").launches, 2);
    assert_int_equal(of(&l, LAUNCH_DECODE, "rope").launches + of(&l, LAUNCH_DECODE, "kv_write").launches, 0);
}

/* A model as wide as the kernels for few rows want it: nine launches a layer of a decoded token, and four around the layers, whose last norm takes the
 * stream as it is. */
static void few_rows(void **state)
{
    (void)state;
    struct model_shape wide = SMALL;
    int64_t launches = 0;
    wide.hidden = wide.intermediate = 64;
    wide.head_dim = 32;
    shape = &wide;
    const struct launches l = MADE(1, "train.recompute=none"), fixed = MADE(1, "run.deterministic=batch_invariant");
    shape = &SMALL;
    for (int i = 0; i < l.stage[LAUNCH_DECODE].n; i++) launches += l.stage[LAUNCH_DECODE].kernel[i].launches;
    assert_int_equal(launches, 9 * 2 + 4);
    assert_int_equal(of(&l, LAUNCH_DECODE, "gather_rows").launches, 0);
    assert_int_equal(of(&l, LAUNCH_PREFILL, "gather_rows").launches, 1);
    assert_int_equal(of(&l, LAUNCH_DECODE, "product_gated").launches, 2);
    assert_double(of(&l, LAUNCH_DECODE, "product_gated").bytes, 2.0 * (2 * 128 * 64 + 2 * 16 * 64 + 2 * 16 * 64));
    assert_int_equal(of(&l, LAUNCH_DECODE, "swiglu").launches, 0);
    assert_int_equal(of(&fixed, LAUNCH_DECODE, "swiglu").launches, 2);
    assert_int_equal(of(&l, LAUNCH_MICRO_BATCH, "swiglu").launches, 2); /* which a backward pass reads the gate of */
}

/* K cut into slices behind attention and the MLP: their sum does the norm that follows, and the launches stay as many. */
static void slices(void **state)
{
    (void)state;
    struct model_shape wide = SMALL;
    int64_t launches = 0, in_fixed = 0;
    wide.hidden = 512, wide.intermediate = 1536;
    wide.head_dim = 1024 / wide.heads;
    shape = &wide;
    const struct launches l = MADE(1, "train.recompute=none");
    const int64_t otherwise = working;
    const struct launches fixed = MADE(1, "run.deterministic=batch_invariant", "train.recompute=none");
    shape = &SMALL;
    for (int i = 0; i < l.stage[LAUNCH_DECODE].n; i++) launches += l.stage[LAUNCH_DECODE].kernel[i].launches;
    for (int i = 0; i < fixed.stage[LAUNCH_DECODE].n; i++) in_fixed += fixed.stage[LAUNCH_DECODE].kernel[i].launches;
    assert_int_equal(launches, 9 * 2 + 4);
    assert_int_equal(of(&l, LAUNCH_DECODE, "rmsnorm").launches, 1); /* the first layer's, of the embedding */
    assert_int_equal(of(&l, LAUNCH_DECODE, "product_add_norm").launches, 2 * 2);
    /* 16 rows of 512: two slices and three, the residual and the stream in fp32, and bf16 but for the last norm */
    assert_double(of(&l, LAUNCH_DECODE, "product_add_norm").bytes, 16 * 512 * (4.0 * (2 * 2 + 2 * 3 + 4 * 2) + 3 * 2 + 4));
    assert_int_equal(of(&fixed, LAUNCH_DECODE, "product_add_norm").launches, 2 * 2);
    assert_true(in_fixed > launches);
    /* 68 rows: tiles are few, so slices are added in the same way; and there is room for the largest, six slices of the MLP's of 9 x 128 rows */
    assert_int_equal(of(&fixed, LAUNCH_MICRO_BATCH, "product_chain").launches, 4 * 2 + 1);
    assert_int_equal(of(&fixed, LAUNCH_MICRO_BATCH, "product_add").launches +
                         of(&fixed, LAUNCH_MICRO_BATCH, "product_add_norm").launches,
                     4 * 2 + 1);
    assert_int_equal(working - otherwise, 4 * 6 * 9 * 128 * 512);
}

/* Qwen2.5-7B's: the MLP's second product, attention's, whose slices are short, and gate | up, whose K is one slice. */
static void parts(void **state)
{
    (void)state;
    assert_int_equal(launches_parts_bytes(3584, 18944), 4 * 10 * 3 * 128 * 3584);
    assert_int_equal(launches_parts_bytes(3584, 3584), 4 * 10 * 128 * 3584);
    assert_int_equal(launches_parts_bytes(37888, 3584), 0);
}

/* batch_invariant: products of many rows have a kernel of their own on compute capability 9.0, those of few rows not. */
static void many_rows(void **state)
{
    (void)state;
    struct model_shape wide = SMALL;
    wide.hidden = wide.intermediate = 64;
    wide.head_dim = 32;
    shape = &wide;
    capability = 90;
    const struct launches hopper = MADE(1, "run.deterministic=batch_invariant", "train.recompute=none"),
                          library = MADE(1, "train.recompute=none");
    capability = 80;
    const struct launches before = MADE(1, "run.deterministic=batch_invariant", "train.recompute=none");
    shape = &SMALL;
    capability = 0;
    const struct launch by_wgmma = of(&hopper, LAUNCH_MICRO_BATCH, "product_wgmma"),
                        by_mma = of(&before, LAUNCH_MICRO_BATCH, "product_chain");
    assert_int_equal(by_wgmma.launches, 4 * 2 + 1);
    assert_int_equal(by_mma.launches, 4 * 2 + 1);
    assert_double(by_wgmma.seconds, by_mma.seconds);
    assert_double(by_wgmma.flops, of(&library, LAUNCH_MICRO_BATCH, "cublaslt").flops);
    assert_int_equal(of(&hopper, LAUNCH_MICRO_BATCH, "product_chain").launches, 0);
    assert_int_equal(of(&hopper, LAUNCH_DECODE, "product_wgmma").launches, 0);
    assert_int_equal(of(&library, LAUNCH_MICRO_BATCH, "product_wgmma").launches, 0);
}

static void optimizer(void **state)
{
    (void)state;
    const struct launches one = MADE(1, "train.recompute=none"), two = MADE(2, "train.recompute=none");
    assert_int_equal(of(&one, LAUNCH_OPTIMIZER, "adamw").launches, 4); /* embedding, two layers, the last norm */
    assert_double(of(&one, LAUNCH_OPTIMIZER, "adamw").bytes / 28, of(&one, LAUNCH_OPTIMIZER, "sum_squares").bytes / 4);
    assert_true(of(&two, LAUNCH_OPTIMIZER, "adamw").bytes < 0.6 * of(&one, LAUNCH_OPTIMIZER, "adamw").bytes);
}

static void without_peaks(void **state)
{
    (void)state;
    static struct config c;
    struct plan p = {.in = {.config = &c, .machine = {.gpu = true, .bandwidth = 1}}};
    struct launches l;
    struct err e = {0};
    assert_int_equal(launches_make(&p, &l, &e), TARE_E_CONFIG);
    assert_non_null(strstr(e.message, "plan.device=NAME"));
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(micro_batch),  cmocka_unit_test(recomputed), cmocka_unit_test(windows),
                                       cmocka_unit_test(sampling),     cmocka_unit_test(few_rows),   cmocka_unit_test(many_rows),
                                       cmocka_unit_test(slices),       cmocka_unit_test(parts),      cmocka_unit_test(optimizer),
                                       cmocka_unit_test(without_peaks)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
