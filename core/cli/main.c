/* tare: the verb decides which cmd_VERB runs. Options in front of the verb (-v, -q) hold for all of them. */
#include "base/log.h"
#include "base/str.h"
#include "cli/cli.h"
#include "dist/ranks.h"

#include <signal.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>

struct verb {
    const char *name, *arguments, *what;
    int (*run)(int argc, char **argv);
};

static const struct verb VERBS[] = {
    {"train", "CONFIG [section.key=value ...]", "train by reinforcement learning; --resume goes on from the last checkpoint",
     cmd_train},
    {"sft", "CONFIG [...]", "supervised training: the warm start, and the baseline; --resume", cmd_sft},
    {"eval", "CONFIG [...]", "pass@1, avg@k, pass@k on held-out questions", cmd_eval},
    {"sweep", "CONFIG [...] (--table)", "a run for each cell of the grid in [sweep]; what came out, with intervals", cmd_sweep},
    {"report", "RUN_OR_SWEEP ... [-o FILE]", "one self-contained HTML file with plots", cmd_report},
    {"watch", "RUN", "a run's signals, live in the terminal", cmd_watch},
    {"plan", "CONFIG [plan.key=value ...]", "memory, wire and time of a run, before anything is allocated", cmd_plan},
    {"generate", "MODEL [key=value ...]", "questions in, completions out (JSON lines)", cmd_generate},
    {"score", "MODEL", "token ids in, logprobs and entropies out", cmd_score},
    {"estimate", "PLUGIN [key=value ...]", "groups of rewards in, advantages out; --replay RUN --step N", cmd_estimate},
    {"verify", "PLUGIN [key=value ...]", "completions and answers in, rewards and verdicts out", cmd_verify},
    {"tokenize", "MODEL", "text in, token ids out", cmd_tokenize},
    {"detokenize", "MODEL", "token ids in, text out", cmd_detokenize},
    {"chat", "MODEL [template=FILE]", "messages in, the rendered prompt out", cmd_chat},
    {"codebook", "ENCODER --clusters K -o FILE", "train a codebook from a corpus; inspect FILE", cmd_codebook},
    {"cluster", "CODEBOOK [...]", "text in, cluster and distance out", cmd_cluster},
    {"embed", "ENCODER [key=value ...]", "text in, embedding out", cmd_embed},
    {"plugin", "list | info P | check P | new KIND NAME", "what plugins there are, and whether they keep the contract", cmd_plugin},
    {"config", "check CONFIG | dump CONFIG | docs", "the resolved configuration; every key explained", cmd_config},
    {"data", "check FILE", "rows that cannot be trained on, with a reason each", cmd_data},
    {"doctor", "[CONFIG]", "what this machine and this build have", cmd_doctor},
    {"bench", "[pattern]", "kernels and stages against the machine's peaks", cmd_bench},
    {0},
};

static int help(FILE *out)
{
    fputs("usage: tare [-v | -q] VERB ...\n\nCritic-free reinforcement learning of language models with verifiable rewards.\n\n",
          out);
    for (const struct verb *v = VERBS; v->name; v++) fprintf(out, "  %-11s%-43s%s\n", v->name, v->arguments, v->what);
    fputs("\n  -v, --verbose   debug messages, and where an error came from\n"
          "  -q, --quiet     warnings and errors only\n"
          "  --version       version and ABI\n\n"
          "`tare VERB --help` explains a verb, `tare config docs` every key of a configuration.\n"
          "Exit status: 0 done, 1 failed, 2 usage, 3 configuration, 130 interrupted.\n",
          out);
    return fflush(out) || ferror(out) ? 1 : 0;
}

static int unknown_verb(const char *name)
{
    const struct verb *best = VERBS;
    for (const struct verb *v = VERBS; v->name; v++)
        if (str_distance(name, v->name) < str_distance(name, best->name)) best = v;
    if (str_distance(name, best->name) <= 1 + (int64_t)strlen(name) / 3) {
        log_message(LOG_ERROR, "no verb '%s'; did you mean '%s'?", name, best->name);
    } else {
        log_message(LOG_ERROR, "no verb '%s'; `tare --help` lists them", name);
    }
    return 2;
}

/* Several processes that write the same files would destroy them. */
static bool is_alone(const char *verb)
{
    static const char *const one_process[] = {"sft", "eval", "sweep", "codebook"};
    int rank;
    if (ranks_launched(&rank) <= 1) return true;
    for (size_t i = 0; i < sizeof one_process / sizeof *one_process; i++) {
        if (strcmp(verb, one_process[i])) continue;
        if (!rank)
            log_message(LOG_ERROR,
                        "tare %s runs in one process; start it without mpirun and srun (tare train runs on several ranks)", verb);
        return false;
    }
    return true;
}

static int run_verb(int argc, char **argv)
{
    if (!is_alone(argv[0])) return 2;
    for (const struct verb *v = VERBS; v->name; v++)
        if (!strcmp(argv[0], v->name)) return v->run(argc, argv);
    return unknown_verb(argv[0]);
}

static bool is_option(const char *arg, const char *brief, const char *full)
{
    return !strcmp(arg, brief) || !strcmp(arg, full);
}

int main(int argc, char **argv)
{
    signal(SIGPIPE, SIG_IGN); /* a closed pipe is a write error with a message */
    for (int i = 1; i < argc; i++) {
        if (is_option(argv[i], "-v", "--verbose")) {
            log_set_level(LOG_DEBUG);
        } else if (is_option(argv[i], "-q", "--quiet")) {
            log_set_level(LOG_WARN);
        } else if (is_option(argv[i], "-h", "--help") || !strcmp(argv[i], "help")) {
            return help(stdout);
        } else if (!strcmp(argv[i], "--version")) {
            printf("tare %s (plugin ABI %d.%d)\n", TARE_VERSION, TARE_ABI_MAJOR, TARE_ABI_MINOR);
            return 0;
        } else if (argv[i][0] == '-') {
            log_message(LOG_ERROR, "no option '%s'; `tare --help` lists them", argv[i]);
            return 2;
        } else {
            return run_verb(argc - i, argv + i);
        }
    }
    help(stderr);
    return 2;
}
