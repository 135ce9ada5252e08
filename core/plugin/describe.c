/* Describes a plugin to its users: its parameters as text, as an INI section, as JSON or as a
 * Markdown table. */
#include "base/json.h"
#include "config/ini_file.h"
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

/* Visits the parameters in the order of documents: those without a group, the groups, those for
 * experts. heading: of the first of a group; else NULL. */
typedef tare_status (*param_visit)(const tare_param *q, const char *heading, struct str *out, struct err *e);

static bool is_expert(const tare_param *q)
{
    return q->flags & TARE_PARAM_EXPERT;
}

static bool same_group(const char *a, const char *b)
{
    return a && b ? !strcmp(a, b) : a == b;
}

static tare_status visit_group(const struct plugin *p, const char *group, param_visit visit, struct str *out, struct err *e)
{
    const char *heading = group;
    for (uint32_t i = 0; i < p->desc.n_params; i++) {
        if (is_expert(&p->params[i]) || !same_group(p->params[i].group, group)) continue;
        TRY(visit(&p->params[i], heading, out, e));
        heading = NULL;
    }
    return TARE_OK;
}

static tare_status visit_params(const struct plugin *p, param_visit visit, struct str *out, struct err *e)
{
    TRY(visit_group(p, NULL, visit, out, e));
    for (uint32_t i = 0; i < p->desc.n_params; i++) {
        const char *group = p->params[i].group;
        bool first = group && !is_expert(&p->params[i]);
        for (uint32_t j = 0; j < i && first; j++) first = is_expert(&p->params[j]) || !same_group(p->params[j].group, group);
        if (first) TRY(visit_group(p, group, visit, out, e));
    }
    const char *heading = "for experts";
    for (uint32_t i = 0; i < p->desc.n_params; i++) {
        if (!is_expert(&p->params[i])) continue;
        TRY(visit(&p->params[i], heading, out, e));
        heading = NULL;
    }
    return TARE_OK;
}

/* Writes what a user must know beside type and range: a secret, earlier names, the choices. */
static tare_status add_remarks(const tare_param *q, const char *before, struct str *out, struct err *e)
{
    if (q->flags & TARE_PARAM_SECRET) TRY(str_addf(out, e, "%ssecret: the name of an environment variable", before));
    if (q->flags & TARE_PARAM_DEPRECATED) TRY(str_addf(out, e, "%sdeprecated", before));
    for (int64_t k = 0; q->old_keys && q->old_keys[k]; k++)
        TRY(str_addf(out, e, "%s%s%s", k ? ", " : before, k ? "" : "earlier: ", q->old_keys[k]));
    for (int64_t k = 0; q->type == TARE_PARAM_CHOICE && q->choice_docs && q->choices[k]; k++)
        TRY(str_addf(out, e, "%s%s: %s", before, q->choices[k], q->choice_docs[k]));
    return TARE_OK;
}

static tare_status param_text(const tare_param *q, const char *heading, struct str *out, struct err *e)
{
    OWNED(str_free) struct str range = {0};
    TRY(allowed_values(q, &range, e));
    if (heading) TRY(str_addf(out, e, "  %s:\n", heading));
    TRY(str_addf(out, e, "    %-18s %s\n    %-18s %s%s%s%s%s%s%s", q->key, q->doc, "", type_name(q->type),
                 q->fallback ? ", default " : ", required", q->fallback ? (*q->fallback ? q->fallback : "empty") : "",
                 range.size ? "; " : "", range.size ? range.data : "", q->unit ? "; unit: " : "", q->unit ? q->unit : ""));
    TRY(add_remarks(q, "\n                       ", out, e));
    return str_add(out, "\n", 1, e);
}

static tare_status describe_text(const struct plugin *p, struct str *out, struct err *e)
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
    return visit_params(p, param_text, out, e);
}

static tare_status param_ini(const tare_param *q, const char *heading, struct str *out, struct err *e)
{
    OWNED(str_free) struct str range = {0};
    TRY(allowed_values(q, &range, e));
    if (heading) TRY(str_addf(out, e, "; %s:\n", heading));
    TRY(str_addf(out, e, "; %s%s%s%s", q->doc, range.size ? " (" : "", range.size ? range.data : "", range.size ? ")" : ""));
    TRY(add_remarks(q, "\n;   ", out, e));
    TRY(str_addf(out, e, "\n%s%s = ", q->fallback ? "" : ";", q->key));
    TRY(ini_quote(out, q->fallback ? q->fallback : "", e));
    return str_add(out, "\n", 1, e);
}

static tare_status describe_ini(const struct plugin *p, struct str *out, struct err *e)
{
    TRY(str_addf(out, e, "; %s\n[%s.%s]\n", p->desc.summary, plugin_section_kind(p->desc.kind), p->desc.name));
    return visit_params(p, param_ini, out, e);
}

/* Puts a backslash before what would end a table cell. */
static tare_status add_table_cell(struct str *out, const char *text, struct err *e)
{
    for (; *text; text++) TRY(str_addf(out, e, "%s%c", *text == '|' ? "\\" : "", *text));
    return TARE_OK;
}

static tare_status param_markdown(const tare_param *q, const char *heading, struct str *out, struct err *e)
{
    OWNED(str_free) struct str range = {0}, remarks = {0};
    TRY(allowed_values(q, &range, e));
    TRY(add_remarks(q, "; ", &remarks, e));
    if (heading) TRY(str_addf(out, e, "| **%s** | | | | |\n", heading));
    TRY(str_addf(out, e, "| `%s` | %s | ", q->key, type_name(q->type)));
    TRY(add_table_cell(out, q->fallback ? q->fallback : "required", e));
    TRY(str_add(out, " | ", -1, e));
    TRY(add_table_cell(out, range.data ? range.data : "", e));
    TRY(str_add(out, " | ", -1, e));
    TRY(add_table_cell(out, q->doc, e));
    if (remarks.size) TRY(add_table_cell(out, remarks.data, e));
    return str_add(out, " |\n", -1, e);
}

static tare_status describe_markdown(const struct plugin *p, struct str *out, struct err *e)
{
    TRY(str_addf(out, e, "### %s `%s` %s\n\n%s", plugin_kind_name(p->desc.kind), p->desc.name, p->desc.version, p->desc.summary));
    if (plugin_about(p, "paper")) TRY(str_addf(out, e, " (%s)", plugin_about(p, "paper")));
    TRY(str_add(out, "\n", -1, e));
    if (!p->desc.n_params) return str_add(out, "\nNo parameters.\n", -1, e);
    TRY(str_addf(out, e, "\n| `[%s.%s]` | type | default | allowed | meaning |\n|---|---|---|---|---|\n",
                 plugin_section_kind(p->desc.kind), p->desc.name));
    return visit_params(p, param_markdown, out, e);
}

static json_t *texts_json(const char *const *texts)
{
    json_t *list = json_array();
    for (int64_t i = 0; texts && texts[i]; i++) json_array_append_new(list, json_string(texts[i]));
    return list;
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
    if (q->type == TARE_PARAM_CHOICE) json_object_set_new(j, "choices", texts_json(q->choices));
    if (q->type == TARE_PARAM_CHOICE && q->choice_docs) {
        json_t *docs = json_array();
        for (int64_t i = 0; q->choices[i]; i++) json_array_append_new(docs, json_string(q->choice_docs[i]));
        json_object_set_new(j, "choice_docs", docs);
    }
    if (q->group) json_object_set_new(j, "group", json_string(q->group));
    if (q->old_keys) json_object_set_new(j, "old_keys", texts_json(q->old_keys));
    if (q->flags & TARE_PARAM_SECRET) json_object_set_new(j, "secret", json_true());
    if (q->flags & TARE_PARAM_DEPRECATED) json_object_set_new(j, "deprecated", json_true());
    if (q->flags & TARE_PARAM_EXPERT) json_object_set_new(j, "expert", json_true());
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
    switch (format) {
    case PLUGIN_INI:
        TRY(describe_ini(p, out, e));
        break;
    case PLUGIN_JSON:
        TRY(describe_json(p, out, e));
        break;
    case PLUGIN_MARKDOWN:
        TRY(describe_markdown(p, out, e));
        break;
    default:
        TRY(describe_text(p, out, e));
        break;
    }
    return TARE_OK;
}
