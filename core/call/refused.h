/* Warns about connections that worker processes are refused (confine.h). Without the warning, a
 * verifier that maps a connection error to reward 0 would be wrong silently. The kernel notifies
 * the engine through a listener that the worker hands over, and the engine answers. */
#ifndef TARE_CORE_CALL_REFUSED_H
#define TARE_CORE_CALL_REFUSED_H

#include <stdbool.h>

/* Sends the worker's listener to the engine, before any reply; -1: none. Returns
 * false if the engine has exited. */
bool refused_hand_over(int to, int listener);
/* Receives what the worker sent: *listener is -1 if it has none. Returns false if the worker has
 * exited. */
bool refused_take(int from, int *listener);
/* Refuses one connection attempt, with a warning for the first in this process. Returns false once
 * no further attempts can arrive. */
bool refused_answer(int listener);

#endif
