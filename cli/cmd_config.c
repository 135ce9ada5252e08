#include "base/fs.h"
#include "base/log.h"
#include "cli/cli.h"
#include "config/config.h"
#include "kernels.h"
#include "observe/export.h"
#include "preflight/preflight.h"
#include "settle/settle.h"
#include "sweep/sweep.h"

#include <stdio.h>
#include <string.h>

const char config_usage[] =
    "usage: tare config init [FILE]                            write a commented configuration to start from (tare.ini)\n"
    "       tare config check CONFIG [section.key=value ...]   report every error that training would meet: keys, plugins and\n"
    "                                                          their parameters, paths, data, model configuration, prompts\n"
    "       tare config dump CONFIG [section.key=value ...]    print every key with its value\n"
    "       tare config diff RUN [CONFIG] [section.key=value ...]\n"
    "                                                          compare a run's configuration with CONFIG (a file or\n"
    "                                                          another run; default: the defaults)\n"
    "       tare config docs [--md]                            describe every key, as plain text or Markdown\n"
    "       tare config docs SECTION|KEY                       describe one section or one key: lora, train.lr, lr\n"
    "CONFIG may be the folder of a run.\n";

/* Checks a sweep cell by cell, and the configuration that its cells share as a run. */
static tare_status check_sweep(const char *file, const char *const *overrides, int n, struct err *e)
{
    OWNED(sweep_close) struct sweep s = {0};
    TRY(sweep_open(&s, file, overrides, n, e));
    return sweep_check_cells(&s, 0, s.plan.n_cells, preflight_cell, e);
}

/* Warns if this machine cannot train on a GPU: the machine that does may be another one. */
static void warn_device(const struct config *c)
{
    const struct kernels *k;
    struct err e = {0};
    if (c->run.device == RUN_CUDA && kernels_cuda(0, &k, &e))
        log_warn("%s: %s; on this machine the run would be refused", config_where(c, "run", "device"), e.message);
}

static tare_status check_config(const char *file, const char *const *overrides, int n, struct err *e)
{
    OWNED(config_free) struct config c = {0};
    struct faults f = {.report = log_error};
    char why[700];
    TRY(config_load_collecting(&c, file, overrides, n, &f, e));
    TRY(settle(&c, true, &f, e));
    preflight_warn(&c);
    warn_device(&c);
    if (exporter_lacks(c.log.export, why, sizeof why))
        log_warn("%s: log.export = %s: %s; a run would continue without sending anything", config_where(&c, "log", "export"),
                 c.log.export, why);
    TRY(preflight(&c, &f, e));
    for (const struct config_param *p = c.params; p && !f.n; p = p->next) {
        if (strcmp(p->section, "sweep")) continue;
        TRY(err_note_fault(&f, check_sweep(file, overrides, n, e), e));
        break;
    }
    if (f.n) FAIL(e, TARE_E_CONFIG, "%s: %lld error%s", file, (long long)f.n, f.n == 1 ? "" : "s");
    log_info("%s: no errors", file);
    return TARE_OK;
}

static tare_status dump_config(const char *file, const char *const *overrides, int n, struct err *e)
{
    OWNED(config_free) struct config c = {0};
    OWNED(str_free) struct str out = {0};
    TRY(config_load(&c, file, overrides, n, e));
    TRY(config_dump(&c, &out, e));
    /* values are quoted; a name of a plugin's section or key may be untrusted, too */
    return cli_show(&out, e);
}

static tare_status print_difference(void *ctx, const struct config_difference *d, struct err *e)
{
    struct str *out = ctx;
    return str_addf(out, e, "%s.%s: %s -> %s%s\n", d->section, d->key, d->before, d->after,
                    d->changes_training ? "" : "   (--resume allows it)");
}

static tare_status diff_configs(const char *run, const char *with, const char *const *overrides, int n, struct err *e)
{
    OWNED(config_free) struct config a = {0}, b = {0};
    OWNED(str_free) struct str out = {0};
    TRY(config_load(&a, run, NULL, 0, e));
    TRY(config_load(&b, with, overrides, n, e));
    TRY(with ? config_compare(&a, &b, print_difference, &out, e) : config_compare(&b, &a, print_difference, &out, e));
    if (out.size) TRY(cli_show(&out, e));
    if (!out.size) log_info("no differences");
    return TARE_OK;
}

/* what: "--md", a section, a key, or NULL for all keys as plain text. */
static tare_status print_docs(const char *what, struct err *e)
{
    OWNED(str_free) struct str out = {0};
    if (what && what[0] != '-')
        TRY(config_docs_of(what, &out, e));
    else
        TRY(config_docs(&out, what != NULL, e));
    return cli_print(&out, e);
}

static tare_status write_template(const char *file, struct err *e)
{
    OWNED(str_free) struct str out = {0};
    char word[STR_SHELL];
    if (fs_exists(file)) FAIL(e, TARE_E_STATE, "%s exists already; name another file: tare config init FILE", file);
    TRY(config_starter(&out, e));
    if (fs_write_atomic(file, out.data, out.size, e)) {
        remove(file); /* its name may not be synced; the next attempt must find no file */
        return e->code;
    }
    log_info("%s is written; set model.path and data.train, then run `tare config check %s`", file, str_shell(word, file));
    return TARE_OK;
}

/* Returns the exit status, or -1 for invalid arguments. */
static int run_config(int argc, char **argv, struct err *e)
{
    const char *const verb = argv[1], *const *rest = (const char *const *)argv + 3;
    if (!strcmp(verb, "docs") && argc <= 3 && (argc == 2 || argv[2][0] != '-' || !strcmp(argv[2], "--md")))
        return print_docs(argc == 3 ? argv[2] : NULL, e);
    if (!strcmp(verb, "init") && argc <= 3 && (argc == 2 || argv[2][0] != '-'))
        return write_template(argc == 3 ? argv[2] : "tare.ini", e);
    if (argc < 3 || argv[2][0] == '-') return -1;
    if (!strcmp(verb, "check")) return check_config(argv[2], rest, argc - 3, e);
    if (!strcmp(verb, "dump")) return dump_config(argv[2], rest, argc - 3, e);
    if (strcmp(verb, "diff")) return -1;
    const int with = argc > 3 && !strchr(argv[3], '=');
    return diff_configs(argv[2], with ? argv[3] : NULL, rest + with, argc - 3 - with, e);
}

int cmd_config(int argc, char **argv)
{
    struct err e = {0};
    const int status = argc > 1 ? run_config(argc, argv, &e) : -1;
    return status < 0 ? cli_usage(config_usage) : cli_end((tare_status)status, &e);
}
