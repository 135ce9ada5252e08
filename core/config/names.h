/* Suggestions for unknown keys, including the names that TRL and verl use. Internal to
 * core/config. */
#ifndef TARE_CORE_CONFIG_NAMES_H
#define TARE_CORE_CONFIG_NAMES_H

#include "config/config.h"

bool config_is_section(const char *section);
/* Returns true if plugins have their own sections below it: "estimator" for [estimator.NAME]. */
bool config_is_plugin_section(const char *section);
/* Always fails. where: file:line. */
tare_status names_unknown_key(const char *section, const char *key, const char *where, struct err *e);
/* Adds a line for each trainer that uses the name. */
tare_status names_foreign(const char *name, struct str *out, struct err *e);

#endif
