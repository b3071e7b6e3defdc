//! Judges whether a measurement is reliable, and what follows if not.
//!
//! A measurement taken while other programs used the cores or the network misleads all later jobs, most of
//! all where two methods are compared. Such a profile is used provisionally: the next job measures again,
//! and the least disturbed measurement is kept. Jobs that are never alone must not pay for that each time,
//! so after several failed attempts the next ones wait, longer each time.

use nmad_engine::{Doubt, Profile};
use std::path::Path;
use std::time::Duration;

/// Limit of the part of twice measured points that differ by a quarter (see
/// [`nmad_engine::Sampler::disagreement`]). On quiet machines it reaches one in seven where rails are shaped,
/// beside busy loops and compilers one in four and more.
const APART_MAX: f64 = 1.0 / 6.0;
/// Limit of the part of the time for which a rank waits in the run queue of a core. On quiet machines it is
/// some percent.
const QUEUED_MAX: f64 = 1.0 / 4.0;
/// Limit of the lateness of empty messages: how much longer they took in the beginning than at the end, as a
/// part of the time at the end. Further samples cannot correct a measurement beyond it. On quiet machines it
/// is some percent.
const LATE_MAX: f64 = 1.0;
/// Limit of the ratio of a shorter message's time to that of a longer one (see
/// [`nmad_engine::Profile::contradiction`]). On quiet machines it is up to 1.7, where a queue is full at some
/// lengths and not at others.
const CONTRADICTION_MAX: f64 = 3.0;
/// Limit of the part of its bytes that a rail loses. Queues that are short for the rate lose up to 1 %.
const LOST_MAX: f64 = 0.02;

/// Failed measurements that consecutive jobs may repeat at once.
const AT_ONCE: u32 = 5;
/// After [`AT_ONCE`] failures the next measurement waits for this time, and for twice as long after each
/// further failure.
const LATER: Duration = Duration::from_secs(5 * 60);
/// Limit of that time.
const LATEST: Duration = Duration::from_secs(24 * 60 * 60);

/// Signs of a disturbed measurement, each as a ratio.
#[derive(Debug, Clone, Copy, Default)]
pub(super) struct Signs {
    /// The part of the points visited twice that differ.
    pub(super) apart: f64,
    /// The part of the time for which the worse of both ranks waited in the run queue.
    pub(super) queued: f64,
    /// The lateness of the first empty messages, relative to their time at the end.
    pub(super) late: f64,
    /// The excess of a shorter message's time over a longer one's, relative to the latter.
    pub(super) contradiction: f64,
    /// The lost part of the bytes that the rail carried, as far as this side knows.
    pub(super) lost: f64,
}

impl Signs {
    /// Returns the worst sign, if it exceeds its limit.
    pub(super) fn doubt(&self) -> Option<Doubt> {
        let Signs { apart, queued, late, contradiction, lost } = *self;
        let percent = |part: f64| format!("{:.0} %", 100.0 * part);
        let signs = [
            (apart / APART_MAX, format!("{} of what was measured twice differed", percent(apart))),
            (
                queued / QUEUED_MAX,
                format!("other programs had its cores for {} of the time", percent(queued)),
            ),
            (
                late / LATE_MAX,
                format!("its first messages took {:.0} times as long as later ones", 1.0 + late),
            ),
            (
                contradiction / CONTRADICTION_MAX,
                format!("a message took {:.0} times as long as a longer one", 1.0 + contradiction),
            ),
            (lost / LOST_MAX, format!("it lost {} of what it carried", percent(lost))),
        ];
        let (degree, why) = signs.into_iter().max_by(|(a, _), (b, _)| a.total_cmp(b))?;
        (degree > 1.0).then_some(Doubt { count: 1, degree: (100.0 * degree) as u32, why })
    }
}

/// Returns the better one of a known profile that was to be measured again and the new one.
pub(super) fn better(known: Option<&Profile>, found: Profile) -> Profile {
    let Some(now) = found.provenance().doubt.clone() else { return found };
    let Some((known, before)) = known.and_then(|known| Some((known, known.provenance().doubt.clone()?)))
    else {
        return found;
    };
    let count = before.count.saturating_add(1);
    match before.degree < now.degree {
        true => known.clone().doubted(Some(Doubt { count, ..before })),
        false => found.doubted(Some(Doubt { count, ..now })),
    }
}

/// Returns why a profile without a mark of doubt cannot be right: a measurement that contradicts itself by
/// more than [`CONTRADICTION_MAX`] is stored with such a mark.
pub(super) fn absurd(profile: &Profile) -> Option<String> {
    let contradiction = profile.contradiction();
    let is_absurd = profile.provenance().doubt.is_none() && contradiction > CONTRADICTION_MAX;
    is_absurd.then(|| {
        format!(
            "in it a message takes {:.0} times as long as a longer one, which no measurement leaves unmarked \
             (measure again with nmad sample)",
            1.0 + contradiction
        )
    })
}

/// Returns whether a profile from this file is to be measured again now.
pub(super) fn is_due(profile: &Profile, path: &Path) -> bool {
    let age = || std::fs::metadata(path).ok()?.modified().ok()?.elapsed().ok();
    let is_late = |count: u32| count < AT_ONCE || age().is_some_and(|age| age >= wait(count));
    profile.provenance().doubt.as_ref().is_some_and(|doubt| is_late(doubt.count))
}

/// Returns how long the next measurement waits after so many failures.
fn wait(count: u32) -> Duration {
    let Some(further) = count.checked_sub(AT_ONCE) else { return Duration::ZERO };
    LATER.saturating_mul(1u32.checked_shl(further).unwrap_or(u32::MAX)).min(LATEST)
}

/// Describes the future of a doubtful profile for the user.
pub(super) fn outlook(doubt: &Doubt) -> String {
    match wait(doubt.count) {
        Duration::ZERO => "the next job measures again".into(),
        wait => format!(
            "measured {} times, the best is used; a job that starts after {} min measures again, \
             or run nmad sample on a quiet machine",
            doubt.count,
            wait.as_secs() / 60
        ),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use nmad_engine::{Method, Provenance, Sample};
    use std::time::SystemTime;

    fn profile(ns: u64, doubt: Option<(u32, u32)>) -> Profile {
        let doubt = doubt.map(|(count, degree)| Doubt { count, degree, why: "a test".into() });
        let sample = |len: u64| (Method::Copy, Sample::of(len, &mut [ns + len]).expect("a time"));
        let provenance = Provenance { doubt, ..Provenance::default() };
        Profile::new(provenance, [8, 1024].map(sample)).expect("two sizes")
    }

    /// Values of a virtual machine with two cores: differing points, the longer queue of the two ranks,
    /// losses.
    #[test]
    fn a_measurement_on_a_quiet_machine_is_reliable() {
        let quiet = [
            ("shm", 0.0, 0.01, 0.0),
            ("two rails shaped to 4 and 2.8 Gbit/s", 9.0 / 65.0, 0.057, 0.0),
            ("the same with a gap in between", 7.0 / 66.0, 0.048, 0.0),
            ("datagrams on a queue that is short for the rate", 2.0 / 60.0, 0.036, 0.0045),
            ("100 Mbit/s: each point was visited once", 0.0, 0.034, 0.0),
        ];
        for (what, apart, queued, lost) in quiet {
            assert_eq!(Signs { apart, queued, lost, ..Signs::default() }.doubt(), None, "{what}");
        }
    }

    #[test]
    fn a_measurement_beside_other_programs_is_doubtful() {
        let busy = [
            ("a latency of 19 ns", 11.0 / 45.0, 0.34, 0.0, "24 % of what was measured"),
            ("a latency of 1.8 us on a rail of 6", 16.0 / 58.0, 0.044, 0.0, "28 % of what was measured"),
            ("each point visited once, in 254 us", 0.0, 0.75, 0.0, "75 % of the time"),
            ("one in twenty lost", 0.0, 0.03, 0.05, "lost 5 %"),
        ];
        for (what, apart, queued, lost, why) in busy {
            let doubt =
                Signs { apart, queued, lost, ..Signs::default() }.doubt().unwrap_or_else(|| panic!("{what}"));
            assert!(doubt.why.contains(why) && doubt.degree > 100 && doubt.count == 1, "{what}: {doubt:?}");
        }
    }

    /// Four ranks on two cores: the first empty messages took 503 us too long, the only sign.
    #[test]
    fn late_first_messages_make_a_measurement_doubtful() {
        let late = Signs { late: 60.0, ..Signs::default() };
        let doubt = late.doubt().expect("in doubt");
        assert!(doubt.why.contains("61 times as long") && doubt.degree == 6000, "{doubt:?}");
        assert_eq!(Signs { late: 0.1, ..Signs::default() }.doubt(), None);
    }

    /// Two ranks on the core that a compiler left them: 1 B took 541 us, 16 KiB took 6.5.
    #[test]
    fn a_contradiction_makes_a_measurement_doubtful() {
        let odd = Signs { contradiction: 82.0, ..Signs::default() };
        assert!(odd.doubt().expect("in doubt").why.contains("83 times as long as a longer one"));
        assert_eq!(Signs { contradiction: 1.75, ..Signs::default() }.doubt(), None, "seen in quiet");
    }

    #[test]
    fn the_least_disturbed_measurement_is_kept_and_all_are_counted() {
        let (clean, slight, bad) = (profile(1, None), profile(2, Some((1, 150))), profile(3, Some((3, 400))));
        let of = |ns: u64, count: u32, degree: u32| profile(ns, Some((count, degree)));
        assert_eq!(better(None, slight.clone()), slight);
        assert_eq!(better(Some(&bad), clean.clone()), clean);
        assert_eq!(better(Some(&clean), slight.clone()), slight, "anew, since that was asked for");
        assert_eq!(better(Some(&bad), slight.clone()), of(2, 4, 150));
        assert_eq!(better(Some(&slight), of(3, 1, 400)), of(2, 2, 150));
    }

    #[test]
    fn after_some_failures_the_next_measurements_wait_longer_each_time() {
        assert_eq!([4, 5, 6, 7].map(wait), [Duration::ZERO, LATER, 2 * LATER, 4 * LATER]);
        assert_eq!([20, 40, u32::MAX].map(wait), [LATEST; 3]);
        let file = tempfile::NamedTempFile::new().expect("a file can be made");
        let due = |doubt| is_due(&profile(1, doubt), file.path());
        assert_eq!(
            [None, Some((1, 400)), Some((4, 400)), Some((5, 400))].map(due),
            [false, true, true, false]
        );
        let before = SystemTime::now() - LATER;
        file.as_file().set_modified(before).expect("its time can be set");
        assert!(due(Some((5, 400))) && !due(Some((6, 400))) && !due(None));
        // Clocks of file servers may be ahead.
        file.as_file().set_modified(SystemTime::now() + LATEST).expect("its time can be set");
        assert!(due(Some((4, 400))) && !due(Some((5, 400))));
    }
}
