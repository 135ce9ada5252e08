/* Tests of verifiers, on texts that a model may well write. */
#include "plugin/check/internal.h"

#include "base/clock.h"
#include "base/json.h"

#include <math.h>
#include <pthread.h>
#include <string.h>

enum { TEXTS = 60, CAPACITY = 256, BATCH = 8, GUARD = 32 };
static const char GUARD_BYTE = '\x5a';
static const char ROW[] = "{\"id\":\"row-1\",\"question\":\"What is 6 times 7?\",\"answer\":\"42\",\"extra\":{\"unit\":\"none\"}}";

struct outcome {
    int32_t code;
    double reward;
    int64_t size;
    char extracted[CAPACITY];
};

static tare_answer answer_of(tare_text completion, tare_text answer)
{
    return (tare_answer){.struct_size = sizeof(tare_answer),
                         .prompt = {"What is 6 times 7?", 18},
                         .completion = completion,
                         .answer = answer,
                         .row = {ROW, sizeof ROW - 1},
                         .prompt_uid = 7,
                         .n_tokens = completion.size / 4 + 1};
}

/* Verdicts, each with a buffer of `capacity` bytes between guards. */
struct verdict_buffers {
    char bytes[BATCH][CAPACITY + 2 * GUARD];
    tare_verdict verdict[BATCH], *verdicts[BATCH];
    int64_t capacity;
};

static void make_buffers(struct verdict_buffers *r, int64_t n, int64_t capacity)
{
    memset(r->bytes, GUARD_BYTE, sizeof r->bytes);
    r->capacity = capacity;
    for (int64_t k = 0; k < n; k++) {
        r->verdict[k] = (tare_verdict){.struct_size = sizeof *r->verdict, .extracted = r->bytes[k] + GUARD, .capacity = capacity};
        r->verdicts[k] = &r->verdict[k];
    }
}

static tare_status take_verdict(const struct verdict_buffers *r, int64_t k, tare_text completion, struct outcome *out,
                                struct err *e)
{
    for (int64_t g = 0; g < GUARD; g++)
        if (r->bytes[k][g] != GUARD_BYTE || r->bytes[k][GUARD + r->capacity + g] != GUARD_BYTE)
            FAIL(e, TARE_E_PLUGIN, "it wrote outside of the %lld bytes of `extracted`", (long long)r->capacity);
    out->code = r->verdict[k].code;
    out->reward = r->verdict[k].reward;
    out->size = r->verdict[k].size;
    memcpy(out->extracted, r->bytes[k] + GUARD, (size_t)out->size);
    if (str_utf8_error(out->extracted, out->size) && !str_utf8_error(completion.data, completion.size))
        FAIL(e, TARE_E_PLUGIN, "the text extracted from a valid text into %lld bytes is not valid UTF-8", (long long)r->capacity);
    return TARE_OK;
}

/* Runs n answers in one call. */
static tare_status verify_all(struct plugin_instance *i, const tare_answer *answers, int64_t n, int64_t capacity,
                              struct outcome *out, struct err *e)
{
    struct verdict_buffers r;
    const tare_answer *a[BATCH] = {NULL};
    make_buffers(&r, n, capacity);
    for (int64_t k = 0; k < n; k++) a[k] = &answers[k];
    TRY(plugin_verify(i, a, r.verdicts, n, e));
    for (int64_t k = 0; k < n; k++) TRY(take_verdict(&r, k, answers[k].completion, &out[k], e));
    return TARE_OK;
}

static tare_status run_verify(struct plugin_instance *i, tare_text completion, tare_text answer, int64_t deadline,
                              struct outcome *out, struct err *e)
{
    tare_answer a = answer_of(completion, answer);
    a.deadline_ns = deadline;
    return verify_all(i, &a, 1, CAPACITY, out, e);
}

static bool same_verdict(const struct outcome *a, const struct outcome *b)
{
    return a->code == b->code && a->reward == b->reward && a->size == b->size &&
           !memcmp(a->extracted, b->extracted, (size_t)a->size);
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
    for (int n = 0; n < 1000; n++) {
        const tare_text completion = a_text(c, n % TEXTS, &text), gold = a_text(c, (int)check_below(c, 20), &answer);
        TRY(run_verify(i, completion, gold, 0, &first, e));
        TRY(run_verify(i, completion, gold, 0, &second, e));
        if (!same_verdict(&first, &second))
            FAIL(e, TARE_E_PLUGIN, "the same text got two verdicts: code %d and %d, reward %g and %g", first.code, second.code,
                 first.reward, second.reward);
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
    tare_answer a[BATCH];
    struct outcome alone[BATCH], together[BATCH];
    TRY(check_instance(c, &i, e));
    for (int round = 0; round < 30; round++) {
        for (int k = 0; k < BATCH; k++)
            a[k] = answer_of(a_text(c, (int)check_below(c, TEXTS), &text.of[k]),
                             check_below(c, 3) ? (tare_text){"42", 2} : (tare_text){"A", 1});
        const int64_t n = 2 + (int64_t)check_below(c, BATCH - 1);
        for (int64_t k = 0; k < n; k++) TRY(verify_all(i, &a[k], 1, CAPACITY, &alone[k], e));
        TRY(verify_all(i, a, n, CAPACITY, together, e));
        for (int64_t k = 0; k < n; k++)
            if (!same_verdict(&alone[k], &together[k]))
                FAIL(e, TARE_E_PLUGIN, "answer %lld of %lld in a call got code %d, reward %g, but alone code %d, reward %g",
                     (long long)k + 1, (long long)n, together[k].code, together[k].reward, alone[k].code, alone[k].reward);
    }
    TRY(verify_all(i, a, 0, CAPACITY, together, e)); /* none */
    return TARE_OK;
}

/* Submitted answers, of which `open` have no verdict yet. */
struct open_tickets {
    struct plugin_instance *i;
    struct verdict_buffers buffers;
    struct str completion[BATCH]; /* as it was submitted */
    struct str text[BATCH], gold[BATCH];
    struct outcome want[BATCH];
    int64_t number[BATCH], open;
    bool closed[BATCH];
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
static tare_status submit_answer(struct open_tickets *o, int64_t k, const tare_answer *of, struct err *e)
{
    struct str *text = &o->text[k], *gold = &o->gold[k];
    tare_answer a = *of;
    tare_text submitted;
    TRY(copy_text(text, of->completion, &a.completion, e));
    TRY(copy_text(gold, of->answer, &a.answer, e));
    TRY(copy_text(&o->completion[k], of->completion, &submitted, e));
    const tare_status status = plugin_submit(o->i, &a, o->number[k], e);
    if (text->size) memset(text->data, 'x', (size_t)text->size);
    if (gold->size) memset(gold->data, 'y', (size_t)gold->size);
    return status;
}

/* Polls some of the open tickets once. */
static tare_status poll_some(struct check *c, struct open_tickets *o, int64_t wait_ns, struct err *e)
{
    int64_t number[BATCH], bytes[BATCH], at[BATCH], n = 0;
    tare_verdict *verdict[BATCH];
    uint8_t done[BATCH];
    for (int64_t k = 0; k < BATCH; k++) {
        if (o->closed[k] || (n && !check_below(c, 3))) continue;
        at[n] = k;
        number[n] = o->number[k];
        bytes[n] = o->completion[k].size;
        verdict[n++] = &o->buffers.verdict[k];
    }
    const tare_waiting w = {
        .struct_size = sizeof w, .n = n, .ticket = number, .verdict = verdict, .done = done, .wait_ns = wait_ns};
    const double start = clock_seconds();
    TRY(plugin_poll(o->i, &w, bytes, e));
    if (!wait_ns && clock_seconds() - start > 2)
        FAIL(e, TARE_E_PLUGIN, "poll with wait_ns 0 took %.1f s: must return at once", clock_seconds() - start);
    for (int64_t q = 0; q < n; q++) {
        const int64_t k = at[q];
        struct outcome got;
        if (!done[q]) continue;
        o->closed[k] = true;
        o->open--;
        TRY(take_verdict(&o->buffers, k, (tare_text){o->completion[k].data, o->completion[k].size}, &got, e));
        if (!same_verdict(&got, &o->want[k]))
            FAIL(e, TARE_E_PLUGIN, "answer %lld got code %d, reward %g from poll, but code %d, reward %g from verify", (long long)k,
                 got.code, got.reward, o->want[k].code, o->want[k].reward);
    }
    return TARE_OK;
}

/* Submits all answers of a batch, cancels one and submits another answer under its ticket, and
 * waits for all. */
static tare_status wait_for_batch(struct check *c, struct open_tickets *o, const tare_answer *a, struct err *e)
{
    const int64_t cancelled = (int64_t)check_below(c, BATCH), other = (cancelled + 1) % BATCH;
    make_buffers(&o->buffers, BATCH, CAPACITY);
    for (int64_t k = 0; k < BATCH; k++) {
        TRY(verify_all(o->i, &a[k], 1, CAPACITY, &o->want[k], e));
        o->closed[k] = true;
    }
    for (int64_t k = 0; k < BATCH; k++) {
        TRY(submit_answer(o, k, &a[k], e));
        o->closed[k] = false;
        o->open++;
    }
    plugin_cancel(o->i, o->number[cancelled]);
    o->closed[cancelled] = true;
    o->open--;
    TRY(submit_answer(o, cancelled, &a[other], e));
    o->want[cancelled] = o->want[other];
    o->closed[cancelled] = false;
    o->open++;
    const double start = clock_seconds();
    for (bool wait = false; o->open; wait = !wait) {
        const int64_t before = o->open;
        TRY(poll_some(c, o, wait ? 20000000 : 0, e));
        if (o->open == before && clock_seconds() - start > 5)
            FAIL(e, TARE_E_PLUGIN, "none of the %lld open answers (of %d) has a verdict after %.0f s", (long long)o->open, BATCH,
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

/* Tests that submit and poll give the verdicts of verify, in any order. */
static tare_status test_waits(struct check *c, struct err *e)
{
    OWNED(texts_free) struct texts text = {0};
    OWNED(tickets_free) struct open_tickets o = {0};
    if (!plugin_waits(c->plugin)) return check_skip(c, e, "the plugin has no submit");
    TRY(check_instance(c, &o.i, e));
    for (int round = 0; round < 10; round++) {
        tare_answer a[BATCH];
        for (int k = 0; k < BATCH; k++) {
            a[k] = answer_of(a_text(c, (int)check_below(c, TEXTS), &text.of[k]), (tare_text){"42", 2});
            if (k % 3 == 0) a[k].completion = a[k].answer;
            o.number[k] = (round % 2 ? -1 : 1) * (1000 + 10 * round + k);
        }
        TRY(wait_for_batch(c, &o, a, e));
    }
    return TARE_OK;
}

/* Tests `extracted` buffers of any size, 0 included: nothing is written outside, characters are not
 * cut, and the verdict does not change. */
static tare_status test_capacity(struct check *c, struct err *e)
{
    static const char *const LONG[] = {"The answer is \\boxed{\xe4\xbd\xa0\xe5\xa5\xbd\xe4\xbd\xa0\xe5\xa5\xbd}.",
                                       "\\boxed{123456789012345678901234567890}", "The answer is \\boxed{42}."};
    OWNED(plugin_destroy_at) struct plugin_instance *i = NULL;
    struct outcome whole, cut;
    TRY(check_instance(c, &i, e));
    for (int k = 0; k < 3; k++) {
        const tare_answer a = answer_of((tare_text){LONG[k], (int64_t)strlen(LONG[k])}, (tare_text){"42", 2});
        TRY(verify_all(i, &a, 1, CAPACITY, &whole, e));
        for (int64_t capacity = 0; capacity <= whole.size; capacity++) {
            TRY(verify_all(i, &a, 1, capacity, &cut, e));
            if (cut.code != whole.code || cut.reward != whole.reward)
                FAIL(e, TARE_E_PLUGIN, "the verdict changes with a buffer of %lld bytes for the extracted text",
                     (long long)capacity);
        }
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
        tare_answer a = answer_of((tare_text){"The answer is 42.", 17}, (tare_text){"42", 2});
        struct err why = {0};
        a.row = (tare_text){ROWS[k], (int64_t)strlen(ROWS[k])};
        if (verify_all(i, &a, 1, CAPACITY, &verdict, &why) &&
            (why.code == TARE_E_PLUGIN || strstr(why.message, "and no message"))) {
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
    for (int n = 0; n < TEXTS && !(uses & (TARE_USES_ANSWER | TARE_MAY_USE_ANSWER)); n++) {
        const tare_text completion = a_text(c, n, &text);
        struct outcome verdict[3];
        for (int k = 0; k < 3; k++) TRY(run_verify(i, completion, ANSWERS[k], 0, &verdict[k], e));
        if (!same_verdict(&verdict[0], &verdict[1]) || !same_verdict(&verdict[0], &verdict[2]))
            FAIL(e, TARE_E_PLUGIN, "uses does not include TARE_USES_ANSWER, but another answer changes the verdict");
    }
    return str_addf(&c->note, e, "%s",
                    uses & TARE_USES_ANSWER      ? "the row's answer"
                    : uses & TARE_MAY_USE_ANSWER ? "a program of the user decides"
                                                 : "rows need no answer");
}

static tare_status test_explain(struct check *c, struct err *e)
{
    OWNED(plugin_destroy_at) struct plugin_instance *i = NULL;
    OWNED(str_free) struct str text = {0}, completion = {0};
    if (!c->plugin->verifier->explain) return check_skip(c, e, "the plugin does not explain its verdicts");
    TRY(check_instance(c, &i, e));
    for (int n = 0; n < TEXTS; n++) {
        tare_answer a = answer_of(a_text(c, n, &completion), (tare_text){"42", 2});
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
    struct err e;
    tare_status status;
};

static void *thread_main(void *arg)
{
    struct worker *w = arg;
    for (int round = 0; round < 20 && !w->status; round++) {
        for (int n = 0; n < TEXTS && !w->status; n++) {
            struct outcome got;
            w->status = run_verify(w->instance, (tare_text){w->texts[n], (int64_t)strlen(w->texts[n])}, (tare_text){"42", 2}, 0,
                                   &got, &w->e);
            if (!w->status && !same_verdict(&got, &w->want[n]))
                w->status = err_set(&w->e, TARE_E_PLUGIN, __FILE__, __LINE__, "a verdict differs on several threads");
        }
    }
    return NULL;
}

static tare_status test_threads(struct check *c, struct err *e)
{
    enum { THREADS = 4 };
    const bool shared = c->plugin->desc.threading == TARE_REENTRANT;
    struct outcome want[TEXTS];
    struct worker w[THREADS];
    pthread_t handles[THREADS];
    char texts[TEXTS][64];
    struct str text = {0};
    tare_status status = TARE_OK;
    if (c->plugin->desc.threading == TARE_SINGLE_THREAD) return check_skip(c, e, "an instance accepts one thread at a time");
    memset(w, 0, sizeof w);
    memset(texts, 0, sizeof texts);
    for (int k = 0; k < THREADS && !status; k++) {
        w[k] = (struct worker){.want = want, .texts = texts};
        if (k && shared)
            w[k].instance = w[0].instance;
        else
            status = check_instance(c, &w[k].instance, e);
    }
    for (int n = 0; n < TEXTS && !status; n++) {
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
    {"texts", "1000 mutated texts with NUL and broken UTF-8 get verdicts, and equal ones when repeated", TARE_VERIFIER, odd_texts},
    {"batches", "several answers in a call get the verdicts that each gets alone", TARE_VERIFIER, test_batches},
    {"waits", "submit and poll give the verdicts of verify in any order; a cancelled ticket is forgotten", TARE_VERIFIER,
     test_waits},
    {"capacity", "buffers of any size for the extracted text, 0 included", TARE_VERIFIER, test_capacity},
    {"rows", "a missing, an empty and a damaged row", TARE_VERIFIER, test_rows},
    {"uses", "the answer changes no verdict unless uses includes TARE_USES_ANSWER", TARE_VERIFIER, uses_what_it_says},
    {"explain", "explain writes one JSON object for every text", TARE_VERIFIER, test_explain},
    {"long", "1 MB of text with a deadline", TARE_VERIFIER, long_texts},
    {"threads", "four threads give the verdicts of one", TARE_VERIFIER, test_threads},
    {"speed", "time of a verdict", TARE_VERIFIER, test_verdict_cost},
    {0}};
