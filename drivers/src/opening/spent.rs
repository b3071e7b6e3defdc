//! Replay protection: hellos that have been used. A process that replays a recorded hello gains nothing.

use hashbrown::HashMap;
use nmad_wire::Hello;
use std::collections::VecDeque;

/// Hellos remembered per rank. A rank creates a new one for each try to open a link.
const EACH: usize = 16;

/// The nonces of used hellos, by rank of their sender. Only valid hellos are added, so the number of ranks
/// is limited by the size of the job.
#[derive(Debug, Default)]
pub(super) struct Spent {
    nonces: HashMap<u32, VecDeque<[u8; 32]>>,
}

impl Spent {
    /// Returns whether this hello was used.
    pub(super) fn has(&self, hello: &Hello) -> bool {
        self.nonces.get(&hello.from).is_some_and(|nonces| nonces.contains(&hello.nonce))
    }

    /// Marks this hello as used.
    pub(super) fn add(&mut self, hello: &Hello) {
        if self.has(hello) {
            return;
        }
        let nonces = self.nonces.entry(hello.from).or_default();
        if nonces.len() == EACH {
            nonces.pop_front();
        }
        nonces.push_back(hello.nonce);
    }
}
