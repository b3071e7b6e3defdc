//! What a chunk costs one of its two sides.
//!
//! Where each process has a core, that is the time until its part is done. Where processes share cores, that
//! time says who had one when; what counts is how long a side copies, which nobody else can do meanwhile.

use std::time::{Duration, Instant};

/// The costs of a chunk so far.
#[derive(Debug)]
pub enum Effort {
    /// The time since then.
    Time(Instant),
    /// Copying took so long.
    Work(Duration),
}

impl Effort {
    /// Of a chunk that begins now. `is_crowded`: there are fewer cores than processes.
    pub fn begin(is_crowded: bool) -> Effort {
        if is_crowded { Effort::Work(Duration::ZERO) } else { Effort::Time(Instant::now()) }
    }

    /// The chunk has its turn only now.
    pub fn restart(&mut self) {
        if let Effort::Time(begun) = self {
            *begun = Instant::now();
        }
    }

    /// All of it.
    pub fn took(&self) -> Duration {
        match self {
            Effort::Time(begun) => begun.elapsed(),
            Effort::Work(work) => *work,
        }
    }
}

/// Copies, and adds what that costs, if somebody wants to know.
#[inline]
pub fn copying<R>(effort: &mut Option<Effort>, copy: impl FnOnce() -> R) -> R {
    let Some(Effort::Work(work)) = effort else { return copy() };
    let begun = Instant::now();
    let done = copy();
    *work += begun.elapsed();
    done
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn work_is_what_was_copied_and_time_goes_on_by_itself() {
        let nap = Duration::from_millis(2);
        let pause = || std::thread::sleep(nap);
        let (mut work, mut time) = (Some(Effort::begin(true)), Some(Effort::begin(false)));
        pause();
        let took = |effort: &Option<Effort>| effort.as_ref().map_or(Duration::MAX, Effort::took);
        assert_eq!(took(&work), Duration::ZERO);
        assert!(took(&time) >= nap);
        copying(&mut work, pause);
        copying(&mut work, pause);
        copying(&mut time, pause);
        assert!(took(&work) >= 2 * nap && took(&time) >= 4 * nap);
        let begun = |effort: &Option<Effort>| match effort {
            Some(Effort::Time(begun)) => Some(*begun),
            _ => None,
        };
        let (before, mut all) = (begun(&time), [work, time]);
        all.iter_mut().flatten().for_each(Effort::restart);
        assert!(took(&all[0]) >= 2 * nap, "work stays");
        assert!(begun(&all[1]) > before, "time begins anew");
        assert_eq!(copying(&mut None, || 7), 7);
    }
}
