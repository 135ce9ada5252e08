#include "check.h"
#include "folder.h"

#include "base/fs.h"
#include "base/log.h"
#include "observe/named_files.h"
#include "observe/python_imports.h"

#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

static const char *folder;

static int setup(void **state)
{
    (void)state;
    log_set_level(LOG_NONE);
    return (folder = make_test_folder("tare-named-files")) == NULL;
}

static int teardown(void **state)
{
    (void)state;
    return (int)fs_remove_tree(folder, NULL);
}

static const char *path_of(const char *name)
{
    static char path[2][FS_PATH];
    static int k;
    snprintf(path[k ^= 1], FS_PATH, "%s/%s", folder, name);
    return path[k];
}

static void write_file(const char *name, const char *text)
{
    struct err e = {0};
    char parent[FS_PATH];
    fs_dirname(parent, path_of(name));
    assert_ok(fs_mkdirs(parent, &e), &e);
    assert_ok(fs_write_atomic(path_of(name), text, (int64_t)strlen(text), &e), &e);
}

/* ---------------------------------------------------------------- imports */

/* Compares the files that main.py imports with this text, in order and separated by blanks. */
static void check_imports(const char *text, const char *expected)
{
    struct err e = {0};
    char found[1000] = "";
    json_t *names = json_array(), *one;
    size_t i;
    write_file("p/main.py", text);
    assert_ok(python_imports(path_of("p"), "main.py", names, &e), &e);
    json_array_foreach(names, i, one)
    {
        if (i) snprintf(found + strlen(found), sizeof found - strlen(found), "%s%s", i > 1 ? " " : "", json_string_value(one));
    }
    assert_string_equal(found, expected);
    json_decref(names);
}

static void imports_are_found(void **state)
{
    (void)state;
    static const char *const EMPTY[] = {"p/a.py",          "p/b.py",
                                        "p/c.py",          "p/pkg/__init__.py",
                                        "p/pkg/x.py",      "p/pkg/y.py",
                                        "p/ns/z.py",       "p/pkg/deep/__init__.py",
                                        "p/pkg/deep/d.py", "p/both/__init__.py",
                                        "p/both.py",       "outside.py"};
    for (size_t i = 0; i < sizeof EMPTY / sizeof *EMPTY; i++) write_file(EMPTY[i], "");
    check_imports("import os, sys\nimport numpy as np\nx = 1\n", "");
    check_imports("import a\nimport a\nimport main\n", "a.py");
    check_imports("import os, a as first, b\nfrom c import *\n", "a.py b.py c.py");
    check_imports("def f():\n\timport a\ntry: import b\nexcept ImportError: pass\nx = 1; from c import d", "a.py b.py c.py");
    check_imports("from a import (one, # , b\n  two as t,\n)\nimport b.c\n", "a.py b.py");
    check_imports("import \\\n  a, \\\n  b\n", "a.py b.py");
    check_imports("import pkg.x\n", "pkg/__init__.py pkg/x.py");
    check_imports("from pkg import (\n    x,\n    nothing as n,\n    y)\n", "pkg/__init__.py pkg/x.py pkg/y.py");
    check_imports("from pkg.deep import d\n", "pkg/__init__.py pkg/deep/__init__.py pkg/deep/d.py");
    check_imports("from ns.z import f\n", "ns/z.py");
    check_imports("import both\n", "both/__init__.py"); /* Python prefers the package */
    check_imports("from . import a\nfrom .b import f\n", "a.py b.py");
    check_imports("from .. import outside\nfrom ..outside import f\nimport outside\nfrom ... import a\n", "");
    check_imports("# import a\nimportant = 1\nimports.a = 1\nfrom_a = b\nx = 'a'\n", "");
    check_imports("\xEF\xBB\xBFimport a\r\nimport b\r\n", "a.py b.py");
    check_imports("import\nfrom\nfrom a\nfrom a import\nfrom a import (\n", "a.py");
}

static void imports_of_imports(void **state)
{
    (void)state;
    static const char *const EMPTY[] = {"p/c.py", "p/pkg/x.py", "p/pkg/y.py", "p/pkg/deep/__init__.py"};
    for (size_t i = 0; i < sizeof EMPTY / sizeof *EMPTY; i++) write_file(EMPTY[i], "");
    write_file("p/a.py", "import main, b\n");
    write_file("p/b.py", "from pkg.deep import d\n");
    write_file("p/pkg/__init__.py", "from . import y\n");
    write_file("p/pkg/deep/d.py", "from ..x import f\nfrom .. import a\nfrom ...c import g\n");
    check_imports("import a\n", "a.py b.py pkg/__init__.py pkg/deep/__init__.py pkg/deep/d.py pkg/y.py pkg/x.py c.py");
}

/* ---------------------------------------------------------------- checksums */

static tare_status add_line(void *ctx, const struct model_change *c, struct err *e)
{
    return str_addf(ctx, e, "%s: %s %s\n", c->key, c->file, c->what);
}

static json_t *take(const char *key, const char *name)
{
    struct err e = {0};
    json_t *list = json_array();
    assert_ok(named_files_add(list, key, path_of(name), &e), &e);
    assert_ok(named_files_add(list, key, path_of(name), &e), &e); /* once */
    return list;
}

static void check_changes(const json_t *then, const json_t *now, const char *expected)
{
    struct err e = {0};
    struct str text = {0};
    assert_ok(named_files_compare(then, now, add_line, &text, &e), &e);
    assert_string_equal(text.size ? text.data : "", expected);
    str_free(&text);
}

static void changed_files_are_named(void **state)
{
    (void)state;
    write_file("r/reward.py", "import helper\nimport unused\n");
    write_file("r/helper.py", "");
    json_t *then = take("verifier.python.file", "r/reward.py");
    assert_int_equal(json_array_size(then), 1);
    assert_int_equal(json_object_size(json_object_get(json_array_get(then, 0), "files")), 2);
    json_t *now = take("verifier.python.file", "r/reward.py");
    check_changes(then, now, "");
    json_decref(now);
    write_file("r/helper.py", "x = 1\n");
    write_file("r/unused.py", "");
    now = take("verifier.python.file", "r/reward.py");
    check_changes(then, now,
                  "verifier.python.file: helper.py differs from the file that the run was trained with\n"
                  "verifier.python.file: unused.py was not read when the run was trained\n");
    check_changes(now, then,
                  "verifier.python.file: helper.py differs from the file that the run was trained with\n"
                  "verifier.python.file: unused.py was removed or is no longer imported\n");
    json_decref(then);
    /* a moved folder has the same files; another key or name is not compared */
    assert_int_equal(rename(path_of("r"), path_of("moved")), 0);
    then = take("verifier.python.file", "moved/reward.py");
    check_changes(now, then, "");
    json_decref(then);
    then = take("verifier.other.file", "moved/reward.py");
    check_changes(now, then, "");
    json_decref(then);
    json_decref(now);
}

static void other_paths(void **state)
{
    (void)state;
    write_file("s/one.json", "{}");
    write_file("s/two.txt", "x");
    write_file("s/sub/three", "");
    json_t *list = take("verifier.json.schema", "s"); /* the files directly in a folder */
    assert_int_equal(json_object_size(json_object_get(json_array_get(list, 0), "files")), 2);
    json_decref(list);
    list = take("k", "s/nothing");
    assert_int_equal(json_array_size(list), 0);
    json_decref(list);
    assert_int_equal(mkfifo(path_of("s/pipe"), 0600), 0); /* is not opened */
    list = take("k", "s/pipe");
    assert_int_equal(json_array_size(list), 0);
    json_decref(list);
    /* Python imports from the folder of a link, not from that of its target */
    write_file("target/reward.py", "import near\n");
    write_file("target/near.py", "");
    write_file("link/near.py", "x = 1\n");
    assert_int_equal(symlink(path_of("target/reward.py"), path_of("link/reward.py")), 0);
    list = take("k", "link/reward.py");
    assert_non_null(strstr(json_text_or(json_array_get(list, 0), "path", ""), "/link/reward.py"));
    assert_int_equal(json_object_size(json_object_get(json_array_get(list, 0), "files")), 2);
    json_decref(list);
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(imports_are_found), cmocka_unit_test(imports_of_imports),
                                       cmocka_unit_test(changed_files_are_named), cmocka_unit_test(other_paths)};
    return cmocka_run_group_tests(tests, setup, teardown);
}
