#include "dist/deal.h"

#include "base/str.h"
#include "batch/pack.h"
#include "batch/select.h"
#include "dist/balance.h"

/* columns that a rank adds to its groups; every rank has the others */
enum { SHARED = BATCH_ROLLOUT | BATCH_VERIFY };

tare_status deal_batch(const struct batch *all, const struct rollout_config *c, struct comm *comm, struct arena *a,
                       struct share *out, struct err *e)
{
    int64_t *cost;
    *out = (struct share){.own = *all};
    if (comm->size == 1) return TARE_OK;
    TRY(arena_new(a, &cost, all->n_groups, e));
    TRY(arena_new(a, &out->rank, all->n_groups, e));
    for (int64_t m = 0; m < all->n_groups; m++) {
        const int64_t rollouts = all->samples && all->samples[m] ? all->samples[m] : c->group_size;
        cost[m] = all->prompt_begin[m + 1] - all->prompt_begin[m] + rollouts * c->max_new_tokens;
    }
    TRY(balance(cost, all->n_groups, comm->size, out->rank, a, e));
    return batch_split(all, out->rank, comm->rank, a, &out->own, e);
}

/* Unpacks the ranks' batches, which follow one another; sizes: [ranks] */
static tare_status unpack_all(char *bytes, const int64_t *sizes, int ranks, struct arena *a, struct batch *parts, struct err *e)
{
    for (int r = 0; r < ranks; bytes += sizes[r++])
        if (batch_unpack(bytes, sizes[r], a, &parts[r], e)) {
            e->code = TARE_E_COMM;
            return err_prefix(e, "the rollouts of rank %d", r);
        }
    return TARE_OK;
}

static tare_status gather_parts(const struct str *mine, struct comm *comm, struct arena *a, struct batch **parts, struct err *e)
{
    int64_t *sizes, total = 0;
    char *bytes;
    TRY(arena_new(a, &sizes, comm->size, e));
    TRY(arena_new(a, parts, comm->size, e));
    TRY(comm_gather_sizes(comm, mine->size, sizes, e));
    for (int r = 0; r < comm->size; r++) total += sizes[r];
    TRY(arena_push_raw(a, total, (void **)&bytes, e));
    TRY(comm->gather(comm, mine->data, mine->size, bytes, sizes, e));
    return unpack_all(bytes, sizes, comm->size, a, *parts, e);
}

tare_status deal_join(struct share *s, struct comm *comm, struct arena *a, struct batch *all, struct err *e)
{
    OWNED(str_free) struct str mine = {0};
    struct batch *parts, joined;
    if (comm->size == 1) {
        *all = s->own;
        return TARE_OK;
    }
    TRY(batch_pack(&s->own, SHARED, &mine, e));
    TRY(gather_parts(&mine, comm, a, &parts, e));
    const struct batch_parts ranks = {parts, comm->size};
    TRY(batch_join(ranks, (struct batch_indices){s->rank, all->n_groups}, SHARED, a, &joined, e));
    batch_adopt(all, &joined, SHARED);
    return TARE_OK;
}
