#include "base/fs.h"
#include "base/log.h"
#include "cli/cli.h"
#include "observe/report.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <spawn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

extern char **environ;

static const char USAGE[] =
    "usage: tare report RUN_OR_SWEEP ... [-o FILE] [--png DIR]\n"
    "One self-contained HTML file: the training signals of runs, or of a sweep's variants over seeds with its table.\n"
    "  -o FILE      default: report.html in the (first) folder\n"
    "  --png DIR    also pictures of the page at desktop and phone width, light and dark (needs Chromium)\n";

enum { PATHS = 64, PHONE = 390, DESKTOP = 1280 };

/* ---------------------------------------------------------------- pictures */

static const char *const BROWSERS[] = {"chromium", "chromium-browser", "google-chrome", "chrome", NULL};

/* Runs the browser with its output in `output`; *found false: no such program. */
static tare_status run_browser(const char *name, const char *const *arguments, const char *output, bool *found, struct err *e)
{
    const char *argv[24] = {name, "--headless", "--no-sandbox", "--disable-gpu", "--hide-scrollbars", "--no-first-run"};
    int n = 6, exit_status;
    pid_t pid;
    posix_spawn_file_actions_t actions;
    while (*arguments) argv[n++] = *arguments++;
    posix_spawn_file_actions_init(&actions);
    posix_spawn_file_actions_addopen(&actions, 1, output, O_WRONLY | O_CREAT | O_TRUNC, 0666);
    posix_spawn_file_actions_addopen(&actions, 2, "/dev/null", O_WRONLY, 0);
    const int why = posix_spawnp(&pid, name, &actions, NULL, (char *const *)(uintptr_t)argv, environ);
    posix_spawn_file_actions_destroy(&actions);
    *found = why != ENOENT;
    if (!*found) return TARE_OK;
    if (why) FAIL(e, TARE_E_IO, "%s cannot be started: %s", name, strerror(why));
    while (waitpid(pid, &exit_status, 0) < 0)
        if (errno != EINTR) FAIL(e, TARE_E_IO, "waiting for %s: %s", name, strerror(errno));
    if (WIFEXITED(exit_status) && WEXITSTATUS(exit_status) == 127) {
        *found = false;
        return TARE_OK;
    }
    if (!WIFEXITED(exit_status) || WEXITSTATUS(exit_status)) FAIL(e, TARE_E_STATE, "%s could not draw the page", name);
    return TARE_OK;
}

/* The page is shown in a frame of the wanted width, because a browser's own window cannot be as narrow as a phone. A first pass, in which the
 * page's script writes its height into the document, gives the height of the picture. */
static tare_status picture(const char *browser, const char *page, const char *dir, int width, bool dark, struct err *e)
{
    char png[FS_PATH], frame[FS_PATH], dump[FS_PATH], name[64], window[64], shot[FS_PATH + 20], url[FS_PATH + 16];
    char path[PATH_MAX];
    struct str text = {0};
    bool found;
    snprintf(name, sizeof name, "report-%d-%s.png", width, dark ? "dark" : "light");
    TRY(fs_join(png, dir, name, e));
    TRY(fs_join(frame, dir, ".frame.html", e));
    TRY(fs_join(dump, dir, ".dump", e));
    if (!realpath(page, path)) FAIL(e, TARE_E_IO, "%s: %s", page, strerror(errno));
    snprintf(url, sizeof url, "file://%s", path);
    snprintf(window, sizeof window, "--window-size=%d,900", width < 500 ? 500 : width);
    const char *measure[] = {"--dump-dom", window, url, NULL};
    tare_status status = run_browser(browser, measure, dump, &found, e);
    if (!status) status = fs_read_all(dump, &text, e);
    const char *height = text.data ? strstr(text.data, "data-height=\"") : NULL;
    long rows = height ? strtol(height + 13, NULL, 10) : 2000;
    if (width < 500) rows = rows * 500 / width + 400; /* measured at 500; narrower is taller */
    if (rows > 16000) rows = 16000;
    str_clear(&text);
    if (!status)
        status = str_addf(
            &text, e,
            "<body style=\"margin:0\"><iframe src=\"%s\" style=\"border:0;width:%dpx;height:%ldpx;display:block\"></iframe>", url,
            width, rows);
    if (!status) status = fs_write_atomic(frame, text.data, text.size, e);
    if (!status && !realpath(frame, path)) status = err_set(e, TARE_E_IO, __FILE__, __LINE__, "%s: %s", frame, strerror(errno));
    snprintf(url, sizeof url, "file://%s", path);
    snprintf(window, sizeof window, "--window-size=%d,%ld", width, rows);
    snprintf(shot, sizeof shot, "--screenshot=%s", png);
    const char *draw[] = {
        shot, window, "--allow-file-access-from-files", dark ? "--force-dark-mode" : "--disable-features=WebUIDarkMode", url, NULL};
    if (!status) status = run_browser(browser, draw, dump, &found, e);
    unlink(frame);
    unlink(dump);
    str_free(&text);
    if (!status) log_info("%s", png);
    return status;
}

static tare_status pictures(const char *page, const char *dir, struct err *e)
{
    TRY(fs_mkdirs(dir, e));
    for (int i = 0; BROWSERS[i]; i++) {
        static const char *const VERSION[] = {"--version", NULL};
        bool found = false;
        TRY(run_browser(BROWSERS[i], VERSION, "/dev/null", &found, e));
        if (!found) continue;
        for (int k = 0; k < 4; k++) TRY(picture(BROWSERS[i], page, dir, k & 1 ? PHONE : DESKTOP, k >= 2, e));
        return TARE_OK;
    }
    FAIL(e, TARE_E_NOT_FOUND,
         "--png needs Chromium, and there is none on the path; install it (apt-get install chromium), or open %s", page);
}

/* ---------------------------------------------------------------- the verb */

static tare_status write_report(const char *const *paths, int64_t n, const char *file, const char *png, struct err *e)
{
    char path[FS_PATH];
    struct str text = {0};
    if (!file) {
        TRY(fs_join(path, paths[0], "report.html", e));
        file = path;
    }
    tare_status status = report_html(paths, n, &text, e);
    if (!status) status = fs_write_atomic(file, text.data, text.size, e);
    if (!status) log_info("%s (%.0f kB)", file, (double)text.size / 1000);
    str_free(&text);
    return status || !png ? status : pictures(file, png, e);
}

int cmd_report(int argc, char **argv)
{
    struct err e = {0};
    const char *paths[PATHS], *file = NULL, *png = NULL;
    int64_t n = 0;
    for (int i = 1; i < argc; i++) {
        if (!strcmp(argv[i], "--help")) return fputs(USAGE, stdout) < 0;
        if (!strcmp(argv[i], "-o") && i + 1 < argc)
            file = argv[++i];
        else if (!strcmp(argv[i], "--png") && i + 1 < argc)
            png = argv[++i];
        else if (argv[i][0] != '-' && n < PATHS)
            paths[n++] = argv[i];
        else
            return fputs(USAGE, stderr), 2;
    }
    if (!n) return fputs(USAGE, stderr), 2;
    const tare_status status = write_report(paths, n, file, png, &e);
    if (status) log_error(&e);
    return err_exit_code(status);
}
