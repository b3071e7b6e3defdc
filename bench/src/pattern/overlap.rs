//! Communication beside computing: a message is submitted, the program computes for a fixed amount, and
//! waits. In the best case the longer of both decides.
//!
//! The amount is calibrated once, and is a multiple of what the message takes alone. Each sample begins with
//! an exchange, so that both ranks begin together. Message alone, computing alone, and both together under
//! each setting of `NMAD_PROGRESS` take turns.
use std::cell::RefCell;
use std::hint::black_box;
use std::time::{Duration, Instant};

use newmadeleine::Progress;

use super::{BenchError, Contestant, Kind, Pair, interleave};
use crate::stats::Summary;

const TAG: u64 = 9;
/// Multiplications and additions in a piece of computing.
const PIECE: u32 = 500;
/// Tries of calibrations, of which the fastest counts: one interruption must not change the amount.
const TRIES: usize = 20;
/// Messages before a size is measured.
const WARM: usize = 5;

/// Who computes while the message travels from the active rank to the other one.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Side {
    /// Isend, computing, wait; the receiver waits.
    Sender,
    /// Irecv, computing, wait; the sender waits.
    Receiver,
    /// Both.
    Both,
}

impl Side {
    /// All of them.
    pub const ALL: [Side; 3] = [Side::Sender, Side::Receiver, Side::Both];

    /// The name.
    pub const fn name(self) -> &'static str {
        match self {
            Side::Sender => "sender",
            Side::Receiver => "receiver",
            Side::Both => "both",
        }
    }

    /// Whether the active rank, or the other one, computes.
    fn computes(self, active: bool) -> bool {
        self == Side::Both || active == (self == Side::Sender)
    }
}

/// What to measure; both ranks must have the same plan.
#[derive(Debug, Clone, PartialEq)]
pub struct Plan {
    /// Lengths of messages in bytes.
    pub lens: Vec<usize>,
    /// Lengths of computing, as multiples of the time of the message alone.
    pub factors: Vec<f64>,
    /// Who computes.
    pub sides: Vec<Side>,
    /// Settings that take turns.
    pub settings: Vec<Progress>,
    /// Samples of each.
    pub repeat: usize,
}

impl Plan {
    /// The usual lengths.
    pub const LENS: [usize; 5] = [1 << 10, 64 << 10, 1 << 20, 4 << 20, 16 << 20];
    /// The usual lengths of computing.
    pub const FACTORS: [f64; 3] = [0.5, 1.0, 2.0];
}

/// One case; times in microseconds.
#[derive(Debug, Clone, PartialEq)]
pub struct Found {
    /// Length of the message in bytes.
    pub len: usize,
    /// Computing as a multiple of the message's time.
    pub factor: f64,
    /// Who computes.
    pub side: Side,
    /// What moves messages meanwhile.
    pub setting: Progress,
    /// The message alone.
    pub transfer: Summary,
    /// Computing alone.
    pub compute: Summary,
    /// Both together.
    pub together: Summary,
    /// Both together by the longer of both, turn by turn; 1: one is hidden behind the other.
    pub ratio: Summary,
    /// Part of the shorter one that is hidden, turn by turn: 1 is all of it, below 0 it takes longer than one
    /// after the other.
    pub hidden: Summary,
}

/// Measures every case. `each` receives what came of it at the active rank.
///
/// # Errors
/// The other rank is gone, a rail fails, or this process may not use a core of a setting.
pub fn run(pair: Pair<'_>, plan: &Plan, each: &mut dyn FnMut(&Found)) -> Result<(), BenchError> {
    let rate = calibrate(pair)?;
    for &len in &plan.lens {
        for &side in &plan.sides {
            let case = Case { pair, side, len, rate };
            let alone = case.transfer_alone()?;
            for &factor in &plan.factors {
                case.run(plan, factor, alone * factor, each)?;
            }
        }
    }
    Ok(())
}

/// A length and a side.
#[derive(Clone, Copy)]
struct Case<'s> {
    pair: Pair<'s>,
    side: Side,
    len: usize,
    /// Pieces of computing in a microsecond.
    rate: f64,
}

impl Case<'_> {
    fn run(
        &self,
        plan: &Plan,
        factor: f64,
        compute_us: f64,
        each: &mut dyn FnMut(&Found),
    ) -> Result<(), BenchError> {
        let pieces = (compute_us * self.rate) as u64;
        let memory = RefCell::new(vec![1; self.len]);
        let sample =
            |setting: &Progress, pieces| self.sample(setting, Some(&mut memory.borrow_mut()), pieces);
        let plain = &plan.settings[0];
        let mut all = vec![
            Contestant::new("message", Kind::Yardstick, || sample(plain, 0)),
            Contestant::new("computing", Kind::Yardstick, || self.sample(plain, None, pieces)),
        ];
        for setting in &plan.settings {
            all.push(Contestant::new(setting.to_string(), Kind::Ours, || sample(setting, pieces)));
        }
        let row = interleave(self.len, (plan.repeat, 1), &mut all)?;
        if !self.pair.is_active() {
            return Ok(());
        }
        let [transfer, compute] = [0, 1].map(|place| &row.entries[place].samples[..]);
        for (entry, setting) in row.ours().zip(&plan.settings) {
            let turns = || entry.samples.iter().zip(transfer).zip(compute);
            let ratios: Vec<f64> = turns().map(|((all, one), other)| all / one.max(*other)).collect();
            let hidden: Vec<f64> =
                turns().map(|((all, one), other)| (one + other - all) / one.min(*other)).collect();
            let summary = |samples: &[f64]| Summary::of(samples).ok_or_else(nothing);
            each(&Found {
                len: self.len,
                factor,
                side: self.side,
                setting: setting.clone(),
                transfer: summary(transfer)?,
                compute: summary(compute)?,
                together: entry.summary(),
                ratio: summary(&ratios)?,
                hidden: summary(&hidden)?,
            });
        }
        Ok(())
    }

    /// Microseconds of the message alone: the median of some.
    fn transfer_alone(&self) -> Result<f64, BenchError> {
        let mut memory = vec![1; self.len];
        let mut times = Vec::new();
        for turn in 0..WARM + TRIES {
            let took = self.sample(&Progress::default(), Some(&mut memory), 0)?;
            times.extend((turn >= WARM).then_some(took));
        }
        Ok(Summary::of(&times).ok_or_else(nothing)?.median)
    }

    /// One sample: microseconds of the slower of the ranks that compute.
    fn sample(&self, setting: &Progress, message: Option<&mut [u8]>, pieces: u64) -> Result<f64, BenchError> {
        let Case { pair, side, .. } = *self;
        pair.session.set_progress(setting.clone())?;
        let computes = side.computes(pair.is_active());
        let pieces = if computes { pieces } else { 0 };
        meet(pair)?;
        let begun = Instant::now();
        match message {
            None => compute(pieces),
            Some(memory) => {
                pair.session.scope(|scope| {
                    let request = match pair.is_active() {
                        true => scope.send(pair.other, TAG, memory)?,
                        false => scope.recv(pair.other, TAG, memory)?,
                    };
                    compute(pieces);
                    scope.wait(request).map(drop)
                })?;
            }
        }
        let took = if computes { begun.elapsed() } else { Duration::ZERO };
        slower(pair, took)
    }
}

fn nothing() -> BenchError {
    BenchError::Job("there are no samples".into())
}

/// The longer of what both ranks took, in microseconds.
fn slower(pair: Pair<'_>, took: Duration) -> Result<f64, BenchError> {
    let ours = took.as_nanos() as u64;
    let theirs: u64 = match pair.is_active() {
        true => pair.hear()?.parse().unwrap_or(0),
        false => {
            pair.tell(&ours.to_string())?;
            0
        }
    };
    Ok(ours.max(theirs) as f64 / 1e3)
}

/// Both ranks are here.
pub(super) fn meet(pair: Pair<'_>) -> Result<(), BenchError> {
    pair.tell("")?;
    pair.hear().map(drop)
}

pub(super) fn compute(pieces: u64) {
    let mut value = black_box(1.0_f64);
    for _ in 0..pieces {
        for _ in 0..PIECE {
            value = value * 0.999_999 + 1e-6;
        }
        value = black_box(value);
    }
}

/// Pieces in a microsecond, the same at both ranks.
pub(super) fn calibrate(pair: Pair<'_>) -> Result<f64, BenchError> {
    let pieces = 200;
    let once = |_| {
        let begun = Instant::now();
        compute(pieces);
        begun.elapsed().as_secs_f64() * 1e6
    };
    let best = (0..TRIES).map(once).fold(f64::MAX, f64::min);
    let ours = pieces as f64 / best.max(1e-3);
    match pair.is_active() {
        true => {
            pair.tell(&ours.to_string())?;
            Ok(ours)
        }
        false => Ok(pair.hear()?.parse().unwrap_or(ours)),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_side_says_who_computes() {
        let who = |side: Side| [true, false].map(|active| side.computes(active));
        assert_eq!(who(Side::Sender), [true, false]);
        assert_eq!(who(Side::Receiver), [false, true]);
        assert_eq!(who(Side::Both), [true, true]);
    }
}
