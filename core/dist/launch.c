#define _GNU_SOURCE
#include "dist/launch.h"

#include "base/arena.h"
#include "base/clock.h"
#include "base/fs.h"
#include "base/log.h"
#include "dist/launch_report.h"
#include "needs.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

/* Environment variable with the name of a memory file in which ranks report to their launcher how
 * far they came and that the user has been informed. The file disappears with the launcher, however
 * that ends. */
#define NOTE "TARE_LAUNCH_NOTE"
#define NOTE_FILE "tare-ranks"

/* Seconds that mpirun may take to end after its ranks. */
#define STUCK 20.0

static volatile pid_t child;

/* Forwards signals: mpirun would kill the ranks on SIGINT and SIGTERM, but passes SIGUSR1 on, and
 * the ranks stop after a checkpoint. The third signal ends them. */
static void forward_signal(int signal_number)
{
    static volatile sig_atomic_t times;
    (void)signal_number;
    if (child > 0) kill(child, ++times > 2 ? SIGTERM : SIGUSR1);
}

static bool in_path(const char *name)
{
    const char *path = getenv("PATH");
    char file[FS_PATH];
    while (path && *path) {
        const size_t n = strcspn(path, ":");
        snprintf(file, sizeof file, "%.*s/%s", (int)n, path, name);
        if (!access(file, X_OK)) return true;
        path += n + (path[n] == ':');
    }
    return false;
}

/* Builds argv of mpirun: its options, this program's file, this process's arguments. Points into
 * `text` (the NUL-separated command line). */
static tare_status build_command(int64_t ranks, struct str *text, const char ***out, char *number, char *exe, struct err *e)
{
    const char *const head[] = {"mpirun", "--oversubscribe", "--bind-to", "none", "-n", number, "--allow-run-as-root"};
    const int n_head = (int)(sizeof head / sizeof *head) - (geteuid() != 0);
    int64_t arguments = 0, n = 0;
    const ssize_t size = readlink("/proc/self/exe", exe, FS_PATH - 1);
    if (size <= 0) FAIL(e, TARE_E_IO, "/proc/self/exe: %s", strerror(errno));
    exe[size] = 0;
    snprintf(number, 24, "%lld", (long long)ranks);
    TRY(fs_read_all("/proc/self/cmdline", text, e));
    for (int64_t i = 0; i < text->size; i++) arguments += !text->data[i];
    TRY(mem_new((n_head + arguments + 2) * (int64_t)sizeof **out, (void **)out, e));
    for (int i = 0; i < n_head; i++) (*out)[n++] = head[i];
    (*out)[n++] = exe;
    for (const char *at = text->data + strlen(text->data) + 1; at < text->data + text->size; at += strlen(at) + 1) (*out)[n++] = at;
    return TARE_OK;
}

/* Runs in the child: makes it a separate process group (the terminal's Ctrl-C goes to the parent
 * alone) that ends with its parent. */
static void become_mpirun(const char *const *argv, pid_t parent, int error_output)
{
    char *const *arguments;
    memcpy(&arguments, &argv, sizeof arguments);
    setpgid(0, 0);
    prctl(PR_SET_PDEATHSIG, SIGTERM);
    if (getppid() != parent) _exit(1);
    const int null = open("/dev/null", O_RDONLY);
    if (null >= 0) dup2(null, STDIN_FILENO);
    if (error_output >= 0) dup2(error_output, STDERR_FILENO);
    setenv("OMPI_MCA_btl", "^tcp", 0); /* all ranks are on this machine, so TCP between them is not needed */
    execvp(arguments[0], arguments);
    _exit(127);
}

/* Checks the file first: the launcher may have gone, and another process may have its number. */
static void notify_launcher(const char *word)
{
    char file[64];
    const char *note = getenv(NOTE), is[] = "/memfd:" NOTE_FILE;
    const ssize_t n = note && *note ? readlink(note, file, sizeof file) : -1;
    if (n < (ssize_t)sizeof is - 1 || strncmp(file, is, sizeof is - 1)) return;
    const int fd = open(note, O_WRONLY | O_APPEND | O_CLOEXEC);
    const ssize_t size = (ssize_t)strlen(word);
    if (fd < 0) return;
    if (write(fd, word, (size_t)size) < size) log_debug("%s: %s", note, strerror(errno));
    close(fd);
}

void launch_reported(void)
{
    notify_launcher("reported\n");
}

void launch_joined(void)
{
    notify_launcher("joined\n");
}

/* Reports a rank that ended before it joined the job and therefore could not report itself. `says`
 * is mpirun's report. */
static void report_if_unreported(int note, int exit_status, const char *number, const struct str *says)
{
    char text[256];
    const ssize_t n = pread(note, text, sizeof text - 1, 0);
    text[n < 0 ? 0 : n] = 0;
    if (!exit_status || strstr(text, "reported")) return;
    const bool joined = strstr(text, "joined");
    const char *const how = exit_status > 128 && exit_status < 128 + NSIG ? " (a signal)" : "";
    const char *const when = joined
                                 ? "the ranks ended without a message"
                                 : "a rank ended while MPI was starting, before the ranks had found each other; nothing was begun";
    if (says->size)
        log_message(LOG_ERROR, "%s, exit status %d%s; mpirun says: %s", when, exit_status, how, says->data);
    else
        log_message(LOG_ERROR, "%s, exit status %d%s; `mpirun -n %s` with the same arguments shows more", when, exit_status, how,
                    number);
}

/* Returns whether a child of mpirun has ended (mpirun has not waited for it yet), and how. */
static bool has_ended(long pid, int *how)
{
    char path[64], text[1000];
    snprintf(path, sizeof path, "/proc/%ld/stat", pid);
    FILE *f = fopen(path, "r");
    const size_t n = f ? fread(text, 1, sizeof text - 1, f) : 0;
    if (f) fclose(f);
    text[n] = 0;
    const char *state = strrchr(text, ')'), *last = strrchr(text, ' '); /* the last field is the exit code */
    if (!state || state[1] != ' ' || state[2] != 'Z') return false;
    *how = last ? atoi(last) : 0;
    return true;
}

/* Returns whether mpirun has children and all of them have ended. *status: the exit status to pass
 * on, the first that is not 0. */
static bool ranks_have_ended(pid_t mpirun, int *status)
{
    char path[64];
    long pid;
    int n = 0, ended = 0, how = 0;
    snprintf(path, sizeof path, "/proc/%d/task/%d/children", (int)mpirun, (int)mpirun);
    FILE *f = fopen(path, "r");
    *status = 0;
    for (; f && fscanf(f, "%ld", &pid) == 1; n++) {
        ended += has_ended(pid, &how);
        if (!*status) *status = how;
    }
    if (f) fclose(f);
    return n && ended == n;
}

/* Detects a hang of Open MPI 4.1, which occasionally waits for itself at its end (a lock of its
 * PMIx server). If all ranks have ended and mpirun has not for STUCK seconds, it is killed. */
static bool is_stuck(pid_t mpirun, double *since, int *how)
{
    if (!ranks_have_ended(mpirun, how)) {
        *since = 0;
        return false;
    }
    if (*since <= 0) *since = clock_seconds();
    if (clock_seconds() - *since < STUCK) return false;
    log_debug("mpirun (process %d) hangs after its ranks have ended: killing it", (int)mpirun);
    kill(mpirun, SIGKILL);
    return true;
}

/* Passes on the output of mpirun from the pipe `from` until mpirun ends. A process that outlives
 * mpirun may hold the pipe open. */
static int wait_for(pid_t pid, int from, struct launch_report *r)
{
    char text[4096];
    int how, ranks = 0;
    double since = 0;
    bool stuck = false;
    for (bool ended = false; !ended;) {
        struct pollfd p = {.fd = from, .events = POLLIN};
        ssize_t n = 0;
        const pid_t got = waitpid(pid, &how, WNOHANG);
        if (got < 0 && errno != EINTR) return 1;
        ended = got == pid;
        if (!ended && !stuck) stuck = is_stuck(pid, &since, &ranks);
        while (poll(&p, 1, ended ? 0 : 100) > 0 && (n = read(from, text, sizeof text)) > 0) launch_report_take(r, text, n);
        if (n == 0 && (p.revents & (POLLIN | POLLHUP))) from = -1; /* closed: no more output */
    }
    launch_report_end(r);
    if (stuck) how = ranks;
    return WIFEXITED(how) ? WEXITSTATUS(how) : 128 + WTERMSIG(how);
}

/* Runs mpirun and forwards the signals of this process to it. */
static tare_status run_mpirun(const char **argv, struct launch_report *r, int *exit_status, struct err *e)
{
    int ends[2] = {-1, -1};
    const struct sigaction a = {.sa_handler = forward_signal};
    const int signals[] = {SIGINT, SIGTERM, SIGUSR1, SIGHUP};
    struct sigaction old[4];
    tare_status status = TARE_OK;
    const pid_t parent = getpid();
    if (pipe2(ends, O_CLOEXEC)) FAIL(e, TARE_E_IO, "cannot create a pipe for mpirun: %s", strerror(errno));
    fflush(NULL);
    for (int i = 0; i < 4; i++) sigaction(signals[i], &a, &old[i]);
    child = fork();
    if (child == 0) {
        for (int i = 0; i < 4; i++) sigaction(signals[i], &old[i], NULL);
        become_mpirun(argv, parent, ends[1]);
    }
    close(ends[1]);
    if (child < 0)
        status = err_set(e, TARE_E_NOMEM, __FILE__, __LINE__, "cannot start a process for mpirun: %s", strerror(errno));
    else
        *exit_status = wait_for(child, ends[0], r);
    close(ends[0]);
    for (int i = 0; i < 4; i++) sigaction(signals[i], &old[i], NULL);
    return status;
}

/* Removes an unusable TMPDIR, over which mpirun would fail with a long message; the program itself
 * uses /tmp then, too. */
static void remove_bad_tmpdir(void)
{
    const char *folder = getenv("TMPDIR");
    if (!folder || (fs_is_dir(folder) && !access(folder, W_OK | X_OK))) return;
    log_warn("TMPDIR = %s: not a writable folder; mpirun uses /tmp", folder);
    unsetenv("TMPDIR");
}

tare_status launch_ranks(int64_t ranks, int *exit_status, struct err *e)
{
    OWNED(str_free) struct str text = {0};
    struct launch_report report = {.to = STDERR_FILENO};
    OWNED(mem_free_at) const char **argv = NULL;
    char number[24], exe[FS_PATH], note[64];
    if (!in_path("mpirun"))
        FAIL(e, TARE_E_CONFIG, "dist.ranks = %lld needs mpirun, which is not in PATH; apt-get install " NEEDS_MPI,
             (long long)ranks);
    TRY(build_command(ranks, &text, &argv, number, exe, e));
    remove_bad_tmpdir();
    const int file = memfd_create(NOTE_FILE, MFD_CLOEXEC);
    snprintf(note, sizeof note, "/proc/%d/fd/%d", (int)getpid(), file);
    setenv(NOTE, file >= 0 ? note : "", 1);
    const tare_status status = run_mpirun(argv, &report, exit_status, e);
    if (file >= 0 && !status) report_if_unreported(file, *exit_status, number, &report.ends);
    if (file >= 0) close(file);
    str_free(&report.ends);
    return status;
}
