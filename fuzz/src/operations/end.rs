//! Conditions that hold when requests end, and at the very end.

use super::ledger::Receive;
use super::world::World;
use crate::runner::say;
use nmad_engine::{Context, Error, Source, TagMatch};

impl World {
    pub(super) fn settle(&mut self) {
        say(format_args!("everything comes to rest"));
        let mut wires = self.net.wires();
        wires.stalled.clear();
        wires.tardy.clear();
        drop(wires);
        self.net.settle();
        self.check_ended();
    }

    /// Looks at the receives that ended since the last time.
    pub(super) fn check_ended(&mut self) {
        for index in 0..self.ledger.receives.len() {
            let Receive { host, request, buffer, capacity, checked, .. } = self.ledger.receives[index];
            let Some(outcome) = self.net.result(host, request).filter(|_| !checked) else { continue };
            self.ledger.receives[index].checked = true;
            say(format_args!("{request:?} of {host} ends: {outcome:?}"));
            let envelope = match outcome {
                Ok(envelope) => envelope,
                Err(Error::Truncated { envelope, capacity: told }) => {
                    assert_eq!(told, capacity as u64);
                    envelope
                }
                Err(Error::PeerLost(_) | Error::Cancelled | Error::AccessLost(_) | Error::Revoked) => {
                    continue;
                }
            };
            assert_eq!(outcome.is_err(), envelope.len > capacity as u64, "{outcome:?} of {capacity} B");
            let wires = self.net.wires();
            let holds = |content: &[u8]| wires.memory.holds(buffer, content);
            self.ledger.receive(host as u32, capacity, &envelope, holds);
        }
    }

    /// Lets everything come to rest, receives what is left over, takes back what is left waiting; then
    /// nothing may be left.
    pub fn finish(mut self) {
        self.settle();
        self.nothing_missed();
        for (host, .., unpacking) in std::mem::take(&mut self.unpacking) {
            unpacking.end(&mut self.net.hosts[host].engine);
        }
        self.take_back();
        self.receive_the_rest();
        self.settle();
        say(format_args!("{}", self.net.views()));
        for (index, host) in self.net.hosts.iter().enumerate() {
            host.notices.iter().for_each(|notice| say(format_args!("{index}: {notice:?}")));
            assert_eq!(host.engine.inspect().unexpected(), 0, "host {index}");
            assert_eq!(host.engine.inspect().pending(), 0, "requests of host {index} that never end");
            assert!(host.engine.inspect().is_drained(), "host {index} still has something to send");
        }
        self.ledger.check_order();
        self.net.memory(|memory| memory.check());
    }

    /// No message waits for a receive that waits for it.
    fn nothing_missed(&mut self) {
        for host in &mut self.net.hosts {
            let mut waiting = 0;
            for context in [0, 5] {
                let any = host.engine.probe(Source::Any, Context(context), TagMatch::Any);
                waiting += usize::from(any.is_some());
            }
            assert!(host.engine.inspect().unexpected() >= waiting);
        }
    }

    fn take_back(&mut self) {
        for index in (0..self.ledger.receives.len()).rev() {
            let Receive { host, request, piece, .. } = self.ledger.receives[index];
            let posted = piece.is_none_or(|piece| {
                let first = &self.ledger.receives[piece.first];
                piece.number == 0 || self.net.result(first.host, first.request).is_some()
            });
            if self.net.result(host, request).is_none() && posted {
                self.net.cancel(host, request);
            }
        }
        self.settle();
    }

    fn receive_the_rest(&mut self) {
        for host in 0..self.net.hosts.len() {
            for context in [0, 5, Context::LIMIT, Context::LIMIT | 5] {
                while let Some(envelope) =
                    self.net.hosts[host].engine.probe(Source::Any, Context(context), TagMatch::Any)
                {
                    self.post(host, Source::Any, context, TagMatch::Any, envelope.len as usize);
                }
            }
        }
    }
}
