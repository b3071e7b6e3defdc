//! Rails that fail for a while and come back. While one fails, another way between the same hosts is whole,
//! so nothing may stand still for long, and no rail may be left that is only slow. Which way is whole may
//! change: then the last way that carries fails, and one that rests is needed.

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
    /// Everything arrives later by so many nanoseconds.
    Late(u64),
}

/// Longest time for which no request may end while some are under way, besides what they take.
pub const STALL_NS: u64 = 60_000_000;
/// The same where the last way may fail while another one comes back: a try that was begun while nothing
/// passed has to end first.
pub const STALL_TURNS_NS: u64 = 2_000_000_000;

/// The fabric that is whole, and from when on.
#[derive(Debug, Clone)]
pub struct Turns(Vec<(u64, usize)>);

impl Turns {
    /// One that is whole all the time.
    pub fn never(fabric: usize) -> Turns {
        Turns(vec![(0, fabric)])
    }

    /// Another one now and then.
    pub fn draw(fabrics: usize, rng: &mut Rng) -> Turns {
        let mut at = 0;
        let turns = (0..40).map(|_| {
            let turn = (at, rng.index(fabrics));
            at += rng.range(50_000_000, 1_500_000_000);
            turn
        });
        Turns(turns.collect())
    }

    /// Whether there is more than one turn.
    pub fn changes(&self) -> bool {
        self.0.len() > 1
    }

    /// What is left of an outage: nothing while its fabric is whole.
    fn clip(&self, outage: Outage) -> impl Iterator<Item = Outage> {
        let ends = self.0.iter().skip(1).map(|turn| turn.0).chain([u64::MAX]);
        self.0.iter().zip(ends).filter_map(move |(&(from, whole), until)| {
            let (from, until) = (from.max(outage.from), until.min(outage.until));
            (whole != outage.fabric && from < until).then_some(Outage { from, until, ..outage })
        })
    }
}

impl Outage {
    /// Draws failures for some hosts and fabrics. The fabric that is whole does not fail. If `slow` nothing
    /// fails altogether: rails become narrow.
    pub fn draw(hosts: usize, fabrics: usize, whole: &Turns, slow: bool, rng: &mut Rng) -> Vec<Outage> {
        let mut outages = Vec::new();
        for fabric in 0..fabrics {
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
                        let outage = Outage { fabric, a, b, from, until: from + len, how };
                        match slow {
                            true => outages.push(outage),
                            false => outages.extend(whole.clip(outage)),
                        }
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

    /// By how many nanoseconds everything is later.
    pub fn lateness_ns(&self) -> u64 {
        if let How::Late(ns) = self.how { ns } else { 0 }
    }

    /// Whether it lets nothing pass.
    pub fn blocks(&self) -> bool {
        !matches!(self.how, How::Narrow(_) | How::Late(_))
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
            How::Late(ns) => write!(f, "brings everything {ns} ns later for {us} us"),
            How::Narrow(factor) => write!(f, "takes {factor} times as long for {us} us"),
        }
    }
}
