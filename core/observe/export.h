/* log.export: `python3 -m tare_sdk.loggers RUN --follow` as a child of the run. It reads
 * RUN/metrics.jsonl and sends the lines to services. The run waits for it only at its own end, for
 * a few seconds; any failure is a single warning.
 *
 * The child has its own process group, so a Ctrl-C for the run does not reach it. It ends when
 * RUN/lock is free and everything is sent. Its output goes to RUN/export/log.txt, at most
 * EXPORT_LOG bytes. Not thread-safe. */
#ifndef TARE_CORE_OBSERVE_EXPORT_H
#define TARE_CORE_OBSERVE_EXPORT_H

#include "config/config.h"

#include <stddef.h>

struct exporter;

/* Returns true if Python, tare_sdk or a client of log.export is missing. why: a sentence with the
 * packages to install. */
bool exporter_lacks(const char *names, char *why, size_t capacity);
/* Starts the child for a run whose folder is locked. Returns NULL if log.export is empty, or after
 * a warning if it cannot be started. */
struct exporter *exporter_start(const char *names, const char *run_dir);
/* Warns, once, if the child has ended. */
void exporter_look(struct exporter *x);
/* Waits up to EXPORT_PATIENCE seconds for the child to send everything up to step `last`, then
 * detaches from it. Call it after the folder is unlocked. No-op for NULL. */
void exporter_close(struct exporter *x, int64_t last);

enum { EXPORT_PATIENCE = 10, EXPORT_LOG = 1 << 20 };

#endif
