/* tare plan CONFIG: the memory a run needs, before anything is allocated. */
#include "base/fs.h"
#include "base/log.h"
#include "cli/cli.h"
#include "data/dataset.h"
#include "model/adapter.h"
#include "observe/manifest.h"
#include "plan/plan.h"
#include "settle/settle.h"
#include "update/objective.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

const char plan_usage[] =
    "usage: tare plan CONFIG [--json] [plan.key=value ...] [section.key=value ...]\n"
    "Prints memory by class and rank, the capacity of the key/value cache, and whether the run fits. Allocates nothing; reads the\n"
    "model's config.json and counts the rows of data.eval. The exit status is 1 when the run does not fit. docs/plan.md has the formulas.\n"
    "  --json                  print one JSON object instead of the table\n"
    "  dist.ranks=8            any number of ranks\n"
    "  plan.device=NAME        a device of known memory: a100-40 a100 h100 h20 gh200 h200 b200 l40s rtx-pro-6000 rtx4090\n"
    "  plan.memory=80GB        bytes of a device, or of a host when run.device = cpu (KB MB GB TB KiB MiB GiB TiB)\n"
    "  plan.reserve=2GB        memory kept out of the plan\n"
    "  plan.hosts=1            machines that the ranks are spread over (run.device = cpu)\n"
    "  plan.vocab=N            vocabulary size of a model that does not exist yet\n"
    "  tare plan configs/qwen2.5-math-7b-bv-blend.ini model.path=configs/models/Qwen2.5-Math-7B plan.device=rtx-pro-6000\n";

struct request {
    bool json;
    const char *device;
    double memory, reserve, hosts, vocab; /* NAN: not given */
};

/* Set one plan.key=value. */
static tare_status set_key(struct request *r, const char *key, size_t n, const char *value, struct err *e)
{
    const struct {
        const char *key;
        double *number, least, most;
        bool whole;
    } KEYS[] = {
        {"memory", &r->memory, 1, 1e18, false},   {"device_memory", &r->memory, 1, 1e18, false},
        {"reserve", &r->reserve, 0, 1e18, false}, {"hosts", &r->hosts, 1, 1e5, true},
        {"vocab", &r->vocab, 1, 1 << 28, true},
    };
    if (n == 6 && !strncmp(key, "device", n)) {
        r->device = value;
        return TARE_OK;
    }
    for (size_t i = 0; i < sizeof KEYS / sizeof *KEYS; i++) {
        if (strlen(KEYS[i].key) != n || strncmp(key, KEYS[i].key, n)) continue;
        double x;
        if (plan_quantity(value, &x, e)) return err_prefix(e, "plan.%s", KEYS[i].key);
        if (x < KEYS[i].least || x > KEYS[i].most || (KEYS[i].whole && x != floor(x)))
            FAIL(e, TARE_E_CONFIG, "plan.%s = %s: must be a %snumber from %g to %g", KEYS[i].key, value,
                 KEYS[i].whole ? "whole " : "", KEYS[i].least, KEYS[i].most);
        *KEYS[i].number = x;
        return TARE_OK;
    }
    char word[100], wrong[200];
    snprintf(word, sizeof word, "%.*s", (int)n, key);
    snprintf(wrong, sizeof wrong, "unknown key plan.%s; other keys are set as section.key=value", word);
    TRY(config_hint(key, "command line", wrong, e));
    FAIL(e, TARE_E_CONFIG, "unknown key plan.%.*s; `tare plan --help` lists the keys", (int)n, key);
}

static void override_value(double *x, double given)
{
    if (!isnan(given)) *x = given;
}

static tare_status machine_of(const struct request *r, const struct config *c, struct plan_machine *m, struct err *e)
{
    const bool gpu = r->device || c->run.device == RUN_CUDA;
    *m = (struct plan_machine){.gpu = gpu};
    snprintf(m->name, sizeof m->name, "%s", gpu ? config_chosen(c, "run", "device") : "this kind");
    if (r->device) TRY(plan_device(r->device, m, e));
    if (!gpu && isnan(r->memory)) {
        struct machine here;
        manifest_machine(&here);
        m->memory = (double)here.memory;
        snprintf(m->name, sizeof m->name, "%.60s", here.host);
    }
    override_value(&m->memory, r->memory);
    m->reserve = gpu ? fmax(1e9, 0.03 * m->memory) : 0.05 * m->memory;
    override_value(&m->reserve, r->reserve);
    return TARE_OK;
}

static int64_t whole_or(double x, int64_t otherwise)
{
    return isnan(x) ? otherwise : (int64_t)x;
}

/* Returns the number of rows of data.eval, or -1 if they cannot be read: a plan needs no data. */
static int64_t count_eval_rows(const struct config *c)
{
    struct dataset d;
    struct err unread = {0};
    if (!config_evaluates(c) || dataset_of(c, "eval", &d, &unread)) return -1;
    const int64_t n = d.n;
    dataset_free(&d);
    return n;
}

static tare_status print_answer(const struct request *r, const struct config *c, struct str *out, int *fits, struct err *e)
{
    struct plan_input in = {.config = c,
                            .ranks = c->dist.ranks ? c->dist.ranks : 1,
                            .hosts = whole_or(r->hosts, 1),
                            .gradient_shards = c->dist.gradient_shards,
                            .eval_rows = count_eval_rows(c)};
    struct plan p;
    in.shard = c->dist.shard;
    TRY(objective_read_uses(c, &in.objective, e));
    if (adapter_is(c->model.path))
        FAIL(e, TARE_E_CONFIG,
             "%s: model.path = %s is an adapter; training must start from a whole model, which `tare merge` writes",
             config_where(c, "model", "path"), c->model.path);
    TRY(plan_shape(c, whole_or(r->vocab, 0), &in.shape, e));
    TRY(machine_of(r, c, &in.machine, e));
    TRY(plan_make(&in, &p, e));
    *fits = p.fits;
    if (!r->json) return plan_print(&p, out, e);
    OWNED(json_decrefp) json_t *o = NULL;
    TRY(plan_json(&p, &o, e));
    TRY(json_print(o, out, e));
    return str_add(out, "\n", 1, e);
}

static tare_status run_plan(const struct request *r, const char *file, const char *const *overrides, int n, int *fits,
                            struct err *e)
{
    OWNED(config_free) struct config c = {0};
    OWNED(str_free) struct str out = {0};
    TRY(config_load(&c, file, overrides, n, e));
    TRY(settle(&c, true, NULL, e));
    TRY(print_answer(r, &c, &out, fits, e));
    return r->json ? cli_print(&out, e) : cli_show(&out, e);
}

int cmd_plan(int argc, char **argv)
{
    struct err e = {0};
    struct request r = {.memory = NAN, .reserve = NAN, .hosts = NAN, .vocab = NAN};
    const char *overrides[256], *file = NULL;
    int n = 0, fits = 1;
    tare_status status = TARE_OK;
    for (int i = 1; !status && i < argc; i++) {
        const char *equals = strchr(argv[i], '='), *dot = strchr(argv[i], '.');
        const bool ours = equals && strncmp(argv[i], "as=", 3) && (!strncmp(argv[i], "plan.", 5) || !dot || dot > equals);
        if (!strcmp(argv[i], "--json"))
            r.json = true;
        else if (argv[i][0] == '-' || (equals ? n == 256 : file != NULL))
            return cli_unexpected(argv[i], plan_usage);
        else if (!equals)
            file = argv[i];
        else if (ours)
            status = set_key(&r, argv[i] + (strncmp(argv[i], "plan.", 5) ? 0 : 5),
                             (size_t)(equals - argv[i]) - (strncmp(argv[i], "plan.", 5) ? 0 : 5), equals + 1, &e);
        else
            overrides[n++] = argv[i];
    }
    if (!status && !file) return cli_usage(plan_usage);
    if (!status) status = run_plan(&r, file, overrides, n, &fits, &e);
    return status ? cli_end(status, &e) : fits == 0;
}
