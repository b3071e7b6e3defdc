//! Ranks without processes: their buffers, and the runs that work on them.

use super::mesh::{Mesh, Port};
use crate::algorithm::choice::{Algorithm, Choices, Context, Problem};
use crate::algorithm::cost::{Cost, Uplinks};
use crate::algorithm::memory;
use crate::algorithm::operator::Operator;
use crate::algorithm::run::{Caller, Run};
use crate::algorithm::schedule::{Builder, Schedule};
use crate::algorithm::team::Team;
use crate::datatype::Datatype;
use crate::error::Result;
use std::sync::Arc;

/// What bytes are that nobody may touch.
const GAP: u8 = 0xee;

/// Aligned memory of a rank.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Memory(Vec<u8>);

impl Memory {
    /// Room for elements of a type, all of it untouched.
    pub(super) fn of(count: i64, datatype: &Datatype) -> Memory {
        let end = datatype.true_lower_bound() + datatype.true_extent() + count.max(1) * datatype.extent();
        Memory(vec![GAP; end as usize])
    }

    /// Elements that consist of these numbers.
    pub(super) fn filled(numbers: &[i32], datatype: &Datatype) -> Memory {
        let each = datatype.size() / 4;
        let mut memory = Memory::of(numbers.len() as i64 / each, datatype);
        memory.put(0, numbers, datatype);
        memory
    }

    /// Writes elements from element `first` on.
    pub(super) fn put(&mut self, first: i64, numbers: &[i32], datatype: &Datatype) {
        let bytes: Vec<u8> = numbers.iter().flat_map(|n| n.to_ne_bytes()).collect();
        let (base, mut done) = (first * datatype.extent(), 0);
        datatype.for_each_run(numbers.len() as i64 * 4 / datatype.size(), |run| {
            let start = (base + run.offset) as usize;
            self.0[start..start + run.len as usize].copy_from_slice(&bytes[done..done + run.len as usize]);
            done += run.len as usize;
        });
    }

    pub(super) fn address(&mut self) -> *mut u8 {
        self.0.as_mut_ptr()
    }
}

/// The buffers of all ranks.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Buffers {
    pub(super) send: Vec<Memory>,
    pub(super) recv: Vec<Memory>,
}

/// The node of each rank, its cache there and the switch of the node if they are known.
#[derive(Debug)]
struct Layout {
    nodes: Vec<u32>,
    caches: Option<Vec<u32>>,
    switches: Option<Vec<u32>>,
}

/// Layouts of `size` ranks: one node, nodes in a row, nodes by turns; one node with caches in a row, with
/// caches by turns, and nodes with caches; nodes of uneven switches with one rank each, of switches by turns
/// with two, and of uneven switches with caches.
fn layouts(size: usize) -> Vec<Layout> {
    let each = |place: fn(u32) -> u32| (0..size as u32).map(place).collect::<Vec<u32>>();
    let layout = |node: fn(u32) -> u32, cache: Option<fn(u32) -> u32>| Layout {
        nodes: each(node),
        caches: cache.map(each),
        switches: None,
    };
    let behind = |layout: Layout, switch: fn(u32) -> u32| {
        let switches = Some(layout.nodes.iter().copied().map(switch).collect());
        Layout { switches, ..layout }
    };
    let mut layouts = vec![layout(|_| 0, None)];
    if size > 2 {
        layouts.push(layout(|rank| rank / 3, None));
        layouts.push(layout(|rank| rank % 2, None));
        layouts.push(layout(|_| 0, Some(|rank| rank / 3)));
        layouts.push(layout(|_| 0, Some(|rank| rank % 2)));
        let caches = || layout(|rank| rank / 4, Some(|rank| rank % 4 / 2));
        layouts.push(caches());
        layouts.push(behind(layout(|rank| rank, None), |node| (node + 1).ilog2()));
        layouts.push(behind(layout(|rank| rank, None), |node| node / 4));
        layouts.push(behind(layout(|rank| rank / 2, None), |node| node % 2));
        layouts.push(behind(caches(), |node| node / 3));
    }
    layouts
}

/// The sizes that are tried.
pub(super) const SIZES: [usize; 11] = [1, 2, 3, 4, 5, 6, 7, 8, 9, 16, 17];

/// Whether long data of this type is tried: in place with gaps, and out of place without. Whether it is cut
/// into pieces depends on neither.
pub(super) fn is_tried_long(datatype: &Datatype, in_place: bool) -> bool {
    in_place != datatype.is_contiguous()
}

/// Runs a schedule on each rank, on its buffers: how it ended everywhere.
pub(super) fn run(schedules: Vec<Schedule>, buffers: &mut Buffers, seed: u64) -> Vec<Result<()>> {
    let mut runs: Vec<Run> = schedules.into_iter().map(|schedule| Run::new(Arc::new(schedule))).collect();
    run_again(&mut runs, buffers, seed)
}

/// The same with runs that exist.
pub(super) fn run_again(runs: &mut [Run], buffers: &mut Buffers, seed: u64) -> Vec<Result<()>> {
    let mut mesh = Mesh::new(seed.wrapping_mul(0x9e37_79b9_7f4a_7c15), seed.is_multiple_of(2));
    let mut ended: Vec<Option<Result<()>>> = vec![None; runs.len()];
    for (rank, run) in runs.iter_mut().enumerate() {
        let (send, recv) = (buffers.send[rank].address(), buffers.recv[rank].address());
        run.bind(7, memory::Buffers { send, recv });
        run.start();
    }
    let mut idle = 0;
    while ended.iter().any(Option::is_none) {
        let rank = mesh.random(runs.len());
        if ended[rank].is_none() {
            let mut port = Port { mesh: &mut mesh, me: rank as u32 };
            ended[rank] = runs[rank].advance(&mut port, Caller::Program);
        }
        idle = if mesh.shake() { 0 } else { idle + 1 };
        assert!(idle < 100 * runs.len(), "stuck: {ended:?}");
    }
    assert!(ended.iter().any(|end| matches!(end, Some(Err(_)))) || mesh.is_quiet(), "left something behind");
    ended.into_iter().flatten().collect()
}

/// Does one problem by one algorithm on all ranks; false: it does not fit.
fn solve<P: Problem>(
    algorithm: &Algorithm<P>,
    layout: &Layout,
    operator: Option<&Operator>,
    problem: impl Fn(usize) -> P,
    buffers: &mut Buffers,
    seed: u64,
) -> bool {
    let Layout { nodes, caches, switches } = layout;
    let cache_ranks = if caches.is_some() { 2 } else { 0 };
    let team = Team::with_caches(nodes, (caches.as_deref(), cache_ranks), 0);
    let team = switches.as_ref().map_or(team.clone(), |switches| team.behind(switches));
    let teams = (0..nodes.len()).map(|me| team.seen_from(me));
    let problems: Vec<(Team, P)> = teams.map(|team| (team.clone(), problem(team.me()))).collect();
    let fits: Vec<bool> = problems.iter().map(|(team, problem)| (algorithm.fits)(problem, team)).collect();
    assert!(fits.iter().all(|fit| *fit == fits[0]), "{}: ranks disagree whether it fits", algorithm.name);
    if !fits[0] {
        return false;
    }
    // Between caches and between switches messages take so long that levels are the best in each level.
    let (across_ns, choices) = (if caches.is_some() { 1e6 } else { 0.0 }, Choices::default());
    let uplinks = Uplinks { ns: 1e6, taper: 8.0 };
    let cost = Cost { across_ns, uplinks, ..Cost::default() };
    let context = Context { cost: &cost, choices: &choices, inner: false };
    let costs: Vec<f64> = problems.iter().map(|(t, p)| (algorithm.cost)(p, t, &cost)).collect();
    assert!(costs.iter().all(|c| *c == costs[0] && c.is_finite()), "{}: costs {costs:?}", algorithm.name);
    let schedules = problems.iter().map(|(team, problem)| {
        let mut builder = Builder::default();
        if let Some(operator) = operator {
            builder.operator(operator);
        }
        (algorithm.build)(problem, team, &context, &mut builder);
        builder.finish()
    });
    let ended = run(schedules.collect(), buffers, seed);
    assert!(ended.iter().all(Result::is_ok), "{} over {layout:?}: {ended:?}", algorithm.name);
    true
}

/// Tries all algorithms of a problem with all sizes and layouts, and asks for the expected buffers.
pub(super) fn try_all<P: Problem>(
    sizes: &[usize],
    operator: Option<&Operator>,
    case: impl Fn(usize) -> Case<P>,
) {
    let mut done = std::collections::BTreeSet::new();
    for &size in sizes {
        let Case { problem, before, after } = case(size);
        for (index, layout) in layouts(size).iter().enumerate() {
            for (number, algorithm) in P::algorithms().iter().enumerate() {
                let mut buffers = before.clone();
                let seed = (size * 31 + index * 7 + number) as u64;
                if solve(algorithm, layout, operator, &problem, &mut buffers, seed) {
                    let wrong = (0..size).find(|&rank| {
                        buffers.send[rank] != after.send[rank] || buffers.recv[rank] != after.recv[rank]
                    });
                    assert!(wrong.is_none(), "{} over {layout:?}: rank {wrong:?} is wrong", algorithm.name);
                    done.insert(algorithm.name);
                }
            }
        }
    }
    assert!(!done.is_empty());
}

/// A problem for each rank, the buffers before, and what they have to be afterwards.
pub(super) struct Case<P> {
    pub(super) problem: Box<dyn Fn(usize) -> P>,
    pub(super) before: Buffers,
    pub(super) after: Buffers,
}
