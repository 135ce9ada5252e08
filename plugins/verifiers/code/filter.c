/* seccomp filter: calls that are not listed fail with EPERM, so the program sees an error and is
 * not killed. */
#include "inside.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/audit.h>
#include <linux/filter.h>
#include <linux/sched.h>
#include <linux/seccomp.h>
#include <stddef.h>
#include <sys/prctl.h>
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
static const int ALLOWED[] = {
    CALL(read),
    CALL(write),
    CALL(pread64),
    CALL(pwrite64),
    CALL(readv),
    CALL(writev),
    CALL(close),
    CALL(close_range),
    CALL(fstat),
    CALL(newfstatat),
    CALL(statx),
    CALL(statfs),
    CALL(fstatfs),
    CALL(lseek),
    CALL(mmap),
    CALL(mprotect),
    CALL(munmap),
    CALL(mremap),
    CALL(brk),
    CALL(madvise),
    CALL(rt_sigaction),
    CALL(rt_sigprocmask),
    CALL(rt_sigreturn),
    CALL(rt_sigsuspend),
    CALL(rt_sigtimedwait),
    CALL(sigaltstack),
    CALL(ioctl),
    CALL(faccessat),
    CALL(faccessat2),
    CALL(pipe2),
    CALL(pselect6),
    CALL(ppoll),
    CALL(epoll_create1),
    CALL(epoll_ctl),
    CALL(epoll_pwait),
    CALL(eventfd2),
    CALL(dup),
    CALL(dup3),
    CALL(getpid),
    CALL(gettid),
    CALL(getppid),
    CALL(getuid),
    CALL(geteuid),
    CALL(getgid),
    CALL(getegid),
    CALL(getgroups),
    CALL(getpgid),
    CALL(getsid),
    CALL(uname),
    CALL(fcntl),
    CALL(flock),
    CALL(fsync),
    CALL(fdatasync),
    CALL(getdents64),
    CALL(getcwd),
    CALL(chdir),
    CALL(fchdir),
    CALL(readlinkat),
    CALL(umask),
    CALL(gettimeofday),
    CALL(getrusage),
    CALL(sysinfo),
    CALL(times),
    CALL(clock_gettime),
    CALL(clock_getres),
    CALL(clock_nanosleep),
    CALL(nanosleep),
    CALL(getitimer),
    CALL(setitimer),
    CALL(exit),
    CALL(exit_group),
    CALL(wait4),
    CALL(set_tid_address),
    CALL(set_robust_list),
    CALL(futex),
    CALL(prlimit64),
    CALL(getrandom),
    CALL(sched_yield),
    CALL(sched_getaffinity),
    CALL(membarrier),
    CALL(execve),
    CALL(copy_file_range),
    CALL(sendfile),
#ifdef __NR_rseq
    CALL(rseq),
#endif
#ifdef __x86_64__ /* call numbers that newer architectures lack */
    CALL(stat),
    CALL(lstat),
    CALL(access),
    CALL(pipe),
    CALL(select),
    CALL(poll),
    CALL(epoll_create),
    CALL(epoll_wait),
    CALL(dup2),
    CALL(getpgrp),
    CALL(getdents),
    CALL(readlink),
    CALL(alarm),
    CALL(pause),
    CALL(time),
    CALL(arch_prctl),
    CALL(getrlimit),
    CALL(eventfd),
#endif
};
/* Calls allowed only if the program has separate processes and files: its signals then reach no
 * other process, and its changes are in memory. Otherwise they are denied and files can only be
 * opened for reading. */
static const int ALLOWED_INSIDE[] = {
    CALL(kill),    CALL(tkill),    CALL(tgkill), CALL(ftruncate), CALL(truncate),  CALL(renameat), CALL(renameat2),
    CALL(mkdirat), CALL(unlinkat), CALL(fchmod), CALL(fchmodat),  CALL(utimensat), CALL(openat),
#ifdef __x86_64__
    CALL(rename),  CALL(mkdir),    CALL(rmdir),  CALL(unlink),    CALL(chmod),     CALL(creat),    CALL(open),
#endif
};

enum { LIST = (int)(sizeof ALLOWED / sizeof *ALLOWED), FEW = (int)(sizeof ALLOWED_INSIDE / sizeof *ALLOWED_INSIDE) };

#define STEP(CODE, K) ((struct sock_filter){CODE, 0, 0, (K)})
#define JUMP(TEST, K, YES, NO) ((struct sock_filter){BPF_JMP | (TEST) | BPF_K, (YES), (NO), (K)})

/* Allows opening a file if the flags, argument number `at`, ask for reading. */
static unsigned short open_to_read(struct sock_filter *code, unsigned short n, unsigned call, size_t at)
{
    code[n++] = JUMP(BPF_JEQ, call, 0, 4);
    code[n++] = STEP(BPF_LD | BPF_W | BPF_ABS, (unsigned)(offsetof(struct seccomp_data, args) + 8 * at));
    code[n++] = JUMP(BPF_JSET, O_WRONLY | O_RDWR | O_CREAT | O_TRUNC, 1, 0);
    code[n++] = STEP(BPF_RET | BPF_K, SECCOMP_RET_ALLOW);
    code[n++] = STEP(BPF_RET | BPF_K, SECCOMP_RET_ERRNO | EPERM);
    return n;
}

bool inside_filter(bool full)
{
    struct sock_filter code[2 * (LIST + FEW) + 24];
    unsigned short n = 0;
    if (!ARCH) {
        errno = ENOSYS;
        return false;
    }
    code[n++] = STEP(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, arch));
    code[n++] = JUMP(BPF_JEQ, ARCH, 1, 0);
    code[n++] = STEP(BPF_RET | BPF_K, SECCOMP_RET_KILL_PROCESS);
    code[n++] = STEP(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, nr));
    /* allow threads but no processes; clone3 keeps its flags in memory, which a filter cannot read;
     * libc falls back to clone */
    code[n++] = JUMP(BPF_JEQ, __NR_clone3, 0, 1);
    code[n++] = STEP(BPF_RET | BPF_K, SECCOMP_RET_ERRNO | ENOSYS);
    code[n++] = JUMP(BPF_JEQ, __NR_clone, 0, 4);
    code[n++] = STEP(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, args[0]));
    code[n++] = JUMP(BPF_JSET, CLONE_THREAD, 0, 1);
    code[n++] = STEP(BPF_RET | BPF_K, SECCOMP_RET_ALLOW);
    code[n++] = STEP(BPF_RET | BPF_K, SECCOMP_RET_ERRNO | EPERM);
    if (!full) n = open_to_read(code, n, __NR_openat, 2);
#ifdef __x86_64__
    if (!full) n = open_to_read(code, n, __NR_open, 1);
#endif
    for (int i = 0; i < LIST + (full ? FEW : 0); i++) {
        code[n++] = JUMP(BPF_JEQ, (unsigned)(i < LIST ? ALLOWED[i] : ALLOWED_INSIDE[i - LIST]), 0, 1);
        code[n++] = STEP(BPF_RET | BPF_K, SECCOMP_RET_ALLOW);
    }
    code[n++] = STEP(BPF_RET | BPF_K, SECCOMP_RET_ERRNO | EPERM);
    const struct sock_fprog program = {.len = n, .filter = code};
    return !prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) && !prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &program, 0, 0);
}
