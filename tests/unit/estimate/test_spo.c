/* spo compared with the formulas of its paper, which are implemented here with dense arrays and two
 * passes over the batch; decay kl with logprobs that a simulated policy step changed; its state
 * over saves, dropped groups and unverified rollouts. */
#include "check.h"

#include "estimate/estimate.h"

#include <math.h>
#include <string.h>

static struct err e;

enum { PROMPTS = 12, GROUPS = 5, MOST = 3, TOKENS = 4, STEPS = 20 };

/* One step: groups of 1 to MOST rollouts, a prompt sometimes twice. */
struct step {
    struct batch b;
    int64_t group_begin[GROUPS + 1], token_begin[GROUPS * MOST + 1];
    uint64_t uid[GROUPS];
    int32_t cluster[GROUPS], verdict[GROUPS * MOST];
    double reward[GROUPS * MOST];
    float before[GROUPS * MOST * TOKENS], after[GROUPS * MOST * TOKENS];
};

static uint64_t draw(uint64_t *s)
{
    *s = *s * 6364136223846793005u + 1442695040888963407u;
    return *s >> 33;
}

static void make(struct step *s, int number, uint64_t seed)
{
    int64_t N = 0, T = 0;
    memset(s, 0, sizeof *s);
    for (int m = 0; m < GROUPS; m++) {
        s->uid[m] = 0xfedcba9800000000u + draw(&seed) % PROMPTS;
        s->cluster[m] = -1;
        const int n = 1 + (int)(draw(&seed) % MOST);
        for (int i = 0; i < n; i++, N++) {
            const uint64_t kind = draw(&seed) % 3;
            s->reward[N] = kind == 2 ? (double)(draw(&seed) % 1000) / 999 : (double)kind;
            const int tokens = 1 + (int)(draw(&seed) % TOKENS);
            for (int t = 0; t < tokens; t++, T++) {
                s->before[T] = -(float)(draw(&seed) % 5000) / 1000;
                s->after[T] = s->before[T] + (float)(draw(&seed) % 100) / 2000;
            }
            s->token_begin[N + 1] = T;
        }
        s->group_begin[m + 1] = N;
    }
    s->b = (struct batch){.step = number,
                          .n_groups = GROUPS,
                          .n_rollouts = N,
                          .n_tokens = T,
                          .group_begin = s->group_begin,
                          .prompt_uid = s->uid,
                          .cluster = s->cluster,
                          .reward = s->reward,
                          .verdict = s->verdict,
                          .token_begin = s->token_begin,
                          .logprob = s->before};
}

/* ---------------------------------------------------------------- the formulas again */

struct reference {
    double alpha[PROMPTS], beta[PROMPTS], path_then[PROMPTS], path;
    bool kl;
};

static void expect(const struct reference *r, const struct step *s, double *A)
{
    double D[GROUPS * MOST], mean = 0, square = 0;
    const int64_t N = s->b.n_rollouts;
    for (int m = 0; m < GROUPS; m++) {
        const int x = (int)(s->uid[m] & 0xffff);
        for (int64_t i = s->group_begin[m]; i < s->group_begin[m + 1]; i++)
            D[i] = s->reward[i] - r->alpha[x] / (r->alpha[x] + r->beta[x]);
    }
    for (int64_t i = 0; i < N; i++) mean += D[i] / (double)N;
    for (int64_t i = 0; i < N; i++) square += (D[i] - mean) * (D[i] - mean);
    for (int64_t i = 0; i < N; i++) A[i] = (D[i] - mean) / (sqrt(square / (double)(N - 1)) + 1e-8);
}

static void learn(struct reference *r, const struct step *s)
{
    double moved = 0, n[PROMPTS] = {0}, sum[PROMPTS] = {0};
    for (int64_t t = 0; t < s->b.n_tokens; t++) moved += fabs((double)s->after[t] - (double)s->before[t]) / (double)s->b.n_tokens;
    if (r->kl) r->path += moved;
    for (int m = 0; m < GROUPS; m++) {
        const int x = (int)(s->uid[m] & 0xffff);
        for (int64_t i = s->group_begin[m]; i < s->group_begin[m + 1]; i++) n[x] += 1, sum[x] += s->reward[i];
    }
    for (int x = 0; x < PROMPTS; x++) {
        if (n[x] == 0) continue;
        double rho = 0.9;
        if (r->kl) {
            const double d = r->path_then[x] < 0 ? 0 : r->path - r->path_then[x];
            rho = fmin(fmax(pow(0.5, d / 0.06), 0.875), 0.96);
        }
        r->alpha[x] = rho * r->alpha[x] + sum[x];
        r->beta[x] = rho * r->beta[x] + n[x] - sum[x];
        r->path_then[x] = r->path;
    }
}

/* ---------------------------------------------------------------- the plugin */

static struct estimator *open_spo(const char *const *set, int64_t n)
{
    const struct plugin *p;
    const struct config_param *settings;
    struct estimator *est;
    struct arena a;
    arena_init(&a, "test");
    assert_ok(plugin_open("spo", TARE_KIND_ESTIMATOR, NULL, &p, &e), &e);
    assert_ok(plugin_settings(p, (struct plugin_words){set, n}, NULL, &a, &settings, &e), &e);
    const struct estimate_options o = {.plugin = "spo", .settings = settings};
    assert_ok(estimate_open(&o, &est, &e), &e);
    arena_free(&a);
    return est;
}

static void run_step(struct estimator *est, struct step *s, struct arena *a)
{
    assert_ok(estimate_run(est, &s->b, a, &e), &e);
    assert_ok(estimate_apply(est, &(struct estimate_update){.step = s->b.step, .logprob = s->after}, &e), &e);
}

static void compare(const char *const *set, int64_t n, bool kl)
{
    struct reference r = {.kl = kl};
    struct estimator *est = open_spo(set, n);
    struct arena a;
    double spread = 0, least = 1, most = 0;
    arena_init(&a, "test");
    for (int x = 0; x < PROMPTS; x++) r.alpha[x] = r.beta[x] = 0.5, r.path_then[x] = -1;
    for (int number = 1; number <= STEPS; number++) {
        static struct step s;
        double A[GROUPS * MOST];
        make(&s, number, (uint64_t)number * 77);
        expect(&r, &s, A);
        run_step(est, &s, &a);
        for (int64_t i = 0; i < s.b.n_rollouts; i++) {
            if (!(fabs(s.b.advantage[i] - A[i]) <= 1e-12 * (1 + fabs(A[i]))))
                fail_msg("step %d, rollout %lld: %.17g, expected %.17g", number, (long long)i, s.b.advantage[i], A[i]);
            spread = fmax(spread, fabs(A[i]));
        }
        for (int m = 0; m < GROUPS; m++) {
            const int x = (int)(s.uid[m] & 0xffff);
            assert_true(fabs(s.b.baseline[m] - r.alpha[x] / (r.alpha[x] + r.beta[x])) <= 1e-14 && isnan(s.b.scale[m]));
        }
        learn(&r, &s);
    }
    for (int x = 0; x < PROMPTS; x++) {
        least = fmin(least, r.alpha[x] / (r.alpha[x] + r.beta[x]));
        most = fmax(most, r.alpha[x] / (r.alpha[x] + r.beta[x]));
    }
    assert_true(spread > 1 && most - least > 0.2); /* the cases differ from each other */
    assert_true(estimate_wants(est, COLUMN_UPDATED_LOGPROB) == kl && estimate_wants(est, COLUMN_LOGPROB) == kl);
    estimate_free(est);
    arena_free(&a);
}

static void spo__fixed_decay(void **state)
{
    (void)state;
    compare(NULL, 0, false);
}

static void spo__kl_decay(void **state)
{
    (void)state;
    const char *const set[] = {"decay=kl"};
    compare(set, 1, true);
}

/* Makes the same step without its crashed rollouts. */
static void without_crashed(const struct step *s, struct step *out)
{
    int64_t M = 0, N = 0, T = 0;
    memset(out, 0, sizeof *out);
    for (int64_t m = 0; m < s->b.n_groups; m++) {
        for (int64_t i = s->group_begin[m]; i < s->group_begin[m + 1]; i++) {
            if (s->verdict[i] == TARE_VERDICT_CRASHED) continue;
            out->reward[N] = s->reward[i];
            for (int64_t t = s->token_begin[i]; t < s->token_begin[i + 1]; t++, T++)
                out->before[T] = s->before[t], out->after[T] = s->after[t];
            out->token_begin[++N] = T;
        }
        if (N == out->group_begin[M]) continue;
        out->uid[M] = s->uid[m];
        out->cluster[M] = -1;
        out->group_begin[++M] = N;
    }
    out->b = s->b;
    out->b.n_groups = M, out->b.n_rollouts = N, out->b.n_tokens = T;
    out->b.group_begin = out->group_begin, out->b.token_begin = out->token_begin, out->b.prompt_uid = out->uid;
    out->b.cluster = out->cluster, out->b.reward = out->reward, out->b.verdict = out->verdict, out->b.logprob = out->before;
}

/* A rollout without a verdict counts as not sampled, also for the logprobs after the step. */
static void spo__is_not_shown_crashed_rollouts(void **state)
{
    (void)state;
    static struct step s, part;
    const char *const set[] = {"decay=kl"};
    struct estimator *one = open_spo(set, 1), *two = open_spo(set, 1);
    struct str saved = {0}, want = {0};
    struct arena a;
    uint64_t seed = 9;
    arena_init(&a, "test");
    for (int number = 1; number <= 5; number++) {
        make(&s, number, (uint64_t)number * 13);
        for (int64_t i = 0; i < s.b.n_rollouts; i++) s.verdict[i] = draw(&seed) % 3 ? TARE_VERDICT_CORRECT : TARE_VERDICT_CRASHED;
        for (int64_t i = 0; i < s.group_begin[1]; i++) s.verdict[i] = TARE_VERDICT_CRASHED;
        without_crashed(&s, &part);
        assert_true(part.b.n_rollouts > 2 && part.b.n_groups < s.b.n_groups);
        run_step(one, &s, &a);
        run_step(two, &part, &a);
        for (int64_t i = 0, k = 0; i < s.b.n_rollouts; i++) {
            const bool crashed = s.verdict[i] == TARE_VERDICT_CRASHED;
            assert_true(s.b.advantage[i] == (crashed ? 0 : part.b.advantage[k]) && s.b.rollout_weight[i] == !crashed);
            k += !crashed;
        }
    }
    assert_ok(estimate_save(one, &saved, &e), &e);
    assert_ok(estimate_save(two, &want, &e), &e);
    assert_true(saved.size == want.size && !memcmp(saved.data, want.data, (size_t)saved.size));
    estimate_free(one);
    estimate_free(two);
    str_free(&saved);
    str_free(&want);
    arena_free(&a);
}

static void spo__kl_needs_a_policy(void **state)
{
    (void)state;
    static struct step s;
    const char *const set[] = {"decay=kl"};
    struct estimator *est = open_spo(set, 1);
    struct arena a;
    arena_init(&a, "test");
    make(&s, 1, 9);
    assert_ok(estimate_run(est, &s.b, &a, &e), &e);
    assert_int_equal(estimate_apply(est, &(struct estimate_update){.step = 1}, &e), TARE_E_CONFIG);
    assert_non_null(
        strstr(e.message, "estimator spo: record, step 1: decay = kl needs the tokens' logprobs after the policy step"));
    estimate_free(est);
    arena_free(&a);
}

/* Runs without a break, and with save and load in the middle: bit-identical advantages and state.
 */
static void spo__survives_a_break(void **state)
{
    (void)state;
    static struct step s;
    const char *const set[] = {"decay=kl", "d_half=0.5"};
    struct estimator *one = open_spo(set, 2), *two = open_spo(set, 2);
    struct str saved = {0}, again = {0};
    struct arena a;
    arena_init(&a, "test");
    for (int number = 1; number <= STEPS; number++) {
        double A[GROUPS * MOST];
        if (number == STEPS / 2) {
            assert_ok(estimate_save(two, &saved, &e), &e);
            estimate_free(two);
            two = open_spo(set, 2);
            assert_ok(estimate_load(two, saved.data, saved.size, "x.state", &e), &e);
        }
        make(&s, number, (uint64_t)number * 31);
        run_step(one, &s, &a);
        memcpy(A, s.b.advantage, (size_t)s.b.n_rollouts * sizeof *A);
        run_step(two, &s, &a);
        assert_memory_equal(A, s.b.advantage, (size_t)s.b.n_rollouts * sizeof *A);
    }
    saved.size = 0;
    assert_ok(estimate_save(one, &saved, &e), &e);
    assert_ok(estimate_save(two, &again, &e), &e);
    assert_true(saved.size == again.size && !memcmp(saved.data, again.data, (size_t)saved.size));
    estimate_free(one);
    estimate_free(two);
    str_free(&saved);
    str_free(&again);
    arena_free(&a);
}

/* More prompts than the table starts with, in an order unrelated to their ids. */
static void spo__keeps_every_prompt(void **state)
{
    (void)state;
    enum { MANY = 3000 };
    struct estimator *est = open_spo(NULL, 0);
    static struct step s;
    struct arena a;
    arena_init(&a, "test");
    for (int k = 0; k < MANY; k++) {
        make(&s, k, 5);
        const uint64_t x = (uint64_t)k * 48271 % 3001;
        s.b.n_groups = 1;
        s.b.n_rollouts = s.group_begin[1];
        s.uid[0] = x << 40;
        for (int64_t i = 0; i < s.b.n_rollouts; i++) s.reward[i] = (double)(x % 2);
        run_step(est, &s, &a);
        arena_reset(&a);
    }
    struct str text = {0};
    assert_ok(estimate_describe(est, &text, &e), &e);
    int64_t prompts = 0;
    for (const char *at = text.data; (at = strstr(at, "\"uid\"")); at++) prompts++;
    assert_int_equal(prompts, MANY);
    int missing = 0;
    for (uint64_t x = 0; x <= MANY; x++) { /* each has its own rewards */
        char want[100];
        const double n = (double)s.b.n_rollouts, right = (double)(x % 2) * n;
        snprintf(want, sizeof want, "\"uid\":\"%016llx\",\"alpha\":%.17g,\"beta\":%.17g}", (unsigned long long)(x << 40),
                 0.5 * 0.9 + right, 0.5 * 0.9 + (n - right));
        missing += !strstr(text.data, want);
    }
    assert_int_equal(missing, 1); /* 3001 residues, 3000 prompts */
    str_free(&text);
    estimate_free(est);
    arena_free(&a);
}

static void spo__takes_rewards_of_a_posterior(void **state)
{
    (void)state;
    static struct step s;
    struct estimator *est = open_spo(NULL, 0);
    struct arena a;
    arena_init(&a, "test");
    make(&s, 1, 9);
    s.reward[0] = 1.5;
    assert_int_equal(estimate_run(est, &s.b, &a, &e), TARE_E_RANGE);
    assert_non_null(strstr(e.message, "reward 1.5: must be from 0 to 1 for a Beta posterior"));
    /* all rewards as expected: the advantages are exactly 0 */
    make(&s, 1, 9);
    for (int64_t i = 0; i < s.b.n_rollouts; i++) s.reward[i] = 1;
    assert_ok(estimate_run(est, &s.b, &a, &e), &e);
    for (int64_t i = 0; i < s.b.n_rollouts; i++) assert_true(s.b.advantage[i] == 0);
    estimate_free(est);
    arena_free(&a);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(spo__fixed_decay),
        cmocka_unit_test(spo__kl_decay),
        cmocka_unit_test(spo__kl_needs_a_policy),
        cmocka_unit_test(spo__is_not_shown_crashed_rollouts),
        cmocka_unit_test(spo__survives_a_break),
        cmocka_unit_test(spo__keeps_every_prompt),
        cmocka_unit_test(spo__takes_rewards_of_a_posterior),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
