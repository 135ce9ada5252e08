/* Tests of verifiers, on texts that a model may well write. */
#include "plugin/check/internal.h"

#include "base/clock.h"

#include <math.h>
#include <pthread.h>
#include <string.h>

enum { TEXTS = 60, ROOM = 256 };

struct judged {
    int32_t code;
    double reward;
    int64_t size;
    char extracted[ROOM];
};

static tare_status judge(struct plugin_instance *i, tare_text completion, tare_text answer, int64_t deadline, struct judged *out,
                         struct err *e)
{
    const tare_answer a = {.struct_size = sizeof a,
                           .prompt = {"What is 6 times 7?", 18},
                           .completion = completion,
                           .answer = answer,
                           .deadline_ns = deadline};
    tare_verdict v = {.struct_size = sizeof v, .extracted = out->extracted, .capacity = ROOM};
    const tare_answer *answers = &a;
    tare_verdict *verdicts = &v;
    TRY(plugin_verify(i, &answers, &verdicts, 1, e));
    out->code = v.code;
    out->reward = v.reward;
    out->size = v.size;
    if (str_utf8_error(out->extracted, v.size) && !str_utf8_error(completion.data, completion.size))
        FAIL(e, TARE_E_PLUGIN, "what it extracted from a valid text is no valid UTF-8");
    return TARE_OK;
}

static bool same(const struct judged *a, const struct judged *b)
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

static tare_text a_text(struct check *c, int n, struct str *room)
{
    const char *seed = SEEDS[n % (int)(sizeof SEEDS / sizeof *SEEDS)];
    str_clear(room);
    str_add(room, seed, -1, NULL);
    for (int k = n / (int)(sizeof SEEDS / sizeof *SEEDS); k > 0 && room->size;
         k--) /* mutated: any byte, NUL and broken UTF-8 included */
        room->data[check_below(c, (uint64_t)room->size)] = (char)check_below(c, 256);
    return (tare_text){room->data ? room->data : "", room->size};
}

static tare_status odd_texts(struct check *c, struct err *e)
{
    struct plugin_instance *i = NULL;
    struct str text = {0}, answer = {0};
    struct judged first, second;
    tare_status status;
    TRY_TO(status, done, check_instance(c, &i, e));
    for (int n = 0; n < 1000; n++) {
        const tare_text completion = a_text(c, n % TEXTS, &text), gold = a_text(c, (int)check_below(c, 20), &answer);
        TRY_TO(status, done, judge(i, completion, gold, 0, &first, e));
        TRY_TO(status, done, judge(i, completion, gold, 0, &second, e));
        if (!same(&first, &second))
            FAIL_TO(status, done, e, TARE_E_PLUGIN, "the same text judged twice: %d and %d, reward %g and %g", first.code,
                    second.code, first.reward, second.reward);
    }
done:
    plugin_destroy(i);
    str_free(&text);
    str_free(&answer);
    return status;
}

static tare_status long_texts(struct check *c, struct err *e)
{
    static const char *const PARTS[] = {"x", "{", "(", "\\frac", "1", " ", "\xff", "\\boxed{", "-", "the answer is "};
    struct plugin_instance *i = NULL;
    struct str text = {0};
    struct judged verdict;
    double worst = 0;
    tare_status status;
    TRY_TO(status, done, check_instance(c, &i, e));
    for (size_t k = 0; k < sizeof PARTS / sizeof *PARTS; k++) {
        str_clear(&text);
        while (text.size < 1 << 20) TRY_TO(status, done, str_add(&text, PARTS[k], -1, e));
        const double start = clock_seconds();
        TRY_TO(status, done,
               judge(i, (tare_text){text.data, text.size}, (tare_text){"42", 2}, clock_ns() + 200000000, &verdict, e));
        const double took = clock_seconds() - start;
        worst = fmax(worst, took);
        if (took > 1)
            FAIL_TO(status, done, e, TARE_E_PLUGIN,
                    "1 MB of '%s' with a deadline of 0.2 s took %.2f s; look at deadline_ns in loops", PARTS[k], took);
    }
    status = str_addf(&c->note, e, "the slowest took %.1f ms", 1e3 * worst);
done:
    plugin_destroy(i);
    str_free(&text);
    return status;
}

struct worker {
    struct plugin_instance *instance;
    const struct judged *want;
    char (*texts)[64];
    struct err e;
    tare_status status;
};

static void *work(void *arg)
{
    struct worker *w = arg;
    for (int round = 0; round < 20 && !w->status; round++) {
        for (int n = 0; n < TEXTS && !w->status; n++) {
            struct judged got;
            w->status =
                judge(w->instance, (tare_text){w->texts[n], (int64_t)strlen(w->texts[n])}, (tare_text){"42", 2}, 0, &got, &w->e);
            if (!w->status && !same(&got, &w->want[n]))
                w->status = err_set(&w->e, TARE_E_PLUGIN, __FILE__, __LINE__, "on several threads a text is judged otherwise");
        }
    }
    return NULL;
}

static tare_status threads(struct check *c, struct err *e)
{
    enum { THREADS = 4 };
    const bool shared = c->plugin->desc.threading == TARE_REENTRANT;
    struct judged want[TEXTS];
    struct worker w[THREADS];
    pthread_t handles[THREADS];
    char texts[TEXTS][64];
    struct str room = {0};
    tare_status status = TARE_OK;
    if (c->plugin->desc.threading == TARE_SINGLE_THREAD) FAIL(e, TARE_E_UNSUPPORTED, "it is for one thread at a time");
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
        const tare_text t = a_text(c, n % 20, &room);
        memcpy(texts[n], t.data, (size_t)t.size < 63 ? (size_t)t.size : 63);
        status = judge(w[0].instance, (tare_text){texts[n], (int64_t)strlen(texts[n])}, (tare_text){"42", 2}, 0, &want[n], e);
    }
    int started = 0;
    for (; started < THREADS && !status; started++)
        if (pthread_create(&handles[started], NULL, work, &w[started])) break;
    for (int k = 0; k < started; k++) pthread_join(handles[k], NULL);
    for (int k = 0; k < started && !status; k++)
        if (w[k].status) *e = w[k].e, status = w[k].status;
    for (int k = 0; k < THREADS; k++)
        if (!k || !shared) plugin_destroy(w[k].instance);
    str_free(&room);
    return status;
}

static tare_status cost(struct check *c, struct err *e)
{
    struct plugin_instance *i = NULL;
    struct judged verdict;
    const double start = clock_seconds();
    int64_t n = 0;
    tare_status status;
    TRY_TO(status, done, check_instance(c, &i, e));
    for (; clock_seconds() - start < 0.2; n++)
        TRY_TO(
            status, done,
            judge(i, (tare_text){"Six times seven is 42. The answer is \\boxed{42}.", 48}, (tare_text){"42", 2}, 0, &verdict, e));
    status = str_addf(&c->note, e, "%.2f us a verdict", 1e6 * (clock_seconds() - start) / (double)n);
done:
    plugin_destroy(i);
    return status;
}

const struct check_test CHECK_VERIFIER[] = {
    {"texts", "1000 texts, mutated, with NUL and broken UTF-8: judged, and the same again", TARE_VERIFIER, odd_texts},
    {"long", "1 MB of text with a deadline", TARE_VERIFIER, long_texts},
    {"threads", "four threads judge as one", TARE_VERIFIER, threads},
    {"speed", "time of a verdict", TARE_VERIFIER, cost},
    {0}};
