#include "observe/written.h"

#include "base/log.h"
#include "observe/run_lock.h"

#include <stdlib.h>
#include <string.h>

/* Returns true for a record "FOLDER/step-N..." of a step after this one. */
static bool is_after(const char *name, int64_t step)
{
    const char *at = strstr(name, "/step-");
    return at && strtoll(at + 6, NULL, 10) > step;
}

/* Forgets records after the step: a run that goes back writes them again. */
static void forget_after(struct written *w, int64_t step)
{
    const char *name;
    json_t *sum;
    void *next;
    json_object_foreach_safe(w->sums, next, name, sum)
    {
        if (is_after(name, step)) json_object_del(w->sums, name);
    }
    json_object_foreach_safe(w->lines, next, name, sum)
    {
        if (strtoll(name, NULL, 10) > step) json_object_del(w->lines, name);
    }
}

static void note_difference(struct written *w, const char *name, const char *what)
{
    if (!w->changed++) snprintf(w->first, sizeof w->first, "%.3800s/%.100s: %.100s", w->run, name, what);
}

static tare_status read_link(void *ctx, const struct chain_link *l, struct err *e)
{
    struct written *w = ctx;
    char step[32], where[64];
    const char *name;
    json_t *sum;
    snprintf(step, sizeof step, "%lld", (long long)l->step);
    snprintf(where, sizeof where, "chain.jsonl:%lld", (long long)l->line);
    if (!l->follows) note_difference(w, where, "its checksum does not follow from the line before");
    if (!l->follows) return TARE_OK; /* its checksums are not trusted */
    if (!strcmp(l->kind, CHAIN_PROCESS) || !strcmp(l->kind, CHAIN_BACK)) forget_after(w, l->step);
    json_object_foreach((json_t *)(uintptr_t)l->files, name, sum)
    {
        const bool line = !strcmp(name, "metrics.jsonl");
        if (json_object_set(line ? w->lines : w->sums, line ? step : name, sum)) FAIL(e, TARE_E_NOMEM, "%s: out of memory", w->run);
    }
    return TARE_OK;
}

tare_status written_read(const char *run_dir, struct written *out, struct err *e)
{
    struct err why = {0};
    int64_t half;
    *out = (struct written){.sums = json_object(), .lines = json_object()};
    TRY(fs_join(out->run, "", run_dir, e));
    if (!out->sums || !out->lines) FAIL(e, TARE_E_NOMEM, "%s: out of memory", run_dir);
    const tare_status status = chain_each(run_dir, read_link, out, &half, &why);
    if (!status || status == TARE_E_NOT_FOUND) return TARE_OK;
    if (status != TARE_E_CORRUPT) FAIL(e, status, "%s", why.message);
    if (!out->changed++) snprintf(out->first, sizeof out->first, "%s", why.message);
    return TARE_OK;
}

tare_status written_open(const char *run_dir, struct written *out, struct err *e)
{
    if (!run_lock_is_held(run_dir)) return written_read(run_dir, out, e);
    *out = (struct written){0};
    return fs_join(out->run, "", run_dir, e);
}

void written_close(struct written *w)
{
    json_decref(w->sums);
    json_decref(w->lines);
    *w = (struct written){0};
}

static bool has_checksum(const char *want, const void *data, int64_t n)
{
    char sum[CHAIN_SUM];
    if (!want) return true;
    chain_sum(data, n, sum);
    return !strcmp(sum, want);
}

bool written_same(const struct written *w, const char *name, const void *data, int64_t n)
{
    return has_checksum(json_text_or(w->sums, name, NULL), data, n);
}

static const char CHANGED[] = "is not what the run wrote (its checksum differs from the one in chain.jsonl)";

tare_status written_file(struct written *w, const char *name, struct err *e)
{
    char path[FS_PATH];
    OWNED(fs_unmap) struct fs_map m = {0};
    if (!json_object_get(w->sums, name)) return TARE_OK;
    TRY(fs_join(path, w->run, name, e));
    const tare_status status = fs_exists(path) ? fs_map(path, &m, e) : TARE_E_NOT_FOUND;
    if (status == TARE_E_NOT_FOUND) return TARE_OK;
    TRY(status);
    if (!written_same(w, name, m.data, m.size)) note_difference(w, name, CHANGED);
    return TARE_OK;
}

/* Parses the step of a line of metrics.jsonl; -1: not such a line. */
static int64_t step_of(const char *line, int64_t n)
{
    static const char HEAD[] = "{\"step\":";
    return n > (int64_t)sizeof HEAD && !memcmp(line, HEAD, sizeof HEAD - 1) ? strtoll(line + sizeof HEAD - 1, NULL, 10) : -1;
}

tare_status written_metrics(struct written *w, int64_t last, struct err *e)
{
    char path[FS_PATH], where[64], step[32];
    OWNED(fs_unmap) struct fs_map m = {0};
    TRY(fs_join(path, w->run, "metrics.jsonl", e));
    if (!json_object_size(w->lines) || !fs_exists(path)) return TARE_OK;
    TRY(fs_map(path, &m, e));
    const char *at = (const char *)m.data, *const end = at + m.size;
    for (int64_t number = 1; at < end; number++) {
        const char *newline = memchr(at, '\n', (size_t)(end - at));
        if (!newline) break;
        const int64_t at_step = step_of(at, newline - at);
        if (at_step > last) break;
        snprintf(where, sizeof where, "metrics.jsonl:%lld", (long long)number);
        snprintf(step, sizeof step, "%lld", (long long)at_step);
        if (at_step < 0 || !has_checksum(json_text_or(w->lines, step, NULL), at, newline + 1 - at))
            note_difference(w, where, CHANGED);
        at = newline + 1;
    }
    return TARE_OK;
}

void written_report(const struct written *w)
{
    char more[80] = "", word[STR_SHELL];
    if (w->changed > 1) snprintf(more, sizeof more, ", and so are %lld others that were read", (long long)w->changed - 1);
    if (w->changed)
        log_warn("%s%s; results computed from it may be wrong; `tare reproduce %s` checks all files", w->first, more,
                 str_shell(word, w->run));
}

tare_status written_report_metrics(const char *run_dir, struct err *e)
{
    OWNED(written_close) struct written w = {0};
    TRY(written_open(run_dir, &w, e));
    TRY(written_metrics(&w, INT64_MAX, e));
    written_report(&w);
    return TARE_OK;
}
