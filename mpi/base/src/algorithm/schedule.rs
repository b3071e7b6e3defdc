//! A schedule: a graph of messages, copies and reductions. It is built once and may be run many times.

use super::operator::Operator;
use super::place::{Blocks, Buffer, Place, Spot};
use crate::datatype::Datatype;

/// Who sits where: the first group, and behind it the other one, if there is one.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Seats {
    /// Our seat.
    pub me: u32,
    /// Seats of the first group.
    pub first: u32,
}

/// Bits of a tag for the place of a message within a schedule; the rest numbers the collective.
pub const SLOT_BITS: u32 = 28;
/// Slots of one stage; a stage has no more messages between two parties.
pub const SLOTS: u32 = 1 << STAGE_SHIFT;
const STAGE_SHIFT: u32 = SLOT_BITS - STAGE_BITS * STAGES;
/// Bits that number a stage within another, from one.
const STAGE_BITS: u32 = 2;
/// How deep stages lie in each other.
const STAGES: u32 = 5;
/// Scratch memory is handed out in units of a cache line.
const LINE: i64 = 64;

/// What a step does.
#[derive(Debug, Clone)]
pub enum Action {
    /// Sends to a party.
    Send {
        /// The party.
        to: u32,
        /// The number by which both sides know the message.
        slot: u32,
        /// The data.
        data: Place,
    },
    /// Receives from a party.
    Recv {
        /// The party.
        from: u32,
        /// The number by which both sides know the message.
        slot: u32,
        /// Where it goes.
        into: Place,
    },
    /// Copies.
    Copy {
        /// The data.
        from: Place,
        /// Where it goes.
        into: Place,
    },
    /// `into := from operator into`.
    Reduce {
        /// The operands on the left.
        from: Spot,
        /// The operands on the right, and the result.
        into: Spot,
        /// Elements.
        count: i64,
    },
    /// Writes bytes that were known when the schedule was built.
    Write {
        /// The bytes.
        data: Box<[u8]>,
        /// Where they go.
        into: Spot,
    },
    /// Compares what all ranks have said about this collective; see [`super::check`].
    Compare {
        /// One record for each rank, our own first.
        records: Place,
        /// Who they are.
        seats: Seats,
    },
    /// Nothing: others wait for everything that it waits for.
    Join,
}

/// A step and its place in the graph.
#[derive(Debug)]
pub(super) struct Node {
    pub(super) action: Action,
    /// Steps that must have ended before.
    pub(super) waits: u32,
    /// The steps that wait for this one: a range of [`Schedule::followers`].
    followers: (u32, u32),
}

/// The number of a step.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub struct Step(u32);

/// A graph of steps.
#[derive(Debug)]
pub struct Schedule {
    pub(super) nodes: Box<[Node]>,
    followers: Box<[u32]>,
    /// Bytes of scratch memory.
    scratch: usize,
    operator: Option<Operator>,
    /// Whether a step may call a function of the program's.
    pub(super) calls_user: bool,
}

impl Schedule {
    #[inline]
    pub(super) fn followers(&self, step: u32) -> &[u32] {
        let (start, end) = self.nodes[step as usize].followers;
        &self.followers[start as usize..end as usize]
    }

    /// Bytes of scratch memory that a run needs.
    pub fn scratch(&self) -> usize {
        self.scratch
    }

    /// Steps.
    pub fn len(&self) -> usize {
        self.nodes.len()
    }

    /// The steps in their order: what each does, for how many others it waits, and which wait for it.
    pub fn steps(&self) -> impl Iterator<Item = (&Action, u32, &[u32])> {
        let nodes = (0u32..).zip(&self.nodes);
        nodes.map(|(number, node)| (&node.action, node.waits, self.followers(number)))
    }

    /// The operator of all reductions.
    pub fn operator(&self) -> Option<&Operator> {
        self.operator.as_ref()
    }
}

/// Builds a schedule. Steps of different rounds run one after the other, those within a round as their
/// dependencies allow.
#[derive(Debug, Default)]
pub struct Builder {
    actions: Vec<Action>,
    /// (before, after)
    edges: Vec<(u32, u32)>,
    /// All later steps wait for this one.
    floor: Option<u32>,
    /// Steps since the floor begin here.
    since: u32,
    /// Numbers of the stages around what is added, and how many there are.
    stage: u32,
    depth: u32,
    scratch: i64,
    operator: Option<Operator>,
}

impl Builder {
    /// Adds a stage: an algorithm as part of another, after everything before. Stages of one algorithm have
    /// different numbers from 1 to 3, the same on all ranks, so that their messages do not match each other;
    /// of the same collective on other data, one after the other, they may be the same, since messages of one
    /// sender match in order.
    pub fn stage<R>(&mut self, number: u32, add: impl FnOnce(&mut Builder) -> R) -> R {
        debug_assert!(number > 0 && number < 1 << STAGE_BITS && self.depth < STAGES);
        self.round();
        let outer = self.stage;
        self.stage |= number << (STAGE_BITS * (STAGES - 1 - self.depth));
        self.depth += 1;
        let answer = add(self);
        self.depth -= 1;
        self.stage = outer;
        self.round();
        answer
    }

    /// All later steps wait for all steps before.
    pub fn round(&mut self) {
        let end = self.actions.len() as u32;
        match end - self.since {
            0 => return,
            1 => self.floor = Some(end - 1),
            _ => {
                let before: Vec<Step> = (self.since..end).map(Step).collect();
                self.floor = Some(self.add(Action::Join, &before).0);
            }
        }
        self.since = self.actions.len() as u32;
    }

    /// Sends to a party after the given steps.
    pub fn send(&mut self, to: u32, slot: u32, data: Place, after: &[Step]) -> Step {
        let slot = self.slot(slot);
        self.add(Action::Send { to, slot, data }, after)
    }

    /// Receives from a party after the given steps.
    pub fn recv(&mut self, from: u32, slot: u32, into: Place, after: &[Step]) -> Step {
        let slot = self.slot(slot);
        self.add(Action::Recv { from, slot, into }, after)
    }

    /// Copies after the given steps.
    pub fn copy(&mut self, from: Place, into: Place, after: &[Step]) -> Step {
        self.add(Action::Copy { from, into }, after)
    }

    /// Reduces with the operator of the schedule after the given steps.
    pub fn reduce(&mut self, from: Spot, into: Spot, count: i64, after: &[Step]) -> Step {
        self.add(Action::Reduce { from, into, count }, after)
    }

    /// Writes bytes.
    pub fn write(&mut self, data: &[u8], into: Spot) -> Step {
        self.add(Action::Write { data: data.into(), into }, &[])
    }

    /// Compares records; see [`super::check`].
    pub(super) fn compare(&mut self, records: Place, seats: Seats, after: &[Step]) -> Step {
        self.add(Action::Compare { records, seats }, after)
    }

    /// Ends when all of the given steps have.
    pub fn join(&mut self, after: &[Step]) -> Step {
        match after {
            [one] => *one,
            _ => self.add(Action::Join, after),
        }
    }

    /// Sets the operator of all reductions.
    pub fn operator(&mut self, operator: &Operator) {
        self.operator = Some(operator.clone());
    }

    /// Scratch memory for bytes.
    pub fn scratch(&mut self, len: u64) -> Spot {
        let spot = Spot { buffer: Buffer::Scratch, offset: self.scratch };
        self.scratch += (len as i64 + LINE - 1) / LINE * LINE;
        spot
    }

    /// Scratch memory for elements that lie as they do in user memory: what a datatype counts from.
    pub fn scratch_elements(&mut self, count: i64, datatype: &Datatype) -> Spot {
        if count <= 0 {
            return self.scratch(0);
        }
        let span = (count - 1) * datatype.extent().abs() + datatype.true_extent();
        let below = if datatype.extent() < 0 { (count - 1) * datatype.extent() } else { 0 };
        self.scratch(span.max(0) as u64).skip(-datatype.true_lower_bound() - below)
    }

    /// The data in a row: the place itself, or a copy in scratch memory that is made now.
    pub fn gathered(&mut self, place: &Place) -> Place {
        if place.is_contiguous() {
            return place.clone();
        }
        let row = Place::bytes(self.scratch(place.len()), place.len());
        self.copy(place.clone(), row.clone(), &[]);
        row
    }

    /// The blocks of these ranks as one place: where they lie, or a copy in scratch memory that is made now.
    pub fn gathered_blocks(&mut self, blocks: &Blocks, ranks: &[usize]) -> Place {
        blocks.series(ranks).unwrap_or_else(|| {
            let rows = self.rows_for(blocks, ranks);
            for (row, &rank) in ranks.iter().enumerate() {
                self.copy(blocks.place(rank), rows.place(row), &[]);
            }
            rows.all(ranks.len())
        })
    }

    /// One place that takes the blocks of these ranks: where they belong, or scratch memory. Then `later`
    /// gets the copies that put them there.
    pub fn room_for_blocks(
        &mut self,
        blocks: &Blocks,
        ranks: &[usize],
        later: &mut Vec<(Place, Place)>,
    ) -> Place {
        blocks.series(ranks).unwrap_or_else(|| {
            let rows = self.rows_for(blocks, ranks);
            later.extend(ranks.iter().enumerate().map(|(row, &rank)| (rows.place(row), blocks.place(rank))));
            rows.all(ranks.len())
        })
    }

    /// Scratch memory for the blocks of these ranks, one behind the other.
    fn rows_for(&mut self, blocks: &Blocks, ranks: &[usize]) -> Blocks {
        let lens = || ranks.iter().map(|&rank| blocks.len(rank));
        let start = self.scratch(lens().sum());
        Blocks::rows(start, lens())
    }

    /// The finished schedule.
    pub fn finish(self) -> Schedule {
        let count = self.actions.len();
        let mut starts = vec![0u32; count + 1];
        let mut waits = vec![0u32; count];
        for &(before, after) in &self.edges {
            starts[before as usize + 1] += 1;
            waits[after as usize] += 1;
        }
        for index in 0..count {
            starts[index + 1] += starts[index];
        }
        let mut followers = vec![0u32; self.edges.len()];
        let mut next = starts.clone();
        for &(before, after) in &self.edges {
            followers[next[before as usize] as usize] = after;
            next[before as usize] += 1;
        }
        let reduces = self.actions.iter().any(|action| matches!(action, Action::Reduce { .. }));
        let calls_user = reduces && self.operator.as_ref().is_some_and(Operator::is_user);
        let node = |(index, action)| {
            let followers = (starts[index as usize], starts[index as usize + 1]);
            Node { action, waits: waits[index as usize], followers }
        };
        Schedule {
            nodes: (0u32..).zip(self.actions).map(node).collect(),
            followers: followers.into(),
            scratch: self.scratch as usize,
            operator: self.operator,
            calls_user,
        }
    }

    fn slot(&self, slot: u32) -> u32 {
        debug_assert!(slot < SLOTS);
        self.stage << STAGE_SHIFT | slot
    }

    fn add(&mut self, action: Action, after: &[Step]) -> Step {
        let number = self.actions.len() as u32;
        self.actions.push(action);
        let mut waits_for_floor = self.floor.is_some();
        for before in after {
            debug_assert!(before.0 < number);
            // A step that waits for one behind the floor waits for the floor already.
            waits_for_floor &= before.0 < self.since;
            self.edges.push((before.0, number));
        }
        if let (true, Some(floor)) = (waits_for_floor, self.floor) {
            self.edges.push((floor, number));
        }
        Step(number)
    }
}
