//! The window: messages submitted for one peer and not yet on a rail (P1 section 3.1).
//!
//! It has a common list that any rail may take from, and a list for each rail to which the application (or
//! the engine, for acknowledgements) has dedicated entries (P1 section 3.3). Each list is ordered by
//! priority, then by submission.

use super::request::{Context, Hints, Prefer, Tag};
use crate::memory::Segments;
use crate::packet::{PeerId, RailId, RequestId, StrategyId};
use crate::profile::sample::Method;
use alloc::collections::VecDeque;
use alloc::vec::Vec;
use nmad_wire::rts_of;

/// Number of entries of a list that a strategy examines.
const SCAN: usize = 64;

/// An entry of the window: a frame and the data that follows it.
#[derive(Debug)]
pub struct Entry {
    pub(crate) head: Head,
    pub(crate) data: Segments,
    /// The request to complete; [`RequestId::NONE`]: none.
    pub(crate) request: RequestId,
    /// Hints of the application; [`Hints::probe`] selects the method regardless of thresholds.
    pub(crate) hints: Hints,
    /// Number in the order of submission.
    number: u32,
    /// Number of the entry that it depends on.
    ahead: u32,
}

/// Envelope of a message in the window.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Names {
    /// Context.
    pub context: Context,
    /// Tag.
    pub tag: Tag,
    /// Sequence number in its flow; zero for unordered messages.
    pub seq: u32,
    /// Length of the message in bytes, including the body of a large message, which is not in the entry.
    pub len: u64,
}

/// The frame of an entry.
#[derive(Debug)]
pub(crate) enum Head {
    Eager(nmad_wire::Eager),
    /// A request to send, encoded.
    Request(Vec<u8>),
    /// Any other frame, encoded.
    Frame(Vec<u8>),
}

impl Entry {
    #[inline]
    fn new(head: Head, data: Segments, request: RequestId, hints: Hints) -> Self {
        Entry { head, data, request, hints, number: 0, ahead: 0 }
    }

    pub(crate) fn eager(head: nmad_wire::Eager, data: Segments, request: RequestId, hints: &Hints) -> Self {
        Entry::new(Head::Eager(head), data, request, *hints)
    }

    /// Makes an entry for a part of a message that is longer than a packet; the request to send is an
    /// earlier entry.
    pub(crate) fn part(head: nmad_wire::Part, data: Segments, request: RequestId, hints: &Hints) -> Self {
        let mut frame = Vec::with_capacity(nmad_wire::Part::LEN);
        head.encode(&mut frame);
        Entry::new(Head::Frame(frame), data, request, *hints)
    }

    /// Makes an entry with control frames, which go before data of default priority.
    pub(crate) fn control(frame: Vec<u8>) -> Self {
        let hints = Hints { priority: 1, ..Hints::default() };
        Entry::new(Head::Frame(frame), Segments::empty(), RequestId::NONE, hints)
    }

    /// Makes an entry with a request to send, which keeps its order among the messages. `request`: data
    /// follows it at once.
    pub(crate) fn rts(frame: Vec<u8>, request: Option<RequestId>, hints: &Hints) -> Self {
        let hints = Hints { probe: None, ..*hints };
        let request = request.unwrap_or(RequestId::NONE);
        Entry::new(Head::Request(frame), Segments::empty(), request, hints)
    }

    /// Makes this entry of a request to send carry blocks of its message, which are copied into its packet.
    pub(crate) fn with_blocks(mut self, blocks: Segments) -> Self {
        (self.data, self.hints.probe) = (blocks, Some(Method::Copy));
        self
    }

    /// Returns the bytes of the blocks of a large message that travel with its request to send (P1 section
    /// 5.3); zero: this is no request to send, or its body is one piece.
    pub fn blocks_len(&self) -> u64 {
        if let Head::Request(_) = self.head { self.data.len() } else { 0 }
    }

    /// Returns its length in a packet, in bytes.
    #[inline]
    pub fn len(&self) -> usize {
        let head = match &self.head {
            Head::Eager(eager) => eager.header_len(),
            Head::Request(frame) | Head::Frame(frame) => frame.len(),
        };
        head + self.data.len() as usize
    }

    /// Always false: an entry has a frame.
    pub fn is_empty(&self) -> bool {
        false
    }

    /// Returns its priority; higher goes first.
    pub fn priority(&self) -> i8 {
        self.hints.priority
    }

    /// Returns its number in the order of submission to the peer, which identifies it.
    pub fn number(&self) -> u32 {
        self.number
    }

    /// Returns its preference.
    pub fn prefer(&self) -> Prefer {
        self.hints.prefer
    }

    /// Whether it depends on the message submitted before it.
    pub fn depends(&self) -> bool {
        self.hints.depends
    }

    /// Returns the bytes of data after its frame; profiles measure this length.
    #[inline]
    pub fn data_len(&self) -> u64 {
        self.data.len()
    }

    /// Returns the envelope of the message; `None` for a control frame, or a part of a message whose
    /// envelope is in an earlier entry.
    pub fn names(&self) -> Option<Names> {
        match &self.head {
            Head::Eager(eager) => Some(Names {
                context: Context(eager.context),
                tag: Tag(eager.tag),
                seq: eager.seq,
                len: self.data.len(),
            }),
            Head::Request(frame) => rts_of(frame).map(|rts| {
                let (context, tag) = (Context(rts.context), Tag(rts.tag));
                Names { context, tag, seq: rts.seq, len: rts.len }
            }),
            Head::Frame(_) => None,
        }
    }

    /// Whether a rail may have to skip it.
    #[inline]
    fn is_special(&self) -> bool {
        self.hints.strategy.is_some() || self.hints.depends
    }
}

/// The lists that a rail may take from.
#[derive(Debug, Clone, Copy)]
pub struct Scope {
    /// The rail whose own list is included.
    pub rail: RailId,
    /// Whether the common list is included.
    pub common: bool,
}

/// Messages submitted for one peer.
#[derive(Debug)]
pub struct Window {
    peer: PeerId,
    common: VecDeque<Entry>,
    dedicated: Vec<(RailId, VecDeque<Entry>)>,
    bytes: usize,
    /// The number of the last submitted entry, and of the last message.
    number: u32,
    message: u32,
    /// Entries that depend on another one or have a strategy of their own.
    special: u32,
    /// Entries that prefer latency.
    latency_count: u32,
    /// The strategy that takes entries; only entries assigned to it are visible.
    strategy: Option<StrategyId>,
}

impl Window {
    /// Creates the empty window of this peer.
    pub(crate) fn new(peer: PeerId) -> Self {
        let (common, dedicated) = (VecDeque::new(), Vec::new());
        Window {
            peer,
            common,
            dedicated,
            bytes: 0,
            number: 0,
            message: 0,
            special: 0,
            latency_count: 0,
            strategy: None,
        }
    }

    /// Returns the receiver of all entries.
    pub fn peer(&self) -> PeerId {
        self.peer
    }

    /// Submits an entry, dedicated to one rail or for any.
    #[inline]
    pub(crate) fn submit(&mut self, rail: Option<RailId>, mut entry: Entry) {
        self.bytes += entry.len();
        self.number = self.number.wrapping_add(1);
        entry.number = self.number;
        if entry.hints.depends {
            self.place_behind(&mut entry);
        }
        if !matches!(entry.head, Head::Frame(_)) {
            self.message = self.number;
        }
        self.special += u32::from(entry.is_special());
        self.latency_count += u32::from(entry.hints.prefer == Prefer::Latency);
        match rail {
            None => insert(&mut self.common, entry),
            Some(rail) => insert(self.own_list(rail), entry),
        }
    }

    /// Places an entry behind the one that it depends on; in front of it, it could hide it.
    #[cold]
    fn place_behind(&self, entry: &mut Entry) {
        entry.ahead = self.message;
        let ahead = self.ahead_of(entry).map(Entry::priority);
        entry.hints.priority = ahead.map_or(entry.priority(), |priority| priority.min(entry.priority()));
    }

    /// Returns the entry that this one depends on, if it is still in the window.
    fn ahead_of(&self, entry: &Entry) -> Option<&Entry> {
        let lists = self.dedicated.iter().map(|(_, list)| list).chain([&self.common]);
        lists.flatten().find(|other| other.number == entry.ahead)
    }

    fn own_list(&mut self, rail: RailId) -> &mut VecDeque<Entry> {
        let index = self.dedicated.iter().position(|(r, _)| *r == rail).unwrap_or_else(|| {
            self.dedicated.push((rail, VecDeque::new()));
            self.dedicated.len() - 1
        });
        &mut self.dedicated[index].1
    }

    /// Whether the window is empty.
    #[inline]
    pub fn is_empty(&self) -> bool {
        // Each entry has a frame, and so a length above zero.
        self.bytes == 0
    }

    /// Returns the bytes in the window.
    pub fn backlog(&self) -> usize {
        self.bytes
    }

    /// Returns the number of entries that any rail may take.
    #[inline]
    pub fn common_count(&self) -> usize {
        self.common.len()
    }

    /// Whether an entry prefers latency.
    #[inline]
    pub(crate) fn prefers_latency(&self) -> bool {
        self.latency_count > 0
    }

    /// Returns the first entry that any rail may take.
    #[inline]
    pub fn first(&self) -> Option<&Entry> {
        if self.all_visible() {
            return self.common.front();
        }
        self.common.iter().take(SCAN).find(|entry| self.is_visible(entry))
    }

    /// Returns the only entry of the window; `None`: there are several, or it is dedicated to a rail.
    pub(crate) fn alone(&self) -> Option<&Entry> {
        let is_alone = self.common.len() == 1 && self.dedicated.iter().all(|(_, list)| list.is_empty());
        self.common.front().filter(|_| is_alone && self.all_visible())
    }

    /// Takes the only entry of the window.
    pub(crate) fn take_alone(&mut self) -> Option<Entry> {
        let rail = RailId(0);
        self.alone().is_some().then(|| self.take_first(Scope { rail, common: true }, |_| true)).flatten()
    }

    /// Iterates over the entries that a rail with this scope may take: a bounded number of its own list,
    /// then of the common list.
    pub fn entries(&self, scope: Scope) -> impl Iterator<Item = &Entry> {
        let own = self.own(scope.rail).into_iter().flat_map(|list| list.iter().take(SCAN));
        let common = self.common.iter().take(if scope.common { SCAN } else { 0 });
        own.chain(common).filter(|entry| self.all_visible() || self.is_visible(entry))
    }

    /// Returns the strategies of all entries, beginning with that of the first entry; `None`: all entries
    /// use the peer's strategy.
    pub(crate) fn strategies(&self) -> Option<Vec<Option<StrategyId>>> {
        if self.special == 0 {
            return None;
        }
        let lists = self.dedicated.iter().map(|(_, list)| list).chain([&self.common]);
        let mut firsts: Vec<&Entry> = Vec::new();
        for entry in lists.flatten() {
            match firsts.iter_mut().find(|first| first.hints.strategy == entry.hints.strategy) {
                Some(first) if first.priority() < entry.priority() => *first = entry,
                Some(_) => {}
                None => firsts.push(entry),
            }
        }
        firsts.sort_by_key(|first| core::cmp::Reverse(first.priority()));
        Some(firsts.iter().map(|first| first.hints.strategy).collect())
    }

    /// Sets the strategy that takes entries from now on; `None`: the peer's own.
    #[inline]
    pub(crate) fn set_strategy(&mut self, strategy: Option<StrategyId>) {
        self.strategy = strategy;
    }

    #[inline]
    fn all_visible(&self) -> bool {
        self.special == 0 && self.strategy.is_none()
    }

    /// Whether an entry is assigned to the current strategy and the entry that it depends on has been
    /// taken.
    fn is_visible(&self, entry: &Entry) -> bool {
        entry.hints.strategy == self.strategy && !(entry.hints.depends && self.ahead_of(entry).is_some())
    }

    /// Takes the first entry that satisfies `fits`, among a bounded number of entries. The entry must be
    /// put into a packet ([`crate::PacketBuilder::take`] does both), or it is lost.
    #[doc(hidden)]
    #[inline]
    pub fn take_first(&mut self, scope: Scope, mut fits: impl FnMut(&Entry) -> bool) -> Option<Entry> {
        let entry = if !self.all_visible() {
            self.take_special(scope, &mut fits)?
        } else if self.dedicated.is_empty() {
            // The common case, on the path of every small message.
            if !scope.common {
                return None;
            }
            take(&mut self.common, &mut fits)?
        } else {
            let place = self.find_in_both(scope, &mut fits)?;
            self.remove(scope, place)?
        };
        self.bytes -= entry.len();
        self.latency_count -= u32::from(entry.hints.prefer == Prefer::Latency);
        Some(entry)
    }

    /// Finds an entry in the rail's own list and the common one, by priority, its own first; returns
    /// whether it is in its own, and the index.
    fn find_in_both(&self, scope: Scope, fits: &mut impl FnMut(&Entry) -> bool) -> Option<(bool, usize)> {
        let own = self.own(scope.rail).and_then(|list| find(list, fits));
        let common = if scope.common { find(&self.common, fits) } else { None };
        match (own, common) {
            (Some((own, priority)), other) if other.is_none_or(|(_, p)| p <= priority) => Some((true, own)),
            (_, other) => other.map(|(index, _)| (false, index)),
        }
    }

    fn remove(&mut self, scope: Scope, (own, index): (bool, usize)) -> Option<Entry> {
        if own { self.own_list(scope.rail).remove(index) } else { self.common.remove(index) }
    }

    /// Takes an entry while some are hidden.
    #[cold]
    fn take_special(&mut self, scope: Scope, fits: &mut impl FnMut(&Entry) -> bool) -> Option<Entry> {
        let place = self.find_in_both(scope, &mut |entry| self.is_visible(entry) && fits(entry))?;
        let entry = self.remove(scope, place)?;
        self.special -= u32::from(entry.is_special());
        Some(entry)
    }

    /// Moves the entries dedicated to a dead rail to the common list.
    pub(crate) fn release(&mut self, rail: RailId) {
        let Some(index) = self.dedicated.iter().position(|(r, _)| *r == rail) else { return };
        for entry in self.dedicated.swap_remove(index).1 {
            insert(&mut self.common, entry);
        }
    }

    /// Drops all entries, for a peer that is lost.
    pub(crate) fn clear(&mut self) {
        *self = Window::new(self.peer);
    }

    fn own(&self, rail: RailId) -> Option<&VecDeque<Entry>> {
        self.dedicated.iter().find(|(r, _)| *r == rail).map(|(_, list)| list)
    }
}

#[inline]
fn take(list: &mut VecDeque<Entry>, fits: &mut impl FnMut(&Entry) -> bool) -> Option<Entry> {
    if fits(list.front()?) {
        return list.pop_front();
    }
    let (index, _) = find(list, fits)?;
    list.remove(index)
}

fn find(list: &VecDeque<Entry>, fits: &mut impl FnMut(&Entry) -> bool) -> Option<(usize, i8)> {
    list.iter().take(SCAN).position(fits).map(|index| (index, list[index].priority()))
}

#[inline]
fn insert(list: &mut VecDeque<Entry>, entry: Entry) {
    if list.back().is_none_or(|last| last.priority() >= entry.priority()) {
        return list.push_back(entry);
    }
    let index = list.partition_point(|other| other.priority() >= entry.priority());
    list.insert(index, entry);
}
