//! A network card of the papers' time: PIO below a size, DMA above it, and what its driver adds.

use crate::machine::Machine;
use crate::model::{Load, Model, Posting, Taking, time};
use nmad_engine::transfer::driver::Limits;

/// The cost of one kind of card with its driver; times in nanoseconds, lengths in bytes, rates in bytes per
/// second.
#[derive(Debug, Clone)]
pub struct Card {
    /// Short name, for example `mx-10g`.
    pub name: &'static str,
    /// From the last byte leaving to the last byte arriving.
    pub latency_ns: u64,
    /// Bandwidth of wire and card together.
    pub bandwidth: u64,
    /// The driver's part of a post on the core.
    pub send_ns: u64,
    /// The driver's part of an arrival on the core.
    pub recv_ns: u64,
    /// Looking at a card that has nothing.
    pub look_ns: u64,
    /// The card's own time between two things that it sends.
    pub gap_ns: u64,
    /// From the last byte leaving until the driver says so: some wait for the other side's answer.
    pub done_ns: u64,
    /// Orders that the driver takes before the first is done. The papers' library gives a card one at a time
    /// (P1 section 3.1).
    pub depth: usize,
    /// Up to this length the core itself writes the bytes to the card (PIO).
    pub pio_max: u64,
    /// How fast it does.
    pub pio_bandwidth: u64,
    /// Between PIO and this length the driver copies packets into memory that the card can reach; they are
    /// copied out again on the other side.
    pub copy_max: u64,
    /// Each piece of a packet that is left in place.
    pub gather_ns: u64,
    /// Before the first byte of a chunk, or of a packet that is not copied, moves: the driver's own
    /// handshake, or fetching a descriptor.
    pub setup_ns: u64,
    /// Making memory reachable for the card, on the core of each side of a large message: in all, and for
    /// each page of 4 KiB.
    pub register_ns: [u64; 2],
    /// Longest packet.
    pub packet: usize,
    /// A stream of the kernel: cores copy all bytes in and out, a body may follow its request to send without
    /// an answer, and the socket takes this number of bytes before they are on the wire. Zero: a card that
    /// reads and writes memory.
    pub swallows: u64,
}

impl Card {
    /// A packet of `len` bytes straight from one card to the other, without the engine: what a library that
    /// adds nothing reaches.
    pub fn bare_ns(&self, machine: &Machine, len: u64) -> u64 {
        let posting = self.post(&Load { len, pieces: 0, chunk: len as usize > self.packet });
        let taking = self.take(len, len as usize > self.packet);
        let wire_ns = self.wire_ns(len);
        let on_wire = if posting.by_core { wire_ns.saturating_sub(posting.core_ns) } else { wire_ns };
        let sender = posting.core_ns + machine.copy_ns(posting.copied) + posting.setup_ns;
        let receiver = self.look_ns + taking.core_ns + machine.copy_ns(taking.copied);
        sender + on_wire + self.latency_ns + receiver
    }

    /// Longest message that fits into a packet with what the engine adds to it.
    pub fn eager_max(&self) -> usize {
        self.packet - (2 << 10)
    }

    fn register(&self, len: u64) -> u64 {
        let [start, page] = self.register_ns;
        start + len.div_ceil(4096) * page
    }
}

impl Model for Card {
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
        let Load { len, pieces, chunk } = *load;
        let core_ns = self.send_ns + pieces as u64 * self.gather_ns;
        if self.swallows > 0 {
            return Posting { core_ns, copied: len, ..Posting::default() };
        }
        if chunk {
            let core_ns = core_ns + self.register(len);
            Posting { core_ns, setup_ns: self.setup_ns, ..Posting::default() }
        } else if len <= self.pio_max {
            let core_ns = core_ns + time(len, self.pio_bandwidth);
            Posting { core_ns, by_core: true, ..Posting::default() }
        } else {
            // Longer packets go as chunks do, but from memory that the card reaches already.
            let [copied, setup_ns] = if len <= self.copy_max { [len, 0] } else { [0, self.setup_ns] };
            Posting { core_ns, copied, setup_ns, ..Posting::default() }
        }
    }

    fn take(&self, len: u64, chunk: bool) -> Taking {
        let in_place = self.swallows == 0 && (chunk || len > self.copy_max);
        let copied = if in_place { 0 } else { len };
        Taking { core_ns: self.recv_ns, copied }
    }

    fn look_ns(&self) -> u64 {
        self.look_ns
    }

    fn open_ns(&self, len: u64) -> u64 {
        self.register(len)
    }

    fn done_ns(&self) -> u64 {
        self.done_ns
    }

    fn gap_ns(&self) -> u64 {
        self.gap_ns
    }

    fn limits(&self) -> Limits {
        Limits {
            packet: self.packet,
            // The papers post each share of a message at once.
            chunk: 1 << 40,
            gather: 16,
            depth: self.depth,
            push: if self.swallows > 0 { u64::MAX } else { 0 },
            bandwidth: self.bandwidth,
            latency_ns: self.latency_ns,
            ..Limits::default()
        }
    }

    fn swallows(&self) -> u64 {
        self.swallows
    }

    fn remote_write(&self) -> bool {
        self.swallows == 0
    }

    fn jitter_ns(&self) -> u64 {
        0
    }
}
