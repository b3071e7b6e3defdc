//! The window: what is submitted for one peer and not yet on a rail (P1 section 3.1).
//!
//! A common list from which any rail may take, and a list for each rail to which the application (or the
//! engine, for acknowledgements) dedicated something (P1 section 3.3). Each list is ordered by priority,
//! then by submission.

use super::request::Hints;
use crate::memory::Segments;
use crate::packet::RailId;
use crate::packet::RequestId;
use crate::profile::sample::Method;
use alloc::collections::VecDeque;
use alloc::vec::Vec;

/// How far into a list a strategy looks for something that fits.
const SCAN: usize = 64;

/// One thing to be carried: a frame, and the data that follows it.
#[derive(Debug)]
pub struct Entry {
    pub(crate) head: Head,
    pub(crate) data: Segments,
    pub(crate) request: Option<RequestId>,
    priority: i8,
    /// How it is carried whatever the thresholds say.
    pub(crate) probe: Option<Method>,
}

/// The frame of an entry.
#[derive(Debug)]
pub(crate) enum Head {
    Eager(nmad_wire::Eager),
    /// Any other frame, encoded.
    Frame(Vec<u8>),
}

impl Entry {
    pub(crate) fn eager(head: nmad_wire::Eager, data: Segments, request: RequestId, hints: &Hints) -> Self {
        let Hints { priority, probe, .. } = *hints;
        Entry { head: Head::Eager(head), data, request: Some(request), priority, probe }
    }

    /// An entry of control frames; they go before data of usual priority.
    pub(crate) fn control(frame: Vec<u8>) -> Self {
        Entry { head: Head::Frame(frame), data: Segments::empty(), request: None, priority: 1, probe: None }
    }

    /// A request to send; it keeps its place among the messages. `request`: something follows it at once.
    pub(crate) fn rts(frame: Vec<u8>, request: Option<RequestId>, priority: i8) -> Self {
        Entry { head: Head::Frame(frame), data: Segments::empty(), request, priority, probe: None }
    }

    /// Bytes in a packet.
    #[inline]
    pub fn len(&self) -> usize {
        let head = match &self.head {
            Head::Eager(eager) => eager.header_len(),
            Head::Frame(frame) => frame.len(),
        };
        head + self.data.len() as usize
    }

    /// An entry always has a frame.
    pub fn is_empty(&self) -> bool {
        false
    }

    /// Priority; higher goes first.
    pub fn priority(&self) -> i8 {
        self.priority
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

/// What is submitted for one peer.
#[derive(Debug, Default)]
pub struct Window {
    common: VecDeque<Entry>,
    dedicated: Vec<(RailId, VecDeque<Entry>)>,
    bytes: usize,
}

impl Window {
    /// Submits an entry, for one rail or for all.
    #[inline]
    pub(crate) fn submit(&mut self, rail: Option<RailId>, entry: Entry) {
        self.bytes += entry.len();
        match rail {
            None => insert(&mut self.common, entry),
            Some(rail) => insert(self.own_list(rail), entry),
        }
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

    /// Bytes of data of the first entry that any rail may take: what rails were measured with.
    #[inline]
    pub fn first_len(&self) -> Option<u64> {
        self.common.front().map(|entry| entry.data.len())
    }

    /// Takes the first entry for which `fits` says yes; looks at no more than a bounded number.
    #[inline]
    pub fn take_first(&mut self, scope: Scope, mut fits: impl FnMut(&Entry) -> bool) -> Option<Entry> {
        let entry = if self.dedicated.is_empty() {
            // The usual case, on the path of every small message.
            if !scope.common {
                return None;
            }
            take(&mut self.common, &mut fits)?
        } else {
            self.take_of_both(scope, &mut fits)?
        };
        self.bytes -= entry.len();
        Some(entry)
    }

    /// The rail's own list and the common one, by priority; its own first.
    fn take_of_both(&mut self, scope: Scope, fits: &mut impl FnMut(&Entry) -> bool) -> Option<Entry> {
        let own = self.own(scope.rail).and_then(|list| find(list, fits));
        let common = if scope.common { find(&self.common, fits) } else { None };
        match (own, common) {
            (Some((own, priority)), other) if other.is_none_or(|(_, p)| p <= priority) => {
                self.own_list(scope.rail).remove(own)
            }
            (_, other) => other.and_then(|(index, _)| self.common.remove(index)),
        }
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
        *self = Window::default();
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
    list.iter().take(SCAN).position(fits).map(|index| (index, list[index].priority))
}

#[inline]
fn insert(list: &mut VecDeque<Entry>, entry: Entry) {
    if list.back().is_none_or(|last| last.priority >= entry.priority) {
        return list.push_back(entry);
    }
    let index = list.partition_point(|other| other.priority >= entry.priority);
    list.insert(index, entry);
}
