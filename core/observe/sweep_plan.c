/* sweep.json: {"name","metric","baseline","axes":[{"key","values":[...]}],
 *              "cells":[{"name","values":[... or null]}]} */
#include "observe/sweep_plan.h"

#include "base/fs.h"
#include "base/json.h"

#include <string.h>

static tare_status copy_text(struct arena *a, const char *text, const char **out, struct err *e)
{
    return arena_strdup(a, text, -1, (char **)(uintptr_t)out, e);
}

static tare_status read_axes(const json_t *list, const char *where, struct arena *a, struct sweep_plan *p, struct err *e)
{
    size_t i, j;
    const json_t *axis, *value;
    p->n_axes = (int64_t)json_array_size(list);
    TRY(arena_new(a, &p->axes, p->n_axes + 1, e));
    json_array_foreach(list, i, axis)
    {
        const json_t *values = json_object_get(axis, "values");
        struct sweep_axis *x = &p->axes[i];
        const char *key = json_text_or(axis, "key", NULL);
        if (!key || !json_is_array(values)) FAIL(e, TARE_E_CORRUPT, "%s: axis %zu: \"key\" or \"values\" is missing", where, i);
        TRY(copy_text(a, key, &x->key, e));
        x->n = (int64_t)json_array_size(values);
        TRY(arena_new(a, &x->values, x->n + 1, e));
        json_array_foreach(values, j, value)
        {
            if (!json_is_string(value)) FAIL(e, TARE_E_CORRUPT, "%s: axis %s: values must be strings", where, key);
            TRY(copy_text(a, json_string_value(value), &x->values[j], e));
        }
    }
    return TARE_OK;
}

static tare_status read_cells(const json_t *list, const char *where, struct arena *a, struct sweep_plan *p, struct err *e)
{
    size_t i, j;
    const json_t *cell, *value;
    p->n_cells = (int64_t)json_array_size(list);
    TRY(arena_new(a, &p->cells, p->n_cells + 1, e));
    json_array_foreach(list, i, cell)
    {
        const json_t *values = json_object_get(cell, "values");
        const char *name = json_text_or(cell, "name", NULL);
        if (!name || (int64_t)json_array_size(values) != p->n_axes)
            FAIL(e, TARE_E_CORRUPT, "%s: cell %zu must have a \"name\" and %lld \"values\"", where, i, (long long)p->n_axes);
        TRY(copy_text(a, name, &p->cells[i].name, e));
        TRY(arena_new(a, &p->cells[i].value, p->n_axes + 1, e));
        json_array_foreach(values, j, value) if (json_is_string(value))
            TRY(copy_text(a, json_string_value(value), &p->cells[i].value[j], e));
    }
    return TARE_OK;
}

tare_status sweep_plan_read(const char *dir, struct arena *a, struct sweep_plan *out, struct err *e)
{
    char path[FS_PATH];
    OWNED(json_decrefp) json_t *j = NULL;
    *out = (struct sweep_plan){0};
    TRY(fs_join(path, dir, "sweep.json", e));
    TRY(json_read_file(path, &j, e));
    TRY(copy_text(a, dir, &out->dir, e));
    TRY(copy_text(a, json_text_or(j, "name", ""), &out->name, e));
    TRY(copy_text(a, json_text_or(j, "metric", "eval/reward"), &out->metric, e));
    TRY(copy_text(a, json_text_or(j, "baseline", ""), &out->baseline, e));
    TRY(read_axes(json_object_get(j, "axes"), path, a, out, e));
    return read_cells(json_object_get(j, "cells"), path, a, out, e);
}

static json_t *plan_json(const struct sweep_plan *p)
{
    json_t *axes = json_array(), *cells = json_array();
    for (int64_t i = 0; i < p->n_axes; i++) {
        json_t *values = json_array();
        for (int64_t j = 0; j < p->axes[i].n; j++) json_array_append_new(values, json_string(p->axes[i].values[j]));
        json_array_append_new(axes, json_pack("{s:s, s:o}", "key", p->axes[i].key, "values", values));
    }
    for (int64_t i = 0; i < p->n_cells; i++) {
        json_t *values = json_array();
        for (int64_t j = 0; j < p->n_axes; j++)
            json_array_append_new(values, p->cells[i].value[j] ? json_string(p->cells[i].value[j]) : json_null());
        json_array_append_new(cells, json_pack("{s:s, s:o}", "name", p->cells[i].name, "values", values));
    }
    return json_pack("{s:s, s:s, s:s, s:o, s:o}", "name", p->name, "metric", p->metric, "baseline", p->baseline, "axes", axes,
                     "cells", cells);
}

tare_status sweep_plan_write(const struct sweep_plan *p, struct err *e)
{
    char path[FS_PATH];
    OWNED(str_free) struct str text = {0};
    TRY(fs_join(path, p->dir, "sweep.json", e));
    OWNED(json_decrefp) json_t *j = plan_json(p);
    if (!j) FAIL(e, TARE_E_INVALID, "%s: cannot write the plan as JSON", path);
    TRY(json_print(j, &text, e));
    TRY(str_add(&text, "\n", 1, e));
    return fs_write_atomic(path, text.data, text.size, e);
}

int64_t sweep_plan_axis(const struct sweep_plan *p, const char *key)
{
    int64_t found = -1;
    for (int64_t i = 0; i < p->n_axes; i++)
        if (!strcmp(p->axes[i].key, key)) return i;
    for (int64_t i = 0; i < p->n_axes; i++) {
        const char *dot = strrchr(p->axes[i].key, '.');
        if (!dot || strcmp(dot + 1, key)) continue;
        if (found >= 0) return -1;
        found = i;
    }
    return found;
}
