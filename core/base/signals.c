#include "base/signals.h"

#include <signal.h>
#include <unistd.h>

static volatile int stop_asked; /* written by the handler, which may run on any thread */

static void on_signal(int signal)
{
    (void)signal;
    if (__atomic_exchange_n(&stop_asked, 1, __ATOMIC_RELAXED)) _exit(130);
}

bool signals_asked(void)
{
    return __atomic_load_n(&stop_asked, __ATOMIC_RELAXED);
}

const volatile int *signals_flag(void)
{
    return &stop_asked;
}

void signals_catch(void)
{
    struct sigaction a = {.sa_handler = on_signal};
    sigemptyset(&a.sa_mask);
    sigaction(SIGINT, &a, NULL);
    sigaction(SIGTERM, &a, NULL);
    /* mpirun forwards SIGUSR1 to all ranks; its default action would end them */
    sigaction(SIGUSR1, &a, NULL);
}
