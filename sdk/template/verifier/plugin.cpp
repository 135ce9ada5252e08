/* @NAME@: correct when the completion contains the answer.
 *
 * Replace this with your rule. A verdict is not a status: throw only when the call could not be
 * served at all. Check deadline_ns in long loops. The text taken as the answer goes into
 * `extracted` (tare::extract cuts it to the buffer). */
#include <string_view>
#include <tare/sdk.hpp>

namespace
{

enum { P_REWARD, P_COUNT };

constexpr tare_param PARAMS[P_COUNT] = {
    {"reward", "1", "reward of a right completion", nullptr, nullptr, 0, 0, TARE_FLOAT, 0},
};

std::string_view view(tare_text text)
{
    return {text.size ? text.data : "", size_t(text.size)};
}

class verifier final : public tare::verifier_base
{
public:
    verifier(const tare_host *, const tare_value *values) : reward_(values[P_REWARD].f)
    {
    }

    void verify(const tare_answer &a, tare_verdict &v) override
    {
        const auto answer = view(a.answer);
        const bool right = !answer.empty() && view(a.completion).find(answer) != std::string_view::npos;
        v.code = right ? TARE_CORRECT : TARE_WRONG;
        v.reward = right ? reward_ : 0;
        v.reason = right ? "the completion contains the answer" : "the completion does not contain the answer";
        if (right) tare::extract(v, answer.data(), int64_t(answer.size()));
    }

private:
    double reward_;
};

constexpr tare_descriptor DESCRIPTOR = tare::verifier<verifier>(
    {"@NAME@", "0.1.0", "right when the completion contains the answer", "Apache-2.0", nullptr, 0, TARE_REENTRANT}, PARAMS);

} // namespace

TARE_PLUGIN_ENTRY(DESCRIPTOR)
