#define _GNU_SOURCE
#include "lab/replay/replay.h"

#include "base/json.h"
#include "checkpoint/checkpoint.h"
#include "checkpoint/state.h"
#include "observe/chain.h"
#include "observe/run_data.h"
#include "observe/written.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

/* ---------------------------------------------------------------- finding */

/* Refuses a change of the training after the checkpoint. config.ini records the changes of a
 * resumed run as "# after step N (TIME): SECTION.KEY: BEFORE -> AFTER". */
static tare_status check_history(const char *run, const char *line, int64_t from, struct err *e)
{
    static const char HEAD[] = "# after step ";
    char name[400] = "", *key = name;
    if (strncmp(line, HEAD, sizeof HEAD - 1)) return TARE_OK;
    const int64_t step = strtoll(line + sizeof HEAD - 1, NULL, 10);
    const char *begin = strstr(line, "): ");
    if (!begin || step <= from) return TARE_OK;
    begin += 3;
    const char *end = strstr(begin, ": ");
    snprintf(name, sizeof name, "%.*s", (int)(end ? end - begin : 0), begin);
    key = strrchr(name, '.');
    if (key) *key++ = 0;
    if (key && !config_changes_training(name, key)) return TARE_OK;
    FAIL(
        e, TARE_E_CONFIG,
        "%s: changed its configuration after step %lld (%.300s), so later steps cannot be recomputed from the previous checkpoint, step %lld; choose a step after a checkpoint in %s/checkpoints with step >= %lld",
        run, (long long)step, begin, (long long)from, run, (long long)step);
}

static tare_status check_configuration(const struct prefix *p, struct err *e)
{
    char path[FS_PATH];
    OWNED(str_free) struct str text = {0};
    TRY(fs_join(path, p->run, "config.ini", e));
    TRY(fs_read_all(path, &text, e));
    char *rest = text.data;
    for (char *line; text.size && (line = strtok_r(rest, "\n", &rest));) TRY(check_history(p->run, line, p->step, e));
    return TARE_OK;
}

tare_status prefix_find(const char *run, int64_t step, struct prefix *out, struct err *e)
{
    int64_t found;
    *out = (struct prefix){.run = run};
    TRY(run_folder_check(run, e));
    TRY(checkpoint_before(run, step, out->checkpoint, &found, e));
    out->step = found < 0 ? 0 : found;
    return check_configuration(out, e);
}

/* ---------------------------------------------------------------- copying */

static const char HEAD[] = "{\"step\":"; /* of the lines of metrics.jsonl and chain.jsonl */

static tare_status check_step_line(const char *from, int64_t number, const char *line, int64_t n, struct err *e)
{
    char where[FS_PATH + 32];
    OWNED(json_decrefp) json_t *row = NULL;
    snprintf(where, sizeof where, "%s:%lld", from, (long long)number);
    if (strncmp(line, HEAD, strlen(HEAD))) FAIL(e, TARE_E_CORRUPT, "%s: must be the line of a step", where);
    return json_parse(line, n, where, &row, e);
}

/* Copies the lines of a record up to a step, without an incomplete line at its end. An error names
 * a damaged line in the run itself. */
static tare_status copy_lines(const char *from, const char *to, int64_t last, int64_t *found, struct err *e)
{
    OWNED(str_free) struct str text = {0};
    int64_t end = 0, number = 1;
    TRY(fs_read_all(from, &text, e));
    for (const char *at, *newline; end < text.size; number++, end = newline + 1 - text.data) {
        at = text.data + end;
        newline = memchr(at, '\n', (size_t)(text.size - end));
        if (!newline) break;
        const int64_t step = strncmp(at, HEAD, strlen(HEAD)) ? -1 : strtoll(at + strlen(HEAD), NULL, 10);
        if (step > last) break;
        TRY(check_step_line(from, number, at, newline - at, e));
        *found = step;
    }
    return fs_write_atomic(to, text.data, end, e);
}

struct step_files {
    const char *to;
    int64_t last;
};

/* Copies a file without syncing it; prefix_copy syncs all files together. */
static tare_status copy_plain(const char *from, const char *to, struct err *e)
{
    struct fs_map map;
    TRY(fs_map(from, &map, e));
    FILE *f = fopen(to, "wb");
    int bad = f ? 0 : errno;
    if (f && map.size && fwrite(map.data, 1, (size_t)map.size, f) != (size_t)map.size) bad = errno ? errno : EIO;
    if (f && fclose(f) && !bad) bad = errno;
    fs_unmap(&map);
    if (bad) FAIL(e, TARE_E_IO, "%s: cannot be written: %s; free some space or choose another folder", to, strerror(bad));
    return TARE_OK;
}

static tare_status copy_step_file(void *ctx, const char *folder, const char *name, struct err *e)
{
    const struct step_files *s = ctx;
    char from[FS_PATH], to[FS_PATH];
    const char *end = strrchr(name, '.');
    if (strncmp(name, "step-", 5) || !end || !strcmp(end, ".tmp") || strtoll(name + 5, NULL, 10) > s->last) return TARE_OK;
    TRY(fs_join(from, folder, name, e));
    TRY(fs_join(to, s->to, name, e));
    return copy_plain(from, to, e);
}

static tare_status copy_step_files(const struct prefix *p, const char *folder, const char *run, struct err *e)
{
    char from[FS_PATH], to[FS_PATH];
    TRY(fs_join(from, p->run, folder, e));
    TRY(fs_join(to, run, folder, e));
    if (!fs_is_dir(from)) return TARE_OK;
    TRY(fs_mkdirs(to, e));
    return fs_each(from, copy_step_file, &(struct step_files){to, p->step}, e);
}

/* Checks that rollout files and states which the chain names exist unchanged, so that the copy does
 * not silently lack or contain another one. */
struct present {
    const char *run;
    int64_t last;
    const struct written *written;
};
static tare_status check_record(const struct present *p, const char *path, const char *name, int64_t step, struct err *e)
{
    OWNED(fs_unmap) struct fs_map m = {0};
    TRY(fs_map(path, &m, e));
    if (written_same(p->written, name, m.data, m.size)) return TARE_OK;
    FAIL(e, TARE_E_CORRUPT,
         "%s: was changed (its checksum differs from chain.jsonl); restore the file, or fork at a step before %lld", path,
         (long long)step);
}

static tare_status check_present(void *ctx, const struct chain_link *l, struct err *e)
{
    const struct present *p = ctx;
    const char *name;
    json_t *sum;
    if (l->step > p->last) return TARE_OK;
    json_object_foreach((json_t *)(uintptr_t)l->files, name, sum)
    {
        char path[FS_PATH];
        (void)sum;
        if (strncmp(name, "rollouts/", 9) && strncmp(name, "estimator/", 10)) continue;
        TRY(fs_join(path, p->run, name, e));
        if (!fs_exists(path))
            FAIL(e, TARE_E_CORRUPT,
                 "%s: is missing, although the run wrote it (chain.jsonl:%lld); restore the file, or fork at a step before %lld",
                 path, (long long)l->line, (long long)l->step);
        TRY(check_record(p, path, name, l->step, e));
    }
    return TARE_OK;
}

/* A run without a chain has nothing to check. */
static tare_status check_step_files(const struct prefix *p, struct err *e)
{
    int64_t half;
    char path[FS_PATH];
    OWNED(written_close) struct written w = {0};
    TRY(fs_join(path, p->run, "chain.jsonl", e));
    if (!fs_exists(path)) return TARE_OK;
    TRY(written_read(p->run, &w, e));
    TRY(chain_each(p->run, check_present, &(struct present){p->run, p->step, &w}, &half, e));
    w.changed = 0; /* of the chain itself, whose copied part prefix_copy has checked */
    TRY(written_metrics(&w, p->step, e));
    if (w.changed) FAIL(e, TARE_E_CORRUPT, "%s; restore the file, or fork at a step before that line's", w.first);
    return TARE_OK;
}

static bool is_one_of(const char *name, const char *const *list)
{
    for (; list && *list; list++)
        if (!strcmp(name, *list)) return true;
    return false;
}

static tare_status copy_sections(const struct state_reader *from, struct state_writer *to, const char *const *dropped,
                                 struct err *e)
{
    for (int64_t i = 0; i < state_count(from); i++) {
        const char *name = state_name(from, i);
        const void *data;
        int64_t n;
        if (is_one_of(name, dropped)) continue;
        TRY(state_view(from, name, &data, &n, e));
        TRY(state_write(to, name, data, n, e));
    }
    return TARE_OK;
}

static tare_status copy_state(const char *from, const char *to, const char *const *dropped, struct err *e)
{
    struct state_reader *r;
    struct state_writer *w;
    TRY(state_open(from, &r, e));
    tare_status status = state_create(to, &w, e);
    if (!status) {
        status = copy_sections(r, w, dropped, e);
        if (!status)
            status = state_finish(w, e);
        else
            state_discard(w);
    }
    state_close(r);
    return status;
}

static tare_status copy_checkpoint_file(const struct prefix *p, const char *name, const struct prefix_parts *parts,
                                        const char *folder, struct err *e)
{
    char from[FS_PATH], to[FS_PATH], parent[FS_PATH];
    TRY(fs_join(from, p->checkpoint, name, e));
    TRY(fs_join(to, folder, name, e));
    fs_dirname(parent, to);
    TRY(fs_mkdirs(parent, e));
    if (parts->dropped && *parts->dropped && !strcmp(name, "training.state")) return copy_state(from, to, parts->dropped, e);
    return copy_plain(from, to, e);
}

/* Copies the files that complete.json lists; checkpoint_before has checked their hashes. */
static tare_status copy_checkpoint(const struct prefix *p, const struct prefix_parts *parts, const char *run, struct err *e)
{
    char path[FS_PATH];
    json_t *file;
    OWNED(json_decrefp) json_t *root = NULL;
    size_t i;
    struct checkpoint k;
    TRY(fs_join(path, p->checkpoint, "complete.json", e));
    TRY(json_read_file(path, &root, e));
    TRY(checkpoint_begin(run, p->step, &k, e));
    json_array_foreach(json_object_get(root, "files"), i, file)
    {
        TRY(copy_checkpoint_file(p, json_text_or(file, "name", ""), parts, k.folder, e));
    }
    return checkpoint_commit(&k, e);
}

static tare_status sync_all(const char *folder, struct err *e)
{
    const int fd = open(folder, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    const int bad = fd < 0 || syncfs(fd) ? errno : 0;
    if (fd >= 0) close(fd);
    if (bad) FAIL(e, TARE_E_IO, "%s: cannot be synced: %s", folder, strerror(bad));
    return TARE_OK;
}

static tare_status copy_file(const struct prefix *p, const char *name, const char *to, struct err *e)
{
    char from[FS_PATH], path[FS_PATH];
    TRY(fs_join(from, p->run, name, e));
    TRY(fs_join(path, to, name, e));
    return fs_copy(from, path, e);
}

/* Copies the chain, if the run has one. */
static tare_status copy_chain(const struct prefix *p, const char *to, struct err *e)
{
    char from[FS_PATH], path[FS_PATH];
    TRY(fs_join(from, p->run, "chain.jsonl", e));
    TRY(fs_join(path, to, "chain.jsonl", e));
    int64_t found = -1;
    return fs_exists(from) ? copy_lines(from, path, p->step, &found, e) : TARE_OK;
}

static tare_status copy_metrics(const struct prefix *p, const char *to, struct err *e)
{
    char from[FS_PATH], path[FS_PATH];
    int64_t found = -1;
    TRY(fs_join(from, p->run, "metrics.jsonl", e));
    TRY(fs_join(path, to, "metrics.jsonl", e));
    TRY(copy_lines(from, path, p->step, &found, e));
    if (found != p->step)
        FAIL(e, TARE_E_CORRUPT, "%s: missing line of step %lld, which has a checkpoint", from, (long long)p->step);
    return TARE_OK;
}

tare_status prefix_copy(const struct prefix *p, const struct prefix_parts *parts, const char *to, struct err *e)
{
    if (*p->checkpoint) TRY(chain_check(p->run, p->step, e));
    if (*p->checkpoint && parts->rollouts) TRY(check_step_files(p, e));
    TRY(fs_mkdirs(to, e));
    TRY(copy_file(p, "config.ini", to, e));
    TRY(copy_file(p, "manifest.json", to, e));
    if (!*p->checkpoint) return TARE_OK;
    TRY(copy_metrics(p, to, e));
    TRY(copy_chain(p, to, e));
    if (parts->rollouts) TRY(copy_step_files(p, "rollouts", to, e));
    if (parts->rollouts) TRY(copy_step_files(p, "estimator", to, e));
    TRY(copy_checkpoint(p, parts, to, e));
    return sync_all(to, e);
}
