/* Reads the replies of worker processes. A plugin may have overwritten its worker's memory, so
 * every value is checked. */
#include "call/wire.h"
#include "verify/internal.h"

#include <math.h>
#include <stdio.h>

static void take_segments(struct wire *w, const struct verify_item *item, tare_verdict *out)
{
    const int64_t n = wire_int(w);
    int64_t before = 0;
    out->n_segments = 0;
    for (int64_t k = 0; k < n && !w->bad; k++) {
        const int64_t end = wire_int(w);
        const tare_segment s = {end, wire_double(w)};
        if (end <= before || end > item->completion.size || !isfinite(s.reward)) w->bad = true;
        if (out->segment && out->n_segments < out->segment_capacity) out->segment[out->n_segments++] = s;
        before = end;
    }
}

static void take_verdict(struct wire *w, const struct verify_item *item, tare_verdict *out)
{
    const int64_t code = wire_int(w);
    out->reward = wire_double(w);
    const tare_text extracted = wire_text(w), note = wire_text(w);
    take_segments(w, item, out);
    if (code < TARE_VERDICT_CORRECT || code > TARE_VERDICT_PARTIAL || code == TARE_VERDICT_CRASHED || !isfinite(out->reward))
        w->bad = true;
    if (w->bad) return;
    out->code = (int32_t)code;
    verify_put(out->extracted, extracted);
    verify_put(out->note, note);
}

/* Passes the plugins' metrics to the caller's host, as without worker processes. */
static void take_metrics(const struct verify *v, struct wire *w)
{
    char name[160];
    const int64_t n = wire_int(w);
    for (int64_t k = 0; k < n && !w->bad; k++) {
        const tare_text text = wire_text(w);
        const double value = wire_double(w);
        const int64_t how = wire_int(w);
        if (w->bad || !v->env.metric) continue;
        snprintf(name, sizeof name, "%.*s", (int)(text.size < 159 ? text.size : 159), text.data);
        v->env.metric(v->env.ctx, name, value, (int32_t)how);
    }
}

void reply_take(const struct verify *v, struct wire *w, const struct verify_call *call)
{
    (void)wire_text(w);
    for (int64_t i = 0; i < call->n && !w->bad; i++) take_verdict(w, &call->items[i], &call->outputs[i].verdict);
    take_metrics(v, w);
}
