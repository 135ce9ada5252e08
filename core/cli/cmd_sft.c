#include "base/log.h"
#include "cli/cli.h"
#include "loop/run.h"

#include <stdio.h>
#include <string.h>

static const char USAGE[] =
    "usage: tare sft CONFIG [section.key=value ...]\n"
    "Supervised training on rows with \"question\" and \"completion\": writes the model to sft.out.\n"
    "Without model.path, model.init says the shape of a new model (`tare config docs`, sections model and sft).\n";

int cmd_sft(int argc, char **argv)
{
    struct err e = {0};
    struct config c;
    if (argc > 1 && !strcmp(argv[1], "--help")) return fputs(USAGE, stdout) < 0;
    if (argc < 2 || argv[1][0] == '-') return fputs(USAGE, stderr), 2;
    tare_status status = config_load(&c, argv[1], (const char *const *)argv + 2, argc - 2, &e);
    if (!status) {
        status = sft_run(&c, &e);
        config_free(&c);
    }
    if (status) log_error(&e);
    return err_exit_code(status);
}
