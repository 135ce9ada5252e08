#include "batch/turns.h"

#include <string.h>

static int64_t turns_in(const struct batch *b, int64_t rollout)
{
    return b->turn_begin ? b->turn_begin[rollout + 1] - b->turn_begin[rollout] : 0;
}

int32_t batch_turn_of(const struct batch *b, int64_t rollout, int64_t token)
{
    const int64_t n = turns_in(b, rollout), at = token - b->token_begin[rollout];
    int32_t turn = 0;
    if (n)
        for (const int64_t *begin = b->act_begin + b->turn_begin[rollout]; turn + 1 < n && begin[turn + 1] <= at;) turn++;
    return turn;
}

static tare_status fill_mask(const struct batch *b, struct arena *a, const uint8_t **out, struct err *e)
{
    const int64_t n = b->n_rollouts ? b->token_begin[b->n_rollouts] : 0;
    uint8_t *mask;
    *out = b->sampled;
    if (b->sampled) return TARE_OK;
    TRY(arena_new_raw(a, &mask, n + 1, e));
    memset(mask, 1, (size_t)n);
    *out = mask;
    return TARE_OK;
}

tare_status turns_of(const struct batch *b, struct arena *a, struct turns *out, struct err *e)
{
    int64_t *begin, *act_begin, *act_end, *length, *at, *rollout, n = 0;
    const int64_t N = b->n_rollouts, most = N + (b->turn_begin ? b->n_turns : 0);
    TRY(fill_mask(b, a, &out->sampled, e));
    TRY(arena_new(a, &begin, N + 1, e));
    TRY(arena_new(a, &length, N + 1, e));
    TRY(arena_new(a, &act_begin, most + 1, e));
    TRY(arena_new(a, &act_end, most + 1, e));
    TRY(arena_new(a, &at, most + 1, e));
    TRY(arena_new(a, &rollout, most + 1, e));
    for (int64_t i = 0; i < N; i++) {
        const int64_t first = b->token_begin[i], count = turns_in(b, i);
        length[i] = batch_length(b, i);
        for (int64_t k = 0; k < (count ? count : 1); k++, n++) {
            at[n] = count ? b->turn_begin[i] + k : -1;
            rollout[n] = i;
            act_begin[n] = count ? first + b->act_begin[at[n]] : first;
            act_end[n] = count ? first + b->act_end[at[n]] : b->token_begin[i + 1];
        }
        begin[i + 1] = n;
    }
    out->n = n;
    out->begin = begin;
    out->act_begin = act_begin;
    out->act_end = act_end;
    out->length = length;
    out->at = at;
    out->rollout = rollout;
    return TARE_OK;
}
