/* Suggests lines of [sweep] for the parameters that a plugin declares sweepable, around their
 * defaults and within their ranges. */
#include "sweep/sweep.h"

#include "plugin/plugin.h"

#include <math.h>
#include <string.h>

static bool is_bounded(const tare_param *p)
{
    return (p->flags & TARE_PARAM_MIN) && (p->flags & TARE_PARAM_MAX) && p->max < 1e12 && p->min > -1e12;
}

static double clamp_range(const tare_param *p, double x)
{
    if (p->flags & TARE_PARAM_MIN) x = fmax(x, p->min);
    return p->flags & TARE_PARAM_MAX ? fmin(x, p->max) : x;
}

static tare_status suggest_float(const tare_param *p, double d, struct str *out, struct err *e)
{
    char low[40], high[40];
    if (p->flags & TARE_PARAM_LOG_SCALE && d > 0) {
        sweep_number(low, clamp_range(p, d / 10));
        sweep_number(high, clamp_range(p, d * 10));
        if (strcmp(low, "0")) return str_addf(out, e, "log %s..%s x 5", low, high);
    }
    if (is_bounded(p)) {
        const double span = p->max - p->min;
        const double from = p->flags & TARE_PARAM_ABOVE_MIN ? p->min + span / 10 : p->min;
        const double to = p->flags & TARE_PARAM_BELOW_MAX ? p->max - span / 10 : p->max;
        return str_addf(out, e, "%s..%s x 5", sweep_number(low, from), sweep_number(high, to));
    }
    if (d > 0)
        return str_addf(out, e, "%s..%s x 4", sweep_number(low, clamp_range(p, d / 2)), sweep_number(high, clamp_range(p, d * 2)));
    return str_addf(out, e, "%s, 1", sweep_number(low, d));
}

static tare_status suggest_int(const tare_param *p, double d, struct str *out, struct err *e)
{
    static const double FACTORS[] = {0.25, 0.5, 1, 2, 4};
    double last = NAN;
    if (is_bounded(p) && p->max - p->min <= 8) return str_addf(out, e, "%.0f..%.0f", p->min, p->max);
    const char *comma = "";
    for (int i = 0; i < 5; i++) {
        const double x = clamp_range(p, d != 0 ? floor(d * FACTORS[i]) : (double)(1 << i));
        if (x == last) continue;
        TRY(str_addf(out, e, "%s%.0f", comma, x));
        comma = ", ";
        last = x;
    }
    return TARE_OK;
}

static tare_status suggest_param(const struct plugin *p, const tare_param *q, struct str *out, struct err *e)
{
    double d = 0;
    struct err ignored;
    if (q->fallback) str_to_double(q->fallback, &d, &ignored);
    TRY(str_addf(out, e, "; %s%s%s\n%s.%s.%s = ", q->doc, q->fallback ? "; default " : "", q->fallback ? q->fallback : "",
                 plugin_kind_name(p->desc.kind), p->desc.name, q->key));
    switch (q->type) {
    case TARE_PARAM_BOOL:
        TRY(str_add(out, "false, true", -1, e));
        break;
    case TARE_PARAM_INT:
        TRY(suggest_int(q, d, out, e));
        break;
    case TARE_PARAM_FLOAT:
        TRY(suggest_float(q, d, out, e));
        break;
    case TARE_PARAM_CHOICE:
        for (int i = 0; q->choices[i]; i++) TRY(str_addf(out, e, "%s%s", i ? ", " : "", q->choices[i]));
        break;
    default:
        TRY(str_add(out, q->fallback ? q->fallback : "", -1, e));
        break;
    }
    return str_add(out, "\n", 1, e);
}

tare_status sweep_suggest(const char *name, struct str *out, struct err *e)
{
    const struct plugin *p = NULL;
    tare_status status = TARE_E_NOT_FOUND;
    struct err first = {0};
    int n = 0;
    for (int32_t kind = PLUGIN_FIRST_KIND; status && kind <= PLUGIN_LAST_KIND; kind++) {
        status = plugin_open(name, kind, NULL, &p, e);
        if (status && kind == PLUGIN_FIRST_KIND) first = *e;
    }
    if (status) {
        *e = first;
        return first.code;
    }
    TRY(str_add(out, "[sweep]\n", -1, e));
    for (uint32_t i = 0; i < p->desc.n_params; i++) {
        if (!(p->params[i].flags & TARE_PARAM_SWEEPABLE) || (p->params[i].flags & TARE_PARAM_SECRET)) continue;
        TRY(suggest_param(p, &p->params[i], out, e));
        n++;
    }
    return n ? TARE_OK : str_addf(out, e, "; %s has no sweepable parameters\n", p->desc.name);
}
