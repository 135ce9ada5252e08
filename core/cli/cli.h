/* One function a verb of the command line, one file each: cmd_VERB.c. argv[0] is the verb. Returns the exit status:
 * 0 ok, 1 failed, 2 usage, 3 configuration, 130 interrupted. */
#ifndef TARE_CORE_CLI_H
#define TARE_CORE_CLI_H

#include "base/err.h"

int cmd_train(int argc, char **argv);
int cmd_sft(int argc, char **argv);
int cmd_eval(int argc, char **argv);
int cmd_sweep(int argc, char **argv);
int cmd_report(int argc, char **argv);
int cmd_watch(int argc, char **argv);
int cmd_plan(int argc, char **argv);
int cmd_generate(int argc, char **argv);
int cmd_score(int argc, char **argv);
int cmd_estimate(int argc, char **argv);
int cmd_verify(int argc, char **argv);
int cmd_tokenize(int argc, char **argv);
int cmd_detokenize(int argc, char **argv);
int cmd_chat(int argc, char **argv);
int cmd_codebook(int argc, char **argv);
int cmd_cluster(int argc, char **argv);
int cmd_embed(int argc, char **argv);
int cmd_plugin(int argc, char **argv);
int cmd_config(int argc, char **argv);
int cmd_doctor(int argc, char **argv);
int cmd_bench(int argc, char **argv);
int cmd_data(int argc, char **argv);

#endif
