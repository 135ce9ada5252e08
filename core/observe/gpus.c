#define _GNU_SOURCE
#include "observe/gpus.h"

#include "base/fs.h"

#include <ctype.h>
#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/statvfs.h>
#include <unistd.h>

enum {
    DRIVER = 580 /* the first driver of CUDA 13 */
};

struct report {
    const struct gpus_wanted *wanted;
    gpus_row row;
    void *ctx;
    int64_t usable;   /* GPUs whose device file can be opened */
    int64_t remapped; /* GPUs behind an IOMMU that translates addresses */
};

static void add_row(const struct report *r, enum gpus_state state, const char *what, const char *format, ...) ERR_PRINTF(4, 5);

static void add_row(const struct report *r, enum gpus_state state, const char *what, const char *format, ...)
{
    char text[1000];
    va_list args;
    va_start(args, format);
    vsnprintf(text, sizeof text, format, args);
    va_end(args);
    r->row(r->ctx, state, what, text);
}

/* Reads the rest of the first line that begins with key, without spaces around it. Files of /proc
 * and /sys report no size. */
static bool read_field(const char *root, const char *path, const char *key, char *out, size_t capacity)
{
    char name[FS_PATH], line[400];
    bool found = false;
    snprintf(name, sizeof name, "%s%s", root, path);
    FILE *f = fopen(name, "re");
    if (!f) return false;
    while (!found && fgets(line, sizeof line, f)) {
        if (strncmp(line, key, strlen(key)) != 0) continue;
        char *text = line + strlen(key);
        text += strspn(text, " \t");
        size_t n = strlen(text);
        while (n && isspace((unsigned char)text[n - 1])) n--;
        snprintf(out, capacity, "%.*s", (int)n, text);
        found = true;
    }
    fs_close_at(&f);
    return found;
}

/* The driver's version is the first word of the line that looks like 580.65.06. */
static void report_driver(const struct report *r, char *line)
{
    const bool open = strstr(line, "Open Kernel Module") != NULL;
    char *rest, *end;
    for (char *word = strtok_r(line, " ", &rest); word; word = strtok_r(NULL, " ", &rest)) {
        const long major = strtol(word, &end, 10);
        if (end == word || *end != '.') continue;
        if (major < DRIVER)
            add_row(
                r, GPUS_NO, "driver",
                "%s; CUDA 13 needs %d or newer: update it, or on data-centre GPUs install cuda-compat-13-0 and put its folder into LD_LIBRARY_PATH",
                word, DRIVER);
        else
            add_row(r, GPUS_OK, "driver", "%s%s", word, open ? ", open kernel module" : "");
        return;
    }
    add_row(r, GPUS_NO, "driver", "/proc/driver/nvidia/version has no version number");
}

static bool read_pci(const struct report *r, const char *bus, const char *file, char *out, size_t capacity)
{
    char path[FS_PATH];
    snprintf(path, sizeof path, "/sys/bus/pci/devices/%s/%s", bus, file);
    return read_field(r->wanted->root, path, "", out, capacity);
}

/* Describes one GPU: model, bus, NUMA node, PCIe lanes. */
static void report_gpu(struct report *r, const char *bus)
{
    char path[FS_PATH], model[100] = "unknown model", minor[20] = "", node[20] = "?", lanes[20] = "?", most[20] = "",
                        iommu[20] = "";
    snprintf(path, sizeof path, "/proc/driver/nvidia/gpus/%s/information", bus);
    read_field(r->wanted->root, path, "Model:", model, sizeof model);
    read_field(r->wanted->root, path, "Device Minor:", minor, sizeof minor);
    read_pci(r, bus, "numa_node", node, sizeof node);
    read_pci(r, bus, "current_link_width", lanes, sizeof lanes);
    read_pci(r, bus, "max_link_width", most, sizeof most);
    read_pci(r, bus, "iommu_group/type", iommu, sizeof iommu);
    r->remapped += strncmp(iommu, "DMA", 3) == 0;
    snprintf(path, sizeof path, "%s/dev/nvidia%s", r->wanted->root, minor);
    if (*minor && access(path, R_OK | W_OK)) {
        add_row(r, GPUS_NO, "gpu", "%s at %s cannot be opened: /dev/nvidia%s: %s", model, bus, minor, strerror(errno));
        return;
    }
    r->usable++;
    const bool narrow = *most && strtol(lanes, NULL, 10) < strtol(most, NULL, 10);
    add_row(r, narrow ? GPUS_NO : GPUS_OK, "gpu", "%s at %s, NUMA node %s, PCIe x%s%s%s%s", model, bus, node, lanes,
            narrow ? " of x" : "", narrow ? most : "", narrow ? ": fewer lanes than the GPU has" : "");
}

/* Visits the GPUs in the order of their bus addresses. A container may hide /proc/driver/nvidia/gpus;
 * the device files are counted then. */
static void report_gpus(struct report *r)
{
    char path[FS_PATH];
    struct fs_list l = {0};
    struct err e = {0};
    snprintf(path, sizeof path, "%s/proc/driver/nvidia/gpus", r->wanted->root);
    if (!fs_list(path, NULL, &l, &e))
        for (int i = 0; i < l.n; i++)
            if (l.entry[i]->d_name[0] != '.') report_gpu(r, l.entry[i]->d_name);
    const bool listed = l.n > 0;
    fs_list_free(&l);
    for (int i = 0; !listed && i < 64; i++) {
        snprintf(path, sizeof path, "%s/dev/nvidia%d", r->wanted->root, i);
        r->usable += access(path, R_OK | W_OK) == 0;
    }
}

int64_t gpus_visible(const char *visible, int64_t n)
{
    int64_t found = 0;
    if (!visible) return n;
    for (const char *p = visible; *p && found < n;) {
        char *end;
        const bool name = !strncmp(p, "GPU-", 4) || !strncmp(p, "MIG-", 4);
        const long index = strtol(p, &end, 10);
        if (name) end = (char *)p + strcspn(p, ",");
        if (!name && (end == p || index < 0 || index >= n || (*end && *end != ','))) break;
        found++;
        p = end + (*end == ',');
    }
    return found;
}

/* Compares the GPUs that this process may use with the ranks. Each rank takes the GPU of its number on the host. */
static void report_visible(const struct report *r)
{
    const char *visible = getenv("CUDA_VISIBLE_DEVICES");
    const int64_t n = gpus_visible(visible, r->usable), ranks = r->wanted->ranks;
    char limit[200] = "";
    if (visible) snprintf(limit, sizeof limit, " (CUDA_VISIBLE_DEVICES=%.150s)", visible);
    if (!n)
        add_row(r, r->wanted->cuda ? GPUS_BAD : GPUS_NO, "visible", "no GPU of %lld%s", (long long)r->usable, limit);
    else if (r->wanted->cuda && n < ranks)
        add_row(
            r, GPUS_NO, "visible",
            "%lld GPUs%s for dist.ranks = %lld; NCCL needs one for each rank of this host: give each process all GPUs (Slurm: --gpus-per-node, --gpu-bind=none), start the ranks on more hosts, or set dist.ranks=%lld",
            (long long)n, limit, (long long)ranks, (long long)n);
    else
        add_row(r, GPUS_OK, "visible", "%lld of %lld GPUs%s", (long long)n, (long long)r->usable, limit);
}

static int64_t count_names(const char *root, const char *folder)
{
    char path[FS_PATH];
    struct fs_list l = {0};
    struct err e = {0};
    int64_t n = 0;
    snprintf(path, sizeof path, "%s%s", root, folder);
    if (fs_list(path, NULL, &l, &e)) return 0;
    for (int i = 0; i < l.n; i++) n += l.entry[i]->d_name[0] != '.';
    fs_list_free(&l);
    return n;
}

/* Reports the connections between GPUs as far as they are known without NVML. */
static void report_topology(const struct report *r)
{
    if (r->usable < 2) return;
    const int64_t switches = count_names(r->wanted->root, "/proc/driver/nvidia-nvswitch/devices");
    if (switches)
        add_row(r, GPUS_OK, "topology", "%lld NVSwitches", (long long)switches);
    else if (r->remapped)
        add_row(
            r, GPUS_NO, "topology",
            "no NVSwitch visible, and an IOMMU translates the addresses of %lld GPUs: if NCCL hangs at the start, boot with iommu=pt or set NCCL_P2P_DISABLE=1 (slower); `nvidia-smi topo -m` shows NVLink",
            (long long)r->remapped);
    else
        add_row(r, GPUS_OK, "topology", "no NVSwitch visible; `nvidia-smi topo -m` shows NVLink and PCIe");
}

static void report_shm(const struct report *r)
{
    char path[FS_PATH];
    struct statvfs s;
    snprintf(path, sizeof path, "%s/dev/shm", r->wanted->root);
    if (statvfs(path, &s)) {
        add_row(r, GPUS_NO, "shm", "/dev/shm cannot be examined: %s; NCCL needs it between ranks of a host", strerror(errno));
        return;
    }
    const double size = (double)s.f_blocks * (double)s.f_frsize, left = (double)s.f_bavail * (double)s.f_frsize;
    add_row(r, left < 0x1p30 ? GPUS_NO : GPUS_OK, "shm", "/dev/shm has %.2f GiB, %.2f GiB free%s", size / 0x1p30, left / 0x1p30,
            left < 0x1p30 ? "; NCCL may need 1 GiB (docker: --shm-size=8g)" : "");
}

static const struct {
    const char *name, *effective, *otherwise;
    char value; /* the only one that has an effect */
} SWITCHES[] = {
    {"TARE_CUDA_GRAPH", "tokens are decoded without CUDA graphs", "CUDA graphs", '0'},
    {"TARE_CUDA_CHAIN", "no dependent launches", "dependent launches on Hopper and newer", '0'},
    {"TARE_CUDA_STREAM", "products of at most 32 rows by cuBLASLt", "own kernel for at most 32 rows", '0'},
    {"TARE_CUDA_WGMMA", "wgmma with batch_invariant, after its check", "no wgmma", '1'},
};

/* Reports each switch of the CUDA backend with its effect, and the variables of other libraries that are set. */
static void report_switches(const struct report *r)
{
    static const char *const others[] = {"TARE_CUDA",          "TARE_NCCL",        "CUDA_LAUNCH_BLOCKING", "CUDA_DEVICE_ORDER",
                                         "NCCL_DEBUG",         "NCCL_P2P_DISABLE", "NCCL_NVLS_ENABLE",     "NCCL_MAX_P2P_NCHANNELS",
                                         "NCCL_SOCKET_IFNAME", "NCCL_SHM_DISABLE", "NCCL_IB_DISABLE"};
    for (size_t i = 0; i < sizeof SWITCHES / sizeof *SWITCHES; i++) {
        const char *name = SWITCHES[i].name, *value = getenv(name);
        const bool set = value && value[0] == SWITCHES[i].value && !value[1];
        const bool plain = !value || set || (value[0] == '0' + '1' - SWITCHES[i].value && !value[1]);
        if (!plain)
            add_row(r, GPUS_NO, "switch", "%s=%.100s has no effect (only %c has): %s", name, value, SWITCHES[i].value,
                    SWITCHES[i].otherwise);
        else
            add_row(r, GPUS_OK, "switch", "%s %s: %s", name, value ? value : "not set",
                    set ? SWITCHES[i].effective : SWITCHES[i].otherwise);
    }
    for (size_t i = 0; i < sizeof others / sizeof *others; i++) {
        const char *value = getenv(others[i]);
        if (value) add_row(r, GPUS_OK, "variable", "%s=%.200s", others[i], value);
    }
}

void gpus_report(const struct gpus_wanted *wanted, gpus_row row, void *ctx)
{
    struct report r = {.wanted = wanted, .row = row, .ctx = ctx};
    char version[400];
    const bool driver = read_field(wanted->root, "/proc/driver/nvidia/version", "NVRM version:", version, sizeof version);
    if (!driver && !wanted->cuda) return;
    if (driver) {
        report_driver(&r, version);
        report_gpus(&r);
        report_visible(&r);
        report_topology(&r);
    }
    if (wanted->ranks > 1) report_shm(&r);
    report_switches(&r);
}
