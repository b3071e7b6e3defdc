//! Acts in which every receive names its sender.

use super::act::Author;
use super::{Op, Step};

impl Author {
    /// Everybody exchanges an empty message with everybody, so that all links are open.
    pub(super) fn meet(&mut self) {
        for to in 0..self.hosts {
            for from in (0..self.hosts).filter(|&from| from != to) {
                let mut letter = self.letter(from, to);
                (letter.len, letter.tag, letter.hints) = (0, 0, Default::default());
                if !letter.allows_any_tag() {
                    letter.context = self.first_context();
                }
                let (send, recv) = (self.send(&letter), self.recv_of(&letter, Some(0)));
                self.post(send);
                self.post(recv);
            }
        }
    }

    /// Messages among random pairs. The k-th receive of a flow takes the k-th message, by its tag or by a
    /// wildcard, so that it does not matter which of them block.
    pub(super) fn mix(&mut self) {
        for _ in 0..self.rng.range(5, 80) {
            let (from, to) = self.two_hosts();
            let letter = self.letter(from, to);
            let takes_any = self.rng.percent(20) && letter.allows_any_tag();
            let tag = if takes_any { None } else { Some(letter.tag) };
            let (send, recv) = (self.send(&letter), self.recv_of(&letter, tag));
            for host in [from, to] {
                if self.rng.percent(8) {
                    self.compute(host);
                }
            }
            self.post(recv);
            self.post(send);
            for op in [send, recv] {
                if self.rng.percent(25) {
                    self.wait(op);
                }
            }
        }
    }

    /// One message there, one back.
    pub(super) fn ping_pong(&mut self) {
        let (a, b) = self.two_hosts();
        let early = self.rng.percent(30);
        for round in 0..self.rng.range(2, 30) {
            let (from, to) = if round % 2 == 0 { (a, b) } else { (b, a) };
            let letter = self.letter(from, to);
            let (send, recv) = (self.send(&letter), self.recv_of(&letter, Some(letter.tag)));
            self.post(recv);
            self.post(send);
            self.wait(recv);
            if !early {
                self.wait(send);
            }
        }
    }

    /// Windows of messages in one direction, received early or late.
    pub(super) fn stream(&mut self) {
        let (from, to) = self.two_hosts();
        let late = self.rng.percent(40);
        for _ in 0..self.rng.range(1, 4) {
            let window = self.rng.range(1, 40);
            let pairs: Vec<(Op, Op)> = (0..window)
                .map(|_| {
                    let letter = self.letter(from, to);
                    (self.send(&letter), self.recv_of(&letter, Some(letter.tag)))
                })
                .collect();
            if late {
                self.compute(to);
            }
            for &(send, recv) in &pairs {
                self.post(send);
                self.post(recv);
            }
            if self.rng.percent(50) {
                for (send, recv) in pairs {
                    self.wait(send);
                    self.wait(recv);
                }
            }
        }
    }

    /// Receives posted in another order than the sends; tags of their own tell them apart.
    pub(super) fn shuffled(&mut self) {
        let (from, to) = self.two_hosts();
        let mut receives = Vec::new();
        for _ in 0..self.rng.range(2, 30) {
            let mut letter = self.letter(from, to);
            letter.tag = self.fresh_tag();
            let (send, recv) = (self.send(&letter), self.recv_of(&letter, Some(letter.tag)));
            self.post(send);
            receives.push(recv);
        }
        self.rng.shuffle(&mut receives);
        if self.rng.percent(50) {
            self.compute(to);
        }
        receives.into_iter().for_each(|recv| self.post(recv));
    }

    /// Everybody sends to everybody at once.
    pub(super) fn burst(&mut self) {
        let each = self.rng.range(1, 8);
        let late = self.rng.percent(50);
        let mut receives = Vec::new();
        for from in 0..self.hosts {
            for to in (0..self.hosts).filter(|&to| to != from) {
                for _ in 0..each {
                    let letter = self.letter(from, to);
                    let (send, recv) = (self.send(&letter), self.recv_of(&letter, Some(letter.tag)));
                    if late {
                        self.post(send);
                        receives.push(recv);
                    } else {
                        self.post(recv);
                        self.post(send);
                    }
                }
            }
        }
        receives.into_iter().for_each(|recv| self.post(recv));
    }

    /// The receiver probes before it posts.
    pub(super) fn probing(&mut self) {
        for _ in 0..self.rng.range(1, 10) {
            let (from, to) = self.two_hosts();
            let letter = self.letter(from, to);
            let takes_any = self.rng.percent(30) && letter.allows_any_tag();
            let tag = if takes_any { None } else { Some(letter.tag) };
            let (send, recv) = (self.send(&letter), self.recv_of(&letter, tag));
            self.post(send);
            self.step(to, Step::Probe(recv));
            self.post(recv);
            if self.rng.percent(50) {
                self.wait(recv);
            }
        }
    }

    /// Receives that nobody sends to are cancelled, and receives that somebody sends to are cancelled too
    /// late or just in time; then the message goes to a second one.
    pub(super) fn cancelling(&mut self) {
        for _ in 0..self.rng.range(1, 8) {
            let (from, to) = self.two_hosts();
            let mut letter = self.letter(from, to);
            letter.tag = self.fresh_tag();
            let recv = self.recv_of(&letter, Some(letter.tag));
            self.step(to, Step::Post(recv));
            let send = self.rng.percent(70).then(|| self.send(&letter));
            if let Some(send) = send {
                self.post(send);
            }
            if self.rng.percent(70) {
                self.compute(to);
            }
            self.step(to, Step::Cancel(recv));
            self.step(to, Step::Wait(vec![recv]));
            if send.is_some() {
                let again = self.recv_of(&letter, Some(letter.tag));
                self.step(to, Step::Again(recv, again));
                self.step(to, Step::Wait(vec![again]));
            }
        }
    }

    /// Messages that may overtake each other, told apart by tags.
    pub(super) fn unordered(&mut self) {
        let context = self.fresh_context();
        for _ in 0..self.rng.range(2, 30) {
            let (from, to) = self.two_hosts();
            let mut letter = self.letter(from, to);
            (letter.context, letter.tag, letter.hints.unordered) = (context, self.fresh_tag(), true);
            let (send, recv) = (self.send(&letter), self.recv_of(&letter, Some(letter.tag)));
            self.post(send);
            self.post(recv);
            if self.rng.percent(20) {
                self.wait(recv);
            }
        }
    }
}
