//! Hosts that die while a launcher watches them. The launcher reports a death to every other host; each of
//! them then declares the peer failed and closes contexts, as a program does that revokes a communicator.

use crate::network::{Happening, Network};
use crate::rng::Rng;
use crate::trace::Time;
use std::fmt;

/// Longest time until a host has the report of a death, in nanoseconds.
const REPORT_NS: u64 = 3_000_000;
/// Percentage of the deaths that are declared while the host still runs.
const EARLY: u64 = 15;
/// Longest time for which a host runs after it was declared dead, in nanoseconds.
const RUNS_ON_NS: u64 = 10_000_000;
/// Percentage of the later deaths that follow the one before within [`REPORT_NS`].
const CASCADES: u64 = 60;

/// Which hosts of a run die.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Deaths {
    /// No death is reported.
    #[default]
    None,
    /// The seed says which hosts die, and when. At least one host survives.
    Drawn,
    /// A short run without other faults, in which this host dies at this time, in nanoseconds; `None`: no
    /// host dies.
    Single(Option<(usize, u64)>),
}

/// The death of a host.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Death {
    /// The host that dies.
    pub host: usize,
    /// When its death is declared, in nanoseconds.
    pub at: u64,
    /// When its process ends: at the same time, or later if it is declared dead early.
    pub ends_at: u64,
    /// When each host has the report.
    pub reported_at: Vec<u64>,
    /// Time until the others notice that their links are lost, in nanoseconds.
    pub notice_ns: u64,
}

impl Deaths {
    /// Returns whether hosts close contexts when a death is reported.
    pub fn is_some(self) -> bool {
        self != Deaths::None
    }

    /// Returns whether the run is short, without other faults.
    pub fn is_single(self) -> bool {
        matches!(self, Deaths::Single(_))
    }

    /// Draws the deaths of a run with this many hosts, which may access files.
    pub fn draw(self, seed: u64, hosts: usize, has_files: bool) -> Vec<Death> {
        let mut deaths = self.draw_any(seed, hosts);
        if has_files {
            Death::suit_files(&mut deaths, &mut Rng::of(seed, 15));
        }
        deaths
    }

    fn draw_any(self, seed: u64, hosts: usize) -> Vec<Death> {
        let mut rng = Rng::of(seed, 13);
        match self {
            Deaths::None | Deaths::Single(None) => Vec::new(),
            Deaths::Single(Some((host, at))) => vec![Death::draw((host, at, at), hosts, &mut rng)],
            Deaths::Drawn => {
                let mut all: Vec<usize> = (0..hosts).collect();
                rng.shuffle(&mut all);
                let count = if rng.percent(50) { 1 } else { rng.range(1, hosts as u64 - 1) as usize };
                let mut at = 0;
                let dying = all.into_iter().take(count);
                dying.map(|host| Death::draw_at(&mut at, host, hosts, &mut rng)).collect()
            }
        }
    }
}

impl Death {
    /// Draws the next death, and sets `before` to its time.
    fn draw_at(before: &mut u64, host: usize, hosts: usize, rng: &mut Rng) -> Death {
        let follows = *before > 0 && rng.percent(CASCADES);
        let pause = if follows { rng.len(REPORT_NS) } else { 20_000 + rng.len(8_000_000) };
        *before += pause;
        let runs_on = if rng.percent(EARLY) { rng.len(RUNS_ON_NS) } else { 0 };
        Death::draw((host, *before, *before + runs_on), hosts, rng)
    }

    /// Deaths amid accesses to files, which take more or less time. Each host is dead when it is declared so:
    /// one that ran on would write to files that others own by then.
    fn suit_files(deaths: &mut [Death], rng: &mut Rng) {
        let span = 50_000 << rng.below(8);
        let later = span + rng.below(span);
        for death in deaths {
            death.at += later;
            death.ends_at = death.at;
            death.reported_at.iter_mut().for_each(|at| *at += later);
        }
    }

    /// Declares this death: ends the host, now or later, and enters the reports. `number` is its index in
    /// `Scenario::dying`.
    pub(crate) fn declare(&self, now: u64, number: usize, network: &mut Network) {
        network.doing[self.host].declared = true;
        if self.ends_at > now {
            network.agenda.enter(self.ends_at, Happening::Ends(self.host, self.notice_ns));
        } else {
            network.kill_host(self.host, now, self.notice_ns);
        }
        for (host, &at) in self.reported_at.iter().enumerate().filter(|(host, _)| *host != self.host) {
            network.agenda.enter(at, Happening::Reported(number, host));
        }
    }

    fn draw((host, at, ends_at): (usize, u64, u64), hosts: usize, rng: &mut Rng) -> Death {
        let reported_at = (0..hosts).map(|_| at + rng.len(REPORT_NS)).collect();
        Death { host, at, ends_at, reported_at, notice_ns: rng.len(5_000_000) }
    }
}

impl fmt::Display for Death {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Death { host, at, ends_at, notice_ns, .. } = self;
        write!(f, "{}: h{host} is declared dead", Time(*at))?;
        if ends_at > at {
            write!(f, " and runs for {} us more", (ends_at - at) / 1000)?;
        }
        let others = self.reported_at.iter().enumerate().filter(|(other, _)| other != host);
        let last = others.map(|(_, last)| last - at).max().unwrap_or(0);
        write!(f, ", reported within {} us, links noticed after {} us", last / 1000, notice_ns / 1000)
    }
}
