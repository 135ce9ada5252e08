/* Deals and joins a batch's groups over ranks (threads): every field of the joined batch equals
 * that of a batch made by one rank; the deal is balanced. */
#include "check.h"

#include "dist/balance.h"
#include "dist/deal.h"
#include "dist/threads.h"

#include <string.h>

enum { M = 7, C = 2 };
static const int64_t PROMPT[M] = {5, 1, 9, 3, 2, 9, 4}, ROLLOUTS[M] = {3, 1, 2, 4, 3, 2, 1};

/* Every value is a function of prompt and rollout, as a sampler's is. */
static int64_t length_of(uint64_t uid, int64_t i)
{
    return 1 + (int64_t)((uid * 7 + (uint64_t)i * 3) % 6);
}

static tare_status make_prompts(struct batch *b, struct arena *a, struct err *e)
{
    *b = (struct batch){.step = 4, .n_groups = M};
    for (int64_t m = 0; m < M; m++) b->n_prompt_tokens += PROMPT[m];
    TRY(batch_alloc(b, BATCH_DATA, a, e));
    for (int64_t m = 0; m < M; m++) b->prompt_begin[m + 1] = b->prompt_begin[m] + PROMPT[m];
    for (int64_t m = 0; m < M; m++) {
        b->prompt_uid[m] = (uint64_t)(10 + m);
        for (int64_t i = b->prompt_begin[m]; i < b->prompt_begin[m + 1]; i++) b->prompt_ids[i] = (int32_t)(100 * m + i);
    }
    return TARE_OK;
}

static tare_status text_of(struct arena *a, const char *format, uint64_t uid, int64_t i, tare_text *out, struct err *e)
{
    char text[40], *copy;
    const int n = snprintf(text, sizeof text, format, (long long)uid, (long long)i);
    TRY(arena_strdup(a, text, n, &copy, e));
    *out = (tare_text){copy, n};
    return TARE_OK;
}

/* Fills rollouts and verdicts of a rank's own groups. */
static tare_status fill(struct batch *b, struct arena *a, struct err *e)
{
    int64_t n = 0;
    for (int64_t m = 0; m < b->n_groups; m++) n += ROLLOUTS[b->prompt_uid[m] - 10];
    b->n_rollouts = n, b->n_components = C, b->n_tokens = 6 * n;
    TRY(batch_alloc(b, BATCH_ROLLOUT | BATCH_VERIFY, a, e));
    TRY(arena_new(a, &b->off_policy, n, e));
    for (int64_t m = 0; m < b->n_groups; m++) b->group_begin[m + 1] = b->group_begin[m] + ROLLOUTS[b->prompt_uid[m] - 10];
    for (int64_t m = 0; m < b->n_groups; m++)
        for (int64_t i = b->group_begin[m], k = 0; i < b->group_begin[m + 1]; i++, k++) {
            const uint64_t uid = b->prompt_uid[m];
            b->token_begin[i + 1] = b->token_begin[i] + length_of(uid, k);
            for (int64_t t = b->token_begin[i]; t < b->token_begin[i + 1]; t++) {
                b->ids[t] = (int32_t)(1000 * uid + 10 * (uint64_t)k + (uint64_t)(t - b->token_begin[i]));
                b->logprob[t] = -1.0f / (float)b->ids[t];
                b->entropy[t] = 1.0f / (float)b->ids[t];
            }
            b->finish[i] = (uint8_t)(k % 2), b->off_policy[i] = k == 1;
            b->reward[i] = 1.0 / (double)uid + (double)k;
            for (int64_t c = 0; c < C; c++) b->component[i * C + c] = b->reward[i] * (double)(c + 1);
            b->verdict[i] = (int32_t)(uid % 5);
            b->policy_version[i] = (int64_t)uid + k;
            for (int64_t c = 0; c < C; c++) b->component_verdict[i * C + c] = (int32_t)(uid % 5) + (int32_t)c;
            TRY(text_of(a, "text of %lld/%lld", uid, k, &b->completion[i], e));
            if (k) TRY(text_of(a, "%lld:%lld", uid, k, &b->extracted[i], e));
            b->reason[i] = k % 2 ? "because" : NULL;
        }
    b->n_tokens = b->token_begin[n];
    return TARE_OK;
}

#define SAME(FIELD, N) assert_memory_equal(x->FIELD, y->FIELD, (size_t)(N) * sizeof *x->FIELD)
static void same_batch(const struct batch *x, const struct batch *y)
{
    assert_int_equal(x->n_rollouts, y->n_rollouts);
    assert_int_equal(x->n_tokens, y->n_tokens);
    assert_int_equal(x->n_components, y->n_components);
    SAME(prompt_uid, M);
    SAME(prompt_begin, M + 1);
    SAME(group_begin, M + 1);
    SAME(token_begin, x->n_rollouts + 1);
    SAME(ids, x->n_tokens);
    SAME(logprob, x->n_tokens);
    SAME(entropy, x->n_tokens);
    SAME(finish, x->n_rollouts);
    SAME(off_policy, x->n_rollouts);
    SAME(reward, x->n_rollouts);
    SAME(component, x->n_rollouts * C);
    SAME(verdict, x->n_rollouts);
    SAME(policy_version, x->n_rollouts);
    SAME(component_verdict, x->n_rollouts * C);
    for (int64_t i = 0; i < x->n_rollouts; i++) {
        assert_int_equal(x->completion[i].size, y->completion[i].size);
        assert_memory_equal(x->completion[i].data, y->completion[i].data, (size_t)x->completion[i].size);
        assert_int_equal(x->extracted[i].size, y->extracted[i].size);
        if (x->extracted[i].size) assert_memory_equal(x->extracted[i].data, y->extracted[i].data, (size_t)x->extracted[i].size);
        assert_true(!x->reason[i] == !y->reason[i]);
        if (x->reason[i]) assert_string_equal(x->reason[i], y->reason[i]);
    }
}

static struct batch whole; /* made by one rank */

static tare_status join_rank(struct comm *c, void *ctx, struct err *e)
{
    (void)ctx;
    struct arena a;
    struct batch b;
    struct share s;
    arena_init(&a, "rank");
    tare_status status = make_prompts(&b, &a, e);
    if (!status) status = deal_batch(&b, &(struct rollout_config){.group_size = 1, .max_new_tokens = 10}, c, &a, &s, e);
    if (!status && s.own.n_groups) status = fill(&s.own, &a, e);
    if (!status) status = deal_join(&s, c, &a, &b, e);
    if (!status) same_batch(&whole, &b);
    arena_free(&a);
    return status;
}

static void joined_is_what_one_rank_makes(void **state)
{
    (void)state;
    struct err e = {0};
    struct arena a;
    arena_init(&a, "whole");
    assert_ok(make_prompts(&whole, &a, &e), &e);
    assert_ok(fill(&whole, &a, &e), &e);
    /* More ranks than groups: some have none. */
    static const int RANKS[] = {1, 2, 3, 4, 8, 11};
    for (int i = 0; i < 6; i++) assert_ok(comm_threads(RANKS[i], 30, join_rank, NULL, &e), &e);
    arena_free(&a);
}

static void dealing_is_balanced(void **state)
{
    (void)state;
    struct err e = {0};
    struct arena a;
    int64_t to[6] = {0};
    static const int64_t cost[6] = {3, 9, 4, 4, 9, 3}, want[6] = {0, 0, 0, 1, 1, 1};
    arena_init(&a, "deal");
    assert_ok(balance(cost, 6, 2, to, &a, &e), &e); /* 9 | 9, then 4 | 4, then 3 | 3 */
    assert_memory_equal(to, want, sizeof to);
    assert_ok(balance(cost, 0, 2, to, &a, &e), &e);
    assert_ok(balance(cost, 1, 5, to, &a, &e), &e);
    assert_int_equal(to[0], 0);
    arena_free(&a);
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(joined_is_what_one_rank_makes), cmocka_unit_test(dealing_is_balanced)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
