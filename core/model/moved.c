#include "model/moved.h"

#include "model/model.h"

static int64_t bytes_of(const struct model *m)
{
    return 2 * m->ranks * (int64_t)sizeof(uint64_t);
}

tare_status moved_new(const struct model *m, struct moved_digests *x, struct err *e)
{
    *x = (struct moved_digests){0};
    if (m->ranks == 1) return TARE_OK;
    x->digests = m->k->backend->alloc(&m->ctx, bytes_of(m));
    if (!x->digests) return kernels_no_memory(m->k, &m->ctx, "the digests of data sent between ranks", bytes_of(m), e);
    m->k->backend->zero(&m->ctx, x->digests, bytes_of(m));
    return TARE_OK;
}

void moved_free(const struct model *m, struct moved_digests *x)
{
    if (x->digests) m->k->backend->release(&m->ctx, x->digests);
    *x = (struct moved_digests){0};
}

static void add_digest(const struct model *m, uint64_t *digest, const float *slice, int64_t floats, int64_t at)
{
    KERNEL(m->k, &m->ctx, digest, .out = digest, .data = slice, .bytes = floats * (int64_t)sizeof(float), .first = at);
}

static int64_t advance_words(struct moved_digests *x, int64_t floats)
{
    x->words += floats;
    return x->words - floats;
}

int64_t moved_send(const struct model *m, struct moved_digests *x, const float *slices, int64_t floats)
{
    if (!x->digests) return 0;
    for (int r = 0; r < m->ranks; r++) add_digest(m, x->digests + r, slices + r * floats, floats, x->words);
    return advance_words(x, floats);
}

int64_t moved_send_all(const struct model *m, struct moved_digests *x, const float *slice, int64_t floats)
{
    if (!x->digests) return 0;
    for (int r = 0; r < m->ranks; r++) add_digest(m, x->digests + r, slice, floats, x->words);
    return advance_words(x, floats);
}

void moved_received(const struct model *m, struct moved_digests *x, const float *slices, int64_t floats, int64_t at)
{
    for (int r = 0; x->digests && r < m->ranks; r++) add_digest(m, x->digests + m->ranks + r, slices + r * floats, floats, at);
}

static tare_status compare_digests(const struct model *m, const uint64_t *all, const char *what, struct err *e)
{
    const int R = m->ranks;
    for (int from = 0; from < R; from++)
        for (int to = 0; to < R; to++) {
            const uint64_t sent = all[2 * R * from + to], got = all[2 * R * to + R + from];
            if (sent != got)
                FAIL(
                    e, TARE_E_CORRUPT,
                    "%s that rank %d sent to rank %d were changed in transit (digest %016llx, arrived with %016llx); is the network or the memory of a host damaged?",
                    what, from, to, (unsigned long long)sent, (unsigned long long)got);
        }
    return TARE_OK;
}

tare_status moved_check(const struct model *m, struct moved_digests *x, const char *what, struct err *e)
{
    OWNED(mem_free_at) uint64_t *all = NULL;
    OWNED(mem_free_at) int64_t *sizes = NULL;
    if (!x->digests || !x->words) return TARE_OK;
    TRY(mem_new((m->ranks + 1) * bytes_of(m), (void **)&all, e));
    TRY(mem_new(m->ranks * (int64_t)sizeof *sizes, (void **)&sizes, e));
    uint64_t *mine = all + 2 * m->ranks * m->ranks;
    for (int r = 0; r < m->ranks; r++) sizes[r] = bytes_of(m);
    m->k->backend->download(&m->ctx, mine, x->digests, bytes_of(m));
    TRY(model_finish(m, e));
    TRY(m->comm->gather(m->comm, mine, bytes_of(m), all, sizes, e));
    m->k->backend->zero(&m->ctx, x->digests, bytes_of(m));
    x->words = 0;
    return compare_digests(m, all, what, e);
}
