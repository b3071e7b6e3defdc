//! The papers' hosts. The engine's own time is that of today.
//!
//! Measured on an AMD EPYC of 2026 with `budget` of this repository (release build, 2 million messages of 8 B
//! between two engines without a network, median of five): 340 ns for one message and 100 ns for one of
//! sixteen that share a packet, each with its send, its receive and its completion. Solved for what a packet
//! and what a message costs: 256 ns for a packet, half of it on each side, and 84 ns for a message, a third
//! for
//! each of send, posted receive and arrival. An Opteron of 1.8 GHz would need more: 3700 instructions are 2
//! us
//! there at one instruction a cycle. What the hardware takes is of 2006, what the engine takes of today.

use crate::machine::{Copying, Machine};

const ENGINE: Machine =
    Machine { name: "", call_ns: 28, packet_ns: 128, message_ns: 28, copy: None, bus: None, stale_ns: 0 };

/// Dual-core Opteron of 1.8 GHz: P1, P2, P3, and the cluster infini of P4. Its bus carries 2 GB/s (P2 3.2).
pub const OPTERON: Machine = Machine {
    name: "Opteron 1.8 GHz",
    copy: Some(Copying { start_ns: 10, near: 4_000_000_000, near_len: 32 << 10, far: 1_050_000_000 }),
    bus: Some(2 << 30),
    ..ENGINE
};

/// Xeon E5420: the cluster genepi of P4.
pub const E5420: Machine = Machine {
    name: "Xeon E5420",
    copy: Some(Copying { start_ns: 8, near: 4_000_000_000, near_len: 256 << 10, far: 2_300_000_000 }),
    bus: Some(5 << 30),
    ..ENGINE
};

/// Xeon X5460: the cluster joe of P4.
pub const X5460: Machine = Machine {
    name: "Xeon X5460",
    copy: Some(Copying { start_ns: 7, near: 4_500_000_000, near_len: 256 << 10, far: 2_600_000_000 }),
    ..E5420
};

/// Xeon X5650: the cluster jack of P4.
pub const X5650: Machine = Machine {
    name: "Xeon X5650",
    copy: Some(Copying { start_ns: 5, near: 7_000_000_000, near_len: 256 << 10, far: 5_000_000_000 }),
    bus: Some(10 << 30),
    ..ENGINE
};

/// A host of today, for networks of today: Zen 5, on which a `send` of 64 KiB takes 7.3 us longer than one of
/// 8 B.
pub const TODAY: Machine = Machine {
    name: "Zen 5",
    copy: Some(Copying { start_ns: 4, near: 9_000_000_000, near_len: 1 << 20, far: 6_000_000_000 }),
    ..ENGINE
};

/// The same host if the library above the network cost nothing but copies: stands in for an MPI that maps
/// requests straight to the driver.
pub fn without_engine(machine: &Machine) -> Machine {
    Machine { call_ns: 0, packet_ns: 0, message_ns: 0, ..*machine }
}
