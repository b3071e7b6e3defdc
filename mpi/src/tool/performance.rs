//! Performance variables: what the rails have carried, a value for each rail, and messages to and from peers,
//! a value for each process of a communicator. All are read-only and count all the time.

use super::enumeration::Enumeration;
use super::{Binding, Verbosity};
use crate::error::{Class, Result};
use crate::handle::Type;
use crate::world::{World, world};
use newmadeleine::RailInfo;
use newmadeleine::engine::{PeerId, Traffic};
use newmadeleine::progress::Helped;

/// What kind of value a variable has (`MPI_T_PVAR_CLASS_*`).
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[repr(i32)]
pub enum Kind {
    /// One of several states.
    State = 1,
    /// How much there is now.
    Level = 2,
    /// How much there was until now.
    Counter = 7,
    /// Something else.
    Generic = 10,
}

/// Values of a variable.
#[derive(Debug, Clone, PartialEq)]
pub enum Values {
    /// Numbers of states.
    States(Vec<i32>),
    /// Counts.
    Whole(Vec<u64>),
    /// Ratios.
    Real(Vec<f64>),
}

/// How a variable is read.
#[derive(Clone, Copy)]
enum Reader {
    /// The number of each rail.
    Rails,
    /// A count of each rail.
    Rail(fn(&RailInfo) -> u64),
    /// Entries of a packet, of each rail.
    Aggregation,
    /// How far times of each rail are from predicted ones, at the peer where they are farthest.
    Errors,
    /// A count of each peer.
    Peer(fn(&Traffic) -> u64),
    /// A count of the thread that moves messages while the program computes.
    Helper(fn(&Helped) -> u64),
}

/// A performance variable.
pub struct Performance {
    /// Its name.
    pub name: &'static str,
    /// Its meaning.
    pub about: &'static str,
    /// For whom it is.
    pub verbosity: Verbosity,
    reader: Reader,
    /// What kind of value it has.
    pub kind: Kind,
}

const fn variable(name: &'static str, kind: Kind, reader: Reader, about: &'static str) -> Performance {
    let verbosity = match kind {
        Kind::Counter => Verbosity::UserDetail,
        _ => Verbosity::TunerBasic,
    };
    Performance { name, about, verbosity, reader, kind }
}

/// All of them.
pub(crate) const ALL: [Performance; 32] = [
    variable(
        "nmad_rail",
        Kind::State,
        Reader::Rails,
        "Rails of this process; the enumeration has their names",
    ),
    variable(
        "nmad_rail_packets",
        Kind::Counter,
        Reader::Rail(|rail| rail.counters.packets),
        "Packets that each rail has sent",
    ),
    variable(
        "nmad_rail_packet_bytes",
        Kind::Counter,
        Reader::Rail(|rail| rail.counters.packet_bytes),
        "Bytes of those packets, headers included",
    ),
    variable(
        "nmad_rail_entries",
        Kind::Counter,
        Reader::Rail(|rail| rail.counters.entries),
        "Messages and control frames in those packets",
    ),
    variable(
        "nmad_rail_aggregation",
        Kind::Generic,
        Reader::Aggregation,
        "Messages and control frames for each packet that was sent; zero if there was none",
    ),
    variable(
        "nmad_rail_chunks",
        Kind::Counter,
        Reader::Rail(|rail| rail.counters.chunks),
        "Chunks of large messages that each rail has sent",
    ),
    variable(
        "nmad_rail_chunk_bytes",
        Kind::Counter,
        Reader::Rail(|rail| rail.counters.chunk_bytes),
        "Bytes of those chunks",
    ),
    variable(
        "nmad_rail_accesses",
        Kind::Counter,
        Reader::Rail(|rail| rail.counters.accesses),
        "Accesses to memory of other processes that the network did without their help",
    ),
    variable(
        "nmad_rail_access_bytes",
        Kind::Counter,
        Reader::Rail(|rail| rail.counters.access_bytes),
        "Bytes of those accesses",
    ),
    variable(
        "nmad_rail_packets_received",
        Kind::Counter,
        Reader::Rail(|rail| rail.counters.packets_in),
        "Packets that have arrived on each rail",
    ),
    variable(
        "nmad_rail_chunks_received",
        Kind::Counter,
        Reader::Rail(|rail| rail.counters.chunks_in),
        "Chunks of large messages that have arrived on each rail",
    ),
    variable(
        "nmad_rail_resent",
        Kind::Counter,
        Reader::Rail(|rail| rail.counters.resent),
        "Packets and chunks that were sent again on each rail",
    ),
    variable(
        "nmad_rail_resent_bytes",
        Kind::Counter,
        Reader::Rail(|rail| rail.counters.again_bytes),
        "Bytes that were sent again on each rail",
    ),
    variable(
        "nmad_rail_taken_over",
        Kind::Counter,
        Reader::Rail(|rail| rail.counters.replayed),
        "Packets and chunks that each rail has taken over from rails that stopped",
    ),
    variable(
        "nmad_rail_duplicates",
        Kind::Counter,
        Reader::Rail(|rail| rail.counters.duplicates),
        "Packets and chunks that have arrived twice",
    ),
    variable(
        "nmad_rail_dropped",
        Kind::Counter,
        Reader::Rail(|rail| rail.dropped),
        "Datagrams and frames that came and were not taken",
    ),
    variable(
        "nmad_rail_left",
        Kind::Counter,
        Reader::Rail(|rail| rail.counters.left),
        "How often each rail got no new work because it seemed to have stopped",
    ),
    variable(
        "nmad_rail_returned",
        Kind::Counter,
        Reader::Rail(|rail| rail.counters.returned),
        "How often each rail was used again after that",
    ),
    variable(
        "nmad_rail_prediction_error",
        Kind::Generic,
        Reader::Errors,
        "Median of the difference between predicted and measured times of transfers, as a part of the \
         predicted time, at the peer where it is largest; zero if nothing was observed",
    ),
    variable(
        "nmad_rail_peers",
        Kind::Level,
        Reader::Rail(|rail| u64::from(rail.peers)),
        "Ranks that each rail leads to",
    ),
    variable(
        "nmad_peer_sent",
        Kind::Counter,
        Reader::Peer(|peer| peer.sent),
        "Messages sent to each process, those of collectives included; of each context modulo 2^32",
    ),
    variable(
        "nmad_peer_sent_eager",
        Kind::Counter,
        Reader::Peer(|peer| peer.sent.saturating_sub(peer.requested)),
        "Of these, messages that were sent without a request to send",
    ),
    variable(
        "nmad_peer_sent_rendezvous",
        Kind::Counter,
        Reader::Peer(|peer| peer.requested),
        "Of these, messages with a request to send",
    ),
    variable(
        "nmad_peer_blocks",
        Kind::Counter,
        Reader::Peer(|peer| peer.blocks),
        "Small blocks of derived datatypes that were sent in the packet with the request to send",
    ),
    variable(
        "nmad_peer_blocks_bytes",
        Kind::Counter,
        Reader::Peer(|peer| peer.blocks_bytes),
        "Bytes of these blocks",
    ),
    variable(
        "nmad_peer_received",
        Kind::Counter,
        Reader::Peer(|peer| peer.received),
        "Messages that have arrived from each process; of each context modulo 2^32",
    ),
    variable(
        "nmad_peer_unexpected",
        Kind::Level,
        Reader::Peer(|peer| peer.unexpected),
        "Messages of each process that wait for their receive",
    ),
    variable(
        "nmad_peer_unexpected_bytes",
        Kind::Level,
        Reader::Peer(|peer| peer.unexpected_bytes),
        "Bytes of these messages that lie in memory of the library",
    ),
    variable(
        "nmad_progress_turns",
        Kind::Counter,
        Reader::Helper(|helped| helped.turns),
        "Looks at the rails by the thread that moves messages while the program computes",
    ),
    variable(
        "nmad_progress_moved",
        Kind::Counter,
        Reader::Helper(|helped| helped.moved),
        "Of these, looks that have moved something while the program computed",
    ),
    variable(
        "nmad_progress_given_ns",
        Kind::Counter,
        Reader::Helper(|helped| helped.given_ns),
        "How long these took, in nanoseconds: work that no call of the program had to do",
    ),
    variable(
        "nmad_progress_suspensions",
        Kind::Counter,
        Reader::Helper(|helped| helped.suspensions),
        "How often that thread has stopped for a while since it cost more than it gave",
    ),
];

impl Performance {
    /// The type of its values.
    pub fn datatype(&self) -> Type {
        match self.reader {
            Reader::Rails => Type::INT,
            Reader::Rail(_) | Reader::Peer(_) | Reader::Helper(_) => Type::UNSIGNED_LONG_LONG,
            Reader::Aggregation | Reader::Errors => Type::DOUBLE,
        }
    }

    /// To what it is bound.
    pub fn binding(&self) -> Binding {
        match self.reader {
            Reader::Peer(_) => Binding::Comm,
            _ => Binding::Nothing,
        }
    }

    /// The names of its values.
    pub(crate) fn enumeration(&self) -> Option<Enumeration> {
        matches!(self.reader, Reader::Rails).then_some(Enumeration::Rails)
    }

    /// Its values: for each rail, or for each of these processes.
    ///
    /// # Errors
    /// MPI is not in use.
    pub(crate) fn read(&self, peers: &[u32]) -> Result<Values> {
        let world = world().map_err(|why| Class::T_NOT_ACCESSIBLE.error(why.text()))?;
        let rails = || world.session().rails();
        Ok(match self.reader {
            Reader::Rails => Values::States((0..rails().len() as i32).collect()),
            Reader::Rail(count) => Values::Whole(rails().iter().map(count).collect()),
            Reader::Aggregation => Values::Real(rails().iter().map(aggregation).collect()),
            Reader::Errors => Values::Real((0..rails().len()).map(|rail| error(world, rail as u8)).collect()),
            Reader::Helper(count) => Values::Whole(vec![count(&world.session().helped())]),
            Reader::Peer(count) => {
                let traffic =
                    |&peer: &u32| world.node().with(|engine| engine.inspect().traffic(PeerId(peer)));
                Values::Whole(peers.iter().map(|peer| count(&traffic(peer).unwrap_or_default())).collect())
            }
        })
    }
}

fn aggregation(rail: &RailInfo) -> f64 {
    match rail.counters.packets {
        0 => 0.0,
        packets => rail.counters.entries as f64 / packets as f64,
    }
}

fn error(world: &World, rail: u8) -> f64 {
    let session = world.session();
    let accuracies = (0..session.size()).filter_map(|rank| session.accuracy(rail, rank));
    accuracies.filter(|accuracy| accuracy.count > 0).map(|accuracy| accuracy.median).fold(0.0, f64::max)
}
