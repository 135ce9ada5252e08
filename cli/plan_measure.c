#include "cli/plan_measure.h"

#include "base/clock.h"
#include "base/fs.h"
#include "cli/bench.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#define PIECE ((int64_t)64 << 20)

static tare_status measure_cores(const struct config *c, struct plan_machine *m, struct err *e)
{
    const struct kernels *k;
    struct pool *pool;
    TRY(kernels_cpu(config_kernels(c), &k, e));
    TRY(pool_new((int)c->run.threads, &pool, e));
    m->flops = bench_peak_flops(pool, k->name) * 1e9;
    m->bandwidth = bench_peak_read(pool) * 1e9;
    pool_free(pool);
    return TARE_OK;
}

static void measure_copy(const char *from, char *to, struct plan_machine *m)
{
    double best = 1e30;
    for (int i = 0; i < 5; i++) {
        const double start = clock_seconds();
        memcpy(to, from, (size_t)PIECE);
        const double took = clock_seconds() - start;
        best = took < best ? took : best;
    }
    m->link = (double)PIECE / best;
}

/* The nearest folder above run.dir that is there. */
static void existing_folder(const char *path, char folder[FS_PATH])
{
    char next[FS_PATH];
    snprintf(folder, FS_PATH, "%s", path);
    while (!fs_is_dir(folder) && strcmp(folder, ".") && strcmp(folder, "/")) {
        fs_dirname(next, folder);
        memcpy(folder, next, FS_PATH);
    }
}

static tare_status measure_disk(const char *run_dir, const char *data, struct plan_machine *m, struct err *e)
{
    char folder[FS_PATH], path[FS_PATH + 64];
    existing_folder(run_dir, folder);
    snprintf(path, sizeof path, "%s/.tare-plan-%ld", folder, (long)getpid());
    const int fd = open(path, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0600);
    if (fd < 0) FAIL(e, TARE_E_IO, "%s: %s; give plan.disk in place of --measure", path, strerror(errno));
    const double start = clock_seconds();
    int64_t done = 0;
    while (done < PIECE) {
        const ssize_t n = write(fd, data + done, (size_t)(PIECE - done));
        if (n < 0 && errno == EINTR) continue;
        if (n <= 0) break;
        done += n;
    }
    const int bad = done < PIECE || fsync(fd) ? errno : 0;
    const double took = clock_seconds() - start;
    close(fd);
    unlink(path);
    if (bad) FAIL(e, TARE_E_IO, "%s: %s", path, strerror(bad));
    m->disk = (double)PIECE / took;
    return TARE_OK;
}

tare_status plan_measure(const struct config *c, struct plan_machine *m, struct err *e)
{
    OWNED(mem_free_at) void *data = NULL, *other = NULL;
    TRY(measure_cores(c, m, e));
    TRY(mem_new(PIECE, &data, e));
    TRY(mem_new(PIECE, &other, e));
    memset(data, 0x5a, (size_t)PIECE);
    measure_copy(data, other, m);
    return measure_disk(c->run.dir, data, m, e);
}
