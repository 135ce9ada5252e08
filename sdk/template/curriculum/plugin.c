/* @NAME@: the plain order, without groups that give no learning signal.
 *
 *   a group is left out when max R - min R <= spread    and another one is sampled
 *
 * Replace this with your rule and its paper. keep chooses the rollouts that enter the loss. A
 * curriculum that chooses the rows itself adds next, and one with a state adds apply, save and load
 * (see tare/curriculum.h for the order of the phases). Every rank calls it with equal arguments,
 * and the results must be equal: random choices use host->random. */
#include <math.h>
#include <tare/sdk.h>

enum { P_SPREAD, P_COUNT };

static const tare_param PARAMS[P_COUNT] = {
    [P_SPREAD] = {"spread", "0", "the largest spread of rewards that gives no learning signal", NULL, NULL, 0, 1e9, TARE_FLOAT,
                  TARE_SWEEPABLE},
};

static tare_status create(const tare_host *host, const tare_value *values, const tare_rows *rows, void **self, tare_error *error)
{
    (void)host, (void)rows, (void)error;
    *self = (void *)(uintptr_t)values; /* no state: the values live as long as the instance */
    return TARE_OK;
}

static void destroy(void *self)
{
    (void)self;
}

static tare_status keep(const void *self, const tare_groups *groups, uint8_t *fate, int64_t *replace, tare_error *error)
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
        for (int64_t i = first; i < end; i++) fate[i] = TARE_ROLLOUT_LEFT_OUT;
        ++*replace;
    }
    return TARE_OK;
}

static const tare_curriculum FUNCTIONS = {.struct_size = sizeof FUNCTIONS, .create = create, .destroy = destroy, .keep = keep};

static const tare_descriptor DESCRIPTOR = {
    .struct_size = sizeof DESCRIPTOR,
    .kind = TARE_CURRICULUM,
    .name = "@NAME@",
    .version = "0.1.0",
    .summary = "the plain order, without groups that give no learning signal",
    .license = "Apache-2.0",
    .params = PARAMS,
    .n_params = P_COUNT,
    .param_size = sizeof(tare_param),
    .threading = TARE_SINGLE_THREAD,
    .functions = &FUNCTIONS,
};

TARE_PLUGIN_ENTRY_SINCE(DESCRIPTOR, 2)
