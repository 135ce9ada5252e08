#include "checkpoint/optimizer.h"

#include "base/fs.h"
#include "model/shards.h"
#include "update/supervised.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum array { MOMENT1, MOMENT2, WEIGHTS, SECOND1, SECOND2, ARRAYS };
static const char *const NAMES[ARRAYS] = {"moment1", "moment2", "weights", "second1", "second2"};

void optimizer_slices_name(int64_t rank, int64_t ranks, char *out, size_t capacity)
{
    snprintf(out, capacity, "optimizer-%05lld-of-%05lld.state", (long long)rank, (long long)ranks);
}

/* Names the section of array a and unit u. process: it belongs to the process reward model. */
static void section_name(bool process, enum array a, int64_t u, char *out, size_t capacity)
{
    snprintf(out, capacity, "%s%s.%lld", process ? "process." : "", NAMES[a], (long long)u);
}

static float *array_of(const struct training *t, enum array a, bool *whole)
{
    const struct model *m = t->model;
    const struct second_optimizer *second = t->trainer->second;
    *whole = a == WEIGHTS ? model_is_whole(m) : m->shard == SHARD_NONE;
    if (a == SECOND1) return second->moment1;
    if (a == SECOND2) return second->moment2;
    return a == WEIGHTS ? m->weights : a == MOMENT1 ? t->trainer->moment1 : t->trainer->moment2;
}

static tare_status write_slice(const struct training *t, struct state_writer *w, enum array a, int64_t u, struct err *e)
{
    const struct model *m = t->model;
    const int64_t slice = shards_unit_slice(m, u), bytes = slice * (int64_t)sizeof(float);
    bool whole;
    const float *array = array_of(t, a, &whole),
                *from = array + (whole ? m->unit_begin[u] + m->rank * slice : shards_unit_own(m, u));
    OWNED(mem_free_at) void *buffer = NULL;
    char name[64];
    section_name(t->is_reward_model, a, u, name, sizeof name);
    TRY(model_host_alloc(m, bytes, &buffer, e));
    kernels_at(&m->ctx, "saving the optimizer's state", -1);
    from = model_from_backend(m, buffer, from, bytes);
    TRY(model_finish(m, e)); /* a lost device returns no bytes */
    return state_write(w, name, from, bytes, e);
}

tare_status optimizer_write_slices(const struct training *t, struct state_writer *w, struct err *e)
{
    for (int a = MOMENT1; a < ARRAYS; a++) {
        if ((a == WEIGHTS && t->dtype == DTYPE_F32 && !t->is_reward_model) || (a > WEIGHTS && !t->trainer->second)) continue;
        for (int64_t u = shards_unit_first(t->model); u < shards_unit_end(t->model); u++)
            TRY(write_slice(t, w, (enum array)a, u, e));
    }
    return t->reward_model ? optimizer_write_slices(t->reward_model, w, e) : TARE_OK;
}

/* ---------------------------------------------------------------- reading */

/* Assembles this rank's part of unit u, a slice or the whole unit, from the slices of all ranks
 * that wrote the checkpoint. */
static tare_status read_unit(const struct training *t, struct state_reader *const *files, int64_t ranks, enum array a, int64_t u,
                             struct err *e)
{
    const struct model *m = t->model;
    const int64_t size = m->unit_size[u], mine = shards_unit_slice(m, u);
    bool whole;
    float *array = array_of(t, a, &whole), *to = array + (whole ? m->unit_begin[u] : shards_unit_own(m, u));
    const int64_t begin = whole ? 0 : m->rank * mine, end = whole || begin + mine > size ? size : begin + mine;
    char name[64];
    section_name(t->is_reward_model, a, u, name, sizeof name);
    const int64_t slice = state_size(files[0], name) / (int64_t)sizeof(float);
    if (slice * ranks < size)
        FAIL(e, TARE_E_SHAPE, "%s: its size differs from the model's; was it written with another model?", name);
    for (int64_t at = begin, stop; at < end; at = stop) {
        const int64_t q = at / slice;
        const void *data;
        int64_t bytes;
        TRY(state_view(files[q], name, &data, &bytes, e));
        if (bytes != slice * (int64_t)sizeof(float)) FAIL(e, TARE_E_CORRUPT, "%s: its sizes differ between the ranks' files", name);
        stop = (q + 1) * slice < end ? (q + 1) * slice : end;
        m->k->backend->upload(&m->ctx, to + at - begin, (const float *)data + at - q * slice, (stop - at) * (int64_t)sizeof(float));
    }
    return TARE_OK;
}

static bool has_section(const struct training *t, const struct state_reader *file, enum array a)
{
    char name[64];
    section_name(t->is_reward_model, a, shards_unit_first(t->model), name, sizeof name);
    return state_has(file, name);
}

static tare_status read_arrays(const struct training *t, struct state_reader *const *files, int64_t ranks, const char *folder,
                               struct err *e)
{
    const bool weights = has_section(t, files[0], WEIGHTS);
    /* otherwise its moments start at zero */
    const bool second = t->trainer->second && has_section(t, files[0], SECOND1);
    /* Saved without a process reward model: this one starts fresh. */
    if (t->is_reward_model && !weights) return TARE_OK;
    if (!t->is_reward_model) TRY(model_check_folder(t->model, folder, e));
    for (int64_t u = shards_unit_first(t->model); u < shards_unit_end(t->model); u++) {
        TRY(read_unit(t, files, ranks, MOMENT1, u, e));
        TRY(read_unit(t, files, ranks, MOMENT2, u, e));
        if (weights) TRY(read_unit(t, files, ranks, WEIGHTS, u, e));
        if (!second) continue;
        TRY(read_unit(t, files, ranks, SECOND1, u, e));
        TRY(read_unit(t, files, ranks, SECOND2, u, e));
    }
    if (!weights) TRY(model_read_weights(t->model, folder, e));
    return t->reward_model ? read_arrays(t->reward_model, files, ranks, folder, e) : TARE_OK;
}

tare_status optimizer_read_slices(const struct training *t, const char *folder, int64_t ranks, struct err *e)
{
    struct state_reader **files;
    char name[64], path[FS_PATH];
    tare_status status = TARE_OK;
    TRY(mem_new(ranks * (int64_t)sizeof *files, (void **)&files, e));
    for (int64_t q = 0; q < ranks && !status; q++) {
        optimizer_slices_name(q, ranks, name, sizeof name);
        status = fs_join(path, folder, name, e);
        if (!status) status = state_open(path, &files[q], e);
    }
    if (!status) status = read_arrays(t, files, ranks, folder, e);
    for (int64_t q = 0; q < ranks; q++) state_close(files[q]);
    mem_free(files);
    return status;
}
