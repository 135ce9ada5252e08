#include "loop/share.h"

#include "base/str.h"
#include "dist/deal.h"

#include <string.h>

/* ---------------------------------------------------------------- dealing */

static tare_status take_groups(const struct batch *all, const int64_t *rank, int me, struct arena *a, struct batch *own,
                               struct err *e)
{
    *own = (struct batch){.step = all->step};
    TRY(arena_new(a, const struct row *, all->n_groups, &own->row, e));
    TRY(arena_new(a, uint64_t, all->n_groups, &own->prompt_uid, e));
    TRY(arena_new(a, int64_t, all->n_groups, &own->occurrence, e));
    TRY(arena_new(a, int64_t, all->n_groups + 1, &own->prompt_begin, e));
    TRY(arena_new(a, int64_t, 1, &own->group_begin, e));
    TRY(arena_new(a, int64_t, 1, &own->token_begin, e));
    TRY(arena_new(a, int32_t, all->prompt_begin[all->n_groups], &own->prompt_ids, e));
    for (int64_t m = 0; m < all->n_groups; m++) {
        if (rank[m] != me) continue;
        const int64_t g = own->n_groups++, n = all->prompt_begin[m + 1] - all->prompt_begin[m];
        own->row[g] = all->row[m];
        own->prompt_uid[g] = all->prompt_uid[m];
        own->occurrence[g] = all->occurrence[m];
        own->prompt_begin[g + 1] = own->prompt_begin[g] + n;
        memcpy(own->prompt_ids + own->prompt_begin[g], all->prompt_ids + all->prompt_begin[m], (size_t)n * sizeof *own->prompt_ids);
    }
    return TARE_OK;
}

tare_status share_deal(const struct batch *all, int64_t new_tokens, struct comm *comm, struct arena *a, struct share *out,
                       struct err *e)
{
    int64_t *cost;
    *out = (struct share){.own = *all};
    if (comm->size == 1) return TARE_OK;
    TRY(arena_new(a, int64_t, all->n_groups, &cost, e));
    TRY(arena_new(a, int64_t, all->n_groups, &out->rank, e));
    for (int64_t m = 0; m < all->n_groups; m++) cost[m] = all->prompt_begin[m + 1] - all->prompt_begin[m] + new_tokens;
    TRY(deal(cost, all->n_groups, comm->size, out->rank, a, e));
    return take_groups(all, out->rank, comm->rank, a, &out->own, e);
}

/* ---------------------------------------------------------------- groups as bytes */

struct totals { /* in front of a rank's groups */
    int64_t groups, rollouts, tokens, components, off_policy;
};

static tare_status put(struct str *out, const void *data, int64_t n, struct err *e)
{
    return n ? str_add(out, data, n, e) : TARE_OK;
}

static tare_status put_text(struct str *out, const char *text, int64_t n, struct err *e)
{
    TRY(put(out, &n, sizeof n, e));
    return text ? put(out, text, n, e) : TARE_OK;
}

static tare_status put_rollout(struct str *out, const struct batch *b, int64_t i, struct err *e)
{
    const int64_t first = b->token_begin[i], n = b->token_begin[i + 1] - first;
    const uint8_t off = b->off_policy ? b->off_policy[i] : 0;
    const char *reason = b->reason[i];
    TRY(put(out, &n, sizeof n, e));
    TRY(put(out, b->ids + first, n * (int64_t)sizeof *b->ids, e));
    TRY(put(out, b->logprob + first, n * (int64_t)sizeof *b->logprob, e));
    TRY(put(out, b->entropy + first, n * (int64_t)sizeof *b->entropy, e));
    TRY(put(out, &b->finish[i], 1, e));
    TRY(put(out, &off, 1, e));
    TRY(put(out, &b->reward[i], sizeof *b->reward, e));
    TRY(put(out, b->component + i * b->n_components, b->n_components * (int64_t)sizeof *b->component, e));
    TRY(put(out, &b->verdict[i], sizeof *b->verdict, e));
    TRY(put_text(out, b->completion[i].data, b->completion[i].size, e));
    TRY(put_text(out, b->extracted[i].data, b->extracted[i].size, e));
    return put_text(out, reason, reason ? (int64_t)strlen(reason) : -1, e);
}

static tare_status put_batch(struct str *out, const struct batch *b, struct err *e)
{
    const struct totals t = {b->n_groups, b->n_rollouts, b->n_tokens, b->n_components, b->off_policy != NULL};
    TRY(put(out, &t, sizeof t, e));
    for (int64_t g = 0; g < b->n_groups; g++) {
        const int64_t n = b->group_begin[g + 1] - b->group_begin[g];
        TRY(put(out, &n, sizeof n, e));
        for (int64_t i = b->group_begin[g]; i < b->group_begin[g + 1]; i++) TRY(put_rollout(out, b, i, e));
    }
    return TARE_OK;
}

struct cursor { /* in a rank's bytes */
    const char *at, *end;
};

static tare_status get(struct cursor *c, void *out, int64_t n, struct err *e)
{
    if (n < 0 || c->end - c->at < n) FAIL(e, TARE_E_COMM, "a rank sent its rollouts cut short");
    if (n) memcpy(out, c->at, (size_t)n);
    c->at += n;
    return TARE_OK;
}

/* n -1: no text */
static tare_status get_text(struct cursor *c, struct arena *a, tare_text *out, struct err *e)
{
    int64_t n = 0;
    char *copy;
    *out = (tare_text){0};
    TRY(get(c, &n, sizeof n, e));
    if (n < 0) return TARE_OK;
    if (c->end - c->at < n) FAIL(e, TARE_E_COMM, "a rank sent its rollouts cut short");
    TRY(arena_strdup(a, c->at, n, &copy, e));
    c->at += n;
    *out = (tare_text){copy, n};
    return TARE_OK;
}

static tare_status get_rollout(struct cursor *c, struct batch *b, int64_t i, struct arena *a, struct err *e)
{
    const int64_t first = b->token_begin[i];
    int64_t n = 0;
    uint8_t off = 0;
    tare_text reason;
    TRY(get(c, &n, sizeof n, e));
    if (n < 0 || n > b->n_tokens - first) FAIL(e, TARE_E_COMM, "a rank sent more tokens than it said");
    b->token_begin[i + 1] = first + n;
    TRY(get(c, b->ids + first, n * (int64_t)sizeof *b->ids, e));
    TRY(get(c, b->logprob + first, n * (int64_t)sizeof *b->logprob, e));
    TRY(get(c, b->entropy + first, n * (int64_t)sizeof *b->entropy, e));
    TRY(get(c, &b->finish[i], 1, e));
    TRY(get(c, &off, 1, e));
    if (b->off_policy) b->off_policy[i] = off;
    TRY(get(c, &b->reward[i], sizeof *b->reward, e));
    TRY(get(c, b->component + i * b->n_components, b->n_components * (int64_t)sizeof *b->component, e));
    TRY(get(c, &b->verdict[i], sizeof *b->verdict, e));
    TRY(get_text(c, a, &b->completion[i], e));
    TRY(get_text(c, a, &b->extracted[i], e));
    TRY(get_text(c, a, &reason, e));
    b->reason[i] = reason.data;
    return TARE_OK;
}

static tare_status make_room(struct batch *b, const struct totals *t, struct arena *a, struct err *e)
{
    b->n_rollouts = t->rollouts, b->n_tokens = t->tokens, b->n_components = t->components;
    TRY(arena_new(a, int64_t, b->n_groups + 1, &b->group_begin, e));
    TRY(arena_new(a, int64_t, t->rollouts + 1, &b->token_begin, e));
    TRY(arena_new_raw(a, int32_t, t->tokens, &b->ids, e));
    TRY(arena_new_raw(a, float, t->tokens, &b->logprob, e));
    TRY(arena_new_raw(a, float, t->tokens, &b->entropy, e));
    TRY(arena_new(a, uint8_t, t->rollouts, &b->finish, e));
    if (t->off_policy) TRY(arena_new(a, uint8_t, t->rollouts, &b->off_policy, e));
    TRY(arena_new(a, double, t->rollouts, &b->reward, e));
    TRY(arena_new(a, double, t->rollouts * t->components, &b->component, e));
    TRY(arena_new(a, int32_t, t->rollouts, &b->verdict, e));
    TRY(arena_new(a, tare_text, t->rollouts, &b->completion, e));
    TRY(arena_new(a, tare_text, t->rollouts, &b->extracted, e));
    return arena_new(a, const char *, t->rollouts, &b->reason, e);
}

static tare_status add_totals(struct cursor *c, int ranks, int64_t groups, struct totals *sum, struct err *e)
{
    *sum = (struct totals){0};
    for (int r = 0; r < ranks; r++) {
        struct totals t;
        TRY(get(&c[r], &t, sizeof t, e));
        sum->groups += t.groups, sum->rollouts += t.rollouts, sum->tokens += t.tokens;
        if (t.components > sum->components) sum->components = t.components; /* a rank without groups has none */
        sum->off_policy |= t.off_policy;
    }
    if (sum->groups != groups)
        FAIL(e, TARE_E_COMM, "the ranks have %lld groups together, there are %lld", (long long)sum->groups, (long long)groups);
    return TARE_OK;
}

static tare_status get_batch(struct cursor *c, const struct share *s, int ranks, struct arena *a, struct batch *b, struct err *e)
{
    struct totals sum;
    TRY(add_totals(c, ranks, b->n_groups, &sum, e));
    TRY(make_room(b, &sum, a, e));
    for (int64_t m = 0, i = 0; m < b->n_groups; m++) {
        struct cursor *from = &c[s->rank[m]];
        int64_t n = 0;
        TRY(get(from, &n, sizeof n, e));
        if (n < 0 || n > b->n_rollouts - i) FAIL(e, TARE_E_COMM, "a rank sent more rollouts than it said");
        b->group_begin[m + 1] = i + n;
        for (; i < b->group_begin[m + 1]; i++) TRY(get_rollout(from, b, i, a, e));
    }
    return TARE_OK;
}

tare_status share_join(struct share *s, struct comm *comm, struct arena *a, struct batch *all, struct err *e)
{
    struct str mine = {0};
    int64_t *sizes = NULL, total = 0;
    char *bytes = NULL;
    struct cursor *cursors = NULL;
    tare_status status;
    if (comm->size == 1) {
        *all = s->own;
        return TARE_OK;
    }
    TRY_TO(status, done, put_batch(&mine, &s->own, e));
    TRY_TO(status, done, mem_new(comm->size * (int64_t)sizeof *sizes, (void **)&sizes, e));
    TRY_TO(status, done, mem_new(comm->size * (int64_t)sizeof *cursors, (void **)&cursors, e));
    TRY_TO(status, done, comm_gather_sizes(comm, mine.size, sizes, e));
    for (int r = 0; r < comm->size; r++) total += sizes[r];
    TRY_TO(status, done, mem_new(total + 1, (void **)&bytes, e));
    TRY_TO(status, done, comm->gather(comm, mine.data, mine.size, bytes, sizes, e));
    total = 0;
    for (int r = 0; r < comm->size; total += sizes[r++]) cursors[r] = (struct cursor){bytes + total, bytes + total + sizes[r]};
    status = get_batch(cursors, s, comm->size, a, all, e);
done:
    str_free(&mine);
    mem_free(sizes);
    mem_free(cursors);
    mem_free(bytes);
    return status;
}
