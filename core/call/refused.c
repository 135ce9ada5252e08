#include "call/refused.h"

#include "base/log.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/seccomp.h>
#include <stdatomic.h>
#include <stdio.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/socket.h>
#include <unistd.h>

bool refused_hand_over(int to, int listener)
{
    union {
        struct cmsghdr head;
        char bytes[CMSG_SPACE(sizeof(int))];
    } control = {.bytes = {0}};
    char mark = listener < 0 ? '-' : '+';
    struct iovec byte = {&mark, 1};
    struct msghdr m = {.msg_iov = &byte, .msg_iovlen = 1};
    if (listener >= 0) {
        m.msg_control = &control;
        m.msg_controllen = sizeof control.bytes;
        control.head = (struct cmsghdr){.cmsg_len = CMSG_LEN(sizeof(int)), .cmsg_level = SOL_SOCKET, .cmsg_type = SCM_RIGHTS};
        memcpy(CMSG_DATA(&control.head), &listener, sizeof listener);
    }
    ssize_t n;
    while ((n = sendmsg(to, &m, MSG_NOSIGNAL)) < 0 && errno == EINTR) continue;
    return n == 1;
}

bool refused_take(int from, int *listener)
{
    union {
        struct cmsghdr head;
        char bytes[CMSG_SPACE(sizeof(int))];
    } control = {.bytes = {0}};
    char mark = 0;
    struct iovec byte = {&mark, 1};
    struct msghdr m = {.msg_iov = &byte, .msg_iovlen = 1, .msg_control = &control, .msg_controllen = sizeof control.bytes};
    ssize_t n;
    *listener = -1;
    while ((n = recvmsg(from, &m, MSG_CMSG_CLOEXEC)) < 0 && errno == EINTR) continue;
    const struct cmsghdr *c = n == 1 ? CMSG_FIRSTHDR(&m) : NULL;
    if (c && c->cmsg_type == SCM_RIGHTS) memcpy(listener, CMSG_DATA(c), sizeof *listener);
    return n == 1;
}

/* Warns once: a program that asked for a connection will ask again. */
static void warn_once(unsigned pid)
{
    static atomic_flag warned = ATOMIC_FLAG_INIT;
    char path[64], name[32] = "a verifier";
    if (atomic_flag_test_and_set(&warned)) return;
    snprintf(path, sizeof path, "/proc/%u/comm", pid);
    const int fd = open(path, O_RDONLY | O_CLOEXEC);
    const ssize_t n = fd < 0 ? -1 : read(fd, name, sizeof name - 1);
    if (n > 0) name[n - 1] = 0; /* drop the newline */
    if (fd >= 0) close(fd);
    log_warn(
        "verifier.isolate = process: %s in a verifier's worker asked for a connection and was refused; set verifier.network = yes (tare verify: --network) if the verifier needs the network",
        name);
}

bool refused_answer(int listener)
{
    /* A newer kernel may write more than these structs hold. */
    union {
        struct seccomp_notif request;
        char bytes[512];
    } in;
    union {
        struct seccomp_notif_resp reply;
        char bytes[512];
    } out;
    memset(&in, 0, sizeof in);
    memset(&out, 0, sizeof out);
    if (ioctl(listener, SECCOMP_IOCTL_NOTIF_RECV, &in))
        return errno == EINTR || errno == ENOENT; /* ENOENT: the process that asked has ended */
    warn_once(in.request.pid);
    out.reply.id = in.request.id;
    out.reply.error = -EACCES;
    return !ioctl(listener, SECCOMP_IOCTL_NOTIF_SEND, &out) || errno == ENOENT;
}
