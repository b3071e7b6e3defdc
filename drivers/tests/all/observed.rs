//! A layer that observes a rail, or slows it down, does not change which protocol a message takes.

use nmad_drivers::around::fault::{Fault, Faults};
use nmad_drivers::around::throttle::Throttle;
use nmad_drivers::around::trace::Trace;
use nmad_drivers::around::{Around, Layer};
use nmad_drivers::conformance::memory::Memory;
use nmad_engine::packet::{Key, RegionId};
use nmad_engine::transfer::driver::{Departure, Driver, Event, Limits, Order, Scope, Sent};
use nmad_engine::{
    Caller, Config, Context, Engine, Hints, Instant, Met, PeerId, Plan, Segments, Source, Submitted, Tag,
    TagMatch, pump,
};
use nmad_wire::{Eager, Header, Kind};
use std::sync::{Arc, Mutex};
use std::time::Duration;

const PEER: PeerId = PeerId(1);

/// What a rail was given, and asked for, in words.
type Given = Arc<Mutex<Vec<String>>>;

/// A rail that offers every protocol, takes every departure, and records it. Its link is open from the first
/// poll on, and a look for a packet finds a message that may be copied, if one is there.
struct Recording {
    limits: Limits,
    given: Given,
    is_up: bool,
    posted: Vec<Order>,
    /// The packet that the next look finds.
    arriving: Option<Vec<u8>>,
}

impl Driver for Recording {
    fn name(&self) -> &str {
        "recording"
    }
    fn limits(&self) -> Limits {
        self.limits
    }
    fn open(&mut self, _: RegionId, _: PeerId, _: Segments) -> Key {
        Key(1)
    }
    fn close(&mut self, _: RegionId) {}
    fn room(&self) -> usize {
        8
    }
    fn send(&mut self, departure: Departure<'_>) -> Sent {
        let (what, sent) = match &departure {
            Departure::Message { how, data, .. } => (format!("{how:?} of {} B", data.len()), Sent::Done),
            Departure::Pushed { chunk, .. } => (format!("pushed {}", len(chunk)), Sent::Done),
            Departure::Order(order) => (format!("order of {}", len(order)), Sent::Posted),
        };
        self.given.lock().unwrap().push(what);
        if let Departure::Order(order) = departure {
            self.posted.push(order);
        }
        sent
    }
    fn poll(&mut self, scope: Scope, report: &mut dyn FnMut(Event<'_>)) -> bool {
        if let Scope::Peer(from) = scope {
            self.given.lock().unwrap().push("look".into());
            if let Some(packet) = self.arriving.take() {
                report(Event::Arrived { from, packet: &packet });
            }
            return true;
        }
        if !std::mem::replace(&mut self.is_up, true) {
            report(Event::Up { peer: PEER, remote: 0 });
        }
        for order in self.posted.drain(..) {
            match order {
                Order::Packet { to, number, packet } => {
                    report(Event::Sent { to, number, packet: Some(packet) });
                }
                Order::Chunk { to, number, .. } => report(Event::Sent { to, number, packet: None }),
                _ => {}
            }
        }
        true
    }
}

/// A packet with a message of `len` bytes.
fn message(len: usize) -> Vec<u8> {
    let header = Header { kind: Kind::Packet, len: (Eager::ALONE_LEN + len) as u32, number: 0, ack: 0 };
    let eager = Eager { flags: 0, context: 0, tag: 9, seq: 0, len: len as u32, request: 0 };
    let head = eager.alone_head(&header).map(u64::to_ne_bytes);
    [head.as_flattened(), &vec![1; len]].concat()
}

fn len(order: &Order) -> String {
    match order {
        Order::Packet { packet, .. } => format!("a packet, {} pieces in place", packet.in_place.len()),
        Order::Chunk { key, from, .. } => {
            format!("a chunk of {} B, pushed: {}", from.len(), *key == Key::PUSH)
        }
        other => format!("{other:?}"),
    }
}

/// The plan, whether the message ended at once, and the departures that the rail inside received for it.
type Way = (Option<Plan>, bool, Vec<String>);

/// The same messages over the rail, with a layer around it: the protocols that they take. Receives are
/// posted. `receipts`: of messages from this length on the engine keeps receipts, as a session that is traced
/// has it do.
fn ways(limits: Limits, receipts: Option<u64>, wrap: impl Fn(Recording) -> Box<dyn Driver>) -> Vec<Way> {
    let given = Given::default();
    let memory = Memory::pattern(3 << 20, 1);
    let arriving = Some(message(5_000));
    let rail = Recording { limits, given: given.clone(), is_up: false, posted: Vec::new(), arriving };
    let mut rails = [wrap(rail)];
    let mut engine =
        Engine::new(Config { in_place_min: Some(2_000), ..Config::default() }).expect("a strategy");
    let id = engine.setup().add_rail(rails[0].limits());
    engine.setup().add_link(PEER, id);
    receipts.iter().for_each(|&from_len| engine.setup().record_receipts(Some(from_len)));
    let now = Instant::from_ns(1_000);
    let settle = |engine: &mut Engine, rails: &mut [Box<dyn Driver>]| {
        // A moment, since what is slowed down has left only then.
        for _ in 0..20 {
            pump::turn(&mut pump::Exclusive(engine, rails), now, &mut || now, true);
            std::thread::sleep(Duration::from_micros(20));
        }
    };
    let to = (PEER, Context(0), Tag(3));
    // The first message tells the peer besides how much it may send.
    engine.send(to.0, to.1, to.2, memory.pieces(std::slice::from_ref(&(0..1))), Hints::default());
    settle(&mut engine, &mut rails);
    let mut ways = Vec::new();
    let callers = [Caller::GoesOn, Caller::Steps, Caller::Waits, Caller::Looked];
    for len in [8, 3_000, 3_000, 5_000, 40_000, 3 << 20] {
        for caller in callers {
            given.lock().unwrap().clear();
            let data = memory.pieces(std::slice::from_ref(&(0..len)));
            let plan = engine.inspect().plan(to, len as u64, Hints::default(), caller, now);
            let message = (&data, Hints::default());
            let node = &mut pump::Exclusive(&mut engine, &mut rails);
            let sent = pump::send_at_once(node, &to, message, caller, &mut || now);
            let ended = matches!(sent, Ok(Submitted::Ended(_)));
            if let Err(refused) = sent {
                engine.send_as(to, data, Hints::default(), refused);
            }
            settle(&mut engine, &mut rails);
            ways.push((plan, ended, given.lock().unwrap().clone()));
        }
    }
    given.lock().unwrap().clear();
    if limits.looks {
        let target = Memory::zeroed(5_000);
        let into = target.segments();
        let exact = TagMatch::Exact(Tag(9));
        assert!(engine.expect(Source::Peer(PEER), Context(0), exact, &into).is_some());
        pump::look_for(&mut pump::Exclusive(&mut engine, &mut rails), now, PEER);
        let met = matches!(engine.met(), Met::Message(envelope) if envelope.len == 5_000);
        ways.push((None, met, given.lock().unwrap().clone()));
    }
    ways
}

fn around<L: Layer + 'static>(layer: impl Fn() -> L) -> impl Fn(Recording) -> Box<dyn Driver> {
    move |rail| Box::new(Around::new(rail, layer()))
}

#[test]
fn who_looks_on_changes_the_way_of_no_message() {
    let usual = Limits {
        packet: 1 << 15,
        chunk: 1 << 20,
        gather: 4,
        depth: 8,
        push: u64::MAX,
        bandwidth: 1_000_000_000,
        ..Limits::default()
    };
    let injects = Limits { inject: true, looks: true, ..usual };
    let mut kinds = String::new();
    for limits in [usual, injects, Limits { push: 0, ..usual }] {
        let bare = ways(limits, None, |rail| Box::new(rail));
        kinds += &format!("{bare:?}");
        assert_eq!(
            ways(limits, Some(4 << 10), around(|| Trace::new("recording", 100, true))),
            bare,
            "traced"
        );
        assert_eq!(
            ways(limits, None, around(|| Fault::new(Faults::none(1)))),
            bare,
            "with faults that never come"
        );
        let throttle = || Throttle::new(1 << 50, Duration::ZERO);
        assert_eq!(ways(limits, None, around(throttle)), bare, "slowed down to what it never reaches");
    }
    for kind in ["Inject of", "Send of", "pushed a chunk", "order of a packet", "look"] {
        assert!(kinds.contains(kind), "{kind}: {kinds}");
    }
}
