/* @NAME@: the plain order, without groups that give no learning signal.
 *
 *   a group is left out when max R - min R <= spread    and another one is sampled
 *
 * Replace this with your rule and its paper. keep chooses the rollouts that enter the loss. A
 * curriculum that chooses the rows itself adds next, and one with a state adds apply, save and
 * load (see tare/curriculum.h for the order of the phases). Every rank calls it with equal
 * arguments, and the results must be equal: random choices use the host's random numbers. */
#include <tare/sdk.h>

enum { P_SPREAD, P_COUNT };

static const tare_param PARAMS[P_COUNT] = {
    [P_SPREAD] = TARE_FLOAT_PARAM("spread", "0", "largest spread of rewards that gives no learning signal", 0, TARE_NO_MAX,
                                  TARE_PARAM_SWEEPABLE),
};

static tare_status create(const tare_setup *setup, void **self, tare_error *error)
{
    (void)error;
    *self = (void *)(uintptr_t)setup->values; /* no state: the values live as long as the instance */
    return TARE_OK;
}

static void destroy(void *self)
{
    (void)self;
}

static tare_status keep(const void *self, const tare_batch *groups, tare_kept *out, tare_error *error)
{
    const tare_value *v = self;
    (void)error;
    for (int64_t m = 0; m < groups->n_groups; m++) {
        const int64_t first = groups->group_begin[m], end = groups->group_begin[m + 1];
        double low = INFINITY, high = -INFINITY;
        for (int64_t i = first; i < end; i++) {
            low = fmin(low, groups->reward[i]);
            high = fmax(high, groups->reward[i]);
        }
        if (high - low > v[P_SPREAD].f) continue;
        for (int64_t i = first; i < end; i++) out->fate[i] = TARE_FATE_LEFT_OUT;
        out->extra_groups++;
    }
    return TARE_OK;
}

static const tare_curriculum FUNCTIONS = {.struct_size = sizeof FUNCTIONS, .create = create, .destroy = destroy, .keep = keep};

static const tare_descriptor DESCRIPTOR = {
    .struct_size = sizeof DESCRIPTOR,
    .kind = TARE_KIND_CURRICULUM,
    .name = "@NAME@",
    .version = "0.1.0",
    .summary = "the plain order, without groups that give no learning signal",
    .license = "Apache-2.0",
    TARE_PARAMS(PARAMS, P_COUNT),
    .functions = &FUNCTIONS,
};

TARE_PLUGIN_ENTRY(&DESCRIPTOR)
