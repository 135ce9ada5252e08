/* Checks a run's files against its chain: every link, every file that a link names, and files that
 * no link names. */
#include "base/json.h"
#include "checkpoint/checkpoint.h"
#include "lab/replay/replay.h"
#include "observe/chain.h"
#include "observe/metrics.h"
#include "observe/model_sums.h"
#include "observe/named_files.h"
#include "observe/run_data.h"
#include "observe/run_lock.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

struct checker {
    const char *run;
    struct reproduce_result *result;
    json_t *known;            /* path -> the last checksum */
    json_t *metrics;          /* step, as text -> checksum of its line in metrics.jsonl */
    int64_t last, checkpoint; /* the last step with a link; the newest checkpoint with one */
    bool open;                /* the run was killed or is still running */
    bool broken;              /* the chain cannot be read to its end */
    bool running;             /* a process is writing the run now */
    /* >= 0: the last link is of a process that is about to return to this step; later records may
     * be missing. */
    int64_t back;
    /* file -> its checksums before the last links, if those are of processes or a rollback, which
     * precede the files. */
    json_t *before;
};

static tare_status add_fault(struct checker *s, struct err *e, const char *format, ...) ERR_PRINTF(3, 4);

static tare_status add_line(struct str *out, const char *text, struct err *e)
{
    TRY(str_add(out, text, -1, e));
    return str_add(out, "\n", 1, e);
}

static tare_status add_fault(struct checker *s, struct err *e, const char *format, ...)
{
    char text[FS_PATH + 400];
    va_list args;
    va_start(args, format);
    vsnprintf(text, sizeof text, format, args);
    va_end(args);
    s->result->faults++;
    return add_line(&s->result->text, text, e);
}

static tare_status add_note(struct checker *s, const char *text, struct err *e)
{
    TRY(str_add(&s->result->text, "note: ", -1, e));
    return add_line(&s->result->text, text, e);
}

static bool is_unreadable(const char *path)
{
    struct stat s;
    return (stat(path, &s) || access(path, R_OK)) && fs_is_answer(errno);
}

/* Reports a file that cannot be read. A failing disk or a lack of memory is an error and not a
 * finding, because it does not show that the file was changed. */
static tare_status add_unreadable(struct checker *s, const char *path, const struct err *why, struct err *e)
{
    if ((why->code != TARE_E_IO && why->code != TARE_E_NOMEM) || is_unreadable(path)) return add_fault(s, e, "%s", why->message);
    FAIL(e, why->code, "%s", why->message);
}

/* ---------------------------------------------------------------- the chain */

static tare_status add_checksums(struct checker *s, const struct chain_link *l, struct err *e)
{
    const char *name;
    json_t *sum;
    char step[32];
    snprintf(step, sizeof step, "%lld", (long long)l->step);
    json_object_foreach((json_t *)(uintptr_t)l->files, name, sum)
    {
        const bool line = !strcmp(name, "metrics.jsonl");
        if (json_object_set(line ? s->metrics : s->known, line ? step : name, sum)) FAIL(e, TARE_E_NOMEM, "%s: no memory", s->run);
    }
    return TARE_OK;
}

/* Links of a process and of a rollback name files before they are written; until the next link a
 * file may still have its previous contents. */
static tare_status add_previous(struct checker *s, const struct chain_link *l, struct err *e)
{
    const char *name;
    json_t *sum;
    if (strcmp(l->kind, CHAIN_PROCESS) && strcmp(l->kind, CHAIN_BACK)) {
        json_object_clear(s->before);
        return TARE_OK;
    }
    json_object_foreach((json_t *)(uintptr_t)l->files, name, sum)
    {
        json_t *checksums = json_object_get(s->before, name);
        if (!checksums && json_object_set_new(s->before, name, checksums = json_object()))
            FAIL(e, TARE_E_NOMEM, "%s: no memory", s->run);
        if (json_object_set_new(checksums, json_text_or(s->known, name, ""), json_true()))
            FAIL(e, TARE_E_NOMEM, "%s: no memory", s->run);
    }
    return TARE_OK;
}

/* True if the file may still have this checksum; "" for a missing file. */
static bool is_previous(const struct checker *s, const char *name, const char *sum)
{
    return json_object_get(json_object_get(s->before, name), sum) != NULL;
}

static tare_status add_link(void *ctx, const struct chain_link *l, struct err *e)
{
    struct checker *s = ctx;
    s->result->links++;
    if (!l->follows)
        TRY(add_fault(s, e,
                      "chain.jsonl:%lld: the checksum does not follow from the line before: a line was changed, removed or added",
                      (long long)l->line));
    if (l->line == 1) s->result->begins = l->step;
    s->open = strcmp(l->kind, "end") != 0;
    s->back = !strcmp(l->kind, CHAIN_PROCESS) && l->step < s->last ? l->step : -1;
    if (s->back < 0) s->last = l->step;
    snprintf(s->result->head, sizeof s->result->head, "%s", l->chain);
    TRY(add_previous(s, l, e));
    return add_checksums(s, l, e);
}

static tare_status read_chain(struct checker *s, struct err *e)
{
    int64_t half = 0;
    struct err why = {0};
    const tare_status status = chain_each(s->run, add_link, s, &half, &why);
    if (status == TARE_E_NOT_FOUND)
        FAIL(e, TARE_E_NOT_FOUND,
             "%s: chain.jsonl is missing, so its files have no checksums; --resume begins a chain at its last checkpoint", s->run);
    s->broken = status == TARE_E_CORRUPT;
    if (s->broken) TRY(add_note(s, "chain.jsonl is damaged; records of the damaged and later lines are not checked", e));
    if (s->broken) return add_fault(s, e, "%s", why.message);
    if (status) {
        if (e) *e = why;
        return status;
    }
    if (half)
        TRY(s->open ? add_note(s, "chain.jsonl ends with an incomplete line: the run was killed or is running", e)
                    : add_fault(s, e, "chain.jsonl: %lld bytes after its last line", (long long)half));
    if (!s->result->links) TRY(add_fault(s, e, "chain.jsonl: must have at least one line"));
    return TARE_OK;
}

/* ---------------------------------------------------------------- metrics.jsonl */

/* True if a record may lack a link. A killed process leaves one step without its link; more are
 * missing only if lines of the chain were removed. */
static bool may_lack_a_link(struct checker *s, int64_t step, bool checkpoint)
{
    const int64_t first = s->last + (checkpoint ? 0 : 1);
    if (!s->open || step < first || (!s->running && !s->broken && step > s->last + 1)) return false;
    s->result->unlinked++;
    return true;
}

static tare_status check_metrics_line(struct checker *s, const char *line, int64_t n, int64_t number, struct err *e)
{
    static const char HEAD[] = "{\"step\":";
    char step[32], sum[CHAIN_SUM];
    const int64_t at = strncmp(line, HEAD, sizeof HEAD - 1) ? -1 : strtoll(line + sizeof HEAD - 1, NULL, 10);
    snprintf(step, sizeof step, "%lld", (long long)at);
    const char *want = json_text_or(s->metrics, step, NULL);
    chain_sum(line, n, sum);
    if (want && !strcmp(want, sum)) {
        json_object_del(s->metrics, step);
        s->result->lines++;
        return TARE_OK;
    }
    if (want) json_object_del(s->metrics, step);
    if (want) return add_fault(s, e, "metrics.jsonl:%lld: the line of step %s was changed", (long long)number, step);
    /* older than the chain */
    if (at >= 0 && at <= s->result->begins && s->result->begins) return TARE_OK;
    if (may_lack_a_link(s, at, false))
        return add_note(s, "metrics.jsonl has a step after the last link: the run was killed there or is running", e);
    return add_fault(s, e, "metrics.jsonl:%lld: no step of the chain has this line; the last link is of step %lld",
                     (long long)number, (long long)s->last);
}

static tare_status check_metrics(struct checker *s, struct err *e)
{
    char path[FS_PATH];
    OWNED(str_free) struct str text = {0};
    const char *step;
    json_t *sum;
    TRY(fs_join(path, s->run, "metrics.jsonl", e));
    if (fs_exists(path)) TRY(fs_read_all(path, &text, e));
    int64_t end = 0, number = 1;
    for (; end < text.size; number++) {
        const char *at = text.data + end, *newline = memchr(at, '\n', (size_t)(text.size - end));
        if (!newline) break;
        TRY(check_metrics_line(s, at, newline + 1 - at, number, e));
        end = newline + 1 - text.data;
    }
    if (end < text.size && !s->open) TRY(add_fault(s, e, "metrics.jsonl:%lld: incomplete line", (long long)number));
    json_object_foreach(s->metrics, step, sum)
    {
        if (s->back < 0 || strtoll(step, NULL, 10) <= s->back)
            TRY(add_fault(s, e, "metrics.jsonl: the line of step %s is missing", step));
    }
    return TARE_OK;
}

/* ---------------------------------------------------------------- files */

static bool is_checkpoint(const char *name)
{
    return !strncmp(name, "checkpoints/", 12);
}

/* Returns the step of a record "FOLDER/step-N...", or -1. */
static int64_t step_of(const char *name)
{
    const char *at = strstr(name, "/step-");
    return at ? strtoll(at + 6, NULL, 10) : -1;
}

static tare_status check_checkpoint(struct checker *s, const char *name, struct err *e)
{
    char path[FS_PATH], folder[FS_PATH];
    struct err why = {0};
    int64_t step;
    TRY(fs_join(path, s->run, name, e));
    fs_dirname(folder, path);
    if (!checkpoint_verify(folder, &step, &why)) s->result->files++;
    return why.code ? add_unreadable(s, path, &why, e) : TARE_OK;
}

/* Notes a file that still has its contents from before the last link. */
static tare_status note_unfinished(struct checker *s, const char *name, struct err *e)
{
    char text[FS_PATH];
    snprintf(text, sizeof text, "%.3000s is older than the last link: the run was killed while it was resumed, or is running",
             name);
    return add_note(s, text, e);
}

static tare_status check_file(struct checker *s, const char *name, const char *want, struct err *e)
{
    char path[FS_PATH], sum[CHAIN_SUM];
    struct fs_map m;
    struct err why = {0};
    if (!fs_is_inside(name)) return add_fault(s, e, "chain.jsonl: invalid name %s: must be in the run's folder", name);
    TRY(fs_join(path, s->run, name, e));
    const tare_status status = fs_map(path, &m, &why);
    if (status == TARE_E_NOT_FOUND) {
        if (is_checkpoint(name) && step_of(name) != s->checkpoint) {
            char folder[FS_PATH];
            fs_dirname(folder, path);
            s->result->pruned += !fs_is_dir(folder);
            return fs_is_dir(folder) ? add_fault(s, e, "%s: is missing", name) : TARE_OK;
        }
        if (is_previous(s, name, "")) return note_unfinished(s, name, e);
        if (s->back >= 0 && step_of(name) > s->back) return TARE_OK;
        /* a copy of a run has no lock */
        return strcmp(name, "lock") ? add_fault(s, e, "%s: is missing", name) : TARE_OK;
    }
    if (status) return add_unreadable(s, path, &why, e);
    chain_sum(m.data, m.size, sum);
    fs_unmap(&m);
    if (strcmp(sum, want) && is_previous(s, name, sum)) return note_unfinished(s, name, e);
    if (strcmp(sum, want) && s->open && !strcmp(name, "lock"))
        return add_note(s, "lock is of a process without a link: it was killed while it started, or is starting", e);
    if (strcmp(sum, want)) return add_fault(s, e, "%s: was changed (checksum %s, in the chain %s)", name, sum, want);
    s->result->files++;
    return is_checkpoint(name) ? check_checkpoint(s, name, e) : TARE_OK;
}

static tare_status check_known(struct checker *s, struct err *e)
{
    const char *name;
    json_t *sum;
    json_object_foreach(s->known, name, sum)
    {
        const int64_t step = is_checkpoint(name) ? step_of(name) : -1;
        if (step > s->checkpoint) s->checkpoint = step;
    }
    json_object_foreach(s->known, name, sum) TRY(check_file(s, name, json_string_value(sum), e));
    return TARE_OK;
}

/* ---------------------------------------------------------------- the models that the run read */

static tare_status add_model_fault(void *ctx, const struct model_change *c, struct err *e)
{
    return add_fault(ctx, e, "%s = %s: %s %s", c->key, c->path, c->file, c->what);
}

static tare_status note_earlier(void *ctx, const struct model_change *c, struct err *e)
{
    char text[FS_PATH + 200];
    snprintf(text, sizeof text, "%.100s = %.3700s: %.200s was different or missing for an earlier process of the run", c->key,
             c->path, c->file);
    return add_note(ctx, text, e);
}

/* Compares a model that a process read with its current files, if they exist: the run's folder may
 * have been copied from another machine. */
static tare_status check_model(struct checker *s, const char *key, json_t *role, struct err *e)
{
    const struct model_role one = {key, json_text_or(role, "path", "")};
    OWNED(json_decrefp) json_t *then = json_pack("{s:O}", key, role), *now = NULL;
    char text[FS_PATH + 200];
    struct err why = {0};
    const tare_status status = model_sums(&one, 1, &now, &why);
    snprintf(text, sizeof text, "%.200s = %.3800s is missing, so it is not checked", key, one.path);
    if (status == TARE_E_NOT_FOUND) return add_note(s, text, e);
    return status ? add_unreadable(s, one.path, &why, e) : model_sums_compare(then, now, add_model_fault, s, e);
}

/* seen: path -> checksums recorded by the newest process that read it. */
static tare_status check_models_of(struct checker *s, const json_t *process, json_t *seen, struct err *e)
{
    const char *key;
    json_t *role;
    json_object_foreach(json_object_get(process, "models"), key, role)
    {
        const char *path = json_text_or(role, "path", "");
        if (!json_is_object(json_object_get(role, "files"))) {
            TRY(add_fault(s, e, "manifest.json: models, %s: was changed", key));
            continue;
        }
        OWNED(json_decrefp) json_t *newest = json_incref(json_object_get(seen, path));
        if (!newest) TRY(check_model(s, key, role, e));
        if (!newest) {
            json_object_set(seen, path, role);
            continue;
        }
        OWNED(json_decrefp) json_t *then = json_pack("{s:O}", key, role), *later = json_pack("{s:O}", key, newest);
        TRY(model_sums_compare(then, later, note_earlier, s, e));
    }
    return TARE_OK;
}

/* ---------------------------------------------------------------- the files of its plugins */

/* Compares a file that a configuration named, and the files that it imports, with the current ones,
 * if it exists. */
static tare_status check_named(struct checker *s, json_t *entry, struct err *e)
{
    const char *key = json_text_or(entry, "key", ""), *path = json_text_or(entry, "path", "");
    OWNED(json_decrefp) json_t *then = json_pack("[O]", entry), *now = json_array();
    char text[FS_PATH + 200];
    if (!then || !now) FAIL(e, TARE_E_NOMEM, "%s: no memory", s->run);
    TRY(named_files_add(now, key, path, e));
    snprintf(text, sizeof text, "%.200s = %.3800s is missing, so it is not checked", key, path);
    return json_array_size(now) ? named_files_compare(then, now, add_model_fault, s, e) : add_note(s, text, e);
}

/* seen: path -> entry recorded by the newest process that read it. */
static tare_status check_named_of(struct checker *s, const json_t *process, json_t *seen, struct err *e)
{
    json_t *entry;
    size_t i;
    json_array_foreach(json_object_get(process, "files"), i, entry)
    {
        const char *path = json_text_or(entry, "path", "");
        OWNED(json_decrefp) json_t *newest = json_incref(json_object_get(seen, path));
        if (!newest) {
            TRY(check_named(s, entry, e));
            if (json_object_set(seen, path, entry)) FAIL(e, TARE_E_NOMEM, "%s: no memory", s->run);
            continue;
        }
        OWNED(json_decrefp) json_t *then = json_pack("[O]", entry), *later = json_pack("[O]", newest);
        TRY(named_files_compare(then, later, note_earlier, s, e));
    }
    return TARE_OK;
}

static tare_status check_inputs_of(struct checker *s, const json_t *process, json_t *models, json_t *files, struct err *e)
{
    TRY(check_models_of(s, process, models, e));
    return check_named_of(s, process, files, e);
}

static tare_status check_inputs(struct checker *s, struct err *e)
{
    char path[FS_PATH];
    OWNED(json_decrefp) json_t *root = NULL, *models = json_object(), *files = json_object();
    TRY(fs_join(path, s->run, "manifest.json", e));
    struct err why = {0};
    if (!fs_exists(path)) return TARE_OK; /* reported by its own checksum */
    if (json_read_file(path, &root, &why))
        return why.code == TARE_E_NOMEM || (why.code == TARE_E_IO && !is_unreadable(path)) ? (*e = why).code : TARE_OK;
    const json_t *list = json_object_get(root, "resumed");
    for (size_t i = json_array_size(list); i > 0; i--) TRY(check_inputs_of(s, json_array_get(list, i - 1), models, files, e));
    return check_inputs_of(s, root, models, files, e);
}

/* ---------------------------------------------------------------- files that no link names */

struct listing {
    struct checker *s;
    const char *folder; /* "rollouts" */
};

/* Checks that the chain has a file or folder step-N of one of the run's folders. */
static tare_status check_name(void *ctx, const char *folder, const char *name, struct err *e)
{
    const struct listing *l = ctx;
    struct checker *s = l->s;
    char path[FS_PATH];
    (void)folder;
    snprintf(path, sizeof path, "%.100s/%.300s%s", l->folder, name, strcmp(l->folder, "checkpoints") ? "" : "/complete.json");
    if (json_object_get(s->known, path)) return TARE_OK;
    const int64_t step = strncmp(name, "step-", 5) ? -1 : strtoll(name + 5, NULL, 10);
    /* older than the chain */
    if (step >= 0 && step <= s->result->begins && s->result->begins) return TARE_OK;
    if (s->broken && (step > s->last || is_checkpoint(path))) return TARE_OK;
    if (s->open && (strstr(name, ".tmp") || strstr(name, ".old-"))) return TARE_OK;
    if (may_lack_a_link(s, step, is_checkpoint(path))) return TARE_OK;
    return add_fault(s, e, "%s/%s: is not in the chain", l->folder, name);
}

static tare_status check_names(struct checker *s, struct err *e)
{
    static const char *const FOLDERS[] = {"rollouts", "estimator", "checkpoints"};
    for (int i = 0; i < 3; i++) {
        char path[FS_PATH];
        TRY(fs_join(path, s->run, FOLDERS[i], e));
        TRY(fs_each(path, check_name, &(struct listing){s, FOLDERS[i]}, e));
    }
    return TARE_OK;
}

/* Checks the names in a run's folder that the chain does not list. Allowed are files without a
 * checksum, files derived from others, and the output of other commands. */
static tare_status check_top(void *ctx, const char *folder, const char *name, struct err *e)
{
    /* fork.unfinished: a crash just after a fork was renamed. chain.jsonl.tmp: a process that
     * ended or could not write before its first link; a run that had ended has no other incomplete
     * file. */
    static const char *const OTHERS[] = {
        "chain.jsonl", "chain.jsonl.tmp",      "metrics.jsonl",  "lock",   "log.txt",     "rollouts",
        "estimator",   "checkpoints",          "eval",           "export", "tensorboard", "cache",
        "report.html", "codebook.safetensors", "fork.unfinished"};
    struct checker *s = ctx;
    (void)folder;
    for (size_t i = 0; i < sizeof OTHERS / sizeof *OTHERS; i++)
        if (!strcmp(name, OTHERS[i])) return TARE_OK;
    /* left by a kill */
    const bool half = s->open && (strstr(name, ".tmp") || strstr(name, ".old-"));
    if (half || json_object_get(s->known, name) || s->broken || !strncmp(name, "report-", 7)) return TARE_OK;
    return add_fault(s, e, "%s: unknown file: no command of tare writes it into a run's folder", name);
}

/* Derives the TensorBoard events from metrics.jsonl again and compares them. */
static tare_status check_events(struct checker *s, struct err *e)
{
    struct err why = {0};
    const tare_status status = metrics_check_events(s->run, s->open, &why);
    if (status == TARE_E_CORRUPT) return add_fault(s, e, "%s", why.message);
    if (!status) s->result->files += 1;
    if (status && status != TARE_E_NOT_FOUND && e) *e = why;
    return status == TARE_E_NOT_FOUND ? TARE_OK : status;
}

static tare_status check_all(struct checker *s, struct err *e)
{
    TRY(read_chain(s, e));
    TRY(check_known(s, e));
    TRY(check_metrics(s, e));
    TRY(check_events(s, e));
    TRY(check_inputs(s, e));
    TRY(fs_each(s->run, check_top, s, e));
    return check_names(s, e);
}

tare_status reproduce_check_files(const char *run, struct reproduce_result *out, struct err *e)
{
    struct checker s = {.run = run,
                        .result = out,
                        .known = json_object(),
                        .metrics = json_object(),
                        .before = json_object(),
                        .last = -1,
                        .back = -1,
                        .checkpoint = -1};
    *out = (struct reproduce_result){0};
    tare_status status = run_folder_check(run, e);
    s.running = !status && run_lock_is_held(run);
    if (s.running) status = add_note(&s, "the run is in progress; complete records are checked", e);
    if (!status) status = check_all(&s, e);
    out->last = s.last;
    json_decref(s.known);
    json_decref(s.metrics);
    json_decref(s.before);
    return status;
}
