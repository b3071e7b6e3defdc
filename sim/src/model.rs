//! What a network costs: models that stand in for hardware.
//!
//! A model answers for one kind of network how long the wire, the DMA engine and the caller's core take
//! for a number of bytes. It knows nothing of links or packets, and of hosts only that they copy: how fast is
//! the business of a [`crate::machine::Machine`].

use nmad_engine::transfer::access::RemoteAccess;
use nmad_engine::transfer::driver::{Limits, Reads};
use std::fmt::Debug;

/// One post to a rail.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Load {
    /// Bytes, headers included.
    pub len: u64,
    /// Pieces of user memory that a packet leaves in place.
    pub pieces: usize,
    /// Part of a large message for a receive region, not a packet.
    pub chunk: bool,
}

/// What giving it costs.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Posting {
    /// Time of the sender's core: the call, and with PIO every byte.
    pub core_ns: u64,
    /// Bytes that the sender's core copies for the interface, at the speed of its machine.
    pub copied: u64,
    /// The core itself writes the bytes to the interface: they are on their way while it does.
    pub by_core: bool,
    /// Time from the end of the core's part until the first byte moves: fetching, handshakes of the driver.
    pub setup_ns: u64,
}

/// What taking from the rail costs the receiver.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Taking {
    /// Time of the receiver's core.
    pub core_ns: u64,
    /// Bytes that it copies for the interface, at the speed of its machine.
    pub copied: u64,
}

/// The cost of one kind of network; all times in nanoseconds.
pub trait Model: Debug + Send + Sync {
    /// Name for the user, for example `gm`.
    fn name(&self) -> &str;
    /// From the last byte leaving to the last byte arriving.
    fn latency_ns(&self) -> u64;
    /// Time for which the wire is busy with `len` bytes.
    fn wire_ns(&self, len: u64) -> u64;
    /// The cost of posting `load` to the rail.
    fn post(&self, load: &Load) -> Posting;
    /// The cost of taking from the rail `len` bytes of a packet or of a chunk.
    fn take(&self, len: u64, chunk: bool) -> Taking;
    /// Time of the core for looking at an interface that has nothing.
    fn look_ns(&self) -> u64 {
        20
    }
    /// Time of the core for making memory of `len` bytes reachable.
    fn open_ns(&self, len: u64) -> u64 {
        let _ = len;
        20
    }
    /// From the last byte leaving until the rail reports it as sent.
    fn done_ns(&self) -> u64 {
        0
    }
    /// Time of the interface between two things that it sends.
    fn gap_ns(&self) -> u64 {
        0
    }
    /// What such a rail can do.
    fn limits(&self) -> Limits;
    /// Bytes that the rail swallows before they are on the wire and already reports as sent, as a kernel
    /// socket does.
    fn swallows(&self) -> u64;
    /// Chunks reach their receive region without the receiver's core.
    fn remote_write(&self) -> bool;
    /// The slow side of chance: each arrival is late by up to this much.
    fn jitter_ns(&self) -> u64;
}

/// A network whose times are straight lines with a knee where PIO ends and DMA begins.
#[derive(Debug, Clone)]
pub struct Line {
    /// Name for the user.
    pub name: &'static str,
    /// See [`Model::latency_ns`].
    pub latency_ns: u64,
    /// Bandwidth of the wire in bytes per second.
    pub bandwidth: u64,
    /// Up to this many bytes the core itself writes to the interface.
    pub pio_max: u64,
    /// Bandwidth of the core when it does, in bytes per second.
    pub pio_bandwidth: u64,
    /// Cost of a post besides its bytes.
    pub post_ns: u64,
    /// Cost of an arrival besides its bytes.
    pub poll_ns: u64,
    /// Bandwidth of the receiver's copy; zero: it does not copy.
    pub copy_bandwidth: u64,
    /// See [`Model::swallows`].
    pub swallows: u64,
    /// See [`Model::remote_write`].
    pub remote_write: bool,
    /// See [`Model::jitter_ns`].
    pub jitter_ns: u64,
    /// Longest packet in bytes.
    pub packet: usize,
    /// Longest chunk in bytes.
    pub chunk: u64,
    /// Pieces that a packet may leave in place.
    pub gather: usize,
    /// Orders per link before the first must be sent.
    pub depth: usize,
    /// Datagrams.
    pub lossy: bool,
    /// Shared memory: the core brings a packet to its receiver itself.
    pub inject: bool,
    /// Which messages their receivers read from their senders' memory.
    pub reads: Reads,
}

/// Nanoseconds for `len` bytes at `bandwidth` bytes per second; none if the bandwidth is zero.
pub fn time(len: u64, bandwidth: u64) -> u64 {
    (u128::from(len) * 1_000_000_000).checked_div(u128::from(bandwidth)).unwrap_or(0) as u64
}

impl Model for Line {
    fn name(&self) -> &str {
        self.name
    }

    fn latency_ns(&self) -> u64 {
        self.latency_ns
    }

    fn wire_ns(&self, len: u64) -> u64 {
        time(len, self.bandwidth)
    }

    fn post(&self, load: &Load) -> Posting {
        let bytes_ns = if load.len <= self.pio_max { time(load.len, self.pio_bandwidth) } else { 0 };
        Posting { core_ns: self.post_ns + bytes_ns, ..Posting::default() }
    }

    fn take(&self, len: u64, chunk: bool) -> Taking {
        let by_core = if chunk && self.remote_write { 0 } else { len };
        Taking { core_ns: self.poll_ns + time(by_core, self.copy_bandwidth), copied: 0 }
    }

    fn limits(&self) -> Limits {
        Limits {
            packet: self.packet,
            chunk: self.chunk,
            gather: self.gather,
            depth: self.depth,
            lossy: self.lossy,
            // An interface that writes remotely has no stream that could stand still.
            push: if self.lossy || self.remote_write { 0 } else { u64::MAX },
            inject: self.inject,
            reads: self.reads,
            remote: if self.reads == Reads::Never { RemoteAccess::None } else { RemoteAccess::Copies },
            bandwidth: self.bandwidth,
            latency_ns: self.latency_ns,
            ..Limits::default()
        }
    }

    fn swallows(&self) -> u64 {
        self.swallows
    }

    fn remote_write(&self) -> bool {
        self.remote_write
    }

    fn jitter_ns(&self) -> u64 {
        self.jitter_ns
    }
}

const MYRINET: Line = Line {
    name: "mx",
    latency_ns: 2_300,
    bandwidth: 1_170_000_000,
    pio_max: 128,
    pio_bandwidth: 400_000_000,
    post_ns: 300,
    poll_ns: 200,
    copy_bandwidth: 3_000_000_000,
    swallows: 0,
    remote_write: true,
    jitter_ns: 200,
    packet: 32 << 10,
    chunk: 1 << 20,
    gather: 8,
    depth: 8,
    lossy: false,
    inject: false,
    reads: Reads::Never,
};

/// Datagrams, as of UDP on Ethernet.
pub const LOSSY: Line = Line {
    name: "udp",
    latency_ns: 12_000,
    bandwidth: 1_200_000_000,
    pio_max: u64::MAX,
    pio_bandwidth: 10_000_000_000,
    post_ns: 1_700,
    poll_ns: 600,
    swallows: 64 << 10,
    remote_write: false,
    jitter_ns: 3_000,
    packet: 1472,
    chunk: 8_000,
    gather: 4,
    depth: 64,
    lossy: true,
    ..MYRINET
};

/// Memory that the processes of one node share.
pub const SHARED_MEMORY: Line = Line {
    name: "shm",
    latency_ns: 150,
    bandwidth: 12_000_000_000,
    pio_max: u64::MAX,
    pio_bandwidth: 12_000_000_000,
    post_ns: 60,
    poll_ns: 40,
    copy_bandwidth: 12_000_000_000,
    jitter_ns: 30,
    packet: 4 << 10,
    chunk: 128 << 10,
    gather: 4,
    depth: 16,
    // What its cores bring leaves at once, and long messages may be pushed.
    remote_write: false,
    inject: true,
    reads: Reads::From(2 << 10),
    ..MYRINET
};

/// The kinds of networks from which a scenario draws: unlike each other in every respect that the engine
/// could depend on.
pub const KINDS: [Line; 7] = [
    MYRINET,
    Line {
        name: "elan",
        latency_ns: 1_300,
        bandwidth: 900_000_000,
        pio_max: 1024,
        packet: 16 << 10,
        chunk: 256 << 10,
        gather: 2,
        depth: 2,
        ..MYRINET
    },
    Line {
        name: "sisci",
        latency_ns: 1_500,
        bandwidth: 320_000_000,
        pio_max: 8 << 10,
        remote_write: false,
        packet: 8 << 10,
        chunk: 64 << 10,
        gather: 0,
        depth: 1,
        ..MYRINET
    },
    Line {
        name: "tcp-fast",
        latency_ns: 9_000,
        bandwidth: 5_000_000_000,
        pio_max: u64::MAX,
        pio_bandwidth: 10_000_000_000,
        post_ns: 2_000,
        poll_ns: 700,
        swallows: 512 << 10,
        remote_write: false,
        jitter_ns: 4_000,
        packet: 64 << 10,
        chunk: 4 << 20,
        gather: 64,
        depth: 32,
        ..MYRINET
    },
    Line {
        name: "tcp-slow",
        latency_ns: 45_000,
        bandwidth: 117_000_000,
        pio_max: u64::MAX,
        pio_bandwidth: 10_000_000_000,
        post_ns: 2_500,
        poll_ns: 900,
        swallows: 128 << 10,
        remote_write: false,
        jitter_ns: 20_000,
        packet: 64 << 10,
        chunk: 1 << 20,
        gather: 16,
        depth: 16,
        ..MYRINET
    },
    SHARED_MEMORY,
    LOSSY,
];
