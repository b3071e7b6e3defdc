//! How much progress in the background slows a program down: kernels bound by the processor and by memory,
//! with nothing in flight and while a message arrives.
use std::cell::RefCell;
use std::hint::black_box;
use std::time::Instant;

use newmadeleine::Progress;

use super::overlap::{calibrate, compute, meet};
use super::{BenchError, Contestant, Kind, Pair, interleave};
use crate::stats::Summary;

const TAG: u64 = 11;
/// What a kernel takes, about, in microseconds: some looks of a helper that looks each millisecond.
const KERNEL_US: f64 = 5_000.0;
/// Words that the kernel bound by memory goes through: 64 MiB are more than most caches hold.
const WORDS: usize = 8 << 20;

/// What the program does.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Kernel {
    /// Multiplications and additions in registers.
    Processor,
    /// Additions to words in memory, one after the other.
    Memory,
}

impl Kernel {
    /// Both.
    pub const ALL: [Kernel; 2] = [Kernel::Processor, Kernel::Memory];

    /// The name.
    pub const fn name(self) -> &'static str {
        match self {
            Kernel::Processor => "processor",
            Kernel::Memory => "memory",
        }
    }
}

/// What to measure; both ranks must have the same plan.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Plan {
    /// Lengths of messages in bytes; zero: nothing is in flight.
    pub lens: Vec<usize>,
    /// Settings that take turns with [`Progress::Off`].
    pub settings: Vec<Progress>,
    /// Samples of each.
    pub repeat: usize,
}

impl Plan {
    /// Nothing in flight, and messages that take about as long as a kernel, or less.
    pub const LENS: [usize; 3] = [0, 64 << 10, 4 << 20];
}

/// One case; times in microseconds.
#[derive(Debug, Clone, PartialEq)]
pub struct Found {
    /// What the program does.
    pub kernel: Kernel,
    /// Bytes of the message that arrives meanwhile.
    pub len: usize,
    /// What moves messages meanwhile.
    pub setting: Progress,
    /// The kernel without progress.
    pub off: Summary,
    /// The kernel under the setting.
    pub on: Summary,
    /// By which part it is slower, turn by turn.
    pub slower: Summary,
}

/// Measures; at the active rank, which computes, `each` receives every case.
///
/// # Errors
/// The other rank is gone, a rail fails, or this process may not use a core of a setting.
pub fn run(pair: Pair<'_>, plan: &Plan, each: &mut dyn FnMut(&Found)) -> Result<(), BenchError> {
    let pieces = (calibrate(pair)? * KERNEL_US) as u64;
    let words = RefCell::new(vec![1_u64; if pair.is_active() { WORDS } else { 0 }]);
    for &len in &plan.lens {
        let memory = RefCell::new(vec![1; len]);
        for kernel in Kernel::ALL {
            let contestant = |kind, setting: &Progress| {
                let (words, memory, setting) = (&words, &memory, setting.clone());
                Contestant::new(setting.to_string(), kind, move || {
                    let mut kernel = || match kernel {
                        Kernel::Processor => compute(pieces),
                        Kernel::Memory => sweep(&mut words.borrow_mut()),
                    };
                    sample(pair, &setting, &mut memory.borrow_mut(), &mut kernel)
                })
            };
            let mut all = vec![contestant(Kind::Yardstick, &Progress::Off)];
            all.extend(plan.settings.iter().map(|setting| contestant(Kind::Ours, setting)));
            let row = interleave(len, (plan.repeat, 1), &mut all)?;
            let off = &row.entries[0];
            for (entry, setting) in row.ours().zip(&plan.settings).filter(|_| pair.is_active()) {
                let slower = entry.beside(off, |on, off| on / off - 1.0);
                let slower = slower.unwrap_or_else(|| entry.summary());
                let (setting, off, on) = (setting.clone(), off.summary(), entry.summary());
                each(&Found { kernel, len, setting, off, on, slower });
            }
        }
    }
    Ok(())
}

/// Microseconds of the kernel at the active rank, while a message arrives there.
fn sample(
    pair: Pair<'_>,
    setting: &Progress,
    memory: &mut [u8],
    kernel: &mut dyn FnMut(),
) -> Result<f64, BenchError> {
    let Pair { session, other } = pair;
    session.set_progress(setting.clone())?;
    meet(pair)?;
    if !pair.is_active() {
        return Ok(if memory.is_empty() { 0.0 } else { session.send(other, TAG, memory).map(|()| 0.0)? });
    }
    let mut timed = || {
        let begun = Instant::now();
        kernel();
        begun.elapsed().as_secs_f64() * 1e6
    };
    if memory.is_empty() {
        return Ok(timed());
    }
    Ok(session.scope(|scope| {
        let request = scope.recv(other, TAG, memory)?;
        let took = timed();
        scope.wait(request).map(|_| took)
    })?)
}

fn sweep(words: &mut [u64]) {
    words.iter_mut().for_each(|word| *word = word.wrapping_add(1));
    black_box(words);
}
