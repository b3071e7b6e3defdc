//! The target's side of windows: the node has the protocol serve them in any thread that looks at the rails:
//! one that waits for something else, or the helper while the program computes. It runs with the node's lock
//! held.

use super::combine::Combination;
use super::word::{WORD, swap_word};
use super::{Flavor, Way, Window, lock};
use crate::comm::FRAMES;
use crate::error::{Class, Error};
use crate::world::World;
use newmadeleine::engine::{Claim, Context, Engine, PeerId, RequestId, Segments, Source, Tag, TagMatch, To};
use newmadeleine::progress::{Served, Service};
use nmad_rma::{Base, Claims, Exposed, Fault, Operator, Outcome, Place, Port};
use std::collections::{BTreeMap, BTreeSet, VecDeque};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};

/// Windows of which one look at the rails asks whether a copy wants help. Each costs a word of shared memory,
/// which is a miss of the cache where there are thousands: a message beside 3,000 windows takes 1.4 times as
/// long as beside 150, at 8 windows 2.9 times (two ranks on a node of two cores, not optimised). At 1, twice
/// as many looks pass before a long copy is helped.
const HELPED: usize = 2;

/// The name of the service.
const NAME: &str = "windows";

/// What names a window in a process: the context of its communicator, as a tag.
type Name = u64;

/// All windows of this process, and what has come for them.
struct Windows {
    /// Those that may be accessed.
    served: BTreeMap<Name, Arc<Window>>,
    /// Those that other processes copy to and from: we may have a part in that, which no message announces.
    copied: BTreeMap<Name, Arc<Window>>,
    /// The first of them to be looked at next.
    next: Name,
    /// Those that have more to do.
    busy: BTreeSet<Name>,
    /// Messages with frames. Origins may be further than this process, which has no such window then.
    came: BTreeMap<Name, VecDeque<Claim>>,
}

static ALL: Mutex<Windows> = Mutex::new(Windows {
    served: BTreeMap::new(),
    copied: BTreeMap::new(),
    next: 0,
    busy: BTreeSet::new(),
    came: BTreeMap::new(),
});

/// Number of windows that other processes copy to and from.
static COPIED: AtomicUsize = AtomicUsize::new(0);

fn name(window: &Window) -> Name {
    window.on.comm.context().0.into()
}

/// Where messages with frames for a window go.
pub(super) fn frames(window: &Window) -> (Context, Tag) {
    (FRAMES, Tag(name(window)))
}

/// Serves a window from now on.
pub(super) fn begin(world: &World, window: &Arc<Window>) {
    let is_first = {
        let mut all = lock(&ALL);
        if window.is_copied() {
            all.copied.insert(name(window), window.clone());
            COPIED.store(all.copied.len(), Ordering::Relaxed);
        }
        all.served.insert(name(window), window.clone());
        all.served.len() == 1
    };
    if is_first {
        world.node().set_service(NAME, Some(Box::new(All { is_due: true })));
    }
}

/// Serves it no more.
pub(super) fn end(world: &World, window: &Window) {
    let is_last = {
        let mut all = lock(&ALL);
        all.copied.remove(&name(window));
        COPIED.store(all.copied.len(), Ordering::Relaxed);
        all.served.remove(&name(window));
        all.served.is_empty()
    };
    if is_last {
        world.node().set_service(NAME, None);
    }
}

/// Serves all windows.
struct All {
    /// A window has more to do, or something has come for it.
    is_due: bool,
}

impl Service for All {
    fn serve(&mut self, engine: &mut Engine) -> Served {
        // Most looks find nothing to do; they take no lock.
        if COPIED.load(Ordering::Relaxed) == 0 && !self.is_due && engine.inspect().unexpected() == 0 {
            return Served::default();
        }
        let mut all = lock(&ALL);
        let mut served = Served { worked: all.help_to_copy(), ..Served::default() };
        if engine.inspect().unexpected() > 0 {
            while let Some(claim) = engine.claim(Source::Any, FRAMES, TagMatch::Any) {
                all.came.entry(claim.envelope.tag.0).or_default().push_back(claim);
            }
        }
        if !all.busy.is_empty() || !all.came.is_empty() {
            all.serve(engine, &mut served);
        }
        self.is_due = !all.busy.is_empty() || !all.came.is_empty();
        served
    }
}

impl Windows {
    /// Helps with a copy to or from the memory of one of the windows whose turn it is.
    fn help_to_copy(&mut self) -> bool {
        let from_here = self.copied.range(self.next..).chain(self.copied.range(..self.next));
        for (&name, window) in from_here.take(HELPED) {
            self.next = name;
            // The next look begins with it, since a long copy has many parts.
            if window.help_to_copy() {
                return true;
            }
        }
        self.next += 1;
        false
    }

    /// Serves the windows for which something has come, or that have more to do.
    fn serve(&mut self, engine: &mut Engine, served: &mut Served) {
        let mut due = std::mem::take(&mut self.busy);
        due.extend(self.came.keys());
        for name in due {
            let Some(window) = self.served.get(&name) else { continue };
            let mut port = Claimed { engine, came: self.came.remove(&name).unwrap_or_default() };
            let mut serving = lock(&window.serving);
            served.worked |= serving.serve(&**window, &mut port);
            served.waits |= serving.waits();
            window.wake(window.own_locks(), |wake| wake(port.engine));
            if serving.is_busy() {
                self.busy.insert(name);
            }
        }
    }
}

/// The engine, whose messages with frames for a window were claimed.
struct Claimed<'a> {
    engine: &'a mut Engine,
    came: VecDeque<Claim>,
}

impl Port for Claimed<'_> {
    fn send(&mut self, to: &To, data: &Segments) -> Option<RequestId> {
        Port::send(self.engine, to, data)
    }

    fn receive(&mut self, from: (Source, Context, TagMatch), into: Segments) -> RequestId {
        Port::receive(self.engine, from, into)
    }

    fn take(&mut self, request: RequestId) -> Option<Outcome> {
        Port::take(self.engine, request)
    }
}

impl Claims for Claimed<'_> {
    fn claim(&mut self, _: (Source, Context, TagMatch)) -> Option<Claim> {
        self.came.pop_front()
    }

    fn receive_claimed(&mut self, claim: Claim, into: Segments) -> RequestId {
        self.engine.receive_claimed(claim, into)
    }
}

impl Window {
    /// Whether other processes copy to and from the memory of this one.
    fn is_copied(&self) -> bool {
        self.peers.records().any(|(_, peer)| matches!(peer.way, Way::Copies(_)))
    }

    /// Does a part of a copy that is under way to or from our memory, if there is one.
    fn help_to_copy(&self) -> bool {
        let joint = self.own_locks().joint();
        let Some(part) = joint.part() else { return false };
        let origin = i32::try_from(part.origin).ok().and_then(|rank| self.peers.get(rank));
        let process = origin.and_then(|origin| match &origin.way {
            Way::Copies(process) => Some(process),
            _ => None,
        });
        let end = part.place.checked_add(part.len).filter(|&end| end <= self.size);
        let ours = end.map(|_| self.base.segments(part.place, part.len));
        joint.help(part, process.zip(ours))
    }
}

impl Exposed for Window {
    type Operator = Combining;
    const BREACH: i32 = Class::INTERN.0;

    fn context(&self) -> Context {
        self.on.comm.context()
    }

    fn frames(&self) -> (Context, Tag) {
        frames(self)
    }

    fn peer(&self, rank: usize) -> PeerId {
        PeerId(self.process(rank as i32))
    }

    fn rank_of(&self, peer: PeerId) -> Option<usize> {
        self.on.comm.local().rank_of(peer.0).map(|rank| rank as usize)
    }

    fn base(&self) -> Base {
        self.base
    }

    fn check(&self, place: &Place) -> Result<(), Fault> {
        let text = match self.flavor {
            Flavor::Dynamic => lock(&self.attached).missing(place).map(|(start, len)| {
                format!("the {len} B at address {start:#x} are not attached to the window")
            }),
            // Origins have checked it before they asked.
            _ => place
                .beyond(self.size)
                .map(|(offset, len)| format!("the {len} B from byte {offset} on are not in the window")),
        };
        text.map_or(Ok(()), |text| Err(Fault { class: Class::RMA_RANGE.0, text }))
    }

    fn operator(&self, op: u8, basic: u8) -> Option<Combining> {
        let by_words = self.adapters_change;
        Combination::decode(op, basic).map(|combination| Combining { combination, by_words })
    }

    fn locks(&self) -> nmad_rma::locks::Locks<'_> {
        self.own_locks().turns()
    }

    fn atomically<R>(&self, work: impl FnOnce() -> R) -> R {
        let _held = self.own_locks().hold();
        work()
    }
}

/// What combines data with our memory.
#[derive(Clone, Copy)]
pub(crate) struct Combining {
    combination: Combination,
    /// Network adapters change words of it, too.
    by_words: bool,
}

impl Operator for Combining {
    fn reads(self) -> bool {
        self.combination.reads()
    }

    fn apply(self, data: &[u8], base: Base, place: &Place) -> Result<(), Fault> {
        let fault = |error: Error| Fault { class: error.class().0, text: error.text().to_string() };
        self.combination.apply(data, base, place).map_err(fault)
    }

    fn apply_in_steps(self, data: &[u8], base: Base, place: &Place) -> Option<Vec<u8>> {
        if self.by_words { self.combination.change_words(data, base, place) } else { None }
    }

    fn swap_in_a_step(self, both: &[u8], base: Base, place: &Place) -> Option<Vec<u8>> {
        let both = both.as_chunks().0.first_chunk::<2>().filter(|_| self.by_words)?;
        let [compare, new] = both.map(u64::from_ne_bytes);
        let (&Place::One(offset, WORD), true) = (place, self.combination.is_of_words()) else { return None };
        let at = base.operand(offset);
        at.addr().is_multiple_of(WORD as usize).then(|| swap_word(at, compare, new).to_ne_bytes().into())
    }
}
