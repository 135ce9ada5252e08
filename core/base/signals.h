/* Interruption: SIGINT and SIGTERM set a flag that the long loops look at; a second one ends the process at once. */
#ifndef TARE_CORE_SIGNALS_H
#define TARE_CORE_SIGNALS_H

const volatile int *signals_flag(void);
void signals_catch(void);

#endif
