#define _GNU_SOURCE
#include "inside.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/mount.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

/* declared here because mount.h of libc and of Linux conflict on some systems */
int mount(const char *source, const char *target, const char *type, unsigned long flags, const void *data);
int umount2(const char *target, int flags);
enum { BIND = 4096, REC = 16384, PRIVATE = 1 << 18, NOSUID = 2, NODEV = 4, DETACH = 2 };

/* A folder that exists on every machine and whose content is not needed: the new root is mounted
 * over it. */
static const char ROOT[] = "/proc";

static _Noreturn void report_failure(const struct inside *in, const char *what)
{
    const struct inside_failure f = {what, errno};
    if (write(in->failure, &f, sizeof f) < 0) _exit(126);
    _exit(127);
}

/* Joins ROOT and path. */
static const char *path_below(char out[2048], const char *path)
{
    const size_t n = sizeof ROOT - 1;
    memcpy(out, ROOT, n);
    strncpy(out + n, path, 2047 - n);
    out[2047] = 0;
    return out;
}

static void write_file(const struct inside *in, const char *path, const char *text, const char *what)
{
    const int fd = open(path, O_WRONLY | O_CLOEXEC);
    if (fd < 0 || write(fd, text, strlen(text)) < 0) report_failure(in, what);
    close(fd);
}

/* Maps the outside user to number 1000 inside: not root, so that starting the program drops all
 * rights in the namespace. */
static void become_nobody(const struct inside *in)
{
    char text[64];
    write_file(in, "/proc/self/setgroups", "deny", "a user namespace (setgroups)");
    snprintf(text, sizeof text, "1000 %u 1", in->uid);
    write_file(in, "/proc/self/uid_map", text, "a user namespace (uid_map)");
    snprintf(text, sizeof text, "1000 %u 1", in->gid);
    write_file(in, "/proc/self/gid_map", text, "a user namespace (gid_map)");
}

static void make_folders(char *path)
{
    for (char *p = path + sizeof ROOT; *p; p++)
        if (*p == '/') {
            *p = 0;
            mkdir(path, 0755);
            *p = '/';
        }
}

/* Makes a file or folder of the machine visible; copies symbolic links. Missing paths are
 * skipped. */
static void show_path(const struct inside *in, const char *path)
{
    char to[2048], link[1024];
    struct stat st;
    if (!*path || lstat(path, &st)) return;
    path_below(to, path);
    make_folders(to);
    if (S_ISLNK(st.st_mode)) {
        const ssize_t n = readlink(path, link, sizeof link - 1);
        link[n > 0 ? n : 0] = 0;
        if (n > 0 && symlink(link, to) && errno != EEXIST) report_failure(in, "a private file system (link)");
        return;
    }
    if (S_ISDIR(st.st_mode))
        mkdir(to, 0755);
    else
        close(open(to, O_CREAT | O_WRONLY | O_CLOEXEC, 0644));
    if (mount(path, to, NULL, BIND | REC, NULL)) report_failure(in, "a private file system (bind)");
}

static void new_root(const struct inside *in)
{
    static const char *const SHOWN[] = {
        "/usr",      "/lib",      "/lib32",      "/lib64", "/bin", "/etc/ld.so.cache", "/etc/alternatives",
        "/dev/null", "/dev/zero", "/dev/urandom"};
    const struct sandbox *s = in->sandbox;
    const struct mount_attr attr = {.attr_set = MOUNT_ATTR_RDONLY | MOUNT_ATTR_NOSUID};
    char to[2048], size[64];
    if (mount(NULL, "/", NULL, REC | PRIVATE, NULL)) report_failure(in, "a mount namespace");
    if (mount("none", ROOT, "tmpfs", NOSUID | NODEV, "size=1m,mode=755")) report_failure(in, "a private file system (tmpfs)");
    for (size_t i = 0; i < sizeof SHOWN / sizeof *SHOWN; i++) show_path(in, SHOWN[i]);
    if (strncmp(s->base_prefix, "/usr", 4) != 0) show_path(in, s->base_prefix);
    if (strncmp(s->prefix, "/usr", 4) != 0 && strcmp(s->prefix, s->base_prefix) != 0) show_path(in, s->prefix);
    mkdir(path_below(to, "/tmp"), 0755);
    if (syscall(SYS_mount_setattr, AT_FDCWD, ROOT, AT_RECURSIVE, &attr, sizeof attr))
        report_failure(in, "a file system that is read-only (mount_setattr)");
    snprintf(size, sizeof size, "size=%lld,nr_inodes=1000,mode=777", (long long)s->files);
    if (mount("none", to, "tmpfs", NOSUID | NODEV, size)) report_failure(in, "a folder in memory");
    if (chdir(ROOT) || syscall(SYS_pivot_root, ".", ".") || umount2(".", DETACH) || chdir("/tmp"))
        report_failure(in, "a private root (pivot_root)");
}

static void set_limit(const struct inside *in, __rlimit_resource_t what, int64_t most)
{
    const struct rlimit r = {(rlim_t)most, (rlim_t)most};
    if (setrlimit(what, &r)) report_failure(in, "its limits (setrlimit)");
}

static void set_limits(const struct inside *in)
{
    const struct sandbox *s = in->sandbox;
    const int64_t cpu = (int64_t)s->cpu + ((double)(int64_t)s->cpu < s->cpu);
    set_limit(in, RLIMIT_CPU, cpu);
    set_limit(in, RLIMIT_AS, s->memory);
    set_limit(in, RLIMIT_FSIZE, s->mode == SANDBOX_FULL ? s->files : 0);
    set_limit(in, RLIMIT_NOFILE, 64);
    set_limit(in, RLIMIT_CORE, 0);
    set_limit(in, RLIMIT_STACK, 64 << 20);
    set_limit(in, RLIMIT_MSGQUEUE, 0);
}

/* Sets up descriptors 0, 1 and 2, and the one for failures, which closes when the program
 * starts. */
static void set_descriptors(struct inside *in)
{
    const int null = open("/dev/null", O_RDWR | O_CLOEXEC);
    const int high = fcntl(in->failure, F_DUPFD_CLOEXEC, 100), input = fcntl(in->input, F_DUPFD_CLOEXEC, 100),
              output = fcntl(in->output, F_DUPFD_CLOEXEC, 100);
    if (null < 0 || high < 0 || input < 0 || output < 0 || dup2(input, 0) < 0 || dup2(output, 1) < 0 || dup2(null, 2) < 0 ||
        dup2(high, 3) < 0)
        report_failure(in, "its files");
    in->failure = 3;
    if (fcntl(3, F_SETFD, FD_CLOEXEC) || syscall(SYS_close_range, 4U, ~0U, 0U)) report_failure(in, "its files (close_range)");
}

/* The parent may have died before its death signal was requested; nothing reads this process's
 * output then. */
static bool is_alone(void)
{
    struct pollfd output = {.fd = STDOUT_FILENO};
    return poll(&output, 1, 0) > 0 && (output.revents & POLLERR);
}

static void reset_signals(void)
{
    sigset_t none;
    sigemptyset(&none);
    for (int s = 1; s < 65; s++) signal(s, SIG_DFL);
    sigprocmask(SIG_SETMASK, &none, NULL);
}

_Noreturn void inside_run(const struct inside *from)
{
    static char P_STILL[] = "-B", P_SITE[] = "-s", P_X[] = "-X", P_UTF8[] = "utf8", COMMAND[] = "-c";
    static char PATH[] = "PATH=/usr/bin:/bin", HOME[] = "HOME=/tmp", SEED[] = "PYTHONHASHSEED=0", OMP[] = "OMP_NUM_THREADS=1",
                BLAS[] = "OPENBLAS_NUM_THREADS=1";
    struct inside in = *from;
    const bool full = in.sandbox->mode == SANDBOX_FULL;
    char *const argv[] = {(char *)in.sandbox->python, P_STILL, P_SITE, P_X, P_UTF8, COMMAND, (char *)in.program, NULL};
    char *const env[] = {PATH, HOME, SEED, OMP, BLAS, NULL};
    reset_signals();
    prctl(PR_SET_PDEATHSIG, SIGKILL);
    if (full) become_nobody(&in);
    set_descriptors(&in);
    if (is_alone()) _exit(127);
    if (full) new_root(&in);
    setsid();
    set_limits(&in);
    if (!inside_filter(full)) report_failure(&in, "a list of system calls (seccomp)");
    execve(in.sandbox->python, argv, env);
    report_failure(&in, in.sandbox->python);
}
