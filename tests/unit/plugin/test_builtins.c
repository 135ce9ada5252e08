/* tare plugin check on every plugin that this build made: none fails, and none skips a test for want of a parameter. */
#include "check.h"

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

/* With the program itself: two clusters of two questions. */
static void make_codebook(const char *folder)
{
    char line[800];
    snprintf(line, sizeof line,
             "printf '{\"question\":\"one\"}\\n{\"question\":\"two and three\"}\\n' | "
             "\"${TARE:-tare}\" codebook hashed dim=16 --clusters 2 -o %s/codebook.safetensors > %s/log 2>&1 && rm %s/log",
             folder, folder, folder);
    assert_int_equal(system(line), 0);
}

/* What some plugins need: %s is the folder of the files made below, or SHARED; the tests left out start hundreds of interpreters or read a
 * model hundreds of times. */
static const struct need {
    const char *name, *first, *second, *only[8];
    bool shared;
} NEEDS[] = {
    {.name = "command", .first = "command=sh %s/judge.sh", .second = "start=0.5"},
    {.name = "python", .first = "file=%s/judge.py", .second = "start=20", .only = {"exports", "loads", "process", "texts"}},
    {.name = "kmeans", .first = "path=%s/codebook.safetensors"},
    {.name = "minilm", .first = "model=%s/models/minilm", .only = {"exports", "loads", "process", "encode"}, .shared = true},
};

static int64_t check_one(const char *path, const char *name, const char *folder)
{
    static const struct need none = {0};
    const struct need *need = &none;
    const char *shared = getenv("SHARED");
    char first[600];
    struct tally t = {.name = name};
    int64_t failed;
    for (size_t i = 0; i < sizeof NEEDS / sizeof *NEEDS; i++)
        if (!strcmp(NEEDS[i].name, name)) need = &NEEDS[i];
    if (need->first) snprintf(first, sizeof first, need->first, need->shared ? shared ? shared : "../shared" : folder);
    const char *assignments[2] = {first, need->second};
    const char *file = need->first ? strchr(first, '=') + 1 : NULL;
    struct check_options o = {.path = path, .seed = 3, .limit = 120, .assignments = assignments};
    if (need->shared && access(file, R_OK))
        printf("  %s: SKIP what needs %s, which is not there\n", name, file);
    else
        o.n_assignments = !!need->first + !!need->second;
    for (int i = 0; i == 0 || need->only[i]; i++) {
        o.only = need->only[i];
        assert_ok(check_run(&o, take, &t, &failed, &e), &e);
    }
    printf("%-24s %lld passed, %lld failed\n", name, (long long)t.passed, (long long)t.failed);
    if (t.skipped && o.n_assignments) printf("  %s: %lld tests still lack a parameter\n", name, (long long)t.skipped);
    return t.failed + (o.n_assignments ? t.skipped : 0) + (t.passed < 3);
}

static void every_built_in_plugin(void **state)
{
    static const char *const kinds[] = {"estimators", "verifiers", "clusterers"};
    const char *root = getenv("TARE_PLUGIN_PATH");
    char folder[] = "/tmp/tare-builtins-XXXXXX", judge[64];
    int64_t bad = 0, found = 0;
    (void)state;
    assert_non_null(root);
    assert_non_null(mkdtemp(folder));
    snprintf(judge, sizeof judge, "%s/judge.sh", folder);
    write_file(judge, "while read -r line; do echo '{\"reward\":0}'; done\n");
    snprintf(judge, sizeof judge, "%s/judge.py", folder);
    write_file(judge, "def reward(prompts, completions, answers, **row):\n    return [0.0] * len(completions)\n");
    make_codebook(folder);
    for (int k = 0; k < 3; k++) {
        char path[4096];
        snprintf(path, sizeof path, "%s/%s", root, kinds[k]);
        DIR *d = opendir(path);
        assert_non_null(d);
        for (const struct dirent *f; (f = readdir(d));) {
            char name[128];
            const char *dot = strrchr(f->d_name, '.');
            if (!dot || strcmp(dot, ".so") || strlen(f->d_name) >= sizeof name) continue;
            snprintf(name, sizeof name, "%.*s", (int)(dot - f->d_name), f->d_name);
            snprintf(path, sizeof path, "%s/%s/%s", root, kinds[k], f->d_name);
            bad += check_one(path, name, folder);
            found++;
        }
        closedir(d);
    }
    unlink(judge);
    snprintf(judge, sizeof judge, "%s/judge.sh", folder);
    unlink(judge);
    snprintf(judge, sizeof judge, "%s/codebook.safetensors", folder);
    unlink(judge);
    rmdir(folder);
    assert_true(found > 20);
    assert_int_equal(bad, 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(every_built_in_plugin)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
