//! The conformance suite that every driver passes; drivers of other crates can use it too.
//!
//! A subject creates a fresh pair of rails that know each other's address and are not connected; each case
//! calls only the methods of the interface, and checks the reported events. No case lasts a fixed time: both
//! rails are polled until the awaited event has happened or a deadline has passed. A case that fails panics
//! and names the event that it awaited.

mod accesses;
mod chunks;
mod links;
mod lossy;
#[allow(unsafe_code)]
pub mod memory;
mod packets;
mod pushes;
mod world;

pub use world::{Seen, World};

use nmad_engine::transfer::access::RemoteAccess;
use nmad_engine::transfer::driver::Driver;

/// A fresh pair of rails.
pub struct Pair {
    /// The rail of rank 0.
    pub first: Box<dyn Driver>,
    /// The rail of rank 1; none: the first rail reaches its own process, rank 0.
    pub second: Option<Box<dyn Driver>>,
    /// Numbers of the two rails in their processes.
    pub rails: [u8; 2],
    /// Called between two polls, for rails in virtual time.
    pub tick: Box<dyn FnMut()>,
}

impl Pair {
    /// Creates a pair of two rails numbered zero, and exchanges their addresses.
    pub fn introduce(first: impl Driver + 'static, second: impl Driver + 'static) -> Pair {
        Pair::introduced(Box::new(first), Box::new(second))
    }

    /// Creates a pair of two boxed rails. A rail without an address reaches its own process only, and is
    /// the whole pair.
    pub fn introduced(mut first: Box<dyn Driver>, mut second: Box<dyn Driver>) -> Pair {
        let (here, there) = (first.address(), second.address());
        if here.is_empty() {
            return Pair { first, second: None, rails: [0, 0], tick: Box::new(|| ()) };
        }
        assert!(first.know(nmad_engine::packet::PeerId(1), 0, &there), "{there} is reachable from {here}");
        assert!(second.know(nmad_engine::packet::PeerId(0), 0, &here), "{here} is reachable from {there}");
        Pair { first, second: Some(second), rails: [0, 0], tick: Box::new(|| ()) }
    }
}

/// One case of the suite.
pub struct Case {
    /// The expectation, as a short sentence.
    pub name: &'static str,
    /// Runs the case with a fresh pair; panics if the expectation is not met.
    pub run: fn(&mut World),
    /// Needs the rails of two processes.
    pub two_sides: bool,
    /// For rails that lose packets; all other cases are for rails that do not.
    pub lossy: bool,
    /// For rails that can hold a pushed chunk.
    pub pushes: bool,
    /// For rails with access to memory that a peer has exposed.
    pub accesses: bool,
}

/// Every case.
pub const CASES: &[Case] = &[
    reliable("both sides receive that the link is up, with the other's rail number", links::comes_up),
    reliable("packets of each size arrive whole, in order and intact", packets::sizes),
    reliable("data left in user memory is inserted at its place in the packet", packets::in_place),
    reliable("thousands of small packets arrive in order and are reported as sent", packets::many),
    reliable("injected packets keep their order with posted ones", packets::passed),
    reliable("packets sent by a call of their own keep their order with posted ones", packets::sent_now),
    reliable("packets found by polling for one peer keep their order with others", packets::fetched),
    reliable("a link takes as many orders at once as its depth says", packets::depth),
    reliable("chunks arrive at their place, with pieces on both sides", chunks::gather),
    reliable("after memory was mapped again, a chunk has its new content", chunks::mapped_anew),
    reliable("a large chunk among packets arrives whole, in the order of posting", chunks::among_packets),
    reliable("an empty chunk arrives", chunks::empty),
    reliable("a chunk to a region that is not open is discarded and counted", chunks::not_open),
    reliable("a key is good for one region only", chunks::stale_key),
    reliable(
        "after a region was closed in the middle of a chunk, its memory is not written",
        chunks::closed_in_the_middle,
    ),
    pushing("a pushed chunk holds the link until its region is known", pushes::held),
    pushing("pushed chunks follow each other", pushes::many),
    pushing("pushed chunks sent by a call of their own follow each other", pushes::at_once),
    pushing("a pushed chunk whose region is gone is discarded and counted", pushes::discarded),
    two("both sides may connect at once", links::crossed),
    two("traffic flows in both directions at once", chunks::both_ways),
    two("a peer that ends is lost within 5 s, and unsent orders are returned", links::peer_ends),
    two("closing a link returns unsent orders, and it may be opened again", links::closes),
    accessing("puts and gets of each size copy exactly their bytes", accesses::sizes),
    accessing("local memory may consist of pieces", accesses::pieces),
    accessing("a thousand puts at once complete, with a packet among them", accesses::many),
    accessing("atomics return the old value", accesses::atomics),
    accessing("without a link no access is carried out", accesses::without_a_link),
    accessing("before a link is lost, the result of each access is reported", accesses::lost),
    lossy("arriving packets are intact", lossy::intact),
    lossy("packets sent at once among posted ones are intact", lossy::at_once),
];

const fn reliable(name: &'static str, run: fn(&mut World)) -> Case {
    Case { name, run, two_sides: false, lossy: false, pushes: false, accesses: false }
}

const fn two(name: &'static str, run: fn(&mut World)) -> Case {
    Case { two_sides: true, ..reliable(name, run) }
}

const fn lossy(name: &'static str, run: fn(&mut World)) -> Case {
    Case { lossy: true, ..two(name, run) }
}

const fn pushing(name: &'static str, run: fn(&mut World)) -> Case {
    Case { pushes: true, ..two(name, run) }
}

const fn accessing(name: &'static str, run: fn(&mut World)) -> Case {
    Case { accesses: true, ..reliable(name, run) }
}

/// Runs every case that applies to the subject, each with a fresh pair.
///
/// # Panics
/// If the subject does not conform.
pub fn check(subject: &str, mut make: impl FnMut() -> Pair) {
    for case in CASES {
        let mut world = World::new(make());
        let suits = case.lossy == world.is_lossy()
            && !(case.two_sides && world.is_alone())
            && (!case.pushes || world.limits().push > 0)
            && (!case.accesses || matches!(world.limits().remote, RemoteAccess::Network(_)));
        if !suits {
            continue;
        }
        eprintln!("{subject}: {}", case.name);
        (case.run)(&mut world);
    }
}
