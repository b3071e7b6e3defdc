//! Acts with incremental messages: packed part by part on one side, unpacked part by part on the other.

use super::Part;
use super::act::Author;

impl Author {
    /// Incremental messages from one host to another. They have a context of their own, so that the place
    /// of each in its flow is known here.
    pub(super) fn packed(&mut self) {
        let context = self.fresh_context();
        let (from, to) = self.two_hosts();
        for first in 0..self.rng.range(1, 5) as u32 {
            let message = self.fresh_message();
            let parts = self.rng.range(1, 7) as u32;
            // The receiver may have to see the first part before it knows where the others go.
            let express = self.rng.percent(40);
            for index in 0..parts {
                let mut letter = self.letter(from, to);
                (letter.context, letter.tag) = (context, u64::from(first % 2));
                let (send, recv) = (self.send(&letter), self.recv_of(&letter, Some(letter.tag)));
                for op in [send, recv] {
                    self.plan.asks[op].part = Some(Part { message, first, index, last: index + 1 == parts });
                }
                if self.rng.percent(10) {
                    self.compute(from);
                }
                self.post(send);
                self.post(recv);
                if express && index == 0 {
                    self.wait(recv);
                }
            }
        }
    }
}
