/* Describes a plugin to its users: its parameters as text, as an INI section, as JSON or as a
 * Markdown table. */
#include "base/json.h"
#include "plugin/internal.h"

#include <string.h>

const char *plugin_about(const struct plugin *p, const char *key)
{
    for (const char *const *about = p->desc.about; about && about[0]; about += 2)
        if (!strcmp(about[0], key)) return about[1];
    return NULL;
}

static const char *type_name(int32_t type)
{
    static const char *const NAMES[] = {"", "bool", "int", "float", "string", "choice", "path"};
    return NAMES[type];
}

/* Writes the allowed values: "0 < gamma <= 1", "sem, n_eff, fixed", or "". */
static tare_status allowed_values(const tare_param *p, struct str *out, struct err *e)
{
    char range[160];
    str_clear(out);
    TRY(str_add(out, param_range(p, range, sizeof range), -1, e));
    if (p->type == TARE_PARAM_CHOICE)
        for (int64_t i = 0; p->choices[i]; i++) TRY(str_addf(out, e, "%s%s", i ? ", " : "", p->choices[i]));
    if (p->type == TARE_PARAM_BOOL) TRY(str_add(out, "true, false", -1, e));
    return TARE_OK;
}

static tare_status describe_text(const struct plugin *p, struct str *out, struct str *range, struct err *e)
{
    TRY(str_addf(out, e, "%s %s %s\n  %s\n", plugin_kind_name(p->desc.kind), p->desc.name, p->desc.version, p->desc.summary));
    for (const char *const *about = p->desc.about; about && about[0]; about += 2)
        TRY(str_addf(out, e, "  %s: %s\n", about[0], about[1]));
    TRY(str_addf(out, e, "  license: %s\n  file: %s (xxh3 %016llx, ABI %d.%u%s%s)\n",
                 p->desc.license ? p->desc.license : "not stated", p->path, (unsigned long long)p->hash, TARE_ABI_MAJOR,
                 p->minor_built, p->build ? ", " : "", p->build ? p->build : ""));
    for (uint32_t i = 0; i < p->desc.n_wants; i++)
        TRY(str_addf(out, e, "%s%s%s%s", i ? ", " : "  columns: ", p->wants[i].name,
                     p->wants[i].flags & TARE_WANT_OPTIONAL ? " (optional)" : "", i + 1 == p->desc.n_wants ? "\n" : ""));
    if (!p->desc.n_params) return str_add(out, "  no parameters\n", -1, e);
    TRY(str_add(out, "  parameters:\n", -1, e));
    for (uint32_t i = 0; i < p->desc.n_params; i++) {
        const tare_param *q = &p->params[i];
        TRY(allowed_values(q, range, e));
        TRY(str_addf(out, e, "    %-18s %s\n    %-18s %s%s%s%s%s%s%s\n", q->key, q->doc, "", type_name(q->type),
                     q->fallback ? ", default " : ", required", q->fallback ? (*q->fallback ? q->fallback : "empty") : "",
                     range->size ? "; " : "", range->size ? range->data : "", q->unit ? "; unit: " : "", q->unit ? q->unit : ""));
    }
    return TARE_OK;
}

static tare_status describe_ini(const struct plugin *p, struct str *out, struct str *range, struct err *e)
{
    TRY(str_addf(out, e, "; %s\n[%s.%s]\n", p->desc.summary, plugin_section_kind(p->desc.kind), p->desc.name));
    for (uint32_t i = 0; i < p->desc.n_params; i++) {
        const tare_param *q = &p->params[i];
        TRY(allowed_values(q, range, e));
        TRY(str_addf(out, e, "; %s%s%s%s\n%s%s = %s\n", q->doc, range->size ? " (" : "", range->size ? range->data : "",
                     range->size ? ")" : "", q->fallback ? "" : ";", q->key, q->fallback ? q->fallback : ""));
    }
    return TARE_OK;
}

/* Puts a backslash before what would end a table cell. */
static tare_status add_table_cell(struct str *out, const char *text, struct err *e)
{
    for (; *text; text++) TRY(str_addf(out, e, "%s%c", *text == '|' ? "\\" : "", *text));
    return TARE_OK;
}

static tare_status describe_markdown(const struct plugin *p, struct str *out, struct str *range, struct err *e)
{
    TRY(str_addf(out, e, "### %s `%s` %s\n\n%s", plugin_kind_name(p->desc.kind), p->desc.name, p->desc.version, p->desc.summary));
    if (plugin_about(p, "paper")) TRY(str_addf(out, e, " (%s)", plugin_about(p, "paper")));
    TRY(str_add(out, "\n", -1, e));
    if (!p->desc.n_params) return str_add(out, "\nNo parameters.\n", -1, e);
    TRY(str_addf(out, e, "\n| `[%s.%s]` | type | default | allowed | meaning |\n|---|---|---|---|---|\n",
                 plugin_section_kind(p->desc.kind), p->desc.name));
    for (uint32_t i = 0; i < p->desc.n_params; i++) {
        const tare_param *q = &p->params[i];
        TRY(allowed_values(q, range, e));
        TRY(str_addf(out, e, "| `%s` | %s | %s | ", q->key, type_name(q->type), q->fallback ? q->fallback : "required"));
        TRY(add_table_cell(out, range->data ? range->data : "", e));
        TRY(str_add(out, " | ", -1, e));
        TRY(add_table_cell(out, q->doc, e));
        TRY(str_add(out, " |\n", -1, e));
    }
    return TARE_OK;
}

static json_t *param_json(const tare_param *q)
{
    json_t *j = json_pack("{s:s, s:s, s:s?, s:s, s:s?, s:b, s:b, s:b}", "key", q->key, "type", type_name(q->type), "default",
                          q->fallback, "doc", q->doc, "unit", q->unit, "required", !!(q->flags & TARE_PARAM_REQUIRED), "log_scale",
                          !!(q->flags & TARE_PARAM_LOG_SCALE), "sweepable", !!(q->flags & TARE_PARAM_SWEEPABLE));
    if (q->flags & TARE_PARAM_MIN) json_object_set_new(j, "min", json_real(q->min));
    if (q->flags & TARE_PARAM_MAX) json_object_set_new(j, "max", json_real(q->max));
    if (q->type == TARE_PARAM_INT || q->type == TARE_PARAM_FLOAT) {
        json_object_set_new(j, "above_min", json_boolean(q->flags & TARE_PARAM_ABOVE_MIN));
        json_object_set_new(j, "below_max", json_boolean(q->flags & TARE_PARAM_BELOW_MAX));
    }
    if (q->type == TARE_PARAM_CHOICE) {
        json_t *choices = json_array();
        for (int64_t i = 0; q->choices[i]; i++) json_array_append_new(choices, json_string(q->choices[i]));
        json_object_set_new(j, "choices", choices);
    }
    return j;
}

static json_t *want_json(const tare_want *w)
{
    return json_pack("{s:s, s:s, s:s, s:b}", "name", w->name, "axis", column_axis_name(w->axis), "type", column_type_name(w->type),
                     "optional", !!(w->flags & TARE_WANT_OPTIONAL));
}

static tare_status describe_json(const struct plugin *p, struct str *out, struct err *e)
{
    char hash[24];
    snprintf(hash, sizeof hash, "%016llx", (unsigned long long)p->hash);
    json_t *params = json_array(), *wants = json_array(), *about = json_object();
    for (uint32_t i = 0; i < p->desc.n_wants; i++) json_array_append_new(wants, want_json(&p->wants[i]));
    for (const char *const *a = p->desc.about; a && a[0]; a += 2) json_object_set_new(about, a[0], json_string(a[1]));
    for (uint32_t i = 0; i < p->desc.n_params; i++) json_array_append_new(params, param_json(&p->params[i]));
    OWNED(json_decrefp)
    json_t *j = json_pack("{s:s, s:s, s:s, s:s, s:s?, s:o, s:s, s:s, s:i, s:i, s:s?, s:o, s:o}", "kind",
                          plugin_kind_name(p->desc.kind), "name", p->desc.name, "version", p->desc.version, "summary",
                          p->desc.summary, "license", p->desc.license, "about", about, "file", p->path, "xxh3", hash, "abi_major",
                          TARE_ABI_MAJOR, "abi_minor", (int)p->minor_built, "build", p->build, "wants", wants, "params", params);
    if (!j) FAIL(e, TARE_E_INVALID, "%s: a text of its descriptor is not valid UTF-8", p->path);
    TRY(json_print(j, out, e));
    return str_add(out, "\n", 1, e);
}

tare_status plugin_describe(const struct plugin *p, enum plugin_format format, struct str *out, struct err *e)
{
    OWNED(str_free) struct str range = {0};
    switch (format) {
    case PLUGIN_INI:
        TRY(describe_ini(p, out, &range, e));
        break;
    case PLUGIN_JSON:
        TRY(describe_json(p, out, e));
        break;
    case PLUGIN_MARKDOWN:
        TRY(describe_markdown(p, out, &range, e));
        break;
    default:
        TRY(describe_text(p, out, &range, e));
        break;
    }
    return TARE_OK;
}
