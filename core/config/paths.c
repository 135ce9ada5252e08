#include "config/paths.h"

#include "base/fs.h"
#include "config/value.h"

#include <errno.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

enum { PATH_FLAGS = KEY_PATH | KEY_OUTPUT | KEY_FILES | KEY_PLUGINS };

/* ---------------------------------------------------------------- lists */

/* Returns true if the text up to n is an entry of a list of files with its weight: "a.jsonl:0.7". */
static bool is_weighted(const char *text, size_t n)
{
    char weight[32];
    double unused;
    size_t at = n;
    while (at > 0 && text[at - 1] != ':') at--;
    if (at < 2 || n - at >= sizeof weight) return false;
    snprintf(weight, sizeof weight, "%.*s", (int)(n - at), text + at);
    return !str_to_double(weight, &unused, NULL);
}

/* Returns the length of the entry at the head of a list. Files are separated by commas, and by a
 * space after a weight, because a file's name may contain spaces (data/files.c); plugins by spaces
 * and commas. */
static size_t entry_length(const char *list, unsigned flags)
{
    if (flags & KEY_PLUGINS) return strcspn(list, " ,\t");
    if (!(flags & KEY_FILES)) return strlen(list);
    size_t n = 0;
    while (list[n] && list[n] != ',' && !(list[n] == ' ' && is_weighted(list, n))) n++;
    return n;
}

/* Returns true if the entry names a file with a plugin: "lib/x.so", "x.so", "x.so:name:0.5". */
static bool is_plugin_file(const char *entry, size_t n)
{
    for (size_t i = 0; i < n; i++) {
        if (entry[i] == '/') return true;
        if (n - i >= 3 && !memcmp(entry + i, ".so", 3) && (n - i == 3 || entry[i + 3] == ':')) return true;
    }
    return false;
}

/* Returns true if the entry is a relative path: not a built-in data set, and not a plugin's bare
 * name, weight or second name. */
static bool is_relative(const char *entry, size_t n, unsigned flags)
{
    if (!n || *entry == '/' || (flags & KEY_FILES && n >= 8 && !strncmp(entry, "builtin:", 8))) return false;
    return !(flags & KEY_PLUGINS) || is_plugin_file(entry, n);
}

/* Prints a value with its relative paths under the folder. */
static tare_status print_under(const char *folder, const char *value, unsigned flags, struct str *out, struct err *e)
{
    const char *slash = folder[strlen(folder) - 1] == '/' ? "" : "/";
    char whole[FS_PATH];
    if (flags & KEY_FILES && *value != '/' && strchr(value, ',') && !fs_join(whole, folder, value, NULL)) {
        /* one file whose name has commas */
        if (!access(whole, F_OK)) return str_add(out, whole, -1, e);
        if (!fs_is_answer(errno)) FAIL(e, TARE_E_IO, "%s: %s", whole, strerror(errno));
    }
    while (*value) {
        const size_t blank = flags & (KEY_FILES | KEY_PLUGINS) ? strspn(value, " ,\t") : 0;
        const size_t n = entry_length(value + blank, flags);
        TRY(str_add(out, value, (int64_t)blank, e));
        if (is_relative(value + blank, n, flags)) TRY(str_addf(out, e, "%s%s", folder, slash));
        TRY(str_add(out, value + blank, (int64_t)n, e));
        value += blank + n;
    }
    return TARE_OK;
}

/* Returns true if the first file of the value exists under the folder. Of a pattern, its folder
 * counts. */
static bool exists_under(const char *folder, const char *value, unsigned flags)
{
    char entry[FS_PATH], path[FS_PATH];
    const size_t n = entry_length(value, flags);
    if (!is_relative(value, n, flags) || n >= sizeof entry) return false;
    snprintf(entry, sizeof entry, "%.*s", (int)n, value);
    if (fs_join(path, folder, entry, NULL)) return false;
    if (fs_exists(path)) return true;
    char *glob = strpbrk(entry, "*?["), *colon = strrchr(entry, ':');
    if (glob) {
        while (glob > entry && *glob != '/') glob--;
        *glob = 0;
    } else if (colon) {
        *colon = 0;
    } else {
        return false;
    }
    return !fs_join(path, folder, entry, NULL) && fs_exists(path);
}

/* ---------------------------------------------------------------- the folder */

/* Removes ".", ".." and doubled slashes from an absolute path, in place. */
static void normalize_path(char *path)
{
    size_t n = 0;
    for (const char *p = path; *p;) {
        const size_t slash = strspn(p, "/"), m = strcspn(p + slash, "/");
        const char *part = p + slash;
        p = part + m;
        if (!m || (m == 1 && *part == '.')) continue;
        if (m == 2 && !memcmp(part, "..", 2)) {
            while (n > 0 && path[--n] != '/') {
            }
            continue;
        }
        path[n] = '/';
        memmove(path + n + 1, part, m);
        n += m + 1;
    }
    if (!n) path[n++] = '/';
    path[n] = 0;
}

static tare_status working_folder(char *out, struct err *e)
{
    if (!getcwd(out, FS_PATH)) FAIL(e, TARE_E_IO, "the working folder: %s", strerror(errno));
    return TARE_OK;
}

static tare_status copy_path(struct config *c, const char *text, const char **out, struct err *e)
{
    return arena_strdup(&c->arena, text, -1, (char **)(uintptr_t)out, e);
}

/* Removes the last n components; false: the path has fewer. */
static bool go_up(char *path, int64_t n)
{
    for (; n > 0; n--) {
        char *slash = strrchr(path, '/');
        if (!slash || !path[1]) return false;
        slash[slash == path] = 0;
    }
    return true;
}

/* Prints the folder in which a training kept its config.ini: run.dir, or that of `tare sft`. */
static tare_status recorded_folder(const struct config *c, const char *recorded_dir, const char *now, char *out, struct err *e)
{
    static const char TRAINING[] = ".training";
    if (!str_ends_with(now, TRAINING)) return fs_join(out, "", recorded_dir, e);
    const int n = *c->sft.out ? snprintf(out, FS_PATH, "%s%s", c->sft.out, TRAINING)
                              : snprintf(out, FS_PATH, "%s/model%s", recorded_dir, TRAINING);
    if (n >= FS_PATH) FAIL(e, TARE_E_INVALID, "%s: the path is too long", recorded_dir);
    return TARE_OK;
}

/* Resolves symbolic links. out: PATH_MAX bytes, empty if there is no such file. */
static tare_status real_path(const char *path, char *out, struct err *e)
{
    if (realpath(path, out)) return TARE_OK;
    if (!fs_is_answer(errno)) FAIL(e, TARE_E_IO, "%s: %s", path, strerror(errno));
    *out = 0;
    return TARE_OK;
}

/* Finds the folder that lies to the run as `from` lay to the run's recorded folder. out: FS_PATH
 * bytes, empty if the run is where it was or there is no such folder. */
static tare_status moved_folder(const struct config *c, const char *from, const char *recorded_dir, char *out, struct err *e)
{
    char recorded[FS_PATH], run[FS_PATH], now[PATH_MAX], file[PATH_MAX], real[PATH_MAX];
    const char *name = c->file ? strrchr(c->file, '/') : NULL;
    name = name ? name + 1 : c->file;
    *out = 0;
    if (!name || strcmp(name, "config.ini") != 0 || !*recorded_dir) return TARE_OK;
    TRY(real_path(c->file, file, e));
    fs_dirname(now, file);
    if (!*file || recorded_folder(c, recorded_dir, now, recorded, NULL) || fs_join(run, from, recorded, NULL)) return TARE_OK;
    normalize_path(run);
    TRY(real_path(run, real, e));
    if (!strcmp(run, now) || !strcmp(real, now)) return TARE_OK;
    size_t common = 0; /* length of the components that both paths have */
    for (size_t i = 0;; i++) {
        const bool ends = !from[i] || from[i] == '/', run_ends = !run[i] || run[i] == '/';
        if (ends && run_ends) common = i;
        if (from[i] != run[i] || !from[i]) break;
    }
    int64_t up = 0;
    for (const char *p = run + common; *p; p++) up += *p == '/' && p[1];
    if (!go_up(now, up) || fs_join(out, now, from + common + strspn(from + common, "/"), NULL)) {
        *out = 0;
        return TARE_OK;
    }
    normalize_path(out);
    if (!fs_is_dir(out) || !strcmp(out, from)) *out = 0;
    return TARE_OK;
}

static bool from_command_line(const struct config *c, const struct config_key *k)
{
    return !strcmp(config_where(c, k->section, k->key), "command line");
}

/* Returns true if an input of the run is missing under its recorded folder, but exists under the one
 * that has moved with the run. */
static bool inputs_moved(struct config *c, const char *from, const char *moved)
{
    if (!fs_is_dir(from)) return true;
    for (const struct config_key *k = CONFIG_KEYS; k->section; k++) {
        if (!(k->flags & (KEY_PATH | KEY_FILES | KEY_PLUGINS)) || from_command_line(c, k)) continue;
        const char *value = *value_text(c, k);
        if (!exists_under(from, value, k->flags) && exists_under(moved, value, k->flags)) return true;
    }
    for (const struct config_param *p = c->params; p; p = p->next)
        if (strpbrk(p->value, "./") && strcmp(p->where, "command line") && !exists_under(from, p->value, KEY_PATH) &&
            exists_under(moved, p->value, KEY_PATH))
            return true;
    return false;
}

/* Moves the paths that are stored as absolute ones: run.plugins and model.warm_start. */
static tare_status move_absolute(struct config *c, const char *from, const char *moved, struct err *e)
{
    const size_t n = strlen(from);
    char path[FS_PATH];
    for (const struct config_key *k = CONFIG_KEYS; k->section; k++) {
        if (!(k->flags & KEY_FILE_RELATIVE) || from_command_line(c, k)) continue;
        const char *value = *value_text(c, k);
        if (strncmp(value, from, n) || value[n] != '/' || fs_exists(value)) continue;
        TRY(fs_join(path, moved, value + n + 1, e));
        if (fs_exists(path)) TRY(copy_path(c, path, value_text(c, k), e));
    }
    return TARE_OK;
}

/* b exists. */
static tare_status same_folder(const char *a, const char *b, bool *same, struct err *e)
{
    struct stat s, t;
    *same = !strcmp(a, b);
    if (*same) return TARE_OK;
    const char *failed = stat(a, &s) ? a : stat(b, &t) ? b : NULL;
    if (failed && !fs_is_answer(errno)) FAIL(e, TARE_E_IO, "%s: %s", failed, strerror(errno));
    *same = !failed && s.st_dev == t.st_dev && s.st_ino == t.st_ino;
    return TARE_OK;
}

/* ---------------------------------------------------------------- resolving */

/* A list cannot hold a folder whose name has the list's separators. */
static tare_status check_separators(const struct config *c, const struct config_key *k, struct err *e)
{
    const char *separators = k->flags & KEY_PLUGINS ? " ,\t:" : k->flags & KEY_FILES ? "," : "";
    if (!strpbrk(c->base, separators)) return TARE_OK;
    FAIL(
        e, TARE_E_CONFIG,
        "%s: %s.%s counts from %s, whose name has a separator of this list (space, comma or colon); run the command in that folder",
        config_where(c, k->section, k->key), k->section, k->key, c->base);
}

static tare_status resolve_key(struct config *c, const struct config_key *k, struct err *e)
{
    OWNED(str_free) struct str full = {0};
    const char **value = value_text(c, k);
    if (!(k->flags & PATH_FLAGS) || !**value || from_command_line(c, k)) return TARE_OK;
    TRY(print_under(c->base, *value, k->flags, &full, e));
    if (!strcmp(full.data, *value)) return TARE_OK;
    TRY(check_separators(c, k, e));
    struct config_source *s = &c->sources[k - CONFIG_KEYS];
    s->written = *value;
    TRY(copy_path(c, full.data, value, e));
    s->full = *value;
    return TARE_OK;
}

tare_status paths_resolve(struct config *c, const char *recorded_dir, struct faults *f, struct err *e)
{
    char here[FS_PATH], moved[FS_PATH];
    const char *from = c->run.paths_from;
    if (!*from) return TARE_OK;
    TRY(working_folder(here, e));
    const struct config_key *k = CONFIG_KEYS;
    while (strcmp(k->key, "paths_from") != 0) k++;
    *moved = 0;
    if (!from_command_line(c, k)) TRY(moved_folder(c, from, recorded_dir, moved, e));
    if (*moved && inputs_moved(c, from, moved)) {
        TRY(move_absolute(c, from, moved, e));
        TRY(copy_path(c, moved, &c->run.paths_from, e));
        from = c->run.paths_from;
    }
    bool same;
    TRY(same_folder(from, here, &same, e));
    if (same) return TARE_OK;
    c->base = from;
    for (k = CONFIG_KEYS; k->section; k++) TRY(err_note_fault(f, resolve_key(c, k, e), e));
    for (struct config_param *p = c->params; p; p = p->next)
        if (strcmp(p->where, "command line") != 0) p->folder = from;
    return TARE_OK;
}

tare_status config_resume_paths(struct config *c, const char *folder, struct err *e)
{
    char path[FS_PATH];
    OWNED(config_free) struct config run = {0};
    struct err unread = {0};
    if (*c->run.paths_from) return TARE_OK;
    TRY(fs_join(path, folder, "config.ini", e));
    /* a file that cannot be read is reported where the configurations are compared */
    if (!fs_exists(path) || config_load(&run, path, NULL, 0, &unread) || !*run.run.paths_from) return TARE_OK;
    TRY(copy_path(c, run.run.paths_from, &c->run.paths_from, e));
    return paths_resolve(c, "", NULL, e);
}

/* ---------------------------------------------------------------- printing */

tare_status paths_print(const struct config *c, const struct config_key *k, struct str *out, bool *printed, struct err *e)
{
    char here[FS_PATH], real[PATH_MAX];
    *printed = false;
    if (!c->base || !(k->flags & PATH_FLAGS)) return TARE_OK;
    const char *value = *value_text((struct config *)(uintptr_t)c, k);
    const struct config_source *s = &c->sources[k - CONFIG_KEYS];
    if (!*value || *value == '/') {
        *printed = s->full && !strcmp(value, s->full);
        return *printed ? str_add(out, s->written, -1, e) : TARE_OK;
    }
    *printed = true;
    if (s->full && !strcmp(value, s->full)) return str_add(out, s->written, -1, e);
    TRY(working_folder(here, e));
    const size_t n = strlen(c->base);
    if (k->flags & (KEY_PATH | KEY_OUTPUT) && realpath(value, real)) {
        const bool inside = !strncmp(real, c->base, n) && real[n] == '/';
        return str_add(out, inside ? real + n + 1 : real, -1, e);
    }
    return print_under(here, value, k->flags, out, e);
}

tare_status paths_print_full(const struct config *c, const struct config_key *k, struct str *out, struct err *e)
{
    char here[FS_PATH], path[FS_PATH];
    if (!(k->flags & PATH_FLAGS)) return value_print(c, k, out, e);
    const char *value = *value_text((struct config *)(uintptr_t)c, k);
    if (!*value) return TARE_OK;
    TRY(working_folder(here, e));
    if (k->flags & (KEY_FILES | KEY_PLUGINS)) return print_under(here, value, k->flags, out, e);
    TRY(fs_join(path, here, value, e));
    normalize_path(path);
    return str_add(out, path, -1, e);
}
