/* Calls of single kinds into an instance, each with a check of what the plugin wrote. */
#include "plugin/internal.h"

#include <math.h>
#include <string.h>

/* ---------------------------------------------------------------- verifier */

static tare_status check_segments(const struct plugin_instance *i, const tare_verdict *v, int64_t size, int64_t at, struct err *e)
{
    const char *name = i->plugin->desc.name;
    int64_t before = 0;
    if (v->n_segments < 0 || v->n_segments > (v->segment ? v->segment_capacity : 0))
        FAIL(e, TARE_E_PLUGIN, "verifier %s: verify, completion %lld: %lld segments in a buffer of %lld", name, (long long)at,
             (long long)v->n_segments, (long long)(v->segment ? v->segment_capacity : 0));
    for (int64_t k = 0; k < v->n_segments; before = v->segment[k++].end) {
        if (v->segment[k].end <= before || v->segment[k].end > size)
            FAIL(
                e, TARE_E_PLUGIN,
                "verifier %s: verify, completion %lld: segment %lld ends at byte %lld; it must end after %lld, and the completion has %lld bytes",
                name, (long long)at, (long long)k, (long long)v->segment[k].end, (long long)before, (long long)size);
        if (!isfinite(v->segment[k].reward))
            FAIL(e, TARE_E_NOT_FINITE, "verifier %s: verify, completion %lld: the reward of segment %lld is %g: must be finite",
                 name, (long long)at, (long long)k, v->segment[k].reward);
    }
    return TARE_OK;
}

static tare_status check_verdict(const struct plugin_instance *i, const tare_verdict *v, int64_t at, struct err *e)
{
    const char *name = i->plugin->desc.name;
    const bool known = v->code >= TARE_VERDICT_CORRECT && v->code <= TARE_VERDICT_PARTIAL && v->code != TARE_VERDICT_CRASHED;
    if (!known)
        FAIL(e, TARE_E_PLUGIN, "verifier %s: verify, completion %lld: the verdict code %d is invalid", name, (long long)at,
             v->code);
    if (!isfinite(v->reward))
        FAIL(e, TARE_E_NOT_FINITE, "verifier %s: verify, completion %lld: the reward is %g: must be finite", name, (long long)at,
             v->reward);
    return TARE_OK;
}

static void clear_verdict(tare_verdict *v)
{
    v->code = 0;
    v->reward = NAN;
    v->n_segments = 0;
}

tare_status plugin_verify(struct plugin_instance *i, const tare_completion *const *completions, tare_verdict *const *verdicts,
                          int64_t n, struct err *e)
{
    struct plugin_call c;
    for (int64_t j = 0; j < n; j++) clear_verdict(verdicts[j]);
    plugin_enter(&c);
    TRY(plugin_leave(&c, i, "verify", -1, i->plugin->verifier->verify(i->self, completions, verdicts, n, &c.error), e));
    for (int64_t j = 0; j < n; j++) {
        TRY(check_verdict(i, verdicts[j], j, e));
        TRY(check_segments(i, verdicts[j], completions[j]->text.size, j, e));
    }
    return TARE_OK;
}

tare_status plugin_uses(const struct plugin *p, const tare_value *values, uint32_t *out, struct err *e)
{
    const struct plugin_instance none = {.plugin = p, .name = p->desc.name, .values = values, .given = values};
    const uint32_t known = TARE_USES_ANSWER | TARE_USES_MAYBE_ANSWER | TARE_USES_ROW;
    struct plugin_call c;
    *out = TARE_USES_ANSWER;
    if (!p->verifier->uses) return TARE_OK;
    plugin_enter(&c);
    *out = p->verifier->uses(values);
    TRY(plugin_leave(&c, &none, "uses", -1, TARE_OK, e));
    if (*out & ~known)
        FAIL(e, TARE_E_PLUGIN, "verifier %s: uses returns the bits 0x%x; this program knows only 0x%x", p->desc.name, *out, known);
    return TARE_OK;
}

bool plugin_waits(const struct plugin *p)
{
    return p->desc.kind == TARE_KIND_VERIFIER && p->verifier->submit;
}

tare_status plugin_submit(struct plugin_instance *i, const tare_completion *completion, int64_t ticket, struct err *e)
{
    struct plugin_call c;
    plugin_enter(&c);
    return plugin_leave(&c, i, "submit", -1, i->plugin->verifier->submit(i->self, completion, ticket, &c.error), e);
}

tare_status plugin_poll(struct plugin_instance *i, const tare_waiting *w, struct err *e)
{
    struct plugin_call c;
    memset(w->state, TARE_TICKET_OPEN, (size_t)w->n);
    plugin_enter(&c);
    TRY(plugin_leave(&c, i, "poll", -1, i->plugin->verifier->poll(i->self, w, &c.error), e));
    for (int64_t j = 0; j < w->n; j++)
        if (w->state[j] > TARE_TICKET_DONE)
            FAIL(e, TARE_E_PLUGIN, "verifier %s: poll: ticket %lld of %lld has the unknown state %d", i->name, (long long)j,
                 (long long)w->n, w->state[j]);
    return TARE_OK;
}

tare_status plugin_take(struct plugin_instance *i, const tare_completion *completion, int64_t ticket, tare_verdict *out,
                        struct err *e)
{
    struct plugin_call c;
    clear_verdict(out);
    plugin_enter(&c);
    TRY(plugin_leave(&c, i, "take", -1, i->plugin->verifier->take(i->self, ticket, out, &c.error), e));
    TRY(check_verdict(i, out, 0, e));
    return check_segments(i, out, completion->text.size, 0, e);
}

void plugin_cancel(struct plugin_instance *i, int64_t ticket)
{
    struct plugin_call c;
    plugin_enter(&c);
    i->plugin->verifier->cancel(i->self, ticket);
    plugin_leave(&c, i, "cancel", -1, TARE_OK, NULL);
}

tare_status plugin_explain(struct plugin_instance *i, tare_completion *completion, struct str *out, struct err *e)
{
    struct plugin_call c;
    struct plugin_stream s = {.out = out};
    const tare_stream stream = plugin_stream(&s);
    if (!i->plugin->verifier->explain)
        FAIL(e, TARE_E_UNSUPPORTED, "verifier %s does not explain its verdicts", i->plugin->desc.name);
    plugin_enter(&c);
    TRY(plugin_leave(&c, i, "explain", -1, i->plugin->verifier->explain(i->self, completion, &stream, &c.error), e));
    if (out->size) plugin_hide_secrets(i, out->data, out->size);
    return plugin_stream_end(&s, i, "explain", e);
}

/* ---------------------------------------------------------------- encoder and codebook */

tare_status plugin_encode(struct plugin_instance *i, const tare_text *texts, int64_t n, float *out, struct err *e)
{
    struct plugin_call c;
    const int64_t dim = i->sizes.dim;
    if (dim <= 0)
        FAIL(e, TARE_E_PLUGIN, "encoder %s: invalid embedding width %lld: must be greater than 0", i->plugin->desc.name,
             (long long)dim);
    plugin_enter(&c);
    TRY(plugin_leave(&c, i, "encode", -1, i->plugin->encoder->encode(i->self, texts, n, out, &c.error), e));
    for (int64_t j = 0; j < n * dim; j++)
        if (!isfinite(out[j]))
            FAIL(e, TARE_E_NOT_FINITE, "encoder %s: encode, text %lld: number %lld is %g", i->plugin->desc.name,
                 (long long)(j / dim), (long long)(j % dim), (double)out[j]);
    return TARE_OK;
}

tare_status plugin_fit(struct plugin_instance *i, const tare_text *items, int64_t n, struct err *e)
{
    const tare_prompts prompts = {.struct_size = sizeof prompts, .n = n, .row = items};
    const bool encoder = i->plugin->desc.kind == TARE_KIND_ENCODER;
    struct plugin_call c;
    if (encoder ? !i->plugin->encoder->fit : !i->plugin->codebook->fit) return TARE_OK;
    plugin_enter(&c);
    TRY(plugin_leave(
        &c, i, "fit", -1,
        encoder ? i->plugin->encoder->fit(i->self, items, n, &c.error) : i->plugin->codebook->fit(i->self, &prompts, &c.error), e));
    return plugin_resize(i, "fit", e);
}

tare_status plugin_assign(const struct plugin_instance *i, const struct plugin_assignment *q, struct err *e)
{
    const tare_prompts prompts = {.struct_size = sizeof prompts, .n = q->n, .embedding = q->embedding, .row = q->rows};
    tare_assignment out = {.struct_size = sizeof out, .cluster = q->cluster, .distance = q->distance};
    struct plugin_call c;
    for (int64_t j = 0; j < q->n; j++) q->cluster[j] = -1;
    for (int64_t j = 0; q->distance && j < q->n; j++) q->distance[j] = NAN;
    plugin_enter(&c);
    TRY(plugin_leave(&c, i, "assign", -1, i->plugin->codebook->assign(i->self, &prompts, &out, &c.error), e));
    for (int64_t j = 0; j < q->n; j++)
        if (q->cluster[j] < -1 || q->cluster[j] >= i->sizes.clusters)
            FAIL(e, TARE_E_PLUGIN, "codebook %s: assign, row %lld: cluster %d of %lld", i->name, (long long)j, q->cluster[j],
                 (long long)i->sizes.clusters);
    return TARE_OK;
}

tare_status plugin_cluster_name(const struct plugin_instance *i, int64_t k, struct str *out, struct err *e)
{
    struct plugin_call c;
    struct plugin_stream s = {.out = out, .keep = TARE_LIMIT_NOTE};
    const tare_stream stream = plugin_stream(&s);
    if (!i->plugin->codebook->cluster_name) return TARE_OK;
    plugin_enter(&c);
    return plugin_leave(&c, i, "cluster_name", -1, i->plugin->codebook->cluster_name(i->self, k, &stream, &c.error), e);
}
