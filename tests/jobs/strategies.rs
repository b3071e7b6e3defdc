//! Strategies of the program's own, good and bad.

#[path = "../../examples/strategy.rs"]
mod example;

use log::{LevelFilter, Log, Metadata, Record};
use newmadeleine::strategy::{Instant, PacketBuilder, RailId, RailView, Shares, Strategy, Window};
use newmadeleine::{Hints, Options, Session};
use std::sync::Mutex;

/// What the session has told.
static TOLD: Mutex<Vec<String>> = Mutex::new(Vec::new());

struct Keeps;

impl Log for Keeps {
    fn enabled(&self, _: &Metadata<'_>) -> bool {
        true
    }
    fn log(&self, record: &Record<'_>) {
        TOLD.lock().unwrap().push(record.args().to_string());
    }
    fn flush(&self) {}
}

/// Ways for a strategy to be wrong.
#[derive(Debug, Clone, Copy, PartialEq)]
enum Fault {
    PanicsInFill,
    PanicsInSplit,
    Asks,
    Leaves,
    GivesTooMuch,
    GivesTooLittle,
    GivesToNobody,
}

const FAULTS: [(Fault, &str); 7] = [
    (Fault::PanicsInFill, "panicked in fill: index 9"),
    (Fault::PanicsInSplit, "panicked in split: no shares"),
    (Fault::Asks, "panicked in fill: the strategy asks the window without end"),
    (Fault::Leaves, "left messages to an idle rail for 100 ms"),
    (Fault::GivesTooMuch, "shared 1048577 B of a message of 1048576 B out"),
    (Fault::GivesTooLittle, "shared 1048575 B of a message of 1048576 B out"),
    (Fault::GivesToNobody, "gave a share to rail 77, which is not open"),
];

struct Faulty(Fault);

impl Strategy for Faulty {
    fn name(&self) -> &str {
        "faulty"
    }

    fn fill(&mut self, _: Instant, rail: &RailView, window: &mut Window, packet: &mut PacketBuilder) {
        let scope = rail.scope(true);
        match self.0 {
            Fault::PanicsInFill => {
                // In the middle, with a message in the packet.
                packet.take(window, scope, |_, _| true);
                panic!("index {}", 9)
            }
            Fault::Asks => while !packet.take(window, scope, |_, _| false) {},
            Fault::Leaves => {}
            _ => {
                packet.take(window, scope, |_, _| true);
            }
        }
    }

    fn split(&mut self, _: Instant, len: u64, rails: &[RailView]) -> Shares {
        match self.0 {
            Fault::PanicsInSplit => panic!("no shares"),
            Fault::GivesTooMuch => Shares::of([(rails[0].rail, len + 1)]),
            Fault::GivesTooLittle => Shares::of([(rails[0].rail, len - 1)]),
            Fault::GivesToNobody => Shares::of([(RailId(77), len)]),
            _ => Shares::FirstIdle,
        }
    }
}

/// The strategy that the documents show.
pub fn documented() {
    example::main().unwrap();
}

/// Whatever a strategy does wrong: all messages arrive, and one line names it and the rank.
pub fn faulty() {
    log::set_logger(&Keeps).expect("nobody else has one");
    log::set_max_level(LevelFilter::Error);
    let mut options = Options::load().unwrap();
    for (place, (fault, _)) in FAULTS.into_iter().enumerate() {
        options.register(move || Box::new(Named(format!("faulty-{place}"), Faulty(fault))));
    }
    let session = Session::open_with(&options).unwrap();
    for (place, (fault, text)) in FAULTS.into_iter().enumerate() {
        let name = format!("faulty-{place}");
        session.set_strategy(None, &name).unwrap();
        exchange(&session, Hints::default());
        // As the strategy of one message, too.
        session.set_strategy(None, "auto").unwrap();
        exchange(&session, Hints { strategy: Some(session.strategy(&name).unwrap()), ..Hints::default() });
        if session.rank() == 0 {
            let told = std::mem::take(&mut *TOLD.lock().unwrap());
            let end = "'auto' decides for rank 1 from now on";
            let right = |line: &String| line.contains(text) && line.contains(&name) && line.ends_with(end);
            assert!(told.len() == 2 && told.iter().all(right), "{fault:?}: {told:?}");
        }
    }
    session.close().unwrap();
}

/// The same under another name.
struct Named(String, Faulty);

impl Strategy for Named {
    fn name(&self) -> &str {
        &self.0
    }
    fn fill(&mut self, now: Instant, rail: &RailView, window: &mut Window, packet: &mut PacketBuilder) {
        self.1.fill(now, rail, window, packet);
    }
    fn split(&mut self, now: Instant, len: u64, rails: &[RailView]) -> Shares {
        self.1.split(now, len, rails)
    }
}

/// A large message and small ones, from rank 0 to rank 1, and an answer.
fn exchange(session: &Session, hints: Hints) {
    let large = vec![3; 1 << 20];
    if session.rank() == 0 {
        let sent = session.scope(|scope| {
            (0..8).try_for_each(|tag| scope.send_with(1, tag, &[5; 100], hints).map(drop))?;
            scope.send_with(1, 9, &large, hints).map(drop)
        });
        sent.unwrap();
        session.recv(1, 10, &mut []).unwrap();
    } else {
        let mut memory = vec![0; large.len()];
        session.recv(0, 9, &mut memory).unwrap();
        assert_eq!(memory, large);
        (0..8).for_each(|tag| assert_eq!(session.recv(0, tag, &mut memory).unwrap().len, 100));
        session.send(0, 10, &[]).unwrap();
    }
}

/// A name that no strategy has.
pub fn unknown() {
    let error = Session::open_with(&Options::load().unwrap()).err().expect("no such strategy").to_string();
    assert!(error.contains("nosuch") && error.contains("iso_split"), "{error}");
}
