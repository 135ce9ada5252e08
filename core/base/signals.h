/* Interruption: SIGINT and SIGTERM set a flag that long loops poll; a second signal ends the
 * process at once. */
#ifndef TARE_CORE_BASE_SIGNALS_H
#define TARE_CORE_BASE_SIGNALS_H

#include <stdbool.h>

const volatile int *signals_flag(void);
bool signals_asked(void); /* reads the flag, from any thread */
void signals_catch(void);

#endif
