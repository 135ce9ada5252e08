/* @NAME@: rewards minus the mean of their group.
 *
 *   A[i] = scale (R[i] - mu)                                R: rewards of one group, n rollouts; mu: their mean
 *
 * Replace this by your formula, its paper and its conventions: what a group of one gets, what a group of equal rewards gets. An estimator
 * that remembers things over steps adds save, load, collect_size, collect and apply (see tare/estimator.h for the order of the phases).
 * What is thrown reaches the user as an error with this plugin's name in front.
 */
#include <cmath>
#include <tare/sdk.hpp>

namespace
{

enum { P_SCALE, P_COUNT };

constexpr tare_param PARAMS[P_COUNT] = {
    {"scale", "1", "multiplies the advantages", nullptr, nullptr, 0, 1e300, TARE_FLOAT, TARE_ABOVE_MIN | TARE_SWEEPABLE},
};

class estimator final : public tare::estimator_base
{
public:
    estimator(const tare_host *, const tare_value *values, int64_t /* n_clusters */) : scale_(values[P_SCALE].f)
    {
    }

    void compute(const tare_batch &batch, const double * /* prepared */, tare_advantages &out) const override
    {
        for (int64_t m = 0; m < batch.n_groups; m++) {
            const int64_t first = batch.group_begin[m], n = batch.group_begin[m + 1] - first;
            const double *R = batch.reward + first;
            double shift = 0; // around the first reward, so that equal rewards give exactly 0
            for (int64_t i = 0; i < n; i++) shift += R[i] - R[0];
            const double mu = R[0] + shift / double(n);
            for (int64_t i = 0; i < n; i++) out.advantage[first + i] = scale_ * (R[i] - mu);
            out.baseline[m] = mu;
            out.scale[m] = NAN; // nothing is divided by
            out.confidence[m] = 0;
        }
    }

private:
    double scale_;
};

constexpr tare_descriptor DESCRIPTOR =
    tare::estimator<estimator>({"@NAME@", "0.1.0", "rewards minus the mean of their group", "Apache-2.0"}, PARAMS);

} // namespace

TARE_PLUGIN_ENTRY(DESCRIPTOR)
