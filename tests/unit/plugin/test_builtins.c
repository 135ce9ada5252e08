/* Runs tare plugin check on every plugin of this build: no test fails, and none is skipped because
 * a parameter is missing. */
#include "check.h"
#include "folder.h"

#include "base/fs.h"
#include "plugin/check/check.h"

#include <dirent.h>
#include <stdbool.h>
#include <string.h>

static struct err e;

struct tally {
    const char *name;
    int64_t passed, failed, skipped;
};

static void take(void *ctx, const struct check_result *r)
{
    struct tally *t = ctx;
    t->passed += r->outcome == CHECK_PASS;
    t->failed += r->outcome == CHECK_FAIL;
    t->skipped += r->outcome == CHECK_SKIP && strstr(r->message, "KEY=VALUE");
    if (r->outcome == CHECK_FAIL) printf("  %s: %s: %s\n", t->name, r->name, r->message);
}

static void write_file(const char *path, const char *text)
{
    FILE *f = fopen(path, "w");
    assert_non_null(f);
    fputs(text, f);
    assert_int_equal(fclose(f), 0);
}

/* For the program itself: two clusters of two questions. */
static void make_codebook(const char *where)
{
    char line[FS_PATH + 400];
    snprintf(line, sizeof line,
             "printf '{\"question\":\"one\"}\\n{\"question\":\"two and three\"}\\n' | "
             "\"${TARE:-tare}\" cluster train hashed dim=16 --clusters 2 -o '%s/codebook.safetensors' > /dev/null 2>&1",
             where);
    assert_int_equal(system(line), 0);
}

/* Requirements of some plugins. %s is the folder of the files made below, or that of the reference
 * data; the tests left out start hundreds of interpreters or read a model hundreds of times.
 * Plugins that need something a machine may lack have a separate case. */
static const struct need {
    const char *name, *first, *second, *only[8];
    bool alone;
} NEEDS[] = {
    {.name = "command", .first = "command=sh '%s/judge.sh'", .second = "start=0.5"},
    {.name = "python",
     .first = "file=%s/judge.py",
     .second = "start=20",
     .only = {"exports", "loads", "process", "texts"},
     .alone = true},
    {.name = "regex", .first = "pattern=a|b"},
    {.name = "json", .first = "compare=none"},
    /* verify/test_verify_ifeval tests its verdicts */
    {.name = "ifeval", .only = {"exports", "loads", "process"}},
    /* e2e/verifier_code tests its verdicts */
    {.name = "code", .only = {"exports", "loads", "process"}},
    {.name = "kmeans", .first = "path=%s/codebook.safetensors"},
    {.name = "minilm", .first = "model=%s", .only = {"exports", "loads", "process", "encode"}, .alone = true},
};

static const struct need *need_of(const char *name)
{
    static const struct need none = {0};
    for (size_t i = 0; i < sizeof NEEDS / sizeof *NEEDS; i++)
        if (!strcmp(NEEDS[i].name, name)) return &NEEDS[i];
    return &none;
}

static int64_t check_one(const char *path, const char *name, const char *where)
{
    const struct need *need = need_of(name);
    char first[FS_PATH + 40];
    struct tally t = {.name = name};
    int64_t failed;
    if (need->first) snprintf(first, sizeof first, need->first, where);
    const char *assignments[2] = {first, need->second};
    struct check_options o = {.path = path, .seed = 3, .limit = 120, .assignments = assignments};
    o.n_assignments = !!need->first + !!need->second;
    for (int i = 0; i == 0 || need->only[i]; i++) {
        o.only = need->only[i];
        assert_ok(check_run(&o, take, &t, &failed, &e), &e);
    }
    printf("%-24s %lld passed, %lld failed\n", name, (long long)t.passed, (long long)t.failed);
    if (t.skipped) printf("  %s: %lld tests still lack a parameter\n", name, (long long)t.skipped);
    return t.failed + t.skipped + (t.passed < 3);
}

static const char *folder;

static const char *in_folder(const char *name)
{
    static char path[FS_PATH];
    assert_ok(fs_join(path, folder, name, &e), &e);
    return path;
}

static int make_folder(void **state)
{
    (void)state;
    if (!(folder = make_test_folder("tare-builtins"))) return 1;
    write_file(in_folder("judge.sh"), "while read -r line; do echo '{\"reward\":0}'; done\n");
    write_file(in_folder("judge.py"), "def reward(prompts, completions, answers, **row):\n    return [0.0] * len(completions)\n");
    make_codebook(folder);
    return 0;
}

static int remove_folder(void **state)
{
    (void)state;
    return (int)fs_remove_tree(folder, &e);
}

static void every_built_in_plugin(void **state)
{
    static const char *const kinds[] = {"estimators", "verifiers", "clusterers", "objectives", "curricula"};
    const char *root = getenv("TARE_PLUGIN_PATH");
    int64_t bad = 0, found = 0;
    (void)state;
    assert_non_null(root);
    for (int k = 0; k < 5; k++) {
        char path[FS_PATH], file[FS_PATH];
        assert_ok(fs_join(path, root, kinds[k], &e), &e);
        DIR *d = opendir(path);
        assert_non_null(d);
        for (const struct dirent *f; (f = readdir(d));) {
            char name[128];
            const char *dot = strrchr(f->d_name, '.');
            if (!dot || strcmp(dot, ".so") || strlen(f->d_name) >= sizeof name) continue;
            snprintf(name, sizeof name, "%.*s", (int)(dot - f->d_name), f->d_name);
            assert_ok(fs_join(file, path, f->d_name, &e), &e);
            found++;
            if (!need_of(name)->alone) bad += check_one(file, name, folder);
        }
        closedir(d);
    }
    assert_true(found > 20);
    assert_int_equal(bad, 0);
}

static void check_alone(const char *file, const char *name, const char *needed)
{
    char path[FS_PATH];
    assert_ok(fs_join(path, getenv("TARE_PLUGIN_PATH"), file, &e), &e);
    assert_int_equal(check_one(path, name, needed), 0);
}

static void the_verifier_python(void **state)
{
    (void)state;
    if (system("command -v python3 > /dev/null 2>&1")) SKIP("python3 is not installed");
    check_alone("verifiers/python.so", "python", folder);
}

static void the_encoder_minilm(void **state)
{
    (void)state;
    char model[FS_PATH];
    fs_dirname(model, shared_or_skip("models/minilm/config.json"));
    check_alone("clusterers/minilm.so", "minilm", model);
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(every_built_in_plugin), cmocka_unit_test(the_verifier_python),
                                       cmocka_unit_test(the_encoder_minilm)};
    return cmocka_run_group_tests(tests, make_folder, remove_folder);
}
