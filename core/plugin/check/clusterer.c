/* Tests of encoders and codebooks. */
#include "plugin/check/internal.h"

#include <math.h>
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

static tare_status encodes(struct check *c, struct err *e)
{
    struct plugin_instance *i = NULL;
    float *whole, *alone;
    tare_status status;

    TRY_TO(status, done, check_instance(c, &i, e));
    const int64_t D = plugin_dim(i);
    if (D < 1 || D > 1 << 20) FAIL_TO(status, done, e, TARE_E_PLUGIN, "its embeddings have %lld numbers", (long long)D);
    TRY_TO(status, done, arena_new(&c->arena, float, N *D, &whole, e));
    TRY_TO(status, done, arena_new(&c->arena, float, D, &alone, e));
    TRY_TO(status, done, plugin_encode(i, TEXTS, N, whole, e));
    TRY_TO(status, done, plugin_encode(i, TEXTS, 0, alone, e));
    if (memcmp(whole, whole + 5 * D, (size_t)D * sizeof(float)))
        FAIL_TO(status, done, e, TARE_E_PLUGIN, "the same text twice in a call has two embeddings");
    for (int64_t n = 0; n < N; n++) {
        TRY_TO(status, done, plugin_encode(i, &TEXTS[n], 1, alone, e));
        if (memcmp(alone, whole + n * D, (size_t)D * sizeof(float)))
            FAIL_TO(status, done, e, TARE_E_PLUGIN, "text %lld alone has another embedding than among others", (long long)n);
    }
done:
    plugin_destroy(i);
    return status;
}

static tare_status assigns(struct check *c, struct err *e)
{
    struct plugin_instance *i = NULL;
    float *embedding = NULL, distance[N], again[N];
    int32_t cluster[N], one;
    tare_text rows[N];
    tare_status status;

    static const char *const ROWS[] = {"{\"question\":\"b\",\"answer\":\"2\"}",
                                       "{\"question\":\"a\",\"answer\":\"1\",\"subject\":\"s\"}"};
    for (int n = 0; n < N; n++) rows[n] = (tare_text){ROWS[n % 2], (int64_t)strlen(ROWS[n % 2])};
    TRY_TO(status, done, check_instance(c, &i, e));
    TRY_TO(status, done, plugin_fit(i, rows, N, e));
    const int64_t D = plugin_dim(i);
    TRY_TO(status, done, arena_new(&c->arena, float, N *D + 1, &embedding, e));
    for (int64_t k = 0; k < N * D; k++) embedding[k] = (float)check_uniform(c);
    TRY_TO(status, done, plugin_assign(i, D ? embedding : NULL, rows, N, cluster, distance, e));
    for (int n = 0; n < N; n++) {
        TRY_TO(status, done, plugin_assign(i, D ? embedding + n * D : NULL, &rows[n], 1, &one, &again[n], e));
        if (one != cluster[n])
            FAIL_TO(status, done, e, TARE_E_PLUGIN, "row %d alone is in cluster %d, among others in %d", n, one, cluster[n]);
    }
done:
    plugin_destroy(i);
    return status;
}

const struct check_test CHECK_CLUSTERER[] = {
    {"encode", "finite, the same alone and among others, odd texts included", TARE_ENCODER, encodes},
    {"assign", "clusters in range, the same alone and among others", TARE_CODEBOOK, assigns},
    {0}};
