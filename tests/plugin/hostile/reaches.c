/* A verifier that attempts forbidden actions, as the completion names them. correct means that
 * the attempt was refused; the note has the error. If it is not refused, the machine is not
 * changed: the target does not exist (a mount onto a missing folder), which the kernel checks
 * only after the filter. */
#define _GNU_SOURCE
#include <tare/sdk.h>

#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <sched.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/mount.h>
#include <sys/prctl.h>
#include <sys/ptrace.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <sys/uio.h>
#include <sys/wait.h>
#include <unistd.h>

enum { X32 = 0x40000000 };
static int at_load; /* the result in the constructor */

static int failed(long result)
{
    return result < 0 ? errno : 0;
}

static int opens(int family)
{
    const int fd = socket(family, family == AF_NETLINK || family == AF_PACKET ? SOCK_RAW : SOCK_STREAM, 0), got = failed(fd);
    if (fd >= 0) close(fd);
    return got;
}

__attribute__((constructor)) static void loaded(void)
{
    at_load = opens(AF_INET);
}

static int inet(void)
{
    return opens(AF_INET);
}
static int inet6(void)
{
    return opens(AF_INET6);
}
static int packet(void)
{
    return opens(AF_PACKET);
}
static int netlink(void)
{
    return opens(AF_NETLINK);
}
static int unix_(void)
{
    return opens(AF_UNIX);
}
static int at_load_(void)
{
    return at_load;
}
static int trace(void)
{
    return failed(ptrace(PTRACE_PEEKDATA, 0, 0, 0));
}

static int reads_engine(void)
{
    char here, *there = &here;
    struct iovec local = {&here, 1}, remote = {there, 1};
    return failed(process_vm_readv(getppid(), &local, 1, &remote, 1, 0));
}

static int mounts(void)
{
    return failed(mount("none", "", "tmpfs", 0, NULL));
}
static int pivots(void)
{
    return failed(syscall(SYS_pivot_root, "", ""));
}
static int unshares(void)
{
    return failed(unshare(CLONE_NEWUSER));
}
static int clones(void)
{
    const long pid = syscall(SYS_clone, CLONE_NEWUSER | SIGCHLD, NULL, NULL, NULL, NULL);
    if (!pid) _exit(0);
    if (pid > 0) waitpid((pid_t)pid, NULL, 0);
    return failed(pid);
}
static int clones3(void)
{
    return failed(syscall(SYS_clone3, NULL, 0));
}
static int bpf_(void)
{
    return failed(syscall(SYS_bpf, 0, NULL, 0));
}
static int key(void)
{
    return failed(syscall(SYS_keyctl, 0, 0, 0, 0, 0));
}
static int perf(void)
{
    return failed(syscall(SYS_perf_event_open, NULL, 0, -1, -1, 0));
}
static int module(void)
{
    return failed(syscall(SYS_finit_module, -1, "", 0));
}
static int kexec(void)
{
    return failed(syscall(SYS_kexec_load, 0, 1L << 20, NULL, 0));
}
static int faults(void)
{
    return failed(syscall(SYS_userfaultfd, 0));
}
static int ring(void)
{
    return failed(syscall(SYS_io_uring_setup, 1, NULL));
}
static int types(void)
{
    return failed(ioctl(-1, TIOCSTI, "x"));
}
static int x32(void)
{
    return failed(syscall(X32 + SYS_getpid));
}
static int privileges(void)
{
    return prctl(PR_GET_NO_NEW_PRIVS, 0, 0, 0, 0) == 1 ? EPERM : 0;
}
static int root(void)
{
    return failed(chroot(""));
}

/* Another action that must stay allowed. */
static void *in_thread(void *ctx)
{
    *(int *)ctx = 1;
    return NULL;
}
static int works(void)
{
    int ran = 0, status = -1;
    pthread_t t;
    char *p = mmap(NULL, 1 << 20, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (p == MAP_FAILED || munmap(p, 1 << 20) || pthread_create(&t, NULL, in_thread, &ran)) return EPERM;
    pthread_join(t, NULL);
    const pid_t pid = fork();
    if (!pid) execl("/bin/sh", "sh", "-c", "exit 3", (char *)NULL);
    return ran && pid > 0 && waitpid(pid, &status, 0) == pid && WEXITSTATUS(status) == 3 ? 0 : EPERM;
}

static int files(void)
{
    static int fd[3000];
    int n = 0, got = 0;
    for (; n < 3000 && !got; n++) got = failed(fd[n] = open("/dev/null", O_RDONLY | O_CLOEXEC));
    while (n--)
        if (fd[n] >= 0) close(fd[n]);
    return got;
}

/* Beyond 4 GB, of which the disk stores one byte. */
static int huge(void)
{
    signal(SIGXFSZ, SIG_IGN);
    const int fd = open("huge", O_WRONLY | O_CREAT | O_CLOEXEC, 0600);
    const int got = failed(pwrite(fd, "x", 1, (off_t)5 << 30));
    close(fd);
    return got;
}
static int huge_signal(void)
{
    signal(SIGXFSZ, SIG_DFL);
    const int fd = open("huge", O_WRONLY | O_CREAT | O_CLOEXEC, 0600);
    return failed(pwrite(fd, "x", 1, (off_t)5 << 30));
}
static int dumps(void)
{
    struct rlimit r;
    return !getrlimit(RLIMIT_CORE, &r) && !r.rlim_max ? EPERM : 0;
}
static int memory(void)
{
    void *p = mmap(NULL, (size_t)64 << 30, PROT_READ, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    if (p == MAP_FAILED) return errno;
    munmap(p, (size_t)64 << 30);
    return 0;
}
static int aborts(void)
{
    abort();
}

static const struct attempt {
    const char *name;
    int (*run)(void); /* errno; 0: the attempt succeeded */
} ATTEMPTS[] = {{"inet", inet},
                {"inet6", inet6},
                {"packet", packet},
                {"netlink", netlink},
                {"unix", unix_},
                {"load", at_load_},
                {"ptrace", trace},
                {"engine", reads_engine},
                {"mount", mounts},
                {"pivot", pivots},
                {"unshare", unshares},
                {"clone", clones},
                {"clone3", clones3},
                {"bpf", bpf_},
                {"key", key},
                {"perf", perf},
                {"module", module},
                {"kexec", kexec},
                {"userfault", faults},
                {"ring", ring},
                {"type", types},
                {"x32", x32},
                {"privileges", privileges},
                {"root", root},
                {"works", works},
                {"files", files},
                {"huge", huge},
                {"huge_signal", huge_signal},
                {"dumps", dumps},
                {"memory", memory},
                {"abort", aborts}};

static const tare_param PARAMS[] = {TARE_STRING_PARAM("always", "", "attempt to make instead of the completion's", 0)};
static const char *always = "";

static tare_status create(const tare_setup *setup, void **self, tare_error *error)
{
    (void)error;
    *self = NULL;
    always = setup->values[0].s;
    return TARE_OK;
}

static void destroy(void *self)
{
    (void)self;
}

static const char *how(int error)
{
    static const struct {
        int error;
        const char *name;
    } REFUSALS[] = {{EPERM, "EPERM"},   {EACCES, "EACCES"}, {ENOSYS, "ENOSYS"},
                    {EMFILE, "EMFILE"}, {EFBIG, "EFBIG"},   {ENOMEM, "ENOMEM"}};
    for (size_t i = 0; i < sizeof REFUSALS / sizeof *REFUSALS; i++)
        if (error == REFUSALS[i].error) return REFUSALS[i].name;
    return "open"; /* or the target does not exist */
}

static tare_status verify(void *self, const tare_completion *const *completions, tare_verdict *const *verdicts, int64_t n,
                          tare_error *error)
{
    (void)self;
    for (int64_t i = 0; i < n; i++) {
        const tare_text what = *always ? (tare_text){always, (int64_t)strlen(always)} : completions[i]->text;
        const struct attempt *found = NULL;
        for (size_t k = 0; k < sizeof ATTEMPTS / sizeof *ATTEMPTS; k++)
            if (what.size == (int64_t)strlen(ATTEMPTS[k].name) && !memcmp(what.data, ATTEMPTS[k].name, (size_t)what.size))
                found = &ATTEMPTS[k];
        if (!found) return tare_fail(error, TARE_E_INVALID, "%.*s: no attempt", (int)what.size, what.data);
        const char *got = how(found->run());
        verdicts[i]->code = strcmp(got, "open") ? TARE_VERDICT_CORRECT : TARE_VERDICT_WRONG;
        verdicts[i]->reward = strcmp(got, "open") != 0;
        tare_say(verdicts[i]->note, got);
    }
    return TARE_OK;
}

static const tare_verifier FUNCTIONS = {.struct_size = sizeof FUNCTIONS, .create = create, .destroy = destroy, .verify = verify};
static const tare_descriptor DESCRIPTOR = {.struct_size = sizeof DESCRIPTOR,
                                           .kind = TARE_KIND_VERIFIER,
                                           .name = "reaches",
                                           .version = "0.1.0",
                                           .summary = "a fixture of the tests",
                                           TARE_PARAMS(PARAMS, 1),
                                           .functions = &FUNCTIONS};
TARE_PLUGIN_ENTRY(&DESCRIPTOR)
