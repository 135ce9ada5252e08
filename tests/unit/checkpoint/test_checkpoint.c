#include "check.h"
#include "folder.h"

#include "base/log.h"
#include "checkpoint/checkpoint.h"
#include "checkpoint/state.h"

#include <dirent.h>
#include <signal.h>
#include <string.h>
#include <sys/mount.h>
#include <sys/resource.h>
#include <sys/wait.h>

static const char *folder;

static int setup(void **state)
{
    (void)state;
    log_set_level(LOG_NONE);
    return (folder = make_test_folder("tare-checkpoint")) == NULL;
}

static int teardown(void **state)
{
    (void)state;
    return (int)fs_remove_tree(folder, NULL);
}

static const char *run_dir(const char *name)
{
    static char path[300];
    snprintf(path, sizeof path, "%s/%s", folder, name);
    return path;
}

/* Writes three files, one in a subfolder, whose contents follow from the step. */
static tare_status fill(const struct checkpoint *k, struct err *e)
{
    char path[FS_PATH], text[100];
    struct state_writer *w;
    const int n = snprintf(text, sizeof text, "step %lld\n", (long long)k->step);
    TRY(fs_join(path, k->folder, "config.json", e));
    TRY(fs_write_atomic(path, text, n, e));
    TRY(fs_join(path, k->folder, "sub", e));
    TRY(fs_mkdirs(path, e));
    TRY(fs_join(path, k->folder, "sub/empty", e));
    TRY(fs_write_atomic(path, "", 0, e));
    TRY(fs_join(path, k->folder, "sub/train.state", e));
    TRY(state_create(path, &w, e));
    int64_t block[2048];
    for (int i = 0; i < 2048; i++) block[i] = k->step * 10000 + i;
    tare_status status = state_write_int(w, "step", k->step, e);
    if (!status) status = state_write(w, "block", block, sizeof block, e);
    if (status) {
        state_discard(w);
        return status;
    }
    return state_finish(w, e);
}

static tare_status save(const char *run, int64_t step, struct err *e)
{
    struct checkpoint k;
    TRY(checkpoint_begin(run, step, &k, e));
    const tare_status status = fill(&k, e);
    if (status) {
        checkpoint_abort(&k);
        return status;
    }
    return checkpoint_commit(&k, e);
}

static int64_t latest(const char *run, char *path)
{
    struct err e = {0};
    int64_t step;
    assert_ok(checkpoint_latest(run, path, &step, &e), &e);
    if (step < 0) {
        assert_string_equal(path, "");
        return step;
    }
    char file[FS_PATH];
    struct state_reader *r;
    int64_t inside;
    assert_ok(fs_join(file, path, "sub/train.state", &e), &e);
    assert_ok(state_open(file, &r, &e), &e);
    assert_ok(state_read_int(r, "step", &inside, &e), &e);
    assert_int_equal(inside, step);
    state_close(r);
    return step;
}

/* Counts the names in checkpoints/ that are not step-NNNNNN. */
static int n_leftovers(const char *run)
{
    char path[FS_PATH];
    snprintf(path, sizeof path, "%s/checkpoints", run);
    DIR *d = opendir(path);
    int n = 0;
    for (struct dirent *entry; d && (entry = readdir(d));) n += entry->d_name[0] != '.' && strlen(entry->d_name) != 11;
    if (d) closedir(d);
    return n;
}

static void saved_is_found(void **state)
{
    (void)state;
    struct err e = {0};
    char path[FS_PATH], expected[FS_PATH];
    const char *run = run_dir("a");
    assert_int_equal(latest(run, path), -1);
    assert_ok(save(run, 9, &e), &e);
    assert_ok(save(run, 10, &e), &e);
    assert_int_equal(latest(run, path), 10);
    snprintf(expected, sizeof expected, "%s/checkpoints/step-000010", run);
    assert_string_equal(path, expected);
    assert_int_equal(n_leftovers(run), 0);
    assert_ok(save(run, 10, &e), &e); /* again, over the existing one */
    assert_int_equal(latest(run, path), 10);
    assert_int_equal(n_leftovers(run), 0);
}

static void damage(const char *run, int64_t step, const char *file, int what)
{
    struct err e = {0};
    char path[FS_PATH];
    struct str text = {0};
    snprintf(path, sizeof path, "%s/checkpoints/step-%06lld/%s", run, (long long)step, file);
    if (what == 0) {
        assert_int_equal(unlink(path), 0);
        return;
    }
    assert_ok(fs_read_all(path, &text, &e), &e);
    if (what == 1) text.data[text.size / 2] ^= 1;
    assert_ok(fs_write_atomic(path, text.data, what == 2 ? text.size - 1 : text.size, &e), &e);
    str_free(&text);
}

static void damaged_is_skipped(void **state)
{
    (void)state;
    static const char *const FILES[] = {"config.json", "sub/train.state", "sub/empty", "complete.json"};
    struct err e = {0};
    char path[FS_PATH];
    const char *run = run_dir("b");
    for (int f = 0; f < 4; f++) {
        for (int what = 0; what < (f == 2 ? 1 : 3); what++) {
            assert_ok(save(run, 5, &e), &e);
            assert_ok(save(run, 7, &e), &e);
            assert_int_equal(latest(run, path), 7);
            damage(run, 7, FILES[f], what);
            if (f == 3 && what == 2) continue; /* only the newline is missing */
            if (f == 3 && what == 1) {
                /* a changed list is invalid JSON, or names another size, hash or file */
                assert_int_equal(latest(run, path), 5);
                continue;
            }
            assert_int_equal(latest(run, path), 5);
            damage(run, 5, "config.json", 0);
            assert_int_equal(latest(run, path), -1);
        }
    }
    assert_ok(save(run, 5, &e), &e);
    assert_ok(save(run, 7, &e), &e);
    damage(run, 7, "config.json", 1);
    assert_ok(checkpoint_clean(run, 5, &e), &e);
    snprintf(path, sizeof path, "%s/checkpoints/step-000007", run);
    assert_false(fs_exists(path));
    assert_int_equal(latest(run, path), 5);
}

static void prune_keeps_the_newest(void **state)
{
    (void)state;
    struct err e = {0};
    char path[FS_PATH];
    const char *run = run_dir("c");
    for (int64_t s = 1; s <= 5; s++) assert_ok(save(run, s, &e), &e);
    damage(run, 2, "complete.json", 0);
    assert_ok(checkpoint_prune(run, 0, -1, &e), &e);
    for (int64_t s = 1; s <= 5; s++) {
        assert_ok(checkpoint_path(run, s, path, &e), &e);
        assert_true(fs_exists(path));
    }
    /* not counted, and older than the newest, so it is removed */
    damage(run, 4, "complete.json", 0);
    assert_ok(checkpoint_prune(run, 2, -1, &e), &e);
    for (int64_t s = 1; s <= 5; s++) {
        assert_ok(checkpoint_path(run, s, path, &e), &e);
        assert_int_equal(fs_exists(path), s == 3 || s == 5);
    }
    assert_int_equal(n_leftovers(run), 0);
}

/* A child saves, prunes and saves in a loop, and is killed some time after it has reported a
 * commit. The checkpoint found afterwards is always complete, and never older than the reported
 * one. */
static void killed_at_any_moment(void **state)
{
    (void)state;
    const char *run = run_dir("d");
    int64_t before = -1;
    uint64_t x = 88172645463325252u;
    for (int round = 0; round < 15; round++) {
        int pipes[2];
        assert_int_equal(pipe(pipes), 0);
        const pid_t child = fork();
        if (!child) {
            struct err e = {0};
            for (int64_t s = before + 1;; s++) {
                if (save(run, s, &e) || write(pipes[1], &s, sizeof s) != sizeof s || checkpoint_prune(run, 2, -1, &e)) _exit(1);
            }
        }
        close(pipes[1]);
        int64_t reported, s;
        assert_int_equal(read(pipes[0], &reported, sizeof reported), sizeof reported);
        x ^= x << 13, x ^= x >> 7, x ^= x << 17;
        usleep((useconds_t)(x % 40000));
        kill(child, SIGKILL);
        int how;
        waitpid(child, &how, 0);
        assert_true(WIFSIGNALED(how)); /* the child reported no error */
        while (read(pipes[0], &s, sizeof s) == sizeof s) reported = s;
        close(pipes[0]);
        char path[FS_PATH];
        const int64_t found = latest(run, path);
        assert_true(found >= reported && found <= reported + 1);
        struct err e = {0};
        assert_ok(checkpoint_clean(run, found, &e), &e);
        assert_int_equal(n_leftovers(run), 0);
        before = found;
    }
    assert_true(before >= 14);
}

/* Saves while files cannot grow beyond `most` bytes, from the start or from the commit on. */
static void save_with_limit(const char *run, rlim_t most, bool late)
{
    const pid_t child = fork();
    if (!child) {
        struct err e = {0};
        struct checkpoint k;
        const struct rlimit limit = {most, most};
        signal(SIGXFSZ, SIG_IGN);
        if (!late) setrlimit(RLIMIT_FSIZE, &limit);
        tare_status status = checkpoint_begin(run, 20, &k, &e);
        if (!status) {
            status = fill(&k, &e);
            setrlimit(RLIMIT_FSIZE, &limit);
            if (status) checkpoint_abort(&k);
            if (!status) status = checkpoint_commit(&k, &e);
        }
        _exit(status == TARE_E_IO && strstr(e.message, "File too large") ? 0 : 1);
    }
    int how;
    waitpid(child, &how, 0);
    assert_true(WIFEXITED(how) && WEXITSTATUS(how) == 0);
}

static void without_space(void **state)
{
    (void)state;
    struct err e = {0};
    char path[FS_PATH];
    const char *run = run_dir("e");
    assert_ok(save(run, 10, &e), &e);
    save_with_limit(run, 4096, false); /* while the state is written */
    assert_int_equal(latest(run, path), 10);
    assert_int_equal(n_leftovers(run), 0);
    save_with_limit(run, 20, true); /* while complete.json is written */
    assert_int_equal(latest(run, path), 10);
    assert_int_equal(n_leftovers(run), 0);
}

static void full_disk(void **state)
{
    (void)state;
    struct err e = {0};
    char path[FS_PATH];
    const char *run = run_dir("f");
    assert_ok(fs_mkdirs(run, &e), &e);
    if (mount("none", run, "tmpfs", 0, "size=64k")) {
        SKIP("a small file system cannot be mounted here (needs root)");
    }
    tare_status status = TARE_OK;
    int64_t s = 0;
    while (!status && s < 50) status = save(run, ++s, &e);
    const int64_t found = latest(run, path);
    const int leftovers = n_leftovers(run);
    umount(run);
    assert_int_equal(status, TARE_E_IO);
    assert_non_null(strstr(e.message, "No space left"));
    assert_int_equal(found, s - 1);
    assert_int_equal(leftovers, 0);
    assert_true(s > 1);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(saved_is_found),       cmocka_unit_test(damaged_is_skipped), cmocka_unit_test(prune_keeps_the_newest),
        cmocka_unit_test(killed_at_any_moment), cmocka_unit_test(without_space),      cmocka_unit_test(full_disk),
    };
    return cmocka_run_group_tests(tests, setup, teardown);
}
