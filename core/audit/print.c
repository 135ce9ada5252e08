/* An audit's result as text. */
#include "audit/audit.h"

enum { SHOWN = 10 };

static long long count(const json_t *o, const char *key)
{
    return json_int_or(o, key, 0);
}

static tare_status add_place(const json_t *d, struct str *out, struct err *e)
{
    TRY(str_addf(out, e, "%s:%lld", json_text_or(d, "file", ""), count(d, "row")));
    if (count(d, "step") >= 0) TRY(str_addf(out, e, ", step %lld", count(d, "step")));
    return str_addf(out, e, ", group %lld, rollout %lld: %s: ", count(d, "group"), count(d, "rollout"),
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
        const long long checked = count(f, "checked"), disagree = count(f, "disagree");
        if (!checked && !disagree)
            TRY(str_addf(out, e, "%-12s not checked: %s\n", name, json_text_or(f, "why", "")));
        else if (checked)
            TRY(str_addf(out, e, "%-12s %lld of %lld (%.3g %%)\n", name, disagree, checked,
                         100.0 * (double)disagree / (double)checked));
        else
            TRY(str_addf(out, e, "%-12s %lld\n", name, disagree));
    }
    return TARE_OK;
}

static tare_status add_head(const json_t *r, struct str *out, struct err *e)
{
    const char *as = json_text_or(r, "as", "");
    TRY(str_addf(out, e, "%s: %lld file%s, %lld step%s, %lld rows in %lld groups of %lld\n", json_text_or(r, "format", ""),
                 count(r, "files"), count(r, "files") == 1 ? "" : "s", count(r, "steps"), count(r, "steps") == 1 ? "" : "s",
                 count(r, "rows"), count(r, "groups"), count(r, "group_size")));
    return str_addf(out, e, "computed again: rewards by %s, advantages by %s%s%s, loss over %s\n", json_text_or(r, "verifier", ""),
                    json_text_or(r, "estimator", ""), *as ? " as " : "", as, json_text_or(r, "aggregation", ""));
}

static tare_status add_tail(const json_t *r, struct str *out, struct err *e)
{
    const json_t *scale = json_object_get(r, "loss_scale");
    const long long judged = count(r, "judged"), disputed = count(r, "disputed"), unjudged = count(r, "unjudged");
    if (judged)
        TRY(str_addf(out, e, "\n%s disputes %.3g %% of %lld rewards\n", json_text_or(r, "verifier", ""),
                     100.0 * (double)disputed / (double)judged, judged));
    if (unjudged) TRY(str_addf(out, e, "%lld rewards it could not judge\n", unjudged));
    if (json_is_object(scale))
        TRY(str_addf(out, e, "a rollout has between %.3g %% and %.3g %% of its step's loss\n",
                     100 * json_double_or(scale, "least", 0), 100 * json_double_or(scale, "most", 0)));
    return TARE_OK;
}

tare_status audit_print(const json_t *r, struct str *out, struct err *e)
{
    const json_t *list = json_object_get(r, "disagreements");
    TRY(add_head(r, out, e));
    if (json_is_null(json_object_get(r, "first"))) {
        TRY(str_add(out, "\nno row disagrees\n", -1, e));
    } else {
        TRY(str_add(out, "\nfirst disagreement: ", -1, e));
        for (size_t i = 0; i < json_array_size(list) && i < SHOWN; i++) {
            if (i == 1) TRY(str_add(out, "then\n", -1, e));
            if (i) TRY(str_add(out, "  ", -1, e));
            TRY(add_finding(json_array_get(list, i), out, e));
        }
    }
    TRY(add_fields(json_object_get(r, "fields"), out, e));
    return add_tail(r, out, e);
}
