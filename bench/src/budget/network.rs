//! What a message of 8 B costs with the driver of a network: engine, pump, and the rails of both sides, which
//! are in one process and on one interface.
//!
//! Only functions whose names begin with `measured_` are to be counted: they post a receive, send, and turn
//! the pump. The process sleeps before it looks, so that nearly every turn finds the message.

use super::Host;
use nmad_drivers::around::layers::Layers;
use nmad_drivers::interface::{Interface, interfaces};
use nmad_drivers::network::{Network, Place};
use nmad_engine::{
    Caller, Config, Context, Engine, Hints, Instant, PeerId, Segments, Source, Submitted, Tag, TagMatch, pump,
};
use nmad_seal::Policy;
use std::time;

/// The network carries a message in less: an emulated soft-RoCE device in some 0.2 ms.
const PAUSE: time::Duration = time::Duration::from_millis(1);
/// Longest wait for a message, the first of which opens the link.
const BOUND: time::Duration = time::Duration::from_secs(20);

/// Two sides that send to each other in turn, and the time since they began.
struct World {
    hosts: [Host; 2],
    began: time::Instant,
}

/// Carries `count` messages over rails of the driver of this name, and two before them; returns how many
/// turns of the pump that took.
///
/// # Errors
/// The driver cannot be used on the interface, or loses a message; the text has the cause.
pub fn run(driver: &str, interface: &str, count: u64) -> Result<u64, String> {
    let network = Network::named(driver)?;
    let all = interfaces().map_err(|e| format!("the system does not tell its interfaces: {e}"))?;
    let found = all.into_iter().find(|found| found.name == interface);
    let interface =
        found.ok_or_else(|| format!("there is no interface {interface} (`ip link` lists them)"))?;
    let mut world = World::open(network, &interface)?;
    // The first of each side opens the link and tells how much the peer may send.
    (0..2).try_for_each(|side| world.carry(side, false).map(drop))?;
    (0..count).try_fold(0, |turns, number| Ok(turns + world.carry(number as usize % 2, true)?))
}

impl World {
    fn open(network: Network, interface: &Interface) -> Result<World, String> {
        let open = |rank| {
            let (rank, interface, encrypt) = (PeerId(rank), interface.clone(), Policy::Off);
            let place = Place { rank, rail: 0, interface, secret: [5; 32], encrypt };
            network.open(place, &Layers::default()).map(|(rail, _)| rail).map_err(|e| e.to_string())
        };
        let rails = [open(0)?, open(1)?];
        let addresses = rails.each_ref().map(|rail| rail.address());
        let mut me = 0;
        let hosts = rails.map(|mut rail| {
            let other = 1 - me;
            rail.know(PeerId(other), 0, &addresses[other as usize]);
            let config = Config { me: PeerId(me), ..Config::default() };
            let mut engine = Engine::new(config).expect("the default strategy exists");
            let id = engine.setup().add_rail(rail.limits());
            engine.setup().add_link(PeerId(other), id);
            me += 1;
            Host { engine, rails: vec![rail] }
        });
        Ok(World { hosts, began: time::Instant::now() })
    }

    fn now(&self) -> Instant {
        Instant::from_ns(self.began.elapsed().as_nanos() as u64)
    }

    /// Carries a message from a side to the other; returns the turns that its receiver made. A later message
    /// leaves in the call that sends it.
    fn carry(&mut self, from: usize, is_later: bool) -> Result<u64, String> {
        let (out, mut into) = (0x0123_4567_89AB_CDEF_u64, 0_u64);
        let (begun, now) = (time::Instant::now(), self.now());
        measured_receive(&mut self.hosts[1 - from], from as u32, &mut into);
        let has_left = measured_send(&mut self.hosts[from], 1 - from as u32, &out, now);
        if is_later && !has_left {
            return Err("a message waits although its rail is idle".into());
        }
        for turns in 1.. {
            std::thread::sleep(PAUSE);
            let now = self.now();
            if measured_turn(&mut self.hosts[1 - from], now) > 0 && *std::hint::black_box(&into) == out {
                return Ok(turns);
            }
            if !is_later {
                measured_turn(&mut self.hosts[from], now);
            }
            if begun.elapsed() > BOUND {
                break;
            }
        }
        Err(format!("a message of 8 B has not come within {} s", BOUND.as_secs()))
    }
}

#[unsafe(no_mangle)]
#[inline(never)]
fn measured_receive(host: &mut Host, from: u32, into: &mut u64) {
    // SAFETY: the receive ends before the borrow does, or the process ends with an error.
    let into = unsafe { Segments::from_raw((&raw mut *into).cast(), 8) };
    host.engine.recv(Source::Peer(PeerId(from)), Context(0), TagMatch::Exact(Tag(1)), into);
}

/// Sends a word; whether it has left.
#[unsafe(no_mangle)]
#[inline(never)]
fn measured_send(host: &mut Host, to: u32, word: &u64, now: Instant) -> bool {
    let (to, hints) = ((PeerId(to), Context(0), Tag(1)), Hints::default());
    // SAFETY: the memory is only read, and the request ends before the borrow does.
    let data = unsafe { Segments::from_raw((&raw const *word).cast_mut().cast(), 8) };
    let node = &mut pump::Exclusive(&mut host.engine, &mut host.rails);
    match pump::send_at_once(node, &to, (&data, hints), Caller::Waits, &mut || now) {
        Ok(Submitted::Ended(_)) => true,
        Ok(Submitted::Request(_)) => false,
        Err(_) => {
            host.engine.send(to.0, to.1, to.2, data, hints);
            false
        }
    }
}

/// Turns the pump once; returns the requests that have ended.
#[unsafe(no_mangle)]
#[inline(never)]
fn measured_turn(host: &mut Host, now: Instant) -> u64 {
    host.turn(now)
}
