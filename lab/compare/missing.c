/* Records that only one of the runs has, and records that a run has lost: chain.jsonl lists them,
 * but the files are missing. */
#include "checkpoint/checkpoint.h"
#include "lab/compare/finder.h"
#include "observe/written.h"

#include <stdlib.h>
#include <string.h>

/* Folders whose files a run keeps, with their nouns. */
static const struct {
    const char *folder, *noun;
} KEPT[] = {{"rollouts/", "rollouts"}, {"estimator/", "the estimator's state"}};
enum { N_KEPT = sizeof KEPT / sizeof *KEPT };

struct lost {
    struct finder *f;
    int run; /* 0 or 1 */
    int64_t last;
};

static bool in_range(const struct lost *l, int64_t step)
{
    return step >= l->f->o->first && step <= l->last;
}

/* Returns the step of a record "FOLDER/step-N..."; -1: not such a name. */
static int64_t step_of_record(const char *name)
{
    const char *at = strstr(name, "/step-");
    return at ? strtoll(at + 6, NULL, 10) : -1;
}

static tare_status find_file(const struct lost *l, const char *name, bool *there, struct err *e)
{
    char path[FS_PATH];
    struct err why = {0};
    TRY(fs_join(path, l->f->o->run[l->run], name, e));
    /* a folder that cannot be read has been reported */
    if (fs_there(path, there, &why)) *there = true;
    return TARE_OK;
}

static tare_status add_lost(const struct lost *l, const char *noun, int64_t n, int64_t first, struct err *e)
{
    char text[FS_PATH + 200];
    if (!n) return TARE_OK;
    snprintf(text, sizeof text, "%.3800s: %s of %lld steps, the first of them step %lld: missing, but listed in chain.jsonl",
             l->f->o->run[l->run], noun, (long long)n, (long long)first);
    return compare_add_text(l->f, "damaged", text, e);
}

static tare_status find_lost_files(const struct lost *l, const struct written *w, struct err *e)
{
    int64_t n[N_KEPT] = {0}, first[N_KEPT], newest = -1;
    const char *name;
    json_t *sum;
    json_object_foreach(w->sums, name, sum)
    {
        const int64_t step = step_of_record(name);
        if (!strncmp(name, "checkpoints/", 12) && step > newest) newest = step;
        for (int i = 0; i < N_KEPT; i++) {
            bool there = true;
            if (strncmp(name, KEPT[i].folder, strlen(KEPT[i].folder)) || !in_range(l, step)) continue;
            TRY(find_file(l, name, &there, e));
            if (!there && (!n[i]++ || step < first[i])) first[i] = step;
        }
    }
    for (int i = 0; i < N_KEPT; i++) TRY(add_lost(l, KEPT[i].noun, n[i], first[i], e));
    if (newest < 0 || !in_range(l, newest)) return TARE_OK;
    /* older ones may have been pruned (checkpoint.keep), the newest never is */
    char folder[FS_PATH], text[FS_PATH + 100];
    TRY(checkpoint_path(l->f->o->run[l->run], newest, folder, e));
    if (fs_is_dir(folder)) return TARE_OK;
    snprintf(text, sizeof text, "%.3800s: missing, but listed in chain.jsonl as the newest checkpoint", folder);
    return compare_add_text(l->f, "damaged", text, e);
}

/* Lines of metrics.jsonl. One after the last record is a difference in length, unless all are
 * gone. */
static tare_status find_lost_lines(const struct lost *l, const struct written *w, struct err *e)
{
    const struct records *r = &l->f->records[l->run];
    int64_t n = 0, first = -1;
    const char *name;
    json_t *sum;
    json_object_foreach(w->lines, name, sum)
    {
        const int64_t step = strtoll(name, NULL, 10);
        if ((r->n && !in_range(l, step)) || compare_row_of_step(r, step)) continue;
        if (!n++ || step < first) first = step;
    }
    return add_lost(l, "metrics.jsonl, the lines", n, first, e);
}

tare_status compare_missing(struct finder *f, int64_t last, struct err *e)
{
    for (int k = 0; k < 2; k++) {
        const struct lost l = {.f = f, .run = k, .last = last};
        OWNED(written_close) struct written w = {0};
        TRY(written_read(f->o->run[k], &w, e));
        TRY(find_lost_files(&l, &w, e));
        TRY(find_lost_lines(&l, &w, e));
    }
    return TARE_OK;
}

tare_status compare_count_only(struct finder *f, int run, const char *what, struct err *e)
{
    json_t *all = json_object_get(f->result, run ? "only_b" : "only_a");
    if (json_object_set_new(all, what, json_integer(json_int_or(all, what, 0) + 1))) FAIL(e, TARE_E_NOMEM, "no memory to count");
    return TARE_OK;
}
