//! Tests that tasks go to the nearest core that stands by, on a simulated machine with two sockets of two
//! caches of two cores each: {0 1} {2 3} | {4 5} {6 7}.

use super::*;
use crate::change::Vacant;
use crate::topology::example;

fn standby() -> Standby {
    let standby = Standby::new(Arc::default());
    standby.arrange(example());
    standby
}

fn offer(standby: &Standby, id: u8, here: CoreId) -> bool {
    let task = Task { id: RailId(id), rail: Box::new(Vacant::default()), orders: Vec::new() };
    standby.offer(task, here).is_ok()
}

fn posted(standby: &Standby) -> Option<u8> {
    standby.reclaim(None).map(|(id, _)| id.0)
}

#[test]
fn the_nearest_core_that_stands_by_gets_the_task_and_a_far_one_leaves_it() {
    let standby = standby();
    let (near, far) = (standby.enter(3), standby.enter(6));
    assert!(offer(&standby, 1, 2));
    assert!(far.run_one().is_none(), "it is for the cache of cores 2 and 3");
    assert!(near.run_one().is_some());
    assert_eq!(posted(&standby), Some(1));
}

#[test]
fn the_sender_knows_its_distance_to_the_cores_that_stand_by() {
    let standby = standby();
    assert_eq!(standby.beside(2), []);
    let _standing = [6, 3, 0].map(|core| standby.enter(core));
    assert_eq!(standby.beside(2), [Pair::Cache, Pair::Socket, Pair::Across]);
    assert_eq!(standby.beside(7), [Pair::Cache, Pair::Across, Pair::Across]);
    assert!(offer(&standby, 1, 2));
    standby.take_back();
    assert_eq!(standby.beside(99), [Pair::Unknown; 3], "a core of which nothing is known");
}

#[test]
fn a_second_task_goes_to_a_further_core_and_a_third_to_none() {
    let standby = standby();
    let (near, far) = (standby.enter(3), standby.enter(6));
    assert!(offer(&standby, 1, 2) && offer(&standby, 2, 2));
    assert!(!offer(&standby, 3, 2), "two stand by");
    assert!(far.run_one().is_some());
    assert_eq!(posted(&standby), Some(2), "the machine's");
    assert!(near.run_one().is_some() && near.run_one().is_none());
    assert_eq!(posted(&standby), Some(1));
    assert!(offer(&standby, 3, 5) && far.run_one().is_some(), "who has posted stands by again");
}

#[test]
fn a_task_that_no_core_has_begun_is_taken_back() {
    let standby = standby();
    let near = standby.enter(3);
    assert!(offer(&standby, 1, 2));
    assert_eq!(standby.take_back().map(|task| task.id), Some(RailId(1)));
    assert!(near.run_one().is_none() && !standby.has_offers());
    drop(near);
    assert!(!offer(&standby, 1, 2), "nobody stands by");
}

#[test]
fn a_thread_that_waits_takes_tasks_that_its_core_may_run() {
    let standby = standby();
    let _late = standby.enter(3);
    assert!(offer(&standby, 1, 2));
    assert!(!standby.help(7) && standby.help(2));
    assert_eq!(posted(&standby), Some(1));
    assert!(offer(&standby, 1, 2), "whoever stands by is still free");
}

#[test]
fn where_the_topology_is_hidden_any_core_takes_a_task() {
    let standby = Standby::new(Arc::default());
    let far = standby.enter(6);
    assert!(offer(&standby, 1, 2) && far.run_one().is_some());
}
