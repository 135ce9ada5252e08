/* The services that log.export may name. sdk/python/tare_sdk/loggers.py has the same names. */
#ifndef TARE_CORE_CONFIG_EXPORTS_H
#define TARE_CORE_CONFIG_EXPORTS_H

#include "base/err.h"

#include <stdbool.h>

enum { EXPORTS = 5 };

struct export_service {
    const char *name, *module, *package; /* of its client: what Python imports, what pip installs */
};
extern const struct export_service EXPORT_SERVICES[EXPORTS];

/* text: names by comma or blank; out [EXPORTS]: those services, each once; *n: how many. TARE_E_CONFIG: a name that is none of them. */
tare_status exports_read(const char *text, const struct export_service **out, int *n, struct err *e);

#endif
