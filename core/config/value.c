#include "config/value.h"

#include "base/fs.h"

#include <errno.h>
#include <float.h>
#include <limits.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

enum { UNLIMITED = 1000000000 }; /* larger bounds only catch overflow and are not shown */

const char **value_text(struct config *c, const struct config_key *k)
{
    return (const char **)(void *)((char *)c + k->offset);
}

/* Returns the index of the text among the choices; -1: not found. */
static int find_choice(const struct config_key *k, const char *text)
{
    for (int i = 0; k->choices[i]; i++)
        if (!strcmp(k->choices[i], text)) return i;
    return -1;
}

const char *value_choice(const struct config *c, const struct config_key *k)
{
    int chosen;
    memcpy(&chosen, (const char *)c + k->offset, sizeof chosen);
    return k->choices[chosen];
}

tare_status value_allowed(const struct config_key *k, struct str *out, struct err *e)
{
    if (k->type == KEY_BOOL) return str_add(out, "true or false", -1, e);
    if (k->type == KEY_TEXT) return str_add(out, "text", -1, e);
    if (k->type == KEY_CHOICE) {
        for (int i = 0; k->choices[i]; i++) TRY(str_addf(out, e, "%s%s", i ? ", " : "", *k->choices[i] ? k->choices[i] : "empty"));
        return TARE_OK;
    }
    if (k->flags & KEY_OR_ZERO) TRY(str_add(out, "0, or ", -1, e));
    TRY(str_addf(out, e, "%s %.9g", k->flags & KEY_ABOVE_MIN ? "above" : k->max < UNLIMITED ? "from" : "at least", k->min));
    if (k->max < UNLIMITED) TRY(str_addf(out, e, "%s %.9g", k->flags & KEY_ABOVE_MIN ? ", at most" : " to", k->max));
    return TARE_OK;
}

static tare_status refuse_value(const struct config_key *k, const char *text, const char *where, const char *what, struct err *e)
{
    OWNED(str_free) struct str allowed = {0};
    TRY(value_allowed(k, &allowed, e));
    FAIL(e, TARE_E_CONFIG, "%s: %s.%s = '%s' %s; allowed: %s", where, k->section, k->key, text, what, allowed.data);
}

static tare_status to_bool(const char *text, bool *out)
{
    static const char *const TRUE[] = {"true", "yes", "on", "1"}, *const FALSE[] = {"false", "no", "off", "0"};
    for (int i = 0; i < 4; i++) {
        if (!strcmp(text, TRUE[i])) return *out = true, TARE_OK;
        if (!strcmp(text, FALSE[i])) return *out = false, TARE_OK;
    }
    return TARE_E_INVALID;
}

static bool in_range(const struct config_key *k, double x)
{
    if (k->flags & KEY_OR_ZERO && x == 0) return true;
    return (k->flags & KEY_ABOVE_MIN ? x > k->min : x >= k->min) && x <= k->max;
}

/* Reports a value out of range. value_allowed omits very large upper bounds; this message shows
 * them. */
static tare_status refuse_range(const struct config_key *k, const char *text, const char *where, bool above, struct err *e)
{
    char what[64] = "is out of range";
    if (above && k->max >= UNLIMITED) snprintf(what, sizeof what, "is above the largest value, %.9g", k->max);
    return refuse_value(k, text, where, what, e);
}

/* Makes a path relative to its file's folder absolute, so that a copy of the configuration
 * elsewhere means the same. */
static tare_status absolute_path(const char *text, const char *where, char *out, struct err *e)
{
    char file[FS_PATH], folder[FS_PATH] = ".", full[PATH_MAX];
    const char *colon = strrchr(where, ':');
    if (colon) {
        snprintf(file, sizeof file, "%.*s", (int)(colon - where), where);
        fs_dirname(folder, file);
    }
    if (*text == '/') return fs_join(out, "", text, e);
    if (realpath(folder, full)) return fs_join(out, full, text, e);
    if (!fs_is_answer(errno)) FAIL(e, TARE_E_IO, "%s: %s", folder, strerror(errno));
    return fs_join(out, "", text, e);
}

/* Recognises several values given for a single one. */
static const char *not_a_number(const char *text, const char *otherwise)
{
    return strchr(text, ',') || strstr(text, "..")
               ? "must be one number (`tare sweep` takes several from [sweep], or as sweep.KEY=...)"
               : otherwise;
}

tare_status value_set(struct config *c, const struct config_key *k, const char *text, const char *where, struct err *e)
{
    char *at = (char *)c + k->offset, path[FS_PATH], *copy;
    switch (k->type) {
    case KEY_BOOL:
        if (to_bool(text, (bool *)at)) return refuse_value(k, text, where, "is not a boolean", e);
        return TARE_OK;
    case KEY_INT: {
        int64_t value = 0;
        const tare_status bad = str_to_int(text, &value, NULL);
        if (bad)
            return refuse_value(k, text, where,
                                bad == TARE_E_RANGE ? "does not fit in 64 bits" : not_a_number(text, "is not a whole number"), e);
        if (!in_range(k, (double)value)) return refuse_range(k, text, where, (double)value > k->max, e);
        *(int64_t *)(void *)at = value;
        return TARE_OK;
    }
    case KEY_FLOAT: {
        double value = 0;
        const tare_status bad = str_to_double(text, &value, NULL);
        if (bad)
            return refuse_value(k, text, where,
                                bad == TARE_E_RANGE ? "is not a finite number" : not_a_number(text, "is not a number"), e);
        if (!in_range(k, value)) return refuse_range(k, text, where, value > k->max, e);
        if (value != 0 && fabs(value) < (double)FLT_MIN)
            return refuse_value(k, text, where, "is too small for single precision (at least 1.17549435e-38 in magnitude)", e);
        *(double *)(void *)at = value;
        return TARE_OK;
    }
    case KEY_CHOICE: {
        const int chosen = find_choice(k, text);
        if (chosen < 0) return refuse_value(k, text, where, "is unknown", e);
        memcpy(at, &chosen, sizeof chosen);
        return TARE_OK;
    }
    case KEY_TEXT:
        if (!(k->flags & KEY_FILE_RELATIVE) || !*text) break;
        TRY(absolute_path(text, where, path, e));
        text = path;
        break;
    }
    TRY(arena_strdup(&c->arena, text, -1, &copy, e));
    *value_text(c, k) = copy;
    return TARE_OK;
}

tare_status value_print(const struct config *c, const struct config_key *k, struct str *out, struct err *e)
{
    const char *at = (const char *)c + k->offset;
    char number[32];
    switch (k->type) {
    case KEY_BOOL:
        return str_add(out, *(const bool *)at ? "true" : "false", -1, e);
    case KEY_INT:
        return str_addf(out, e, "%lld", (long long)*(const int64_t *)(const void *)at);
    case KEY_FLOAT:
        return str_add(out, str_from_double(number, *(const double *)(const void *)at), -1, e);
    case KEY_CHOICE:
        return str_add(out, value_choice(c, k), -1, e);
    default:
        return str_add(out, *(const char *const *)(const void *)at, -1, e);
    }
}
