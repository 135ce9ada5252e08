/* Compares the checkpoints of two runs, tensor by tensor and section by section. */
#include "base/arena.h"
#include "checkpoint/checkpoint.h"
#include "checkpoint/optimizer.h"
#include "checkpoint/state.h"
#include "lab/compare/finder.h"
#include "model/adapter.h"
#include "model/safetensors.h"

#include <math.h>
#include <string.h>

/* ---------------------------------------------------------------- numbers */

struct floats {
    int64_t first, count; /* first element that differs (-1: none); number that differ */
    double a, b, largest; /* values of the first; the largest difference */
};

static struct floats compare_floats(const float *a, const float *b, int64_t n)
{
    struct floats r = {.first = -1};
    for (int64_t i = 0; i < n; i++) {
        if (!memcmp(&a[i], &b[i], sizeof *a)) continue;
        if (!r.count++) {
            r.first = i;
            r.a = (double)a[i];
            r.b = (double)b[i];
        }
        r.largest = fmax(r.largest, fabs((double)b[i] - (double)a[i]));
    }
    return r;
}

static json_t *json_number(double x)
{
    return isfinite(x) ? json_real(x) : json_string(isnan(x) ? "NaN" : x > 0 ? "infinity" : "-infinity");
}

static tare_status add_floats(struct finder *f, struct difference d, const char *name, struct floats r, struct err *e)
{
    char where[700];
    snprintf(where, sizeof where, "%.300s, element %lld (%lld differ, by at most %.9g)", name, (long long)r.first,
             (long long)r.count, r.largest);
    d.where = where;
    d.a = json_number(r.a);
    d.b = json_number(r.b);
    return compare_add_difference(f, &d, e);
}

/* ---------------------------------------------------------------- tensors */

static bool same_shape(const struct st_tensor *a, const struct st_tensor *b)
{
    bool same = !strcmp(a->dtype, b->dtype) && a->rank == b->rank && a->bytes == b->bytes;
    for (int64_t i = 0; same && i < a->rank; i++) same = a->shape[i] == b->shape[i];
    return same;
}

static tare_status add_tensor(struct finder *f, struct difference d, const struct safetensors s[2],
                              const struct st_tensor *const t[2], struct err *e)
{
    OWNED(arena_free) struct arena arena = {0};
    float *x[2];
    if (!t[1] || !same_shape(t[0], t[1])) {
        char where[400];
        snprintf(where, sizeof where, "%.300s", t[0]->name);
        d.where = where;
        d.a = json_string(t[0]->dtype);
        d.b = json_string(t[1] ? "different type or shape" : "not there");
        return compare_add_difference(f, &d, e);
    }
    arena_init(&arena, "tensors");
    for (int k = 0; k < 2; k++) {
        TRY(arena_new_raw(&arena, &x[k], safetensors_count(t[k]), e));
        TRY(safetensors_read_f32(&s[k], t[k], x[k], e));
    }
    return add_floats(f, d, t[0]->name, compare_floats(x[0], x[1], safetensors_count(t[0])), e);
}

static tare_status compare_tensors(struct finder *f, int64_t step, const struct safetensors s[2], struct err *e)
{
    struct difference d = {.what = "tensor", .step = step};
    const struct st_tensor *first[2] = {0};
    for (int64_t i = 0; i < s[0].n_tensors; i++) {
        const struct st_tensor *a = &s[0].tensors[i], *b = safetensors_find(&s[1], a->name);
        if (b && same_shape(a, b) && (!a->bytes || !memcmp(a->data, b->data, (size_t)a->bytes))) continue;
        if (!d.count++) {
            first[0] = a;
            first[1] = b;
        }
    }
    return d.count ? add_tensor(f, d, s, first, e) : TARE_OK;
}

/* ---------------------------------------------------------------- sections */

static bool is_moment(const char *name)
{
    if (!strncmp(name, "process.", 8)) name += 8;
    return !strncmp(name, "moment", 6) || !strncmp(name, "second", 6) || !strncmp(name, "weights.", 8);
}

static tare_status compare_section(struct finder *f, struct difference d, struct state_reader *const r[2], const char *name,
                                   struct err *e)
{
    const void *data[2] = {0};
    int64_t n[2] = {0};
    char where[700];
    snprintf(where, sizeof where, "%.300s, section %.300s", d.where, name);
    for (int k = 0; k < 2; k++)
        if (state_has(r[k], name)) TRY(state_view(r[k], name, &data[k], &n[k], e));
    if (data[0] && data[1] && n[0] == n[1] && (!n[0] || !memcmp(data[0], data[1], (size_t)n[0]))) return TARE_OK;
    if (is_moment(name) && n[0] == n[1])
        return add_floats(f, d, where, compare_floats(data[0], data[1], n[0] / (int64_t)sizeof(float)), e);
    d.where = where;
    if (n[0] == sizeof(int64_t) && n[1] == n[0]) {
        int64_t x[2];
        for (int k = 0; k < 2; k++) memcpy(&x[k], data[k], sizeof x[k]);
        d.a = json_integer(x[0]);
        d.b = json_integer(x[1]);
    }
    return compare_add_difference(f, &d, e);
}

static tare_status compare_sections(struct finder *f, struct difference d, struct state_reader *const r[2], struct err *e)
{
    for (int64_t i = 0; i < state_count(r[0]) && !compare_found(f, d.what); i++)
        if (strcmp(state_name(r[0], i), "ranks")) TRY(compare_section(f, d, r, state_name(r[0], i), e));
    for (int64_t i = 0; i < state_count(r[1]) && !compare_found(f, d.what); i++)
        if (!state_has(r[0], state_name(r[1], i))) TRY(compare_section(f, d, r, state_name(r[1], i), e));
    return TARE_OK;
}

/* Compares a state file of both checkpoints. ranks: number of ranks that wrote the optimizer, from
 * training.state. */
static tare_status compare_state_file(struct finder *f, int64_t step, const char (*folder)[FS_PATH], const char *file,
                                      int64_t ranks[2], struct err *e)
{
    char path[FS_PATH];
    struct state_reader *r[2] = {0};
    tare_status status = TARE_OK;
    for (int k = 0; k < 2 && !status; k++) {
        status = fs_join(path, folder[k], file, e);
        if (!status) status = state_open(path, &r[k], e);
        if (!status && ranks && state_has(r[k], "ranks")) status = state_read_int(r[k], "ranks", &ranks[k], e);
    }
    if (!status) status = compare_sections(f, (struct difference){.what = "section", .step = step, .where = file}, r, e);
    state_close(r[0]);
    state_close(r[1]);
    return status;
}

static tare_status compare_optimizer(struct finder *f, int64_t step, const char (*folder)[FS_PATH], const int64_t ranks[2],
                                     struct err *e)
{
    char name[64], text[200];
    if (ranks[0] != ranks[1]) {
        snprintf(text, sizeof text, "step %lld: the optimizer states are not compared, because %lld and %lld ranks wrote them",
                 (long long)step, (long long)ranks[0], (long long)ranks[1]);
        return compare_add_text(f, "notes", text, e);
    }
    for (int64_t k = 0; k < ranks[0]; k++) {
        optimizer_slices_name(k, ranks[0], name, sizeof name);
        TRY(compare_state_file(f, step, folder, name, NULL, e));
    }
    return TARE_OK;
}

static tare_status compare_folders(struct finder *f, int64_t step, const char (*folder)[FS_PATH], struct err *e)
{
    struct safetensors s[2];
    int64_t ranks[2] = {0};
    int n = 0;
    tare_status status = TARE_OK;
    for (; n < 2 && !status; n += !status) status = adapter_open(folder[n], &s[n], e);
    if (!status) status = compare_tensors(f, step, s, e);
    while (n > 0) safetensors_close(&s[--n]);
    if (!status) status = compare_state_file(f, step, folder, "training.state", ranks, e);
    return status ? status : compare_optimizer(f, step, folder, ranks, e);
}

tare_status compare_checkpoints(struct finder *f, int64_t step, struct err *e)
{
    char folder[2][FS_PATH];
    struct err why = {0};
    int64_t written;
    for (int k = 0; k < 2; k++) TRY(checkpoint_path(f->o->run[k], step, folder[k], e));
    const bool there[2] = {fs_is_dir(folder[0]), fs_is_dir(folder[1])};
    for (int k = 0; k < 2; k++)
        if (there[k] && !there[!k]) TRY(compare_count_only(f, k, "checkpoints", e));
    if (!there[0] || !there[1]) return TARE_OK;
    for (int k = 0; k < 2; k++)
        if (checkpoint_verify(folder[k], &written, &why)) return compare_add_text(f, "damaged", why.message, e);
    TRY(compare_count(f, "checkpoints", e));
    return compare_folders(f, step, (const char(*)[FS_PATH])folder, &why) ? compare_add_text(f, "damaged", why.message, e)
                                                                          : TARE_OK;
}
