/* @NAME@: the plain order, without groups that give no learning signal.
 *
 *   a group is left out when max R - min R <= spread    and another one is sampled
 *
 * Replace this with your rule and its paper. keep chooses the rollouts that enter the loss. A
 * curriculum that chooses the rows itself adds next, and one with a state adds apply, save and
 * load (see tare/curriculum.h for the order of the phases). Every rank calls it with equal
 * arguments, and the results must be equal: random choices use the host's random numbers. An
 * exception reaches the user as an error that begins with this plugin's name. */
#include <algorithm>
#include <tare/sdk.hpp>

namespace
{

enum { P_SPREAD, P_COUNT };

constexpr tare_param PARAMS[P_COUNT] = {
    tare::float_param("spread", "0", "largest spread of rewards that gives no learning signal", 0, TARE_NO_MAX,
                      TARE_PARAM_SWEEPABLE),
};

class curriculum : public tare::curriculum_base
{
  public:
    explicit curriculum(const tare_setup &setup) : spread_(setup.values[P_SPREAD].f) {}

    void keep(const tare_batch &groups, tare_kept &out) const override
    {
        for (int64_t m = 0; m < groups.n_groups; m++) {
            const int64_t first = groups.group_begin[m], end = groups.group_begin[m + 1];
            if (first == end) continue;
            const auto range = std::minmax_element(groups.reward + first, groups.reward + end);
            if (*range.second - *range.first > spread_) continue;
            std::fill(out.fate + first, out.fate + end, uint8_t(TARE_FATE_LEFT_OUT));
            out.extra_groups++;
        }
    }

  private:
    double spread_;
};

constexpr tare_descriptor DESCRIPTOR = tare::curriculum<curriculum>(
    {"@NAME@", "0.1.0", "the plain order, without groups that give no learning signal", "Apache-2.0"}, PARAMS);

} // namespace

TARE_PLUGIN_ENTRY(&DESCRIPTOR)
