//! Recorded observations as text: the profiles of the rails, then ten observations a line.
//!
//! ```text
//! nmad observations 1
//! rail 0 copy 8 5323
//! rail 0 rendezvous 4194304 8700000
//! r1E7NcSeQ0...
//! ```
//!
//! An observation has ten characters: its letter ([`Observed::letter`]), the rail, and two each for the time
//! since the observation before, the length, the observed time and the other time. Each pair is a number of
//! a logarithmic scale with 64 steps for each doubling, so that a value is off by at most 0.8 %.

use super::observation::{Observation, Observed};
use crate::clock::{Duration, Instant};
use crate::profile::doubt::Doubt;
use crate::profile::measured::{Profile, Provenance};
use crate::profile::sample::{Method, Sample};
use alloc::format;
use alloc::string::{String, ToString};
use alloc::vec::Vec;
use core::fmt::Write;

const FIRST: &str = "nmad observations 1";
const DIGITS: &[u8; 64] = b"0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz-_";
/// The word behind the number of a rail whose profile is in doubt.
const PROVISIONAL: &str = "provisional";
/// Characters of an observation, and observations in a line.
const WIDTH: usize = 10;
const IN_LINE: usize = 10;
/// The methods whose samples are stored: those that a forecast of large messages needs.
const METHODS: [Method; 2] = [Method::Copy, Method::Rendezvous];

/// Observations of one process, and the profiles of its rails.
#[derive(Debug, Clone, PartialEq)]
pub struct Observations {
    /// The profiles, by rail; `None`: it was not measured.
    pub rails: Vec<Option<Profile>>,
    /// The observations, in their order.
    pub seen: Vec<Observation>,
}

impl Observations {
    /// Returns them as text.
    pub fn print(&self) -> String {
        let mut text = format!("{FIRST}\n");
        for (rail, profile) in self.rails.iter().enumerate() {
            if profile.as_ref().is_some_and(|profile| profile.provenance().doubt.is_some()) {
                let _ = writeln!(text, "rail {rail} {PROVISIONAL}");
            }
            for method in METHODS {
                let samples = profile.iter().flat_map(|profile| profile.samples(method));
                for Sample { len, ns, .. } in samples {
                    let _ = writeln!(text, "rail {rail} {} {len} {ns}", method.name());
                }
            }
        }
        let mut before = Instant::default();
        for line in self.seen.chunks(IN_LINE) {
            for &Observation { at, what, which, len, ns, other_ns } in line {
                text.push(char::from(what.letter()));
                text.push(digit(u64::from(which)));
                for value in [at.since(before).as_ns(), len, ns, other_ns] {
                    let step = step(value);
                    text.extend([digit(step / 64), digit(step % 64)]);
                }
                before = at;
            }
            text.push('\n');
        }
        text
    }

    /// Reads them from text.
    ///
    /// # Errors
    /// The text is something else.
    pub fn parse(text: &str) -> Result<Observations, String> {
        let mut lines = text.lines().zip(1..);
        if lines.next().is_none_or(|(line, _)| line != FIRST) {
            return Err(format!("its first line is not '{FIRST}'; NMAD_OBSERVATIONS=FILE writes such files"));
        }
        let mut samples: Vec<Vec<(Method, Sample)>> = Vec::new();
        let mut doubted = Vec::new();
        let (mut seen, mut now) = (Vec::new(), Instant::default());
        for (line, number) in lines.filter(|(line, _)| !line.is_empty()) {
            let wrong = |what: &str| format!("line {number}: {what} (was the file changed?)");
            if let Some(rest) = line.strip_prefix("rail ") {
                if let Some(rail) = rest.strip_suffix(PROVISIONAL) {
                    doubted.push(rail.trim_end().parse::<usize>().map_err(|_| wrong("no rail"))?);
                    continue;
                }
                let (rail, sample) = sample(rest).ok_or_else(|| wrong("no sample of a rail"))?;
                samples.resize(samples.len().max(rail + 1), Vec::new());
                samples[rail].push(sample);
                continue;
            }
            if line.len() % WIDTH != 0 {
                return Err(wrong("it is cut off"));
            }
            for word in line.as_bytes().chunks(WIDTH) {
                let observation = observation(word, &mut now).ok_or_else(|| wrong("no observation"))?;
                seen.push(observation);
            }
        }
        let profile = |(rail, samples): (usize, Vec<_>)| {
            let why = "provisional when it was recorded".into();
            let doubt = doubted.contains(&rail).then_some(Doubt { count: 1, degree: 100, why });
            match samples.is_empty() {
                true => Ok(None),
                false => Profile::new(Provenance { doubt, ..Provenance::default() }, samples).map(Some),
            }
        };
        let rails = samples.into_iter().enumerate().map(profile);
        let rails = rails.collect::<Result<_, _>>().map_err(|few| few.to_string())?;
        Ok(Observations { rails, seen })
    }
}

/// Reads a sample and the number of its rail.
fn sample(text: &str) -> Option<(usize, (Method, Sample))> {
    let mut words = text.split(' ');
    let rail = words.next()?.parse::<u8>().ok().filter(|rail| *rail < 64)?;
    let method = Method::named(words.next()?)?;
    let (len, ns) = (words.next()?.parse().ok()?, words.next()?.parse().ok()?);
    (len <= Sample::LEN_MAX).then_some((usize::from(rail), (method, Sample::of(len, &mut [ns])?)))
}

fn observation(word: &[u8], now: &mut Instant) -> Option<Observation> {
    let [letter, which, values @ ..] = word else { return None };
    let what = Observed::ALL.into_iter().find(|what| what.letter() == *letter)?;
    let which = place(*which)? as u8;
    let mut value = [0; 4];
    for (value, pair) in value.iter_mut().zip(values.chunks(2)) {
        *value = unstep(64 * place(pair[0])? + place(*pair.get(1)?)?);
    }
    let [since, len, ns, other_ns] = value;
    *now = *now + Duration::from_ns(since);
    Some(Observation { at: *now, what, which, len, ns, other_ns })
}

fn digit(value: u64) -> char {
    char::from(DIGITS[value.min(63) as usize])
}

fn place(digit: u8) -> Option<u64> {
    DIGITS.iter().position(|other| *other == digit).map(|place| place as u64)
}

/// Returns the step of a value: zero for zero, then 64 steps for each doubling.
fn step(value: u64) -> u64 {
    let value = value.min(1 << 62);
    let Some(bits) = value.checked_ilog2() else { return 0 };
    let fraction = if bits >= 6 { value >> (bits - 6) } else { value << (6 - bits) };
    1 + 64 * u64::from(bits) + (fraction - 64)
}

/// Returns the middle of a step.
fn unstep(step: u64) -> u64 {
    let Some(above) = step.checked_sub(1) else { return 0 };
    let (bits, fraction) = (above / 64, 64 + above % 64);
    if bits >= 7 { (2 * fraction + 1) << (bits - 7) } else { (fraction << bits) >> 6 }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn values_are_read_as_they_were_up_to_a_step() {
        for value in (0..200).chain([1_000, 48 << 10, 4 << 20, 1 << 40, 1 << 62]) {
            let read = unstep(step(value));
            assert!(read.abs_diff(value) as f64 <= 0.008 * value as f64, "{value}: {read}");
            assert!(step(value) < 64 * 64);
        }
    }

    #[test]
    fn text_is_read_as_it_was_written() {
        let sample = |method, len: u64| (method, Sample::of(len, &mut [5_000 + 2 * len]).expect("a time"));
        let samples = [(Method::Copy, 8), (Method::Copy, 4_096), (Method::Rendezvous, 1 << 20)];
        let profile = Profile::new(Provenance::default(), samples.map(|(way, len)| sample(way, len)));
        let seen = (1..30).map(|i| Observation {
            at: Instant::from_ns(i * 1_000_000),
            what: Observed::ALL[i as usize % 6],
            which: i as u8 % 3,
            len: 1 << 16,
            ns: 128_000,
            other_ns: 0,
        });
        let all = Observations { rails: Vec::from([profile.ok()]), seen: seen.collect() };
        let text = all.print();
        let read = Observations::parse(&text).expect("its own text");
        assert_eq!((read.print(), read.seen.len()), (text.clone(), 29));
        let bodies = |all: &Observations| all.rails[0].as_ref().expect("a rail").body().ns(1 << 20);
        assert_eq!(bodies(&read), bodies(&all));
        let last = read.seen[28];
        assert!(last.what == Observed::ALL[5] && last.at.as_ns().abs_diff(29_000_000) < 300_000);
        for wrong in ["", "nmad observations 2\n", &text[..text.len() - 4], &text.replace("rail 0", "rail x")]
        {
            assert!(Observations::parse(wrong).is_err(), "{wrong}");
        }
        let odd = text.replacen("rail 0", "rail x provisional\nrail 0", 1);
        assert!(Observations::parse(&odd).is_err());
        let spoilt = text.replace('\n', "\n!");
        assert!(Observations::parse(&spoilt).is_err());
    }
}
