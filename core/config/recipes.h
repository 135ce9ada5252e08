/* run.as: the conventions of another trainer, as keys. Internal to core/config. */
#ifndef TARE_CORE_CONFIG_RECIPES_H
#define TARE_CORE_CONFIG_RECIPES_H

#include "config/config.h"

typedef tare_status (*recipe_assign)(struct config *c, const char *section, const char *key, const char *value, const char *where,
                                     struct err *e);
/* Sets the keys of the recipe run.as, except keys that the same file, or the same command line,
 * sets explicitly. layer: the place where run.as was set. */
tare_status recipe_apply(struct config *c, const char *layer, recipe_assign assign, struct err *e);
/* Returns true if the value of a key comes from run.as. */
bool recipe_set(const struct config *c, const char *section, const char *key);

#endif
