//! What the rails of these tests have in common.
#![allow(dead_code)]

use nmad_engine::memory::Segments;
use nmad_engine::packet::{Key, RegionId};
use nmad_engine::transfer::driver::{
    Departure, Driver, Event, How, Interest, Limits, Order, Reads, Scope, Sent,
};
use nmad_engine::{Config, Engine, PeerId, RemoteAccess};
use nmad_progress::{Node, Sharing};
use nmad_wire::{Eager, Header, Kind};

/// The other end.
pub const PEER: PeerId = PeerId(1);

/// What a rail can do that need not do much.
pub const LIMITS: Limits = Limits {
    blocks: false,
    encrypts: false,
    packet: 1 << 15,
    chunk: 1 << 20,
    gather: 4,
    depth: 8,
    lossy: false,
    push: 0,
    inject: false,
    reads: Reads::Never,
    remote: RemoteAccess::None,
    looks: false,
    returns: false,
    bandwidth: 1_000_000_000,
    latency_ns: 0,
};

/// The special behaviour of a rail. Besides, its link is open from the first poll on, and it takes all that
/// is posted and reports it as sent with the next poll.
pub trait Special: Send + 'static {
    fn limits(&self) -> Limits {
        LIMITS
    }

    /// What becomes of something that is pushed.
    fn push(&mut self) -> Sent {
        Sent::Retry
    }

    /// What becomes of a message that is to leave at once in this way.
    fn message(&mut self, how: How) -> Sent {
        let _ = how;
        Sent::Retry
    }

    /// Something is posted.
    fn posted(&mut self) {}

    /// A packet has got this number, and is given to the rail after this.
    fn numbered(&mut self, number: u32) {
        let _ = number;
    }

    /// A look for the next packet and at nothing else ([`Scope::Peer`]).
    fn look_for(&mut self, report: &mut dyn FnMut(Event<'_>)) -> bool {
        let _ = report;
        false
    }

    /// What else a poll does.
    fn poll(&mut self, report: &mut dyn FnMut(Event<'_>)) {
        let _ = report;
    }

    /// See [`Driver::wakeup`], for traffic.
    fn wakeup(&mut self) -> Option<i32> {
        None
    }
}

/// A rail with what is special about it.
struct Rail<S> {
    special: S,
    is_up: bool,
    /// Its number at the peer.
    remote: u8,
    /// Orders that were posted and are still to be reported.
    orders: Vec<Order>,
}

impl<S: Special> Driver for Rail<S> {
    fn name(&self) -> &str {
        "special"
    }

    fn limits(&self) -> Limits {
        self.special.limits()
    }

    fn open(&mut self, _: RegionId, _: PeerId, _: Segments) -> Key {
        Key(1)
    }

    fn close(&mut self, _: RegionId) {}

    fn room(&self) -> usize {
        8
    }

    fn send(&mut self, departure: Departure<'_>) -> Sent {
        match departure {
            Departure::Message { how, number, .. } => {
                self.special.numbered(number);
                self.special.message(how)
            }
            Departure::Pushed { .. } => self.special.push(),
            Departure::Order(order) => {
                if let Order::Packet { number, .. } = &order {
                    self.special.numbered(*number);
                }
                self.special.posted();
                self.orders.push(order);
                Sent::Posted
            }
        }
    }

    fn poll(&mut self, scope: Scope, report: &mut dyn FnMut(Event<'_>)) -> bool {
        if let Scope::Peer(from) = scope {
            assert!(from == PEER && self.limits().looks, "asked for what the limits do not offer");
            return self.special.look_for(report);
        }
        if !std::mem::replace(&mut self.is_up, true) {
            report(Event::Up { peer: PEER, remote: self.remote });
        }
        for order in self.orders.drain(..) {
            if let Order::Packet { to, number, packet } = order {
                report(Event::Sent { to, number, packet: Some(packet) });
            }
        }
        self.special.poll(report);
        true
    }

    fn wakeup(&mut self, interest: Interest) -> Option<i32> {
        match interest {
            Interest::Traffic => self.special.wakeup(),
            Interest::Links => None,
        }
    }
}

/// A node with an open link to [`PEER`] over such a rail.
pub fn node(special: impl Special, sharing: Sharing) -> Node {
    node_over(vec![special], sharing)
}

/// A node with an open link to [`PEER`] over each of such rails.
pub fn node_over(specials: Vec<impl Special>, sharing: Sharing) -> Node {
    node_of(Config::default(), specials, sharing)
}

/// The same for an engine of this configuration.
pub fn node_of(config: Config, specials: Vec<impl Special>, sharing: Sharing) -> Node {
    let mut engine = Engine::new(config).expect("the default strategy exists");
    let mut rails: Vec<Box<dyn Driver>> = Vec::new();
    for special in specials {
        let rail = Rail { special, is_up: false, remote: rails.len() as u8, orders: Vec::new() };
        let id = engine.setup().add_rail(rail.limits());
        engine.setup().add_link(PEER, id);
        rails.push(Box::new(rail));
    }
    let node = Node::new(engine, rails, sharing, |_| {}).expect("a thread");
    while node.turn() {}
    node
}

/// The packet of an empty message with tag 7, after `came` others.
pub fn message(came: u32) -> Vec<u8> {
    let header = Header { kind: Kind::Packet, len: Eager::ALONE_LEN as u32, number: came, ack: 0 };
    let eager = Eager { flags: 0, context: 0, tag: 7, seq: came, len: 0, request: 0 };
    eager.alone_head(&header).iter().flat_map(|word| word.to_ne_bytes()).collect()
}
