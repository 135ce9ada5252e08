/* Verifiers with submit and poll: CASE waits keeps the contract, the others break it in one way
 * each (tests/plugin/fixtures.cmake). A completion is worth 1 when it equals the answer. A ticket is
 * done at its third poll. In `waits` the completion "never" is never done, and "broken" is an error.
 * It reports the largest number of open tickets, and how often a completion came after a later one of
 * its group. */
#include <tare/sdk.h>

#include <stdlib.h>
#include <string.h>
#include <time.h>

enum cases {
    waits,
    swaps_tickets,
    waits_too_long,
    differs_when_waited_for,
    never_judges,
    keeps_views,
    cancels_nothing,
    unknown_state
};
#define IS(X) (CASE == X)
enum { TICKETS = 256, LOOKS = 3 };

struct ticket {
    int64_t number;
    int open, looks, right, never, broken;
    tare_text text, answer; /* keeps_views: memory of the host */
};

struct waiter {
    const tare_host *host;
    struct ticket ticket[TICKETS];
    int64_t open, most, group, index, early;
};

static tare_status create(const tare_setup *setup, void **self, tare_error *error)
{
    struct waiter *w = setup->host->alloc(setup->host->ctx, sizeof *w, 16);
    if (!w) return tare_fail(error, TARE_E_NOMEM, "no memory");
    w->host = setup->host;
    *self = w;
    return TARE_OK;
}

static void destroy(void *self)
{
    struct waiter *w = self;
    w->host->release(w->host->ctx, w);
}

static int equal(tare_text a, tare_text b)
{
    return a.size == b.size && (!a.size || !memcmp(a.data, b.data, (size_t)a.size));
}

static int is(tare_text t, const char *word)
{
    return equal(t, (tare_text){word, (int64_t)strlen(word)});
}

static tare_status say(int right, tare_verdict *v)
{
    v->code = right ? TARE_VERDICT_CORRECT : TARE_VERDICT_WRONG;
    v->reward = right;
    return tare_say(v->note, "the fixture's verdict");
}

static tare_status verify(void *self, const tare_completion *const *completion, tare_verdict *const *out, int64_t n,
                          tare_error *error)
{
    (void)self, (void)error;
    for (int64_t i = 0; i < n; i++) {
        const tare_status status = say(equal(completion[i]->text, completion[i]->answer), out[i]);
        if (status) return status;
    }
    return TARE_OK;
}

static tare_status submit(void *self, const tare_completion *a, int64_t number, tare_error *error)
{
    struct waiter *w = self;
    struct ticket *t = w->ticket;
    while (t < w->ticket + TICKETS && t->open && !(IS(cancels_nothing) && t->number == number)) t++;
    if (t == w->ticket + TICKETS) return tare_fail(error, TARE_E_RANGE, "%d tickets are open", TICKETS);
    if (!t->open) {
        *t = (struct ticket){.number = number, .open = 1, .text = a->text, .answer = a->answer};
        t->right = equal(a->text, a->answer) != (IS(differs_when_waited_for) && a->text.size == 1);
        t->never = IS(never_judges) || (IS(waits) && is(a->text, "never"));
        t->broken = IS(waits) && is(a->text, "broken");
        w->open++;
    }
    if (w->open > w->most) w->most = w->open;
    w->early += a->group < w->group || (a->group == w->group && a->index < w->index);
    w->group = a->group;
    w->index = a->index;
    w->host->metric(w->host->ctx, "open", (double)w->most, TARE_METRIC_MAX);
    w->host->metric(w->host->ctx, "early", (double)w->early, TARE_METRIC_LAST);
    return TARE_OK;
}

static struct ticket *ticket_of(struct waiter *w, int64_t number)
{
    for (int k = 0; k < TICKETS; k++)
        if (w->ticket[k].open && w->ticket[k].number == number) return &w->ticket[k];
    return NULL;
}

static tare_status poll_tickets(void *self, const tare_waiting *x, tare_error *error)
{
    struct waiter *w = self;
    (void)error;
    if (IS(waits_too_long)) {
        const struct timespec time = {4, 0};
        nanosleep(&time, NULL);
    }
    for (int64_t i = x->n; i-- > 0;) {
        struct ticket *t = ticket_of(w, x->ticket[i]);
        if (t && !t->never && ++t->looks >= LOOKS) x->state[i] = TARE_TICKET_DONE;
        if (IS(unknown_state)) x->state[i] = 7;
    }
    /* No outside event ends this wait: a short sleep keeps a polling host from a busy loop. */
    if (x->wait_ns) {
        const struct timespec time = {0, 100000};
        nanosleep(&time, NULL);
    }
    return TARE_OK;
}

static struct ticket *first_open(struct waiter *w)
{
    for (int k = 0; k < TICKETS; k++)
        if (w->ticket[k].open) return &w->ticket[k];
    return NULL;
}

static tare_status take(void *self, int64_t number, tare_verdict *out, tare_error *error)
{
    struct waiter *w = self;
    struct ticket *t = IS(swaps_tickets) ? first_open(w) : ticket_of(w, number);
    if (!t) return tare_fail(error, TARE_E_STATE, "ticket %lld is not open", (long long)number);
    t->open = 0;
    w->open--;
    if (t->broken) return tare_fail(error, TARE_E_IO, "the judge is out");
    return say(IS(keeps_views) ? equal(t->text, t->answer) : t->right, out);
}

static void cancel(void *self, int64_t number)
{
    struct waiter *w = self;
    struct ticket *t = ticket_of(w, number);
    if (!t || IS(cancels_nothing)) return;
    t->open = 0;
    w->open--;
}

static const tare_verifier FUNCTIONS = {.struct_size = sizeof FUNCTIONS,
                                        .flags = TARE_VERIFIER_REPEATS,
                                        .create = create,
                                        .destroy = destroy,
                                        .verify = verify,
                                        .submit = submit,
                                        .poll = poll_tickets,
                                        .take = take,
                                        .cancel = cancel};
static const tare_descriptor DESCRIPTOR = {.struct_size = sizeof DESCRIPTOR,
                                           .kind = TARE_KIND_VERIFIER,
                                           .name = "waits",
                                           .version = "0.1.0",
                                           .summary = "a fixture that waits",
                                           .license = "Apache-2.0",
                                           .functions = &FUNCTIONS};
TARE_PLUGIN_ENTRY(&DESCRIPTOR)
