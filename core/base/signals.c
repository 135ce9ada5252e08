#include "base/signals.h"

#include <signal.h>
#include <unistd.h>

static volatile int stop_asked;

static void on_signal(int signal)
{
    (void)signal;
    if (stop_asked) _exit(130);
    stop_asked = 1;
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
    sigaction(SIGUSR1, &a, NULL); /* mpirun hands it on to all ranks; on the others it kills */
}
