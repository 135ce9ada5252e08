/* @NAME@: the clipped surrogate with its own bound.
 *
 *   v = -min(r A, clip(r, 1 - bound, 1 + bound) A)    r = pi / old, A: the token's advantage
 *
 * Replace this with your formula and its paper. compute writes v and its derivatives for each
 * token; the host weighs and adds them, adds the KL penalty and the entropy bonus, and computes
 * the gradient of the model. Numbers that depend on a whole rollout or group come from annotate.
 * An objective with a state adds sizes, collect, apply, save and load (see tare/objective.h for
 * the order of the phases). A factor without a gradient is computed from `detached`. An exception
 * reaches the user as an error that begins with this plugin's name. */
#include <algorithm>
#include <cmath>
#include <tare/sdk.hpp>

namespace
{

enum { P_BOUND, P_COUNT };

constexpr tare_param PARAMS[P_COUNT] = {
    tare::float_param("bound", "0.2", "largest distance of the ratio from 1", 0, 1, TARE_PARAM_ABOVE_MIN | TARE_PARAM_SWEEPABLE),
};

class objective : public tare::objective_base
{
  public:
    static constexpr uint32_t flags = TARE_OBJECTIVE_OWN_CLIP; // loss.clip is not read
    static constexpr uint32_t calls = TARE_CALLS_CONCURRENT;   // an instance changes nothing, so any thread may call it

    explicit objective(const tare_setup &setup) : bound_(setup.values[P_BOUND].f) {}

    void compute(const tare_tokens &tokens, tare_token_loss &out) const override
    {
        for (int64_t i = 0; i < tokens.n; i++) {
            const double A = tokens.advantage[i], r = std::exp(double(tokens.logprob[i]) - double(tokens.old_logprob[i]));
            const double bounded = std::min(std::max(r, 1 - bound_), 1 + bound_);
            const bool clipped = bounded * A < r * A;
            out.value[i] = clipped ? -bounded * A : -r * A;
            out.dlogprob[i] = clipped ? 0 : -r * A; // dr/dlogp = r
            out.clipped[i] = clipped;
        }
    }

  private:
    double bound_;
};

constexpr tare_descriptor DESCRIPTOR =
    tare::objective<objective>({"@NAME@", "0.1.0", "the clipped surrogate with its own bound", "Apache-2.0"}, PARAMS);

} // namespace

TARE_PLUGIN_ENTRY(&DESCRIPTOR)
