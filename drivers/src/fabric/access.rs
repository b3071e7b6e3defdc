//! Accesses to memory that a peer has exposed. Long ones work on the memory as it lies, registered like that
//! of chunks; short ones through a slot, which is registered already.

use super::adapter::{Adapter, Place, Posted, Purpose};
use super::cache::Registered;
use super::operations::{Operation, Operations, PartOf};
use super::slots::SLOT;
use super::write::{PIECE_MIN, RESERVE, Way, copy, pays};
use nmad_engine::packet::RequestId;
use nmad_engine::transfer::access::{Access, Act, Came};
use nmad_engine::transfer::driver::Event;
use std::collections::VecDeque;
use std::ops::Range;
use std::sync::Arc;

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
    /// The application's: the addresses of each piece, and its registration.
    Memory(Vec<(Range<usize>, Arc<R>)>),
}

impl<R> Default for Accesses<R> {
    fn default() -> Self {
        Accesses { list: VecDeque::new(), flying: 0 }
    }
}

/// What came of an access, as an event.
pub(crate) fn ended(access: &Access, came: Came) -> Event<'static> {
    Event::Accessed { to: access.to, request: access.request, came }
}

impl<R> Accesses<R> {
    /// Takes one.
    pub(crate) fn push(&mut self, access: Access) {
        self.list.push_back(Accessing { access, through: Through::None, asked: 0, landed: 0 });
    }

    /// Posts what can be posted; whether something is left for which there was no room. What has ended is
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

    /// The link has ended, and its operations with it: what came of each access.
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
        let here = &self.access.here;
        if !matches!(self.through, Through::None) {
            return Begun::Ready;
        }
        if here.is_empty() {
            return Begun::Over(Came::Done);
        }
        if (here.len() >= PIECE_MIN && pays(here)) && self.register(way) {
            return Begun::Ready;
        }
        let here = &self.access.here;
        if here.len() > SLOT as u64 {
            // In a message it is copied in parts.
            return Begun::Over(Came::Undone);
        }
        if way.slots.count_free() <= RESERVE {
            return Begun::NoRoom;
        }
        let Some(slot) = way.slots.take() else { return Begun::NoRoom };
        if self.access.act == Act::Put {
            copy(here, way.slots.bytes_mut(slot));
        }
        way.slots.posted(slot, way.name);
        self.through = Through::Slot(slot);
        Begun::Ready
    }

    /// Registers the memory here; false: the system refuses.
    fn register<A: Adapter<Region = R>>(&mut self, way: &mut Way<'_, A>) -> bool {
        let Way { adapter, cache, .. } = way;
        let purpose = if self.access.act == Act::Put { Purpose::Source } else { Purpose::Target };
        let mut pieces = Vec::new();
        for piece in self.access.here.iter() {
            match cache.register(piece, purpose, |memory| adapter.register(memory, purpose)) {
                Ok(Registered { region, .. }) => {
                    let start = piece.start.addr();
                    pieces.push((start..start + piece.len, region));
                }
                Err(why) => {
                    log::debug!("an access goes in a message: {why}");
                    return false;
                }
            }
        }
        self.through = Through::Memory(pieces);
        true
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
            let (piece, region) = match &self.through {
                Through::Slot(slot) => (way.slots.segment(*slot, here.len() as usize), way.slots.region()),
                Through::Memory(pieces) => {
                    let Some(piece) = here.slice(self.asked, longest).iter().next() else { break };
                    let start = piece.start.addr();
                    let Some((_, region)) = pieces.iter().find(|(all, _)| all.contains(&start)) else {
                        break;
                    };
                    (piece, &**region)
                }
                Through::None => break,
            };
            let len = piece.len as u64;
            let part_of = PartOf::Access(request);
            let token = operations.add(Operation { endpoint: way.name, part_of, len });
            let there = Place { address: at.wrapping_add(self.asked), key: key.0 };
            match way.adapter.operate(way.endpoint, act, (piece, region), there, token) {
                Ok(Posted::Full) => {
                    operations.take(token);
                    return Ok(true);
                }
                Ok(_) => {}
                Err(why) => {
                    operations.take(token);
                    return Err(why);
                }
            }
            *flying += 1;
            self.asked += len;
        }
        Ok(false)
    }
}
