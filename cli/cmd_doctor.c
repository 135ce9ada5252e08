/* What this machine and this build have, and what is missing for what. */
#define _GNU_SOURCE
#include "base/fs.h"
#include "base/json.h"
#include "base/log.h"
#include "cli/cli.h"
#include "config/config.h"
#include "dist/comm_mpi.h"
#include "dist/device.h"
#include "kernels.h"
#include "needs.h"
#include "observe/manifest.h"
#include "plugin/plugin.h"

#define PCRE2_CODE_UNIT_WIDTH 8
#include <dlfcn.h>
#include <pcre2.h>
#include <sqlite3.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>
#include <sys/statvfs.h>
#include <unistd.h>
#include <utf8proc.h>

const char doctor_usage[] =
    "usage: tare doctor [CONFIG [section.key=value ...]]\n"
    "Lists what this machine and this build have: CPU and kernels, memory, GPU, MPI, plugins, disk space, libraries.\n"
    "With CONFIG, the device, the disk, the estimator, the objective and the curriculum are those that it names. The exit status is 1 when something\n"
    "needed is missing or cannot be used; `tare config check CONFIG` looks at the rest of a configuration.\n";

/* state: ok; no (an optional part that is not here); bad (counted) */
static void row(const char *state, const char *what, const char *format, ...) ERR_PRINTF(3, 4);
static int n_bad;

static void row(const char *state, const char *what, const char *format, ...)
{
    va_list args;
    printf("%-4s %-12s ", state, what);
    va_start(args, format);
    vprintf(format, args);
    va_end(args);
    putchar('\n');
    if (!strcmp(state, "bad")) n_bad++;
}

static void look_at_machine(const struct config *c)
{
    struct machine m;
    struct str isa = {0};
    struct err e = {0};
    const struct kernels *k = NULL;
    manifest_machine(&m);
#if defined(__x86_64__)
    __builtin_cpu_init();
    const struct {
        const char *name;
        int has;
    } isas[] = {{"sse4.2", __builtin_cpu_supports("sse4.2")},     {"avx2", __builtin_cpu_supports("avx2")},
                {"fma", __builtin_cpu_supports("fma")},           {"avx512f", __builtin_cpu_supports("avx512f")},
                {"avx512bw", __builtin_cpu_supports("avx512bw")}, {"avx512vnni", __builtin_cpu_supports("avx512vnni")}};
    for (int i = 0; i < 6; i++)
        if (isas[i].has && str_addf(&isa, &e, " %s", isas[i].name)) break;
#endif
    row("ok", "system", "%s (%s)", m.system, m.host);
    row("ok", "cpu", "%s, %lld of %lld cores usable;%s", m.cpu, (long long)m.usable_cores, (long long)m.cores,
        isa.size ? isa.data : " no known extension");
    str_free(&isa);
    if (kernels_cpu(config_kernels(c), &k, &e)) {
        row("bad", "kernels", "%s", e.message);
    } else {
        row("ok", "kernels", "%s (run.kernels = %s)", k->name, config_chosen(c, "run", "kernels"));
    }
    row("ok", "memory", "%.1f GiB, %.1f GiB free", (double)m.memory / 0x1p30, (double)m.memory_free / 0x1p30);
}

/* Whether the dynamic loader finds any of the libraries; names separated by spaces. */
static const char *find_library(const char *names)
{
    static char name[100];
    for (const char *p = names; *p;) {
        const size_t n = strcspn(p, " ");
        snprintf(name, sizeof name, "%.*s", (int)n, p);
        void *handle = dlopen(name, RTLD_LAZY | RTLD_LOCAL);
        if (handle) {
            dlclose(handle);
            return name;
        }
        p += n + (p[n] == ' ');
    }
    return NULL;
}

static bool in_path(const char *program)
{
    char command[100];
    snprintf(command, sizeof command, "command -v %s > /dev/null 2>&1", program);
    return system(command) == 0;
}

/* `tare serve` loads it when it starts. */
static void look_at_server(void)
{
    const char *library = find_library("libmicrohttpd.so.12");
    row(library ? "ok" : "no", "serve", "%s",
        library ? library : "libmicrohttpd.so.12 is not there; tare serve cannot be used (apt-get install " NEEDS_SERVE ")");
}

/* Several ranks: what carries data between them, and what starts them. */
static void look_at_ranks(const struct config *c)
{
    char about[200];
    struct err e = {0};
    const bool ranks = c->dist.ranks > 1, gpus = ranks && c->run.device == RUN_CUDA;
    if (comm_mpi_about(about, sizeof about, &e))
        row(ranks ? "bad" : "no", "mpi", "%s", e.message);
    else if (!in_path("mpirun"))
        row(ranks ? "bad" : "no", "mpi", "%s, but mpirun is not in PATH (apt-get install " NEEDS_MPI ")", about);
    else
        row("ok", "mpi", "%s%s", about, in_path("srun") ? ", mpirun, srun" : ", mpirun");
    if (device_nccl_about(about, sizeof about, &e))
        row(gpus && c->dist.communicator != COMMUNICATOR_MPI ? "bad" : "no", "nccl", "%s", e.message);
    else
        row("ok", "nccl", "%s", about);
}

static void look_at_kernels(const struct kernels *k)
{
    struct kernel_fault fault = {.layer = -1};
    const struct kctx c = {.fault = &fault};
    char about[400] = "";
    if (k->backend->about && !k->backend->about(&c, about, sizeof about))
        row("no", "cuda kernels", "libtare_cuda.so; %s", about);
    else
        row("ok", "cuda kernels", "libtare_cuda.so%s%s", *about ? "; " : "", about);
}

static void look_at_devices(const struct config *c)
{
    const bool wanted = c->run.device == RUN_CUDA;
    const char *const missing = wanted ? "bad" : "no";
    const bool driver = access("/dev/nvidiactl", R_OK | W_OK) == 0;
    row(driver ? "ok" : missing, "gpu", "%s",
        driver ? "NVIDIA driver present" : "no NVIDIA driver; run.device = cuda cannot be used");
    const char *cuda = find_library("libcuda.so.1");
    row(cuda ? "ok" : missing, "cuda", "%s", cuda ? cuda : "libcuda.so.1 is not there");
    const struct kernels *k;
    struct err e = {0};
    if (kernels_cuda(0, &k, &e))
        row(missing, "cuda kernels", "%s", e.message);
    else
        look_at_kernels(k);
    look_at_ranks(c);
    look_at_server();
}

enum { KINDS = PLUGIN_LAST_KIND + 1 };

struct found {
    int n;
    struct str names[KINDS]; /* " name, name," by kind */
};

/* A name that is on the search path twice is listed once: the first is the one that counts. */
static tare_status visit(void *ctx, const char *path, const struct plugin *p, const struct err *why)
{
    struct found *f = ctx;
    if (!p) {
        row("bad", "plugin", "%s", why ? why->message : path);
        return TARE_OK;
    }
    struct str *names = &f->names[p->desc.kind < KINDS ? p->desc.kind : 0];
    char entry[100];
    snprintf(entry, sizeof entry, " %.60s,", p->desc.name);
    if (names->size && strstr(names->data, entry)) return TARE_OK;
    f->n++;
    return str_add(names, entry, -1, NULL);
}

/* Plugins of this project that are not there: left out when this was built, or lost since. */
static void look_for_ours(const struct found *f)
{
    for (const struct plugin_builtin *b = PLUGIN_BUILTINS; b->name; b++) {
        char entry[100];
        bool there = false;
        snprintf(entry, sizeof entry, " %.60s,", b->name);
        for (int32_t kind = 1; kind < KINDS && !there; kind++) there = f->names[kind].size && strstr(f->names[kind].data, entry);
        if (there) continue;
        if (!b->built)
            row("bad", "plugin", "%s/%s was left out of this build: apt-get install %s, then build again", b->folder, b->name,
                b->needs);
        else
            row("bad", "plugin", "%s/%s.so is part of tare and cannot be used; build or install again", b->folder, b->name);
    }
}

static void look_at_plugins(const struct config *c)
{
    struct found f = {0};
    struct err e = {0};
    const struct plugin_search search = {.folder = c->run.plugins};
    if (plugin_list(&search, visit, &f, &e)) row("bad", "plugins", "%s", e.message);
    if (f.n) look_for_ours(&f);
    for (int32_t kind = 1; kind < KINDS; kind++) {
        if (f.names[kind].size) row("ok", plugin_kind_name(kind), "%.*s", (int)f.names[kind].size - 2, f.names[kind].data + 1);
        str_free(&f.names[kind]);
    }
    if (!f.n)
        row("bad", "plugins",
            "none found; set TARE_PLUGIN_PATH to the folder that contains estimators/ and the folders of the other kinds");
}

/* Opens the plugin that the configuration chooses from a kind, and checks the parameters given for it. */
static void look_at_choice(const struct config *c, int32_t kind)
{
    const char *section = CONFIG_KINDS[kind].section, *name = config_kind_choice(c, kind);
    const struct plugin_search search = {.folder = c->run.plugins};
    const struct plugin *p;
    const tare_value *values;
    struct arena a;
    struct err e = {0};
    char key[64];
    snprintf(key, sizeof key, "%s.plugin", section);
    arena_init(&a, "parameters");
    if (plugin_open(name, kind, &search, &p, &e) || plugin_params(p, c->params, &a, &values, &e))
        row("bad", "chosen", "%s = %s (%s): %s", key, name, config_where(c, section, "plugin"), e.message);
    else
        row("ok", "chosen", "%s = %s", key, name);
    arena_free(&a);
}

static void look_at_disk(const struct config *c)
{
    char folder[FS_PATH];
    snprintf(folder, sizeof folder, "%s", c->run.dir);
    while (!fs_exists(folder) && strcmp(folder, ".") && strcmp(folder, "/")) {
        char parent[FS_PATH];
        fs_dirname(parent, folder);
        memcpy(folder, parent, sizeof folder);
    }
    struct statvfs s;
    if (statvfs(folder, &s)) {
        row("bad", "disk", "%s cannot be looked at", folder);
        return;
    }
    const double free_bytes = (double)s.f_bavail * (double)s.f_frsize;
    const bool writable = access(folder, W_OK) == 0;
    row(writable && free_bytes > 0x1p28 ? "ok" : "bad", "disk", "%.1f GiB free for %s%s", free_bytes / 0x1p30, c->run.dir,
        writable ? "" : " (not writable)");
}

static void look_at_rest(void)
{
    char pcre[64] = "?";
    const char *shared = getenv("SHARED") ? getenv("SHARED") : "../shared";
    row(fs_is_dir(shared) ? "ok" : "no", "references", "%s%s", shared,
        fs_is_dir(shared) ? "" : " is not there; tests take the part of it in tests/data");
    const bool python = in_path("python3");
    row(python ? "ok" : "no", "python", "%s",
        python ? "python3 is in PATH" : "no python3 in PATH: verifier python cannot be used (apt-get install python3)");
    pcre2_config(PCRE2_CONFIG_VERSION, pcre);
    row("ok", "libraries", "jansson %s, pcre2 %s, utf8proc %s, sqlite %s, compiler %s", jansson_version_str(), pcre,
        utf8proc_version(), sqlite3_libversion(), __VERSION__);
}

int cmd_doctor(int argc, char **argv)
{
    struct err e = {0};
    OWNED(config_free) struct config c = {0};
    if (argc > 1 && argv[1][0] == '-') return cli_unexpected(argv[1], doctor_usage);
    const bool file = argc > 1 && !strchr(argv[1], '=');
    const tare_status status = config_load(&c, file ? argv[1] : NULL, (const char *const *)argv + 1 + file, argc - 1 - file, &e);
    if (status) return cli_end(status, &e);
    const char *commit = manifest_commit();
    row("ok", "tare", "%s%s%s, plugin ABI %d.%d", TARE_VERSION, *commit ? " " : "", commit, TARE_ABI_MAJOR, TARE_ABI_MINOR);
    look_at_machine(&c);
    look_at_devices(&c);
    look_at_plugins(&c);
    for (int32_t kind = PLUGIN_FIRST_KIND; argc > 1 && kind <= PLUGIN_LAST_KIND; kind++)
        if (config_kind_is_single(kind)) look_at_choice(&c, kind);
    look_at_disk(&c);
    look_at_rest();
    if (cli_flush(&e)) return cli_end(e.code, &e);
    return n_bad ? 1 : 0;
}
