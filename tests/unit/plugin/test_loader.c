/* The loader on files that are not plugins, and on plugins that break the contract: each gets a
 * separate, clear message. */
#include "check.h"
#include "folder.h"

#include "base/fs.h"
#include "plugin/internal.h"

#include <elf.h>
#include <locale.h>
#include <string.h>

static struct err e;

static const char *fixture(const char *name)
{
    static char path[4096];
    snprintf(path, sizeof path, "%s/%s.so", getenv("FIXTURES"), name);
    return path;
}

static const char *own; /* the folder for files of these tests */

static int make(void **state)
{
    (void)state;
    return (own = make_test_folder("tare-loader")) == NULL;
}

static int clean(void **state)
{
    (void)state;
    return (int)fs_remove_tree(own, &e);
}

static const char *temporary(const char *name, const void *data, int64_t n)
{
    static char path[FS_PATH];
    assert_ok(fs_join(path, own, name, &e), &e);
    assert_ok(fs_write_atomic(path, data, n, &e), &e);
    return path;
}

static void refused(const char *path, tare_status code, const char *part)
{
    const struct plugin *p;
    e = (struct err){0};
    const tare_status status = plugin_open(path, TARE_KIND_ESTIMATOR, NULL, &p, &e);
    if (!status) fail_msg("%s was opened", path);
    if (status != code || !strstr(e.message, part))
        fail_msg("%s: status %d (expected %d): %s (expected '%s')", path, status, code, e.message, part);
    assert_null(p);
}

static void loader__names_what_is_wrong_with_a_plugin(void **state)
{
    (void)state;
    static const struct {
        const char *name;
        tare_status code;
        const char *part;
    } cases[] = {
        {"wrong_major", TARE_E_VERSION, "built for plugin ABI 2, but this program has 1"},
        {"executable_stack", TARE_E_PLUGIN, "it needs an executable stack"},
        {"no_entry", TARE_E_PLUGIN, "exports no function tare_plugin_v1"},
        {"undefined_symbol", TARE_E_PLUGIN, "this_symbol_is_nowhere"},
        {"refuses", TARE_E_UNSUPPORTED, "the plugin refuses this host: no quantum computer was found"},
        {"refuses_silently", TARE_E_PLUGIN, "no reason given"},
        {"newer_minor", TARE_E_VERSION,
         "contains only estimator hostile, which needs plugin ABI 1.1; this program has plugin ABI 1.0"},
        {"short_plugin", TARE_E_PLUGIN, "invalid size 8 of its tare_plugin"},
        {"no_descriptors", TARE_E_PLUGIN, "contains 0 descriptors"},
        {"null_descriptor", TARE_E_PLUGIN, "descriptor 1 is NULL"},
        {"short_descriptor", TARE_E_PLUGIN, "descriptor 1: struct_size is 24"},
        {"bad_kind", TARE_E_VERSION, "contains only a plugin of the unknown kind 9"},
        {"bad_name", TARE_E_PLUGIN, "invalid name 'Bad Name'"},
        {"bad_version", TARE_E_PLUGIN, "invalid version 'one'"},
        {"no_summary", TARE_E_PLUGIN, "no summary"},
        {"no_table", TARE_E_PLUGIN, "missing function table"},
        {"short_table", TARE_E_PLUGIN, "its function table ends before destroy (struct_size 16"},
        {"huge_table", TARE_E_PLUGIN, "invalid size 1073741824 of its function table"},
        {"null_member", TARE_E_PLUGIN, "the function compute is missing"},
        {"unknown_flags", TARE_E_PLUGIN, "its function table has the unknown flags 0x4 (this program knows 0x1)"},
        {"half_state", TARE_E_PLUGIN, "it has the function save but is missing load"},
        {"collect_without_apply", TARE_E_PLUGIN, "it has the function collect but is missing apply"},
        {"duplicate_names", TARE_E_PLUGIN, "estimator hostile: the file has two plugins of that name"},
        {"two_estimators", TARE_E_CONFIG, "contains several: estimator hostile, estimator second"},
        {"param_stride", TARE_E_PLUGIN, "param_size is 8"},
        {"duplicate_params", TARE_E_PLUGIN, "two parameters are named factor"},
        {"bad_default", TARE_E_PLUGIN, "the default of parameter factor: 7 is out of range: must be 0 <= factor <= 5"},
        {"bad_type", TARE_E_PLUGIN, "parameter factor has the unknown type 77"},
        {"bad_range", TARE_E_PLUGIN, "parameter factor has the range 9 to 5"},
        {"no_choices", TARE_E_PLUGIN, "parameter choice is a choice without choices"},
        {"no_default", TARE_E_PLUGIN, "parameter text has no default and is not marked TARE_PARAM_REQUIRED"},
        {"no_doc", TARE_E_PLUGIN, "parameter choice has no documentation"},
        {"unknown_bits", TARE_E_PLUGIN, "parameter factor has the unknown flags 0x100000"},
        {"unknown_want", TARE_E_UNSUPPORTED, "it wants the column \"no_such_column\", which this program does not have"},
        {"wants_twice", TARE_E_PLUGIN, "it wants the column \"row.level\" twice"},
        {"wants_axis", TARE_E_PLUGIN, "it wants the field \"row.level\", which must be f64 with width 1 on the axis group"},
        {"wants_stride", TARE_E_PLUGIN, "want_size is 8; set it to sizeof(tare_want)"},
        {"no_state_version", TARE_E_PLUGIN, "it has the function save, but state_version is 0"},
        {"verdicts", TARE_E_CONFIG, "contains no estimator; it contains verifier verdicts"},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        refused(fixture(cases[i].name), cases[i].code, cases[i].part);
        /* a failed file is not remembered as opened */
        refused(fixture(cases[i].name), cases[i].code, cases[i].part);
    }
}

static void loader__looks_at_the_file_first(void **state)
{
    (void)state;
    struct str good = {0};
    refused("/nowhere/at/all.so", TARE_E_NOT_FOUND, "No such file");
    refused(temporary("text.so", "just text\n", 10), TARE_E_CORRUPT, "not a shared object (no ELF header)");
    refused(temporary("windows.so", "MZ\x90", 4), TARE_E_CORRUPT, "this is a Windows file");
    refused(temporary("empty.so", "", 0), TARE_E_CORRUPT, "");
    /* programs are position independent here */
    refused("/proc/self/exe", TARE_E_PLUGIN, "exports no function tare_plugin_v1");
    assert_ok(fs_read_all(fixture("good"), &good, &e), &e);
    refused(temporary("cut.so", good.data, 40), TARE_E_CORRUPT, "cut short");
    refused(temporary("cut-later.so", good.data, good.size / 3), TARE_E_CORRUPT, "cut short");
    Elf64_Ehdr *header = (Elf64_Ehdr *)(void *)good.data;
    const Elf64_Half machine = header->e_machine;
    header->e_machine = EM_S390;
    refused(temporary("machine.so", good.data, good.size), TARE_E_VERSION, "rebuild the plugin for it");
    header->e_machine = machine;
    header->e_ident[EI_CLASS] = ELFCLASS32;
    refused(temporary("class.so", good.data, good.size), TARE_E_VERSION, "a 32-bit little-endian object");
    header->e_ident[EI_CLASS] = ELFCLASS64;
    header->e_type = ET_REL;
    refused(temporary("object.so", good.data, good.size), TARE_E_CORRUPT, "an object file (.o), not a shared object");
    str_free(&good);
}

/* Every prefix and many single-byte changes of a plugin's headers: accepted or refused without a
 * crash. Only the ELF check runs. */
static void loader__survives_damaged_headers(void **state)
{
    (void)state;
    struct str good = {0};
    assert_ok(fs_read_all(fixture("good"), &good, &e), &e);
    int64_t refusals = 0;
    uint64_t hash;
    for (int64_t n = 0; n < good.size; n += n < 1200 ? 7 : 997)
        refusals += elf_check(temporary("prefix.so", good.data, n), &hash, &e) != TARE_OK;
    for (int64_t at = 0; at < 1024 && at < good.size; at += 3) {
        const char was = good.data[at];
        good.data[at] = (char)(was ^ 0xff);
        refusals += elf_check(temporary("flip.so", good.data, good.size), &hash, &e) != TARE_OK;
        good.data[at] = was;
    }
    assert_true(refusals > 100);
    str_free(&good);
}

static void loader__opens_a_file_once(void **state)
{
    (void)state;
    const struct plugin *a, *b, *c;
    char other[4200];
    assert_ok(plugin_open(fixture("good"), TARE_KIND_ESTIMATOR, NULL, &a, &e), &e);
    snprintf(other, sizeof other, "%s/../fixtures/./good.so", getenv("FIXTURES"));
    assert_ok(plugin_open(other, TARE_KIND_ESTIMATOR, NULL, &b, &e), &e);
    assert_ptr_equal(a, b);
    assert_string_equal(a->desc.name, "hostile");
    uint64_t hash;
    assert_ok(fs_hash_file(fixture("good"), &hash, &e), &e);
    assert_true(a->hash == hash && a->path[0] == '/');
    snprintf(other, sizeof other, "%s:second", fixture("two_estimators"));
    assert_ok(plugin_open(other, TARE_KIND_ESTIMATOR, NULL, &c, &e), &e);
    assert_string_equal(c->desc.name, "second");
    snprintf(other, sizeof other, "%s:third", fixture("two_estimators"));
    refused(other, TARE_E_CONFIG, "contains no estimator named 'third'");
}

/* A later minor version may add a kind, next to a known one, and members of a descriptor. */
static void loader__reads_what_it_knows_of_a_newer_plugin(void **state)
{
    (void)state;
    const struct plugin *p;
    assert_ok(plugin_open(fixture("unknown_kind_beside"), TARE_KIND_ESTIMATOR, NULL, &p, &e), &e);
    assert_string_equal(p->desc.name, "second");
    assert_ok(plugin_open(fixture("grown_descriptor"), TARE_KIND_ESTIMATOR, NULL, &p, &e), &e);
    assert_string_equal(p->desc.name, "hostile");
    assert_true(p->desc.struct_size > sizeof p->desc && p->desc.n_params == 5);
}

/* The host that the entry point gets lives as long as the plugin may use it. */
static void loader__keeps_the_entry_host(void **state)
{
    (void)state;
    struct plugin_instance *i;
    assert_ok(plugin_new(&(struct plugin_wanted){fixture("keeps_host"), TARE_KIND_ESTIMATOR, NULL, NULL, 4, NULL}, &i, &e), &e);
    plugin_destroy(i);
}

static void loader__searches_folders_in_order(void **state)
{
    (void)state;
    const struct plugin *p;
    struct plugin_search search = {0};
    char path[8192], *old = strdup(getenv("TARE_PLUGIN_PATH"));
    refused("grpoo", TARE_E_NOT_FOUND, "no estimator named 'grpoo'; did you mean grpo? `tare plugin list`");
    refused("", TARE_E_CONFIG, "missing name of the estimator");
    snprintf(path, sizeof path, "/nowhere::%s", getenv("FIXTURES"));
    setenv("TARE_PLUGIN_PATH", path, 1);
    assert_ok(plugin_open("good", TARE_KIND_ESTIMATOR, NULL, &p, &e), &e);
    refused("nothing_like_it", TARE_E_NOT_FOUND, "/nowhere/estimators, ");
    setenv("TARE_PLUGIN_PATH", "", 1);
    refused("good", TARE_E_NOT_FOUND, "no estimator named 'good'");
    /* run.plugins */
    snprintf(path, sizeof path, "%s/config", own);
    char folder[8300], link[8400];
    snprintf(folder, sizeof folder, "%s/estimators", path);
    assert_ok(fs_mkdirs(folder, &e), &e);
    snprintf(link, sizeof link, "%s/mine.so", folder);
    assert_ok(fs_copy(fixture("good"), link, &e), &e);
    search.folder = path;
    assert_ok(plugin_open("mine", TARE_KIND_ESTIMATOR, &search, &p, &e), &e);
    assert_non_null(strstr(p->path, "/mine.so"));
    assert_ok(fs_remove_tree(path, &e), &e);
    setenv("TARE_PLUGIN_PATH", old, 1);
    free(old);
}

static void loader__puts_the_locale_back(void **state)
{
    (void)state;
    const struct plugin *p;
    char before[256];
    snprintf(before, sizeof before, "%s", setlocale(LC_ALL, NULL));
    assert_ok(plugin_open(fixture("changes_locale"), TARE_KIND_ESTIMATOR, NULL, &p, &e), &e);
    assert_string_equal(setlocale(LC_ALL, NULL), before);
}

/* An object that an older gcc linked with -ffast-math flushes denormal numbers to zero in the
 * thread that loads it. */
static void loader__puts_the_floating_point_mode_back(void **state)
{
    (void)state;
    const struct plugin *p;
    volatile float tiny = 1e-38f;
    assert_true(tiny * 0.1f > 0);
    assert_ok(plugin_open(fixture("flushes_at_load"), TARE_KIND_ESTIMATOR, NULL, &p, &e), &e);
    assert_true(tiny * 0.1f > 0);
}

static tare_status count(void *ctx, const char *path, const struct plugin *p, const struct err *why)
{
    int64_t *n = ctx;
    n[p == NULL]++;
    if (!p) assert_true(path[0] && why->message[0]);
    return TARE_OK;
}

static void loader__lists_good_and_bad(void **state)
{
    (void)state;
    int64_t n[2] = {0, 0};
    char *old = strdup(getenv("TARE_PLUGIN_PATH"));
    setenv("TARE_PLUGIN_PATH", getenv("FIXTURES"), 1);
    assert_ok(plugin_list(NULL, count, n, &e), &e);
    setenv("TARE_PLUGIN_PATH", old, 1);
    free(old);
    assert_true(n[0] >= 15 && n[1] >= 25);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(loader__names_what_is_wrong_with_a_plugin),
        cmocka_unit_test(loader__looks_at_the_file_first),
        cmocka_unit_test(loader__survives_damaged_headers),
        cmocka_unit_test(loader__opens_a_file_once),
        cmocka_unit_test(loader__reads_what_it_knows_of_a_newer_plugin),
        cmocka_unit_test(loader__keeps_the_entry_host),
        cmocka_unit_test(loader__searches_folders_in_order),
        cmocka_unit_test(loader__puts_the_locale_back),
        cmocka_unit_test(loader__puts_the_floating_point_mode_back),
        cmocka_unit_test(loader__lists_good_and_bad),
    };
    return cmocka_run_group_tests(tests, make, clean);
}
