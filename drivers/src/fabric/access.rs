//! Accesses to memory that a peer has exposed. Long ones operate directly on user memory, which is
//! registered as for chunks; short ones use a slot, which is always registered.

use super::adapter::{Adapter, Place, Purpose};
use super::operations::{Operation, Operations, Owner};
use super::pinned::Pinned;
use super::slots::SLOT;
use super::write::{RESERVE, Way, copy, pays};
use nmad_engine::packet::RequestId;
use nmad_engine::transfer::access::{Access, Act, Came};
use nmad_engine::transfer::driver::Event;
use std::collections::VecDeque;

/// Operations of accesses on a link at once. An endpoint takes more; the rest is left to messages and chunk
/// reads.
const AT_ONCE: u32 = 32;
/// Bytes of one operation.
const STEP: u64 = 1 << 20;

/// The pending accesses of a link.
pub(crate) struct Accesses<R> {
    list: VecDeque<Accessing<R>>,
    /// Operations under way.
    in_flight: u32,
}

struct Accessing<R> {
    access: Access,
    through: Through<R>,
    /// Bytes requested so far, and bytes transferred.
    asked: u64,
    landed: u64,
}

/// The local memory of the operations.
enum Through<R> {
    /// Not chosen yet.
    None,
    /// A registered slot.
    Slot(u32),
    /// The application's memory.
    Memory(Pinned<R>),
}

impl<R> Default for Accesses<R> {
    fn default() -> Self {
        Accesses { list: VecDeque::new(), in_flight: 0 }
    }
}

/// The event that reports the end of an access.
pub(crate) fn ended(access: &Access, came: Came) -> Event<'static> {
    Event::Accessed { to: access.to, request: access.request, came }
}

impl<R> Accesses<R> {
    /// Queues an access.
    pub(crate) fn push(&mut self, access: Access) {
        self.list.push_back(Accessing { access, through: Through::None, asked: 0, landed: 0 });
    }

    /// Posts operations while there is room; returns whether any are left. Events of completed accesses are
    /// added to `events`.
    ///
    /// # Errors
    /// The endpoint has failed.
    pub(crate) fn write<A: Adapter<Region = R>>(
        &mut self,
        way: &mut Way<'_, A>,
        operations: &mut Operations,
        events: &mut Vec<Event<'static>>,
    ) -> Result<bool, String> {
        let mut left = false;
        // Accesses before this one are entirely posted and wait for completions.
        let first = self.list.partition_point(|one| one.is_asked());
        let mut place = first;
        while place < self.list.len() && self.in_flight < AT_ONCE && !left {
            let one = &mut self.list[place];
            match one.begin(way) {
                Begun::Ready => {
                    left = one.post(way, operations, &mut self.in_flight)?;
                    place += 1;
                }
                Begun::NoRoom => left = true,
                Begun::Over(came) => {
                    events.push(ended(&one.access, came));
                    self.list.remove(place);
                }
            }
        }
        if place > first {
            way.adapter.flush(way.endpoint)?;
        }
        Ok(left)
    }

    /// Handles the completion of an operation, given its request, its length in bytes, and its success.
    pub(crate) fn landed<A: Adapter<Region = R>>(
        &mut self,
        (request, len, is_good): (RequestId, u64, bool),
        way: &mut Way<'_, A>,
        events: &mut Vec<Event<'static>>,
    ) {
        self.in_flight -= 1;
        let Some(place) = self.list.iter().position(|one| one.access.request == request) else { return };
        if !is_good {
            return;
        }
        let one = &mut self.list[place];
        one.landed += len;
        if one.landed < one.access.here.len() {
            return;
        }
        if let Through::Slot(slot) = one.through {
            if one.access.act != Act::Put {
                one.access.here.write(0, way.slots.bytes(slot, len as usize));
            }
            way.slots.completed(slot);
        }
        events.push(ended(&one.access, Came::Done));
        self.list.remove(place);
    }

    /// Returns whether an access waits for room, which completions make.
    pub(crate) fn waits(&self) -> bool {
        self.list.back().is_some_and(|last| !last.is_asked())
    }

    /// Ends all accesses with the link; returns an event for each.
    pub(crate) fn end(self) -> impl Iterator<Item = Event<'static>> {
        self.list.into_iter().map(|one| {
            let came = if one.asked > 0 { Came::Unknown } else { Came::Undone };
            ended(&one.access, came)
        })
    }
}

/// Result of starting an access.
enum Begun {
    Ready,
    /// No slot is free.
    NoRoom,
    /// The access has ended with this result.
    Over(Came),
}

impl<R> Accessing<R> {
    fn is_asked(&self) -> bool {
        !matches!(self.through, Through::None) && self.asked >= self.access.here.len()
    }

    /// Chooses the local memory of the operations.
    fn begin<A: Adapter<Region = R>>(&mut self, way: &mut Way<'_, A>) -> Begun {
        let Access { act, ref here, .. } = self.access;
        if !matches!(self.through, Through::None) {
            return Begun::Ready;
        }
        if here.is_empty() {
            return Begun::Over(Came::Done);
        }
        if pays(here) {
            let purpose = if act == Act::Put { Purpose::Source } else { Purpose::Target };
            match Pinned::new(here, purpose, (&mut *way.adapter, &mut *way.cache)) {
                Ok(pinned) => {
                    self.through = Through::Memory(pinned);
                    return Begun::Ready;
                }
                Err(why) => {
                    log::debug!("cannot register memory of an access, which is copied instead: {why}")
                }
            }
        }
        if here.len() > SLOT as u64 {
            // The caller then copies it in parts, within messages.
            return Begun::Over(Came::Undone);
        }
        if way.slots.count_free() <= RESERVE {
            return Begun::NoRoom;
        }
        let Some(slot) = way.slots.take() else { return Begun::NoRoom };
        if act == Act::Put {
            copy(here, way.slots.bytes_mut(slot));
        }
        way.slots.posted(slot, way.name);
        self.through = Through::Slot(slot);
        Begun::Ready
    }

    /// Posts the remaining operations; returns whether there was no room.
    fn post<A: Adapter<Region = R>>(
        &mut self,
        way: &mut Way<'_, A>,
        operations: &mut Operations,
        in_flight: &mut u32,
    ) -> Result<bool, String> {
        let Access { act, at, key, request, ref here, .. } = self.access;
        let longest = STEP.min(way.adapter.abilities().operation as u64);
        while self.asked < here.len() && *in_flight < AT_ONCE {
            let memory = match &self.through {
                Through::Slot(slot) => {
                    Some((way.slots.segment(*slot, here.len() as usize), way.slots.region()))
                }
                Through::Memory(pinned) => pinned.run(here, self.asked, longest),
                Through::None => None,
            };
            let Some((piece, region)) = memory else { break };
            let len = piece.len as u64;
            let operation = Operation { endpoint: way.name, owner: Owner::Access(request), len };
            let there = Place { address: at.wrapping_add(self.asked), key: key.0 };
            let to = (&mut *way.adapter, &mut *way.endpoint);
            if !operations.post(operation, to, act, (piece, region), there)? {
                return Ok(true);
            }
            *in_flight += 1;
            self.asked += len;
        }
        Ok(false)
    }
}
