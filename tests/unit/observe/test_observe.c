#include "check.h"
#include "folder.h"

#include "base/fs.h"
#include "base/json.h"
#include "base/log.h"
#include "data/dataset.h"
#include "observe/observe.h"

#include <math.h>
#include <signal.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <tare/verifier.h>

static const char *folder;

static int setup(void **state)
{
    (void)state;
    log_set_level(LOG_NONE);
    return (folder = make_test_folder("tare-observe")) == NULL;
}

static int teardown(void **state)
{
    (void)state;
    return (int)fs_remove_tree(folder, NULL);
}

static const char *run_dir(const char *name)
{
    static char path[300];
    snprintf(path, sizeof path, "%s/%s/run", folder, name);
    return path;
}

/* ---------------------------------------------------------------- rollouts */

/* Makes two groups of two and one rollouts. */
static struct batch small_batch(void)
{
    static struct row rows[2] = {{.id = "q1", .question = {"What is 2+2?", 12}, .answer = {"4", 1}},
                                 {.id = "q\"2", .question = {"\xC3\xA9?", 3}}};
    static const struct row *row[] = {&rows[0], &rows[1]};
    static uint64_t uid[] = {0x8000000000000001u, 2};
    static int64_t occurrence[] = {0, 1}, group_begin[] = {0, 2, 3}, token_begin[] = {0, 3, 10, 12};
    static uint8_t finish[] = {FINISH_STOP, FINISH_LENGTH, FINISH_STOP};
    static tare_text completion[] = {{"4", 1}, {"cut \xE2\x82", 6}, {"a\0b", 3}}, extracted[] = {{"4", 1}, {NULL, 0}, {"b", 1}};
    static tare_text prompt[] = {{"<user>What is 2+2?<assistant>", 29}, {"\xC3\xA9?", 3}};
    static double reward[] = {1, 0.1, 1.0 / 3}, component[] = {1, 0, 0.1, 0, 1.0 / 3, 0},
                  advantage[] = {1.5, -0.123456789012345678, NAN}, weight[] = {1, 1, 0}, baseline[] = {0.55, 1.0 / 3},
                  scale[] = {0.45, 0};
    static int32_t verdict[] = {TARE_VERDICT_CORRECT, TARE_VERDICT_NO_ANSWER, TARE_VERDICT_PARTIAL}, cluster[] = {3, -1};
    static const char *reason[] = {"last number", NULL, NULL};
    return (struct batch){.n_groups = 2,
                          .n_rollouts = 3,
                          .n_tokens = 12,
                          .row = row,
                          .prompt_uid = uid,
                          .occurrence = occurrence,
                          .prompt_text = prompt,
                          .group_begin = group_begin,
                          .token_begin = token_begin,
                          .finish = finish,
                          .completion = completion,
                          .extracted = extracted,
                          .reward = reward,
                          .component = component,
                          .n_components = 2,
                          .verdict = verdict,
                          .reason = reason,
                          .cluster = cluster,
                          .advantage = advantage,
                          .rollout_weight = weight,
                          .baseline = baseline,
                          .scale = scale};
}

static json_t *line_of(const struct str *text, int number)
{
    struct err e = {0};
    const char *p = text->data;
    for (int i = 0; i < number; i++) p = strchr(p, '\n') + 1;
    json_t *o;
    assert_ok(json_parse(p, strchr(p, '\n') - p, "line", &o, &e), &e);
    return o;
}

static void rollouts_hold_the_step(void **state)
{
    (void)state;
    struct err e = {0};
    struct str text = {0};
    const struct batch b = small_batch();
    assert_ok(rollouts_print(&b, &text, &e), &e);
    json_t *o = line_of(&text, 0);
    assert_string_equal(json_text_or(o, "id", ""), "q1");
    assert_string_equal(json_text_or(o, "question", ""), "What is 2+2?");
    assert_string_equal(json_text_or(o, "answer", ""), "4");
    /* the text that the model read */
    assert_string_equal(json_text_or(o, "prompt", ""), "<user>What is 2+2?<assistant>");
    assert_string_equal(json_text_or(o, "prompt_uid", ""), "8000000000000001");
    assert_string_equal(json_text_or(o, "verdict", ""), "correct");
    assert_string_equal(json_text_or(o, "reason", ""), "last number");
    assert_int_equal(json_int_or(o, "length", -1), 3);
    assert_string_equal(json_text_or(o, "finish", ""), "stop");
    assert_int_equal(json_int_or(o, "cluster", -9), 3);
    assert_null(json_object_get(o, "confidence"));
    json_decref(o);
    o = line_of(&text, 1);
    assert_int_equal(json_int_or(o, "group", -1), 0);
    assert_int_equal(json_int_or(o, "sample", -1), 1);
    assert_null(json_object_get(o, "prompt")); /* only in the group's first line */
    assert_string_equal(json_text_or(o, "answer", ""), "4");
    assert_string_equal(json_text_or(o, "completion", ""), "cut \xEF\xBF\xBD\xEF\xBF\xBD");
    assert_true(json_double_or(o, "advantage", 0) == b.advantage[1]);
    assert_string_equal(json_text_or(o, "finish", ""), "length");
    json_decref(o);
    o = line_of(&text, 2);
    assert_string_equal(json_text_or(o, "id", ""), "q\"2");
    assert_string_equal(json_text_or(o, "answer", "missing"), ""); /* its row has none */
    assert_int_equal(json_string_length(json_object_get(o, "completion")), 3);
    assert_true(json_double_or(o, "reward", 0) == 1.0 / 3);
    assert_true(json_number_value(json_array_get(json_object_get(o, "components"), 0)) == 1.0 / 3);
    assert_true(json_is_null(json_object_get(o, "advantage")));
    assert_int_equal(json_int_or(o, "occurrence", -1), 1);
    json_decref(o);
    assert_int_equal(strchr(strchr(strchr(text.data, '\n') + 1, '\n') + 1, '\n') + 1 - text.data, text.size);
    str_free(&text);
}

static void rollouts_are_cut_on_resume(void **state)
{
    (void)state;
    struct err e = {0};
    const struct batch b = small_batch();
    const char *run = run_dir("a");
    char path[FS_PATH];
    assert_ok(fs_mkdirs(run, &e), &e);
    assert_ok(rollouts_cut(run, 0, &e), &e); /* no folder yet */
    for (int64_t s = 1; s <= 12; s++) assert_ok(rollouts_write(run, s, &b, NULL, &e), &e);
    assert_ok(rollouts_sync(run, 1, 20, &e), &e);
    assert_ok(rollouts_path(run, 11, path, &e), &e);
    assert_non_null(strstr(path, "rollouts/step-000011.jsonl"));
    assert_ok(rollouts_cut(run, 9, &e), &e);
    for (int64_t s = 1; s <= 12; s++) {
        assert_ok(rollouts_path(run, s, path, &e), &e);
        assert_int_equal(fs_exists(path), s <= 9);
    }
}

/* ---------------------------------------------------------------- the folder of a run */

static tare_status open_run(const char *run, bool resume, int64_t step, struct observe **o, struct err *e)
{
    struct config c;
    char dir[400];
    snprintf(dir, sizeof dir, "run.dir=%s", run);
    const char *const overrides[] = {dir, "train.steps=20"};
    TRY(config_load(&c, NULL, overrides, 2, e));
    const struct manifest_plugin plugin = {"estimator", "grpo", "1.0.0", "/x/grpo.so", 0xABCDEF, NULL};
    const struct manifest m = {
        .kernels = "avx2", .threads = 2, .ranks = 1, .plugins = &plugin, .n_plugins = 1, .data_hash = 5, .data_rows = 7};
    const tare_status status = observe_open(&c, &m, resume, step, o, e);
    config_free(&c);
    return status;
}

static void one_process_a_run(void **state)
{
    (void)state;
    struct err e = {0};
    int fd, other;
    const char *run = run_dir("b");
    assert_ok(run_lock_check(run, false, &e), &e);
    assert_int_equal(run_lock_check(run, true, &e), TARE_E_NOT_FOUND);
    assert_ok(run_lock_take(run, &fd, &e), &e);
    assert_int_equal(run_lock_take(run, &other, &e), TARE_E_STATE);
    char pid[40];
    snprintf(pid, sizeof pid, "this process writes this run already");
    assert_non_null(strstr(e.message, pid));
    run_lock_release(fd);
    /* A lock excludes another process, and is released when its holder ends or is killed. */
    int ready[2], how;
    char byte;
    assert_int_equal(pipe(ready), 0);
    const pid_t child = fork();
    if (!child) {
        int mine;
        const tare_status taken = run_lock_take(run, &mine, &e);
        if (write(ready[1], taken ? "n" : "y", 1) == 1) pause();
        _exit(1);
    }
    assert_int_equal(read(ready[0], &byte, 1), 1);
    assert_int_equal(byte, 'y');
    assert_int_equal(run_lock_take(run, &fd, &e), TARE_E_STATE);
    snprintf(pid, sizeof pid, "another process (%ld)", (long)child);
    assert_non_null(strstr(e.message, pid));
    assert_int_equal(kill(child, SIGKILL), 0);
    assert_int_equal(waitpid(child, &how, 0), child);
    assert_true(WIFSIGNALED(how));
    assert_ok(run_lock_take(run, &fd, &e), &e);
    run_lock_release(fd);
    close(ready[0]);
    close(ready[1]);
}

static void a_run_from_start_to_resume(void **state)
{
    (void)state;
    struct err e = {0};
    struct observe *o, *second;
    const struct batch b = small_batch();
    const char *run = run_dir("c");
    char path[FS_PATH];
    assert_ok(open_run(run, false, -1, &o, &e), &e);
    assert_int_equal(open_run(run, true, 0, &second, &e), TARE_E_STATE);
    for (int64_t s = 1; s <= 5; s++) {
        observe_set(o, "reward/mean", (double)s);
        assert_ok(observe_step(o, s, &b, &e), &e);
    }
    assert_ok(observe_sync(o, &e), &e);
    assert_ok(observe_close(o, "interrupted", &e), &e);
    assert_int_equal(open_run(run, false, -1, &o, &e), TARE_E_STATE);
    assert_non_null(strstr(e.message, "without a checkpoint"));
    assert_ok(fs_join(path, run, "checkpoints", &e), &e);
    assert_ok(fs_mkdirs(path, &e), &e);
    assert_int_equal(open_run(run, false, -1, &o, &e), TARE_E_STATE);
    assert_non_null(strstr(e.message, "--resume continues it"));
    assert_ok(open_run(run, true, 3, &o, &e), &e);
    assert_ok(rollouts_path(run, 4, path, &e), &e);
    assert_false(fs_exists(path));
    assert_ok(observe_step(o, 4, &b, &e), &e);
    assert_true(fs_exists(path));
    assert_ok(observe_close(o, "done", &e), &e);

    json_t *j;
    snprintf(path, sizeof path, "%s/manifest.json", run);
    assert_ok(json_read_file(path, &j, &e), &e);
    assert_string_equal(json_text_or(j, "kernels", ""), "avx2");
    assert_int_equal(json_array_size(json_object_get(j, "resumed")), 1);
    assert_int_equal(json_int_or(json_array_get(json_object_get(j, "resumed"), 0), "step", -1), 3);
    assert_string_equal(json_text_or(json_array_get(json_object_get(j, "plugins"), 0), "xxh3", ""), "0000000000abcdef");
    assert_true(json_int_or(json_object_get(j, "machine"), "memory", 0) > 0);
    assert_int_equal(strlen(json_text_or(j, "started", "")), 20);
    json_decref(j);

    struct config c;
    snprintf(path, sizeof path, "%s/config.ini", run);
    assert_ok(config_load(&c, path, NULL, 0, &e), &e);
    assert_int_equal(c.train.steps, 20);
    assert_string_equal(c.run.dir, run);
    config_free(&c);
}

/* A file that cannot grow stands for a full disk: the error of the step names the file, and the run
 * continues from the last complete state. */
static void without_space(void **state)
{
    (void)state;
    const char *run = run_dir("d");
    const pid_t child = fork();
    if (!child) {
        struct err e = {0};
        struct observe *o;
        const struct batch b = small_batch();
        signal(SIGXFSZ, SIG_IGN);
        if (open_run(run, false, -1, &o, &e)) _exit(1);
        const struct rlimit limit = {100000, 100000};
        setrlimit(RLIMIT_FSIZE, &limit);
        for (int64_t s = 1; s < 10000; s++) {
            char name[40];
            for (int i = 0; i < 50; i++) {
                snprintf(name, sizeof name, "m/%d", i);
                observe_set(o, name, (double)(s * i) / 7);
            }
            if (observe_step(o, s, s == 1 ? &b : NULL, &e))
                _exit(e.code == TARE_E_IO && strstr(e.message, folder) && s > 5 ? 0 : 2);
        }
        _exit(3);
    }
    int how;
    waitpid(child, &how, 0);
    assert_true(WIFEXITED(how));
    assert_int_equal(WEXITSTATUS(how), 0);
    struct err e = {0};
    struct observe *o;
    assert_ok(open_run(run, true, 5, &o, &e), &e);
    assert_ok(observe_step(o, 6, NULL, &e), &e);
    assert_ok(observe_close(o, "done", &e), &e);
}

static void progress_fits_one_line(void **state)
{
    (void)state;
    struct err e = {0};
    char text[300];
    const struct progress_values v = {
        .reward = 0.3125, .length = 120.25, .entropy = 0.5, .signal = 0.875, .advantage = 0.5, .tokens_per_second = 12345.6};
    const struct progress_values none = {NAN, NAN, NAN, NAN, NAN, NAN};
    const struct progress_place late = {"step", 12, 500, 3725};
    progress_print(text, sizeof text, late, &v);
    assert_string_equal(text,
                        "step 12/500  reward 0.312  length 120.2  entropy 0.500  signal 0.88/0.50  tok/s 12346  left 1:02:05");
    progress_print(text, sizeof text, (struct progress_place){"step", 1, 2, NAN}, &none);
    assert_string_equal(text, "step 1/2");
    for (int64_t n = 10; n < 100; n++) { /* never past the end */
        memset(text, '#', sizeof text);
        progress_print(text, n, late, &v);
        assert_int_equal(text[n], '#');
        assert_true(strlen(text) < (size_t)n);
    }
    struct progress *p;
    assert_ok(progress_new(PROGRESS_BAR, "step", 0, 10, &p, &e), &e);
    progress_step(p, 1, &v);
    progress_free(p);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(rollouts_hold_the_step), cmocka_unit_test(rollouts_are_cut_on_resume),
        cmocka_unit_test(one_process_a_run),      cmocka_unit_test(a_run_from_start_to_resume),
        cmocka_unit_test(without_space),          cmocka_unit_test(progress_fits_one_line),
    };
    return cmocka_run_group_tests(tests, setup, teardown);
}
