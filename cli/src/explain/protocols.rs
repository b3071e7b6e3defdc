//! Which protocol serves which sizes, over each rail and over all of them: the engine's own plan
//! ([`Inspect::plan`](newmadeleine::engine::Inspect::plan)), asked for every size.

use super::another_rank;
use crate::profiles::{self, InForce};
use newmadeleine::engine::{Caller, Context, Hints, LinkView, PeerId, Quote, RailId, Tag};
use newmadeleine::{Options, Session, SessionError};
use nmad_bench::stats::{bytes, number};
use nmad_bench::table::Table;
use serde::Serialize;
use std::fmt;
use std::time::{Duration, Instant};

/// The longest message that is asked for.
const LONGEST: u64 = 64 << 20;
/// Sizes at which costs are shown, in bytes.
const PRICED: [u64; 5] = [8, 1 << 10, 32 << 10, 256 << 10, 4 << 20];
/// Links open within this, or are left out.
const PATIENCE: Duration = Duration::from_secs(2);
/// The tag of the message that has the links opened.
const TAG: u64 = 0;

/// Protocols by size.
#[derive(Serialize)]
pub(super) struct Protocols {
    /// The rank that messages go to.
    to: u32,
    strategy: String,
    rails: Vec<OnRail>,
    /// The thresholds from which that follows.
    in_force: Vec<InForce>,
}

/// Those over one rail, or over all of them.
#[derive(Serialize)]
struct OnRail {
    /// None: all rails together.
    rail: Option<String>,
    sizes: Vec<Range>,
    /// Predicted costs at some sizes.
    costs: Vec<Costs>,
}

/// Predicted costs of a message of one size with each protocol that fits.
#[derive(Serialize)]
struct Costs {
    bytes: u64,
    /// The cheapest first: the one that it takes.
    protocols: Vec<Predicted>,
}

/// The cost with one protocol.
#[derive(Serialize)]
struct Predicted {
    protocol: &'static str,
    /// Until a posted receive has it, on idle rails.
    predicted_us: f64,
    /// The size is one for which the protocol was measured to be the fastest.
    is_within: bool,
}

/// Sizes that go the same way.
#[derive(Serialize)]
struct Range {
    from: u64,
    /// The last of them; none: there is no end.
    to: Option<u64>,
    /// Of a thread that waits for the message to leave.
    blocking: &'static str,
    /// Of a thread that goes on.
    nonblocking: &'static str,
}

/// Asks the engine of rank 0; none in the other ranks.
pub(super) fn ask(options: &Options, to: u32) -> Result<Option<Protocols>, SessionError> {
    let session = Session::open_with(options)?;
    another_rank(&session, to)?;
    let found = match session.rank() {
        0 => {
            session.send(to, TAG, &[])?;
            session.recv(to, TAG, &mut [])?;
            let found = of(&session, to, options);
            session.send(to, TAG, &[])?;
            Some(found)
        }
        rank if rank == to => {
            session.recv(0, TAG, &mut [])?;
            session.send(0, TAG, &[])?;
            // Its links are looked at until then.
            session.recv(0, TAG, &mut [])?;
            None
        }
        _ => None,
    };
    session.close()?;
    Ok(found)
}

fn of(session: &Session, to: u32, options: &Options) -> Protocols {
    let peer = PeerId(to);
    let names: Vec<String> = session.rails().into_iter().map(|rail| rail.name).collect();
    let open = |index: &usize| {
        let begun = Instant::now();
        loop {
            match session.node().with(|engine| engine.inspect().link(peer, RailId(*index as u8))) {
                Some(LinkView::Up { .. }) => return true,
                Some(LinkView::Opening) if begun.elapsed() < PATIENCE => drop(session.node().turn()),
                _ => return false,
            }
        }
    };
    let open: Vec<usize> = (0..names.len()).filter(open).collect();
    let mut rails = Vec::new();
    for &index in &open {
        session.node().with(|engine| engine.setup().measure(peer, Some(RailId(index as u8))));
        rails.push(on_rail(session, peer, Some(names[index].clone())));
    }
    session.node().with(|engine| engine.setup().measure(peer, None));
    if open.len() > 1 {
        rails.push(on_rail(session, peer, None));
    }
    let strategy = options.strategy.clone().unwrap_or_else(|| Options::DEFAULT_STRATEGY.into());
    Protocols { to, strategy, rails, in_force: InForce::to(session, to) }
}

fn on_rail(session: &Session, peer: PeerId, rail: Option<String>) -> OnRail {
    let predicted = |quote: &Quote| Predicted {
        protocol: quote.protocol.name(),
        predicted_us: quote.predicted_ns as f64 / 1e3,
        is_within: quote.is_within,
    };
    let costs = |&bytes: &u64| {
        let to = (peer, Context(0), Tag(TAG));
        let quotes = session.node().with(|engine| engine.inspect().quotes(to, bytes, Hints::default()));
        Costs { bytes, protocols: quotes.iter().map(predicted).collect() }
    };
    OnRail { rail, sizes: sizes(session, peer), costs: PRICED.iter().map(costs).collect() }
}

/// The protocols of a message of this length: of a thread that waits, and of one that goes on.
fn protocols(session: &Session, peer: PeerId, len: u64) -> [&'static str; 2] {
    let now = session.node().now();
    let to = (peer, Context(0), Tag(TAG));
    [Caller::Waits, Caller::GoesOn].map(|caller| {
        let plan =
            session.node().with(|engine| engine.inspect().plan(to, len, Hints::default(), caller, now));
        plan.map_or("none", |plan| plan.protocol.name())
    })
}

/// Ranges of sizes with the same protocols, their borders exact.
fn sizes(session: &Session, peer: PeerId) -> Vec<Range> {
    let ask = |len| protocols(session, peer, len);
    let mut ranges = Vec::new();
    let (mut from, mut known) = (0, ask(0));
    let powers = std::iter::successors(Some(1), |&len| Some(2 * len).filter(|&len| len <= LONGEST));
    let mut before = 0;
    for len in powers {
        let found = ask(len);
        if found != known {
            let (mut same, mut other) = (before, len);
            while other - same > 1 {
                let middle = same.midpoint(other);
                if ask(middle) == known { same = middle } else { other = middle }
            }
            let [blocking, nonblocking] = known;
            ranges.push(Range { from, to: Some(same), blocking, nonblocking });
            (from, known) = (other, found);
        }
        before = len;
    }
    let [blocking, nonblocking] = known;
    ranges.push(Range { from, to: None, blocking, nonblocking });
    ranges
}

/// A table of predicted costs.
fn costs(rails: &[OnRail]) -> Table {
    let title = "predicted us until a posted receive has it; (beyond): not measured to be the fastest there";
    let mut table = Table::new(title, &["rail", "size", "taken", "others"]).words([1, 2, 3]);
    for on in rails {
        for (index, Costs { bytes: len, protocols }) in on.costs.iter().enumerate() {
            let word = |one: &Predicted| {
                let beyond = if one.is_within { "" } else { " (beyond)" };
                format!("{} {}{beyond}", one.protocol, number(one.predicted_us))
            };
            let words: Vec<String> = protocols.iter().map(word).collect();
            let (first, others) = words
                .split_first()
                .map_or(("-", String::new()), |(first, rest)| (first.as_str(), rest.join(", ")));
            let name = if index == 0 { on.rail.as_deref().unwrap_or("all rails") } else { "" };
            table.row([name, &bytes(*len), first, &others]);
        }
    }
    table
}

impl fmt::Display for Protocols {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut table =
            Table::new("", &["rail", "sizes", "a send that waits", "a send that goes on"]).words([1, 2, 3]);
        for on in &self.rails {
            let name = on.rail.as_deref().unwrap_or("all rails");
            for (index, range) in on.sizes.iter().enumerate() {
                let end = range.to.map_or_else(|| "and more".into(), |to| format!("to {}", bytes(to)));
                let sizes = format!("{} {end}", bytes(range.from));
                let name = if index == 0 { name } else { "" };
                table.row([name, &sizes, range.blocking, range.nonblocking]);
            }
        }
        writeln!(
            f,
            "protocols of messages to rank {}, strategy {}, on idle rails:\n",
            self.to, self.strategy
        )?;
        writeln!(f, "{table}")?;
        writeln!(f, "{}", costs(&self.rails))?;
        write!(f, "{}", profiles::in_force(&self.in_force))
    }
}
