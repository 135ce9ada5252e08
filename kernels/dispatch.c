/* Select the kernel table. On a CPU it is the fastest one that the CPU supports, unless a name or
 * TARE_CPU requests another; on a GPU it is the one in libtare_cuda.so. */
#include "kernels_cpu.h"
#include "tiles/tiles.h"

#include <dlfcn.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

struct choice {
    const char *name, *needs;
    const struct kernels *table;
    int runs, automatic;
};

#ifdef TARE_CPU_DOT
static int dot_is_faster;
static pthread_once_t dot_once = PTHREAD_ONCE_INIT;

static void dot_time(void)
{
    dot_is_faster = kernels_avx512bf16_faster();
}

/* Measured once per process, because a process must keep one table, although both compute the same
 * bits. */
static int dot_faster(void)
{
    pthread_once(&dot_once, dot_time);
    return dot_is_faster;
}
#endif

#ifdef TARE_CPU_AMX
#include <cpuid.h>
/* __builtin_cpu_supports of GCC 12 does not know AMX */
static int kernels_amx_cpu(void)
{
    enum { TILE = 1 << 24, BF16 = 1 << 22 };
    unsigned a, b, c, d;
    return __get_cpuid_count(7, 0, &a, &b, &c, &d) && (d & TILE) && (d & BF16);
}
#endif

#ifdef TARE_CPU_SIMD
/* Tables for products in AMX's order of sums: with AMX, with AVX-512 and with AVX2. NULL: this CPU
 * does not support it. */
static struct kernels tiles_made[3];
static const struct kernels *tiles_amx, *tiles_avx512, *tiles_avx2;
static pthread_once_t tiles_once = PTHREAD_ONCE_INIT;

static void tiles_make(void)
{
    __builtin_cpu_init();
    if (!__builtin_cpu_supports("avx2") || !__builtin_cpu_supports("fma")) return;
    kernels_tiles_avx2(&kernels_avx2, &tiles_made[0]);
    tiles_avx2 = &tiles_made[0];
    if (!__builtin_cpu_supports("avx512f") || !__builtin_cpu_supports("avx512bw") || !__builtin_cpu_supports("avx512dq") ||
        !__builtin_cpu_supports("avx512vl"))
        return;
    kernels_tiles_avx512(&kernels_avx512, &tiles_made[1]);
    tiles_avx512 = &tiles_made[1];
#ifdef TARE_CPU_AMX
    if (!kernels_amx_cpu() || !__builtin_cpu_supports("avx512bf16") || !kernels_avx512bf16_check() || !kernels_tiles_amx_check())
        return;
    kernels_tiles_amx(&kernels_avx512bf16, &tiles_made[2]);
    tiles_amx = &tiles_made[2];
#endif
}
#endif

#ifdef __aarch64__
static struct kernels tiles_neon;
static pthread_once_t tiles_once = PTHREAD_ONCE_INIT;

static void tiles_make(void)
{
    kernels_tiles_neon(&kernels_neon, &tiles_neon);
}
#else
static const char of_arm[] = "an Arm processor (aarch64)";
#endif

enum { CHOICES = 20 };

static int list_choices(struct choice out[CHOICES])
{
    int n = 0;
#if defined(__x86_64__)
    __builtin_cpu_init();
    const int fma = __builtin_cpu_supports("avx2") && __builtin_cpu_supports("fma");
#ifdef TARE_CPU_SIMD
    const int wide = fma && __builtin_cpu_supports("avx512f") && __builtin_cpu_supports("avx512bw") &&
                     __builtin_cpu_supports("avx512dq") && __builtin_cpu_supports("avx512vl");
#ifdef TARE_CPU_DOT
    const int dot = wide && __builtin_cpu_supports("avx512bf16") && kernels_avx512bf16_check();
    out[n++] = (struct choice){"avx512bf16", "AVX-512 F, BW, DQ, VL and BF16, as documented", &kernels_avx512bf16, dot,
                               dot && dot_faster()};
#else
    out[n++] = (struct choice){"avx512bf16", "AVX-512 BF16", NULL, 0, 0};
#endif
    out[n++] = (struct choice){"avx512", "AVX-512 F, BW, DQ and VL", &kernels_avx512, wide, 1};
    out[n++] = (struct choice){"avx2", "AVX2 and FMA", &kernels_avx2, fma, 1};
    pthread_once(&tiles_once, tiles_make);
    out[n++] = (struct choice){"amx", NULL, tiles_amx, tiles_amx != NULL, 0};
    out[n++] = (struct choice){"amx", NULL, tiles_avx512, tiles_avx512 != NULL, 0};
    out[n++] = (struct choice){"amx", "AVX2 and FMA", tiles_avx2, tiles_avx2 != NULL, 0};
    out[n++] = (struct choice){"amx-native", "AMX with bf16", tiles_amx, tiles_amx != NULL, 0};
    out[n++] = (struct choice){"amx-avx512", "AVX-512 F, BW, DQ and VL", tiles_avx512, tiles_avx512 != NULL, 0};
    out[n++] = (struct choice){"amx-avx2", "AVX2 and FMA", tiles_avx2, tiles_avx2 != NULL, 0};
#ifdef TARE_CPU_EMU512
    out[n++] = (struct choice){"emu512", "AVX2 and FMA", &kernels_emu512, fma, 0};
    out[n++] = (struct choice){"emu512bf16", "AVX2 and FMA", &kernels_emu512bf16, fma, 0};
#endif
#endif
    out[n++] = (struct choice){"ref", "AVX2 and FMA", &kernels_ref_fma, fma, 1};
#else
    static const char *const of_x86[] = {"avx512bf16", "avx512", "avx2", "amx-native", "amx-avx512", "amx-avx2"};
    for (int i = 0; i < (int)(sizeof of_x86 / sizeof *of_x86); i++)
        out[n++] = (struct choice){of_x86[i], "an x86-64 processor", NULL, 0, 0};
#endif
#if defined(__aarch64__)
    pthread_once(&tiles_once, tiles_make);
    out[n++] = (struct choice){"neon", "Advanced SIMD", &kernels_neon, 1, 1};
    out[n++] = (struct choice){"amx", "Advanced SIMD", &tiles_neon, 1, 0};
    out[n++] = (struct choice){"amx-neon", "Advanced SIMD", &tiles_neon, 1, 0};
#else
    out[n++] = (struct choice){"neon", of_arm, NULL, 0, 0};
    out[n++] = (struct choice){"amx-neon", of_arm, NULL, 0, 0};
#endif
    out[n++] = (struct choice){"ref", "nothing", &kernels_ref_any, 1, 1};
    out[n++] = (struct choice){"ref-amx", "nothing", &kernels_ref_amx, 1, 0};
    return n;
}

tare_status kernels_cpu(const char *name, const struct kernels **out, struct err *e)
{
    const char *asked = name ? name : getenv("TARE_CPU");
    struct choice list[CHOICES];
    const int n = list_choices(list);
    const struct choice *known = NULL;
    *out = NULL;
    if (asked && !*asked) asked = NULL;
    for (int i = 0; i < n; i++) {
        if (asked ? strcmp(asked, list[i].name) != 0 : !list[i].automatic) continue;
        known = &list[i];
        if (!known->runs) continue;
        *out = known->table;
        return TARE_OK;
    }
    if (known)
        FAIL(e, TARE_E_UNSUPPORTED,
             "%s requires %s, which this CPU or this build does not support; unset %s to choose automatically", asked, known->needs,
             name ? "run.kernels" : "TARE_CPU");
    FAIL(e, TARE_E_INVALID, "unknown %s \"%s\": must be ref, avx2, avx512, avx512bf16, amx or neon",
         name ? "CPU kernels" : "TARE_CPU", asked);
}

/* ---- the CUDA backend: a separate shared object, so that this program also runs without CUDA */

enum { PATH_MOST = 4096 };

/* Write candidate path i of the object; 0: there are no more candidates. */
static int cuda_place(int i, char path[PATH_MOST])
{
    static const char *const candidates[] = {"libtare_cuda.so", "../lib/tare/libtare_cuda.so"};
    const char *asked = getenv("TARE_CUDA");
    if (asked && *asked) return !i && snprintf(path, PATH_MOST, "%s", asked) < PATH_MOST;
    /* search path of the loader */
    if (i > 1) return i == 2 && snprintf(path, PATH_MOST, "libtare_cuda.so") > 0;
    char self[PATH_MOST / 2];
    const ssize_t n = readlink("/proc/self/exe", self, sizeof self - 1);
    if (n <= 0) return 0;
    self[n] = 0;
    char *slash = strrchr(self, '/');
    if (!slash) return 0;
    slash[1] = 0;
    return snprintf(path, PATH_MOST, "%s%s", self, candidates[i]) < PATH_MOST;
}

static void one_line(char *text)
{
    for (; *text; text++)
        if (*text == '\n') *text = ' ';
}

static tare_status cuda_object(void **object, char path[PATH_MOST], struct err *e)
{
    char places[2 * PATH_MOST] = "";
    for (int i = 0; cuda_place(i, path); i++) {
        if (strchr(path, '/') && access(path, F_OK)) {
            const size_t used = strlen(places);
            snprintf(places + used, sizeof places - used, "%s%s", used ? ", " : "", path);
            continue;
        }
        *object = dlopen(path, RTLD_NOW | RTLD_LOCAL);
        if (*object) return TARE_OK;
        char why[500];
        snprintf(why, sizeof why, "%s", dlerror());
        one_line(why);
        if (strchr(path, '/')) FAIL(e, TARE_E_UNSUPPORTED, "%s cannot be loaded: %s", path, why);
    }
    FAIL(e, TARE_E_NOT_FOUND,
         "libtare_cuda.so: not found (%s); build it with make where the CUDA toolkit is installed, or use run.device = cpu",
         places);
}

tare_status kernels_cuda(int local, const struct kernels **out, struct err *e)
{
    static const struct kernels *opened;
    char path[PATH_MOST], why[500] = "";
    void *object = NULL;
    *out = opened;
    if (opened) return TARE_OK;
    tare_status status = cuda_object(&object, path, e);
    if (status) return err_prefix(e, "run.device = cuda");
    kernels_cuda_entry entry;
    void *symbol = dlsym(object, KERNELS_CUDA_ENTRY);
    if (!symbol)
        FAIL(e, TARE_E_VERSION, "run.device = cuda: %s has no " KERNELS_CUDA_ENTRY "; it is not the CUDA backend of tare", path);
    memcpy(&entry, &symbol, sizeof entry);
    opened = entry(KERNELS_ABI, local, why, sizeof why);
    one_line(why);
    if (!opened) FAIL(e, TARE_E_DEVICE, "run.device = cuda: %s", why);
    *out = opened;
    return TARE_OK;
}

tare_status kernels_open(bool cuda, const char *name, int local, const struct kernels **out, struct err *e)
{
    *out = NULL;
    if (!cuda) return kernels_cpu(name, out, e);
    if (name) FAIL(e, TARE_E_CONFIG, "run.kernels = %s: must be auto with run.device = cuda, which has its own kernels", name);
    return kernels_cuda(local, out, e);
}

tare_status kernels_finish(const struct kernels *k, const struct kctx *c, struct err *e)
{
    if (k->backend->finish) k->backend->finish(c);
    const struct kernel_fault *f = c->fault;
    if (!f || !f->code) return TARE_OK;
    const char *stage = f->stage ? f->stage : "kernels";
    if (f->layer < 0) FAIL(e, f->code, "%s: %s", stage, f->message);
    FAIL(e, f->code, "%s, layer %lld: %s", stage, (long long)f->layer, f->message);
}

int64_t kernels_staging_bytes(const struct kernels *k, int64_t bytes)
{
    return k->backend->device ? bytes : 0;
}

const void *kernels_place(const struct kernels *k, const struct kctx *c, void *staging, const void *host, int64_t bytes)
{
    if (!k->backend->device) return host;
    k->backend->upload(c, staging, host, bytes);
    return staging;
}

const void *kernels_fetch(const struct kernels *k, const struct kctx *c, void *staging, const void *bytes_there, int64_t bytes)
{
    if (!k->backend->device) return bytes_there;
    k->backend->download(c, staging, bytes_there, bytes);
    return staging;
}

tare_status kernels_no_memory(const struct kernels *k, const struct kctx *c, const char *what, int64_t bytes, struct err *e)
{
    struct kernel_memory m = {0};
    const double mib = 1.0 / (1 << 20), asked = mib * (double)bytes;
    if (c->fault && c->fault->code) return kernels_finish(k, c, e);
    if (k->backend->memory_use) k->backend->memory_use(c, &m);
    if (m.region)
        FAIL(
            e, TARE_E_NOMEM,
            "no memory for %s: %.1f MiB requested; the planned region of %.1f MiB has %.1f MiB free (largest block %.1f MiB), the device %.1f MiB outside it",
            what, asked, mib * (double)m.region, mib * (double)(m.region - m.held), mib * (double)m.largest,
            mib * (double)m.device);
    if (k->backend->memory_use)
        FAIL(e, TARE_E_NOMEM, "no memory for %s: %.1f MiB requested, the device has %.1f MiB free", what, asked,
             mib * (double)m.device);
    FAIL(e, TARE_E_NOMEM, "no memory for %s: %.1f MiB", what, asked);
}
