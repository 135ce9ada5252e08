/* The verbs of the command line: name (an underscore stands for a dash), arguments and purpose as `tare --help` prints them. A verb is a line here and a file cmd_VERB.c, with the
 * text of `tare VERB --help` in VERB_usage and the verb itself in cmd_VERB: argv[0] is its name; it returns the exit status: 0 ok, 1 failed, 2 usage,
 * 3 configuration, 130 interrupted. */
#ifndef TARE_CLI_CLI_H
#define TARE_CLI_CLI_H

#include "base/err.h"
#include "base/str.h"

/* clang-format off */
#define VERBS_TRAIN(X) \
    X(train, "CONFIG [section.key=value ...]", "train by reinforcement learning; --resume continues from the last checkpoint") \
    X(sft, "CONFIG [...]", "supervised training: the warm start, and the baseline; --resume") \
    X(eval, "CONFIG [...]", "pass@1, avg@k, pass@k on held-out questions") \
    X(plan, "CONFIG [plan.key=value ...]", "memory, wire and time of a run, before anything is allocated")
#ifdef TARE_LAB
#define VERBS_SWEEP(X) \
    X(sweep, "CONFIG [...] (--table)", "a run for each cell of the grid in [sweep]; the results, with intervals")
#else
#define VERBS_SWEEP(X)
#endif
#ifdef TARE_LAB
#define VERBS_RUNS(X) \
    X(report, "RUN_OR_SWEEP ... [-o FILE]", "one self-contained HTML file with plots") \
    X(watch, "RUN", "a run's signals, live in the terminal") \
    X(diff, "RUN RUN", "the first step, token, advantage or weight in which two runs differ, and by how much") \
    X(fork, "RUN@STEP [section.key=value ...]", "a new run that branches off another at a step, with other keys") \
    X(verify_run, "RUN [--steps A-B] [--sample N]", "whether a run's files are those it wrote, and its steps come out again") \
    X(variance, "CONFIG [--from CHECKPOINT ...]", "each estimator's bias, variance and direction at a checkpoint") \
    X(audit, "DUMP ... [section.key=value ...]", "a rollout dump's rewards, groups, advantages computed again, of any trainer") \
    X(ladder, "[RUNG ...] [section.key=value ...]", "small tasks that provably learn: is this program in their band?")
#else
#define VERBS_RUNS(X)
#endif
#define VERBS_MODEL(X) \
    X(generate, "MODEL [key=value ...]", "questions in, completions out (JSON lines)") \
    X(score, "MODEL", "token ids in, logprobs and entropies out") \
    X(merge, "ADAPTER OUT", "an adapter and its base as one model") \
    X(tokenize, "MODEL", "text in, token ids out") \
    X(detokenize, "MODEL", "token ids in, text out") \
    X(chat, "MODEL [template=FILE]", "messages in, the rendered prompt out")
#ifdef TARE_SERVE
#define VERBS_SERVE(X) \
    X(serve, "[NAME=]MODEL ... [--port N ...]", "models behind an OpenAI-compatible HTTP server")
#else
#define VERBS_SERVE(X)
#endif
#define VERBS_PLUGINS(X) \
    X(plugin, "list | info P | check P | new KIND NAME", "what plugins there are, and whether they keep the contract") \
    X(estimate, "PLUGIN [key=value ...]", "groups of rewards in, advantages out; --replay RUN --step N") \
    X(verify, "PLUGIN [key=value ...]", "completions and answers in, rewards and verdicts out") \
    X(cluster, "train | inspect | assign | embed ...", "codebooks of a corpus; text in, clusters or embeddings out")
#define VERBS_CONFIGURATION(X) \
    X(config, "init | check | dump | diff | docs ...", "begin, check, print or compare a configuration; every key explained") \
    X(data, "check FILE ... | show CONFIG", "rows to mend or leave out, with a reason each; prompts as the model reads them") \
    X(doctor, "[CONFIG]", "what this machine and this build have") \
    X(bench, "[pattern]", "kernels and stages against the machine's peaks")
/* The groups of `tare --help`: GROUP(title, verbs). */
#define VERB_GROUPS(GROUP, X) \
    GROUP("Train", VERBS_TRAIN(X) VERBS_SWEEP(X)) \
    GROUP("Look at runs", VERBS_RUNS(X)) \
    GROUP("Ask a model", VERBS_MODEL(X) VERBS_SERVE(X)) \
    GROUP("Plugins", VERBS_PLUGINS(X)) \
    GROUP("Data and configuration", VERBS_CONFIGURATION(X))
#define VERBS(X) VERBS_TRAIN(X) VERBS_SWEEP(X) VERBS_RUNS(X) VERBS_MODEL(X) VERBS_SERVE(X) VERBS_PLUGINS(X) VERBS_CONFIGURATION(X)
/* clang-format on */

#define DECLARE_VERB(NAME, ARGUMENTS, WHAT)                                                                                        \
    extern const char NAME##_usage[];                                                                                              \
    int cmd_##NAME(int argc, char **argv);
VERBS(DECLARE_VERB)

/* Text to standard output, at once. When its reader has gone (| head) the program ends as other filters do: quietly, by SIGPIPE. */
tare_status cli_print(const struct str *text, struct err *e);
/* The same for a table or a sentence, in which names and rows of strangers stand: their control characters become '?'. */
tare_status cli_show(struct str *text, struct err *e);
/* The same in two steps, for many lines: what cannot be written is an error of cli_flush. */
void cli_add(const struct str *text);
tare_status cli_flush(struct err *e);
/* The end of a verb: tells the error, if there is one, and gives the exit status. */
int cli_end(tare_status status, const struct err *e);

struct tokenizer;
/* The tokenizer of a model, of a run's newest model, or of an adapter's base. */
tare_status cli_tokenizer(const char *model, struct tokenizer **out, struct err *e);
/* Prints usage on standard error; the exit status 2. */
int cli_usage(const char *usage);
/* The same, after a line that names the argument which is not understood. */
int cli_unexpected(const char *argument, const char *usage);

#endif
