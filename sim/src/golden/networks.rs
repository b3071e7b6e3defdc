//! The papers' networks: one model each, for all experiments.
//!
//! Where a paper prints a number, it is used, and `source` says which. What none prints is assumed from what
//! such hardware was known to do, or, where one printed result leaves only one thing open, set so that this
//! one result comes out; `source` says that too, and the tables call that result `set`, not reproduced.
//!
//! The papers' MB is 2^20 bytes: in P3, 2437 KB in 1999 us and 1757 KB in 2001 us add up to 4 MB only if KB
//! is 1000 bytes and MB 2^20, and 837 MB/s is then what 1757 KB in 2001 us is.

use super::card::Card;

const MIB: u64 = 1 << 20;
const PACKET: usize = 34 << 10;

/// A card, its network, and the source of its numbers.
#[derive(Debug)]
pub struct Network {
    /// The model.
    pub card: &'static Card,
    /// The network and the card.
    pub title: &'static str,
    /// Where its numbers come from.
    pub source: &'static str,
}

/// MX on Myri-10G.
pub const MX_10G: Card = Card {
    name: "mx-10g",
    latency_ns: 1_600,
    bandwidth: 1_173 * MIB,
    send_ns: 300,
    recv_ns: 350,
    look_ns: 150,
    gap_ns: 500,
    done_ns: 0,
    depth: 1,
    pio_max: 8 << 10,
    pio_bandwidth: 900_000_000,
    copy_max: 32 << 10,
    gather_ns: 100,
    setup_ns: 5_000,
    register_ns: [500, 0],
    packet: PACKET,
    swallows: 0,
};

/// Elan on QsNet II.
pub const ELAN: Card = Card {
    name: "elan",
    latency_ns: 900,
    bandwidth: 838 * MIB,
    send_ns: 200,
    recv_ns: 150,
    look_ns: 50,
    gap_ns: 400,
    copy_max: 0,
    setup_ns: 1_500,
    register_ns: [0, 0],
    ..MX_10G
};

/// TCP on Gigabit Ethernet.
pub const TCP: Card = Card {
    name: "tcp",
    latency_ns: 18_000,
    bandwidth: 117_000_000,
    send_ns: 3_500,
    recv_ns: 3_500,
    look_ns: 800,
    gap_ns: 0,
    pio_max: 0,
    copy_max: 64 << 10,
    gather_ns: 100,
    setup_ns: 0,
    register_ns: [0, 0],
    packet: 66 << 10,
    ..MX_10G
};

/// InfiniBand SDR: InfiniHost III Ex in the cluster infini of P4.
pub const IB_SDR: Card = Card {
    name: "ib-sdr",
    latency_ns: 2_600,
    bandwidth: 905 * MIB,
    send_ns: 400,
    recv_ns: 300,
    look_ns: 80,
    gap_ns: 500,
    done_ns: 2_600,
    depth: 1,
    pio_max: 0,
    pio_bandwidth: 0,
    copy_max: 66 << 10,
    gather_ns: 100,
    setup_ns: 500,
    register_ns: [1_000, 850],
    packet: 66 << 10,
    swallows: 0,
};

/// InfiniBand DDR: ConnectX in the clusters joe and genepi of P4.
pub const IB_DDR: Card = Card {
    name: "ib-ddr",
    latency_ns: 1_100,
    bandwidth: 1_400 * MIB,
    send_ns: 250,
    recv_ns: 150,
    look_ns: 40,
    gap_ns: 200,
    done_ns: 1_100,
    gather_ns: 11,
    register_ns: [300, 0],
    ..IB_SDR
};

/// InfiniBand QDR: ConnectX-2 in the cluster jack of P4.
pub const IB_QDR: Card = Card {
    name: "ib-qdr",
    latency_ns: 900,
    bandwidth: 2_900 * MIB,
    send_ns: 200,
    recv_ns: 120,
    done_ns: 900,
    gather_ns: 1,
    ..IB_DDR
};

/// InfiniBand DDR as its driver on genepi makes it: pieces left in place and registration are expensive.
pub const IB_GENEPI: Card =
    Card { name: "ib-ddr/g", gather_ns: 1_000, register_ns: [1_000, 2_000], ..IB_DDR };

/// TCP of today on 1 Gbit/s, as in the testbed between two hosts that spin: a system call takes 2.2 us, a
/// message of 8 B 2.4 to 3.4 us from memory to memory; packets and the room of the socket are the driver's.
pub const TCP_1G: Card = Card {
    name: "tcp-1g",
    latency_ns: 300,
    bandwidth: 125_000_000,
    send_ns: 2_200,
    recv_ns: 400,
    look_ns: 150,
    gather_ns: 50,
    depth: 4,
    copy_max: 0,
    packet: 72 << 10,
    swallows: 640 << 10,
    ..TCP
};

/// The same on 2.8 Gbit/s.
pub const TCP_3G: Card = Card { name: "tcp-2.8g", bandwidth: 350_000_000, ..TCP_1G };

/// The same on 4 Gbit/s.
pub const TCP_4G: Card = Card { name: "tcp-4g", bandwidth: 500_000_000, ..TCP_1G };

/// The papers' networks.
pub const ALL: [Network; 7] = [
    Network {
        card: &MX_10G,
        title: "MX 1.2 on Myri-10G",
        source: "bandwidth: P3 figure 8 (1170 MB/s); PIO to 8 KiB: P2 3.2; latency: P2's 2.8 us less P1's \
         overhead; \
                 copies to 32 KiB and a handshake of its own beyond: MX, seen in P4 figure 20; rest assumed",
    },
    Network {
        card: &ELAN,
        title: "Elan on QsNet II (QM500)",
        source: "bandwidth: P3 figure 8 (837 MB/s); PIO to 8 KiB: P2 3.2; latency: P2's 1.7 us less P1's \
         overhead; no copies and no registration (the card has an MMU); rest assumed",
    },
    Network {
        card: &TCP,
        title: "TCP on Gigabit Ethernet",
        source: "assumed (P1 names it only); the slow third network of the weighted formula",
    },
    Network {
        card: &IB_SDR,
        title: "InfiniBand SDR, InfiniHost III Ex (infini)",
        source: "assumed but for registration, anew for each large message: set by P4 figure 12 (17 KB)",
    },
    Network {
        card: &IB_DDR,
        title: "InfiniBand DDR, ConnectX (joe)",
        source: "assumed but for pieces in place: set by P4's threshold of 49 bytes",
    },
    Network {
        card: &IB_GENEPI,
        title: "InfiniBand DDR, ConnectX (genepi)",
        source: "as on joe, but for pieces in place, set by P4's threshold of 4 KB, and registration, anew \
         for each large message: set by figure 10",
    },
    Network {
        card: &IB_QDR,
        title: "InfiniBand QDR, ConnectX-2 (jack)",
        source: "assumed but for pieces in place: set by P4's threshold of 8 bytes",
    },
];
