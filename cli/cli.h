/* The table of verbs: name (an underscore stands for a dash), arguments and purpose, as `tare
 * --help` prints them.
 *
 * A verb is a line here and a file cmd_VERB.c that defines VERB_usage, the text of `tare VERB
 * --help`, and cmd_VERB. argv[0] is the verb's name. cmd_VERB returns the exit status: 0 done, 1
 * failed, 2 usage, 3 configuration, 130 interrupted. */
#ifndef TARE_CLI_CLI_H
#define TARE_CLI_CLI_H

#include "base/err.h"
#include "base/str.h"

/* clang-format off */
#define VERBS_TRAIN(X) \
    X(train, "CONFIG [section.key=value ...]", "train by reinforcement learning; --resume continues a run") \
    X(sft, "CONFIG [...]", "train on given completions: warm start or baseline; --resume") \
    X(eval, "CONFIG [...]", "measure pass@1, avg@k and pass@k on held-out questions") \
    X(plan, "CONFIG [plan.key=value ...]", "compute the memory of a run without allocating it")
#ifdef TARE_LAB
#define VERBS_SWEEP(X) \
    X(sweep, "CONFIG [...] (--table)", "train every cell of the grid in [sweep]; tabulate the results")
#else
#define VERBS_SWEEP(X)
#endif
#ifdef TARE_LAB
#define VERBS_RUNS(X) \
    X(report, "RUN_OR_SWEEP ... [-o FILE]", "write one self-contained HTML file with plots") \
    X(watch, "RUN", "show a run's metrics live in the terminal") \
    X(diff, "RUN RUN", "find the first step, token, advantage or weight that differs") \
    X(fork, "RUN@STEP [section.key=value ...]", "branch a new run off another one at a step, with other keys") \
    X(reproduce, "RUN [--steps A-B] [--sample N]", "check a run's files against their checksums, recompute its steps") \
    X(variance, "CONFIG [--from CHECKPOINT ...]", "compare the bias and variance of estimators at a checkpoint") \
    X(audit, "DUMP ... [section.key=value ...]", "recompute rewards and advantages of any trainer's rollout dump") \
    X(ladder, "[RUNG ...] [section.key=value ...]", "train small reference tasks and compare with their known range")
#else
#define VERBS_RUNS(X)
#endif
#define VERBS_MODEL(X) \
    X(generate, "MODEL [key=value ...]", "read questions, write completions (JSON lines)") \
    X(score, "MODEL", "read token ids, write logprobs and entropies") \
    X(merge, "ADAPTER OUT", "merge an adapter into its base model") \
    X(tokenize, "MODEL", "read text, write token ids") \
    X(detokenize, "MODEL", "read token ids, write text") \
    X(chat, "MODEL [template=FILE]", "read messages, write the rendered prompt")
#ifdef TARE_SERVE
#define VERBS_SERVE(X) \
    X(serve, "[NAME=]MODEL ... [--port N ...]", "serve models over an OpenAI-compatible HTTP API")
#else
#define VERBS_SERVE(X)
#endif
#define VERBS_PLUGINS(X) \
    X(plugin, "list | info P | check P | new KIND NAME", "list, describe, test or create plugins") \
    X(env, "list | describe | play | demo | check ...", "play environments, write rows of legal play") \
    X(estimate, "PLUGIN [key=value ...]", "read groups of rewards, write advantages") \
    X(verify, "PLUGIN [key=value ...]", "read completions and answers, write rewards and verdicts") \
    X(cluster, "train | inspect | assign | embed ...", "train codebooks; read text, write clusters or embeddings")
#define VERBS_CONFIGURATION(X) \
    X(config, "init | check | dump | diff | docs ...", "create, check, print, compare or explain configurations") \
    X(data, "check FILE ... | show CONFIG", "find invalid rows; show prompts as the model reads them") \
    X(doctor, "[CONFIG]", "report the capabilities of this machine and build") \
    X(bench, "[pattern]", "time kernels and stages against the machine's peaks")
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

/* Writes text to standard output and flushes it. If the reader has closed the pipe (| head), the
 * program ends quietly by SIGPIPE, as other filters do. */
tare_status cli_print(const struct str *text, struct err *e);
/* cli_print for text that contains untrusted names or rows: replaces control characters by '?'. */
tare_status cli_show(struct str *text, struct err *e);
/* cli_print in two steps, for many lines: cli_flush reports write errors. */
void cli_add(const struct str *text);
tare_status cli_flush(struct err *e);
/* Ends a verb: logs e if status is an error, and returns the exit status. */
int cli_end(tare_status status, const struct err *e);

struct tokenizer;
/* Loads the tokenizer of a model, of a run's newest model, or of an adapter's base. */
tare_status cli_tokenizer(const char *model, struct tokenizer **out, struct err *e);
/* Prints usage on standard error and returns the exit status 2. */
int cli_usage(const char *usage);
/* cli_usage after a message that names the unexpected argument. */
int cli_unexpected(const char *argument, const char *usage);

/* plugin_check.c: the verb `tare plugin check`. Returns the exit status. */
int plugin_check_verb(int argc, char **argv);

#endif
