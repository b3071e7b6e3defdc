//! Events that a rail reports at its next poll: completed orders, and events found outside of a poll.

use nmad_engine::packet::PeerId;
use nmad_engine::transfer::driver::{Event, Order};

/// Events not reported yet.
#[derive(Debug, Default)]
pub(crate) struct News {
    /// Orders that are complete.
    pub(crate) sent: Vec<Order>,
    /// All other events.
    pub(crate) found: Vec<Event<'static>>,
}

impl News {
    /// Returns whether there is nothing to report.
    #[inline]
    pub(crate) fn is_empty(&self) -> bool {
        self.sent.is_empty() && self.found.is_empty()
    }

    /// Reports all events, completed orders first.
    pub(crate) fn report(&mut self, report: &mut dyn FnMut(Event<'_>)) {
        for order in self.sent.drain(..) {
            match order {
                Order::Packet { to, number, packet } => {
                    report(Event::Sent { to, number, packet: Some(packet) });
                }
                Order::Chunk { to, number, .. } => report(Event::Sent { to, number, packet: None }),
                Order::Connect { .. } | Order::Close { .. } | Order::Accept { .. } => {}
            }
        }
        if !self.found.is_empty() {
            self.found.drain(..).for_each(report);
        }
    }

    /// Records the end of a link of this rail, or of the attempt to open one.
    #[cold]
    pub(crate) fn lost(&mut self, rail: &str, peer: PeerId, why: &str, unsent: Vec<Order>) {
        let why = format!("rail {rail}: peer {} {why}", peer.0);
        log::info!("{why}");
        self.found.push(Event::Lost { peer, why, unsent });
    }
}
