//! The only loop: it carries what rails report into the engine and what the engine orders to the rails.
//!
//! Real hosts and simulated hosts turn this same pump. It never waits. Where several threads use a node, what
//! a rail does happens while others decide ([`Access`]).

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

/// How the pump reaches the engine and its rails.
///
/// A decision of the engine is short (some 100 ns); what a rail does may be long (a system call of 2 us, a
/// copy of 100 us). An implementation for several threads lets others have the engine while a rail works;
/// then the rail belongs to the thread that works with it until that thread has the engine again. Nobody
/// waits for a rail that another thread uses: its orders stay in the engine, where the thread that uses it
/// looks for them when it is done.
pub trait Access {
    /// The engine, for a decision.
    fn engine(&mut self) -> &mut Engine;
    /// How many rails there are.
    fn rails(&self) -> usize;
    /// Has a rail do something that is as short as a decision. None: another thread uses the rail.
    fn ask<R>(&mut self, rail: RailId, work: impl FnOnce(&mut dyn Driver) -> R) -> Option<R>;
    /// Has a rail do something that may take long. None: another thread uses the rail.
    fn work<R>(&mut self, rail: RailId, work: impl FnOnce(&mut dyn Driver) -> R) -> Option<R>;
    /// Looks at a rail ([`Driver::poll`]), gives what it reports to the engine as of the time `now`, and
    /// tells what was found.
    fn poll(&mut self, rail: RailId, scope: Scope, now: Instant) -> Looked;
    /// Whether other threads may have submitted something while a rail worked.
    fn is_shared(&self) -> bool;
    /// Has another core that stands by post these orders on a rail, which that core has to itself meanwhile.
    ///
    /// # Errors
    /// No core stands by, or another thread uses the rail: the orders are given back.
    fn hand_off(&mut self, rail: RailId, orders: Vec<Order>) -> Result<(), Vec<Order>> {
        let _ = rail;
        Err(orders)
    }
    /// How near the cores that stand by are to the caller's, the nearest first; unknown where it ends.
    fn beside(&self) -> Vec<Pair> {
        Vec::new()
    }
    /// Posts itself what was handed off and nobody has begun with. What others are at is not waited for.
    fn take_back(&mut self) {}
}

/// Posts orders on a rail: what a core does that was handed them.
pub fn post(rail: &mut dyn Driver, orders: Vec<Order>) {
    for order in orders {
        rail.send(Departure::Order(order));
    }
    rail.flush();
}

/// What a look at a rail has found.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Looked {
    /// Something was reported.
    Found,
    /// Nothing.
    Nothing,
    /// The rail cannot tell in this scope, or another thread uses it.
    Unknown,
}

/// Looks at a rail and gives each event that it reports to `handle`.
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

/// An engine and its rails in the hands of one thread: the simulator, tests.
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

/// One pass: looks at every rail once, then feeds the rails. `now` is the time of what is found, and may be
/// some microseconds old; the clock is only read to post something. `urgent`: the caller waits, so nobody
/// will add to the window and it is released at once. Returns whether anything happened.
#[inline]
pub fn turn(node: &mut impl Access, now: Instant, clock: &mut dyn FnMut() -> Instant, urgent: bool) -> bool {
    let mut happened = false;
    for index in 0..node.rails() {
        happened |= node.poll(RailId(index as u8), Scope::All, now) == Looked::Found;
    }
    // If the awaited message has arrived, return at once: work that is only due now can wait for the next
    // turn.
    if urgent && node.engine().is_met() {
        return true;
    }
    // The handling of events may have taken a while, and the time of the look may be a little old.
    let now = if urgent || !node.engine().has_orders(now) { now } else { clock() };
    feed(node, now, clock, urgent) || happened
}

/// Looks for a packet of the peer from whom something is awaited, and at nothing else; whether there was one.
/// The caller turns the pump now and then, too, and always where the answer is none.
#[inline]
pub fn look_for(node: &mut impl Access, now: Instant, from: PeerId) -> Option<bool> {
    let rail = node.engine().looks_on(from)?;
    match node.poll(rail, Scope::Peer(from), now) {
        Looked::Found => Some(true),
        Looked::Nothing => Some(false),
        Looked::Unknown => None,
    }
}

/// Feeds the rails without looking at them first: what a submission does. With `urgent` `now` may be a little
/// old.
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
    // A caller that waits does not wait for the clock either; the cost of posting is known from other times.
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
        // Several rails take their packets of a long message in turns, so that each begins early. A caller
        // that waits gives them all that they take before it looks at them: while it reads, they carry.
        if !(fed && urgent && node.rails() > 1 && node.engine().has_orders_for(now, true)) {
            break;
        }
    }
    if !happened && !urgent {
        node.engine().had_nothing();
    }
    happened
}

/// Takes the orders of several rails before any is posted, and has other cores post those of all but the
/// first (P3 section III-D). The time when that was done; none: there were no orders.
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
    node.engine().stand_beside(beside.into_iter());
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
        // The engine is not let go before the first rail is posted to, so that no other thread comes between
        // orders of a rail.
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

/// Sends a message in this call, if it finds its rail idle and nothing before it. Otherwise it is to be
/// submitted with [`Engine::send_as`], with the attempt that was refused, if one was.
///
/// # Errors
/// It has not left.
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
        Err(tried) => go_on(node, to, message, (caller, tried), clock),
    }
}

/// An attempt to send a message after which it has not left, or not ended.
#[derive(Debug)]
pub struct Tried(Option<(Leaving, Sent)>);

/// The first step of [`send_at_once`], in which most small messages leave: their numbers in their flows. The
/// second one is [`go_on`].
///
/// # Errors
/// The message has not left, or not ended: [`go_on`] continues with the attempt.
// Inlined, and apart from `go_on`, which is not: a result that several branches write in parts would be
// read as a whole, and such a load waits until all earlier stores are in the cache, those to lines that a
// peer reads among them (40 ns on Zen).
#[inline(always)]
pub fn try_at_once(
    node: &mut impl Access,
    to: &To,
    (data, hints): (&Segments, Hints),
    caller: Caller,
    clock: &mut dyn FnMut() -> Instant,
) -> Result<u32, Tried> {
    let Some(leaving) = node.engine().begin(to, data.len(), hints, caller, None, clock) else {
        return Err(Tried(None));
    };
    let sent = give(node, &leaving, to, data);
    match node.engine().has_left(&leaving, sent, to.0, data.len()) {
        true => Ok(leaving.seq()),
        false => Err(Tried(Some((leaving, sent)))),
    }
}

/// The second step of [`send_at_once`].
///
/// # Errors
/// The message has not left.
#[inline(never)]
pub fn go_on(
    node: &mut impl Access,
    to: &To,
    (data, hints): (&Segments, Hints),
    (caller, Tried(tried)): (Caller, Tried),
    clock: &mut dyn FnMut() -> Instant,
) -> Result<Submitted, Option<Refused>> {
    let (leaving, sent) = tried.ok_or(None)?;
    match node.engine().departed(&leaving, sent, to, data, hints, clock) {
        Some(submitted) => Ok(submitted),
        None => send_otherwise(node, to, (data, hints), (caller, leaving.refused()), clock),
    }
}

/// The same after a rail has refused.
fn send_otherwise(
    node: &mut impl Access,
    to: &To,
    (data, hints): (&Segments, Hints),
    (caller, mut refused): (Caller, Refused),
    clock: &mut dyn FnMut() -> Instant,
) -> Result<Submitted, Option<Refused>> {
    while let Some(leaving) = node.engine().begin(to, data.len(), hints, caller, Some(refused), clock) {
        let sent = give(node, &leaving, to, data);
        if let Some(submitted) = node.engine().departed(&leaving, sent, to, data, hints, clock) {
            return Ok(submitted);
        }
        refused = leaving.refused();
    }
    Err(Some(refused))
}

/// Gives a message that leaves to its rail. A rail that another thread uses refuses it.
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
    // A copy of a small message takes no longer than to let others have the engine.
    let sent = if protocol == Protocol::Inject { node.ask(rail, send) } else { node.work(rail, send) };
    sent.unwrap_or(Sent::Retry)
}

/// Gives the request to send of a message that its receiver reads. Data in pieces goes another way.
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
    let (packet, chunk) = leaving.pushed(to, data);
    let send = |rail: &mut dyn Driver| rail.send(Departure::Pushed { packet: &packet, chunk });
    node.work(leaving.rail(), send).unwrap_or(Sent::Retry)
}

/// Posts all that a rail takes now; whether there was anything.
fn feed_one(node: &mut impl Access, id: RailId, now: Instant, urgent: bool) -> bool {
    let mut happened = false;
    loop {
        let mut posted = false;
        while node.ask(id, |rail| rail.room()).is_some_and(|room| room > 0)
            && let Some(order) = node.engine().next_order(now, id, urgent)
        {
            node.work(id, |rail| rail.send(Departure::Order(order))).expect("it has just told its room");
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

/// Receive regions to open and close, links to open and close, accesses: they need no room and do not wait.
#[cold]
fn errands(node: &mut impl Access) {
    for index in 0..node.rails() {
        let id = RailId(index as u8);
        if node.ask(id, |_| ()).is_none() {
            continue;
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

/// Why a rail does what it is asked: the engine was not let go since it was looked for.
const IN_PLACE: &str = "no other thread has had the engine since the rail was found in its place";
