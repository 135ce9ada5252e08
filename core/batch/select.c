#include "batch/select.h"

#include "batch/table.h"

#include <stdbool.h>
#include <string.h>

/* Entries begin .. end of an axis of a batch. */
struct range {
    const struct batch *from;
    int64_t begin, end;
};

/* The composition of a batch: on each axis a list of ranges, one after the other. */
struct composition {
    struct batch_parts parts;
    unsigned stages;
    struct range *ranges[BATCH_N_AXES];
    int64_t n[BATCH_N_AXES], total[BATCH_N_AXES];
    struct arena *arena;
};

static tare_status new_ranges(struct composition *r, enum batch_axis axis, int64_t most, struct err *e)
{
    r->n[axis] = 0;
    return arena_new_raw(r->arena, &r->ranges[axis], most, e);
}

static void add_range(struct composition *r, enum batch_axis axis, const struct batch *from, int64_t begin, int64_t end)
{
    r->ranges[axis][r->n[axis]++] = (struct range){from, begin, end};
}

/* Derives the ranges of the remaining axes: the children of their parents' ranges. */
static tare_status derive_ranges(struct composition *r, struct err *e)
{
    for (int axis = AXIS_GROUP + 1; axis < BATCH_N_AXES; axis++) {
        const enum batch_axis parent = batch_parent((enum batch_axis)axis);
        if (r->ranges[axis]) continue;
        TRY(new_ranges(r, (enum batch_axis)axis, r->n[parent], e));
        for (int64_t i = 0; i < r->n[parent]; i++) {
            const struct range *p = &r->ranges[parent][i];
            const int64_t *begin = batch_array(p->from, batch_begin_column((enum batch_axis)axis));
            if (begin) add_range(r, (enum batch_axis)axis, p->from, begin[p->begin], begin[p->end]);
        }
    }
    for (int axis = 0; axis < BATCH_N_AXES; axis++)
        for (int64_t i = 0; i < r->n[axis]; i++) r->total[axis] += r->ranges[axis][i].end - r->ranges[axis][i].begin;
    return TARE_OK;
}

/* Returns whether any part has column c; refuses a column that only some parts have. */
static tare_status is_present(const struct composition *r, int c, bool *out, struct err *e)
{
    const struct batch_column *t = &BATCH_TABLE[c];
    *out = false;
    for (int64_t k = 0; k < r->parts.n; k++) *out |= batch_array(&r->parts.part[k], c) != NULL;
    if (!*out || batch_may_lack(t->kind)) return TARE_OK;
    for (int64_t i = 0; i < r->n[t->axis]; i++) {
        const struct range *p = &r->ranges[t->axis][i];
        if (p->begin < p->end && !batch_array(p->from, c))
            FAIL(e, TARE_E_SHAPE, "a batch cannot be built from parts with the column '%s' and parts without it", t->name);
    }
    return TARE_OK;
}

static void copy_entries(const struct composition *r, int c, struct batch *out)
{
    const struct batch_column *t = &BATCH_TABLE[c];
    const size_t entry = (size_t)batch_width(out, c) * t->size;
    char *to = batch_array(out, c);
    for (int64_t i = 0; i < r->n[t->axis]; i++) {
        const struct range *p = &r->ranges[t->axis][i];
        const char *from = batch_array(p->from, c);
        const size_t bytes = (size_t)(p->end - p->begin) * entry;
        if (from && bytes) memcpy(to, from + (size_t)p->begin * entry, bytes);
        if (!from && t->kind == KIND_MASK) memset(to, 1, bytes);
        to += bytes;
    }
}

static void recount_entries(const struct composition *r, int c, struct batch *out)
{
    const enum batch_axis axis = BATCH_TABLE[c].axis;
    int64_t *to = batch_array(out, c), k = 0;
    for (int64_t i = 0; i < r->n[axis]; i++) {
        const struct range *p = &r->ranges[axis][i];
        const int64_t *begin = batch_array(p->from, c);
        for (int64_t j = p->begin; j < p->end; j++, k++) to[k + 1] = to[k] + (begin ? begin[j + 1] - begin[j] : 0);
    }
}

/* Checks that the widths of columns are equal in all parts that bring entries. */
static tare_status same_widths(const struct composition *r, struct batch *out, struct err *e)
{
    bool first = true;
    for (int64_t i = 0; i < r->n[AXIS_ROLLOUT]; i++) {
        const struct range *p = &r->ranges[AXIS_ROLLOUT][i];
        if (p->begin == p->end || !p->from->component) continue;
        if (first) out->n_components = p->from->n_components;
        first = false;
        if (p->from->n_components != out->n_components)
            FAIL(e, TARE_E_SHAPE, "a batch cannot be built from rewards of %lld and of %lld components",
                 (long long)out->n_components, (long long)p->from->n_components);
    }
    return TARE_OK;
}

/* Builds the batch. r: the parts, the stages, and ranges of the groups. */
static tare_status build_batch(struct composition *r, struct batch *out, struct err *e)
{
    const struct batch *first = r->parts.part;
    *out = (struct batch){.step = first->step, .n_clusters = first->n_clusters, .n_components = first->n_components};
    TRY(derive_ranges(r, e));
    TRY(same_widths(r, out, e));
    out->n_groups = r->total[AXIS_GROUP];
    for (int c = 0; c < BATCH_N_COLUMNS; c++) {
        const struct batch_column *t = &BATCH_TABLE[c];
        bool there;
        if (!(t->stage & r->stages)) continue;
        TRY(is_present(r, c, &there, e));
        if (!there) continue;
        TRY(batch_new_array(out, c, r->total[t->axis], r->arena, e));
        if (batch_is_begin(t->kind)) {
            recount_entries(r, c, out);
            batch_set_count(out, batch_child(c), r->total[batch_child(c)]);
        } else {
            copy_entries(r, c, out);
        }
    }
    return TARE_OK;
}

tare_status batch_select(const struct batch *b, struct batch_indices groups, unsigned stages, struct arena *a, struct batch *out,
                         struct err *e)
{
    struct composition r = {.parts = {b, 1}, .stages = stages, .arena = a};
    TRY(new_ranges(&r, AXIS_GROUP, groups.n, e));
    for (int64_t i = 0; i < groups.n; i++) add_range(&r, AXIS_GROUP, b, groups.at[i], groups.at[i] + 1);
    return build_batch(&r, out, e);
}

tare_status batch_concat(struct batch_parts parts, unsigned stages, struct arena *a, struct batch *out, struct err *e)
{
    struct composition r = {.parts = parts, .stages = stages, .arena = a};
    TRY(new_ranges(&r, AXIS_GROUP, parts.n, e));
    for (int64_t k = 0; k < parts.n; k++) add_range(&r, AXIS_GROUP, &parts.part[k], 0, parts.part[k].n_groups);
    return build_batch(&r, out, e);
}

tare_status batch_split(const struct batch *b, const int64_t *hand, int64_t me, struct arena *a, struct batch *out, struct err *e)
{
    struct composition r = {.parts = {b, 1}, .stages = BATCH_ALL, .arena = a};
    TRY(new_ranges(&r, AXIS_GROUP, b->n_groups, e));
    for (int64_t m = 0; m < b->n_groups; m++)
        if (hand[m] == me) add_range(&r, AXIS_GROUP, b, m, m + 1);
    return build_batch(&r, out, e);
}

tare_status batch_join(struct batch_parts parts, struct batch_indices hand, unsigned stages, struct arena *a, struct batch *out,
                       struct err *e)
{
    struct composition r = {.parts = parts, .stages = stages, .arena = a};
    int64_t *next;
    TRY(arena_new(a, &next, parts.n, e));
    TRY(new_ranges(&r, AXIS_GROUP, hand.n, e));
    for (int64_t m = 0; m < hand.n; m++) {
        const int64_t k = hand.at[m], g = next[k]++;
        if (g < parts.part[k].n_groups) add_range(&r, AXIS_GROUP, &parts.part[k], g, g + 1);
    }
    for (int64_t k = 0; k < parts.n; k++)
        if (next[k] != parts.part[k].n_groups)
            FAIL(e, TARE_E_SHAPE, "part %lld of a batch has %lld groups: must have %lld", (long long)k,
                 (long long)parts.part[k].n_groups, (long long)next[k]);
    return build_batch(&r, out, e);
}

tare_status batch_keep(const struct batch *b, const uint8_t *keep, struct arena *a, struct batch *out, struct err *e)
{
    struct composition r = {.parts = {b, 1}, .stages = BATCH_ALL, .arena = a};
    int64_t *begin, groups = 0, kept = 0;
    TRY(new_ranges(&r, AXIS_GROUP, b->n_groups, e));
    TRY(new_ranges(&r, AXIS_ROLLOUT, b->n_rollouts, e));
    TRY(arena_new(a, &begin, b->n_groups + 1, e));
    for (int64_t m = 0; m < b->n_groups; m++) {
        for (int64_t i = b->group_begin[m]; i < b->group_begin[m + 1]; i++) {
            if (!keep[i]) continue;
            add_range(&r, AXIS_ROLLOUT, b, i, i + 1);
            kept++;
        }
        if (kept == begin[groups]) continue;
        add_range(&r, AXIS_GROUP, b, m, m + 1);
        begin[++groups] = kept;
    }
    TRY(build_batch(&r, out, e));
    out->group_begin = begin; /* build_batch counts rollouts by whole groups */
    return TARE_OK;
}

tare_status batch_regroup(const struct batch *b, struct batch_indices groups, struct batch_indices rollouts, struct arena *a,
                          struct batch *out, struct err *e)
{
    struct composition r = {.parts = {b, 1}, .stages = BATCH_ALL, .arena = a};
    int64_t *begin;
    if (!groups.n || rollouts.n % groups.n)
        FAIL(e, TARE_E_SHAPE, "%lld rollouts cannot be divided into %lld groups of one size", (long long)rollouts.n,
             (long long)groups.n);
    TRY(new_ranges(&r, AXIS_GROUP, groups.n, e));
    TRY(new_ranges(&r, AXIS_ROLLOUT, rollouts.n, e));
    TRY(arena_new(a, &begin, groups.n + 1, e));
    for (int64_t m = 0; m < groups.n; m++) {
        add_range(&r, AXIS_GROUP, b, groups.at[m], groups.at[m] + 1);
        begin[m + 1] = (m + 1) * (rollouts.n / groups.n);
    }
    for (int64_t i = 0; i < rollouts.n; i++) add_range(&r, AXIS_ROLLOUT, b, rollouts.at[i], rollouts.at[i] + 1);
    TRY(build_batch(&r, out, e));
    out->group_begin = begin; /* build_batch counts rollouts by whole groups */
    return TARE_OK;
}

tare_status batch_replace(const struct batch *b, struct batch_indices at, const struct batch *with, struct arena *a,
                          struct batch *out, struct err *e)
{
    const struct batch parts[] = {*b, *with};
    struct composition r = {.parts = {parts, 2}, .stages = BATCH_ALL, .arena = a};
    int64_t begin = 0;
    if (with->n_rollouts != at.n)
        FAIL(e, TARE_E_SHAPE, "%lld rollouts cannot be replaced by %lld", (long long)at.n, (long long)with->n_rollouts);
    TRY(new_ranges(&r, AXIS_GROUP, 1, e));
    add_range(&r, AXIS_GROUP, &parts[0], 0, b->n_groups);
    TRY(new_ranges(&r, AXIS_ROLLOUT, 2 * at.n + 1, e));
    for (int64_t k = 0; k < at.n; begin = at.at[k++] + 1) {
        add_range(&r, AXIS_ROLLOUT, &parts[0], begin, at.at[k]);
        add_range(&r, AXIS_ROLLOUT, &parts[1], k, k + 1);
    }
    add_range(&r, AXIS_ROLLOUT, &parts[0], begin, b->n_rollouts);
    return build_batch(&r, out, e);
}
