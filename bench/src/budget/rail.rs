//! A rail that costs almost nothing: packets change hands in memory.

use nmad_engine::{
    Departure, Driver, Event, How, Key, Limits, Order, Packet, PeerId, PollScope, RegionId, Segments, Sent,
};
use std::sync::{Arc, Mutex};

type Lane = Arc<Mutex<Vec<(u32, Packet)>>>;

/// Stands for a packet whose return is no report.
const AT_ONCE: u32 = u32::MAX;

/// One end; the other is the peer's.
pub(super) struct FreeRail {
    peer: PeerId,
    out: Lane,
    incoming: Lane,
    sent: Lane,
    /// Packets that the peer has read and that are given back here.
    read: Lane,
    fresh: bool,
    batch: Vec<(u32, Packet)>,
    spare: Vec<Packet>,
}

impl FreeRail {
    pub(super) fn pair() -> (FreeRail, FreeRail) {
        let lanes: [Lane; 4] = Default::default();
        let [there, back, sent, returned] = lanes;
        let left = FreeRail {
            peer: PeerId(1),
            out: there.clone(),
            incoming: back.clone(),
            sent: sent.clone(),
            read: returned.clone(),
            fresh: true,
            batch: Vec::new(),
            spare: Vec::new(),
        };
        let right = FreeRail {
            peer: PeerId(0),
            out: back,
            incoming: there,
            sent: returned,
            read: sent,
            fresh: true,
            batch: Vec::new(),
            spare: Vec::new(),
        };
        (left, right)
    }
}

fn lock(lane: &Lane) -> std::sync::MutexGuard<'_, Vec<(u32, Packet)>> {
    lane.lock().unwrap_or_else(|poisoned| poisoned.into_inner())
}

impl Driver for FreeRail {
    fn name(&self) -> &str {
        "free"
    }

    fn limits(&self) -> Limits {
        Limits { packet: 64 << 10, chunk: 1 << 20, depth: 8, ..Limits::default() }
    }

    fn open(&mut self, region: RegionId, _: PeerId, _: Segments) -> Key {
        Key(region.0)
    }

    fn close(&mut self, _: RegionId) {}

    fn room(&self) -> usize {
        8
    }

    fn send(&mut self, departure: Departure<'_>) -> Sent {
        match departure {
            Departure::Message { head, data, how: How::Send, .. } => {
                let mut packet = self.spare.pop().unwrap_or_default();
                packet.bytes.clear();
                data.append_behind(head, &mut packet.bytes);
                lock(&self.out).push((AT_ONCE, packet));
                Sent::Done
            }
            Departure::Order(Order::Packet { number, packet, .. }) => {
                lock(&self.out).push((number, packet));
                Sent::Posted
            }
            Departure::Order(_) => Sent::Posted,
            _ => Sent::Retry,
        }
    }

    fn poll(&mut self, _: PollScope, report: &mut dyn FnMut(Event<'_>)) -> bool {
        if std::mem::take(&mut self.fresh) {
            report(Event::Up { peer: self.peer, remote: 0 });
        }
        std::mem::swap(&mut self.batch, &mut lock(&self.sent));
        for (number, packet) in self.batch.drain(..) {
            match number {
                AT_ONCE => self.spare.push(packet),
                _ => report(Event::Sent { to: self.peer, number, packet: Some(packet) }),
            }
        }
        std::mem::swap(&mut self.batch, &mut lock(&self.incoming));
        let mut read = lock(&self.read);
        for (number, packet) in self.batch.drain(..) {
            report(Event::Arrived { from: self.peer, packet: &packet.bytes });
            read.push((number, packet));
        }
        true
    }
}
