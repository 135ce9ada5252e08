/* Computes rewards by cluster from a run's rollout dumps. */
#include "base/arena.h"
#include "base/fs.h"
#include "cluster/inspect.h"

#include <dirent.h>
#include <errno.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

struct tally {
    int64_t n;
    double sum, squares;
    int64_t half[2]; /* rollouts in the first and second half of the files */
};

struct dump {
    struct tally *clusters; /* [n_clusters] at cluster + 1; the first is "none" */
    int64_t n_clusters, capacity;
    int half;
};

static tare_status add_rollout(void *ctx, const json_t *o, const char *where, struct err *e)
{
    struct dump *d = ctx;
    double reward;
    int64_t cluster;
    TRY(json_get_double(o, "reward", where, &reward, e));
    TRY(json_get_int(o, "cluster", where, &cluster, e));
    if (cluster < -1 || cluster > 100000000) FAIL(e, TARE_E_RANGE, "%s: invalid cluster %lld", where, (long long)cluster);
    TRY(mem_grow((void **)&d->clusters, &d->capacity, cluster + 2, (int64_t)sizeof *d->clusters, e));
    if (d->n_clusters < cluster + 2) d->n_clusters = cluster + 2;
    struct tally *t = &d->clusters[cluster + 1];
    t->n++;
    t->sum += reward;
    t->squares += reward * reward;
    t->half[d->half]++;
    return TARE_OK;
}

static tare_status take_file(struct dump *d, const char *path, struct err *e)
{
    OWNED(fs_close_at) FILE *f = fopen(path, "rb");
    if (!f) FAIL(e, errno == ENOENT ? TARE_E_NOT_FOUND : TARE_E_IO, "%s: %s", path, strerror(errno));
    return json_each_line(f, path, add_rollout, d, e);
}

static int is_dump(const struct dirent *entry)
{
    return str_ends_with(entry->d_name, ".jsonl");
}

static tare_status take_folder(struct dump *d, const char *path, struct err *e)
{
    OWNED(fs_list_free) struct fs_list files = {0};
    TRY(fs_list(path, is_dump, &files, e));
    if (!files.n) FAIL(e, TARE_E_NOT_FOUND, "%s: has no .jsonl file; name a run's folder of rollouts", path);
    for (int i = 0; i < files.n; i++) {
        char file[FS_PATH];
        d->half = i >= (files.n + 1) / 2;
        TRY(fs_join(file, path, files.entry[i]->d_name, e));
        TRY(take_file(d, file, e));
    }
    return TARE_OK;
}

static tare_status describe_dump(const struct dump *d, json_t **out, struct err *e)
{
    struct tally all = {0};
    for (int64_t k = 0; k < d->n_clusters; k++) {
        all.n += d->clusters[k].n;
        all.sum += d->clusters[k].sum;
        for (int h = 0; h < 2; h++) all.half[h] += d->clusters[k].half[h];
    }
    if (!all.n) FAIL(e, TARE_E_INVALID, "the rollout dump must have lines");
    const double mean = all.sum / (double)all.n;
    double total = 0, between = 0, drift = 0;
    json_t *list = json_array();
    for (int64_t k = 0; k < d->n_clusters; k++) {
        const struct tally *t = &d->clusters[k];
        if (!t->n) continue;
        const double m = t->sum / (double)t->n;
        total += t->squares - 2 * mean * t->sum + (double)t->n * mean * mean;
        between += (double)t->n * (m - mean) * (m - mean);
        if (all.half[0] && all.half[1])
            drift += fabs((double)t->half[0] / (double)all.half[0] - (double)t->half[1] / (double)all.half[1]) / 2;
        json_array_append_new(list, json_pack("{s:I, s:I, s:f, s:f}", "cluster", (json_int_t)k - 1, "rollouts", (json_int_t)t->n,
                                              "reward_mean", m, "reward_variance", fmax(0, t->squares / (double)t->n - m * m)));
    }
    *out = json_pack("{s:I, s:f, s:f, s:o, s:o, s:o}", "rollouts", (json_int_t)all.n, "reward_mean", mean, "reward_variance",
                     fmax(0, total) / (double)all.n, "explained", total > 0 ? json_real(between / total) : json_null(), "drift",
                     all.half[0] && all.half[1] ? json_real(drift) : json_null(), "clusters", list);
    if (!*out) FAIL(e, TARE_E_NOMEM, "no memory for the clusters of a rollout dump");
    return TARE_OK;
}

tare_status inspect_rollouts(const char *path, json_t **out, struct err *e)
{
    struct dump d = {0};
    tare_status status = fs_is_dir(path) ? take_folder(&d, path, e) : take_file(&d, path, e);
    if (!status) status = describe_dump(&d, out, e);
    mem_free(d.clusters);
    return status;
}
