#include "observe/rollouts.h"

#include "base/fs.h"
#include "base/json.h"
#include "batch/turns.h"
#include "batch/verdict.h"
#include "data/dataset.h"
#include "observe/rollout_turns.h"
#include "observe/sinks.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <math.h>
#include <string.h>
#include <unistd.h>

/* Converts text to JSON. Each byte that is not UTF-8 becomes U+FFFD. */
static json_t *text_json(tare_text t)
{
    if (!t.data) return json_string("");
    if (!str_utf8_error(t.data, t.size)) return json_stringn(t.data, (size_t)t.size);
    struct str s = {0};
    json_t *j = NULL;
    for (int64_t at = 0;;) {
        const int64_t bad = str_utf8_error(t.data + at, t.size - at);
        const int64_t good = bad ? bad - 1 : t.size - at;
        if (str_add(&s, t.data + at, good, NULL)) break;
        if (!bad) {
            j = json_stringn(s.data, (size_t)s.size);
            break;
        }
        if (str_add(&s, "\xEF\xBF\xBD", 3, NULL)) break;
        at += bad;
    }
    str_free(&s);
    return j;
}

static json_t *number_json(double x)
{
    return isfinite(x) ? json_real(x) : json_null();
}

static json_t *verdict_json(int32_t code)
{
    const char *name = verdict_name(code);
    return json_string(name ? name : "none");
}

/* Only the first line of a group contains the prompt, which may be much longer than its
 * completions. */
static void put_prompt(json_t *o, bool *bad, const struct batch *b, int64_t m, bool first)
{
    const struct row *row = b->row ? b->row[m] : NULL;
    char uid[17];
    if (row) json_put(o, bad, "question", text_json(row->question));
    if (row) json_put(o, bad, "answer", text_json(row->answer));
    if (first && b->prompt_text) json_put(o, bad, "prompt", text_json(b->prompt_text[m]));
    if (b->prompt_uid) {
        snprintf(uid, sizeof uid, "%016" PRIx64, b->prompt_uid[m]);
        json_put(o, bad, "prompt_uid", json_string(uid));
    }
    if (b->occurrence) json_put(o, bad, "occurrence", json_integer(b->occurrence[m]));
}

static void put_verdict(json_t *o, bool *bad, const struct batch *b, int64_t i)
{
    if (b->reward) json_put(o, bad, "reward", number_json(b->reward[i]));
    if (b->component && b->n_components) {
        json_t *all = json_array();
        for (int64_t c = 0; c < b->n_components; c++)
            if (json_array_append_new(all, number_json(b->component[i * b->n_components + c]))) *bad = true;
        json_put(o, bad, "components", all);
    }
    if (b->verdict) json_put(o, bad, "verdict", verdict_json(b->verdict[i]));
    if (b->component_verdict && b->n_components > 1) {
        json_t *all = json_array();
        for (int64_t c = 0; c < b->n_components; c++) {
            const int32_t code = b->component_verdict[i * b->n_components + c];
            if (json_array_append_new(all, code ? verdict_json(code) : json_null())) *bad = true;
        }
        json_put(o, bad, "component_verdicts", all);
    }
    if (b->extracted) json_put(o, bad, "extracted", text_json(b->extracted[i]));
    if (b->reason && b->reason[i]) json_put(o, bad, "reason", text_json((tare_text){b->reason[i], (int64_t)strlen(b->reason[i])}));
}

static void put_advantage(json_t *o, bool *bad, const struct batch *b, int64_t m, int64_t i)
{
    if (b->cluster) json_put(o, bad, "cluster", json_integer(b->cluster[m]));
    if (b->baseline) json_put(o, bad, "baseline", number_json(b->baseline[m]));
    if (b->scale) json_put(o, bad, "scale", number_json(b->scale[m]));
    if (b->confidence) json_put(o, bad, "confidence", number_json(b->confidence[m]));
    if (b->advantage) json_put(o, bad, "advantage", number_json(b->advantage[i]));
    if (b->rollout_weight) json_put(o, bad, "rollout_weight", number_json(b->rollout_weight[i]));
    if (b->fate) json_put(o, bad, "fate", json_string(batch_fate_name(b->fate[i])));
}

static tare_status print_rollout(const struct batch *b, int64_t m, int64_t i, struct str *out, struct err *e)
{
    json_t *o = json_object();
    bool bad = !o;
    const char *id = b->row && b->row[m] && b->row[m]->id ? b->row[m]->id : "";
    json_put(o, &bad, "id", text_json((tare_text){id, (int64_t)strlen(id)}));
    json_put(o, &bad, "group", json_integer(m));
    json_put(o, &bad, "sample", json_integer(i - b->group_begin[m]));
    put_prompt(o, &bad, b, m, i == b->group_begin[m]);
    if (b->completion) json_put(o, &bad, "completion", text_json(b->completion[i]));
    put_verdict(o, &bad, b, i);
    put_advantage(o, &bad, b, m, i);
    if (b->token_begin) json_put(o, &bad, "length", json_integer(batch_length(b, i)));
    if (b->off_policy && b->off_policy[i]) json_put(o, &bad, "off_policy", json_true());
    if (b->finish) json_put(o, &bad, "finish", json_string(batch_finish_name(b->finish[i])));
    rollout_turns_put(o, &bad, b, i);
    tare_status status =
        bad ? err_set(e, TARE_E_NOMEM, __FILE__, __LINE__, "out of memory for rollout %lld", (long long)i) : json_print(o, out, e);
    json_decref(o);
    return status ? status : str_add(out, "\n", 1, e);
}

tare_status rollouts_print(const struct batch *b, struct str *out, struct err *e)
{
    for (int64_t m = 0; m < b->n_groups; m++)
        for (int64_t i = b->group_begin[m]; i < b->group_begin[m + 1]; i++) TRY(print_rollout(b, m, i, out, e));
    return TARE_OK;
}

/* Files of a step. */
static const struct dump {
    const char *folder, *ending;
} ROLLOUTS = {"rollouts", "jsonl"}, STATE = {"estimator", "state"};

static void name_dump(const struct dump *d, int64_t step, char name[64])
{
    snprintf(name, 64, "%s/step-%06lld.%s", d->folder, (long long)step, d->ending);
}

static tare_status dump_path(const struct dump *d, const char *run_dir, int64_t step, char *path, struct err *e)
{
    char name[64];
    name_dump(d, step, name);
    return fs_join(path, run_dir, name, e);
}

tare_status rollouts_path(const char *run_dir, int64_t step, char *path, struct err *e)
{
    return dump_path(&ROLLOUTS, run_dir, step, path, e);
}

static tare_status write_beside(const char *path, const struct str *text, struct err *e)
{
    char temporary[FS_PATH];
    if (snprintf(temporary, sizeof temporary, "%s.tmp", path) >= FS_PATH) FAIL(e, TARE_E_INVALID, "%s: path too long", path);
    const int fd = open(temporary, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0666);
    if (fd < 0) FAIL(e, TARE_E_IO, "%s: %s", temporary, strerror(errno));
    tare_status status = events_append_all(fd, path, text->data, text->size, e);
    if (close(fd) && !status)
        status = err_set(e, TARE_E_IO, __FILE__, __LINE__, "%s: cannot be written: %s", path, strerror(errno));
    if (!status && rename(temporary, path)) status = err_set(e, TARE_E_IO, __FILE__, __LINE__, "%s: %s", path, strerror(errno));
    if (status) unlink(temporary);
    return status;
}

static tare_status write_dump(const struct dump *d, const char *run_dir, int64_t step, const struct str *text, struct chain *chain,
                              struct err *e)
{
    char folder[FS_PATH], path[FS_PATH], name[64];
    name_dump(d, step, name);
    TRY(fs_join(folder, run_dir, d->folder, e));
    TRY(fs_mkdirs(folder, e));
    TRY(fs_join(path, run_dir, name, e));
    TRY(write_beside(path, text, e));
    return chain ? chain_cover(chain, name, text->data, text->size, e) : TARE_OK;
}

tare_status rollouts_write(const char *run_dir, int64_t step, const struct batch *b, struct chain *chain, struct err *e)
{
    OWNED(str_free) struct str text = {0};
    TRY(rollouts_print(b, &text, e));
    return write_dump(&ROLLOUTS, run_dir, step, &text, chain, e);
}

tare_status rollouts_write_state(const char *run_dir, int64_t step, const struct str *state, struct chain *chain, struct err *e)
{
    return write_dump(&STATE, run_dir, step, state, chain, e);
}

static tare_status sync_dumps(const struct dump *d, const char *run_dir, int64_t first, int64_t last, struct err *e)
{
    char path[FS_PATH];
    bool any = false;
    for (int64_t step = first; step <= last; step++) {
        TRY(dump_path(d, run_dir, step, path, e));
        const int fd = open(path, O_RDONLY | O_CLOEXEC);
        if (fd < 0 && errno == ENOENT) continue;
        if (fd < 0) FAIL(e, TARE_E_IO, "%s: %s", path, strerror(errno));
        const int bad = fsync(fd) ? errno : 0;
        close(fd);
        if (bad) FAIL(e, TARE_E_IO, "%s: cannot be synced: %s", path, strerror(bad));
        any = true;
    }
    if (!any) return TARE_OK;
    TRY(fs_join(path, run_dir, d->folder, e));
    return fs_sync_dir(path, e);
}

tare_status rollouts_sync(const char *run_dir, int64_t first, int64_t last, struct err *e)
{
    TRY(sync_dumps(&STATE, run_dir, first, last, e));
    return sync_dumps(&ROLLOUTS, run_dir, first, last, e);
}

static tare_status cut_dump(void *ctx, const char *folder, const char *name, struct err *e)
{
    const int64_t *step = ctx;
    long long found;
    char rest[32], path[FS_PATH];
    if (sscanf(name, "step-%lld.%31s", &found, rest) != 2) return TARE_OK;
    const bool whole = !strcmp(rest, "jsonl") || !strcmp(rest, "state");
    if (whole ? found <= *step : strcmp(rest, "jsonl.tmp") && strcmp(rest, "state.tmp")) return TARE_OK;
    TRY(fs_join(path, folder, name, e));
    if (unlink(path)) FAIL(e, TARE_E_IO, "%s: cannot be removed: %s", path, strerror(errno));
    return TARE_OK;
}

tare_status rollouts_cut(const char *run_dir, int64_t step, struct err *e)
{
    char folder[FS_PATH];
    TRY(fs_join(folder, run_dir, ROLLOUTS.folder, e));
    TRY(fs_each(folder, cut_dump, &step, e));
    TRY(fs_join(folder, run_dir, STATE.folder, e));
    return fs_each(folder, cut_dump, &step, e);
}
