//! The text of a pattern.
//!
//! ```text
//! # overlapToy on four ranks: each sends to the next one
//! ranks 4
//! rank *: recv -1; send +1 512KiB; compute 2ms; wait; compute 2ms
//! rank 3: recv -1; send +1 8KiB; compute 2ms; wait; compute 2ms
//! ```
//!
//! A line gives the program of one rank, or of all (`*`) that have no line of their own. Ranks are numbers;
//! with a sign they count from the rank itself, around the end. `recv FROM` posts a receive for the next
//! message of that rank, `send TO LEN` blocks as MPI_Send does, `isend TO LEN` does not, `compute TIME`
//! computes without a call into the library, and `wait` waits for everything that was begun.

use std::fmt;
use std::str::FromStr;

/// Most ranks of a pattern.
pub const RANKS_MAX: usize = 4096;

/// One step of a rank.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Step {
    /// Posts a receive for the next message from this rank.
    Recv(usize),
    /// Sends a message to this rank.
    Send {
        /// The receiver.
        to: usize,
        /// Bytes.
        len: u64,
        /// Until its memory may be reused.
        blocks: bool,
        /// How it went, as a trace says; none: the eager limit decides.
        way: Option<Way>,
        /// Bytes that each rail carried of it, as a trace says; none: rails share it so that all finish
        /// together.
        carried: Option<Carried>,
    },
    /// A call of MPI that waits for nothing and takes this time, in nanoseconds.
    Call(u64),
    /// Computes for this time, in nanoseconds.
    Compute(u64),
    /// Waits for everything that was begun.
    Wait,
    /// From here on it runs on this core, which it shares with whoever else runs there. Without such a step a
    /// rank has a core of its own.
    On(usize),
}

/// Most rails of which a message says what they carried.
pub const CARRIERS: usize = 4;

/// Bytes of a message by rail.
pub type Carried = [u64; CARRIERS];

/// How a message goes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Way {
    /// Without asking.
    Eager,
    /// Its body waits for the answer of the receiver.
    Asks,
    /// As `Asks`, but the library keeps a copy, so that no call of the sender waits for this send.
    Kept,
}

/// What each rank does, in order.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Pattern {
    /// By rank.
    pub ranks: Vec<Vec<Step>>,
}

impl Pattern {
    /// Bytes of the longest message.
    pub fn longest(&self) -> u64 {
        let sent = self.ranks.iter().flatten().filter_map(|step| match step {
            Step::Send { len, .. } => Some(*len),
            _ => None,
        });
        sent.max().unwrap_or(0)
    }

    /// One iteration of the programs of P5's figures 4 and 5: each rank begins at its time, posts its
    /// receives, sends one message after the other, computes, and waits. `begins_ns` and
    /// `calculation_ns` in nanoseconds; `messages`: sender, receiver, bytes, in the order of sending.
    pub fn exchange(begins_ns: &[u64], messages: &[(usize, usize, usize)], calculation_ns: u64) -> Pattern {
        let computes = |ns: u64| (ns > 0).then_some(Step::Compute(ns));
        let mut ranks: Vec<Vec<Step>> =
            begins_ns.iter().map(|ns| computes(*ns).into_iter().collect()).collect();
        messages.iter().for_each(|&(from, to, _)| ranks[to].push(Step::Recv(from)));
        for &(from, to, len) in messages {
            ranks[from].push(Step::Send { to, len: len as u64, blocks: true, way: None, carried: None });
        }
        ranks
            .iter_mut()
            .for_each(|steps| steps.extend(computes(calculation_ns).into_iter().chain([Step::Wait])));
        Pattern { ranks }
    }
}

/// Where and why a text is no pattern.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PatternError {
    /// From 1.
    pub line: usize,
    /// Cause and remedy.
    pub why: String,
}

impl fmt::Display for PatternError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "line {}: {}", self.line, self.why)
    }
}

impl std::error::Error for PatternError {}

impl FromStr for Pattern {
    type Err = PatternError;

    fn from_str(text: &str) -> Result<Pattern, PatternError> {
        let mut lines = text.lines().enumerate().filter_map(|(number, line)| {
            let line = line.split('#').next().unwrap_or_default().trim();
            (!line.is_empty()).then_some((number + 1, line))
        });
        let at = |line, why: String| PatternError { line, why };
        let (number, first) =
            lines.next().ok_or_else(|| at(1, "it is empty: begin with `ranks N`".into()))?;
        let count = first.strip_prefix("ranks ").and_then(|word| word.trim().parse::<usize>().ok());
        let count = count
            .filter(|count| (2..=RANKS_MAX).contains(count))
            .ok_or_else(|| at(number, format!("`{first}` is not `ranks N` with N from 2 to {RANKS_MAX}")))?;
        let (mut own, mut all) = (vec![None; count], None);
        for (number, line) in lines {
            let (name, program) = line
                .strip_prefix("rank ")
                .and_then(|rest| rest.split_once(':'))
                .ok_or_else(|| at(number, format!("`{line}` is not `rank R: STEP; STEP; ...`")))?;
            let place = match name.trim() {
                "*" => &mut all,
                name => {
                    let rank = name.parse::<usize>().ok().filter(|rank| *rank < count);
                    &mut own[rank.ok_or_else(|| at(number, no_rank(name, count)))?]
                }
            };
            if place.replace((number, program.to_string())).is_some() {
                return Err(at(number, format!("rank {} has a line already", name.trim())));
            }
        }
        let steps = |(rank, own): (usize, Option<(usize, String)>)| {
            let Some((number, program)) = own.or_else(|| all.clone()) else { return Ok(Vec::new()) };
            let words = program.split(';').map(str::trim).filter(|words| !words.is_empty());
            words.map(|words| step(words, rank, count).map_err(|why| at(number, why))).collect()
        };
        Ok(Pattern { ranks: own.into_iter().enumerate().map(steps).collect::<Result<_, _>>()? })
    }
}

fn no_rank(name: &str, count: usize) -> String {
    format!("there is no rank {name}: ranks are 0 to {}, or +N and -N from the rank itself", count - 1)
}

fn step(words: &str, rank: usize, count: usize) -> Result<Step, String> {
    let words: Vec<&str> = words.split_whitespace().collect();
    let other = |word: &str| {
        let number = word.trim_start_matches(['+', '-']).parse::<usize>().ok().filter(|n| *n < count);
        let number = number.ok_or_else(|| no_rank(word, count))?;
        let found = match word.as_bytes()[0] {
            b'+' => (rank + number) % count,
            b'-' => (rank + count - number) % count,
            _ => number,
        };
        if found == rank { Err(format!("rank {rank} exchanges nothing with itself")) } else { Ok(found) }
    };
    match *words {
        ["recv", from] => Ok(Step::Recv(other(from)?)),
        [verb @ ("send" | "isend"), to, len] => {
            let len = nmad_words::parse_size(len).map_err(|why| format!("`{verb} {to} {len}`: {why}"))?;
            Ok(Step::Send { to: other(to)?, len, blocks: verb == "send", way: None, carried: None })
        }
        ["compute", time] => Ok(Step::Compute(parse_time(time)?)),
        ["wait"] => Ok(Step::Wait),
        _ => Err(format!(
            "`{}` is no step: write recv FROM, send TO LEN, isend TO LEN, compute TIME, or wait",
            words.join(" ")
        )),
    }
}

/// Nanoseconds of `2ms`, `150us`, `800ns`, `1s`.
///
/// # Errors
/// It is no time, or more than an hour.
pub fn parse_time(text: &str) -> Result<u64, String> {
    let end = text.find(|letter: char| letter.is_ascii_alphabetic()).unwrap_or(text.len());
    let scale = match &text[end..] {
        "ns" => 1.0,
        "us" => 1e3,
        "ms" => 1e6,
        "s" => 1e9,
        _ => return Err(format!("`{text}` is no time: write 150us, 2ms or 1s")),
    };
    let value = text[..end].parse::<f64>().ok().map(|value| value * scale);
    // An hour: more is a mistake.
    let value = value.filter(|ns| (0.0..=3.6e12).contains(ns));
    value.map(|ns| ns as u64).ok_or_else(|| format!("`{text}` is no time up to an hour"))
}
