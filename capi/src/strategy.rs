//! Strategies written in C: a table of functions becomes a strategy of the library.

use crate::code::{ARGUMENT, Answer, Failure, OK};
use crate::live::SessionPointer;
use crate::raw::{self, In, Out, Text};
use newmadeleine::strategy::{
    Duration, Entry, Forecast, Instant, PacketBuilder, PeerId, RailId, RailView, Shares, Strategy, Waiting,
    Window,
};
use newmadeleine::{Options, Prefer};
use std::ffi::{c_int, c_void};
use std::ptr::with_exposed_provenance_mut;
use std::sync::{Mutex, PoisonError};

const DEPENDS: u32 = 8;
const LATENCY: u32 = 16;
const BANDWIDTH: u32 = 32;
const CONTROL: u32 = 64;
const PRIMARY: u32 = 1;
const FASTEST: u32 = 2;

/// `nmad_waiting_t`
#[repr(C)]
#[derive(Debug, Clone, Copy, Default)]
pub struct CWaiting {
    tag: u64,
    len: u64,
    size: u64,
    context: u32,
    seq: u32,
    priority: i32,
    flags: u32,
}

/// `nmad_way_t`
#[repr(C)]
#[derive(Debug, Clone, Copy)]
pub struct CWay {
    rail: u32,
    wire: u32,
    idle_in_ns: u64,
    bandwidth: u64,
    latency_ns: u64,
    flags: u32,
    reserved: u32,
    forecast: *const Forecast,
}

/// `nmad_turn_t`
#[repr(C)]
#[derive(Debug, Clone, Copy)]
pub struct CTurn {
    rank: u32,
    priority: i32,
    backlog: u64,
    granted: u64,
}

type Fill = extern "C" fn(*mut c_void, u32, *const CWay, *const CWaiting, usize, u64, *mut usize) -> usize;
type Split = extern "C" fn(*mut c_void, u32, u64, *const CWay, usize, *mut u64) -> c_int;
type Carried = extern "C" fn(*mut c_void, u32, u64, usize, u64);
type Relearnt = extern "C" fn(*mut c_void, u32);
type Choose = extern "C" fn(*mut c_void, u32, *const CTurn, usize) -> usize;

/// `nmad_strategy_t`
#[repr(C)]
#[derive(Clone, Copy)]
pub struct CStrategy {
    first: First,
    relearnt: Option<Relearnt>,
}

/// The table without `relearnt`, which was added later.
#[repr(C)]
#[derive(Clone, Copy)]
pub struct First {
    size: usize,
    name: Text,
    state: *mut c_void,
    fill: Option<Fill>,
    split: Option<Split>,
    carried: Option<Carried>,
    choose: Option<Choose>,
}

/// The registered tables, for the sessions that are opened from now on.
static REGISTERED: Mutex<Vec<Table>> = Mutex::new(Vec::new());

/// A table that is complete.
#[derive(Clone)]
struct Table {
    name: String,
    /// Address of what the program keeps for it; handed back to it and never looked at.
    state: usize,
    fill: Fill,
    split: Split,
    carried: Option<Carried>,
    choose: Option<Choose>,
    relearnt: Option<Relearnt>,
}

impl In<CStrategy> {
    /// A table with all that it needs.
    fn table(self) -> Result<Table, Failure> {
        let wrong = |text: String| Err(Failure::new(ARGUMENT, text));
        let Some(size) = self.prefix::<usize>() else { return wrong("strategy is NULL".into()) };
        let known = [size_of::<First>(), size_of::<CStrategy>()];
        let found = match known.iter().position(|known| *known == size) {
            Some(0) => self.prefix::<First>().map(|first| (first, None)),
            Some(_) => self.get().map(|whole| (whole.first, whole.relearnt)),
            None => {
                let [first, last] = known;
                let of = "is that of no version of nmad_strategy_t";
                return wrong(format!("size {size} {of} (known: {first}, {last})"));
            }
        };
        let Some((First { name, state, fill, split, carried, choose, .. }, relearnt)) = found else {
            return wrong("strategy is NULL".into());
        };
        let name = name.required("name of the strategy")?;
        if name.is_empty() || name.chars().any(|c| c.is_whitespace() || c.is_control()) {
            return wrong(format!("'{name}' is no name: it must have letters, and no spaces"));
        }
        let (Some(fill), Some(split)) = (fill, split) else {
            return wrong(format!("strategy '{name}' lacks a function: fill and split must not be NULL"));
        };
        let state = state.expose_provenance();
        Ok(Table { name, state, fill, split, carried, choose, relearnt })
    }
}

pub fn register(strategy: In<CStrategy>) -> Answer {
    let table = strategy.table()?;
    let mut registered = REGISTERED.lock().unwrap_or_else(PoisonError::into_inner);
    registered.retain(|other| other.name != table.name);
    registered.push(table);
    Ok(OK)
}

/// Gives a session what was registered.
pub fn add_registered(options: &mut Options) {
    for table in REGISTERED.lock().unwrap_or_else(PoisonError::into_inner).iter() {
        let table = table.clone();
        options.register(move || Box::new(Foreign { table: table.clone(), rank: u32::MAX }));
    }
}

pub fn number(session: SessionPointer, name: Text, strategy: Out<u32>) -> Answer {
    let (handle, strategy) = (session.get()?, strategy.required("strategy")?);
    let id = handle.session.strategy(&name.required("name")?)?;
    strategy.set(id.place() as u32 + 1);
    Ok(OK)
}

pub fn set_feed(session: SessionPointer, feed: Text) -> Answer {
    let handle = session.get()?;
    let mut options = Options::default();
    options.set("feed", &feed.required("feed")?)?;
    handle.session.set_feed(options.feed.unwrap_or_default());
    Ok(OK)
}

pub fn set_progress(session: SessionPointer, progress: Text) -> Answer {
    let handle = session.get()?;
    let mut options = Options::default();
    options.set("progress", &progress.required("progress")?)?;
    handle.session.set_progress(options.progress.unwrap_or_default())?;
    Ok(OK)
}

pub fn predict(way: In<CWay>, len: u64, large: c_int, ns: Out<u64>) -> Answer {
    let ns = ns.required("ns")?;
    let way = way.get().filter(|way| !way.forecast.is_null());
    let way = way.ok_or_else(|| Failure::new(ARGUMENT, "way is NULL, or none that a strategy was given"))?;
    let forecast = raw::alive(way.forecast.cast_mut());
    ns.set(if large == 0 { forecast.eager_ns(len) } else { forecast.body_ns(len) });
    Ok(OK)
}

/// A strategy in C, for one rank.
struct Foreign {
    table: Table,
    rank: u32,
}

impl Foreign {
    fn state(&self) -> *mut c_void {
        with_exposed_provenance_mut(self.table.state)
    }
}

fn way(now: Instant, view: &RailView) -> CWay {
    CWay {
        rail: view.rail.0.into(),
        wire: view.wire.0.into(),
        idle_in_ns: view.idle_at.since(now).as_ns(),
        bandwidth: view.bandwidth,
        latency_ns: view.latency_ns,
        flags: u32::from(view.primary) * PRIMARY + u32::from(view.fastest) * FASTEST,
        reserved: 0,
        forecast: view.forecast,
    }
}

fn waiting(entry: &Entry) -> CWaiting {
    let (size, priority) = (entry.len() as u64, entry.priority().into());
    let Some(names) = entry.names() else {
        return CWaiting { size, priority, flags: CONTROL, ..CWaiting::default() };
    };
    let prefer = match entry.prefer() {
        Prefer::Either => 0,
        Prefer::Latency => LATENCY,
        Prefer::Bandwidth => BANDWIDTH,
    };
    let flags = prefer + u32::from(entry.depends()) * DEPENDS;
    CWaiting {
        tag: names.tag.0,
        len: names.len,
        size,
        context: names.context.0,
        seq: names.seq,
        priority,
        flags,
    }
}

impl Strategy for Foreign {
    fn name(&self) -> &str {
        &self.table.name
    }

    fn meet(&mut self, peer: PeerId) {
        self.rank = peer.0;
    }

    fn chooses(&self) -> bool {
        self.table.choose.is_some()
    }

    fn choose(&mut self, _: Instant, rail: RailId, peers: &[Waiting]) -> Option<PeerId> {
        let turn = |waiting: &Waiting| CTurn {
            rank: waiting.peer.0,
            priority: waiting.window.first().map_or(0, |first| first.priority().into()),
            backlog: waiting.window.backlog() as u64,
            granted: waiting.granted,
        };
        let turns: Vec<CTurn> = peers.iter().map(turn).collect();
        let chosen = self.table.choose?(self.state(), rail.0.into(), turns.as_ptr(), turns.len());
        peers.get(chosen).map(|waiting| waiting.peer)
    }

    fn fill(&mut self, now: Instant, rail: &RailView, window: &mut Window, packet: &mut PacketBuilder) {
        let scope = rail.scope(true);
        let numbers: Vec<u32> = window.entries(scope).map(Entry::number).collect();
        let entries: Vec<CWaiting> = window.entries(scope).map(waiting).collect();
        let (way, room) = (way(now, rail), packet.room() as u64);
        let mut chosen = vec![usize::MAX; entries.len()];
        let (list, count) = (entries.as_ptr(), entries.len());
        let count = (self.table.fill)(self.state(), self.rank, &way, list, count, room, chosen.as_mut_ptr());
        assert!(count <= chosen.len(), "it chose {count} of {} messages", chosen.len());
        for (place, &index) in chosen[..count].iter().enumerate() {
            assert!(index < numbers.len(), "it chose message {index} of {}", numbers.len());
            assert!(!chosen[..place].contains(&index), "it chose message {index} twice");
            // What does not fit stays.
            packet.take(window, scope, |_, entry| entry.number() == numbers[index]);
        }
    }

    fn split(&mut self, now: Instant, len: u64, rails: &[RailView]) -> Shares {
        let ways: Vec<CWay> = rails.iter().map(|rail| way(now, rail)).collect();
        let mut shares = vec![0; ways.len()];
        let code =
            (self.table.split)(self.state(), self.rank, len, ways.as_ptr(), ways.len(), shares.as_mut_ptr());
        match code {
            0 => Shares::of(
                rails.iter().zip(shares).map(|(rail, len)| (rail.rail, len)).filter(|(_, len)| *len > 0),
            ),
            1 => Shares::FirstIdle,
            code => panic!("it failed with {code}"),
        }
    }

    fn carried(&mut self, len: u64, rails: usize, took: Duration) {
        if let Some(carried) = self.table.carried {
            carried(self.state(), self.rank, len, rails, took.as_ns());
        }
    }

    fn relearnt(&mut self) {
        if let Some(relearnt) = self.table.relearnt {
            relearnt(self.state(), self.rank);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::ptr::null_mut;
    use std::sync::atomic::{AtomicU32, Ordering};

    static TOLD: AtomicU32 = AtomicU32::new(0);

    extern "C" fn fill(
        _: *mut c_void,
        _: u32,
        _: *const CWay,
        _: *const CWaiting,
        _: usize,
        _: u64,
        _: *mut usize,
    ) -> usize {
        0
    }

    extern "C" fn split(_: *mut c_void, _: u32, _: u64, _: *const CWay, _: usize, _: *mut u64) -> c_int {
        1
    }

    extern "C" fn relearnt(_: *mut c_void, rank: u32) {
        TOLD.store(rank, Ordering::Relaxed);
    }

    #[test]
    fn the_functions_of_a_table_that_may_be_missing_are_called_if_they_are_there() {
        let (carried, choose, state) = (None, None, null_mut::<c_void>().expose_provenance());
        let table = |relearnt| Table { name: "t".into(), state, fill, split, carried, choose, relearnt };
        for (relearnt, told) in [(None, 0), (Some(relearnt as Relearnt), 3)] {
            let mut foreign = Foreign { table: table(relearnt), rank: u32::MAX };
            foreign.meet(PeerId(3));
            foreign.carried(1, 1, Duration::ZERO);
            foreign.relearnt();
            assert_eq!(TOLD.load(Ordering::Relaxed), told);
        }
    }
}
