//! The target's side of windows: the node has the protocol serve them in any thread that looks at the rails:
//! one that waits for something else, or the helper while the program computes. It runs with the node's lock
//! held.

use super::combine::Combination;
use super::word::{WORD, swap_word};
use super::{Flavor, Way, Window, lock};
use crate::error::{Class, Error};
use crate::world::World;
use newmadeleine::engine::{Context, Engine, PeerId};
use newmadeleine::progress::{Served, Service};
use nmad_rma::{Base, Exposed, Fault, Operator, Place};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};

/// Windows that may be accessed.
static SERVED: Mutex<Vec<Arc<Window>>> = Mutex::new(Vec::new());
/// How many of them other processes copy to and from: we may have a part in that, which no message announces.
static COPIED: AtomicUsize = AtomicUsize::new(0);

/// Serves a window from now on.
pub(super) fn begin(world: &World, window: &Arc<Window>) {
    let is_first = {
        let mut served = lock(&SERVED);
        served.push(window.clone());
        served.len() == 1
    };
    COPIED.fetch_add(window.is_copied().into(), Ordering::Relaxed);
    if is_first {
        world.node().set_service(Some(Box::new(All { is_busy: true })));
    }
}

/// Serves it no more.
pub(super) fn end(world: &World, window: &Window) {
    let is_last = {
        let mut served = lock(&SERVED);
        served.retain(|other| !std::ptr::eq(&**other, window));
        served.is_empty()
    };
    COPIED.fetch_sub(window.is_copied().into(), Ordering::Relaxed);
    if is_last {
        world.node().set_service(None);
    }
}

/// All windows.
struct All {
    /// Something is not done.
    is_busy: bool,
}

impl Service for All {
    fn serve(&mut self, engine: &mut Engine) -> Served {
        let mut served = Served::default();
        if COPIED.load(Ordering::Relaxed) > 0 {
            lock(&SERVED).iter().for_each(|window| served.worked |= window.help_to_copy());
        }
        if !self.is_busy && engine.unexpected() == 0 {
            return served;
        }
        self.is_busy = false;
        for window in lock(&SERVED).iter() {
            let mut serving = lock(&window.serving);
            served.worked |= serving.serve(&**window, engine);
            served.waits |= serving.waits();
            self.is_busy |= serving.is_busy();
        }
        served
    }
}

impl Window {
    /// Whether other processes copy to and from the memory of this one.
    fn is_copied(&self) -> bool {
        self.peers.iter().any(|peer| matches!(peer.way, Way::Copies(_)))
    }

    /// Does a part of a copy that is under way to or from our memory, if there is one.
    fn help_to_copy(&self) -> bool {
        let joint = self.own_locks().joint();
        let Some(part) = joint.part() else { return false };
        let origin = usize::try_from(part.origin).ok().and_then(|rank| self.peers.get(rank));
        let process = origin.and_then(|origin| match origin.way {
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

    fn peer(&self, rank: usize) -> PeerId {
        PeerId(self.peers[rank].process)
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
