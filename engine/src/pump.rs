//! The only loop: it carries what rails report into the engine and what the engine orders to the rails.
//!
//! Real hosts and simulated hosts turn this same pump. It never waits.

use crate::clock::Instant;
use crate::collect::request::Hints;
use crate::engine::{Caller, Engine, Leaving, Protocol, Refused, Submitted, To};
use crate::memory::Segments;
use crate::packet::{PeerId, RailId};
use crate::transfer::driver::{Departure, Driver, Order, Scope, Sent};
use crate::transfer::rail::Opening;
use alloc::boxed::Box;

/// One pass: looks at every rail once, then feeds the rails. `now` is the time of what is found, and may be
/// some microseconds old; the clock is only read to post something. `urgent`: the caller waits, so nobody
/// will add to the window and it is released at once. Returns whether anything happened.
#[inline]
pub fn turn(
    engine: &mut Engine,
    rails: &mut [Box<dyn Driver>],
    now: Instant,
    clock: &mut dyn FnMut() -> Instant,
    urgent: bool,
) -> bool {
    let mut happened = false;
    for (index, rail) in rails.iter_mut().enumerate() {
        let id = RailId(index as u8);
        rail.poll(Scope::All, &mut |event| {
            happened = true;
            engine.handle(now, id, event);
        });
    }
    // Who has what he waits for goes on with it. What is only due now may be done at the next turn.
    if urgent && engine.is_met() {
        return true;
    }
    // What was found may have taken a while, or was looked for at a time that is a little old.
    let now = if urgent || !engine.has_orders(now) { now } else { clock() };
    feed(engine, rails, now, clock, urgent) || happened
}

/// Looks for a packet of the peer from whom something is awaited, and at nothing else; whether there was one.
/// Whoever does that turns the pump now and then, too, and always where the answer is none.
#[inline]
pub fn look_for(
    engine: &mut Engine,
    rails: &mut [Box<dyn Driver>],
    now: Instant,
    from: PeerId,
) -> Option<bool> {
    let rail = engine.looks_on(from)?;
    let mut found = false;
    let looked = rails[rail.index()].poll(Scope::Peer(from), &mut |event| {
        found = true;
        engine.handle(now, rail, event);
    });
    looked.then_some(found)
}

/// Feeds the rails without looking at them first: what a submission does. With `urgent` `now` may be a little
/// old.
#[inline]
pub fn feed(
    engine: &mut Engine,
    rails: &mut [Box<dyn Driver>],
    now: Instant,
    clock: &mut dyn FnMut() -> Instant,
    urgent: bool,
) -> bool {
    if engine.has_errands() {
        errands(engine, rails);
    }
    if !engine.has_orders(now) {
        return false;
    }
    let mut happened = false;
    // Who waits does not wait for the clock either; the cost of posting is known from other times.
    let mut from = (!urgent).then_some(now);
    for (index, rail) in rails.iter_mut().enumerate() {
        let id = RailId(index as u8);
        if feed_one(engine, rail.as_mut(), id, from.unwrap_or(now), urgent) {
            let until = clock();
            engine.posted(id, from, until);
            from = Some(until);
            happened = true;
        }
    }
    happened
}

/// Sends a message in this call, if it finds its rail idle and nothing before it. Otherwise it is to be
/// submitted with [`Engine::send_as`], with the attempt that was refused, if one was.
///
/// # Errors
/// It has not left.
#[inline]
pub fn send_at_once(
    engine: &mut Engine,
    rails: &mut [Box<dyn Driver>],
    to: To,
    (data, hints): (&Segments, Hints),
    caller: Caller,
    clock: &mut dyn FnMut() -> Instant,
) -> Result<Submitted, Option<Refused>> {
    let Some(leaving) = engine.begin(to, data.len(), hints, caller, None, clock) else { return Err(None) };
    let sent = give(rails, &leaving, to, data);
    match engine.departed(&leaving, sent, to, data, hints, clock) {
        Some(submitted) => Ok(submitted),
        None => send_otherwise(engine, rails, to, (data, hints), (caller, leaving.refused()), clock),
    }
}

/// The same after a rail has refused.
#[inline(never)]
pub fn send_otherwise(
    engine: &mut Engine,
    rails: &mut [Box<dyn Driver>],
    to: To,
    (data, hints): (&Segments, Hints),
    (caller, mut refused): (Caller, Refused),
    clock: &mut dyn FnMut() -> Instant,
) -> Result<Submitted, Option<Refused>> {
    while let Some(leaving) = engine.begin(to, data.len(), hints, caller, Some(refused), clock) {
        let sent = give(rails, &leaving, to, data);
        if let Some(submitted) = engine.departed(&leaving, sent, to, data, hints, clock) {
            return Ok(submitted);
        }
        refused = leaving.refused();
    }
    Err(Some(refused))
}

/// Gives a message that leaves to its rail.
#[inline(always)]
fn give(rails: &mut [Box<dyn Driver>], leaving: &Leaving, to: To, data: &Segments) -> Sent {
    let rail = &mut rails[leaving.rail().index()];
    if leaving.protocol() == Protocol::Push {
        let leaving = *leaving;
        return push(rail.as_mut(), &leaving, to, data);
    }
    let (head, number, how) = (leaving.head(to, data.len()), leaving.number(), leaving.protocol().how());
    rail.send(Departure::Message { to: to.0, number, head: &head, data, how })
}

#[inline(never)]
fn push(rail: &mut dyn Driver, leaving: &Leaving, to: To, data: &Segments) -> Sent {
    let (packet, chunk) = leaving.pushed(to, data);
    rail.send(Departure::Pushed { packet: &packet, chunk })
}

fn feed_one(engine: &mut Engine, rail: &mut dyn Driver, id: RailId, now: Instant, urgent: bool) -> bool {
    let mut posted = false;
    while rail.room() > 0
        && let Some(order) = engine.next_order(now, id, urgent)
    {
        rail.send(Departure::Order(order));
        posted = true;
    }
    if posted {
        rail.flush();
    }
    posted
}

/// Landings to open and close, links to open and close: they need no room and do not wait.
#[cold]
fn errands(engine: &mut Engine, rails: &mut [Box<dyn Driver>]) {
    for (index, rail) in rails.iter_mut().enumerate() {
        let id = RailId(index as u8);
        while let Some(opening) = engine.next_opening(id) {
            match opening {
                Opening::Open(landing, from, into) => {
                    let key = rail.open(landing, from, into);
                    engine.opened(id, landing, key);
                }
                Opening::Accept(from, landing) => {
                    rail.send(Departure::Order(Order::Accept { from, landing }));
                }
                Opening::Close(landing, memory) => {
                    rail.close(landing);
                    drop(memory);
                }
            }
        }
        let mut posted = false;
        while let Some(order) = engine.next_errand(id) {
            rail.send(Departure::Order(order));
            posted = true;
        }
        if posted {
            rail.flush();
        }
    }
}
