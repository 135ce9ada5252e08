/* Limits of control groups, from files as Linux, docker and Kubernetes write them. */
#include "check.h"
#include "folder.h"

#include "base/fs.h"
#include "base/limits.h"

#include <string.h>

static const char *ROOT;

static int make_root(void **state)
{
    (void)state;
    return !(ROOT = make_test_folder("tare-limits"));
}

static int remove_root(void **state)
{
    (void)state;
    struct err e;
    return fs_remove_tree(ROOT, &e) != TARE_OK;
}

static void write_file_under(const char *name, const char *text)
{
    char path[FS_PATH], folder[FS_PATH];
    struct err e = {0};
    snprintf(path, sizeof path, "%s/%s", ROOT, name);
    fs_dirname(folder, path);
    assert_ok(fs_mkdirs(folder, &e), &e);
    assert_ok(fs_write_atomic(path, text, (int64_t)strlen(text), &e), &e);
}

static void unknown_quota__is_no_limit(void **state)
{
    (void)state;
    assert_true(limits_quota_at(ROOT) == 0);
    assert_int_equal(limits_memory_at(ROOT).most, 0);
    write_file_under("proc/self/cgroup", "0::/user.slice\n");
    write_file_under("sys/fs/cgroup/user.slice/cpu.max", "max 100000\n");
    write_file_under("sys/fs/cgroup/user.slice/memory.max", "max\n");
    write_file_under("sys/fs/cgroup/user.slice/memory.current", "1000\n");
    assert_true(limits_quota_at(ROOT) == 0);
    assert_int_equal(limits_memory_at(ROOT).most, 0);
    write_file_under("proc/self/cgroup", "not a line of that file\n\n:::\n0\n");
    assert_true(limits_quota_at(ROOT) == 0);
    write_file_under("proc/self/cgroup", "0::/user.slice\n");
    write_file_under("sys/fs/cgroup/user.slice/cpu.max", "");
    write_file_under("sys/fs/cgroup/user.slice/memory.max", "many\n");
    assert_true(limits_quota_at(ROOT) == 0);
    assert_int_equal(limits_memory_at(ROOT).most, 0);
}

/* cgroup 2: a quota may be set at any level; the smallest applies. */
static void smallest_limit__on_the_path_applies(void **state)
{
    (void)state;
    write_file_under("proc/self/cgroup", "0::/machine.slice/box/job\n");
    write_file_under("sys/fs/cgroup/machine.slice/box/job/cpu.max", "800000 100000\n");
    write_file_under("sys/fs/cgroup/machine.slice/box/cpu.max", "250000 100000\n");
    write_file_under("sys/fs/cgroup/machine.slice/cpu.max", "max 100000\n");
    assert_true(limits_quota_at(ROOT) == 2.5);
    write_file_under("sys/fs/cgroup/machine.slice/box/memory.max", "4000000000\n");
    write_file_under("sys/fs/cgroup/machine.slice/box/memory.current", "3000000000\n");
    write_file_under("sys/fs/cgroup/machine.slice/box/memory.stat", "anon 1900000000\ninactive_file 1000000000\nfile 1100000000\n");
    write_file_under("sys/fs/cgroup/machine.slice/memory.max", "9000000000\n");
    write_file_under("sys/fs/cgroup/machine.slice/memory.current", "8500000000\n");
    assert_int_equal(limits_memory_at(ROOT).most, 4000000000);
    /* of the slice; the container would have 2e9 available */
    assert_int_equal(limits_memory_at(ROOT).left, 500000000);
}

/* cgroup 1 inside a container: the path is the host's, and the mounted group is the container's. */
static void path_of_the_host__falls_back_to_the_root(void **state)
{
    (void)state;
    write_file_under("proc/self/cgroup", "4:memory:/docker/0123\n3:cpu,cpuacct:/docker/0123\n0::/\n");
    write_file_under("sys/fs/cgroup/cpu/cpu.cfs_quota_us", "150000\n");
    write_file_under("sys/fs/cgroup/cpu/cpu.cfs_period_us", "100000\n");
    write_file_under("sys/fs/cgroup/memory/memory.limit_in_bytes", "2147483648\n");
    write_file_under("sys/fs/cgroup/memory/memory.usage_in_bytes", "147483648\n");
    assert_true(limits_quota_at(ROOT) == 1.5);
    assert_int_equal(limits_memory_at(ROOT).left, 2000000000);
    write_file_under("sys/fs/cgroup/cpu/cpu.cfs_quota_us", "-1\n");
    write_file_under("sys/fs/cgroup/memory/memory.limit_in_bytes", "9223372036854771712\n");
    assert_true(limits_quota_at(ROOT) == 0);
    assert_int_equal(limits_memory_at(ROOT).most, 0);
}

static void cores__are_at_least_one(void **state)
{
    (void)state;
    assert_true(limits_cores() >= 1);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(unknown_quota__is_no_limit, make_root, remove_root),
        cmocka_unit_test_setup_teardown(smallest_limit__on_the_path_applies, make_root, remove_root),
        cmocka_unit_test_setup_teardown(path_of_the_host__falls_back_to_the_root, make_root, remove_root),
        cmocka_unit_test(cores__are_at_least_one),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
