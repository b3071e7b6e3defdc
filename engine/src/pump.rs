//! The only loop: it passes events of the rails to the engine, and orders of the engine to the rails.
//!
//! Real and simulated hosts run this same pump. It never waits. If several threads use a node, the engine
//! is free for other threads while a rail works ([`Access`]).

use crate::clock::Instant;
use crate::collect::request::Hints;
use crate::engine::Engine;
use crate::memory::Segments;
use crate::packet::{PeerId, RailId};
use crate::profile::sample::Pair;
use crate::protocol::leaving::{Leaving, Refused, Submitted, To};
use crate::protocol::{Caller, Protocol};
use crate::transfer::access::Access as Accessing;
use crate::transfer::driver::{Departure, Driver, Event, How, Order, Scope, Sent};
use crate::transfer::rail::Opening;
use alloc::boxed::Box;
use alloc::vec::Vec;

/// Access of the pump to the engine and its rails.
///
/// A decision of the engine is short (some 100 ns); the work of a rail may be long (a system call of 2 us,
/// a copy of 100 us). An implementation for several threads lets other threads use the engine while a rail
/// works; the rail then belongs to the working thread until that thread has the engine again. No thread
/// waits for a rail that another one uses: its orders stay in the engine, and the thread that uses the rail
/// takes them when it has finished.
pub trait Access {
    /// Returns the engine, for a decision.
    fn engine(&mut self) -> &mut Engine;
    /// Returns the number of rails.
    fn rails(&self) -> usize;
    /// Runs short work on a rail, no longer than a decision. `None`: another thread uses the rail.
    fn ask<R>(&mut self, rail: RailId, work: impl FnOnce(&mut dyn Driver) -> R) -> Option<R>;
    /// Runs work on a rail that may take long. `None`: another thread uses the rail.
    fn work<R>(&mut self, rail: RailId, work: impl FnOnce(&mut dyn Driver) -> R) -> Option<R>;
    /// Polls a rail ([`Driver::poll`]), passes its events to the engine with the time `now`, and returns
    /// the result.
    fn poll(&mut self, rail: RailId, scope: Scope, now: Instant) -> Looked;
    /// Whether other threads may have submitted messages while a rail worked.
    fn is_shared(&self) -> bool;
    /// Lets another ready core post these orders on a rail, which that core uses exclusively meanwhile.
    ///
    /// # Errors
    /// No core is ready, or another thread uses the rail: the orders are returned.
    fn hand_off(&mut self, rail: RailId, orders: Vec<Order>) -> Result<(), Vec<Order>> {
        let _ = rail;
        Err(orders)
    }
    /// Returns the distances of the ready cores to the caller's, the nearest first; unknown for further
    /// ones.
    fn beside(&self) -> Vec<Pair> {
        Vec::new()
    }
    /// Posts on the calling thread the orders that were handed off and that no core has begun. Does not
    /// wait for those that others have begun.
    fn take_back(&mut self) {}
}

/// Posts orders on a rail; called by the core that got them.
pub fn post(rail: &mut dyn Driver, orders: Vec<Order>) {
    for order in orders {
        rail.send(Departure::Order(order));
    }
    rail.flush();
}

/// Result of polling a rail.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Looked {
    /// The rail reported events.
    Found,
    /// The rail reported no event.
    Nothing,
    /// The rail cannot decide it in this scope, or another thread uses it.
    Unknown,
}

/// Polls a rail and passes each event to `handle`.
#[inline]
pub fn look_at(rail: &mut dyn Driver, scope: Scope, mut handle: impl FnMut(Event<'_>)) -> Looked {
    let mut found = false;
    let looked = rail.poll(scope, &mut |event| {
        found = true;
        handle(event);
    });
    match (looked, found) {
        (false, _) => Looked::Unknown,
        (true, true) => Looked::Found,
        (true, false) => Looked::Nothing,
    }
}

/// An engine and its rails used by a single thread: the simulator, tests.
pub struct Exclusive<'a>(pub &'a mut Engine, pub &'a mut [Box<dyn Driver>]);

impl Access for Exclusive<'_> {
    #[inline]
    fn engine(&mut self) -> &mut Engine {
        self.0
    }

    #[inline]
    fn rails(&self) -> usize {
        self.1.len()
    }

    #[inline]
    fn ask<R>(&mut self, rail: RailId, work: impl FnOnce(&mut dyn Driver) -> R) -> Option<R> {
        Some(work(self.1[rail.index()].as_mut()))
    }

    #[inline]
    fn work<R>(&mut self, rail: RailId, work: impl FnOnce(&mut dyn Driver) -> R) -> Option<R> {
        self.ask(rail, work)
    }

    #[inline]
    fn poll(&mut self, rail: RailId, scope: Scope, now: Instant) -> Looked {
        let Exclusive(engine, rails) = self;
        look_at(rails[rail.index()].as_mut(), scope, |event| engine.handle(now, rail, event))
    }

    #[inline]
    fn is_shared(&self) -> bool {
        false
    }
}

/// Runs one pass: polls every rail once, then gives the rails orders. `now` is the time of the events, and
/// may be some microseconds old; the clock is read only to post orders. `urgent`: the caller waits, so the
/// window gets no further messages and is sent at once. Returns whether anything happened.
#[inline]
pub fn turn(node: &mut impl Access, now: Instant, clock: &mut dyn FnMut() -> Instant, urgent: bool) -> bool {
    let mut happened = false;
    for index in 0..node.rails() {
        happened |= node.poll(RailId(index as u8), Scope::All, now) == Looked::Found;
    }
    // If the awaited message has arrived, return at once: work that is only due now can wait for the next
    // turn.
    if urgent && node.engine().has_expected() {
        return true;
    }
    // Handling events may have taken a while, and the time of the poll may be slightly old.
    let now = if urgent || !node.engine().has_orders(now) { now } else { clock() };
    feed(node, now, clock, urgent) || happened
}

/// Polls for a packet of the peer that the caller waits for, and nothing else; returns whether there was
/// one. The caller also runs a full pass now and then, and whenever the result is `None`.
#[inline]
pub fn look_for(node: &mut impl Access, now: Instant, from: PeerId) -> Option<bool> {
    let rail = node.engine().inspect().looks_on(from)?;
    match node.poll(rail, Scope::Peer(from), now) {
        Looked::Found => Some(true),
        Looked::Nothing => Some(false),
        Looked::Unknown => None,
    }
}

/// Gives the rails orders without polling them first; called on submission. With `urgent`, `now` may be
/// slightly old.
#[inline]
pub fn feed(node: &mut impl Access, now: Instant, clock: &mut dyn FnMut() -> Instant, urgent: bool) -> bool {
    if node.engine().has_errands() {
        errands(node);
    }
    if !node.engine().has_orders_for(now, urgent) {
        return false;
    }
    let together = if node.engine().hands_off() { feed_together(node, now, clock, urgent) } else { None };
    let mut happened = together.is_some();
    // A waiting caller does not read the clock first; the cost of posting is known from other times.
    let mut from = together.or((!urgent).then_some(now));
    loop {
        let mut fed = false;
        for index in 0..node.rails() {
            let id = RailId(index as u8);
            if feed_one(node, id, from.unwrap_or(now), urgent) {
                let until = clock();
                node.engine().posted(id, from, until);
                from = Some(until);
                fed = true;
            }
        }
        happened |= fed;
        // Several rails take packets of a long message in turns, so that each begins early. A waiting
        // caller fills all rails before it polls them, so that they transfer while it polls.
        if !(fed && urgent && node.rails() > 1 && node.engine().has_orders_for(now, true)) {
            break;
        }
    }
    if !happened && !urgent {
        node.engine().had_nothing();
    }
    happened
}

/// Takes the orders of several rails before any is posted, and lets other cores post those of all but the
/// first (P3 section III-D). Returns the time when that was done; `None`: there were no orders.
#[cold]
#[inline(never)]
fn feed_together(
    node: &mut impl Access,
    now: Instant,
    clock: &mut dyn FnMut() -> Instant,
    urgent: bool,
) -> Option<Instant> {
    let mut own: Option<(RailId, Vec<Order>)> = None;
    let (mut fed, mut handed) = (Vec::new(), 0);
    let beside = node.beside();
    node.engine().setup().stand_beside(beside.into_iter());
    for index in 0..node.rails() {
        let id = RailId(index as u8);
        let mut orders = Vec::new();
        while node.ask(id, |rail| rail.room()).is_some_and(|room| room > orders.len())
            && let Some(order) = node.engine().next_order(now, id, urgent)
        {
            orders.push(order);
        }
        if orders.is_empty() {
            continue;
        }
        fed.push(id);
        if own.is_none() {
            own = Some((id, orders));
            continue;
        }
        let is_worth_it = node.engine().is_worth_a_core(id, &orders, handed);
        let left = if is_worth_it { node.hand_off(id, orders).err() } else { Some(orders) };
        handed += usize::from(left.is_none());
        // No other thread uses the engine before the first rail is posted to, so that none posts between
        // the orders of a rail.
        if let Some(orders) = left {
            node.ask(id, |rail| post(rail, orders)).expect(IN_PLACE);
        }
    }
    let (id, orders) = own?;
    node.work(id, |rail| post(rail, orders)).expect(IN_PLACE);
    node.take_back();
    let until = clock();
    fed.into_iter().for_each(|id| node.engine().posted(id, Some(now), until));
    Some(until)
}

/// Sends a message in this call, if its rail is idle and no other message is before it. Otherwise the
/// message has to be submitted with [`Engine::send_as`], with the refused attempt, if there was one.
///
/// # Errors
/// The message was not sent.
#[inline]
pub fn send_at_once(
    node: &mut impl Access,
    to: &To,
    message: (&Segments, Hints),
    caller: Caller,
    clock: &mut dyn FnMut() -> Instant,
) -> Result<Submitted, Option<Refused>> {
    match try_at_once(node, to, message, caller, clock) {
        Ok(seq) => Ok(Submitted::Ended(seq)),
        Err(tried) => go_on(node, to, message, tried, clock),
    }
}

/// An attempt after which the message is not sent, or not completely.
#[derive(Debug)]
pub struct Tried(Option<(Leaving, Sent)>);

/// The first step of [`send_at_once`], in which most small messages are sent; returns their sequence
/// numbers. The second step is [`go_on`].
///
/// # Errors
/// The message was not sent, or not completely: [`go_on`] continues with the attempt.
// Inlined, and separate from `go_on`, which is not: a result that several branches write in parts would be
// read as a whole, and such a load waits until all earlier stores are in the cache, including those to
// lines that a peer reads (40 ns on Zen).
#[inline(always)]
pub fn try_at_once(
    node: &mut impl Access,
    to: &To,
    (data, hints): (&Segments, Hints),
    caller: Caller,
    clock: &mut dyn FnMut() -> Instant,
) -> Result<u32, Tried> {
    let Some(leaving) = node.engine().begin(to, data.len(), hints, caller, clock) else {
        return Err(Tried(None));
    };
    let sent = give(node, &leaving, to, data);
    match node.engine().has_left(&leaving, sent, to.0, data.len(), clock) {
        true => Ok(leaving.seq()),
        false => Err(Tried(Some((leaving, sent)))),
    }
}

/// The second step of [`send_at_once`].
///
/// # Errors
/// The message was not sent.
#[inline(never)]
pub fn go_on(
    node: &mut impl Access,
    to: &To,
    (data, hints): (&Segments, Hints),
    Tried(tried): Tried,
    clock: &mut dyn FnMut() -> Instant,
) -> Result<Submitted, Option<Refused>> {
    let (leaving, sent) = tried.ok_or(None)?;
    node.engine().departed(&leaving, sent, to, data, hints, clock).ok_or(Some(leaving.refused()))
}

/// Gives a message to its rail. A rail that another thread uses refuses it.
#[inline(always)]
fn give(node: &mut impl Access, leaving: &Leaving, to: &To, data: &Segments) -> Sent {
    let (rail, protocol) = (leaving.rail(), leaving.protocol());
    if protocol == Protocol::Push {
        let leaving = *leaving;
        return push(node, &leaving, to, data);
    }
    if protocol == Protocol::Read {
        let leaving = *leaving;
        return announce(node, &leaving, to, data);
    }
    let (head, number, how) = (leaving.head(to, data.len()), leaving.number(), protocol.how());
    let send =
        |rail: &mut dyn Driver| rail.send(Departure::Message { to: to.0, number, head: &head, data, how });
    // Copying a small message takes no longer than releasing the engine for other threads.
    let sent = if protocol == Protocol::Inject { node.ask(rail, send) } else { node.work(rail, send) };
    sent.unwrap_or(Sent::Retry)
}

/// Gives a rail the request to send of a message that its receiver reads. Non-contiguous data is refused
/// and uses another protocol.
#[inline(never)]
fn announce(node: &mut impl Access, leaving: &Leaving, to: &To, data: &Segments) -> Sent {
    let Some(address) = data.address() else { return Sent::Retry };
    let (head, number) = (leaving.read(to, data.len(), address), leaving.number());
    let (data, how) = (&Segments::empty(), How::Inject);
    let send =
        |rail: &mut dyn Driver| rail.send(Departure::Message { to: to.0, number, head: &head, data, how });
    node.ask(leaving.rail(), send).unwrap_or(Sent::Retry)
}

#[inline(never)]
fn push(node: &mut impl Access, leaving: &Leaving, to: &To, data: &Segments) -> Sent {
    // Small blocks travel with the request to send, which is built from the window.
    if !data.is_even() && node.engine().cuts(to.0, data) {
        return Sent::Retry;
    }
    let (packet, chunk) = leaving.pushed(to, data);
    let send = |rail: &mut dyn Driver| rail.send(Departure::Pushed { packet: &packet, chunk });
    node.work(leaving.rail(), send).unwrap_or(Sent::Retry)
}

/// Posts all orders that a rail accepts now; returns whether there were any.
fn feed_one(node: &mut impl Access, id: RailId, now: Instant, urgent: bool) -> bool {
    let mut happened = false;
    loop {
        let mut posted = false;
        while node.ask(id, |rail| rail.room()).is_some_and(|room| room > 0)
            && let Some(order) = node.engine().next_order(now, id, urgent)
        {
            node.work(id, |rail| rail.send(Departure::Order(order))).expect("its room was just queried");
            posted = true;
        }
        if posted {
            node.work(id, |rail| rail.flush());
        }
        happened |= posted;
        // Other threads leave their orders to the one that uses the rail.
        if !posted || !node.is_shared() {
            return happened;
        }
    }
}

/// Processes errands, which need no room and do not wait: receive regions and links to open and close,
/// one-sided accesses, and limits that transfers have corrected.
#[cold]
fn errands(node: &mut impl Access) {
    for index in 0..node.rails() {
        let id = RailId(index as u8);
        if node.ask(id, |_| ()).is_none() {
            continue;
        }
        if let Some(from) = node.engine().take_in_place(id) {
            node.ask(id, |rail| rail.leave_in_place(Some(from))).expect(IN_PLACE);
        }
        while let Some(opening) = node.engine().next_opening(id) {
            match opening {
                Opening::Open(region, from, into) => {
                    let key = node.ask(id, |rail| rail.open(region, from, into)).expect(IN_PLACE);
                    node.engine().opened(id, region, key);
                }
                Opening::Accept(from, region) => {
                    let accept = Departure::Order(Order::Accept { from, region });
                    node.ask(id, |rail| rail.send(accept)).expect(IN_PLACE);
                }
                Opening::Close(region, memory) => {
                    node.ask(id, |rail| rail.close(region)).expect(IN_PLACE);
                    node.engine().give_back(memory);
                }
            }
        }
        let mut posted = false;
        while let Some(order) = node.engine().next_errand(id) {
            node.ask(id, |rail| rail.send(Departure::Order(order))).expect(IN_PLACE);
            posted = true;
        }
        if posted {
            node.ask(id, |rail| rail.flush()).expect(IN_PLACE);
        }
        let accesses = node.engine().take_accesses(id);
        if !accesses.is_empty() {
            let access = |rail: &mut dyn Driver| {
                let begin = |access: Accessing| (access.request, rail.access(access));
                let ended: Vec<_> = accesses.into_iter().map(begin).collect();
                rail.flush();
                ended
            };
            for (request, came) in node.work(id, access).expect(IN_PLACE) {
                came.into_iter().for_each(|came| node.engine().on_accessed(request, came));
            }
        }
    }
}

/// Reason why a rail is available: no other thread has used the engine since the rail was found.
const IN_PLACE: &str = "no other thread has had the engine since the rail was found in its place";
