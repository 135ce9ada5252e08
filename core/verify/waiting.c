/* Verifiers with submit, poll and take. A completion is submitted as soon as it is complete; its
 * verdict is taken when it is known and stored at the completion's index, so the order of arrival
 * changes nothing. */
#include "base/clock.h"
#include "base/fs.h"
#include "verify/internal.h"

#include <string.h>

enum state { NOTHING, QUEUED, OPEN, JUDGED };
static const int64_t GRACE_NS = 100000000; /* tolerance after a deadline */

struct ticket {
    struct verify_item item; /* the texts are the caller's until the ticket is submitted */
    uint64_t hash;           /* of the completion */
    int64_t number, deadline_ns;
    struct verify_output output;
    struct verify_text extracted, note; /* of the first verifier */
    enum state state;
};

struct waiting {
    struct arena arena;
    struct ticket *ticket; /* [n] indexed by completion */
    /* [2 n] indices in order of submission; a completion submitted again appears twice */
    int64_t n, *queue;
    int64_t head, tail, open;
    int64_t issued; /* ticket numbers, never reused */
    struct {        /* the open tickets, [n] each */
        int64_t n, *at, *number;
        uint8_t *state;
    } polled;
};

bool verify_waits_for(const struct verify *v, int64_t c)
{
    return !v->workers && plugin_waits(v->verifiers[c].plugin);
}

bool verify_waits(const struct verify *v)
{
    for (int64_t c = 0; c < v->n_verifiers; c++)
        if (verify_waits_for(v, c)) return true;
    return false;
}

static struct plugin_instance *instance_of(const struct verify *v, int64_t c)
{
    return v->verifiers[c].instance[0];
}

static void cancel_tickets(const struct verify *v, int64_t c, struct waiting *w)
{
    for (int64_t i = 0; i < w->n; i++)
        if (w->ticket[i].state == OPEN) plugin_cancel(instance_of(v, c), w->ticket[i].number);
    w->n = w->head = w->tail = w->open = 0;
}

void waiting_free(struct verify *v, int64_t c)
{
    struct waiting *w = v->verifiers[c].waiting;
    if (!w) return;
    cancel_tickets(v, c, w);
    arena_free(&w->arena);
    mem_free(w);
    v->verifiers[c].waiting = NULL;
}

static tare_status begin_tickets(struct verify *v, int64_t c, int64_t n, struct err *e)
{
    struct waiting *w = v->verifiers[c].waiting;
    if (!w) {
        TRY(mem_new(sizeof *w, (void **)&w, e));
        arena_init(&w->arena, "pending verdicts");
        v->verifiers[c].waiting = w;
    }
    cancel_tickets(v, c, w);
    arena_reset(&w->arena);
    TRY(arena_new(&w->arena, &w->ticket, n, e));
    TRY(arena_new(&w->arena, &w->queue, 2 * n, e));
    TRY(arena_new(&w->arena, &w->polled.at, n, e));
    TRY(arena_new(&w->arena, &w->polled.number, n, e));
    TRY(arena_new(&w->arena, &w->polled.state, n, e));
    w->n = n;
    return TARE_OK;
}

tare_status verify_begin(struct verify *v, int64_t n, struct err *e)
{
    for (int64_t c = 0; c < v->n_verifiers; c++)
        if (verify_waits_for(v, c)) TRY(begin_tickets(v, c, n, e));
    return TARE_OK;
}

/* Opens the ticket's own buffers for the plugin's output. */
static tare_status open_ticket_output(const struct verify *v, int64_t c, struct ticket *t, struct err *e)
{
    tare_segment *segment = NULL;
    verify_output_open(&t->output, c ? NULL : &t->extracted, c ? NULL : &t->note);
    if (c != v->segmenter) return TARE_OK;
    TRY(arena_push_raw(&v->verifiers[c].waiting->arena, TARE_LIMIT_SEGMENTS * (int64_t)sizeof *segment, (void **)&segment, e));
    t->output.verdict.segment = segment;
    t->output.verdict.segment_capacity = TARE_LIMIT_SEGMENTS;
    return TARE_OK;
}

static tare_status queue_ticket(struct verify *v, int64_t c, int64_t at, const struct verify_item *item, struct err *e)
{
    struct waiting *w = v->verifiers[c].waiting;
    struct ticket *t = &w->ticket[at];
    if (t->state == OPEN) {
        plugin_cancel(instance_of(v, c), t->number);
        w->open--;
    }
    if (t->state != QUEUED) w->queue[w->tail++] = at;
    t->item = *item;
    t->hash = fs_hash(item->completion.data, item->completion.size, 0);
    t->state = QUEUED;
    return open_ticket_output(v, c, t, e);
}

static tare_status name_ticket(const struct ticket *t, struct err *e)
{
    return err_prefix(e, "row %s, sample %lld", t->item.name ? t->item.name : "?", (long long)t->item.sample);
}

/* Submits queued tickets while fewer than verifier.workers are open. */
static tare_status submit_queued(struct verify *v, int64_t c, struct err *e)
{
    struct waiting *w = v->verifiers[c].waiting;
    while (w->head < w->tail && w->open < pool_threads(v->pool)) {
        struct ticket *t = &w->ticket[w->queue[w->head++]];
        if (t->state != QUEUED) continue;
        const int64_t time = verify_call_time(v, &(struct verify_call){.n = 1});
        t->number = w->issued++;
        t->deadline_ns = time ? clock_ns() + time : 0;
        const tare_completion completion = verify_completion(&t->item, t->deadline_ns);
        if (plugin_submit(instance_of(v, c), &completion, t->number, e)) return name_ticket(t, e);
        t->state = OPEN;
        w->open++;
    }
    return TARE_OK;
}

/* Returns how long a poll may wait: until the next deadline at most. */
static int64_t poll_time(const struct waiting *w)
{
    const int64_t now = clock_ns();
    int64_t wait = VERIFY_POLL_NS;
    for (int64_t k = 0; k < w->polled.n; k++) {
        const int64_t deadline = w->ticket[w->polled.at[k]].deadline_ns;
        if (deadline && deadline + GRACE_NS - now < wait) wait = deadline + GRACE_NS - now;
    }
    return wait > 0 ? wait : 0;
}

static void end_late(const struct verify *v, int64_t c, struct waiting *w)
{
    const int64_t now = clock_ns();
    for (int64_t k = 0; k < w->polled.n; k++) {
        struct ticket *t = &w->ticket[w->polled.at[k]];
        if (t->state != OPEN || !t->deadline_ns || now < t->deadline_ns + GRACE_NS) continue;
        plugin_cancel(instance_of(v, c), t->number);
        verify_output_lose(&t->output, TARE_VERDICT_TIMED_OUT, "the verifier did not answer in time");
        t->state = JUDGED;
        w->open--;
    }
}

/* Takes the verdicts of the tickets that are done. A ticket whose verdict is an error is forgotten
 * like the others; the error is returned. */
static tare_status take_done(const struct verify *v, int64_t c, struct waiting *w, struct err *e)
{
    for (int64_t k = 0; k < w->polled.n; k++) {
        struct ticket *t = &w->ticket[w->polled.at[k]];
        if (w->polled.state[k] == TARE_TICKET_OPEN) continue;
        const tare_completion completion = verify_completion(&t->item, t->deadline_ns);
        const tare_status s = plugin_take(instance_of(v, c), &completion, t->number, &t->output.verdict, e);
        if (!s) verify_output_hide(&t->output.verdict, instance_of(v, c));
        t->state = s ? NOTHING : JUDGED;
        w->open--;
        if (s) return name_ticket(t, e);
    }
    return TARE_OK;
}

/* Polls the open tickets once. wait: until one of them has a verdict or is late. */
static tare_status poll_tickets(struct verify *v, int64_t c, bool wait, struct err *e)
{
    struct waiting *w = v->verifiers[c].waiting;
    w->polled.n = 0;
    for (int64_t i = 0; i < w->n && w->polled.n < w->open; i++) {
        if (w->ticket[i].state != OPEN) continue;
        const int64_t k = w->polled.n++;
        w->polled.at[k] = i;
        w->polled.number[k] = w->ticket[i].number;
        w->polled.state[k] = TARE_TICKET_OPEN;
    }
    if (!w->polled.n) return TARE_OK;
    const tare_waiting all = {.struct_size = sizeof all,
                              .n = w->polled.n,
                              .ticket = w->polled.number,
                              .state = w->polled.state,
                              .wait_ns = wait ? poll_time(w) : 0};
    TRY(plugin_poll(instance_of(v, c), &all, e));
    TRY(take_done(v, c, w, e));
    end_late(v, c, w);
    return TARE_OK;
}

tare_status verify_submit(struct verify *v, int64_t at, const struct verify_item *item, struct err *e)
{
    for (int64_t c = 0; c < v->n_verifiers; c++)
        if (verify_waits_for(v, c)) {
            TRY(queue_ticket(v, c, at, item, e));
            TRY(submit_queued(v, c, e));
        }
    return TARE_OK;
}

tare_status verify_poll(struct verify *v, struct err *e)
{
    for (int64_t c = 0; c < v->n_verifiers; c++)
        if (verify_waits_for(v, c)) {
            TRY(poll_tickets(v, c, false, e));
            TRY(submit_queued(v, c, e));
        }
    return TARE_OK;
}

/* Returns whether the ticket was submitted for this item. */
static bool ticket_serves(const struct ticket *t, const struct verify_item *item)
{
    const struct verify_item *own = &t->item;
    return t->state != NOTHING && t->hash == fs_hash(item->completion.data, item->completion.size, 0) && own->uid == item->uid &&
           own->group == item->group && own->sample == item->sample && own->tokens == item->tokens && own->finish == item->finish &&
           own->off_policy == item->off_policy;
}

tare_status waiting_collect(struct verify *v, int64_t c, const struct verify_item *items, int64_t n, struct err *e)
{
    struct waiting *w = v->verifiers[c].waiting;
    if (!w || w->n != n) {
        TRY(begin_tickets(v, c, n, e));
        w = v->verifiers[c].waiting;
    }
    for (int64_t i = 0; i < n; i++) {
        if (!ticket_serves(&w->ticket[i], &items[i])) TRY(queue_ticket(v, c, i, &items[i], e));
        if (w->ticket[i].state == QUEUED) w->ticket[i].item = items[i];
    }
    TRY(submit_queued(v, c, e));
    while (w->open) {
        TRY(verify_go_on(v, e));
        TRY(poll_tickets(v, c, true, e));
        TRY(submit_queued(v, c, e));
    }
    return TARE_OK;
}

void waiting_take(const struct verify *v, int64_t c, int64_t at, struct verify_output *out)
{
    const struct ticket *t = &v->verifiers[c].waiting->ticket[at];
    const tare_verdict *got = &t->output.verdict;
    tare_verdict *to = &out->verdict;
    to->code = got->code;
    to->reward = got->reward;
    verify_put(to->extracted, (tare_text){t->extracted.data, t->extracted.size});
    verify_put(to->note, (tare_text){t->note.data, t->note.size});
    if (!to->segment) return;
    to->n_segments = got->n_segments < to->segment_capacity ? got->n_segments : to->segment_capacity;
    if (to->n_segments) memcpy(to->segment, got->segment, (size_t)to->n_segments * sizeof *to->segment);
}

void waiting_end(struct verify *v, int64_t c)
{
    /* NULL if its allocation failed */
    if (v->verifiers[c].waiting) cancel_tickets(v, c, v->verifiers[c].waiting);
}
