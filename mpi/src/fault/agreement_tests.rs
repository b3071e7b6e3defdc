//! Enumerates all orders of calls, deliveries, deaths and detections among up to four ranks, with a death
//! before and after each message. Tests random orders among up to 17 ranks.

use super::*;
use std::collections::HashSet;

/// A deliberate defect of the protocol. The checks must detect each.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Defect {
    None,
    /// Contributions of other views are counted.
    IgnoresViews,
    /// Messages of failed ranks are accepted.
    AcceptsFromFailed,
    /// A decision is sent to one rank only.
    SendsDecisionOnce,
    /// A rank that has a decision does not send it when its parent fails.
    SilentAfterDecision,
}

/// Ranks and the messages between them.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
struct World {
    ranks: Vec<Agreement>,
    joined: Set,
    dead: Set,
    /// Messages that each rank has produced and not sent yet: a rank may die between two of them.
    unsent: Vec<Vec<(usize, Message)>>,
    /// Messages in transit, by sender and receiver.
    sent: Vec<Vec<Vec<Message>>>,
    deaths_left: usize,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Event {
    Join(usize),
    Send(usize),
    Deliver(usize, usize),
    Die(usize),
    Detect(usize, usize),
}

impl World {
    fn new(size: usize, deaths_left: usize) -> World {
        World {
            ranks: (0..size).map(|me| Agreement::new(me, size, Set::none(size))).collect(),
            joined: Set::none(size),
            dead: Set::none(size),
            unsent: vec![Vec::new(); size],
            sent: vec![vec![Vec::new(); size]; size],
            deaths_left,
        }
    }

    fn size(&self) -> usize {
        self.ranks.len()
    }

    fn alive(&self) -> impl Iterator<Item = usize> + '_ {
        (0..self.size()).filter(|rank| !self.dead.has(*rank))
    }

    /// Returns all events that are possible now. Deaths are last in the list.
    fn events(&self) -> Vec<Event> {
        let mut events = Vec::new();
        for rank in self.alive() {
            if !self.joined.has(rank) {
                events.push(Event::Join(rank));
            }
            if !self.unsent[rank].is_empty() {
                events.push(Event::Send(rank));
            }
            for other in 0..self.size() {
                if !self.sent[other][rank].is_empty() {
                    events.push(Event::Deliver(other, rank));
                }
                if self.dead.has(other) && !self.ranks[rank].failed().has(other) {
                    events.push(Event::Detect(rank, other));
                }
            }
        }
        let may_die = self.deaths_left > 0 && self.alive().count() > 1;
        events.extend(self.alive().filter(|_| may_die).map(Event::Die));
        events
    }

    fn apply(&mut self, event: Event, defect: Defect) {
        match event {
            Event::Join(rank) => {
                self.joined.add(rank);
                let all = self.ranks[rank].failed().clone();
                let value = Value { flags: !(1 << rank), most: [rank as i64, 0], acknowledged: all };
                let out = self.ranks[rank].join(value);
                self.enqueue(rank, out, defect);
            }
            Event::Send(rank) => {
                let (to, message) = self.unsent[rank].remove(0);
                self.sent[rank][to].push(message);
            }
            Event::Deliver(from, to) => {
                let mut message = self.sent[from][to].remove(0);
                if let (Message::Up { failed, .. }, Defect::IgnoresViews) = (&mut message, defect) {
                    *failed = self.ranks[to].failed().clone();
                }
                let claimed = match defect {
                    Defect::AcceptsFromFailed => self.alive().find(|rank| *rank != to).unwrap_or(from),
                    _ => from,
                };
                let out = self.ranks[to].on_message(claimed, message);
                self.enqueue(to, out, defect);
            }
            Event::Die(rank) => {
                self.deaths_left -= 1;
                self.dead.add(rank);
                self.unsent[rank].clear();
                (0..self.size()).for_each(|other| self.sent[other][rank].clear());
            }
            Event::Detect(rank, other) => {
                let decided = self.ranks[rank].decision().is_some();
                let out = self.ranks[rank].on_failed(other);
                if !(decided && defect == Defect::SilentAfterDecision) {
                    self.enqueue(rank, out, defect);
                }
            }
        }
    }

    fn enqueue(&mut self, rank: usize, mut out: Vec<(usize, Message)>, defect: Defect) {
        if defect == Defect::SendsDecisionOnce && matches!(out.first(), Some((_, Message::Down(_)))) {
            out.truncate(1);
        }
        self.unsent[rank].extend(out);
        if self.deaths_left == 0 {
            // No rank dies any more, so it makes no difference when the messages are sent.
            for (to, message) in std::mem::take(&mut self.unsent[rank]) {
                self.sent[rank][to].push(message);
            }
        }
    }

    /// Checks the state. `is_over`: no event but deaths is possible.
    ///
    /// # Errors
    /// A survivor has another decision, none at the end, or one that is wrong.
    fn check(&self, is_over: bool) -> Result<(), String> {
        let decided: Vec<_> = self.alive().filter_map(|rank| self.ranks[rank].decision()).collect();
        if decided.windows(2).any(|pair| pair[0] != pair[1]) {
            return Err("survivors differ".into());
        }
        if is_over && decided.len() < self.alive().count() {
            return Err("a survivor waits for ever".into());
        }
        let Some(decision) = decided.first() else { return Ok(()) };
        if !self.dead.covers(&decision.failed) {
            return Err("a rank that is alive is in the decision as failed".into());
        }
        let misses = |rank: &usize| decision.value.flags >> rank & 1 == 1;
        match self.alive().any(|rank| misses(&rank)) {
            true => Err("the contribution of a survivor is missing".into()),
            false => Ok(()),
        }
    }
}

/// Visits all reachable states, and returns their number.
///
/// # Errors
/// The first violation that [`World::check`] finds.
fn enumerate(size: usize, deaths: usize, defect: Defect) -> Result<usize, String> {
    let (mut seen, mut open) = (HashSet::new(), vec![World::new(size, deaths)]);
    while let Some(world) = open.pop() {
        let events = world.events();
        world.check(events.iter().all(|event| matches!(event, Event::Die(_))))?;
        for event in events {
            let mut next = world.clone();
            next.apply(event, defect);
            if seen.insert(hash(&next)) {
                open.push(next);
            }
        }
    }
    Ok(seen.len())
}

/// Returns 128 bits, so that a collision among a few million states is improbable.
fn hash(world: &World) -> (u64, u64) {
    use std::hash::{DefaultHasher, Hash, Hasher};
    let of = |salt: u64| {
        let mut hasher = DefaultHasher::new();
        (salt, world).hash(&mut hasher);
        hasher.finish()
    };
    (of(1), of(2))
}

#[test]
fn all_orders_among_three_ranks_of_which_two_die() {
    for (size, deaths) in [(1, 0), (2, 0), (2, 1), (3, 1), (3, 2)] {
        let states = enumerate(size, deaths, Defect::None).expect("survivors agree");
        assert!(states >= size, "{states}");
    }
}

#[test]
fn all_orders_among_four_ranks_of_which_one_dies() {
    let states = enumerate(4, 1, Defect::None).expect("survivors agree");
    assert!(states > 10_000, "{states}");
}

#[test]
fn each_defect_is_found() {
    for defect in [
        Defect::IgnoresViews,
        Defect::AcceptsFromFailed,
        Defect::SendsDecisionOnce,
        Defect::SilentAfterDecision,
    ] {
        let found = (3..5).any(|size| enumerate(size, if size == 3 { 2 } else { 1 }, defect).is_err());
        assert!(found, "{defect:?}");
    }
}

#[test]
fn random_orders_among_many_ranks() {
    let mut random = 0x9e37_79b9_7f4a_7c15_u64;
    let mut next = |below: usize| {
        random ^= random << 13;
        random ^= random >> 7;
        random ^= random << 17;
        (random % below as u64) as usize
    };
    for round in 0..3000 {
        let size = 2 + next(16);
        let mut world = World::new(size, next(size));
        loop {
            let events = world.events();
            let calm = events.iter().filter(|event| !matches!(event, Event::Die(_))).count();
            world.check(calm == 0).unwrap_or_else(|why| panic!("round {round}: {why}: {world:?}"));
            if events.is_empty() {
                break;
            }
            // A death is chosen with the same probability as any other event.
            let event = events[next(events.len())];
            world.apply(event, Defect::None);
        }
    }
}
