//! How much the library does while the application computes: the setting `NMAD_PROGRESS`.

use rustix::thread::{CpuSet, sched_getaffinity};
use std::fmt;
use std::str::FromStr;

/// What the helper thread of a node may do.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub enum Progress {
    /// Messages advance in calls only. The thread still opens links and acknowledges on rails that lose.
    Off,
    /// As [`Progress::Idle`], and stops for a while where helping costs the application more than it gives.
    #[default]
    Auto,
    /// While a core is idle the thread advances messages there as they come; otherwise once in a millisecond.
    Idle,
    /// The thread has these cores to itself, and polls there while something is in flight.
    Dedicated(Vec<usize>),
}

/// What may be written.
const NAMES: &str = "off, auto, idle, dedicated:CORES (for example dedicated:3 or dedicated:2-3,7)";

impl Progress {
    /// Whether this process can have it.
    ///
    /// # Errors
    /// It names a core that this process may not run on.
    pub fn check(&self) -> Result<(), String> {
        let Progress::Dedicated(cores) = self else { return Ok(()) };
        let ours = own_cores();
        // A system that does not tell is asked when the thread goes there.
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

/// Cores that the calling thread may run on; none if the system does not tell.
pub fn own_cores() -> Vec<usize> {
    let Ok(mask) = sched_getaffinity(None) else { return Vec::new() };
    (0..CpuSet::MAX_CPU).filter(|&core| mask.is_set(core)).collect()
}

/// Cores from text such as `2-3,7`, ascending, each once.
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

/// Cores as text, as [`Progress::Dedicated`] is written: `2-3,7`; "none" if there are none.
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
    fn settings_are_read_as_they_are_written() {
        for text in ["off", "auto", "idle", "dedicated:3", "dedicated:0-2,7"] {
            assert_eq!(text.parse::<Progress>().expect(text).to_string(), text);
        }
        assert_eq!("dedicated:5,3,4,3".parse(), Ok(Progress::Dedicated(vec![3, 4, 5])));
    }

    #[test]
    fn wrong_settings_are_refused_with_what_may_be_written() {
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
    fn a_core_of_others_is_refused_by_name() {
        let why = Progress::Dedicated(vec![CpuSet::MAX_CPU - 1]).check().expect_err("it does not exist here");
        assert!(why.contains("may run on"), "{why}");
        assert_eq!(Progress::Auto.check(), Ok(()));
    }
}
