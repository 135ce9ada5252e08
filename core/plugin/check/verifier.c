/* Tests of verifiers, on texts that a model may well write. */
#include "plugin/check/internal.h"

#include "base/clock.h"
#include "base/json.h"

#include <math.h>
#include <pthread.h>
#include <string.h>

enum { TEXTS = 60, CAPACITY = 256, BATCH = 8, GUARD = 64, GUARD_BYTE = 0x5a };
static const char ROW[] = "{\"id\":\"row-1\",\"question\":\"What is 6 times 7?\",\"answer\":\"42\",\"extra\":{\"unit\":\"none\"}}";

static const tare_text OWN_ROW = {ROW, sizeof ROW - 1};
static const tare_text *rows_given = &OWN_ROW;
static int64_t n_rows_given = 1;

void check_verifier_rows(const tare_text *rows, int64_t n)
{
    rows_given = n ? rows : &OWN_ROW;
    n_rows_given = n ? n : 1;
}

struct outcome {
    int32_t code;
    double reward;
    int64_t size;
    char extracted[CAPACITY];
};

static tare_completion completion_of(tare_text text, tare_text answer)
{
    return (tare_completion){.struct_size = sizeof(tare_completion),
                             .prompt = {"What is 6 times 7?", 18},
                             .text = text,
                             .answer = answer,
                             .row = rows_given[text.size % n_rows_given], /* equal for equal texts */
                             .prompt_uid = 7,
                             .n_turns = 1,
                             .n_tokens = text.size / 4 + 1,
                             .finish = TARE_FINISH_STOP};
}

/* What a plugin writes to a stream: the first bytes. */
struct sink {
    char bytes[CAPACITY];
    int64_t size;
    tare_status status; /* given for every write */
};

static tare_status write_sink(void *ctx, const void *data, int64_t size)
{
    struct sink *s = ctx;
    const int64_t left = CAPACITY - s->size;
    if (s->status) return s->status;
    if (size < 0 || (size && !data)) return TARE_E_INVALID;
    if (size && left) memcpy(s->bytes + s->size, data, (size_t)(size < left ? size : left));
    s->size += size < left ? size : left;
    return TARE_OK;
}

/* Verdicts of a newer host: the struct is larger than this build's, and a plugin writes nothing
 * behind the members that it knows. */
struct buffer {
    tare_verdict verdict;
    unsigned char newer[GUARD];
    struct sink extracted, note;
    tare_stream extracted_stream, note_stream;
    tare_segment segment[TARE_LIMIT_SEGMENTS];
};
struct verdict_buffers {
    struct buffer of[BATCH];
    tare_verdict *verdicts[BATCH];
};

static void make_buffers(struct verdict_buffers *r, int64_t n, bool wanted, tare_status status)
{
    for (int64_t k = 0; k < n; k++) {
        struct buffer *b = &r->of[k];
        memset(b->newer, GUARD_BYTE, sizeof b->newer);
        b->extracted.size = b->note.size = 0;
        b->extracted.status = b->note.status = status;
        b->extracted_stream = (tare_stream){.struct_size = sizeof(tare_stream), .ctx = &b->extracted, .write = write_sink};
        b->note_stream = (tare_stream){.struct_size = sizeof(tare_stream), .ctx = &b->note, .write = write_sink};
        b->verdict = (tare_verdict){.struct_size = offsetof(struct buffer, newer) + GUARD,
                                    .extracted = wanted ? &b->extracted_stream : NULL,
                                    .note = wanted ? &b->note_stream : NULL,
                                    .segment = wanted ? b->segment : NULL,
                                    .segment_capacity = wanted ? TARE_LIMIT_SEGMENTS : 0};
        r->verdicts[k] = &b->verdict;
    }
}

static tare_status take_verdict(const struct verdict_buffers *r, int64_t k, struct outcome *out, struct err *e)
{
    const struct buffer *b = &r->of[k];
    for (int64_t g = 0; g < GUARD; g++)
        if (b->newer[g] != GUARD_BYTE) FAIL(e, TARE_E_PLUGIN, "it wrote behind the members of tare_verdict that its build knows");
    out->code = b->verdict.code;
    out->reward = b->verdict.reward;
    out->size = b->extracted.size;
    memcpy(out->extracted, b->extracted.bytes, (size_t)out->size);
    return TARE_OK;
}

/* Verifies n completions in one call. wanted: the host wants the texts and segments. */
static tare_status verify_as(struct plugin_instance *i, const tare_completion *completions, int64_t n, bool wanted,
                             struct outcome *out, struct err *e)
{
    struct verdict_buffers r;
    const tare_completion *a[BATCH] = {NULL};
    make_buffers(&r, n, wanted, TARE_OK);
    for (int64_t k = 0; k < n; k++) a[k] = &completions[k];
    TRY(plugin_verify(i, a, r.verdicts, n, e));
    for (int64_t k = 0; k < n; k++) TRY(take_verdict(&r, k, &out[k], e));
    return TARE_OK;
}

static tare_status verify_all(struct plugin_instance *i, const tare_completion *completions, int64_t n, struct outcome *out,
                              struct err *e)
{
    return verify_as(i, completions, n, true, out, e);
}

static tare_status run_verify(struct plugin_instance *i, tare_text completion, tare_text answer, int64_t deadline,
                              struct outcome *out, struct err *e)
{
    tare_completion a = completion_of(completion, answer);
    a.deadline_ns = deadline;
    return verify_all(i, &a, 1, out, e);
}

static bool same_verdict(const struct outcome *a, const struct outcome *b)
{
    return a->code == b->code && a->reward == b->reward && a->size == b->size &&
           !memcmp(a->extracted, b->extracted, (size_t)a->size);
}

/* True if verdicts on one completion can be compared. */
static bool repeats(const struct plugin *p)
{
    return p->verifier->flags & TARE_VERIFIER_REPEATS;
}

static const char *const SEEDS[] = {"The answer is 42.",
                                    "\\boxed{42}",
                                    "so x = \\frac{1}{2}",
                                    "",
                                    " ",
                                    "42",
                                    "-3.50",
                                    "1,234,567",
                                    "A",
                                    "(B)",
                                    "\\boxed{\\boxed{",
                                    "$$",
                                    "{{{{",
                                    "}}}}",
                                    "1e999",
                                    "0/0",
                                    "\xe4\xbd\xa0\xe5\xa5\xbd 42",
                                    "answer:\n\n42\n",
                                    "42 42 42",
                                    "\\text{no}"};

static tare_text a_text(struct check *c, int n, struct str *text)
{
    const char *seed = SEEDS[n % (int)(sizeof SEEDS / sizeof *SEEDS)];
    str_clear(text);
    str_add(text, seed, -1, NULL);
    for (int k = n / (int)(sizeof SEEDS / sizeof *SEEDS); k > 0 && text->size;
         k--) /* mutated: any byte, NUL and broken UTF-8 included */
        text->data[check_below(c, (uint64_t)text->size)] = (char)check_below(c, 256);
    return (tare_text){text->data ? text->data : "", text->size};
}

static tare_status odd_texts(struct check *c, struct err *e)
{
    OWNED(plugin_destroy_at) struct plugin_instance *i = NULL;
    OWNED(str_free) struct str text = {0}, answer = {0};
    struct outcome first, second;
    TRY(check_instance(c, &i, e));
    for (int n = 0; n < check_rounds(c, 1000); n++) {
        const tare_text completion = a_text(c, n % TEXTS, &text), gold = a_text(c, (int)check_below(c, 20), &answer);
        TRY(run_verify(i, completion, gold, 0, &first, e));
        TRY(run_verify(i, completion, gold, 0, &second, e));
        if (repeats(c->plugin) && !same_verdict(&first, &second))
            FAIL(
                e, TARE_E_PLUGIN,
                "the same text got two verdicts: code %d and %d, reward %g and %g; leave TARE_VERIFIER_REPEATS out if they may differ",
                first.code, second.code, first.reward, second.reward);
    }
    return TARE_OK;
}

struct texts {
    struct str of[BATCH];
};

static void texts_free(struct texts *t)
{
    for (int k = 0; k < BATCH; k++) str_free(&t->of[k]);
}

/* Tests that each of several answers in a call gets the verdict that it gets alone, at any
 * position. */
static tare_status test_batches(struct check *c, struct err *e)
{
    OWNED(plugin_destroy_at) struct plugin_instance *i = NULL;
    OWNED(texts_free) struct texts text = {0};
    tare_completion a[BATCH];
    struct outcome alone[BATCH], together[BATCH];
    TRY(check_instance(c, &i, e));
    for (int round = 0; round < check_rounds(c, 30); round++) {
        for (int k = 0; k < BATCH; k++)
            a[k] = completion_of(a_text(c, (int)check_below(c, TEXTS), &text.of[k]),
                                 check_below(c, 3) ? (tare_text){"42", 2} : (tare_text){"A", 1});
        const int64_t n = 2 + (int64_t)check_below(c, BATCH - 1);
        for (int64_t k = 0; k < n; k++) TRY(verify_all(i, &a[k], 1, &alone[k], e));
        TRY(verify_all(i, a, n, together, e));
        for (int64_t k = 0; k < n; k++)
            if (repeats(c->plugin) && !same_verdict(&alone[k], &together[k]))
                FAIL(e, TARE_E_PLUGIN, "completion %lld of %lld in a call got code %d, reward %g, but alone code %d, reward %g",
                     (long long)k + 1, (long long)n, together[k].code, together[k].reward, alone[k].code, alone[k].reward);
    }
    TRY(verify_all(i, a, 0, together, e)); /* none */
    return TARE_OK;
}

/* Submitted completions, of which `open` have no verdict yet. */
struct open_tickets {
    struct plugin_instance *i;
    struct verdict_buffers buffers;
    struct str completion[BATCH]; /* as it was submitted */
    struct str text[BATCH], gold[BATCH];
    struct outcome want[BATCH];
    int64_t number[BATCH], open;
    bool closed[BATCH], done[BATCH]; /* done: not taken yet */
};

static tare_status copy_text(struct str *to, tare_text from, tare_text *out, struct err *e)
{
    str_clear(to);
    TRY(str_add(to, from.data, from.size, e));
    *out = (tare_text){to->data ? to->data : "", to->size};
    return TARE_OK;
}

/* Texts of the host, valid for the plugin during the call only. They are overwritten afterwards and
 * not freed, so that a plugin that keeps a view gives a wrong verdict every time. */
static tare_status submit_completion(struct open_tickets *o, int64_t k, const tare_completion *of, struct err *e)
{
    struct str *text = &o->text[k], *gold = &o->gold[k];
    tare_completion a = *of;
    tare_text submitted;
    TRY(copy_text(text, of->text, &a.text, e));
    TRY(copy_text(gold, of->answer, &a.answer, e));
    TRY(copy_text(&o->completion[k], of->text, &submitted, e));
    const tare_status status = plugin_submit(o->i, &a, o->number[k], e);
    if (text->size) memset(text->data, 'x', (size_t)text->size);
    if (gold->size) memset(gold->data, 'y', (size_t)gold->size);
    return status;
}

static tare_status take_ticket(struct check *c, struct open_tickets *o, int64_t k, struct err *e)
{
    const tare_completion submitted =
        completion_of((tare_text){o->completion[k].data, o->completion[k].size}, (tare_text){"42", 2});
    struct outcome got;
    o->closed[k] = true;
    o->done[k] = false;
    o->open--;
    TRY(plugin_take(o->i, &submitted, o->number[k], &o->buffers.of[k].verdict, e));
    TRY(take_verdict(&o->buffers, k, &got, e));
    if (repeats(c->plugin) && !same_verdict(&got, &o->want[k]))
        FAIL(e, TARE_E_PLUGIN, "completion %lld got code %d, reward %g from take, but code %d, reward %g from verify", (long long)k,
             got.code, got.reward, o->want[k].code, o->want[k].reward);
    return TARE_OK;
}

/* Polls some of the open tickets once, and takes some of those that are done, the last ones first. */
static tare_status poll_some(struct check *c, struct open_tickets *o, int64_t wait_ns, struct err *e)
{
    int64_t number[BATCH], at[BATCH], n = 0;
    uint8_t state[BATCH] = {TARE_TICKET_OPEN};
    for (int64_t k = 0; k < BATCH; k++) {
        if (o->closed[k] || o->done[k] || (n && !check_below(c, 3))) continue;
        at[n] = k;
        number[n++] = o->number[k];
    }
    const tare_waiting w = {.struct_size = sizeof w, .n = n, .ticket = number, .state = state, .wait_ns = wait_ns};
    const double start = clock_seconds();
    if (n) TRY(plugin_poll(o->i, &w, e));
    if (!wait_ns && clock_seconds() - start > 2)
        FAIL(e, TARE_E_PLUGIN, "poll with wait_ns 0 took %.1f s: must return at once", clock_seconds() - start);
    for (int64_t q = 0; q < n; q++) o->done[at[q]] = state[q] == TARE_TICKET_DONE;
    for (int64_t k = BATCH - 1; k >= 0; k--)
        if (o->done[k] && check_below(c, 2)) TRY(take_ticket(c, o, k, e));
    return TARE_OK;
}

/* Submits all completions of a batch, cancels one and submits another under its ticket, and
 * waits for all. */
static tare_status wait_for_batch(struct check *c, struct open_tickets *o, const tare_completion *a, struct err *e)
{
    const int64_t cancelled = (int64_t)check_below(c, BATCH), other = (cancelled + 1) % BATCH;
    make_buffers(&o->buffers, BATCH, true, TARE_OK);
    for (int64_t k = 0; k < BATCH; k++) {
        TRY(verify_all(o->i, &a[k], 1, &o->want[k], e));
        o->closed[k] = true;
    }
    for (int64_t k = 0; k < BATCH; k++) {
        TRY(submit_completion(o, k, &a[k], e));
        o->closed[k] = false;
        o->open++;
    }
    plugin_cancel(o->i, o->number[cancelled]);
    o->closed[cancelled] = true;
    o->open--;
    TRY(submit_completion(o, cancelled, &a[other], e));
    o->want[cancelled] = o->want[other];
    o->closed[cancelled] = false;
    o->open++;
    const double start = clock_seconds();
    for (bool wait = false; o->open; wait = !wait) {
        const int64_t before = o->open;
        TRY(poll_some(c, o, wait ? 20000000 : 0, e));
        if (o->open == before && clock_seconds() - start > 5)
            FAIL(e, TARE_E_PLUGIN, "none of the %lld open tickets (of %d) has a verdict after %.0f s", (long long)o->open, BATCH,
                 clock_seconds() - start);
    }
    return TARE_OK;
}

static void tickets_free(struct open_tickets *o)
{
    for (int k = 0; k < BATCH; k++)
        if (o->i && o->open && !o->closed[k]) plugin_cancel(o->i, o->number[k]);
    plugin_destroy(o->i);
    for (int k = 0; k < BATCH; k++) {
        str_free(&o->completion[k]);
        str_free(&o->text[k]);
        str_free(&o->gold[k]);
    }
}

/* Tests that submit, poll and take give the verdicts of verify, in any order. */
static tare_status test_waits(struct check *c, struct err *e)
{
    OWNED(texts_free) struct texts text = {0};
    OWNED(tickets_free) struct open_tickets o = {0};
    if (!plugin_waits(c->plugin)) return check_skip(c, e, "the plugin has no submit");
    TRY(check_instance(c, &o.i, e));
    for (int round = 0; round < check_rounds(c, 10); round++) {
        tare_completion a[BATCH];
        for (int k = 0; k < BATCH; k++) {
            a[k] = completion_of(a_text(c, (int)check_below(c, TEXTS), &text.of[k]), (tare_text){"42", 2});
            if (k % 3 == 0) a[k].text = a[k].answer;
            o.number[k] = (round % 2 ? -1 : 1) * (1000 + 10 * round + k);
        }
        TRY(wait_for_batch(c, &o, a, e));
    }
    return TARE_OK;
}

/* Tests that a host which wants no texts gets the same verdicts, and that the status of a stream
 * that refuses bytes comes back from verify. */
static tare_status test_streams(struct check *c, struct err *e)
{
    static const char *const SAID[] = {"The answer is \\boxed{\xe4\xbd\xa0\xe5\xa5\xbd\xe4\xbd\xa0\xe5\xa5\xbd}.",
                                       "\\boxed{123456789012345678901234567890}", "The answer is \\boxed{42}."};
    OWNED(plugin_destroy_at) struct plugin_instance *i = NULL;
    struct verdict_buffers r;
    struct outcome wanted, unwanted;
    TRY(check_instance(c, &i, e));
    for (int k = 0; k < 3; k++) {
        const tare_completion a = completion_of((tare_text){SAID[k], (int64_t)strlen(SAID[k])}, (tare_text){"42", 2}), *p = &a;
        struct err why = {0};
        TRY(verify_as(i, &a, 1, true, &wanted, e));
        TRY(verify_as(i, &a, 1, false, &unwanted, e));
        if (repeats(c->plugin) && (wanted.code != unwanted.code || wanted.reward != unwanted.reward))
            FAIL(e, TARE_E_PLUGIN, "the verdict changes where the host does not want the extracted text and the note");
        make_buffers(&r, 1, true, TARE_E_IO);
        const tare_status s = plugin_verify(i, &p, r.verdicts, 1, &why);
        if (wanted.size && s != TARE_E_IO)
            FAIL(e, TARE_E_PLUGIN, "a stream refused the extracted text with the status %d, and verify returned %d: pass it on",
                 TARE_E_IO, s);
    }
    return TARE_OK;
}

/* Tests a missing row, an empty one, and one that is not JSON: verified, or refused with a message.
 * explain must give one JSON object, with the same verdict. */
static tare_status test_rows(struct check *c, struct err *e)
{
    static const char *const ROWS[] = {"", "{}", "[1]", "{\"answer\":null,\"question\":7}", "{\"a\":"};
    OWNED(plugin_destroy_at) struct plugin_instance *i = NULL;
    struct outcome verdict;
    TRY(check_instance(c, &i, e));
    for (int k = 0; k < 5; k++) {
        tare_completion a = completion_of((tare_text){"The answer is 42.", 17}, (tare_text){"42", 2});
        struct err why = {0};
        a.row = (tare_text){ROWS[k], (int64_t)strlen(ROWS[k])};
        if (verify_all(i, &a, 1, &verdict, &why) && (why.code == TARE_E_PLUGIN || strstr(why.message, "and no message"))) {
            *e = why;
            return err_prefix(e, "with the row '%s'", ROWS[k]);
        }
    }
    return TARE_OK;
}

/* Tests that another answer, or none, does not change the verdict where the plugin says that it
 * does not use the answer. */
static tare_status uses_what_it_says(struct check *c, struct err *e)
{
    OWNED(plugin_destroy_at) struct plugin_instance *i = NULL;
    OWNED(str_free) struct str text = {0};
    static const tare_text ANSWERS[] = {{"42", 2}, {"", 0}, {"no", 2}};
    uint32_t uses, again;
    if (!c->plugin->verifier->uses) return check_skip(c, e, "the plugin has no uses, so rows without an answer are refused");
    TRY(plugin_uses(c->plugin, c->values, &uses, e));
    TRY(plugin_uses(c->plugin, c->values, &again, e));
    if (again != uses) FAIL(e, TARE_E_PLUGIN, "uses returns 0x%x and then 0x%x", uses, again);
    TRY(check_instance(c, &i, e));
    for (int n = 0; n < check_rounds(c, TEXTS) && !(uses & (TARE_USES_ANSWER | TARE_USES_MAYBE_ANSWER)); n++) {
        const tare_text completion = a_text(c, n, &text);
        struct outcome verdict[3];
        for (int k = 0; k < 3; k++) TRY(run_verify(i, completion, ANSWERS[k], 0, &verdict[k], e));
        if (repeats(c->plugin) && (!same_verdict(&verdict[0], &verdict[1]) || !same_verdict(&verdict[0], &verdict[2])))
            FAIL(e, TARE_E_PLUGIN, "uses does not include TARE_USES_ANSWER, but another answer changes the verdict");
    }
    return str_addf(&c->note, e, "%s",
                    uses & TARE_USES_ANSWER         ? "the row's answer"
                    : uses & TARE_USES_MAYBE_ANSWER ? "a program of the user decides"
                                                    : "rows need no answer");
}

static tare_status test_explain(struct check *c, struct err *e)
{
    OWNED(plugin_destroy_at) struct plugin_instance *i = NULL;
    OWNED(str_free) struct str text = {0}, completion = {0};
    if (!c->plugin->verifier->explain) return check_skip(c, e, "the plugin does not explain its verdicts");
    TRY(check_instance(c, &i, e));
    for (int n = 0; n < check_rounds(c, TEXTS); n++) {
        tare_completion a = completion_of(a_text(c, n, &completion), (tare_text){"42", 2});
        json_t *j = NULL;
        struct err why = {0};
        str_clear(&text);
        TRY(plugin_explain(i, &a, &text, e));
        if (json_parse(text.data ? text.data : "", text.size, "explain", &j, &why) || !json_is_object(j)) {
            json_decref(j);
            FAIL(e, TARE_E_PLUGIN, "explain does not write one JSON object: %.200s", text.size ? text.data : "nothing");
        }
        json_decref(j);
    }
    return TARE_OK;
}

static tare_status long_texts(struct check *c, struct err *e)
{
    static const char *const PARTS[] = {"x", "{", "(", "\\frac", "1", " ", "\xff", "\\boxed{", "-", "the answer is "};
    OWNED(plugin_destroy_at) struct plugin_instance *i = NULL;
    OWNED(str_free) struct str text = {0};
    struct outcome verdict;
    double worst = 0;
    TRY(check_instance(c, &i, e));
    for (size_t k = 0; k < sizeof PARTS / sizeof *PARTS; k++) {
        str_clear(&text);
        while (text.size < 1 << 20) TRY(str_add(&text, PARTS[k], -1, e));
        /* repeated when it is long, since a busy machine may have delayed the thread */
        double took = INFINITY;
        for (int attempt = 0; attempt < 3 && took > 1; attempt++) {
            const double start = clock_seconds();
            TRY(run_verify(i, (tare_text){text.data, text.size}, (tare_text){"42", 2}, clock_ns() + 200000000, &verdict, e));
            took = fmin(took, clock_seconds() - start);
        }
        worst = fmax(worst, took);
        if (took > 1)
            FAIL(e, TARE_E_PLUGIN, "1 MB of '%s' with a deadline of 0.2 s took %.2f s; check deadline_ns in loops", PARTS[k], took);
    }
    return str_addf(&c->note, e, "the slowest took %.1f ms", 1e3 * worst);
}

struct worker {
    struct plugin_instance *instance;
    const struct outcome *want;
    char (*texts)[64];
    int64_t rounds, n_texts;
    struct err e;
    tare_status status;
};

static void *thread_main(void *arg)
{
    struct worker *w = arg;
    for (int64_t round = 0; round < w->rounds && !w->status; round++) {
        for (int64_t n = 0; n < w->n_texts && !w->status; n++) {
            struct outcome got;
            w->status = run_verify(w->instance, (tare_text){w->texts[n], (int64_t)strlen(w->texts[n])}, (tare_text){"42", 2}, 0,
                                   &got, &w->e);
            if (!w->status && repeats(w->instance->plugin) && !same_verdict(&got, &w->want[n]))
                w->status = err_set(&w->e, TARE_E_PLUGIN, __FILE__, __LINE__, "a verdict differs on several threads");
        }
    }
    return NULL;
}

static tare_status test_threads(struct check *c, struct err *e)
{
    enum { THREADS = 4 };
    const bool shared = c->plugin->desc.calls == TARE_CALLS_CONCURRENT;
    struct outcome want[TEXTS];
    struct worker w[THREADS];
    pthread_t handles[THREADS];
    char texts[TEXTS][64];
    struct str text = {0};
    tare_status status = TARE_OK;
    if (c->plugin->desc.calls == TARE_CALLS_SERIAL) return check_skip(c, e, "an instance accepts one thread at a time");
    memset(w, 0, sizeof w);
    memset(texts, 0, sizeof texts);
    for (int k = 0; k < THREADS && !status; k++) {
        w[k] = (struct worker){.want = want, .texts = texts, .rounds = check_rounds(c, 20), .n_texts = check_rounds(c, TEXTS)};
        if (k && shared)
            w[k].instance = w[0].instance;
        else
            status = check_instance(c, &w[k].instance, e);
    }
    for (int n = 0; n < w[0].n_texts && !status; n++) {
        const tare_text t = a_text(c, n % 20, &text);
        memcpy(texts[n], t.data, (size_t)t.size < 63 ? (size_t)t.size : 63);
        status = run_verify(w[0].instance, (tare_text){texts[n], (int64_t)strlen(texts[n])}, (tare_text){"42", 2}, 0, &want[n], e);
    }
    int started = 0;
    check_watch(c, false); /* the watch observes the whole process */
    for (; started < THREADS && !status; started++)
        if (pthread_create(&handles[started], NULL, thread_main, &w[started])) break;
    for (int k = 0; k < started; k++) pthread_join(handles[k], NULL);
    check_watch(c, true);
    for (int k = 0; k < started && !status; k++)
        if (w[k].status) {
            *e = w[k].e;
            status = w[k].status;
        }
    for (int k = 0; k < THREADS; k++)
        if (!k || !shared) plugin_destroy(w[k].instance);
    str_free(&text);
    return status;
}

static tare_status test_verdict_cost(struct check *c, struct err *e)
{
    OWNED(plugin_destroy_at) struct plugin_instance *i = NULL;
    struct outcome verdict;
    const double start = clock_seconds();
    int64_t n = 0;
    TRY(check_instance(c, &i, e));
    check_watch(c, false);
    for (; clock_seconds() - start < 0.2; n++)
        TRY(run_verify(i, (tare_text){"Six times seven is 42. The answer is \\boxed{42}.", 48}, (tare_text){"42", 2}, 0, &verdict,
                       e));
    check_watch(c, true);
    return str_addf(&c->note, e, "%.2f us a verdict", 1e6 * (clock_seconds() - start) / (double)n);
}

const struct check_test CHECK_VERIFIER[] = {
    {"texts", "1000 mutated texts with NUL and broken UTF-8 get verdicts, and equal ones when repeated", TARE_KIND_VERIFIER,
     odd_texts},
    {"batches", "several completions in a call get the verdicts that each gets alone", TARE_KIND_VERIFIER, test_batches},
    {"waits", "submit, poll and take give the verdicts of verify in any order; a cancelled ticket is forgotten", TARE_KIND_VERIFIER,
     test_waits},
    {"streams", "texts that the host does not want or refuses, and a larger tare_verdict", TARE_KIND_VERIFIER, test_streams},
    {"rows", "a missing, an empty and a damaged row", TARE_KIND_VERIFIER, test_rows},
    {"uses", "the answer changes no verdict unless uses includes TARE_USES_ANSWER", TARE_KIND_VERIFIER, uses_what_it_says},
    {"explain", "explain writes one JSON object for every text", TARE_KIND_VERIFIER, test_explain},
    {"long", "1 MB of text with a deadline", TARE_KIND_VERIFIER, long_texts},
    {"threads", "four threads give the verdicts of one", TARE_KIND_VERIFIER, test_threads},
    {"speed", "time of a verdict", TARE_KIND_VERIFIER, test_verdict_cost},
    {0}};
