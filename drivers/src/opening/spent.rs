//! Hellos that lead nowhere any more: a process that has recorded one gains nothing by saying it again.

use hashbrown::HashMap;
use nmad_wire::Hello;
use std::collections::VecDeque;

/// Hellos of one rank that are remembered. A rank makes a new one for each try to open a link.
const EACH: usize = 16;

/// The nonces of hellos, by the rank that has made them. Only sealed ones count, so there are as many ranks
/// as the job has.
#[derive(Debug, Default)]
pub(super) struct Spent {
    nonces: HashMap<u32, VecDeque<[u8; 32]>>,
}

impl Spent {
    /// Whether this hello leads nowhere.
    pub(super) fn has(&self, hello: &Hello) -> bool {
        self.nonces.get(&hello.from).is_some_and(|nonces| nonces.contains(&hello.nonce))
    }

    /// From now on this hello leads nowhere.
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
