//! Adapter: makes a table of C functions a strategy of the engine.

use super::watched::WrongAnswer;
use nmad_engine::{
    Duration, Entry, Forecast, Instant, PacketBuilder, PeerId, Prefer, RailId, RailView, Shares, Strategy,
    Window,
};
use nmad_plugin::layout::{BANDWIDTH, CONTROL, DEPENDS, FASTEST, LATENCY, PRIMARY};
use nmad_plugin::{Fill, Predict, Table, Turn, Waiting, Way};

/// A strategy in C, for one rank.
pub(super) struct Foreign {
    /// The name that selects the strategy; for a plug-in it contains the file.
    name: String,
    table: Table,
    rank: u32,
}

/// The engine's model of a rail.
struct Model<'a>(&'a Forecast);

impl Predict for Model<'_> {
    fn ns(&self, len: u64, large: bool) -> u64 {
        if large { self.0.body_ns(len) } else { self.0.eager_ns(len) }
    }
}

impl Foreign {
    pub(super) fn new(name: String, table: Table) -> Foreign {
        Foreign { name, table, rank: u32::MAX }
    }
}

/// Unwinds with the reason to [`super::watched`], which reports a wrong answer.
fn refuse(why: String) -> ! {
    std::panic::resume_unwind(Box::new(WrongAnswer(why)))
}

fn way<'a>(now: Instant, view: &RailView, forecast: &'a nmad_plugin::Forecast<'a>) -> Way<'a> {
    Way {
        rail: view.rail.0.into(),
        wire: view.wire.0.into(),
        idle_in_ns: view.busy_ns(now),
        bandwidth: view.bandwidth,
        latency_ns: view.latency_ns,
        flags: u32::from(view.primary) * PRIMARY + u32::from(view.fastest) * FASTEST,
        reserved: 0,
        forecast,
    }
}

fn waiting(entry: &Entry) -> Waiting {
    let (size, priority) = (entry.len() as u64, entry.priority().into());
    let Some(names) = entry.names() else {
        return Waiting { size, priority, flags: CONTROL, ..Waiting::default() };
    };
    let prefer = match entry.prefer() {
        Prefer::Either => 0,
        Prefer::Latency => LATENCY,
        Prefer::Bandwidth => BANDWIDTH,
    };
    let flags = prefer + u32::from(entry.depends()) * DEPENDS;
    let (tag, context) = (names.tag.0, names.context.0);
    Waiting { tag, len: names.len, size, context, seq: names.seq, priority, flags }
}

impl Strategy for Foreign {
    fn name(&self) -> &str {
        &self.name
    }

    fn meet(&mut self, peer: PeerId) {
        self.rank = peer.0;
    }

    fn chooses(&self) -> bool {
        self.table.chooses()
    }

    fn choose(&mut self, _: Instant, rail: RailId, peers: &[nmad_engine::Waiting]) -> Option<PeerId> {
        let turn = |waiting: &nmad_engine::Waiting| Turn {
            rank: waiting.peer.0,
            priority: waiting.window.first().map_or(0, |first| first.priority().into()),
            backlog: waiting.window.backlog() as u64,
            granted: waiting.granted,
        };
        let turns: Vec<Turn> = peers.iter().map(turn).collect();
        let chosen = self.table.choose(rail.0.into(), &turns)?;
        peers.get(chosen).map(|waiting| waiting.peer)
    }

    fn fill(&mut self, now: Instant, rail: &RailView, window: &mut Window, packet: &mut PacketBuilder) {
        let scope = rail.scope(true);
        let numbers: Vec<u32> = window.entries(scope).map(Entry::number).collect();
        let entries: Vec<Waiting> = window.entries(scope).map(waiting).collect();
        let (model, room) = (Model(rail.forecast), packet.room() as u64);
        let forecast = nmad_plugin::Forecast::of(&model);
        let way = way(now, rail, &forecast);
        let question = Fill { rank: self.rank, rail: &way, waiting: &entries, room };
        for index in self.table.fill(question).unwrap_or_else(|why| refuse(why)) {
            // An entry that does not fit stays in the window.
            packet.take(window, scope, |_, entry| entry.number() == numbers[index]);
        }
    }

    fn split(&mut self, now: Instant, len: u64, rails: &[RailView]) -> Shares {
        let models: Vec<Model<'_>> = rails.iter().map(|rail| Model(rail.forecast)).collect();
        let forecasts: Vec<_> = models.iter().map(nmad_plugin::Forecast::of).collect();
        let ways: Vec<Way<'_>> =
            rails.iter().zip(&forecasts).map(|(rail, forecast)| way(now, rail, forecast)).collect();
        match self.table.split(self.rank, len, &ways).unwrap_or_else(|why| refuse(why)) {
            Some(shares) => Shares::of(
                rails.iter().zip(shares).map(|(rail, len)| (rail.rail, len)).filter(|(_, len)| *len > 0),
            ),
            None => Shares::FirstIdle,
        }
    }

    fn carried(&mut self, len: u64, rails: usize, took: Duration) {
        self.table.carried(self.rank, len, rails, took.as_ns());
    }

    fn relearnt(&mut self) {
        self.table.relearnt(self.rank);
    }
}
