#include "config/kinds.h"

#include <stddef.h>
#include <string.h>

#define ROW(CONSTANT, NAME, KEY, FOLDER, HEADING)                                                                                  \
    [TARE_KIND_##CONSTANT] = {                                                                                                     \
        .name = #NAME, .key = #KEY, .folder = FOLDER, .heading = HEADING, .choice = offsetof(struct config, NAME.KEY)},
const struct config_kind CONFIG_KINDS[] = {PLUGIN_KINDS(ROW)};
#undef ROW

#define BIT(CONSTANT, ...) +(1 << TARE_KIND_##CONSTANT)
_Static_assert((0 PLUGIN_KINDS(BIT)) == (2 << PLUGIN_LAST_KIND) - 2, "the kinds are numbered from 1, without a gap");
#undef BIT

int32_t config_kind_of_section(const char *section)
{
    const size_t n = strcspn(section, ".");
    for (int32_t kind = PLUGIN_FIRST_KIND; kind <= PLUGIN_LAST_KIND; kind++) {
        const char *name = CONFIG_KINDS[kind].name;
        if (strlen(name) == n && !strncmp(section, name, n)) return kind;
    }
    return 0;
}

bool config_kind_is_single(int32_t kind)
{
    return kind == TARE_KIND_ESTIMATOR || kind == TARE_KIND_OBJECTIVE || kind == TARE_KIND_CURRICULUM;
}

const char *config_kind_choice(const struct config *c, int32_t kind)
{
    return *(const char *const *)((const char *)c + CONFIG_KINDS[kind].choice);
}
