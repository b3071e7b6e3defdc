//! Traffic on the wires must be well formed, within the limits of its rail, and within the credit of its
//! receiver.

use super::Objection;
use crate::key::Key;
use nmad_engine::transfer::driver::{Limits, Order};
use nmad_wire::{Frame, Header, frames};
use std::collections::{BTreeMap, BTreeSet};

/// An eager message: sender, receiver, context, place in its flow.
type Name = (usize, usize, u32, u32);

/// Looks at every order that is posted and every packet that leaves.
#[derive(Debug, Default)]
pub struct WireOracle {
    objection: Option<Objection>,
    /// Highest number that left on each direction of each link.
    highest: BTreeMap<Key, u32>,
    /// Directions of links that were opened again: orders that were given back leave a gap.
    anew: BTreeSet<Key>,
    /// Eager messages that left, and their lengths until their receive completes.
    eager: BTreeMap<Name, u64>,
    seen: BTreeSet<Name>,
    /// Bytes of eager messages from one host that another may have to keep.
    held: BTreeMap<(usize, usize), u64>,
    /// Bytes that each host is willing to keep for each peer.
    budgets: Vec<u64>,
    /// Hosts and their closed contexts, whose messages they discard.
    discards: BTreeSet<(usize, u32)>,
}

impl WireOracle {
    /// Sets the bytes that each host keeps of each peer at most; more is a violation.
    pub fn set_budgets(&mut self, budgets: Vec<u64>) {
        self.budgets = budgets;
    }

    /// Notes an objection; the first one stays.
    pub fn object(&mut self, objection: Objection) {
        self.objection.get_or_insert(objection);
    }

    /// The objection, if there is one.
    pub fn objection(&mut self) -> Option<Objection> {
        self.objection.take()
    }

    /// An order is posted on a link where `waiting` others have not left.
    pub fn posted(&mut self, key: Key, order: &Order, limits: &Limits, waiting: usize) {
        let wrong = match order {
            _ if waiting >= limits.depth => {
                Some(format!("is one too many: {waiting} wait, the link takes {}", limits.depth))
            }
            Order::Packet { number, packet, .. } => {
                let pieces: usize = packet.in_place.iter().map(|(_, data)| data.count()).sum();
                match Header::decode(&packet.bytes) {
                    Err(e) => Some(e.to_string()),
                    Ok(h) if h.number != *number => Some(format!("says #{} in its header", h.number)),
                    Ok(h) if h.len as usize != packet.len() => {
                        Some(format!("says {} B in its header and has {}", h.len, packet.len()))
                    }
                    _ if packet.len() > limits.packet => {
                        Some(format!("has {} B, the rail takes {}", packet.len(), limits.packet))
                    }
                    _ if pieces > limits.gather => {
                        Some(format!("leaves {pieces} pieces in place, the rail gathers {}", limits.gather))
                    }
                    _ => None,
                }
            }
            Order::Chunk { from, .. } if from.len() > limits.chunk => {
                Some(format!("is a chunk of {} B, the rail takes {}", from.len(), limits.chunk))
            }
            _ => None,
        };
        if let Some(wrong) = wrong {
            let number = match order {
                Order::Packet { number, .. } | Order::Chunk { number, .. } => *number,
                Order::Connect { .. } | Order::Close { .. } | Order::Accept { .. } => 0,
            };
            let Key { fabric, me, peer } = key;
            self.object(format!("order #{number} of h{me} to h{peer} on net{fabric} {wrong}"));
        }
    }

    /// The link was opened again.
    pub fn anew(&mut self, key: Key) {
        self.anew.insert(key);
    }

    /// A packet or chunk leaves; whether its number has left before.
    pub fn departed(&mut self, key: Key, number: u32) -> bool {
        match self.highest.get(&key).copied() {
            Some(highest) if number.wrapping_sub(highest).wrapping_sub(1) >= 1 << 31 => true,
            highest => {
                if !self.anew.remove(&key) && number != highest.map_or(0, |highest| highest.wrapping_add(1)) {
                    let Key { fabric, me, peer } = key;
                    self.object(format!("#{number} of h{me} to h{peer} on net{fabric} leaves a number out"));
                }
                self.highest.insert(key, number);
                false
            }
        }
    }

    /// A packet leaves; how many replays it carries.
    pub fn frames(&mut self, key: Key, packet: &[u8]) -> u64 {
        let mut replays = 0;
        for frame in frames(packet.get(Header::LEN..).unwrap_or_default()) {
            match frame {
                Err(e) => self.object(format!("h{} sends a {e}", key.me)),
                Ok(Frame::Replay(_)) => replays += 1,
                Ok(Frame::Eager(eager, _)) if eager.flags & nmad_wire::flags::UNORDERED == 0 => {
                    self.hold((key.me, key.peer, eager.context, eager.seq), u64::from(eager.len));
                }
                Ok(_) => {}
            }
        }
        replays
    }

    fn hold(&mut self, name: Name, len: u64) {
        if !self.seen.insert(name) {
            return;
        }
        let (from, to, context, _) = name;
        if self.discards.contains(&(to, context)) {
            return;
        }
        self.eager.insert(name, len);
        let held = self.held.entry((from, to)).or_default();
        *held += len;
        let (held, budget) = (*held, self.budgets.get(to).copied().unwrap_or(u64::MAX));
        if held > budget {
            self.object(format!("h{from} makes h{to} keep {held} B, more than its budget of {budget} B"));
        }
    }

    /// A host discards what it keeps and gets in these contexts from now on.
    pub fn discards(&mut self, host: usize, contexts: impl Iterator<Item = u32>) {
        self.discards.extend(contexts.map(|context| (host, context)));
        let is_discarded = |name: &Name| self.discards.contains(&(name.1, name.2));
        for (name, len) in self.eager.extract_if(.., |name, _| is_discarded(name)) {
            *self.held.entry((name.0, name.1)).or_default() -= len;
        }
    }

    /// The receive of a message has completed: it is kept no longer.
    pub fn consumed(&mut self, from: usize, to: usize, context: u32, seq: u32) {
        let name = (from, to, context, seq);
        self.seen.insert(name);
        if let Some(len) = self.eager.remove(&name) {
            *self.held.entry((from, to)).or_default() -= len;
        }
    }
}
