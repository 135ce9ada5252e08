#include "base/log.h"
#include "cli/cli.h"
#include "lab/variance/variance.h"
#include "observe/run_data.h"
#include "settle/settle.h"

#include <string.h>

const char variance_usage[] =
    "usage: tare variance CONFIG [--from CHECKPOINT ...] [options] [section.key=value ...]\n"
    "Measure how far each estimator's policy gradient is from the gradient of the expected reward at one checkpoint: on average (bias), by\n"
    "chance (variance), and in direction (cosine), with 95 % intervals. Rollouts are sampled once, each gets one backward pass, and from these\n"
    "the gradients of thousands of resampled groups are computed. Nothing is trained. docs/laboratory.md explains the table.\n"
    "  --from CHECKPOINT    a model, a checkpoint, a run (its newest checkpoint) or RUN@STEP; repeat for several; default: the newest\n"
    "                       checkpoint if CONFIG is the folder of a run, else model.path\n"
    "  --estimator NAME     or \"NAME key=value ...\"; repeat for several; default: all built-in ones with an advantage per rollout\n"
    "  --group-sizes LIST   2,4,8,16,32,64, up to half of --rollouts\n"
    "  --prompts N          64       prompts, drawn from data.train\n"
    "  --rollouts N         256      rollouts of each prompt\n"
    "  --groups N           128      resampled groups of each prompt, for each estimator and group size\n"
    "  --batch N            rollout.prompts   prompts of a batch; must divide --prompts\n"
    "  --warm N             32       simulated steps of the state \"warmed\"; 0: no such state\n"
    "  --width N            2048     cells of a gradient's sketch, a power of two from 64 to 32768; 0: keep gradients whole\n"
    "  --metric adam        measure lengths and directions in Adam's step, with the checkpoint's second moments\n"
    "  --bootstrap N        1000     resamplings of the prompts for the intervals\n"
    "  --plan               only print the memory needed\n"
    "  --json               print JSON lines instead of the table\n"
    "  -o DIR               write DIR/variance.md, .jsonl, .csv, and figures as SVG\n"
    "States of an estimator with a history: cold, saved (by the run, for its own estimator), warmed.\n"
    "Random numbers come from run.seed. Results are bit-identical for any number of threads.\n";

struct request {
    const char *file, *overrides[256];
    int64_t n;
    struct variance_options o;
};

struct number {
    const char *option;
    int64_t *value, least, most;
};

static tare_status parse_number(const struct number *n, const char *text, struct err *e)
{
    if (str_to_int(text, n->value, NULL) || *n->value < n->least || *n->value > n->most)
        FAIL(e, TARE_E_CONFIG, "%s %s: must be a whole number from %lld to %lld", n->option, text, (long long)n->least,
             (long long)n->most);
    return TARE_OK;
}

static tare_status parse_sizes(const char *text, struct variance_options *o, struct err *e)
{
    char word[32];
    memset(o->sizes, 0, sizeof o->sizes);
    o->n_sizes = 0;
    for (const char *at = text;; at++) {
        const size_t n = strcspn(at, ",");
        int64_t *size = &o->sizes[o->n_sizes];
        snprintf(word, sizeof word, "%.*s", (int)(n < 31 ? n : 31), at);
        if (o->n_sizes == VARIANCE_SIZES || str_to_int(word, size, NULL) || *size < 1 || *size > 100000 ||
            (o->n_sizes && *size <= size[-1]))
            FAIL(e, TARE_E_CONFIG, "--group-sizes %s: must be increasing numbers separated by commas, such as 2,8,32; at most %d",
                 text, VARIANCE_SIZES);
        o->n_sizes++;
        at += n;
        if (!*at) return TARE_OK;
    }
}

static tare_status add_name(const char *option, const char *value, const char **list, int64_t most, int64_t *n, struct err *e)
{
    if (*n == most) FAIL(e, TARE_E_CONFIG, "%s: at most %lld", option, (long long)most);
    list[(*n)++] = value;
    return TARE_OK;
}

/* Returns TARE_E_NOT_FOUND if there is no such option. */
static tare_status parse_option(struct request *r, const char *option, const char *value, struct err *e)
{
    struct variance_options *o = &r->o;
    const struct number NUMBERS[] = {{"--prompts", &o->prompts, 2, 1 << 20},     {"--rollouts", &o->rollouts, 4, 1 << 20},
                                     {"--groups", &o->groups, 2, 1 << 24},       {"--batch", &o->batch, 1, 1 << 20},
                                     {"--warm", &o->warm, 0, 1 << 20},           {"--width", &o->width, 0, 32768},
                                     {"--bootstrap", &o->bootstrap, 100, 100000}};
    for (size_t k = 0; k < sizeof NUMBERS / sizeof *NUMBERS; k++)
        if (!strcmp(option, NUMBERS[k].option)) return parse_number(&NUMBERS[k], value, e);
    if (!strcmp(option, "--metric")) {
        if (strcmp(value, "adam") != 0) FAIL(e, TARE_E_CONFIG, "--metric %s: must be adam; omit it for the plain metric", value);
        o->adam = true;
        return TARE_OK;
    }
    if (!strcmp(option, "--group-sizes")) return parse_sizes(value, o, e);
    if (!strcmp(option, "--from")) return add_name(option, value, o->from, VARIANCE_FROM, &o->n_from, e);
    if (!strcmp(option, "--estimator")) return add_name(option, value, o->estimators, VARIANCE_METHODS, &o->n_estimators, e);
    if (strcmp(option, "-o")) return TARE_E_NOT_FOUND;
    o->out = value;
    return TARE_OK;
}

/* Returns 0 to continue, else the exit status plus one. */
static int read_request(int argc, char **argv, struct request *r)
{
    struct err e = {0};
    for (int i = 1; i < argc; i++) {
        tare_status status = TARE_E_NOT_FOUND;
        const bool plan = !strcmp(argv[i], "--plan"), json = !strcmp(argv[i], "--json");
        r->o.plan |= plan;
        r->o.json |= json;
        if (plan || json) continue;
        if (argv[i][0] == '-' && i + 1 < argc) status = parse_option(r, argv[i], argv[i + 1], &e);
        if (!status)
            i++;
        else if (status != TARE_E_NOT_FOUND)
            return log_error(&e), err_exit_code(status) + 1;
        else if (argv[i][0] != '-' && !strchr(argv[i], '=') && !r->file)
            r->file = argv[i];
        else if (argv[i][0] != '-' && strchr(argv[i], '=') && r->n < 255)
            r->overrides[r->n++] = argv[i];
        else
            return cli_unexpected(argv[i], variance_usage) + 1;
    }
    return r->file ? 0 : cli_usage(variance_usage) + 1;
}

/* Measures a run at its newest checkpoint, as `tare eval` does, unless a model is named. */
static void use_run_checkpoint(struct request *r)
{
    for (int64_t i = 0; i < r->n; i++)
        if (!strncmp(r->overrides[i], "model.path=", 11)) return;
    if (!r->o.n_from && run_data_is_run(r->file)) r->o.from[r->o.n_from++] = r->file;
}

static tare_status run_variance(struct request *r, struct str *out, struct err *e)
{
    OWNED(config_free) struct config c = {0};
    use_run_checkpoint(r);
    TRY(config_load(&c, r->file, r->overrides, r->n, e));
    config_use_log_level(&c);
    /* settings that depend on the model (the length of completions) come from the first
     * checkpoint */
    if (r->o.n_from && !strchr(r->o.from[0], '@')) TRY(config_set(&c, "model", "path", r->o.from[0], "--from", e));
    TRY(settle(&c, true, NULL, e));
    return variance_run(&c, &r->o, out, e);
}

int cmd_variance(int argc, char **argv)
{
    struct err e = {0};
    struct request r = {.o = VARIANCE_DEFAULTS};
    OWNED(str_free) struct str out = {0};
    const int stop = read_request(argc, argv, &r);
    if (stop) return stop - 1;
    tare_status status = run_variance(&r, &out, &e);
    if (!status) status = r.o.json ? cli_print(&out, &e) : cli_show(&out, &e);
    return cli_end(status, &e);
}
