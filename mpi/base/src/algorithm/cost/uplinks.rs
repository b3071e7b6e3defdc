//! Messages between nodes, and the links between their switches.

use super::Cost;
use crate::algorithm::team::{Reach, Team};

/// Costs of messages from one switch to another, beyond those of messages between nodes of one switch.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Uplinks {
    /// Nanoseconds of the further switches on the way.
    pub ns: f64,
    /// Bandwidth of the nodes of a switch over that of its links to others; 1 if it is not known.
    pub taper: f64,
}

impl Cost {
    /// A message to another node, behind another switch if any messages are.
    pub(super) fn far_hop(&self, team: &Team, across: f64, len: u64) -> f64 {
        let beside = (team.abreast() - 1) as f64 * self.wire_ns(len);
        let further = if across > 0.0 { self.uplinks.ns } else { 0.0 };
        self.far.ns(len) + further + beside + self.switch_ns(team)
    }

    /// Time for which the links between switches carry `messages` messages for each node; see
    /// [`Team::uplinks`].
    pub fn uplinks_ns(&self, team: &Team, messages: f64, len: u64) -> f64 {
        messages * team.abreast() as f64 * self.uplinks.taper * self.wire_ns(len)
    }

    /// Time for which wires and the links between switches are busy after the first message, if `leaving`
    /// ranks of a node send a message to another node: to the member at the distance `reach`, or to any.
    pub(super) fn wires_ns(&self, team: &Team, (leaving, reach): (usize, Option<Reach>), len: u64) -> f64 {
        let first = team.abreast() as f64 * self.wire_ns(len);
        (leaving.max(1) as f64 * first).max(self.uplinks_ns(team, team.uplinks(reach), len)) - first
    }
}
