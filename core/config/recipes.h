/* run.as: the conventions of another trainer, as keys. Internal to core/config. */
#ifndef TARE_CORE_CONFIG_RECIPES_H
#define TARE_CORE_CONFIG_RECIPES_H

#include "config/config.h"

typedef tare_status (*recipe_assign)(struct config *c, const char *section, const char *key, const char *value, const char *where,
                                     struct err *e);
/* Gives every key of the recipe run.as its value, but for those that the same file, or the same command line, sets by itself. layer: where
 * run.as was set. */
tare_status recipe_apply(struct config *c, const char *layer, recipe_assign assign, struct err *e);
/* Whether a key has the value that run.as gave it. */
bool recipe_set(const struct config *c, const char *section, const char *key);

#endif
