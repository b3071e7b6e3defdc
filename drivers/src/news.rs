//! What a rail has to report at its next poll: orders that were sent, and what was found out of turn.

use nmad_engine::packet::PeerId;
use nmad_engine::transfer::driver::{Event, Order};

/// Not yet reported.
#[derive(Debug, Default)]
pub(crate) struct News {
    /// Orders that need nothing more.
    pub(crate) sent: Vec<Order>,
    /// Everything else.
    pub(crate) found: Vec<Event<'static>>,
}

impl News {
    /// Whether there is nothing to report.
    #[inline]
    pub(crate) fn is_empty(&self) -> bool {
        self.sent.is_empty() && self.found.is_empty()
    }

    /// Reports what was found out of turn, after what was sent before.
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

    /// The end of a link of this rail, or of the attempt to open one.
    #[cold]
    pub(crate) fn lost(&mut self, rail: &str, peer: PeerId, why: &str, unsent: Vec<Order>) {
        let why = format!("rail {rail}: peer {} {why}", peer.0);
        log::info!("{why}");
        self.found.push(Event::Lost { peer, why, unsent });
    }
}
