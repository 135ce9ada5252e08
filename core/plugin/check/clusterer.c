/* Tests of encoders and codebooks. */
#include "plugin/check/internal.h"

#include <math.h>
#include <pthread.h>
#include <string.h>

enum { N = 8 };
static const tare_text TEXTS[N] = {{"What is 6 times 7?", 18},
                                   {"", 0},
                                   {"a", 1},
                                   {"\xff\xfe\x00 broken", 10},
                                   {"Solve x^2 = 4.", 14},
                                   {"What is 6 times 7?", 18},
                                   {"\xe4\xbd\xa0\xe5\xa5\xbd", 6},
                                   {"      ", 6}};

static tare_status test_encode(struct check *c, struct err *e)
{
    OWNED(plugin_destroy_at) struct plugin_instance *i = NULL;
    float *whole, *alone;

    TRY(check_instance(c, &i, e));
    const int64_t D = i->sizes.dim;
    if (D < 1 || D > 1 << 20) FAIL(e, TARE_E_PLUGIN, "invalid embedding width %lld", (long long)D);
    TRY(arena_new(&c->arena, &whole, N * D, e));
    TRY(arena_new(&c->arena, &alone, D, e));
    TRY(plugin_encode(i, TEXTS, N, whole, e));
    TRY(plugin_encode(i, TEXTS, 0, alone, e));
    if (memcmp(whole, whole + 5 * D, (size_t)D * sizeof(float)))
        FAIL(e, TARE_E_PLUGIN, "the same text twice in a call has different embeddings");
    for (int64_t n = 0; n < N; n++) {
        TRY(plugin_encode(i, &TEXTS[n], 1, alone, e));
        if (memcmp(alone, whole + n * D, (size_t)D * sizeof(float)))
            FAIL(e, TARE_E_PLUGIN, "the embedding of text %lld depends on the other texts in the call", (long long)n);
    }
    return TARE_OK;
}

static void some_rows(tare_text rows[N])
{
    static const char *const ROWS[] = {"{\"question\":\"b\",\"answer\":\"2\"}",
                                       "{\"question\":\"a\",\"answer\":\"1\",\"subject\":\"s\"}"};
    for (int n = 0; n < N; n++) rows[n] = (tare_text){ROWS[n % 2], (int64_t)strlen(ROWS[n % 2])};
}

/* Writes an instance's outputs for eight texts or rows, as bytes. */
static tare_status write_answers(struct check *c, struct plugin_instance *i, struct str *out, struct err *e)
{
    tare_text rows[N];
    int32_t cluster[N];
    float *numbers, distance[N];
    const int64_t D = i->sizes.dim;
    TRY(arena_new(&c->arena, &numbers, N * D + 1, e));
    if (i->plugin->desc.kind == TARE_KIND_ENCODER) {
        TRY(plugin_encode(i, TEXTS, N, numbers, e));
        return str_add(out, (const char *)numbers, N * D * (int64_t)sizeof *numbers, e);
    }
    some_rows(rows);
    for (int64_t k = 0; k < N * D; k++) numbers[k] = (float)(k % 7) - 3;
    TRY(plugin_assign(i, &(struct plugin_assignment){D ? numbers : NULL, rows, N, cluster, distance}, e));
    TRY(str_add(out, (const char *)cluster, sizeof cluster, e));
    return str_add(out, (const char *)distance, sizeof distance, e);
}

/* Tests that fit, save and load into a new instance give equal answers and equal bytes, and that a
 * damaged state is refused or accepted without a crash. */
static tare_status test_fit(struct check *c, struct err *e)
{
    OWNED(plugin_destroy_at) struct plugin_instance *a = NULL, *b = NULL;
    OWNED(str_free) struct str saved = {0}, again = {0}, one = {0}, two = {0};
    tare_text rows[N];
    const bool encoder = c->plugin->desc.kind == TARE_KIND_ENCODER;
    if (!(encoder ? c->plugin->encoder->save : c->plugin->codebook->save)) return check_skip(c, e, "the plugin has no state");
    some_rows(rows);
    TRY(check_instance(c, &a, e));
    TRY(check_instance(c, &b, e));
    TRY(plugin_fit(a, encoder ? TEXTS : rows, N, e));
    TRY(plugin_save_raw(a, &saved, e));
    TRY(plugin_load_raw(b, saved.data, saved.size, "saved state", e));
    TRY(plugin_save_raw(b, &again, e));
    TRY(write_answers(c, a, &one, e));
    TRY(write_answers(c, b, &two, e));
    if (saved.size != again.size || memcmp(saved.data, again.data, (size_t)saved.size))
        FAIL(e, TARE_E_PLUGIN, "save and load changed the state");
    if (one.size != two.size || memcmp(one.data, two.data, (size_t)one.size))
        FAIL(e, TARE_E_PLUGIN, "save and load changed its answers");
    for (int round = 0; round < 100; round++) {
        struct err why = {0};
        const int64_t n = (int64_t)check_below(c, (uint64_t)(saved.size + round % 2));
        plugin_destroy(b);
        b = NULL;
        TRY(check_instance(c, &b, e));
        str_clear(&again);
        TRY(str_add(&again, saved.data, n, e));
        if (round % 2)
            for (int64_t k = 0; k < n; k++)
                if (!check_below(c, 4)) again.data[k] = (char)check_below(c, 256);
        const tare_status got = plugin_load_raw(b, again.data ? again.data : "", n, "damaged state", &why);
        TRY(check_ignored(&why, e));
        if (round % 2 == 0 && !got) TRY(check_cut(b, &again, saved.size, e));
    }
    return TARE_OK;
}

/* Tests that the identity is equal for two instances with the same parameters, and for one instance
 * asked twice. */
static tare_status test_identity(struct check *c, struct err *e)
{
    OWNED(plugin_destroy_at) struct plugin_instance *a = NULL, *b = NULL;
    OWNED(str_free) struct str first = {0}, other = {0}, again = {0};
    TRY(check_instance(c, &a, e));
    TRY(check_instance(c, &b, e));
    TRY(plugin_identity(a, &first, e));
    TRY(plugin_identity(b, &other, e));
    TRY(plugin_identity(a, &again, e));
    const char *differs = strcmp(first.data, other.data) ? other.data : again.data;
    if (strcmp(first.data, differs)) FAIL(e, TARE_E_PLUGIN, "its identity changed from '%.200s' to '%.200s'", first.data, differs);
    return TARE_OK;
}

struct worker {
    struct plugin_instance *instance;
    struct str want;
    struct err e;
    tare_status status;
    struct check check; /* each thread has its own arena */
};

static void *thread_main(void *arg)
{
    struct worker *w = arg;
    for (int round = 0; round < 20 && !w->status; round++) {
        struct str got = {0};
        w->status = write_answers(&w->check, w->instance, &got, &w->e);
        if (!w->status && (got.size != w->want.size || memcmp(got.data, w->want.data, (size_t)got.size)))
            w->status = err_set(&w->e, TARE_E_PLUGIN, __FILE__, __LINE__, "its answers differ on several threads");
        str_free(&got);
    }
    return NULL;
}

static tare_status test_threads(struct check *c, struct err *e)
{
    enum { THREADS = 4 };
    struct worker w[THREADS];
    pthread_t handles[THREADS];
    OWNED(plugin_destroy_at) struct plugin_instance *i = NULL;
    OWNED(str_free) struct str want = {0};
    int started = 0;
    if (c->plugin->desc.calls != TARE_CALLS_CONCURRENT) return check_skip(c, e, "an instance accepts one thread at a time");
    memset(w, 0, sizeof w);
    TRY(check_instance(c, &i, e));
    TRY(plugin_fit(i, TEXTS, N, e));
    TRY(write_answers(c, i, &want, e));
    check_watch(c, false); /* the watch observes the whole process */
    for (; started < THREADS; started++) {
        w[started] = (struct worker){.instance = i, .want = want};
        arena_init(&w[started].check.arena, "check");
        if (pthread_create(&handles[started], NULL, thread_main, &w[started])) break;
    }
    for (int k = 0; k < started; k++) pthread_join(handles[k], NULL);
    check_watch(c, true);
    tare_status first = TARE_OK;
    for (int k = started; k-- > 0; arena_free(&w[k].check.arena))
        if (w[k].status) {
            *e = w[k].e;
            first = w[k].status;
        }
    return first;
}

/* Tests that two readings of every cluster's name are equal. */
static tare_status test_names(const struct plugin_instance *i, struct err *e)
{
    OWNED(str_free) struct str one = {0}, two = {0};
    const int64_t most = i->sizes.clusters < 1000 ? i->sizes.clusters : 1000;
    for (int64_t k = 0; k < most; k++) {
        str_clear(&one);
        str_clear(&two);
        TRY(plugin_cluster_name(i, k, &one, e));
        TRY(plugin_cluster_name(i, k, &two, e));
        if (one.size != two.size || (one.size && memcmp(one.data, two.data, (size_t)one.size)))
            FAIL(e, TARE_E_PLUGIN, "cluster %lld has another name when asked again", (long long)k);
    }
    return TARE_OK;
}

static tare_status test_assign(struct check *c, struct err *e)
{
    OWNED(plugin_destroy_at) struct plugin_instance *i = NULL;
    OWNED(str_free) struct str before = {0}, after = {0};
    float *embedding = NULL, distance[N], again[N];
    int32_t cluster[N], one;
    tare_text rows[N];

    some_rows(rows);
    TRY(check_instance(c, &i, e));
    TRY(plugin_fit(i, rows, N, e));
    const int64_t D = i->sizes.dim;
    TRY(arena_new(&c->arena, &embedding, N * D + 1, e));
    for (int64_t k = 0; k < N * D; k++) embedding[k] = (float)check_uniform(c);
    TRY(plugin_save_raw(i, &before, e));
    TRY(plugin_assign(i, &(struct plugin_assignment){D ? embedding : NULL, rows, N, cluster, distance}, e));
    for (int n = 0; n < N; n++) {
        TRY(plugin_assign(i, &(struct plugin_assignment){D ? embedding + n * D : NULL, &rows[n], 1, &one, &again[n]}, e));
        if (one != cluster[n])
            FAIL(e, TARE_E_PLUGIN, "row %d is in cluster %d when alone, but in %d among others", n, one, cluster[n]);
        if (again[n] != distance[n] && !(isnan(again[n]) && isnan(distance[n])))
            FAIL(e, TARE_E_PLUGIN, "row %d is at the distance %g when alone, but at %g among others", n, (double)again[n],
                 (double)distance[n]);
    }
    TRY(test_names(i, e));
    TRY(plugin_save_raw(i, &after, e));
    if (before.size != after.size || (before.size && memcmp(before.data, after.data, (size_t)before.size)))
        FAIL(e, TARE_E_PLUGIN, "assign or cluster_name changed the state");
    return TARE_OK;
}

const struct check_test CHECK_CLUSTERER[] = {
    {"encode", "embeddings are finite and do not depend on the other texts, odd texts included", TARE_KIND_ENCODER, test_encode},
    {"assign", "clusters are in range and do not depend on the other rows, nor do distances; the state stays the same",
     TARE_KIND_CODEBOOK, test_assign},
    {"fit", "fit, save and load give equal answers; damaged states are refused", TARE_KIND_ENCODER, test_fit},
    {"fit", "fit, save and load give equal answers; damaged states are refused", TARE_KIND_CODEBOOK, test_fit},
    {"identity", "equal parameters give equal identities", TARE_KIND_ENCODER, test_identity},
    {"identity", "equal parameters give equal identities", TARE_KIND_CODEBOOK, test_identity},
    {"threads", "four threads get equal answers", TARE_KIND_ENCODER, test_threads},
    {0}};
