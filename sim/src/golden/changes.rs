//! Networks that change during a run, and come back: what transfers say replaces what was known, both ways.

use super::card::Card;
use super::machines::TODAY;
use super::networks::{TCP_1G, TCP_4G};
use super::ping_pong::{Course, Exchange, Stage};
use super::sampling::{Bench, LARGE_MAX};
use super::table::{Table, rounded, size, us};
use crate::outage::{How, Outage};

/// Round trips of which the last ones of a phase are the median.
const LAST: usize = 9;
/// How far a forecast may be from what is: as part of that, and in nanoseconds, since what is timed carries a
/// question and does not pass the window.
const BOUND: f64 = 0.1;
const BOUND_NS: f64 = 1_500.0;

/// A change of the first of the rails, and what goes over them.
#[derive(Debug, Clone)]
pub struct Change {
    /// The change, for people.
    pub what: &'static str,
    /// The rails.
    pub cards: &'static [&'static Card],
    /// The rails were sampled before.
    pub is_sampled: bool,
    /// Bytes of each message.
    pub len: usize,
    /// Messages of a window.
    pub window: usize,
    /// Round trips in each phase.
    pub rounds: usize,
    /// The change.
    pub how: How,
}

/// The network, and the forecast of it, at the end of a phase.
#[derive(Debug, Clone)]
pub struct Phase {
    /// Half a round trip, in nanoseconds.
    pub half_ns: u64,
    /// What a message over the first rail should take by its forecast, in nanoseconds.
    pub expected_ns: u64,
    /// Bytes a second that the first rail carries by its forecast.
    pub bandwidth: f64,
    /// The part of the bytes of large messages that the first rail carries.
    pub share: f64,
    /// From how many bytes on data stays in place on the first rail; none: nothing was learnt or measured.
    pub in_place_min: Option<u64>,
}

const ONE: &[&Card] = &[&TCP_4G];
const TWO: &[&Card] = &[&TCP_4G, &TCP_1G];

/// The changes that are shown.
pub const CHANGES: [Change; 7] = [
    Change {
        what: "rate halved, one message at a time",
        cards: ONE,
        is_sampled: false,
        len: 256 << 10,
        window: 1,
        rounds: 100,
        how: How::Narrow(2),
    },
    Change {
        what: "rate halved, eight messages one behind the other",
        cards: ONE,
        is_sampled: false,
        len: 256 << 10,
        window: 8,
        rounds: 40,
        how: How::Narrow(2),
    },
    Change {
        what: "rate halved, although the rail was sampled",
        cards: ONE,
        is_sampled: true,
        len: 256 << 10,
        window: 1,
        rounds: 250,
        how: How::Narrow(2),
    },
    Change {
        what: "latency 4 us longer",
        cards: ONE,
        is_sampled: false,
        len: 64,
        window: 1,
        rounds: 1_200,
        how: How::Late(4_000),
    },
    Change {
        what: "the faster of two rails halved",
        cards: TWO,
        is_sampled: false,
        len: 4 << 20,
        window: 1,
        rounds: 30,
        how: How::Narrow(2),
    },
    Change {
        what: "latency 60 us longer, although the rail was sampled",
        cards: ONE,
        is_sampled: true,
        len: 40 << 10,
        window: 1,
        rounds: 150,
        how: How::Late(60_000),
    },
    Change {
        what: "the faster of two rails halved, although both were sampled",
        cards: TWO,
        is_sampled: true,
        len: 4 << 20,
        window: 1,
        rounds: 30,
        how: How::Narrow(2),
    },
];

impl Change {
    /// Before, during and after the change.
    pub fn phases(&self) -> [Phase; 3] {
        let exchange = Exchange { messages: vec![self.len; self.window], ..Exchange::default() };
        let until_phase = |outage: Option<Outage>, phases: usize| {
            let mut stage = Stage::shipped(TODAY, self.cards, "auto");
            stage.config.adapts = true;
            stage.outages = outage.into_iter().collect();
            let bench = |card: &&'static Card| Bench { machine: TODAY, card, hand_off_ns: 200 };
            if self.is_sampled {
                stage.profiles = self.cards.iter().map(|card| Some(bench(card).profile(LARGE_MAX))).collect();
            }
            stage.course(&exchange, phases * self.rounds)
        };
        let outage =
            |from: u64, until: u64| Some(Outage { fabric: 0, a: 0, b: 1, from, until, how: self.how });
        let first = until_phase(None, 1);
        let from = first.begins[self.rounds - 1];
        let second = until_phase(outage(from, u64::MAX), 2);
        let until = second.begins[2 * self.rounds - 1];
        let third = until_phase(outage(from, until), 3);
        [first, second, third].map(|course| self.end(&course))
    }

    fn end(&self, course: &Course) -> Phase {
        let mut last = course.halves[course.halves.len() - LAST..].to_vec();
        last.sort_unstable();
        let (forecast, len) = (&course.forecasts[0], self.len as u64);
        let is_large = self.len > course.eager_max;
        Phase {
            half_ns: last[LAST / 2],
            expected_ns: if is_large { forecast.body_ns(len) } else { forecast.eager_ns(len) },
            bandwidth: forecast.bandwidth() * 1e9,
            share: course.last[0] as f64 / course.last.iter().sum::<u64>().max(1) as f64,
            in_place_min: forecast.profile().thresholds().map(|thresholds| thresholds.in_place_min),
        }
    }
}

/// The table.
pub fn table() -> String {
    let mut table = Table::new("Networks that change while messages go", "TCP of today on Zen 5");
    table.note(
        "A ping-pong by strategy auto on rails of 4 Gbit/s, or of 4 and 1. Nothing was sampled \
         (NMAD_SAMPLE=off) but where it says so (auto, the default). Then the first rail changes, and after \
         as many messages it is again as before. At the end of each of the three phases: half a round trip, \
         what one message over the first rail takes by its forecast, the rate of that forecast, the first \
         rail's part of the bytes of large messages, and from how many bytes on data stays in place there.",
    );
    let mut follows = Vec::new();
    for change in &CHANGES {
        let phases = change.phases();
        let window = if change.window > 1 { format!("{} of ", change.window) } else { String::new() };
        table.note(&format!("{} ({window}{}):", change.what, size(change.len)));
        let column = |of: &dyn Fn(&Phase) -> String| phases.iter().map(of).collect::<Vec<_>>();
        table.series(&[
            ("phase", ["before", "changed", "after"].map(String::from).to_vec()),
            ("half us", column(&|phase| us(phase.half_ns))),
            ("forecast us", column(&|phase| us(phase.expected_ns))),
            ("MB/s", column(&|phase| rounded(phase.bandwidth / 1e6))),
            ("share", column(&|phase| format!("{:.2}", phase.share))),
            ("in place from", column(&|phase| phase.in_place_min.map_or("-".into(), from))),
        ]);
        follows.push((change.what, change.follows(&phases)));
    }
    let lost: Vec<&str> = follows.iter().filter(|(_, follows)| !follows).map(|(what, _)| *what).collect();
    let found = match lost.is_empty() {
        true => format!("in all {} cases", follows.len()),
        false => format!("but for: {}", lost.join("; ")),
    };
    table.claim(
        "What is expected follows what is and returns to what it was, within 10 % or 1.5 us",
        lost.is_empty(),
        &found,
    );
    table.finish()
}

impl Change {
    /// Whether forecasts of the changed network are right, and those after it are as before. A window takes
    /// what its bytes take; several rails carry as much as they can.
    pub fn follows(&self, phases: &[Phase; 3]) -> bool {
        let near = |a: f64, b: f64| (a / b - 1.0).abs() < BOUND;
        let close = |a: u64, b: u64| near(a as f64, b as f64) || (a as f64 - b as f64).abs() < BOUND_NS;
        let is = |phase: &Phase| match (self.cards.len(), self.window) {
            (1, 1) => close(phase.expected_ns, phase.half_ns),
            (1, _) => {
                near(self.len as f64 * self.window as f64 / phase.bandwidth * 1e9, phase.half_ns as f64)
            }
            _ => near(phase.share, phase.bandwidth / (phase.bandwidth + TCP_1G.bandwidth as f64)),
        };
        let [before, _, after] = phases;
        let returns = close(after.expected_ns, before.expected_ns)
            && near(after.bandwidth, before.bandwidth)
            && near(after.share.max(0.01), before.share.max(0.01));
        phases.iter().all(is) && returns
    }
}

/// A threshold.
fn from(len: u64) -> String {
    if len == u64::MAX { "never".into() } else { size(len as usize) }
}
