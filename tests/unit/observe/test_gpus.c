/* Rows of `tare doctor` about GPUs, from trees of /proc, /sys and /dev made here. */
#include "check.h"

#include "base/fs.h"
#include "observe/gpus.h"

static char root[FS_PATH], rows[8000];

static void keep_row(void *ctx, enum gpus_state state, const char *what, const char *text)
{
    static const char *const states[] = {"ok", "no", "bad"};
    const size_t n = strlen(rows);
    (void)ctx;
    snprintf(rows + n, sizeof rows - n, "%s %s %s\n", states[state], what, text);
}

static void put(const char *text, const char *path, ...)
{
    char name[200], whole[FS_PATH + 300], folder[FS_PATH];
    struct err e = {0};
    va_list args;
    va_start(args, path);
    vsnprintf(name, sizeof name, path, args);
    va_end(args);
    snprintf(whole, sizeof whole, "%s/%s", root, name);
    fs_dirname(folder, whole);
    if (fs_mkdirs(folder, &e) || fs_write_atomic(whole, text, (int64_t)strlen(text), &e)) fail_msg("%s", e.message);
}

/* Makes a machine of n GPUs; the files of dev are those that a container may open. */
static void make_machine(const char *driver, int n, int opened, const char *lanes, const char *iommu)
{
    char line[200], information[200];
    struct err e = {0};
    if (*root) assert_int_equal(fs_remove_tree(root, &e), TARE_OK);
    assert_int_equal(fs_temporary(root, "gpus", &e), TARE_OK);
    assert_non_null(mkdtemp(root));
    snprintf(line, sizeof line, "NVRM version: NVIDIA UNIX Open Kernel Module for x86_64  %s  Release Build\nGCC version: 13.2\n",
             driver);
    put(line, "proc/driver/nvidia/version");
    for (int i = 0; i < n; i++) {
        snprintf(information, sizeof information, "Model: \t\t NVIDIA H100 80GB HBM3\nIRQ:   \t\t 18\nDevice Minor: \t %d\n", i);
        put(information, "proc/driver/nvidia/gpus/0000:%d0:00.0/information", i + 1);
        put(i < n / 2 ? "0\n" : "1\n", "sys/bus/pci/devices/0000:%d0:00.0/numa_node", i + 1);
        put(lanes, "sys/bus/pci/devices/0000:%d0:00.0/current_link_width", i + 1);
        put("16\n", "sys/bus/pci/devices/0000:%d0:00.0/max_link_width", i + 1);
        put(iommu, "sys/bus/pci/devices/0000:%d0:00.0/iommu_group/type", i + 1);
        if (i < opened) put("", "dev/nvidia%d", i);
    }
    put("", "dev/shm/file");
}

static void report(bool cuda, int64_t ranks)
{
    const struct gpus_wanted wanted = {.root = root, .cuda = cuda, .ranks = ranks};
    rows[0] = 0;
    gpus_report(&wanted, keep_row, NULL);
}

static void expect(const char *text)
{
    if (!strstr(rows, text)) fail_msg("no row '%s' among:\n%s", text, rows);
}

static void reject(const char *text)
{
    if (strstr(rows, text)) fail_msg("unexpected '%s' among:\n%s", text, rows);
}

static int clear(void **state)
{
    static const char *const names[] = {"CUDA_VISIBLE_DEVICES", "TARE_CUDA_GRAPH", "TARE_CUDA_CHAIN",
                                        "TARE_CUDA_STREAM",     "TARE_CUDA_WGMMA", "NCCL_DEBUG"};
    (void)state;
    for (size_t i = 0; i < sizeof names / sizeof *names; i++) unsetenv(names[i]);
    return 0;
}

static int remove_machine(void **state)
{
    struct err e = {0};
    (void)state;
    return *root ? fs_remove_tree(root, &e) : 0;
}

static void test_sound_machine(void **state)
{
    (void)state;
    make_machine("580.65.06", 2, 2, "16\n", "identity\n");
    put("", "proc/driver/nvidia-nvswitch/devices/0000:07:00.0/info");
    report(true, 2);
    expect("ok driver 580.65.06, open kernel module\n");
    expect("ok gpu NVIDIA H100 80GB HBM3 at 0000:10:00.0, NUMA node 0, PCIe x16\n"
           "ok gpu NVIDIA H100 80GB HBM3 at 0000:20:00.0, NUMA node 1, PCIe x16\n");
    expect("ok visible 2 of 2 GPUs\n");
    expect("ok topology 1 NVSwitches\n");
    expect(" shm /dev/shm has ");
    reject("bad ");
    report(true, 1);
    reject(" shm ");
}

static void test_faults_of_machine(void **state)
{
    (void)state;
    make_machine("535.104.05", 4, 3, "8\n", "DMA-FQ\n");
    report(true, 4);
    expect("no driver 535.104.05; CUDA 13 needs 580 or newer");
    expect("cuda-compat-13-0");
    expect("PCIe x8 of x16: fewer lanes than the GPU has");
    expect("no gpu NVIDIA H100 80GB HBM3 at 0000:40:00.0 cannot be opened: /dev/nvidia3: No such file or directory\n");
    expect("no visible 3 GPUs for dist.ranks = 4;");
    expect("an IOMMU translates the addresses of 4 GPUs");
    setenv("CUDA_VISIBLE_DEVICES", "", 1);
    report(true, 4);
    expect("bad visible no GPU of 3 (CUDA_VISIBLE_DEVICES=)\n");
    report(false, 4);
    expect("no visible no GPU of 3 (CUDA_VISIBLE_DEVICES=)\n");
}

static void test_devices_without_list(void **state)
{
    (void)state;
    make_machine("580.65.06", 0, 0, "", "");
    put("", "dev/nvidia0");
    put("", "dev/nvidia5");
    report(true, 2);
    expect("ok visible 2 of 2 GPUs\n");
}

static void test_machine_without_driver(void **state)
{
    struct err e = {0};
    (void)state;
    make_machine("580.65.06", 0, 0, "", "");
    char path[FS_PATH + 50];
    snprintf(path, sizeof path, "%s/proc", root);
    assert_int_equal(fs_remove_tree(path, &e), TARE_OK);
    report(false, 8);
    assert_string_equal(rows, "");
    report(true, 8);
    expect("ok switch TARE_CUDA_GRAPH not set: CUDA graphs\n");
    reject(" visible ");
}

static void test_switches(void **state)
{
    (void)state;
    make_machine("580.65.06", 1, 1, "16\n", "identity\n");
    setenv("TARE_CUDA_GRAPH", "0", 1);
    setenv("TARE_CUDA_CHAIN", "1", 1);
    setenv("TARE_CUDA_STREAM", "off", 1);
    setenv("TARE_CUDA_WGMMA", "1", 1);
    setenv("NCCL_DEBUG", "INFO", 1);
    report(false, 1);
    expect("ok switch TARE_CUDA_GRAPH 0: tokens are decoded without CUDA graphs\n");
    expect("ok switch TARE_CUDA_CHAIN 1: dependent launches on Hopper and newer\n");
    expect("no switch TARE_CUDA_STREAM=off has no effect (only 0 has): own kernel for at most 32 rows\n");
    expect("ok switch TARE_CUDA_WGMMA 1: wgmma with batch_invariant, after its check\n");
    expect("ok variable NCCL_DEBUG=INFO\n");
}

static void test_visible_devices(void **state)
{
    static const struct {
        const char *visible;
        int64_t n;
    } cases[] = {{NULL, 8},     {"", 0},  {"0", 1},   {"3,1", 2}, {"0,1,-1,2", 2}, {"8", 0}, {"0,8,1", 1}, {"GPU-5f,GPU-6a", 2},
                 {"MIG-5f", 1}, {"x", 0}, {"1x,2", 0}};
    (void)state;
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++)
        if (gpus_visible(cases[i].visible, 8) != cases[i].n)
            fail_msg("'%s': %lld", cases[i].visible ? cases[i].visible : "(none)", (long long)gpus_visible(cases[i].visible, 8));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup(test_sound_machine, clear),
        cmocka_unit_test_setup(test_faults_of_machine, clear),
        cmocka_unit_test_setup(test_devices_without_list, clear),
        cmocka_unit_test_setup(test_machine_without_driver, clear),
        cmocka_unit_test_setup(test_switches, clear),
        cmocka_unit_test_setup(test_visible_devices, clear),
    };
    return cmocka_run_group_tests(tests, NULL, remove_machine);
}
