use super::*;
use nmad_drivers::around::{Around, Layer};
use nmad_drivers::interface::Interface;
use nmad_drivers::tcp::{TcpConfig, TcpRail};
use nmad_engine::{Config, Engine};
use nmad_engine::{Departure, Driver, Event, Limits, Order, PollScope, Sent};
use nmad_progress::Sharing;
use std::mem;

/// A fault of the rail, for tests.
enum Wrong {
    Nothing,
    /// It does not open; with the peers for which this is still to be reported.
    Closed(Vec<PeerId>),
    /// Messages longer than [`SHORT`] do not arrive, nor does anything after them.
    Narrow(Vec<Order>),
}

const SHORT: usize = 1400;

impl Layer for Wrong {
    fn limits(&self, rail: &impl Driver) -> Limits {
        Limits { push: 0, ..rail.limits() }
    }

    fn send(&mut self, rail: &mut impl Driver, departure: Departure<'_>) -> Sent {
        match (self, departure) {
            (Wrong::Closed(lost), Departure::Order(Order::Connect { to })) => lost.push(to),
            (Wrong::Narrow(held), Departure::Order(Order::Packet { to, number, packet }))
                if !held.is_empty() || packet.len() > SHORT =>
            {
                held.push(Order::Packet { to, number, packet });
            }
            (Wrong::Narrow(held), Departure::Order(order @ Order::Chunk { .. })) => held.push(order),
            // Messages are posted instead of injected, and checked then.
            (Wrong::Narrow(_), Departure::Message { .. }) => return Sent::Retry,
            (_, departure) => return rail.send(departure),
        }
        Sent::Posted
    }

    fn poll(&mut self, rail: &mut impl Driver, scope: PollScope, report: &mut dyn FnMut(Event<'_>)) -> bool {
        if let Wrong::Closed(lost) = self {
            for peer in mem::take(lost) {
                report(Event::Lost { peer, why: "closed".into(), unsent: Vec::new() });
            }
        }
        rail.poll(scope, &mut |event| match (&mut *self, event) {
            // Unsent orders go over another rail; the other side may have given the link up earlier.
            (Wrong::Narrow(held), Event::Lost { peer, why, mut unsent }) => {
                unsent.append(held);
                report(Event::Lost { peer, why, unsent });
            }
            (_, event) => report(event),
        })
    }
}

/// Two ranks with two rails, the first of which has a fault.
fn pair(wrong: fn() -> Wrong) -> [Node; 2] {
    let rail = |rank: u32, number: u8| {
        let config = TcpConfig::new(PeerId(rank), number, Interface::loopback(), [7; 32]);
        let wrong = if number == 0 { wrong() } else { Wrong::Nothing };
        Around::new(TcpRail::open(config).expect("loopback is there"), wrong)
    };
    let mut all = [0, 1].map(|rank| [0, 1].map(|number| rail(rank, number)));
    let addresses = all.each_ref().map(|rails| rails.each_ref().map(Driver::address));
    for (rank, rails) in all.iter_mut().enumerate() {
        for (number, rail) in rails.iter_mut().enumerate() {
            let peer = 1 - rank;
            assert!(rail.know(PeerId(peer as u32), number as u8, &addresses[peer][number]));
        }
    }
    let mut ranks = 0..;
    all.map(|rails| {
        let me = ranks.next().unwrap_or(0);
        let config = Config { me: PeerId(me), ..Config::default() };
        let mut engine = Engine::new(config).expect("the default strategy exists");
        for rail in &rails {
            let rail = engine.setup().add_rail(rail.limits());
            engine.setup().add_link(PeerId(1 - me), rail);
        }
        let rails = rails.map(|rail| Box::new(rail) as Box<dyn Driver>);
        Node::new(engine, rails.into(), Sharing::Always(2), |_| {}).expect("a thread")
    })
}

/// Measures both rails, one after the other.
fn measured(wrong: fn() -> Wrong) -> [Result<Profile, Unmeasured>; 2] {
    let [first, second] = pair(wrong);
    std::thread::scope(|scope| {
        scope.spawn(move || {
            for number in [0, 1] {
                answer(&second, PeerId(0), number).expect("rank 0 is there");
            }
        });
        [0, 1].map(|number| {
            let effort = Effort { budget_ns: 50_000_000, ..Effort::QUICK };
            let (rail, provenance) = (RailId(number as u8), Provenance::default());
            let progress = &mut |_| {};
            let (peer, until) = (PeerId(1), Instant::now() + Duration::from_secs(9));
            let mut task = Task {
                rail,
                peer,
                number,
                effort,
                until,
                latest: until,
                limit: None,
                provenance,
                pairs: &[],
                progress,
            };
            send(&first, &mut task).expect("rank 1 is there")
        })
    })
}

#[test]
fn behind_a_rail_that_does_not_open_the_next_one_is_measured() {
    let found = measured(|| Wrong::Closed(Vec::new()));
    assert!(matches!(found, [Err(Unmeasured::NoWay(PeerId(1))), Ok(_)]));
}

#[test]
fn behind_a_rail_that_falls_silent_the_next_one_is_measured() {
    let found = measured(|| Wrong::Narrow(Vec::new()));
    assert!(matches!(found, [Err(Unmeasured::Silent(PeerId(1))), Ok(_)]));
}
