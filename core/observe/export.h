/* log.export: `python3 -m tare_sdk.loggers RUN --follow` as a child of the run, which reads RUN/metrics.jsonl and sends its lines to services. The run
 * never waits for it but at its own end, for some seconds; whatever becomes of it is one warning.
 *
 * The child is in a process group of its own, so that a Ctrl-C for the run is not for it; it ends when nobody holds RUN/lock any more and all is sent.
 * What it prints goes to RUN/export/log.txt, EXPORT_LOG bytes of it. Not thread-safe. */
#ifndef TARE_CORE_OBSERVE_EXPORT_H
#define TARE_CORE_OBSERVE_EXPORT_H

#include "config/config.h"

#include <stddef.h>

struct exporter;

/* Whether Python, tare_sdk or a client of log.export is missing here; why: a sentence with what to install. */
bool exporter_lacks(const char *names, char *why, size_t room);
/* Starts the child for a run whose folder is locked; NULL: log.export is empty, or it cannot be started and a warning has said why. */
struct exporter *exporter_start(const char *names, const char *run_dir);
/* Warns, once, when the child has ended. */
void exporter_look(struct exporter *x);
/* The folder is not locked any more: waits up to EXPORT_PATIENCE seconds for the child to send all up to the step `last`, then leaves it to itself. NULL: nothing. */
void exporter_close(struct exporter *x, int64_t last);

enum { EXPORT_PATIENCE = 10, EXPORT_LOG = 1 << 20 };

#endif
