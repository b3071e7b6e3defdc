//! Data goes with the messages in virtual time, and every rank gets what a serial program would compute.

use nmad_mpi_base::algorithm::choice::Family;
use nmad_mpi_base::algorithm::memory::{Buffers, Memory};
use nmad_mpi_base::algorithm::operator::Operator;
use nmad_mpi_base::algorithm::schedule::Action;
use nmad_scale::case::Case;
use nmad_scale::fabric::FABRICS;
use nmad_scale::job::Job;
use nmad_scale::stage::{Placement, Stage, Watch};
use std::collections::BTreeMap;

/// The memory of all ranks, and what is under way.
struct Data {
    actions: Vec<Vec<Action>>,
    operator: Option<Operator>,
    memories: Vec<Memory>,
    flying: BTreeMap<u32, Vec<u8>>,
}

impl Watch for Data {
    fn local(&mut self, rank: usize, step: usize) {
        self.memories[rank].work(&self.actions[rank][step], self.operator.as_ref());
    }

    fn leave(&mut self, message: u32, rank: usize, step: usize) {
        let Action::Send { data, .. } = &self.actions[rank][step] else { panic!("{step} sends nothing") };
        let mut bytes = Vec::new();
        self.memories[rank].segments(data).append_to(&mut bytes);
        self.flying.insert(message, bytes);
    }

    fn arrive(&mut self, message: u32, rank: usize, step: usize) {
        let Action::Recv { into, .. } = &self.actions[rank][step] else { panic!("{step} gets nothing") };
        let bytes = self.flying.remove(&message).expect("it has left before it arrives");
        self.memories[rank].segments(into).write(0, &bytes);
    }
}

/// A rank's part of what it has at first.
const OF_RANK: usize = 1_000_003;
/// The part of a place.
const OF_PLACE: usize = 7;

/// What a rank has at first.
fn value(rank: usize, index: usize) -> i64 {
    (rank * OF_RANK + index * OF_PLACE) as i64
}

fn values(rank: usize, range: std::ops::Range<usize>) -> Vec<i64> {
    range.map(|index| value(rank, index)).collect()
}

/// The send and the receive buffer of a rank, and what is in the latter afterwards.
fn buffers(case: &Case, rank: usize) -> [Vec<i64>; 3] {
    let (ranks, count) = (case.stage.ranks, (case.len / 8) as usize);
    let own = || values(rank, 0..count);
    // Value by value it would take most of the test's time.
    let sum = |of: std::ops::Range<usize>, first: usize| -> Vec<i64> {
        let (ranks, of_ranks) = (of.len(), of.map(|rank| rank * OF_RANK).sum::<usize>());
        (first..first + count).map(|index| (of_ranks + ranks * index * OF_PLACE) as i64).collect()
    };
    let all = || (0..ranks).flat_map(|rank| values(rank, 0..count)).collect::<Vec<i64>>();
    let (block, empty) = (rank * count..(rank + 1) * count, vec![0; count]);
    match case.family {
        Family::Barrier => [vec![], vec![], vec![]],
        Family::Bcast => [vec![], if rank == 0 { own() } else { empty }, values(0, 0..count)],
        Family::Gather if rank == 0 => [own(), vec![0; ranks * count], all()],
        Family::Gather => [own(), vec![], vec![]],
        Family::Scatter => [values(0, 0..ranks * count), empty, values(0, block)],
        Family::Allgather => [own(), vec![0; ranks * count], all()],
        Family::Alltoall => {
            let after = (0..ranks).flat_map(|from| values(from, block.clone())).collect();
            [values(rank, 0..ranks * count), vec![0; ranks * count], after]
        }
        Family::Reduce if rank == 0 => [own(), empty, sum(0..ranks, 0)],
        Family::Reduce => [own(), vec![], vec![]],
        Family::Allreduce => [own(), empty, sum(0..ranks, 0)],
        Family::ReduceScatter => [values(rank, 0..ranks * count), empty, sum(0..ranks, block.start)],
        Family::Scan => [own(), empty, sum(0..rank + 1, 0)],
    }
}

fn check(case: &Case, name: &str) {
    let mut data = Data { actions: vec![], operator: None, memories: vec![], flying: BTreeMap::new() };
    let (mut job, mut all) = (Job::default(), Vec::new());
    case.schedules(name, |schedule| {
        let mut buffers = buffers(case, all.len());
        let mut memory = Memory::new(schedule.scratch());
        let [send, recv] = [0, 1].map(|place| buffers[place].as_mut_ptr().cast());
        memory.bind(Buffers { send, recv });
        all.push(buffers);
        job.add(&[&schedule]);
        data.memories.push(memory);
        data.actions.push(schedule.steps().map(|(action, ..)| action.clone()).collect());
        data.operator = schedule.operator().cloned();
        true
    });
    job.connect().unwrap_or_else(|why| panic!("{name} of {case:?}: {why}"));
    let outcome = case.watched(&job, &mut data).unwrap_or_else(|why| panic!("{name} of {case:?}: {why}"));
    assert!(outcome.ps > 0 && data.flying.is_empty(), "{name} of {case:?}");
    for (rank, [_, after, expected]) in all.iter().enumerate() {
        assert!(after == expected, "{name} of {case:?}: rank {rank} has a wrong result");
    }
}

#[test]
fn every_algorithm_gives_every_rank_what_a_serial_program_computes() {
    let mut names = 0;
    for (number, &family) in Family::ALL.iter().enumerate() {
        for (ranks, lens) in [(2, 40_000), (3, 40_000), (7, 4_000), (16, 20_000), (33, 400), (64, 400)] {
            for len in [8, lens] {
                for placement in [Placement::Block, Placement::RoundRobin] {
                    let fabric = &FABRICS[(number + ranks) % FABRICS.len()];
                    let case = Case { stage: Stage { fabric, ranks, cores: 4, placement }, family, len };
                    for (name, _) in case.algorithms() {
                        check(&case, name);
                        names += 1;
                    }
                }
            }
        }
    }
    assert!(names > 800, "{names}");
}

#[test]
fn long_vectors_in_pieces_arrive_whole() {
    for family in [Family::Bcast, Family::Reduce, Family::Allreduce, Family::Scan] {
        for ranks in [5, 24] {
            let stage = Stage { fabric: &FABRICS[0], ranks, cores: 4, placement: Placement::Block };
            let case = Case { stage, family, len: 1 << 20 };
            case.algorithms().iter().for_each(|(name, _)| check(&case, name));
        }
    }
}
