/* tare generate: reads prompts and writes sampled completions, one JSON object per line. */
#include "base/log.h"
#include "base/signals.h"
#include "cli/cli.h"
#include "config/config.h"
#include "infer/generate.h"

#include <stdio.h>
#include <string.h>

const char generate_usage[] =
    "usage: tare generate MODEL [key=value ...]\n\n"
    "Reads one prompt per line: {\"id\",\"question\"} or {\"id\",\"messages\"} (rendered as data.prompt says), {\"id\",\"text\"} (encoded\n"
    "as is), or {\"id\",\"ids\"} (no tokenizer needed; completion is null). If a line has several, the first of ids, text,\n"
    "messages, question is used. \"prompt\" (a text or messages) may replace question and messages, as in a training file.\n"
    "Writes rollout.group_size lines per prompt (one at temperature 0 where it is not given) in input order: {\"id\",\"sample\",\"completion\",\"ids\",\"logprobs\",\"finish\"}, where\n"
    "finish is stop or length. A completion depends on the model, the prompt, its id and the seed, not on the other lines; a\n"
    "repeated id gets new random numbers. MODEL is a Hugging Face folder, or the folder of a run: its newest checkpoint, with\n"
    "data.{prompt,chat_template,chat_template_kwargs,date,system,suffix} of its config.ini.\n\n"
    "Keys (the section may be omitted; `tare config docs` describes them):\n"
    "  rollout.{group_size,max_new_tokens,temperature,top_p,top_k,min_p,stop_ids,ignore_eos,batch,kv_tokens,speculate,max_prompt_tokens}\n"
    "  run.{seed,threads,kernels}, model.{dtype,weights,rope_theta,max_position_embeddings}\n"
    "  data.{prompt,chat_template,chat_template_kwargs,system,suffix}\n"
    "--stats prints a line on standard error at the end: seconds of sampling, tokens read and written, passes, tokens drafted and accepted.\n";

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

/* Prints to standard error, so that standard output has one line per rollout. */
static void print_stats(const struct generator *g)
{
    const struct generator_stats s = generator_stats(g);
    fprintf(
        stderr,
        "{\"seconds\":%.6f,\"prompt_tokens\":%lld,\"new_tokens\":%lld,\"decode_steps\":%lld,\"drafted\":%lld,\"accepted\":%lld}\n",
        s.seconds, (long long)s.sampler.prompt_tokens, (long long)s.sampler.new_tokens, (long long)s.sampler.decode_steps,
        (long long)s.sampler.drafted, (long long)s.sampler.accepted);
}

static tare_status run_generate(struct infer *m, int argc, char **argv, bool stats, struct err *e)
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
        if (*argv[i] == '-' && config_hint(argv[i], argv[i], "unknown option; keys are set as section.key=value", &e)) {
            log_error(&e);
            return 2;
        }
        log_message(LOG_ERROR, "%s: must be key=value or --stats; see tare generate --help", argv[i]);
        return 2;
    }
    const tare_status status = run_generate(&m, argc, argv, stats, &e);
    infer_close(&m);
    return cli_end(status, &e);
}
