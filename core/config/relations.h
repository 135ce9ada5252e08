/* What has to hold between two keys. Internal to core/config. */
#ifndef TARE_CORE_CONFIG_RELATIONS_H
#define TARE_CORE_CONFIG_RELATIONS_H

#include "config/config.h"

/* TARE_E_CONFIG names both keys, where each was set, and what to do. With faults (else NULL) each is told. */
tare_status config_check_relations(const struct config *c, struct faults *faults, struct err *e);

#endif
