/* baseline: rewards minus a moving average of all rewards before this step (REINFORCE with a
 * baseline).
 *
 *   A[i] = R[i] - b,   b <- (1 - rate) b + rate mean(R) after the policy step
 *                      b = start in the first step
 *
 * The mean is over the rollouts of every rank: collect gives the host each group's sum and count,
 * which it adds in the order of the prompts. A reward beyond `limit` stops the run with an
 * exception. */
#include <cmath>
#include <stdexcept>
#include <string>
#include <tare/sdk.hpp>

namespace
{

enum { P_RATE, P_START, P_LIMIT, P_COUNT };

constexpr tare_param PARAMS[P_COUNT] = {
    tare::float_param("rate", "0.1", "weight of the newest batch in the average", 0, 1,
                      TARE_PARAM_ABOVE_MIN | TARE_PARAM_SWEEPABLE),
    tare::float_param("start", "0", "the average before the first step", TARE_NO_MIN, TARE_NO_MAX),
    tare::float_param("limit", "1e6", "largest valid reward", 0, TARE_NO_MAX, TARE_PARAM_ABOVE_MIN),
};

class baseline : public tare::estimator_base
{
  public:
    explicit baseline(const tare_setup &setup)
        : rate_(setup.values[P_RATE].f), limit_(setup.values[P_LIMIT].f), b_(setup.values[P_START].f)
    {
        if (std::fabs(b_) > limit_)
            throw tare::error(TARE_E_CONFIG, "start = %g is beyond limit = %g; lower one or raise the other", b_, limit_);
    }

    void compute(const tare_batch &batch, const double *, tare_advantages &out) const override
    {
        for (int64_t i = 0; i < batch.n_rollouts; i++) {
            if (std::fabs(batch.reward[i]) > limit_)
                throw std::runtime_error("rollout " + std::to_string(i) + " has the reward " + std::to_string(batch.reward[i]) +
                                         ", beyond limit; is the verifier right?");
            out.advantage[i] = batch.reward[i] - b_;
        }
        for (int64_t m = 0; m < batch.n_groups; m++) out.baseline[m] = b_;
    }

    void sizes(tare_sizes &out) const override { out.collect = 2; }

    void collect(const tare_batch &batch, int64_t group, double *sum) const override
    {
        for (int64_t i = batch.group_begin[group]; i < batch.group_begin[group + 1]; i++) {
            sum[0] += batch.reward[i];
            sum[1] += 1;
        }
    }

    void apply(const tare_update &update) override
    {
        const double sum = update.collected[0], n = update.collected[1];
        if (n > 0) b_ += rate_ * (sum / n - b_);
    }

    void save(const tare_stream &out) const override { tare::put(out, b_); }

    void load(const tare_stream &in) override
    {
        const double b = tare::get<double>(in);
        if (!std::isfinite(b)) throw tare::error(TARE_E_CORRUPT, "the saved average is %g", b);
        b_ = b;
    }

    void describe(const tare_stream &out) const override
    {
        tare::check(tare_print(&out, "{\"baseline\":%.17g}", b_), "the state cannot be described");
    }

  private:
    double rate_, limit_, b_;
};

constexpr tare_descriptor DESCRIPTOR =
    tare::estimator<baseline>({"baseline", "1.0.0", "rewards minus a moving average of the rewards", "Apache-2.0"}, PARAMS);

} // namespace

TARE_PLUGIN_ENTRY(&DESCRIPTOR)
