//! Placement of ranks on machines.

use super::way::Starting;
use crate::LaunchError;

/// A machine in the list of the user or the scheduler.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Machine {
    /// Its name or address.
    pub name: String,
    /// Number of ranks that it gets before the next machine.
    pub slots: u32,
}

/// The hosts of a job, and the host of each rank.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Machines {
    /// Their names; each has at least one rank.
    pub hosts: Vec<String>,
    /// The number of the host of each rank.
    pub nodes: Vec<u32>,
    /// Method of starting agents there.
    pub starting: Starting,
}

impl Machines {
    /// Returns the name of a rank's host.
    pub fn host_of(&self, rank: u32) -> Option<&str> {
        let node = self.nodes.get(rank as usize)?;
        self.hosts.get(*node as usize).map(String::as_str)
    }

    /// Checks the layout for a job of `count` ranks.
    pub(crate) fn check(&self, count: u32) -> Result<(), LaunchError> {
        let is_whole = self.nodes.len() == count as usize;
        match is_whole && self.nodes.iter().all(|&node| (node as usize) < self.hosts.len()) {
            true => Ok(()),
            false => Err(LaunchError::Job(format!("the layout does not give each of {count} ranks a host"))),
        }
    }
}

/// Distribution of ranks over machines.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Share {
    /// Ranks for each machine instead of its slots.
    pub per_host: Option<u32>,
    /// One rank for each machine in turns, instead of filling the machines one after the other.
    pub in_turns: bool,
}

/// Returns the slots of all machines, which is the default number of ranks.
pub fn slots(machines: &[Machine], share: Share) -> u32 {
    let slots = machines.iter().map(|machine| share.per_host.unwrap_or(machine.slots));
    slots.fold(0, u32::saturating_add)
}

/// Places `count` ranks; returns the names of the machines that get ranks, and each rank's machine number.
///
/// Machines are filled slot by slot. When all are full, filling begins again, since ranks may outnumber
/// slots.
pub fn place(machines: &[Machine], count: u32, share: Share) -> (Vec<String>, Vec<u32>) {
    let slots: Vec<u32> =
        machines.iter().map(|machine| share.per_host.unwrap_or(machine.slots).max(1)).collect();
    let most = slots.iter().copied().max().unwrap_or(1);
    let round: Vec<usize> = if share.in_turns {
        let slots = &slots;
        let row = |slot: u32| (0..slots.len()).filter(move |&machine| slot < slots[machine]);
        (0..most.min(count)).flat_map(row).collect()
    } else {
        let filled =
            |(machine, &slots): (usize, &u32)| std::iter::repeat_n(machine, slots.min(count) as usize);
        slots.iter().enumerate().flat_map(filled).collect()
    };
    let mut numbers = vec![None; machines.len()];
    let mut names = Vec::new();
    let mut number = |machine: usize| {
        *numbers[machine].get_or_insert_with(|| {
            names.push(machines[machine].name.clone());
            names.len() as u32 - 1
        })
    };
    let nodes = round.iter().cycle().take(count as usize).map(|&machine| number(machine)).collect();
    (names, nodes)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn placed(machines: &[(&str, u32)], count: u32, share: Share) -> String {
        let machine = |&(name, slots): &(&str, u32)| Machine { name: name.into(), slots };
        let machines: Vec<Machine> = machines.iter().map(machine).collect();
        let (names, nodes) = place(&machines, count, share);
        nodes.iter().map(|&node| names[node as usize].as_str()).collect()
    }

    #[test]
    fn machines_are_filled_or_take_turns() {
        let machines = [("a", 2), ("b", 1), ("c", 3)];
        let share = Share::default();
        assert_eq!(placed(&machines, 6, share), "aabccc");
        assert_eq!(placed(&machines, 8, share), "aabcccaa");
        assert_eq!(placed(&machines, 2, share), "aa");
        let in_turns = Share { in_turns: true, ..share };
        assert_eq!(placed(&machines, 6, in_turns), "abcacc");
        assert_eq!(placed(&machines, 7, in_turns), "abcacca");
        let two = Share { per_host: Some(2), ..share };
        assert_eq!(placed(&machines, 7, two), "aabbcca");
        assert_eq!(placed(&machines, 4, Share { per_host: Some(2), in_turns: true }), "abca");
    }

    #[test]
    fn machines_without_ranks_are_left_out() {
        let machines = ["a", "b", "c"].map(|name| Machine { name: name.into(), slots: 2 });
        assert_eq!(place(&machines, 3, Share::default()), (vec!["a".into(), "b".into()], vec![0, 0, 1]));
        assert_eq!(slots(&machines, Share::default()), 6);
        assert_eq!(slots(&machines, Share { per_host: Some(5), in_turns: false }), 15);
    }
}
