//! Requests, answers and data that come to ranks.

use super::message::Message;
use super::predict::{Event, Model, What};
use super::rails::{Piece, Read};

impl Model<'_> {
    pub(super) fn arrives(&mut self, now: u64, number: usize, what: What) {
        let is_away = self.is_away(self.messages[number].to);
        let message = &mut self.messages[number];
        match what {
            What::Request(_) => message.is_there = true,
            What::Data(rail, len) => {
                message.missing -= 1;
                message.is_whole = message.missing == 0;
                message.is_there |= message.is_whole;
                // A body goes to its place as it comes, unless its receiver is away or a trace has the
                // times of reading.
                if !message.asks || is_away || self.hosts.is_traced() {
                    let read = Read { is_body: message.asks, is_late: is_away };
                    message.unread.push((Piece { rail, len, reaches: now }, read));
                    self.read(now, number);
                }
            }
            What::Answer(_) => {
                message.is_granted = true;
                return self.go_on(now, number);
            }
            What::End(_) => return self.at(now, Event::Sent(number)),
        }
        self.look(now, number);
    }

    /// Sends the body of a message whose answer has come, unless its sender is away.
    fn go_on(&mut self, now: u64, number: usize) {
        let Message { from, len, carried, is_granted, has_left, .. } = self.messages[number];
        if self.is_away(from) || !is_granted || has_left {
            return;
        }
        self.messages[number].has_left = true;
        let departure = self.hosts.body(now, from, (len, carried));
        self.leaves(number, &departure);
    }

    /// Whether a rank does not look at its rails: it computes, is in a call that does not wait, or has no
    /// core.
    pub(super) fn is_away(&self, rank: usize) -> bool {
        self.ranks[rank].mode.is_away() || !self.has_core(rank)
    }

    /// Copies the data of a message that has come, unless its receiver is away.
    fn read(&mut self, now: u64, number: usize) {
        if self.is_away(self.messages[number].to) {
            return;
        }
        let message = &mut self.messages[number];
        for (piece, read) in message.unread.drain(..) {
            message.placed = self.hosts.place(now, message.to, piece, read);
        }
    }

    /// Answers the request of a message, or ends its receive, unless its receiver is away.
    pub(super) fn look(&mut self, now: u64, number: usize) {
        self.read(now, number);
        let Message { to, asks, placed, is_there, is_whole, is_posted, is_answered, is_taken, .. } =
            self.messages[number];
        if self.is_away(to) || !is_there || !is_posted {
            return;
        }
        if asks && !is_answered {
            self.messages[number].is_answered = true;
            let share = self.hosts.control(now, to);
            self.reaches(share.reaches, number, What::Answer(share.rail));
        }
        if is_whole && !is_taken {
            self.messages[number].is_taken = true;
            if asks && self.setting.rails.len() > 1 {
                let share = self.hosts.control(now, to);
                self.reaches(share.reaches, number, What::End(share.rail));
            }
            self.at(placed.max(now), Event::Received(number));
        }
    }

    /// A rank has come into the library: it looks at all that waits for it.
    pub(super) fn answer(&mut self, now: u64, rank: usize) {
        for number in self.ranks[rank].begun.clone() {
            match self.messages[number].to == rank {
                true => self.look(now, number),
                false => self.go_on(now, number),
            }
        }
    }
}
