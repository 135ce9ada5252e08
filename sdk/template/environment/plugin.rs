//! @NAME@: the policy guesses a number, and hears whether it is higher or lower.
//!
//!     number = 1 + seed mod highest    equal for all rollouts of a prompt; reward 1 for the right guess
//!
//! Replace this with your game, tool or dialogue. A session holds what one episode needs; reset
//! begins an episode in it, and step answers one turn with messages. What is drawn at random comes
//! from the episode's seed (the task) and noise (this rollout), so that equal turns give equal
//! observations (see tare/draft/environment.h). state_key names the state, so that an estimator can
//! compare turns of different rollouts. An Err, or a panic, reaches the user as an error that
//! begins with this plugin's name.
#[macro_use]
mod tare;
use tare::{Act, Episode, Observation, Param, Setup, Stream};

struct Mine {
    highest: i64,
}

impl tare::Plugin for Mine {
    const PARAMS: &'static [Param] = &[Param::int(c!("highest"), c!("100"), c!("the largest number")).min(2.0).max(1e9)];
    const FLAGS: u32 = tare::ENVIRONMENT_REPEATS; // equal seeds and turns, equal observations
    const CALLS: u32 = tare::CALLS_CONCURRENT; // an instance changes nothing, so any thread may call it

    fn new(setup: &Setup) -> tare::Result<Mine> {
        Ok(Mine { highest: setup.values.int(0) })
    }
}

/// The number, and the bounds that the answers have told.
struct Session {
    number: i64,
    low: i64,
    high: i64,
}

/// Reads the last number of a text; 0: none.
fn last_number(text: &[u8]) -> i64 {
    let digits = text.iter().rev().skip_while(|b| !b.is_ascii_digit()).take_while(|b| b.is_ascii_digit());
    digits.take(10).fold((0, 1), |(number, unit), b| (number + unit * i64::from(b - b'0'), unit * 10)).0
}

/// Says a text to the policy, and names the state: the bounds are all that matters.
fn say(s: &Session, out: &mut Observation, text: &str) -> tare::Result<()> {
    out.say(tare::ROLE_USER, text)?;
    out.state_key(&format!("{}-{}", s.low, s.high))
}

impl tare::Environment for Mine {
    const SAVES_SESSIONS: bool = true;
    const SUGGESTS: bool = true;
    type Session = Session;

    fn open(&self) -> tare::Result<Session> {
        Ok(Session { number: 0, low: 0, high: 0 })
    }

    fn reset(&self, s: &mut Session, episode: &Episode, out: &mut Observation) -> tare::Result<()> {
        *s = Session { number: 1 + (episode.seed[0] % self.highest as u64) as i64, low: 1, high: self.highest };
        say(s, out, &format!("I think of a number from 1 to {}. Guess it.", self.highest))
    }

    fn step(&self, s: &mut Session, act: &Act, out: &mut Observation) -> tare::Result<()> {
        let guess = last_number(act.text);
        if guess < 1 {
            return say(s, out, "Name a number.");
        }
        if guess == s.number {
            out.end = tare::EPISODE_DONE;
            out.reward = 1.0;
            out.verdict = tare::VERDICT_CORRECT;
            return Ok(());
        }
        if guess < s.number {
            s.low = s.low.max(guess + 1);
            return say(s, out, "My number is higher.");
        }
        s.high = s.high.min(guess - 1);
        say(s, out, "My number is lower.")
    }

    fn save_session(&self, s: &Session, out: &Stream) -> tare::Result<()> {
        [s.number, s.low, s.high].iter().try_for_each(|x| out.put(&x.to_le_bytes()))
    }

    fn load_session(&self, s: &mut Session, from: &Stream) -> tare::Result<()> {
        let [number, low, high] = [from.get()?, from.get()?, from.get()?].map(i64::from_le_bytes);
        if low < 1 || number < low || high < number || high > self.highest {
            return tare::fail(tare::E_CORRUPT, format!("the saved session has the number {} in {}-{}", number, low, high));
        }
        *s = Session { number, low, high };
        Ok(())
    }

    /// Writes a legal act, whatever it is worth: `tare env demo` makes rows for a warm start of them.
    fn suggest(&self, _s: &Session, draw: [u64; 2], out: &Stream) -> tare::Result<()> {
        out.put((1 + draw[0] % self.highest as u64).to_string().as_bytes())
    }
}

tare_plugin!(tare::environment::<Mine>(tare::About::new(
    c!("@NAME@"),
    c!("0.1.0"),
    c!("the policy guesses a number"),
    c!("Apache-2.0")
)));
