/* Services for log.export. sdk/python/tare_sdk/loggers.py uses the same names. */
#ifndef TARE_CORE_CONFIG_EXPORTS_H
#define TARE_CORE_CONFIG_EXPORTS_H

#include "base/err.h"

#include <stdbool.h>

enum { EXPORTS = 5 };

struct export_service {
    /* module: name for Python's import; package: name for pip */
    const char *name, *module, *package;
};
extern const struct export_service EXPORT_SERVICES[EXPORTS];

/* Parses names separated by commas or blanks into out [EXPORTS], each once. TARE_E_CONFIG: unknown
 * name. */
tare_status exports_read(const char *text, const struct export_service **out, int *n, struct err *e);

#endif
