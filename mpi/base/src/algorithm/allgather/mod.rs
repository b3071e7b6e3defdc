//! Allgather: a block of each rank goes to all.

mod rings;
mod rows;

use super::board;
use super::choice::{Algorithm, Direct, Family, Memory, Problem, TWO_LEVEL};
use super::cost::log2_ceil;
use super::place::{Blocks, Place};
use super::schedule::Builder;
use super::team::{Reach, Team};

/// An allgather in a team. All ranks know the sizes of all blocks.
#[derive(Debug)]
pub struct Allgather {
    /// Our block; none if it is in its place already.
    pub send: Option<Place>,
    /// Where the blocks go.
    pub recv: Blocks,
}

impl Allgather {
    fn mean(&self, team: &Team) -> u64 {
        self.recv.total(0..team.size()).div_ceil(team.size() as u64)
    }

    /// Our block, to be sent.
    fn own(&self, team: &Team) -> Place {
        self.send.clone().unwrap_or_else(|| self.recv.place(team.me()))
    }

    /// Puts our block to its place.
    fn place_own(&self, team: &Team, builder: &mut Builder) {
        if let Some(own) = &self.send {
            builder.copy(own.clone(), self.recv.place(team.me()), &[]);
        }
    }
}

impl Problem for Allgather {
    const FAMILY: Family = Family::Allgather;

    fn len(&self) -> u64 {
        self.recv.len(0)
    }

    fn data(&self, team: &Team) -> u64 {
        2 * self.recv.total(0..team.size())
    }

    fn direct() -> &'static [Direct<Self>] {
        const {
            &[Direct {
                memory: Memory::Board,
                fits: |p, team| board::serves(team, p.len()),
                cost: |p, team, cost| cost.look(team, p.len()),
            }]
        }
    }

    fn algorithms() -> &'static [Algorithm<Self>] {
        const {
            &[
                Algorithm {
                    name: "ring",
                    fits: |_, _| true,
                    cost: |p, team, cost| (team.size() - 1) as f64 * cost.ring(team, p.mean(team)),
                    build: |p, team, _, builder| rings::ring(p, team, builder),
                },
                Algorithm {
                    name: "flat",
                    fits: |_, _| true,
                    cost: |p, team, cost| cost.exchange_all(team, p.mean(team)),
                    build: |p, team, _, builder| rings::flat(p, team, builder),
                },
                Algorithm {
                    name: "bruck",
                    fits: |_, _| true,
                    cost: |p, team, cost| {
                        let mean = p.mean(team);
                        cost.shifts(team, |k| mean << k) + cost.copy(team, mean * team.size() as u64)
                    },
                    build: |p, team, _, builder| rows::bruck(p, team, builder),
                },
                Algorithm {
                    name: "recursive_doubling",
                    fits: |p, team| team.size().is_power_of_two() && p.recv.is_even(),
                    cost: |p, team, cost| {
                        let mean = p.mean(team);
                        let exchange = |k: u32| cost.exchange(team, Reach::Flip(1 << k), mean << k);
                        (0..log2_ceil(team.size())).map(exchange).sum()
                    },
                    build: |p, team, _, builder| rings::recursive_doubling(p, team, builder),
                },
                Algorithm {
                    name: TWO_LEVEL,
                    fits: |_, team| team.has_levels(),
                    cost: rows::two_level_cost,
                    build: rows::two_level,
                },
            ]
        }
    }
}
