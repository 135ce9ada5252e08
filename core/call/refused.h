/* Connections that worker processes are refused (confine.h) are told: a judge that takes an error for a reward of 0 would else be wrong in silence. The kernel
 * tells the engine, which answers; the fd for that comes from the worker. */
#ifndef TARE_CORE_CALL_REFUSED_H
#define TARE_CORE_CALL_REFUSED_H

#include <stdbool.h>

/* The worker hands its listener over; -1: there is none. Before any reply. false: the engine is gone. */
bool refused_hand_over(int to, int listener);
/* What the worker handed over: *listener is -1 where there is none. false: the worker is gone. */
bool refused_take(int from, int *listener);
/* Somebody asked for a connection: no, and a warning when it is the first in this process. false: nobody will ask any more. */
bool refused_answer(int listener);

#endif
