//! How all processes agree at the beginning, and how they find the greatest of some figures.

use super::settings::{SETTINGS, Settings};
use crate::algorithm::allreduce::Allreduce;
use crate::algorithm::choice::{Choices, Context, Family, Problem};
use crate::algorithm::cost::{Cost, Curve, FIGURES, Memory, Node, SIZES};
use crate::algorithm::memory::Buffers;
use crate::algorithm::operands::Operands;
use crate::algorithm::operator::Operator;
use crate::algorithm::place::{Buffer, Spot};
use crate::algorithm::run::Run;
use crate::algorithm::schedule::Builder;
use crate::comm::Communicator;
use crate::datatype::{Basic, Datatype};
use crate::error::{Class, Result};
use crate::fault;
use crate::hardware;
use crate::op::{Op, Predefined};
use crate::world::World;
use newmadeleine::engine::{Engine, PeerId, RailId};
use newmadeleine::setting::{MPI_CACHE_RANKS, MPI_CHECK, MPI_MEMORY, MPI_TAPER, MPI_TRIALS};
use std::sync::Arc;

const AGREED: usize = FIGURES + Family::ALL.len() + OTHERS;
/// Figures that are neither costs nor choices.
const OTHERS: usize = 4;

/// Agrees with all other processes. `all` is the communicator of all of them; collective.
///
/// If a process dies meanwhile and the job runs with `--ft`, all survivors have the same settings, which no
/// process has named or measured.
///
/// # Errors
/// A variable of the environment names an unknown algorithm, or a process has died and the job runs without
/// `--ft`.
pub(crate) fn agree(world: &World, all: &Communicator) -> Result<()> {
    let choices = Choices::read(|name| std::env::var(name).ok())?;
    let refused = |why| Class::OTHER.error(why);
    let check = MPI_CHECK.is_on().map_err(refused)?;
    let is_off = !MPI_TRIALS.is_on().map_err(refused)?;
    let session = world.session();
    let mut figures = [0.0; AGREED];
    let (curves, across_ns) = ([true, false].map(|near| curve(world, near)), session.across_ns());
    let node = Node {
        cores: session.cores(),
        nodes: session.nodes_of_machine(),
        post: post(world),
        reads: reads(world),
        memory: memory().map_err(refused)?,
        taper: taper().map_err(refused)?,
    };
    figures[..FIGURES].copy_from_slice(&Cost::figures(curves, across_ns as f64, node, alone(world)));
    figures[FIGURES..AGREED - OTHERS].copy_from_slice(&choices.figures());
    figures[AGREED - 4] = f64::from(most_of_a_cache(world));
    figures[AGREED - 3] = f64::from(cache_ranks().map_err(refused)?);
    // Trials are off if any rank has NMAD_MPI_TRIALS=off.
    figures[AGREED - 2] = f64::from(u8::from(is_off));
    figures[AGREED - 1] = f64::from(u8::from(check));
    let exchanged = greatest(all, &mut figures).inspect_err(|why| log::info!("{why}"));
    let agreed = match fault::calls::succeeded_everywhere(all, exchanged)? {
        true => from_figures(&choices, &figures),
        false => {
            let mut without = Settings::default();
            without.choices.explain = choices.explain;
            without
        }
    };
    log::debug!("collectives count on {:?}", agreed.cost);
    // Init happens once.
    let _ = SETTINGS.set(agreed);
    Ok(())
}

fn from_figures(choices: &Choices, figures: &[f64; AGREED]) -> Settings {
    let (mut cost, mut named) = ([0.0; FIGURES], [0.0; Family::ALL.len()]);
    cost.copy_from_slice(&figures[..FIGURES]);
    named.copy_from_slice(&figures[FIGURES..AGREED - OTHERS]);
    Settings {
        cost: Cost::from_figures(&cost),
        choices: choices.agreed(&named),
        cache_ranks: [figures[AGREED - 3], figures[AGREED - 4]].map(|figure| figure as u32),
        tries: figures[AGREED - 2] == 0.0,
        check: figures[AGREED - 1] > 0.0,
    }
}

/// The memory of our node, as far as the user says how fast it is. A core's part of its cache counts as
/// that of a rank.
fn memory() -> std::result::Result<Memory, String> {
    let bytes = MPI_MEMORY.text()?.map_or(Ok(0), |text| MPI_MEMORY.size(&text))?;
    Ok(match bytes {
        0 => Memory::default(),
        _ => Memory { ns_per_byte: 1e9 / bytes as f64, cached: hardware::cached().unwrap_or(0).max(1) },
    })
}

/// Bandwidth of the nodes of a switch over that of its links to others, as the user says.
fn taper() -> std::result::Result<f64, String> {
    let Some(text) = MPI_TAPER.text()? else { return Ok(1.0) };
    let known = text.parse().ok().filter(|taper: &f64| taper.is_finite() && *taper >= 1.0);
    known.ok_or_else(|| format!("{}: '{text}' is no number from 1 on", MPI_TAPER.name))
}

/// Below which length messages to other nodes take one rail, and what a byte takes there.
fn alone(world: &World) -> (u64, f64) {
    let rails = world.session().rails().len() as u8;
    let Some(peer) = someone(world, false).map(PeerId) else { return (0, 0.0) };
    let known = |engine: &mut Engine| {
        let below = engine.inspect().eager_max(peer)? as u64 + 1;
        let forecasts = (0..rails).filter_map(|rail| engine.inspect().forecast(RailId(rail), peer));
        let fastest = forecasts.min_by_key(|forecast| forecast.eager_ns(SIZES[0]))?;
        let longest = SIZES[SIZES.len() - 1];
        let ns = fastest.body_ns(longest).saturating_sub(fastest.body_ns(0));
        Some((below, ns as f64 / longest as f64))
    };
    world.node().with(known).unwrap_or((0, 0.0))
}

/// The most ranks of our node that share a cache; zero if that is not known.
fn most_of_a_cache(world: &World) -> u32 {
    let caches = world.session().caches();
    let count = |cache| caches.iter().filter(|(_, other)| *other == cache).count() as u32;
    caches.iter().map(|(_, cache)| count(*cache)).max().unwrap_or(0)
}

/// Ranks that share a cache, as the user says; zero if not.
fn cache_ranks() -> std::result::Result<u32, String> {
    let Some(text) = MPI_CACHE_RANKS.text()? else { return Ok(0) };
    let wrong = || format!("{}: '{text}' is no number of ranks", MPI_CACHE_RANKS.name);
    if text == MPI_CACHE_RANKS.default { Ok(0) } else { text.parse().map_err(|_| wrong()) }
}

/// Each figure becomes the greatest that any process of a communicator has.
pub(super) fn greatest(all: &Communicator, figures: &mut [f64]) -> Result<()> {
    let operator = Operator::new(&Op::Predefined(Predefined::Max), Datatype::predefined(Basic::Double))?;
    let operands = Operands { operator, count: figures.len() as i64 };
    let place = Spot::start(Buffer::Recv);
    let problem = Allreduce { from: place, into: place, operands };
    let mut builder = Builder::default();
    builder.operator(&problem.operands.operator);
    let context = Context { cost: &Cost::default(), choices: &Choices::default(), inner: false };
    problem.build(all.team()?, &context, &mut builder);
    let mut run = Run::new(Arc::new(builder.finish()));
    let buffer = figures.as_mut_ptr().cast();
    run.bind(all.next_operation(), Buffers { send: buffer, recv: buffer });
    super::running::complete(all, &mut run)
}

/// A process on our node, or on another one; none if there is no such process.
fn someone(world: &World, near: bool) -> Option<u32> {
    let (session, me) = (world.session(), world.session().rank());
    let nodes = session.nodes();
    let own = nodes.get(me as usize)?;
    (0..session.size()).find(|&rank| rank != me && (nodes[rank as usize] == *own) == near)
}

/// Lengths of messages that processes of our node read from each other's memory.
fn reads(world: &World) -> (u64, u64) {
    let in_force = |peer| world.node().with(|engine| engine.inspect().in_force(PeerId(peer)));
    someone(world, true).and_then(in_force).map_or((u64::MAX, 0), |in_force| in_force.reads)
}

/// What messages take to a process on our node, or on another one, and what a further short one adds.
fn curve(world: &World, near: bool) -> Option<(Curve, f64)> {
    let session = world.session();
    let peer = someone(world, near)?;
    let rails = session.rails().len() as u8;
    let predict = |engine: &mut Engine| SIZES.map(|len| predicted_ns(engine, PeerId(peer), rails, len));
    let ns = world.node().with(predict);
    let further = |engine: &mut Engine| {
        let forecast = |rail| engine.inspect().forecast(RailId(rail), PeerId(peer));
        let measured = (0..rails).filter_map(forecast).filter(|forecast| forecast.is_measured());
        measured.map(|forecast| forecast.packet_ns()).min()
    };
    let gap = world.node().with(further).unwrap_or(0) as f64;
    ns.iter().all(|ns| ns.is_finite() && *ns > 0.0).then(|| (Curve::new(ns), gap))
}

/// For which an eager message to another node keeps a core.
fn post(world: &World) -> Option<Curve> {
    let peer = someone(world, false)?;
    let rails = world.session().rails().len() as u8;
    let ns = |engine: &mut Engine| {
        let forecasts =
            || (0..rails).filter_map(|rail| engine.inspect().forecast(RailId(rail), PeerId(peer)));
        let least = |len: u64| forecasts().filter_map(|f| f.profile().post().map(|post| post.ns(len))).min();
        SIZES.map(|len| least(len).map_or(0.0, |ns| ns as f64))
    };
    let ns = world.node().with(ns);
    ns.iter().all(|ns| *ns > 0.0).then(|| Curve::new(ns))
}

/// A short message takes the fastest rail; a long one is shared out, so that all rails end together.
fn predicted_ns(engine: &Engine, peer: PeerId, rails: u8, len: u64) -> f64 {
    let forecasts = || (0..rails).filter_map(|rail| engine.inspect().forecast(RailId(rail), peer));
    if engine.inspect().eager_max(peer).is_none_or(|max| len <= max as u64) {
        return forecasts().map(|forecast| forecast.eager_ns(len) as f64).fold(f64::INFINITY, f64::min);
    }
    let handshake = forecasts().map(|forecast| forecast.profile().handshake_ns()).min().unwrap_or(0);
    let start = forecasts().map(|forecast| forecast.body_ns(0) as f64).fold(f64::INFINITY, f64::min);
    let rate: f64 = forecasts().map(|f| len as f64 / (f.body_ns(len) - f.body_ns(0)).max(1) as f64).sum();
    handshake as f64 + start + len as f64 / rate
}
