#include "model/proof.h"

#include "base/fault.h"
#include "base/fs.h"
#include "model/layout.h"
#include "model/lora.h"
#include "model/shards.h"

/* Offsets of the digests of struct refresh_proof. */
static uint64_t *slice_digests(const struct model *m, const struct refresh_proof *p, int64_t u)
{
    return p->digests + shards_unit_count(m) + u * m->ranks;
}

static uint64_t *copy_digest(const struct model *m, const struct refresh_proof *p)
{
    return slice_digests(m, p, shards_unit_count(m));
}

static int64_t n_digests(const struct model *m)
{
    return shards_unit_count(m) * (1 + m->ranks) + 2;
}

/* Returns the number of words before unit u, not counting the padding for ranks. */
static int64_t words_before(const struct model *m, int64_t u)
{
    int64_t words = 0;
    for (int64_t i = 0; i < u; i++) words += m->unit_size[i];
    return words;
}

static void add_unit(const struct model *m, uint64_t *out, int64_t u, const float *whole)
{
    KERNEL(m->k, &m->ctx, digest, .out = out, .data = whole, .bytes = m->unit_size[u] * (int64_t)sizeof(float),
           .first = words_before(m, u));
}

static uint64_t with_frozen(const struct model *m, uint64_t digest)
{
    return fs_hash(&digest, sizeof digest, model_frozen_hash(m));
}

static tare_status new_digests(const struct model *m, int64_t n, uint64_t **out, struct err *e)
{
    const int64_t bytes = n * (int64_t)sizeof **out;
    *out = m->k->backend->alloc(&m->ctx, bytes);
    return *out ? TARE_OK : kernels_no_memory(m->k, &m->ctx, "the digests of the weights", bytes, e);
}

/* Waits for n digests and copies them to the host. */
static tare_status read_digests(const struct model *m, const uint64_t *digests, int64_t n, uint64_t *out, struct err *e)
{
    m->k->backend->download(&m->ctx, out, digests, n * (int64_t)sizeof *out);
    return model_finish(m, e);
}

tare_status proof_digest(const struct model *m, uint64_t *out, struct err *e)
{
    uint64_t *digest, sum = 0;
    TRY(new_digests(m, 1, &digest, e));
    for (int64_t u = shards_unit_first(m); u < shards_unit_end(m); u++) add_unit(m, digest, u, m->weights + m->unit_begin[u]);
    const tare_status status = read_digests(m, digest, 1, &sum, e);
    m->k->backend->release(&m->ctx, digest);
    *out = with_frozen(m, sum);
    return status;
}

static void add_own(const struct model *m, uint64_t *digests)
{
    for (int64_t u = shards_unit_first(m); u < shards_unit_end(m); u++)
        KERNEL(m->k, &m->ctx, digest, .out = digests + u, .data = m->weights + shards_unit_own_weights(m, u),
               .bytes = shards_unit_slice(m, u) * (int64_t)sizeof(float), .first = m->rank * shards_unit_slice(m, u));
}

static uint64_t hash_own(const struct model *m, const uint64_t *digests)
{
    return fs_hash(digests, shards_unit_count(m) * (int64_t)sizeof *digests, 0);
}

static tare_status own_hash(const struct model *m, uint64_t *out, struct err *e)
{
    const int64_t n = shards_unit_count(m);
    OWNED(mem_free_at) uint64_t *mine = NULL;
    uint64_t *digests;
    TRY(mem_new(n * (int64_t)sizeof *mine, (void **)&mine, e));
    TRY(new_digests(m, n, &digests, e));
    add_own(m, digests);
    const tare_status status = read_digests(m, digests, n, mine, e);
    m->k->backend->release(&m->ctx, digests);
    *out = hash_own(m, mine);
    return status;
}

uint64_t proof_refresh_own(const struct model *m, const struct refresh_proof *p)
{
    return p->owners ? hash_own(m, p->owners + m->rank * shards_unit_count(m)) : 0;
}

tare_status proof_weights_kept(const struct model *m, struct err *e)
{
    uint64_t now = 0;
    if (m->ranks == 1) return TARE_OK;
    const bool whole = model_is_whole(m);
    TRY(whole ? proof_digest(m, &now, e) : own_hash(m, &now, e));
    const uint64_t was = whole ? m->hash : m->own_hash;
    if (now != was && !m->k->backend->counts) /* a counting backend has no bytes */
        FAIL(
            e, TARE_E_CORRUPT,
            "the weights that rank %d holds changed since the last optimizer step, and nothing was trained (digest %016llx, was %016llx); is the memory of its host damaged?",
            m->rank, (unsigned long long)now, (unsigned long long)was);
    return TARE_OK;
}

/* ---------------------------------------------------------------- faults */

static tare_status flip_bit(const struct model *m, float *at, struct err *e)
{
    uint32_t bits;
    m->k->backend->download(&m->ctx, &bits, at, sizeof bits);
    TRY(model_finish(m, e));
    bits ^= 1;
    m->k->backend->upload(&m->ctx, at, &bits, sizeof bits);
    return TARE_OK;
}

/* Flips a bit in the first trained layer; in the slice of another rank, if this rank has one. */
static tare_status fault_at(const struct model *m, const char *point, int64_t u, float *slices, struct err *e)
{
    bool flips;
    if (m->ranks == 1 || u != shards_unit_first(m)) return TARE_OK;
    TRY(fault_flips(m->rank, point, m->comm->step, &flips, e));
    return flips ? flip_bit(m, slices, e) : TARE_OK;
}

tare_status proof_weights_fault(const struct model *m, struct err *e)
{
    const int64_t u = shards_unit_first(m), other = (m->rank + 1) % m->ranks;
    return fault_at(m, "weights", u,
                    m->weights + (model_is_whole(m) ? m->unit_begin[u] + other * shards_unit_slice(m, u) : shards_unit_own(m, u)),
                    e);
}

tare_status proof_gathered_fault(const struct model *m, int64_t u, const float *whole, struct err *e)
{
    return fault_at(m, "gathered", u, (float *)(uintptr_t)whole + (m->rank + 1) % m->ranks * shards_unit_slice(m, u), e);
}

/* ---------------------------------------------------------------- a refresh */

static tare_status gather_owners(const struct model *m, struct refresh_proof *p, struct err *e)
{
    const int64_t n = shards_unit_count(m), bytes = n * (int64_t)sizeof(uint64_t);
    OWNED(mem_free_at) uint64_t *mine = NULL;
    OWNED(mem_free_at) int64_t *sizes = NULL;
    TRY(mem_new(m->ranks * bytes, (void **)&p->owners, e));
    TRY(mem_new(bytes, (void **)&mine, e));
    TRY(mem_new(m->ranks * (int64_t)sizeof *sizes, (void **)&sizes, e));
    for (int r = 0; r < m->ranks; r++) sizes[r] = bytes;
    TRY(read_digests(m, p->digests, n, mine, e));
    return m->comm->gather(m->comm, mine, bytes, p->owners, sizes, e);
}

tare_status proof_refresh_begin(const struct model *m, struct refresh_proof *p, struct err *e)
{
    *p = (struct refresh_proof){0};
    if (m->ranks == 1) return TARE_OK;
    TRY(new_digests(m, n_digests(m), &p->digests, e));
    add_own(m, p->digests);
    return gather_owners(m, p, e);
}

void proof_refresh_unit(const struct model *m, struct refresh_proof *p, int64_t u, const float *whole)
{
    const int64_t slice = shards_unit_slice(m, u);
    if (!p->digests) return;
    for (int r = 0; r < m->ranks; r++)
        KERNEL(m->k, &m->ctx, digest, .out = slice_digests(m, p, u) + r, .data = whole + r * slice,
               .bytes = slice * (int64_t)sizeof(float), .first = r * slice);
    add_unit(m, copy_digest(m, p) + 1, u, whole);
}

void proof_refresh_copy(const struct model *m, struct refresh_proof *p, const void *copy, int64_t bytes)
{
    if (!p->digests) return;
    KERNEL(m->k, &m->ctx, digest, .out = copy_digest(m, p), .data = copy, .bytes = bytes, .first = p->copied);
    p->copied += (bytes + 3) / 4;
}

static tare_status compare_slices(const struct model *m, const struct refresh_proof *p, const uint64_t *got, struct err *e)
{
    const int64_t n = shards_unit_count(m);
    for (int64_t u = shards_unit_first(m); u < shards_unit_end(m); u++)
        for (int r = 0; r < m->ranks; r++)
            if (got[n + u * m->ranks + r] != p->owners[r * n + u])
                FAIL(e, TARE_E_CORRUPT, "unit %lld of the weights arrived with digest %016llx, rank %d trained %016llx",
                     (long long)u, (unsigned long long)got[n + u * m->ranks + r], r, (unsigned long long)p->owners[r * n + u]);
    return TARE_OK;
}

static tare_status compare_copies(const struct model *m, uint64_t mine, struct err *e)
{
    OWNED(mem_free_at) int64_t *all = NULL;
    TRY(mem_new(m->ranks * (int64_t)sizeof *all, (void **)&all, e));
    TRY(comm_gather_numbers(m->comm, (int64_t)mine, all, e));
    for (int r = 1; r < m->ranks; r++)
        if (all[r] != all[0])
            FAIL(e, TARE_E_CORRUPT, "the weights that rank %d samples from (digest %016llx) are not those of rank 0 (%016llx)", r,
                 (unsigned long long)all[r], (unsigned long long)all[0]);
    return TARE_OK;
}

static tare_status compare_all(const struct model *m, const struct refresh_proof *p, uint64_t *weights, struct err *e)
{
    OWNED(mem_free_at) uint64_t *got = NULL;
    TRY(mem_new(n_digests(m) * (int64_t)sizeof *got, (void **)&got, e));
    TRY(read_digests(m, p->digests, n_digests(m), got, e));
    *weights = with_frozen(m, got[n_digests(m) - 1]);
    struct err slice_error = {0};
    const tare_status slices = compare_slices(m, p, got, &slice_error);
    /* This is a collective: a rank with a bad slice takes part. */
    const tare_status copies = compare_copies(m, with_frozen(m, got[n_digests(m) - 2]), e);
    if (slices) *e = slice_error;
    return slices ? slices : copies;
}

tare_status proof_refresh_end(const struct model *m, struct refresh_proof *p, uint64_t *weights, struct err *e)
{
    if (!p->digests) return TARE_OK;
    const tare_status status = compare_all(m, p, weights, e);
    proof_refresh_free(m, p);
    return status;
}

void proof_refresh_free(const struct model *m, struct refresh_proof *p)
{
    if (p->digests) m->k->backend->release(&m->ctx, p->digests);
    mem_free(p->owners);
    *p = (struct refresh_proof){0};
}
