#include "batch/table.h"

#include <string.h>

#define ENTRY(STAGE, NAME, TYPE, AXIS, KIND, WIDTH)                                                                                \
    {#NAME, BATCH_##STAGE, AXIS_##AXIS, KIND_##KIND, offsetof(struct batch, NAME), sizeof(TYPE)},
const struct batch_column BATCH_TABLE[BATCH_N_COLUMNS] = {BATCH_COLUMNS(ENTRY)};

#define AXIS(AXIS, COUNT, PARENT, BEGIN) {AXIS_##PARENT, COLUMN_##BEGIN, offsetof(struct batch, COUNT)},
static const struct {
    enum batch_axis parent;
    int begin;
    size_t count;
} AXES[BATCH_N_AXES] = {BATCH_AXES(AXIS)};

int batch_begin_column(enum batch_axis axis)
{
    return AXES[axis].begin;
}

enum batch_axis batch_parent(enum batch_axis axis)
{
    return AXES[axis].parent;
}

enum batch_axis batch_child(int c)
{
    int axis = BATCH_N_AXES - 1;
    while (axis > 0 && AXES[axis].begin != c) axis--;
    return (enum batch_axis)axis;
}

int64_t batch_count(const struct batch *b, enum batch_axis axis)
{
    if (axis == AXIS_GROUP) return b->n_groups;
    const int64_t *begin = batch_array(b, AXES[axis].begin);
    return begin ? begin[batch_count(b, AXES[axis].parent)] : 0;
}

void batch_set_count(struct batch *b, enum batch_axis axis, int64_t n)
{
    memcpy((char *)b + AXES[axis].count, &n, sizeof n);
}

int64_t batch_width(const struct batch *b, int c)
{
    const int64_t n_components = b->n_components;
#define WIDTH(STAGE, NAME, TYPE, AXIS, KIND, WIDTH) WIDTH,
    return (const int64_t[]){BATCH_COLUMNS(WIDTH)}[c];
}

void *batch_array(const struct batch *b, int c)
{
    void *array;
    memcpy(&array, (const char *)b + BATCH_TABLE[c].offset, sizeof array);
    return array;
}

void batch_set_array(struct batch *b, int c, void *array)
{
    memcpy((char *)b + BATCH_TABLE[c].offset, &array, sizeof array);
}

tare_status batch_new_array(struct batch *b, int c, int64_t n, struct arena *a, struct err *e)
{
    const struct batch_column *t = &BATCH_TABLE[c];
    void *array;
    const int64_t entries = batch_is_begin(t->kind) ? n + 1 : n * batch_width(b, c);
    TRY(arena_push(a, entries * (int64_t)t->size, &array, e));
    batch_set_array(b, c, array);
    return TARE_OK;
}
