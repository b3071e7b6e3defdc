//! Primitives that processes of one node use to reach each other: a segment shared by two of them
//! ([`Segment`]) and the descriptors by which the second one gets it ([`descriptors`]), single copies from
//! process to process ([`across`]), copies carried out by both ([`joint`]), the protocol by which both
//! claim pieces of shared work ([`claim`]), huge pages ([`huge`]), blocks on their way into a
//! segment ([`put_gathered`]), and the distance of their cores.
//!
//! This module is below the driver `shm`, whose links use segments; the layers above use it for collectives
//! and windows within a node. It knows neither links nor messages.

#[allow(unsafe_code)]
pub mod across;
pub(crate) mod claim;
pub(crate) mod descriptors;
mod gather;
#[allow(unsafe_code)]
pub mod huge;
pub mod joint;
#[allow(unsafe_code)]
mod segment;
pub(crate) mod word;

pub use gather::put_gathered;
pub use segment::Segment;

/// Identifies the largest cache that this core shares with others: equal for cores that share it; zero: not
/// known.
pub(crate) fn cache_of_core() -> u64 {
    let core = rustix::thread::sched_getcpu();
    let shared = |index| {
        let path = format!("/sys/devices/system/cpu/cpu{core}/cache/index{index}/shared_cpu_list");
        std::fs::read_to_string(path).ok()
    };
    let list = (0..8).rev().find_map(shared).unwrap_or_default();
    // The first core of the list.
    let first: String = list.chars().take_while(char::is_ascii_digit).collect();
    first.parse().map_or(0, |first: u64| first + 1)
}
