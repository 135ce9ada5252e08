/* Refuses ranks that differ, at the start, and names the difference: a job with different programs,
 * plugins, configurations or data would compute nonsense, or hang. Collective. */
#ifndef TARE_CORE_ENGINE_SAME_RANKS_H
#define TARE_CORE_ENGINE_SAME_RANKS_H

#include "engine/engine.h"

/* Compares the program's file, the version, and every key of the resolved configuration except
 * those that may differ between hosts (run.threads, log.level, log.progress). */
tare_status same_ranks_program(struct comm *comm, const struct config *c, struct err *e);
/* Compares the open parts: the files of the plugins (the engine's verifiers and the given ones;
 * NULL entries are skipped), the data's rows, the model's files (config.json and tokenizer.json
 * whole, weights by size and first megabyte), and the step to resume from (-1: none). */
tare_status same_ranks_parts(const struct engine *g, const struct plugin *const *plugins, int64_t n, int64_t step, struct err *e);

#endif
