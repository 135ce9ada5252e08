#include "base/fs.h"
#include "base/log.h"
#include "base/signals.h"
#include "base/str.h"
#include "cli/arguments.h"
#include "cli/cli.h"
#include "dist/ranks.h"
#include "sft/sft.h"

#include <stdio.h>

const char sft_usage[] =
    "usage: tare sft CONFIG [--resume [--allow-change]] [section.key=value ...]\n"
    "Trains on rows with \"question\" and \"completion\" (or \"parts\"), and writes the model to sft.out.\n"
    "  --resume         continue from the last complete checkpoint in SFT.OUT.training\n"
    "  --allow-change   with --resume: accept a configuration that changes the training from here on\n"
    "Without model.path, a new model is initialised as model.init and the keys after it specify (`tare config docs model`).\n";

static tare_status run_sft(struct config *c, const struct arguments *a, struct err *e)
{
    struct comm comm;
    char folder[FS_PATH];
    if (a->resume) {
        TRY(sft_folder(c, folder, e));
        TRY(config_resume_paths(c, folder, e));
    }
    TRY(comm_open(c->dist.ranks, &comm, e));
    return sft_run(c, !a->resume ? SFT_NEW : a->allow_change ? SFT_CHANGE : SFT_RESUME, &comm, e);
}

/* Quotes an argument for the shell; an option keeps its leading "-". */
static const char *argument_word(char *buffer, const char *argument)
{
    return *argument == '-' && argument[1] == '-' ? argument : str_shell(buffer, argument);
}

/* Logs the complete command that continues the training. */
static tare_status log_resume_command(int argc, char **argv, bool resume, struct err *e)
{
    OWNED(str_free) struct str command = {0};
    struct err unused;
    char word[STR_SHELL];
    tare_status status = TARE_OK;
    for (int i = 1; i < argc && !status; i++) status = str_addf(&command, &unused, " %s", argument_word(word, argv[i]));
    const struct err was = *e;
    if (!status)
        err_set(e, was.code, __FILE__, __LINE__, "%.1000s; continue with: tare sft%.900s%s", was.message, command.data,
                resume ? "" : " --resume");
    return was.code;
}

int cmd_sft(int argc, char **argv)
{
    struct err e = {0};
    OWNED(config_free) struct config c = {0};
    struct arguments a;
    bool done;
    if (!arguments_read(argc, argv, &a)) return cli_usage(sft_usage);
    signals_catch();
    const bool loaded = !config_load(&c, a.file, a.overrides, a.n, &e);
    if (loaded) config_use_log_level(&c);
    tare_status status = ranks_start_of(loaded ? &c : NULL, loaded ? TARE_OK : e.code, &done, &e);
    if (!status && !done) status = run_sft(&c, &a, &e);
    if (status == TARE_E_CANCELLED && !done) log_resume_command(argc, argv, a.resume, &e);
    return ranks_end(status, &e);
}
