//! Figures 8 and 9: what four hosts do when in overlapToy, with an eager limit below and above its
//! messages.

use super::phase::{Author, Policy, Program, ran};
use super::toys::toy;
use super::{INFINIBAND, Network};
use crate::golden::convergence::{line, write};
use crate::golden::table::{Table, rounded};
use crate::oracle::ledger::{Entry, Ledger, What as Booked};
use crate::workload::Op;
use std::fmt::Write;
use std::ops::Range;

const HOSTS: usize = 4;
/// The longest message, and the limits of both figures, in bytes.
const LONGEST: usize = 128 << 10;
const LIMITS: [(&str, usize); 2] = [("8", 64 << 10), ("9", 128 << 10)];
/// Calculation of an iteration in nanoseconds: the figures show 350 ms, in which there are several
/// iterations.
const CALCULATION_NS: u64 = 80_000_000;
/// Iterations before those that are shown: links come up in the first.
const BEFORE: usize = 2;
const SHOWN: usize = 2;

/// What a host does; the names and colours are those of the figures.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum State {
    Calculation,
    Send,
    Wait,
    Synchronization,
}

const STATES: [State; 4] = [State::Calculation, State::Send, State::Wait, State::Synchronization];

impl State {
    fn name(self) -> &'static str {
        match self {
            State::Calculation => "calculation",
            State::Send => "MPI_Send",
            State::Wait => "MPI_Wait",
            State::Synchronization => "MPI_Allreduce",
        }
    }

    fn colour(self) -> &'static str {
        match self {
            State::Calculation => "#1f4e9e",
            State::Send => "#e377c2",
            State::Wait => "#d62728",
            State::Synchronization => "#ff9900",
        }
    }
}

/// A state of a host, in nanoseconds.
#[derive(Debug, Clone, Copy)]
struct Stretch {
    host: usize,
    state: State,
    start: u64,
    end: u64,
}

/// A message: from whom and when its send began, to whom and when it was received.
type Line = ((usize, u64), (usize, u64));

/// A run with one limit.
struct Trace {
    figure: &'static str,
    limit: usize,
    stretches: Vec<Stretch>,
    lines: Vec<Line>,
}

fn program() -> Program {
    let toy = toy(HOSTS, LONGEST, HOSTS - 1, true);
    let before_ns = (toy.before_ns as f64 / toy.calculation_ns() as f64 * CALCULATION_NS as f64) as u64;
    Program { before_ns, after_ns: CALCULATION_NS - before_ns, ..toy }
}

/// The requests of an iteration: those of the exchange, then those of the synchronization.
type Iteration = (Range<Op>, Range<Op>);

fn traced(network: &Network, (figure, limit): (&'static str, usize)) -> Trace {
    let (program, policy) = (program(), Policy::limit(limit));
    let mut author = Author::new(HOSTS);
    let iterations: Vec<Iteration> = (0..BEFORE + SHOWN)
        .map(|_| {
            let first = author.plan.asks.len();
            author.exchange(&program, policy);
            let middle = author.plan.asks.len();
            author.synchronize(HOSTS);
            (first..middle, middle..author.plan.asks.len())
        })
        .collect();
    let world = ran(network, policy, author.plan);
    let mut trace = Trace { figure, limit, stretches: Vec::new(), lines: Vec::new() };
    for (exchange, meeting) in &iterations[BEFORE..] {
        (0..HOSTS).for_each(|host| trace.follow(world.ledger(), host, &program, (exchange, meeting)));
        trace.lines.extend(sends(world.ledger(), exchange).filter_map(|send| {
            let receive = &world.ledger().entries[send.partner?];
            Some(((send.host, send.submitted), (receive.host, ended(receive))))
        }));
    }
    trace
}

/// The sends among these requests: their receives are found by them.
fn sends<'a>(ledger: &'a Ledger, ops: &'a Range<Op>) -> impl Iterator<Item = &'a Entry> {
    ledger.entries.iter().filter(move |entry| match entry.what {
        Booked::Send { payload, .. } => ops.contains(&(payload as Op)),
        _ => false,
    })
}

fn ended(entry: &Entry) -> u64 {
    entry.ended.as_ref().map_or(entry.submitted, |(at, _)| *at)
}

impl Trace {
    /// What a host does in an iteration: it posts its receives and sends, computes, waits, computes and
    /// meets the others.
    fn follow(
        &mut self,
        ledger: &Ledger,
        host: usize,
        program: &Program,
        (exchange, meeting): (&Range<Op>, &Range<Op>),
    ) {
        let own = |ops| sends(ledger, ops).filter(|send| send.host == host);
        let receives = |ops| {
            let all = sends(ledger, ops).filter_map(|send| Some(&ledger.entries[send.partner?]));
            all.filter(|receive| receive.host == host)
        };
        let begun = receives(exchange).chain(own(exchange)).map(|entry| entry.submitted).min().unwrap_or(0);
        let sent = own(exchange).map(ended).max().unwrap_or(begun);
        let computed = sent + program.before_ns;
        let received = receives(exchange).map(ended).max().unwrap_or(computed).max(computed);
        let calculated = received + program.after_ns;
        let met =
            receives(meeting).chain(own(meeting)).map(ended).max().unwrap_or(calculated).max(calculated);
        let ends = [
            (State::Send, sent),
            (State::Calculation, computed),
            (State::Wait, received),
            (State::Calculation, calculated),
            (State::Synchronization, met),
        ];
        let mut start = begun;
        for (state, end) in ends {
            self.stretches.push(Stretch { host, state, start, end });
            start = end;
        }
    }

    /// Milliseconds of an iteration that a host spends in a state, as the mean of those that are shown.
    fn ms(&self, host: usize, state: State) -> f64 {
        let its = self.stretches.iter().filter(|stretch| stretch.host == host && stretch.state == state);
        its.map(|stretch| (stretch.end - stretch.start) as f64).sum::<f64>() / SHOWN as f64 / 1e6
    }

    /// The longest time in a state over all hosts, in milliseconds.
    fn most(&self, state: State) -> f64 {
        (0..HOSTS).map(|host| self.ms(host, state)).fold(0.0, f64::max)
    }

    fn title(&self) -> String {
        let Trace { figure, limit, .. } = self;
        format!("figure {figure}, messages of at most {} KB, eager limit {} KB", LONGEST >> 10, limit >> 10)
    }

    fn enter(&self, table: &mut Table) {
        table.note(&format!("{}, ms of an iteration:", self.title()));
        let of = |state| (0..HOSTS).map(|host| rounded(self.ms(host, state))).collect();
        let heads = [("host", (0..HOSTS).map(|host| host.to_string()).collect())];
        let columns: Vec<_> =
            heads.into_iter().chain(STATES.map(|state| (state.name(), of(state)))).collect();
        table.series(&columns);
    }
}

fn traces() -> [Trace; 2] {
    LIMITS.map(|limit| traced(&INFINIBAND, limit))
}

/// Figures 8 and 9.
pub fn timelines() -> String {
    let mut table = Table::new("P5 figures 8 and 9: what hosts do in overlapToy", "ib-fdr10");
    table.note(&format!(
        "4 hosts, each with a message to each, {} ms of calculation in an iteration (chosen: the figures \
         show several iterations in 350 ms). The picture has two iterations of each, as the paper's have: \
         lines are messages, from their send to the end of their receive.",
        CALCULATION_NS / 1_000_000
    ));
    let [low, high] = traces();
    [&low, &high].into_iter().for_each(|trace| trace.enter(&mut table));
    let calculation = CALCULATION_NS as f64 / 1e6;
    table.claim(
        "Below the length of the messages, the communication phase takes as long as the calculation",
        low.most(State::Send) >= 0.9 * calculation,
        &format!(
            "up to {} ms in sends, {} of calculation",
            rounded(low.most(State::Send)),
            rounded(calculation)
        ),
    );
    let synchronized: Vec<f64> = (0..HOSTS).map(|host| low.ms(host, State::Synchronization)).collect();
    let remarkable = synchronized.iter().filter(|ms| **ms > 0.1 * calculation).count();
    table.claim(
        "The synchronization takes long for two hosts and next to no time for the other two",
        remarkable == 2,
        &format!(
            "{} ms; which hosts wait depends on which messages are longer than the limit, and lengths are \
            drawn",
            synchronized.iter().map(|ms| rounded(*ms)).collect::<Vec<_>>().join(", ")
        ),
    );
    table.claim(
        "With a limit of the longest message nobody waits",
        [State::Send, State::Wait, State::Synchronization]
            .iter()
            .all(|state| high.most(*state) < 0.01 * calculation),
        &format!(
            "at most {} ms in sends, {} in waits and {} in synchronization",
            rounded(high.most(State::Send)),
            rounded(high.most(State::Wait)),
            rounded(high.most(State::Synchronization))
        ),
    );
    table.finish()
}

const WIDTH: f64 = 900.0;
const LEFT: f64 = 70.0;
const RIGHT: f64 = 20.0;
const HEAD: f64 = 36.0;
const ROW: f64 = 34.0;
const BAR: f64 = 18.0;
const FOOT: f64 = 40.0;
const PANEL: f64 = HEAD + ROW * HOSTS as f64 + FOOT;

/// Both as a picture: bars for the states of each host, and lines for messages.
pub fn timelines_picture() -> String {
    let traces = traces();
    let height = PANEL * traces.len() as f64 + 24.0;
    let mut text = format!(
        "<svg xmlns=\"http://www.w3.org/2000/svg\" width=\"{WIDTH}\" height=\"{height}\" \
         font-family=\"sans-serif\" font-size=\"12\">\n<rect width=\"100%\" height=\"100%\" \
         fill=\"#ffffff\"/>\n"
    );
    for (place, trace) in traces.iter().enumerate() {
        draw(&mut text, PANEL * place as f64, trace);
    }
    for (place, state) in STATES.iter().enumerate() {
        let (x, y) = (LEFT + 150.0 * place as f64, PANEL * traces.len() as f64);
        bar(&mut text, (x, y), 14.0, state.colour());
        write(&mut text, (x + 20.0, y + 13.0), "start", "#000000", state.name());
    }
    text.push_str("</svg>\n");
    text
}

fn bar(text: &mut String, (x, y): (f64, f64), width: f64, colour: &str) {
    let _ = writeln!(
        text,
        "<rect x=\"{x:.1}\" y=\"{y:.1}\" width=\"{width:.2}\" height=\"{BAR}\" fill=\"{colour}\"/>"
    );
}

fn draw(text: &mut String, top: f64, trace: &Trace) {
    let first = trace.stretches.iter().map(|stretch| stretch.start).min().unwrap_or(0);
    let last = trace.stretches.iter().map(|stretch| stretch.end).max().unwrap_or(1);
    let scale = (WIDTH - LEFT - RIGHT) / (last - first).max(1) as f64;
    let x = |at: u64| LEFT + at.saturating_sub(first) as f64 * scale;
    let y = |host: usize| top + HEAD + ROW * host as f64;
    write(text, (LEFT, top + 20.0), "start", "#000000", &trace.title());
    for host in 0..HOSTS {
        write(text, (LEFT - 8.0, y(host) + 13.0), "end", "#444444", &format!("host {host}"));
    }
    for stretch in &trace.stretches {
        let width = (stretch.end - stretch.start) as f64 * scale;
        bar(text, (x(stretch.start), y(stretch.host)), width, stretch.state.colour());
    }
    for &((from, sent), (to, received)) in &trace.lines {
        let ends = [(x(sent), y(from) + BAR / 2.0), (x(received), y(to) + BAR / 2.0)];
        line(text, &ends, "#e0c000", 1.0);
    }
    let y = y(HOSTS) + 12.0;
    write(text, (LEFT, y), "start", "#444444", "0 ms");
    let end = format!("{} ms", rounded((last - first) as f64 / 1e6));
    write(text, (WIDTH - RIGHT, y), "end", "#444444", &end);
}
