/* @NAME@: rewards minus the mean of their group.
 *
 *   A[i] = scale (R[i] - mu)    R: rewards of one group, n rollouts; mu: their mean
 *
 * Replace this with your formula, its paper and its conventions: the advantage in a group of one
 * rollout, and in a group of equal rewards. Tokens, verdicts or fields of the data set's rows come
 * as columns: name them in a table of wants (see tare/base.h, `tare plugin columns`). An estimator
 * with a state adds sizes, collect, apply, save and load (see tare/estimator.h for the order of
 * the phases). An exception reaches the user as an error that begins with this plugin's name. */
#include <tare/sdk.hpp>

namespace
{

enum { P_SCALE, P_COUNT };

constexpr tare_param PARAMS[P_COUNT] = {
    tare::float_param("scale", "1", "multiplies the advantages", 0, TARE_NO_MAX, TARE_PARAM_ABOVE_MIN | TARE_PARAM_SWEEPABLE),
};

class estimator : public tare::estimator_base
{
  public:
    static constexpr uint32_t calls = TARE_CALLS_CONCURRENT; // an instance changes nothing, so any thread may call it

    explicit estimator(const tare_setup &setup) : scale_(setup.values[P_SCALE].f) {}

    void compute(const tare_batch &batch, const double * /* prepared */, tare_advantages &out) const override
    {
        for (int64_t m = 0; m < batch.n_groups; m++) {
            const int64_t first = batch.group_begin[m], n = batch.group_begin[m + 1] - first;
            const double *R = batch.reward + first;
            double shift = 0; // relative to the first reward, so that equal rewards give exactly 0
            for (int64_t i = 0; i < n; i++) shift += R[i] - R[0];
            const double mu = R[0] + shift / double(n);
            for (int64_t i = 0; i < n; i++) out.advantage[first + i] = scale_ * (R[i] - mu);
            out.baseline[m] = mu; // for the metrics; scale and confidence stay NaN, which means none
        }
    }

  private:
    double scale_;
};

constexpr tare_descriptor DESCRIPTOR =
    tare::estimator<estimator>({"@NAME@", "0.1.0", "rewards minus the mean of their group", "Apache-2.0"}, PARAMS);

} // namespace

TARE_PLUGIN_ENTRY(&DESCRIPTOR)
