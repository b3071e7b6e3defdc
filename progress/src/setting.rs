//! The setting `NMAD_PROGRESS`: how much the library does while the application computes.

use rustix::thread::{CpuSet, sched_getaffinity};
use std::fmt;
use std::str::FromStr;

/// Permitted work of a node's helper thread.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub enum Progress {
    /// Messages advance only in calls. The thread still opens links, and acknowledges on lossy rails.
    Off,
    /// Like [`Progress::Idle`], but pauses when helping costs the application more than it gains.
    #[default]
    Auto,
    /// The thread advances messages at once while a core is idle, and once in a millisecond otherwise.
    Idle,
    /// The thread owns these cores, and polls there while something is in flight.
    Dedicated(Vec<usize>),
}

/// The accepted values.
const NAMES: &str = "off, auto, idle, dedicated:CORES (for example dedicated:3 or dedicated:2-3,7)";

impl Progress {
    /// Checks that this process may use the setting.
    ///
    /// # Errors
    /// The setting names a core that this process may not run on.
    pub fn check(&self) -> Result<(), String> {
        let Progress::Dedicated(cores) = self else { return Ok(()) };
        let ours = own_cores();
        // If the system hides the mask, the error shows when the thread moves to the core.
        match cores.iter().find(|core| !ours.is_empty() && !ours.contains(core)) {
            None => Ok(()),
            Some(core) => {
                Err(format!("core {core} is none of those that this process may run on ({})", list(&ours)))
            }
        }
    }
}

impl FromStr for Progress {
    type Err = String;

    fn from_str(text: &str) -> Result<Progress, String> {
        match text.split_once(':') {
            None if text == "off" => Ok(Progress::Off),
            None if text == "auto" => Ok(Progress::Auto),
            None if text == "idle" => Ok(Progress::Idle),
            Some(("dedicated", cores)) => read(cores).map(Progress::Dedicated),
            _ => Err(format!("'{text}' is none of {NAMES}")),
        }
    }
}

impl fmt::Display for Progress {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Progress::Off => f.write_str("off"),
            Progress::Auto => f.write_str("auto"),
            Progress::Idle => f.write_str("idle"),
            Progress::Dedicated(cores) => write!(f, "dedicated:{}", list(cores)),
        }
    }
}

/// Returns the cores that the calling thread may run on; empty if the system does not say.
pub fn own_cores() -> Vec<usize> {
    let Ok(mask) = sched_getaffinity(None) else { return Vec::new() };
    (0..CpuSet::MAX_CPU).filter(|&core| mask.is_set(core)).collect()
}

/// Parses a list of cores such as `2-3,7`; the result is sorted and has no duplicates.
fn read(text: &str) -> Result<Vec<usize>, String> {
    let wrong = || format!("'{text}' is no list of cores (for example 3 or 2-3,7)");
    let number = |text: &str| {
        let is_number = !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_digit());
        let core: usize = is_number.then(|| text.parse().ok()).flatten().ok_or_else(wrong)?;
        match core < CpuSet::MAX_CPU {
            true => Ok(core),
            false => {
                Err(format!("core {core} is too high: the last possible one is {}", CpuSet::MAX_CPU - 1))
            }
        }
    };
    let mut cores = Vec::new();
    for part in text.split(',') {
        let (first, last) = part.split_once('-').unwrap_or((part, part));
        let (first, last) = (number(first)?, number(last)?);
        if first > last {
            return Err(wrong());
        }
        cores.extend(first..=last);
    }
    cores.sort_unstable();
    cores.dedup();
    Ok(cores)
}

/// Formats cores like [`Progress::Dedicated`], for example `2-3,7`, or "none".
pub fn list(cores: &[usize]) -> String {
    let mut runs: Vec<(usize, usize)> = Vec::new();
    for &core in cores {
        match runs.last_mut() {
            Some((_, last)) if *last + 1 == core => *last = core,
            _ => runs.push((core, core)),
        }
    }
    let run = |(first, last): &(usize, usize)| match first == last {
        true => first.to_string(),
        false => format!("{first}-{last}"),
    };
    if runs.is_empty() { "none".into() } else { runs.iter().map(run).collect::<Vec<_>>().join(",") }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn settings_survive_a_round_trip_through_text() {
        for text in ["off", "auto", "idle", "dedicated:3", "dedicated:0-2,7"] {
            assert_eq!(text.parse::<Progress>().expect(text).to_string(), text);
        }
        assert_eq!("dedicated:5,3,4,3".parse(), Ok(Progress::Dedicated(vec![3, 4, 5])));
    }

    #[test]
    fn wrong_settings_are_refused_with_the_accepted_values() {
        let long = "dedicated:0-999999999";
        for text in
            ["", "on", "Auto", "dedicated", "dedicated:", "dedicated:x", "dedicated:3-1", "idle:1", long]
        {
            let why = text.parse::<Progress>().expect_err(text);
            assert!(["for example", "too high"].iter().any(|word| why.contains(word)), "{why}");
        }
        assert!("dedicated:+1".parse::<Progress>().is_err());
    }

    #[test]
    fn a_core_outside_the_mask_is_refused_by_number() {
        let why = Progress::Dedicated(vec![CpuSet::MAX_CPU - 1]).check().expect_err("it does not exist here");
        assert!(why.contains("may run on"), "{why}");
        assert_eq!(Progress::Auto.check(), Ok(()));
    }
}
