//! Memory of a host that other hosts access, and the accesses of its application: the protocol that MAD-MPI
//! runs, on the simulated host.

use crate::buffer::Buffer;
use crate::messages::{Calling, Inside, Outside, Requests};
use crate::network::Shared;
use crate::payload::payload;
use crate::workload::access::{Access, CONTEXT, Number, RANGES, Touch, WORD, addend, value};
use nmad_engine::packet::PeerId;
use nmad_engine::{Completion, Context, Engine, Segments, Tag};
use nmad_rma::locks::{Kind, Locks, WORDS};
use nmad_rma::{
    self as rma, Asking, Base, Element, Exposed, Failure, Fault, Flying, Operator, Origin, Place, Target,
};
use std::cell::Cell;
use std::collections::BTreeMap;
use std::fmt;
use std::sync::atomic::AtomicU64;

/// The tag of messages with frames.
const FRAMES: Tag = Tag(0);
/// The canary does every so-manieth combination twice.
const TWICE: u32 = 7;

/// The memory that a host exposes, and what its application has asked of others.
pub struct Windows {
    memory: Memory,
    target: Target,
    origin: Origin,
    requests: Requests,
    /// Data that accesses write.
    sent: BTreeMap<Number, Buffer>,
    /// Data that they read.
    read: BTreeMap<Number, Buffer>,
    /// Accesses to each host that are not complete.
    open: BTreeMap<usize, Vec<Number>>,
    /// The access that has read the counter last.
    counted: Option<Number>,
}

/// The messages that have to end before the accesses to a host are complete.
pub struct Landing {
    target: usize,
    count: usize,
    flying: Vec<Flying>,
    failure: Option<Failure>,
}

/// How everything that was asked of a host has ended.
pub struct Landed {
    /// The host.
    pub target: usize,
    /// The accesses, and what those have read that read.
    pub accesses: Vec<(Number, Option<Vec<u8>>)>,
    /// The first failure.
    pub failure: Option<Failure>,
}

impl Windows {
    /// Memory of this size, of which nothing was touched.
    pub fn new((me, hosts): (usize, usize), size: u64, network: Shared, doubles: bool) -> Windows {
        let mut buffer = Buffer::new(&[size as usize]);
        buffer.fill(&[0; RANGES as usize]);
        let words = std::array::from_fn(|_| AtomicU64::new(0));
        let doubles = doubles.then(|| Cell::new(TWICE));
        Windows {
            memory: Memory { hosts, buffer, words, doubles },
            target: Target::new(hosts),
            origin: Origin::new(hosts),
            requests: Requests::new(me, network),
            sent: BTreeMap::new(),
            read: BTreeMap::new(),
            open: BTreeMap::new(),
            counted: None,
        }
    }

    /// The memory.
    pub fn memory(&self) -> &Buffer {
        &self.memory.buffer
    }

    /// Does what others have asked; true: there was something.
    pub fn serve(&mut self, engine: &mut Engine) -> bool {
        let Windows { memory, target, requests, .. } = self;
        target.serve(memory, &mut Inside { engine, requests })
    }

    /// Takes note of a request that has ended; false: it is not about exposed memory.
    pub fn ended(&mut self, completion: &Completion) -> bool {
        self.requests.ended(completion)
    }

    /// Accesses the memory of another host.
    pub fn access(&mut self, number: Number, access: &Access, call: Calling<'_>) {
        let Access { target, touch, .. } = *access;
        let bytes = self.data(number, touch);
        let mut data = Buffer::new(&[bytes.len()]);
        data.fill(&bytes);
        let memory = data.segments();
        self.sent.insert(number, data);
        let into = Buffer::new(&[if touch.reads() { touch.place().len() as usize } else { 0 }]);
        let room = into.segments();
        self.read.insert(number, into);
        self.open.entry(target).or_default().push(number);
        self.ask(target, call, |to| ask(to, touch, &memory, (&bytes, &room)));
        if touch == Touch::Count {
            self.counted = Some(number);
        }
    }

    /// Begins to complete everything that was asked of a host.
    pub fn flush(&mut self, target: usize, call: Calling<'_>) -> Landing {
        self.ask(target, call, |to| to.flush());
        self.land(target)
    }

    /// Asks for the lock of a host's memory, which is had when what is asked next is done.
    pub fn lock(&mut self, target: usize, alone: bool, call: Calling<'_>) {
        let kind = if alone { Kind::Alone } else { Kind::Early };
        self.ask(target, call, |to| to.lock(kind));
    }

    /// Begins to complete everything that was asked of a host, and gives back its lock.
    pub fn unlock(&mut self, target: usize, alone: bool, call: Calling<'_>) -> Landing {
        self.ask(target, call, |to| to.unlock(alone));
        self.land(target)
    }

    /// Looks how far that is; none: not at its end.
    pub fn landed(&mut self, landing: &mut Landing, engine: &mut Engine) -> Option<Landed> {
        let Landing { target, count, flying, failure } = landing;
        flying.retain(|each| {
            let outcome = each.request().and_then(|request| self.requests.take(request, engine));
            let Some(outcome) = outcome else { return true };
            if let Err(why) = each.ended(outcome) {
                failure.get_or_insert(why);
            }
            false
        });
        if !flying.is_empty() {
            return None;
        }
        self.origin.landed(*count);
        let mut read = |number: Number| {
            if let Some(sent) = self.sent.get_mut(&number) {
                sent.poison();
            }
            let read = self.read.get(&number).map(Buffer::bytes);
            (number, read.filter(|bytes| !bytes.is_empty()))
        };
        let accesses = self.open.remove(target).unwrap_or_default().into_iter().map(&mut read).collect();
        Some(Landed { target: *target, accesses, failure: failure.take() })
    }

    /// The data that an access writes; of a swap, the value that it compares with goes before.
    fn data(&self, number: Number, touch: Touch) -> Vec<u8> {
        let word = match touch {
            Touch::Put { len, .. } => {
                let mut data = Vec::new();
                payload(number as u64, len as usize, &mut data);
                return data;
            }
            Touch::Swap { compare, .. } => {
                return [compare, value(number)].map(u64::to_le_bytes).concat();
            }
            Touch::Get { .. } | Touch::Count => return Vec::new(),
            Touch::Add { digit, .. } => addend(digit),
            Touch::Exchange { .. } => value(number),
            Touch::Raise => {
                let counted = self.counted.and_then(|counted| self.read.get(&counted));
                counted.map_or(0, |buffer| word(&buffer.bytes())) + 1
            }
        };
        word.to_le_bytes().to_vec()
    }

    fn ask<'a, R>(
        &'a mut self,
        target: usize,
        call: Calling<'a>,
        ask: impl FnOnce(Asking<'_, Outside<'_>>) -> R,
    ) -> R {
        let to = rma::To {
            rank: target,
            peer: PeerId(target as u32),
            context: Context(CONTEXT),
            frames: (Context(CONTEXT), FRAMES),
        };
        let mut port = Outside { call, requests: &mut self.requests };
        ask(self.origin.asking(&mut port, to, None))
    }

    fn land(&mut self, target: usize) -> Landing {
        let mut flying = self.origin.take_flying(target);
        let count = flying.len();
        flying.extend(self.origin.take_locking(target));
        Landing { target, count, flying, failure: None }
    }
}

impl fmt::Debug for Landing {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} of {} things to h{}", self.flying.len(), self.count, self.target)
    }
}

/// Asks a host for an access. `bytes` are those of `data`; `into` gets data that are read.
fn ask(to: Asking<'_, Outside<'_>>, touch: Touch, data: &Segments, (bytes, into): (&[u8], &Segments)) {
    let (place, replace) = (touch.place(), Combine::Replace.element());
    match touch {
        Touch::Put { .. } | Touch::Raise => to.put(place, data),
        Touch::Get { .. } | Touch::Count => to.get(place, into),
        Touch::Add { fetches, .. } => {
            to.combine(Combine::Sum.element(), &place, Some(data), fetches.then_some(into));
        }
        Touch::Exchange { .. } => to.combine(replace, &place, Some(data), Some(into)),
        Touch::Swap { .. } => to.swap(replace, place, bytes, into),
    }
}

/// The number that a word is.
pub fn word(bytes: &[u8]) -> u64 {
    bytes.first_chunk().map_or(0, |word| u64::from_le_bytes(*word))
}

/// The memory that a host exposes.
struct Memory {
    hosts: usize,
    buffer: Buffer,
    words: [AtomicU64; WORDS],
    /// It is broken on purpose: combinations until one is done twice.
    doubles: Option<Cell<u32>>,
}

/// As often as a canary wants, once otherwise.
#[derive(Debug, Clone, Copy)]
struct Repeated(Combine, u32);

impl Operator for Repeated {
    fn reads(self) -> bool {
        true
    }

    fn apply(self, data: &[u8], base: Base, place: &Place) -> Result<(), Fault> {
        (0..self.1).for_each(|_| self.0.apply(data, base, place));
        Ok(())
    }
}

/// What combines words with those of the memory.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[repr(u8)]
enum Combine {
    /// The data are there afterwards.
    Replace = 1,
    /// Their sum is.
    Sum = 2,
}

impl Combine {
    fn element(self) -> Element {
        Element { op: self as u8, basic: 0, size: WORD }
    }

    fn apply(self, data: &[u8], base: Base, place: &Place) {
        let mut words = data.as_chunks().0.iter().map(|word| u64::from_le_bytes(*word));
        for (offset, len) in place.runs() {
            for at in (offset..offset + len).step_by(WORD as usize) {
                let mut old = Vec::new();
                base.append_to(at, WORD, &mut old);
                let new = words.next().unwrap_or(0);
                let new = if self == Combine::Sum { word(&old).wrapping_add(new) } else { new };
                base.write(at, &new.to_le_bytes());
            }
        }
    }
}

impl Exposed for Memory {
    type Operator = Repeated;
    const BREACH: i32 = 1;

    fn context(&self) -> Context {
        Context(CONTEXT)
    }

    fn frames(&self) -> (Context, Tag) {
        (Context(CONTEXT), FRAMES)
    }

    fn peer(&self, rank: usize) -> PeerId {
        PeerId(rank as u32)
    }

    fn rank_of(&self, peer: PeerId) -> Option<usize> {
        Some(peer.0 as usize).filter(|rank| *rank < self.hosts)
    }

    fn base(&self) -> Base {
        Base::new(self.buffer.start().cast())
    }

    fn check(&self, place: &Place) -> Result<(), Fault> {
        let beyond = place.beyond(self.buffer.len() as u64);
        let fault = |run| Fault { class: 2, text: format!("{run:?} is not exposed") };
        beyond.map_or(Ok(()), |run| Err(fault(run)))
    }

    fn operator(&self, op: u8, _: u8) -> Option<Repeated> {
        let combine = [Combine::Replace, Combine::Sum].into_iter().find(|combine| *combine as u8 == op)?;
        let mut times = 1;
        if let Some(left) = &self.doubles {
            left.set(left.get().checked_sub(1).unwrap_or(TWICE));
            times += u32::from(left.get() == 0);
        }
        Some(Repeated(combine, times))
    }

    fn locks(&self) -> Locks<'_> {
        Locks(&self.words)
    }

    fn atomically<R>(&self, work: impl FnOnce() -> R) -> R {
        // There is one thread.
        work()
    }
}
