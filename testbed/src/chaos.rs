//! Rails that fail and come back, in an order that a seed decides. At each time all rails but one are whole,
//! so a library that uses several has a way all the time.

use crate::inside::{Change, What};
use crate::{Rate, rail_name};
use std::fmt;
use std::time::Duration;

/// One failure of one rail, from its first change to its last.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Episode {
    /// When it begins, from the start.
    pub at: Duration,
    /// How long it lasts.
    pub lasts: Duration,
    /// The rail.
    pub rail: u32,
    /// What happens.
    pub how: How,
}

/// How a rail fails.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum How {
    /// Switched off at this host; the others lose their carrier, if there are but two.
    Off(u32),
    /// Every host loses all that it receives, without a notice.
    Hole,
    /// Only this host loses all that it receives.
    OneWay(u32),
    /// Switched off and on again, this many times.
    Flaps(u32),
    /// Every host loses one frame in this number.
    Loses(u32),
    /// Rate in bits per second.
    Narrow(u64),
    /// This host has no address there.
    Bare(u32),
}

/// Pauses between two episodes, and lengths of one.
const PAUSE_MS: (u64, u64) = (300, 2000);
const LASTS_MS: (u64, u64) = (100, 3000);

/// The episodes of a seed for a testbed of `hosts` hosts and `rails` rails, which end within `length`.
pub fn schedule(seed: u64, hosts: u32, rails: u32, length: Duration) -> Vec<Episode> {
    let (mut chance, mut episodes) = (Chance(seed), Vec::new());
    let mut at = chance.ms(PAUSE_MS);
    loop {
        let (rail, host) = (chance.below(rails.into()) as u32, chance.below(hosts.into()) as u32);
        let how = match chance.below(7) {
            0 => How::Off(host),
            1 => How::Hole,
            2 => How::OneWay(host),
            3 => How::Flaps(2 + chance.below(6) as u32),
            4 => How::Loses(3 + chance.below(3) as u32),
            5 => How::Bare(host),
            _ => How::Narrow(5_000_000 << chance.below(4)),
        };
        let lasts = chance.ms(LASTS_MS);
        if at + lasts > length {
            return episodes;
        }
        episodes.push(Episode { at, lasts, rail, how });
        at += lasts + chance.ms(PAUSE_MS);
    }
}

impl Episode {
    /// The changes of it, each with its time from the start. `rates`: what each rail carries otherwise.
    pub fn changes(&self, rates: &[Rate]) -> Vec<(Duration, Change)> {
        let Episode { at, lasts, rail, how } = *self;
        let change =
            |host: Option<u32>, what| Change { host: host.map(crate::address::host_name), rail, what };
        let pair = |host, first, last| vec![(at, change(host, first)), (at + lasts, change(host, last))];
        match how {
            How::Off(host) => pair(Some(host), What::Down, What::Up),
            How::Hole => pair(None, What::Loss(1), What::Loss(0)),
            How::OneWay(host) => pair(Some(host), What::Loss(1), What::Loss(0)),
            How::Bare(host) => pair(Some(host), What::Address(false), What::Address(true)),
            How::Loses(one_in) => pair(None, What::Loss(one_in), What::Loss(0)),
            How::Narrow(bits) => {
                let usual = rates.get(rail as usize).copied().unwrap_or(Rate::Unlimited);
                pair(None, What::Rate(Rate::Limited(bits)), What::Rate(usual))
            }
            How::Flaps(times) => {
                let half = lasts / (2 * times);
                let what = |n: u32| if n.is_multiple_of(2) { What::Down } else { What::Up };
                (0..2 * times).map(|n| (at + half * n, change(Some(0), what(n)))).collect()
            }
        }
    }
}

impl fmt::Display for Episode {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (at, lasts, rail) = (self.at.as_secs_f64(), self.lasts.as_secs_f64(), rail_name(self.rail));
        write!(f, "{at:7.3} s  {rail} {} for {lasts:.3} s", self.how)
    }
}

impl fmt::Display for How {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match *self {
            How::Off(host) => write!(f, "is off at host{host}"),
            How::Bare(host) => write!(f, "has no address at host{host}"),
            How::Hole => write!(f, "swallows everything"),
            How::OneWay(host) => write!(f, "swallows what goes to host{host}"),
            How::Flaps(times) => write!(f, "goes off and on {times} times"),
            How::Loses(one_in) => write!(f, "loses one in {one_in} frames"),
            How::Narrow(bits) => write!(f, "carries {}", Rate::Limited(bits)),
        }
    }
}

/// Chance from a seed (splitmix64), the same on every machine.
#[derive(Debug)]
pub struct Chance(pub u64);

impl Chance {
    /// A number below `bound`.
    pub fn below(&mut self, bound: u64) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut z = self.0;
        z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        ((u128::from(z ^ (z >> 31)) * u128::from(bound)) >> 64) as u64
    }

    fn ms(&mut self, (least, most): (u64, u64)) -> Duration {
        Duration::from_millis(least + self.below(most - least + 1))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_seed_is_a_schedule_and_one_rail_is_whole_all_the_time() {
        let minute = Duration::from_secs(60);
        assert_eq!(schedule(7, 2, 2, minute), schedule(7, 2, 2, minute));
        let mut seen = std::collections::BTreeSet::new();
        for seed in 0..50 {
            let episodes = schedule(seed, 3, 2, minute);
            assert!(episodes.len() > 10, "seed {seed}: {}", episodes.len());
            for pair in episodes.windows(2) {
                assert!(pair[0].at + pair[0].lasts < pair[1].at, "seed {seed}: {pair:?}");
            }
            assert!(episodes.iter().all(|e| e.at + e.lasts <= minute && e.rail < 2), "seed {seed}");
            seen.extend(
                episodes.iter().map(|episode| std::mem::discriminant(&episode.how)).map(|d| format!("{d:?}")),
            );
        }
        assert_eq!(seen.len(), 7, "every kind comes");
    }

    #[test]
    fn each_episode_ends_with_the_rail_as_it_was() {
        let rates = [Rate::Unlimited, Rate::Limited(4_000_000_000)];
        for episode in (0..20).flat_map(|seed| schedule(seed, 2, 2, Duration::from_secs(30))) {
            let changes = episode.changes(&rates);
            assert!(changes.windows(2).all(|pair| pair[0].0 <= pair[1].0), "{episode}");
            let last = &changes.last().expect("an end").1.what;
            let usual = What::Rate(rates[episode.rail as usize]);
            let whole = [What::Up, What::Loss(0), What::Address(true), usual];
            assert!(whole.contains(last), "{episode}: {last:?}");
            assert!(changes.iter().all(|(at, _)| *at <= episode.at + episode.lasts), "{episode}");
        }
    }
}
