#include "plugin/new.h"

#include "base/fs.h"
#include "base/program.h"
#include "plugin/internal.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

/* The folders of the templates and of the headers. */
struct sdk {
    char templates[FS_PATH], include[FS_PATH];
};

static bool sdk_at(const char *templates, const char *include, struct sdk *out)
{
    char header[FS_PATH];
    if (fs_join(header, include, "tare/plugin.h", NULL) || !fs_is_dir(templates) || !fs_exists(header)) return false;
    snprintf(out->templates, sizeof out->templates, "%s", templates);
    return realpath(include, out->include) != NULL;
}

static tare_status find_sdk(struct sdk *out, struct err *e)
{
    char folder[FS_PATH], templates[FS_PATH], include[FS_PATH];
    const char *given = getenv("TARE_SDK");
    if (given && !fs_join(templates, given, "template", NULL) && !fs_join(include, given, "include", NULL) &&
        sdk_at(templates, include, out))
        return TARE_OK;
    if (given) FAIL(e, TARE_E_NOT_FOUND, "TARE_SDK is '%s', which has no template and include/tare/plugin.h", given);
    snprintf(templates, sizeof templates, "the folder of this program");
    if (program_path(folder, PROGRAM_DATA) && !fs_join(templates, folder, "sdk/template", NULL) &&
        program_path(include, PROGRAM_HEADERS) && sdk_at(templates, include, out))
        return TARE_OK;
    /* a clone, which may have been moved since it was built: build/tare and sdk/ */
    if (program_path(templates, "../sdk/template") && program_path(include, "../sdk/include") && sdk_at(templates, include, out))
        return TARE_OK;
    if (sdk_at(TARE_SDK_SOURCE "/template", TARE_SDK_SOURCE "/include", out)) return TARE_OK;
    FAIL(e, TARE_E_NOT_FOUND, "the SDK is missing: searched %s; install it, or set TARE_SDK to its folder", templates);
}

/* Returns the command that tries the new plugin. */
static const char *try_line(int32_t kind)
{
#define TRAIN(CONSTANT, NAME, KEY, ...) [TARE_KIND_##CONSTANT] = "tare train CONFIG " #NAME "." #KEY "=./@NAME@.so",
    static const char *const LINES[] = {PLUGIN_KINDS(TRAIN)};
#undef TRAIN
    if (kind == TARE_KIND_ENCODER) return "tare cluster train ./@NAME@.so --clusters 8 -o book.safetensors < corpus.jsonl";
    if (kind == TARE_KIND_ENVIRONMENT) return "tare plugin check ./@NAME@.so"; /* a draft: no run has episodes yet */
    return LINES[kind];
}

/* Writes one file of the template with @NAME@ and the other words filled in. */
static tare_status write_template_file(const char *from, const char *to, int32_t kind, const char *name, const struct sdk *sdk,
                                       struct err *e)
{
    const char *const words[][2] = {{"@TRY@", try_line(kind)},
                                    {"@NAME@", name},
                                    {"@KIND@", plugin_kind_name(kind)},
                                    {"@HEADER@", kind == TARE_KIND_ENVIRONMENT ? "draft/environment" : plugin_kind_name(kind)},
                                    {"@INCLUDE@", sdk->include}};
    OWNED(str_free) struct str text = {0}, out = {0};
    TRY(fs_read_all(from, &text, e));
    for (size_t w = 0; w < sizeof words / sizeof *words; w++) {
        str_clear(&out);
        const char *at = text.data;
        for (const char *found; (found = strstr(at, words[w][0])); at = found + strlen(words[w][0])) {
            TRY(str_add(&out, at, found - at, e));
            TRY(str_add(&out, words[w][1], -1, e));
        }
        TRY(str_add(&out, at, -1, e));
        const struct str swap = text;
        text = out;
        out = swap;
    }
    return fs_write_atomic(to, text.data, text.size, e);
}

/* One language: the files of a new plugin's folder. Each is a file of the SDK's template/KIND, with
 * its name in the new folder (NULL: the plugin's name with the suffix). */
struct language {
    const char *name, *suffix;
    const char *files[8][2];
};

static const struct language LANGUAGES[] = {
    {"c",
     "c",
     {{"plugin.c", NULL},
      {"test.sh", "test.sh"},
      {"../common/Makefile", "Makefile"},
      {"../common/CMakeLists.txt", "CMakeLists.txt"},
      {"../common/tare.map", "tare.map"},
      {"../common/README.md", "README.md"}}},
    {"cpp",
     "cpp",
     {{"plugin.cpp", NULL},
      {"test.sh", "test.sh"},
      {"../common/Makefile.cpp", "Makefile"},
      {"../common/CMakeLists.cpp.txt", "CMakeLists.txt"},
      {"../common/tare.map", "tare.map"},
      {"../common/README.md", "README.md"}}},
    {"rust",
     "rs",
     {{"plugin.rs", NULL},
      {"test.sh", "test.sh"},
      {"../common/Makefile.rust", "Makefile"},
      {"../common/Cargo.toml", "Cargo.toml"},
      {"../../rust/tare.rs", "tare.rs"},
      {"../common/README.md", "README.md"}}},
};

/* Refuses the name of a built-in plugin: a configuration names plugins and their sections by name,
 * so two plugins with one name would be confused. */
static tare_status check_new_name(int32_t kind, const char *name, struct err *e)
{
    if (!plugin_name_ok(name) || strlen(name) > 63)
        FAIL(e, TARE_E_INVALID, "invalid plugin name '%s': must be [a-z][a-z0-9_]*, at most 63 characters", name);
    for (const struct plugin_builtin *b = PLUGIN_BUILTINS; b->name; b++)
        if (!strcmp(b->folder, CONFIG_KINDS[kind].folder) && !strcmp(b->name, name))
            FAIL(e, TARE_E_INVALID,
                 "%s is the name of one of tare's own %s, so a configuration could mean either; choose another name", name,
                 b->folder);
    if (fs_exists(name)) FAIL(e, TARE_E_INVALID, "%s: exists already; choose another name, or remove it", name);
    return TARE_OK;
}

static tare_status write_files(int32_t kind, const char *name, const struct language *l, const struct sdk *sdk, struct err *e)
{
    char folder[FS_PATH], from[FS_PATH], to[FS_PATH], source[128];
    TRY(fs_join(folder, sdk->templates, plugin_kind_name(kind), e));
    TRY(fs_mkdirs(name, e));
    snprintf(source, sizeof source, "%s.%s", name, l->suffix);
    for (size_t i = 0; l->files[i][0]; i++) {
        TRY(fs_join(from, folder, l->files[i][0], e));
        TRY(fs_join(to, name, l->files[i][1] ? l->files[i][1] : source, e));
        TRY(write_template_file(from, to, kind, name, sdk, e));
    }
    return TARE_OK;
}

tare_status plugin_template(int32_t kind, const char *name, const char *language, struct err *e)
{
    struct sdk sdk;
    const struct language *l = NULL;
    for (size_t i = 0; i < sizeof LANGUAGES / sizeof *LANGUAGES; i++)
        if (!strcmp(language, LANGUAGES[i].name)) l = &LANGUAGES[i];
    if (!l) FAIL(e, TARE_E_INVALID, "unknown language '%s': must be c, cpp or rust", language);
    TRY(check_new_name(kind, name, e));
    TRY(find_sdk(&sdk, e));
    const tare_status status = write_files(kind, name, l, &sdk, e);
    if (status) fs_remove_tree(name, NULL); /* half a folder would prevent the next attempt */
    return status;
}
