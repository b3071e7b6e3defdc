//! A simulated world of a few ranks in virtual time. Its network delays, loses, repeats and cuts messages
//! at random; a process with another secret tries to take part.

use super::encrypted::policy;
use crate::handshake::{Ends, Fresh};
use crate::opening::{
    Action, Content, Facts, FailureKind, Id, Linked, Local, Medium, Opened, Opening, Origin,
};
use nmad_engine::packet::PeerId;
use nmad_seal::Policy;
use nmad_seal::exchange::Scalar;
use nmad_wire::Control;
use std::collections::HashSet;
use std::time::Duration;

pub const LENGTHS: &[usize] = &[1_400, 528];
/// Silence after which a link counts as lost, and period of keepalive messages, in milliseconds.
const SILENCE_MS: u64 = 3_000;
const SIGN_MS: u64 = 250;
const RETRY_MS: u64 = 25;

/// Random numbers that follow from a seed (SplitMix64; Steele, Lea and Flood, OOPSLA 2014).
pub struct Dice(pub u64);

impl Dice {
    pub fn below(&mut self, below: u64) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut z = (self.0 ^ (self.0 >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        (z ^ (z >> 31)) % below.max(1)
    }

    /// Returns true with a probability of `percent`.
    pub fn chance(&mut self, percent: u64) -> bool {
        self.below(100) < percent
    }
}

/// The current rates of faults, in percent, and the longest delay in milliseconds.
#[derive(Clone, Copy, Default)]
pub struct FaultRates {
    pub loss: u64,
    pub repeat: u64,
    pub refused: u64,
    pub cut: u64,
    pub replay: u64,
    pub given_up: u64,
    pub delay_ms: u64,
    /// Longer datagrams are lost.
    pub width: usize,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Port {
    side: usize,
    /// Port number; zero: the listening port of the side.
    number: u64,
}

#[derive(Debug, Clone, PartialEq)]
enum What {
    Connect,
    Accepted,
    Refused,
    Ended,
    Control(Vec<u8>, usize),
    /// The driver's own exchange after the proof, in each direction.
    Memory,
    Bell,
    /// Keepalive of the link with these nonces.
    Alive([u8; 32]),
}

#[derive(Clone)]
struct Flight {
    at_ms: u64,
    from: Port,
    to: Port,
    what: What,
}

struct Talk {
    id: Id,
    own: Port,
    other: Port,
    is_finishing: bool,
    link: Option<Link>,
}

#[derive(Clone, Copy)]
struct Link {
    ends: Ends,
    /// The key of the MACs with which each side proves that it has the same keys.
    key: [u8; 32],
    peer: PeerId,
    proof: bool,
    heard_ms: u64,
    signed_ms: u64,
}

pub struct Side {
    pub machine: Opening,
    secret: [u8; 32],
    talks: Vec<Talk>,
    pub wants: Vec<PeerId>,
    next_ms: u64,
    /// Messages of failed attempts.
    pub failures: Vec<String>,
    opened: HashSet<([u8; 32], [u8; 32])>,
}

/// The sides that know the secret, and one more with another secret.
pub struct World {
    seed: u64,
    pub now_ms: u64,
    pub sides: Vec<Side>,
    pub dice: Dice,
    pub rates: FaultRates,
    medium: Medium,
    flights: Vec<Flight>,
    recorded: Vec<Flight>,
    ports: u64,
}

/// A side's view of the world, for the machine.
struct Seen {
    is_far: bool,
    me: usize,
    count: usize,
    links: Vec<(PeerId, Linked)>,
}

impl Facts for Seen {
    fn remotes(&self, peer: PeerId) -> Vec<u8> {
        if (peer.0 as usize) < self.count && peer.0 as usize != self.me { vec![0] } else { Vec::new() }
    }

    fn linked(&self, peer: PeerId) -> Option<Linked> {
        self.links.iter().find(|(of, _)| *of == peer).map(|(_, linked)| *linked)
    }

    fn is_far(&self, _: PeerId) -> bool {
        self.is_far
    }

    fn no_address(&self) -> &'static str {
        "has no address"
    }

    fn no_answer(&self, _: PeerId) -> String {
        "did not answer".into()
    }
}

impl World {
    /// Creates `count` ranks that know the secret, and one process that does not and claims to be rank 0.
    pub fn new(seed: u64, count: usize, medium: Medium) -> World {
        let side = |place: usize| {
            let secret = if place < count { [7; 32] } else { [8; 32] };
            let rank = PeerId((place % count) as u32);
            let bound = Duration::from_secs(5);
            let local = Local {
                name: format!("r{place}"),
                rank,
                rail: 0,
                secret,
                bound,
                encrypt: policy(seed, place).0,
                within_host: false,
            };
            Side {
                machine: Opening::new(local, medium),
                secret,
                talks: Vec::new(),
                wants: Vec::new(),
                next_ms: 0,
                failures: Vec::new(),
                opened: HashSet::new(),
            }
        };
        let sides = (0..=count).map(side).collect();
        let (dice, rates) = (Dice(seed), FaultRates::default());
        World {
            seed,
            now_ms: 1,
            sides,
            dice,
            rates,
            medium,
            flights: Vec::new(),
            recorded: Vec::new(),
            ports: 0,
        }
    }

    /// Returns the nonces and the key of a side's link to a peer; `None` if it has no link.
    pub fn link(&self, side: usize, peer: usize) -> Option<([u8; 32], [u8; 32], [u8; 32])> {
        let links = self.sides[side].talks.iter().filter_map(|talk| talk.link);
        let link = links.into_iter().find(|link| link.peer.0 as usize == peer)?;
        Some((link.ends.hello.nonce, link.ends.nonce, link.key))
    }

    /// Advances time by a few milliseconds.
    pub fn pass(&mut self) {
        self.now_ms += 1 + self.dice.below(9);
        self.deliver();
        self.inject_faults();
        for side in 0..self.sides.len() {
            if self.now_ms >= self.sides[side].next_ms {
                self.sides[side].next_ms = self.now_ms + self.dice.below(20);
                self.turn(side);
            }
        }
    }

    /// One poll of a side.
    fn turn(&mut self, side: usize) {
        for peer in self.sides[side].wants.clone() {
            if self.link(side, peer.0 as usize).is_none() {
                self.sides[side].machine.connect(peer, self.now_ms);
            }
        }
        let seen = self.seen(side);
        self.sides[side].machine.step(self.now_ms, &seen);
        self.act(side);
        self.keep_up(side);
    }

    fn seen(&self, side: usize) -> Seen {
        let links = self.sides[side].talks.iter().filter_map(|talk| talk.link);
        let linked = |link: Link| (link.peer, Linked { remote: 0, is_unproved: link.proof });
        let is_far = policy(self.seed, side).1;
        Seen { is_far, me: side, count: self.sides.len() - 1, links: links.map(linked).collect() }
    }

    fn act(&mut self, side: usize) {
        while let Some(action) = self.sides[side].machine.next_action() {
            let find = |id: Id| self.sides[side].talks.iter().position(|talk| talk.id == id);
            match action {
                Action::Reach { id, peer, .. } => self.reach(side, id, peer),
                Action::Send { id, message, len } => {
                    if let Some(at) = find(id) {
                        self.say(side, at, What::Control(message.encode(), len));
                    }
                }
                Action::Refuse { id, code, text } => {
                    if let Some(at) = find(id) {
                        let refusal = Control::Refuse(nmad_wire::Refusal { code, text: &text }).encode();
                        self.say(side, at, What::Control(refusal, 0));
                        self.end(side, at);
                    }
                }
                Action::Finish { id, is_attempt } => {
                    if let Some(at) = find(id) {
                        self.sides[side].talks[at].is_finishing = true;
                        match (self.medium, is_attempt) {
                            (Medium::Datagrams(_), _) => self.finish(side, at),
                            (Medium::Connections, true) => self.say(side, at, What::Memory),
                            (Medium::Connections, false) => {}
                        }
                    }
                }
                Action::Drop { id } => {
                    if let Some(at) = find(id) {
                        self.end(side, at);
                    }
                }
                Action::Failed { peer, why } => self.sides[side].failures.push(format!("{}: {why}", peer.0)),
            }
        }
    }

    fn reach(&mut self, side: usize, id: Id, peer: PeerId) {
        self.ports += 1;
        let (own, other) = (Port { side, number: self.ports }, Port { side: peer.0 as usize, number: 0 });
        self.sides[side].talks.push(Talk { id, own, other, is_finishing: false, link: None });
        match self.medium {
            Medium::Connections => self.send(own, other, What::Connect),
            Medium::Datagrams(_) => {
                let fresh = self.fresh();
                self.sides[side].machine.reached(id, 9_000, self.now_ms, fresh);
            }
        }
    }

    fn fresh(&mut self) -> Fresh {
        let mut bytes = || std::array::from_fn(|_| self.dice.below(256) as u8);
        Fresh { nonce: bytes(), scalar: Scalar::new(bytes()) }
    }

    fn say(&mut self, side: usize, at: usize, what: What) {
        let Talk { own, other, .. } = self.sides[side].talks[at];
        self.send(own, other, what);
    }

    /// Ends a side's use of a conversation.
    fn end(&mut self, side: usize, at: usize) {
        let Talk { own, other, .. } = self.sides[side].talks.swap_remove(at);
        if self.medium == Medium::Connections {
            self.send(own, other, What::Ended);
        }
    }

    fn finish(&mut self, side: usize, at: usize) {
        let (id, now_ms) = (self.sides[side].talks[at].id, self.now_ms);
        let Some(opened) = self.sides[side].machine.finished(id) else { return };
        let Opened { peer, ends, keys, is_attempt, .. } = opened;
        let key = keys.as_ref().map_or(self.sides[side].secret, |keys| *keys.confirmation());
        let wants = |side: usize| matches!(policy(self.seed, side), (Policy::On, _) | (Policy::Auto, true));
        assert_eq!(keys.is_some(), wants(side) || wants(peer.0 as usize), "the policies decide");
        assert!(self.sides[side].opened.insert((ends.hello.nonce, ends.nonce)), "each opens once");
        assert_eq!(self.sides[side].secret, [7; 32], "a side without the secret opens nothing");
        let old = self.sides[side].talks.iter().position(|talk| talk.link.is_some_and(|l| l.peer == peer));
        let proof = is_attempt && self.medium != Medium::Connections;
        let link = Link { ends, key, peer, proof, heard_ms: now_ms, signed_ms: now_ms };
        let other = self.sides[side].talks[at].other.side;
        assert_eq!(self.sides[other].secret, [7; 32], "and not to a side without it");
        self.sides[side].talks[at].link = Some(link);
        self.say(side, at, What::Alive(ends.nonce));
        if let Some(old) = old {
            self.end(side, old);
        }
    }

    /// Sends keepalives, and ends links that are silent.
    fn keep_up(&mut self, side: usize) {
        for at in (0..self.sides[side].talks.len()).rev() {
            let Some(link) = self.sides[side].talks[at].link else { continue };
            if self.now_ms >= link.heard_ms + SILENCE_MS {
                self.end(side, at);
                continue;
            }
            if self.now_ms < link.signed_ms + if link.proof { RETRY_MS } else { SIGN_MS } {
                continue;
            }
            let proof = link.ends.proof(&link.key).encode();
            let what = if link.proof { What::Control(proof, 528) } else { What::Alive(link.ends.nonce) };
            self.say(side, at, what);
            if let Some(link) = &mut self.sides[side].talks[at].link {
                link.signed_ms = self.now_ms;
            }
        }
    }

    fn send(&mut self, from: Port, to: Port, what: What) {
        let mut at_ms = self.now_ms + self.dice.below(self.rates.delay_ms + 1);
        if self.medium == Medium::Connections {
            // Connections keep the order of messages.
            let before = self.flights.iter().filter(|flight| flight.from == from && flight.to == to);
            at_ms = before.map(|flight| flight.at_ms).max().unwrap_or(0).max(at_ms);
            return self.flights.push(Flight { at_ms, from, to, what });
        }
        let len = if let What::Control(_, len) = what { len } else { 0 };
        if len > self.rates.width {
            return;
        }
        let flight = Flight { at_ms, from, to, what };
        if self.dice.chance(5) {
            self.recorded.push(flight.clone());
        }
        if self.dice.chance(self.rates.repeat) {
            let later_ms = at_ms + self.dice.below(50);
            self.flights.push(Flight { at_ms: later_ms, ..flight.clone() });
        }
        if !self.dice.chance(self.rates.loss) {
            self.flights.push(flight);
        }
    }

    /// Random faults: old datagrams are replayed, also from another port; connections are cut; links are
    /// closed.
    fn inject_faults(&mut self) {
        if !self.recorded.is_empty() && self.dice.chance(self.rates.replay) {
            let which = self.dice.below(self.recorded.len() as u64) as usize;
            let mut flight = Flight { at_ms: self.now_ms, ..self.recorded[which].clone() };
            if self.dice.chance(50) {
                flight.from = Port { side: self.sides.len() - 1, number: 99_999_999 };
                flight.to.number = 0;
            }
            self.flights.push(flight);
        }
        let side = self.dice.below(self.sides.len() as u64 - 1) as usize;
        let count = self.sides[side].talks.len();
        if count > 0 && self.medium == Medium::Connections && self.dice.chance(self.rates.cut) {
            let at = self.dice.below(count as u64) as usize;
            let Talk { id, other, own, .. } = self.sides[side].talks[at];
            self.end(side, at);
            self.flights.retain(|flight| (flight.from, flight.to) != (other, own));
            self.kind(side, id, FailureKind::Ended);
        }
        if self.dice.chance(self.rates.given_up)
            && let Some(&peer) = self.sides[side].wants.first()
        {
            self.sides[side].machine.forget(peer);
            self.act(side);
        }
    }

    fn kind(&mut self, side: usize, id: Id, kind: FailureKind) {
        let seen = self.seen(side);
        self.sides[side].machine.failed(id, kind, "was cut".into(), self.now_ms, &seen);
        self.act(side);
    }

    fn deliver(&mut self) {
        loop {
            let due = self.flights.iter().enumerate().filter(|(_, flight)| flight.at_ms <= self.now_ms);
            // Of several messages that are due, the one that was sent first, so that connections keep the
            // order.
            let Some((at, _)) = due.min_by_key(|(_, flight)| flight.at_ms) else { return };
            let flight = self.flights.remove(at);
            self.arrive(flight);
        }
    }

    fn arrive(&mut self, Flight { from, to, what, .. }: Flight) {
        let side = to.side;
        let found = self.sides[side].talks.iter().position(|talk| (talk.own, talk.other) == (to, from));
        match (what, found) {
            (What::Connect, _) if self.dice.chance(self.rates.refused) => self.send(to, from, What::Refused),
            (What::Connect, _) => match self.sides[side].machine.has_room(self.now_ms) {
                true => {
                    self.accept(side, to, from);
                    self.send(to, from, What::Accepted);
                }
                false => self.send(from, to, What::Connect),
            },
            (What::Accepted, Some(at)) => {
                let (id, fresh) = (self.sides[side].talks[at].id, self.fresh());
                self.sides[side].machine.reached(id, 0, self.now_ms, fresh);
            }
            (What::Refused, Some(at)) => {
                let Talk { id, .. } = self.sides[side].talks.swap_remove(at);
                self.kind(side, id, FailureKind::Unreachable);
            }
            (What::Ended, Some(at)) => {
                let Talk { id, .. } = self.sides[side].talks.swap_remove(at);
                self.kind(side, id, FailureKind::Ended);
            }
            (What::Control(bytes, len), found) => self.control(side, found, (from, to), &bytes, len),
            (What::Memory, Some(at)) if self.sides[side].talks[at].is_finishing => {
                self.say(side, at, What::Bell);
                self.finish(side, at);
            }
            (What::Bell, Some(at)) => self.finish(side, at),
            (What::Alive(nonce), Some(at)) => {
                if let Some(link) = &mut self.sides[side].talks[at].link
                    && link.ends.nonce == nonce
                {
                    (link.heard_ms, link.proof) = (self.now_ms, false);
                }
            }
            _ => {}
        }
        self.act(side);
    }

    fn accept(&mut self, side: usize, own: Port, other: Port) -> usize {
        let id = self.sides[side]
            .machine
            .accepted(Origin { text: format!("{other:?}"), host: None, is_known: true }, self.now_ms);
        self.sides[side].talks.push(Talk { id, own, other, is_finishing: false, link: None });
        self.sides[side].talks.len() - 1
    }

    fn control(
        &mut self,
        side: usize,
        found: Option<usize>,
        (from, to): (Port, Port),
        bytes: &[u8],
        len: usize,
    ) {
        let message = Control::decode(bytes).expect("machines say what can be read");
        let is_hello = matches!(message, Control::Hello(_));
        if self.medium != Medium::Connections {
            // A handshake message has a MAC of the job; if a link exists, it answers.
            let link = found.and_then(|at| self.sides[side].talks[at].link);
            if self.sides[side].secret != self.sides[from.side].secret && from.number != 99_999_999 {
                return;
            }
            if let (Some(at), Some(link)) = (found, link) {
                return self.say(side, at, What::Alive(link.ends.nonce));
            }
            if found.is_none() && !(is_hello && to.number == 0) {
                return;
            }
        }
        let at = match found {
            Some(at) => at,
            None if self.medium == Medium::Connections => return,
            None => self.accept(side, to, from),
        };
        let (id, fresh, seen) = (self.sides[side].talks[at].id, self.fresh(), self.seen(side));
        let now_ms = self.now_ms;
        self.sides[side].machine.handle_message(id, Content::Message(message), len, (now_ms, fresh), &seen);
    }
}
