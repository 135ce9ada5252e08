/* Verifiers with submit and poll: CASE waits keeps the contract, the others break it in one way
 * each (tests/plugin/fixtures.cmake). An answer is worth 1 when its completion equals it. A
 * ticket is answered at its third poll, the newest first. In `waits` the completion "never" is
 * not answered at all, and "broken" is an error. It reports the largest number of open tickets,
 * and how often an answer came after a later one of its group. */
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
    judges_unasked
};
#define IS(X) (CASE == X)
enum { TICKETS = 256, LOOKS = 3 };

struct ticket {
    int64_t number;
    int open, looks, right, never, broken;
    tare_text completion, answer; /* keeps_views: memory of the host */
};

struct waiter {
    const tare_host *host;
    struct ticket ticket[TICKETS];
    int64_t open, most, group, sample, early;
};

static tare_status create(const tare_host *host, const tare_value *values, void **self, tare_error *error)
{
    (void)values;
    struct waiter *w = host->alloc(host->ctx, sizeof *w, 16);
    if (!w) return tare_fail(error, TARE_E_NOMEM, "no memory");
    w->host = host;
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

static void say(int right, tare_verdict *v)
{
    v->code = right ? TARE_CORRECT : TARE_WRONG;
    v->reward = right;
    v->reason = "the fixture's verdict";
}

static tare_status verify(void *self, const tare_answer *const *answers, tare_verdict *const *verdicts, int64_t n,
                          tare_error *error)
{
    (void)self, (void)error;
    for (int64_t i = 0; i < n; i++) say(equal(answers[i]->completion, answers[i]->answer), verdicts[i]);
    return TARE_OK;
}

static tare_status submit(void *self, const tare_answer *a, int64_t number, tare_error *error)
{
    struct waiter *w = self;
    struct ticket *t = w->ticket;
    while (t < w->ticket + TICKETS && t->open && !(IS(cancels_nothing) && t->number == number)) t++;
    if (t == w->ticket + TICKETS) return tare_fail(error, TARE_E_RANGE, "%d tickets are open", TICKETS);
    if (!t->open) {
        *t = (struct ticket){.number = number, .open = 1, .completion = a->completion, .answer = a->answer};
        t->right = equal(a->completion, a->answer) != (IS(differs_when_waited_for) && a->completion.size == 1);
        t->never = IS(never_judges) || (IS(waits) && is(a->completion, "never"));
        t->broken = IS(waits) && is(a->completion, "broken");
        w->open++;
    }
    if (w->open > w->most) w->most = w->open;
    w->early += a->group < w->group || (a->group == w->group && a->sample < w->sample);
    w->group = a->group;
    w->sample = a->sample;
    w->host->metric(w->host->ctx, "open", (double)w->most);
    w->host->metric(w->host->ctx, "early", (double)w->early);
    return TARE_OK;
}

static struct ticket *ticket_of(struct waiter *w, int64_t number)
{
    for (int k = 0; k < TICKETS; k++)
        if (w->ticket[k].open && w->ticket[k].number == number) return &w->ticket[k];
    return NULL;
}

static int judged(struct waiter *w, const tare_waiting *x, int64_t i, tare_verdict *v)
{
    struct ticket *t = ticket_of(w, x->ticket[i]);
    if (!t || t->never || ++t->looks < LOOKS) return 0;
    say(IS(keeps_views) ? equal(t->completion, t->answer) : t->right, v);
    t->open = 0;
    w->open--;
    return 1;
}

static tare_status poll_tickets(void *self, const tare_waiting *x, tare_error *error)
{
    struct waiter *w = self;
    if (IS(waits_too_long)) {
        const struct timespec time = {4, 0};
        nanosleep(&time, NULL);
    }
    for (int64_t i = x->n; i-- > 0;) {
        const struct ticket *t = ticket_of(w, x->ticket[i]);
        if (t && t->broken) {
            ticket_of(w, x->ticket[i])->open = 0;
            w->open--;
            x->done[i] = TARE_TICKET_FAILED;
            return tare_fail(error, TARE_E_IO, "the judge is out");
        }
        const int64_t to = IS(swaps_tickets) && x->n > 1 && !x->done[x->n - 1 - i] ? x->n - 1 - i : i;
        if (judged(w, x, i, x->verdict[to])) x->done[to] = TARE_TICKET_JUDGED;
        if (IS(judges_unasked)) x->done[i] = 7;
    }
    /* No outside event ends this wait: a short sleep keeps a polling host from a busy loop. */
    if (x->wait_ns) {
        const struct timespec time = {0, 100000};
        nanosleep(&time, NULL);
    }
    return TARE_OK;
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
                                        .create = create,
                                        .destroy = destroy,
                                        .verify = verify,
                                        .submit = submit,
                                        .poll = poll_tickets,
                                        .cancel = cancel};
static const tare_descriptor DESCRIPTOR = {.struct_size = sizeof DESCRIPTOR,
                                           .kind = TARE_VERIFIER,
                                           .name = "waits",
                                           .version = "0.1.0",
                                           .summary = "a fixture that waits",
                                           .license = "Apache-2.0",
                                           .param_size = sizeof(tare_param),
                                           .functions = &FUNCTIONS};
TARE_PLUGIN_ENTRY(DESCRIPTOR)
