//! Profiles as text: the file format, version 3.
//!
//! ```text
//! nmad profile 3
//! key tcp r0 4000 Mbit/s
//! when 2026-03-01 12:00
//! place h0 h1
//! how nmad sample, quick
//! copy 8 3400 3350 3480 200
//! rendezvous 65536 48000 47100 49900 30
//! driver near-busy-8192 bounce 8.100 cma 6.900
//! # in place from 16384 B, rendezvous from 32768 B
//! check 6c62272e07bb0142
//! ```
//!
//! A sample is its method, bytes, median, quartiles (nanoseconds), repetitions. Samples of a method ascend
//! in size. `driver` lines are values that a driver has measured for its own choices. Lines that begin with
//! `#` are for the user: thresholds are derived again from the samples. `check` is the FNV-1a hash of
//! everything before its line, which detects truncated or damaged files.

use super::blocks::{BlockCost, BlockCosts};
use super::doubt::Doubt;
use super::hash::fnv1a;
use super::measured::{Profile, Provenance};
use super::sample::{Method, Sample};
use super::threshold::Thresholds;
use alloc::format;
use alloc::string::String;
use alloc::vec::Vec;
use core::fmt::{self, Write};

const FIRST: &str = "nmad profile ";
const VERSION: &str = "3";
/// Largest number of lines of a profile.
const LINES_MAX: usize = 10_000;
/// Bytes in a nanosecond that nothing carries: a core copies within its nearest cache a tenth of them.
const RATE_MAX: u64 = 4 << 10;

/// Error of a text that is not a profile.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ParseError {
    /// Line, counted from one.
    pub line: usize,
    /// The error in it.
    pub why: String,
}

impl fmt::Display for ParseError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "line {}: {} (measure again with nmad sample)", self.line, self.why)
    }
}

impl core::error::Error for ParseError {}

impl Profile {
    /// Returns the profile as text.
    pub fn print(&self) -> String {
        let mut text = format!("{FIRST}{VERSION}\n");
        let Provenance { key, when, place, how, doubt } = self.provenance();
        let doubt = doubt.as_ref().map(|Doubt { count, degree, why }| format!("{count} {degree} {why}"));
        let lines = [("key", key), ("when", when), ("place", place), ("how", how)];
        for (name, value) in lines.into_iter().chain(doubt.as_ref().map(|doubt| ("doubt", doubt))) {
            text += &format!("{name} {}\n", one_line(value));
        }
        for method in Method::ALL {
            for Sample { len, ns, low_ns, high_ns, count } in self.samples(method) {
                let _ = writeln!(text, "{} {len} {ns} {low_ns} {high_ns} {count}", method.name());
            }
        }
        for line in self.learnt() {
            let _ = writeln!(text, "driver {}", one_line(line));
        }
        if let Some(thresholds) = self.thresholds() {
            text += &remark(thresholds);
        }
        if let Some(costs) = self.blocks() {
            text += &remark_on_blocks(&costs);
        }
        let check = fnv1a(text.as_bytes());
        let _ = writeln!(text, "check {check:016x}");
        text
    }

    /// Reads what [`Profile::print`] wrote.
    ///
    /// # Errors
    /// The text is truncated, was changed, has another version or is not a profile.
    pub fn parse(text: &str) -> Result<Profile, ParseError> {
        let wrong = |line: usize, why: &str| Err(ParseError { line, why: String::from(why) });
        let first = text.lines().next().unwrap_or_default();
        match first.strip_prefix(FIRST) {
            Some(VERSION) => {}
            Some(other) => return wrong(1, &format!("version {other} of profiles; {VERSION} is understood")),
            None => return wrong(1, "not a profile"),
        }
        let body = checked(text)?;
        let mut provenance = Provenance::default();
        let (mut samples, mut learnt): (Vec<(Method, Sample)>, Vec<String>) = (Vec::new(), Vec::new());
        for (index, line) in body.lines().enumerate().skip(1) {
            let number = index + 1;
            let (word, rest) = line.split_once(' ').unwrap_or((line, ""));
            match word {
                _ if number > LINES_MAX => return wrong(number, "too many lines"),
                "key" => provenance.key = String::from(rest),
                "when" => provenance.when = String::from(rest),
                "place" => provenance.place = String::from(rest),
                "how" => provenance.how = String::from(rest),
                "doubt" => match Doubt::parse(rest) {
                    Some(doubt) => provenance.doubt = Some(doubt),
                    None => return wrong(number, &format!("'{rest}' is no doubt")),
                },
                "driver" => learnt.push(String::from(rest)),
                _ if word.starts_with('#') => {}
                _ => {
                    let sample = sample(word, rest).map_err(|why| ParseError { line: number, why })?;
                    let last = samples.iter().rev().find(|(method, _)| *method == sample.0);
                    if last.is_some_and(|(_, last)| last.len >= sample.1.len) {
                        return wrong(number, "sizes of a method do not ascend");
                    }
                    samples.push(sample);
                }
            }
        }
        let end = body.lines().count();
        let profile = Profile::new(provenance, samples);
        let wrong = |error| ParseError { line: end, why: format!("{error}") };
        profile.map(|profile| profile.with_learnt(learnt)).map_err(wrong)
    }
}

/// Returns the words with control characters replaced, so that they fit on one line.
fn one_line(words: &str) -> String {
    let words: String = words.chars().map(|c| if c.is_control() { ' ' } else { c }).collect();
    String::from(words.trim())
}

/// Returns a comment line for the user.
fn remark(thresholds: &Thresholds) -> String {
    let Thresholds { in_place_min, rendezvous_min, push_min, aggregate_max, .. } = thresholds;
    let Thresholds { read_min, read_max, block_min, chunk_min, .. } = thresholds;
    let bytes = |value: &u64| if *value == u64::MAX { String::from("-") } else { format!("{value} B") };
    format!(
        "# in place from {}, rendezvous from {}, pushed from {}, read from {} up to {}, together up to {}, \
         blocks in place from {}, chunks from {}\n",
        bytes(in_place_min),
        bytes(rendezvous_min),
        bytes(push_min),
        bytes(read_min),
        bytes(read_max),
        bytes(aggregate_max),
        bytes(block_min),
        bytes(chunk_min)
    )
}

/// Returns a comment line for the user about blocks of non-contiguous data.
fn remark_on_blocks(BlockCosts { packed, gathered }: &BlockCosts) -> String {
    let cost = |cost: &BlockCost| format!("{:.1} ns and {:.4} ns/B", cost.block_ns, cost.byte_ns);
    format!("# a block costs {} packed, {} in place\n", cost(packed), cost(gathered))
}

/// Returns the text before the line with the hash, if the hash is right and its line is the last one.
fn checked(text: &str) -> Result<&str, ParseError> {
    let line = text.lines().count();
    let error = |why: &str| ParseError { line, why: String::from(why) };
    let Some(start) = text.trim_end_matches('\n').rfind('\n').map(|at| at + 1) else {
        return Err(error("the file is cut off"));
    };
    let (body, last) = text.split_at(start);
    let Some(digits) = last.trim_end_matches('\n').strip_prefix("check ") else {
        return Err(error("the file is cut off: its last line is not a check"));
    };
    let right = digits.len() == 16 && u64::from_str_radix(digits, 16) == Ok(fnv1a(body.as_bytes()));
    if right { Ok(body) } else { Err(error("the file was changed or damaged: its check does not match")) }
}

fn sample(word: &str, rest: &str) -> Result<(Method, Sample), String> {
    let Some(method) = Method::named(word) else { return Err(format!("'{word}' is no method")) };
    let numbers: Option<Vec<u64>> = rest.split(' ').map(|number| number.parse().ok()).collect();
    let Some(&[len, ns, low_ns, high_ns, count]) = numbers.as_deref() else {
        return Err(format!("'{rest}' is not bytes, median, quartiles and repetitions"));
    };
    let ordered = (1..=ns).contains(&low_ns) && (ns..=Sample::NS_MAX).contains(&high_ns);
    let count = u32::try_from(count).unwrap_or(0);
    let is_too_fast = len / RATE_MAX >= low_ns.max(1);
    if !ordered || is_too_fast || count == 0 || len > Sample::LEN_MAX {
        return Err(format!("'{rest}' cannot have been measured"));
    }
    Ok((method, Sample { len, ns, low_ns, high_ns, count }))
}
