/* Verifiers that wait for something else: their answers are submitted as soon as they are there, and their verdicts collected later. What is
 * collected stands at the answer's index, so the order in which verdicts arrive changes nothing. */
#include "base/clock.h"
#include "base/fs.h"
#include "verify/internal.h"

#include <string.h>

enum state { NOTHING, QUEUED, OPEN, JUDGED };
static const int64_t GRACE_NS = 100000000; /* after a deadline */

struct ticket {
    struct verify_item item; /* its texts are the caller's until it is submitted */
    uint64_t hash;           /* of the completion */
    int64_t number, deadline_ns;
    tare_verdict verdict;
    enum state state;
};

struct waiting {
    struct arena arena;
    struct ticket *ticket; /* [n] by the answer's index */
    int64_t n, *queue;     /* [2 n] indices in the order of their submission; one that was submitted anew stands in it twice */
    int64_t head, tail, open;
    int64_t issued; /* numbers of tickets, never used twice */
    struct {        /* the open ones, [n] each */
        int64_t n, *at, *number, *bytes;
        tare_verdict **verdict;
        uint8_t *done;
    } look;
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

static void forget(const struct verify *v, int64_t c, struct waiting *w)
{
    for (int64_t i = 0; i < w->n; i++)
        if (w->ticket[i].state == OPEN) plugin_cancel(instance_of(v, c), w->ticket[i].number);
    w->n = w->head = w->tail = w->open = 0;
}

void waiting_free(struct verify *v, int64_t c)
{
    struct waiting *w = v->verifiers[c].waiting;
    if (!w) return;
    forget(v, c, w);
    arena_free(&w->arena);
    mem_free(w);
    v->verifiers[c].waiting = NULL;
}

static tare_status begin(struct verify *v, int64_t c, int64_t n, struct err *e)
{
    struct waiting *w = v->verifiers[c].waiting;
    if (!w) {
        TRY(mem_new(sizeof *w, (void **)&w, e));
        arena_init(&w->arena, "verdicts that are waited for");
        v->verifiers[c].waiting = w;
    }
    forget(v, c, w);
    arena_reset(&w->arena);
    TRY(arena_new(&w->arena, &w->ticket, n, e));
    TRY(arena_new(&w->arena, &w->queue, 2 * n, e));
    TRY(arena_new(&w->arena, &w->look.at, n, e));
    TRY(arena_new(&w->arena, &w->look.number, n, e));
    TRY(arena_new(&w->arena, &w->look.bytes, n, e));
    TRY(arena_new(&w->arena, &w->look.verdict, n, e));
    TRY(arena_new(&w->arena, &w->look.done, n, e));
    w->n = n;
    return TARE_OK;
}

tare_status verify_begin(struct verify *v, int64_t n, struct err *e)
{
    for (int64_t c = 0; c < v->n_verifiers; c++)
        if (verify_waits_for(v, c)) TRY(begin(v, c, n, e));
    return TARE_OK;
}

/* Room of the ticket's own for what the plugin writes; of what it extracts only the first verifier's is kept. */
static tare_status make_room(const struct verify *v, int64_t c, struct ticket *t, struct err *e)
{
    struct waiting *w = v->verifiers[c].waiting;
    char *extracted = NULL;
    tare_segment *segment = NULL;
    const int64_t room = !c && t->item.extracted ? t->item.capacity : 0, segments = c == v->segmenter ? VERIFY_SEGMENTS : 0;
    TRY(arena_push_raw(&w->arena, room + 1, (void **)&extracted, e));
    if (segments) TRY(arena_push_raw(&w->arena, segments * (int64_t)sizeof *segment, (void **)&segment, e));
    t->verdict = (tare_verdict){.struct_size = sizeof t->verdict,
                                .extracted = extracted,
                                .capacity = room,
                                .segment = segment,
                                .segment_capacity = segments};
    return TARE_OK;
}

static tare_status put(struct verify *v, int64_t c, int64_t at, const struct verify_item *item, struct err *e)
{
    struct waiting *w = v->verifiers[c].waiting;
    struct ticket *t = &w->ticket[at];
    if (t->state == OPEN) {
        plugin_cancel(instance_of(v, c), t->number);
        w->open--;
    }
    if (t->state != QUEUED) w->queue[w->tail++] = at;
    *t = (struct ticket){.item = *item, .hash = fs_hash(item->completion.data, item->completion.size, 0), .state = QUEUED};
    return make_room(v, c, t, e);
}

static tare_status about(const struct ticket *t, struct err *e)
{
    return err_prefix(e, "row %s, sample %lld", t->item.name ? t->item.name : "?", (long long)t->item.sample);
}

/* Submits what is queued, as far as no more than verifier.workers are open. */
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
        if (plugin_submit(instance_of(v, c), &answer, t->number, e)) return about(t, e);
        t->state = OPEN;
        w->open++;
    }
    return TARE_OK;
}

/* How long a look may take: to the next deadline at most. */
static int64_t until_late(const struct waiting *w)
{
    const int64_t now = clock_ns();
    int64_t wait = VERIFY_POLL_NS;
    for (int64_t k = 0; k < w->look.n; k++) {
        const int64_t deadline = w->ticket[w->look.at[k]].deadline_ns;
        if (deadline && deadline + GRACE_NS - now < wait) wait = deadline + GRACE_NS - now;
    }
    return wait > 0 ? wait : 0;
}

static void end_late(const struct verify *v, int64_t c, struct waiting *w)
{
    const int64_t now = clock_ns();
    for (int64_t k = 0; k < w->look.n; k++) {
        struct ticket *t = &w->ticket[w->look.at[k]];
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

/* What poll said. The tickets that are not open any more are forgotten by the plugin, also where it failed. */
static tare_status settle(struct waiting *w, tare_status status, struct err *e)
{
    const struct ticket *why = NULL;
    for (int64_t k = 0; k < w->look.n; k++) {
        struct ticket *t = &w->ticket[w->look.at[k]];
        if (w->look.done[k] == TARE_TICKET_OPEN) continue;
        t->state = w->look.done[k] == TARE_TICKET_JUDGED ? JUDGED : NOTHING;
        w->open--;
        if (t->state == NOTHING && !why) why = t;
    }
    return status && why ? about(why, e) : status;
}

/* One look at the open tickets; wait: until one of them is judged or late. */
static tare_status look(struct verify *v, int64_t c, bool wait, struct err *e)
{
    struct waiting *w = v->verifiers[c].waiting;
    w->look.n = 0;
    for (int64_t i = 0; i < w->n && w->look.n < w->open; i++) {
        if (w->ticket[i].state != OPEN) continue;
        const int64_t k = w->look.n++;
        w->look.at[k] = i;
        w->look.number[k] = w->ticket[i].number;
        w->look.bytes[k] = w->ticket[i].item.completion.size;
        w->look.verdict[k] = &w->ticket[i].verdict;
    }
    if (!w->look.n) return TARE_OK;
    const tare_waiting all = {.struct_size = sizeof all,
                              .n = w->look.n,
                              .ticket = w->look.number,
                              .verdict = w->look.verdict,
                              .done = w->look.done,
                              .wait_ns = wait ? until_late(w) : 0};
    TRY(settle(w, plugin_poll(instance_of(v, c), &all, w->look.bytes, e), e));
    end_late(v, c, w);
    return TARE_OK;
}

tare_status verify_submit(struct verify *v, int64_t at, const struct verify_item *item, struct err *e)
{
    static char wanted; /* a ticket has room of its own */
    struct verify_item with_room = *item;
    with_room.extracted = &wanted;
    with_room.capacity = VERIFY_EXTRACT;
    for (int64_t c = 0; c < v->n_verifiers; c++)
        if (verify_waits_for(v, c)) {
            TRY(put(v, c, at, &with_room, e));
            TRY(submit_queued(v, c, e));
        }
    return TARE_OK;
}

tare_status verify_turn(struct verify *v, struct err *e)
{
    for (int64_t c = 0; c < v->n_verifiers; c++)
        if (verify_waits_for(v, c)) {
            TRY(look(v, c, false, e));
            TRY(submit_queued(v, c, e));
        }
    return TARE_OK;
}

/* Whether a ticket is about this item, and has kept all that is wanted of its verdict. */
static bool serves(int64_t c, const struct ticket *t, const struct verify_item *item)
{
    const struct verify_item *own = &t->item;
    return t->state != NOTHING && t->hash == fs_hash(item->completion.data, item->completion.size, 0) && own->uid == item->uid &&
           own->group == item->group && own->sample == item->sample && own->tokens == item->tokens && own->finish == item->finish &&
           own->off_policy == item->off_policy && (c || !item->extracted || t->verdict.capacity == item->capacity);
}

tare_status waiting_judge(struct verify *v, int64_t c, const struct verify_item *items, int64_t n, struct err *e)
{
    struct waiting *w = v->verifiers[c].waiting;
    if (!w || w->n != n) {
        TRY(begin(v, c, n, e));
        w = v->verifiers[c].waiting;
    }
    for (int64_t i = 0; i < n; i++) {
        if (!serves(c, &w->ticket[i], &items[i])) TRY(put(v, c, i, &items[i], e));
        if (w->ticket[i].state == QUEUED) w->ticket[i].item = items[i];
    }
    TRY(submit_queued(v, c, e));
    while (w->open) {
        TRY(verify_go_on(v, e));
        TRY(look(v, c, true, e));
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
    if (v->verifiers[c].waiting) forget(v, c, v->verifiers[c].waiting); /* none: there was no memory for it */
}
