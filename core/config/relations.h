/* Constraints between keys. Internal to core/config. */
#ifndef TARE_CORE_CONFIG_RELATIONS_H
#define TARE_CORE_CONFIG_RELATIONS_H

#include "config/config.h"

/* TARE_E_CONFIG names both keys, their origins, and the remedy. faults: collects all of them; NULL:
 * the first one is returned. */
tare_status config_check_relations(const struct config *c, struct faults *faults, struct err *e);

#endif
