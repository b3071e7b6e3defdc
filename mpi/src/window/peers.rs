//! The ranks of a window, as origins see them. Those of our node have records of their own. Of other nodes,
//! ranks in a row that are equal share one: all of them where each has as much memory and no network reaches
//! it, whatever their number.

use newmadeleine::across::Process;
use newmadeleine::engine::Exposure;
use nmad_rma::Base;
use std::ops::Range;
use std::sync::atomic::{AtomicU64, Ordering};

/// How the memory of a rank is accessed.
#[derive(Debug, Clone)]
pub(super) enum Way {
    /// It begins here.
    Direct(Base),
    /// By copies to and from this process of the node.
    Copies(Process),
    /// By the network, which reaches it without its help; else with frames.
    Network,
    /// With frames.
    Frames,
}

/// A rank of the window, or several of other nodes.
pub(super) struct Peer {
    /// Bytes of its memory.
    pub(super) size: u64,
    /// Bytes of its unit of displacements.
    pub(super) unit: i64,
    /// Where its memory begins in its own process; 0 for memory that frames access.
    pub(super) base: u64,
    pub(super) way: Way,
    /// How the network reaches it, if it does.
    pub(super) exposure: Option<Box<Exposure>>,
    /// Its place among the locks that are here; none: they are on another node.
    pub(super) locks: Option<usize>,
}

impl Peer {
    /// Whether one record does for both.
    fn is_like(&self, other: &Peer) -> bool {
        let are_asked = matches!((&self.way, &other.way), (Way::Frames, Way::Frames));
        let are_far = self.locks.is_none() && other.locks.is_none();
        are_asked && are_far && (self.size, self.unit) == (other.size, other.unit)
    }
}

/// All ranks of a window.
pub(super) struct Peers {
    count: i32,
    /// The most ranks in a row that have a record of their own, as those of our node usually are, and the
    /// first of them.
    own: Box<[Peer]>,
    first: i32,
    /// The records of the others, each for the ranks from this one on to the next record or those of `own`.
    others: Box<[(i32, Peer)]>,
}

impl Peers {
    /// Stores the ranks, which come in order.
    pub(super) fn new(ranks: impl Iterator<Item = Peer>) -> Peers {
        let (mut records, mut count) = (Vec::<(i32, Peer)>::new(), 0);
        for peer in ranks {
            if !records.last().is_some_and(|(_, last)| last.is_like(&peer)) {
                records.push((count, peer));
            }
            count += 1;
        }
        let stretch = stretch(&records, count);
        let first = records.get(stretch.start).map_or(0, |(first, _)| *first);
        let own = records.splice(stretch, []).map(|(_, peer)| peer).collect();
        Peers { count, own, first, others: records.into() }
    }

    pub(super) fn len(&self) -> i32 {
        self.count
    }

    /// Whether there is such a rank.
    #[inline]
    pub(super) fn has(&self, rank: i32) -> bool {
        // A negative rank is beyond every length.
        (rank as u32) < self.count as u32
    }

    /// A rank of the stretch with records of their own; none: it is another one, or there is no such one.
    #[inline(always)]
    pub(super) fn own(&self, rank: i32) -> Option<&Peer> {
        // A rank before the first one is beyond every length.
        self.own.get(rank.wrapping_sub(self.first) as u32 as usize)
    }

    /// A rank; none: there is no such one.
    #[inline]
    pub(super) fn get(&self, rank: i32) -> Option<&Peer> {
        self.own(rank).or_else(|| self.search(rank))
    }

    #[inline(never)]
    fn search(&self, rank: i32) -> Option<&Peer> {
        let place = self.others.partition_point(|(first, _)| *first <= rank).checked_sub(1)?;
        self.has(rank).then(|| &self.others[place].1)
    }

    /// A rank of the window.
    #[inline]
    pub(super) fn of(&self, rank: i32) -> &Peer {
        self.get(rank).expect("a rank of the window")
    }

    /// The records in the order of ranks, each with the first rank that it is for. Those of our node are for
    /// one rank.
    pub(super) fn records(&self) -> impl Iterator<Item = (i32, &Peer)> {
        let (before, after) = self.others.split_at(self.others.partition_point(|one| one.0 < self.first));
        let own = (self.first..).zip(&self.own);
        let [before, after] = [before, after].map(|part| part.iter().map(|(first, peer)| (*first, peer)));
        before.chain(own).chain(after)
    }
}

/// The longest stretch of records that are for one rank each.
fn stretch(records: &[(i32, Peer)], count: i32) -> Range<usize> {
    let (mut longest, mut start) = (0..0, 0);
    for (place, (first, _)) in records.iter().enumerate() {
        if records.get(place + 1).map_or(count, |next| next.0) != first + 1 {
            start = place + 1;
        } else if place + 1 - start > longest.len() {
            longest = start..place + 1;
        }
    }
    longest
}

/// A mark for each rank.
pub(super) struct Marks(Box<[AtomicU64]>);

impl Marks {
    /// Marks no rank.
    pub(super) fn new(ranks: i32) -> Marks {
        Marks((0..(ranks as usize).div_ceil(64)).map(|_| AtomicU64::new(0)).collect())
    }

    pub(super) fn set(&self, rank: i32, is_marked: bool) {
        let (word, bit) = (&self.0[rank as usize / 64], 1 << (rank as u32 % 64));
        match is_marked {
            true => word.fetch_or(bit, Ordering::Relaxed),
            false => word.fetch_and(!bit, Ordering::Relaxed),
        };
    }

    #[inline]
    pub(super) fn is_set(&self, rank: i32) -> bool {
        let rank = rank as u32;
        self.0[rank as usize / 64].load(Ordering::Relaxed) >> (rank % 64) & 1 != 0
    }

    /// The marked ones of some ranks, in their order.
    pub(super) fn of(&self, ranks: Range<i32>) -> impl Iterator<Item = i32> + '_ {
        let words = ranks.start / 64..(ranks.end + 63) / 64;
        let used = words.filter(|&word| self.0[word as usize].load(Ordering::Relaxed) != 0);
        let all = used.flat_map(|word| 64 * word..64 * word + 64);
        all.filter(move |rank| ranks.contains(rank) && self.is_set(*rank))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn peer(size: u64, locks: Option<usize>) -> Peer {
        Peer { size, unit: 1, base: 0, way: Way::Frames, exposure: None, locks }
    }

    #[test]
    fn ranks_of_other_nodes_with_equal_memory_share_a_record() {
        let all = || (0..1000).map(|rank| peer(8, (500..564).contains(&rank).then(|| rank - 500)));
        let peers = Peers::new(all());
        assert_eq!((peers.len(), peers.first, peers.own.len(), peers.others.len()), (1000, 500, 64, 2));
        let firsts: Vec<i32> = peers.records().map(|(first, _)| first).collect();
        assert_eq!(firsts, [0].into_iter().chain(500..565).collect::<Vec<_>>());
        for (rank, expected) in (0..).zip(all()) {
            let found = peers.of(rank);
            assert_eq!((found.size, found.locks), (expected.size, expected.locks), "{rank}");
        }
        assert!(peers.get(1000).is_none() && peers.get(-1).is_none());
        let sizes = [8, 8, 0, 0, 0, 8];
        let peers = Peers::new(sizes.iter().map(|&size| peer(size, None)));
        assert_eq!(peers.records().map(|(first, _)| first).collect::<Vec<_>>(), [0, 2, 5]);
        assert_eq!((0..6).map(|rank| peers.of(rank).size).collect::<Vec<_>>(), sizes);
        let near = Peers::new((0..3).map(|rank| peer(8, Some(rank))));
        assert!(
            near.own.len() == 3 && near.get(2).is_some() && near.get(3).is_none() && near.get(-1).is_none()
        );
        assert!(Peers::new(std::iter::empty()).get(0).is_none());
    }

    #[test]
    fn marked_ranks_come_in_order() {
        let marks = Marks::new(200);
        [0, 63, 64, 130, 199].into_iter().for_each(|rank| marks.set(rank, true));
        marks.set(64, false);
        assert_eq!(marks.of(0..200).collect::<Vec<_>>(), [0, 63, 130, 199]);
        assert_eq!(marks.of(1..199).collect::<Vec<_>>(), [63, 130]);
        assert_eq!(marks.of(131..131).count(), 0);
    }
}
