//! What a prediction is made from besides the pattern, and what comes of it.

use crate::stats;
use newmadeleine::engine::Forecast;
use nmad_drivers::tcp::{PACKET, TcpConfig};
use std::fmt;

/// A rail: its times and its burst.
#[derive(Debug, Clone)]
pub struct Rail {
    /// Times by length.
    pub forecast: Forecast,
    /// Bytes that it carries beyond its rate after it was idle: with a token bucket, say.
    pub burst: u64,
}

impl From<Forecast> for Rail {
    fn from(forecast: Forecast) -> Rail {
        Rail { forecast, burst: 0 }
    }
}

/// The network of a rank, and how it is used.
#[derive(Debug, Clone)]
pub struct Setting {
    /// Every rank has the same rails, and each rank its own.
    pub rails: Vec<Rail>,
    /// Longest message that goes without asking, in bytes.
    pub eager_max: u64,
    /// Longest packet, in bytes: longer eager data goes in several.
    pub packet: u64,
    /// Bytes that a rail takes before they are on the wire, as the socket of a kernel does: the end of a
    /// send is earlier by as much.
    pub swallows: u64,
    /// Longest message of the application; longer ones are cut (P5 section 5.2). None: they stay whole.
    pub fragment: Option<u64>,
    /// Messages of which a trace says how they went go so again, whatever the eager limit is.
    pub as_traced: bool,
    /// A receiver says when it posts a receive (Rtr), and the body of a message that comes later does not
    /// wait for an answer.
    pub invites: bool,
    /// Times of calls of MPI on the core, besides those of copies and rails.
    pub calls: CallTimes,
    /// All sends of a rank between two waits go on at once (P5 figure 12).
    pub parallel: bool,
    /// How ranks that share a core take turns.
    pub turns: Turns,
}

/// How the system gives a core to threads that are ready at the same time.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Turns {
    /// The period of the scheduler tick, in nanoseconds, at least 1.
    pub tick_ns: u64,
    /// Time of the first tick.
    pub first_ns: u64,
    /// Shortest turn, in nanoseconds.
    pub slice_ns: u64,
}

impl Default for Turns {
    /// Linux with 250 ticks in a second, and the slice of two to three cores (`sysctl_sched_base_slice` in
    /// kernel/sched/fair.c: 0.7 ms, times one and the logarithm of the cores to the base of 2).
    fn default() -> Turns {
        Turns { tick_ns: 4_000_000, first_ns: 4_000_000, slice_ns: 1_400_000 }
    }
}

/// Times of a call of MPI on the core of its rank.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct CallTimes {
    /// Nanoseconds before its message leaves.
    pub enter_ns: u64,
    /// Nanoseconds until the driver has taken a short packet.
    pub post_ns: u64,
    /// Picoseconds for each byte of a body, until the driver has taken it.
    pub body_ps: u64,
    /// Picoseconds for each byte of eager data, and of a body, that the receiver reads.
    pub read_ps: [u64; 2],
    /// Nanoseconds after the arrival of the last thing that it waited for.
    pub leave_ns: u64,
    /// Picoseconds for each byte of a blocking send that ends with a copy once all of it has left. Zero: it
    /// waits for its receiver.
    pub keep_ps: u64,
}

impl Setting {
    /// Rails over sockets, with this eager limit.
    pub fn of_sockets<R: Into<Rail>>(rails: Vec<R>, eager_max: u64) -> Setting {
        let swallows = TcpConfig::SEND_BUFFER as u64;
        Setting { swallows, ..Setting::new(rails, eager_max, PACKET as u64) }
    }

    /// Rails with this eager limit and this longest packet, in bytes, for programs as they are.
    pub fn new<R: Into<Rail>>(rails: Vec<R>, eager_max: u64, packet: u64) -> Setting {
        Setting {
            rails: rails.into_iter().map(R::into).collect(),
            eager_max,
            packet,
            swallows: 0,
            fragment: None,
            as_traced: true,
            invites: false,
            parallel: false,
            turns: Turns::default(),
            calls: CallTimes::default(),
        }
    }
}

/// What a rank did, and until when.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Stretch {
    /// In nanoseconds.
    pub start_ns: u64,
    /// In nanoseconds.
    pub end_ns: u64,
    /// It computed; otherwise it sent or waited.
    pub is_calculation: bool,
}

/// One rank's phase; times in nanoseconds.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct RankPhase {
    /// In sends and waits.
    pub communication_ns: u64,
    /// In calculation.
    pub calculation_ns: u64,
    /// When it is done.
    pub end_ns: u64,
    /// Messages sent, fragments counted.
    pub messages: u64,
    /// Bytes sent.
    pub bytes: u64,
    /// Of the messages, those that asked first.
    pub asked: u64,
    /// Calculation and communication, in order.
    pub stretches: Vec<Stretch>,
}

/// The phase of all ranks.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Phase {
    /// By rank.
    pub ranks: Vec<RankPhase>,
}

impl Phase {
    /// Until the last rank is done.
    pub fn duration_ns(&self) -> u64 {
        self.ranks.iter().map(|rank| rank.end_ns).max().unwrap_or(0)
    }

    /// The longest time in communication over the mean of all: 1 is balance.
    pub fn imbalance(&self) -> f64 {
        stats::imbalance(self.ranks.iter().map(|rank| rank.communication_ns)).unwrap_or(1.0)
    }
}

/// Ranks that wait for each other, or for messages that nobody sends.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Stuck(
    /// A line for each rank of the cycle, or for each that waits in vain.
    pub Vec<String>,
);

impl fmt::Display for Stuck {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "the pattern never ends:")?;
        self.0.iter().try_for_each(|line| write!(f, "\n  {line}"))?;
        write!(f, "\npost receives before blocking sends, or use isend")
    }
}

impl std::error::Error for Stuck {}
