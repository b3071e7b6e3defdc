//! What a message costs the engine, without any network: two engines and rails that cost nothing. And with
//! one: [`network`].
//!
//! P4 section III allows about 100 ns for a decision on the critical path; on the machines of today that
//! is 300 to 400 instructions. The cases cover what small messages do: one alone, and a window of them
//! that shares packets.

#![allow(unsafe_code)]

pub mod callgrind;
pub mod network;
mod rail;

use nmad_drivers::around::Around;
use nmad_drivers::around::trace::Trace;
use nmad_engine::{
    Caller, Config, Context, Driver, Engine, Hints, Instant, PeerId, Segments, Source, Submitted, Tag,
    TagMatch, pump,
};
use rail::FreeRail;

/// Records that a trace of a rail keeps where instructions are counted: more than a window has.
const RECORDS: usize = 1 << 12;
/// The same where time is measured: as many as a session keeps, which is more than a cache holds.
const ALL_RECORDS: usize = 1 << 18;
/// Rails that cost nothing are never busy, so that no time passes.
const NOW: Instant = Instant::from_ns(0);

/// One counted sequence of calls.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Case {
    /// An 8 B message whose sender waits, with its receive posted: send and receive together.
    Direct,
    /// The same with a trace around both rails: the difference is what tracing costs a message.
    Traced,
    /// The same as the first through the window.
    Eager,
    /// Sixteen of them, which share each packet.
    Window,
    /// An 8 B message that arrives before its receive.
    Unexpected,
}

impl Case {
    /// All of them.
    pub const ALL: [Case; 5] = [Case::Direct, Case::Traced, Case::Eager, Case::Window, Case::Unexpected];

    /// By its name on the command line.
    pub fn named(name: &str) -> Option<Case> {
        Case::ALL.into_iter().find(|case| case.name() == name)
    }

    /// The name on the command line.
    pub fn name(self) -> &'static str {
        match self {
            Case::Direct => "direct",
            Case::Traced => "traced",
            Case::Eager => "eager",
            Case::Window => "window",
            Case::Unexpected => "unexpected",
        }
    }

    /// For the user.
    pub fn describe(self) -> &'static str {
        match self {
            Case::Direct => "8 B eager, past the window, send and receive",
            Case::Traced => "the same, traced on both sides",
            Case::Eager => "8 B eager, send and receive",
            Case::Window => "8 B eager, 16 in a packet, send and receive",
            Case::Unexpected => "8 B eager, unexpected, send and receive",
        }
    }

    /// Instructions that a message may cost.
    pub fn budget(self) -> u64 {
        match self {
            Case::Direct => 2010,
            Case::Traced => 2280,
            Case::Eager => 4025,
            Case::Window => 1952,
            Case::Unexpected => 5135,
        }
    }

    /// Messages leave without the window.
    fn passes_window(self) -> bool {
        matches!(self, Case::Direct | Case::Traced)
    }

    fn window(self) -> usize {
        if self == Case::Window { 16 } else { 1 }
    }
}

struct Host {
    engine: Engine,
    rails: Vec<Box<dyn Driver>>,
}

impl Host {
    fn turn(&mut self, now: Instant) -> u64 {
        pump::turn(&mut pump::Exclusive(&mut self.engine, &mut self.rails), now, &mut || now, true);
        let mut ended = 0;
        while let Some(completion) = self.engine.next_completion() {
            assert!(completion.result.is_ok(), "{completion:?}");
            ended += 1;
        }
        ended
    }

    fn send(&mut self, case: Case, tag: Tag, data: Segments) {
        let (to, hints, now) = ((PeerId(1), Context(0), tag), Hints::default(), NOW);
        if !case.passes_window() {
            self.engine.send(to.0, to.1, to.2, data, hints);
            return;
        }
        let mut clock = || now;
        let (engine, rails) = (&mut self.engine, &mut self.rails);
        let node = &mut pump::Exclusive(engine, rails);
        let sent = pump::send_at_once(node, &to, (&data, hints), Caller::Steps, &mut clock);
        assert!(matches!(sent, Ok(Submitted::Ended(_))), "nothing waits, and there is one rail");
    }
}

/// Carries `count` messages from one engine to another.
pub fn run(case: Case, count: u64) {
    Couple::of(case, RECORDS).carry(count);
}

/// Two engines, of which one sends to the other.
pub struct Couple {
    case: Case,
    sender: Host,
    receiver: Host,
}

impl Couple {
    /// As for counting, but with a trace, if there is one, that keeps what a session's does.
    pub fn timed(case: Case) -> Couple {
        Couple::of(case, ALL_RECORDS)
    }

    fn of(case: Case, records: usize) -> Couple {
        let (left, right) = FreeRail::pair();
        let [sender, receiver] = [(0, left), (1, right)].map(|(me, rail)| {
            let config = Config { me: PeerId(me), ..Config::default() };
            let mut engine = Engine::new(config).expect("the default strategy exists");
            let id = engine.setup().add_rail(rail.limits());
            engine.setup().add_link(PeerId(1 - me), id);
            let rail: Box<dyn Driver> = match case {
                Case::Traced => Box::new(Around::new(rail, Trace::new("free", records, true))),
                _ => Box::new(rail),
            };
            Host { engine, rails: vec![rail] }
        });
        let mut couple = Couple { case, sender, receiver };
        for _ in 0..4 {
            couple.sender.turn(NOW);
            couple.receiver.turn(NOW);
        }
        // The first message goes through the window in any case: it tells how much the peer may send.
        round(&mut couple.sender, &mut couple.receiver, Case::Eager);
        couple
    }

    /// Carries `count` messages, or a few more where several share a packet.
    pub fn carry(&mut self, count: u64) {
        let mut received = 0;
        while received < count {
            received += round(&mut self.sender, &mut self.receiver, self.case);
        }
    }
}

/// One window of messages; how many.
fn round(sender: &mut Host, receiver: &mut Host, case: Case) -> u64 {
    let mut memory = [0u64; 32];
    if case != Case::Unexpected {
        post(receiver, case, &mut memory);
    }
    for (place, word) in memory.iter_mut().take(case.window()).enumerate() {
        // SAFETY: the requests of both engines end within this round.
        let data = unsafe { Segments::from_raw((&raw mut *word).cast(), 8) };
        sender.send(case, Tag(place as u64), data);
    }
    sender.turn(NOW);
    if case == Case::Unexpected {
        receiver.turn(NOW);
        post(receiver, case, &mut memory);
    }
    let received = receiver.turn(NOW);
    assert_eq!(received, case.window() as u64, "all of them have come");
    sender.turn(NOW);
    received
}

fn post(host: &mut Host, case: Case, memory: &mut [u64; 32]) {
    for place in 0..case.window() {
        // SAFETY: as for the sends; receives use the other half of the memory.
        let into = unsafe { Segments::from_raw((&raw mut memory[16 + place]).cast(), 8) };
        let tag = TagMatch::Exact(Tag(place as u64));
        host.engine.recv(Source::Peer(PeerId(0)), Context(0), tag, into);
    }
}
