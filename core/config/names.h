/* A key that there is not: what may have been meant. Knows the names of TRL and verl for our keys. Internal to core/config. */
#ifndef TARE_CORE_CONFIG_NAMES_H
#define TARE_CORE_CONFIG_NAMES_H

#include "config/config.h"

bool config_is_section(const char *section);
/* Whether plugins have sections of their own under it: "estimator" of [estimator.NAME]. */
bool config_is_plugin_section(const char *section);
/* Fails, always. where: file:line. */
tare_status names_unknown_key(const char *section, const char *key, const char *where, struct err *e);
/* Adds a line for each trainer that has the name for one of our keys, or for something that is not needed here. */
tare_status names_foreign(const char *name, struct str *out, struct err *e);

#endif
