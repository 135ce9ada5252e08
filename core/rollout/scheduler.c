#include "rollout/scheduler.h"

#include "base/arena.h"

#include <stdio.h>

#define WHERE_SIZE 200

static const char *request_where(const struct sample_request *r, int64_t index, char buffer[WHERE_SIZE])
{
    if (r->where) return r->where;
    snprintf(buffer, WHERE_SIZE, "request %lld", (long long)index + 1);
    return buffer;
}

static tare_status enqueue_group(struct group *g, const struct sample_request *r, int64_t index, int64_t max_new, int64_t context,
                                 struct err *e)
{
    char buffer[WHERE_SIZE];
    if (r->n_samples < 1)
        FAIL(e, TARE_E_RANGE, "%s: %lld samples: must be at least 1", request_where(r, index, buffer), (long long)r->n_samples);
    if (r->prompt_len < 1)
        FAIL(e, TARE_E_INVALID, "%s: the prompt has no tokens; a model needs at least one", request_where(r, index, buffer));
    if (r->prompt_len >= context)
        FAIL(
            e, TARE_E_RANGE,
            "%s: the prompt has %lld tokens, and the context of %lld leaves no space for a new one; shorten it, or raise model.max_position_embeddings",
            request_where(r, index, buffer), (long long)r->prompt_len, (long long)context);
    g->request = r;
    g->remaining = r->n_samples;
    g->limit = max_new < context - r->prompt_len ? max_new : context - r->prompt_len;
    return TARE_OK;
}

static void seed_samples(struct scheduler *s, int64_t group, struct rng_key key)
{
    const struct group *g = &s->groups[group];
    const struct rng_key of_prompt = rng_derive(rng_derive(key, g->request->prompt_uid), (uint64_t)g->request->occurrence);
    for (int64_t k = 0; k < g->request->n_samples; k++)
        s->seqs[g->first + k] = (struct sequence){.group = group, .key = rng_derive(of_prompt, (uint64_t)k)};
}

tare_status scheduler_enqueue(struct scheduler *s, const struct scheduler_work *w, struct arena *arena, struct err *e)
{
    s->n_groups = w->n;
    s->n_seqs = 0;
    TRY(arena_new(arena, &s->groups, w->n, e));
    for (int64_t i = 0; i < w->n; i++) {
        struct group *g = &s->groups[i];
        TRY(enqueue_group(g, &w->requests[i], i, w->max_new, w->context, e));
        TRY(arena_new_raw(arena, &g->blocks, kv_blocks_for(w->requests[i].prompt_len), e));
        g->first = s->n_seqs;
        s->n_seqs += w->requests[i].n_samples;
    }
    if (s->n_seqs > INT32_MAX) FAIL(e, TARE_E_RANGE, "%lld completions in one run; at most %d", (long long)s->n_seqs, INT32_MAX);
    s->remaining = s->n_seqs;
    TRY(arena_new(arena, &s->seqs, s->n_seqs, e));
    for (int64_t i = 0; i < w->n; i++) seed_samples(s, i, w->key);
    return TARE_OK;
}

tare_status scheduler_reserve(struct scheduler *s, int64_t n, struct err *e)
{
    TRY(mem_grow((void **)&s->groups, &s->group_capacity, s->n_groups + 1, (int64_t)sizeof *s->groups, e));
    return mem_grow((void **)&s->seqs, &s->seq_capacity, s->n_seqs + n, (int64_t)sizeof *s->seqs, e);
}

void scheduler_join(struct scheduler *s, const struct group *g, struct rng_key key)
{
    struct group *new = &s->groups[s->n_groups];
    *new = *g;
    new->first = s->n_seqs;
    new->remaining = g->request->n_samples;
    seed_samples(s, s->n_groups++, key);
    s->n_seqs += new->remaining;
    s->remaining += new->remaining;
}

/* Compacts stably, so running sequences still precede waiting ones. */
void scheduler_remove_ended(struct scheduler *s, int64_t *map)
{
    int64_t n_groups = 0, n_seqs = 0, next = 0;
    for (int64_t i = 0; i < s->n_groups; i++) {
        const struct group g = s->groups[i];
        const int64_t first = n_seqs;
        for (int64_t k = g.first; k < g.first + g.request->n_samples; k++) {
            map[k] = g.remaining ? n_seqs++ : -1;
            if (!g.remaining) continue;
            s->seqs[map[k]] = s->seqs[k];
            s->seqs[map[k]].group = n_groups;
            if (k < s->next) next = n_seqs;
        }
        if (!g.remaining) continue;
        s->groups[n_groups] = g;
        s->groups[n_groups++].first = first;
    }
    for (int64_t i = 0; i < s->n_running; i++) s->running[i] = map[s->running[i]];
    s->n_groups = n_groups;
    s->n_seqs = n_seqs;
    s->next = next;
}

/* The last token is never an input: P + limit - 1 keys. */
int64_t scheduler_group_need(const struct group *g)
{
    return kv_blocks_for(g->request->prompt_len + g->limit - 1);
}

int64_t scheduler_batch_need(const struct scheduler *s, int64_t max_batch)
{
    int64_t all = 0, most_prefix = 0, most_own = 0, least_samples = INT64_MAX;
    for (int64_t i = 0; i < s->n_groups; i++) {
        const struct group *g = &s->groups[i];
        const int64_t prefix = kv_blocks_for(g->request->prompt_len), samples = g->request->n_samples;
        const int64_t own = scheduler_group_need(g) - g->request->prompt_len / KV_BLOCK;
        all += prefix + samples * own;
        if (prefix > most_prefix) most_prefix = prefix;
        if (own > most_own) most_own = own;
        if (samples < least_samples) least_samples = samples;
    }
    if (s->n_seqs <= max_batch) return all;
    const int64_t groups = max_batch / least_samples + 2, most = max_batch * most_own + groups * most_prefix;
    return most < all ? most : all;
}

tare_status scheduler_open(struct scheduler *s, int64_t max_batch, int64_t width, struct arena *arena, struct err *e)
{
    const int64_t n = s->episodes && s->n_seqs > max_batch ? s->n_seqs : max_batch;
    int32_t *rows;
    TRY(arena_new_raw(arena, &rows, n * width, e));
    TRY(arena_new_raw(arena, &s->tables, n, e));
    TRY(arena_new_raw(arena, &s->running, max_batch, e));
    TRY(arena_new_raw(arena, &s->fresh, max_batch, e));
    TRY(arena_new_raw(arena, &s->copy_to, max_batch, e));
    TRY(arena_new_raw(arena, &s->copy_from, max_batch, e));
    for (int64_t i = 0; i < n; i++) s->tables[i] = rows + i * width;
    s->max_batch = max_batch;
    s->n_tables = n;
    s->next = s->n_parked = s->n_running = s->admitted = s->n_fresh = s->n_copies = 0;
    kv_blocks_reset(&s->pool);
    return TARE_OK;
}

tare_status scheduler_start(struct scheduler *s, int64_t max_batch, struct arena *arena, struct err *e)
{
    int64_t width = 0;
    for (int64_t i = 0; i < s->n_groups; i++) {
        const struct group *g = &s->groups[i];
        const int64_t need = scheduler_group_need(g);
        char buffer[WHERE_SIZE];
        if (need > s->pool.n)
            FAIL(
                e, TARE_E_CONFIG,
                "%s: a prompt of %lld tokens and up to %lld new ones need %lld keys in the cache, which holds %lld; raise rollout.kv_tokens to at least %lld, or lower rollout.max_new_tokens",
                request_where(g->request, i, buffer), (long long)g->request->prompt_len, (long long)g->limit,
                (long long)(g->request->prompt_len + g->limit - 1), (long long)(s->pool.n * KV_BLOCK),
                (long long)(need * KV_BLOCK));
        if (need > width) width = need;
    }
    return scheduler_open(s, max_batch, width, arena, e);
}

/* ---- prompts in the cache */

static void drop_partial(struct scheduler *s, struct group *g)
{
    if (g->has_partial) kv_blocks_release(&s->pool, g->blocks[g->request->prompt_len / KV_BLOCK]);
    g->has_partial = false;
}

static void drop_prompt(struct scheduler *s, struct group *g)
{
    if (!g->resident) return;
    drop_partial(s, g);
    for (int64_t i = 0; i < g->request->prompt_len / KV_BLOCK; i++) kv_blocks_release(&s->pool, g->blocks[i]);
    g->resident = false;
}

/* Releases the prompt's blocks that are not needed once a sample has ended. */
static void trim_group(struct scheduler *s, struct group *g)
{
    const bool copies = g->remaining > g->holders; /* samples still to be admitted */
    if (!g->remaining || (!g->holders && g->request->prompt_len % KV_BLOCK && !g->has_partial))
        drop_prompt(s, g);
    else if (!copies)
        drop_partial(s, g);
}

/* ---- admission */

static bool is_copied(const int32_t *blocks, int64_t n, int32_t block)
{
    for (int64_t i = 0; i < n; i++)
        if (blocks[i] == block) return true;
    return false;
}

/* Returns a computed block whose first lanes are the prompt's last keys. */
static int32_t partial_source(const struct scheduler *s, const struct group *g, int64_t at)
{
    if (g->has_partial) return g->blocks[at];
    for (int64_t k = g->first; k < g->first + g->request->n_samples; k++) {
        const struct sequence *q = &s->seqs[k];
        if (q->blocks && q->n_blocks > at && !is_copied(s->copy_to, s->n_copies, q->blocks[at])) return q->blocks[at];
    }
    return -1;
}

/* Number of keys that a preempted sequence has to compute again: those of all its tokens but the
 * last. */
static int64_t keys_to_refill(const struct sequence *q)
{
    return q->n > 1 ? q->n - 1 : 0;
}

/* Number of free blocks that the sequence needs to be admitted. take: whether it takes over the
 * prompt's partial block. */
static int64_t blocks_to_admit(const struct scheduler *s, const struct group *g, const struct sequence *q, bool *take)
{
    const int64_t prompt = g->request->prompt_len, prefix = kv_blocks_for(prompt), all = kv_blocks_for(prompt + keys_to_refill(q));
    const bool partial = prompt % KV_BLOCK != 0, available = !g->resident || g->has_partial;
    *take = false;
    if (q->blocks) return all > q->n_blocks ? all - q->n_blocks : 0;
    const int64_t need = (g->resident ? 0 : prefix) + all - prefix;
    *take = partial && available && (g->holders + 1 == g->remaining || (!s->n_running && s->pool.n_free < need + 1));
    return need + (partial && !*take);
}

/* Returns whether the blocks suffice. */
static bool has_space(const struct scheduler *s, const struct sequence *q, bool *take)
{
    const int64_t need = blocks_to_admit(s, &s->groups[q->group], q, take);
    if (!s->n_running) return !s->episodes || s->pool.n_free >= need;
    /* Every running sequence must be able to take one more block before any is preempted. */
    return s->pool.n_free >= need + s->n_running + 1;
}

/* A forward pass for a few prompt rows costs as much as one for many: wait until an eighth of the
 * batch is free, or join prompts that are admitted now. */
static bool is_worth_a_pass(const struct scheduler *s, const struct sequence *q)
{
    return !s->n_running || s->eager || (s->groups[q->group].resident && !keys_to_refill(q)) || s->n_fresh ||
           s->max_batch - s->n_running >= s->max_batch / 8;
}

/* Gives a sequence the blocks of its prompt. */
static void admit_prompt(struct scheduler *s, struct sequence *q, bool take)
{
    struct group *g = &s->groups[q->group];
    const int64_t prompt = g->request->prompt_len, full = prompt / KV_BLOCK;
    if (!g->resident) {
        for (int64_t i = 0; i < kv_blocks_for(prompt); i++) g->blocks[i] = kv_blocks_take(&s->pool);
        g->resident = true;
        g->has_partial = prompt % KV_BLOCK != 0;
        s->fresh[s->n_fresh++] = q->group;
    }
    q->blocks = s->tables[--s->n_tables];
    for (int64_t i = 0; i < full; i++) kv_blocks_share(&s->pool, q->blocks[i] = g->blocks[i]);
    q->n_blocks = full;
    if (prompt % KV_BLOCK && take) {
        q->blocks[q->n_blocks++] = g->blocks[full];
        /* The block number stays: the prompt is computed through this table. */
        g->has_partial = false;
    } else if (prompt % KV_BLOCK) {
        s->copy_from[s->n_copies] = partial_source(s, g, full);
        s->copy_to[s->n_copies++] = q->blocks[q->n_blocks++] = kv_blocks_take(&s->pool);
    }
    q->cached = prompt;
    g->holders++;
}

static void admit_sequence(struct scheduler *s, int64_t seq, bool take)
{
    struct sequence *q = &s->seqs[seq];
    const int64_t keys = s->groups[q->group].request->prompt_len + keys_to_refill(q);
    if (!q->blocks) admit_prompt(s, q, take);
    while (q->n_blocks < kv_blocks_for(keys)) q->blocks[q->n_blocks++] = kv_blocks_take(&s->pool);
    q->kept = q->cached;
    q->cached = keys;
    q->running = true;
    s->running[s->n_running++] = seq;
}

/* ---- the end of a sequence, and preemption */

static void release_sequence(struct scheduler *s, struct sequence *q)
{
    q->known = q->cached - s->groups[q->group].request->prompt_len;
    for (int64_t i = 0; i < q->n_blocks; i++) kv_blocks_release(&s->pool, q->blocks[i]);
    s->tables[s->n_tables++] = q->blocks;
    q->blocks = NULL;
    q->n_blocks = q->cached = 0;
    q->running = false;
    s->groups[q->group].holders--;
}

void scheduler_finish(struct scheduler *s, int64_t seq, enum finish finish)
{
    struct sequence *q = &s->seqs[seq];
    q->done = true;
    q->finish = (uint8_t)finish;
    s->remaining--;
    s->groups[q->group].remaining--;
    s->n_parked -= q->parked;
    q->parked = false;
    if (q->blocks) release_sequence(s, q);
    trim_group(s, &s->groups[q->group]);
}

void scheduler_compact(struct scheduler *s)
{
    int64_t n = 0;
    for (int64_t i = 0; i < s->n_running; i++)
        if (s->seqs[s->running[i]].running) s->running[n++] = s->running[i];
    s->n_running = n;
    for (int64_t i = 1; i < n; i++) {
        const int64_t seq = s->running[i];
        int64_t k = i;
        for (; k > 0 && s->running[k - 1] > seq; k--) s->running[k] = s->running[k - 1];
        s->running[k] = seq;
    }
}

void scheduler_park(struct scheduler *s, int64_t seq)
{
    s->seqs[seq].running = false;
    s->seqs[seq].parked = true;
    s->n_parked++;
}

void scheduler_resume(struct scheduler *s, int64_t seq)
{
    s->seqs[seq].parked = false;
    s->n_parked--;
    if (seq < s->next) s->next = seq;
}

/* Drops a prompt of which no sequence has blocks, other than that of group `except`. */
static bool drop_unheld_prompt(struct scheduler *s, int64_t except)
{
    for (int64_t i = s->n_groups - 1; i >= 0; i--) {
        struct group *g = &s->groups[i];
        if (i == except || !g->resident || g->holders) continue;
        drop_prompt(s, g);
        return true;
    }
    return false;
}

/* Drops the blocks of a sequence that does not run; false if it has none, or if one of them is about
 * to be copied. */
static bool drop_idle_one(struct scheduler *s, int64_t seq)
{
    struct sequence *q = &s->seqs[seq];
    struct group *g = &s->groups[q->group];
    const int64_t full = g->request->prompt_len / KV_BLOCK;
    if (!q->blocks || q->running) return false;
    if (q->n_blocks > full && is_copied(s->copy_from, s->n_copies, q->blocks[full])) return false;
    release_sequence(s, q);
    s->parked_drops++;
    if (!g->holders) drop_prompt(s, g);
    return true;
}

/* Drops the blocks of the youngest such sequence in begin .. end - 1. */
static bool drop_idle(struct scheduler *s, int64_t begin, int64_t end)
{
    for (int64_t seq = end - 1; seq >= begin; seq--)
        if (drop_idle_one(s, seq)) return true;
    return false;
}

/* Frees blocks for a sequence to be admitted; false if there are none to free. */
static bool make_space(struct scheduler *s, int64_t seq)
{
    struct sequence *q = &s->seqs[seq];
    struct group *g = &s->groups[q->group];
    if (drop_unheld_prompt(s, q->group) || drop_idle(s, seq + 1, s->n_seqs)) return true;
    if (s->n_running) return false;
    if (q->blocks && g->has_partial) {
        drop_partial(s, g);
        return true;
    }
    return drop_idle(s, 0, seq);
}

void scheduler_admit(struct scheduler *s)
{
    s->n_fresh = s->n_copies = 0;
    s->admitted = s->n_running;
    for (; s->next < s->n_seqs; s->next++) {
        const struct sequence *q = &s->seqs[s->next];
        bool take;
        if (q->done || q->running || q->parked) continue;
        if (s->n_running == s->max_batch || !is_worth_a_pass(s, q)) return;
        while (!has_space(s, q, &take))
            if (!s->episodes || !make_space(s, s->next)) return;
        admit_sequence(s, s->next, take);
    }
}

static void preempt_youngest(struct scheduler *s)
{
    const int64_t seq = s->running[--s->n_running];
    struct group *g = &s->groups[s->seqs[seq].group];
    release_sequence(s, &s->seqs[seq]);
    if (seq < s->next) s->next = seq;
    s->preemptions++;
    if (!g->holders) drop_prompt(s, g);
}

/* Frees blocks without touching running[i]; false if running[i] itself was preempted. In this
 * order: a prompt that waits for its next sample, in episodes unheld prompts and parked sequences, the
 * youngest sequence, the partial block of the only sequence. */
static bool free_blocks(struct scheduler *s, int64_t i)
{
    while (s->next < s->n_seqs && s->seqs[s->next].done) s->next++;
    struct group *waiting = s->next < s->n_seqs ? &s->groups[s->seqs[s->next].group] : NULL;
    if (waiting && waiting->resident && !waiting->holders)
        drop_prompt(s, waiting);
    else if (s->episodes && (drop_unheld_prompt(s, -1) || drop_idle(s, 0, s->n_seqs)))
        return true;
    else if (s->n_running > 1)
        preempt_youngest(s);
    else
        drop_partial(s, &s->groups[s->seqs[s->running[i]].group]);
    return i < s->n_running;
}

void scheduler_grow(struct scheduler *s, int64_t tokens)
{
    for (int64_t i = 0; i < s->n_running; i++) {
        struct sequence *q = &s->seqs[s->running[i]];
        const int64_t remaining = s->groups[q->group].limit - q->n, keys = q->cached + (remaining < tokens ? remaining : tokens);
        while (q->n_blocks * KV_BLOCK < keys) {
            while (!s->pool.n_free)
                if (!free_blocks(s, i)) return;
            q->blocks[q->n_blocks++] = kv_blocks_take(&s->pool);
        }
    }
}
