/* Curricula that break the contract, each in one way: compiled once for each CASE
 * (tests/plugin/fixtures.cmake). CASE good_curriculum breaks nothing: it visits the rows by a
 * stride that grows with the state, gives every other row one rollout less and the rest one
 * more, leaves out the longest rollout of a group, only counts the first one, and asks for another
 * group for each that is all wrong. */
#include <tare/sdk.h>

#include <string.h>

enum cases {
    good_curriculum,
    row_unwritten,
    row_past_end,
    rollouts_none,
    rollouts_over,
    writes_past_rows,
    writes_past_fates,
    fate_three,
    extra_negative,
    chooses_by_call,
    keeps_by_call,
    writes_in_next,
    writes_in_keep,
    chooses_by_instance,
    forgets_stride,
    takes_short_course,
    fails_on_unjudged
};
#define IS(X) (CASE == X)

struct self {
    const tare_host *host;
    int64_t n, group_size, stride, instance;
};

enum { W_VERDICT, W_FATE, N_WANTS };
static const tare_want WANTS[N_WANTS] = {
    [W_VERDICT] = {.name = "verdict", .axis = TARE_AXIS_ROLLOUT, .type = TARE_I32, .width = 1},
    [W_FATE] = {.name = "fate", .axis = TARE_AXIS_ROLLOUT, .type = TARE_U8, .width = 1},
};

static const tare_param PARAMS[] = {TARE_INT_PARAM("step", "1", "growth of the stride", 1, 5, 0)};

static tare_status create(const tare_setup *setup, void **self, tare_error *error)
{
    static _Atomic int instances; /* ranks may be threads of one process */
    struct self *s = setup->host->alloc(setup->host->ctx, sizeof *s, 0);
    if (!s) return tare_fail(error, TARE_E_NOMEM, "no memory");
    *s = (struct self){setup->host, setup->dataset->n_rows, setup->dataset->group_size, setup->values[0].i,
                       IS(chooses_by_instance) ? instances++ : 0};
    *self = s;
    return TARE_OK;
}

static void destroy(void *self)
{
    struct self *s = self;
    s->host->release(s->host->ctx, s);
}

static tare_status save(const void *self, const tare_stream *out, tare_error *error)
{
    const struct self *s = self;
    (void)error;
    return out->write(out->ctx, &s->stride, sizeof s->stride);
}

static tare_status load(void *self, const tare_stream *in, tare_error *error)
{
    struct self *s = self;
    int64_t stride = s->stride;
    const tare_status status = in->read(in->ctx, &stride, sizeof stride);
    if (status && !IS(takes_short_course)) return tare_fail(error, status, "the state is cut short");
    if (!IS(forgets_stride)) s->stride = stride > 0 && stride < 1 << 30 ? stride : 1;
    return TARE_OK;
}

static tare_status next(const void *self, const tare_draw *draw, tare_choice *out, tare_error *error)
{
    static _Atomic int calls;
    const struct self *s = self;
    (void)error;
    calls++;
    for (int64_t i = IS(row_unwritten); i < draw->n; i++) {
        out->row[i] = (draw->cursor * s->stride + i * 3 + s->instance + (IS(chooses_by_call) ? calls : 0)) % s->n;
        if (s->group_size > 1 && i + 1 < draw->n + (i % 2)) out->n_rollouts[i] += i % 2 ? 1 : -1;
    }
    if (IS(row_past_end)) out->row[0] = s->n;
    if (IS(rollouts_none)) out->n_rollouts[0] = 0;
    if (IS(rollouts_over)) out->n_rollouts[0] += 2 * s->group_size;
    if (IS(writes_past_rows)) out->row[draw->n] = 0;
    if (IS(writes_in_next)) ((struct self *)(uintptr_t)self)->stride++;
    return TARE_OK;
}

static tare_status keep(const void *self, const tare_batch *g, tare_kept *out, tare_error *error)
{
    static _Atomic int calls;
    calls++;
    for (int64_t m = 0; m < g->n_groups; m++) {
        const int64_t first = g->group_begin[m], end = g->group_begin[m + 1];
        int64_t longest = first, right = 0;
        for (int64_t i = first; i < end; i++) {
            if (g->length[i] > g->length[longest]) longest = i;
            right += g->reward[i] > 0;
            if (IS(fails_on_unjudged) && TARE_COLUMN(g, W_VERDICT, int32_t)[i] == TARE_VERDICT_TIMED_OUT) return TARE_E_STATE;
        }
        if (end > first + 2) out->fate[first] = TARE_FATE_COUNTED;
        if (end > first + 2 && longest > first) out->fate[longest] = TARE_FATE_LEFT_OUT;
        if (!right) {
            for (int64_t i = first; i < end; i++) out->fate[i] = TARE_FATE_LEFT_OUT;
            out->extra_groups++;
        }
    }
    if (IS(writes_past_fates)) out->fate[g->n_rollouts] = 0;
    if (IS(fate_three) && g->n_rollouts) out->fate[0] = 3;
    if (IS(extra_negative)) out->extra_groups = -1;
    if (IS(keeps_by_call) && g->n_rollouts) out->fate[0] = (uint8_t)(calls % 2);
    if (IS(writes_in_keep)) ((struct self *)(uintptr_t)self)->stride++;
    (void)error;
    return TARE_OK;
}

static tare_status apply(void *self, const tare_batch *g, tare_error *error)
{
    struct self *s = self;
    (void)error;
    for (int64_t i = 0; i < g->n_rollouts; i++) s->stride += TARE_COLUMN(g, W_FATE, uint8_t)[i] == TARE_FATE_KEPT;
    s->stride = 1 + s->stride % 1000;
    return TARE_OK;
}

static const tare_curriculum FUNCTIONS = {.struct_size = sizeof FUNCTIONS,
                                          .create = create,
                                          .destroy = destroy,
                                          .save = save,
                                          .load = load,
                                          .next = next,
                                          .keep = keep,
                                          .apply = apply};
static const tare_descriptor DESCRIPTOR = {.struct_size = sizeof DESCRIPTOR,
                                           .kind = TARE_KIND_CURRICULUM,
                                           .name = "fixture",
                                           .version = "1.0.0",
                                           .summary = "a curriculum for tests",
                                           .license = "Apache-2.0",
                                           TARE_PARAMS(PARAMS, 1),
                                           TARE_WANTS(WANTS, N_WANTS),
                                           .state_version = 1,
                                           .state_oldest = 1,
                                           .calls = TARE_CALLS_SERIAL,
                                           .functions = &FUNCTIONS};
TARE_PLUGIN_ENTRY(&DESCRIPTOR)
