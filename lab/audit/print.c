/* Prints the result of an audit as text. */
#include "lab/audit/audit.h"

enum { SHOWN = 10 };

static long long get_count(const json_t *o, const char *key)
{
    return json_int_or(o, key, 0);
}

static const char *plural_s(long long n)
{
    return n == 1 ? "" : "s";
}

static tare_status add_place(const json_t *d, struct str *out, struct err *e)
{
    TRY(str_addf(out, e, "%s:%lld", json_text_or(d, "file", ""), get_count(d, "row")));
    if (get_count(d, "step") >= 0) TRY(str_addf(out, e, ", step %lld", get_count(d, "step")));
    return str_addf(out, e, ", group %lld, rollout %lld: %s: ", get_count(d, "group"), get_count(d, "rollout"),
                    json_text_or(d, "field", ""));
}

static tare_status add_finding(const json_t *d, struct str *out, struct err *e)
{
    const char *says = json_text_or(d, "says", NULL), *expected = json_text_or(d, "expected", NULL);
    TRY(add_place(d, out, e));
    if (says) TRY(str_addf(out, e, "%s, expected %s; ", says, expected ? expected : "another"));
    return str_addf(out, e, "%s\n", json_text_or(d, "text", ""));
}

static tare_status add_fields(const json_t *fields, struct str *out, struct err *e)
{
    const char *name;
    json_t *f;
    TRY(str_add(out, "\nfield        rows that disagree\n", -1, e));
    json_object_foreach((json_t *)(uintptr_t)fields, name, f)
    {
        const long long checked = get_count(f, "checked"), disagree = get_count(f, "disagree");
        if (checked)
            TRY(str_addf(out, e, "%-12s %lld of %lld (%.3g %%)\n", name, disagree, checked,
                         100.0 * (double)disagree / (double)checked));
        else if (disagree)
            TRY(str_addf(out, e, "%-12s %lld\n", name, disagree));
    }
    json_object_foreach((json_t *)(uintptr_t)fields, name, f) if (!get_count(f, "checked") && !get_count(f, "disagree"))
        TRY(str_addf(out, e, "not checked: %s: %s\n", name, json_text_or(f, "why", "")));
    return TARE_OK;
}

static bool was_checked(const json_t *r, const char *field)
{
    return get_count(json_object_get(json_object_get(r, "fields"), field), "checked") > 0;
}

/* Prints totals, and the verifier, estimator and aggregation that were used. */
static tare_status add_head(const json_t *r, struct str *out, struct err *e)
{
    const long long files = get_count(r, "files"), steps = get_count(r, "steps"), rows = get_count(r, "rows"),
                    groups = get_count(r, "groups");
    const char *as = json_text_or(r, "as", ""), *before = "";
    const bool advantages = was_checked(r, "advantage");
    TRY(str_addf(out, e, "%s: %lld file%s, %lld step%s, %lld row%s in %lld group%s of %lld\nrecomputed: ",
                 json_text_or(r, "format", ""), files, plural_s(files), steps, plural_s(steps), rows, plural_s(rows), groups,
                 plural_s(groups), get_count(r, "group_size")));
    if (was_checked(r, "reward")) {
        TRY(str_addf(out, e, "rewards by %s", json_text_or(r, "verifier", "")));
        before = ", ";
    }
    if (advantages || was_checked(r, "weight")) {
        TRY(str_addf(out, e, "%s%s by %s%s%s", before, advantages ? "advantages" : "weights", json_text_or(r, "estimator", ""),
                     *as ? " as " : "", as));
        before = ", ";
    }
    if (json_is_object(json_object_get(r, "loss_scale"))) {
        TRY(str_addf(out, e, "%sloss over %s", before, json_text_or(r, "aggregation", "")));
        before = ", ";
    }
    return str_addf(out, e, "%s\n", *before ? "" : "nothing");
}

static tare_status add_tail(const json_t *r, struct str *out, struct err *e)
{
    const json_t *scale = json_object_get(r, "loss_scale");
    const long long judged = get_count(r, "judged"), disputed = get_count(r, "disputed"), unjudged = get_count(r, "unjudged");
    if (judged)
        TRY(str_addf(out, e, "\n%s disputes %.3g %% of %lld reward%s\n", json_text_or(r, "verifier", ""),
                     100.0 * (double)disputed / (double)judged, judged, plural_s(judged)));
    if (unjudged) TRY(str_addf(out, e, "%lld reward%s could not be verified\n", unjudged, plural_s(unjudged)));
    if (json_is_object(scale))
        TRY(str_addf(out, e, "share of a rollout in its step's loss: %.3g %% to %.3g %%\n", 100 * json_double_or(scale, "least", 0),
                     100 * json_double_or(scale, "most", 0)));
    return TARE_OK;
}

tare_status audit_print(const json_t *r, struct str *out, struct err *e)
{
    const json_t *list = json_object_get(r, "disagreements");
    TRY(add_head(r, out, e));
    if (json_array_size(list)) {
        TRY(str_add(out, "\nfirst disagreement: ", -1, e));
        for (size_t i = 0; i < json_array_size(list) && i < SHOWN; i++) {
            if (i == 1) TRY(str_add(out, "then\n", -1, e));
            if (i) TRY(str_add(out, "  ", -1, e));
            TRY(add_finding(json_array_get(list, i), out, e));
        }
    }
    TRY(add_fields(json_object_get(r, "fields"), out, e));
    TRY(add_tail(r, out, e));
    if (json_array_size(list)) return TARE_OK;
    return str_addf(out, e, "\n%s\n",
                    json_bool_or(r, "computed", 0) ? "no row disagrees"
                                                   : "nothing could be checked: neither rewards nor advantages");
}
