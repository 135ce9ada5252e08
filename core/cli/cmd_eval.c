/* tare eval CONFIG: accuracy on a task. */
#include "base/log.h"
#include "cli/cli.h"
#include "loop/eval.h"

#include <stdio.h>
#include <string.h>

static const char USAGE[] =
    "usage: tare eval CONFIG [section.key=value ...]\n"
    "Samples eval.samples completions of every row of data.eval, judges them, and prints a Markdown table: pass@1 (avg@k), "
    "unbiased\n"
    "pass@k, 95 % intervals, lengths, and the same by level, subject and difficulty. The folder eval.out gets samples.jsonl,\n"
    "questions.jsonl and results.json; the same command goes on where it was interrupted. docs/evaluation.md explains all of it.\n"
    "  tare eval configs/eval/gsm8k.ini model.path=FOLDER eval.samples=4\n";

int cmd_eval(int argc, char **argv)
{
    struct err e = {0};
    struct config c;
    const char *overrides[256], *file = NULL;
    int n = 0;
    for (int i = 1; i < argc; i++) {
        if (!strcmp(argv[i], "--help")) return fputs(USAGE, stdout) < 0;
        if (!file && argv[i][0] != '-' && !strchr(argv[i], '='))
            file = argv[i];
        else if (argv[i][0] != '-' && strchr(argv[i], '=') && n < 256)
            overrides[n++] = argv[i];
        else
            return fputs(USAGE, stderr), 2;
    }
    if (!file) return fputs(USAGE, stderr), 2;
    struct str table = {0};
    tare_status s = config_load(&c, file, overrides, n, &e);
    if (!s) {
        s = eval_run(&c, &table, &e);
        config_free(&c);
    }
    if (!s && (fwrite(table.data, 1, (size_t)table.size, stdout) != (size_t)table.size || fflush(stdout)))
        s = err_set(&e, TARE_E_IO, __FILE__, __LINE__, "standard output cannot be written");
    str_free(&table);
    if (s) log_error(&e);
    return err_exit_code(s);
}
