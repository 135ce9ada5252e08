/* libtare's interface without Python: a run step by step with the caller's functions, batches that
 * outlive their run, inference with a model; every error is a status and a message.
 * (sdk/python/tests/test_module.py compares with the program.) */
#include "check.h"
#include "folder.h"

#include "api/api.h"

static const char SFT[] =
    "[run]\ndir = sft\n[model]\npath = none\ninit = qwen2\nhidden_size = 32\nlayers = 2\nheads = 2\nkv_heads = 1\n"
    "intermediate_size = 64\ncontext = 64\n[data]\ntrain = builtin:arithmetic/phase1?rows=50\nprompt = plain\n"
    "[sft]\nsteps = 2\nbatch = 4\nout = base\n";
static const char TRAIN[] = "[run]\ndir = run\n[model]\npath = base\nwarm_start = sft.ini\n[data]\ntrain = "
                            "builtin:arithmetic/train?rows=20\nprompt = plain\n"
                            "[rollout]\nprompts = 2\ngroup_size = 3\nmax_new_tokens = 4\n[verifier]\nplugins = python_function\n"
                            "[estimator]\nplugin = python_function\n[train]\nsteps = 3\nminibatch = 3\n";

struct caller {
    int rewards, advantages, fail_at; /* calls; fail_at: of the reward function */
};

static tare_status count_reward(void *ctx, const tare_api_asked *asked, tare_error *error)
{
    struct caller *c = ctx;
    if (++c->rewards == c->fail_at) {
        snprintf(error->message, sizeof error->message, "the caller fails");
        return TARE_E_GENERIC;
    }
    for (int64_t i = 0; i < asked->n; i++) asked->reward[i] = (double)(asked->completion[i]->text.size % 2);
    return TARE_OK;
}

/* Returns the column with this name, or NULL. */
static const tare_api_column *seen(const tare_api_view *view, const char *name)
{
    for (int64_t i = 0; i < view->n_columns; i++)
        if (!strcmp(view->column[i].name, name)) return &view->column[i];
    return NULL;
}

static tare_status mean_advantage(void *ctx, const tare_api_view *view, double *out, tare_error *error)
{
    struct caller *c = ctx;
    const tare_batch *b = view->batch;
    const tare_api_column *token = seen(view, "token"), *finish = seen(view, "finish"), *row = seen(view, "row.json");
    (void)error;
    c->advantages++;
    assert_true(token && finish && row && seen(view, "entropy") && seen(view, "component") && !seen(view, "ids"));
    assert_int_equal(token->n, b->n_tokens);
    assert_int_equal(token->type, TARE_I32);
    assert_int_equal(row->n, b->n_groups);
    assert_int_equal(b->n_turns, b->n_rollouts);
    for (int64_t i = 0; i < b->n_rollouts; i++) {
        const uint8_t end = ((const uint8_t *)finish->data)[i];
        assert_true(end == TARE_FINISH_STOP || end == TARE_FINISH_LENGTH);
        assert_int_equal(b->length[i], b->token_begin[i + 1] - b->token_begin[i]);
        out[i] = b->reward[i] - 0.5;
    }
    return TARE_OK;
}

static void drop_message(void *ctx, int32_t level, const char *text)
{
    (void)ctx, (void)level, (void)text;
}

static int open_library(void **state)
{
    const char *folder = make_test_folder("api");
    struct err e = {0};
    (void)state;
    if (!folder || chdir(folder)) return 1;
    return fs_write_atomic("sft.ini", SFT, (int64_t)strlen(SFT), &e) ||
           fs_write_atomic("train.ini", TRAIN, (int64_t)strlen(TRAIN), &e) || tare_api_begin(NULL, drop_message, NULL, NULL) ||
           tare_api_begin(NULL, drop_message, NULL, NULL);
}

static int remove_files(void **state)
{
    char folder[FS_PATH];
    (void)state;
    return !getcwd(folder, sizeof folder) || chdir("/") || fs_remove_tree(folder, NULL);
}

static tare_api_run *open_run(struct caller *c, const char *setting)
{
    tare_api_error e;
    tare_api_run *run;
    const tare_api_run_options o = {.struct_size = sizeof o,
                                    .config = "train.ini",
                                    .settings = &setting,
                                    .n = 1,
                                    .ctx = c,
                                    .reward = count_reward,
                                    .advantage = mean_advantage};
    if (tare_api_run_open(&o, &run, &e)) fail_msg("%s", e.message);
    return run;
}

static tare_api_batch *next_batch(tare_api_run *run)
{
    tare_api_error e;
    tare_api_batch *b;
    if (tare_api_run_step(run, &b, &e)) fail_msg("%s", e.message);
    return b;
}

static tare_api_column find_column(const tare_api_batch *b, const char *name)
{
    tare_api_column all[64];
    const int64_t n = tare_api_batch_columns(b, all, 64);
    for (int64_t i = 0; i < n; i++)
        if (!strcmp(all[i].name, name)) return all[i];
    fail_msg("no column %s", name);
    return all[0];
}

static void check_batch(const tare_api_batch *b)
{
    const tare_api_column r = find_column(b, "reward"), a = find_column(b, "advantage"), text = find_column(b, "completion"),
                          token = find_column(b, "token"), begin = find_column(b, "token_begin"),
                          prompt = find_column(b, "prompt_ids"), row = find_column(b, "row.json");
    assert_int_equal(r.n, 6);
    assert_int_equal(r.type, TARE_F64);
    assert_int_equal(text.type, TARE_TEXT);
    assert_int_equal(token.n, ((const int64_t *)begin.data)[6]);
    assert_true(((const int32_t *)prompt.data)[0] >= 0);
    for (int64_t i = 0; i < 6; i++) {
        const double x = ((const double *)r.data)[i];
        assert_true(x == (double)(((const tare_text *)text.data)[i].size % 2));
        assert_true(((const double *)a.data)[i] == x - 0.5);
    }
    assert_int_equal(find_column(b, "component.verdict").width, 1);
    for (int64_t m = 0; m < row.n; m++) assert_int_equal(((const tare_text *)row.data)[m].data[0], '{');
    assert_non_null(strstr(tare_api_batch_metrics(b), "\"reward/mean\""));
}

static void steps_and_batches(void **state)
{
    struct caller c = {0};
    tare_api_place place;
    (void)state;
    tare_api_run *run = open_run(&c, "run.dir=whole");
    tare_api_batch *kept[3];
    for (int i = 0; i < 3; i++) kept[i] = next_batch(run);
    assert_null(next_batch(run));
    assert_null(next_batch(run));
    assert_int_equal(tare_api_run_place(run, &place, NULL), 0);
    assert_int_equal(place.step, 3);
    assert_int_equal(place.steps, 3);
    assert_int_equal(tare_api_run_save(run, NULL), 0);
    assert_int_equal(tare_api_run_close(run, NULL), 0);
    for (int i = 0; i < 3; i++) check_batch(kept[i]); /* after their steps, and after the run */
    for (int i = 0; i < 3; i++) tare_api_batch_free(kept[i]);
    assert_int_equal(c.rewards, 3);
    assert_int_equal(c.advantages, 3);
    tare_api_batch_free(NULL);
    assert_int_equal(tare_api_run_close(NULL, NULL), 0);
}

static void a_function_that_fails(void **state)
{
    struct caller c = {.fail_at = 2};
    tare_api_error e;
    tare_api_batch *b;
    (void)state;
    tare_api_run *run = open_run(&c, "run.dir=fails");
    tare_api_batch_free(next_batch(run));
    assert_int_equal(tare_api_run_step(run, &b, &e), TARE_E_GENERIC);
    assert_null(b);
    assert_non_null(strstr(e.message, "step 2, verify"));
    assert_non_null(strstr(e.message, "the caller fails"));
    b = next_batch(run); /* the step is repeated */
    assert_non_null(strstr(tare_api_batch_metrics(b), "{\"step\":2,"));
    check_batch(b);
    tare_api_batch_free(b);
    assert_int_equal(tare_api_run_close(run, &e), 0); /* a step remains: saved */
    assert_true(fs_is_dir("fails/checkpoints/step-000002"));
}

static void wrong_options(void **state)
{
    static const char *const wrong[] = {"train.stepss=3", "train.steps", "verifier.plugins=nosuch", "estimator.plugin=nosuch",
                                        "dist.ranks=2"};
    tare_api_run_options o = {
        .struct_size = sizeof o, .config = "train.ini", .n = 1, .reward = count_reward, .advantage = mean_advantage};
    tare_api_error e;
    tare_api_run *run;
    (void)state;
    for (size_t i = 0; i < sizeof wrong / sizeof *wrong; i++) {
        o.settings = &wrong[i];
        assert_int_not_equal(tare_api_run_open(&o, &run, &e), 0);
        assert_null(run);
        assert_true(strlen(e.message) > 10);
    }
    o.struct_size = 8;
    assert_int_equal(tare_api_run_open(&o, &run, &e), TARE_E_INVALID);
    assert_int_equal(tare_api_run_step(NULL, &(tare_api_batch *){NULL}, &e), TARE_E_INVALID);
    assert_false(fs_is_dir("run"));
}

static void a_model_is_asked(void **state)
{
    static const char LINES[] = "{\"id\":1,\"question\":\"1+1=\"}\n{\"id\":2,\"ids\":[50,51]}\n", *const SETTINGS[] = {
                                                                                                      "dtype=f32", "prompt=plain"};
    const tare_api_settings two = {(const char *const[]){"group_size=2"}, 1}, bad = {(const char *const[]){"group_size"}, 1};
    const int32_t ids[] = {49, 43, 49, 50}, negative = -1;
    const int64_t begin[] = {0, 3, 4};
    struct caller c = {0};
    float logprob[4], entropy[4], *vector;
    tare_api_model *m;
    tare_api_facts facts;
    tare_api_error e;
    tare_api_text out;
    int32_t *found;
    int64_t n;
    (void)state;
    /* makes the model */
    assert_int_equal(tare_api_run_close(open_run(&c, "run.dir=made"), NULL), 0);
    assert_int_not_equal(tare_api_model_open("nosuch", NULL, 0, &m, &e), 0);
    if (tare_api_model_open("base", SETTINGS, 2, &m, &e)) fail_msg("%s", e.message);
    assert_int_equal(tare_api_model_facts(m, &facts, &e), 0);
    assert_int_equal(facts.hidden, 32);
    assert_int_equal(tare_api_generate(m, &(tare_text){LINES, sizeof LINES - 1}, &two, &out, &e), 0);
    assert_int_equal(out.size, (int64_t)strlen(out.data));
    n = 0;
    for (const char *p = out.data; (p = strchr(p, '\n')); p++) n++;
    assert_int_equal(n, 4);
    tare_api_free(out.data);
    assert_int_equal(tare_api_generate(m, &(tare_text){LINES, sizeof LINES - 1}, &bad, &out, &e), TARE_E_CONFIG);
    assert_null(out.data);
    assert_int_not_equal(tare_api_generate(m, &(tare_text){"{}", 2}, &two, &out, &e), 0);
    assert_int_equal(tare_api_score(m, &(tare_api_lines){ids, begin, 2, 1}, logprob, entropy, &e), 0);
    assert_true(logprob[0] < 0 && logprob[1] < 0 && entropy[0] > 0);
    assert_int_equal(tare_api_score(m, &(tare_api_lines){&negative, (int64_t[]){0, 1}, 1, 1}, logprob, entropy, &e), TARE_E_RANGE);
    vector = calloc((size_t)facts.hidden, sizeof *vector);
    assert_int_equal(tare_api_embed(m, &(tare_text){"1+1=", 4}, 1, vector, &e), 0);
    free(vector);
    assert_int_equal(tare_api_encode(m, (tare_text){"12", 2}, &found, &n, &e), 0);
    assert_int_equal(n, 2);
    assert_int_equal(tare_api_decode(m, found, n, &out, &e), 0);
    assert_string_equal(out.data, "12");
    tare_api_free(found);
    tare_api_free(out.data);
    assert_int_equal(tare_api_encode(m, (tare_text){"\xff", 1}, &found, &n, &e), TARE_E_INVALID);
    assert_int_equal(tare_api_decode(m, &negative, 1, &out, &e), TARE_E_RANGE);
    tare_api_model_close(m);
    tare_api_model_close(NULL);
    assert_int_equal(tare_api_model_facts(NULL, &facts, &e), TARE_E_INVALID);
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(steps_and_batches), cmocka_unit_test(a_function_that_fails),
                                       cmocka_unit_test(wrong_options), cmocka_unit_test(a_model_is_asked)};
    return cmocka_run_group_tests(tests, open_library, remove_files);
}
