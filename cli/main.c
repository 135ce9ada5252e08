/* The program tare: runs cmd_VERB. Options before the verb (-v, -q) apply to every verb. */
#include "base/json.h"
#include "base/log.h"
#include "base/lost_page.h"
#include "base/str.h"
#include "cli/cli.h"
#include "config/config.h"
#include "dist/ranks.h"
#include "plugin/plugin.h"

#include <ctype.h>
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>
#include <sys/resource.h>
#include <unistd.h>

struct verb {
    char name[16]; /* an underscore of NAME is a dash */
    const char *arguments, *what, *usage;
    int (*run)(int argc, char **argv);
};

#define VERB_ROW(NAME, ARGUMENTS, WHAT) {#NAME, ARGUMENTS, WHAT, NAME##_usage, cmd_##NAME},
static struct verb VERB_TABLE[] = {VERBS(VERB_ROW){{0}, NULL, NULL, NULL, NULL}};

static void dash_name(struct verb *v)
{
    for (char *p = v->name; *p; p++)
        if (*p == '_') *p = '-';
}

static int print_end(void)
{
    struct err e = {0};
    return cli_end(cli_flush(&e), &e);
}

/* Prints a heading of `tare --help` and its verbs; an entry without a name ends them. */
static void help_group(FILE *out, const char *title, const struct verb *verbs)
{
    if (*verbs->name) fprintf(out, "\n%s\n", title);
    for (const struct verb *v = verbs; *v->name; v++) {
        struct verb row = *v;
        dash_name(&row);
        fprintf(out, "  %-11s%-43s%s\n", row.name, row.arguments, row.what);
    }
}

#define HELP_GROUP(TITLE, ROWS) help_group(out, TITLE, (const struct verb[]){ROWS{{0}, NULL, NULL, NULL, NULL}});

static int print_help(FILE *out)
{
    fputs("usage: tare [-v | -q] VERB ...\n\nCritic-free reinforcement learning of language models with verifiable rewards.\n",
          out);
    VERB_GROUPS(HELP_GROUP, VERB_ROW)
    fputs("\nOptions\n"
          "  -v, --verbose   debug messages, and the source location of errors\n"
          "  -q, --quiet     warnings and errors only\n"
          "  -V, --version   version and ABI\n\n"
          "`tare VERB --help` describes a verb, `tare config docs` every configuration key.\n"
          "Exit status: 0 done, 1 failed, 2 usage, 3 configuration, 130 interrupted.\n",
          out);
    return out == stdout ? print_end() : 0;
}

static int unknown_verb(const char *name)
{
    static const struct {
        const char *before, *now;
    } RENAMED[] = {{"codebook", "cluster train"}, {"embed", "cluster embed"}, {"verify-run", "reproduce"}};
    for (size_t i = 0; i < sizeof RENAMED / sizeof *RENAMED; i++) {
        if (strcmp(name, RENAMED[i].before)) continue;
        log_message(LOG_ERROR, "`tare %s` is now `tare %s`", name, RENAMED[i].now);
        return 2;
    }
    const struct verb *best = VERB_TABLE;
    for (const struct verb *v = VERB_TABLE; *v->name; v++)
        if (str_distance(name, v->name) < str_distance(name, best->name)) best = v;
    if (str_distance(name, best->name) <= 1 + (int64_t)strlen(name) / 3) {
        log_message(LOG_ERROR, "unknown verb '%s'; did you mean '%s'?", name, best->name);
    } else {
        log_message(LOG_ERROR, "unknown verb '%s'; `tare --help` lists the verbs", name);
    }
    return 2;
}

/* Refuses several processes for verbs that write files: they would overwrite each other's. */
static bool may_run(const char *verb)
{
    static const char *const one_process[] = {"sweep", "cluster", "fork", "reproduce", "variance", "serve"};
    int rank;
    if (ranks_launched(&rank) <= 1) return true;
    for (size_t i = 0; i < sizeof one_process / sizeof *one_process; i++) {
        if (strcmp(verb, one_process[i])) continue;
        if (!rank)
            log_message(
                LOG_ERROR,
                "tare %s runs in one process: start it without mpirun and srun (tare train, sft and eval run on several ranks)",
                verb);
        return false;
    }
    return true;
}

int cli_usage(const char *usage)
{
    fputs(usage, stderr);
    return 2;
}

/* True if the usage has the option: then its value is missing or invalid. */
static bool has_option(const char *usage, const char *argument)
{
    const char *word = argument + strspn(argument, "-");
    const size_t n = strcspn(word, "=");
    for (const char *at = usage; n && (at = strstr(at, "--")); at += 2)
        if (!strncmp(at + 2, word, n) && at[2 + n] != '-' && !isalpha((unsigned char)at[2 + n])) return true;
    return false;
}

int cli_unexpected(const char *argument, const char *usage)
{
    char where[300];
    struct err e = {0};
    const bool settings = strstr(usage, "key=value") != NULL, word_alone = *argument != '-' && !strchr(argument, '=');
    snprintf(where, sizeof where, "'%.200s'", argument);
    if (settings && !word_alone && !has_option(usage, argument) &&
        config_hint(argument, where, "unknown option; keys are set as section.key=value", &e)) {
        log_error(&e);
        return 2;
    }
    log_message(LOG_ERROR, "'%s': unexpected argument; the options are listed below%s", argument,
                settings ? ", keys are set as section.key=value" : "");
    return cli_usage(usage);
}

void cli_add(const struct str *text)
{
    if (text->size) fwrite(text->data, 1, (size_t)text->size, stdout);
}

tare_status cli_print(const struct str *text, struct err *e)
{
    cli_add(text);
    return cli_flush(e);
}

tare_status cli_show(struct str *text, struct err *e)
{
    str_disarm(text->data, text->size);
    return cli_print(text, e);
}

tare_status cli_flush(struct err *e)
{
    int why = fflush(stdout) ? errno : 0;
    if (!why && ferror(stdout)) /* errno of the failed write is lost; a second write yields it */
        why = write(STDOUT_FILENO, "\n", 1) < 0 ? errno : EIO;
    if (!why) return TARE_OK;
    if (why == EPIPE) {
        signal(SIGPIPE, SIG_DFL);
        raise(SIGPIPE);
    }
    FAIL(e, TARE_E_IO, "standard output cannot be written: %s",
         why == EBADF ? "it is closed or open for reading only" : strerror(why));
}

int cli_end(tare_status status, const struct err *e)
{
    if (status) log_error(e);
    return err_exit_code(status);
}

/* Lets verbs that write to no pipe but standard output end quietly when the reader closes it. */
static void end_with_reader(const char *verb)
{
    static const char *const prints[] = {"config", "data",  "doctor",   "tokenize", "detokenize",
                                         "chat",   "score", "generate", "cluster",  "env"};
    for (size_t i = 0; i < sizeof prints / sizeof *prints; i++)
        if (!strcmp(verb, prints[i])) signal(SIGPIPE, SIG_DFL);
}

static bool is_option(const char *arg, const char *brief, const char *full)
{
    return !strcmp(arg, brief) || !strcmp(arg, full);
}

/* --help is accepted anywhere after a verb. */
static int run_verb(int argc, char **argv)
{
    const struct verb *v = VERB_TABLE;
    while (*v->name && strcmp(argv[0], v->name)) v++;
    if (!*v->name) return unknown_verb(argv[0]);
    for (int i = 1; i < argc; i++)
        if (is_option(argv[i], "-h", "--help")) return fputs(v->usage, stdout), print_end();
    if (!may_run(v->name)) return ranks_refused(2);
    end_with_reader(v->name);
    plugin_guard_exit(true);
    const int exit_status = v->run(argc, argv);
    plugin_guard_exit(false);
    return exit_status;
}

/* Opens /dev/null for each standard descriptor that is closed. Otherwise the next file to be opened
 * would get its number: progress lines would be written into a run's lock. Standard input and
 * output are opened in the wrong direction, so that reading rows or printing a result fails with an
 * error; a run continues without its messages. */
static bool standard_descriptors(void)
{
    static const int HOW[] = {O_WRONLY, O_RDONLY, O_WRONLY};
    for (int fd = 0; fd < 3; fd++)
        if (fcntl(fd, F_GETFD) < 0 && errno == EBADF && open("/dev/null", HOW[fd]) != fd) return false;
    return true;
}

/* Threads have stacks of the same size. Templates, schemas and formulas recurse up to their limits of depth. */
static bool stack_suffices(void)
{
    enum { LEAST = 1 << 20 };
    struct rlimit stack;
    if (getrlimit(RLIMIT_STACK, &stack) || stack.rlim_cur == RLIM_INFINITY || stack.rlim_cur >= LEAST) return true;
    log_message(LOG_ERROR, "the stack is limited to %lld KB, and at least %d KB are needed; run `ulimit -s 8192` first",
                (long long)(stack.rlim_cur >> 10), LEAST >> 10);
    return false;
}

int main(int argc, char **argv)
{
    if (!standard_descriptors()) {
        log_message(LOG_ERROR, "a standard descriptor is closed and /dev/null cannot be opened for it: %s", strerror(errno));
        return 1;
    }
    if (!stack_suffices()) return 1;
    signal(SIGPIPE, SIG_IGN); /* a closed pipe is a write error with a message */
    signal(SIGXFSZ, SIG_IGN); /* and so is a file at its size limit */
    lost_page_report();
    json_begin();
    for (struct verb *v = VERB_TABLE; *v->name; v++) dash_name(v);
    for (int i = 1; i < argc; i++) {
        if (is_option(argv[i], "-v", "--verbose")) {
            log_set_level(LOG_DEBUG);
        } else if (is_option(argv[i], "-q", "--quiet")) {
            log_set_level(LOG_WARN);
        } else if (is_option(argv[i], "-h", "--help") || !strcmp(argv[i], "help")) {
            return print_help(stdout);
        } else if (is_option(argv[i], "-V", "--version")) {
            printf("tare %s (plugin ABI %d.%d)\n", TARE_VERSION, TARE_ABI_MAJOR, TARE_ABI_MINOR);
            return print_end();
        } else if (argv[i][0] == '-') {
            log_message(LOG_ERROR, "unknown option '%s'; `tare --help` lists the options", argv[i]);
            return 2;
        } else {
            return run_verb(argc - i, argv + i);
        }
    }
    print_help(stderr);
    return 2;
}
