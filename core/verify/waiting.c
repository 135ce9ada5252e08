/* Verifiers with submit and poll. An answer is submitted as soon as it is complete and its verdict
 * collected later. Verdicts are stored at the answer's index, so their order of arrival changes
 * nothing. */
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
    tare_verdict verdict;
    enum state state;
};

struct waiting {
    struct arena arena;
    struct ticket *ticket; /* [n] indexed by answer */
    /* [2 n] answer indices in order of submission; an answer submitted again appears twice */
    int64_t n, *queue;
    int64_t head, tail, open;
    int64_t issued; /* ticket numbers, never reused */
    struct {        /* the open tickets, [n] each */
        int64_t n, *at, *number, *bytes;
        tare_verdict **verdict;
        uint8_t *done;
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
    TRY(arena_new(&w->arena, &w->polled.bytes, n, e));
    TRY(arena_new(&w->arena, &w->polled.verdict, n, e));
    TRY(arena_new(&w->arena, &w->polled.done, n, e));
    w->n = n;
    return TARE_OK;
}

tare_status verify_begin(struct verify *v, int64_t n, struct err *e)
{
    for (int64_t c = 0; c < v->n_verifiers; c++)
        if (verify_waits_for(v, c)) TRY(begin_tickets(v, c, n, e));
    return TARE_OK;
}

/* Allocates the ticket's own buffers for the plugin's output. Only the first verifier's extracted
 * text is kept. */
static tare_status allocate_ticket(const struct verify *v, int64_t c, struct ticket *t, struct err *e)
{
    struct waiting *w = v->verifiers[c].waiting;
    char *extracted = NULL;
    tare_segment *segment = NULL;
    const int64_t capacity = !c && t->item.extracted ? t->item.capacity : 0, segments = c == v->segmenter ? VERIFY_SEGMENTS : 0;
    TRY(arena_push_raw(&w->arena, capacity + 1, (void **)&extracted, e));
    if (segments) TRY(arena_push_raw(&w->arena, segments * (int64_t)sizeof *segment, (void **)&segment, e));
    t->verdict = (tare_verdict){.struct_size = sizeof t->verdict,
                                .extracted = extracted,
                                .capacity = capacity,
                                .segment = segment,
                                .segment_capacity = segments};
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
    *t = (struct ticket){.item = *item, .hash = fs_hash(item->completion.data, item->completion.size, 0), .state = QUEUED};
    return allocate_ticket(v, c, t, e);
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
        const tare_answer answer = verify_answer(&t->item, t->deadline_ns);
        if (plugin_submit(instance_of(v, c), &answer, t->number, e)) return name_ticket(t, e);
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
        t->verdict.code = TARE_TIMED_OUT;
        t->verdict.reward = 0;
        t->verdict.size = t->verdict.n_segments = 0;
        t->verdict.reason = "the verifier did not answer in time";
        t->state = JUDGED;
        w->open--;
    }
}

/* Takes the result of a poll. The plugin has dropped every ticket that is no longer open, even if
 * it failed. */
static tare_status settle_tickets(struct waiting *w, tare_status status, struct err *e)
{
    const struct ticket *failed = NULL;
    for (int64_t k = 0; k < w->polled.n; k++) {
        struct ticket *t = &w->ticket[w->polled.at[k]];
        if (w->polled.done[k] == TARE_TICKET_OPEN) continue;
        t->state = w->polled.done[k] == TARE_TICKET_JUDGED ? JUDGED : NOTHING;
        w->open--;
        if (t->state == NOTHING && !failed) failed = t;
    }
    return status && failed ? name_ticket(failed, e) : status;
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
        w->polled.bytes[k] = w->ticket[i].item.completion.size;
        w->polled.verdict[k] = &w->ticket[i].verdict;
    }
    if (!w->polled.n) return TARE_OK;
    const tare_waiting all = {.struct_size = sizeof all,
                              .n = w->polled.n,
                              .ticket = w->polled.number,
                              .verdict = w->polled.verdict,
                              .done = w->polled.done,
                              .wait_ns = wait ? poll_time(w) : 0};
    TRY(settle_tickets(w, plugin_poll(instance_of(v, c), &all, w->polled.bytes, e), e));
    end_late(v, c, w);
    return TARE_OK;
}

tare_status verify_submit(struct verify *v, int64_t at, const struct verify_item *item, struct err *e)
{
    static char wanted; /* a ticket has its own buffer */
    struct verify_item wanting = *item;
    wanting.extracted = &wanted;
    wanting.capacity = VERIFY_EXTRACT;
    for (int64_t c = 0; c < v->n_verifiers; c++)
        if (verify_waits_for(v, c)) {
            TRY(queue_ticket(v, c, at, &wanting, e));
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

/* Returns whether the ticket was submitted for this item and kept everything that is wanted of its
 * verdict. */
static bool ticket_serves(int64_t c, const struct ticket *t, const struct verify_item *item)
{
    const struct verify_item *own = &t->item;
    return t->state != NOTHING && t->hash == fs_hash(item->completion.data, item->completion.size, 0) && own->uid == item->uid &&
           own->group == item->group && own->sample == item->sample && own->tokens == item->tokens && own->finish == item->finish &&
           own->off_policy == item->off_policy && (c || !item->extracted || t->verdict.capacity == item->capacity);
}

tare_status waiting_collect(struct verify *v, int64_t c, const struct verify_item *items, int64_t n, struct err *e)
{
    struct waiting *w = v->verifiers[c].waiting;
    if (!w || w->n != n) {
        TRY(begin_tickets(v, c, n, e));
        w = v->verifiers[c].waiting;
    }
    for (int64_t i = 0; i < n; i++) {
        if (!ticket_serves(c, &w->ticket[i], &items[i])) TRY(queue_ticket(v, c, i, &items[i], e));
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

void waiting_take(struct verify *v, int64_t c, int64_t at, struct verify_item *item, tare_verdict *out)
{
    *out = v->verifiers[c].waiting->ticket[at].verdict;
    if (!c && item->extracted && out->size) memcpy(item->extracted, out->extracted, (size_t)out->size);
    if (c != v->segmenter) return;
    if (out->n_segments > item->segment_capacity) out->n_segments = item->segment_capacity;
    if (out->n_segments) memcpy(item->segment, out->segment, (size_t)out->n_segments * sizeof *item->segment);
}

void waiting_end(struct verify *v, int64_t c)
{
    /* NULL if its allocation failed */
    if (v->verifiers[c].waiting) cancel_tickets(v, c, v->verifiers[c].waiting);
}
