/* Interprets the filter of worker processes: the kernel's answer to a call, by its number, its
 * processor and its arguments. */
#include "call/confine.h"
#include "check.h"

#include <errno.h>
#include <linux/audit.h>
#include <linux/sched.h>
#include <linux/seccomp.h>
#include <signal.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/socket.h>
#include <sys/syscall.h>

#if defined(__x86_64__)
enum { NATIVE = (int)AUDIT_ARCH_X86_64, OTHER = (int)AUDIT_ARCH_I386, LIKE_OURS = (int)AUDIT_ARCH_AARCH64 };
#elif defined(__aarch64__)
enum { NATIVE = (int)AUDIT_ARCH_AARCH64, OTHER = (int)AUDIT_ARCH_ARM, LIKE_OURS = (int)AUDIT_ARCH_X86_64 };
#else
enum { NATIVE = 0, OTHER = 1, LIKE_OURS = 2 };
#endif

static bool tells; /* connection attempts wait for the listener's answer */

static unsigned answer(const struct confine *c, struct seccomp_data d)
{
    struct sock_filter code[CONFINE_STEPS];
    const int n = confine_filter(c, tells, code);
    unsigned a = 0;
    for (int i = 0; i < n; i++) {
        const struct sock_filter s = code[i];
        unsigned yes = 0;
        switch (s.code) {
        case BPF_LD | BPF_W | BPF_ABS:
            assert_true(s.k + 4 <= sizeof d && s.k % 4 == 0);
            memcpy(&a, (const char *)&d + s.k, 4);
            continue;
        case BPF_RET | BPF_K:
            return s.k;
        case BPF_JMP | BPF_JEQ | BPF_K:
            yes = a == s.k;
            break;
        case BPF_JMP | BPF_JGE | BPF_K:
            yes = a >= s.k;
            break;
        case BPF_JMP | BPF_JSET | BPF_K:
            yes = (a & s.k) != 0;
            break;
        default:
            fail_msg("step %d has code %d", i, s.code);
        }
        i += yes ? s.jt : s.jf;
    }
    fail_msg("the filter has no end");
    return 0;
}

static unsigned call(const struct confine *c, int nr, unsigned long long first, unsigned long long second)
{
    return answer(c, (struct seccomp_data){.nr = nr, .arch = (unsigned)NATIVE, .args = {first, second}});
}

static void is_known(void)
{
    struct sock_filter code[CONFINE_STEPS];
    if (!confine_filter(&(struct confine){0}, false, code)) SKIP("no system calls of this processor are known: verifier.confine");
}

#define ERROR(E) (SECCOMP_RET_ERRNO | (E))

static void test_calls(void **state)
{
    static const int REFUSED[] = {
        SYS_ptrace,     SYS_process_vm_readv, SYS_process_vm_writev, SYS_bpf,         SYS_keyctl, SYS_perf_event_open,
        SYS_kexec_load, SYS_init_module,      SYS_finit_module,      SYS_userfaultfd, SYS_setns,  SYS_unshare};
    static const int MOUNTS[] = {SYS_mount, SYS_umount2, SYS_pivot_root};
    static const int OPEN[] = {SYS_read,  SYS_write, SYS_openat,     SYS_execve, SYS_mmap,    SYS_kill,
                               SYS_wait4, SYS_futex, SYS_socketpair, SYS_prctl,  SYS_seccomp, SYS_prlimit64};
    (void)state;
    is_known();
    for (int namespaces = 0; namespaces < 2; namespaces++) {
        const struct confine c = {.namespaces = namespaces};
        for (size_t i = 0; i < sizeof REFUSED / sizeof *REFUSED; i++) assert_int_equal(call(&c, REFUSED[i], 0, 0), ERROR(EPERM));
        for (size_t i = 0; i < sizeof OPEN / sizeof *OPEN; i++) assert_int_equal(call(&c, OPEN[i], 0, 0), SECCOMP_RET_ALLOW);
        for (size_t i = 0; i < sizeof MOUNTS / sizeof *MOUNTS; i++)
            assert_int_equal(call(&c, MOUNTS[i], 0, 0), namespaces ? SECCOMP_RET_ALLOW : ERROR(EPERM));
        assert_int_equal(call(&c, SYS_clone, CLONE_NEWUSER | SIGCHLD, 0), namespaces ? SECCOMP_RET_ALLOW : ERROR(EPERM));
        assert_int_equal(call(&c, SYS_clone3, 0, 0), namespaces ? SECCOMP_RET_ALLOW : ERROR(ENOSYS));
    }
}

/* The kernel reads the lower half of an argument; the upper half changes nothing. */
static void test_arguments(void **state)
{
    const unsigned long long above = 0x7700000000ULL;
    (void)state;
    is_known();
    for (int k = 0; k < 4; k++) {
        const struct confine c = {.network = k & 1};
        tells = k & 2;
        const unsigned other = c.network ? SECCOMP_RET_ALLOW : ERROR(EACCES),
                       may = tells && !c.network ? SECCOMP_RET_USER_NOTIF : other;
        assert_int_equal(call(&c, SYS_socket, AF_UNIX, 0), SECCOMP_RET_ALLOW);
        assert_int_equal(call(&c, SYS_socket, AF_INET, 0), may);
        assert_int_equal(call(&c, SYS_socket, above | AF_INET, 0), may);
        assert_int_equal(call(&c, SYS_socket, AF_INET6, 0), may);
        assert_int_equal(call(&c, SYS_socket, AF_NETLINK, 0), other);
        for (unsigned family = 0; family < 60; family++)
            if (family != AF_UNIX && family != AF_INET && family != AF_INET6 && family != AF_NETLINK)
                assert_int_equal(call(&c, SYS_socket, family, 0), ERROR(EACCES));
        assert_int_equal(call(&c, SYS_ioctl, 0, TIOCSTI), ERROR(EPERM));
        assert_int_equal(call(&c, SYS_ioctl, 0, above | TIOCSTI), ERROR(EPERM));
        assert_int_equal(call(&c, SYS_ioctl, 0, TIOCLINUX), ERROR(EPERM));
        assert_int_equal(call(&c, SYS_ioctl, 0, TIOCGWINSZ), SECCOMP_RET_ALLOW);
        assert_int_equal(call(&c, SYS_clone, SIGCHLD, 0), SECCOMP_RET_ALLOW);
        assert_int_equal(call(&c, SYS_clone, CLONE_VM | CLONE_VFORK | SIGCHLD, 0), SECCOMP_RET_ALLOW);
        assert_int_equal(call(&c, SYS_clone, CLONE_VM | CLONE_FS | CLONE_FILES | CLONE_SIGHAND | CLONE_THREAD, 0),
                         SECCOMP_RET_ALLOW);
        for (int bit = 0; bit < 32; bit++) {
            const unsigned flag = 1U << bit;
            const bool space =
                flag & (CLONE_NEWNS | CLONE_NEWCGROUP | CLONE_NEWUTS | CLONE_NEWIPC | CLONE_NEWUSER | CLONE_NEWPID | CLONE_NEWNET);
            assert_int_equal(call(&c, SYS_clone, flag, 0), space ? ERROR(EPERM) : SECCOMP_RET_ALLOW);
        }
    }
}

/* A call number depends on the processor: 26 is ptrace on i386 and msync on x86-64. */
static void test_processors(void **state)
{
    const struct confine c = {0};
    (void)state;
    is_known();
    for (int nr = 0; nr < 600; nr++) {
        assert_int_equal(answer(&c, (struct seccomp_data){.nr = nr, .arch = (unsigned)OTHER}), SECCOMP_RET_KILL_PROCESS);
        assert_int_equal(answer(&c, (struct seccomp_data){.nr = nr, .arch = (unsigned)LIKE_OURS}), SECCOMP_RET_KILL_PROCESS);
#ifdef __x86_64__
        assert_int_equal(call(&c, nr | 0x40000000, 0, 0), ERROR(ENOSYS));
#endif
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_calls),
        cmocka_unit_test(test_arguments),
        cmocka_unit_test(test_processors),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
