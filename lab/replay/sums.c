/* The sums of a run's files against its chain: every link, every file that a link names, and files that none names. */
#include "base/json.h"
#include "checkpoint/checkpoint.h"
#include "lab/replay/replay.h"
#include "observe/chain.h"
#include "observe/metrics.h"
#include "observe/model_sums.h"
#include "observe/run_data.h"
#include "observe/run_lock.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

struct sums {
    const char *run;
    struct verify_result *result;
    json_t *known;            /* path -> sum; of what a process wrote anew, the last */
    json_t *metrics;          /* step, as text -> sum of its line in metrics.jsonl */
    int64_t last, checkpoint; /* the last step with a link; the newest checkpoint with one */
    bool open;                /* no process has ended the run by itself: killed, or still going */
    bool broken;              /* the chain cannot be read to its end */
    bool going;               /* a process writes the run now */
    int64_t back; /* >= 0: the last link is of a process that is about to go back to this step; later records may be gone */
    json_t *
        before; /* file -> sums that it had before the last links, if those are of processes or a rollback; they come before the files */
};

static tare_status fault(struct sums *s, struct err *e, const char *format, ...) ERR_PRINTF(3, 4);

static tare_status add_line(struct str *out, const char *text, struct err *e)
{
    TRY(str_add(out, text, -1, e));
    return str_add(out, "\n", 1, e);
}

static tare_status fault(struct sums *s, struct err *e, const char *format, ...)
{
    char text[FS_PATH + 400];
    va_list args;
    va_start(args, format);
    vsnprintf(text, sizeof text, format, args);
    va_end(args);
    s->result->faults++;
    return add_line(&s->result->text, text, e);
}

static tare_status note(struct sums *s, const char *text, struct err *e)
{
    TRY(str_add(&s->result->text, "note: ", -1, e));
    return add_line(&s->result->text, text, e);
}

static bool is_unreadable(const char *path)
{
    struct stat s;
    return (stat(path, &s) || access(path, R_OK)) && fs_is_answer(errno);
}

/* What could not be looked at is no finding: a disk that fails, or memory that is short, tells nothing about who wrote a file. */
static tare_status take(struct sums *s, const char *path, const struct err *why, struct err *e)
{
    if ((why->code != TARE_E_IO && why->code != TARE_E_NOMEM) || is_unreadable(path)) return fault(s, e, "%s", why->message);
    FAIL(e, why->code, "%s", why->message);
}

/* ---------------------------------------------------------------- the chain */

static tare_status take_sums(struct sums *s, const struct chain_link *l, struct err *e)
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

/* A process, and a rollback, say what files are about to be; until the next link a file may be what it was before. */
static tare_status take_before(struct sums *s, const struct chain_link *l, struct err *e)
{
    const char *name;
    json_t *sum;
    if (strcmp(l->kind, CHAIN_PROCESS) && strcmp(l->kind, CHAIN_BACK)) {
        json_object_clear(s->before);
        return TARE_OK;
    }
    json_object_foreach((json_t *)(uintptr_t)l->files, name, sum)
    {
        json_t *sums = json_object_get(s->before, name);
        if (!sums && json_object_set_new(s->before, name, sums = json_object())) FAIL(e, TARE_E_NOMEM, "%s: no memory", s->run);
        if (json_object_set_new(sums, json_text_or(s->known, name, ""), json_true()))
            FAIL(e, TARE_E_NOMEM, "%s: no memory", s->run);
    }
    return TARE_OK;
}

/* Whether the file may be so: sum, or "" where it is not there. */
static bool is_from_before(const struct sums *s, const char *name, const char *sum)
{
    return json_object_get(json_object_get(s->before, name), sum) != NULL;
}

static tare_status take_link(void *ctx, const struct chain_link *l, struct err *e)
{
    struct sums *s = ctx;
    s->result->links++;
    if (!l->follows)
        TRY(fault(s, e,
                  "chain.jsonl:%lld: its sum does not follow from the line before: this line was changed, or one is missing or new",
                  (long long)l->line));
    if (l->line == 1) s->result->begins = l->step;
    s->open = strcmp(l->kind, "end") != 0;
    s->back = !strcmp(l->kind, CHAIN_PROCESS) && l->step < s->last ? l->step : -1;
    if (s->back < 0) s->last = l->step;
    snprintf(s->result->head, sizeof s->result->head, "%s", l->chain);
    TRY(take_before(s, l, e));
    return take_sums(s, l, e);
}

static tare_status read_chain(struct sums *s, struct err *e)
{
    int64_t half = 0;
    struct err why = {0};
    const tare_status status = chain_each(s->run, take_link, s, &half, &why);
    if (status == TARE_E_NOT_FOUND)
        FAIL(e, TARE_E_NOT_FOUND,
             "%s: chain.jsonl is missing, so its files have no checksums; --resume begins a chain at its last checkpoint", s->run);
    s->broken = status == TARE_E_CORRUPT;
    if (s->broken) TRY(note(s, "what lines of chain.jsonl from the damaged one on are about is not compared", e));
    if (s->broken) return fault(s, e, "%s", why.message);
    if (status) {
        if (e) *e = why;
        return status;
    }
    if (half)
        TRY(s->open ? note(s, "chain.jsonl ends with half a line: the run was killed, or is going on", e)
                    : fault(s, e, "chain.jsonl: %lld bytes after its last line", (long long)half));
    if (!s->result->links) TRY(fault(s, e, "chain.jsonl: has no line"));
    return TARE_OK;
}

/* ---------------------------------------------------------------- metrics.jsonl */

/* A process that is killed leaves one step without its link; more are not there unless lines of the chain were taken away. */
static bool may_lack_a_link(struct sums *s, int64_t step, bool checkpoint)
{
    const int64_t first = s->last + (checkpoint ? 0 : 1);
    if (!s->open || step < first || (!s->going && !s->broken && step > s->last + 1)) return false;
    s->result->unlinked++;
    return true;
}

static tare_status check_line(struct sums *s, const char *line, int64_t n, int64_t number, struct err *e)
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
    if (want)
        return fault(s, e, "metrics.jsonl:%lld: the line of step %s is not the one that was written", (long long)number, step);
    if (at >= 0 && at <= s->result->begins && s->result->begins) return TARE_OK; /* from before the chain */
    if (may_lack_a_link(s, at, false))
        return note(s, "metrics.jsonl has a step after the last link: the run was killed there, or is going on", e);
    return fault(s, e, "metrics.jsonl:%lld: no step of the chain has this line; the last link is of step %lld", (long long)number,
                 (long long)s->last);
}

static tare_status check_metrics(struct sums *s, struct err *e)
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
        TRY(check_line(s, at, newline + 1 - at, number, e));
        end = newline + 1 - text.data;
    }
    if (end < text.size && !s->open) TRY(fault(s, e, "metrics.jsonl:%lld: the line has no end", (long long)number));
    json_object_foreach(s->metrics, step, sum)
    {
        if (s->back < 0 || strtoll(step, NULL, 10) <= s->back)
            TRY(fault(s, e, "metrics.jsonl: the line of step %s is missing", step));
    }
    return TARE_OK;
}

/* ---------------------------------------------------------------- files */

static bool is_checkpoint(const char *name)
{
    return !strncmp(name, "checkpoints/", 12);
}

/* Of a record "FOLDER/step-N..."; -1: it has none. */
static int64_t step_of(const char *name)
{
    const char *at = strstr(name, "/step-");
    return at ? strtoll(at + 6, NULL, 10) : -1;
}

static tare_status check_checkpoint(struct sums *s, const char *name, struct err *e)
{
    char path[FS_PATH], folder[FS_PATH];
    struct err why = {0};
    int64_t step;
    TRY(fs_join(path, s->run, name, e));
    fs_dirname(folder, path);
    if (!checkpoint_verify(folder, &step, &why)) s->result->files++;
    return why.code ? take(s, path, &why, e) : TARE_OK;
}

/* The last link says what the file was about to be. */
static tare_status unfinished(struct sums *s, const char *name, struct err *e)
{
    char text[FS_PATH];
    snprintf(text, sizeof text, "%.3000s is from before the last link: the run was killed while it went on, or is going on", name);
    return note(s, text, e);
}

static tare_status check_file(struct sums *s, const char *name, const char *want, struct err *e)
{
    char path[FS_PATH], sum[CHAIN_SUM];
    struct fs_map m;
    struct err why = {0};
    if (!fs_is_inside(name)) return fault(s, e, "chain.jsonl: names %s, which is not in the run's folder", name);
    TRY(fs_join(path, s->run, name, e));
    const tare_status status = fs_map(path, &m, &why);
    if (status == TARE_E_NOT_FOUND) {
        if (is_checkpoint(name) && step_of(name) != s->checkpoint) {
            char folder[FS_PATH];
            fs_dirname(folder, path);
            s->result->pruned += !fs_is_dir(folder);
            return fs_is_dir(folder) ? fault(s, e, "%s: is missing", name) : TARE_OK;
        }
        if (is_from_before(s, name, "")) return unfinished(s, name, e);
        if (s->back >= 0 && step_of(name) > s->back) return TARE_OK;
        return strcmp(name, "lock") ? fault(s, e, "%s: is missing", name) : TARE_OK; /* a copy of a run needs no lock */
    }
    if (status) return take(s, path, &why, e);
    chain_sum(m.data, m.size, sum);
    fs_unmap(&m);
    if (strcmp(sum, want) && is_from_before(s, name, sum)) return unfinished(s, name, e);
    if (strcmp(sum, want) && s->open && !strcmp(name, "lock"))
        return note(s, "lock is of a process that has no link: it was killed before it went on, or begins now", e);
    if (strcmp(sum, want))
        return fault(s, e, "%s: is not the file that was written (its sum is %s, the chain's %s)", name, sum, want);
    s->result->files++;
    return is_checkpoint(name) ? check_checkpoint(s, name, e) : TARE_OK;
}

static tare_status check_known(struct sums *s, struct err *e)
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

static tare_status take_model(void *ctx, const struct model_change *c, struct err *e)
{
    return fault(ctx, e, "%s = %s: %s %s", c->key, c->path, c->file, c->what);
}

static tare_status take_earlier(void *ctx, const struct model_change *c, struct err *e)
{
    char text[FS_PATH + 200];
    snprintf(text, sizeof text, "%.100s = %.3700s: %.200s was another file, or none, for an earlier process of the run", c->key,
             c->path, c->file);
    return note(ctx, text, e);
}

/* What a process read there: as it is now, where it is still there; a run's folder may have been copied from elsewhere. */
static tare_status check_model(struct sums *s, const char *key, json_t *role, struct err *e)
{
    const struct model_role one = {key, json_text_or(role, "path", "")};
    OWNED(json_decrefp) json_t *then = json_pack("{s:O}", key, role), *now = NULL;
    char text[FS_PATH + 200];
    struct err why = {0};
    const tare_status status = model_sums(&one, 1, &now, &why);
    snprintf(text, sizeof text, "%.200s = %.3800s is not there, so it is not compared", key, one.path);
    if (status == TARE_E_NOT_FOUND) return note(s, text, e);
    return status ? take(s, one.path, &why, e) : model_sums_compare(then, now, take_model, s, e);
}

/* seen: path -> sums of the newest process that has it. */
static tare_status check_models_of(struct sums *s, const json_t *process, json_t *seen, struct err *e)
{
    const char *key;
    json_t *role;
    json_object_foreach(json_object_get(process, "models"), key, role)
    {
        const char *path = json_text_or(role, "path", "");
        if (!json_is_object(json_object_get(role, "files"))) {
            TRY(fault(s, e, "manifest.json: models, %s: is not what was written there", key));
            continue;
        }
        OWNED(json_decrefp) json_t *newest = json_incref(json_object_get(seen, path));
        if (!newest) TRY(check_model(s, key, role, e));
        if (!newest) {
            json_object_set(seen, path, role);
            continue;
        }
        OWNED(json_decrefp) json_t *then = json_pack("{s:O}", key, role), *later = json_pack("{s:O}", key, newest);
        TRY(model_sums_compare(then, later, take_earlier, s, e));
    }
    return TARE_OK;
}

static tare_status check_models(struct sums *s, struct err *e)
{
    char path[FS_PATH];
    OWNED(json_decrefp) json_t *root = NULL, *seen = json_object();
    TRY(fs_join(path, s->run, "manifest.json", e));
    struct err why = {0};
    if (!fs_exists(path)) return TARE_OK; /* which is told by its own sum */
    if (json_read_file(path, &root, &why))
        return why.code == TARE_E_NOMEM || (why.code == TARE_E_IO && !is_unreadable(path)) ? (*e = why).code : TARE_OK;
    const json_t *list = json_object_get(root, "resumed");
    for (size_t i = json_array_size(list); i > 0; i--) TRY(check_models_of(s, json_array_get(list, i - 1), seen, e));
    return check_models_of(s, root, seen, e);
}

/* ---------------------------------------------------------------- files that no link names */

struct listing {
    struct sums *s;
    const char *folder; /* "rollouts" */
};

/* A file or folder step-N of one of the run's own folders. */
static tare_status check_name(void *ctx, const char *folder, const char *name, struct err *e)
{
    const struct listing *l = ctx;
    struct sums *s = l->s;
    char path[FS_PATH];
    (void)folder;
    snprintf(path, sizeof path, "%.100s/%.300s%s", l->folder, name, strcmp(l->folder, "checkpoints") ? "" : "/complete.json");
    if (json_object_get(s->known, path)) return TARE_OK;
    const int64_t step = strncmp(name, "step-", 5) ? -1 : strtoll(name + 5, NULL, 10);
    if (step >= 0 && step <= s->result->begins && s->result->begins) return TARE_OK; /* from before the chain */
    if (s->broken && (step > s->last || is_checkpoint(path))) return TARE_OK;
    if (s->open && (strstr(name, ".tmp") || strstr(name, ".old-"))) return TARE_OK;
    if (may_lack_a_link(s, step, is_checkpoint(path))) return TARE_OK;
    return fault(s, e, "%s/%s: is not in the chain", l->folder, name);
}

static tare_status check_names(struct sums *s, struct err *e)
{
    static const char *const FOLDERS[] = {"rollouts", "estimator", "checkpoints"};
    for (int i = 0; i < 3; i++) {
        char path[FS_PATH];
        TRY(fs_join(path, s->run, FOLDERS[i], e));
        TRY(fs_each(path, check_name, &(struct listing){s, FOLDERS[i]}, e));
    }
    return TARE_OK;
}

/* Beside what the chain names: what has no sum of its own or is made of files that have one, and what other commands write into a run's folder. */
static tare_status check_top(void *ctx, const char *folder, const char *name, struct err *e)
{
    /* fork.unfinished: a crash just after a fork got its name. chain.jsonl.tmp: of a process that ended, or could write no more, before its first link; in a run that had ended nothing else is half written */
    static const char *const OTHERS[] = {
        "chain.jsonl", "chain.jsonl.tmp",      "metrics.jsonl",  "lock",   "log.txt",     "rollouts",
        "estimator",   "checkpoints",          "eval",           "export", "tensorboard", "cache",
        "report.html", "codebook.safetensors", "fork.unfinished"};
    struct sums *s = ctx;
    (void)folder;
    for (size_t i = 0; i < sizeof OTHERS / sizeof *OTHERS; i++)
        if (!strcmp(name, OTHERS[i])) return TARE_OK;
    const bool half = s->open && (strstr(name, ".tmp") || strstr(name, ".old-")); /* what a kill leaves */
    if (half || json_object_get(s->known, name) || s->broken || !strncmp(name, "report-", 7)) return TARE_OK;
    return fault(s, e, "%s: no command of tare writes this into a run's folder; it was put there", name);
}

/* The events are made from metrics.jsonl, so they are made again and compared. */
static tare_status check_events(struct sums *s, struct err *e)
{
    struct err why = {0};
    const tare_status status = metrics_check_events(s->run, s->open, &why);
    if (status == TARE_E_CORRUPT) return fault(s, e, "%s", why.message);
    if (!status) s->result->files += 1;
    if (status && status != TARE_E_NOT_FOUND && e) *e = why;
    return status == TARE_E_NOT_FOUND ? TARE_OK : status;
}

static tare_status check_all(struct sums *s, struct err *e)
{
    TRY(read_chain(s, e));
    TRY(check_known(s, e));
    TRY(check_metrics(s, e));
    TRY(check_events(s, e));
    TRY(check_models(s, e));
    TRY(fs_each(s->run, check_top, s, e));
    return check_names(s, e);
}

tare_status replay_verify_sums(const char *run, struct verify_result *out, struct err *e)
{
    struct sums s = {.run = run,
                     .result = out,
                     .known = json_object(),
                     .metrics = json_object(),
                     .before = json_object(),
                     .last = -1,
                     .back = -1,
                     .checkpoint = -1};
    *out = (struct verify_result){0};
    tare_status status = run_folder_check(run, e);
    s.going = !status && run_lock_is_held(run);
    if (s.going) status = note(&s, "the run is going on; what is complete is looked at", e);
    if (!status) status = check_all(&s, e);
    out->last = s.last;
    json_decref(s.known);
    json_decref(s.metrics);
    json_decref(s.before);
    return status;
}
