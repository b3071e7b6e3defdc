//! Events that are reported later.

use nmad_engine::packet::PeerId;
use nmad_engine::transfer::driver::Event;

/// An event that owns its data.
#[derive(Debug)]
pub enum Held {
    /// A packet, copied.
    Arrived(PeerId, Vec<u8>),
    /// Anything else.
    Other(Event<'static>),
}

impl Held {
    /// Copies borrowed data.
    pub fn new(event: Event<'_>) -> Self {
        Held::Other(match event {
            Event::Arrived { from, packet } => return Held::Arrived(from, packet.to_vec()),
            Event::Up { peer, remote } => Event::Up { peer, remote },
            Event::Landed { from, number, ack, region, offset, len, kept } => {
                Event::Landed { from, number, ack, region, offset, len, kept }
            }
            Event::Pushed { from, request, len } => Event::Pushed { from, request, len },
            Event::Moved { peer } => Event::Moved { peer },
            Event::Buffers { peer, len } => Event::Buffers { peer, len },
            Event::Carrier { peer, lost } => Event::Carrier { peer, lost },
            Event::Sent { to, number, packet } => Event::Sent { to, number, packet },
            Event::Accessed { to, request, came } => Event::Accessed { to, request, came },
            Event::Lost { peer, why, unsent } => Event::Lost { peer, why, unsent },
        })
    }

    /// Reports the event.
    pub fn report(self, report: &mut dyn FnMut(Event<'_>)) {
        match self {
            Held::Arrived(from, packet) => report(Event::Arrived { from, packet: &packet }),
            Held::Other(event) => report(event),
        }
    }

    /// The peer of the event.
    pub fn peer(&self) -> PeerId {
        match self {
            Held::Arrived(peer, _)
            | Held::Other(
                Event::Arrived { from: peer, .. }
                | Event::Up { peer, .. }
                | Event::Pushed { from: peer, .. }
                | Event::Moved { peer }
                | Event::Buffers { peer, .. }
                | Event::Carrier { peer, .. }
                | Event::Landed { from: peer, .. }
                | Event::Sent { to: peer, .. }
                | Event::Accessed { to: peer, .. }
                | Event::Lost { peer, .. },
            ) => *peer,
        }
    }
}
