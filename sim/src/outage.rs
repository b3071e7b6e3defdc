//! Rails that fail for a while and come back. While one fails, another way between the same hosts is whole,
//! so nothing may stand still for long, and no rail may be left that is only slow.

use crate::rng::Rng;
use crate::trace::Time;
use std::fmt;

/// One failure of the way between two hosts on one fabric.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Outage {
    /// Which fabric.
    pub fabric: usize,
    /// One host.
    pub a: usize,
    /// The other.
    pub b: usize,
    /// From when on, in nanoseconds.
    pub from: u64,
    /// Until when.
    pub until: u64,
    /// In which way.
    pub how: How,
}

/// How a way fails.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum How {
    /// Nothing passes, without a notice: a black hole.
    Silent,
    /// The same for what the first host sends; the other direction works.
    OneWay,
    /// Both interfaces lose their carrier, and the system tells so.
    Unplugged,
    /// Everything takes this many times as long.
    Narrow(u64),
}

/// Longest time for which no request may end while some are under way, besides what they take.
pub const STALL_NS: u64 = 60_000_000;

impl Outage {
    /// Draws failures for some hosts and fabrics. The fabric `whole` never fails. If `slow` nothing fails
    /// altogether: rails become narrow.
    pub fn draw(hosts: usize, fabrics: usize, whole: usize, slow: bool, rng: &mut Rng) -> Vec<Outage> {
        let mut outages = Vec::new();
        for fabric in (0..fabrics).filter(|&fabric| fabric != whole || slow) {
            for a in 0..hosts {
                for b in (0..hosts).filter(|&b| b > a) {
                    let flaps = rng.percent(25);
                    let mut from = 100_000 + rng.len(4_000_000);
                    for _ in 0..if flaps { rng.range(3, 20) } else { rng.range(0, 3) } {
                        let len = if flaps {
                            rng.range(1_000_000, 60_000_000)
                        } else {
                            1_000_000 + rng.len(1_500_000_000)
                        };
                        let how = match rng.below(4) {
                            _ if slow => How::Narrow(rng.range(2, 40)),
                            0 => How::Silent,
                            1 => How::OneWay,
                            2 => How::Unplugged,
                            _ => How::Narrow(rng.range(2, 40)),
                        };
                        let (a, b) = if rng.percent(50) { (a, b) } else { (b, a) };
                        outages.push(Outage { fabric, a, b, from, until: from + len, how });
                        from += len + rng.len(if flaps { 20_000_000 } else { 3_000_000_000 });
                    }
                }
            }
        }
        outages
    }

    /// Whether it concerns what `from` sends to `to`.
    pub fn hits(&self, fabric: usize, from: usize, to: usize) -> bool {
        let one_way = self.how == How::OneWay;
        self.fabric == fabric
            && ((self.a, self.b) == (from, to) || !one_way && (self.b, self.a) == (from, to))
    }

    /// How many times as long everything takes; once where nothing passes.
    pub fn narrowness(&self) -> u64 {
        if let How::Narrow(factor) = self.how { factor } else { 1 }
    }

    /// Whether it lets nothing pass.
    pub fn blocks(&self) -> bool {
        !matches!(self.how, How::Narrow(_))
    }
}

impl fmt::Display for Outage {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Outage { fabric, a, b, from, until, how } = *self;
        let us = (until - from) / 1000;
        write!(f, "{}: net{fabric} h{a}-h{b} ", Time(from))?;
        match how {
            How::Silent => write!(f, "swallows everything for {us} us"),
            How::OneWay => write!(f, "swallows what h{a} sends for {us} us"),
            How::Unplugged => write!(f, "has no carrier for {us} us"),
            How::Narrow(factor) => write!(f, "takes {factor} times as long for {us} us"),
        }
    }
}
