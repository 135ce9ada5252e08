/* The columns of a batch as data, for code that treats all of them equally. */
#ifndef TARE_CORE_BATCH_TABLE_H
#define TARE_CORE_BATCH_TABLE_H

#include "batch/batch.h"

#include <stdbool.h>
#include <stddef.h>

#define BATCH_ENUM_AXIS(AXIS, COUNT, PARENT, BEGIN) AXIS_##AXIS,
enum batch_axis { BATCH_AXES(BATCH_ENUM_AXIS) BATCH_N_AXES };
#undef BATCH_ENUM_AXIS
#define BATCH_ENUM_COLUMN(STAGE, NAME, TYPE, AXIS, KIND, WIDTH) COLUMN_##NAME,
enum { BATCH_COLUMNS(BATCH_ENUM_COLUMN) BATCH_N_COLUMNS };
#undef BATCH_ENUM_COLUMN
enum batch_kind { KIND_NUMBER, KIND_OPTIONAL, KIND_MASK, KIND_BEGIN, KIND_OPTIONAL_BEGIN, KIND_TEXT, KIND_STRING, KIND_LOCAL };

struct batch_column {
    const char *name;
    enum batch_stage stage;
    enum batch_axis axis;
    enum batch_kind kind;
    size_t offset, size; /* offset of the pointer in struct batch; size of a number */
};

extern const struct batch_column BATCH_TABLE[BATCH_N_COLUMNS];

static inline bool batch_is_begin(enum batch_kind kind)
{
    return kind == KIND_BEGIN || kind == KIND_OPTIONAL_BEGIN;
}
/* Returns whether parts of a batch may lack a column that other parts have. */
static inline bool batch_may_lack(enum batch_kind kind)
{
    return kind == KIND_OPTIONAL || kind == KIND_MASK || kind == KIND_OPTIONAL_BEGIN;
}
/* Returns the BEGIN column of an axis. Not for AXIS_GROUP, which has none. */
int batch_begin_column(enum batch_axis axis);
enum batch_axis batch_parent(enum batch_axis axis);
/* Returns the axis that BEGIN column c divides. */
enum batch_axis batch_child(int c);
/* Counts the entries of an axis from its BEGIN columns: 0 if they are missing. */
int64_t batch_count(const struct batch *b, enum batch_axis axis);
void batch_set_count(struct batch *b, enum batch_axis axis, int64_t n);
/* Number of values in an entry of column c. */
int64_t batch_width(const struct batch *b, int c);
/* Returns the array of column c; NULL: absent. */
void *batch_array(const struct batch *b, int c);
void batch_set_array(struct batch *b, int c, void *array);
/* Allocates an array of column c for n entries (and one more for BEGIN). */
tare_status batch_new_array(struct batch *b, int c, int64_t n, struct arena *a, struct err *e);

#endif
