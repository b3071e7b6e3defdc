//! A rail made slower in software: so many bytes per second, and latency.
//!
//! For demonstrations and tests where the network itself cannot be shaped. Posting fills a bucket that
//! drains at the rate; while the bucket is in debt the rail has no room, and an order counts as sent when
//! its last byte would have left.

use super::held::Held;
use super::{Layer, len};
use nmad_engine::packet::PeerId;
use nmad_engine::transfer::driver::{Driver, Event, Limits, Order};
use std::collections::VecDeque;
use std::time::{Duration, Instant};

/// Bytes of debt, as time at the rate, with which more is still taken: the next order is then there when
/// the last one ends.
const AHEAD: Duration = Duration::from_micros(100);
/// Time that may be made good when nobody polled just when the bucket was empty.
const BEHIND: Duration = Duration::from_millis(1);

/// Limits the rate of posting and delays what arrives.
#[derive(Debug)]
pub struct Throttle {
    bytes_per_second: f64,
    latency: Duration,
    /// When everything posted will have left.
    empty_at: Instant,
    /// Orders that the rail has, with the time when their last byte leaves.
    posted: VecDeque<(PeerId, u32, Instant)>,
    /// Orders that the rail has sent, with that time.
    sent: VecDeque<(Instant, Held)>,
    /// What has arrived, with the time when it is reported.
    arriving: VecDeque<(Instant, Held)>,
}

impl Throttle {
    /// At most `bytes_per_second` in the sending direction, and `latency` added to what arrives.
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

    /// The time that an order takes on the wire is over when this returns.
    fn pour(&mut self, bytes: u64) -> Instant {
        let now = Instant::now();
        let begin = self.empty_at.max(now.checked_sub(BEHIND).unwrap_or(now));
        self.empty_at = begin + Duration::from_secs_f64(bytes as f64 / self.bytes_per_second);
        self.empty_at
    }
}

impl Layer for Throttle {
    fn limits(&self, rail: &impl Driver) -> Limits {
        let limits = rail.limits();
        let latency_ns = limits.latency_ns + self.latency.as_nanos() as u64;
        Limits { bandwidth: self.bytes_per_second as u64, latency_ns, ..limits }
    }

    /// None: what is held back comes by time, which no descriptor tells.
    fn descriptor(&self, _: &impl Driver) -> Option<i32> {
        None
    }

    fn room(&self, rail: &impl Driver) -> usize {
        if self.empty_at > Instant::now() + AHEAD { 0 } else { rail.room() }
    }

    fn post(&mut self, rail: &mut impl Driver, order: Order) {
        match &order {
            Order::Packet { to, number, .. } | Order::Chunk { to, number, .. } => {
                let leaves_at = self.pour(len(&order));
                self.posted.push_back((*to, *number, leaves_at));
            }
            Order::Connect { .. } | Order::Close { .. } => {}
        }
        rail.post(order);
    }

    fn poll(&mut self, rail: &mut impl Driver, report: &mut dyn FnMut(Event<'_>)) {
        let now = Instant::now();
        rail.poll(&mut |event| self.hold(event, now));
        while self.sent.front().is_some_and(|(at, _)| *at <= now) {
            self.sent.pop_front().into_iter().for_each(|(_, held)| held.report(report));
        }
        while self.arriving.front().is_some_and(|(at, _)| *at <= now) {
            let Some((_, held)) = self.arriving.pop_front() else { return };
            if let Held::Other(Event::Lost { peer, .. }) = held {
                self.report_sent(peer, report);
            }
            held.report(report);
        }
    }
}

impl Throttle {
    fn hold(&mut self, event: Event<'_>, now: Instant) {
        match &event {
            Event::Sent { to, number, .. } => {
                let place = self.posted.iter().position(|(peer, n, _)| (peer, n) == (to, number));
                let leaves_at = place.and_then(|place| self.posted.remove(place)).map_or(now, |(.., at)| at);
                self.sent.push_back((leaves_at, Held::new(event)));
            }
            Event::Lost { peer, .. } => {
                self.posted.retain(|(posted, ..)| posted != peer);
                self.arriving.push_back((now + self.latency, Held::new(event)));
            }
            _ => self.arriving.push_back((now + self.latency, Held::new(event))),
        }
    }

    /// What was sent to a peer is told before the loss of its link.
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
