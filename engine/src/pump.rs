//! The only loop: it carries what rails report into the engine and what the engine orders to the rails.
//!
//! Real hosts and simulated hosts turn this same pump. It never waits.

use crate::clock::Instant;
use crate::collect::request::{Context, Hints, Tag};
use crate::engine::{Engine, Pushed};
use crate::memory::Segments;
use crate::packet::{PeerId, RailId};
use crate::transfer::driver::{Driver, Fetched, Order};
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
        rail.poll(&mut |event| {
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
    push(engine, rails, now, clock, urgent) || happened
}

/// Looks for a packet of the peer from whom something is awaited, and at nothing else. Whoever does that
/// turns the pump now and then, too, and after [`Fetched::Elsewhere`].
#[inline]
pub fn fetch(engine: &mut Engine, rails: &mut [Box<dyn Driver>], now: Instant, from: PeerId) -> Fetched {
    engine.fetch(rails, now, from)
}

/// Feeds the rails without looking at them first: what a submission does. With `urgent` `now` may be a little
/// old.
#[inline]
pub fn push(
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
        if feed(engine, rail.as_mut(), id, from.unwrap_or(now), urgent) {
            let until = clock();
            engine.posted(id, from, until);
            from = Some(until);
            happened = true;
        }
    }
    happened
}

/// Sends a message past the window, if nothing is in it: the message has ended then. A caller who does not
/// wait (`clock` is none) gets this only from rails that take a packet without a system call; on the others
/// what is submitted next may still share a packet with it. Its number in its flow.
#[inline]
pub fn send_directly(
    engine: &mut Engine,
    rails: &mut [Box<dyn Driver>],
    to: (PeerId, Context, Tag),
    data: &Segments,
    hints: Hints,
    clock: Option<&mut dyn FnMut() -> Instant>,
) -> Option<u32> {
    match engine.pass(rails, to, data, hints) {
        Some(seq) => Some(seq),
        None => send_now(engine, rails, to, data, hints, clock?),
    }
}

/// The same for somebody who waits, over a rail that takes a message without a system call or lends it to a
/// peer who waits for it.
#[inline]
pub fn hand_over(
    engine: &mut Engine,
    rails: &mut [Box<dyn Driver>],
    to: (PeerId, Context, Tag),
    data: &Segments,
    hints: Hints,
) -> Option<u32> {
    engine.lend(rails, to, data, hints).or_else(|| engine.pass(rails, to, data, hints))
}

/// The same for somebody who waits, after a rail without system calls was asked.
#[inline(never)]
pub fn send_now(
    engine: &mut Engine,
    rails: &mut [Box<dyn Driver>],
    to: (PeerId, Context, Tag),
    data: &Segments,
    hints: Hints,
    clock: &mut dyn FnMut() -> Instant,
) -> Option<u32> {
    let send =
        |rail: RailId, number: u32, head: &[u64]| rails[rail.index()].send_now(to.0, number, head, data);
    engine.send_now(to, data, hints, clock, send)
}

/// The same for a large message whose body may follow its request to send without an answer, over a rail that
/// makes one call of both.
pub fn push_now(
    engine: &mut Engine,
    rails: &mut [Box<dyn Driver>],
    to: (PeerId, Context, Tag),
    data: &Segments,
    hints: Hints,
    clock: &mut dyn FnMut() -> Instant,
) -> Option<Pushed> {
    let send = |rail: RailId, packet: &[u8], chunk: Order| rails[rail.index()].push_now(packet, chunk);
    engine.push_now(to, data, hints, clock, send)
}

fn feed(engine: &mut Engine, rail: &mut dyn Driver, id: RailId, now: Instant, urgent: bool) -> bool {
    let mut posted = false;
    while rail.room() > 0
        && let Some(order) = engine.next_order(now, id, urgent)
    {
        rail.post(order);
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
                Opening::Accept(from, landing) => rail.accept(from, landing),
                Opening::Close(landing, memory) => {
                    rail.close(landing);
                    drop(memory);
                }
            }
        }
        let mut posted = false;
        while let Some(order) = engine.next_errand(id) {
            rail.post(order);
            posted = true;
        }
        if posted {
            rail.flush();
        }
    }
}
