//! A layer that limits a rail to a rate in bytes per second, and adds latency.
//!
//! For demonstrations and tests where the network itself cannot be shaped. It is a leaky bucket: posted
//! bytes fill a bucket that drains at the rate; while the bucket is not empty the rail has no room, and an
//! order counts as sent at the time when its last byte would have left.

use super::held::Held;
use super::{Layer, addressee, size};
use nmad_engine::packet::PeerId;
use nmad_engine::transfer::access::RemoteAccess;
use nmad_engine::transfer::driver::{Departure, Driver, Event, Interest, Limits, Scope, Sent};
use std::collections::VecDeque;
use std::time::{Duration, Instant};

/// Fill level, as time at the rate, up to which orders are still taken, so that the next order is already
/// there when the last one ends.
const AHEAD: Duration = Duration::from_micros(100);
/// Unused time that later orders may make up for, because polls may come late when the bucket was empty.
const BEHIND: Duration = Duration::from_millis(1);

/// An order that the rail has taken, or one of several that were sent together.
#[derive(Debug, Clone, Copy)]
struct Posted {
    to: PeerId,
    number: u32,
    leaves_at: Instant,
}

/// The layer: limits the rate of sending and delays arrivals.
#[derive(Debug)]
pub struct Throttle {
    bytes_per_second: f64,
    latency: Duration,
    /// When all posted bytes will have left.
    empty_at: Instant,
    /// Orders that the rail has taken, with the time when their last byte leaves.
    posted: VecDeque<Posted>,
    /// Events of orders that the rail has sent, with that time.
    sent: VecDeque<(Instant, Held)>,
    /// Arrived events, with the time when they are reported.
    arriving: VecDeque<(Instant, Held)>,
}

impl Throttle {
    /// Creates a layer with at most `bytes_per_second` in the sending direction, which adds `latency` to
    /// arrivals.
    pub fn new(bytes_per_second: u64, latency: Duration) -> Self {
        Throttle {
            bytes_per_second: bytes_per_second.max(1) as f64,
            latency,
            empty_at: Instant::now(),
            posted: VecDeque::new(),
            sent: VecDeque::new(),
            arriving: VecDeque::new(),
        }
    }

    /// Adds bytes to the bucket; returns the time at which they have left.
    fn fill(&mut self, bytes: u64) -> Instant {
        let now = Instant::now();
        let begin = self.empty_at.max(now.checked_sub(BEHIND).unwrap_or(now));
        self.empty_at = begin + self.duration(bytes);
        self.empty_at
    }

    /// Transmission time of `bytes` bytes.
    fn duration(&self, bytes: u64) -> Duration {
        Duration::from_secs_f64(bytes as f64 / self.bytes_per_second)
    }
}

impl Layer for Throttle {
    fn limits(&self, rail: &impl Driver) -> Limits {
        let limits = rail.limits();
        let latency_ns = limits.latency_ns + self.latency.as_nanos() as u64;
        // Arriving packets are delayed, so polling for a single packet would find nothing.
        let looks = limits.looks && self.latency.is_zero();
        // Remote accesses would bypass the limit.
        let (bandwidth, remote) = (self.bytes_per_second as u64, RemoteAccess::None);
        Limits { bandwidth, latency_ns, looks, remote, ..limits }
    }

    /// None: held events become due by time, which no descriptor reports.
    fn wakeup(&mut self, _: &mut impl Driver, _: Interest) -> Option<i32> {
        None
    }

    fn room(&self, rail: &impl Driver) -> usize {
        if self.empty_at > Instant::now() + AHEAD { 0 } else { rail.room() }
    }

    fn send(&mut self, rail: &mut impl Driver, departure: Departure<'_>) -> Sent {
        let ((to, number), (len, count)) = (addressee(&departure), size(&departure));
        let at_once = !matches!(departure, Departure::Order(_));
        if at_once && self.room(rail) == 0 {
            return Sent::Retry;
        }
        let sent = rail.send(departure);
        if sent != Sent::Retry && count > 0 {
            let leaves_at = self.fill(len);
            if sent == Sent::Posted {
                // For a packet and the chunk behind it, `number` is that of the chunk.
                let first = number.wrapping_sub(count as u32 - 1);
                let number = |i| first.wrapping_add(i);
                let posted = (0..count as u32).map(|i| Posted { to, number: number(i), leaves_at });
                self.posted.extend(posted);
            }
        }
        sent
    }

    fn poll(&mut self, rail: &mut impl Driver, scope: Scope, report: &mut dyn FnMut(Event<'_>)) -> bool {
        let now = Instant::now();
        let looked = rail.poll(scope, &mut |event| self.hold(event, now));
        while self.sent.front().is_some_and(|(at, _)| *at <= now) {
            self.sent.pop_front().into_iter().for_each(|(_, held)| held.report(report));
        }
        while self.arriving.front().is_some_and(|(at, _)| *at <= now) {
            let Some((_, held)) = self.arriving.pop_front() else { break };
            if let Held::Other(Event::Lost { peer, .. }) = held {
                self.report_sent(peer, report);
            }
            held.report(report);
        }
        looked
    }
}

impl Throttle {
    fn hold(&mut self, event: Event<'_>, now: Instant) {
        match &event {
            Event::Sent { to, number, .. } => {
                let leaves_at = self.take(*to, *number).map_or(now, |posted| posted.leaves_at);
                self.sent.push_back((leaves_at, Held::new(event)));
            }
            Event::Lost { peer, .. } => {
                self.posted.retain(|posted| posted.to != *peer);
                self.arriving.push_back((now + self.latency, Held::new(event)));
            }
            _ => self.arriving.push_back((now + self.latency, Held::new(event))),
        }
    }

    fn take(&mut self, to: PeerId, number: u32) -> Option<Posted> {
        let place = self.posted.iter().position(|posted| (posted.to, posted.number) == (to, number))?;
        self.posted.remove(place)
    }

    /// Reports the orders sent to a peer before the loss of its link.
    fn report_sent(&mut self, peer: PeerId, report: &mut dyn FnMut(Event<'_>)) {
        for (at, held) in std::mem::take(&mut self.sent) {
            if held.peer() == peer {
                held.report(report);
            } else {
                self.sent.push_back((at, held));
            }
        }
    }
}
