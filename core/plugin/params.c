/* Parses parameters into checked values in the order of the plugin's table, and writes a value as
 * text. */
#include "plugin/internal.h"

#include "base/fs.h"
#include "base/log.h"

#include <stdio.h>

#include <string.h>

/* Formats a bound of the range. Whole numbers are written without a fraction. */
static const char *format_bound(const tare_param *p, double x, char *buffer)
{
    snprintf(buffer, 32, p->type == TARE_PARAM_INT ? "%.0f" : "%.9g", x);
    return buffer;
}

const char *param_range(const tare_param *p, char *buffer, size_t n)
{
    char low[32], high[32];
    const bool has_low = p->flags & TARE_PARAM_MIN, has_high = p->flags & TARE_PARAM_MAX;
    buffer[0] = 0;
    if (has_low && has_high)
        snprintf(buffer, n, "%s %s %s %s %s", format_bound(p, p->min, low), p->flags & TARE_PARAM_ABOVE_MIN ? "<" : "<=", p->key,
                 p->flags & TARE_PARAM_BELOW_MAX ? "<" : "<=", format_bound(p, p->max, high));
    else if (has_low)
        snprintf(buffer, n, "%s %s %s", p->key, p->flags & TARE_PARAM_ABOVE_MIN ? ">" : ">=", format_bound(p, p->min, low));
    else if (has_high)
        snprintf(buffer, n, "%s %s %s", p->key, p->flags & TARE_PARAM_BELOW_MAX ? "<" : "<=", format_bound(p, p->max, high));
    return buffer;
}

static bool in_range(const tare_param *p, double x)
{
    const bool low = !(p->flags & TARE_PARAM_MIN) || (p->flags & TARE_PARAM_ABOVE_MIN ? x > p->min : x >= p->min);
    return low && (!(p->flags & TARE_PARAM_MAX) || (p->flags & TARE_PARAM_BELOW_MAX ? x < p->max : x <= p->max));
}

static tare_status parse_bool(const char *text, const char *what, int64_t *out, struct err *e)
{
    static const char *const YES[] = {"true", "yes", "on", "1"}, *const NO[] = {"false", "no", "off", "0"};
    for (int i = 0; i < 4; i++) {
        if (!strcmp(text, YES[i]) || !strcmp(text, NO[i])) {
            *out = !strcmp(text, YES[i]);
            return TARE_OK;
        }
    }
    FAIL(e, TARE_E_CONFIG, "%s: '%s' must be true or false", what, text);
}

static tare_status parse_choice(const tare_param *p, const char *text, const char *what, int64_t *out, struct err *e)
{
    char all[400] = "";
    for (int64_t i = 0; p->choices[i]; i++) {
        if (!strcmp(text, p->choices[i])) {
            *out = i;
            return TARE_OK;
        }
        const size_t used = strlen(all);
        snprintf(all + used, sizeof all - used, "%s%s", i ? ", " : "", p->choices[i]);
    }
    FAIL(e, TARE_E_CONFIG, "%s: '%s' must be one of %s", what, text, all);
}

static tare_status refuse_range(const tare_param *p, const char *text, const char *what, struct err *e)
{
    char range[160];
    FAIL(e, TARE_E_CONFIG, "%s: %s is out of range: must be %s", what, text, param_range(p, range, sizeof range));
}

tare_status param_parse(const tare_param *p, const char *text, const char *what, tare_value *out, struct err *e)
{
    struct err inner = {0};
    switch (p->type) {
    case TARE_PARAM_BOOL:
        return parse_bool(text, what, &out->i, e);
    case TARE_PARAM_CHOICE:
        return parse_choice(p, text, what, &out->i, e);
    case TARE_PARAM_INT:
        if (str_to_int(text, &out->i, &inner)) FAIL(e, TARE_E_CONFIG, "%s: '%s' must be a whole number", what, text);
        if (!in_range(p, (double)out->i)) return refuse_range(p, text, what, e);
        return TARE_OK;
    case TARE_PARAM_FLOAT:
        if (str_to_double(text, &out->f, &inner)) FAIL(e, TARE_E_CONFIG, "%s: '%s' must be a finite number", what, text);
        if (!in_range(p, out->f)) return refuse_range(p, text, what, e);
        return TARE_OK;
    default:
        out->s = text;
        return TARE_OK;
    }
}

int64_t plugin_find_param(const struct plugin *p, const char *key)
{
    for (uint32_t i = 0; i < p->desc.n_params; i++) {
        if (!strcmp(p->params[i].key, key)) return i;
        for (const char *const *old = p->params[i].old_keys; old && *old; old++)
            if (!strcmp(*old, key)) return i;
    }
    return -1;
}

static tare_status unknown_key(const struct plugin *p, const struct config_param *s, struct err *e)
{
    const char *near = NULL;
    int64_t best = INT64_MAX;
    for (uint32_t i = 0; i < p->desc.n_params; i++) {
        const int64_t distance = str_distance(p->params[i].key, s->key);
        if (distance < best) {
            best = distance;
            near = p->params[i].key;
        }
    }
    if (near && best <= 2 + (int64_t)strlen(s->key) / 4)
        FAIL(e, TARE_E_CONFIG, "%s: [%s] %s: unknown key; did you mean %s?", s->where, s->section, s->key, near);
    const char *ours;
    char all[600] = "", where[FS_PATH];
    snprintf(where, sizeof where, "%.3000s: [%s] %s: unknown key", s->where, s->section, s->key);
    if (config_is_foreign(s->key, &ours)) return config_hint(s->key, where, "", e);
    for (uint32_t i = 0; i < p->desc.n_params; i++) {
        const size_t used = strlen(all);
        snprintf(all + used, sizeof all - used, "%s%s", i ? ", " : "", p->params[i].key);
    }
    FAIL(e, TARE_E_CONFIG, "%s: [%s] %s: unknown key; %s%s", s->where, s->section, s->key,
         p->desc.n_params ? "the plugin has " : "the plugin has no parameters", all);
}

/* Notes in the log that a key is an earlier name, or deprecated. */
static void note_key(const tare_param *p, const struct config_param *s)
{
    if (strcmp(p->key, s->key) != 0) log_info("%s: [%s] %s is now called %s", s->where, s->section, s->key, p->key);
    if (p->flags & TARE_PARAM_DEPRECATED) log_warn("%s: [%s] %s is deprecated: %s", s->where, s->section, s->key, p->doc);
}

static void section_name(const struct plugin *p, const char *name, char section[128])
{
    snprintf(section, 128, "%s.%s", plugin_section_kind(p->desc.kind), name);
}

tare_status plugin_params(const struct plugin *p, const struct config_param *settings, struct arena *a, const tare_value **out,
                          struct err *e)
{
    return plugin_params_as(p, p->desc.name, settings, a, out, e);
}

/* Writes the text of a parameter from a file whose paths count from s->folder: a path under it, or
 * the command of verifier `command`, which then runs in it. */
static tare_status text_in_folder(const struct plugin *p, const tare_param *param, const struct config_param *s, struct arena *a,
                                  const char **text, struct err *e)
{
    char path[FS_PATH], word[STR_SHELL];
    OWNED(str_free) struct str command = {0};
    if (!s || !s->folder || !**text) return TARE_OK;
    if (param->type == TARE_PARAM_PATH) {
        TRY(fs_join(path, s->folder, *text, e));
        return arena_strdup(a, path, -1, (char **)(uintptr_t)text, e);
    }
    if (!plugin_is_command(p, param)) return TARE_OK;
    TRY(str_addf(&command, e, "cd %s && %s", str_shell(word, s->folder), *text));
    return arena_strdup(a, command.data, command.size, (char **)(uintptr_t)text, e);
}

bool plugin_is_command(const struct plugin *p, const tare_param *param)
{
    return p->desc.kind == TARE_KIND_VERIFIER && !strcmp(p->desc.name, "command") && !strcmp(param->key, "command");
}

tare_status plugin_params_as(const struct plugin *p, const char *name, const struct config_param *settings, struct arena *a,
                             const tare_value **out, struct err *e)
{
    const int64_t n = p->desc.n_params;
    const struct config_param **given;
    tare_value *values;
    char section[128], what[600];
    section_name(p, name, section);
    TRY(arena_new(a, &values, n, e));
    TRY(arena_new(a, &given, n, e));
    for (const struct config_param *s = settings; s; s = s->next) {
        if (strcmp(s->section, section)) continue;
        const int64_t i = plugin_find_param(p, s->key);
        if (i < 0) return unknown_key(p, s, e);
        note_key(&p->params[i], s);
        if (!given[i]) given[i] = s;
    }
    for (int64_t i = 0; i < n; i++) {
        const tare_param *param = &p->params[i];
        const char *text = given[i] ? given[i]->value : param->fallback;
        if (!text) FAIL(e, TARE_E_CONFIG, "[%s] %s is missing and has no default: %s", section, param->key, param->doc);
        snprintf(what, sizeof what, "%s: [%s] %s", given[i] ? given[i]->where : "default", section, param->key);
        TRY(param_parse(param, text, what, &values[i], e));
        if (param->type != TARE_PARAM_STRING && param->type != TARE_PARAM_PATH) continue;
        TRY(text_in_folder(p, param, given[i], a, &text, e));
        TRY(arena_strdup(a, text, -1, (char **)(uintptr_t)&values[i].s, e));
    }
    *out = values;
    return TARE_OK;
}

tare_status plugin_check_params(const struct plugin *p, const struct config_param *settings, struct faults *faults, struct err *e)
{
    char section[128], what[600];
    tare_value value;
    section_name(p, p->desc.name, section);
    for (const struct config_param *s = settings; s; s = s->next) {
        if (strcmp(s->section, section)) continue;
        const int64_t i = plugin_find_param(p, s->key);
        snprintf(what, sizeof what, "%s: [%s] %s", s->where, section, s->key);
        const tare_status bad = i < 0 ? unknown_key(p, s, e) : param_parse(&p->params[i], s->value, what, &value, e);
        TRY(err_note_fault(faults, bad, e));
    }
    return TARE_OK;
}

tare_status plugin_settings(const struct plugin *p, struct plugin_words assignments, const struct config_param *next,
                            struct arena *a, const struct config_param **out, struct err *e)
{
    char section[128], *owned;
    section_name(p, p->desc.name, section);
    TRY(arena_strdup(a, section, -1, &owned, e));
    *out = next;
    for (int64_t i = 0; i < assignments.n; i++) {
        const char *word = assignments.at[i], *equals = strchr(word, '=');
        if (!equals || equals == word) FAIL(e, TARE_E_CONFIG, "command line: '%s': expected key=value", word);
        struct config_param *s;
        char *key;
        TRY(arena_new(a, &s, 1, e));
        TRY(arena_strdup(a, word, equals - word, &key, e));
        char *value;
        TRY(arena_strdup(a, equals + 1, -1, &value, e));
        *s = (struct config_param){
            .section = owned, .key = key, .value = value, .where = "command line", .next = (struct config_param *)(uintptr_t)*out};
        *out = s; /* in front, so that the last assignment is found first */
    }
    return TARE_OK;
}

tare_status plugin_value_text(const struct plugin *p, int64_t i, tare_value value, struct str *out, struct err *e)
{
    const tare_param *param = &p->params[i];
    char number[32];
    switch (param->type) {
    case TARE_PARAM_BOOL:
        return str_add(out, value.i ? "true" : "false", -1, e);
    case TARE_PARAM_INT:
        return str_addf(out, e, "%lld", (long long)value.i);
    case TARE_PARAM_FLOAT:
        return str_add(out, str_from_double(number, value.f), -1, e);
    case TARE_PARAM_CHOICE:
        return str_add(out, param->choices[value.i], -1, e);
    default:
        return str_add(out, value.s, -1, e);
    }
}
