/* Warns, before a run, about settings with which an estimator has nothing to compare: groups of one
 * rollout, and greedy sampling, whose groups hold equal rollouts. Internal to core/preflight. */
#ifndef TARE_CORE_PREFLIGHT_SIGNAL_H
#define TARE_CORE_PREFLIGHT_SIGNAL_H

#include "config/config.h"

void preflight_warn_signal(const struct config *c);

#endif
