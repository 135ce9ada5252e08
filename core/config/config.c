#include "config/config.h"

#include "base/fs.h"
#include "base/log.h"
#include "base/program.h"
#include "config/ini_file.h"
#include "config/keys.h"
#include "config/kinds.h"
#include "config/names.h"
#include "config/paths.h"
#include "config/recipes.h"
#include "config/relations.h"
#include "config/value.h"

#include <ctype.h>
#include <errno.h>
#include <string.h>
#include <sys/stat.h>

enum { INCLUDE_DEPTH = 16 };

/* ---------------------------------------------------------------- look-up */

static const struct config_key *find_key(const char *section, const char *key)
{
    for (const struct config_key *k = CONFIG_KEYS; k->section; k++)
        if (!strcmp(k->section, section) && !strcmp(k->key, key)) return k;
    return NULL;
}

/* Returns true for [sweep], and for [KIND.NAME], the parameters of a plugin. */
static bool is_free_section(const char *section)
{
    if (!strcmp(section, "sweep")) return true;
    const char *dot = strchr(section, '.');
    return dot && dot[1] && !strchr(dot + 1, '.') && config_kind_of_section(section);
}

/* ---------------------------------------------------------------- assignment */

static tare_status set_param(struct config *c, const char *section, const char *key, const char *value, const char *where,
                             struct err *e)
{
    struct config_param **at = &c->params;
    while (*at && (strcmp((*at)->section, section) || strcmp((*at)->key, key))) at = &(*at)->next;
    if (!*at) {
        TRY(arena_new(&c->arena, at, 1, e));
        TRY(arena_strdup(&c->arena, section, -1, (char **)(uintptr_t) & (*at)->section, e));
        TRY(arena_strdup(&c->arena, key, -1, (char **)(uintptr_t) & (*at)->key, e));
    }
    TRY(arena_strdup(&c->arena, value, -1, (char **)(uintptr_t) & (*at)->value, e));
    return arena_strdup(&c->arena, where, -1, (char **)(uintptr_t) & (*at)->where, e);
}

static tare_status assign_key(struct config *c, const char *section, const char *key, const char *value, const char *where,
                              struct err *e)
{
    if (is_free_section(section)) return set_param(c, section, key, value, where, e);
    const struct config_key *k = find_key(section, key);
    if (!k) return names_unknown_key(section, key, where, e);
    TRY(value_set(c, k, value, where, e));
    TRY(arena_strdup(&c->arena, where, -1, (char **)(uintptr_t)&c->sources[k - CONFIG_KEYS].where, e));
    return !strcmp(section, "run") && !strcmp(key, "as") ? recipe_apply(c, where, assign_key, e) : TARE_OK;
}

/* ---------------------------------------------------------------- ${run.seed} and ${run.name} */

/* Returns the length of a "${word.word}" at p; 0 without one. (In a formula, "${" is plain
 * text.) */
static size_t reference_length(const char *p)
{
    if (p[0] != '$' || p[1] != '{') return 0;
    size_t n = 2;
    while (isalnum((unsigned char)p[n]) || p[n] == '_' || p[n] == '.') n++;
    return n > 2 && p[n] == '}' ? n + 1 : 0;
}

static tare_status substitute_text(struct config *c, const char **text, bool is_name, const char *where, struct err *e)
{
    if (!strstr(*text, "${")) return TARE_OK;
    OWNED(str_free) struct str out = {0};
    for (const char *p = *text; *p;) {
        const size_t n = reference_length(p);
        if (!n) {
            TRY(str_add(&out, p++, 1, e));
            continue;
        }
        if (n == 11 && !memcmp(p, "${run.seed}", n)) {
            TRY(str_addf(&out, e, "%lld", (long long)c->run.seed));
        } else if (n == 11 && !memcmp(p, "${run.name}", n) && !is_name) {
            TRY(str_add(&out, c->run.name, -1, e));
        } else {
            FAIL(e, TARE_E_CONFIG, "%s: unknown reference '%.*s'; allowed: ${run.seed}%s", where, (int)n, p,
                 is_name ? "" : " and ${run.name}");
        }
        p += n;
    }
    char *copy;
    TRY(arena_strdup(&c->arena, out.size ? out.data : "", -1, &copy, e));
    *text = copy;
    return TARE_OK;
}

static tare_status substitute_key(struct config *c, const struct config_key *k, struct err *e)
{
    if (k->type != KEY_TEXT) return TARE_OK;
    return substitute_text(c, value_text(c, k), !strcmp(k->section, "run") && !strcmp(k->key, "name"),
                           config_where(c, k->section, k->key), e);
}

static tare_status name_run(struct config *c, struct err *e)
{
    if (*c->run.name) return TARE_OK;
    const char *base = c->file ? strrchr(c->file, '/') : NULL;
    base = base ? base + 1 : c->file ? c->file : "run";
    const size_t n = strlen(base);
    char *copy;
    TRY(arena_strdup(&c->arena, base, n > 4 && !strcmp(base + n - 4, ".ini") ? (int64_t)n - 4 : (int64_t)n, &copy, e));
    c->run.name = copy;
    return TARE_OK;
}

static tare_status resolve_references(struct config *c, struct faults *f, struct err *e)
{
    const struct config_key *name = find_key("run", "name");
    TRY(name_run(c, e));
    TRY(err_note_fault(f, substitute_key(c, name, e), e));
    for (const struct config_key *k = CONFIG_KEYS; k->section; k++)
        if (k != name) TRY(err_note_fault(f, substitute_key(c, k, e), e));
    for (struct config_param *p = c->params; p; p = p->next)
        TRY(err_note_fault(f, substitute_text(c, &p->value, false, p->where, e), e));
    return TARE_OK;
}

/* ---------------------------------------------------------------- files and the command line */

struct loading {
    struct config *c;
    const struct loading *outer; /* the file that includes this one */
    const char *path, *include_where;
    struct stat id;
    int depth;
    struct faults *faults;
    char unknown[64]; /* a section already reported as unknown, whose other keys are skipped */
};

static tare_status load_file(struct loading *l, struct err *e);

static tare_status load_include(struct loading *l, const char *value, const char *where, struct err *e)
{
    if (!*value) FAIL(e, TARE_E_CONFIG, "%s: include needs a file name", where);
    if (l->depth >= INCLUDE_DEPTH) FAIL(e, TARE_E_CONFIG, "%s: includes are nested more than %d deep", where, INCLUDE_DEPTH);
    char folder[FS_PATH], path[FS_PATH];
    fs_dirname(folder, l->path);
    TRY(fs_join(path, strcmp(folder, ".") ? folder : "", value, e));
    struct loading inner = {
        .c = l->c, .outer = l, .path = path, .include_where = where, .depth = l->depth + 1, .faults = l->faults};
    return load_file(&inner, e);
}

static tare_status load_entry(void *ctx, const char *section, const char *key, const char *value, const char *where, struct err *e)
{
    struct loading *l = ctx;
    if (*section && l->faults && !strcmp(section, l->unknown)) return TARE_OK;
    if (*section && !is_free_section(section) && !config_is_section(section))
        snprintf(l->unknown, sizeof l->unknown, "%s", section);
    if (*section) return assign_key(l->c, section, key, value, where, e);
    if (!strcmp(key, "include")) return load_include(l, value, where, e);
    char wrong[200];
    snprintf(wrong, sizeof wrong, "'%.60s' is before the first section, where only include = FILE is allowed", key);
    return config_no_key(key, where, wrong, e);
}

static tare_status load_file(struct loading *l, struct err *e)
{
    if (stat(l->path, &l->id)) {
        if (!fs_is_answer(errno)) FAIL(e, TARE_E_IO, "%s: %s", l->path, strerror(errno));
        if (l->outer)
            FAIL(e, TARE_E_CONFIG, "%s: include = %s: no such file (paths are relative to the including file)", l->include_where,
                 l->path);
        FAIL(e, TARE_E_CONFIG, "%s: no such configuration file", l->path);
    }
    for (const struct loading *o = l->outer; o; o = o->outer)
        if (o->id.st_dev == l->id.st_dev && o->id.st_ino == l->id.st_ino)
            FAIL(e, TARE_E_CONFIG, "%s: include = %s: the file includes itself (a cycle); remove one include", l->include_where,
                 l->path);
    if (l->outer && fs_check_regular(l->path, false, e)) return err_prefix(e, "%s: include", l->include_where);
    return ini_read_file(l->path, "include", load_entry, l, l->faults, e);
}

static tare_status not_an_override(const char *text, const char *equals, struct err *e)
{
    char wrong[300], key[200];
    snprintf(wrong, sizeof wrong, "'%.200s' is not section.key=value", text);
    const char *word = text + strspn(text, "-"); /* some commands accept "--num_generations" */
    snprintf(key, sizeof key, "%.*s", (int)(equals ? equals - word : word > text ? 199 : 0), word);
    return config_no_key(key, "command line", wrong, e);
}

/* Parses "section.key=value". The section may be KIND.NAME; after "sweep." every dot belongs to the
 * key. */
static tare_status load_override(struct config *c, const char *text, struct err *e)
{
    char section[200];
    const char *equals = strchr(text, '='), *dot = strchr(text, '.');
    if (!strncmp(text, "as=", 3)) return assign_key(c, "run", "as", text + 3, "command line", e);
    if (!equals || !dot || dot > equals || dot == text || equals == dot + 1) return not_an_override(text, equals, e);
    if (strncmp(text, "sweep.", 6)) {
        const char *second = memchr(dot + 1, '.', (size_t)(equals - dot - 1));
        if (second) dot = second;
    }
    if (dot - text >= (int)sizeof section || equals - dot > 200)
        FAIL(e, TARE_E_CONFIG, "command line: the key of '%.60s' is too long", text);
    char key[200];
    snprintf(section, sizeof section, "%.*s", (int)(dot - text), text);
    snprintf(key, sizeof key, "%.*s", (int)(equals - dot - 1), dot + 1);
    const int64_t bad = str_utf8_error(equals + 1, (int64_t)strlen(equals + 1));
    if (bad) FAIL(e, TARE_E_CONFIG, "command line: the value of %s.%s is not valid UTF-8", section, key);
    return assign_key(c, section, key, equals + 1, "command line", e);
}

static tare_status set_defaults(struct config *c, struct err *e)
{
    TRY(arena_new(&c->arena, &c->sources, config_n_keys(), e));
    for (const struct config_key *k = CONFIG_KEYS; k->section; k++) TRY(value_set(c, k, k->fallback, "default", e));
    return TARE_OK;
}

/* Finds the folder "plugins" next to the file, and stores it in run.plugins so that a run's copy of
 * its configuration has it too. */
static tare_status find_plugins(struct config *c, struct err *e)
{
    char folder[FS_PATH];
    if (*c->run.plugins || !c->file) return TARE_OK;
    bool there;
    TRY(fs_join(folder, c->dir, "plugins", e));
    TRY(fs_there(folder, &there, e));
    return there && fs_is_dir(folder) ? assign_key(c, "run", "plugins", folder, "default", e) : TARE_OK;
}

/* An environment rewards its episodes itself: verifiers are used only if they are set. */
static tare_status drop_default_verifier(struct config *c, struct err *e)
{
    if (!*c->environment.plugin || strcmp(config_where(c, "verifier", "plugins"), "default") != 0) return TARE_OK;
    return assign_key(c, "verifier", "plugins", "", "default", e);
}

/* Resolves CONFIG: builtin:NAME, or the folder of a run. path: FS_PATH bytes. */
static tare_status find_file(const char **file, char *path, struct err *e)
{
    char folder[FS_PATH];
    if (*file && !strncmp(*file, "builtin:", 8)) {
        TRY(program_builtin_config(path, *file + 8, e));
        *file = path;
    }
    struct stat s = {0};
    if (*file && stat(*file, &s) && !fs_is_answer(errno)) FAIL(e, TARE_E_IO, "%s: %s", *file, strerror(errno));
    if (!S_ISDIR(s.st_mode)) return TARE_OK;
    TRY(fs_join(folder, "", *file, e));
    TRY(fs_join(path, folder, "config.ini", e));
    if (!fs_exists(path))
        FAIL(e, TARE_E_CONFIG, "%s: config.ini is missing, so this folder is not a run; name a configuration file", folder);
    *file = path;
    return TARE_OK;
}

static tare_status load_layers(struct config *c, const char *file, const char *const *overrides, int64_t n, struct faults *f,
                               struct err *e)
{
    char folder[FS_PATH] = ".", builtin[FS_PATH];
    TRY(find_file(&file, builtin, e));
    if (file) {
        TRY(arena_strdup(&c->arena, file, -1, (char **)(uintptr_t)&c->file, e));
        fs_dirname(folder, file);
    }
    TRY(arena_strdup(&c->arena, folder, -1, (char **)(uintptr_t)&c->dir, e));
    TRY(set_defaults(c, e));
    const char *recorded_dir = "";
    if (file) {
        struct loading l = {.c = c, .path = c->file, .faults = f};
        TRY(load_file(&l, e));
        recorded_dir = c->run.dir;
    }
    for (int64_t i = 0; i < n; i++) TRY(err_note_fault(f, load_override(c, overrides[i], e), e));
    TRY(find_plugins(c, e));
    TRY(drop_default_verifier(c, e));
    TRY(resolve_references(c, f, e));
    TRY(paths_resolve(c, recorded_dir, f, e));
    return config_check_relations(c, f, e);
}

tare_status config_load_collecting(struct config *c, const char *file, const char *const *overrides, int64_t n,
                                   struct faults *faults, struct err *e)
{
    *c = (struct config){0};
    arena_init(&c->arena, "configuration");
    const tare_status status = load_layers(c, file, overrides, n, faults, e);
    if (status) config_free(c);
    return status;
}

tare_status config_load(struct config *c, const char *file, const char *const *overrides, int64_t n, struct err *e)
{
    return config_load_collecting(c, file, overrides, n, NULL, e);
}

tare_status config_load_before(struct config *c, const char *file, const struct config *now, struct err *e)
{
    char folder[FS_PATH + 32];
    const char *const overrides[] = {folder};
    snprintf(folder, sizeof folder, "run.paths_from=%s", now->run.paths_from);
    return config_load(c, file, overrides, !strcmp(config_where(now, "run", "paths_from"), "command line"), e);
}

void config_free(struct config *c)
{
    arena_free(&c->arena);
    *c = (struct config){0};
}

tare_status config_set(struct config *c, const char *section, const char *key, const char *value, const char *where, struct err *e)
{
    TRY(assign_key(c, section, key, value, where, e));
    const struct config_key *k = find_key(section, key);
    if (k) return substitute_key(c, k, e);
    for (struct config_param *p = c->params; p; p = p->next)
        if (!strcmp(p->section, section) && !strcmp(p->key, key)) return substitute_text(c, &p->value, false, where, e);
    return TARE_OK;
}

const char *config_where(const struct config *c, const char *section, const char *key)
{
    const struct config_key *k = find_key(section, key);
    if (k && c->sources && c->sources[k - CONFIG_KEYS].where) return c->sources[k - CONFIG_KEYS].where;
    for (const struct config_param *p = c->params; p; p = p->next)
        if (!strcmp(p->section, section) && !strcmp(p->key, key)) return p->where;
    return "default";
}

const char *config_chosen(const struct config *c, const char *section, const char *key)
{
    const struct config_key *k = find_key(section, key);
    return k && k->type == KEY_CHOICE ? value_choice(c, k) : "";
}

void config_use_log_level(const struct config *c)
{
    static const enum log_level of[] = {
        [LEVEL_DEBUG] = LOG_DEBUG, [LEVEL_INFO] = LOG_INFO, [LEVEL_WARN] = LOG_WARN, [LEVEL_ERROR] = LOG_ERROR};
    log_set_default_level(of[c->log.level]);
}

bool config_evaluates(const struct config *c)
{
    return *c->data.eval && (c->eval.every || c->eval.before || c->eval.after);
}

int64_t config_eval_rows(const struct config *c, int64_t rows)
{
    const int64_t most = c->eval.rows && c->eval.rows < EVAL_ROWS_AT_ONCE ? c->eval.rows : EVAL_ROWS_AT_ONCE;
    return rows >= 0 && rows < most ? rows : most;
}

const char *config_kernels(const struct config *c)
{
    static const char *const tiles[] = {
        [KERNELS_AUTO] = "amx",          [KERNELS_REF] = "ref-amx",           [KERNELS_AVX2] = "amx-avx2",
        [KERNELS_AVX512] = "amx-avx512", [KERNELS_AVX512BF16] = "amx-avx512", [KERNELS_NEON] = "amx-neon"};
    if (c->model.bf16_sums == SUMS_TILES) return tiles[c->run.kernels];
    return c->run.kernels == KERNELS_AUTO ? NULL : config_chosen(c, "run", "kernels");
}

bool config_has_codebook(const struct config *c)
{
    return strcmp(c->codebook.plugin, "none") != 0;
}

bool config_codebook_settled(const struct config *c)
{
    return strcmp(c->codebook.plugin, "auto") != 0;
}
