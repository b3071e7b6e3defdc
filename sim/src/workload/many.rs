//! Acts in which receives take from anybody.
//!
//! They have a context of their own, since a message of a later act must not take their receives, and their
//! sends are waited for at the end of the act only: which receive a message gets is not known.

use super::Op;
use super::act::Author;

impl Author {
    /// Everybody sends to one host, which takes whatever comes.
    pub(super) fn many_to_one(&mut self) {
        let context = self.closing_context();
        let root = self.rng.index(self.hosts);
        let mut letters = Vec::new();
        for from in (0..self.hosts).filter(|&from| from != root) {
            for _ in 0..self.rng.range(1, 12) {
                let mut letter = self.letter(from, root);
                letter.context = context;
                letters.push(letter);
            }
        }
        self.rng.shuffle(&mut letters);
        let room = letters.iter().map(|letter| letter.len).max().unwrap_or(0);
        // Memory of the root is bounded: with long messages some are cut.
        let room = room.min((8 << 20) / letters.len() as u64);
        let early = self.rng.percent(50);
        let mut receives: Vec<Op> = Vec::new();
        for letter in &letters {
            let recv = self.recv(root, None, context, None, room);
            let send = self.send(letter);
            if early {
                self.post(recv);
            }
            self.post(send);
            if !early {
                receives.push(recv);
            } else if self.rng.percent(20) {
                self.wait(recv);
            }
        }
        if !early {
            self.compute(root);
        }
        receives.into_iter().for_each(|recv| self.post(recv));
    }

    /// Receives from anybody, but with tags of their own.
    pub(super) fn named_from_anybody(&mut self) {
        let context = self.closing_context();
        for _ in 0..self.rng.range(2, 25) {
            let (from, to) = self.two_hosts();
            let mut letter = self.letter(from, to);
            (letter.context, letter.tag) = (context, self.fresh_tag());
            let send = self.send(&letter);
            let recv = self.recv(to, None, context, Some(letter.tag), letter.len);
            self.post(recv);
            self.post(send);
            if self.rng.percent(20) {
                self.wait(recv);
            }
        }
    }
}
