#define _GNU_SOURCE
#include "call/worker_side.h"

#include "call/refused.h"

#include <fcntl.h>
#include <signal.h>
#include <sys/prctl.h>
#include <unistd.h>

int worker_enter(int fd, const char *name)
{
    const int requests = fcntl(fd, F_DUPFD_CLOEXEC, 64), nothing = open("/dev/null", O_RDWR | O_CLOEXEC);
    if (requests < 0 || nothing < 0) return -1;
    dup2(nothing, fd);
    close(nothing);
    dup2(STDERR_FILENO, STDOUT_FILENO);
    prctl(PR_SET_PDEATHSIG, SIGKILL);
    prctl(PR_SET_NAME, name); /* shown by ps and in the warning about refused connections */
    return requests;
}

tare_status worker_confine(int requests, const struct confine *confine, int *refused, struct err *e)
{
    struct confined got;
    const tare_status s = confine_here(confine, &got, e);
    const bool sent = refused_hand_over(requests, got.listener);
    if (got.listener >= 0) close(got.listener);
    *refused = got.refused;
    if (s || sent) return s;
    FAIL(e, TARE_E_IO, "a verifier's worker has lost its connection to the engine");
}
