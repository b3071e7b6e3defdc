//! The tree along which agents pass messages for all hosts on. The head sends them to the hosts `0` to
//! `WIDTH - 1`, and each host to [`WIDTH`] others, if they are connected to it. The head serves all hosts
//! that are not, and those whose parent is lost.

use std::ops::Range;
use std::time::Duration;

use super::hosts::{Hosts, State};
use super::jobs::RemoteJob;
use super::message::{Down, JobDown, Listen, RelayUp};

/// Hosts that one host sends to. Predicted for 256 and 1,024 hosts, 3 and 4 are the best; 2 and 8 take 17 to
/// 20 % longer (docs/scale.md has a table).
pub const WIDTH: usize = 4;

/// Returns the hosts that a host passes messages on to, of this many.
pub fn children(node: u32, hosts: usize) -> Range<u32> {
    let first = WIDTH * (node as usize + 1);
    first.min(hosts) as u32..(first + WIDTH).min(hosts) as u32
}

/// Returns the host that passes messages on to this one; `None`: the head does.
pub fn parent(node: u32) -> Option<u32> {
    (node / WIDTH as u32).checked_sub(1)
}

/// Lets a host open a port for those to which it passes messages on: they have to connect within `limit`,
/// and are disconnected when they do not answer for `silence`.
pub fn prepare(hosts: &mut Hosts, node: u32, silence: Duration, limit: Duration) {
    let named = |child| (child, hosts.name(child).to_owned());
    let children: Vec<_> = children(node, hosts.iter().count()).map(named).collect();
    if !children.is_empty() {
        hosts.send(node, &Down::Listen(Listen { children, silence, limit }));
    }
}

/// Handles a report of host `node` about its connections to other agents.
pub fn handle_report(hosts: &mut Hosts, jobs: &[RemoteJob], node: u32, report: RelayUp) {
    let below = children(node, hosts.iter().count());
    match report {
        RelayUp::Port(addresses) => {
            let message = Down::Parent(addresses);
            below.for_each(|child| hosts.send(child, &message));
        }
        RelayUp::Connected(child) if below.contains(&child) => hosts.get_mut(child).has_parent = true,
        RelayUp::Gone(child) if below.contains(&child) => serve(hosts, jobs, child),
        // The agent is malformed: it admits only hosts below its own.
        RelayUp::Connected(_) | RelayUp::Gone(_) => {}
    }
}

/// Serves the hosts to which a lost host passed messages on.
pub fn serve_children(hosts: &mut Hosts, jobs: &[RemoteJob], node: u32) {
    let count = hosts.iter().count();
    children(node, count).for_each(|child| serve(hosts, jobs, child));
}

/// Sends a host what its parent may not have passed on. From now on the head serves it.
fn serve(hosts: &mut Hosts, jobs: &[RemoteJob], node: u32) {
    if !std::mem::take(&mut hosts.get_mut(node).has_parent) {
        return;
    }
    for (job, release) in (0..).zip(jobs).filter_map(|(number, job)| Some((number, job.release()?))) {
        hosts.send(node, &Down::Job(job, JobDown::Release(release.clone())));
    }
}

/// Sends the end of the fence of a job to its hosts: along the tree if it has ranks on all of them.
pub fn release(hosts: &mut Hosts, jobs: &[RemoteJob], number: u32) {
    let job = &jobs[number as usize];
    let Some(release) = job.release() else { return };
    let message = Down::Job(number, JobDown::Release(release.clone()));
    for node in job.hosts() {
        let is_running = |parent| hosts.state(parent) == State::Running;
        let is_passed = hosts.has_parent(node) && parent(node).is_some_and(is_running);
        if !(release.is_for_all && is_passed) {
            hosts.send(node, &message);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_host_has_one_parent_before_it() {
        for hosts in [1, 3, 4, 5, 16, 21, 100] {
            let mut parents = vec![None; hosts];
            for node in 0..hosts as u32 {
                for child in children(node, hosts) {
                    assert_eq!(parents[child as usize].replace(node), None);
                }
            }
            for (node, found) in (0..).zip(parents) {
                assert_eq!(found, parent(node));
                assert!(found.is_none_or(|parent| parent < node));
            }
        }
        assert_eq!((children(0, 100), children(1, 10), children(2, 10)), (4..8, 8..10, 10..10));
    }
}
