//! Exposed memory: every access is done exactly once, those that combine in one step and in the order of
//! their origin, a lock keeps others out, and nothing else is written.
//!
//! What each access leaves there is its own (see [`crate::workload::access`]): a range that holds its
//! payload, a digit that is one afterwards, a value that exactly one other access finds in its cell.

use super::Objection;
use super::fates::Fates;
use crate::buffer::{Buffer, FILLER};
use crate::exposed::word;
use crate::payload::payload;
use crate::workload::Plan;
use crate::workload::access::{CELLS, COUNTER, NUMBERS, Number, RANGES, Touch, WORD, cell_at, value};
use nmad_rma::Failure;
use std::collections::{BTreeMap, BTreeSet};

/// How an access has ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Fate {
    /// It is under way.
    Open,
    /// It is complete, and has read this word, if it reads one.
    Done(Option<u64>),
    /// Its target is gone: it may have been done.
    Lost,
}

/// The accesses that applications have asked for, and how they ended.
#[derive(Debug, Default)]
pub struct MemoryOracle {
    fates: BTreeMap<Number, Fate>,
    /// Accesses whose origin has just learned that they are complete.
    fresh: Vec<Number>,
}

impl MemoryOracle {
    /// An application has asked for an access.
    pub fn issued(&mut self, number: Number) {
        self.fates.insert(number, Fate::Open);
    }

    /// Accesses that were asked for.
    pub fn count(&self) -> u64 {
        self.fates.len() as u64
    }

    /// Everything that a host has asked of another one has ended: what each access has read, and what failed
    /// first.
    ///
    /// # Errors
    /// It failed without a cause, or something was read that was not there.
    pub fn landed(
        &mut self,
        plan: &Plan,
        (host, target): (usize, usize),
        accesses: Vec<(Number, Option<Vec<u8>>)>,
        failure: Option<Failure>,
        fates: &dyn Fates,
    ) -> Result<(), Objection> {
        if let Some(failure) = failure {
            if !matches!(failure, Failure::Lost(_)) || !fates.severed(host, target) {
                let between = format!("accesses of h{host} to h{target}");
                return Err(format!("{between} ended with {failure:?}, without a cause"));
            }
            accesses.into_iter().for_each(|(number, _)| _ = self.fates.insert(number, Fate::Lost));
            return Ok(());
        }
        for (number, read) in accesses {
            let touch = plan.accesses[number].touch;
            if let (Touch::Get { put, len, .. }, Some(read)) = (touch, &read) {
                let mut expected = Vec::new();
                payload(put as u64, len as usize, &mut expected);
                if *read != expected {
                    return Err(format!("access {number} to h{target} does not read what {put} has written"));
                }
            }
            let read = read.filter(|bytes| bytes.len() as u64 == WORD);
            self.fresh.push(number);
            self.fates.insert(number, Fate::Done(read.map(|bytes| word(&bytes))));
        }
        Ok(())
    }

    /// Judges what the accesses have written that were completed since the last look: a process that gets the
    /// lock next, or is told by the origin, reads it now.
    ///
    /// # Errors
    /// Something is not there.
    pub fn look<'a>(
        &mut self,
        plan: &Plan,
        memory: &dyn Fn(usize) -> Option<&'a Buffer>,
    ) -> Result<(), Objection> {
        for number in self.fresh.drain(..) {
            let access = &plan.accesses[number];
            let (Touch::Put { at, len }, Some(memory)) = (access.touch, memory(access.target)) else {
                continue;
            };
            let (mut found, mut expected) = (Vec::new(), Vec::new());
            memory.segments().slice(at, len).append_to(&mut found);
            payload(number as u64, len as usize, &mut expected);
            if found != expected {
                let target = access.target;
                return Err(format!(
                    "access {number} is complete, and h{target} does not have what it wrote"
                ));
            }
        }
        Ok(())
    }

    /// Judges the memory of a host at the end of the run.
    ///
    /// # Errors
    /// The first thing that is wrong with it.
    pub fn finish(
        &self,
        plan: &Plan,
        host: usize,
        memory: &Buffer,
        fates: &dyn Fates,
    ) -> Result<(), Objection> {
        let named = |objection: Objection| format!("memory of h{host}: {objection}");
        let bytes = memory.bytes();
        let accesses = || {
            let of = |&(number, _): &(&Number, &Fate)| plan.accesses[*number].target == host;
            self.fates.iter().filter(of).map(|(number, fate)| (*number, *fate))
        };
        let forgotten =
            accesses().find(|(number, fate)| *fate == Fate::Open && !fates.dead(plan.accesses[*number].host));
        if let Some((number, _)) = forgotten {
            return Err(named(format!("access {number} never ended")));
        }
        let at = |offset: u64| word(&bytes[offset as usize..]);
        for number in 0..NUMBERS {
            let those = accesses().filter_map(|(access, fate)| match plan.accesses[access].touch {
                Touch::Add { number: n, digit, .. } if n == number => Some((access, digit, fate)),
                _ => None,
            });
            digits(plan, at(number * WORD), those.collect()).map_err(named)?;
        }
        for cell in 0..CELLS {
            let those = accesses().filter(|(access, _)| match plan.accesses[*access].touch {
                Touch::Exchange { cell: c } | Touch::Swap { cell: c, .. } => c == cell,
                _ => false,
            });
            Chain { plan, links: those.collect(), last: at(cell_at(cell)) }.check().map_err(named)?;
        }
        let raises = |(access, _): &(Number, Fate)| plan.accesses[*access].touch == Touch::Raise;
        let raised = accesses().filter(raises).count() as u64;
        if at(COUNTER) != raised {
            return Err(named(format!("the counter was raised {raised} times and is {}", at(COUNTER))));
        }
        memory.check(&ranges(plan, &bytes, accesses())).map_err(|difference| named(difference.to_string()))
    }
}

/// The memory as it should be, if the words at its begin are right.
fn ranges(plan: &Plan, bytes: &[u8], accesses: impl Iterator<Item = (Number, Fate)>) -> Vec<u8> {
    let mut expected = vec![FILLER; bytes.len()];
    expected[..RANGES as usize].copy_from_slice(&bytes[..RANGES as usize]);
    let mut data = Vec::new();
    for (number, fate) in accesses {
        let Touch::Put { at, len } = plan.accesses[number].touch else { continue };
        let range = at as usize..(at + len) as usize;
        match fate {
            Fate::Done(_) => {
                payload(number as u64, len as usize, &mut data);
                expected[range].copy_from_slice(&data);
            }
            Fate::Open | Fate::Lost => expected[range.clone()].copy_from_slice(&bytes[range]),
        }
    }
    expected
}

/// Each digit was added once, or never if that is not known; who reads finds what its host added before.
fn digits(plan: &Plan, sum: u64, accesses: Vec<(Number, u64, Fate)>) -> Result<(), Objection> {
    let digit_of = |sum: u64, digit: u64| sum >> (4 * digit) & 15;
    let mut added: BTreeMap<usize, Vec<u64>> = BTreeMap::new();
    let mut rest = sum;
    for (access, digit, fate) in accesses {
        let found = digit_of(sum, digit);
        let is_right = match fate {
            Fate::Done(_) => found == 1,
            Fate::Open | Fate::Lost => found <= 1,
        };
        if !is_right {
            return Err(format!("access {access} was to be done once, and was done {found} times"));
        }
        rest &= !(15 << (4 * digit));
        let before = added.entry(plan.accesses[access].host).or_default();
        if let Fate::Done(Some(read)) = fate {
            if digit_of(read, digit) != 0 {
                return Err(format!("access {access} finds itself done before it was"));
            }
            if let Some(missing) = before.iter().find(|digit| digit_of(read, **digit) != 1) {
                return Err(format!("access {access} does not find {missing}, which its host added before"));
            }
        }
        if let Fate::Done(_) = fate {
            before.push(digit);
        }
    }
    if rest == 0 { Ok(()) } else { Err(format!("digits of {sum:#x} are set that nobody has added")) }
}

/// A cell: each value but the last is found by exactly one access, which writes the next.
struct Chain<'a> {
    plan: &'a Plan,
    links: Vec<(Number, Fate)>,
    /// The value at the end.
    last: u64,
}

impl Chain<'_> {
    fn check(&self) -> Result<(), Objection> {
        let mut next: BTreeMap<u64, Number> = BTreeMap::new();
        let mut written = BTreeSet::from([0]);
        let mut unknown = 0;
        for &(access, fate) in &self.links {
            match fate {
                Fate::Done(Some(found)) if self.writes(access, found) => {
                    written.insert(value(access));
                    if let Some(other) = next.insert(found, access) {
                        return Err(format!(
                            "accesses {other} and {access} have both found the value {found}"
                        ));
                    }
                }
                Fate::Done(_) => {}
                Fate::Open | Fate::Lost => {
                    unknown += 1;
                    written.insert(value(access));
                }
            }
        }
        let found = self.links.iter().filter_map(|(access, fate)| match fate {
            Fate::Done(Some(found)) => Some((*access, *found)),
            _ => None,
        });
        if let Some((access, found)) = found.into_iter().find(|(_, found)| !written.contains(found)) {
            return Err(format!("access {access} has found {found}, which nobody has written"));
        }
        if !written.contains(&self.last) || next.contains_key(&self.last) {
            let last = self.last;
            return Err(format!("{last} is there at the end, which was overwritten or never written"));
        }
        self.in_order(&next, unknown)
    }

    /// Whether an access that has found this value writes its own.
    fn writes(&self, access: Number, found: u64) -> bool {
        match self.plan.accesses[access].touch {
            Touch::Swap { compare, .. } => compare == found,
            _ => true,
        }
    }

    /// Follows the values from the first one on. Where accesses may have been lost it breaks off.
    fn in_order(&self, next: &BTreeMap<u64, Number>, unknown: usize) -> Result<(), Objection> {
        let (mut at, mut steps) = (0, 0);
        let mut latest: BTreeMap<usize, Number> = BTreeMap::new();
        while let Some(&access) = next.get(&at) {
            let before = latest.insert(self.plan.accesses[access].host, access);
            if let Some(before) = before.filter(|before| *before > access) {
                let later = format!("{before}, which its host asked for later");
                return Err(format!("access {access} was done after {later}"));
            }
            (at, steps) = (value(access), steps + 1);
        }
        if unknown == 0 && (steps < next.len() || at != self.last) {
            let all = next.len();
            return Err(format!("{steps} of {all} values lead from one to the next, up to {at}"));
        }
        Ok(())
    }
}
