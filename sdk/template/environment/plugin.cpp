/* @NAME@: the policy guesses a number, and hears whether it is higher or lower.
 *
 *   number = 1 + seed mod highest    equal for all rollouts of a prompt; reward 1 for the right guess
 *
 * Replace this with your game, tool or dialogue. A session holds what one episode needs; reset
 * begins an episode in it, and step answers one turn with messages. What is drawn at random comes
 * from the episode's seed (the task) and noise (this rollout), so that equal turns give equal
 * observations (see tare/draft/environment.h). state_key names the state, so that an estimator can
 * compare turns of different rollouts. An exception reaches the user as an error that begins with
 * this plugin's name. */
#include <string>
#include <tare/sdk.hpp>

namespace
{

enum { P_HIGHEST, P_COUNT };

constexpr tare_param PARAMS[P_COUNT] = {
    tare::int_param("highest", "100", "the largest number", 2, 1000000000),
};

struct session {
    int64_t number = 0, low = 0, high = 0; // the number, and the bounds that the answers have told
};

// Reads the last number of a text; 0: none.
int64_t last_number(std::string_view text)
{
    int64_t number = 0, unit = 1;
    const auto end = text.find_last_of("0123456789");
    if (end == std::string_view::npos) return 0;
    for (auto at = end + 1; at > 0 && unit <= 1000000000 && text[at - 1] >= '0' && text[at - 1] <= '9'; at--, unit *= 10)
        number += unit * (text[at - 1] - '0');
    return number;
}

class environment : public tare::environment_base<session>
{
  public:
    static constexpr uint32_t flags = TARE_ENVIRONMENT_REPEATS; // equal seeds and turns, equal observations
    static constexpr uint32_t calls = TARE_CALLS_CONCURRENT;    // an instance changes nothing, so any thread may call it

    explicit environment(const tare_setup &setup) : highest_(setup.values[P_HIGHEST].i) {}

    void reset(session &s, const tare_episode &episode, tare_observation &out) override
    {
        s.number = 1 + int64_t(episode.seed[0] % uint64_t(highest_));
        s.low = 1;
        s.high = highest_;
        say(s, out, "I think of a number from 1 to " + std::to_string(highest_) + ". Guess it.");
    }

    void step(session &s, const tare_act &act, tare_observation &out) override
    {
        const int64_t guess = last_number(tare::view(act.text));
        if (guess < 1) return say(s, out, "Name a number.");
        if (guess == s.number) {
            out.end = TARE_EPISODE_DONE;
            out.reward = 1;
            out.verdict = TARE_VERDICT_CORRECT;
            return;
        }
        if (guess < s.number && s.low <= guess) s.low = guess + 1;
        if (guess > s.number && s.high >= guess) s.high = guess - 1;
        say(s, out, guess < s.number ? "My number is higher." : "My number is lower.");
    }

    void save_session(const session &s, const tare_stream &out) override { tare::put(out, s); }

    void load_session(session &s, const tare_stream &in) override
    {
        const auto loaded = tare::get<session>(in);
        if (loaded.low < 1 || loaded.number < loaded.low || loaded.high < loaded.number || loaded.high > highest_)
            throw tare::error(TARE_E_CORRUPT, "the saved session has the number %lld", static_cast<long long>(loaded.number));
        s = loaded;
    }

    // Writes a legal act, whatever it is worth: `tare env demo` makes rows for a warm start of them.
    void suggest(const session &, const uint64_t *draw, const tare_stream &out) override
    {
        tare::say(&out, std::to_string(1 + draw[0] % static_cast<uint64_t>(highest_)));
    }

  private:
    // Says a text to the policy, and names the state: the bounds are all that matters.
    static void say(const session &s, tare_observation &out, std::string_view text)
    {
        tare::message(out, TARE_ROLE_USER, text);
        tare::say(out.state_key, std::to_string(s.low) + "-" + std::to_string(s.high));
    }

    int64_t highest_;
};

constexpr tare_descriptor DESCRIPTOR =
    tare::environment<environment>({"@NAME@", "0.1.0", "the policy guesses a number", "Apache-2.0"}, PARAMS);

} // namespace

TARE_PLUGIN_ENTRY(&DESCRIPTOR)
