#include "base/log.h"
#include "cli/cli.h"
#include "config/config.h"

#include <stdio.h>
#include <string.h>

const char config_usage[] =
    "usage: tare config check CONFIG [section.key=value ...]   read and check; nothing is printed but errors\n"
    "       tare config dump CONFIG [section.key=value ...]    print every key with the value it would have\n"
    "       tare config docs [--md]                            explain every key, as plain text or Markdown\n";

static tare_status print(const struct str *text, struct err *e)
{
    fwrite(text->data, 1, (size_t)text->size, stdout);
    if (fflush(stdout) || ferror(stdout)) FAIL(e, TARE_E_IO, "standard output cannot be written");
    return TARE_OK;
}

static tare_status check_or_dump(bool dump, const char *file, const char *const *overrides, int n, struct err *e)
{
    struct config c;
    struct str out = {0};
    TRY(config_load(&c, file, overrides, n, e));
    tare_status status = TARE_OK;
    if (dump) {
        status = config_dump(&c, &out, e);
        if (!status) status = print(&out, e);
    } else {
        log_info("%s: no errors", file);
    }
    str_free(&out);
    config_free(&c);
    return status;
}

static tare_status docs(bool markdown, struct err *e)
{
    struct str out = {0};
    tare_status status = config_docs(&out, markdown, e);
    if (!status) status = print(&out, e);
    str_free(&out);
    return status;
}

int cmd_config(int argc, char **argv)
{
    struct err e = {0};
    tare_status status;
    if (argc > 2 && (!strcmp(argv[1], "check") || !strcmp(argv[1], "dump"))) {
        status = check_or_dump(argv[1][0] == 'd', argv[2], (const char *const *)argv + 3, argc - 3, &e);
    } else if (argc > 1 && !strcmp(argv[1], "docs") && (argc == 2 || (argc == 3 && !strcmp(argv[2], "--md")))) {
        status = docs(argc == 3, &e);
    } else {
        return cli_usage(config_usage);
    }
    if (status) log_error(&e);
    return err_exit_code(status);
}
