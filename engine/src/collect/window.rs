//! The window: messages that are submitted for one peer and not yet on a rail (P1 section 3.1).
//!
//! A common list from which any rail may take, and a list for each rail to which the application (or the
//! engine, for acknowledgements) dedicated something (P1 section 3.3). Each list is ordered by priority,
//! then by submission.

use super::request::{Context, Hints, Prefer, Tag};
use crate::memory::Segments;
use crate::packet::{PeerId, RailId, RequestId, StrategyId};
use alloc::collections::VecDeque;
use alloc::vec::Vec;
use nmad_wire::{Frame, frames};

/// How far into a list a strategy looks for something that fits.
const SCAN: usize = 64;

/// One thing to be carried: a frame, and the data that follows it.
#[derive(Debug)]
pub struct Entry {
    pub(crate) head: Head,
    pub(crate) data: Segments,
    /// [`RequestId::NONE`]: nobody waits for it.
    pub(crate) request: RequestId,
    /// The application's wishes. [`Hints::probe`]: how it is carried whatever the thresholds say.
    pub(crate) hints: Hints,
    /// Its place among all that was submitted.
    number: u32,
    /// The number of what it depends on.
    ahead: u32,
}

/// The names of a message in the window.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Names {
    /// Its context.
    pub context: Context,
    /// Its tag.
    pub tag: Tag,
    /// Its place in its flow; zero for unordered messages.
    pub seq: u32,
    /// Bytes of the message; if it is large, of its body too, which is not in the entry.
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

    /// A part of a message that is longer than a packet; its request to send is an entry before it.
    pub(crate) fn part(head: nmad_wire::Part, data: Segments, request: RequestId, hints: &Hints) -> Self {
        let mut frame = Vec::with_capacity(nmad_wire::Part::LEN);
        head.encode(&mut frame);
        Entry::new(Head::Frame(frame), data, request, *hints)
    }

    /// An entry of control frames; they go before data of usual priority.
    pub(crate) fn control(frame: Vec<u8>) -> Self {
        let hints = Hints { priority: 1, ..Hints::default() };
        Entry::new(Head::Frame(frame), Segments::empty(), RequestId::NONE, hints)
    }

    /// A request to send; it keeps its place among the messages. `request`: something follows it at once.
    pub(crate) fn rts(frame: Vec<u8>, request: Option<RequestId>, hints: &Hints) -> Self {
        let hints = Hints { probe: None, ..*hints };
        let request = request.unwrap_or(RequestId::NONE);
        Entry::new(Head::Request(frame), Segments::empty(), request, hints)
    }

    /// Bytes in a packet.
    #[inline]
    pub fn len(&self) -> usize {
        let head = match &self.head {
            Head::Eager(eager) => eager.header_len(),
            Head::Request(frame) | Head::Frame(frame) => frame.len(),
        };
        head + self.data.len() as usize
    }

    /// An entry always has a frame.
    pub fn is_empty(&self) -> bool {
        false
    }

    /// Priority; higher goes first.
    pub fn priority(&self) -> i8 {
        self.hints.priority
    }

    /// Its place among all that was ever submitted to the peer, by which it can be told from others.
    pub fn number(&self) -> u32 {
        self.number
    }

    /// What matters about it.
    pub fn prefer(&self) -> Prefer {
        self.hints.prefer
    }

    /// Whether it depends on the message that was submitted before it.
    pub fn depends(&self) -> bool {
        self.hints.depends
    }

    /// Bytes of data behind its frame: what rails were measured with.
    #[inline]
    pub fn data_len(&self) -> u64 {
        self.data.len()
    }

    /// The names of the message; none: it is a control frame, or a part of a message whose names stand
    /// before.
    pub fn names(&self) -> Option<Names> {
        match &self.head {
            Head::Eager(eager) => Some(Names {
                context: Context(eager.context),
                tag: Tag(eager.tag),
                seq: eager.seq,
                len: self.data.len(),
            }),
            Head::Request(frame) => match frames(frame).next() {
                Some(Ok(Frame::Rts(rts))) => {
                    let (context, tag) = (Context(rts.context), Tag(rts.tag));
                    Some(Names { context, tag, seq: rts.seq, len: rts.len })
                }
                _ => None,
            },
            Head::Frame(_) => None,
        }
    }

    /// Whether a rail may have to pass it over.
    #[inline]
    fn is_special(&self) -> bool {
        self.hints.strategy.is_some() || self.hints.depends
    }
}

/// Which lists a rail may take from.
#[derive(Debug, Clone, Copy)]
pub struct Scope {
    /// The rail whose own list is included.
    pub rail: RailId,
    /// Whether the common list is included.
    pub common: bool,
}

/// Messages that are submitted for one peer.
#[derive(Debug)]
pub struct Window {
    peer: PeerId,
    common: VecDeque<Entry>,
    dedicated: Vec<(RailId, VecDeque<Entry>)>,
    bytes: usize,
    /// The number of what was submitted last, and of the last message.
    number: u32,
    message: u32,
    /// Entries that depend on another one or have a strategy of their own.
    special: u32,
    /// Entries that prefer latency.
    hasty: u32,
    /// On whose behalf entries are taken: only those that are left to this strategy are seen.
    asks: Option<StrategyId>,
}

impl Window {
    /// The window of this peer.
    pub(crate) fn new(peer: PeerId) -> Self {
        let (common, dedicated) = (VecDeque::new(), Vec::new());
        Window { peer, common, dedicated, bytes: 0, number: 0, message: 0, special: 0, hasty: 0, asks: None }
    }

    /// For whom all of it is.
    pub fn peer(&self) -> PeerId {
        self.peer
    }

    /// Submits an entry, for one rail or for all.
    #[inline]
    pub(crate) fn submit(&mut self, rail: Option<RailId>, mut entry: Entry) {
        self.bytes += entry.len();
        self.number = self.number.wrapping_add(1);
        entry.number = self.number;
        if entry.hints.depends {
            self.put_behind(&mut entry);
        }
        if !matches!(entry.head, Head::Frame(_)) {
            self.message = self.number;
        }
        self.special += u32::from(entry.is_special());
        self.hasty += u32::from(entry.hints.prefer == Prefer::Latency);
        match rail {
            None => insert(&mut self.common, entry),
            Some(rail) => insert(self.own_list(rail), entry),
        }
    }

    /// Whatever depends on something stands behind it, or it could hide what it waits for.
    #[cold]
    fn put_behind(&self, entry: &mut Entry) {
        entry.ahead = self.message;
        let ahead = self.ahead_of(entry).map(Entry::priority);
        entry.hints.priority = ahead.map_or(entry.priority(), |priority| priority.min(entry.priority()));
    }

    /// What this message depends on, if it still waits.
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

    /// Whether nothing waits.
    #[inline]
    pub fn is_empty(&self) -> bool {
        // Each entry has a frame, and so some bytes.
        self.bytes == 0
    }

    /// Whether a rail with this scope finds nothing.
    #[inline]
    pub fn is_empty_for(&self, scope: Scope) -> bool {
        (!scope.common || self.common.is_empty()) && self.own(scope.rail).is_none_or(VecDeque::is_empty)
    }

    /// Bytes that wait.
    pub fn backlog(&self) -> usize {
        self.bytes
    }

    /// Entries that any rail may take.
    #[inline]
    pub fn common_count(&self) -> usize {
        self.common.len()
    }

    /// Whether something waits that prefers latency.
    #[inline]
    pub(crate) fn is_hasty(&self) -> bool {
        self.hasty > 0
    }

    /// The first entry that any rail may take.
    #[inline]
    pub fn first(&self) -> Option<&Entry> {
        if self.shows_all() {
            return self.common.front();
        }
        self.common.iter().take(SCAN).find(|entry| self.shows(entry))
    }

    /// The only entry that waits; none: there are several, or it is dedicated to a rail.
    pub(crate) fn alone(&self) -> Option<&Entry> {
        let is_alone = self.common.len() == 1 && self.dedicated.iter().all(|(_, list)| list.is_empty());
        self.common.front().filter(|_| is_alone && self.shows_all())
    }

    /// Takes it.
    pub(crate) fn take_alone(&mut self) -> Option<Entry> {
        let rail = RailId(0);
        self.alone().is_some().then(|| self.take_first(Scope { rail, common: true }, |_| true)).flatten()
    }

    /// What a rail with this scope may take, the common list behind its own: of each a bounded number.
    pub fn entries(&self, scope: Scope) -> impl Iterator<Item = &Entry> {
        let own = self.own(scope.rail).into_iter().flat_map(|list| list.iter().take(SCAN));
        let common = self.common.iter().take(if scope.common { SCAN } else { 0 });
        own.chain(common).filter(|entry| self.shows_all() || self.shows(entry))
    }

    /// The strategies to which something that waits is left, of all lists, beginning with that of the first
    /// entry; none: nothing is left to any but the peer's own.
    pub(crate) fn asked(&self) -> Option<Vec<Option<StrategyId>>> {
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

    /// From now on entries are taken on behalf of this strategy; none: of the peer's own.
    #[inline]
    pub(crate) fn ask(&mut self, strategy: Option<StrategyId>) {
        self.asks = strategy;
    }

    #[inline]
    fn shows_all(&self) -> bool {
        self.special == 0 && self.asks.is_none()
    }

    /// Whether an entry is left to the strategy that is asked, and what it depends on has been taken.
    fn shows(&self, entry: &Entry) -> bool {
        entry.hints.strategy == self.asks && !(entry.hints.depends && self.ahead_of(entry).is_some())
    }

    /// Takes the first entry for which `fits` says yes; looks at no more than a bounded number. The entry
    /// must be put into a packet ([`crate::PacketBuilder::take`] does both), or it is lost.
    #[doc(hidden)]
    #[inline]
    pub fn take_first(&mut self, scope: Scope, mut fits: impl FnMut(&Entry) -> bool) -> Option<Entry> {
        let entry = if !self.shows_all() {
            self.take_special(scope, &mut fits)?
        } else if self.dedicated.is_empty() {
            // The usual case, on the path of every small message.
            if !scope.common {
                return None;
            }
            take(&mut self.common, &mut fits)?
        } else {
            let place = self.find_in_both(scope, &mut fits)?;
            self.remove(scope, place)?
        };
        self.bytes -= entry.len();
        self.hasty -= u32::from(entry.hints.prefer == Prefer::Latency);
        Some(entry)
    }

    /// In the rail's own list and the common one, by priority; its own first: whether in its own, and where.
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

    /// Takes one where some are not shown.
    #[cold]
    fn take_special(&mut self, scope: Scope, fits: &mut impl FnMut(&Entry) -> bool) -> Option<Entry> {
        let place = self.find_in_both(scope, &mut |entry| self.shows(entry) && fits(entry))?;
        let entry = self.remove(scope, place)?;
        self.special -= u32::from(entry.is_special());
        Some(entry)
    }

    /// What waited for a rail that is gone may go anywhere.
    pub(crate) fn release(&mut self, rail: RailId) {
        let Some(index) = self.dedicated.iter().position(|(r, _)| *r == rail) else { return };
        for entry in self.dedicated.swap_remove(index).1 {
            insert(&mut self.common, entry);
        }
    }

    /// Drops everything, for a peer that is gone.
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
