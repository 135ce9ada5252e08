/* Episodes of several turns: tokens, logprobs, masks and turns have the same bits in every batch, in
 * a small and a large cache, with parked sequences put out of it or not, and however late answers
 * come. They are those of one pass over the whole episode. */
#include "script.h"

#include "rollout/sampler.h"

struct setting {
    int64_t batch, kv_tokens, prefill_rows;
    int threads, delay;
};

static struct err e;

static void sample_episodes(struct rig *r, struct setting x, struct script *script, struct sample_output *out,
                            struct sampler_stats *stats)
{
    struct sampler *s;
    int32_t stop[SCRIPT_STOPS];
    const struct sample_params p = script_params(script, stop);
    const struct sample_episodes episodes = script_episodes(script);
    script->delay = x.delay;
    assert_ok(sampler_new(r->m, x.batch, x.kv_tokens, &s, &e), &e);
    if (x.prefill_rows) s->prefill_rows = x.prefill_rows;
    assert_ok(sampler_run(
                  s, &(struct sample_job){&p, rng_key(5, RNG_TRAIN), rig_requests(r->m->shape.vocab), N_REQUESTS, NULL, &episodes},
                  &r->arena, out, &e),
              &e);
    *stats = sampler_stats(s);
    assert_int_equal(s->sched.n_parked, 0);
    assert_int_equal(s->sched.pool.n_free, s->sched.pool.n); /* every block is back */
    sampler_free(s);
}

/* The mask is that of the acts, context is what the script said, and every turn but the last ends
 * with a stop token. */
static void assert_whole(const struct sample_output *o, const struct script *script)
{
    int64_t full = 0, cut = 0;
    for (int64_t i = 0; i < o->n; i++) {
        const int64_t first = o->token_begin[i], n = o->token_begin[i + 1] - first, last = o->turn_begin[i + 1] - 1;
        int64_t at = 0;
        assert_true(last >= o->turn_begin[i]);
        for (int64_t u = o->turn_begin[i]; u <= last; u++) {
            for (; at < o->act_begin[u]; at++) {
                assert_true(!o->sampled[first + at]);
                assert_true(o->logprob[first + at] == 0 && o->entropy[first + at] == 0);
            }
            assert_true(o->act_end[u] > at);
            for (; at < o->act_end[u]; at++) {
                assert_true(o->sampled[first + at]);
                assert_true(o->logprob[first + at] < 0 && o->entropy[first + at] > 0);
                assert_int_equal(script_is_stop(script, o->ids[first + at]),
                                 at + 1 == o->act_end[u] && o->turn_finish[u] == FINISH_STOP);
            }
            assert_true(u == last || o->turn_finish[u] == FINISH_STOP);
            if (u == last) break;
            const struct script_text text =
                script_text(o->ids + first + o->act_begin[u], at - o->act_begin[u], u - o->turn_begin[i]);
            assert_int_equal(o->act_begin[u + 1] - at, text.n);
            assert_memory_equal(o->ids + first + at, text.ids, (size_t)text.n * sizeof *text.ids);
        }
        assert_int_equal(at, n); /* nothing follows the last act */
        assert_true(n <= SCRIPT_MOST);
        full += last + 1 - o->turn_begin[i] == SCRIPT_TURNS && o->finish[i] == FINISH_ENDED;
        cut += o->finish[i] == FINISH_LENGTH;
    }
    assert_true(cut > 0 && (full > 4 || script->lasting));
    assert_int_equal(script->ended, full);
}

/* One packed pass, with prompts shared and repeated, is bit-identical at the sampled tokens. */
static void assert_logprobs(struct rig *r, const struct sample_output *o)
{
    for (int share = 0; share < 2; share++) {
        const struct rig_logprobs scores = rig_compute_logprobs(r, rig_requests(r->m->shape.vocab), N_REQUESTS, o, 1, share);
        for (int64_t t = 0, k = 0; t < o->n_tokens; t++) {
            if (!o->sampled[t]) continue;
            assert_memory_equal(&scores.logprob[k], &o->logprob[t], sizeof *scores.logprob);
            assert_memory_equal(&scores.entropy[k++], &o->entropy[t], sizeof *scores.entropy);
        }
    }
}

/* The cache holds the longest episode alone (9 blocks), or a few, or all. */
static const struct setting SETTINGS[] = {
    {7, 0, 0, 1, 0},    {32, 0, 0, 1, 3},   {32, 0, 0, 2, 0},   {32, 0, 0, 3, 5},  {7, 0, 5, 2, 2},    {32, 0, 1, 1, 1},
    {32, 144, 0, 2, 0}, {32, 144, 0, 1, 4}, {7, 144, 9, 1, 7},  {3, 176, 0, 1, 2}, {1, 144, 0, 1, 3},  {32, 240, 7, 3, 6},
    {5, 240, 0, 1, 9},  {32, 400, 0, 1, 3}, {16, 320, 3, 2, 1}, {0, 0, 0, 2, 8},   {2, 208, 0, 1, 11},
};

/* Turns that last make running sequences compete, and short ones put parked sequences out. */
static void check_layouts(const char *arch, const char *dtype, bool lasting)
{
    struct rig r, other;
    struct sample_output base, out;
    struct sampler_stats stats, first;
    struct script script = {.lasting = lasting};
    int64_t preempted = 0, dropped = 0, context = 0;
    rig_new(&r, arch, dtype, 1, 4);
    sample_episodes(&r, (struct setting){1, 0, 0, 1, 0}, &script, &base, &first);
    assert_whole(&base, &script);
    for (int64_t t = 0; t < base.n_tokens; t++) context += !base.sampled[t];
    assert_int_equal(first.context_tokens, context);
    assert_int_equal(first.new_tokens, base.n_tokens - context);
    assert_int_equal(first.refilled_tokens, 0); /* answers came at once */
    for (size_t i = 0; i < sizeof SETTINGS / sizeof *SETTINGS; i++) {
        struct script again = {.lasting = lasting};
        rig_new(&other, arch, dtype, SETTINGS[i].threads, 4);
        sample_episodes(&other, SETTINGS[i], &again, &out, &stats);
        assert_non_null(base.sampled);
        rig_assert_same(&base, &out);
        assert_int_equal(again.ended, script.ended);
        if (!SETTINGS[i].kv_tokens) assert_int_equal(stats.preemptions + stats.parked_drops + stats.refilled_tokens, 0);
        preempted += stats.preemptions, dropped += stats.parked_drops;
        rig_free(&other);
    }
    assert_true(dropped > 0 && (preempted > 0 || !lasting));
    assert_logprobs(&r, &base);
    rig_free(&r);
}

static void episodes_are_the_same_in_every_layout(void **state)
{
    (void)state;
    for (int lasting = 0; lasting < 2; lasting++) {
        check_layouts("qwen2", "f32", lasting);
        check_layouts("llama", "bf16", lasting);
        check_layouts("qwen3", "f32", lasting);
    }
}

/* With a script that ends at once an episode is the completion of a run without episodes. */
static void one_turn_is_a_completion(void **state)
{
    struct rig r;
    struct sampler *s;
    struct sample_output plain, out;
    struct sampler_stats stats;
    struct script script = {.turns = 1};
    int32_t stop[SCRIPT_STOPS];
    const struct sample_params p = script_params(&script, stop);
    (void)state;
    rig_new(&r, "qwen2", "f32", 1, 4);
    sample_episodes(&r, (struct setting){32, 0, 0, 1, 2}, &script, &out, &stats);
    assert_ok(sampler_new(r.m, 0, 0, &s, &e), &e);
    assert_ok(sampler_run(s, &(struct sample_job){&p, rng_key(5, RNG_TRAIN), rig_requests(250), N_REQUESTS, NULL, NULL}, &r.arena,
                          &plain, &e),
              &e);
    assert_null(plain.sampled);
    assert_null(plain.turn_begin);
    assert_int_equal(out.n_turns, out.n);
    assert_int_equal(stats.context_tokens, 0);
    for (int64_t i = 0; i < out.n; i++) {
        const int64_t n = out.token_begin[i + 1] - out.token_begin[i], m = plain.token_begin[i + 1] - plain.token_begin[i];
        assert_true(n == m || (n < m && n == SCRIPT_TURN)); /* cut by the limit of a turn */
        assert_memory_equal(out.ids + out.token_begin[i], plain.ids + plain.token_begin[i], (size_t)n * sizeof *out.ids);
        assert_memory_equal(out.logprob + out.token_begin[i], plain.logprob + plain.token_begin[i], (size_t)n * sizeof(float));
    }
    sampler_free(s);
    rig_free(&r);
}

/* ---------------------------------------------------------------- limits and errors */

struct limits {
    int64_t turn, sampled, all;
};

static void check_limits(struct rig *r, struct limits x)
{
    struct script script = {.turns = 100};
    struct sample_output o;
    struct sampler *s;
    int32_t stop[SCRIPT_STOPS];
    struct sample_params p = script_params(&script, stop);
    struct sample_episodes episodes = script_episodes(&script);
    p.max_new_tokens = x.sampled;
    episodes.max_turn_tokens = x.turn, episodes.max_tokens = x.all;
    assert_ok(sampler_new(r->m, 8, 0, &s, &e), &e);
    assert_ok(sampler_run(s, &(struct sample_job){&p, rng_key(5, RNG_TRAIN), rig_requests(250), N_REQUESTS, NULL, &episodes},
                          &r->arena, &o, &e),
              &e);
    for (int64_t i = 0; i < o.n; i++) {
        const int64_t n = o.token_begin[i + 1] - o.token_begin[i], last = o.turn_begin[i + 1] - 1;
        int64_t sampled = 0;
        for (int64_t u = o.turn_begin[i]; u <= last; u++) {
            const int64_t act = o.act_end[u] - o.act_begin[u];
            assert_true(!x.turn || act <= x.turn);
            sampled += act;
            if (o.turn_finish[u] == FINISH_LENGTH)
                assert_true(u == last && ((x.turn && act == x.turn) || sampled == x.sampled || n == x.all || n >= 120));
        }
        assert_true(sampled <= x.sampled && (!x.all || n <= x.all));
        assert_int_equal(o.act_end[last], n);
        assert_int_equal(o.finish[i], FINISH_LENGTH); /* the script never ends an episode */
    }
    sampler_free(s);
}

static void limits_end_an_episode(void **state)
{
    struct rig r;
    (void)state;
    rig_new(&r, "qwen2", "f32", 1, 4);
    check_limits(&r, (struct limits){4, 1000, 0});
    check_limits(&r, (struct limits){0, 9, 0});
    check_limits(&r, (struct limits){0, 1000, 31});
    check_limits(&r, (struct limits){7, 20, 50});
    check_limits(&r, (struct limits){1, 1, 1});
    check_limits(&r, (struct limits){0, 1000, 0}); /* the model's context of 160 */
    rig_free(&r);
}

static tare_status outside(void *ctx, const struct episode_act *act, struct episode_answer *out, struct err *x)
{
    static const int32_t bad[] = {5, 250};
    (void)act, (void)x;
    *out = (struct episode_answer){EPISODE_TEXT, bad, *(int64_t *)ctx};
    return TARE_OK;
}

static tare_status broken(void *ctx, const struct episode_act *act, struct episode_answer *out, struct err *x)
{
    (void)ctx, (void)out;
    FAIL(x, TARE_E_PLUGIN, "turn %lld broke", (long long)act->turn);
}

static volatile int interrupted;

static tare_status never(void *ctx, const struct episode_act *act, struct episode_answer *out, struct err *x)
{
    int64_t *calls = ctx;
    (void)out, (void)x;
    interrupted = act->idle && ++*calls > 20;
    return TARE_OK;
}

static void failures_leave_a_sampler_that_works(void **state)
{
    struct rig r;
    struct sampler *s;
    struct sample_output out, base;
    struct sampler_stats stats;
    struct script script = {0};
    int64_t n = 2;
    int32_t stop[SCRIPT_STOPS];
    const struct sample_params p = script_params(&script, stop);
    struct sample_episodes episodes = {.next_text = outside, .ctx = &n};
    struct sample_job job = {&p, rng_key(5, RNG_TRAIN), rig_requests(250), N_REQUESTS, &interrupted, &episodes};
    (void)state;
    rig_new(&r, "qwen2", "f32", 1, 4);
    sample_episodes(&r, (struct setting){32, 0, 0, 1, 0}, &script, &base, &stats);
    assert_ok(sampler_new(r.m, 8, 0, &s, &e), &e);
    assert_int_equal(sampler_run(s, &job, &r.arena, &out, &e), TARE_E_RANGE);
    assert_non_null(strstr(e.message, "token 1 of the text after turn 0 is 250"));
    n = -1;
    assert_int_equal(sampler_run(s, &job, &r.arena, &out, &e), TARE_E_RANGE);
    episodes.next_text = broken;
    assert_int_equal(sampler_run(s, &job, &r.arena, &out, &e), TARE_E_PLUGIN);
    assert_non_null(strstr(e.message, "turn 0 broke"));
    episodes.next_text = never;
    n = 0;
    assert_int_equal(sampler_run(s, &job, &r.arena, &out, &e), TARE_E_CANCELLED);
    interrupted = 0;
    episodes = script_episodes(&script);
    episodes.max_tokens = -1;
    assert_int_equal(sampler_run(s, &job, &r.arena, &out, &e), TARE_E_RANGE);
    episodes = script_episodes(&script);
    assert_ok(sampler_run(s, &job, &r.arena, &out, &e), &e);
    assert_non_null(base.sampled);
    rig_assert_same(&base, &out);
    sampler_free(s);
    rig_free(&r);
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(episodes_are_the_same_in_every_layout),
                                       cmocka_unit_test(one_turn_is_a_completion), cmocka_unit_test(limits_end_an_episode),
                                       cmocka_unit_test(failures_leave_a_sampler_that_works)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
