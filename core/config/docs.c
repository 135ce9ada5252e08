#include "config/config.h"
#include "config/ini_file.h"
#include "config/keys.h"
#include "config/names.h"
#include "config/paths.h"
#include "config/recipes.h"
#include "config/value.h"

#include <stdio.h>
#include <string.h>

/* ---------------------------------------------------------------- dump */

/* Ends a line, with a comment if the value comes from run.as. */
static tare_status add_source(const struct config *c, const char *section, const char *key, struct str *out, struct err *e)
{
    if (!recipe_set(c, section, key)) return str_add(out, "\n", 1, e);
    return str_addf(out, e, " ; run.as = %s\n", config_chosen(c, "run", "as"));
}

static tare_status dump_keys(const struct config *c, const char *section, struct str *out, struct err *e)
{
    OWNED(str_free) struct str value = {0};
    TRY(str_addf(out, e, "%s[%s]\n", out->size ? "\n" : "", section));
    for (const struct config_key *k = CONFIG_KEYS; k->section; k++) {
        if (strcmp(k->section, section)) continue;
        str_clear(&value);
        bool printed;
        TRY(paths_print(c, k, &value, &printed, e));
        if (!printed) TRY(value_print(c, k, &value, e));
        TRY(str_addf(out, e, "%s = ", k->key));
        TRY(ini_quote(out, value.size ? value.data : "", e));
        TRY(add_source(c, section, k->key, out, e));
    }
    return TARE_OK;
}

static int param_order(const struct config_param *a, const struct config_param *b)
{
    const int order = strcmp(a->section, b->section);
    return order ? order : strcmp(a->key, b->key);
}

/* Finds the first parameter after `last` (NULL: the first of all) by section and key. Parameters
 * are unique. */
static const struct config_param *next_param(const struct config *c, const struct config_param *last)
{
    const struct config_param *found = NULL;
    for (const struct config_param *p = c->params; p; p = p->next)
        if ((!last || param_order(p, last) > 0) && (!found || param_order(p, found) < 0)) found = p;
    return found;
}

/* Sorted by name instead of in the order given, so that text that is printed, read and printed
 * again stays the same, whether a value came from run.as, a file or the command line. */
static tare_status dump_params(const struct config *c, struct str *out, struct err *e)
{
    for (const struct config_param *last = NULL, *p; (p = next_param(c, last)); last = p) {
        if (!last || strcmp(last->section, p->section)) TRY(str_addf(out, e, "\n[%s]\n", p->section));
        TRY(str_addf(out, e, "%s = ", p->key));
        TRY(ini_quote(out, p->value, e));
        TRY(add_source(c, p->section, p->key, out, e));
    }
    return TARE_OK;
}

tare_status config_dump(const struct config *c, struct str *out, struct err *e)
{
    str_clear(out);
    for (const struct config_section *s = CONFIG_SECTIONS; s->name; s++) TRY(dump_keys(c, s->name, out, e));
    return dump_params(c, out, e);
}

/* ---------------------------------------------------------------- documentation */

static const char INTRODUCTION[] =
    "A configuration is an INI file: `[section]`, `key = value`, comments after `#` at the start of a line or ` ;` anywhere. `include = other.ini` before the\n"
    "first section reads that file first (its path is relative to the including file); the command line comes last: `section.key=value`. In a file, a value in double\n"
    "quotes may hold `\\n`, `\\t`, `\\\"`, `\\\\` and `\\uXXXX`. `${run.seed}` and `${run.name}` stand for "
    "their values. An unknown key, a wrong type or a value out of\n"
    "range is refused before anything starts.\n"
    "\n"
    "A path is absolute, or relative to the working folder in which the run was started. The run records that folder in RUN/config.ini (run.paths_from), so\n"
    "--resume, eval, data show, plan, report, reproduce, audit, fork and every other command that reads RUN finds the same files from any folder. If a run was\n"
    "moved together with its files, so that they are missing at their recorded place, paths count from the folder at the new place. This holds for data, models,\n"
    "templates, plugins named by a file and parameters of plugins that are paths; verifier `command` runs in that folder. There are two exceptions: paths on the\n"
    "command line are relative to the present working folder, and in a file, include, run.plugins, run.paths_from and model.warm_start are relative to the\n"
    "folder of that file. `paths_from = .` under [run] makes all paths of a file relative to its folder.\n";

static const char FREE_SECTIONS[] =
    "`[estimator.NAME]`, `[verifier.NAME]`, `[codebook.NAME]` and so on hold the parameters of plugin NAME; `tare plugin info NAME` documents them.\n"
    "On the command line: `estimator.bv_blend.gamma=0.5`. `[sweep]` holds lists for `tare sweep`: `estimator.plugin = grpo, bv_blend`.\n";

static tare_status doc_fallback(const struct config_key *k, bool markdown, struct str *out, struct err *e)
{
    const char *text = k->fallback;
    const char *quote = markdown ? "`" : "";
    return *text ? str_addf(out, e, "%s%s%s", quote, text, quote) : str_add(out, "empty", -1, e);
}

static tare_status doc_key(const struct config_key *k, bool markdown, struct str *out, struct err *e)
{
    if (markdown) {
        TRY(str_addf(out, e, "| `%s` | ", k->key));
        TRY(doc_fallback(k, true, out, e));
        TRY(str_add(out, " | ", -1, e));
        TRY(value_allowed(k, out, e));
        TRY(str_add(out, " | ", -1, e));
        for (const char *p = k->doc; *p; p++) TRY(str_add(out, *p == '|' ? "\\|" : p, *p == '|' ? 2 : 1, e));
        return str_add(out, " |\n", -1, e);
    }
    TRY(str_addf(out, e, "%s.%s (default: ", k->section, k->key));
    TRY(doc_fallback(k, false, out, e));
    TRY(str_add(out, "; allowed: ", -1, e));
    TRY(value_allowed(k, out, e));
    return str_addf(out, e, ")\n    %s\n", k->doc);
}

tare_status config_docs(struct str *out, bool markdown, struct err *e)
{
    str_clear(out);
    if (markdown) TRY(str_add(out, "# Configuration\n\n<!-- Written by `tare config docs --md`. -->\n\n", -1, e));
    TRY(str_add(out, INTRODUCTION, -1, e));
    for (const struct config_section *s = CONFIG_SECTIONS; s->name; s++) {
        TRY(str_addf(out, e,
                     markdown ? "\n## [%s]\n\n%s\n\n| key | default | allowed | meaning |\n|---|---|---|---|\n" : "\n[%s] %s\n",
                     s->name, s->doc));
        for (const struct config_key *k = CONFIG_KEYS; k->section; k++)
            if (!strcmp(k->section, s->name)) TRY(doc_key(k, markdown, out, e));
    }
    return str_addf(out, e, "\n%s%s", markdown ? "## Sections of plugins, and [sweep]\n\n" : "", FREE_SECTIONS);
}

tare_status config_docs_of(const char *name, struct str *out, struct err *e)
{
    const char *const dot = strchr(name, '.');
    str_clear(out);
    for (const struct config_section *s = CONFIG_SECTIONS; s->name; s++)
        if (!strcmp(s->name, name)) TRY(str_addf(out, e, "[%s] %s\n", s->name, s->doc));
    for (const struct config_key *k = CONFIG_KEYS; k->section; k++) {
        const size_t n = strlen(k->section);
        const bool whole = !strncmp(name, k->section, n) && name[n] == '.' && !strcmp(name + n + 1, k->key);
        if (whole || !strcmp(name, k->section) || !strcmp(name, k->key)) TRY(doc_key(k, false, out, e));
    }
    TRY(names_foreign(name, out, e));
    if (out->size) return TARE_OK;
    if (!dot)
        return config_no_key(name, "tare config docs",
                             "unknown section or key (`tare plugin info NAME` documents those of a plugin)", e);
    char section[64];
    snprintf(section, sizeof section, "%.*s", (int)(dot - name), name);
    const char *const second = strchr(dot + 1, '.');
    if (second && second > dot + 1 && config_is_plugin_section(section))
        FAIL(e, TARE_E_CONFIG, "%s: a parameter of a plugin; `tare plugin info %.*s` documents it", name, (int)(second - dot - 1),
             dot + 1);
    return names_unknown_key(section, dot + 1, "tare config docs", e);
}
