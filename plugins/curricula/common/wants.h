/* The columns that the curricula read. */
#ifndef CURRICULA_WANTS_H
#define CURRICULA_WANTS_H

#include <tare/sdk.h>

enum { W_VERDICT, W_ROW, W_COUNT };
static const tare_want WANTS[W_COUNT] = {
    [W_VERDICT] = {.name = "verdict", .axis = TARE_AXIS_ROLLOUT, .type = TARE_I32, .width = 1},
    [W_ROW] = {.name = "row.index", .axis = TARE_AXIS_GROUP, .type = TARE_I64, .width = 1},
};

static inline int32_t verdict_of(const tare_batch *groups, int64_t rollout)
{
    return TARE_COLUMN(groups, W_VERDICT, int32_t)[rollout];
}

static inline int has_verdict(const tare_batch *groups, int64_t rollout)
{
    const int32_t v = verdict_of(groups, rollout);
    return v != TARE_VERDICT_TIMED_OUT && v != TARE_VERDICT_CRASHED;
}

static inline int64_t row_of(const tare_batch *groups, int64_t group)
{
    return TARE_COLUMN(groups, W_ROW, int64_t)[group];
}

#endif
