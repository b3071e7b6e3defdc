//! Accesses to memory that a peer has exposed. Long ones work on the memory as it lies, registered like that
//! of chunks; short ones through a slot, which is registered already.

use super::adapter::{Adapter, Place, Purpose};
use super::operations::{Operation, Operations, PartOf};
use super::pinned::Pinned;
use super::slots::SLOT;
use super::write::{RESERVE, Way, copy, pays};
use nmad_engine::packet::RequestId;
use nmad_engine::transfer::access::{Access, Act, Came};
use nmad_engine::transfer::driver::Event;
use std::collections::VecDeque;

/// Operations of a link at once: its endpoint takes more, which are left to messages and reads of chunks.
const AT_ONCE: u32 = 32;
/// Bytes of an operation.
const STEP: u64 = 1 << 20;

/// The accesses of a link that have not ended.
pub(crate) struct Accesses<R> {
    list: VecDeque<Accessing<R>>,
    /// Operations under way.
    flying: u32,
}

struct Accessing<R> {
    access: Access,
    through: Through<R>,
    /// Bytes that were asked for, and bytes that are there.
    asked: u64,
    landed: u64,
}

/// The memory here that operations work on.
enum Through<R> {
    /// It is not chosen yet.
    None,
    /// A slot.
    Slot(u32),
    /// The application's.
    Memory(Pinned<R>),
}

impl<R> Default for Accesses<R> {
    fn default() -> Self {
        Accesses { list: VecDeque::new(), flying: 0 }
    }
}

/// The event that reports the end of an access.
pub(crate) fn ended(access: &Access, came: Came) -> Event<'static> {
    Event::Accessed { to: access.to, request: access.request, came }
}

impl<R> Accesses<R> {
    /// Takes one.
    pub(crate) fn push(&mut self, access: Access) {
        self.list.push_back(Accessing { access, through: Through::None, asked: 0, landed: 0 });
    }

    /// Posts operations while there is room; whether some are left. Events of accesses that have ended are
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
        // Those before the first that is not asked for as a whole only wait for what is under way.
        let first = self.list.partition_point(|one| one.is_asked());
        let mut place = first;
        while place < self.list.len() && self.flying < AT_ONCE && !left {
            let one = &mut self.list[place];
            match one.begin(way) {
                Begun::Ready => {
                    left = one.post(way, operations, &mut self.flying)?;
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

    /// An operation of an access has ended: of which request, its bytes, and whether it was done.
    pub(crate) fn landed<A: Adapter<Region = R>>(
        &mut self,
        (request, len, is_good): (RequestId, u64, bool),
        way: &mut Way<'_, A>,
        events: &mut Vec<Event<'static>>,
    ) {
        self.flying -= 1;
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

    /// Whether there is something that operations which end make room for.
    pub(crate) fn waits(&self) -> bool {
        self.list.back().is_some_and(|last| !last.is_asked())
    }

    /// The link has ended, and its operations with it: an event for each access.
    pub(crate) fn end(self) -> impl Iterator<Item = Event<'static>> {
        self.list.into_iter().map(|one| {
            let came = if one.asked > 0 { Came::Unknown } else { Came::Undone };
            ended(&one.access, came)
        })
    }
}

/// Whether an access can go on.
enum Begun {
    Ready,
    /// No slot is free.
    NoRoom,
    /// It has ended like this.
    Over(Came),
}

impl<R> Accessing<R> {
    fn is_asked(&self) -> bool {
        !matches!(self.through, Through::None) && self.asked >= self.access.here.len()
    }

    /// Chooses the memory here that operations work on.
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
                Err(why) => log::debug!("an access goes in a message, or is copied: {why}"),
            }
        }
        if here.len() > SLOT as u64 {
            // In a message it is copied in parts.
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

    /// Asks for what is still to be asked for; whether there was no room.
    fn post<A: Adapter<Region = R>>(
        &mut self,
        way: &mut Way<'_, A>,
        operations: &mut Operations,
        flying: &mut u32,
    ) -> Result<bool, String> {
        let Access { act, at, key, request, ref here, .. } = self.access;
        let longest = STEP.min(way.adapter.abilities().operation as u64);
        while self.asked < here.len() && *flying < AT_ONCE {
            let memory = match &self.through {
                Through::Slot(slot) => {
                    Some((way.slots.segment(*slot, here.len() as usize), way.slots.region()))
                }
                Through::Memory(pinned) => pinned.run(here, self.asked, longest),
                Through::None => None,
            };
            let Some((piece, region)) = memory else { break };
            let len = piece.len as u64;
            let operation = Operation { endpoint: way.name, part_of: PartOf::Access(request), len };
            let there = Place { address: at.wrapping_add(self.asked), key: key.0 };
            let to = (&mut *way.adapter, &mut *way.endpoint);
            if !operations.post(operation, to, act, (piece, region), there)? {
                return Ok(true);
            }
            *flying += 1;
            self.asked += len;
        }
        Ok(false)
    }
}
