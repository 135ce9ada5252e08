/* frozen_verifier: right when the completion contains the answer. It uses every part of the table of version 1.2: a segment for the part up to
 * the answer, an explanation, and tickets that are judged when they are polled. */
#include <stdlib.h>
#include <string.h>
#include <tare/sdk.h>

enum { P_REWARD, P_COUNT };

static const tare_param PARAMS[P_COUNT] = {
    [P_REWARD] = {"reward", "1", "reward of a right completion", NULL, NULL, 0, 0, TARE_FLOAT, 0},
};

enum { TICKETS = 64 };

struct ticket {
    int64_t number;
    int open, right;
};

struct self {
    double reward;
    struct ticket ticket[TICKETS];
};

static tare_status create(const tare_host *host, const tare_value *values, void **self, tare_error *error)
{
    struct self *s = calloc(1, sizeof *s);
    (void)host;
    if (!s) return tare_fail(error, TARE_E_NOMEM, "no memory");
    s->reward = values[P_REWARD].f;
    *self = s;
    return TARE_OK;
}

static void destroy(void *self)
{
    free(self);
}

/* Where b first stands in a, or -1. */
static int64_t find(tare_text a, tare_text b)
{
    for (int64_t at = 0; at + b.size <= a.size; at++)
        if (!memcmp(a.data + at, b.data, (size_t)b.size)) return at;
    return -1;
}

static void decide(const struct self *s, int right, tare_verdict *v)
{
    v->code = right ? TARE_CORRECT : TARE_WRONG;
    v->reward = right ? s->reward : 0;
    v->reason = right ? "the answer stands in the completion" : "the answer does not stand in the completion";
}

static tare_status verify(void *self, const tare_answer *const *answers, tare_verdict *const *verdicts, int64_t n, tare_error *error)
{
    (void)error;
    for (int64_t i = 0; i < n; i++) {
        const tare_text answer = answers[i]->answer;
        const int64_t at = answer.size ? find(answers[i]->completion, answer) : -1;
        decide(self, at >= 0, verdicts[i]);
        if (at >= 0) tare_add_segment(verdicts[i], at + answer.size, 1);
        verdicts[i]->size = 0;
    }
    return TARE_OK;
}

static tare_status explain(void *self, const tare_answer *answer, const tare_stream *out, tare_error *error)
{
    (void)self, (void)error;
    return tare_print(out, "{\"at\":%lld}", (long long)(answer->answer.size ? find(answer->completion, answer->answer) : -1));
}

static struct ticket *find_ticket(struct self *s, int open, int64_t number)
{
    for (int i = 0; i < TICKETS; i++)
        if (s->ticket[i].open == open && (!open || s->ticket[i].number == number)) return &s->ticket[i];
    return NULL;
}

static tare_status submit(void *self, const tare_answer *answer, int64_t ticket, tare_error *error)
{
    struct ticket *t = find_ticket(self, 0, 0);
    if (!t) return tare_fail(error, TARE_E_RANGE, "more than %d open tickets", TICKETS);
    *t = (struct ticket){ticket, 1, answer->answer.size && find(answer->completion, answer->answer) >= 0};
    return TARE_OK;
}

static tare_status poll_tickets(void *self, const tare_waiting *waiting, tare_error *error)
{
    for (int64_t i = 0; i < waiting->n; i++) {
        struct ticket *t = find_ticket(self, 1, waiting->ticket[i]);
        if (!t) return tare_fail(error, TARE_E_INVALID, "ticket %lld is not open", (long long)waiting->ticket[i]);
        decide(self, t->right, waiting->verdict[i]);
        waiting->done[i] = TARE_TICKET_JUDGED;
        t->open = 0;
    }
    return TARE_OK;
}

static void cancel(void *self, int64_t ticket)
{
    struct ticket *t = find_ticket(self, 1, ticket);
    if (t) t->open = 0;
}

static const tare_verifier FUNCTIONS = {.struct_size = sizeof FUNCTIONS,
                                        .flags = TARE_GIVES_SEGMENTS,
                                        .create = create,
                                        .destroy = destroy,
                                        .verify = verify,
                                        .explain = explain,
                                        .submit = submit,
                                        .poll = poll_tickets,
                                        .cancel = cancel};

static const tare_descriptor DESCRIPTOR = {
    .struct_size = sizeof DESCRIPTOR,
    .kind = TARE_VERIFIER,
    .name = "frozen_verifier",
    .version = "0.1.0",
    .summary = "right when the completion contains the answer",
    .license = "Apache-2.0",
    .params = PARAMS,
    .n_params = P_COUNT,
    .param_size = sizeof(tare_param),
    .threading = TARE_INSTANCE_PER_THREAD,
    .functions = &FUNCTIONS,
};

TARE_PLUGIN_ENTRY_SINCE(DESCRIPTOR, 2)
