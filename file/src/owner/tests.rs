//! Random programs of several processes on owners, in every order in which messages may come, checked against
//! what the standard allows (MPI 5.0, section 14.6.1).

use super::*;
use crate::cache::each;
use crate::fault::Cause;
use crate::piece::{Piece, Pieces};
use crate::regions::Regions;
use crate::request::{Part, Request};
use proptest::prelude::*;
use std::cell::{Cell, RefCell};
use std::collections::{BTreeSet, VecDeque};

/// A file in memory, which may refuse writes.
#[derive(Default)]
struct Memory {
    bytes: RefCell<Vec<u8>>,
    is_full: Cell<bool>,
    writes: Cell<usize>,
}

impl Backing for Memory {
    fn write(&self, pieces: &Pieces, data: &[u8]) -> Result<(), Fault> {
        assert!(pieces.is_ascending() && pieces.len() == data.len() as u64);
        if self.is_full.get() {
            return Err(Fault { cause: Cause::NoSpace, text: "full".into() });
        }
        self.writes.set(self.writes.get() + pieces.count());
        let mut bytes = self.bytes.borrow_mut();
        each(pieces, data, |piece, data| {
            let end = piece.end() as usize;
            if bytes.len() < end {
                bytes.resize(end, 0);
            }
            bytes[piece.offset as usize..end].copy_from_slice(data);
        });
        Ok(())
    }

    fn read(&self, pieces: &Pieces, data: &mut [u8]) -> Result<u64, Fault> {
        let bytes = self.bytes.borrow();
        let mut done = 0;
        for piece in pieces.list() {
            for at in piece.offset..piece.end() {
                let Some(byte) = bytes.get(at as usize) else { return Ok(done) };
                data[done as usize] = *byte;
                done += 1;
            }
        }
        Ok(done)
    }

    fn size(&self) -> Result<u64, Fault> {
        Ok(self.bytes.borrow().len() as u64)
    }
}

fn pieces(list: &[(u64, u64)]) -> Pieces {
    list.iter().map(|&(offset, len)| Piece { offset, len }).collect()
}

fn write(list: &[(u64, u64)], fill: u8) -> Request {
    let pieces = pieces(list);
    let data = vec![fill; pieces.len() as usize];
    Request { ask: Ask::Write(pieces, data), part: Part::default() }
}

fn one<T>(mut answers: Vec<(T, Answer)>) -> Answer {
    assert_eq!(answers.len(), 1);
    answers.remove(0).1
}

#[test]
fn records_of_several_processes_that_touch_are_one_write() {
    let (file, mut owner) = (Memory::default(), Owner::new(1 << 20, 1 << 20));
    for record in 0..1000_u64 {
        for rank in 0..2 {
            let request = write(&[((2 * record + rank) * 100, 100)], rank as u8 + 1);
            assert!(owner.has_at_hand(0, &request));
            one(owner.ask(&file, (rank as usize, ()), request));
        }
    }
    assert_eq!(file.writes.get(), 0);
    let end = one(owner.ask(&file, (0, ()), Request { ask: Ask::End, part: Part::default() }));
    assert_eq!(end, Answer::Done { end: 200_000, data: Vec::new() });
    owner.cache.push(&file).unwrap();
    assert_eq!((file.writes.get(), file.size()), (1, Ok(200_000)));
}

#[test]
fn no_more_waits_than_the_bound() {
    let (file, mut owner) = (Memory::default(), Owner::new(1 << 20, 64 << 10));
    for record in 0..10_000 {
        one(owner.ask(&file, (0, ()), write(&[(record * 50, 50)], 1)));
        assert!((record + 1) * 50 - file.size().unwrap() <= 64 << 10);
    }
    assert!(file.writes.get() >= 5);
}

#[test]
fn failures_of_delayed_writes_are_told_once_and_then_nothing_is_delayed() {
    let (file, mut owner) = (Memory::default(), Owner::new(1 << 20, 8 << 10));
    one(owner.ask(&file, (0, ()), write(&[(5, 50)], 1)));
    file.is_full.set(true);
    owner.cache.write_out(&file);
    // The next write fails by itself.
    let failed = one(owner.ask(&file, (0, ()), write(&[(60, 50)], 1)));
    assert!(matches!(failed, Answer::Failed(fault) if fault.text == "full"));
    let told = owner.cache.push(&file).unwrap_err();
    assert!(told.cause == Cause::NoSpace && told.text.contains("50 B in 1 pieces from byte 5 on, are lost"));
    assert_eq!(owner.cache.push(&file), Ok(()));
}

#[test]
fn a_process_that_dies_while_others_wait_for_it_lets_them_go_on() {
    let (file, mut owner) = (Memory::default(), Owner::new(4096, 1 << 20));
    let hold = || Request { ask: Ask::Hold, part: Part { access: 1, releases: false } };
    one(owner.ask(&file, (1, 1), hold()));
    assert!(owner.ask(&file, (0, 0), write(&[(0, 4)], 7)).is_empty());
    assert!(owner.ask(&file, (2, 2), hold()).is_empty());
    let part = Part { access: 1, releases: false };
    assert_eq!(owner.ask(&file, (1, 1), Request { part, ..write(&[(0, 4)], 8) }).len(), 1);
    assert_eq!(owner.lost(&file, 2).len(), 0);
    let answers = owner.lost(&file, 1);
    assert_eq!(answers.iter().map(|(token, _)| *token).collect::<Vec<_>>(), [0]);
    owner.cache.push(&file).unwrap();
    assert_eq!(*file.bytes.borrow(), [7; 4]);
    // Requests of the dead that come late hold nothing and write nothing.
    for late in [hold(), write(&[(0, 4)], 9)] {
        assert!(owner.ask(&file, (1, 1), late).is_empty());
    }
    assert_eq!(owner.ask(&file, (0, 0), write(&[(2, 2)], 5)).len(), 1);
    owner.cache.push(&file).unwrap();
    assert_eq!(*file.bytes.borrow(), [7, 7, 5, 5]);
}

/// Bytes of the file of a random program.
const LEN: u64 = 700;
/// Bytes of a region.
const UNIT: u64 = 97;

/// An access of a random program.
#[derive(Debug, Clone)]
struct Access {
    /// The byte that is written; none: it reads.
    fill: Option<u8>,
    pieces: Pieces,
}

fn access() -> impl Strategy<Value = Access> {
    let runs = prop::collection::vec((0_u64..150, 1_u64..60), 1..5);
    (prop::option::of(1_u8..255), 0..LEN / 2, runs).prop_map(|(fill, begin, runs)| {
        let mut at = begin;
        let mut pieces = Pieces::default();
        for (gap, len) in runs {
            let end = (at + gap + len).min(LEN);
            if at + gap < end {
                pieces.push(Piece { offset: at + gap, len: end - at - gap });
                at = end;
            }
        }
        Access { fill, pieces }
    })
}

/// The requests of an access; the data are those of the fill.
fn requests(access: &Access, parts: Vec<Pieces>, number: u32) -> VecDeque<Request> {
    let last = parts.len().saturating_sub(1);
    let number = if last > 0 { number } else { 0 };
    let mut requests: VecDeque<Request> = VecDeque::new();
    if number > 0 {
        requests.push_back(Request { ask: Ask::Hold, part: Part { access: number, releases: false } });
    }
    for (index, pieces) in parts.into_iter().enumerate() {
        let ask = match access.fill {
            Some(fill) => Ask::Write(pieces.clone(), vec![fill; pieces.len() as usize]),
            None => Ask::Read(pieces),
        };
        let part = Part { access: number, releases: number > 0 && index == last };
        requests.push_back(Request { ask, part });
    }
    requests
}

/// A thread of a program in atomic mode: its number, its accesses, and what of the first one is under way.
struct Thread {
    number: u32,
    accesses: VecDeque<Access>,
    to_send: VecDeque<Request>,
    answers: usize,
    read: Vec<u8>,
}

impl Thread {
    fn begin(&mut self) {
        let Some(access) = self.accesses.front() else { return };
        let regions = Regions::new(UNIT, 1, vec![0]);
        let parts = regions.divide(&access.pieces).into_iter().map(|part| part.pieces).collect();
        self.to_send = requests(access, parts, self.number);
        self.answers = self.to_send.len();
        self.read.clear();
    }

    /// Takes an answer; the access that has ended with it.
    fn answered(&mut self, answer: Answer) -> Option<(Access, Vec<u8>)> {
        let Answer::Done { data, .. } = answer else { panic!("{answer:?}") };
        self.read.extend(data);
        self.answers -= 1;
        if self.answers > 0 {
            return None;
        }
        let ended = self.accesses.pop_front()?;
        let read = std::mem::take(&mut self.read);
        self.begin();
        Some((ended, read))
    }
}

/// Applies an access that has ended to the file as programs see it.
fn apply(seen: &mut [u8], access: &Access, read: &[u8]) -> Result<(), TestCaseError> {
    let mut wanted = Vec::new();
    for piece in access.pieces.list() {
        let range = piece.offset as usize..piece.end() as usize;
        match access.fill {
            Some(fill) => seen[range].fill(fill),
            None => wanted.extend_from_slice(&seen[range]),
        }
    }
    prop_assert_eq!(read, &wanted[..]);
    Ok(())
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(if cfg!(miri) { 4 } else { 256 }))]

    /// In atomic mode there is an order of whole accesses in which every read finds what was written before.
    #[test]
    fn atomic_accesses_are_sequentially_consistent(
        programs in prop::collection::vec(prop::collection::vec(access(), 0..8), 2..5),
        bound in prop_oneof![Just(0_u64), Just(4096), Just(1 << 20)],
        turns in prop::collection::vec(any::<prop::sample::Index>(), 1..400),
    ) {
        let file = Memory::default();
        let mut owner = Owner::new(UNIT, bound);
        let mut seen = vec![0; LEN as usize];
        // Two threads are one process.
        let mut threads: Vec<Thread> = programs.into_iter().zip(1..).map(|(list, number)| {
            let accesses = list.into_iter().filter(|access| !access.pieces.is_empty()).collect();
            Thread { number, accesses, to_send: VecDeque::new(), answers: 0, read: Vec::new() }
        }).collect();
        threads.iter_mut().for_each(Thread::begin);
        let mut turns = turns.iter().cycle();
        while threads.iter().any(|thread| !thread.accesses.is_empty()) {
            let ready: Vec<usize> =
                (0..threads.len()).filter(|index| !threads[*index].to_send.is_empty()).collect();
            prop_assert!(!ready.is_empty(), "all wait, and nothing is under way");
            let from = *turns.next().expect("they cycle").get(&ready);
            let request = threads[from].to_send.pop_front().expect("it is ready");
            for (thread, answer) in owner.ask(&file, (from / 2, from), request) {
                if let Some((access, read)) = threads[thread].answered(answer) {
                    apply(&mut seen, &access, &read)?;
                }
            }
        }
        owner.cache.push(&file).unwrap();
        let mut written = file.bytes.borrow().clone();
        written.resize(LEN as usize, 0);
        prop_assert_eq!(written, seen);
    }
}

/// The values of a byte of the file that the standard allows.
#[derive(Clone)]
struct Byte {
    /// After the last synchronisation.
    settled: BTreeSet<u8>,
    /// Written since: by whom, and what.
    since: Vec<(usize, u8)>,
    /// Its owner has died since: writes that were not synchronised may be lost.
    is_lost: bool,
}

impl Byte {
    fn is_allowed(&self, reader: usize, found: u8) -> bool {
        let by_others = self.since.iter().any(|(writer, _)| *writer != reader);
        let own = self.since.iter().rev().find(|(writer, _)| *writer == reader);
        match own {
            Some((_, last)) if !by_others && !self.is_lost => found == *last,
            _ => self.settled.contains(&found) || self.since.iter().any(|(_, byte)| *byte == found),
        }
    }

    fn settle(&mut self) {
        let writers: BTreeSet<usize> = self.since.iter().map(|(writer, _)| *writer).collect();
        let last =
            |writer: &usize| self.since.iter().rev().find(|(by, _)| by == writer).map(|(_, byte)| *byte);
        let written: BTreeSet<u8> = match writers.len() {
            1 => writers.iter().filter_map(last).collect(),
            _ => self.since.iter().map(|(_, byte)| *byte).collect(),
        };
        match (self.is_lost, written.is_empty()) {
            (true, _) => self.settled.extend(self.since.iter().map(|(_, byte)| *byte)),
            (false, false) => self.settled = written,
            (false, true) => {}
        }
        (self.since, self.is_lost) = (Vec::new(), false);
    }
}

/// A step of a program in the other mode.
#[derive(Debug, Clone)]
enum Step {
    Access(usize, Access),
    Sync,
    /// An owner dies; its regions go to the next one.
    Die(usize),
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(if cfg!(miri) { 4 } else { 256 }))]

    /// All processes read synchronised data, also after owners have died: an owner that dies loses only
    /// later writes.
    #[test]
    fn what_was_synchronised_is_seen_and_stays(
        steps in prop::collection::vec(prop_oneof![
            12 => (0_usize..4, access()).prop_map(|(by, access)| Step::Access(by, access)),
            2 => Just(Step::Sync),
            1 => (0_usize..3).prop_map(Step::Die),
        ], 1..60),
        bound in prop_oneof![Just(0_u64), Just(4096), Just(1 << 20)],
    ) {
        let file = Memory::default();
        let regions = Regions::new(UNIT, 1, vec![0, 1, 2]);
        let mut owners: Vec<Option<Owner<()>>> = (0..3).map(|_| Some(Owner::new(UNIT, bound))).collect();
        let mut bytes =
            vec![Byte { settled: BTreeSet::from([0]), since: Vec::new(), is_lost: false }; LEN as usize];
        for step in steps {
            match step {
                Step::Sync => {
                    owners.iter_mut().flatten().for_each(|owner| owner.cache.push(&file).unwrap());
                    bytes.iter_mut().for_each(Byte::settle);
                }
                Step::Die(owner) => {
                    if owners.iter().flatten().count() < 2 || owners[owner].is_none() {
                        continue;
                    }
                    let alive = |rank: i32| owners[rank as usize].is_some();
                    let was: Vec<i32> = (0..LEN).map(|at| {
                        regions.owner_alive(regions.of(at), alive).expect("two are alive")
                    }).collect();
                    owners[owner] = None;
                    bytes.iter_mut().zip(was).filter(|(_, was)| *was == owner as i32)
                        .for_each(|(byte, _)| byte.is_lost = true);
                }
                Step::Access(by, access) => {
                    for part in regions.divide(&access.pieces) {
                        let alive = |rank: i32| owners[rank as usize].is_some();
                        let owner = regions.owner_alive(part.region, alive).expect("one is alive");
                        let owner = owners[owner as usize].as_mut().expect("it is alive");
                        let request = requests(&access, vec![part.pieces.clone()], 0).remove(0);
                        let answer = one(owner.ask(&file, (by, ()), request.expect("one part")));
                        let Answer::Done { data, .. } = answer else { panic!("{answer:?}") };
                        let places = part.pieces.list().iter().flat_map(|piece| piece.offset..piece.end());
                        for (index, at) in places.enumerate() {
                            match access.fill {
                                Some(fill) => bytes[at as usize].since.push((by, fill)),
                                None => prop_assert!(
                                    bytes[at as usize].is_allowed(by, data[index]),
                                    "byte {} is {}", at, data[index]
                                ),
                            }
                        }
                    }
                }
            }
        }
    }
}
