//! Result of a probe: method, size, time and its spread.

/// Length in bytes of the message that is measured in blocks of several sizes: long enough that drivers
/// choose for each block, and that blocks count beside the start.
pub const BLOCKS_LEN: u64 = 64 << 10;
/// Shortest and longest block that is measured.
pub const BLOCKS: (u64, u64) = (64, 16 << 10);

/// Distance of two cores, on which the time to hand over work depends.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Pair {
    /// The cores share a cache, as the hardware threads of one core do.
    Cache,
    /// The cores are in one socket.
    Socket,
    /// The cores are in different sockets.
    Across,
    /// The system does not report the arrangement of its cores.
    Unknown,
    /// The other core computes, wherever it is: its thread has to be preempted (P3 section III-D).
    Busy,
}

impl Pair {
    /// All pairs, the nearest first.
    pub const ALL: [Pair; 5] = [Pair::Cache, Pair::Socket, Pair::Across, Pair::Unknown, Pair::Busy];

    /// The pairs whose other core is idle, the nearest first.
    pub const IDLE: [Pair; 4] = [Pair::Cache, Pair::Socket, Pair::Across, Pair::Unknown];

    /// Returns the name for the user.
    pub const fn name(self) -> &'static str {
        match self {
            Pair::Cache => "same cache",
            Pair::Socket => "same socket",
            Pair::Across => "across sockets",
            Pair::Unknown => "unknown arrangement",
            Pair::Busy => "core that computes",
        }
    }
}

/// A method of transferring or copying data that is measured separately (P4 section III-A).
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Method {
    /// A message in a packet, its data copied behind the header: half a round trip.
    Copy,
    /// A message in a packet, its data sent in place (an iovec): half a round trip.
    InPlace,
    /// A message by rendezvous (Rts, Cts): half a round trip.
    Rendezvous,
    /// A message whose data follows its Rts without waiting for a Cts (see `limits.push`): half a round
    /// trip.
    Pushed,
    /// A message that its receiver reads from the sender's memory (see `limits.reads`): half a round trip.
    Read,
    /// Two messages of this size in two packets: half a round trip of both.
    Pair,
    /// Two messages of this size in one packet: half a round trip of both.
    Aggregate,
    /// A large message of [`BLOCKS_LEN`] bytes in blocks of this size that lie apart in memory on both sides,
    /// which the drivers copy together: half a round trip.
    Packed,
    /// A message as for [`Method::Packed`], whose blocks the drivers leave in place: half a round trip.
    Gathered,
    /// Posting a message in a packet: how long the call keeps the core (LogP's overhead).
    Post,
    /// Copying from memory to memory, neither of them in a near cache; a property of the host, not of the
    /// rail.
    Memcpy,
    /// Handing a task to a core that spins, between such a pair of cores, or to one that computes
    /// ([`Pair::Busy`]): from the offer until that core begins to post. The size is always zero.
    HandOff(Pair),
}

impl Method {
    /// All methods, in the order of their names in files.
    pub const ALL: [Method; 16] = [
        Method::Copy,
        Method::InPlace,
        Method::Rendezvous,
        Method::Pushed,
        Method::Read,
        Method::Pair,
        Method::Aggregate,
        Method::Packed,
        Method::Gathered,
        Method::Post,
        Method::Memcpy,
        Method::HandOff(Pair::Cache),
        Method::HandOff(Pair::Socket),
        Method::HandOff(Pair::Across),
        Method::HandOff(Pair::Unknown),
        Method::HandOff(Pair::Busy),
    ];

    /// Returns the name in profile files and for the user.
    pub const fn name(self) -> &'static str {
        match self {
            Method::Copy => "copy",
            Method::InPlace => "in-place",
            Method::Rendezvous => "rendezvous",
            Method::Pushed => "pushed",
            Method::Read => "read",
            Method::Pair => "pair",
            Method::Aggregate => "aggregate",
            Method::Packed => "blocks-packed",
            Method::Gathered => "blocks-gathered",
            Method::Post => "post",
            Method::Memcpy => "memcpy",
            Method::HandOff(Pair::Cache) => "hand-off-cache",
            Method::HandOff(Pair::Socket) => "hand-off-socket",
            Method::HandOff(Pair::Across) => "hand-off-across",
            Method::HandOff(Pair::Unknown) => "hand-off",
            Method::HandOff(Pair::Busy) => "hand-off-preempt",
        }
    }

    /// Returns the method with this name.
    pub fn named(name: &str) -> Option<Method> {
        Method::ALL.into_iter().find(|method| method.name() == name)
    }

    pub(super) const fn index(self) -> usize {
        match self {
            Method::Copy => 0,
            Method::InPlace => 1,
            Method::Rendezvous => 2,
            Method::Pushed => 3,
            Method::Read => 4,
            Method::Pair => 5,
            Method::Aggregate => 6,
            Method::Packed => 7,
            Method::Gathered => 8,
            Method::Post => 9,
            Method::Memcpy => 10,
            Method::HandOff(pair) => 11 + pair as usize,
        }
    }

    /// Whether it is a message with a request to send and a body.
    pub(crate) const fn is_large(self) -> bool {
        matches!(self, Method::Rendezvous | Method::Pushed | Method::Packed | Method::Gathered)
    }

    /// Whether the size of its samples is that of the blocks of a message, not of the message.
    pub const fn has_blocks(self) -> bool {
        matches!(self, Method::Packed | Method::Gathered)
    }
}

/// The time of one method at one size, from several repetitions.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Sample {
    /// Bytes of data (of each message, where there are two).
    pub len: u64,
    /// The time that counts, in nanoseconds: the median, or the first quartile of a visit that was probed.
    pub ns: u64,
    /// First quartile in nanoseconds.
    pub low_ns: u64,
    /// Third quartile in nanoseconds.
    pub high_ns: u64,
    /// Repetitions it comes from.
    pub count: u32,
}

impl Sample {
    /// Longest size that is measured, in bytes.
    pub const LEN_MAX: u64 = 1 << 40;
    /// Longest time of a sample, in nanoseconds: about 18 minutes, longer than any transfer.
    pub const NS_MAX: u64 = 1 << 40;

    /// Makes the sample of these repetitions and sorts them; `None` without any.
    pub fn of(len: u64, times_ns: &mut [u64]) -> Option<Sample> {
        times_ns.sort_unstable();
        let at = |quarter: usize| times_ns.get((times_ns.len().checked_sub(1)?) * quarter / 4).copied();
        let bound = |ns: u64| ns.clamp(1, Self::NS_MAX);
        let count = u32::try_from(times_ns.len()).unwrap_or(u32::MAX);
        Some(Sample { len, ns: bound(at(2)?), low_ns: bound(at(1)?), high_ns: bound(at(3)?), count })
    }

    /// Makes the sample of a visit of a probe, whose time is the first quartile: noise only adds, and on a
    /// busy core it hits every second repetition.
    pub(super) fn low_of(len: u64, times_ns: &mut [u64]) -> Option<Sample> {
        Sample::of(len, times_ns).map(|sample| Sample { ns: sample.low_ns, ..sample })
    }

    /// Returns half of the interquartile range relative to the median: 0.02 means that half of the
    /// repetitions lie within about 2 percent.
    pub fn spread(&self) -> f64 {
        (self.high_ns - self.low_ns) as f64 / 2.0 / self.ns as f64
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_sample_is_the_median_between_its_quartiles() {
        let sample = Sample::of(8, &mut [50, 10, 40, 20, 30]).unwrap();
        assert_eq!(sample, Sample { len: 8, ns: 30, low_ns: 20, high_ns: 40, count: 5 });
        assert!((sample.spread() - 1.0 / 3.0).abs() < 1e-9);
        assert_eq!(Sample::of(8, &mut []), None);
        assert_eq!(Sample::of(0, &mut [0]).unwrap().ns, 1, "no time is zero");
    }

    #[test]
    fn methods_are_found_by_name() {
        for method in Method::ALL {
            assert_eq!(Method::named(method.name()), Some(method));
            assert_eq!(Method::ALL[method.index()], method);
        }
        assert_eq!(Method::named("eager"), None);
    }
}
