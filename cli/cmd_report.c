#include "base/fs.h"
#include "base/log.h"
#include "cli/cli.h"
#include "lab/report/report.h"
#include "observe/run_data.h"

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

const char report_usage[] =
    "usage: tare report RUN_OR_SWEEP ... [-o FILE] [--svg DIR] [--latex DIR] [--png DIR]\n"
    "Write one self-contained HTML file with the training signals of runs, or of a sweep's variants over seeds and its table.\n"
    "  -o FILE      output; default: report.html in the first folder\n"
    "  --svg DIR    also write every chart as an SVG file (`rsvg-convert -f pdf` makes a PDF of one)\n"
    "  --latex DIR  also write the tables of the sweeps as LaTeX (booktabs)\n"
    "  --png DIR    also write pictures of the page at desktop and phone width, light and dark (needs Chromium)\n";

enum { PATHS = 64, PHONE = 390, DESKTOP = 1280 };

/* ---------------------------------------------------------------- pictures */

static const char *const BROWSERS[] = {"chromium", "chromium-browser", "google-chrome", "chrome", NULL};

/* Runs the browser with its output in `output`; *found = false if there is no such program. */
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
    if (why) FAIL(e, TARE_E_IO, "cannot start %s: %s", name, strerror(why));
    while (waitpid(pid, &exit_status, 0) < 0)
        if (errno != EINTR) FAIL(e, TARE_E_IO, "waiting for %s: %s", name, strerror(errno));
    if (WIFEXITED(exit_status) && WEXITSTATUS(exit_status) == 127) {
        *found = false;
        return TARE_OK;
    }
    if (!WIFEXITED(exit_status) || WEXITSTATUS(exit_status)) FAIL(e, TARE_E_STATE, "%s failed to draw the page", name);
    return TARE_OK;
}

/* Writes a page that shows the report in a frame of the given width, because a browser's own window
 * cannot be as narrow as a phone, and stores the report's height in the document. */
static tare_status write_frame(const char *page, const char *file, int width, struct err *e)
{
    char path[PATH_MAX];
    OWNED(str_free) struct str text = {0};
    if (!realpath(page, path)) FAIL(e, TARE_E_IO, "%s: %s", page, strerror(errno));
    TRY(str_addf(
        &text, e,
        "<body style=\"margin:0\"><iframe src=\"file://%s\" style=\"border:0;width:%dpx;height:900px;display:block\" onload=\"const h=this.contentDocument.documentElement.scrollHeight;this.style.height=h+'px';"
        "document.documentElement.dataset.height=h\"></iframe>",
        path, width));
    return fs_write_atomic(file, text.data, text.size, e);
}

struct shot {
    const char *browser, *dir;
    char frame[FS_PATH], dump[FS_PATH], url[FS_PATH + 16];
    int width;
    long height;
};

static tare_status measure_height(struct shot *s, struct err *e)
{
    char window[64];
    OWNED(str_free) struct str text = {0};
    bool found;
    snprintf(window, sizeof window, "--window-size=%d,900", s->width);
    const char *arguments[] = {"--dump-dom", "--allow-file-access-from-files", window, s->url, NULL};
    TRY(run_browser(s->browser, arguments, s->dump, &found, e));
    TRY(fs_read_all(s->dump, &text, e));
    const char *height = text.data ? strstr(text.data, "data-height=\"") : NULL;
    s->height = height ? strtol(height + 13, NULL, 10) : 4000;
    /* the limits of a picture */
    if (s->height < 200 || s->height > 16000) s->height = s->height < 200 ? 200 : 16000;
    return TARE_OK;
}

static tare_status take_screenshot(const struct shot *s, bool dark, struct err *e)
{
    char name[64], window[64], png[FS_PATH], option[FS_PATH + 20];
    bool found;
    snprintf(name, sizeof name, "report-%d-%s.png", s->width, dark ? "dark" : "light");
    TRY(fs_join(png, s->dir, name, e));
    snprintf(window, sizeof window, "--window-size=%d,%ld", s->width, s->height);
    snprintf(option, sizeof option, "--screenshot=%s", png);
    const char *arguments[] = {
        option, "--allow-file-access-from-files", window, dark ? "--force-dark-mode" : "--mute-audio", s->url, NULL};
    TRY(run_browser(s->browser, arguments, s->dump, &found, e));
    log_info("%s", png);
    return TARE_OK;
}

static tare_status take_pictures_with(const char *browser, const char *page, const char *dir, struct err *e)
{
    char path[PATH_MAX];
    struct shot s = {.browser = browser, .dir = dir};
    tare_status status = fs_join(s.frame, dir, ".frame.html", e);
    if (!status) status = fs_join(s.dump, dir, ".dump", e);
    for (int i = 0; i < 2 && !status; i++) {
        s.width = i ? PHONE : DESKTOP;
        status = write_frame(page, s.frame, s.width, e);
        if (!status && !realpath(s.frame, path))
            status = err_set(e, TARE_E_IO, __FILE__, __LINE__, "%s: %s", s.frame, strerror(errno));
        snprintf(s.url, sizeof s.url, "file://%s", path);
        if (!status) status = measure_height(&s, e);
        if (!status) status = take_screenshot(&s, false, e);
        if (!status) status = take_screenshot(&s, true, e);
    }
    unlink(s.frame);
    unlink(s.dump);
    return status;
}

static tare_status take_pictures(const char *page, const char *dir, struct err *e)
{
    TRY(fs_mkdirs(dir, e));
    for (int i = 0; BROWSERS[i]; i++) {
        static const char *const VERSION[] = {"--version", NULL};
        bool found = false;
        TRY(run_browser(BROWSERS[i], VERSION, "/dev/null", &found, e));
        if (found) return take_pictures_with(BROWSERS[i], page, dir, e);
    }
    FAIL(e, TARE_E_NOT_FOUND, "--png: Chromium is missing from PATH; install it (apt-get install chromium), or open %s", page);
}

/* ---------------------------------------------------------------- output places */

/* Returns the absolute path of a file that may not exist yet, with the links of its existing part
 * resolved. */
static tare_status absolute_path(const char *path, char out[FS_PATH], struct err *e)
{
    char whole[FS_PATH], at[FS_PATH], parent[FS_PATH], real[PATH_MAX];
    TRY(fs_join(whole, ".", path, e));
    for (size_t n = strlen(whole); n > 1 && whole[n - 1] == '/'; n--) whole[n - 1] = 0;
    memcpy(at, whole, sizeof at);
    while (!realpath(at, real)) {
        fs_dirname(parent, at);
        if (!strcmp(parent, at)) FAIL(e, TARE_E_IO, "%s: %s", path, strerror(errno));
        memcpy(at, parent, sizeof at);
    }
    const char *rest = whole + strlen(at);
    if (snprintf(out, FS_PATH, "%.*s%s%s", FS_PATH, real, *rest && *rest != '/' ? "/" : "", rest) >= FS_PATH)
        FAIL(e, TARE_E_INVALID, "%s: path too long", path);
    return TARE_OK;
}

/* The check of a run's files (`tare reproduce`) knows report.html and report-... in the run's
 * folder and reports every other name as unknown. */
static tare_status check_place(const char *path, bool folder, struct err *e)
{
    char at[FS_PATH], parent[FS_PATH];
    if (!path) return TARE_OK;
    TRY(absolute_path(path, at, e));
    if (folder && run_data_is_run(at))
        FAIL(
            e, TARE_E_INVALID,
            "%s is the folder of a run, where tare reproduce would report the charts as unknown files; use another folder, such as %s/report-figures",
            path, path);
    for (; strrchr(at, '/')[1]; memcpy(at, parent, sizeof at)) {
        const char *name = strrchr(at, '/') + 1;
        const bool known = !strcmp(name, "report.html") || !strncmp(name, "report-", 7);
        fs_dirname(parent, at);
        if (!known && run_data_is_run(parent))
            FAIL(
                e, TARE_E_INVALID,
                "%s would be in the folder of a run, %s, where tare reproduce would report it as an unknown file; use a name that begins with report-, or another folder",
                path, parent);
    }
    return TARE_OK;
}

/* ---------------------------------------------------------------- the verb */

struct outputs {
    const char *page, *svg, *latex, *png; /* a file and three folders; NULL: not requested */
};

static tare_status write_report(const char *const *paths, int64_t n, const struct outputs *to, struct err *e)
{
    char path[FS_PATH];
    OWNED(str_free) struct str text = {0};
    const char *file = to->page;
    const char *const folders[] = {to->svg, to->latex};
    for (int i = 0; i < 2; i++) TRY(check_place(folders[i], true, e));
    TRY(check_place(to->png, false, e));
    TRY(check_place(to->page, false, e));
    if (!file) {
        TRY(fs_join(path, paths[0], "report.html", e));
        file = path;
    }
    TRY(report_html(paths, n, &text, e));
    TRY(fs_write_atomic(file, text.data, text.size, e));
    log_info("%s (%.0f kB)", file, (double)text.size / 1000);
    if (to->svg) TRY(report_charts(paths, n, to->svg, e));
    if (to->svg) log_info("%s: every chart as an SVG file", to->svg);
    if (to->latex) TRY(report_latex(paths, n, to->latex, e));
    if (to->latex) log_info("%s: the tables of the sweeps as LaTeX files", to->latex);
    return to->png ? take_pictures(file, to->png, e) : TARE_OK;
}

int cmd_report(int argc, char **argv)
{
    struct err e = {0};
    const char *paths[PATHS];
    struct outputs to = {0};
    const struct {
        const char *name, **value;
    } options[] = {{"-o", &to.page}, {"--svg", &to.svg}, {"--latex", &to.latex}, {"--png", &to.png}};
    enum { OPTIONS = sizeof options / sizeof *options };
    int64_t n = 0;
    for (int i = 1; i < argc; i++) {
        int k = 0;
        while (k < OPTIONS && strcmp(argv[i], options[k].name)) k++;
        if (k < OPTIONS && i + 1 < argc)
            *options[k].value = argv[++i];
        else if (argv[i][0] != '-' && n < PATHS)
            paths[n++] = argv[i];
        else
            return cli_unexpected(argv[i], report_usage);
    }
    if (!n) return cli_usage(report_usage);
    const tare_status status = write_report(paths, n, &to, &e);
    return cli_end(status, &e);
}
