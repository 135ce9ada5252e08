/* @NAME@: the plain order, without groups that give no learning signal.
 *
 *   a group is left out when max R - min R <= spread    and another one is sampled
 *
 * Replace this with your rule and its paper. keep chooses the rollouts that enter the loss. A
 * curriculum that chooses the rows itself adds
 *   void next(const tare_draw &draw, int64_t *row, int64_t *rollouts) const;
 * and one with a state adds apply(const tare_groups &), save and load (see tare/curriculum.h for
 * the order of the phases). Every rank calls it with equal arguments, and the results must be
 * equal: random choices use host->random. An exception reaches the user as an error that begins
 * with this plugin's name. */
#include <algorithm>
#include <tare/sdk.hpp>

namespace
{

enum { P_SPREAD, P_COUNT };

constexpr tare_param PARAMS[P_COUNT] = {
    {"spread", "0", "the largest spread of rewards that gives no learning signal", nullptr, nullptr, 0, 1e9, TARE_FLOAT, TARE_SWEEPABLE},
};

class curriculum
{
public:
    curriculum(const tare_host *, const tare_value *values, const tare_rows &) : spread_(values[P_SPREAD].f)
    {
    }

    void keep(const tare_groups &groups, uint8_t *fate, int64_t &replace) const
    {
        for (int64_t m = 0; m < groups.n_groups; m++) {
            const int64_t first = groups.group_begin[m], end = groups.group_begin[m + 1];
            if (first == end) continue;
            const auto range = std::minmax_element(groups.reward + first, groups.reward + end);
            if (*range.second - *range.first > spread_) continue;
            std::fill(fate + first, fate + end, uint8_t(TARE_ROLLOUT_LEFT_OUT));
            replace++;
        }
    }

private:
    double spread_;
};

constexpr tare_descriptor DESCRIPTOR = tare::curriculum<curriculum>(
    {"@NAME@", "0.1.0", "the plain order, without groups that give no learning signal", "Apache-2.0"}, PARAMS);

} // namespace

TARE_PLUGIN_ENTRY_SINCE(DESCRIPTOR, 2)
