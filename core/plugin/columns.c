#include "plugin/columns.h"

#include <string.h>
#include <tare/plugin.h>

#define ENTRY(ID, KIND, NAME, AXIS, TYPE, WIDTH, DOC)                                                                              \
    [COLUMN_##ID] = {NAME, TARE_KIND_##KIND, TARE_AXIS_##AXIS, TARE_##TYPE, WIDTH, DOC},
const struct column_info COLUMNS[COLUMN_IDS] = {
    [COLUMN_ROW_FIELD] = {"row.KEY", TARE_KIND_ESTIMATOR, TARE_AXIS_GROUP, TARE_F64, 1,
                          "the field KEY of the data set's rows; NaN: the row lacks it"},
    PLUGIN_COLUMNS(ENTRY)};
#undef ENTRY

enum column_id column_find(int32_t kind, const char *name, int32_t axis)
{
    for (int id = COLUMN_ROW_FIELD + 1; id < COLUMN_IDS; id++)
        if (COLUMNS[id].kind == kind && COLUMNS[id].axis == axis && !strcmp(COLUMNS[id].name, name)) return (enum column_id)id;
    const bool rows = kind == TARE_KIND_CURRICULUM && (axis == TARE_AXIS_ROW || axis == TARE_AXIS_GROUP);
    const bool groups = kind == TARE_KIND_ESTIMATOR && axis == TARE_AXIS_GROUP;
    if ((rows || groups) && !strncmp(name, "row.", 4) && name[4]) return COLUMN_ROW_FIELD;
    return COLUMN_ABSENT;
}

int64_t column_type_size(int32_t type)
{
    static const int64_t SIZES[] = {0, 1, 4, 8, 8, 4, 8, (int64_t)sizeof(tare_text)};
    return type >= TARE_U8 && type <= TARE_TEXT ? SIZES[type] : 0;
}

const char *column_type_name(int32_t type)
{
    static const char *const NAMES[] = {"", "u8", "i32", "i64", "u64", "f32", "f64", "text"};
    return type >= TARE_U8 && type <= TARE_TEXT ? NAMES[type] : "unknown";
}

const char *column_axis_name(int32_t axis)
{
    static const char *const NAMES[] = {"one", "row", "group", "rollout", "turn", "token"};
    return axis >= TARE_AXIS_ONE && axis <= TARE_AXIS_TOKEN ? NAMES[axis] : "unknown";
}
