/* The update of episodes: context tokens are inputs without a loss, a KL, an entropy, a ratio or a
 * weight. The gradient is that of the unmasked sequences under a loss written out by hand. */
#include "engine.h"
#include "objective.h"

#include "../model/small.h"
#include "base/rng.h"
#include "batch/turns.h"
#include "update/microbatch.h"
#include "update/token_weights.h"
#include "update/update.h"

#include <math.h>
#include <stdlib.h>
#include <tare/sdk.h>

enum { M = 3, G = 3, TURNS = 5, MOST_ACT = 6, MOST_OBSERVATION = 5, MOST = TURNS * (MOST_ACT + MOST_OBSERVATION) };

static struct err e;
static struct arena arena;

/* ---------------------------------------------------------------- an objective that looks */

static int64_t seen_tokens, seen_turns, seen_annotated;

static tare_status create(const tare_setup *setup, void **self, tare_error *error)
{
    static int nothing;
    (void)setup, (void)error;
    *self = &nothing;
    return TARE_OK;
}

static void destroy(void *self)
{
    (void)self;
}

static tare_status sizes(const void *self, tare_sizes *out, tare_error *error)
{
    (void)self, (void)error;
    out->prepare = 1;
    out->collect = 2;
    return TARE_OK;
}

static tare_status annotate(const void *self, const tare_tokens *t, double *annotated, tare_error *error)
{
    (void)self, (void)error;
    seen_annotated += t->n;
    for (int64_t i = 0; i < t->n_rollouts; i++)
        for (int64_t k = t->token_begin[i]; k < t->token_begin[i + 1]; k++)
            annotated[k] = (double)(t->token_begin[i + 1] - t->token_begin[i]);
    return TARE_OK;
}

static tare_status compute(const void *self, const tare_tokens *t, tare_token_loss *out, tare_error *error)
{
    (void)self, (void)error;
    for (int64_t i = 0; i < t->n; i++) {
        if (!(t->weight[i] > 0) || !(t->old_logprob[i] < 0)) return tare_fail(error, TARE_E_SHAPE, "a context token");
        out->value[i] = -t->advantage[i] * (double)t->logprob[i];
        out->dlogprob[i] = -t->advantage[i];
    }
    return TARE_OK;
}

static tare_status collect(const void *self, const tare_tokens *t, const tare_token_loss *loss, double *sum, tare_error *error)
{
    (void)self;
    const int32_t *turn = TARE_COLUMN(t, 0, int32_t);
    int32_t before = 0;
    for (int64_t i = 0; i < t->n; i++) {
        if (turn[i] < before || turn[i] > before + 1) return tare_fail(error, TARE_E_SHAPE, "turn %d after %d", turn[i], before);
        if (loss->dlogprob[i] != -t->advantage[i]) return tare_fail(error, TARE_E_SHAPE, "the outcome of another token");
        if (t->annotated[i] != (double)t->n) return tare_fail(error, TARE_E_SHAPE, "the annotation of another token");
        before = turn[i];
    }
    sum[0] += (double)t->n;
    sum[1] += before + 1;
    return TARE_OK;
}

static tare_status apply(void *self, const tare_update *update, tare_error *error)
{
    (void)self, (void)error;
    seen_tokens = (int64_t)update->collected[0];
    seen_turns = (int64_t)update->collected[1];
    return TARE_OK;
}

static tare_status save(const void *self, const tare_stream *out, tare_error *error)
{
    (void)self, (void)error;
    return tare_put(out, &seen_tokens, sizeof seen_tokens);
}

static tare_status load(void *self, const tare_stream *in, tare_error *error)
{
    (void)self, (void)error;
    return tare_get(in, &seen_tokens, sizeof seen_tokens);
}

static const tare_objective FUNCTIONS = {.struct_size = sizeof FUNCTIONS,
                                         .create = create,
                                         .destroy = destroy,
                                         .save = save,
                                         .load = load,
                                         .sizes = sizes,
                                         .annotate = annotate,
                                         .compute = compute,
                                         .collect = collect,
                                         .apply = apply};
static const tare_want WANTS[] = {{.name = "turn", .axis = TARE_AXIS_TOKEN, .type = TARE_I32, .width = 1}};
static const tare_descriptor LOOKER = {.struct_size = sizeof LOOKER,
                                       .kind = TARE_KIND_OBJECTIVE,
                                       .name = "looker",
                                       .version = "1.0.0",
                                       .summary = "compares the tokens that it is shown",
                                       .param_size = sizeof(tare_param),
                                       .state_version = 1,
                                       .state_oldest = 1,
                                       .functions = &FUNCTIONS,
                                       TARE_WANTS(WANTS, 1)};
static const tare_descriptor *const DESCRIPTORS[] = {&LOOKER};
static const tare_plugin PLUGIN = {.struct_size = sizeof PLUGIN, .n_descriptors = 1, .descriptors = DESCRIPTORS};

/* ---------------------------------------------------------------- episodes */

static int32_t draw_id(const struct rng_key key, uint64_t *n)
{
    return (int32_t)(rng_uniform(key, (*n)++, 0) * 97);
}

/* Rollout i has 1 to TURNS turns; the first rollout is a completion without turns. */
static struct batch episodes(void)
{
    struct batch b = update_batch(&arena, M, M * G, M * 20, M * G * MOST);
    const struct rng_key key = rng_key(3, RNG_TRAIN);
    uint64_t n = 0;
    int64_t at = 0, u = 0;
    assert_ok(arena_new(&arena, &b.sampled, M * G * MOST, &e), &e);
    assert_ok(arena_new(&arena, &b.turn_begin, M * G + 1, &e), &e);
    assert_ok(arena_new(&arena, &b.act_begin, M * G * TURNS, &e), &e);
    assert_ok(arena_new(&arena, &b.act_end, M * G * TURNS, &e), &e);
    assert_ok(arena_new(&arena, &b.ref_logprob, M * G * MOST, &e), &e);
    for (int64_t m = 0; m < M; m++) {
        b.group_begin[m + 1] = (m + 1) * G;
        b.prompt_begin[m + 1] = b.prompt_begin[m] + 3 + 7 * m;
        for (int64_t i = b.prompt_begin[m]; i < b.prompt_begin[m + 1]; i++) b.prompt_ids[i] = draw_id(key, &n);
    }
    for (int64_t i = 0; i < M * G; i++) {
        const int64_t first = at, turns = i ? 1 + (i + 3) % TURNS : 0;
        b.advantage[i] = rng_normal(key, n++);
        b.rollout_weight[i] = i != 4;
        for (int64_t k = 0; k < (turns ? turns : 1); k++) {
            const int64_t act = 1 + (int64_t)(rng_uniform(key, n++, 0) * MOST_ACT);
            const int64_t context = k + 1 < turns ? (int64_t)(rng_uniform(key, n++, 0) * MOST_OBSERVATION) : 0;
            if (turns) b.act_begin[u] = at - first, b.act_end[u++] = at - first + act;
            for (int64_t t = 0; t < act + context; t++, at++) {
                b.sampled[at] = t < act;
                b.ids[at] = draw_id(key, &n);
                b.logprob[at] = t < act ? (float)(-3 + 0.1 * rng_normal(key, n++)) : 0;
                b.ref_logprob[at] = t < act ? (float)(-3 + 0.1 * rng_normal(key, n++)) : 0;
            }
        }
        b.token_begin[i + 1] = at;
        b.turn_begin[i + 1] = u;
    }
    b.n_tokens = at;
    b.n_turns = u;
    return b;
}

static int64_t sampled_of(const struct batch *b, int64_t i)
{
    int64_t n = 0;
    for (int64_t t = b->token_begin[i]; t < b->token_begin[i + 1]; t++) n += b->sampled[t];
    return n;
}

/* ---------------------------------------------------------------- the loss by hand */

static const double ENTROPY = 0.01, BETA = 0.04;

struct hand {
    const struct batch *b;
    const struct loss_config *c;
    double loss, entropy, tokens, mismatch, ratio_max, kl_ref, clipped;
};

/* c_t of a sampled token of rollout i, by the three aggregations of the whole batch. */
static double weight_by_hand(const struct hand *h, int64_t i)
{
    double rows = 0, tokens = 0, in_group = 0, longest = 0;
    for (int64_t k = 0; k < M * G; k++) {
        const double n = (double)sampled_of(h->b, k);
        rows += h->b->rollout_weight[k];
        tokens += h->b->rollout_weight[k] * n;
        if (k / G == i / G) in_group += h->b->rollout_weight[k];
        longest = fmax(longest, n);
    }
    if (h->c->aggregation == AGGREGATE_TOKEN) return 1 / tokens;
    if (h->c->aggregation == AGGREGATE_CONSTANT) return 1 / (rows * longest);
    return 1 / ((double)sampled_of(h->b, i) * in_group * M);
}

static tare_status hand_loss(void *ctx, const struct token_block *s, struct head_grad_row *coef, struct tally *tally, struct err *x)
{
    struct hand *h = ctx;
    const struct batch *b = h->b;
    (void)x, (void)tally;
    for (int64_t i = 0; i < s->n; i++) {
        const int64_t t = s->token[i];
        int64_t owner = 0;
        while (b->token_begin[owner + 1] <= t) owner++;
        coef[i] = (struct head_grad_row){0};
        if (!b->sampled[t]) continue;
        const double logp = s->logprob[i], old = b->logprob[t], ref = b->ref_logprob[t], r = exp(logp - old);
        const double a = b->advantage[owner], c = weight_by_hand(h, owner);
        const bool clipped = a >= 0 ? r > 1.2 : r < 0.8;
        const double value = -a * (clipped ? (a >= 0 ? 1.2 : 0.8) : r), slope = clipped ? 0 : -a * r;
        coef[i].logprob = (float)(c * (slope + BETA * (1 - exp(ref - logp))));
        coef[i].entropy = (float)(-c * ENTROPY);
        h->loss += c * (value + BETA * (exp(ref - logp) - (ref - logp) - 1) - ENTROPY * (double)s->entropy[i]);
        h->entropy += s->entropy[i];
        h->kl_ref += exp(ref - logp) - (ref - logp) - 1;
        h->clipped += clipped;
        h->tokens++;
        h->mismatch = fmax(h->mismatch, fabs(logp - old));
        h->ratio_max = fmax(h->ratio_max, r);
    }
    return TARE_OK;
}

static struct trainer *open_trainer(struct model *m, const struct train_config *train, const struct loss_config *loss)
{
    struct trainer *t;
    assert_ok(trainer_new(m, &(struct trainer_options){NULL, train, loss, 1, 1, 10}, &t, &e), &e);
    return t;
}

/* Gradient of the same sequences with every token a target. */
static float *gradient_by_hand(struct hand *h, const struct train_config *train)
{
    struct model *m = small_model("qwen2", true, NULL);
    struct trainer *t = open_trainer(m, train, h->c);
    struct batch all = *h->b;
    int64_t groups[M];
    struct tally tally = {0};
    float *out;
    all.sampled = NULL;
    for (int64_t g = 0; g < M; g++) groups[g] = g;
    arena_reset(&t->work);
    assert_ok(microbatch_run(t,
                             &(struct microbatch_job){.b = &all,
                                                      .groups = groups,
                                                      .n_groups = M,
                                                      .rollout_weight = all.rollout_weight,
                                                      .m = m,
                                                      .loss = hand_loss,
                                                      .ctx = h,
                                                      .tally = &tally},
                             &e),
              &e);
    assert_ok(arena_new(&arena, &out, m->n_params, &e), &e);
    memcpy(out, t->grads.sum, (size_t)m->n_params * sizeof *out);
    free_trainer(t);
    model_free(m);
    return out;
}

static void near(double got, double want, const char *what)
{
    if (!(fabs(got - want) <= 1e-6 * (1 + fabs(want)))) fail_msg("%s is %.12g: should be %.12g", what, got, want);
}

static void check_setting(const struct batch *b, enum aggregation aggregation, int64_t micro_tokens, bool sharing)
{
    struct train_config train = plain_train(M * G, micro_tokens);
    struct loss_config loss = plain_loss(aggregation);
    struct update_report r;
    loss.entropy_coef = ENTROPY, loss.kl_coef = BETA;
    train.max_grad_norm = 1e9, train.prompt_sharing = sharing;
    struct hand h = {.b = b, .c = &loss};
    const float *want = gradient_by_hand(&h, &train);
    struct model *m = small_model("qwen2", true, NULL);
    struct trainer *t = open_trainer(m, &train, &loss);
    double most = 0, off = 0;
    set_objective(t, "ppo", NULL);
    assert_ok(update_run(t, b, &r, &e), &e);
    for (int64_t i = 0; i < m->n_params; i++) {
        const double got = (double)t->moment1[i] / (1 - train.beta1); /* the moment was 0 */
        most = fmax(most, fabs((double)want[i]));
        off = fmax(off, fabs(got - (double)want[i]));
    }
    assert_true(most > 0.01);
    if (!(off < 1e-6 * most)) fail_msg("the gradient is off by %g, of at most %g", off, most);
    near(r.loss, h.loss, "the loss");
    near(r.entropy, h.entropy / h.tokens, "the entropy");
    near(r.reference_kl, h.kl_ref / h.tokens, "the KL");
    near(r.clip_fraction, h.clipped / h.tokens, "the clip fraction");
    near(r.mismatch, h.mismatch, "the mismatch");
    near(r.ratio_max, h.ratio_max, "the largest ratio");
    assert_int_equal(r.tokens, (int64_t)h.tokens);
    free_trainer(t);
    model_free(m);
}

static void gradient_is_that_of_the_masked_loss(void **state)
{
    (void)state;
    const struct batch b = episodes();
    static const enum aggregation AGGREGATIONS[] = {AGGREGATE_SEQUENCE, AGGREGATE_TOKEN, AGGREGATE_CONSTANT};
    for (int k = 0; k < 3; k++) {
        check_setting(&b, AGGREGATIONS[k], 100000, true);
        check_setting(&b, AGGREGATIONS[k], 40, true);
        check_setting(&b, AGGREGATIONS[k], 40, false);
    }
}

/* A mask of ones is the same as none, bit for bit. */
static void a_full_mask_changes_nothing(void **state)
{
    (void)state;
    uint64_t hash[2];
    struct update_report r[2];
    for (int masked = 0; masked < 2; masked++) {
        struct batch b = episodes();
        struct train_config train = plain_train(2 * G, 40);
        struct loss_config loss = plain_loss(AGGREGATE_SEQUENCE);
        struct model *m = small_model("qwen2", true, NULL);
        struct trainer *t = open_trainer(m, &train, &loss);
        for (int64_t k = 0; k < b.n_tokens; k++) b.sampled[k] = 1;
        if (!masked) b.sampled = NULL, b.turn_begin = NULL;
        b.ref_logprob = NULL;
        set_objective(t, "gspo", NULL);
        assert_ok(update_run(t, &b, &r[masked], &e), &e);
        assert_ok(model_hash(m, &hash[masked], &e), &e);
        free_trainer(t);
        model_free(m);
    }
    assert_true(hash[0] == hash[1]);
    assert_memory_equal(&r[0], &r[1], sizeof r[0]);
}

static void objectives_see_sampled_tokens(void **state)
{
    (void)state;
    const struct batch b = episodes();
    int64_t tokens = 0, turns = 0;
    for (int64_t i = 0; i < M * G; i++) {
        tokens += b.rollout_weight[i] > 0 ? sampled_of(&b, i) : 0;
        turns += !(b.rollout_weight[i] > 0) ? 0 : i ? b.turn_begin[i + 1] - b.turn_begin[i] : 1;
    }
    assert_true(tokens < b.n_tokens);
    for (int64_t micro = 1; micro < 200; micro += 60) {
        struct train_config train = plain_train(2 * G, micro);
        struct loss_config loss = plain_loss(AGGREGATE_SEQUENCE);
        struct model *m = small_model("qwen2", true, NULL);
        struct trainer *t = open_trainer(m, &train, &loss);
        struct update_report r;
        seen_annotated = 0;
        set_objective(t, "looker", NULL);
        assert_ok(update_run(t, &b, &r, &e), &e);
        assert_ok(update_apply(t, 1, &e), &e);
        assert_int_equal(seen_annotated, tokens);
        assert_int_equal(seen_tokens, tokens);
        assert_int_equal(seen_turns, turns);
        free_trainer(t);
        model_free(m);
    }
}

/* Logprobs of context are 0, recomputed or recorded, and the others are those of the whole
 * sequences. */
static void logprobs_are_of_sampled_tokens(void **state)
{
    (void)state;
    const struct batch b = episodes();
    struct batch all = b;
    const struct train_config train = plain_train(M * G, 40);
    const struct loss_config loss = plain_loss(AGGREGATE_SEQUENCE);
    struct model *m = small_model("qwen2", true, NULL);
    struct trainer *t = open_trainer(m, &train, &loss);
    float *logprob, *entropy, *want;
    assert_ok(arena_new(&arena, &logprob, b.n_tokens, &e), &e);
    assert_ok(arena_new(&arena, &entropy, b.n_tokens, &e), &e);
    assert_ok(arena_new(&arena, &want, b.n_tokens, &e), &e);
    arena_reset(&t->work);
    assert_ok(update_logprobs(t, m, &b, logprob, entropy, &e), &e);
    all.sampled = NULL;
    assert_ok(update_logprobs(t, m, &all, want, NULL, &e), &e);
    for (int64_t k = 0; k < b.n_tokens; k++) {
        assert_true(logprob[k] == (b.sampled[k] ? want[k] : 0));
        assert_true(b.sampled[k] ? entropy[k] > 0 : entropy[k] == 0);
    }
    free_trainer(t);
    model_free(m);
}

static void weights_count_sampled_tokens(void **state)
{
    (void)state;
    const struct batch b = episodes();
    struct loss_config loss = plain_loss(AGGREGATE_SEQUENCE);
    const int64_t groups[M] = {0, 1, 2};
    double *weight, sum = 0;
    assert_ok(arena_new(&arena, &weight, b.n_tokens, &e), &e);
    assert_ok(token_weights(&b, &loss, &(struct minibatch){groups, M, 1}, weight, &e), &e);
    for (int64_t k = 0; k < b.n_tokens; k++) {
        assert_true(b.sampled[k] || weight[k] == 0);
        sum += weight[k];
    }
    near(sum, 1, "the sum of the weights");
    for (int64_t k = b.token_begin[2]; k < b.token_begin[3]; k++) b.sampled[k] = 0;
    assert_int_equal(token_weights(&b, &loss, &(struct minibatch){groups, M, 1}, weight, &e), TARE_E_INVALID);
    assert_non_null(strstr(e.message, "rollout 2"));
}

static int open_arena(void **state)
{
    (void)state;
    arena_init(&arena, "test");
    assert_ok(plugin_add("test", &PLUGIN, &e), &e);
    return 0;
}

static int close_arena(void **state)
{
    (void)state;
    arena_free(&arena);
    return 0;
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(gradient_is_that_of_the_masked_loss), cmocka_unit_test(a_full_mask_changes_nothing),
        cmocka_unit_test(objectives_see_sampled_tokens), cmocka_unit_test(logprobs_are_of_sampled_tokens),
        cmocka_unit_test(weights_count_sampled_tokens)};
    return cmocka_run_group_tests(tests, open_arena, close_arena);
}
