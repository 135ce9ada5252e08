/* tare doctor: reports the capabilities of this machine and build, and what is missing for others.
 */
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
#include "observe/gpus.h"
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
    "Reports CPU and kernels, memory, GPU, MPI, plugins, disk space and libraries. With CONFIG it checks the device, disk,\n"
    "estimator, objective and curriculum that CONFIG names; `tare config check CONFIG` checks the rest of a configuration.\n"
    "Exit status: 1 if something required is missing or unusable, else 0.\n";

/* Prints a line of the report. state: ok; no (an optional part is missing); bad (counted). */
static void print_row(const char *state, const char *what, const char *format, ...) ERR_PRINTF(3, 4);
static int n_bad;

static void print_row(const char *state, const char *what, const char *format, ...)
{
    va_list args;
    printf("%-4s %-12s ", state, what);
    va_start(args, format);
    vprintf(format, args);
    va_end(args);
    putchar('\n');
    if (!strcmp(state, "bad")) n_bad++;
}

static void check_machine(const struct config *c)
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
    print_row("ok", "system", "%s (%s)", m.system, m.host);
    print_row("ok", "cpu", "%s, %lld of %lld cores usable;%s", m.cpu, (long long)m.usable_cores, (long long)m.cores,
              isa.size ? isa.data : " no known extensions");
    str_free(&isa);
    if (kernels_cpu(config_kernels(c), &k, &e)) {
        print_row("bad", "kernels", "%s", e.message);
    } else {
        print_row("ok", "kernels", "%s (run.kernels = %s)", k->name, config_chosen(c, "run", "kernels"));
    }
    print_row("ok", "memory", "%.1f GiB, %.1f GiB free", (double)m.memory / 0x1p30, (double)m.memory_free / 0x1p30);
}

/* Returns the first library that the dynamic loader finds, or NULL; names are separated by spaces.
 */
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

/* Checks the library that `tare serve` loads when it starts. */
static void check_server(void)
{
    const char *library = find_library("libmicrohttpd.so.12");
    print_row(library ? "ok" : "no", "serve", "%s",
              library ? library : "libmicrohttpd.so.12 is missing; tare serve needs it (apt-get install " NEEDS_SERVE ")");
}

/* Checks the libraries and launchers for several ranks. */
static void check_ranks(const struct config *c)
{
    char about[200];
    struct err e = {0};
    const bool ranks = c->dist.ranks > 1, gpus = ranks && c->run.device == RUN_CUDA;
    if (comm_mpi_about(about, sizeof about, &e))
        print_row(ranks ? "bad" : "no", "mpi", "%s", e.message);
    else if (!in_path("mpirun"))
        print_row(ranks ? "bad" : "no", "mpi", "%s, but mpirun is not in PATH (apt-get install " NEEDS_MPI ")", about);
    else
        print_row("ok", "mpi", "%s%s", about, in_path("srun") ? ", mpirun, srun" : ", mpirun");
    if (device_nccl_about(about, sizeof about, &e))
        print_row(gpus && c->dist.communicator != COMMUNICATOR_MPI ? "bad" : "no", "nccl", "%s", e.message);
    else
        print_row("ok", "nccl", "%s", about);
}

static void check_kernels(const struct kernels *k)
{
    struct kernel_fault fault = {.layer = -1};
    const struct kctx c = {.fault = &fault};
    char about[400] = "";
    if (k->backend->about && !k->backend->about(&c, about, sizeof about))
        print_row("no", "cuda kernels", "libtare_cuda.so; %s", about);
    else
        print_row("ok", "cuda kernels", "libtare_cuda.so%s%s", *about ? "; " : "", about);
}

static void print_gpus(void *ctx, enum gpus_state state, const char *what, const char *text)
{
    (void)ctx;
    print_row(state == GPUS_OK ? "ok" : state == GPUS_NO ? "no" : "bad", what, "%s", text);
}

static void check_devices(const struct config *c)
{
    const bool wanted = c->run.device == RUN_CUDA;
    const char *const missing = wanted ? "bad" : "no";
    const bool driver = access("/dev/nvidiactl", R_OK | W_OK) == 0;
    print_row(driver ? "ok" : missing, "gpu", "%s",
              driver ? "NVIDIA driver present" : "NVIDIA driver missing; run.device = cuda needs it");
    const char *cuda = find_library("libcuda.so.1");
    print_row(cuda ? "ok" : missing, "cuda", "%s", cuda ? cuda : "libcuda.so.1 is missing");
    const struct gpus_wanted gpus = {.root = "", .cuda = wanted, .ranks = c->dist.ranks};
    gpus_report(&gpus, print_gpus, NULL);
    const struct kernels *k;
    struct err e = {0};
    if (kernels_cuda(0, &k, &e))
        print_row(missing, "cuda kernels", "%s", e.message);
    else
        check_kernels(k);
    check_ranks(c);
    check_server();
}

enum { KINDS = PLUGIN_LAST_KIND + 1 };

struct found {
    int n;
    struct str names[KINDS]; /* " name, name," by kind */
};

/* Adds a plugin. A name that occurs twice on the search path is listed once: the first one is used.
 */
static tare_status add_plugin(void *ctx, const char *path, const struct plugin *p, const struct err *why)
{
    struct found *f = ctx;
    if (!p) {
        print_row("bad", "plugin", "%s", why ? why->message : path);
        return TARE_OK;
    }
    struct str *names = &f->names[p->desc.kind < KINDS ? p->desc.kind : 0];
    char entry[100];
    snprintf(entry, sizeof entry, " %.60s,", p->desc.name);
    if (names->size && strstr(names->data, entry)) return TARE_OK;
    f->n++;
    return str_add(names, entry, -1, NULL);
}

/* Reports plugins of this project that were left out of the build or are missing. */
static void check_builtins(const struct found *f)
{
    for (const struct plugin_builtin *b = PLUGIN_BUILTINS; b->name; b++) {
        char entry[100];
        bool there = false;
        snprintf(entry, sizeof entry, " %.60s,", b->name);
        for (int32_t kind = 1; kind < KINDS && !there; kind++) there = f->names[kind].size && strstr(f->names[kind].data, entry);
        if (there) continue;
        if (!b->built)
            print_row("bad", "plugin", "%s/%s was left out of this build: apt-get install %s, then build again", b->folder, b->name,
                      b->needs);
        else
            print_row("bad", "plugin", "%s/%s.so is part of tare and is missing or unusable; build or install it again", b->folder,
                      b->name);
    }
}

static void check_plugins(const struct config *c)
{
    struct found f = {0};
    struct err e = {0};
    const struct plugin_search search = {.folder = c->run.plugins};
    if (plugin_list(&search, add_plugin, &f, &e)) print_row("bad", "plugins", "%s", e.message);
    if (f.n) check_builtins(&f);
    for (int32_t kind = 1; kind < KINDS; kind++) {
        if (f.names[kind].size)
            print_row("ok", plugin_kind_name(kind), "%.*s", (int)f.names[kind].size - 2, f.names[kind].data + 1);
        str_free(&f.names[kind]);
    }
    if (!f.n)
        print_row(
            "bad", "plugins",
            "no plugin found; set TARE_PLUGIN_PATH to the folder that contains estimators/ and the folders of the other kinds");
}

/* Opens the plugin that the configuration chooses from a kind, and checks the parameters given for
 * it. */
static void check_choice(const struct config *c, int32_t kind)
{
    const char *section = CONFIG_KINDS[kind].name, *name = config_kind_choice(c, kind);
    const struct plugin_search search = {.folder = c->run.plugins};
    const struct plugin *p;
    const tare_value *values;
    struct arena a;
    struct err e = {0};
    char key[64];
    snprintf(key, sizeof key, "%s.plugin", section);
    arena_init(&a, "parameters");
    if (plugin_open(name, kind, &search, &p, &e) || plugin_params(p, c->params, &a, &values, &e))
        print_row("bad", "chosen", "%s = %s (%s): %s", key, name, config_where(c, section, "plugin"), e.message);
    else
        print_row("ok", "chosen", "%s = %s", key, name);
    arena_free(&a);
}

static void check_disk(const struct config *c)
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
        print_row("bad", "disk", "%s cannot be examined", folder);
        return;
    }
    const double free_bytes = (double)s.f_bavail * (double)s.f_frsize;
    const bool writable = access(folder, W_OK) == 0;
    print_row(writable && free_bytes > 0x1p28 ? "ok" : "bad", "disk", "%.1f GiB free for %s%s", free_bytes / 0x1p30, c->run.dir,
              writable ? "" : " (not writable)");
}

static void check_rest(void)
{
    char pcre[64] = "?";
    const char *shared = getenv("SHARED") ? getenv("SHARED") : "../shared";
    print_row(fs_is_dir(shared) ? "ok" : "no", "references", "%s%s", shared,
              fs_is_dir(shared) ? "" : " is missing; tests use the part of it in tests/data");
    const bool python = in_path("python3");
    print_row(python ? "ok" : "no", "python", "%s",
              python ? "python3 is in PATH" : "python3 is missing in PATH; the verifier python needs it (apt-get install python3)");
    pcre2_config(PCRE2_CONFIG_VERSION, pcre);
    print_row("ok", "libraries", "jansson %s, pcre2 %s, utf8proc %s, sqlite %s, compiler %s", jansson_version_str(), pcre,
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
    print_row("ok", "tare", "%s%s%s, plugin ABI %d.%d", TARE_VERSION, *commit ? " " : "", commit, TARE_ABI_MAJOR, TARE_ABI_MINOR);
    check_machine(&c);
    check_devices(&c);
    check_plugins(&c);
    for (int32_t kind = PLUGIN_FIRST_KIND; argc > 1 && kind <= PLUGIN_LAST_KIND; kind++)
        if (config_kind_is_single(kind)) check_choice(&c, kind);
    check_disk(&c);
    check_rest();
    if (cli_flush(&e)) return cli_end(e.code, &e);
    return n_bad ? 1 : 0;
}
