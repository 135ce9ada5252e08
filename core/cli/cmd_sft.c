#include "base/log.h"
#include "cli/arguments.h"
#include "cli/cli.h"
#include "loop/run.h"
#include "sft/sft.h"

#include <stdio.h>

const char sft_usage[] = "usage: tare sft CONFIG [--resume] [section.key=value ...]\n"
                         "Supervised training on rows with \"question\" and \"completion\": writes the model to sft.out.\n"
                         "  --resume   continue from the last complete checkpoint, in SFT.OUT.training\n"
                         "Without model.path, a new model is made as model.init and the keys after it say (`tare config docs`, "
                         "sections model and sft).\n";

int cmd_sft(int argc, char **argv)
{
    struct err e = {0};
    struct config c;
    struct arguments a;
    if (!arguments_read(argc, argv, &a)) return cli_usage(sft_usage);
    tare_status status = config_load(&c, a.file, a.overrides, a.n, &e);
    if (!status) {
        config_use_log_level(&c);
        status = sft_run(&c, a.resume ? SFT_RESUME : SFT_NEW, &e);
        config_free(&c);
    }
    if (status) log_error(&e);
    return err_exit_code(status);
}
