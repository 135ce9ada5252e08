#include "base/log.h"
#include "cli/cli.h"
#include "lab/variance/variance.h"
#include "observe/run_data.h"
#include "settle/settle.h"

#include <string.h>

const char variance_usage[] =
    "usage: tare variance CONFIG [--from CHECKPOINT ...] [options] [section.key=value ...]\n"
    "At one checkpoint: rollouts are drawn once, each gets one backward pass, and from these every estimator's gradient is made for thousands\n"
    "of resampled groups: how far it is from the gradient of the expected reward, on average (bias) and by chance (variance), and its\n"
    "direction (cosine), with 95 % intervals. Nothing is trained. docs/laboratory.md explains the table.\n"
    "  --from CHECKPOINT    a model, a checkpoint, a run (its newest one) or RUN@STEP; again for several; default: the newest one where\n"
    "                       CONFIG is the folder of a run, else model.path\n"
    "  --estimator NAME     or \"NAME key=value ...\"; again for several; default: all built-in ones that work by rollout\n"
    "  --group-sizes LIST   2,4,8,16,32,64, as far as --rollouts allows\n"
    "  --prompts N          64       prompts, drawn from data.train\n"
    "  --rollouts N         256      of each prompt\n"
    "  --groups N           128      resampled groups of each prompt, for each estimator and group size\n"
    "  --batch N            rollout.prompts   prompts of a batch; has to divide --prompts\n"
    "  --warm N             32       simulated steps of the state \"warmed\"; 0: without it\n"
    "  --width N            2048     cells of a gradient's sketch, a power of two from 64 to 32768; 0: gradients whole\n"
    "  --metric adam        lengths and directions as Adam's step has them, by the checkpoint's second moments\n"
    "  --bootstrap N        1000     resamplings of the prompts for the intervals\n"
    "  --plan               only the memory that it would take\n"
    "  --json               JSON lines in place of the table\n"
    "  -o DIR               DIR/variance.md, .jsonl, .csv, and figures as SVG\n"
    "States of an estimator with a history: cold, saved (the checkpoint's, of the run's estimator), warmed.\n"
    "Random numbers are those of run.seed; threads change no bit.\n";

struct request {
    const char *file, *overrides[256];
    int64_t n;
    struct variance_options o;
};

struct number {
    const char *option;
    int64_t *value, least, most;
};

static tare_status take_number(const struct number *n, const char *text, struct err *e)
{
    if (str_to_int(text, n->value, NULL) || *n->value < n->least || *n->value > n->most)
        FAIL(e, TARE_E_CONFIG, "%s %s: a whole number from %lld to %lld", n->option, text, (long long)n->least, (long long)n->most);
    return TARE_OK;
}

static tare_status take_sizes(const char *text, struct variance_options *o, struct err *e)
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
            FAIL(e, TARE_E_CONFIG, "--group-sizes %s: growing numbers with commas between, such as 2,8,32; at most %d", text,
                 VARIANCE_SIZES);
        o->n_sizes++;
        at += n;
        if (!*at) return TARE_OK;
    }
}

static tare_status take_name(const char *option, const char *value, const char **list, int64_t most, int64_t *n, struct err *e)
{
    if (*n == most) FAIL(e, TARE_E_CONFIG, "%s: at most %lld", option, (long long)most);
    list[(*n)++] = value;
    return TARE_OK;
}

/* TARE_E_NOT_FOUND: there is no such option. */
static tare_status take_option(struct request *r, const char *option, const char *value, struct err *e)
{
    struct variance_options *o = &r->o;
    const struct number NUMBERS[] = {{"--prompts", &o->prompts, 2, 1 << 20},     {"--rollouts", &o->rollouts, 4, 1 << 20},
                                     {"--groups", &o->groups, 2, 1 << 24},       {"--batch", &o->batch, 1, 1 << 20},
                                     {"--warm", &o->warm, 0, 1 << 20},           {"--width", &o->width, 0, 32768},
                                     {"--bootstrap", &o->bootstrap, 100, 100000}};
    for (size_t k = 0; k < sizeof NUMBERS / sizeof *NUMBERS; k++)
        if (!strcmp(option, NUMBERS[k].option)) return take_number(&NUMBERS[k], value, e);
    if (!strcmp(option, "--metric")) {
        if (strcmp(value, "adam") != 0)
            FAIL(e, TARE_E_CONFIG, "--metric %s: there is adam; without --metric lengths are the plain ones", value);
        o->adam = true;
        return TARE_OK;
    }
    if (!strcmp(option, "--group-sizes")) return take_sizes(value, o, e);
    if (!strcmp(option, "--from")) return take_name(option, value, o->from, VARIANCE_FROM, &o->n_from, e);
    if (!strcmp(option, "--estimator")) return take_name(option, value, o->estimators, VARIANCE_METHODS, &o->n_estimators, e);
    if (strcmp(option, "-o")) return TARE_E_NOT_FOUND;
    o->out = value;
    return TARE_OK;
}

/* 0: go on; else the exit status plus one. */
static int read_request(int argc, char **argv, struct request *r)
{
    struct err e = {0};
    for (int i = 1; i < argc; i++) {
        tare_status status = TARE_E_NOT_FOUND;
        const bool plan = !strcmp(argv[i], "--plan"), json = !strcmp(argv[i], "--json");
        r->o.plan |= plan;
        r->o.json |= json;
        if (plan || json) continue;
        if (argv[i][0] == '-' && i + 1 < argc) status = take_option(r, argv[i], argv[i + 1], &e);
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

/* A run is measured as it is now, as `tare eval` does it, unless a model is named. */
static void take_run(struct request *r)
{
    for (int64_t i = 0; i < r->n; i++)
        if (!strncmp(r->overrides[i], "model.path=", 11)) return;
    if (!r->o.n_from && run_data_is_run(r->file)) r->o.from[r->o.n_from++] = r->file;
}

static tare_status run(struct request *r, struct str *out, struct err *e)
{
    OWNED(config_free) struct config c = {0};
    take_run(r);
    TRY(config_load(&c, r->file, r->overrides, r->n, e));
    config_use_log_level(&c);
    /* what depends on the model (the length of completions) is settled by the first checkpoint */
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
    tare_status status = run(&r, &out, &e);
    if (!status) status = r.o.json ? cli_print(&out, &e) : cli_show(&out, &e);
    return cli_end(status, &e);
}
