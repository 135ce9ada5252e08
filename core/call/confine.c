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
/* System calls that neither a verifier nor its child programs need: access to the memory and system
 * calls of other processes, changes to the kernel and its clock, key rings, opening files by
 * handle, and io_uring, whose requests bypass the filter. */
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
    X32 = 0x40000000, /* x86-64 calls with 32-bit pointers are numbered from here */
    LISTS = (int)((sizeof DENIED + sizeof DENIED_MOUNTS) / sizeof(int)),
};
_Static_assert(2 * LISTS + 40 < CONFINE_STEPS, "every call of the lists and the argument checks fit");

struct code {
    struct sock_filter *at;
    unsigned short n;
};

static void emit(struct code *c, unsigned short code, unsigned k)
{
    c->at[c->n++] = (struct sock_filter){code, 0, 0, k};
}

static void emit_jump(struct code *c, unsigned short test, unsigned k, unsigned char yes, unsigned char no)
{
    c->at[c->n++] = (struct sock_filter){(unsigned short)(BPF_JMP | test | BPF_K), yes, no, k};
}

static void emit_load(struct code *c, size_t offset)
{
    emit(c, BPF_LD | BPF_W | BPF_ABS, (unsigned)offset);
}

static void emit_error(struct code *c, unsigned error)
{
    emit(c, BPF_RET | BPF_K, SECCOMP_RET_ERRNO | error);
}

static void deny_call(struct code *c, int call, unsigned error)
{
    emit_jump(c, BPF_JEQ, (unsigned)call, 0, 1);
    emit_error(c, error);
}

static void deny_list(struct code *c, const int *calls, size_t n)
{
    for (size_t i = 0; i < n; i++) deny_call(c, calls[i], EPERM);
}

/* Loads the lower half of argument `at`. The kernel reads no more than that of the arguments
 * checked below, and both supported processors are little-endian. */
static void load_argument(struct code *c, size_t at)
{
    emit_load(c, offsetof(struct seccomp_data, args) + 8 * at);
}

static void load_call(struct code *c)
{
    emit_load(c, offsetof(struct seccomp_data, nr));
}

/* Refuses sockets outside the allowed families. AF_NETLINK is needed to list interfaces and host
 * addresses. */
static void check_socket(struct code *c, bool network, unsigned internet)
{
    static const unsigned FAMILIES[] = {AF_UNIX, AF_INET, AF_INET6, AF_NETLINK};
    emit_jump(c, BPF_JEQ, __NR_socket, 0, 7);
    load_argument(c, 0);
    if (network) {
        for (unsigned char i = 0; i < 4; i++) emit_jump(c, BPF_JEQ, FAMILIES[i], (unsigned char)(4 - i), 0);
    } else {
        emit_jump(c, BPF_JEQ, AF_UNIX, 4, 0);
        emit_jump(c, BPF_JEQ, AF_INET, 2, 0);
        emit_jump(c, BPF_JEQ, AF_INET6, 1, 0);
    }
    emit_error(c, EACCES);
    if (!network) emit(c, BPF_RET | BPF_K, internet);
    load_call(c);
}

/* Allows threads and processes but no namespaces. clone3 keeps its flags in memory, which a filter
 * cannot read; libc falls back to clone. */
static void check_clone(struct code *c)
{
    deny_call(c, __NR_clone3, ENOSYS);
    emit_jump(c, BPF_JEQ, __NR_clone, 0, 4);
    load_argument(c, 0);
    emit_jump(c, BPF_JSET, NAMESPACES, 0, 1);
    emit_error(c, EPERM);
    load_call(c);
}

/* Refuses to inject keys into the terminal: a shell would read them after the run. */
static void check_terminal(struct code *c)
{
    emit_jump(c, BPF_JEQ, __NR_ioctl, 0, 5);
    load_argument(c, 1);
    emit_jump(c, BPF_JEQ, TIOCSTI, 1, 0);
    emit_jump(c, BPF_JEQ, TIOCLINUX, 0, 1);
    emit_error(c, EPERM);
    load_call(c);
}

unsigned short confine_filter(const struct confine *o, bool notify, struct sock_filter code[CONFINE_STEPS])
{
    struct code c = {code, 0};
    if (!ARCH) return 0;
    emit_load(&c, offsetof(struct seccomp_data, arch));
    emit_jump(&c, BPF_JEQ, ARCH, 1, 0);
    /* call numbers differ on other processors */
    emit(&c, BPF_RET | BPF_K, SECCOMP_RET_KILL_PROCESS);
    load_call(&c);
#ifdef __x86_64__
    emit_jump(&c, BPF_JGE, X32, 0, 1);
    emit_error(&c, ENOSYS);
#endif
    check_socket(&c, o->network, notify ? SECCOMP_RET_USER_NOTIF : SECCOMP_RET_ERRNO | EACCES);
    check_terminal(&c);
    deny_list(&c, DENIED, sizeof DENIED / sizeof *DENIED);
    if (!o->namespaces) {
        check_clone(&c);
        deny_list(&c, DENIED_MOUNTS, sizeof DENIED_MOUNTS / sizeof *DENIED_MOUNTS);
    }
    emit(&c, BPF_RET | BPF_K, SECCOMP_RET_ALLOW);
    return c.n;
}

/* Installs the filter for all threads of this process and everything they start. Returns -1 with
 * errno set on failure; with `notify`, returns the listener. */
static int install_filter(const struct confine *o, bool notify)
{
    struct sock_filter code[CONFINE_STEPS];
    const struct sock_fprog program = {.len = confine_filter(o, notify, code), .filter = code};
    const unsigned flags =
        SECCOMP_FILTER_FLAG_TSYNC | (notify ? SECCOMP_FILTER_FLAG_NEW_LISTENER | SECCOMP_FILTER_FLAG_TSYNC_ESRCH : 0);
    return (int)syscall(SYS_seccomp, SECCOMP_SET_MODE_FILTER, flags, &program);
}

/* Installs the filter, with a listener if the kernel supports it. Without one (before Linux 5.7, or
 * if another program already listens), connections are refused without a warning. */
static void apply_filter(const struct confine *o, struct confined *out)
{
    out->refused = ENOSYS;
    if (!ARCH) return;
    if (!prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0)) {
        out->listener = o->network ? -1 : install_filter(o, true);
        out->refused = 0;
        if (out->listener >= 0 || !install_filter(o, false)) return;
    }
    out->refused = errno;
}

/* Lowers a limit to at most `most`; a lower limit stays. */
static tare_status lower_limit(__rlimit_resource_t what, const char *key, int64_t most, struct err *e)
{
    struct rlimit now;
    if (getrlimit(what, &now)) FAIL(e, TARE_E_IO, "verifier.%s: getrlimit: %s", key, strerror(errno));
    const rlim_t hard = now.rlim_max < (rlim_t)most ? now.rlim_max : (rlim_t)most;
    const struct rlimit r = {now.rlim_cur < hard ? now.rlim_cur : hard, hard};
    if (setrlimit(what, &r)) FAIL(e, TARE_E_IO, "verifier.%s: setrlimit: %s", key, strerror(errno));
    return TARE_OK;
}

/* Makes the kernel end a worker, which costs verdicts, rather than the engine when memory runs out.
 * Errors are ignored. */
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
    TRY(lower_limit(RLIMIT_CORE, "isolate", 0, e));
    if (o->memory) TRY(lower_limit(RLIMIT_AS, "memory", o->memory * MB, e));
    if (o->open_files) TRY(lower_limit(RLIMIT_NOFILE, "open_files", o->open_files, e));
    if (o->file_size) TRY(lower_limit(RLIMIT_FSIZE, "file_size", o->file_size * MB, e));
    if (o->mode == CONFINE_OFF) return TARE_OK;
    apply_filter(o, out);
    if (!out->refused || o->mode != CONFINE_REQUIRE) return TARE_OK;
    FAIL(
        e, TARE_E_UNSUPPORTED,
        "verifier.confine = require: the kernel rejects the system call filter of a verifier's worker (seccomp: %s); allow it on the machine or its container, or set verifier.confine = try",
        strerror(out->refused));
}
