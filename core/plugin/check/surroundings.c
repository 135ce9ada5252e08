/* The state of the process that a plugin may not change, observed around each call into the plugin.
 */
#include "plugin/check/internal.h"

#include <dirent.h>
#include <fenv.h>
#include <locale.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>
#if defined(__x86_64__)
#include <xmmintrin.h>
#endif

static int64_t count_entries(const char *folder)
{
    DIR *d = opendir(folder);
    int64_t n = 0;
    while (d && readdir(d)) n++;
    if (d) closedir(d);
    return n;
}

/* Returns the bytes in the file that standard output or error was pointed to, or 0 for another
 * file. */
static int64_t bytes_in(int fd)
{
    struct stat s;
    return !fstat(fd, &s) && S_ISREG(s.st_mode) ? (int64_t)s.st_size : 0;
}

struct surroundings surroundings_now(void)
{
    struct surroundings s = {.files = count_entries("/proc/self/fd"), .threads = count_entries("/proc/self/task")};
#if defined(__x86_64__)
    s.fp = _mm_getcsr() & ~0x3fu;
#else
    s.fp = (unsigned)fegetround();
#endif
    snprintf(s.locale, sizeof s.locale, "%s", setlocale(LC_ALL, NULL));
    if (!getcwd(s.directory, sizeof s.directory)) s.directory[0] = 0;
    for (int i = 1; i < 32; i++) {
        struct sigaction action;
        if (!sigaction(i, NULL, &action)) s.signals = s.signals * 1099511628211u ^ (uint64_t)(uintptr_t)action.sa_handler;
    }
    fflush(stdout);
    for (int i = 0; i < 2; i++) s.printed[i] = bytes_in(1 + i);
    return s;
}

/* Compares the parts that must be equal after each call. */
static tare_status same_mode(const struct surroundings *a, const struct surroundings *b, const char *when, struct err *e)
{
    if (a->fp != b->fp)
        FAIL(e, TARE_E_PLUGIN, "%s changed the floating-point mode (0x%x to 0x%x); was it linked with -ffast-math?", when, a->fp,
             b->fp);
    if (strcmp(a->locale, b->locale)) FAIL(e, TARE_E_PLUGIN, "%s changed the locale from %s to %s", when, a->locale, b->locale);
    if (strcmp(a->directory, b->directory)) FAIL(e, TARE_E_PLUGIN, "%s changed the working directory to %s", when, b->directory);
    if (a->signals != b->signals) FAIL(e, TARE_E_PLUGIN, "%s changed a signal handler", when);
    for (int i = 0; i < 2; i++)
        if (a->printed[i] != b->printed[i])
            FAIL(e, TARE_E_PLUGIN, "%s wrote %lld bytes to standard %s; messages go through host->log", when,
                 (long long)(b->printed[i] - a->printed[i]), i ? "error" : "output");
    return TARE_OK;
}

tare_status surroundings_same(const struct surroundings *a, const struct surroundings *b, const char *when, struct err *e)
{
    TRY(same_mode(a, b, when, e));
    if (a->files != b->files)
        FAIL(e, TARE_E_PLUGIN, "%s left %lld files %s", when,
             (long long)(b->files > a->files ? b->files - a->files : a->files - b->files),
             b->files > a->files ? "open" : "closed that are not its own");
    if (a->threads < b->threads) FAIL(e, TARE_E_PLUGIN, "%s left %lld threads running", when, (long long)(b->threads - a->threads));
    return TARE_OK;
}

/* Points standard output and error to unnamed files, where a plugin's output can be measured. Only
 * in a child process. */
void surroundings_catch_output(void)
{
#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
    const int last = 1; /* the sanitizer's report goes to standard error */
#else
    const int last = 2;
#endif
    fflush(NULL);
    for (int fd = 1; fd <= last; fd++) {
        FILE *file = tmpfile();
        if (!file) return;
        dup2(fileno(file), fd);
        fclose(file);
    }
}

/* ---------------------------------------------------------------- around every call */

static void call_begins(void *ctx)
{
    struct check *c = ctx;
    c->before = surroundings_now();
}

static void call_ends(void *ctx, const struct plugin_instance *i, const char *phase)
{
    struct check *c = ctx;
    const struct surroundings now = surroundings_now();
    (void)i;
    /* files and threads may be kept until destroy */
    if (!c->violation.code) same_mode(&c->before, &now, phase, &c->violation);
}

void check_watch(struct check *c, bool on)
{
    c->watch = (struct plugin_watch){c, call_begins, call_ends};
    plugin_watch(on ? &c->watch : NULL);
}
