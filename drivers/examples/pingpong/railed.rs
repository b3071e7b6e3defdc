//! The same over a rail: packets when small, chunks into an open receive region when large.

use super::way::Way;
use nmad_drivers::conformance::memory::Memory;
use nmad_drivers::interface::Interface;
use nmad_drivers::tcp::{TcpConfig, TcpRail};
use nmad_engine::packet::{Key, Packet, PeerId, RegionId};
use nmad_engine::transfer::driver::{Departure, Driver, Event, Order, Scope};
use nmad_wire::{Header, Kind};
use std::error::Error;
use std::io::{Read, Write};
use std::net::TcpStream;

/// Longest message that goes as a packet.
const EAGER: usize = 16 << 10;

/// One rail with a link to the other process.
pub struct Railed {
    rail: TcpRail,
    peer: PeerId,
    out: Memory,
    into: Memory,
    region: u64,
    key: Key,
    seen: Seen,
    spare: Option<Packet>,
}

/// Reports that the program has not asked for yet.
#[derive(Default)]
struct Seen {
    up: usize,
    sent: usize,
    came: usize,
    spare: Option<Packet>,
}

impl Railed {
    /// Opens a rail on `interface` and a link to the other process.
    pub fn open(control: &mut TcpStream, interface: Interface, first: bool) -> Result<Self, Box<dyn Error>> {
        let (me, peer) = if first { (PeerId(0), PeerId(1)) } else { (PeerId(1), PeerId(0)) };
        let mut config = TcpConfig::new(me, 0, interface, [9; 32]);
        if let Ok(policy) = std::env::var("NMAD_ENCRYPT") {
            config.encrypt = policy.parse().map_err(|_| "NMAD_ENCRYPT is off, auto or on")?;
        }
        let mut rail = TcpRail::open(config)?;
        let mut told = [b' '; 64];
        let address = rail.address();
        told[..address.len()].copy_from_slice(address.as_bytes());
        control.write_all(&told)?;
        control.read_exact(&mut told)?;
        if !rail.know(peer, 0, std::str::from_utf8(&told)?.trim()) {
            return Err("the other side is on another subnet".into());
        }
        if first {
            rail.send(Departure::Order(Order::Connect { to: peer }));
        }
        let (out, into) = (Memory::zeroed(0), Memory::zeroed(0));
        let seen = Seen::default();
        let mut railed = Railed { rail, peer, out, into, region: 0, key: Key(0), seen, spare: None };
        railed.until(|seen| seen.up > 0);
        Ok(railed)
    }

    fn until(&mut self, done: impl Fn(&Seen) -> bool) {
        while !done(&self.seen) {
            let seen = &mut self.seen;
            self.rail.poll(Scope::All, &mut |event| match event {
                Event::Moved { .. } | Event::Buffers { .. } | Event::Pushed { .. } => {}
                Event::Carrier { .. } => {}
                Event::Accessed { .. } => {}
                Event::Up { .. } => seen.up += 1,
                Event::Sent { packet, .. } => {
                    seen.sent += 1;
                    seen.spare = packet;
                }
                Event::Landed { kept, .. } => {
                    assert!(kept, "the region is open");
                    seen.came += 1;
                }
                Event::Arrived { .. } => seen.came += 1,
                Event::Lost { why, .. } => panic!("{why}"),
            });
        }
    }

    fn post(&mut self, len: usize) {
        let (to, number) = (self.peer, 0);
        if len <= EAGER {
            // The packet that came back is used again, as the engine does.
            let packet = self.seen.spare.take().or_else(|| self.spare.take()).unwrap_or_default();
            let packet = fill(packet, len);
            self.rail.send(Departure::Order(Order::Packet { to, number, packet }));
        } else {
            let from = self.out.segments();
            let (region, key) = (RegionId(self.region), self.key);
            self.rail.send(Departure::Order(Order::Chunk {
                to,
                number,
                ack: 0,
                region,
                key,
                offset: 0,
                from,
            }));
        }
        self.rail.flush();
    }
}

fn fill(mut packet: Packet, len: usize) -> Packet {
    if packet.bytes.len() != len {
        packet.bytes.clear();
        packet.bytes.extend(Header { kind: Kind::Packet, len: len as u32, number: 0, ack: 0 }.encode());
        packet.bytes.resize(len, 1);
    }
    packet
}

impl Way for Railed {
    fn prepare(&mut self, len: usize) {
        if len <= EAGER {
            return;
        }
        // The same on both sides, so keys need not be told: one is opened per preparation.
        if self.into.bytes().len() != len {
            let pair = (Memory::pattern(len, 1), Memory::zeroed(len));
            self.rail.close(RegionId(self.region));
            (self.out, self.into) = pair;
            self.region += 1;
            self.key = self.rail.open(RegionId(self.region), self.peer, self.into.segments());
        }
    }

    fn send(&mut self, len: usize) {
        self.seen.sent = 0;
        self.post(len);
        self.until(|seen| seen.sent == 1);
    }

    fn recv(&mut self, _len: usize) {
        self.until(|seen| seen.came > 0);
        self.seen.came -= 1;
    }

    fn stream(&mut self, len: usize, count: usize) {
        self.seen.sent = 0;
        let depth = self.rail.limits().depth;
        for posted in 0..count {
            self.until(|seen| posted < seen.sent + depth);
            self.post(len);
        }
        self.until(|seen| seen.sent == count);
    }
}
