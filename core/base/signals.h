/* Interruption: SIGINT and SIGTERM set a flag that the long loops look at; a second one ends the process at once. */
#ifndef TARE_CORE_BASE_SIGNALS_H
#define TARE_CORE_BASE_SIGNALS_H

#include <stdbool.h>

const volatile int *signals_flag(void);
bool signals_asked(void); /* the same, from any thread */
void signals_catch(void);

#endif
