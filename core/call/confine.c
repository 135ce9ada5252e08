#include "call/confine.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/audit.h>
#include <linux/sched.h>
#include <linux/seccomp.h>
#include <stddef.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <unistd.h>

#if defined(__x86_64__)
#define ARCH AUDIT_ARCH_X86_64
#elif defined(__aarch64__)
#define ARCH AUDIT_ARCH_AARCH64
#else
#define ARCH 0
#endif

#define CALL(NAME) __NR_##NAME
/* None of them is a verifier's business, nor that of a program it starts: other processes' memory and calls, the kernel and its clock, keys, files by handle,
 * and io_uring, whose requests no filter sees. */
static const int DENIED[] = {
    CALL(ptrace),
    CALL(process_vm_readv),
    CALL(process_vm_writev),
    CALL(kcmp),
    CALL(bpf),
    CALL(perf_event_open),
    CALL(userfaultfd),
    CALL(keyctl),
    CALL(add_key),
    CALL(request_key),
    CALL(init_module),
    CALL(finit_module),
    CALL(delete_module),
    CALL(kexec_load),
    CALL(reboot),
    CALL(swapon),
    CALL(swapoff),
    CALL(acct),
    CALL(quotactl),
    CALL(syslog),
    CALL(vhangup),
    CALL(settimeofday),
    CALL(clock_settime),
    CALL(clock_adjtime),
    CALL(sethostname),
    CALL(setdomainname),
    CALL(open_by_handle_at),
    CALL(chroot),
    CALL(setns),
    CALL(unshare),
#ifdef __NR_kexec_file_load
    CALL(kexec_file_load),
#endif
#ifdef __NR_pidfd_getfd
    CALL(pidfd_getfd),
#endif
#ifdef __NR_io_uring_setup
    CALL(io_uring_setup),
    CALL(io_uring_enter),
    CALL(io_uring_register),
#endif
#ifdef __NR_fsopen
    CALL(fsopen),
    CALL(fsconfig),
    CALL(fsmount),
    CALL(fspick),
    CALL(open_tree),
    CALL(move_mount),
#endif
#ifdef __x86_64__
    CALL(iopl),
    CALL(ioperm),
#endif
};
static const int DENIED_MOUNTS[] = {
    CALL(mount),
    CALL(umount2),
    CALL(pivot_root),
#ifdef __NR_mount_setattr
    CALL(mount_setattr),
#endif
};
enum {
    NAMESPACES = CLONE_NEWUSER | CLONE_NEWPID | CLONE_NEWNET | CLONE_NEWNS | CLONE_NEWIPC | CLONE_NEWUTS | CLONE_NEWCGROUP,
    X32 = 0x40000000, /* numbers from here on: x86-64's calls for 32-bit pointers */
    LISTS = (int)((sizeof DENIED + sizeof DENIED_MOUNTS) / sizeof(int)),
};
_Static_assert(2 * LISTS + 40 < CONFINE_STEPS, "every call of the lists and what is asked of arguments has room");

struct code {
    struct sock_filter *at;
    unsigned short n;
};

static void step(struct code *c, unsigned short code, unsigned k)
{
    c->at[c->n++] = (struct sock_filter){code, 0, 0, k};
}

static void jump(struct code *c, unsigned short test, unsigned k, unsigned char yes, unsigned char no)
{
    c->at[c->n++] = (struct sock_filter){(unsigned short)(BPF_JMP | test | BPF_K), yes, no, k};
}

static void load(struct code *c, size_t offset)
{
    step(c, BPF_LD | BPF_W | BPF_ABS, (unsigned)offset);
}

static void fails(struct code *c, unsigned error)
{
    step(c, BPF_RET | BPF_K, SECCOMP_RET_ERRNO | error);
}

static void deny(struct code *c, int call, unsigned error)
{
    jump(c, BPF_JEQ, (unsigned)call, 0, 1);
    fails(c, error);
}

static void deny_list(struct code *c, const int *calls, size_t n)
{
    for (size_t i = 0; i < n; i++) deny(c, calls[i], EPERM);
}

/* The lower half of argument `at`, which is all that the kernel reads of what is asked for below; both processors are little-endian. */
static void load_argument(struct code *c, size_t at)
{
    load(c, offsetof(struct seccomp_data, args) + 8 * at);
}

static void load_call(struct code *c)
{
    load(c, offsetof(struct seccomp_data, nr));
}

/* A socket of another family than those that are allowed. netlink is asked for names of interfaces and the addresses of hosts. */
static void check_socket(struct code *c, bool network, unsigned internet)
{
    static const unsigned FAMILIES[] = {AF_UNIX, AF_INET, AF_INET6, AF_NETLINK};
    jump(c, BPF_JEQ, __NR_socket, 0, 7);
    load_argument(c, 0);
    if (network) {
        for (unsigned char i = 0; i < 4; i++) jump(c, BPF_JEQ, FAMILIES[i], (unsigned char)(4 - i), 0);
    } else {
        jump(c, BPF_JEQ, AF_UNIX, 4, 0);
        jump(c, BPF_JEQ, AF_INET, 2, 0);
        jump(c, BPF_JEQ, AF_INET6, 1, 0);
    }
    fails(c, EACCES);
    if (!network) step(c, BPF_RET | BPF_K, internet);
    load_call(c);
}

/* Threads and processes, but no namespaces. clone3 has its flags in memory, where no filter sees them: libc takes clone in its place. */
static void check_clone(struct code *c)
{
    deny(c, __NR_clone3, ENOSYS);
    jump(c, BPF_JEQ, __NR_clone, 0, 4);
    load_argument(c, 0);
    jump(c, BPF_JSET, NAMESPACES, 0, 1);
    fails(c, EPERM);
    load_call(c);
}

/* Keys typed into the terminal on behalf of its user: a shell reads them after the run. */
static void check_terminal(struct code *c)
{
    jump(c, BPF_JEQ, __NR_ioctl, 0, 5);
    load_argument(c, 1);
    jump(c, BPF_JEQ, TIOCSTI, 1, 0);
    jump(c, BPF_JEQ, TIOCLINUX, 0, 1);
    fails(c, EPERM);
    load_call(c);
}

unsigned short confine_filter(const struct confine *o, bool tells, struct sock_filter code[CONFINE_STEPS])
{
    struct code c = {code, 0};
    if (!ARCH) return 0;
    load(&c, offsetof(struct seccomp_data, arch));
    jump(&c, BPF_JEQ, ARCH, 1, 0);
    step(&c, BPF_RET | BPF_K, SECCOMP_RET_KILL_PROCESS); /* the calls of another processor have other numbers */
    load_call(&c);
#ifdef __x86_64__
    jump(&c, BPF_JGE, X32, 0, 1);
    fails(&c, ENOSYS);
#endif
    check_socket(&c, o->network, tells ? SECCOMP_RET_USER_NOTIF : SECCOMP_RET_ERRNO | EACCES);
    check_terminal(&c);
    deny_list(&c, DENIED, sizeof DENIED / sizeof *DENIED);
    if (!o->namespaces) {
        check_clone(&c);
        deny_list(&c, DENIED_MOUNTS, sizeof DENIED_MOUNTS / sizeof *DENIED_MOUNTS);
    }
    step(&c, BPF_RET | BPF_K, SECCOMP_RET_ALLOW);
    return c.n;
}

/* The filter for all threads that are there and whatever they start. Below 0: errno says why not; with `tells` the listener. */
static int install(const struct confine *o, bool tells)
{
    struct sock_filter code[CONFINE_STEPS];
    const struct sock_fprog program = {.len = confine_filter(o, tells, code), .filter = code};
    const unsigned flags =
        SECCOMP_FILTER_FLAG_TSYNC | (tells ? SECCOMP_FILTER_FLAG_NEW_LISTENER | SECCOMP_FILTER_FLAG_TSYNC_ESRCH : 0);
    return (int)syscall(SYS_seccomp, SECCOMP_SET_MODE_FILTER, flags, &program);
}

/* Where the kernel cannot tell (before 5.7, or another program listens), a connection is refused without a word. */
static void filter(const struct confine *o, struct confined *out)
{
    out->refused = ENOSYS;
    if (!ARCH) return;
    if (!prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0)) {
        out->listener = o->network ? -1 : install(o, true);
        out->refused = 0;
        if (out->listener >= 0 || !install(o, false)) return;
    }
    out->refused = errno;
}

/* A limit that is lower already stays. */
static tare_status limit(__rlimit_resource_t what, const char *key, int64_t most, struct err *e)
{
    struct rlimit now;
    if (getrlimit(what, &now)) FAIL(e, TARE_E_IO, "verifier.%s: getrlimit: %s", key, strerror(errno));
    const rlim_t hard = now.rlim_max < (rlim_t)most ? now.rlim_max : (rlim_t)most;
    const struct rlimit r = {now.rlim_cur < hard ? now.rlim_cur : hard, hard};
    if (setrlimit(what, &r)) FAIL(e, TARE_E_IO, "verifier.%s: setrlimit: %s", key, strerror(errno));
    return TARE_OK;
}

/* Where memory runs out, the kernel ends a worker, which costs verdicts, and not the engine. Where it cannot be asked to, all is as without. */
static void die_first(void)
{
    static const char SCORE[] = "500";
    const int fd = open("/proc/self/oom_score_adj", O_WRONLY | O_CLOEXEC);
    if (fd < 0) return;
    const ssize_t n = write(fd, SCORE, sizeof SCORE - 1);
    (void)n;
    close(fd);
}

tare_status confine_put(struct str *m, const struct confine *c, struct err *e)
{
    const int64_t fields[] = {c->mode, c->network, c->namespaces, c->memory, c->open_files, c->file_size};
    for (size_t i = 0; i < sizeof fields / sizeof *fields; i++) TRY(wire_put_int(m, fields[i], e));
    return TARE_OK;
}

struct confine confine_take(struct wire *in)
{
    struct confine c = {.mode = (enum confine_mode)wire_int(in)};
    c.network = wire_int(in);
    c.namespaces = wire_int(in);
    c.memory = wire_int(in);
    c.open_files = wire_int(in);
    c.file_size = wire_int(in);
    return c;
}

tare_status confine_here(const struct confine *o, struct confined *out, struct err *e)
{
    static const int64_t MB = 1 << 20;
    *out = (struct confined){.listener = -1};
    die_first();
    TRY(limit(RLIMIT_CORE, "isolate", 0, e));
    if (o->memory) TRY(limit(RLIMIT_AS, "memory", o->memory * MB, e));
    if (o->open_files) TRY(limit(RLIMIT_NOFILE, "open_files", o->open_files, e));
    if (o->file_size) TRY(limit(RLIMIT_FSIZE, "file_size", o->file_size * MB, e));
    if (o->mode == CONFINE_OFF) return TARE_OK;
    filter(o, out);
    if (!out->refused || o->mode != CONFINE_REQUIRE) return TARE_OK;
    FAIL(
        e, TARE_E_UNSUPPORTED,
        "verifier.confine = require: the kernel takes no list of system calls for a verifier's worker (seccomp: %s); let the machine or its container allow it, or set verifier.confine = try",
        strerror(out->refused));
}
