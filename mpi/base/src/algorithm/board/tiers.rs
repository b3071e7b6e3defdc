//! Boards for nodes of many ranks: one for each group of ranks in a row, and one for the first ranks of all
//! groups, their *leaders*. On one board each rank looks at the slot of every other one; here a rank looks
//! at those of its group, and a leader at those of the other leaders. Ranks in a row share caches where
//! they are bound in order.

use super::ring::{POST_MAX, Ring};
use super::{Pause, RANKS_MAX, Turn, is_of_one_node};
use crate::algorithm::memory::Scratch;
use crate::algorithm::operator::Operator;
use crate::algorithm::team::Team;
use crate::error::Result;
use nmad_drivers::node::Segment as SharedMemory;
use nmad_engine::Segments;

/// Most ranks; larger nodes were neither measured nor predicted.
const MANY_MAX: usize = 1024;

/// Whether ranks can do an operation on such boards in which each posts `len` bytes at most. Fewer ranks
/// have one board.
pub fn serves(team: &Team, len: u64) -> bool {
    len <= POST_MAX as u64 && team.size() > RANKS_MAX && is_of_one_node(team, MANY_MAX)
}

/// Ranks of a full group among so many, and groups: about as many of both, and a power of two, as caches
/// have.
pub const fn shape(size: usize) -> [usize; 2] {
    let mut group = 1;
    while group * group < size {
        group *= 2;
    }
    [group, size.div_ceil(group)]
}

/// One rank's view of the boards.
#[derive(Debug)]
pub struct Tiers {
    memory: SharedMemory,
    /// The board of this rank's group.
    group_board: Tier,
    /// The board of the leaders; no other rank uses it.
    leader_board: Tier,
    group: usize,
    scratch: Scratch,
}

/// A board and the operations on it so far.
#[derive(Debug)]
struct Tier {
    ring: Ring,
    number: u64,
}

impl Tier {
    /// Does this rank's part of an operation.
    fn run(&mut self, memory: &SharedMemory, turn: &Turn<'_>, pause: Pause<'_>) -> Result<()> {
        let Tier { ring, number } = self;
        *number += 1;
        // A call does several such operations, and the one before may not have told of its changes.
        let mut has_changed = true;
        if let Some(posted) = &turn.posted {
            let post = loop {
                match ring.open(memory, *number, posted.len() as usize) {
                    Some(post) => break post,
                    None => pause(memory, std::mem::take(&mut has_changed))?,
                }
            };
            posted.post(ring, memory, post);
            has_changed = true;
        }
        for rank in turn.awaits.clone() {
            while !ring.is_there(memory, rank, *number) {
                pause(memory, std::mem::take(&mut has_changed))?;
            }
        }
        turn.finish(ring, memory, *number)?;
        ring.say_done(memory, *number);
        Ok(())
    }
}

impl Tiers {
    /// Bytes of shared memory for `size` ranks.
    pub const fn len(size: usize) -> usize {
        Ring::len(size) + Ring::len(shape(size)[1])
    }

    /// The view of rank `me` of `size`, on memory of the right length that was zero at first.
    pub fn new(memory: SharedMemory, size: usize, me: usize) -> Tiers {
        let [group, groups] = shape(size);
        let first = me - me % group;
        let of_group = Ring::new(Ring::len(first), group.min(size - first), me - first);
        let of_leaders = Ring::new(Ring::len(size), groups, me / group);
        let [group_board, leader_board] = [of_group, of_leaders].map(|ring| Tier { ring, number: 0 });
        Tiers { memory, group_board, leader_board, group, scratch: Scratch::new(POST_MAX) }
    }

    /// The memory that the ranks share.
    pub fn memory(&self) -> &SharedMemory {
        &self.memory
    }

    fn leads(&self) -> bool {
        self.group_board.ring.me == 0
    }

    /// Returns when all ranks have called it.
    ///
    /// # Errors
    /// The error of `pause`, as in all operations here.
    pub fn barrier(&mut self, pause: Pause<'_>) -> Result<()> {
        let mut arrival = Turn::barrier(self.group_board.ring.size);
        if !self.leads() {
            arrival.awaits = 0..0;
        }
        self.group_board.run(&self.memory, &arrival, pause)?;
        if self.leads() {
            self.leader_board.run(&self.memory, &Turn::barrier(self.leader_board.ring.size), pause)?;
        }
        self.spread(&Segments::empty(), pause)
    }

    /// Copies the data of the root to all ranks.
    pub fn bcast(&mut self, root: usize, data: &Segments, pause: Pause<'_>) -> Result<()> {
        let (place, group) = (root % self.group, root / self.group);
        let is_here = self.leader_board.ring.me == group;
        if is_here {
            self.group_board.run(&self.memory, &bcast_turn(self.group_board.ring.me, place, data), pause)?;
        }
        if self.leads() {
            self.leader_board.run(
                &self.memory,
                &bcast_turn(self.leader_board.ring.me, group, data),
                pause,
            )?;
        }
        if is_here { Ok(()) } else { self.spread(data, pause) }
    }

    /// Combines the operands of all ranks, in the order of ranks, into `into` of each rank.
    pub fn allreduce(
        &mut self,
        [own, into]: [&Segments; 2],
        (operator, count): (&Operator, i64),
        pause: Pause<'_>,
    ) -> Result<()> {
        self.collect(own, into, (operator, count), pause)?;
        if self.leads() {
            let all = 0..self.leader_board.ring.size;
            let combined = Turn::combine(into.clone(), all, (operator, 0..count), into.clone());
            self.leader_board.run(&self.memory, &combined, pause)?;
        }
        self.spread(into, pause)
    }

    /// Combines the operands of all ranks, in the order of ranks, into `into` of the root.
    pub fn reduce(
        &mut self,
        (root, own, into): (usize, &Segments, &Segments),
        (operator, count): (&Operator, i64),
        pause: Pause<'_>,
    ) -> Result<()> {
        let (place, group) = (root % self.group, root / self.group);
        let sum = self.scratch.lend(own.len() as usize);
        self.collect(own, &sum, (operator, count), pause)?;
        let is_here = self.leader_board.ring.me == group;
        if self.leads() {
            let all = if is_here { 0..self.leader_board.ring.size } else { 0..0 };
            let combined = Turn::combine(sum.clone(), all, (operator, 0..count), sum.clone());
            self.leader_board.run(&self.memory, &combined, pause)?;
        }
        match (is_here, place) {
            (false, _) => Ok(()),
            (true, 0) => {
                if self.leads() {
                    sum.slices().next().map(|bytes| into.write(0, bytes));
                }
                Ok(())
            }
            (true, _) => {
                let posted = self.leads().then_some(sum);
                let mut last = Turn::spread(0, posted, (0, into.clone()));
                if self.group_board.ring.me != place {
                    last.awaits = 0..0;
                    last.then = super::turn::Then::Nothing;
                }
                self.group_board.run(&self.memory, &last, pause)
            }
        }
    }

    /// Combines the operands of a group into `into` of its leader.
    fn collect(
        &mut self,
        own: &Segments,
        into: &Segments,
        (operator, count): (&Operator, i64),
        pause: Pause<'_>,
    ) -> Result<()> {
        let all = if self.leads() { 0..self.group_board.ring.size } else { 0..0 };
        let combined = Turn::combine(own.clone(), all, (operator, 0..count), into.clone());
        self.group_board.run(&self.memory, &combined, pause)
    }

    /// Copies the data of a leader to its group.
    fn spread(&mut self, data: &Segments, pause: Pause<'_>) -> Result<()> {
        self.group_board.run(&self.memory, &bcast_turn(self.group_board.ring.me, 0, data), pause)
    }
}

/// The part of rank `me` in a broadcast from `root` on one board.
fn bcast_turn(me: usize, root: usize, data: &Segments) -> Turn<'static> {
    match me == root {
        true => Turn::spread(root, Some(data.clone()), (0, Segments::empty())),
        false => Turn::spread(root, None, (0, data.clone())),
    }
}
