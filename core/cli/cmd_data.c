/* tare data check FILE: the rows that cannot be trained on, one line each, and a summary. */
#include "base/json.h"
#include "base/log.h"
#include "cli/cli.h"
#include "data/dataset.h"

#include <errno.h>
#include <string.h>

static tare_status report_row(void *ctx, const char *where, const char *id, const char *reason, struct err *e)
{
    (void)ctx;
    json_t *out = json_pack("{s:s, s:s, s:s}", "where", where, "id", id, "reason", reason);
    struct str line = {0};
    tare_status status = out ? json_print(out, &line, e)
                             : err_set(e, TARE_E_INVALID, __FILE__, __LINE__, "%s: cannot be reported: %s", where, reason);
    json_decref(out);
    if (!status && puts(line.data) < 0)
        status = err_set(e, TARE_E_IO, __FILE__, __LINE__, "standard output cannot be written: %s", strerror(errno));
    str_free(&line);
    return status;
}

int cmd_data(int argc, char **argv)
{
    static const char usage[] =
        "usage: tare data check FILE   writes {\"where\",\"id\",\"reason\"} for every row that cannot be trained on; exit "
        "status 1 if there is one\n";
    if (argc == 2 && !strcmp(argv[1], "--help")) return fputs(usage, stdout), 0;
    if (argc != 3 || strcmp(argv[1], "check") != 0) return fputs(usage, stderr), 2;
    if (!strcmp(argv[2], "--help")) return fputs(usage, stdout), 0;
    struct err e = {0};
    struct dataset_check check = {.report = report_row};
    tare_status status = dataset_check_file(argv[2], &check, &e);
    if (!status && fflush(stdout))
        status = err_set(&e, TARE_E_IO, __FILE__, __LINE__, "standard output cannot be written: %s", strerror(errno));
    if (status) return log_error(&e), err_exit_code(status);
    log_info("%s: %lld rows, %lld of them cannot be trained on", argv[2], (long long)check.rows, (long long)check.bad);
    return check.bad ? 1 : 0;
}
