/* tare generate: prompts in, sampled completions out, one JSON object a line. */
#include "base/log.h"
#include "base/signals.h"
#include "cli/cli.h"
#include "config/config.h"
#include "infer/generate.h"

#include <stdio.h>
#include <string.h>

const char generate_usage[] =
    "usage: tare generate MODEL [key=value ...]\n\n"
    "Reads one prompt a line: {\"id\",\"question\"} or {\"id\",\"messages\"} (rendered as data.prompt says), {\"id\",\"text\"} (encoded as\n"
    "it is), or {\"id\",\"ids\"} (no tokenizer needed; completion is then null). With several of them, ids, text, messages, question is\n"
    "the order. Writes rollout.group_size lines for each: {\"id\",\"sample\",\"completion\",\"ids\",\"logprobs\",\"finish\"}, in input\n"
    "order; finish is stop or length. A completion depends on the model, the prompt, its id and the seed, not on the lines around it;\n"
    "a repeated id draws new ones. MODEL is a Hugging Face folder, or the folder of a run: its newest checkpoint, with the\n"
    "data.{prompt,chat_template,date,system,suffix} of the run's config.ini. As in a training file, \"prompt\" (a text or messages)\n"
    "may stand for question and messages.\n\n"
    "Keys, the section may be left out: rollout.{group_size,max_new_tokens,temperature,top_p,top_k,min_p,stop_ids,ignore_eos,batch,kv_tokens,\n"
    "max_prompt_tokens}, run.{seed,threads,kernels}, model.{dtype,weights,rope_theta,max_position_embeddings},\n"
    "data.{prompt,chat_template,system,suffix}; `tare config docs` explains them.\n"
    "--stats: one line at the end, on standard error, with the seconds of sampling and the tokens read and written.\n";

static tare_status write_line(void *ctx, const struct str *line, struct err *e)
{
    (void)ctx, (void)e;
    cli_add(line);
    return TARE_OK;
}

static tare_status end_batch(void *ctx, struct err *e)
{
    (void)ctx;
    return cli_flush(e);
}

/* One line on standard error, so that standard output stays one line a rollout. */
static void print_stats(const struct generator *g)
{
    const struct generator_stats s = generator_stats(g);
    fprintf(stderr, "{\"seconds\":%.6f,\"prompt_tokens\":%lld,\"new_tokens\":%lld,\"decode_steps\":%lld}\n", s.seconds,
            (long long)s.sampler.prompt_tokens, (long long)s.sampler.new_tokens, (long long)s.sampler.decode_steps);
}

static tare_status run(struct infer *m, int argc, char **argv, bool stats, struct err *e)
{
    const struct generator_output out = {NULL, write_line, end_batch};
    const char **settings;
    struct generator *g = NULL;
    int64_t n = 0;
    TRY(mem_new((int64_t)sizeof *settings * argc, (void **)&settings, e));
    for (int i = 2; i < argc; i++)
        if (strchr(argv[i], '=')) settings[n++] = argv[i];
    tare_status status = infer_open(m, argv[1], settings, n, e);
    mem_free(settings);
    if (!status) status = generator_new(m, &out, &g, e);
    TRY(status);
    signals_catch();
    status = generator_read(g, stdin, "standard input", e);
    if (stats) print_stats(g);
    generator_free(g);
    return status;
}

int cmd_generate(int argc, char **argv)
{
    struct err e = {0};
    struct infer m = {0};
    bool stats = false;
    if (argc < 2) return cli_usage(generate_usage);
    for (int i = 2; i < argc; i++) {
        if (strchr(argv[i], '=')) continue;
        if (!strcmp(argv[i], "--stats")) {
            stats = true;
            continue;
        }
        if (*argv[i] == '-' && config_hint(argv[i], argv[i], "no such option; keys are set as section.key=value", &e)) {
            log_error(&e);
            return 2;
        }
        log_message(LOG_ERROR, "%s: expected key=value or --stats; see tare generate --help", argv[i]);
        return 2;
    }
    const tare_status status = run(&m, argc, argv, stats, &e);
    infer_close(&m);
    return cli_end(status, &e);
}
