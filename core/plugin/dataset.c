/* The rows that a curriculum gets from tare_setup. */
#include "plugin/internal.h"

/* Without an engine: eight rows of one file, of levels 1 to 4. */
enum { PLAIN_N = 8 };
static const uint64_t PLAIN_UID[PLAIN_N] = {1, 2, 3, 4, 5, 6, 7, 8};
static const int32_t PLAIN_SOURCE[PLAIN_N];
static const double PLAIN_WEIGHT[1] = {1};
static const double PLAIN_FIELD[PLAIN_N] = {1, 1, 2, 2, 3, 3, 4, 4};

tare_status plugin_dataset(struct plugin_instance *i, const tare_dataset **out, struct err *e)
{
    const struct plugin *p = i->plugin;
    tare_column *column;
    *out = i->env.dataset;
    if (*out) return TARE_OK;
    i->dataset = (tare_dataset){.struct_size = sizeof i->dataset,
                                .n_rows = PLAIN_N,
                                .n_sources = 1,
                                .prompts_per_step = 4,
                                .group_size = 4,
                                .prompt_uid = PLAIN_UID,
                                .source = PLAIN_SOURCE,
                                .source_weight = PLAIN_WEIGHT};
    TRY(arena_new(&i->arena, &column, p->desc.n_wants + 1, e));
    for (uint32_t j = 0; j < p->desc.n_wants; j++)
        if (p->wants[j].axis == TARE_AXIS_ROW && i->wanted[j]) column[j] = (tare_column){PLAIN_FIELD, PLAIN_N, 1};
    i->dataset.column = column;
    *out = &i->dataset;
    return TARE_OK;
}
