#include "base/log.h"
#include "base/signals.h"
#include "base/str.h"
#include "cli/cli.h"
#include "lab/report/report.h"

#include <langinfo.h>
#include <locale.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <time.h>
#include <unistd.h>

const char watch_usage[] = "usage: tare watch RUN\n"
                           "Print the signals of a run. On a terminal they are redrawn every second until Ctrl-C.\n";

static bool can_unicode(void)
{
    setlocale(LC_CTYPE, "");
    const bool can = !strcmp(nl_langinfo(CODESET), "UTF-8");
    setlocale(LC_CTYPE, "C");
    return can;
}

static tare_status draw_screen(const char *dir, bool terminal, bool unicode, struct str *out, struct err *e)
{
    struct winsize size = {0};
    int columns = 100, rows = 40;
    if (terminal && !ioctl(STDOUT_FILENO, TIOCGWINSZ, &size) && size.ws_col) {
        columns = size.ws_col;
        rows = size.ws_row - 1;
    }
    str_clear(out);
    TRY(watch_print(dir, columns, rows, unicode, out, e));
    if (terminal) fputs("\033[H\033[J", stdout); /* cursor to home, clear the screen below */
    return cli_show(out, e);
}

int cmd_watch(int argc, char **argv)
{
    struct err e = {0};
    OWNED(str_free) struct str out = {0};
    if (argc != 2 || argv[1][0] == '-') return cli_usage(watch_usage);
    const bool terminal = isatty(STDOUT_FILENO), unicode = can_unicode();
    if (terminal) signals_catch();
    tare_status status;
    do {
        status = draw_screen(argv[1], terminal, unicode, &out, &e);
        if (!status && terminal && !*signals_flag()) nanosleep(&(struct timespec){1, 0}, NULL);
    } while (!status && terminal && !*signals_flag());
    return cli_end(status, &e);
}
