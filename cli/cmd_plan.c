/* tare plan CONFIG: what a run needs in memory, wire and time, before anything is allocated. */
#include "base/fs.h"
#include "base/log.h"
#include "cli/cli.h"
#include "cli/plan_measure.h"
#include "model/adapter.h"
#include "observe/manifest.h"
#include "plan/launches.h"
#include "settle/settle.h"
#include "update/objective.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

const char plan_usage[] =
    "usage: tare plan CONFIG [--json] [--measure] [--kernels] [plan.key=value ...] [section.key=value ...]\n"
    "Memory by class and rank, capacity of the key/value cache, bytes on the wire and time by stage, and whether it fits; nothing is\n"
    "allocated, and of the model only config.json is read. The exit status is 1 when it does not fit. docs/plan.md has the formulas.\n"
    "  --json                  one JSON object in place of the table\n"
    "  --measure               peaks of this machine's cores, memory and disk, measured now (a few seconds)\n"
    "  --kernels               on a GPU, what each kernel of a step has to compute and to move, and the time that the peaks allow at\n"
    "                          least: a prefill, a decoded token, a micro-batch, an optimizer step\n"
    "  dist.ranks=8            for any number of ranks\n"
    "  plan.device=NAME        a device whose peaks are known: a100-40 a100 h100 h20 gh200 h200 b200 l40s rtx-pro-6000 rtx4090\n"
    "  plan.memory=80GB        bytes of a device, or of a host when run.device = cpu (KB MB GB TB KiB MiB GiB TiB)\n"
    "  plan.flops=989T  plan.bandwidth=3.35T  plan.link=450G  plan.disk=2G     peaks, a second\n"
    "  plan.compute_use=0.4  plan.memory_use=0.7  plan.reserve=2GB             shares of the peaks; memory kept back\n"
    "  plan.hosts=1            machines that the ranks are spread over (run.device = cpu)\n"
    "  plan.prompt_tokens=300 plan.response_tokens=1500                        typical rows, for the times; else the longest\n"
    "  plan.vocab=N            of a model that does not exist yet\n"
    "  tare plan configs/qwen2.5-math-7b-bv-blend.ini model.path=configs/models/Qwen2.5-Math-7B plan.device=rtx-pro-6000\n";

struct request {
    bool json, measure, kernels;
    const char *device;
    double memory, flops, bandwidth, link, disk, compute_use, memory_use, reserve; /* NAN: not given */
    double hosts, prompt_tokens, response_tokens, vocab;
};

/* One plan.key=value. */
static tare_status set(struct request *r, const char *key, size_t n, const char *value, struct err *e)
{
    const struct {
        const char *key;
        double *number, least, most;
        bool whole;
    } KEYS[] = {
        {"memory", &r->memory, 1, 1e18, false},
        {"device_memory", &r->memory, 1, 1e18, false},
        {"flops", &r->flops, 1, 1e30, false},
        {"bandwidth", &r->bandwidth, 1, 1e30, false},
        {"link", &r->link, 1, 1e30, false},
        {"disk", &r->disk, 1, 1e30, false},
        {"compute_use", &r->compute_use, 0.001, 1, false},
        {"memory_use", &r->memory_use, 0.001, 1, false},
        {"reserve", &r->reserve, 0, 1e18, false},
        {"hosts", &r->hosts, 1, 1e5, true},
        {"prompt_tokens", &r->prompt_tokens, 1, 1e9, true},
        {"response_tokens", &r->response_tokens, 1, 1e9, true},
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
            FAIL(e, TARE_E_CONFIG, "plan.%s = %s: a %snumber from %g to %g", KEYS[i].key, value, KEYS[i].whole ? "whole " : "",
                 KEYS[i].least, KEYS[i].most);
        *KEYS[i].number = x;
        return TARE_OK;
    }
    char word[100], wrong[200];
    snprintf(word, sizeof word, "%.*s", (int)n, key);
    snprintf(wrong, sizeof wrong, "there is no plan.%s, and other keys are set as section.key=value", word);
    TRY(config_hint(key, "command line", wrong, e));
    FAIL(e, TARE_E_CONFIG, "no plan.%.*s; `tare plan --help` lists the keys", (int)n, key);
}

static void prefer(double *x, double given)
{
    if (!isnan(given)) *x = given;
}

static tare_status machine_of(const struct request *r, const struct config *c, struct plan_machine *m, struct err *e)
{
    const bool gpu = r->device || c->run.device == RUN_CUDA;
    *m = (struct plan_machine){.gpu = gpu};
    snprintf(m->name, sizeof m->name, "%s", gpu ? config_chosen(c, "run", "device") : "this kind");
    if (r->device) TRY(plan_device(r->device, c->model.dtype == PRECISION_BF16, m, e));
    if (!gpu && isnan(r->memory)) {
        struct machine here;
        manifest_machine(&here);
        m->memory = (double)here.memory;
        snprintf(m->name, sizeof m->name, "%.60s", here.host);
    }
    if (r->measure && gpu)
        FAIL(e, TARE_E_CONFIG,
             "--measure measures the cores and the memory of this machine; for a GPU give plan.device or its peaks");
    if (r->measure) TRY(plan_measure(c, m, e));
    prefer(&m->memory, r->memory);
    prefer(&m->flops, r->flops);
    prefer(&m->bandwidth, r->bandwidth);
    prefer(&m->link, r->link);
    prefer(&m->disk, r->disk);
    m->compute_use = gpu ? 0.4 : 0.7;
    m->memory_use = 0.7;
    m->reserve = gpu ? fmax(1e9, 0.03 * m->memory) : 0.05 * m->memory;
    prefer(&m->compute_use, r->compute_use);
    prefer(&m->memory_use, r->memory_use);
    prefer(&m->reserve, r->reserve);
    return TARE_OK;
}

static int64_t whole(double x, int64_t otherwise)
{
    return isnan(x) ? otherwise : (int64_t)x;
}

static tare_status answer(const struct request *r, const struct config *c, struct launches *launches, struct str *out, int *fits,
                          struct err *e)
{
    struct plan_input in = {.config = c,
                            .ranks = c->dist.ranks ? c->dist.ranks : 1,
                            .hosts = whole(r->hosts, 1),
                            .gradient_shards = c->dist.gradient_shards,
                            .prompt_tokens = whole(r->prompt_tokens, 0),
                            .response_tokens = whole(r->response_tokens, 0)};
    struct plan p;
    in.shard = c->dist.shard;
    TRY(objective_read_needs(c, &in.objective_needs, e));
    if (adapter_is(c->model.path))
        FAIL(e, TARE_E_CONFIG, "%s: model.path = %s is an adapter; training starts from a whole model, which `tare merge` writes",
             config_where(c, "model", "path"), c->model.path);
    TRY(plan_shape(c, whole(r->vocab, 0), &in.shape, e));
    TRY(machine_of(r, c, &in.machine, e));
    TRY(plan_make(&in, &p, e));
    *fits = p.fits;
    if (r->kernels) TRY(launches_make(&p, launches, e));
    if (!r->json) {
        TRY(plan_print(&p, out, e));
        return r->kernels ? launches_print(&p, launches, out, e) : TARE_OK;
    }
    OWNED(json_decrefp) json_t *o = NULL;
    json_t *kernels = NULL;
    TRY(plan_json(&p, &o, e));
    if (r->kernels) TRY(launches_json(launches, &kernels, e));
    if (kernels) json_object_set_new(o, "kernels", kernels);
    TRY(json_print(o, out, e));
    return str_add(out, "\n", 1, e);
}

static tare_status run(const struct request *r, const char *file, const char *const *overrides, int n, int *fits, struct err *e)
{
    OWNED(config_free) struct config c = {0};
    OWNED(str_free) struct str out = {0};
    OWNED(mem_free_at) struct launches *launches = NULL; /* too large for a stack */
    TRY(config_load(&c, file, overrides, n, e));
    TRY(mem_new((int64_t)sizeof *launches, (void **)&launches, e));
    TRY(settle(&c, true, NULL, e));
    TRY(answer(r, &c, launches, &out, fits, e));
    return r->json ? cli_print(&out, e) : cli_show(&out, e);
}

int cmd_plan(int argc, char **argv)
{
    struct err e = {0};
    struct request r = {.memory = NAN,
                        .flops = NAN,
                        .bandwidth = NAN,
                        .link = NAN,
                        .disk = NAN,
                        .compute_use = NAN,
                        .memory_use = NAN,
                        .reserve = NAN,
                        .hosts = NAN,
                        .prompt_tokens = NAN,
                        .response_tokens = NAN,
                        .vocab = NAN};
    const char *overrides[256], *file = NULL;
    int n = 0, fits = 1;
    tare_status status = TARE_OK;
    for (int i = 1; !status && i < argc; i++) {
        const char *equals = strchr(argv[i], '='), *dot = strchr(argv[i], '.');
        const bool ours = equals && strncmp(argv[i], "as=", 3) && (!strncmp(argv[i], "plan.", 5) || !dot || dot > equals);
        if (!strcmp(argv[i], "--json"))
            r.json = true;
        else if (!strcmp(argv[i], "--measure"))
            r.measure = true;
        else if (!strcmp(argv[i], "--kernels"))
            r.kernels = true;
        else if (argv[i][0] == '-' || (equals ? n == 256 : file != NULL))
            return cli_unexpected(argv[i], plan_usage);
        else if (!equals)
            file = argv[i];
        else if (ours)
            status = set(&r, argv[i] + (strncmp(argv[i], "plan.", 5) ? 0 : 5),
                         (size_t)(equals - argv[i]) - (strncmp(argv[i], "plan.", 5) ? 0 : 5), equals + 1, &e);
        else
            overrides[n++] = argv[i];
    }
    if (!status && !file) return cli_usage(plan_usage);
    if (!status) status = run(&r, file, overrides, n, &fits, &e);
    return status ? cli_end(status, &e) : fits == 0;
}
