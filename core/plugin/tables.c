#include "plugin/tables.h"

#include "base/str.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

/* The sizes that rows have in every plugin of major 1, as released with 1.0. */
enum {
    MIN_PARAM = offsetof(tare_param, old_keys) + sizeof(void *),
    MIN_WANT = offsetof(tare_want, width) + sizeof(uint32_t),
    PARAM_FLAGS = TARE_PARAM_REQUIRED | TARE_PARAM_MIN | TARE_PARAM_MAX | TARE_PARAM_ABOVE_MIN | TARE_PARAM_BELOW_MAX |
                  TARE_PARAM_LOG_SCALE | TARE_PARAM_SWEEPABLE | TARE_PARAM_LOCKED_ON_RESUME | TARE_PARAM_SECRET |
                  TARE_PARAM_DEPRECATED | TARE_PARAM_EXPERT | TARE_PARAM_RUN_FILE
};

static size_t smaller(size_t a, size_t b)
{
    return a < b ? a : b;
}

tare_status plugin_check_line(const struct plugin_subject *s, const char *what, const char *text, struct err *e)
{
    if (!text) return TARE_OK;
    if (str_utf8_error(text, (int64_t)strlen(text)))
        FAIL(e, TARE_E_PLUGIN, "%s: %s: %s is not valid UTF-8", s->path, s->name, what);
    for (const unsigned char *c = (const unsigned char *)text; *c; c++)
        if (*c < ' ' || *c == 0x7f)
            FAIL(e, TARE_E_PLUGIN, "%s: %s: %s has the control character 0x%02x; it must be one line of text", s->path, s->name,
                 what, *c);
    return TARE_OK;
}

/* ---------------------------------------------------------------- parameters */

/* Checks the texts that documents, INI sections and forms show. */
static tare_status check_param_texts(const struct plugin_subject *s, const tare_param *p, struct err *e)
{
    char what[160];
    snprintf(what, sizeof what, "the documentation of parameter %s", p->key);
    TRY(plugin_check_line(s, what, p->doc, e));
    if (p->fallback && str_utf8_error(p->fallback, (int64_t)strlen(p->fallback)))
        FAIL(e, TARE_E_PLUGIN, "%s: %s: the default of parameter %s is not valid UTF-8", s->path, s->name, p->key);
    snprintf(what, sizeof what, "the unit of parameter %s", p->key);
    TRY(plugin_check_line(s, what, p->unit, e));
    snprintf(what, sizeof what, "the group of parameter %s", p->key);
    return plugin_check_line(s, what, p->group, e);
}

static tare_status check_choices(const struct plugin_subject *s, const tare_param *p, struct err *e)
{
    char what[160];
    snprintf(what, sizeof what, "a choice of parameter %s", p->key);
    for (int64_t i = 0; p->type == TARE_PARAM_CHOICE && p->choices[i]; i++) {
        if (i == TARE_LIMIT_CHOICES)
            FAIL(e, TARE_E_PLUGIN, "%s: %s: parameter %s has more than %d choices; is the NULL at the end missing?", s->path,
                 s->name, p->key, TARE_LIMIT_CHOICES);
        TRY(plugin_check_line(s, what, p->choices[i], e));
        for (int64_t j = 0; j < i; j++)
            if (!strcmp(p->choices[i], p->choices[j]))
                FAIL(e, TARE_E_PLUGIN, "%s: %s: parameter %s has the choice '%s' twice", s->path, s->name, p->key, p->choices[i]);
        if (!p->choice_docs) continue;
        if (!p->choice_docs[i])
            FAIL(e, TARE_E_PLUGIN, "%s: %s: parameter %s has choice_docs, but none for the choice '%s'", s->path, s->name, p->key,
                 p->choices[i]);
        TRY(plugin_check_line(s, what, p->choice_docs[i], e));
    }
    return TARE_OK;
}

/* True if parameter i has a key, or an earlier name before the first n. */
static bool has_key(const tare_param *p, const char *key, int64_t n)
{
    if (!strcmp(p->key, key)) return true;
    for (int64_t k = 0; p->old_keys && p->old_keys[k] && k < n; k++)
        if (!strcmp(p->old_keys[k], key)) return true;
    return false;
}

/* Checks that a key of the user names one parameter, whatever its age. Runs when all rows are
 * copied. */
static tare_status check_old_keys(const struct plugin_subject *s, const tare_param *all, uint32_t n, struct err *e)
{
    for (uint32_t i = 0; i < n; i++)
        for (int64_t k = 0; all[i].old_keys && all[i].old_keys[k]; k++) {
            const char *old = all[i].old_keys[k];
            if (k == TARE_LIMIT_OLD_KEYS)
                FAIL(e, TARE_E_PLUGIN, "%s: %s: parameter %s has more than %d old_keys; is the NULL at the end missing?", s->path,
                     s->name, all[i].key, TARE_LIMIT_OLD_KEYS);
            if (!plugin_name_ok(old))
                FAIL(e, TARE_E_PLUGIN, "%s: %s: parameter %s has an invalid name in old_keys: must be [a-z][a-z0-9_]*", s->path,
                     s->name, all[i].key);
            for (uint32_t j = 0; j <= i; j++)
                if (has_key(&all[j], old, j == i ? k : TARE_LIMIT_OLD_KEYS))
                    FAIL(e, TARE_E_PLUGIN, "%s: %s: parameter %s lists %s in old_keys, which is also a name of parameter %s",
                         s->path, s->name, all[i].key, old, all[j].key);
            for (uint32_t j = i + 1; j < n; j++)
                if (!strcmp(all[j].key, old))
                    FAIL(e, TARE_E_PLUGIN, "%s: %s: parameter %s lists %s in old_keys, which is also a name of parameter %s",
                         s->path, s->name, all[i].key, old, all[j].key);
        }
    return TARE_OK;
}

/* Checks that the flags of a parameter fit together and its type. */
static tare_status check_param_flags(const struct plugin_subject *s, const tare_param *p, struct err *e)
{
    const bool number = p->type == TARE_PARAM_INT || p->type == TARE_PARAM_FLOAT;
    const uint32_t bounds = TARE_PARAM_MIN | TARE_PARAM_MAX | TARE_PARAM_ABOVE_MIN | TARE_PARAM_BELOW_MAX | TARE_PARAM_LOG_SCALE;
    if (p->flags & ~(uint32_t)PARAM_FLAGS)
        FAIL(e, TARE_E_PLUGIN,
             "%s: %s: parameter %s has the unknown flags 0x%x (this program knows 0x%x); clear them, or update tare", s->path,
             s->name, p->key, p->flags & ~(uint32_t)PARAM_FLAGS, (unsigned)PARAM_FLAGS);
    if (!number && (p->flags & bounds))
        FAIL(e, TARE_E_PLUGIN, "%s: %s: parameter %s has bounds, which only TARE_PARAM_INT and TARE_PARAM_FLOAT may have", s->path,
             s->name, p->key);
    if ((p->flags & TARE_PARAM_ABOVE_MIN && !(p->flags & TARE_PARAM_MIN)) ||
        (p->flags & TARE_PARAM_BELOW_MAX && !(p->flags & TARE_PARAM_MAX)))
        FAIL(e, TARE_E_PLUGIN, "%s: %s: parameter %s: ABOVE_MIN needs TARE_PARAM_MIN, and BELOW_MAX needs TARE_PARAM_MAX", s->path,
             s->name, p->key);
    const bool low = p->flags & TARE_PARAM_MIN, high = p->flags & TARE_PARAM_MAX;
    if ((low && !isfinite(p->min)) || (high && !isfinite(p->max)) || (low && high && !(p->min <= p->max)))
        FAIL(e, TARE_E_PLUGIN, "%s: %s: parameter %s has the range %g to %g", s->path, s->name, p->key, p->min, p->max);
    if (p->flags & TARE_PARAM_SECRET && (p->type != TARE_PARAM_STRING || p->flags & TARE_PARAM_SWEEPABLE))
        FAIL(e, TARE_E_PLUGIN, "%s: %s: parameter %s is secret: it must be a TARE_PARAM_STRING and not be sweepable", s->path,
             s->name, p->key);
    if (p->flags & TARE_PARAM_RUN_FILE && p->type != TARE_PARAM_PATH)
        FAIL(e, TARE_E_PLUGIN, "%s: %s: parameter %s has TARE_PARAM_RUN_FILE, which only a TARE_PARAM_PATH may have", s->path,
             s->name, p->key);
    return TARE_OK;
}

static tare_status check_param(const struct plugin_subject *s, const tare_param *params, uint32_t i, struct err *e)
{
    const tare_param *p = &params[i];
    if (!plugin_name_ok(p->key))
        FAIL(e, TARE_E_PLUGIN, "%s: %s: invalid key of parameter %u: must be [a-z][a-z0-9_]*", s->path, s->name, i + 1);
    for (uint32_t j = 0; j < i; j++)
        if (!strcmp(params[j].key, p->key)) FAIL(e, TARE_E_PLUGIN, "%s: %s: two parameters are named %s", s->path, s->name, p->key);
    if (p->type < TARE_PARAM_BOOL || p->type > TARE_PARAM_PATH)
        FAIL(e, TARE_E_PLUGIN, "%s: %s: parameter %s has the unknown type %d", s->path, s->name, p->key, p->type);
    if (!p->doc || !*p->doc) FAIL(e, TARE_E_PLUGIN, "%s: %s: parameter %s has no documentation", s->path, s->name, p->key);
    if (p->type == TARE_PARAM_CHOICE && (!p->choices || !p->choices[0]))
        FAIL(e, TARE_E_PLUGIN, "%s: %s: parameter %s is a choice without choices", s->path, s->name, p->key);
    TRY(check_param_texts(s, p, e));
    TRY(check_choices(s, p, e));
    TRY(check_param_flags(s, p, e));
    if (!p->fallback != !!(p->flags & TARE_PARAM_REQUIRED))
        FAIL(e, TARE_E_PLUGIN, "%s: %s: parameter %s %s", s->path, s->name, p->key,
             p->fallback ? "is required and has a default" : "has no default and is not marked TARE_PARAM_REQUIRED");
    if (!p->fallback) return TARE_OK;
    tare_value value;
    char what[400];
    snprintf(what, sizeof what, "%s: %s: the default of parameter %s", s->path, s->name, p->key);
    if (param_parse(p, p->fallback, what, &value, e)) return err_frame(e, TARE_E_PLUGIN, __FILE__, __LINE__);
    return TARE_OK;
}

tare_status plugin_copy_params(const struct plugin_subject *s, struct plugin *p, struct err *e)
{
    const tare_descriptor *d = &p->desc;
    tare_param *copy;
    if (!d->n_params) return TARE_OK;
    if (d->n_params > TARE_LIMIT_PARAMS)
        FAIL(e, TARE_E_PLUGIN, "%s: %s: %u parameters; at most %d", s->path, s->name, d->n_params, TARE_LIMIT_PARAMS);
    if (!d->params) FAIL(e, TARE_E_PLUGIN, "%s: %s: %u parameters and no table", s->path, s->name, d->n_params);
    if (d->param_size < MIN_PARAM || d->param_size > PLUGIN_MOST_STRUCT)
        FAIL(e, TARE_E_PLUGIN, "%s: %s: param_size is %u; set it to sizeof(tare_param)", s->path, s->name, d->param_size);
    TRY(mem_new((int64_t)d->n_params * (int64_t)sizeof *copy, (void **)&copy, e));
    p->params = copy;
    for (uint32_t i = 0; i < d->n_params; i++) {
        memcpy(&copy[i], (const char *)d->params + (size_t)i * d->param_size, smaller(d->param_size, sizeof *copy));
        TRY(check_param(s, copy, i, e));
    }
    return check_old_keys(s, copy, d->n_params, e);
}

/* ---------------------------------------------------------------- wants */

/* Says why this program has no such column: another axis or type, or an unknown name. */
static tare_status refuse_want(const struct plugin_subject *s, const struct plugin *p, const tare_want *w, struct err *e)
{
    for (int id = COLUMN_ROW_FIELD + 1; id < COLUMN_IDS; id++) {
        const struct column_info *c = &COLUMNS[id];
        if (c->kind == p->desc.kind && !strcmp(c->name, w->name))
            FAIL(
                e, TARE_E_PLUGIN,
                "%s: %s: it wants the column \"%s\" as %s on the axis %s with width %u; this program has it as %s on the axis %s%s",
                s->path, s->name, w->name, column_type_name(w->type), column_axis_name(w->axis), w->width,
                column_type_name(c->type), column_axis_name(c->axis), c->width ? " with width 1" : " (width 0: one a component)");
    }
    if (!strncmp(w->name, "row.", 4))
        FAIL(e, TARE_E_PLUGIN, "%s: %s: it wants the field \"%s\", which must be f64 with width 1 on the axis group%s", s->path,
             s->name, w->name, p->desc.kind == TARE_KIND_CURRICULUM ? " or row" : "");
    FAIL(e, TARE_E_UNSUPPORTED,
         "%s: %s: it wants the column \"%s\", which this program does not have (`tare plugin columns` lists them); update tare",
         s->path, s->name, w->name);
}

/* "row.$P" names the field by the value of the parameter P. */
static tare_status check_row_key(const struct plugin_subject *s, const struct plugin *p, const tare_want *w, struct err *e)
{
    const char *key = w->name + strlen("row.");
    if (*key != '$') return TARE_OK;
    for (uint32_t i = 0; i < p->desc.n_params; i++)
        if (!strcmp(p->params[i].key, key + 1) && p->params[i].type == TARE_PARAM_STRING &&
            !(p->params[i].flags & TARE_PARAM_SECRET))
            return TARE_OK;
    FAIL(e, TARE_E_PLUGIN,
         "%s: %s: it wants the field \"%s\", but has no parameter %s of the type TARE_PARAM_STRING that is not secret", s->path,
         s->name, w->name, key + 1);
}

static tare_status check_want(const struct plugin_subject *s, const struct plugin *p, const tare_want *w, int16_t *column,
                              struct err *e)
{
    if (!w->name || !*w->name) FAIL(e, TARE_E_PLUGIN, "%s: %s: a want has no name", s->path, s->name);
    TRY(plugin_check_line(s, "the name of a want", w->name, e));
    if (w->flags & ~(uint32_t)TARE_WANT_OPTIONAL)
        FAIL(e, TARE_E_PLUGIN, "%s: %s: the want \"%s\" has the unknown flags 0x%x; clear them, or update tare", s->path, s->name,
             w->name, w->flags & ~(uint32_t)TARE_WANT_OPTIONAL);
    if (w->axis < TARE_AXIS_ONE || w->axis > TARE_AXIS_TOKEN || !column_type_size(w->type)) {
        if (w->flags & TARE_WANT_OPTIONAL) return *column = COLUMN_ABSENT, TARE_OK;
        FAIL(e, TARE_E_PLUGIN, "%s: %s: the want \"%s\" has the unknown axis %d or type %d", s->path, s->name, w->name, w->axis,
             w->type);
    }
    const enum column_id id = column_find(p->desc.kind, w->name, w->axis);
    const bool fits = id != COLUMN_ABSENT && COLUMNS[id].type == w->type &&
                      (w->width == (uint32_t)COLUMNS[id].width || !w->width || !COLUMNS[id].width);
    *column = (int16_t)id;
    if (fits) return id == COLUMN_ROW_FIELD ? check_row_key(s, p, w, e) : TARE_OK;
    if (id == COLUMN_ABSENT && w->flags & TARE_WANT_OPTIONAL) return TARE_OK;
    return refuse_want(s, p, w, e);
}

tare_status plugin_copy_wants(const struct plugin_subject *s, struct plugin *p, struct err *e)
{
    const tare_descriptor *d = &p->desc;
    tare_want *copy;
    int16_t *column;
    if (!d->n_wants) return TARE_OK;
    if (d->n_wants > TARE_LIMIT_WANTS)
        FAIL(e, TARE_E_PLUGIN, "%s: %s: %u wants; at most %d", s->path, s->name, d->n_wants, TARE_LIMIT_WANTS);
    if (!d->wants) FAIL(e, TARE_E_PLUGIN, "%s: %s: %u wants and no table", s->path, s->name, d->n_wants);
    if (d->want_size < MIN_WANT || d->want_size > PLUGIN_MOST_STRUCT)
        FAIL(e, TARE_E_PLUGIN, "%s: %s: want_size is %u; set it to sizeof(tare_want)", s->path, s->name, d->want_size);
    TRY(mem_new((int64_t)d->n_wants * (int64_t)sizeof *copy, (void **)&copy, e));
    p->wants = copy;
    TRY(mem_new((int64_t)d->n_wants * (int64_t)sizeof *column, (void **)&column, e));
    p->column = column;
    for (uint32_t i = 0; i < d->n_wants; i++) {
        memcpy(&copy[i], (const char *)d->wants + (size_t)i * d->want_size, smaller(d->want_size, sizeof *copy));
        TRY(check_want(s, p, &copy[i], &column[i], e));
        for (uint32_t j = 0; j < i; j++)
            if (!strcmp(copy[i].name, copy[j].name) && copy[i].axis == copy[j].axis)
                FAIL(e, TARE_E_PLUGIN, "%s: %s: it wants the column \"%s\" twice", s->path, s->name, copy[i].name);
    }
    return TARE_OK;
}
