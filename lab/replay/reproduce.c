/* Recomputes steps of a run from its checkpoints and compares them with its records. */
#include "base/log.h"
#include "base/rng.h"
#include "lab/compare/compare.h"
#include "lab/replay/replay.h"
#include "verify/rows.h"

#include <stdlib.h>
#include <string.h>
#include <unistd.h>

/* Fails if a verifier of the run may have given other verdicts this time: what differs then proves
 * nothing, and the record counts. */
static tare_status check_verdicts(const struct reproduce_request *q, int64_t first, int64_t last, struct err *e)
{
    OWNED(config_free) struct config c = {0};
    OWNED(arena_free) struct arena arena = {0};
    const char *name;
    arena_init(&arena, "verifiers of a run");
    TRY(config_load(&c, q->run, q->keys, q->n_keys, e));
    TRY(verify_find_unrepeatable(&c, &arena, &name, e));
    if (!name) return TARE_OK;
    FAIL(
        e, TARE_E_UNSUPPORTED,
        "steps %lld to %lld: recomputed, they differ, but the verifier %s does not promise the same verdict twice; the recorded verdicts count, and the steps cannot be checked",
        (long long)first, (long long)last, name);
}

static tare_status compare_steps(const struct reproduce_request *q, const char *again, int64_t first, int64_t last,
                                 struct reproduce_result *out, struct err *e)
{
    const struct compare_options o = {.run = {q->run, again}, .metric = "reward/mean", .first = first, .last = last};
    OWNED(json_decrefp) json_t *result = NULL;
    TRY(compare_runs(&o, &result, e));
    const int64_t steps = json_int_or(json_object_get(result, "compared"), "steps", 0);
    if (steps != last - first + 1) {
        out->faults++;
        TRY(str_addf(&out->text, e, "steps %lld to %lld: %s has records of only %lld of them\n", (long long)first, (long long)last,
                     q->run, (long long)steps));
    } else if (json_bool_or(result, "same", 0)) {
        TRY(str_addf(&out->text, e,
                     "steps %lld to %lld: recomputed, bit-identical (%lld metrics, %lld rollouts, %lld checkpoints)\n",
                     (long long)first, (long long)last, (long long)steps,
                     (long long)json_int_or(json_object_get(result, "compared"), "rollouts", 0),
                     (long long)json_int_or(json_object_get(result, "compared"), "checkpoints", 0)));
    } else {
        TRY(check_verdicts(q, first, last, e));
        out->faults++;
        TRY(str_addf(&out->text, e, "steps %lld to %lld: recomputed, they differ (a: recorded, b: recomputed)\n", (long long)first,
                     (long long)last));
        TRY(compare_print_differences(result, &out->text, e));
    }
    return TARE_OK;
}

static const char *data_of(const json_t *process)
{
    return json_text_or(json_object_get(process, "data"), "train_xxh3", "");
}

/* Refuses rows that differ from those of the run, since a comparison would prove nothing. again: the
 * folder of the recomputed run, whose manifest has the checksum of the rows just read. */
static tare_status check_data(const char *run, const char *again, struct err *e)
{
    char path[FS_PATH];
    OWNED(json_decrefp) json_t *recorded = NULL, *made = NULL;
    json_t *process;
    size_t i;
    TRY(fs_join(path, run, "manifest.json", e));
    TRY(json_read_file(path, &recorded, e));
    TRY(fs_join(path, again, "manifest.json", e));
    TRY(json_read_file(path, &made, e));
    const json_t *list = json_object_get(made, "resumed");
    const char *hash = data_of(json_array_size(list) ? json_array_get(list, json_array_size(list) - 1) : made);
    bool same = !strcmp(hash, data_of(recorded));
    json_array_foreach(json_object_get(recorded, "resumed"), i, process) same = same || !strcmp(hash, data_of(process));
    if (!same)
        FAIL(
            e, TARE_E_INVALID,
            "%s: the rows read now differ from those of the run (checksum in manifest.json); name the run's file with data.train=FILE",
            run);
    return TARE_OK;
}

/* Recomputes the steps from the newest checkpoint before `first`, in a temporary folder. */
static tare_status recompute_steps(const struct reproduce_request *q, int64_t first, int64_t last, struct reproduce_result *out,
                                   struct err *e)
{
    static const struct prefix_parts PARTS = {.rollouts = false};
    char folder[FS_PATH], again[FS_PATH];
    struct prefix p;
    TRY(prefix_find(q->run, first - 1, &p, e));
    TRY(fs_temporary(folder, "tare-verify", e));
    if (!mkdtemp(folder)) FAIL(e, TARE_E_IO, "%s: cannot create a folder there; set TMPDIR", folder);
    tare_status status = fs_join(again, folder, "run", e);
    if (!status) log_info("recomputing steps %lld to %lld from step %lld", (long long)first, (long long)last, (long long)p.step);
    if (!status) status = prefix_copy(&p, &PARTS, again, e);
    if (!status) status = replay_train(again, last, &(struct replay_options){q->keys, q->n_keys, .run = q->run, .checks = true}, e);
    if (!status) status = check_data(q->run, again, e);
    if (!status) status = compare_steps(q, again, first, last, out, e);
    const tare_status removed = fs_remove_tree(folder, status ? NULL : e);
    return status ? status : removed;
}

static int by_step(const void *a, const void *b)
{
    const int64_t x = *(const int64_t *)a, y = *(const int64_t *)b;
    return (x > y) - (x < y);
}

/* Recomputes steps that share a checkpoint together, with those between them. */
static tare_status recompute_sample(const struct reproduce_request *q, const int64_t *step, int64_t n, struct reproduce_result *out,
                                    struct err *e)
{
    for (int64_t i = 0, j; i < n; i = j) {
        struct prefix p, next;
        TRY(prefix_find(q->run, step[i] - 1, &p, e));
        for (j = i + 1; j < n; j++) {
            TRY(prefix_find(q->run, step[j] - 1, &next, e));
            if (next.step != p.step) break;
        }
        TRY(recompute_steps(q, step[i], step[j - 1], out, e));
    }
    return TARE_OK;
}

/* Chooses n of the steps 1 .. last without repetition, by a seed that cannot be predicted. */
static tare_status choose_steps(int64_t last, int64_t n, int64_t **out, struct err *e)
{
    uint64_t seed;
    TRY(mem_new((last + 1) * (int64_t)sizeof **out, (void **)out, e));
    if (getentropy(&seed, sizeof seed)) FAIL(e, TARE_E_IO, "cannot read random numbers from the system");
    for (int64_t i = 0; i < last; i++) (*out)[i] = i + 1;
    rng_shuffle(rng_key(seed, RNG_DATA), *out, last);
    qsort(*out, (size_t)n, sizeof **out, by_step);
    return TARE_OK;
}

tare_status reproduce_steps(const struct reproduce_request *q, struct reproduce_result *out, struct err *e)
{
    OWNED(mem_free_at) int64_t *step = NULL;
    const int64_t n = q->sample < out->last ? q->sample : out->last;
    if (q->last > out->last || q->first < 0 || q->first > q->last)
        FAIL(e, TARE_E_INVALID, "--steps %lld-%lld: invalid range: %s has the steps 1 to %lld", (long long)q->first,
             (long long)q->last, q->run, (long long)out->last);
    if (q->first) TRY(recompute_steps(q, q->first, q->last, out, e));
    if (n > 0) TRY(choose_steps(out->last, n, &step, e));
    if (n > 0) TRY(recompute_sample(q, step, n, out, e));
    return TARE_OK;
}
