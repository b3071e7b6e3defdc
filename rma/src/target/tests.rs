//! What a target makes of frames that no origin sends.

use super::*;
use crate::Port;
use nmad_engine::{Claim, Config, Engine, To};

/// Memory of which nothing is exposed.
struct Nothing;

#[derive(Clone, Copy)]
struct Replace;

impl Operator for Replace {
    fn reads(self) -> bool {
        false
    }

    fn apply(self, _: &[u8], _: Base, _: &Place) -> Result<(), Fault> {
        Ok(())
    }
}

impl Exposed for Nothing {
    type Operator = Replace;
    const BREACH: i32 = 1;

    fn context(&self) -> Context {
        Context(1)
    }

    fn frames(&self) -> (Context, Tag) {
        (Context(1), Tag(0))
    }

    fn peer(&self, rank: usize) -> PeerId {
        PeerId(rank as u32)
    }

    fn rank_of(&self, peer: PeerId) -> Option<usize> {
        Some(peer.0 as usize)
    }

    fn base(&self) -> Base {
        Base::new(std::ptr::null_mut())
    }

    fn check(&self, place: &Place) -> Result<(), Fault> {
        Err(Fault { class: 2, text: format!("{} B are not exposed", place.len()) })
    }

    fn operator(&self, _: u8, _: u8) -> Option<Replace> {
        Some(Replace)
    }

    fn locks(&self) -> Locks<'_> {
        unreachable!("nobody asks for a lock")
    }

    fn atomically<R>(&self, work: impl FnOnce() -> R) -> R {
        work()
    }
}

/// An engine, and the bytes of each receive.
struct Noted(Engine, Vec<u64>);

impl Port for Noted {
    fn send(&mut self, to: &To, data: &Segments) -> Option<RequestId> {
        Port::send(&mut self.0, to, data)
    }

    fn receive(&mut self, from: (Source, Context, TagMatch), into: Segments) -> RequestId {
        self.1.push(into.len());
        Port::receive(&mut self.0, from, into)
    }

    fn take(&mut self, request: RequestId) -> Option<crate::Outcome> {
        Port::take(&mut self.0, request)
    }
}

impl Claims for Noted {
    fn claim(&mut self, from: (Source, Context, TagMatch)) -> Option<Claim> {
        Claims::claim(&mut self.0, from)
    }

    fn receive_claimed(&mut self, claim: Claim, into: Segments) -> RequestId {
        Claims::receive_claimed(&mut self.0, claim, into)
    }
}

#[test]
fn what_may_not_be_put_takes_no_memory_however_long_a_peer_says_that_it_is() {
    let engine = Engine::new(Config::default()).expect("the strategy exists");
    let mut port = Noted(engine, Vec::new());
    let mut target = Target::new(2);
    let mut turn = Turn { exposed: &Nothing, port: &mut port, target: &mut target, worked: false };
    for len in [1, 1 << 40, u64::MAX] {
        let place = Place::One(0, len);
        turn.put_far(1, &Frame { kind: Kind::PutFar, op: 0, basic: 0, id: 7, place });
    }
    assert_eq!(port.1, [0, 0, 0]);
    assert_eq!(target.queues[&1].moving.len(), 3, "the data are awaited all the same");
    assert_eq!(target.faults[&1].class, 2);
}
