/* @NAME@: correct when the completion contains the answer.
 *
 * Replace this with your rule. A verdict is not a status: throw only when the call could not be
 * served at all. Long loops check deadline_ns. The text taken as the answer is written to
 * `extracted`, the reason to `note`; the host cuts both. Other fields of the row are in `row`, as
 * JSON (tare/json.h reads it). A verifier that does not read the answer says so with uses. */
#include <tare/sdk.hpp>

namespace
{

enum { P_REWARD, P_COUNT };

constexpr tare_param PARAMS[P_COUNT] = {
    tare::float_param("reward", "1", "reward of a correct completion", TARE_NO_MIN, TARE_NO_MAX),
};

class verifier : public tare::verifier_base
{
  public:
    static constexpr uint32_t flags = TARE_VERIFIER_REPEATS; // the same completion, the same verdict
    static constexpr uint32_t calls = TARE_CALLS_CONCURRENT; // an instance changes nothing, so any thread may call it

    explicit verifier(const tare_setup &setup) : reward_(setup.values[P_REWARD].f) {}

    void verify(const tare_completion &c, tare_verdict &out) override
    {
        const auto answer = tare::view(c.answer);
        if (!answer.empty() && tare::view(c.text).find(answer) != std::string_view::npos)
            tare::judge(out, TARE_VERDICT_CORRECT, reward_, answer, "the completion contains the answer");
        else
            tare::judge(out, TARE_VERDICT_WRONG, 0, {}, "the completion does not contain the answer");
    }

  private:
    double reward_;
};

constexpr tare_descriptor DESCRIPTOR =
    tare::verifier<verifier>({"@NAME@", "0.1.0", "correct when the completion contains the answer", "Apache-2.0"}, PARAMS);

} // namespace

TARE_PLUGIN_ENTRY(&DESCRIPTOR)
