/* Checks every collective of a communicator against its definition; used by the tests of all
 * communicators. */
#ifndef TARE_TESTS_COLLECTIVES_H
#define TARE_TESTS_COLLECTIVES_H

#include "base/arena.h"
#include "dist/comm.h"

#include <stdio.h>
#include <string.h>

static inline float value(int rank, int64_t i)
{
    uint32_t x = (uint32_t)(i + 1) * 2654435761u + (uint32_t)rank * 40503u;
    x ^= x >> 15;
    x *= 2246822519u;
    x ^= x >> 13;
    return (float)((double)x / 4294967296.0 - 0.5) * (float)(1 << (x % 20));
}

#define CHECK(X)                                                                                                                   \
    do {                                                                                                                           \
        if (!(X)) FAIL(e, TARE_E_GENERIC, "rank %d of %d: not true: %s", c->rank, c->size, #X);                                    \
    } while (0)

static inline tare_status use_gather(struct comm *c, struct err *e)
{
    char mine[64], out[64 * 64];
    int64_t sizes[64];
    const int64_t n = (c->rank * 7) % 5 + (c->rank > 0); /* rank 0 contributes no bytes */
    for (int64_t i = 0; i < n; i++) mine[i] = (char)(c->rank * 10 + i);
    TRY(comm_gather_sizes(c, n, sizes, e));
    TRY(c->gather(c, mine, n, out, sizes, e));
    const char *at = out;
    for (int r = 0; r < c->size; r++) {
        CHECK(sizes[r] == (r * 7) % 5 + (r > 0));
        for (int64_t i = 0; i < sizes[r]; i++) CHECK(*at++ == (char)(r * 10 + i));
    }
    return TARE_OK;
}

static inline tare_status use_broadcast(struct comm *c, struct err *e)
{
    for (int root = 0; root < c->size; root++) {
        int64_t data[100];
        for (int i = 0; i < 100; i++) data[i] = c->rank == root ? root * 1000 + i : -1;
        TRY(c->broadcast(c, data, sizeof data, root, e));
        for (int i = 0; i < 100; i++) CHECK(data[i] == root * 1000 + i);
    }
    return c->barrier(c, e);
}

/* Gathers n floats per rank out of place, in place and in two halves. */
static inline tare_status use_all_gather(struct comm *c, int64_t n, struct err *e)
{
    OWNED(mem_free_at) float *out = NULL, *two = NULL;
    const int64_t bytes = n * (int64_t)sizeof(float);
    TRY(mem_new(c->size * bytes + 4, (void **)&out, e));
    TRY(mem_new(c->size * bytes + 4, (void **)&two, e));
    for (int64_t i = 0; i < n; i++) out[c->rank * n + i] = value(c->rank, i);
    TRY(c->gather_begin(c, out + c->rank * n, bytes, two, e));
    TRY(c->gather_wait(c, e));
    TRY(c->all_gather(c, out + c->rank * n, bytes, out, e));
    for (int r = 0; r < c->size; r++)
        for (int64_t i = 0; i < n; i++)
            if (out[r * n + i] != value(r, i) || two[r * n + i] != value(r, i))
                FAIL(e, TARE_E_GENERIC, "all_gather: rank %d has element %lld of rank %d wrong", c->rank, (long long)i, r);
    return TARE_OK;
}

static inline tare_status use_all_to_all(struct comm *c, int64_t n, struct err *e)
{
    OWNED(mem_free_at) float *in = NULL, *out = NULL;
    const int64_t bytes = n * (int64_t)sizeof(float);
    TRY(mem_new(c->size * bytes + 4, (void **)&in, e));
    TRY(mem_new(c->size * bytes + 4, (void **)&out, e));
    for (int64_t i = 0; i < c->size * n; i++) in[i] = value(c->rank, i);
    TRY(c->all_to_all(c, in, bytes, out, e));
    for (int r = 0; r < c->size; r++)
        for (int64_t i = 0; i < n; i++)
            if (out[r * n + i] != value(r, c->rank * n + i))
                FAIL(e, TARE_E_GENERIC, "all_to_all: piece of rank %d, element %lld", r, (long long)i);
    return TARE_OK;
}

/* Runs exchanges in two halves, COMM_EXCHANGES at a time, with a gather in progress and a barrier
 * in between. */
static inline tare_status use_exchanges(struct comm *c, int64_t n, struct err *e)
{
    enum { K = COMM_EXCHANGES };
    OWNED(mem_free_at) float *in = NULL, *out = NULL, *whole = NULL;
    const int64_t bytes = n * (int64_t)sizeof(float), all = c->size * n;
    TRY(mem_new(K * all * 4 + 4, (void **)&in, e));
    TRY(mem_new(K * all * 4 + 4, (void **)&out, e));
    TRY(mem_new(all * 4 + 4, (void **)&whole, e));
    for (int round = 0; round < 3; round++) {
        for (int64_t i = 0; i < K * all; i++) in[i] = value(c->rank + 100 * round, i);
        TRY(c->exchange_begin(c, in, bytes, out, e));
        TRY(c->gather_begin(c, in, bytes, whole, e));
        for (int k = 1; k < K; k++) TRY(c->exchange_begin(c, in + k * all, bytes, out + k * all, e));
        TRY(c->barrier(c, e));
        TRY(c->gather_wait(c, e));
        for (int k = 0; k < K; k++) TRY(c->exchange_wait(c, e));
        for (int k = 0; k < K; k++)
            for (int r = 0; r < c->size; r++)
                for (int64_t i = 0; i < n; i++)
                    if (out[k * all + r * n + i] != value(r + 100 * round, k * all + c->rank * n + i) ||
                        whole[r * n + i] != value(r + 100 * round, i))
                        FAIL(e, TARE_E_GENERIC, "exchange %d: piece of rank %d, element %lld", k, r, (long long)i);
    }
    return TARE_OK;
}

static inline tare_status use_agree(struct comm *c, struct err *e)
{
    struct err mine = {0};
    CHECK(comm_agree(c, TARE_OK, &mine) == TARE_OK);
    /* This rank and the ranks after it fail; rank 0 was only interrupted. */
    const int bad = c->size / 2;
    tare_status s = TARE_OK;
    if (c->rank == 0) s = err_set(&mine, TARE_E_CANCELLED, __FILE__, __LINE__, "interrupted");
    if (c->rank >= bad && c->size > 1) s = err_set(&mine, TARE_E_SHAPE, __FILE__, __LINE__, "bad shape on %d", c->rank);
    const tare_status got = comm_agree(c, s, &mine);
    if (c->size == 1) {
        CHECK(got == TARE_E_CANCELLED);
    } else {
        char want[64];
        snprintf(want, sizeof want, "rank %d: bad shape on %d", bad, bad);
        CHECK(got == TARE_E_SHAPE);
        CHECK(!strcmp(mine.message, want));
    }
    s = c->rank == c->size - 1 ? err_set(&mine, TARE_E_CANCELLED, __FILE__, __LINE__, "interrupted") : TARE_OK;
    CHECK(comm_agree(c, s, &mine) == TARE_E_CANCELLED);
    CHECK(!strcmp(mine.message, "interrupted"));
    return TARE_OK;
}

static inline tare_status use_same(struct comm *c, struct err *e)
{
    struct err mine = {0};
    struct comm_fact f[] = {{"run.seed", "1"}, {"model.path", "a b"}, {"x", ""}};
    CHECK(comm_same(c, "configuration", f, 3, &mine) == TARE_OK);
    if (c->size == 1) return TARE_OK;
    if (c->rank) f[1].value = "a c";
    CHECK(comm_same(c, "configuration", f, 3, &mine) == TARE_E_CONFIG);
    CHECK(strstr(mine.message, "configuration differs between ranks: model.path is 'a b' on rank 0 and 'a c' on rank"));
    f[1].value = "a b";
    CHECK(comm_same(c, "plugins", f, c->rank == c->size - 1 ? 3 : 2, &mine) == TARE_E_CONFIG);
    CHECK(strstr(mine.message, "x is missing on rank 0 and '' on rank"));
    CHECK(comm_same(c, "plugins", f, c->rank == c->size - 1 ? 2 : 3, &mine) == TARE_E_CONFIG);
    CHECK(strstr(mine.message, "x is '' on rank 0 and missing on rank"));
    return TARE_OK;
}

static inline tare_status use_all(struct comm *c, void *ctx, struct err *e)
{
    (void)ctx;
    TRY(use_gather(c, e));
    TRY(use_broadcast(c, e));
    for (int64_t n = 0; n < 3000; n = 3 * n + 1) {
        TRY(use_all_gather(c, n, e));
        TRY(use_all_to_all(c, n, e));
        TRY(use_exchanges(c, n, e));
    }
    TRY(use_agree(c, e));
    return use_same(c, e);
}

#endif
