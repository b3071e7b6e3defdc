//! `NMAD_ADVICE`: what a traced job says when it ends, which setting would have made it faster and by how
//! much, only if the predicted gain exceeds the model's error on this run.

use newmadeleine::Options;
use nmad_bench::phase::outcome::Setting;
use nmad_bench::phase::predict::predict;
use nmad_launch::cli::RunArgs;
use nmad_words::setting::{ADVICE, TRACE};
use nmad_words::tell_user;
use std::path::{Path, PathBuf};

use super::traced::{Traced, traced};
use super::{observed, setting_of};

/// Eager limits that are tried, in bytes.
const LIMITS: [u64; 7] = [16 << 10, 64 << 10, 128 << 10, 256 << 10, 512 << 10, 1 << 20, 4 << 20];
/// Fragments that are tried, in bytes.
const FRAGMENTS: [u64; 3] = [64 << 10, 256 << 10, 1 << 20];

/// Path of the trace from which this job is to be advised; `None` if the user did not ask for advice.
///
/// # Errors
/// There is no switch of that kind, or the job writes no trace.
pub(crate) fn asked(args: &RunArgs) -> Result<Option<PathBuf>, String> {
    let set: Vec<_> = args.settings().into_iter().chain(args.env.iter().cloned()).collect();
    let own = set.iter().rev().find(|(name, _)| name == ADVICE.name).map(|(_, value)| value.clone());
    let value = match own {
        Some(value) => Some(value),
        None => ADVICE.text()?,
    };
    let Some(value) = value else { return Ok(None) };
    let is_on = nmad_words::setting::switch(&value)
        .ok_or_else(|| format!("{}: '{value}' is neither on nor off", ADVICE.name))?;
    if !is_on {
        return Ok(None);
    }
    let options = Options::load_with(&set).map_err(|error| error.to_string())?;
    options.trace.map(Some).ok_or_else(|| {
        format!("{} is computed from a trace: set {} to a file or folder, too", ADVICE.name, TRACE.name)
    })
}

/// Tells what would have made the job faster.
pub(crate) fn give(trace: &Path) {
    let advised = traced(trace).and_then(|input| advice(&input));
    match advised {
        Ok(text) => tell_user(format_args!("nmad advice: {text}")),
        Err(why) => tell_user(format_args!("nmad advice: there is none, since {why}")),
    }
}

/// A change, and what the run takes with it by the model, in nanoseconds.
struct Candidate {
    /// The change, as a user makes it.
    words: String,
    duration_ns: u64,
}

/// The best change in words, or the reason why no change is advised.
///
/// # Errors
/// The trace does not say enough, or the model does not reach its end.
pub(super) fn advice(input: &Traced) -> Result<String, String> {
    let rails =
        input.rails.clone().ok_or("too little passed the rails between two ranks to know what they take")?;
    let as_traced = setting_of(input, rails, input.eager_max);
    let measured_ns = input.measured.iter().map(|rank| rank.end_ns).max().unwrap_or(0).max(1);
    let predicted = |setting: &Setting| {
        predict(&input.pattern, setting).map(|phase| phase.duration_ns()).map_err(|stuck| stuck.to_string())
    };
    // The gain of a change is relative to a run that the model makes by rules alone, as it makes the others.
    let by_rules = Setting { as_traced: false, ..as_traced.clone() };
    let (traced_ns, base_ns) = (predicted(&as_traced)?, predicted(&by_rules)?);
    let off = |ns: u64| ns.abs_diff(measured_ns) as f64 / measured_ns as f64;
    let error = off(traced_ns).max(off(base_ns));
    let mut best: Option<Candidate> = None;
    for (words, setting) in changes(input, &by_rules) {
        let Ok(duration_ns) = predicted(&setting) else { continue };
        if best.as_ref().is_none_or(|best| duration_ns < best.duration_ns) {
            best = Some(Candidate { words, duration_ns });
        }
    }
    let percent = |part: f64| format!("{:.0} %", 100.0 * part);
    let gain = |best: &Candidate| 1.0 - best.duration_ns as f64 / base_ns.max(1) as f64;
    Ok(match best {
        Some(best) if gain(&best) > error.max(LEAST) => {
            let saved_us = base_ns.saturating_sub(best.duration_ns) as f64 / 1e3;
            format!(
                "{} would make this run {} shorter, some {saved_us:.0} of {:.0} us; the model is off by {} \
                here",
                best.words,
                percent(gain(&best)),
                measured_ns as f64 / 1e3,
                percent(error)
            )
        }
        Some(best) => format!(
            "no change makes this run shorter by more than the model's error ({}) (best: {}, {})",
            percent(error.max(LEAST)),
            best.words,
            percent(gain(&best).max(0.0))
        ),
        None => "there is nothing to change".into(),
    })
}

/// Gains below this part are not worth a setting.
const LEAST: f64 = 0.02;

/// All changes that are tried, with what to do in words.
fn changes(input: &Traced, base: &Setting) -> Vec<(String, Setting)> {
    let longest = input.pattern.longest();
    let mut all: Vec<(String, Setting)> = Vec::new();
    for eager_max in LIMITS.into_iter().filter(|&max| max != base.eager_max) {
        let words = format!("NMAD_EAGER_MAX={eager_max}");
        all.push((words, Setting { eager_max, ..base.clone() }));
    }
    for (place, name) in input.names.iter().enumerate().filter(|_| base.rails.len() > 1) {
        let mut rails = base.rails.clone();
        rails.remove(place);
        let left: Vec<&str> =
            input.names.iter().filter(|other| *other != name).map(|rail| observed::device(rail)).collect();
        all.push((format!("NMAD_RAILS={}", left.join(",")), Setting { rails, ..base.clone() }));
    }
    for fragment in FRAGMENTS.into_iter().filter(|&fragment| fragment < longest) {
        let words = format!("cutting messages into fragments of {} KiB in the program", fragment >> 10);
        all.push((words, Setting { fragment: Some(fragment), ..base.clone() }));
    }
    all.push((
        "sending from several threads of the program".into(),
        Setting { parallel: true, ..base.clone() },
    ));
    all
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::model::traced::Measured;
    use newmadeleine::engine::Forecast;
    use nmad_bench::phase::outcome::{CallTimes, Turns};
    use nmad_bench::phase::pattern::{Step, Way};

    /// Rank 0 sends to a receiver that has posted its receive late and computes: asking waits for it.
    fn input(end_ns: u64) -> Traced {
        let send = Step::Send { to: 1, len: 200 << 10, blocks: true, way: Some(Way::Asks), carried: None };
        let ranks = vec![
            vec![Step::Compute(1_000_000), send, Step::Compute(5_000_000), Step::Wait],
            vec![Step::Recv(0), Step::Compute(5_000_000), Step::Wait, Step::Compute(5_000_000)],
        ];
        Traced {
            pattern: nmad_bench::phase::pattern::Pattern { ranks },
            eager_max: Some(32 << 10),
            measured: vec![Measured { communication_ns: 1, end_ns }; 2],
            rails: Some(vec![Forecast::nominal(20_000, 500_000_000, 1).into()]),
            names: vec!["tcp/r0".into()],
            calls: CallTimes::default(),
            swallows: 0,
            invites: false,
            turns: Turns::default(),
        }
    }

    #[test]
    fn a_limit_that_saves_more_than_the_model_is_off_is_advised() {
        let input = input(10_500_000);
        let text = advice(&input).unwrap();
        assert!(text.starts_with("NMAD_EAGER_MAX=") && text.contains(" shorter"), "{text}");
    }

    #[test]
    fn a_gain_within_the_error_of_the_model_is_no_advice() {
        // The run took twice as long as the model says.
        let text = advice(&input(21_000_000)).unwrap();
        assert!(text.starts_with("no change makes this run shorter"), "{text}");
    }

    #[test]
    fn a_trace_without_rails_is_an_error_with_its_cause() {
        let why = advice(&Traced { rails: None, ..input(1) }).unwrap_err();
        assert!(why.contains("too little passed the rails"), "{why}");
    }
}
